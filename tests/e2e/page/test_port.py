"""What another user who has an address of the server's port, or had it before, gets by the owner's browser.

Needs root, to be both users; the browser is the owner's, as is the server.
"""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.e2e.fuse import open_directory, within
from tests.e2e.page.conftest import CHROMIUM, OPTIONS, WAIT_MS
from tests.e2e.test_other_user import AS_USER, MESSAGE, OTHER, OWNER, TwoUsers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run a server and clients as other users"),
]

AS_OWNER = f"""\
#!/bin/sh
exec setpriv --reuid={OWNER} --regid={OWNER} --clear-groups {CHROMIUM} "$@"
"""
LISTENER = f"""
import encodings.ascii, encodings.idna, encodings.latin_1, email.feedparser, socket, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
{AS_USER.format(OTHER)}
host, port, cached, page, worker = sys.argv[1:]

class Server(HTTPServer):
    address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        is_worker = self.path.endswith("js")
        body = (worker if is_worker else page).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_worker else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", cached)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass

server = Server((host, int(port)), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
THEIRS = """<!doctype html><title>theirs</title><script>
window.steal = async (path) => {
  const reply = await fetch(path, {cache: "no-store"});
  return [reply.status, await reply.text()];
};
</script>"""
MISDIRECTED = "This server does not go by that name (see --allow-host)\n"
TRY_TO_LISTEN = """
sock = socket.socket(socket.AF_INET6 if ":" in {host!r} else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.{option}, 1)
try:
    sock.bind(({host!r}, {port}))
    sock.listen()
    print("listens")
except PermissionError as exc:
    print(exc)
except OSError as exc:
    print("in use" if exc.errno == 98 else exc)
"""
FOR_A_YEAR = "public, max-age=31536000, immutable"
REGISTER = """
navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready).then(() => 1)
"""
COUNT = "navigator.serviceWorker.getRegistrations().then((all) => all.length)"
WORKER = f"""
self.isTheirs = 1;
const page = {THEIRS!r};
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {{
  if (event.request.mode === "navigate")
    event.respondWith(new Response(page, {{headers: {{"Content-Type": "text/html"}}}}));
}});
"""


class Listener:
    """A program of the other user that listens there, and answers everything with a page of his."""

    def __init__(self, host: str, port: int = 0, cached: str = "no-store") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LISTENER, host, str(port), cached, THEIRS, WORKER],
            stdout=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def serving(users, port):
    """Run the owner's server."""
    with users.start(http=f"127.0.0.1:{port}") as process:
        try:
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture
def users():
    with open_directory() as base:
        yield TwoUsers(base)


@pytest.fixture
def page(users, chromium):
    """A window of the owner's browser."""
    profile = users.base / "profile"
    profile.mkdir()
    os.chown(profile, OWNER, OWNER)
    program = users.base / "chromium"
    program.write_text(AS_OWNER)
    program.chmod(0o755)
    context = chromium.launch_persistent_context(
        profile,
        executable_path=program,
        args=OPTIONS,
        env={"HOME": str(profile), "PATH": os.environ["PATH"]},
    )
    context.set_default_timeout(WAIT_MS)
    yield context.pages[0]
    context.close()


def steal(page, path=MESSAGE):
    """Return the status and the text that the other user's script gets."""
    assert page.title() == "theirs"
    return page.evaluate("(path) => steal(path)", path)


def test_who_holds_the_other_loopback_reads_nothing_through_the_owners_browser(users, page):
    with Listener("::1") as listener, serving(users, listener.port):
        page.goto(f"http://localhost:{listener.port}/")
        listener.end()  # so that his script's requests come to the server
        for path in (MESSAGE, "/", "/active/claude/", "/.page/index.html", "/nothing"):
            assert steal(page, path) == [421, MISDIRECTED]
        page.goto(f"http://127.0.0.1:{listener.port}{MESSAGE}")
        assert page.inner_text("body").strip() == "one"


@pytest.mark.parametrize("host", ["::1", "::", "127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("option", ["SO_REUSEADDR", "SO_REUSEPORT"])
def test_no_other_user_can_listen_where_localhost_leads(users, host, option):
    with serving(users, 0):
        port = int(users.url.rpartition(":")[2])
        tries = TRY_TO_LISTEN.format(host=host, port=port, option=option)
        done = subprocess.run(
            [sys.executable, "-c", "import socket\n" + AS_USER.format(OTHER) + tries],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.stdout == "in use\n"
        for name in ("localhost", "127.0.0.1", "[::1]"):
            assert users.run(OWNER, "curl", "-s", f"http://{name}:{port}{MESSAGE}") == (0, "one\n")


def test_a_service_worker_of_another_user_is_gone_after_the_next_page(users, page):
    with Listener("127.0.0.1") as listener:
        url = f"http://127.0.0.1:{listener.port}"
        page.goto(url)
        page.evaluate(REGISTER)
    with serving(users, listener.port):
        page.goto(url)
        assert page.title() == "theirs"  # which comes from the worker
        within(WAIT_MS / 1000, lambda: page.evaluate(COUNT) == 0)
        for path in ("/", "/active/claude/", MESSAGE):
            page.goto(url + path)
            assert page.title() != "theirs"
            assert page.evaluate(COUNT) == 0
        assert page.inner_text("body").strip() == "one"


@pytest.mark.parametrize("path", ["/", "/active/claude/"])
def test_a_page_of_another_user_in_the_browsers_cache_is_gone_after_the_next_page(users, page, path):
    with Listener("127.0.0.1", cached=FOR_A_YEAR) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        page.goto(url + path)
    page.goto("about:blank")
    with serving(users, listener.port):
        page.goto(url + path)
        assert page.title() == "theirs"  # which comes from the cache
        page.goto(url + "/claude/")
        page.goto(url + path)
        assert page.title() != "theirs"


def test_the_page_runs_no_script_that_another_user_left_in_the_browsers_cache(users, page):
    script = "/.page/page.js"
    with Listener("127.0.0.1", cached=FOR_A_YEAR) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        page.goto(url + "/elsewhere")
        page.evaluate(f"fetch('{script}').then((reply) => reply.text())")
    with serving(users, listener.port):
        page.goto(url)
        page.locator("#main a").first.wait_for()
        assert page.evaluate("self.isTheirs") is None
        assert page.evaluate(f"fetch('{script}').then((reply) => reply.text())") != WORKER
