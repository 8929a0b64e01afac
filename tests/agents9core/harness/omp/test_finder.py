"""Which processes are omp, and which session each is in."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.errors import NotFound
from agents9core.harness.omp import finder as omp_finder
from agents9core.harness.omp import process as omp_process
from agents9core.harness.pi_files import store as omp_store
from agents9core.harness.pi_files.store import directory_names, parse_head
from agents9core.resolver import Resolver
from agents9core.routes.exclusive import Wish, assign_files
from agents9core.routes.process import OpenDescriptor, ProcessTable
from agents9core.tree.top import build_tree
from tests.support.fakeproc import started_ms
from tests.support.fakestore import OmpHome, title_slot, uuid7

START = 7000
BEGAN = started_ms(START) / 1000
BEFORE, AFTER = BEGAN - 3600, BEGAN + 60
A, B, C, D = (uuid7(int(BEGAN * 1000) + 60_000 * number, number) for number in range(1, 5))
BUN = ["bun", "/usr/lib/node_modules/.bin/omp"]
DIRECTORY = "--srv-demo--"
CWD = "/srv/demo"


@pytest.fixture(autouse=True)
def _every_look_is_fresh(every_look_is_fresh, monkeypatch):
    monkeypatch.setattr(omp_finder, "SHARED_SECONDS", -1)


@pytest.fixture
def user(tmp_path):
    return tmp_path / "u"


@pytest.fixture
def home(user):
    return OmpHome(user / ".omp")


@pytest.fixture
def put(proc, user):
    def put(pid=701, argv=(), start=START, cwd=CWD, tty="/dev/pts/3", fds=(), **environ):
        stdin = {0: tty} if tty else {0: "/dev/null"}
        opened = dict(enumerate(fds, 20))
        everything = {"HOME": str(user), **environ}
        return proc.put(
            pid, "omp", [*BUN, *argv], start=start, cwd=cwd, environ=everything, fds=stdin | opened
        )

    return put


@pytest.fixture
def resolve(resolver):
    def resolve(pid=701):
        return resolver.session(resolver.agent("omp", pid))

    return resolve


def walked(node, path):
    for name in path.split("/"):
        node = node.walk(name)
    return node


def said(session):
    return session.via, session.id


def files(session):
    return [os.path.join(source.root.path, *source.path) for source in session.sources]


# Which processes


@pytest.mark.parametrize(
    "argv",
    [
        BUN,
        [*BUN, "--model", "fake/fake-model"],
        [*BUN, "-p", "update the docs"],
        [*BUN, "acp"],
        ["omp"],
        ["/usr/local/bin/omp", "explain __omp_worker_tab"],
        ["node", "--no-warnings", "/n/omp/cli.js", "launch"],
        ["omp", "what does update do"],
    ],
)
def test_an_agent_is_recognised(proc, argv):
    proc.put(5, "omp", argv)
    assert omp_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv"),
    [
        ("omp", [*BUN, "__omp_worker_tab"]),
        ("omp", ["omp", "__omp_worker_daemon_broker", "x"]),
        ("omp", [*BUN, "browser-relay", "serve"]),
        ("omp", ["omp", "--profile", "work", "browser-relay"]),
        ("omp", ["omp", "update"]),
        ("omp", ["omp", "auth-gateway", "serve"]),
        ("omp", ["omp", "--version"]),
        ("omp", []),
        ("bun", BUN),
        ("comp", ["comp"]),
        ("bash", ["bash", "-c", "omp"]),
    ],
)
def test_another_process_is_not(proc, comm, argv):
    proc.put(5, comm, argv)
    assert not omp_process.matches(ProcessTable(str(proc.root)).read_own(5))


# fd


def test_the_transcript_that_it_holds_open(put, home, resolve):
    main = home.transcript(DIRECTORY, A, title="Build tool", mtime=BEFORE)
    put(fds=[main])
    session = resolve()
    assert said(session) == ("fd", A)
    assert files(session) == [str(main)]
    assert (session.title, session.cwd) == ("Build tool", CWD)


def test_trap_2_a_subagent_that_wrote_last_is_not_the_session(put, home, resolver, resolve):
    main = home.transcript(DIRECTORY, A, mtime=BEGAN + 10)
    anna = home.subagent(main, "Anna", mtime=BEGAN + 99)
    bob = home.subagent(anna, "Anna.Bob", mtime=BEGAN + 200)
    put(fds=[anna, bob, main])
    session = resolve()
    assert (said(session), files(session)) == (("fd", A), [str(main)])
    agents = resolver.finder("omp").subagents(session)
    assert {name: files(one) for name, one in agents.items()} == {"Anna": [str(anna)], "Anna.Bob": [str(bob)]}


def test_a_subagent_of_a_session_that_it_left_is_no_answer(put, home, resolve):
    put(fds=[home.subagent(home.transcript(DIRECTORY, A, mtime=BEFORE), "Anna")])
    assert said(resolve()) == ("none", None)


def test_a_subagent_is_known_up_to_eight_levels_also_where_one_between_is_gone(put, home, resolve):
    path = home.transcript(DIRECTORY, A, mtime=BEFORE)
    for level in range(8):
        path = home.subagent(path, f"L{level}")
    for above in list(path.parents)[:7]:
        above.with_suffix(".jsonl").unlink()
    put(fds=[path])
    assert said(resolve()) == ("none", None)


def test_trap_6_an_advisor_is_no_subagent_and_an_answer_is_no_transcript(put, home, resolver, resolve):
    main = home.transcript(DIRECTORY, A)
    advisors = [home.subagent(main, name) for name in ("__advisor", "__advisor.deep")]
    (main.with_suffix("") / "Anna.md").write_text("two")
    (main.with_suffix("") / "3.bash.log").write_text("x")
    put(fds=[*advisors, main])
    session = resolve()
    assert said(session) == ("fd", A)
    assert resolver.finder("omp").subagents(session) == {}


def test_an_advisor_of_a_session_that_is_gone_is_no_session(put, home, resolve):
    put(
        fds=[
            home.transcript(DIRECTORY, A, mtime=BEFORE).rename(home.sessions / DIRECTORY / "__advisor.jsonl")
        ]
    )
    assert said(resolve()) == ("none", None)


MODELS = [
    ({"type": "session_init", "task": "x", "resolvedModel": "a/begun"}, "a/begun"),
    ({"type": "model_change", "id": "1", "model": "a/one"}, "a/one"),
    ({"type": "session_init", "resolvedModel": "a/begun"}, "a/one"),
    ({"type": "message", "message": {"content": '{"type":"model_change","model":"a/said"}'}}, "a/one"),
    ({"type": "model_change", "id": "2", "model": "a/two"}, "a/two"),
    ({"type": "model_change", "model": "a/passing", "role": "fallback"}, "a/two"),
    ({"type": "model_change", "model": 7}, "a/two"),
]


def test_a_subagents_model_is_what_it_was_last_changed_to(put, home, resolver):
    main = home.transcript(DIRECTORY, A)
    sub = home.subagent(main, "Anna")
    put(fds=[main])
    anna = "active/omp/701/agents/Anna"
    top = build_tree(resolver)
    assert [row.name for row in walked(top, anna).members()] == ["transcript", "chat", "chat.md"]
    for record, model in MODELS:
        with sub.open("a") as file:
            file.write(json.dumps(record) + "\n")
        assert walked(top, f"{anna}/model").open().read(0, 99) == f"{model}\n".encode()
    assert [row.name for row in walked(top, anna).members()] == ["model", "transcript", "chat", "chat.md"]


def test_subagents_of_one_name_are_all_listed(put, home, resolver, resolve):
    main = home.transcript(DIRECTORY, A)
    ann = home.subagent(main, "Ann")
    again = home.subagent(ann, "Ann")
    put(fds=[main])
    agents = resolver.finder("omp").subagents(resolve())
    assert {name: files(one) for name, one in agents.items()} == {"Ann": [str(ann)], "Ann.Ann": [str(again)]}


def test_trap_5_a_file_that_was_rewritten_by_a_rename_is_what_lies_there_now(put, home, resolve):
    main = home.transcript(DIRECTORY, A)
    put(fds=[f"{main} (deleted)"])
    assert said(resolve()) == ("fd", A)
    main.unlink()
    assert said(resolve()) == ("none", None)


def test_a_path_that_leads_to_another_file_than_is_open_is_not_believed(put, home, resolve, monkeypatch):
    put(fds=[home.transcript(DIRECTORY, A, mtime=BEFORE)])
    monkeypatch.setattr(OpenDescriptor, "identity", lambda _: (1, 2))
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(
    ("flags", "answer"), [(os.O_RDONLY, ("none", None)), (os.O_WRONLY | os.O_APPEND, ("fd", A))]
)
def test_a_file_that_is_only_looked_at_is_not_the_session(proc, put, home, resolve, flags, answer):
    put()
    proc.open(701, 23, home.transcript(DIRECTORY, A, mtime=BEFORE), flags)
    assert said(resolve()) == answer


def test_of_several_the_one_that_was_written_last(proc, put, home, resolve):
    old = home.transcript(DIRECTORY, A, mtime=BEGAN + 10)
    new = home.transcript(DIRECTORY, B, mtime=BEGAN + 20)
    put(fds=[old, new])
    assert said(resolve()) == ("fd", B)
    proc.open(701, 30, home.transcript(DIRECTORY, C, mtime=BEGAN + 15))
    assert said(resolve()) == ("fd", B)
    os.utime(old, (AFTER, AFTER))
    assert said(resolve()) == ("fd", A)


def test_a_session_that_it_was_told_to_write_elsewhere(put, home, resolve, tmp_path):
    main = home.transcript(DIRECTORY, A, mtime=BEFORE)
    elsewhere = tmp_path / "own" / "work.jsonl"
    elsewhere.parent.mkdir()
    main.rename(elsewhere)
    put(argv=["--session", str(elsewhere)], fds=[elsewhere])
    session = resolve()
    assert (said(session), files(session)) == (("fd", A), [str(elsewhere)])


def test_a_file_elsewhere_that_is_no_session_is_not_one(put, home, resolve, tmp_path):
    log = tmp_path / "events.jsonl"
    log.write_text('{"type":"event"}\n')
    put(fds=[log])
    assert said(resolve()) == ("none", None)


def test_a_process_that_writes_no_session_has_none(put, home, resolve, tmp_path):
    subagent = tmp_path / "omp-task-1" / "Anna.jsonl"
    subagent.parent.mkdir()
    home.transcript(DIRECTORY, A).rename(subagent)
    home.note("pts-3", CWD, home.transcript(DIRECTORY, B))
    put(argv=["--no-session"], fds=[subagent])
    assert said(resolve()) == ("none", None)


def test_an_id_that_is_none_is_taken_from_the_name(put, home, resolve):
    put(fds=[home.transcript(DIRECTORY, A, id="../../etc")])
    assert said(resolve()) == ("fd", A)


# title


def test_the_title_is_the_slots_and_is_read_afresh(put, home, resolve):
    main = home.transcript(DIRECTORY, A, title="Build tool")
    put(fds=[main])
    assert resolve().title == "Build tool"
    size = main.stat().st_size
    with main.open("r+b") as file:
        file.write(title_slot("Another name").encode())
    assert (resolve().title, main.stat().st_size) == ("Another name", size)


@pytest.mark.parametrize(
    ("slot", "slot_title", "header", "title"),
    [
        (True, "slot title", {"title": "old header title"}, "slot title"),
        (True, "", {"title": "old header title"}, None),
        (False, "", {"title": "header title"}, "header title"),
        (False, "", {}, None),
        (False, "", {"title": 7}, None),
    ],
)
def test_the_slot_goes_before_the_header_also_when_it_is_empty(
    put, home, resolve, slot, slot_title, header, title
):
    path = home.transcript(DIRECTORY, A, title=slot_title, slot=slot)
    lines = path.read_text().splitlines(keepends=True)
    at = 1 if slot else 0
    lines[at] = json.dumps({**json.loads(lines[at]), **header}) + "\n"
    path.write_text("".join(lines))
    put(fds=[path])
    assert resolve().title == title


def test_a_slot_that_is_caught_half_written_is_no_title_and_no_harm(put, home, resolve):
    main = home.transcript(DIRECTORY, A, title="x")
    with main.open("r+b") as file:
        file.write(b'{"type":"title","v":1,"title":"ha')
        file.write(b"\0" * 20)
    put(fds=[main])
    session = resolve()
    assert (said(session), session.title) == (("fd", A), None)


def test_a_title_is_one_clean_line_in_the_tree(proc, put, home, resolver):
    put(fds=[home.transcript(DIRECTORY, A, title="a\x1b]0;b\nc")])
    entry = build_tree(resolver).walk("active").walk("omp").walk("701")
    assert entry.walk("title").open().read(0, 99) == "a\ufffd]0;b\ufffdc\n".encode()
    assert [row.name for row in entry.members()] == [
        "via", "session", "cwd", "title", "status", "started", "transcript", "chat", "chat.md"
    ]  # fmt: skip


# chat


def names(directory):
    return [row.name for row in directory.members()]


def read(node):
    return node.open().read(0, 9999)


def spoken(role, at, **fields):
    stamp = datetime.fromtimestamp(at, UTC).isoformat()
    return json.dumps({"type": "message", "timestamp": stamp, "message": {"role": role, **fields}}) + "\n"


def say(path, *lines):
    with path.open("a") as file:
        file.write("".join(lines))


def test_its_chat_keeps_its_names_while_the_title_is_rewritten(put, home, resolver):
    main = home.transcript(DIRECTORY, A, title="Build tool")
    put(fds=[main])
    entry = walked(build_tree(resolver), "active/omp/701")
    chat, hello = entry.walk("chat"), entry.walk("chat").walk("00000000-user")
    with main.open("r+b") as file:
        file.write(title_slot("Another name").encode())
    say(main, spoken("bashExecution", AFTER, command="ls", output="a"))
    assert read(entry.walk("title")) == b"Another name\n"
    assert names(chat) == ["00000000-user", "00000001-bash", "00000002-bash-result"]
    assert read(hello) == b"hello\n"
    assert read(chat.walk("00000001-bash")) == b"bash\nls\n"


def test_a_session_that_is_not_written_yet_has_an_empty_chat(put, home, resolver):
    file = home.sessions / DIRECTORY / f"2026-11-29T10-00-00-000Z_{A}.jsonl"
    home.note("pts-3", CWD, file, "fresh")
    put()
    entry = walked(build_tree(resolver), "active/omp/701")
    assert names(entry.walk("chat")) == []


def test_its_status_is_what_its_records_say_since_it_started(put, home, resolver):
    main = home.transcript(DIRECTORY, A, mtime=AFTER)
    put(fds=[main])
    entry = walked(build_tree(resolver), "active/omp/701")
    say(main, spoken("user", BEFORE, content="left unanswered"))
    assert "status" not in names(entry)
    for role, fields, status in (
        ("user", {"content": "go"}, b"busy\n"),
        ("assistant", {"content": "", "stopReason": "toolUse"}, b"busy\n"),
        ("toolResult", {"content": "x"}, b"busy\n"),
        ("assistant", {"content": "done", "stopReason": "stop"}, b"idle\n"),
    ):
        say(main, spoken(role, AFTER, **fields))
        assert read(entry.walk("status")) == status


def test_its_model_is_what_spoke_last(put, home, resolver):
    main = home.transcript(DIRECTORY, A)
    put(fds=[main])
    entry = walked(build_tree(resolver), "active/omp/701")
    say(main, json.dumps({"type": "model_change", "model": "a/one"}) + "\n")
    assert read(entry.walk("model")) == b"a/one\n"
    say(main, spoken("assistant", AFTER, content="x", provider="b", model="two"))
    assert read(entry.walk("model")) == b"b/two\n"


def test_a_subagents_chat_begins_with_its_assignment(put, home, resolver):
    main = home.transcript(DIRECTORY, A)
    anna = home.subagent(main, "Anna")
    put(fds=[main, anna])
    say(anna, spoken("user", AFTER, content="find it", attribution="agent"))
    chat = walked(build_tree(resolver), "active/omp/701/agents/Anna/chat")
    assert (names(chat), read(chat.walk("00000000-user"))) == (["00000000-user"], b"find it\n")


# terminal


def test_trap_3_before_its_second_write_its_terminal_says_which(put, home, resolve):
    main = home.transcript(DIRECTORY, A)
    home.note("pts-3", CWD, main, "cwdstat 1 2")
    put()
    session = resolve()
    assert (said(session), files(session)) == (("terminal", A), [str(main)])


def test_trap_3_what_a_dead_omp_left_on_this_terminal_is_not(put, home, resolve):
    old = home.transcript("--srv-other--", A, cwd="/srv/other", mtime=BEFORE)
    home.note("pts-3", "/srv/other", old, mtime=BEFORE)
    put()
    assert said(resolve()) == ("none", None)


def test_trap_3_nor_where_it_worked_in_the_same_directory(put, home, resolve):
    home.note("pts-3", CWD, home.transcript(DIRECTORY, A, mtime=BEFORE), mtime=BEFORE)
    put()
    assert said(resolve()) == ("none", None)


def test_an_old_note_of_this_directory_counts_while_its_session_is_written(put, home, resolve):
    home.note("pts-3", CWD, home.transcript(DIRECTORY, A, mtime=AFTER), mtime=BEFORE)
    put()
    assert said(resolve()) == ("terminal", A)


def test_a_note_since_the_start_counts_whatever_directory_it_names(put, home, resolve):
    home.note("pts-3", "/srv/moved", home.transcript("--srv-moved--", A, cwd="/srv/moved"))
    put()
    assert said(resolve()) == ("terminal", A)


def test_trap_4_a_session_that_is_not_written_yet(put, home, resolver, resolve):
    home.note("pts-3", CWD, home.sessions / DIRECTORY / f"2026-11-29T10-00-00-000Z_{A}.jsonl", "fresh")
    put()
    session = resolve()
    assert (said(session), session.sources) == (("terminal", A), ())
    entry = build_tree(resolver).walk("active").walk("omp").walk("701")
    assert [row.name for row in entry.members()] == ["via", "session", "cwd", "started", "chat"]


def test_a_note_may_outlive_its_session(put, home, resolve):
    home.note("pts-3", CWD, home.sessions / DIRECTORY / f"x_{A}.jsonl")
    put()
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(
    "file", ["/nonexistent/agent/sessions/-demo/old_session.jsonl", "{}/../x_a.jsonl", "{}", ""]
)
def test_a_note_of_a_file_outside_the_store_is_not_followed(put, home, resolve, tmp_path, file):
    home.transcript(DIRECTORY, A).rename(home.agent / "x_a.jsonl")
    home.note("pts-3", CWD, file.format(home.sessions), "fresh")
    put()
    assert said(resolve()) == ("none", None)


def test_a_note_of_a_subagent_is_its_sessions(put, home, resolve):
    main = home.transcript(DIRECTORY, A, mtime=BEFORE)
    home.note("pts-3", CWD, home.subagent(home.subagent(main, "Anna"), "Anna.Bob"))
    put()
    assert said(resolve()) == ("terminal", A)


@pytest.mark.parametrize(
    ("environ", "terminal"),
    [
        ({"TMUX_PANE": "%5"}, "tmux-%5"),
        ({"ZELLIJ_PANE_ID": "2", "ZELLIJ_SESSION_NAME": "a/b", "TMUX_PANE": "%5"}, "zellij-a-b-2"),
        ({"ZELLIJ_PANE_ID": "2"}, "zellij-2"),
        ({"KITTY_WINDOW_ID": "1", "WEZTERM_PANE": "9"}, "kitty-1"),
        ({"WEZTERM_PANE": "9"}, "wezterm-9"),
    ],
)
def test_without_a_terminal_on_its_input_a_variable_names_it(put, home, resolve, environ, terminal):
    home.note(terminal, CWD, home.transcript(DIRECTORY, A, mtime=BEFORE))
    put(tty=None, **environ)
    assert said(resolve()) == ("terminal", A)


def test_a_variable_does_not_go_before_the_terminal(put, home, resolve):
    home.note("tmux-%5", CWD, home.transcript(DIRECTORY, A, mtime=BEFORE))
    put(TMUX_PANE="%5")
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize("pane", ["../../../etc/passwd", "x" * 65_000, "."])
def test_a_terminal_of_a_strange_name_has_no_note(put, home, resolve, pane):
    put(tty=None, TMUX_PANE=pane)
    assert said(resolve()) == ("none", None)


def test_what_another_process_holds_open_is_not_what_the_note_means(put, home, resolve):
    main = home.transcript(DIRECTORY, A)
    home.note("pts-3", CWD, main)
    put(702, fds=[main], tty="/dev/pts/9")
    put()
    assert said(resolve()) == ("none", None)


def test_two_processes_on_one_terminal_are_not_told_apart(put, home, resolve):
    home.note("pts-3", CWD, home.transcript("-elsewhere", A, cwd="/elsewhere"))
    put()
    put(702)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("none", None)] * 2


def test_where_its_files_are_refused_its_controlling_terminal_says_which(proc, put, home, resolve):
    home.note("pts-3", CWD, home.transcript(DIRECTORY, A))
    directory = put()
    line = (directory / "stat").read_bytes().rsplit(b")", 1)
    fields = line[1].split()
    fields[4] = str(136 << 8 | 3).encode()
    (directory / "stat").write_bytes(line[0] + b") " + b" ".join(fields) + b"\n")
    proc.refuse(701)
    resolver = Resolver(str(proc.root), {"omp": str(home.path)})
    session = resolver.session(resolver.agent("omp", 701))
    assert (said(session), session.cwd) == (("terminal", A), CWD)
    assert resolver.cwd(resolver.agent("omp", 701)) == CWD


# dir


@pytest.mark.parametrize("below", ["u/work/my.proj_x", "t/a b/ü", "srv/x"])
def test_trap_1_three_spellings_of_the_directory(put, home, user, resolve, tmp_path, below):
    cwd = str(tmp_path / below)
    directory = {
        "u/work/my.proj_x": "-work-my.proj_x",
        "t/a b/ü": "-tmp-a b-ü",
        "srv/x": f"--{cwd[1:].replace('/', '-')}--",
    }[below]
    home.transcript(directory, A, cwd=cwd)
    put(cwd=cwd, tty=None, TMPDIR=str(tmp_path / "t"))
    assert said(resolve()) == ("dir", A)


@pytest.mark.parametrize(
    ("cwd", "names"),
    [
        ("/home/u", ("-", "--home-u--")),
        ("/home/u/work/my.proj_x", ("-work-my.proj_x", "--home-u-work-my.proj_x--")),
        ("/tmp", ("-tmp", "--tmp--")),
        ("/tmp/a/b", ("-tmp-a-b", "--tmp-a-b--")),
        ("/srv/x:y\\z", ("--srv-x-y-z--",)),
        ("/home/user2", ("--home-user2--",)),
        ("/tmpfoo", ("--tmpfoo--",)),
        ("/home/u/..x", ("--home-u-..x--",)),
        ("/", ("----",)),
    ],
)
def test_a_directory_is_named_after_its_cwd(cwd, names):
    assert directory_names(cwd, "/home/u", "/tmp") == names


def test_trap_1_directories_of_one_name_are_told_by_the_header(put, home, user, resolve):
    home.transcript("-a-b", A, cwd=str(user / "a/b"), mtime=AFTER)
    home.transcript("-a-b", B, cwd=str(user / "a-b"), mtime=AFTER + 9)
    put(cwd=str(user / "a/b"), tty=None)
    put(702, cwd=str(user / "a-b"), tty=None)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("dir", A), ("dir", B)]


def test_the_newest_written_since_the_start(put, home, resolve):
    home.transcript(DIRECTORY, A, mtime=BEFORE)
    put(tty=None)
    assert said(resolve()) == ("none", None)
    home.transcript(DIRECTORY, B, mtime=AFTER)
    home.transcript(DIRECTORY, C, mtime=AFTER + 9)
    assert said(resolve()) == ("dir", C)


def test_what_another_process_has_is_out(put, home, resolve):
    mine = home.transcript(DIRECTORY, A, mtime=AFTER)
    held = home.transcript(DIRECTORY, B, mtime=AFTER + 9)
    noted = home.transcript(DIRECTORY, C, mtime=AFTER + 10)
    home.note("pts-9", CWD, noted)
    put(tty=None)
    put(702, fds=[held], tty=None)
    put(703, tty="/dev/pts/9")
    session = resolve()
    assert (said(session), files(session)) == (("dir", A), [str(mine)])


def test_two_that_cannot_be_told_apart_have_none(put, home, resolve):
    home.transcript(DIRECTORY, C, mtime=AFTER + 300)
    home.transcript(DIRECTORY, D, mtime=AFTER + 300)
    put(tty=None)
    put(702, tty=None, start=START + 1)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("none", None)] * 2
    assert "another process's as well" in "\n".join(resolve().steps)


def test_a_file_from_before_the_younger_one_is_the_elders(put, home, resolve):
    home.transcript(DIRECTORY, A, mtime=AFTER + 600)
    put(tty=None)
    put(702, tty=None, start=START + 12_000)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("dir", A), ("none", None)]


def test_of_two_that_cannot_be_told_apart_neither_has_it_while_both_run(proc, put, home, resolve):
    main = home.transcript(DIRECTORY, C, mtime=AFTER + 300)
    put(tty=None)
    put(702, tty=None, start=START + 1)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("none", None)] * 2
    assert "another process's" in resolve().steps[-1]
    put(702, fds=[main], tty=None, start=START + 1)
    assert said(resolve(702)) == ("fd", C)


def test_what_an_elder_one_has_is_not_the_younger_s(proc, put, home, resolve):
    home.transcript(DIRECTORY, A, mtime=AFTER + 600)
    put(tty=None)
    put(702, tty=None, start=START + 12_000)
    assert [said(resolve(pid)) for pid in (701, 702)] == [("dir", A), ("none", None)]
    home.transcript(DIRECTORY, D, mtime=AFTER + 900)
    assert said(resolve(702)) == ("dir", D)


def test_one_that_started_after_the_other_had_ended_may_go_on_with_its_session(proc, put, home, resolve):
    home.transcript(DIRECTORY, A, mtime=AFTER)
    put(tty=None)
    assert said(resolve()) == ("dir", A)
    proc.end(701)
    home.transcript(DIRECTORY, A, mtime=AFTER + 600)
    put(702, tty=None, start=START + 12_000)
    assert said(resolve(702)) == ("dir", A)


def test_a_header_without_a_directory_is_no_match(put, home, resolve):
    home.transcript(DIRECTORY, A, cwd=None)
    put(tty=None)
    assert said(resolve()) == ("none", None)


def test_without_a_known_cwd_no_directory_is_searched(proc, put, home):
    home.transcript(DIRECTORY, A)
    put(tty=None)
    proc.refuse(701)
    resolver = Resolver(str(proc.root), {"omp": str(home.path)})
    session = resolver.session(resolver.agent("omp", 701))
    assert (said(session), session.steps[-1]) == (("none", None), "dir: its working directory is not known")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 6), max_size=5, unique=True)), max_size=6)
)
def test_no_file_is_given_twice(processes):
    wishes = [
        Wish((number, 1), started, tuple((str(file), file if file % 2 else None) for file in its))
        for number, (started, its) in enumerate(processes)
    ]
    shared = assign_files(wishes)
    assert len(set(shared.values())) == len(shared)
    assert all(path in dict(wish.files) for wish in wishes if (path := shared.get(wish.key)))


@pytest.mark.parametrize(
    ("wishes", "shared"),
    [
        ({1: "ab"}, {1: "a"}),
        ({1: "ab", 2: "b"}, {1: "a", 2: "b"}),
        ({1: "a", 2: "a"}, {}),
        ({1: "ab", 2: "ab"}, {}),
        ({1: "abc", 2: "c", 3: ""}, {1: "a", 2: "c"}),
        ({1: "ab", 2: "cd"}, {1: "a", 2: "c"}),
    ],
)
def test_files_are_shared_out(wishes, shared):
    asked = [Wish((pid, 1), 0, tuple((file, None) for file in its)) for pid, its in wishes.items()]
    assert {key[0]: file for key, file in assign_files(asked).items()} == shared


# Where it keeps its files


def test_its_own_variables_say_where(put, user, resolve, tmp_path):
    moved = OmpHome(tmp_path / "moved", agent=".")
    put(fds=[], PI_CODING_AGENT_DIR=str(tmp_path / "moved"))
    moved.note("pts-3", CWD, moved.transcript(DIRECTORY, A))
    assert said(resolve()) == ("terminal", A)


@pytest.mark.parametrize(
    ("agent", "argv", "environ"),
    [
        (".pi/agent", (), {"PI_CONFIG_DIR": ".pi"}),
        (".omp/profiles/work/agent", (), {"OMP_PROFILE": "work", "PI_CODING_AGENT_DIR": "/nowhere"}),
        (".omp/profiles/old/agent", (), {"PI_PROFILE": "old"}),
        (".omp/agent", (), {"PI_PROFILE": "old", "OMP_PROFILE": ""}),
        (".omp/agent", (), {"OMP_PROFILE": "../../etc"}),
        (".omp/agent", (), {"OMP_PROFILE": "default"}),
        (".omp/profiles/told/agent", ("--profile", "told"), {"OMP_PROFILE": "work"}),
        (".omp/profiles/told/agent", ("--profile=told",), {}),
        (".omp/agent", ("--profile",), {}),
    ],
)
def test_a_profile_has_its_own_store(put, user, resolve, agent, argv, environ):
    store = OmpHome(user, agent=agent)
    store.note("pts-3", CWD, store.transcript(DIRECTORY, A))
    put(argv=argv, **environ)
    assert said(resolve()) == ("terminal", A)


def test_xdg_directories_count_once_they_are_there(put, home, resolve, tmp_path):
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state")}
    home.note("pts-3", CWD, home.transcript(DIRECTORY, A))
    put(**environ)
    assert said(resolve()) == ("terminal", A)
    data, state = OmpHome(tmp_path / "data", agent="omp"), OmpHome(tmp_path / "state", agent="omp")
    state.note("pts-3", CWD, data.transcript(DIRECTORY, B))
    assert said(resolve()) == ("terminal", B)


def test_the_root_that_is_given_counts_where_the_process_says_none(proc, put, tmp_path):
    store = OmpHome(tmp_path / "given")
    store.note("pts-3", CWD, store.transcript(DIRECTORY, A))
    put()
    resolver = Resolver(str(proc.root), {"omp": str(store.path)})
    assert said(resolver.session(resolver.agent("omp", 701))) == ("terminal", A)


def test_a_store_that_is_a_symlink_is_followed_once(put, user, resolve, tmp_path):
    store = OmpHome(tmp_path / "real")
    user.mkdir()
    (user / ".omp").symlink_to(store.path)
    main = store.transcript(DIRECTORY, A)
    store.note("pts-3", CWD, user / ".omp" / "agent" / "sessions" / DIRECTORY / main.name)
    put()
    assert said(resolve()) == ("terminal", A)
    put(fds=[main])
    assert said(resolve()) == ("fd", A)


@pytest.mark.parametrize(
    ("agent", "argv", "environ", "home", "shown"),
    [
        ("u/.omp/agent", (), {}, "u/.omp", "agent/sessions"),
        ("u/.pi/agent", (), {"PI_CONFIG_DIR": ".pi"}, "u/.pi", "agent/sessions"),
        ("u/.omp/profiles/work/agent", ("--profile", "work"), {}, "u/.omp/profiles/work", "agent/sessions"),
        ("x/mine", (), {"PI_CODING_AGENT_DIR": "{}/x/mine"}, "x/mine", "sessions"),
        ("u/data/omp", (), {"XDG_DATA_HOME": "{}/u/data"}, "u/data/omp", "sessions"),
    ],
)
def test_mirrors_skills_and_doctor_see_where_it_keeps_its_files(
    put, resolver, tmp_path, agent, argv, environ, home, shown
):
    store = OmpHome(tmp_path, agent=agent)
    main = store.transcript(DIRECTORY, A)
    (store.agent / "skills" / "demo").mkdir(parents=True)
    (store.agent / "skills" / "demo" / "SKILL.md").write_text("x")
    put(argv=argv, fds=[main], **{name: value.format(tmp_path) for name, value in environ.items()})
    top = build_tree(resolver)
    assert [row.name for row in walked(top, f"omp/{shown}/{DIRECTORY}").members()] == [main.name]
    assert [row.name for row in walked(top, "skills/omp").members()] == ["demo"]
    assert resolver.examine(701).home == str(tmp_path / home)
    assert resolver.homes("omp")[0] == os.path.expanduser("~/.omp")


@pytest.mark.parametrize(
    ("argv", "environ", "listed"),
    [
        ((), {}, []),
        (("--profile", "work"), {}, []),
        ((), {"PI_CODING_AGENT_DIR": "/srv/agent"}, [701]),
    ],
)
def test_a_given_root_that_is_missing_hides_those_that_keep_their_files_there(
    proc, put, tmp_path, argv, environ, listed
):
    put(argv=argv, **environ)
    resolver = Resolver(str(proc.root), {"omp": str(tmp_path / "missing")})
    assert [agent.pid for agent in resolver.agents("omp")] == listed


def test_skills_stay_in_the_home_where_the_sessions_are_elsewhere(put, home, resolver, tmp_path):
    (tmp_path / "data" / "omp").mkdir(parents=True)
    put(XDG_DATA_HOME=str(tmp_path / "data"))
    assert resolver.homes("omp")[1:] == [str(tmp_path / "data" / "omp"), str(home.path)]


# What is hostile, and what goes away


NOT_PLAIN = ["fifo", "directory", "symlink", "nothing"]
TEXTS = {"empty": b"", "binary": b"\xff\0\n\n\xfe", "list": b"[1]\n7\n", "long": b"[" * 70_000 + b"\n"}


@pytest.mark.parametrize("kind", [*NOT_PLAIN, *TEXTS])
@pytest.mark.parametrize("route", ["fd", "terminal", "dir"])
def test_a_transcript_of_another_kind_harms_nothing(put, home, resolver, resolve, tmp_path, kind, route):
    path = home.sessions / DIRECTORY / f"2026-11-29T10-00-00-000Z_{A}.jsonl"
    path.parent.mkdir()
    _make(path, kind, tmp_path)
    home.note("pts-3", CWD, path)
    put(fds=[path] if route == "fd" else [], tty="/dev/pts/3" if route == "terminal" else None)
    assert resolve().via in ("none", "fd", "terminal")
    entry = build_tree(resolver).walk("active").walk("omp").walk("701")
    names = [row.name for row in entry.members()]
    assert ("transcript" in names) == bool(resolve().sources)
    if kind in NOT_PLAIN:
        assert "transcript" not in names


def _make(path: Path, kind: str, tmp_path: Path) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "symlink":
        (tmp_path / "secret").write_text(json.dumps({"type": "session", "id": B, "cwd": CWD}) + "\n")
        path.symlink_to(tmp_path / "secret")
    elif kind != "nothing":
        path.write_bytes(TEXTS[kind])


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"/srv/demo", b"\xff\xfe\n\0\n", b"/srv/demo\n" + b"x" * 65_000, b"srv\nx.jsonl\n"]
)
def test_a_note_that_is_none_is_no_answer(put, home, resolve, text):
    (home.terminals / "pts-3").write_bytes(text)
    put()
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize("kind", ["fifo", "directory", "symlink"])
def test_a_note_of_another_kind_is_not_read(put, home, resolve, tmp_path, kind):
    _make(home.terminals / "pts-3", kind, tmp_path)
    put()
    assert said(resolve()) == ("none", None)


def test_a_home_that_is_not_there_is_no_answer(put, resolve):
    put(fds=["/gone/x.jsonl", "/gone/y.jsonl (deleted)", "pipe:[1].jsonl", "anon_inode:x.jsonl"])
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize("value", [7, None, [], {}, "", "x" * 70_000, "a/b", ".."])
def test_fields_of_another_type_are_not_taken(put, home, resolve, value):
    path = home.transcript(DIRECTORY, A, cwd=CWD, slot=False)
    path.write_text(json.dumps({"type": "session", "id": value, "title": value, "cwd": value}) + "\n")
    put(fds=[path])
    session = resolve()
    assert session.via == "fd"
    assert session.id == A


@given(st.binary(max_size=400))
def test_any_bytes_are_a_head(data):
    head = parse_head(data)
    assert head.id is None or "/" not in head.id


def test_a_process_that_ended_is_gone_at_the_next_listing(proc, put, home, resolver):
    put(fds=[home.transcript(DIRECTORY, A)])
    assert [agent.pid for agent in resolver.agents("omp")] == [701]
    proc.end(701)
    assert resolver.agents("omp") == []
    with pytest.raises(NotFound):
        resolver.agent("omp", 701)


@pytest.mark.usefixtures("counts_looks")
def test_a_file_that_has_not_changed_is_not_read_again(put, home, resolve, monkeypatch):
    put(fds=[home.transcript(DIRECTORY, A, title="x")])
    monkeypatch.setattr(omp_store, "_RACY_NS", -(10**20))  # however soon after the change this look is
    resolve()
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("read again"))
    assert resolve().title == "x"


def test_the_steps_say_what_each_route_saw(put, home, resolve):
    put(fds=[home.subagent(home.transcript(DIRECTORY, A, mtime=BEFORE), "Anna")])
    text = "\n".join(resolve().steps)
    assert "Anna.jsonl: a subagent's" in text
    assert "terminal: pts-3: NotFound" in text
    assert "dir: nothing of /srv/demo was written since the start" in text
