"""Which processes are pi, and which session each is in."""

import json
import os

import pytest

from agents9core.errors import NotFound
from agents9core.harness.pi import finder as pi_finder
from agents9core.routes.exclusive import Wish
from agents9core.routes.process import ProcessTable
from agents9core.tree.top import build_tree
from tests.support.fakeproc import started_ms
from tests.support.fakestore import aged, uuid7

START = 7000
BEGAN = started_ms(START) / 1000
BEFORE, AFTER = BEGAN - 3600, BEGAN + 60
A, B, C = (uuid7(int(BEGAN * 1000) + 500 + 60_000 * number, number + 1) for number in range(3))
OLD = uuid7(int(BEFORE * 1000), 9)
CWD = "/srv/demo"
TITLE = ["pi" + " " * 40]
"""What its command line is once it has written its name there."""
NODE = "/usr/bin/node"


@pytest.fixture(autouse=True)
def _every_look_is_fresh(every_look_is_fresh, monkeypatch):
    monkeypatch.setattr(pi_finder, "SHARED_SECONDS", -1)


@pytest.fixture
def agent(tmp_path):
    return tmp_path / "u" / ".pi" / "agent"


@pytest.fixture
def put(proc, tmp_path):
    def put(pid=701, *, argv=TITLE, start=START, cwd=CWD, comm="pi", exe=NODE, **environ):
        everything = {"HOME": str(tmp_path / "u"), **environ}
        return proc.put(pid, comm, argv, start=start, cwd=cwd, exe=exe, environ=everything)

    return put


@pytest.fixture
def write(agent):
    def write(id_, *entries, directory="sessions/--srv-demo--", cwd=CWD, mtime=AFTER, **header):
        path = agent / directory / f"2026-11-29T10-00-00-000Z_{id_}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = {"type": "session", "version": 3, "id": id_, "cwd": cwd, **header}
        hello = {"type": "message", "message": {"role": "user", "content": "hello"}}
        path.write_text("".join(json.dumps(each) + "\n" for each in (first, hello, *entries)))
        return aged(path, mtime)

    return write


@pytest.fixture
def resolve(resolver):
    def resolve(pid=701):
        session = resolver.session(resolver.agent("pi", pid))
        return session.via, session.id

    return resolve


def names(directory):
    return [row.name for row in directory.members()]


def text(node, path):
    for name in path.split("/"):
        node = node.walk(name)
    return node.open().read(0, 999).decode()


# Which processes


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("pi", TITLE, NODE),
        ("pi", ["pi"], NODE),
        ("pi", [NODE, "/usr/lib/node_modules/.bin/pi", "--model", "a/b"], NODE),
        ("pi", ["bun", "/n/pi"], "/opt/bin/bun"),
        ("pi", ["pi", "explain list"], "/opt/pi/pi"),
        ("pi-rpc", ["pi-rpc"], NODE),
        ("pi", TITLE, None),
        ("pi", TITLE, "/nix/store/x/bin/.node-wrapped"),
        ("pi", TITLE, "/usr/bin/node (deleted)"),
    ],
)
def test_an_agent_is_recognised(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert pi_finder.owns(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("node", [NODE, "/usr/bin/pi"], NODE),
        ("pip", ["pip"], NODE),
        ("pi", ["pi", "1000"], "/usr/bin/pi"),
        ("pi", ["pi"], "/usr/bin/python3"),
        ("pi", ["sh", "pi"], "/bin/dash"),
        ("pi", [NODE, "/usr/bin/pi", "update"], NODE),
        ("pi", ["/opt/pi/pi", "install", "npm:x"], "/opt/pi/pi"),
        ("pi", ["pi", "--version"], NODE),
    ],
)
def test_another_process_is_not(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert not pi_finder.owns(ProcessTable(str(proc.root)).read_own(5))


# dir


def test_the_session_of_its_directory_that_was_written_since_it_started(put, write, resolve):
    write(OLD, mtime=BEFORE)
    put()
    assert resolve() == ("none", None)
    write(A)
    assert resolve() == ("dir", A)


def test_a_new_session_is_followed_once_it_is_written_and_a_resumed_one_again(put, write, resolve):
    write(A)
    put()
    write(B, mtime=AFTER + 10)
    assert resolve() == ("dir", B)
    write(OLD, mtime=AFTER + 20)
    assert resolve() == ("dir", OLD)


def test_directories_of_one_name_are_told_by_the_header(put, write, resolve):
    write(A, cwd="/srv-demo")
    write(B, cwd=None, mtime=AFTER + 1)
    put()
    assert resolve() == ("none", None)


def test_of_two_in_one_directory_each_has_what_can_only_be_its(put, write, resolve):
    write(A, mtime=AFTER)
    put(701)
    put(702, start=START + 3000)
    assert (resolve(701), resolve(702)) == (("dir", A), ("none", None))


def test_two_that_cannot_be_told_apart_have_none(put, write, resolve):
    put(701)
    put(702, start=START + 10)
    write(B, mtime=AFTER + 60)
    assert (resolve(701), resolve(702)) == (("none", None), ("none", None))


def test_what_the_elder_began_anew_is_not_given_to_one_that_has_said_nothing(put, write, resolve):
    write(A)
    put(701)
    put(702, start=START + 3000)
    assert resolve(701) == ("dir", A)
    write(B, mtime=AFTER + 60)
    assert (resolve(701), resolve(702)) == (("none", None), ("none", None))


def test_each_has_what_was_born_when_it_started(put, write, resolve):
    write(A)
    write(B, mtime=AFTER + 60)
    put(701)
    put(702, start=START + 6000)
    assert (resolve(701), resolve(702)) == (("dir", A), ("dir", B))
    write(A, mtime=AFTER + 90)
    assert (resolve(701), resolve(702)) == (("dir", A), ("dir", B))


ONE, TWO, THREE = (1, 1), (2, 2), (3, 3)


@pytest.mark.parametrize(
    ("wishes", "given"),
    [
        ([], {}),
        ([Wish(ONE, 0, ())], {}),
        ([Wish(ONE, 0, (("b", 90_000), ("a", 500)))], {ONE: "b"}),
        ([Wish(ONE, 0, (("a", None),))], {ONE: "a"}),
        ([Wish(ONE, 0, (("a", None),)), Wish(TWO, 9, (("a", None),))], {}),
        ([Wish(ONE, 0, (("a", 500),)), Wish(TWO, 100, (("a", 500),))], {}),
        ([Wish(ONE, 0, (("a", 500),)), Wish(TWO, 60_000, (("a", 500),))], {ONE: "a"}),
        (
            [Wish(ONE, 0, (("b", 60_400), ("a", 0))), Wish(TWO, 60_000, (("b", 60_400), ("a", 0)))],
            {ONE: "a", TWO: "b"},
        ),
        ([Wish(ONE, 0, (("c", 99_000), ("a", 0))), Wish(TWO, 60_000, (("c", 99_000), ("a", 0)))], {}),
        ([Wish(ONE, 1000, (("a", 0),)), Wish(TWO, 60_000, (("a", 0),))], {ONE: "a"}),
        (
            [
                Wish(ONE, 0, (("o", -9_000_000),)),
                Wish(TWO, 60_000, (("o", -9_000_000),)),
                Wish(THREE, 0, (("x", 1),)),
            ],
            {THREE: "x"},
        ),
    ],
)
def test_files_are_shared_out(wishes, given):
    assert pi_finder.share_out(wishes) == given


def test_processes_of_other_directories_take_nothing_from_each_other(put, write, resolve):
    write(A)
    write(B, directory="sessions/--srv-other--", cwd="/srv/other")
    put(701)
    put(702, cwd="/srv/other")
    assert (resolve(701), resolve(702)) == (("dir", A), ("dir", B))


@pytest.mark.parametrize(
    ("variable", "place", "directory"),
    [
        ("PI_CODING_AGENT_DIR", "../mine", "../mine/sessions/--srv-demo--"),
        ("PI_CODING_AGENT_SESSION_DIR", "../mine", "../mine"),
        ("PI_CODING_AGENT_SESSION_DIR", "../mine", "../mine/--srv-demo--"),
    ],
)
def test_its_own_variables_say_where(put, write, agent, resolve, variable, place, directory):
    write(A, directory=directory)
    write(B, mtime=AFTER + 60)
    put(**{variable: str(agent / place)})
    assert resolve() == ("dir", A)


def test_without_a_known_cwd_no_directory_is_searched(proc, put, write, resolve):
    write(A)
    put()
    (proc.root / "701" / "cwd").unlink()
    assert resolve() == ("none", None)


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_what_is_no_plain_file_is_no_session(put, write, agent, resolve, kind, tmp_path):
    path = write(A)
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(write(B, directory="../elsewhere"))
    else:
        path.mkdir()
    put()
    assert resolve() == ("none", None)


def test_the_steps_say_what_was_seen(put, write, resolver):
    put()
    session = resolver.session(resolver.agent("pi", 701))
    assert session.steps == ("dir: nothing of /srv/demo was written since the start",)


# The tree


def test_its_chat_title_model_and_status(put, write, resolver):
    answer = {"role": "assistant", "content": "hi", "provider": "a", "model": "b", "stopReason": "stop"}
    write(
        A,
        {"type": "session_info", "name": "Pond"},
        {"type": "message", "message": answer},
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "x"}},
        title="no title of pi's",
    )
    put()
    top = build_tree(resolver)
    entry = "active/pi/701"
    assert names(top.walk("active").walk("pi").walk("701")) == [
        "via", "session", "cwd", "title", "status", "model", "started", "transcript", "chat", "chat.md"
    ]  # fmt: skip
    assert names(top.walk("active").walk("pi").walk("701").walk("chat")) == [
        "00000000-user", "00000001-assistant", "00000002-bash", "00000003-bash-result"
    ]  # fmt: skip
    said = {name: text(top, f"{entry}/{name}") for name in ("via", "title", "status", "model")}
    assert said == {"via": "dir\n", "title": "Pond\n", "status": "idle\n", "model": "a/b\n"}


def test_sessions_mirror_and_skills(put, write, agent, resolver):
    path = write(A, timestamp="2026-11-29T10:00:00.000Z")
    (agent / "auth.json").write_text("{}")
    skill = agent / "skills" / "tie"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("knots")
    put()
    top = build_tree(resolver)
    session = top.walk("sessions").walk("pi").walk(A)
    assert names(session) == ["cwd", "started", "transcript", "chat", "chat.md"]
    assert text(top, f"sessions/pi/{A}/chat/00000000-user") == "hello\n"
    assert text(top, f"pi/agent/sessions/--srv-demo--/{path.name}") == path.read_text()
    assert names(top.walk("pi").walk("agent")) == ["sessions"]
    assert text(top, "skills/pi/tie/SKILL.md") == "knots"
    with pytest.raises(NotFound):
        top.walk("pi").walk("agent").walk("auth.json")
