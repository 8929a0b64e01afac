"""What litmus asks of a server, as far as one that is only read can be asked: its checks, written anew.

litmus itself begins each of its suites by making a collection, and ends there on a read-only tree.
"""

from xml.etree import ElementTree

import pytest

DAV = "{DAV:}"
HEAD = b'<?xml version="1.0" encoding="utf-8"?>'
EVERY_KIND = ("/", "/file.txt", "/active/claude/7/chat/")


def propfind(client, target, body, depth="0", **headers):
    return client.ask("PROPFIND", target, HEAD + body if body else body, Depth=depth, **headers)


@pytest.mark.parametrize("target", EVERY_KIND)
def test_options(client, target):
    """basic/options: the class is announced, and what is allowed."""
    reply = client.ask("OPTIONS", target)
    assert (reply.status, reply["DAV"]) == (200, "1")
    assert {"GET", "HEAD", "OPTIONS", "PROPFIND"} == {name.strip() for name in reply["Allow"].split(",")}


@pytest.mark.parametrize("target", EVERY_KIND)
def test_propfind_d0(client, target):
    """props/propfind_d0: one response, its href the one that was asked for, whether a collection or not."""
    reply = propfind(client, target, b'<propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>')
    assert reply.status == 207
    assert reply["Content-Type"].startswith(("application/xml", "text/xml"))
    [response] = ElementTree.fromstring(reply.body)
    assert response.findtext(f"{DAV}href") == target
    [propstat] = response.findall(f"{DAV}propstat")
    assert propstat.findtext(f"{DAV}status") == "HTTP/1.1 200 OK"
    kind = propstat.find(f"{DAV}prop/{DAV}resourcetype")
    assert [child.tag for child in kind] == ([f"{DAV}collection"] if target.endswith("/") else [])


def test_propfind_invalid(client):
    """props/propfind_invalid: a body that is not well-formed."""
    assert propfind(client, "/", b"<foo>").status == 400
    assert propfind(client, "/", b'<propfind xmlns="DAV:"><allprop></propfind>').status == 400


def test_propfind_invalid2(client):
    """props/propfind_invalid2: a prefix that is bound to no namespace."""
    body = b'<D:propfind xmlns:D="DAV:"><D:prop><bar:foo xmlns:bar=""/></D:prop></D:propfind>'
    assert propfind(client, "/", body).status == 400


def test_after_what_is_invalid_the_connection_goes_on(client):
    test_propfind_invalid(client)
    test_propfind_invalid2(client)
    assert client.get("/version").body == b"0.1\n"


def test_expect100(client):
    """http/expect100: the interim answer comes before the body, and the final one after it."""
    body = HEAD + b'<propfind xmlns="DAV:"><propname/></propfind>'
    client.send(
        b"PROPFIND / HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\nExpect: 100-continue\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    assert [client.file.readline(), client.file.readline()] == [b"HTTP/1.1 100 Continue\r\n", b"\r\n"]
    client.send(body)
    assert client.reply("PROPFIND").status == 207


def test_delete_null(client):
    """basic/delete_null: nothing is deleted, there or not there."""
    assert client.ask("DELETE", "/404me").status in (404, 405)
    assert client.ask("DELETE", "/file.txt").status == 405
    assert client.get("/file.txt").status == 200


@pytest.mark.parametrize("target", ["/res-%e2%82%ac", "/names/%C3%A4%E2%82%AC%F0%9F%98%80"])
def test_utf8_segment(client, target):
    """basic/put_get_utf8_segment, the part that reads."""
    assert client.get(target).status == (200 if target.startswith("/names") else 404)


def test_propfind_with_a_namespace_of_ones_own(client):
    """props/propmanyns and propget: names of other namespaces come back as they were asked, as not found."""
    names = "".join(f'<n{number}:p xmlns:n{number}="urn:{number}"/>' for number in range(50)).encode()
    reply = propfind(client, "/file.txt", b'<propfind xmlns="DAV:"><prop>' + names + b"</prop></propfind>")
    [response] = ElementTree.fromstring(reply.body)
    [missing] = response.findall(f"{DAV}propstat")
    assert missing.findtext(f"{DAV}status") == "HTTP/1.1 404 Not Found"
    assert {prop.tag for prop in missing.find(f"{DAV}prop")} == {f"{{urn:{number}}}p" for number in range(50)}
