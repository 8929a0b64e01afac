"""The provider in WsgiDAV's own hands, and the application under another server than ours."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing, contextmanager
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote
from wsgiref.simple_server import WSGIRequestHandler, make_server
from xml.etree import ElementTree

import pytest
from wsgidav.wsgidav_app import WsgiDAVApp

from agents9core.memory import MemoryDirectory, MemoryFile
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from davserver.app import App
from davserver.http.environ import PEER_ADMITTED
from davserver.provider import TreeProvider
from tests.davserver.conftest import MTIME_NS, TEXT
from tests.e2e.machine import Machine
from tests.support.conformance import Seen, check_tree, seen_by_http, seen_by_nodes

TOP = Path(__file__).parent.parent.parent
_DAV = "{DAV:}"
STOCK = {
    "host": "127.0.0.1",
    "http_authenticator": {"accept_basic": True},
    "simple_dc": {"user_mapping": {"*": True}},
    "logging": {"enable": False},
    "verbose": 1,
}


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def under_wsgiref(app):
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ask(port, method, path, **headers):
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers={"Host": "localhost", **headers})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()


def seen_by_wsgidav(port, share=""):
    """Walk a WsgiDAV server by PROPFIND and GET; return what it says of each node, by its name."""
    seen, waiting = {}, [(f"{share}/", "")]
    while waiting:
        href, name = waiting.pop()
        status, _, body = ask(port, "PROPFIND", href, Depth="1")
        assert status == 207, (href, body)
        for response in list(ElementTree.fromstring(body))[1:]:
            child = response.findtext(f"{_DAV}href")
            properties = response.find(f"{_DAV}propstat/{_DAV}prop")
            is_dir = properties.find(f"{_DAV}resourcetype/{_DAV}collection") is not None
            modified = int(parsedate_to_datetime(properties.findtext(f"{_DAV}getlastmodified")).timestamp())
            path = f"{name}/{properties.findtext(f'{_DAV}displayname')}"
            if is_dir:
                seen[path] = Seen(True, 0, modified, 0, b"")
                waiting.append((child, path))
                continue
            status, headers, data = ask(port, "GET", child)
            assert status == 200, child
            etag = properties.findtext(f"{_DAV}getetag").strip('"')
            assert headers["ETag"] == f'"{etag}"'
            assert int(headers["Content-Length"]) == int(properties.findtext(f"{_DAV}getcontentlength"))
            assert headers["Content-Type"] == properties.findtext(f"{_DAV}getcontenttype")
            seen[path] = Seen(False, len(data), modified, int(etag.partition("-")[0], 16), data)
    return seen


def small_tree():
    names = ("a b", "t #:?3.txt", "a&b<c>", "(2)", "ä€😀", "a,b;c")
    odd = MemoryDirectory("odd", [MemoryFile(name, name.encode(), MTIME_NS) for name in names])
    return MemoryDirectory("", [MemoryFile("file.txt", TEXT, MTIME_NS), odd, MemoryDirectory("empty")])


def shown(nodes):
    """Return what both say of nodes: a directory has no identity over WebDAV."""
    return {
        name if name.startswith("/") else f"/{name}": seen._replace(path=0) if seen.is_dir else seen
        for name, seen in nodes.items()
        if name.strip("/")
    }


@pytest.fixture
def stock(caplog):
    """A stock WsgiDAV application with our provider and no handlers of ours."""
    caplog.set_level(logging.CRITICAL, logger="wsgidav")  # which warns of its own configuration

    def serve(root):
        return WsgiDAVApp({**STOCK, "provider_mapping": {"/": TreeProvider(root)}})

    return serve


def test_wsgidavs_own_handlers_say_what_the_nodes_and_our_handlers_say(stock):
    root = small_tree()
    with under_wsgiref(stock(root)) as port:
        over_wsgidav = seen_by_wsgidav(port)
    assert over_wsgidav == shown(seen_by_nodes(root))
    assert shown(seen_by_http(root)) == over_wsgidav


def test_ranges_and_conditions_are_wsgidavs_over_our_resources(stock):
    with under_wsgiref(stock(small_tree())) as port:
        status, headers, data = ask(port, "GET", "/file.txt", Range="bytes=100-199")
        assert (status, data) == (206, TEXT[100:200])
        assert ask(port, "GET", "/file.txt", **{"If-None-Match": headers["ETag"]})[0] == 304
        assert ask(port, "GET", "/missing")[0] == 404
        assert ask(port, "PUT", "/file.txt")[0] == 405


class Gone(MemoryFile):
    """A member that vanishes after the listing has named it."""

    is_asked = False

    def stat(self):
        if self.is_asked:
            self.remove()
        self.is_asked = True
        return super().stat()


def test_a_member_that_vanishes_is_left_out(stock):
    root = MemoryDirectory("", [Gone("goes", b"x"), MemoryFile("stays", b"x")])
    with under_wsgiref(stock(root)) as port:
        status, _, body = ask(port, "PROPFIND", "/", Depth="1")
    assert status == 207
    assert b"stays" in body
    assert b"goes" not in body


def test_the_stock_command_serves_the_agents_as_a_share(tmp_path):
    machine = Machine(tmp_path)
    machine.says("assistant", [{"type": "text", "text": "naïve \u6f22"}], 2)
    config = {
        **STOCK,
        "port": 0,
        "provider_mapping": {
            "/agents": {
                "class": "davserver.embedding.AgentsProvider",
                "kwargs": {"proc": str(machine.proc)},
            }
        },
    }
    (tmp_path / "wsgidav.json").write_text(json.dumps(config))
    with stock_command(tmp_path / "wsgidav.json") as port:
        over_wsgidav = seen_by_wsgidav(port, "/agents")
    ours = shown(seen_by_nodes(build_tree(Resolver(str(machine.proc)))))
    assert names_and_bytes(over_wsgidav) == names_and_bytes(ours)
    assert "/active/claude/601/chat/00000001-assistant" in over_wsgidav
    check_tree(build_tree(Resolver(str(machine.proc))))


def names_and_bytes(seen):
    """Return what two servers agree on: path numbers are each run's own, and so are the roots' times."""
    return {name: (node.is_dir, node.length, node.data) for name, node in seen.items()}


@contextmanager
def stock_command(config):
    """Run the `wsgidav` command; it says its port only of one that it was given."""
    with make_server("127.0.0.1", 0, lambda *_: []) as taken:
        port = taken.server_port
    command = [
        sys.executable,
        "-m",
        "wsgidav.server.server_cli",
        "--config",
        str(config),
        "--port",
        str(port),
    ]
    environ = {**os.environ, "PYTHONPATH": str(TOP)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()


def wait_for(port, process):
    for _ in range(400):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
        except urllib.error.HTTPError:
            return None
        except OSError:
            assert process.poll() is None, process.stdout.read()
            threading.Event().wait(0.05)
    raise AssertionError("wsgidav does not answer")


def admitted(app):
    """Say of every client that it may read, as the server in front of an application has to."""
    return lambda environ, start_response: app({**environ, PEER_ADMITTED: True}, start_response)


def test_the_application_is_plain_wsgi(tree):
    with under_wsgiref(admitted(App(tree))) as port:
        assert ask(port, "GET", "/file.txt")[2] == TEXT
        assert ask(port, "GET", quote("/names/t #:?3.txt"))[2] == b"x"
        status, _, body = ask(port, "PROPFIND", "/active/", Depth="1")
        assert (status, len(ElementTree.fromstring(body))) == (207, 2)
        _, _, body = ask(port, "GET", "/active/claude/7/chat/", Accept="application/json")
        assert [message["id"] for message in json.loads(body)] == [0, 1, 2, 3, 4]
        assert ask(port, "PUT", "/file.txt")[0] == 405


def test_a_wait_holds_its_thread_under_another_server(tree, chat):
    with under_wsgiref(admitted(App(tree))) as port:
        later = threading.Timer(0.3, chat.say, ("user", b"more"))
        later.start()
        _, _, body = ask(port, "GET", "/active/claude/7/chat/?after=4&wait=20")
        later.join()
    assert body == b"00000005-user\n"


def test_who_is_admitted_has_to_be_said_under_another_server(tree):
    with under_wsgiref(App(tree)) as port:
        assert ask(port, "GET", "/file.txt")[0] == 403


def test_only_the_application_and_the_provider_import_wsgidav_and_only_the_server_cheroot():
    users = {"wsgidav": set(), "cheroot": set()}
    for path in sorted((TOP / "davserver").rglob("*.py")) + sorted((TOP / "agents9core").rglob("*.py")):
        for package in re.findall(r"^\s*(?:from|import) (wsgidav|cheroot)\b", path.read_text(), re.MULTILINE):
            users[package].add(path.relative_to(TOP).as_posix())
    assert users["wsgidav"] == {"davserver/app.py", "davserver/provider.py"}
    assert {path.rpartition("/")[0] for path in users["cheroot"]} == {"davserver/server"}
