"""Methods, headers on every answer, refusals, bugs."""

import logging

import pytest

from agents9core import errors
from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.http.response import STATUS

READ_METHODS = {"GET", "HEAD", "OPTIONS", "PROPFIND"}
OTHER_METHODS = [
    "PUT",
    "DELETE",
    "POST",
    "PATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "PROPPATCH",
    "TRACE",
]


@pytest.mark.parametrize("method", [*OTHER_METHODS, "REPORT", "BREW"])
@pytest.mark.parametrize("target", ["/file.txt", "/nothing", "/active/", "/%00"])
def test_writing_is_not_allowed_and_what_is_allowed_is_said(client, method, target):
    reply = client.ask(method, target, b"body")
    assert reply.status == 405
    assert set(reply["Allow"].split(", ")) == READ_METHODS
    assert client.get("/version").status == 200


def test_connect_is_not_allowed(client):
    client.send(b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.reply().status == 405


@pytest.mark.parametrize("target", ["/", "*", "/active", "/file.txt"])
def test_options_says_class_1_and_the_four_methods(client, target):
    reply = client.ask("OPTIONS", target)
    assert (reply.status, reply.body, reply["Content-Length"]) == (200, b"", "0")
    assert reply["DAV"] == "1"
    assert set(reply["Allow"].split(", ")) == READ_METHODS


ANSWERS = {
    "file": ("GET", "/version", {}),
    "range": ("GET", "/version", {"Range": "bytes=0-1"}),
    "not modified": ("GET", "/version", {"If_None_Match": "*"}),
    "listing": ("GET", "/", {}),
    "json": ("GET", "/", {"Accept": "application/json"}),
    "page": ("GET", "/", {"Accept": "text/html"}),
    "asset": ("GET", "/.page/page.js", {}),
    "multistatus": ("PROPFIND", "/", {"Depth": "1"}),
    "options": ("OPTIONS", "/", {}),
    "not there": ("GET", "/nothing", {}),
    "not allowed": ("PUT", "/version", {}),
    "misdirected": ("GET", "/version", {"Host": "evil.example"}),
    "another site": ("GET", "/version", {"Origin": "http://evil.example"}),
    "malformed": ("get", "/version", {}),
    "infinite": ("PROPFIND", "/", {}),
}


@pytest.mark.parametrize("asked", ANSWERS.values(), ids=ANSWERS)
def test_every_answer_is_private_and_never_sniffed(client, asked):
    method, target, headers = asked
    reply = client.ask(method, target, **headers)
    assert reply["X-Content-Type-Options"] == "nosniff"
    assert reply["Referrer-Policy"] == "no-referrer"
    assert reply["Cache-Control"] == "private, no-cache"
    assert reply["Date"] is not None
    assert reply["Server"] is None
    assert not any(name.lower().startswith("access-control") for name in reply.headers)
    assert b"Traceback" not in reply.body


def test_another_host_is_misdirected(client):
    assert client.get("/version", Host="evil.example").status == 421
    assert client.get("/version", Host="agents.example:80").status == 200
    assert client.get("http://evil.example/version").status == 421
    assert client.get("http://agents.example/version").body == b"0.1\n"


def test_a_preflight_of_another_site_is_refused(client):
    preflight = {"Origin": "http://evil.example", "Access_Control_Request_Method": "PROPFIND"}
    assert client.ask("OPTIONS", "/", **preflight).status == 403


def test_every_error_of_the_tree_has_a_status():
    family = [error for error in vars(errors).values() if isinstance(error, type)]
    assert {error.errno for error in family if issubclass(error, errors.TreeError)} <= set(STATUS)


def test_a_bug_is_logged_and_a_plain_500(client, tree, caplog):
    class Broken(MemoryFile):
        def stat(self):
            raise ZeroDivisionError("of the test")

    tree.walk("active").add(Broken("broken"))
    reply = client.get("/active/broken")
    assert (reply.status, reply.body) == (500, b"500 Internal Server Error\n")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "ZeroDivisionError" in caplog.text
    caplog.clear()
    assert client.get("/version").status == 200


def test_a_bug_in_the_middle_of_a_listing_ends_the_connection(client, tree, caplog):
    class Broken(MemoryDirectory):
        def members(self):
            return [*super().members()] * 300 + [None]

    tree.add(Broken("broken", [MemoryFile("x")]))
    client.send(b"GET /broken/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = b""
    while data := client.sock.recv(65536):
        received += data
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")
    assert "TypeError" in caplog.text
    caplog.clear()
