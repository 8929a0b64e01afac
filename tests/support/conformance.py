"""One suite that any tree must pass: nodes, 9P in three dialects and HTTP say the same of every file.

`check_tree(root)` walks the tree each way and compares names, kinds, lengths, times, identities and bytes.
`check_growing_tree(root)` does so while transcripts grow: what one front end has said, the next one says too.
"""

import io
import stat as posix
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import unquote
from wsgiref.util import setup_testing_defaults
from xml.etree import ElementTree

from agents9core.node import Directory, File
from davserver.app import App
from davserver.auth.guard import PEER_ADMITTED
from davserver.ninep.dialect import DIALECTS
from tests.davserver.ninep.conftest import Talk

_DAV = "{DAV:}"
_DMDIR = 0x80000000


class Seen(NamedTuple):
    """What one front end says of a node; a directory has neither length nor identity over HTTP."""

    is_dir: bool
    length: int
    seconds: int
    path: int
    data: bytes


def check_tree(root: Directory) -> int:
    """Compare what every front end says of every node; return how many nodes there are."""
    nodes = seen_by_nodes(root)
    for version in DIALECTS:
        assert_equal(seen_by_9p(root, version), nodes, version)
    over_http = seen_by_http(root)
    assert_equal(over_http, {name: without_path(seen) for name, seen in nodes.items()}, "HTTP")
    return len(nodes)


def check_growing_tree(root: Directory) -> tuple[int, int]:
    """Look by each front end in turn; return how many nodes the first look and the last one saw.

    A message stays what it was, chats only grow at their ends, and so does every other file.
    """
    looks = [("nodes", seen_by_nodes(root))]
    for front_end in (*DIALECTS, "HTTP", "nodes again"):
        seen = (
            seen_by_http(root)
            if front_end == "HTTP"
            else seen_by_nodes(root)
            if front_end == "nodes again"
            else None
        )
        looks.append((front_end, seen_by_9p(root, front_end) if seen is None else seen))
        assert_grown(looks[-1][1], looks[-2][1], f"{front_end} after {looks[-2][0]}")
    return len(looks[0][1]), len(looks[-1][1])


def assert_grown(later: dict[str, Seen], earlier: dict[str, Seen], doors: str) -> None:
    """Fail with the first node of which the later look contradicts the earlier one."""
    for name, was in earlier.items():
        assert name in later, f"{doors}: {name} is gone"
        now = later[name]
        if "/chat/" in name:
            assert now == was, f"{doors}: {name}"
            assert now.length == len(now.data), f"{doors}: {name}"
        else:
            assert (now.is_dir, now.path == was.path or now.is_dir) == (was.is_dir, True), f"{doors}: {name}"
            assert now.data.startswith(was.data), f"{doors}: {name}"
            assert now.length <= len(now.data), f"{doors}: {name}"
    for chat in {name.rpartition("/")[0] for name in earlier if "/chat/" in name}:
        before, after = members_of(chat, earlier), members_of(chat, later)
        assert after[: len(before)] == before, f"{doors}: {chat}"


def members_of(directory: str, seen: dict[str, Seen]) -> list[str]:
    """Return the names below *directory* in the order in which they were listed."""
    return [name for name in seen if name.rpartition("/")[0] == directory]


def assert_equal(found: dict[str, Seen], expected: dict[str, Seen], front_end: str) -> None:
    """Fail with the first node that differs."""
    assert sorted(found) == sorted(expected), front_end
    for name, seen in expected.items():
        assert found[name] == seen, f"{front_end}: {name}"


def without_path(seen: Seen) -> Seen:
    return seen._replace(path=0) if seen.is_dir else seen


def seen_by_nodes(root: Directory, name: str = "") -> dict[str, Seen]:
    """Walk the nodes."""
    found = {}
    for row in root.members():
        path = f"{name}/{row.name}"
        node = root.walk(row.name)
        data = read_all(node) if isinstance(node, File) else b""
        seconds = row.stat.mtime_ns // 1_000_000_000
        found[path] = Seen(row.stat.is_dir, row.stat.length, seconds, row.stat.path, data)
        if isinstance(node, Directory):
            found |= seen_by_nodes(node, path)
    return found


def read_all(file: File) -> bytes:
    """Read a file to its end, in reads of an odd size."""
    reader = file.open()
    data = bytearray()
    while piece := reader.read(len(data), 7919 * 8):
        data += piece
    reader.close()
    return bytes(data)


def seen_by_9p(root: Directory, version: str) -> dict[str, Seen]:
    """Walk over 9P."""
    talk = Talk(root, version, msize=8192)
    return dict(_seen_below(talk, ()))


def _seen_below(talk: Talk, names: tuple[str, ...]):
    talk.reach(1, *names)
    members = talk.list_all(1, 4000)
    talk.clunk(1)
    for name in members:
        path = (*names, name)
        talk.walk(0, 1, *path)
        seen = _seen_9p(talk)
        yield "/" + "/".join(path), seen
        if seen.is_dir:
            yield from _seen_below(talk, path)


def _seen_9p(talk: Talk) -> Seen:
    """Look at fid 1, read it if it is a file, and clunk it."""
    looked = talk.stat(1)
    if talk.linux:
        is_dir, length, seconds = posix.S_ISDIR(looked.mode), looked.size, looked.mtime_sec
    else:
        is_dir, length, seconds = bool(looked.mode & _DMDIR), looked.length, looked.mtime
    data = bytearray()
    if not is_dir:
        talk.open(1)
        while piece := talk.read(1, len(data), 7919 * 8):
            data += piece
    talk.clunk(1)
    return Seen(is_dir, length, seconds, int.from_bytes(looked.qid[5:], "little"), bytes(data))


def seen_by_http(root: Directory) -> dict[str, Seen]:
    """Walk over WebDAV."""
    return dict(_seen_by_propfind(App(root), "/"))


def _seen_by_propfind(app: App, href: str):
    listing = ElementTree.fromstring(ask(app, "PROPFIND", href, HTTP_DEPTH="1"))
    for response in listing.findall(f"{_DAV}response")[1:]:
        member = response.findtext(f"{_DAV}href")
        is_dir = response.find(f".//{_DAV}collection") is not None
        length = int(response.findtext(f".//{_DAV}getcontentlength") or 0)
        modified = parsedate_to_datetime(response.findtext(f".//{_DAV}getlastmodified"))
        tag = (response.findtext(f".//{_DAV}getetag") or "0").strip('"').split("-")[0]
        data = b"" if is_dir else ask(app, "GET", member)
        seen = Seen(is_dir, length, int(modified.timestamp()), int(tag, 16), data)
        yield unquote(member).rstrip("/"), seen
        if is_dir:
            yield from _seen_by_propfind(app, member)


def ask(app: App, method: str, href: str, **headers: str) -> bytes:
    """Ask the application as its server does, and return the body. Anything but success fails."""
    path = unquote(href, "latin-1")
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "REQUEST_URI": href, "HTTP_HOST": "127.0.0.1"}
    environ |= {PEER_ADMITTED: True, "QUERY_STRING": "", "wsgi.input": io.BytesIO(), **headers}
    setup_testing_defaults(environ)
    said: list[str] = []
    body = b"".join(app(environ, lambda status, _headers: said.append(status)))
    assert said[0][:3] in ("200", "207"), f"{method} {href}: {said[0]}"
    return body
