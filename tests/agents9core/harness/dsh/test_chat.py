"""The chats of dsh: records in compressed frames that are appended."""

import json
import os

import pytest
import zstandard

from agents9core.errors import Gone
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree

pytestmark = pytest.mark.usefixtures("every_look_is_fresh")

ID = "session-1"
HEADER = {"type": "session", "version": 4, "id": ID, "createdAt": 1783352050748, "cwd": "/srv/demo"}


def frame(*records, end="\n"):
    text = "\n".join(json.dumps(record) for record in records) + end
    return zstandard.compress(text.encode())


def user(text, kind="user", **more):
    content = [{"type": "text", "text": text}]
    data = {"role": "user", "content": content, "source": {"kind": kind}}
    return {"type": "user/message", "time": 1783352050749, "data": data, **more}


def assistant(*blocks):
    message = {"content": list(blocks), "source": {"kind": "model", "model": "small"}}
    return {"type": "assistant/message", "time": 1783352050753, "data": {"message": message}}


def text(words):
    return {"type": "text", "text": words}


def result(**message):
    return {"type": "tool/result", "time": 1783352050754, "data": {"message": message}}


CALL = {"type": "tool-call", "id": "c1", "name": "read", "arguments": '{"path": "x"}'}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".dsh" / "sessions" / "--srv-demo--" / ID / "session.v4.jsonl.zstd"
    path.parent.mkdir(parents=True)
    path.write_bytes(frame(HEADER))
    return path


@pytest.fixture
def entry(proc, tmp_path, path):
    tree = build_tree(Resolver(str(proc.root), roots={"dsh": str(tmp_path / ".dsh")}))
    return lambda: tree.walk("sessions").walk("dsh").walk(ID)


def append(path, *frames):
    with path.open("ab") as file:
        file.write(b"".join(frames))


def whole(node):
    reader, out = node.open(), b""
    while data := reader.read(len(out), 50_000):
        out += data
    assert len(out) == node.stat().length
    return out


def said(entry):
    chat = entry().walk("chat")
    return [(row.name[9:], whole(chat.walk(row.name)).decode().rstrip("\n")) for row in chat.members()]


def test_events_that_repeat_a_message_are_silent(entry, path):
    spliced = {"type": "agent/inbox/spliced", "data": {"inserted": [user("q")["data"]]}}
    chunk = {"type": "assistant/chunk", "data": {"chunk": {"type": "text-delta", "text": "DO"}}}
    packed = {"type": "text-chunks", "seq0": 2, "time0": 1, "data": {"texts": ["N", "E"]}}
    call = {"type": "tool/call", "data": {"name": "read"}}
    attempt = {"type": "assistant/attempt", "data": {"message": {"content": [text("no")]}}}
    append(path, frame(spliced, user("q"), chunk, packed, call, attempt), frame(assistant(text("DONE!"))))
    assert said(entry) == [("user", "q"), ("assistant", "DONE!")]


def test_the_blocks_of_an_answer_are_messages_in_their_order(entry, path):
    append(path, frame(assistant({"type": "reasoning", "text": "hm"}, text("I call."), CALL)))
    append(path, frame(result(role="tool", toolCallId="c1", isError=False, content=[text("body")])))
    assert said(entry) == [
        ("thinking", "hm"),
        ("assistant", "I call."),
        ("read", 'read\n{"path": "x"}'),
        ("read-result", "body"),
    ]


def test_up_to_format_3_a_result_is_a_block(entry, path):
    block = {"type": "tool-result", "toolCallId": "c1", "content": [text("body")], "isError": False}
    append(path, frame(assistant(CALL), result(role="user", content=[block])))
    assert said(entry)[1:] == [("read-result", "body")]


@pytest.mark.parametrize("kind", ["plugin", "runtime-context", "compact-checkpoint", "subagent-settled"])
def test_what_is_not_from_the_person_is_system(entry, path, kind):
    append(path, frame(user("words", kind)))
    assert said(entry) == [("system", "words")]


def test_what_a_compaction_replaces_stays(entry, path):
    summary = user("summary", "compact-checkpoint", surfaceOp={"op": "replace", "start": 0, "end": 1})
    append(path, frame(user("q"), assistant(text("a")), summary))
    assert said(entry) == [("user", "q"), ("assistant", "a"), ("system", "summary")]


def test_title_and_model_are_the_last_that_were_said(entry, path):
    titles = [{"type": "session/title", "data": {"title": one}} for one in ("first", "last")]
    header = {"type": "request/header", "data": {"header": {"config": {"provider": "p", "model": "large"}}}}
    append(path, frame(*titles, assistant(text("a")), header))
    assert whole(entry().walk("title")) == b"last\n"
    assert whole(entry().walk("model")) == b"large\n"


def test_the_transcript_is_the_inflated_lines(entry, path):
    append(path, frame(user("q"), user("r")), frame(user("s")))
    lines = [json.dumps(record) for record in (HEADER, user("q"), user("r"), user("s"))]
    assert whole(entry().walk("transcript")).decode() == "".join(f"{line}\n" for line in lines)


def test_a_torn_frame_waits_and_no_id_moves(entry, path):
    append(path, frame(user("q")))
    chat = entry().walk("chat")
    before = list(chat.members())
    torn = frame(*(user(f"{number}" + "x" * 1000) for number in range(50)))
    for at in range(0, len(torn), 97):
        assert list(chat.members()) == before
        append(path, torn[at : at + 97])
    assert len(chat.members()) == 51
    assert list(chat.members())[:1] == before


def test_records_of_a_frame_without_newlines_are_read(entry, path):
    glued = json.dumps(user("q")) + json.dumps(user("r"))
    append(path, zstandard.compress(glued.encode()), frame(user("s")))
    assert said(entry) == [("user", "q"), ("user", "r"), ("user", "s")]


def test_a_damaged_frame_hides_nothing_before_it(entry, path):
    append(path, frame(user("q")), b"no frame at all", frame(user("r")))
    assert said(entry) == [("user", "q")]


def test_a_transcript_that_is_written_anew_is_another(entry, path):
    append(path, frame(user("q")))
    message = entry().walk("chat").walk("00000000-user")
    path.write_bytes(frame(HEADER) + frame(user("another")))
    with pytest.raises(Gone):
        message.stat()
    assert said(entry) == [("user", "another")]


def test_a_bomb_costs_no_memory_of_its_size(entry, path):
    append(path, zstandard.compress(b" " * (200 << 20)), frame(user("q")))
    assert said(entry) == [("user", "q")]


def test_the_highest_format_counts_whatever_was_written_last(entry, path):
    old = path.with_name("session.jsonl")
    old.write_text(json.dumps(user("old")) + "\n")
    append(path, frame(user("new")))
    os.utime(path, (1, 1))
    assert said(entry) == [("user", "new")]
