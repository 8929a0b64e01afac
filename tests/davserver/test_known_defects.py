"""What other servers got wrong, as their public reports tell it: none of it may happen here.

The first part has the reports of many projects, the second what WsgiDAV 4.4.0 does otherwise. Reports about
writing, locks and clients' own settings have no place in a tree that is only read.
"""

import email.utils
import re
import socket
import time
from xml.etree.ElementTree import fromstring

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile

DAV = "{DAV:}"


def properties(client, target, inside="<allprop/>", depth="0"):
    body = f'<propfind xmlns="DAV:">{inside}</propfind>'.encode()
    reply = client.ask("PROPFIND", target, body, Depth=depth)
    assert reply.status == 207
    return fromstring(reply.body)


def hrefs(root):
    return [element.text for element in root.iter(DAV + "href")]


# -- public reports


def test_the_tag_is_the_same_in_property_and_header(client):
    """mar10/wsgidav#222, haiwen/seafdav#82, emersion/go-webdav#165"""
    found = properties(client, "/file.txt").find(f".//{DAV}getetag").text
    assert found == client.ask("HEAD", "/file.txt")["ETag"]
    assert re.fullmatch(r'"[^"]+"', found)


def test_a_range_past_the_end_is_not_the_whole_file(client):
    """mar10/wsgidav#281"""
    reply = client.get("/file.txt", Range="bytes=9999-")
    assert (reply.status, reply["Content-Range"]) == (416, "bytes */2008")


def test_a_range_that_is_offered_is_kept(client):
    """mar10/wsgidav#26"""
    assert client.ask("HEAD", "/file.txt")["Accept-Ranges"] == "bytes"
    assert client.get("/file.txt", Range="bytes=10-").body == client.get("/file.txt").body[10:]


def test_if_range_with_the_date_we_gave_resumes(client):
    """mar10/wsgidav#155: the modification time has a fraction"""
    modified = client.ask("HEAD", "/file.txt")["Last-Modified"]
    assert client.get("/file.txt", Range="bytes=0-9", If_Range=modified).status == 206


@pytest.mark.parametrize("target", ["/active", "/active/"])
def test_links_of_a_listing_do_not_depend_on_the_slash(client, target):
    """mar10/wsgidav#350"""
    assert b'"href":"/active/claude/"' in client.get(target, Accept="application/json").body


def test_a_question_mark_in_a_name_begins_no_query(client):
    """mar10/wsgidav#139"""
    assert client.get("/names/t%20%23:%3F3.txt?query").body == b"x"


def test_a_comma_in_a_name_is_a_comma(client):
    """mar10/wsgidav#23"""
    assert client.get("/names/a,b;c").body == b"x"


def test_locks_are_neither_offered_nor_answered(client):
    """mar10/wsgidav#270"""
    assert client.ask("OPTIONS", "/")["DAV"] == "1"
    assert client.ask("LOCK", "/file.txt").status == 405


def test_idle_connections_hold_up_nobody(another, client):
    """cherrypy/cheroot#91, #199"""
    idle = [another() for _ in range(40)]
    assert client.get("/version").status == 200
    assert idle[-1].get("/version").status == 200


def test_a_body_has_one_length(client):
    """cherrypy/cheroot#275"""
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde")
    assert client.reply().status == 400


def test_a_length_beyond_all_numbers_is_no_crash(client):
    """cherrypy/cheroot#106"""
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n")
    assert client.reply().status == 400


def test_quota_is_not_there_instead_of_zero(client):
    """meganz/MEGAcmd#244, marcpope/borgbackupserver#415"""
    root = properties(client, "/", "<prop><quota-used-bytes/><quota-available-bytes/></prop>")
    assert [status.text for status in root.iter(DAV + "status")] == ["HTTP/1.1 404 Not Found"]


def test_propfind_is_answered_in_xml_whatever_the_client_accepts(client):
    """meganz/MEGAcmd#529"""
    reply = client.ask("PROPFIND", "/", Depth="0", Accept="text/html")
    assert reply["Content-Type"] == "application/xml; charset=utf-8"


def test_a_listing_of_megabytes_arrives_whole(client, tree):
    """meganz/MEGAcmd#762, ramondeklein/nwebdav#70"""
    tree.add(MemoryDirectory("many", [MemoryFile(f"{number:08d}-" + "n" * 400) for number in range(5000)]))
    reply = client.ask("PROPFIND", "/many/", Depth="1")
    assert len(reply.body) > 3_000_000
    assert len(hrefs(fromstring(reply.body))) == 5001


def test_display_names_are_decoded_and_hrefs_encoded(client):
    """sigoden/dufs#23, OpenMarshal/npm-WebDAV-Server#66, arut/nginx-dav-ext-module#14"""
    root = properties(client, "/names/", depth="1")
    shown = [element.text for element in root.iter(DAV + "displayname")]
    assert {"a b", "t #:?3.txt", "a%2Fb", "a&b<c>"} <= set(shown)
    assert {"/names/a%20b", "/names/t%20%23%3A%3F3.txt", "/names/a%252Fb", "/names/a%26b%3Cc%3E"} <= set(
        hrefs(root)
    )


@pytest.mark.parametrize("target", ["/names/(2)", "/names/%282%29"])
def test_parentheses_are_the_same_encoded_or_not(client, target):
    """sabre-io/dav#56"""
    assert hrefs(properties(client, target)) == ["/names/(2)"]


def test_not_modified_says_what_it_is_about(client):
    """sabre-io/dav#176"""
    reply = client.get("/file.txt", If_None_Match="*")
    assert reply.status == 304
    assert all(reply[name] for name in ("ETag", "Last-Modified", "Cache-Control", "Date"))


def test_the_date_we_gave_is_not_modified_since(client):
    """dcm4che/dcm4chee-arc-light#3466, hacdias/webdav#303"""
    modified = client.ask("HEAD", "/file.txt")["Last-Modified"]
    assert client.get("/file.txt", If_Modified_Since=modified).status == 304


def test_dates_are_gmt_in_property_and_header(client):
    """sigoden/dufs#366, owncloud/android#2999, infinidysk/infinidysk#556"""
    expected = email.utils.formatdate(1_700_000_000, usegmt=True)
    assert properties(client, "/file.txt").find(f".//{DAV}getlastmodified").text == expected
    assert client.ask("HEAD", "/file.txt")["Last-Modified"] == expected


def test_no_depth_never_walks_everything(client):
    """OpenMarshal/npm-WebDAV-Server#84"""
    reply = client.ask("PROPFIND", "/")
    assert reply.status == 403
    assert b"propfind-finite-depth" in reply.body


def test_a_response_has_propstats_or_a_status_never_both_or_none(client):
    """sabre-io/dav#1488"""
    for inside in ("<allprop/>", "<propname/>", "<prop/>", "<prop><none/></prop>"):
        for response in properties(client, "/", inside, depth="1"):
            tags = [child.tag for child in response]
            assert tags[0] == DAV + "href"
            assert set(tags[1:]) == {DAV + "propstat"}


def test_a_collection_is_one_without_its_slash_too(client):
    """mickael-kerjean/filestash#697, #578"""
    assert hrefs(properties(client, "/active", depth="1")) == ["/active/", "/active/claude/"]


def test_a_body_is_as_long_as_it_said(client):
    """volcengine/OpenViking#4407"""
    reply = client.get("/file.txt")
    assert len(reply.body) == int(reply["Content-Length"])


def test_head_says_the_length_without_reading(client, tree):
    """Papyszoo/Modelibr#506"""

    class Unreadable(MemoryFile):
        def open(self):
            raise AssertionError

    tree.add(Unreadable("unreadable", b"12345"))
    assert client.ask("HEAD", "/unreadable")["Content-Length"] == "5"


def test_what_is_not_known_is_left_out_instead_of_none(client):
    """MnogoByte/djangodav#21"""
    assert b"None" not in client.ask("PROPFIND", "/", Depth="1").body
    assert client.get("/version", If_None_Match="", Range="", If_Modified_Since="").status == 200


def test_every_parent_answers_a_mount_that_probes_upwards(client):
    """cryptomator/webdav-nio-adapter#11"""
    for target in ("/", "/active", "/active/claude", "/active/claude/7", "/active/claude/7/chat"):
        assert properties(client, target).find(f".//{DAV}collection") is not None


def test_a_listing_looks_at_the_list_and_not_at_each_member(client, tree):
    """Kozea/Radicale#2194, nextcloud/server#25233, owncloud/core#5084"""

    class Counted(MemoryDirectory):
        walks = 0

        def walk(self, name):
            self.walks += 1
            return super().walk(name)

    tree.add(counted := Counted("counted", [MemoryFile(str(number)) for number in range(100)]))
    properties(client, "/counted/", "<prop><getetag/><getcontentlength/><getlastmodified/></prop>", depth="1")
    assert counted.walks == 0


# -- WsgiDAV 4.4.0


def test_if_none_match_makes_if_modified_since_meaningless(client):
    tag = client.ask("HEAD", "/file.txt")["ETag"]
    later = email.utils.formatdate(1_700_000_500, usegmt=True)
    assert client.get("/file.txt", If_None_Match=tag, If_Modified_Since=later).status == 304


@pytest.mark.parametrize("value", ["lines=0-9", "bytes=9-2", "bytes=0-9,100-109"])
def test_a_range_not_understood_is_the_whole_file(client, value):
    reply = client.get("/file.txt", Range=value)
    assert (reply.status, len(reply.body)) == (200, 2008)


def test_the_last_zero_bytes_are_no_range(client):
    assert client.get("/file.txt", Range="bytes=-0").status == 416


def test_head_with_a_range_is_200(client):
    assert client.ask("HEAD", "/file.txt", Range="bytes=0-9").status == 200


def test_propname_is_answered_with_names(client):
    assert properties(client, "/file.txt", "<propname/>").find(f".//{DAV}getetag") is not None


def test_include_counts(client):
    root = properties(client, "/file.txt", "<allprop/><include><supportedlock/></include>")
    assert root.find(f".//{DAV}supportedlock") is not None


def test_a_path_upwards_is_answered_with_its_whole_body(client):
    reply = client.get("/%2e%2e/etc/passwd")
    assert reply.status == 404
    assert len(reply.body) == int(reply["Content-Length"])


def test_a_nul_in_a_path_is_no_crash(client):
    assert client.get("/active/%00").status == 400


def test_options_names_what_can_be_done_also_for_star(client):
    for target in ("/", "*"):
        reply = client.ask("OPTIONS", target)
        assert reply["Allow"] == "GET, HEAD, OPTIONS, PROPFIND"
        assert reply["DAV"] == "1"


def test_options_of_nothing_is_404(client):
    assert client.ask("OPTIONS", "/missing/x").status == 404


def test_405_says_what_is_allowed(client):
    assert client.ask("DELETE", "/file.txt")["Allow"] == "GET, HEAD, OPTIONS, PROPFIND"


def test_a_file_with_a_slash_is_not_there(client):
    assert client.get("/file.txt/").status == 404


def test_a_get_with_a_body_is_served(client):
    assert client.ask("GET", "/version", b"body").body == b"0.1\n"


def test_names_of_the_top_have_their_case(client):
    assert client.get("/ACTIVE/").status == 404


def test_the_first_byte_of_a_long_listing_comes_before_its_end_is_made(client, tree):
    class Slow(MemoryDirectory):
        def members(self):
            return SlowRows([MemoryFile(f"{number:05d}") for number in range(2000)])

    class SlowRows(list):
        def __getitem__(self, part):
            time.sleep(0.05)
            return [(file.name, file.stat()) for file in super().__getitem__(part)]

    tree.add(Slow("slow"))
    started = time.monotonic()
    body = b'<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>'
    client.send(
        b"PROPFIND /slow/ HTTP/1.1\r\nHost: localhost\r\nDepth: 1\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    client.sock.recv(1, socket.MSG_PEEK)
    first = time.monotonic() - started
    assert len(hrefs(fromstring(client.reply().body))) == 2001
    assert first < (time.monotonic() - started) / 2
