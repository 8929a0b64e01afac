"""The chats of hermes: rows of a database that its writer has open."""

import json
import os
import sqlite3
import threading
from contextlib import suppress

import pytest

from agents9core.chat import row_transcript
from agents9core.errors import Gone, NotFound, TreeError
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.support.fakeproc import started_ms
from tests.support.fakestore import HermesHome, hermes_registry

A, B, C = "20261129_155504_8bc98b", "20261129_160000_0a0b0c", "20261129_170000_0a0b0d"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted"

pytestmark = pytest.mark.usefixtures("every_look_is_fresh")


@pytest.fixture
def home(tmp_path):
    home = HermesHome(tmp_path / "u" / ".hermes")
    yield home
    home.db.close()


@pytest.fixture
def open_tree(tmp_path, home):
    return lambda: build_tree(Resolver(str(tmp_path / "proc"), roots={"hermes": str(home.path)}))


@pytest.fixture
def tree(proc, open_tree):
    return open_tree()


def at(tree, *names):
    node = tree
    for name in names:
        node = node.walk(name)
    return node


def whole(node, step=50_000):
    reader, out = node.open(), b""
    while data := reader.read(len(out), step):
        out += data
    assert len(out) == node.stat().length
    return out


def said(tree, id_=A):
    chat = at(tree, "sessions", "hermes", id_, "chat")
    return [(row.name[9:], whole(chat.walk(row.name)).decode().rstrip("\n")) for row in chat.members()]


def call(name="terminal", arguments='{"command":"ls"}', id_="c1"):
    return json.dumps([{"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}])


# What a row says


def test_the_columns_of_a_row_are_its_messages(tree, home):
    home.session(A)
    home.row(A, "user", "q")
    home.row(A, "assistant", "Calling it.", tool_calls=call(), reasoning="hm", reasoning_content="hm")
    home.row(A, "tool", '{"output": "x"}', tool_call_id="c1", tool_name="terminal")
    home.row(A, "session_meta", "{}")
    assert said(tree) == [
        ("user", "q"),
        ("thinking", "hm"),
        ("assistant", "Calling it."),
        ("terminal", 'terminal\n{"command":"ls"}'),
        ("terminal-result", '{"output": "x"}'),
    ]


def test_reasoning_counts_where_there_is_no_reasoning_content(tree, home):
    home.session(A)
    home.row(A, "assistant", "a", reasoning="old way", reasoning_content="")
    assert said(tree) == [("thinking", "old way"), ("assistant", "a")]


@pytest.mark.parametrize(
    "text",
    [
        "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\nx",
        "[ASYNC DELEGATION COMPLETE — deleg_1]",
        SUMMARY,
        "[CONTEXT SUMMARY]: so far",
        "[System: Your previous tool call was cut off]",
        "[Your active task list was preserved across context compression]\n- x",
        "[IMPORTANT: Background process p1 exited]",
    ],
)
def test_what_the_program_says_in_the_users_role_is_system(tree, home, text):
    home.session(A)
    home.row(A, "user", text)
    assert said(tree) == [("system", text)]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_summary_is_the_programs_in_whichever_role_it_stands(tree, home, role):
    home.session(A)
    home.row(A, "user", "one")
    home.compress(A, [("user", "one"), (role, SUMMARY)])
    assert said(tree) == [("user", "one"), ("system", SUMMARY)]


def test_a_bracket_does_not_make_the_program_speak(tree, home):
    home.session(A)
    home.row(A, "user", "[CONTEXT] is what I mean")
    assert said(tree) == [("user", "[CONTEXT] is what I mean")]


def test_a_content_of_parts_shows_them_and_no_base64(tree, home):
    home.session(A)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    home.row(A, "user", "\0json:" + json.dumps([{"type": "text", "text": "see"}, image]))
    assert said(tree) == [("user", "see\n[image]")]


@pytest.mark.parametrize("calls", ["no json", "{}", '[1, null, {"function": 3}]', "[" * 5000])
def test_damaged_calls_cost_themselves_only(tree, home, calls):
    home.session(A)
    home.row(A, "assistant", "text", tool_calls=calls)
    assert said(tree)[0] == ("assistant", "text")


@pytest.mark.parametrize("content", [7, 1.5, None, b"\xff\0blob"])
def test_a_content_of_another_type_stops_nothing(tree, home, content):
    home.session(A)
    home.row(A, "user", content)
    home.row(A, "user", "next")
    assert said(tree)[-1] == ("user", "next")


def test_bytes_that_are_no_utf_8_are_replaced(tree, home):
    home.session(A)
    home.db.execute(
        "insert into messages (session_id, role, content, timestamp) values (?, 'user', cast(? as text), 1)",
        (A, b"a\xffb"),
    )
    assert said(tree) == [("user", "a\ufffdb")]


def test_the_time_of_a_message_is_its_rows(tree, home):
    home.session(A)
    home.row(A, "user", "q", timestamp=1796081593.3801413)
    (row,) = at(tree, "sessions", "hermes", A, "chat").members()
    assert abs(row.stat.mtime_ns - 1796081593_380141300) < 2000


@pytest.mark.parametrize("time", [1e30, -1e30, float("inf"), "soon"])
def test_a_time_that_is_none_is_that_of_the_message_before(tree, home, time):
    home.session(A)
    home.row(A, "user", "q", timestamp=1000)
    home.row(A, "user", "r", timestamp=time)
    rows = at(tree, "sessions", "hermes", A, "chat").members()
    assert [row.stat.mtime_ns for row in rows] == [1000 * 10**9] * 2


# Which rows


def test_every_row_is_read_from_the_wal_though_the_database_has_none(tree, home):
    home.session(A)
    home.row(A, "user", "q")
    assert os.path.getsize(home.path / "state.db") == 4096
    assert said(tree) == [("user", "q")]


def test_rewound_and_compacted_rows_stay_in_the_order_of_their_ids(tree, home):
    home.session(A)
    home.row(A, "user", "undone", active=0, timestamp=30)
    home.row(A, "user", "old", active=0, compacted=1, timestamp=20)
    home.row(A, "user", "new", timestamp=10)
    assert said(tree) == [("user", "undone"), ("user", "old"), ("user", "new")]


def test_rows_of_other_sessions_make_gaps_in_the_ids_of_rows_only(tree, home):
    for id_ in (A, B):
        home.session(id_)
    for number in range(3):
        home.row(A, "user", f"a{number}")
        home.row(B, "user", f"b{number}")
    rows = at(tree, "sessions", "hermes", B, "chat").members()
    assert [row.name for row in rows] == ["00000000-user", "00000001-user", "00000002-user"]
    assert said(tree, B) == [("user", f"b{number}") for number in range(3)]


@pytest.fixture
def compressed(home):
    home.session(A)
    for role, content in (("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")):
        home.row(A, role, content)
    home.compress(A, [("user", "one"), ("user", SUMMARY), ("user", "three"), ("assistant", "four")])


ONCE = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"), ("system", SUMMARY)]


def test_what_compress_inserts_again_is_not_said_twice(compressed, tree, home):
    home.row(A, "user", "one")
    assert said(tree) == [*ONCE, ("user", "one")]


def test_what_compress_inserts_changed_is_said(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    home.row(A, "tool", "long")
    home.compress(A, [("user", "one"), ("user", SUMMARY), ("tool", "[pruned]")])
    assert [text for _, text in said(tree)] == ["one", "long", SUMMARY, "[pruned]"]


def test_a_message_is_no_copy_for_being_equal(tree, home):
    home.session(A)
    home.row(A, "user", "go on")
    home.compress(A, [("user", SUMMARY)])
    home.row(A, "user", "go on")
    home.row(A, "user", "go on", timestamp=home.clock)
    assert [text for _, text in said(tree)] == ["go on", SUMMARY, "go on", "go on"]


def test_an_equal_text_with_other_calls_is_no_copy(tree, home):
    home.session(A)
    home.row(A, "assistant", "x", tool_calls=call("terminal"))
    home.compress(A, [("user", SUMMARY), ("assistant", "x")])
    assert [kind for kind, _ in said(tree)] == ["assistant", "terminal", "system", "assistant"]


def test_a_row_that_was_taken_back_makes_no_copy(tree, home):
    home.session(A)
    home.row(A, "user", "one", active=0)
    home.row(A, "user", "two")
    home.compress(A, [("user", SUMMARY), ("user", "one")])
    assert [text for _, text in said(tree)] == ["one", "two", SUMMARY, "one"]


def test_a_second_compress_moves_no_id_whether_the_index_is_new_or_not(compressed, tree, home, open_tree):
    before = said(tree)
    home.row(A, "user", "five")
    home.compress(A, [("user", "one"), ("user", SUMMARY + " again"), ("user", "five")])
    after = [*before, ("user", "five"), ("system", SUMMARY + " again")]
    assert said(tree) == after
    assert said(open_tree()) == after


# Conversations, and subagents


def test_a_session_that_continues_another_has_its_messages_before(tree, home):
    home.session(A, end_reason="compression", ended_at=2.0, title="The work")
    home.session(B, parent_session_id=A, started_at=home.clock + 5)
    home.row(A, "user", "one")
    home.row(B, "user", "two")
    listed = [row.name for row in at(tree, "sessions", "hermes").members()]
    assert listed == [B]
    assert said(tree, B) == said(tree, A) == [("user", "one"), ("user", "two")]
    assert whole(at(tree, "sessions", "hermes", B, "title")) == b"The work\n"


def test_what_a_continuation_repeats_of_the_session_before_is_not_said_twice(tree, home):
    home.session(A, end_reason="compression", ended_at=2.0)
    home.session(B, parent_session_id=A)
    home.row(A, "user", "one")
    home.row(A, "assistant", "two")
    home.compress(B, [("user", "one"), ("user", SUMMARY), ("assistant", "two")])
    assert said(tree, B) == [("user", "one"), ("assistant", "two"), ("system", SUMMARY)]


def test_a_branch_and_its_origin_are_two(tree, home):
    home.session(A, end_reason="branched", ended_at=2.0)
    home.session(B, parent_session_id=A, model_config=json.dumps({"_branched_from": A}))
    home.row(A, "user", "one")
    home.row(B, "user", "two")
    assert [row.name for row in at(tree, "sessions", "hermes").members()] == [A, B]
    assert said(tree, B) == [("user", "two")]


def test_sessions_that_continue_each_other_in_a_circle_end(tree, home):
    home.session(A, end_reason="compression", parent_session_id=B)
    home.session(B, end_reason="compression", parent_session_id=A)
    home.row(A, "user", "one")
    assert said(tree, A) == [("user", "one")]


def test_a_subagents_session_is_below_the_one_that_started_it(tree, home):
    home.session(A)
    home.session(B, source="subagent", parent_session_id=A, model="small",
                 model_config=json.dumps({"_delegate_from": A}))  # fmt: skip
    home.row(A, "user", "one")
    home.row(B, "user", "the task")
    assert [row.name for row in at(tree, "sessions", "hermes").members()] == [A]
    agent = at(tree, "sessions", "hermes", A, "agents", B)
    assert [row.name for row in agent.members()] == ["model", "chat", "chat.md"]
    assert [row.name for row in agent.walk("chat").members()] == ["00000000-user"]


def test_facts_of_a_session_come_from_its_row(tree, home):
    home.session(A, title="T\n\x1b[31m", model="m", cwd="/srv/x", started_at=1000.0)
    home.row(A, "user", "q")
    entry = at(tree, "sessions", "hermes", A)
    assert [row.name for row in entry.members()] == ["cwd", "title", "model", "started", "chat", "chat.md"]
    assert whole(entry.walk("title")) == "T\ufffd\ufffd[31m\n".encode()
    assert whole(entry.walk("started")) == b"1970-01-01T00:16:40Z\n"


def test_a_listing_shows_when_each_session_last_spoke(tree, home):
    home.session(A)
    home.session(B)
    home.row(A, "user", "q", timestamp=1000.0)
    home.row(B, "user", "q", timestamp=2000.0)
    rows = at(tree, "sessions", "hermes").members()
    assert [row.stat.mtime_ns for row in rows] == [1000 * 10**9, 2000 * 10**9]
    assert [at(tree, "sessions", "hermes", row.name).stat() for row in rows] == [row.stat for row in rows]


# Growth, and what is replaced


def test_what_is_written_is_seen_by_the_next_look_and_no_id_moves(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    chat = at(tree, "sessions", "hermes", A, "chat")
    before = list(chat.members())
    home.row(A, "assistant", "two")
    after = list(chat.members())
    assert [row.name for row in after] == ["00000000-user", "00000001-assistant"]
    assert after[:1] == before


def test_a_checkpoint_changes_nothing(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    chat = at(tree, "sessions", "hermes", A, "chat")
    message, before = chat.walk("00000000-user"), list(chat.members())
    assert home.db.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
    assert list(chat.members()) == before
    assert whole(message) == b"one\n"


def test_the_writer_is_never_locked_and_its_files_stay_as_they_are(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    files = {name: (home.path / name).read_bytes() for name in ("state.db", "state.db-wal")}
    message = at(tree, "sessions", "hermes", A, "chat", "00000000-user").open()
    assert message.read(0, 2) == b"on"
    assert {name: (home.path / name).read_bytes() for name in files} == files
    home.db.execute("pragma busy_timeout = 0")
    home.db.execute("begin exclusive")
    home.db.execute("commit")
    assert home.db.execute("pragma wal_checkpoint(truncate)").fetchone() == (0, 0, 0)


def test_the_writers_uncommitted_rows_are_not_shown(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    home.db.execute("begin immediate")
    home.row(A, "user", "two")
    assert said(tree) == [("user", "one")]
    home.db.execute("rollback")
    assert said(tree) == [("user", "one")]


@pytest.mark.parametrize(
    "change",
    [
        "delete from messages where id = 1",
        "delete from messages where id = 2",
        "delete from messages",
        "update messages set content = 'eno' where id = 1",
        "update messages set session_id = 'other' where id = 2",
    ],
)
def test_a_row_that_goes_or_is_rewritten_ends_the_transcript(tree, home, change):
    home.session(A)
    for text in ("one", "two", "six"):
        home.row(A, "user", text)
    chat = at(tree, "sessions", "hermes", A, "chat")
    message = chat.walk("00000000-user")
    home.db.execute(change)
    with pytest.raises(Gone):
        chat.members()
    with pytest.raises(Gone):
        message.stat()
    left = home.db.execute("select content from messages where session_id = ?", (A,)).fetchall()
    assert [text for _, text in said(tree)] == [text for (text,) in left]


def test_a_row_in_the_midst_that_is_rewritten_is_never_served_as_the_old_one(tree, home):
    home.session(A)
    for text in ("one", "two", "six"):
        home.row(A, "user", text)
    message = at(tree, "sessions", "hermes", A, "chat").walk("00000001-user")
    home.db.execute("update messages set content = 'owt' where id = 2")
    with pytest.raises(Gone):
        message.open().read(0, 10)


def test_marks_that_move_on_a_row_leave_it_the_same(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    chat = at(tree, "sessions", "hermes", A, "chat")
    before = list(chat.members())
    home.db.execute("update messages set active = 0, compacted = 1")
    assert list(chat.members()) == before


def test_another_database_in_its_place_is_another_transcript(tree, home, tmp_path):
    home.session(A)
    home.row(A, "user", "one")
    message = at(tree, "sessions", "hermes", A, "chat", "00000000-user")
    other = HermesHome(tmp_path / "other")
    other.session(A)
    other.row(A, "user", "one")
    other.db.close()
    home.db.close()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (home.path / name).unlink(missing_ok=True)
    os.rename(tmp_path / "other" / "state.db", home.path / "state.db")
    with pytest.raises(Gone):
        message.stat()
    assert said(tree) == [("user", "one")]


def test_who_follows_a_chat_is_woken_by_the_wal(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    woken = threading.Event()
    end = at(tree, "sessions", "hermes", A, "chat").watch(woken.set)
    woken.clear()
    home.row(A, "user", "two")
    assert woken.wait(10)
    end()


# Long messages


@pytest.mark.parametrize("text", ['é\\n"x' * 400_000, "a" * 3_000_000, "\n## 00000001-user\n" * 90_000])
def test_a_long_message_is_read_piece_by_piece_from_anywhere(tree, home, text):
    home.session(A)
    home.row(A, "assistant", text, reasoning=text, tool_calls=call(arguments=json.dumps({"x": text})))
    chat = at(tree, "sessions", "hermes", A, "chat")
    wanted = (text if text.endswith("\n") else text + "\n").encode()
    assert whole(chat.walk("00000000-thinking")) == wanted
    assert whole(chat.walk("00000001-assistant"), 1_000_000) == wanted
    assert whole(chat.walk("00000002-terminal")) == b"terminal\n" + json.dumps({"x": text}).encode() + b"\n"
    reader = chat.walk("00000001-assistant").open()
    for offset in (1_500_001, 7, 999_999, len(wanted) - 3):
        data = reader.read(offset, 100)
        assert data
        assert wanted[offset : offset + 100].startswith(data)
    whole(at(tree, "sessions", "hermes", A, "chat.md"), 1_000_000)


def test_a_long_row_that_is_cut_while_it_is_read_is_gone(tree, home):
    home.session(A)
    for _ in range(3):
        home.row(A, "assistant", "a" * 3_000_000)
    reader = at(tree, "sessions", "hermes", A, "chat", "00000001-assistant").open()
    reader.read(0, 10)
    home.db.execute("update messages set content = 'short' where id = 2")
    with pytest.raises(Gone):
        reader.read(2_500_000, 10)


# Agents


@pytest.fixture
def agent(proc, home):
    hermes_registry(home.path, {"pid": 901, "session_id": A, "process_start_time": started_ms(8000) / 1000})
    proc.put(
        901, "hermes", ["hermes"], start=8000, cwd="/srv/demo",
        environ={"HOME": str(home.path.parent)}, fds={5: str(home.path / "state.db")},
    )  # fmt: skip
    return 901


def test_a_running_hermes_has_its_chat_title_and_model(agent, tree, home):
    home.session(A, title="T", model="m")
    home.row(A, "user", "q")
    entry = at(tree, "active", "hermes", "901")
    names = [row.name for row in entry.members()]
    assert names == ["via", "session", "cwd", "title", "status", "model", "started", "chat", "chat.md"]
    assert [row.name for row in entry.walk("chat").members()] == ["00000000-user"]


def test_a_session_without_a_row_yet_has_an_empty_chat(agent, tree, home):
    entry = at(tree, "active", "hermes", "901")
    assert list(entry.walk("chat").members()) == []
    home.session(A)
    home.row(A, "user", "q")
    assert [row.name for row in entry.walk("chat").members()] == ["00000000-user"]


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([("user", "q", {})], b"busy\n"),
        ([("user", "q", {}), ("assistant", "a", {"finish_reason": "stop"})], b"idle\n"),
        ([("user", "q", {}), ("assistant", "", {"tool_calls": call()})], b"busy\n"),
        ([("assistant", "", {"tool_calls": call()}), ("tool", "x", {"tool_call_id": "c1"})], b"busy\n"),
        ([("tool", "x", {}), ("assistant", "Operation interrupted.", {})], b"idle\n"),
        ([("assistant", "a", {}), ("user", SUMMARY, {})], b"idle\n"),
    ],
)
def test_status_is_what_the_last_row_says(agent, tree, home, rows, status):
    home.session(A)
    home.clock = started_ms(8000) / 1000 + 10
    for role, content, more in rows:
        home.row(A, role, content, **more)
    assert whole(at(tree, "active", "hermes", "901", "status")) == status


def test_a_turn_that_was_cut_off_before_the_process_began_shows_no_busy(agent, tree, home):
    home.session(A)
    home.row(A, "user", "q", timestamp=started_ms(8000) / 1000 - 10)
    assert "status" not in [row.name for row in at(tree, "active", "hermes", "901").members()]


# Databases that nobody promised anything of


def spoiled(home, sql):
    home.db.close()
    (home.path / "state.db").unlink()
    home.__init__(home.path, sql)


LOOP = "with recursive n(x) as (select 1 union all select x + 1 from n) select x"


@pytest.mark.parametrize(
    "sql",
    [
        "create table other (x)",
        f"create view sessions as {LOOP} as id, 1 as started_at from n;",
        f"create table sessions (id text, started_at real); create view messages as {LOOP} as id from n;",
        "create virtual table sessions using fts5(id, started_at);",
        "create table sessions (id, started_at); create table messages (id integer primary key, x);",
    ],
)
def test_a_database_of_other_tables_has_no_sessions(tree, home, sql):
    spoiled(home, sql)
    with suppress(TreeError):
        assert list(at(tree, "sessions", "hermes").members()) == []
    with pytest.raises((NotFound, TreeError)):
        said(tree)


def test_a_view_in_the_place_of_messages_is_not_run(tree, home):
    spoiled(
        home,
        "create table sessions (id text, started_at real);"
        f"create view messages as {LOOP} as id, 'x' as session_id, 1 as timestamp, '' as role,"
        " '' as content from n;",
    )
    home.db.execute("insert into sessions values (?, 1)", (A,))
    with pytest.raises(TreeError):
        said(tree)


def test_a_question_without_an_end_is_given_up(tree, home, monkeypatch):
    monkeypatch.setattr("agents9core.files.database.QUESTION_SECONDS", 0.0)
    home.session(A)
    home.db.execute("begin")
    home.db.executemany(
        "insert into messages (session_id, role, content, timestamp) values (?, 'user', 'x', ?)",
        ((A, number) for number in range(30_000)),
    )
    home.db.execute("commit")
    with pytest.raises(TreeError):
        said(tree)


def test_a_damaged_page_stops_nobody_else(tree, home, tmp_path):
    home.session(A)
    for number in range(50):
        home.row(A, "user", f"{number}" + "x" * 3000)
    home.db.execute("pragma wal_checkpoint(truncate)")
    home.db.close()
    data = bytearray((home.path / "state.db").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = b"\xff" * 8192
    (home.path / "state.db").write_bytes(data)
    with suppress(TreeError):
        said(tree)
    assert [row.name for row in at(tree, "sessions", "codex").members()] == []


@pytest.mark.parametrize("data", [b"", b"no database at all" * 1000, b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_database_has_no_sessions(tree, home, data):
    home.db.close()
    for name in ("state.db-wal", "state.db-shm"):
        (home.path / name).unlink(missing_ok=True)
    (home.path / "state.db").write_bytes(data)
    with suppress(TreeError):
        assert list(at(tree, "sessions", "hermes").members()) == []


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory"])
def test_nothing_else_in_the_place_of_a_file_is_opened(tree, home, tmp_path, name, kind):
    home.session(A)
    home.row(A, "user", "secret of another place")
    home.db.execute("pragma wal_checkpoint(truncate)")
    home.db.close()
    for gone in ("state.db-wal", "state.db-shm"):
        (home.path / gone).unlink(missing_ok=True)
    path = home.path / name
    if path.exists():
        os.rename(path, tmp_path / name)
    if kind == "symlink":
        path.symlink_to(tmp_path / name)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with suppress(TreeError):
        assert list(at(tree, "sessions", "hermes").members()) == []


def test_a_row_with_an_id_that_no_place_can_hold_is_skipped(tree, home):
    home.session(A)
    home.row(A, "user", "one")
    home.row(A, "user", "far", id=1 << 62)
    home.row(A, "user", "before", id=-5)
    assert said(tree) == [("user", "one")]


def test_a_row_that_is_too_large_is_skipped(tree, home, monkeypatch):
    monkeypatch.setattr("agents9core.files.database.LONGEST", 100_000)
    home.session(A)
    home.row(A, "user", "one")
    home.row(A, "user", "x" * 200_000)
    home.row(A, "user", "two")
    assert said(tree) == [("user", "one"), ("user", "two")]
    home.row(A, "user", "three")
    assert said(tree) == [("user", "one"), ("user", "two"), ("user", "three")]


def test_a_database_in_utf_16_is_refused(tree, home):
    home.db.close()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (home.path / name).unlink(missing_ok=True)
    with sqlite3.connect(home.path / "state.db") as db:
        db.execute("pragma encoding = 'UTF-16'")
        db.executescript(HermesHome.SCHEMA)
    db.close()
    assert list(at(tree, "sessions", "hermes").members()) == []


@pytest.mark.parametrize("id_", ["..", "x/y", "", "a" * 300, "\ud800", "'; drop table messages; --"])
def test_a_name_that_is_no_id_is_not_found(tree, home, id_):
    home.session(A)
    with pytest.raises(NotFound):
        at(tree, "sessions", "hermes", id_)


def test_more_messages_than_an_index_holds_say_so(tree, home, monkeypatch):
    monkeypatch.setattr(row_transcript, "CAP", 10)
    monkeypatch.setattr("agents9core.chat.index.CAP", 10)
    home.session(A)
    for number in range(15):
        home.row(A, "user", f"{number}")
    chat = at(tree, "sessions", "hermes", A, "chat")
    with pytest.raises(TreeError):
        chat.members()
    assert whole(chat.walk("00000009-user")) == b"9\n"
