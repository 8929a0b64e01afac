"""Which processes are hermes, and what is known of the session of each."""

import json
import os

import pytest

from agents9core.harness.hermes import process as hermes_process
from agents9core.resolver import Resolver
from agents9core.routes.process import ProcessTable
from agents9core.tree.top import build_tree
from tests.support.fakeproc import started_ms
from tests.support.fakestore import HermesHome, hermes_registry

START = 8000
BEGAN = started_ms(START) / 1000
A, B = "20261129_155504_8bc98b", "20261129_160000_0a0b0c"
PYTHON, SCRIPT = "/opt/hermes/bin/python3", "/opt/hermes/bin/hermes"
CHAT = [PYTHON, SCRIPT, "chat", "--yolo"]


pytestmark = pytest.mark.usefixtures("every_look_is_fresh")


@pytest.fixture
def home(tmp_path):
    (tmp_path / "u" / ".hermes").mkdir(parents=True)
    return tmp_path / "u" / ".hermes"


@pytest.fixture
def put(proc, home):
    def put(pid=901, argv=CHAT, fds=(), **environ):
        return proc.put(
            pid,
            "hermes",
            argv,
            start=START,
            cwd="/srv/demo",
            environ={"HOME": str(home.parent), **environ},
            fds={0: "/dev/pts/1"} | dict(enumerate(fds, 5)),
        )

    return put


@pytest.fixture
def resolve(resolver):
    def resolve(pid=901):
        return resolver.session(resolver.agent("hermes", pid))

    return resolve


def said(session):
    return session.via, session.id


def entry(id_=A, pid=901, **more):
    return {"pid": pid, "session_id": id_, "process_start_time": BEGAN + 0.004, "surface": "cli", **more}


# Which processes


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("hermes", CHAT, "/usr/bin/python3.11"),
        ("hermes", [PYTHON, SCRIPT], None),
        ("hermes", ["hermes"], "/usr/bin/python3.11"),
        ("hermes", ["hermes"], "/usr/bin/python3.11 (deleted)"),
        ("hermes", ["hermes"], None),
        ("hermes", [PYTHON, "-m", "hermes_cli.main", "chat"], None),
        ("python3", [PYTHON, "-u", SCRIPT, "gateway", "run"], None),
        ("python3.11", ["python3.11", SCRIPT, "dashboard"], None),
        ("hermes-acp", [PYTHON, "/opt/hermes/bin/hermes-acp"], None),
        ("hermes-agent", [PYTHON, "/opt/hermes/bin/hermes-agent"], None),
        ("hermes", [PYTHON, SCRIPT, "chat", "-q", "update"], None),
        (
            ".hermes-wrapped",
            [PYTHON, "/nix/store/a/bin/.hermes-wrapped", "chat"],
            "/nix/store/b/bin/python3.12",
        ),
        ("python3.12", ["python3.12", "/nix/store/a/bin/.hermes-wrapped"], None),
    ],
)
def test_an_agent_is_recognised(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert hermes_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("hermes", ["/n/hermes-engine/hermes", "x.js"], "/n/hermes-engine/hermes"),
        ("hermes", [PYTHON, SCRIPT, "update"], None),
        ("hermes", [PYTHON, SCRIPT, "--version"], None),
        ("python3", [PYTHON, "train.py", SCRIPT], None),
        ("python3", [PYTHON], None),
        ("hermes", [], None),
        ("node", ["node", "/opt/hermes/ui-tui/hermes"], None),
        ("bash", ["bash", SCRIPT], None),
        ("hermes", ["bash", "-c", "hermes"], None),
    ],
)
def test_another_process_is_not(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert not hermes_process.matches(ProcessTable(str(proc.root)).read_own(5))


# registry


def test_the_registry_has_the_pid(put, home, resolver, resolve):
    path = hermes_registry(home, entry(B, pid=7), entry(A))
    put(fds=[home / "state.db", home / "state.db-wal"])
    session = resolve()
    assert (said(session), session.sources, session.threads) == (("registry", A), (), ())
    assert session.record_mtime_ns == path.stat().st_mtime_ns
    found = build_tree(resolver).walk("active").walk("hermes").walk("901")
    assert [row.name for row in found.members()] == ["via", "session", "cwd", "started", "chat"]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"process_start_time": BEGAN - 60}, None),
        ({"process_start_time": BEGAN + 1.5}, A),
        ({"process_start_time": START}, A),
        ({"process_start_time": None, "started_at": BEGAN + 1}, A),
        ({"process_start_time": None, "started_at": BEGAN - 60}, None),
        ({"process_start_time": None}, None),
        ({"process_start_time": True}, None),
        ({"process_start_time": 10**400}, None),
        ({"process_start_time": None, "started_at": 10**400}, None),
        ({"process_start_time": "soon"}, None),
        ({"process_start_time": [BEGAN]}, None),
        ({"pid": "901"}, None),
        ({"pid": None}, None),
        ({"session_id": ""}, None),
        ({"session_id": 7}, None),
        ({"session_id": "../../etc"}, None),
        ({"session_id": "x" * 65_000}, None),
        ({"session_id": "agent:main:cli"}, "agent:main:cli"),
    ],
)
def test_an_entry_counts_for_the_process_that_wrote_it(put, home, resolve, fields, answer):
    hermes_registry(home, entry(id_=A) | fields)
    put()
    assert said(resolve()) == ("registry" if answer else "none", answer)


def test_of_several_in_one_gateway_the_one_used_last_and_all_are_threads(put, home, resolve):
    hermes_registry(
        home, entry(A, updated_at=BEGAN + 5), entry(B, updated_at=BEGAN + 9), entry("20261129_1", pid=7)
    )
    put(argv=[PYTHON, SCRIPT, "gateway", "run"])
    session = resolve()
    assert said(session) == ("registry", B)
    assert [said(thread) for thread in session.threads] == [("registry", B), ("registry", A)]


def test_the_registry_goes_before_the_command_line(put, home, resolve):
    hermes_registry(home, entry(B))
    put(argv=[*CHAT, "--resume", A])
    assert said(resolve()) == ("registry", B)


def test_trap_11_the_home_is_that_of_the_database_it_holds(put, home, resolve):
    profile = home / "profiles" / "work"
    hermes_registry(profile, entry(A))
    hermes_registry(home, entry(B))
    put(fds=[profile / "state.db"], HERMES_HOME=str(home))
    assert said(resolve()) == ("registry", A)


def test_its_own_variable_says_where(put, home, resolve, tmp_path):
    hermes_registry(tmp_path / "moved", entry(A))
    hermes_registry(home, entry(B))
    put(HERMES_HOME=str(tmp_path / "moved"))
    assert said(resolve()) == ("registry", A)


# argv


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        ([*CHAT, "--resume", A], A),
        ([PYTHON, SCRIPT, "-r", A], A),
        ([*CHAT, f"--resume={A}"], A),
        ([*CHAT, "--resume", "cron_7_20261129_155504"], "cron_7_20261129_155504"),
        ([*CHAT, "--resume", "my refactoring"], None),
        ([*CHAT, "--resume", "refactoring"], None),
        ([*CHAT, "--resume", f"../{A}"], None),
        ([*CHAT, "--resume"], None),
        ([*CHAT, "--resume", ""], None),
        ([*CHAT, "--continue", A], None),
        (CHAT, None),
        (["hermes"], None),
    ],
)
def test_the_command_line_may_name_it(put, resolve, argv, answer):
    put(argv=argv)
    assert said(resolve()) == ("argv" if answer else "none", answer)


def test_trap_10_two_in_one_directory_on_one_database_are_not_guessed(put, home, resolve):
    for pid in (901, 902):
        put(pid, fds=[home / "state.db", home / "state.db-wal", home / "state.db-shm"])
    assert [said(resolve(pid)) for pid in (901, 902)] == [("none", None)] * 2


# What has ended, and what a child and a subagent show


@pytest.fixture
def database(home):
    """A database with two sessions of the process, and a table of subagents."""
    made = HermesHome(home)
    made.clock = BEGAN + 10
    for id_ in (A, B):
        made.session(id_)
        made.row(id_, "user", "hello")
    made.db.execute(
        "create table async_delegations (delegation_id text primary key, parent_session_id text,"
        " dispatched_at real not null, owner_pid integer, owner_started_at integer)"
    )
    return made


@pytest.fixture
def leave(database):
    """Let a session have been left, so many seconds after the process began: `/new` and `/resume` end it."""

    def leave(id_, seconds=60, reason="new_session"):
        database.db.execute(
            "update sessions set ended_at = ?, end_reason = ? where id = ?", (BEGAN + seconds, reason, id_)
        )

    return leave


@pytest.mark.parametrize("reason", ["new_session", "resumed_other", "branched"])
@pytest.mark.parametrize("via", ["registry", "argv"])
def test_a_session_that_was_left_is_not_shown_on(put, home, resolve, leave, database, via, reason):
    if via == "registry":
        hermes_registry(home, entry(A))
    put(argv=[*CHAT, "--resume", A] if via == "argv" else CHAT)
    assert said(resolve()) == (via, A)
    leave(A, reason=reason)
    assert said(resolve()) == ("none", None)
    assert f"session {A} was left" in "\n".join(resolve().steps)
    database.db.execute("update sessions set ended_at = null, end_reason = null where id = ?", (A,))
    assert said(resolve()) == (via, A)


def test_a_session_that_ended_before_the_process_began_is_resumed(put, resolve, leave):
    put(argv=[*CHAT, "--resume", A])
    leave(A, seconds=-60, reason="cli_close")
    assert said(resolve()) == ("argv", A)


def test_of_several_in_a_gateway_those_that_were_left_are_none(put, home, resolve, leave):
    hermes_registry(home, entry(A), entry(B, updated_at=BEGAN + 1))
    put()
    assert len(resolve().threads) == 2
    leave(A)
    assert (said(resolve()), resolve().threads) == (("registry", B), ())


@pytest.fixture
def child(proc):
    def child(pid, session, start=START + 100, parent=901):
        environ = {"HERMES_SESSION_ID": session} if session else {}
        directory = proc.put(pid, "bash", ["bash", "-c", "x"], start=start, environ=environ)
        stat = (directory / "stat").read_text().replace(" S 0 ", f" S {parent} ", 1)
        (directory / "stat").write_text(stat)

    return child


def test_a_child_shows_its_session(put, resolve, child, database, leave, proc):
    put()
    child(950, B, parent=902)
    assert said(resolve()) == ("none", None)
    child(951, A)
    assert said(resolve()) == ("environ", A)
    child(952, B, start=START + 200)
    assert said(resolve()) == ("environ", B)
    leave(B)
    assert said(resolve()) == ("environ", A)
    proc.end(951)
    assert said(resolve()) == ("none", None)


def test_what_the_kernel_lists_as_children_is_enough(put, proc, resolve, child):
    task = put() / "task" / "901"
    task.mkdir(parents=True)
    child(951, A)
    (task / "children").write_text("")
    assert said(resolve()) == ("none", None)
    (task / "children").write_text("951 952 ")
    assert said(resolve()) == ("environ", A)


@pytest.mark.parametrize("session", [None, "", "../x", "a" * 500])
def test_a_child_without_a_session_shows_none(put, resolve, child, session):
    put()
    child(951, session)
    assert said(resolve()) == ("none", None)


def test_a_session_that_was_handed_to_the_process_is_its_parent_s(put, resolve, child):
    put(HERMES_SESSION_ID=A)
    child(951, A)
    assert said(resolve()) == ("none", None)
    child(952, B)
    assert said(resolve()) == ("environ", B)


def test_argv_goes_before_a_child_until_that_session_is_left(put, resolve, child, database, leave):
    put(argv=[*CHAT, "--resume", A])
    child(951, B)
    assert said(resolve()) == ("argv", A)
    leave(A)
    assert said(resolve()) == ("environ", B)


def test_a_subagent_s_owner_is_in_its_session(put, resolve, database, leave):
    put()

    def delegate(id_, session, at, pid=901, start=START):
        row = (id_, session, BEGAN + at, pid, start)
        database.db.execute("insert into async_delegations values (?, ?, ?, ?, ?)", row)

    delegate("d1", A, 20, pid=902)
    delegate("d2", A, 20, start=START + 1)
    assert said(resolve()) == ("none", None)
    delegate("d3", A, 20)
    assert said(resolve()) == ("environ", A)
    delegate("d4", B, 40)
    assert said(resolve()) == ("environ", B)
    leave(B)
    assert said(resolve()) == ("environ", A)


def test_a_database_that_cannot_be_read_says_nothing(put, home, resolve):
    (home / "state.db").write_bytes(b"SQLite format 3\0")
    put(argv=[*CHAT, "--resume", A], fds=[home / "state.db"])
    assert said(resolve()) == ("argv", A)
    put(fds=[home / "state.db"])
    assert said(resolve()) == ("none", None)


# What is hostile


@pytest.mark.parametrize("kind", ["fifo", "directory", "symlink", "missing"])
def test_a_registry_of_another_kind_is_not_read(put, home, resolve, tmp_path, kind):
    path = home / "runtime" / "active_sessions.json"
    path.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "symlink":
        path.symlink_to(hermes_registry(tmp_path / "other", entry(A)))
    put()
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "null", '{"entries":7}', '{"entries":{"pid":901}}', '{"entries":[7,null,[],{}]}',
        '{"entries":[{"pid":901}]}', "[" * 70_000, "\ud800",
    ],
)  # fmt: skip
def test_a_registry_that_is_none_is_no_answer(put, home, resolve, text):
    path = hermes_registry(home)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    put()
    assert said(resolve()) == ("none", None)


def test_numbers_that_are_none_are_no_times(put, home, resolve):
    text = json.dumps(
        {"entries": [entry(A, process_start_time=float("nan")), entry(B, process_start_time=1e999)]}
    )
    hermes_registry(home).write_text(text)
    put()
    assert said(resolve()) == ("none", None)


def test_a_process_that_tells_nothing_is_listed(proc, put, home):
    put()
    proc.refuse(901)
    resolver = Resolver(str(proc.root), {"hermes": str(home)})
    session = resolver.session(resolver.agent("hermes", 901))
    assert said(session) == ("none", None)
    hermes_registry(home, entry(A))
    assert said(resolver.session(resolver.agent("hermes", 901))) == ("registry", A)


def test_the_steps_say_what_each_route_saw(put, home, resolve):
    hermes_registry(home, entry(A, process_start_time=1))
    put(argv=[*CHAT, "--resume", "my title"])
    assert resolve().steps == (
        f"registry: {home}/runtime/active_sessions.json: 1 with this pid, 0 of this process",
        "argv: my title: a title, not an id",
        "environ: 0 children, 0 with a session",
        "environ: subagents of 0 sessions are this process's",
    )
