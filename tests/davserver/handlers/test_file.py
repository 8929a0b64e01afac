"""Files over a real connection: the column "RFC 9110" of the measured exchanges, byte for byte."""

import pytest

from agents9core.errors import Denied, Gone, Malformed
from agents9core.memory import MemoryDirectory, MemoryFile
from agents9core.node import Reader, Stat
from davserver.handlers.file import CHUNK_BYTES

LATER, FUTURE = "Fri, 01 Jan 2024 00:00:00 GMT", "Sun, 01 Jan 2190 00:00:00 GMT"
OLD = "Sat, 01 Jan 2000 00:00:00 GMT"


@pytest.fixture
def now(client):
    head = client.ask("HEAD", "/file.txt")
    return {"tag": head["ETag"], "modified": head["Last-Modified"]}


@pytest.mark.parametrize(
    ("headers", "status", "length"),
    [
        ({}, 200, 2008),
        ({"If_None_Match": "{tag}"}, 304, 0),
        ({"If_None_Match": "W/{tag}"}, 304, 0),
        ({"If_None_Match": "*"}, 304, 0),
        ({"If_Modified_Since": "{modified}"}, 304, 0),
        ({"If_Modified_Since": LATER}, 304, 0),
        ({"If_Modified_Since": FUTURE}, 304, 0),
        ({"If_None_Match": "{tag}", "If_Modified_Since": "{modified}"}, 304, 0),
        ({"If_None_Match": "{tag}", "If_Modified_Since": FUTURE}, 304, 0),
        ({"If_None_Match": '"x"', "If_Modified_Since": FUTURE}, 200, 2008),
        ({"If_Match": '"x"'}, 412, None),
        ({"If_Unmodified_Since": OLD}, 412, None),
        ({"Range": "bytes=0-9"}, 206, 10),
        ({"Range": "bytes=-10"}, 206, 10),
        ({"Range": "bytes=-0"}, 416, None),
        ({"Range": "bytes=0-"}, 206, 2008),
        ({"Range": "bytes=9999-"}, 416, None),
        ({"Range": "bytes=0-9,100-109"}, 200, 2008),
        ({"Range": "lines=0-9"}, 200, 2008),
        ({"Range": "bytes=9-2"}, 200, 2008),
        ({"Range": "bytes=10-9999"}, 206, 1998),
        ({"Range": "bytes=0-9", "If_Range": '"stale"'}, 200, 2008),
        ({"Range": "bytes=0-9", "If_Range": "{tag}"}, 206, 10),
        ({"Range": "bytes=0-9", "If_Range": "{modified}"}, 206, 10),
        ({"Range": "bytes=0-9", "If_None_Match": "{tag}"}, 304, 0),
    ],
)
def test_conditions_and_ranges(client, now, headers, status, length):
    reply = client.get("/file.txt", **{name: value.format(**now) for name, value in headers.items()})
    assert reply.status == status
    assert length is None or len(reply.body) == length
    assert client.get("/version").body == b"0.1\n", "the connection goes on"


def test_a_range_is_these_bytes(client, tree):
    content = tree.walk("file.txt").content()
    reply = client.get("/file.txt", Range="bytes=100-199")
    assert reply.body == content[100:200]
    assert reply["Content-Range"] == "bytes 100-199/2008"
    assert reply["Content-Length"] == "100"
    assert client.get("/file.txt", Range="bytes=-10").body == content[-10:]


def test_an_unsatisfiable_range_says_how_long_the_file_is(client):
    assert client.get("/file.txt", Range="bytes=2008-")["Content-Range"] == "bytes */2008"


def test_head_ignores_a_range(client):
    head = client.ask("HEAD", "/file.txt", Range="bytes=0-9")
    assert (head.status, head["Content-Length"], head["Content-Range"]) == (200, "2008", None)


def test_not_modified_carries_its_validators_and_no_length(client, now):
    reply = client.get("/file.txt", If_None_Match=now["tag"])
    assert reply["ETag"] == now["tag"]
    assert reply["Last-Modified"] == now["modified"]
    assert reply["Cache-Control"] == "private, no-cache"
    assert reply["Date"] is not None
    assert reply["Content-Length"] is None
    assert reply["Transfer-Encoding"] is None


def test_head_is_get_without_its_body(client):
    get, head = client.get("/file.txt"), client.ask("HEAD", "/file.txt")
    assert dict(get.headers.items()) == dict(head.headers.items())
    assert head.body == b""


def test_the_tag_is_the_identity_of_the_node(client, tree):
    assert client.get("/version")["ETag"] == f'"{tree.walk("version").stat().etag}"'


def test_the_media_type_is_the_files_own(client):
    assert client.get("/transcript")["Content-Type"] == "application/x-ndjson"
    assert client.get("/version")["Content-Type"] == "text/plain; charset=utf-8"


def test_an_append_is_another_version(client, tree, now):
    tree.walk("file.txt").append(b"more\n")
    reply = client.get("/file.txt", If_None_Match=now["tag"])
    assert (reply.status, len(reply.body)) == (200, 2013)
    assert client.get("/file.txt", Range="bytes=0-9", If_Range=now["tag"]).status == 200


@pytest.mark.parametrize("mtime_ns", [-(10**18), 10**30, -(10**30)])
def test_a_time_out_of_range_is_no_crash(client, tree, mtime_ns):
    tree.add(MemoryFile("odd", b"x", mtime_ns))
    assert client.get("/odd").status == 200
    assert client.get("/", Accept="application/json").status == 200
    assert client.ask("PROPFIND", "/odd", Depth="0").status == 207


def test_an_empty_file_is_served(client, tree):
    tree.add(MemoryFile("empty"))
    reply = client.get("/empty")
    assert (reply.status, reply["Content-Length"], reply.body) == (200, "0", b"")


# -- files that change while they are answered


class Scripted(MemoryFile):
    """A file that says one length and whose reads are given: bytes, or what they raise."""

    def __init__(self, length, *reads):
        super().__init__("scripted")
        self.length, self.reads, self.opened, self.closed = length, list(reads), 0, 0

    def stat(self):
        return Stat(1, 1, False, self.length, 0)

    def open(self):
        self.opened += 1
        if self.reads and isinstance(self.reads[0], Denied):
            raise self.reads[0]
        return ScriptedReader(self)


class ScriptedReader(Reader):
    def __init__(self, file):
        self.file = file

    def read(self, offset, count):
        result = self.file.reads.pop(0) if self.file.reads else b""
        if isinstance(result, Exception):
            raise result
        return result[:count]

    def close(self):
        self.file.closed += 1


def scripted(tree, length, *reads):
    file = Scripted(length, *reads)
    tree.add(file)
    return file


def test_head_never_opens(client, tree):
    file = scripted(tree, 10, Denied("no"))
    assert client.ask("HEAD", "/scripted")["Content-Length"] == "10"
    assert file.opened == 0


def test_short_reads_are_put_together(client, tree):
    file = scripted(tree, 6, b"a", b"bc", b"def")
    assert client.get("/scripted").body == b"abcdef"
    assert file.closed == 1


def test_a_file_that_grew_is_served_at_the_size_it_had(client, tree):
    scripted(tree, 3, b"abcdef")
    assert client.get("/scripted").body == b"abc"
    assert client.get("/version").status == 200


@pytest.mark.parametrize(("trouble", "status"), [(Gone("x"), 404), (Malformed("x"), 503), (b"", 404)])
def test_trouble_before_the_first_byte_is_a_status(client, tree, trouble, status):
    file = scripted(tree, 10, b"abc", trouble)
    assert client.get("/scripted").status == status
    assert file.closed == 1
    assert client.get("/version").status == 200


def test_a_file_we_may_not_read_is_forbidden(client, tree):
    scripted(tree, 10, Denied("no"))
    assert client.get("/scripted").status == 403


@pytest.mark.parametrize("trouble", [Gone("x"), b""])
def test_trouble_in_the_middle_of_a_long_body_ends_the_connection(client, tree, trouble):
    file = scripted(tree, 3 * CHUNK_BYTES, b"x" * 1000, trouble)
    client.send(b"GET /scripted HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = b""
    while data := client.file.read1(1 << 20):
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b"x" * 1000
    assert file.closed == 1


def test_a_long_body_is_whole(client, tree):
    content = bytes(range(256)) * 20000
    tree.add(MemoryFile("long", content))
    assert client.get("/long").body == content
    assert client.get("/long", Range="bytes=1000000-4999999").body == content[1_000_000:5_000_000]


def test_the_reader_is_closed_when_the_client_leaves(another, client, tree):
    file = scripted(tree, 1 << 40, *[b"x" * CHUNK_BYTES] * 200)
    leaving = another()
    leaving.send(b"GET /scripted HTTP/1.1\r\nHost: localhost\r\n\r\n")
    leaving.sock.recv(10)
    leaving.close()
    for _ in range(100):
        if file.closed:
            break
        client.get("/version")
    assert file.closed == 1


# -- where there is no file


@pytest.mark.parametrize(
    "target", ["/file.txt/", "/nothing", "/file.txt/below", "/active/claude/7/chat/1-user", "/.page/"]
)
def test_what_is_not_there_is_404(client, target):
    assert client.get(target).status == 404
    assert client.ask("PROPFIND", target, Depth="0").status == 404
    assert client.ask("OPTIONS", target).status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize(
    ("target", "status"),
    [("/%2e%2e/etc/passwd", 404), ("/../etc/passwd", 404), ("/active/%00", 400), ("/%ff", 400)],
)
def test_bad_paths_are_refused_with_every_method(client, method, target, status):
    reply = client.ask(method, target, Depth="0")
    assert reply.status == status
    assert client.get("/version").status == 200


def test_a_directory_that_has_gone_is_404(client, tree):
    gone = MemoryDirectory("gone")
    tree.walk("active").add(gone)
    gone.remove()
    for accept in ("*/*", "application/json", "text/html"):
        assert client.get("/active/gone/", Accept=accept).status == 404
    assert client.ask("PROPFIND", "/active/gone/", Depth="1").status == 404
