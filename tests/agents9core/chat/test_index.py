"""The index: positions, sizes, kinds and times, the same however the file was fed."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import index as index_module
from agents9core.chat import render as render_module
from agents9core.chat.index import ChatIndex
from agents9core.chat.lines import LineScanner
from agents9core.harness.claude import chat as claude_chat
from agents9core.harness.codex import chat as codex_chat
from tests.support.chatlines import index_of, line, text_of

DATA = Path(__file__).parents[2] / "data"
READ = {"claude": claude_chat.read, "codex": codex_chat.read}


def user(content: object, **fields: object) -> bytes:
    return line(type="user", message={"content": content}, **fields) + b"\n"


def blocks(*texts: str, **fields: object) -> bytes:
    content = [{"type": "text", "text": text} for text in texts]
    return line(type="assistant", message={"content": content}, **fields) + b"\n"


def rows(index: ChatIndex) -> list[tuple[object, ...]]:
    return [
        (index.kind(id_), index.size(id_), index.time(id_), index.location(id_)) for id_ in range(len(index))
    ]


@pytest.mark.parametrize("case", sorted(DATA.glob("*/*.jsonl")), ids=lambda path: path.stem)
def test_a_recorded_chat_reads_as_expected(case):
    data = case.read_bytes()
    index = index_of(READ[case.parent.name], data)
    found = [
        {"kind": index.kind(id_), "text": text_of(index, id_, data), "time_ns": index.time(id_)}
        for id_ in range(len(index))
    ]
    expected = json.loads(case.with_suffix(".expected.json").read_text())
    assert {"skipped": index.skipped, "messages": found} == expected


def test_a_message_stands_where_its_object_does():
    index = index_of(claude_chat.read, b"\n\0\xef\xbb\xbf" + user("a")[:-1] + user("b"))
    a, b = (index.location(id_) for id_ in range(2))
    length = len(user("a")) - 1
    assert [(a.at, a.length), (b.at, b.length)] == [(5, length), (5 + length, length)]


def test_messages_of_one_record_are_told_apart():
    index = index_of(claude_chat.read, blocks("a", "", "b"))
    assert [index.location(id_).ordinal for id_ in range(2)] == [0, 1]


@pytest.mark.parametrize("ask", ["location", "kind", "size", "time"])
def test_there_is_no_message_past_the_last(ask):
    index = index_of(claude_chat.read, user("a"))
    with pytest.raises(IndexError):
        getattr(index, ask)(1)


def test_skipped_lines_are_counted_and_the_first_are_placed(monkeypatch):
    monkeypatch.setattr(index_module, "_MAX_SKIPS", 2)
    index = index_of(claude_chat.read, b"x\n" + user("a") + b"y\nz\n")
    assert (index.skipped, index.skipped_at) == (3, [0, len(user("a")) + 2])


def test_a_line_whose_rest_is_skipped_counts_once():
    index = index_of(claude_chat.read, user("a")[:-1] + b"rest{\n")
    assert (len(index), index.skipped) == (1, 1)


def test_more_messages_than_the_cap_are_said_and_not_kept(monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 3)
    index = index_of(claude_chat.read, user("a") + blocks("b", "c", "d") + user("e"))
    assert (len(index), index.overflowed) == (3, True)


def test_as_many_messages_as_the_cap_are_no_overflow(monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 3)
    index = index_of(claude_chat.read, blocks("b", "c", "d") + line(type="ai-title", aiTitle="t") + b"\n")
    assert (len(index), index.overflowed) == (3, False)


def test_facts_are_read_past_the_cap(monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 0)
    index = index_of(claude_chat.read, user("a") + line(type="ai-title", aiTitle="t") + b"\n")
    assert index.facts["ai-title"][0] == "t"


def test_of_a_fact_no_more_is_kept_than_is_shown():
    index = index_of(claude_chat.read, line(type="ai-title", aiTitle="t" * 10_000) + b"\n")
    assert index.facts["ai-title"][0] == "t" * 4096


def test_a_chat_is_as_new_as_its_newest_message():
    times = ["1970-01-01T00:00:05Z", "1970-01-01T00:00:02Z"]
    index = index_of(claude_chat.read, b"".join(user("a", timestamp=time) for time in times), birth_ns=10**18)
    assert index.newest_ns == 5 * 10**9


def test_an_empty_chat_is_as_new_as_its_birth():
    assert index_of(claude_chat.read, b"", birth_ns=7).newest_ns == 7


def test_a_missing_base_is_said_first():
    index = ChatIndex(codex_chat.read, 7, "0195a7c4")
    location = index.location(0)
    assert location.segments is not None
    text = b"".join(segment.literal for segment in location.segments)
    assert (index.kind(0), index.time(0), location.length) == ("system", 7, 0)
    assert b"0195a7c4" in text
    assert len(text) == location.size


def test_another_file_of_the_transcript_begins_with_its_own_header():
    def meta(start: int) -> bytes:
        return line(type="session_meta", ordinal=0, payload={"subagent_history_start_ordinal": start})

    def said(ordinal: int) -> bytes:
        payload = {"type": "message", "role": "assistant", "content": str(ordinal)}
        return line(type="response_item", ordinal=ordinal, payload=payload)

    index = ChatIndex(codex_chat.read, 0)
    for number, one in enumerate((meta(5), said(3), said(6))):
        index.add_line(one, number)
    index.begin_file()
    for number, one in enumerate((meta(0), said(3)), 3):
        index.add_line(one, number)
    assert [index.location(id_).at for id_ in range(len(index))] == [2, 4]


# Long objects


LONG_LINE = (
    line(
        type="assistant",
        message={
            "content": [
                {"type": "thinking", "thinking": "\u20ac" * 90},
                {"type": "text", "text": 'a\n"quoted"\\' * 40},
                {"type": "text", "text": "\U0001f600" * 50 + "\n"},
                {"type": "tool_use", "input": {"k": "\u20ac" * 60}, "name": "Do", "id": "t"},
                {"type": "image", "source": {"data": "QUJD" * 100}},
                {"type": "text", "text": 'a\n"quoted"\\' * 40},
            ]
        },
    )
    + b"\n"
)
ESCAPED_LINE = json.dumps(json.loads(LONG_LINE)).encode() + b"\n"
TORN_LINE = ESCAPED_LINE.replace(rb"\ud83d\ude00", rb"\ud83d\ude00\ud83d").replace(rb"\u20ac", b"\xe2\x82", 9)


@pytest.mark.parametrize("data", [LONG_LINE, ESCAPED_LINE, TORN_LINE, b"\0" + LONG_LINE[:-1] + TORN_LINE])
@pytest.mark.parametrize("piece", [12, 13, 16, 50, 100_000])
def test_a_long_object_says_what_it_says_when_it_is_short(data, piece, monkeypatch):
    short = index_of(claude_chat.read, data)
    monkeypatch.setattr(render_module, "SEGMENT_BYTES", piece)
    monkeypatch.setattr(index_module, "LONG", 0)
    long = index_of(claude_chat.read, data)
    assert [row[:3] for row in rows(long)] == [row[:3] for row in rows(short)]
    for id_ in range(len(long)):
        location = long.location(id_)
        assert location.segments is not None
        made = (
            segment.literal
            or render_module.make(segment.how, data[location.at + segment.at :][: segment.length])
            for segment in location.segments
        )
        assert b"".join(made).decode() == text_of(short, id_, data)


def test_only_messages_of_long_objects_are_cut(monkeypatch):
    monkeypatch.setattr(index_module, "LONG", 200)
    index = index_of(claude_chat.read, user("short") + user("long" * 100))
    assert [index.location(id_).segments is None for id_ in range(2)] == [True, False]


# However it is fed


LINES = st.sampled_from(
    [
        user("a", uuid="u1", timestamp="2026-01-01T00:00:01Z"),
        user("a", uuid="u1"),
        blocks("b", "c"),
        line(type="assistant", message={"content": [{"type": "tool_use", "id": "t", "name": "Do"}]}) + b"\n",
        user([{"type": "tool_result", "tool_use_id": "t", "content": "\u20ac"}]),
        user("a")[:-1] + user("b"),
        b'{"type":"user","message":{"content":"\\ud800"}}\n',
        b"rubbish\n",
        b"\n",
        line(type="system") + b"\n",
    ]
)


@given(st.lists(LINES, max_size=20), st.data())
def test_ids_never_move_as_a_file_grows(lines, choice):
    known = choice.draw(st.integers(0, len(lines)))
    before = rows(index_of(claude_chat.read, b"".join(lines[:known])))
    after = rows(index_of(claude_chat.read, b"".join(lines)))
    assert after[: len(before)] == before


@given(st.lists(LINES, max_size=9))
def test_lines_taken_together_are_lines_taken_one_by_one(lines):
    data = b"".join(lines)
    together = ChatIndex(claude_chat.read, 0)
    together.add_lines(data, LineScanner().feed(data), 0)
    singly = index_of(claude_chat.read, data)
    assert rows(together) == rows(singly)
    assert (together.skipped, together.skipped_at) == (singly.skipped, singly.skipped_at)


A, B = user("a")[:-1], user("b")[:-1]


@pytest.mark.parametrize(
    "data",
    [
        A + B + b"\n\n" + B + b"\n",
        b" \n" + A + B + b"\n",
        A.replace(b":", b":\n", 1) + b"\n" + A + B + b"\n",
        A.replace(b",", b"\n,", 1) + b"\n" + B + b"\n" + A + B + b"\n",
        A + b"\r\n" + B + b"\n",
        A + b"\n" + A[:-3] + b"\n" + B + b"\n",
        A + b"\n" + A.replace(b"a", b"\xff") + b"\n" + B + b"\n",
        A + b"\n7\n" + B + b"\n",
    ],
)
def test_each_message_stands_on_its_own_line_whatever_the_others_hold(data):
    index = ChatIndex(claude_chat.read, 0)
    index.add_lines(data, LineScanner().feed(data), 0)
    assert rows(index) == rows(index_of(claude_chat.read, data))
    assert index.skipped == index_of(claude_chat.read, data).skipped
    for id_ in range(len(index)):
        text_of(index, id_, data)


@given(st.binary(max_size=300))
def test_no_bytes_raise(data):
    for read in READ.values():
        index_of(read, data + b"\n")


# What it costs


def traced(data: bytes, lines: int) -> tuple[int, int]:
    """Return how much memory an index of this takes, and what it says itself."""
    tracemalloc.start()
    try:
        index = ChatIndex(claude_chat.read, 0)
        for number in range(lines):
            index.add_line(data.replace(b"NUMBER", b"%d" % number), number)
        return tracemalloc.get_traced_memory()[0], index.nbytes
    finally:
        tracemalloc.stop()


MANY_BLOCKS = line(
    type="assistant",
    message={
        "content": [{"type": "tool_use", "id": f"t{n}", "name": "Do", "input": {}} for n in range(20_000)]
    },
)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", 0),
        (user("a", uuid="NUMBER")[:-1], 5_000),
        (MANY_BLOCKS, 1),
        (
            line(type="assistant", message={"content": [{"type": "tool_use", "id": "NUMBER", "name": "a"}]}),
            1_000,
        ),
    ],
    ids=["empty", "records", "blocks of a long object", "calls"],
)
def test_an_index_knows_about_how_much_memory_it_takes(data, lines):
    taken, said = traced(data, lines)
    assert taken / 2.5 < said < taken * 2.5


def test_memory_does_not_grow_with_what_messages_say():
    small, _ = traced(user("a" * 10)[:-1], 100)
    large, _ = traced(user("a" * 50_000)[:-1], 100)
    assert large < small + 50_000


def peak_over(data: bytes) -> float:
    """Return how many times the line's own size indexing it takes besides the line."""
    data = data.removesuffix(b"\n")
    index = ChatIndex(claude_chat.read, 0)
    tracemalloc.start()
    try:
        index.add_line(data, 0)
        return (tracemalloc.get_traced_memory()[1] - index.nbytes) / len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        user("a" * 3_000_000),
        user("\n" * 1_500_000),
        user("\\" * 1_500_000),
        user("\u20ac" * 1_000_000),
        user("X").replace(b"X", rb"\ud800" * 500_000),
        user("X").replace(b"X", rb"\n" * 1_500_000 + rb"\ud800"),
        user("X").replace(b"X", rb"\ud83d\ude00" * 250_000 + rb"\ud800"),
        user("X").replace(b"X", b"\xff" * 3_000_000),
        b"\0" + user("a" * 3_000_000),
        b"\0" + user("X").replace(b"X", rb"\ud800" * 500_000),
        b"{}" * 20_000,
        b"{" * 1_000_000 + b"\n",
        b"\0" * 3_000_000,
        b'{"' * 100_000,
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=[
        "plain",
        "escapes",
        "backslashes",
        "characters",
        "lone surrogates",
        "escapes and one lone surrogate",
        "pairs and one lone surrogate",
        "bad bytes",
        "after a nul",
        "lone surrogates after a nul",
        "many objects",
        "braces",
        "nuls",
        "quotes",
        "depth",
    ],
)
def test_a_line_costs_at_most_three_times_its_size(data, monkeypatch):
    monkeypatch.setattr(render_module, "SEGMENT_BYTES", 1 << 14)
    assert peak_over(data) < 2.1


@pytest.mark.parametrize("order", [("name", "input"), ("input", "name")])
@pytest.mark.parametrize("damage", ["", "\ud800"])
def test_a_record_of_many_blocks_is_linear(order, damage, monkeypatch):
    looked = 0
    find = index_module.cut.__globals__["find_part"]

    def counted(data: bytes, part: bytes, near: int) -> int:
        nonlocal looked
        at = find(data, part, near)
        looked += abs(at - near)
        return at

    monkeypatch.setitem(index_module.cut.__globals__, "find_part", counted)
    monkeypatch.setattr(index_module, "LONG", 0)
    content = [
        {"type": "tool_use", **{key: {"name": "Do", "input": {"n": n}}[key] for key in order}}
        for n in range(2000)
    ]
    index = index_of(
        claude_chat.read, line(type="assistant", message={"content": content}, slug=damage) + b"\n"
    )
    assert len(index) == 2000
    assert looked < 2000 * 200
