"""PROPFIND: what bodies ask for, and whole answers parsed back."""

import contextlib
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.handlers.multistatus import LIVE
from davserver.handlers.propfind import PropfindRequest, parse_asked
from davserver.http.environ import MAX_BODY_BYTES
from davserver.http.response import HTTPError

DAV = "{DAV:}"


def body(inside: str, root: str = "D:propfind") -> bytes:
    return f'<?xml version="1.0"?><{root} xmlns:D="DAV:" xmlns:x="urn:x">{inside}</{root}>'.encode()


@pytest.mark.parametrize("empty", [b"", b" \r\n"])
def test_an_empty_body_asks_for_everything(empty):
    assert parse_asked(empty) == PropfindRequest(None)


@pytest.mark.parametrize(
    ("inside", "asked"),
    [
        ("<D:allprop/>", PropfindRequest(None)),
        ("<D:propname/>", PropfindRequest(None, values=False)),
        ("<D:prop><D:getetag/></D:prop>", PropfindRequest((DAV + "getetag",))),
        ("<D:prop><D:getetag/><D:getetag/><x:y/></D:prop>", PropfindRequest((DAV + "getetag", "{urn:x}y"))),
        ("<D:prop/>", PropfindRequest(())),
        ("<D:prop><plain/></D:prop>", PropfindRequest(("plain",))),
        ("<x:later/><D:allprop/>", PropfindRequest(None)),
        ("<D:allprop/><D:include><x:y/><D:getetag/></D:include>", PropfindRequest((*LIVE, "{urn:x}y"))),
        ("<D:include/><D:allprop/>", PropfindRequest(LIVE)),
    ],
)
def test_what_a_body_asks_for(inside, asked):
    assert parse_asked(body(inside)) == asked


@pytest.mark.parametrize(
    "bad",
    [
        b"<",
        b"garbage",
        b"\xff\xfe",
        b'<?xml version="1.0" encoding="no-such"?><a/>',
        b'<?xml version="1.0" encoding="utf-7"?><a/>',
        b'<D:propfind xmlns:D="DAV:"><D:prop></D:propfind>',
        b"<D:propfind><D:prop/></D:propfind>",
        b'<D:propfind xmlns:D="DAV:"><D:prop><bar:foo xmlns:bar=""/></D:prop></D:propfind>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><D:propfind xmlns:D="DAV:"><D:allprop/></D:propfind>',
        b'<!DOCTYPE a [<!ENTITY e "x">]><D:propfind xmlns:D="DAV:"><D:allprop/></D:propfind>',
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><D:propfind xmlns:D="DAV:">&e;</D:propfind>',
        body(""),
        body("<x:only/>"),
        body("<D:prop/><D:allprop/>"),
        body("<D:propname/><D:include><x:y/></D:include>"),
        body("<D:allprop/>", root="D:propertyupdate"),
        b"<propfind><allprop/></propfind>",
        b"<a>" * 20000,
    ],
)
def test_what_is_no_propfind_is_refused(bad):
    with pytest.raises(HTTPError) as refused:
        parse_asked(bad)
    assert refused.value.answer.status == 400


def test_a_body_too_long_is_refused():
    with pytest.raises(HTTPError) as refused:
        parse_asked(b" " * (MAX_BODY_BYTES + 1))
    assert refused.value.answer.status == 413


@given(st.binary(max_size=200))
def test_no_body_is_a_crash(raw):
    with contextlib.suppress(HTTPError):
        parse_asked(raw)


# -- whole answers


class Found(dict):
    """Properties of one response by Clark name: (status, text, element)."""


def multistatus(reply) -> dict[str, Found]:
    assert reply.status == 207
    assert reply["Content-Type"] == "application/xml; charset=utf-8"
    root = fromstring(reply.body)
    assert root.tag == DAV + "multistatus"
    responses = {}
    for response in root:
        assert [child.tag for child in response][:1] == [DAV + "href"]
        assert response.find(DAV + "status") is None
        assert response.find(DAV + "propstat") is not None
        found = Found()
        for propstat in response.iter(DAV + "propstat"):
            status = int(propstat.findtext(DAV + "status").split()[1])
            for element in propstat.find(DAV + "prop"):
                assert element.tag not in found
                found[element.tag] = (status, element.text, element)
        responses[response.findtext(DAV + "href")] = found
    return responses


def propfind(client, target, inside=None, depth="0", **headers):
    return client.ask("PROPFIND", target, body(inside) if inside else None, Depth=depth, **headers)


def test_allprop_of_a_file_is_what_head_says(client):
    found = multistatus(propfind(client, "/file.txt"))["/file.txt"]
    head = client.ask("HEAD", "/file.txt")
    assert {name: value[:2] for name, value in found.items()} == {
        DAV + "resourcetype": (200, None),
        DAV + "displayname": (200, "file.txt"),
        DAV + "getcontentlength": (200, head["Content-Length"]),
        DAV + "getlastmodified": (200, head["Last-Modified"]),
        DAV + "getetag": (200, head["ETag"]),
        DAV + "getcontenttype": (200, head["Content-Type"]),
    }


def test_allprop_of_a_collection_has_neither_length_nor_tag(client):
    found = multistatus(propfind(client, "/active/"))["/active/"]
    assert set(found) == {DAV + name for name in ("resourcetype", "displayname", "getlastmodified")}
    assert found[DAV + "resourcetype"][2].find(DAV + "collection") is not None


def test_depth_1_gives_the_collection_and_then_its_members(client, chat):
    chat_href = "/active/claude/7/chat/"
    found = multistatus(propfind(client, chat_href, depth="1"))
    assert list(found) == [chat_href, *(chat_href + row.name for row in chat.members())]
    assert found[chat_href + "00000001-assistant"][DAV + "getcontentlength"][:2] == (200, "10")


def test_depth_1_of_a_file_is_the_file(client):
    assert list(multistatus(propfind(client, "/file.txt", depth="1"))) == ["/file.txt"]


def test_members_have_the_media_type_that_get_says(client):
    found = multistatus(propfind(client, "/", "<D:prop><D:getcontenttype/></D:prop>", depth="1"))
    assert found["/transcript"][DAV + "getcontenttype"][:2] == (200, "application/x-ndjson")
    assert found["/version"][DAV + "getcontenttype"][:2] == (200, "text/plain; charset=utf-8")
    assert found["/active/"][DAV + "getcontenttype"][0] == 404


def test_properties_that_are_not_there_come_in_a_404_propstat(client):
    inside = (
        "<D:prop><D:getetag/><D:quota-used-bytes/><D:creationdate/><D:supportedlock/><D:lockdiscovery/>"
        "<x:executable/><plain/></D:prop>"
    )
    found = multistatus(propfind(client, "/file.txt", inside))["/file.txt"]
    assert {name: status for name, (status, *_) in found.items()} == {
        DAV + "getetag": 200,
        DAV + "quota-used-bytes": 404,
        DAV + "creationdate": 404,
        DAV + "supportedlock": 404,
        DAV + "lockdiscovery": 404,
        "{urn:x}executable": 404,
        "plain": 404,
    }


def test_names_of_properties_that_need_escapes_come_back(client):
    inside = '<D:prop><a:b xmlns:a="urn:%s&amp;&quot;&lt;%d"/></D:prop>'
    found = multistatus(propfind(client, "/file.txt", inside))["/file.txt"]
    assert list(found) == ['{urn:%s&"<%d}b']


def test_propname_gives_names_without_values(client):
    found = multistatus(propfind(client, "/file.txt", "<D:propname/>"))["/file.txt"]
    assert set(found) == set(LIVE)
    assert all((status, text, len(element)) == (200, None, 0) for status, text, element in found.values())


def test_propname_of_a_collection_names_what_it_has(client):
    found = multistatus(propfind(client, "/active/", "<D:propname/>"))["/active/"]
    assert set(found) == {DAV + name for name in ("resourcetype", "displayname", "getlastmodified")}


def test_allprop_with_include_gives_both(client):
    found = multistatus(propfind(client, "/file.txt", "<D:allprop/><D:include><x:y/></D:include>"))[
        "/file.txt"
    ]
    assert set(found) == {*LIVE, "{urn:x}y"}


def test_an_empty_prop_still_has_its_propstat(client):
    assert multistatus(propfind(client, "/file.txt", "<D:prop/>")) == {"/file.txt": {}}


def test_every_odd_name_is_encoded_in_its_href_and_decoded_in_its_display_name(client, tree):
    found = multistatus(propfind(client, "/names/", depth="1"))
    names = [row.name for row in tree.walk("names").members()]
    shown = [values[DAV + "displayname"][1] for values in found.values()][1:]
    assert shown == [name.replace("\x1b", "\ufffd") for name in names]
    for href in list(found)[1:]:
        assert client.get(href).body == b"x"


def test_hrefs_keep_parentheses_raw(client):
    assert "/names/(2)" in multistatus(propfind(client, "/names/", depth="1"))


def test_a_collection_asked_without_its_slash_says_where_it_is(client):
    reply = propfind(client, "/active")
    assert reply["Content-Location"] == "/active/"
    assert list(multistatus(reply)) == ["/active/"]


@pytest.mark.parametrize("depth", ["infinity", "Infinity", None])
def test_an_endless_depth_is_refused_by_its_precondition(client, depth):
    reply = client.ask("PROPFIND", "/", **({"Depth": depth} if depth else {}))
    assert reply.status == 403
    error = fromstring(reply.body)
    assert (error.tag, [child.tag for child in error]) == (DAV + "error", [DAV + "propfind-finite-depth"])


@pytest.mark.parametrize("depth", ["2", "-1", "", "0,1", "1,noroot", "one"])
def test_another_depth_is_a_bad_request(client, depth):
    assert propfind(client, "/", depth=depth).status == 400


def test_a_listing_too_large_is_said_before_it_begins(client, tree):
    tree.add(MemoryChat("full", cap=0))
    tree.walk("full").say("user", b"x")
    assert propfind(client, "/full/", depth="1").status == 507
    assert propfind(client, "/full/", depth="0").status == 207


def test_a_listing_is_one_look_and_walks_to_no_member(client, tree):
    class Listed(MemoryDirectory):
        def walk(self, name):
            raise AssertionError("a member of a listing is not walked to")

    tree.add(Listed("listed", [MemoryFile("a.jsonl", b"x", 0, "application/x-ndjson"), MemoryFile("b")]))
    listed = multistatus(propfind(client, "/listed/", depth="1"))
    assert list(listed) == ["/listed/", "/listed/a.jsonl", "/listed/b"]
    types = [listed[href][DAV + "getcontenttype"][1] for href in ("/listed/a.jsonl", "/listed/b")]
    assert types == ["application/x-ndjson", "text/plain; charset=utf-8"]


def test_a_chunked_body_is_read(client):
    raw = body("<D:prop><D:getetag/></D:prop>")
    chunks = b"".join(
        b"%x;ext=1\r\n%s\r\n" % (len(raw[i : i + 7]), raw[i : i + 7]) for i in range(0, len(raw), 7)
    )
    reply = client.ask(
        "PROPFIND", "/file.txt", chunks + b"0\r\nTrailer: x\r\n\r\n", Depth="0", Transfer_Encoding="chunked"
    )
    assert list(multistatus(reply)["/file.txt"]) == [DAV + "getetag"]
    assert client.get("/version").body == b"0.1\n"


def test_a_large_listing_is_whole(client, tree):
    count = 3000
    tree.add(MemoryDirectory("many", [MemoryFile(f"{i:05d}") for i in range(count)]))
    found = multistatus(propfind(client, "/many/", "<D:prop><D:getcontentlength/></D:prop>", depth="1"))
    assert len(found) == count + 1
    assert client.get("/version").status == 200


def test_names_that_thousands_of_responses_would_repeat_have_a_limit(client):
    many = "".join(f"<x:p{number}/>" for number in range(1000))
    inside = f'<D:prop xmlns:x="{"n" * 3000}">{many}</D:prop>'
    assert propfind(client, "/file.txt", inside).status == 413
    few = "".join(f"<x:p{number}/>" for number in range(100))
    assert propfind(client, "/file.txt", f"<D:prop>{few}</D:prop>").status == 207


ASKED = [
    None,
    "<D:propname/>",
    "<D:prop><D:getetag/><D:getcontenttype/></D:prop>",
    '<D:prop><x:p xmlns:x="a%sb"/><D:displayname/></D:prop>',
    '<D:prop><x:p xmlns:x="a%(href)s%(b)s%%"/><D:displayname/></D:prop>',
    "<D:prop/>",
]


@pytest.mark.parametrize("inside", ASKED)
def test_messages_are_in_a_listing_what_they_are_alone(client, tree, inside):
    chat = MemoryChat()
    for number in range(300):
        chat.say("user" if number % 2 else "bash-result", b"x" * number, number * 10**9 * 10**6)
    tree.add(MemoryDirectory("50% %s \u6f22", [chat]))
    href = "/50%25%20%25s%20%E6%BC%A2/chat/"
    listed = [multistatus(propfind(client, href, inside, depth="1")) for _ in range(2)]
    assert len(listed[0]) == 301
    names = [row.name for row in chat.members()]
    for name in (names[0], names[255], names[299]):
        alone = multistatus(propfind(client, href + name, inside))[href + name]
        for answer in listed:
            found = answer[href + name]
            assert {key: value[:2] for key, value in found.items()} == {
                key: value[:2] for key, value in alone.items()
            }


@pytest.mark.parametrize("depth", [None, "infinity", "0", "1"])
def test_a_file_has_nothing_below_it_at_any_depth(client, depth):
    reply = client.ask("PROPFIND", "/file.txt", **({"Depth": depth} if depth else {}))
    assert reply.status == 207
    assert list(multistatus(reply)) == ["/file.txt"]


def test_doubled_slashes_of_a_script_are_one(client):
    reply = client.ask("PROPFIND", "//active//claude/", Depth="1")
    assert list(multistatus(reply)) == ["/active/claude/", "/active/claude/7/"]
    assert client.get("//file.txt").body == client.get("/file.txt").body
