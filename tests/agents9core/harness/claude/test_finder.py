"""Which processes are Claude Code, and which session each is in."""

import json
import os
from pathlib import Path

import pytest

from agents9core.errors import Gone, NotFound
from agents9core.files.root import Root
from agents9core.harness.claude import finder as claude_finder
from agents9core.harness.claude import places
from agents9core.harness.claude import process as claude_process
from agents9core.resolver import Resolver
from agents9core.routes.process import ProcessTable
from tests.support.fakeproc import started_ms
from tests.support.fakestore import claude_record, claude_transcript

ID = "79f8e585-4259-4a7e-a277-afb256243c22"
OTHER = "1d4ca084-4878-4d8c-9c1f-0a4b0c4e7a11"
NATIVE = "/home/u/.local/share/claude/versions/2.1.332"


pytestmark = pytest.mark.usefixtures("every_look_is_fresh")


@pytest.fixture
def home(tmp_path):
    return tmp_path / "u" / ".claude"


@pytest.fixture
def put(proc, home):
    def put(pid=601, start=6010, **more):
        more = {"environ": {"HOME": str(home.parent)}, "cwd": "/srv/demo", **more}
        return proc.put(pid, "claude", ["claude"], start=start, **more)

    return put


def resolve(proc, pid=601):
    resolver = Resolver(str(proc.root))
    return resolver.session(resolver.agent("claude", pid))


def transcripts(session):
    return [os.path.join(source.root.path, *source.path) for source in session.sources]


# Which processes


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("claude", ["claude"], NATIVE),
        ("claude", ["/usr/bin/claude", "--resume", ID], None),
        ("2.1.332", ["claude", "--resume"], NATIVE),
        ("2.1.332", [NATIVE], None),
        ("2.1.332", ["agent"], NATIVE),
        ("2.1.332", ["agent"], f"{NATIVE} (deleted)"),
        ("2.1.271", ["/home/u/.claude/remote/ccd-cli/2.1.271", "--output-format", "stream-json"], None),
        ("node", ["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"], "/usr/bin/node"),
        ("node", ["node", "-r", "x.js", "--no-warnings", "/n/@anthropic-ai/claude-code/cli.js", "-p"], None),
        ("claude", ["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "-p", "hi"], None),
        ("claude", ["claude", "-p", "update the docs"], None),
        ("claude", ["claude", "--debug", "--verbose"], NATIVE),
        ("claude", ["claude", "--debug", "-p", "mcp"], NATIVE),
        ("claude", ["claude", "--model", "mcp"], NATIVE),
        ("claude", ["claude", "--model"], NATIVE),
        ("claude", ["claude", "--add-dir", "mcp", "update"], NATIVE),
        ("claude", ["claude", "--add-dir", "/x"], NATIVE),
        ("claude", ["claude", "daemon status"], NATIVE),
        ("claude", ["claude", "-p", "mcp"], NATIVE),
        ("claude", ["claude", "explain", "-p"], NATIVE),
        ("claude", ["claude", "--", "mcp"], NATIVE),
        ("claude", ["claude", "/init"], NATIVE),
        ("claude", ["claude", "--not-known-yet"], NATIVE),
        ("claude", ["claude", "--not-known-yet", "value", "-c"], NATIVE),
        ("claude", ["claude", "--not-known-yet=mcp"], NATIVE),
        ("claude", ["claude", "--resume", "mcp"], NATIVE),
        ("claude.exe", ["/n/claude-code/bin/claude.exe"], "/n/claude-code/bin/claude.exe"),
        (".claude-wrapped", ["/etc/profiles/per-user/u/bin/claude"], "/nix/store/a/bin/.claude-wrapped"),
        (".claude-unwrapp", ["/nix/store/a/bin/.claude-unwrapped"], "/nix/store/a/bin/.claude-unwrapped"),
        ("..claude-wrappe", ["..claude-wrapped-wrapped"], None),
        ("claude-linux-x6", ["/opt/claude-linux-x64"], "/opt/claude-linux-x64"),
        ("cc", ["cc"], "/opt/claude-raw"),
    ],
)
def test_a_session_is_recognised(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert claude_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("vim", ["vim", "claude.md"], "/usr/bin/vim"),
        ("bash", ["bash", "-c", "pgrep -f claude; codex-watch"], "/bin/bash"),
        ("claude", ["claude", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "update"], NATIVE),
        ("claude", ["claude", "daemon", "run"], NATIVE),
        ("claude", ["claude", "--debug", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "--verbose", "--mcp-debug", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "--model", "opus", "--settings", "s.json", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "--chrome-native-host"], NATIVE),
        ("claude", ["claude", "--ripgrep", "--files"], NATIVE),
        ("claude", ["python3", "/usr/local/bin/claude"], "/usr/bin/python3.12"),
        ("claude", ["/usr/bin/python3.12", "/usr/local/bin/claude"], None),
        ("claude", ["claude"], "/usr/bin/python3.12"),
        ("claude", ["/bin/ksh", "/usr/local/bin/claude"], None),
        ("node", ["node", "/n/@anthropic-ai/claude-code/cli.js", "mcp", "serve"], None),
        ("node", ["node", "watch.js", "/n/@anthropic-ai/claude-code/cli.js"], None),
        ("node", ["node"], "/usr/bin/node"),
        ("2.1.332", ["rg", "--files"], NATIVE),
        ("claude", ["/bin/sh", "/usr/local/bin/claude"], "/bin/sh"),
        ("claude", [], None),
        ("claude-helper", ["claude-helper"], "/opt/notclaude/versions/1"),
        ("claude", ["claude", "bg-pty-host", "--bg-pty-host", "/tmp/a.sock", "153", "78"], NATIVE),
        ("claude", ["claude", "--bg-pty-host", "/x", "--", NATIVE, "--session-id", ID], NATIVE),
        ("2.1.332", [NATIVE, "--claude-in-chrome-mcp"], NATIVE),
        ("claude", ["claude", "--computer-use-mcp"], NATIVE),
        ("claude", ["claude", "--daemon-worker", "agents"], NATIVE),
        ("claude", ["claude", "--preload"], NATIVE),
        ("claude", ["claude", "agents"], NATIVE),
        ("claude", ["claude", "attach", "abc"], NATIVE),
        ("claude", ["claude", "logs", "abc"], NATIVE),
        ("claude", ["claude", "auth", "login"], NATIVE),
        ("claude", ["claude", "config", "list"], NATIVE),
        ("claude", ["claude", "--plugin-dir", "/x", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "--not-known-yet", "mcp", "serve"], NATIVE),
        ("claude", ["claude", "--bg", "fix it"], NATIVE),
        ("claude.exe", ["/n/bin/claude.exe", "daemon", "run", "--origin", "transient"], "/n/bin/claude.exe"),
        ("claude", ["vim", "claude"], "/usr/bin/vim.basic"),
        ("tail", ["tail", "-f", "claude"], "/usr/bin/tail"),
    ],
)
def test_another_process_is_not(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert not claude_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("target", "owned"),
    [
        ("lib/node_modules/@anthropic-ai/claude-code/cli.js", True),
        ("lib/node_modules/other/claude.js", False),
    ],
)
def test_node_is_one_by_what_its_script_leads_to(proc, tmp_path, target, owned):
    script = tmp_path / target
    script.parent.mkdir(parents=True)
    script.touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(f"../{target}")
    for argv in (["node", str(tmp_path / "bin/claude")], ["node", "--no-warnings", "bin/claude", "-p"]):
        proc.put(5, "MainThread", argv, exe="/usr/bin/node", cwd=str(tmp_path))
        assert claude_process.matches(ProcessTable(str(proc.root)).read_own(5)) == owned


@pytest.mark.parametrize(
    "argv",
    [["claude", "frobnicate"], ["claude", "frobnicate", "list"], ["claude", "bg-spare", "--bg-spare", "/x"]],
)
def test_what_may_be_a_subcommand_is_listed_by_its_record_alone(proc, home, argv):
    proc.put(601, "claude", argv, start=6010, environ={"HOME": str(home.parent)})
    resolver = Resolver(str(proc.root))
    assert resolver.agents("claude") == []
    claude_record(home, 601, procStart="6010")
    assert resolver.agents("claude") == []
    claude_record(home, 601, sessionId=ID, procStart="6010", kind="bg", jobId="05a04f86")
    assert [resolver.session(agent).id for agent in resolver.agents("claude")] == [ID]


def test_a_session_in_the_background_is_its_process_s(proc, home):
    """What `claude --bg` leaves: the service, its terminals, a spare with a session and one without."""
    exe = "/n/claude-code/bin/claude.exe"

    def put(pid, *argv):
        proc.put(pid, "claude.exe", list(argv), start=pid * 10, exe=exe, environ={"HOME": str(home.parent)})

    put(422, exe, "daemon", "run", "--origin", "transient")
    put(429, "claude", "bg-pty-host", "--bg-pty-host", "/s", "200", "50", "--", exe, "--bg-spare", "/s")
    put(441, "claude", "bg-spare", "--bg-spare", "/s")
    put(446, "claude", "bg-spare", "--bg-spare", "/s")
    put(450, "claude", "bg-spare", "--bg-spare", "/s")
    put(480, "claude", "agents")
    put(472, "claude", "--dangerously-skip-permissions")
    claude_record(home, 422, procStart="4220", kind="daemon", sessionId=OTHER)
    claude_record(home, 441, sessionId=ID, procStart="4410", kind="bg", jobId="05a04f86")
    claude_record(home, 446, sessionId=OTHER, procStart="4460", kind="bg", jobId="828c6057", spare=True)
    claude_record(home, 472, sessionId=OTHER, procStart="4720", parkedJobId="05a04f86")
    resolver = Resolver(str(proc.root))
    assert [agent.pid for agent in resolver.agents("claude")] == [441]
    for pid in (422, 429, 446, 450, 472, 480):
        with pytest.raises(NotFound):
            resolver.agent("claude", pid)


# By what the record proves


@pytest.mark.parametrize(
    "argv", [["agent-x"], ["/opt/company/assistant", "run"], ["node", "/srv/wrapped.js"]]
)
def test_a_record_shows_a_claude_whatever_it_is_called(proc, home, argv):
    proc.put(601, argv[0][:15], argv, start=6010, environ={"HOME": str(home.parent)})
    resolver = Resolver(str(proc.root), {"claude": str(home)})
    home.mkdir(parents=True)
    assert resolver.agents("claude") == []
    with pytest.raises(NotFound):
        resolver.agent("claude", 601)
    claude_record(home, 601, sessionId=ID, procStart="6010")
    (agent,) = resolver.agents("claude")
    assert resolver.session(agent).id == ID
    assert Resolver(str(proc.root), {"claude": str(home)}).agent("claude", 601) == agent
    claude_record(home, 601, sessionId=ID, procStart="6011")
    assert resolver.agents("claude") == []
    with pytest.raises(Gone):
        resolver.session(agent)


def test_a_record_below_the_process_s_own_home_shows_one_though_no_other_does(proc, home):
    proc.put(601, "odd", ["/opt/odd"], start=6010, environ={"HOME": str(home.parent)})
    resolver = Resolver(str(proc.root))
    assert resolver.agents("claude") == []
    claude_record(home, 601, sessionId=ID, procStart="6010")
    assert [agent.pid for agent in resolver.agents("claude")] == [601]
    assert [agent.pid for agent in Resolver(str(proc.root)).agents("claude")] == [601]


@pytest.mark.parametrize(
    "fields",
    [
        {"procStart": "6011"},
        {"startedAt": started_ms(6010) + 5000},
        {"procStart": "6010", "sessionId": None},
        {"procStart": "6010", "spare": True},
    ],
)
def test_a_record_that_proves_nothing_shows_none(proc, home, fields):
    proc.put(601, "sleep", ["sleep", "999"], start=6010, environ={"HOME": str(home.parent)})
    claude_record(home, 601, **{"sessionId": ID, **fields})
    assert Resolver(str(proc.root), {"claude": str(home)}).agents("claude") == []


@pytest.mark.parametrize("argv", [["vim", "601.json"], ["tail", "-f", "x.jsonl"], ["bash"]])
def test_an_editor_a_reader_and_a_shell_are_none(proc, home, argv):
    proc.put(601, argv[0], argv, start=6010, environ={"HOME": str(home.parent)})
    claude_record(home, 601, sessionId=ID, procStart="6010")
    assert Resolver(str(proc.root), {"claude": str(home)}).agents("claude") == []


@pytest.fixture
def contained(proc, put, home, monkeypatch):
    """A claude in a container, where its pid is 7; the domain that it writes into its record."""
    monkeypatch.setattr(claude_finder, "_machine_id", lambda root="": "beef" if root else "cafe")
    put()
    proc.contain(601, 7, "pid:[42]")
    return "linux:beef:pid:[42]"


def test_in_a_container_the_record_has_the_innermost_pid(proc, home, contained):
    claude_record(home, 7, sessionId=ID, procStart="6010", pidDomain=contained)
    assert resolve(proc).id == ID


@pytest.mark.parametrize(
    "fields",
    [
        {"pidDomain": "linux:beef:pid:[43]"},
        {"pidDomain": "linux:f00d:pid:[42]"},
        {"pidDomain": None},
        {"procStart": "6011"},
    ],
)
def test_another_container_s_record_of_that_pid_is_not_it(proc, home, contained, fields):
    claude_record(home, 7, **{"sessionId": ID, "procStart": "6010", "pidDomain": contained, **fields})
    assert resolve(proc).id is None


def test_a_record_of_the_innermost_pid_needs_a_known_namespace(proc, home, contained):
    (proc.root / "601" / "ns" / "pid").unlink()
    claude_record(home, 7, sessionId=ID, procStart="6010", pidDomain=contained)
    assert resolve(proc).id is None


# By the command line


@pytest.fixture
def told(proc, home):
    def told(*argv):
        proc.put(601, "claude", ["claude", *argv], start=6010, environ={"HOME": str(home.parent)})
        session = resolve(proc)
        return session.via, session.id, len(session.sources)

    return told


@pytest.mark.parametrize(
    "argv",
    [["--resume", ID], ["-r", ID], [f"--resume={ID}"], ["--model", "opus", "--resume", ID, "go on"]],
)
def test_without_a_record_the_session_that_argv_names(told, home, argv):
    assert told(*argv) == ("none", None, 0)
    claude_transcript(home, "-srv-demo", ID, "user")
    assert told(*argv) == ("argv", ID, 1)


@pytest.mark.parametrize(
    "argv",
    [
        ["--resume"],
        ["--resume", "../x"],
        ["--resume", OTHER],
        ["--resume", ID, "--fork-session"],
        ["--", "--resume", ID],
        ["-p", "hi"],
    ],
)
def test_argv_that_names_no_session_of_the_store(told, home, argv):
    claude_transcript(home, "-srv-demo", ID, "user")
    assert told(*argv) == ("none", None, 0)


def test_a_record_goes_before_argv(told, home):
    for id_ in (ID, OTHER):
        claude_transcript(home, "-srv-demo", id_, "user")
    claude_record(home, 601, sessionId=OTHER, procStart="6010")
    assert told("--resume", ID) == ("registry", OTHER, 1)
    claude_record(home, 601, sessionId=OTHER, procStart="1")
    assert told("--resume", ID) == ("argv", ID, 1)


@pytest.mark.parametrize("mark", [{"spare": True}, {"parkedJobId": "j1"}, {"kind": "daemon-worker"}])
def test_a_spare_or_parked_process_is_not_listed(proc, put, home, mark):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010", **mark)
    resolver = Resolver(str(proc.root))
    assert resolver.agents("claude") == []
    with pytest.raises(NotFound):
        resolver.agent("claude", 601)


def test_a_spare_that_is_put_to_use_is_listed(proc, put, home):
    put()
    resolver = Resolver(str(proc.root))
    claude_record(home, 601, sessionId=ID, procStart="6010", spare=True)
    assert resolver.agents("claude") == []
    claude_record(home, 601, sessionId=ID, procStart="6010")
    (agent,) = resolver.agents("claude")
    claude_record(home, 601, sessionId=ID, procStart="6010", parkedJobId="j")
    with pytest.raises(Gone):
        resolver.session(agent)


# The registry


def test_the_record_says_everything(proc, put, home):
    put()
    path = claude_record(
        home,
        601,
        sessionId=ID,
        procStart="6010",
        cwd="/srv/demo",
        version="2.1.332",
        name="demo-6e",
        status="waiting",
        waitingFor="permission prompt",
    )
    transcript = claude_transcript(home, "-srv-demo", ID, "user")
    session = resolve(proc)
    assert (session.via, session.id, session.cwd, session.version) == ("registry", ID, "/srv/demo", "2.1.332")
    assert (session.name, session.status, session.waitingfor) == ("demo-6e", "waiting", "permission prompt")
    assert session.record_mtime_ns == path.stat().st_mtime_ns
    assert transcripts(session) == [str(transcript)]


def test_waitingfor_is_said_only_while_it_waits(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010", status="busy", waitingFor="permission prompt")
    assert resolve(proc).waitingfor is None


def test_a_status_of_another_kind_is_not_passed_on(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010", status="x" * 5000)
    assert resolve(proc).status is None


@pytest.mark.parametrize("start", ["6011", "06010", " 6010", 6010, True, ["6010"], ""])
def test_a_record_of_another_start_is_not_believed(proc, put, home, start):
    put()
    claude_record(home, 601, sessionId=ID, procStart=start, status="busy")
    session = resolve(proc)
    assert (session.via, session.id, session.status) == ("none", None, None)


@pytest.mark.parametrize(
    ("later_ms", "via"), [(0, "registry"), (4000, "registry"), (-1, "none"), (-90000, "none")]
)
def test_without_a_start_the_record_must_be_younger_than_the_process(proc, put, home, later_ms, via):
    put()
    claude_record(home, 601, sessionId=ID, startedAt=started_ms(6010) + later_ms)
    assert resolve(proc).via == via


@pytest.mark.parametrize("started", ["soon", None, True, [], float("nan"), float("inf"), 10**400, -1])
def test_without_any_start_the_record_is_not_believed(proc, put, home, started):
    put()
    claude_record(home, 601, sessionId=ID, startedAt=started)
    assert resolve(proc).via == "none"


@pytest.mark.parametrize(
    ("domain", "via"),
    [
        ("linux:{machine}:{ns}", "registry"),
        ("linux:{machine}:pid:[99]", "none"),
        ("linux:0123:{ns}", "none"),
        ("linux::{ns}", "registry"),
        ("linux:{machine}", "registry"),
        ("linux:{machine}:", "registry"),
        ("linux", "registry"),
        ("darwin", "none"),
        ("win32:host", "none"),
        (None, "registry"),
        (7, "registry"),
    ],
)
def test_the_domain_must_be_this_one_where_both_are_known(proc, put, home, monkeypatch, domain, via):
    monkeypatch.setattr(claude_finder, "_machine_id", lambda: "abcd")
    put()
    proc.link(601, "ns/pid", "pid:[4026531836]")
    if isinstance(domain, str):
        domain = domain.format(machine="abcd", ns="pid:[4026531836]")
    claude_record(home, 601, sessionId=ID, procStart="6010", pidDomain=domain)
    assert resolve(proc).via == via


def test_a_domain_is_not_compared_with_what_is_refused(proc, put, home, monkeypatch):
    monkeypatch.setattr(claude_finder, "_machine_id", lambda: None)
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010", pidDomain="linux:abcd:pid:[4026531836]")
    assert resolve(proc).via == "registry"


def test_the_pid_in_the_file_name_counts(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010").write_text(
        json.dumps({"pid": 999, "sessionId": ID, "procStart": "6010"})
    )
    assert resolve(proc).id == ID


def test_without_a_record_it_is_listed_all_the_same(proc, put):
    put()
    assert resolve(proc).via == "none"


def test_a_key_file_is_never_opened(proc, put, home, monkeypatch):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    (home / "sessions" / "601.0a1b.key").write_text("secret")
    opened = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: opened.append(path) or real(path, *rest, **more)
    )
    assert resolve(proc).id == ID
    assert not [path for path in opened if str(path).endswith(".key")]


def test_a_record_that_is_being_rewritten_is_read_again(proc, put, home, monkeypatch):
    put()
    whole = json.dumps({"sessionId": ID, "procStart": "6010"})
    path = claude_record(home, 601)
    path.write_text(whole + 'old tail"}')
    monkeypatch.setattr(claude_finder.time, "sleep", lambda _seconds: path.write_text(whole))
    assert resolve(proc).id == ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '"x"',
        "[" * 100000,
        '{"a":' * 50000,
        '{"sessionId": ' + "9" * 5000 + "}",
        '{"sessionId": "' + "x" * 70000 + '"}',
        "\0" * 100,
        '{"sessionId": ["x"], "cwd": 7, "status": {}, "name": null, "version": []}',
    ],
)
def test_a_record_that_is_none_costs_this_agent_only(proc, put, home, text):
    put()
    put(602, 6020)
    claude_record(home, 602, sessionId=OTHER, procStart="6020")
    claude_record(home, 601).write_text(text)
    assert resolve(proc).via == "none"
    assert resolve(proc, 602).id == OTHER


def test_fields_of_other_types_are_not_passed_on(proc, put, home):
    put()
    claude_record(
        home, 601, sessionId=ID, procStart="6010", cwd=7, status=["idle"], name={}, version=2, waitingFor=1
    )
    session = resolve(proc)
    assert (session.id, session.cwd, session.status, session.name, session.version) == (
        ID,
        None,
        None,
        None,
        None,
    )


def test_a_name_that_was_cut_in_a_character_is_mended(proc, put, home):
    put()
    claude_record(home, 601).write_text(f'{{"sessionId":"{ID}","procStart":"6010","name":"a\\ud83d"}}')
    assert resolve(proc).name == "a\ufffd"


def test_bytes_that_are_not_utf8_are_mended(proc, put, home):
    put()
    claude_record(home, 601).write_bytes(
        b'{"sessionId":"%b","procStart":"6010","name":"a\xff"}' % ID.encode()
    )
    assert resolve(proc).name == "a\ufffd"


@pytest.mark.parametrize(
    "id_",
    ["../../etc/passwd", "..", ".", "", "a/b", "/etc/passwd", "a\0b", "x" * 4000, "\ud800", "a b", 7, None],
)
def test_a_session_id_that_is_no_plain_name_leads_nowhere(proc, put, home, id_):
    put()
    claude_transcript(home, "-srv-demo", ID, "user")
    claude_record(home, 601, sessionId=id_, procStart="6010", status="idle")
    session = resolve(proc)
    assert (session.via, session.id, session.sources, session.status) == ("none", None, (), "idle")


@pytest.mark.parametrize("kind", ["fifo", "symlink", "directory", "loop"])
def test_what_is_no_plain_file_is_no_record(proc, put, home, tmp_path, kind):
    put()
    path = home / "sessions" / "601.json"
    path.parent.mkdir(parents=True)
    (tmp_path / "good.json").write_text(json.dumps({"sessionId": ID, "procStart": "6010"}))
    make = {
        "fifo": lambda: os.mkfifo(path),
        "symlink": lambda: path.symlink_to(tmp_path / "good.json"),
        "directory": path.mkdir,
        "loop": lambda: path.symlink_to(path),
    }
    make[kind]()
    assert resolve(proc).via == "none"


# The home


def test_the_process_s_own_variable_says_where_its_home_is(proc, put, home, tmp_path):
    work = tmp_path / "work"
    put(environ={"HOME": str(home.parent), "CLAUDE_CONFIG_DIR": str(work)})
    claude_record(home, 601, sessionId=OTHER, procStart="6010")
    claude_record(work, 601, sessionId=ID, procStart="6010")
    assert resolve(proc).id == ID


def test_an_empty_variable_counts_for_nothing(proc, put, home):
    put(environ={"HOME": str(home.parent), "CLAUDE_CONFIG_DIR": ""})
    claude_record(home, 601, sessionId=ID, procStart="6010")
    assert resolve(proc).id == ID


def test_a_relative_variable_counts_from_the_process_s_directory(proc, home, tmp_path):
    proc.put(
        601, "claude", ["claude"], start=6010, cwd=str(tmp_path), environ={"CLAUDE_CONFIG_DIR": "u/.claude/"}
    )
    claude_record(home, 601, sessionId=ID, procStart="6010")
    assert resolve(proc).id == ID


def test_a_given_root_goes_before_the_process_s_home_and_after_its_variable(proc, put, home, tmp_path):
    given, own = tmp_path / "given", tmp_path / "own"
    put(environ={"HOME": str(home.parent)})
    put(602, 6020, environ={"HOME": str(home.parent), "CLAUDE_CONFIG_DIR": str(own)})
    for where, id_ in ((home, OTHER), (given, ID), (own, "own")):
        claude_record(where, 601, sessionId=id_, procStart="6010")
        claude_record(where, 602, sessionId=id_, procStart="6020")
    resolver = Resolver(str(proc.root), {"claude": str(given)})
    found = {agent.pid: resolver.session(agent).id for agent in resolver.agents("claude")}
    assert found == {601: ID, 602: "own"}


def test_where_the_environment_is_refused_our_own_home_serves(proc, put, home, monkeypatch):
    put()
    proc.refuse(601)
    monkeypatch.setenv("HOME", str(home.parent))
    claude_record(home, 601, sessionId=ID, procStart="6010", cwd="/srv/said")
    resolver = Resolver(str(proc.root))
    agent = resolver.agent("claude", 601)
    assert (resolver.session(agent).id, resolver.cwd(agent)) == (ID, "/srv/said")


def test_a_home_that_is_a_symlink_is_followed_once(proc, put, home, tmp_path):
    put()
    claude_record(tmp_path / "real", 601, sessionId=ID, procStart="6010")
    transcript = claude_transcript(tmp_path / "real", "-srv-demo", ID, "user")
    home.parent.mkdir()
    home.symlink_to(tmp_path / "real")
    (source,) = resolve(proc).sources
    assert source.root.read(source.path, 1 << 16) == transcript.read_bytes()


@pytest.mark.parametrize("value", ["/nowhere", "relative/nowhere", "/x" * 30000, "/dev/null", "/\udcff"])
def test_a_home_that_is_none_costs_this_agent_only(proc, put, value):
    put(environ={"CLAUDE_CONFIG_DIR": value})
    assert resolve(proc).via == "none"


# The transcript


def test_a_session_without_a_file_has_no_sources(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    session = resolve(proc)
    assert (session.via, session.id, session.sources) == ("registry", ID, ())


def test_a_stub_in_the_directory_of_the_worktree_is_not_the_chat(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010", cwd="/w")
    claude_transcript(home, "-w", ID, *["permission-mode"] * 50)
    chat = claude_transcript(home, "-repo", ID, "user")
    assert transcripts(resolve(proc)) == [str(chat)]


WORKTREE = "/srv/repo/.worktrees/b"


@pytest.fixture
def two(put, home):
    """A session with a large old file, and a small one in the worktree, and a record."""

    def two(**record):
        put(cwd=WORKTREE)
        claude_record(home, 601, sessionId=ID, procStart="6010", **record)
        old = claude_transcript(home, "-srv-repo", ID, "user", *["assistant"] * 99)
        new = claude_transcript(home, "-srv-repo--worktrees-b", ID, "user")
        return old, new

    return two


@pytest.mark.parametrize("record", [{"cwd": WORKTREE}, {}, {"cwd": "/nowhere"}])
def test_the_file_in_the_directory_named_after_the_cwd_is_the_one(proc, two, record):
    old, new = two(**record)
    os.utime(new, (1000, 1000))
    assert transcripts(resolve(proc)) == [str(new)]
    assert old.stat().st_size > new.stat().st_size


def test_what_the_record_says_goes_before_the_process_s_cwd(proc, two):
    old, _ = two(cwd="/srv/repo")
    os.utime(old, (1000, 1000))
    assert transcripts(resolve(proc)) == [str(old)]


def test_a_file_that_comes_in_the_cwd_s_directory_is_the_one_from_its_first_message(proc, two, home):
    old, new = two()
    new.unlink()
    resolver = Resolver(str(proc.root))
    agent = resolver.agent("claude", 601)
    assert transcripts(resolver.session(agent)) == [str(old)]
    claude_transcript(home, "-srv-repo--worktrees-b", ID, "mode")
    assert transcripts(resolver.session(agent)) == [str(old)]
    claude_transcript(home, "-srv-repo--worktrees-b", ID, "mode", "user")
    assert transcripts(resolver.session(agent)) == [str(new)]
    new.unlink()
    assert transcripts(resolver.session(agent)) == [str(old)]


def test_in_no_directory_of_its_own_the_one_written_last_counts(proc, put, home):
    put(cwd="/srv/elsewhere")
    claude_record(home, 601, sessionId=ID, procStart="6010")
    resolver = Resolver(str(proc.root))
    large = claude_transcript(home, "-a", ID, "user", "assistant")
    small = claude_transcript(home, "-b", ID, "user")
    agent = resolver.agent("claude", 601)
    for newer, older in ((small, large), (large, small)):
        os.utime(older, (1000, 1000))
        os.utime(newer, (2000, 2000))
        assert transcripts(resolver.session(agent)) == [str(newer)]


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/srv/repo/.worktrees/b", "-srv-repo--worktrees-b"),
        ("/srv/a b_c@d", "-srv-a-b-c-d"),
        ("/srv/\u00e9\U0001f600", "-srv----"),
    ],
)
def test_a_directory_is_named_after_a_cwd(cwd, name):
    assert places.directory_name(cwd) == name


def test_the_name_of_a_long_cwd_is_cut(proc, put, home):
    cwd = "/srv/" + "x" * 300
    put(cwd=cwd)
    claude_record(home, 601, sessionId=ID, procStart="6010")
    mine = claude_transcript(home, f"-srv-{'x' * 195}-1a2b3c", ID, "user")
    os.utime(mine, (1000, 1000))
    claude_transcript(home, "-a", ID, "user", "assistant")
    assert transcripts(resolve(proc)) == [str(mine)]


def test_of_two_of_one_size_the_newer_counts(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    for project, seconds in (("-a", 1000), ("-b", 3000), ("-c", 2000)):
        os.utime(claude_transcript(home, project, ID, "user"), (seconds, seconds))
    assert transcripts(resolve(proc)) == [str(home / "projects" / "-b" / f"{ID}.jsonl")]


def test_a_word_of_a_message_inside_another_record_makes_no_message(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    progress = {"type": "progress", "data": {"message": {"type": "user"}, "pad": "x" * 5000}}
    claude_transcript(home, "-a", ID).write_text(json.dumps(progress) + "\n")
    chat = claude_transcript(home, "-b", ID, "user")
    assert transcripts(resolve(proc)) == [str(chat)]


def test_a_first_message_that_is_longer_than_the_look_counts(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    chat = claude_transcript(home, "-a", ID, "user", text="x" * 400_000)
    claude_transcript(home, "-b", ID, *["mode"] * 20_000)
    assert transcripts(resolve(proc)) == [str(chat)]


def test_files_deeper_down_are_not_the_session_s(proc, put, home):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    claude_transcript(home, f"-a/{OTHER}/subagents", ID, "user")
    assert resolve(proc).sources == ()


@pytest.mark.parametrize("kind", ["fifo", "symlink", "directory", "project"])
def test_what_is_no_plain_file_is_no_transcript(proc, put, home, tmp_path, kind):
    put()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    outside = claude_transcript(tmp_path / "outside", "-a", ID, "user")
    path = home / "projects" / "-a" / f"{ID}.jsonl"
    if kind == "project":
        (home / "projects").mkdir()
        (home / "projects" / "-a").symlink_to(outside.parent)
    else:
        path.parent.mkdir(parents=True)
        make = {"fifo": os.mkfifo, "symlink": lambda path: path.symlink_to(outside), "directory": os.mkdir}
        make[kind](path)
    assert resolve(proc).sources == ()


def test_clear_moves_to_the_new_session(proc, put, home):
    put()
    resolver = Resolver(str(proc.root))
    claude_transcript(home, "-a", ID, "user")
    claude_record(home, 601, sessionId=ID, procStart="6010")
    agent = resolver.agent("claude", 601)
    assert resolver.session(agent).sources
    claude_record(home, 601, sessionId=OTHER, procStart="6010")
    assert (resolver.session(agent).id, resolver.session(agent).sources) == (OTHER, ())
    chat = claude_transcript(home, "-a", OTHER, "user")
    assert transcripts(resolver.session(agent)) == [str(chat)]


@pytest.mark.usefixtures("counts_looks")
def test_the_place_is_remembered_until_it_is_gone(proc, put, home, monkeypatch):
    put()
    resolver = Resolver(str(proc.root))
    first = claude_transcript(home, "-a", ID, "user")
    (home / "projects" / "-b").mkdir()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    searches = []
    real = Root.directories_with
    monkeypatch.setattr(Root, "directories_with", lambda *args: searches.append(args) or real(*args))
    monkeypatch.setattr(places, "_SETTLED_NS", -(10**18))
    agent = resolver.agent("claude", 601)
    for _ in range(3):
        assert transcripts(resolver.session(agent)) == [str(first)]
    assert len(searches) == 1
    moved = Path(first.rename(home / "projects" / "-b" / first.name))
    assert transcripts(resolver.session(agent)) == [str(moved)]


def test_a_file_in_a_directory_that_is_there_is_seen_when_it_speaks(proc, put, home):
    put()
    resolver = Resolver(str(proc.root))
    first = claude_transcript(home, "-a", ID, "user")
    os.utime(first, (1000, 1000))
    (home / "projects" / "-b").mkdir()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    agent = resolver.agent("claude", 601)
    later = claude_transcript(home, "-b", ID)
    assert transcripts(resolver.session(agent)) == [str(first)]
    claude_transcript(home, "-b", ID, "user")
    assert transcripts(resolver.session(agent)) == [str(later)]


def test_a_new_project_directory_is_looked_at(proc, put, home):
    put()
    resolver = Resolver(str(proc.root))
    claude_transcript(home, "-a", ID, "user")
    os.utime(home / "projects", (1000, 1000))
    claude_record(home, 601, sessionId=ID, procStart="6010")
    agent = resolver.agent("claude", 601)
    resolver.session(agent)
    larger = claude_transcript(home, "-b", ID, "user", "assistant")
    assert transcripts(resolver.session(agent)) == [str(larger)]


def test_a_stub_found_first_gives_way_to_the_chat(proc, put, home):
    put()
    resolver = Resolver(str(proc.root))
    stub = claude_transcript(home, "-a", ID, "mode")
    (home / "projects" / "-b").mkdir()
    claude_record(home, 601, sessionId=ID, procStart="6010")
    agent = resolver.agent("claude", 601)
    assert transcripts(resolver.session(agent)) == [str(stub)]
    chat = claude_transcript(home, "-b", ID, "user")
    assert transcripts(resolver.session(agent)) == [str(chat)]


def test_one_session_on_two_pids_is_both_s(proc, put, home):
    put()
    put(602, 6020)
    claude_record(home, 601, sessionId=ID, procStart="6010")
    claude_record(home, 602, sessionId=ID, procStart="6020")
    claude_transcript(home, "-a", ID, "user")
    assert resolve(proc).sources == resolve(proc, 602).sources != ()
