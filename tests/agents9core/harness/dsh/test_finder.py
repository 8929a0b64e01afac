"""Which processes are dsh, and which sessions each has open."""

import json
import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agents9core.errors import Unreadable
from agents9core.harness.dsh import process as dsh_process
from agents9core.harness.dsh.finder import parse_header, place_at
from agents9core.resolver import Resolver
from agents9core.routes.process import OpenDescriptor, ProcessTable
from agents9core.tree.top import build_tree
from tests.support.fakeproc import BTIME
from tests.support.fakestore import DshHome, aged

A, B, C = (f"session-0199aaaa-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
WEB = ["node", "/usr/local/bin/dsh", "web"]


pytestmark = pytest.mark.usefixtures("every_look_is_fresh")


@pytest.fixture
def home(tmp_path):
    return DshHome(tmp_path / "u" / ".dsh")


@pytest.fixture
def put(proc, home):
    def put(pid=801, argv=WEB, fds=(), **more):
        more.setdefault("environ", {"HOME": str(home.path.parent)})
        return proc.put(
            pid, "node", argv, cwd="/srv/demo", fds=dict(enumerate(fds, 20)) | {0: "/dev/null"}, **more
        )

    return put


@pytest.fixture
def resolve(resolver):
    def resolve(pid=801):
        return resolver.session(resolver.agent("dsh", pid))

    return resolve


def said(session):
    return session.via, session.id


def files(session):
    return [os.path.join(source.root.path, *source.path) for source in session.sources]


# Which processes


@pytest.mark.parametrize(
    ("comm", "argv"),
    [
        ("node", WEB),
        ("MainThread", ["/usr/bin/node", "--no-warnings", "/opt/dsh/bin/dsh", "--profile", "tui"]),
        ("node", ["node", "/n/node_modules/@deepseek-ai/dsh/lib/bin.js", "web"]),
        ("node", ["node", "-r", "x.js", "/usr/bin/dsh", "--profile", "headless", "--json", "say --help"]),
        ("dsh", ["/usr/bin/node", "/usr/bin/dsh"]),
        (".dsh-wrapped", ["/usr/bin/node", "/nix/store/a/bin/.dsh-wrapped"]),
    ],
)
def test_an_agent_is_recognised(proc, comm, argv):
    proc.put(5, comm, argv)
    assert dsh_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv"),
    [
        ("node", ["node", "server.js", "/usr/bin/dsh"]),
        ("node", ["node", "/usr/bin/dsh-watch"]),
        ("node", ["node", "/usr/bin/dsh", "--version"]),
        ("node", ["node"]),
        ("node", []),
        ("dsh", ["dsh", "-c", "uptime"]),
        ("bash", ["bash", "/usr/bin/dsh"]),
        ("vim", ["vim", "/n/@deepseek-ai/dsh/lib/bin.js"]),
    ],
)
def test_another_process_is_not(proc, comm, argv):
    proc.put(5, comm, argv)
    assert not dsh_process.matches(ProcessTable(str(proc.root)).read_own(5))


# fd


def test_the_session_whose_lock_it_holds(put, home, resolver, resolve):
    place = home.session(A, "session.v4.jsonl")
    put(fds=[home.lock(place)])
    session = resolve()
    assert (said(session), session.cwd) == (("fd", A), "/srv/demo")
    assert (files(session), session.threads) == ([str(place / "session.v4.jsonl")], ())
    entry = build_tree(resolver).walk("active").walk("dsh").walk("801")
    assert "transcript" in [row.name for row in entry.members()]


def test_a_compressed_transcript_is_served_inflated(put, home, resolver, resolve):
    place = home.session(A, "session.v4.jsonl.zstd")
    put(fds=[home.lock(place)])
    session = resolve()
    assert (said(session), session.cwd) == (("fd", A), "/srv/demo")
    assert files(session) == [str(place / "session.v4.jsonl.zstd")]
    entry = build_tree(resolver).walk("active").walk("dsh").walk("801")
    names = [row.name for row in entry.members()]
    assert names == ["via", "session", "cwd", "started", "transcript", "chat", "chat.md"]


@pytest.mark.parametrize(("name", "version"), [("session.v5.jsonl.zstd", 4), ("session.v4.jsonl", 7)])
def test_a_format_that_is_not_known_is_said_in_words(put, home, resolver, resolve, name, version):
    place = home.session(A, name, version=version)
    put(fds=[home.lock(place)])
    words = f"format {max(5, version)} of dsh's transcripts is not known here; 4 is the last that is"
    assert resolve().steps[-1] == f"transcript: {place}/{name}: {words}"
    entry = build_tree(resolver).walk("active").walk("dsh").walk("801")
    assert "transcript" in [row.name for row in entry.members()]
    assert "chat.md" not in [row.name for row in entry.members()]
    with pytest.raises(Unreadable, match=words):
        entry.walk("chat").members()


def test_trap_7_the_highest_format_counts_not_the_newest_file(put, home, resolve):
    place = home.session(A, "session.jsonl", "session.v3.jsonl", "session.v10.jsonl", "session.v9.jsonl")
    aged(place / "session.v10.jsonl", BTIME)
    put(fds=[home.lock(place)])
    assert files(resolve()) == [str(place / "session.v10.jsonl")]


def test_of_one_format_the_file_written_last_counts(put, home, resolve):
    place = home.session(A, "session.v4.jsonl", "session.v4.jsonl.zstd")
    aged(place / "session.v4.jsonl.zstd", BTIME)
    put(fds=[home.lock(place)])
    assert files(resolve()) == [str(place / "session.v4.jsonl")]


def test_trap_8_a_lock_that_nobody_holds_is_nothing(proc, put, home, resolve):
    home.lock(home.session(A, "session.v4.jsonl"))
    put()
    assert said(resolve()) == ("none", None)


def test_a_lock_that_is_let_go_is_nothing(proc, put, home, resolve):
    put(fds=[home.lock(home.session(A, "session.v4.jsonl"))])
    assert said(resolve()) == ("fd", A)
    proc.close(801, 20)
    assert said(resolve()) == ("none", None)


def test_a_lock_that_was_removed_is_nothing(put, home, resolve):
    put(fds=[f"{home.lock(home.session(A, 'session.v4.jsonl'))} (deleted)"])
    assert said(resolve()) == ("none", None)


def test_trap_9_of_several_the_newest_and_all_are_threads(proc, put, home, resolver, resolve):
    places = [home.session(id_, "session.v4.jsonl") for id_ in (A, B, C)]
    for number, place in enumerate(places):
        aged(place / "session.v4.jsonl", BTIME + (3 * number) % 4)
    put(fds=[home.lock(place) for place in places])
    session = resolve()
    assert said(session) == ("fd", B)
    assert [(said(thread), files(thread)) for thread in session.threads] == [
        (("fd", id_), [str(place / "session.v4.jsonl")]) for id_, place in zip((A, B, C), places, strict=True)
    ]
    aged(places[0] / "session.v4.jsonl", BTIME + 99)
    assert said(resolve()) == ("fd", A)
    proc.close(801, 21)
    assert said(resolve()) == ("fd", A)
    threads = build_tree(resolver).walk("active").walk("dsh").walk("801").walk("threads")
    assert [row.name for row in threads.members()] == [A, C]


def test_a_session_that_is_opened_is_the_one_when_it_is_written(proc, put, home, resolve):
    first = home.session(A, "session.v4.jsonl")
    aged(first / "session.v4.jsonl", BTIME + 50)
    put(fds=[home.lock(first)])
    assert said(resolve()) == ("fd", A)
    later = home.session(B, "session.v4.jsonl")
    aged(later / "session.v4.jsonl", BTIME)
    proc.open(801, 40, home.lock(later))
    assert said(resolve()) == ("fd", A)
    aged(later / "session.v4.jsonl", BTIME + 60)
    assert said(resolve()) == ("fd", B)


def test_a_subagents_session_is_not_its_own(put, home, resolve):
    own = home.session(A, "session.v4.jsonl.zstd")
    child = home.session(B, "session.v4.jsonl.zstd", origin="subagent", parentSession=A, delegationDepth=1)
    aged(own / "session.v4.jsonl.zstd", BTIME)
    put(fds=[home.lock(own), home.lock(child)])
    session = resolve()
    assert (said(session), session.threads) == (("fd", A), ())
    assert "a subagent's" in "\n".join(session.steps)


def test_a_session_without_a_transcript_yet(put, home, resolver, resolve):
    put(fds=[home.lock(home.session(A))])
    session = resolve()
    assert (said(session), session.sources) == (("fd", A), ())


def test_a_lock_of_this_moment_may_be_a_subagents(put, home, resolve):
    put(fds=[home.lock(home.session(A), age_seconds=-60)])
    assert said(resolve()) == ("none", None)


def test_before_there_were_locks_the_transcript_is_open_for_a_moment(put, home, resolve):
    place = home.session(A, "session.jsonl.zstd")
    put(fds=[place / "session.jsonl.zstd"])
    assert said(resolve()) == ("fd", A)


def test_a_transcript_that_is_only_read_is_not_the_session(proc, put, home, resolve):
    put()
    proc.open(801, 30, home.session(A, "session.jsonl") / "session.jsonl", os.O_RDONLY)
    assert said(resolve()) == ("none", None)


def test_the_lock_goes_before_an_older_transcript_that_is_open(proc, put, home, resolve):
    place = home.session(A, "session.jsonl", "session.v4.jsonl")
    put(fds=[home.lock(place), place / "session.jsonl"])
    assert files(resolve()) == [str(place / "session.v4.jsonl")]


def test_a_path_that_leads_to_another_file_than_is_open_is_not_believed(put, home, resolve, monkeypatch):
    put(fds=[home.lock(home.session(A, "session.v4.jsonl"))])
    monkeypatch.setattr(OpenDescriptor, "identity", lambda _: (1, 2))
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(
    ("directory", "header", "id_"),
    [
        ("dsh-1", {}, "dsh-1"),
        ("a~0020b", {"id": "a b"}, "a~0020b"),
        ("a~002Eb", {"id": ""}, "a.b"),
        ("x", {"id": 7}, "x"),
        ("x", {"id": "../../etc"}, "x"),
        ("x~002F..", {"id": None}, "x~002F.."),
        ("-", {"id": []}, None),
    ],
)
def test_the_id_is_the_headers_else_the_directorys(put, home, resolve, directory, header, id_):
    put(fds=[home.lock(home.session(directory, "session.v4.jsonl", **header))])
    assert said(resolve()) == ("fd", id_)


@pytest.mark.parametrize("value", ["", "   "])
def test_a_blank_home_is_none(put, home, proc, resolver, value):
    put(environ={"HOME": str(home.path.parent), "DSH_HOME": value})
    assert resolver.examine(801).home == str(home.path)


def test_its_own_variable_says_where(put, proc, resolve, tmp_path):
    moved = DshHome(tmp_path / "moved")
    proc.put(801, "node", WEB, environ={"DSH_HOME": str(moved.path)})
    lock = moved.lock(moved.session(A, "session.v4.jsonl"))
    proc.flock(801, lock)
    assert said(resolve()) == ("lock", A)


# lock


def test_where_its_files_are_refused_the_kernels_locks_say(proc, put, home, resolver):
    mine = home.lock(home.session(A, "session.v4.jsonl.zstd"))
    home.lock(home.session(B, "session.v4.jsonl.zstd"))
    put(fds=[mine])
    proc.flock(801, mine, device="00:2a")
    proc.refuse(801)
    resolver = Resolver(str(proc.root), {"dsh": str(home.path)})
    session = resolver.session(resolver.agent("dsh", 801))
    assert (said(session), session.cwd) == (("lock", A), "/srv/demo")


def test_locks_that_it_waits_for_or_shares_are_not_held(proc, put, home):
    lock = home.lock(home.session(A, "session.v4.jsonl"))
    put(fds=[lock])
    proc.flock(801, lock, kind="READ")
    proc.flock(802, lock)
    proc.refuse(801)
    resolver = Resolver(str(proc.root), {"dsh": str(home.path)})
    session = resolver.session(resolver.agent("dsh", 801))
    assert (said(session), session.steps) == (("none", None), ("fd: refused", "lock: holds 0"))


# What is hostile


@pytest.mark.parametrize("kind", ["fifo", "directory", "symlink"])
@pytest.mark.parametrize("name", ["session.v4.jsonl.zstd", "session.v4.jsonl", "session.lock"])
def test_a_file_of_another_kind_harms_nothing(put, home, resolve, tmp_path, kind, name):
    place = home.session(A, "session.jsonl")
    path = place / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        (tmp_path / "secret").write_text("{}")
        path.symlink_to(tmp_path / "secret")
    put(fds=[path if name == "session.lock" else home.lock(place)])
    session = resolve()
    if name == "session.lock":
        assert said(session) == ("none", None)
    else:
        assert files(session) == [str(place / "session.jsonl")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a frame",
        zstandard.compress(b"{" * 100_000),
        zstandard.compress(b'{"type":"session","id":"x"}')[:-5],
        zstandard.compress(b"[]\n"),
        zstandard.compress(b"\0" * (1 << 26)),
    ],
)
def test_a_transcript_that_cannot_be_read_is_a_session_all_the_same(put, home, resolve, data):
    place = home.session(A)
    (place / "session.v4.jsonl.zstd").write_bytes(data)
    put(fds=[home.lock(place)])
    assert said(resolve()) == ("fd", A)


def test_a_header_in_a_frame_of_its_own_needs_no_newline(put, home, resolve):
    place = home.session(A)
    frames = [zstandard.compress(json.dumps({"type": "session", "id": "own", "cwd": "/x"}).encode()), b"torn"]
    (place / "session.v4.jsonl.zstd").write_bytes(b"".join(frames))
    put(fds=[home.lock(place)])
    assert (said(resolve()), resolve().cwd) == (("fd", "own"), "/x")


@pytest.mark.parametrize(
    "path",
    [
        "/u/.dsh/sessions/p/s/other.jsonl",
        "/u/.dsh/sessions/s/session.lock",
        "/u/.dsh/sessions/p/s/t/session.lock",
        "sessions/p/s/session.lock",
        "/session.lock",
        "session.lock",
        "",
        "socket:[1]",
        "/x/session.lock (deleted)",
        "/u/sessions/p/s/session.v4.jsonl.zst",
    ],
)
def test_another_path_is_no_session(path):
    assert place_at(path) is None


@pytest.mark.parametrize("above", ["..", "."])
def test_a_path_that_climbs_is_not_followed(put, home, resolve, above):
    home.lock(home.session(A, "session.v4.jsonl"))
    put(fds=[f"{home.sessions}/{above}/{A}/session.lock", f"{home.sessions}//{A}/session.lock"])
    assert said(resolve()) == ("none", None)


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data):
    header = parse_header(data)
    assert header is None or header.id is None or "/" not in header.id


def test_the_steps_say_what_each_route_saw(put, resolve):
    put()
    assert resolve().steps == ("fd: no session", "lock: not asked")
