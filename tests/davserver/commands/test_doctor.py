"""`agents9 doctor` over made-up process tables."""

import errno
import json
import os
from os import scandir

import pytest

from agents9core import resolver as resolver_module
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.pi_files.stored import PiSessions
from davserver.__main__ import main
from davserver.commands import doctor as doctor_module
from tests.support.fakeproc import FakeProc, started_ms
from tests.support.fakestore import CodexHome, DshHome, OmpHome, claude_record, claude_transcript, uuid7

ID = "79f8e585-4259-4a7e-a277-afb256243c22"
THREADS = [uuid7(started_ms(6000) + 60_000 * number, number) for number in (1, 2)]
CODEX = "/opt/codex/bin/codex"
DAEMON = [CODEX, "app-server", "--listen", "unix://", "--managed-daemon"]
TUI = {"originator": "codex-tui", "cwd": "/srv/demo"}


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(codex_finder, "SHARED_SECONDS", -1)


@pytest.fixture
def proc(tmp_path):
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def user(tmp_path):
    return tmp_path / "u"


@pytest.fixture
def claude(proc, user):
    """A claude with a transcript of a message, a damaged line, a message, and a second damaged one."""
    proc.put(601, "claude", ["claude"], start=6010, cwd="/srv/demo", environ={"HOME": str(user)})
    claude_record(user / ".claude", 601, sessionId=ID, procStart="6010", cwd="/srv/demo")
    path = claude_transcript(user / ".claude", "-srv-demo", ID, "user")
    good = path.read_bytes()
    path.write_bytes(good + b"{damaged\n" + good + b"nothing\n")
    return path


@pytest.fixture
def doctor(proc, capsys):
    def doctor(*arguments):
        status = main(["doctor", "--proc", str(proc.root), *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return doctor


@pytest.fixture
def diagnoses(doctor):
    def diagnoses(*arguments):
        status, out, _ = doctor("--json", *arguments)
        assert status == 0
        return json.loads(out)

    return diagnoses


def test_an_agent_with_damaged_lines(claude, doctor):
    status, out, _ = doctor()
    first = len(claude.read_bytes().partition(b"\n")[0]) + 1
    assert (status, out) == (
        0,
        f"601  claude, session {ID}, via registry\n"
        f"  home        {claude.parents[2]}\n"
        f"  registry    session {ID}\n"
        f"  file        {claude}: {claude.stat().st_size} bytes\n"
        f"  messages    2; lines skipped: 2, at bytes {first} {2 * first + 9}\n",
    )


def test_the_same_as_json(claude, diagnoses):
    first = len(claude.read_bytes().partition(b"\n")[0]) + 1
    assert diagnoses() == [
        {
            "pid": 601,
            "harness": "claude",
            "home": str(claude.parents[2]),
            "home_is_guessed": False,
            "refused": [],
            "via": "registry",
            "session": ID,
            "why": None,
            "routes": [{"route": "registry", "answered": True, "observed": [f"session {ID}"]}],
            "transcript": {
                "session": ID,
                "files": [{"path": str(claude), "bytes": claude.stat().st_size, "limit": None}],
                "messages": 2,
                "skipped": 2,
                "skipped_at": [first, 2 * first + 9],
                "trouble": None,
            },
            "threads": [],
        }
    ]


def test_only_the_first_offsets_are_said(claude, diagnoses, doctor):
    claude.write_bytes(b"x\n" * 25)
    transcript = diagnoses(601)[0]["transcript"]
    assert (transcript["skipped"], transcript["skipped_at"]) == (25, list(range(0, 20, 2)))
    assert "lines skipped: 25, at bytes 0 2 4 6 8 10 12 14 16 18 ...\n" in doctor(601)[1]


def test_a_transcript_that_is_not_there_yet(claude, doctor, user):
    claude.unlink()
    assert doctor(601)[1].splitlines()[-1] == (
        f"  transcript  no {ID}.jsonl in a directory of {user}/.claude/projects yet"
    )


def test_a_record_of_another_process(claude, doctor, user):
    claude_record(user / ".claude", 601, sessionId=ID, procStart="1")
    assert doctor(601)[1] == (
        f"601  claude, session not known, via none\n"
        f"  home        {user}/.claude\n"
        "  registry    written by a process started at '1'\n"
        "  argv        no --resume with an id\n"
    )


def test_a_process_that_is_no_agent(proc, doctor, diagnoses):
    proc.put(7, "vim", ["vim", "claude.md"])
    why = "no harness knows it, or it is a tool of one: 'vim', started as 'vim claude.md'"
    assert doctor(7) == (0, f"7  no agent: {why}\n", "")
    (found,) = diagnoses(7)
    assert (found["pid"], found["harness"], found["why"], found["routes"]) == (7, None, why, [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"uid": 54321}, "it is another user's: uid 54321"),
        ({"state": "Z"}, "it has ended, and its parent has not taken notice"),
    ],
)
def test_why_a_process_is_no_agent(proc, doctor, more, why):
    proc.put(7, "claude", ["claude"], **more)
    assert doctor(7) == (0, f"7  no agent: {why}\n", "")


def test_a_spare_process(claude, doctor, user):
    claude_record(user / ".claude", 601, sessionId=ID, procStart="6010", spare=True)
    assert doctor(601)[1] == (
        "601  claude: it holds no conversation: a helper, a viewer, or a spare or parked process\n"
    )
    assert doctor() == (0, "", "agents9: no agent runs\n")


def test_a_copy_of_its_parent(proc, doctor):
    directory = proc.put(7, "claude", ["claude"])
    line = (directory / "stat").read_bytes().rsplit(b")", 1)
    fields = line[1].split()
    fields[6] = str(0x40).encode()
    (directory / "stat").write_bytes(line[0] + b") " + b" ".join(fields) + b"\n")
    assert doctor(7)[1] == "7  no agent: it is a copy of its parent, and has run no program of its own yet\n"


def test_a_home_that_is_not_there(proc, doctor, tmp_path, caplog):
    proc.put(601, "claude", ["claude"])
    home = tmp_path / "gone"
    assert doctor(601, "--root", f"claude={home}")[1] == f"601  claude: there is no {home}\n"
    caplog.clear()


def test_a_pid_that_nobody_has(proc, doctor):
    assert doctor(4242) == (1, "", "agents9: there is no process 4242\n")
    assert doctor(4242, "--json") == (1, "", "agents9: there is no process 4242\n")
    assert doctor("9" * 19)[0] == 1


@pytest.mark.parametrize("pid", ["x", "-5", "٣", "1.5", "", "9" * 25])
def test_what_is_no_pid(proc, doctor, pid, capsys):
    with pytest.raises(SystemExit) as exit_:
        doctor(pid)
    assert exit_.value.code == 2


def test_nobody_runs(doctor):
    assert doctor() == (0, "", "agents9: no agent runs\n")
    assert doctor("--json") == (0, "[]\n", "")


def test_two_terminals_that_cannot_be_told_apart_say_so(proc, doctor, tmp_path):
    home = CodexHome(tmp_path / "codexhome")
    environ = {"CODEX_HOME": str(home.path)}
    rollouts = {20 + number: home.rollout(id_, **TUI) for number, id_ in enumerate(THREADS)}
    for pid in (611, 612):
        proc.put(pid, "codex", [CODEX], start=6000, cwd="/srv/demo", environ=environ)
    proc.put(900, "codex", DAEMON, start=6001, cwd="/srv/demo", environ=environ, fds=rollouts)
    out = doctor(611)[1]
    assert "611  codex, session not known, via none\n" in out
    assert "  daemon      2 of them and 2 TUIs fit each other, and cannot be told apart\n" in out
    out = doctor(900)[1]
    assert out.count("  thread ") == 2
    assert out.count("  messages    0; lines skipped: 0\n") == 2


@pytest.mark.parametrize(
    ("cwd", "start", "why"),
    [
        ("/srv/other", 6000, "none was opened in /srv/other by a TUI after this one started"),
        ("/srv/demo", 60_000, "none was opened in /srv/demo by a TUI after this one started"),
    ],
)
def test_a_terminal_that_no_thread_fits(proc, doctor, tmp_path, cwd, start, why):
    home = CodexHome(tmp_path / "codexhome")
    environ = {"CODEX_HOME": str(home.path)}
    proc.put(611, "codex", [CODEX], start=start, cwd=cwd, environ=environ)
    proc.put(900, "codex", DAEMON, environ=environ, fds={20: home.rollout(THREADS[0], **TUI)})
    assert f"  daemon      {why}\n" in doctor(611)[1]


def test_a_terminal_whose_thread_another_one_has(proc, doctor, tmp_path):
    home = CodexHome(tmp_path / "codexhome")
    environ = {"CODEX_HOME": str(home.path)}
    proc.put(611, "codex", [CODEX, "resume", THREADS[0]], start=6000, cwd="/srv/demo", environ=environ)
    proc.put(612, "codex", [CODEX], start=6000, cwd="/srv/demo", environ=environ)
    proc.put(900, "codex", DAEMON, environ=environ, fds={20: home.rollout(THREADS[0], **TUI)})
    assert "  daemon      those that fit are other TUIs'\n" in doctor(612)[1]


def test_a_home_is_a_guess_where_the_environment_may_not_be_read(claude, proc, doctor, diagnoses, user):
    proc.refuse(601)
    home = f"{os.path.expanduser('~')}/.claude"
    assert f"  home        {home} (a guess: its environment may not be read)\n" in doctor(601)[1]
    (found,) = diagnoses("--root", f"claude={user}/.claude", 601)
    assert (found["home"], found["home_is_guessed"]) == (f"{user}/.claude", False)


@pytest.mark.parametrize("where", ["", "projects", "projects/-srv-demo"])
def test_a_directory_that_may_not_be_read_is_said(claude, doctor, diagnoses, user, monkeypatch, where):
    refused = os.path.normpath(user / ".claude" / where)

    def refusing(path, *_):
        if os.path.normpath(path) == refused:
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(doctor_module, "scandir", refusing)
    assert diagnoses(601)[0]["refused"] == [refused]
    assert f"  refused     {refused}: may not be read, and looks empty\n" in doctor(601)[1]


def test_a_fork_says_how_much_of_each_file_counts(proc, doctor, diagnoses, tmp_path):
    home = CodexHome(tmp_path / "codexhome")
    first = home.rollout(THREADS[0])
    size = first.stat().st_size
    base = {"thread_id": THREADS[0], "end_byte_offset": size}
    second = home.rollout(THREADS[1], history_base=base)
    proc.put(611, "codex", [CODEX], environ={"CODEX_HOME": str(home.path)}, fds={20: second})
    (found,) = diagnoses(611)
    assert [(file["path"], file["limit"]) for file in found["transcript"]["files"]] == [
        (str(first), size),
        (str(second), None),
    ]
    assert f"  file        {first}: {size} bytes, of which the first {size} count\n" in doctor(611)[1]


def test_an_omp(proc, doctor, user):
    home = OmpHome(user / ".omp")
    main_ = home.transcript("--srv-demo--", uuid7(1, 1))
    proc.put(
        701, "omp", ["omp"], cwd="/srv/demo", environ={"HOME": str(user)}, fds={20: main_, 0: "/dev/pts/1"}
    )
    assert doctor()[1] == (
        f"701  omp, session {uuid7(1, 1)}, via fd\n"
        f"  home        {user}/.omp\n"
        f"  fd          {main_}: session {uuid7(1, 1)}\n"
        "  terminal    not asked\n"
        "  dir         not asked\n"
        f"  file        {main_}: {main_.stat().st_size} bytes\n"
        "  messages    1; lines skipped: 0\n"
    )


def test_a_file_that_goes_is_said(proc, doctor, user, monkeypatch):
    home = OmpHome(user / ".omp")
    main_ = home.transcript("--srv-demo--", uuid7(1, 1))
    proc.put(701, "omp", ["omp"], environ={"HOME": str(user)}, fds={20: main_})
    real = PiSessions.session

    def vanishing(self, *arguments):
        session = real(self, *arguments)
        main_.unlink()
        return session

    monkeypatch.setattr(PiSessions, "session", vanishing)
    out = doctor(701)[1]
    assert f"  file        {main_}: not readable\n" in out
    assert "  messages    NotFound: " in out


def test_nothing_that_is_shown_moves_the_terminal(proc, doctor, diagnoses, user):
    home = DshHome(user / ".dsh")
    lock = home.lock(home.session("a\x1b[2J\n\u202eb", "session.v4.jsonl", cwd="/\x9b"))
    argv = ["node", "/usr/bin/dsh", "web"]
    proc.put(801, "node", argv, environ={"HOME": str(user)}, fds={20: lock})
    proc.put(9, "x\x1b]0;", ["\x1b[2J\n\udcff", "\u2066"])
    for out in (doctor()[1], doctor(9)[1], json.dumps(diagnoses(), ensure_ascii=False)):
        assert not any(odd in out for odd in "\x1b\x9b\u202e\u2066")
    assert "a\ufffd[2J\ufffd\ufffdb" in doctor()[1]


def test_the_help_says_what_it_is_for(capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    assert "--json" in capsys.readouterr().out
