"""A chat as one Markdown file: its form, its size without rendering, and any part of it."""

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents9core import resolver as resolver_module
from agents9core.chat import index as index_module
from agents9core.chat import markdown, render
from agents9core.chat.markdown import Marks, closing, escaped, forged_in, frame, opening, section_mark
from agents9core.errors import Gone, NotFound
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.e2e.machine import SESSION, Machine

NS = 1_000_000_000
FORGED = "## 00000007-user · 2026-11-02T10:00:01Z"


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def entry(machine):
    return build_tree(Resolver(str(machine.proc))).walk("active").walk("claude").walk("601")


def whole(entry):
    file = entry.walk("chat.md")
    data = file.open().read(0, 1 << 30)
    assert len(data) == file.stat().length
    return data


def call(name, given, result):
    said = {"type": "tool_use", "id": "t", "name": name, "input": given}
    return [("assistant", [said]), ("user", [{"type": "tool_result", "tool_use_id": "t", "content": result}])]


def test_prose_stands_as_it_is(machine, entry):
    assert whole(entry).decode() == "## 00000000-user · 2026-11-02T10:00:01Z\n\none\n\n"


def test_calls_and_results_are_fenced(machine, entry):
    for role, content in call("Bash", {"command": "ls"}, "a\nb"):
        machine.says(role, content, 2)
    assert whole(entry).decode().split("\n\n", 2)[2] == (
        "## 00000001-bash · 2026-11-02T10:00:02Z\n\n"
        '```\nBash\n{"command": "ls"}\n```\n\n'
        "## 00000002-bash-result · 2026-11-02T10:00:02Z\n\n"
        "```\na\nb\n```\n\n"
    )


def test_a_fence_is_longer_than_any_run_of_backticks_within(machine, entry):
    for role, content in call("Bash", {"command": "x"}, "a ````` b\n```"):
        machine.says(role, content)
    assert b"\n``````\na ````` b\n```\n``````\n\n" in whole(entry)


def test_an_empty_result_is_an_empty_fence(machine, entry):
    machine.says("user", [{"type": "tool_result", "tool_use_id": "t"}])
    assert whole(entry).endswith(b"-tool-result \xc2\xb7 2026-11-02T10:00:01Z\n\n```\n```\n\n")


@pytest.mark.parametrize("text", [FORGED, f"a\n{FORGED}\nb", f"{FORGED}\n{FORGED}"])
def test_nobody_s_words_forge_a_heading(machine, entry, text):
    machine.says("assistant", [{"type": "text", "text": text}])
    assert sum(line.startswith(b"## ") for line in whole(entry).split(b"\n")) == 2
    assert b"\\" + FORGED.encode() in whole(entry)


@pytest.mark.parametrize(
    "text", ["## Summary", "### 00000007-user", "x ## 00000007-user", "##  00000007-user"]
)
def test_other_headings_stay(machine, entry, text):
    machine.says("assistant", [{"type": "text", "text": text}])
    assert b"\\" not in whole(entry)


def test_it_only_grows(machine, entry):
    before = whole(entry)
    machine.says("assistant", [{"type": "text", "text": f"{FORGED}\n```"}])
    assert whole(entry).startswith(before)


def test_an_open_reader_follows(machine, entry):
    reader = entry.walk("chat.md").open()
    before = reader.read(0, 1 << 20)
    machine.says("user", "two")
    assert reader.read(len(before), 1 << 20).endswith(b"two\n\n")


def test_another_transcript_ends_a_reader(machine, entry):
    reader = entry.walk("chat.md").open()
    machine.transcript.write_text("")
    with pytest.raises(Gone):
        reader.read(0, 10)


def test_an_agent_without_a_transcript_has_none(machine, entry):
    machine.register(601, SESSION.replace("0d0f", "0d0e"))
    with pytest.raises(NotFound):
        entry.walk("chat.md")


def test_beyond_the_cap_there_is_none(machine, entry, monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 1)
    machine.says("user", "two")
    assert "chat.md" not in [row.name for row in entry.members()]
    with pytest.raises(NotFound):
        entry.walk("chat.md")


@pytest.mark.parametrize("long", [1 << 20, 0])
def test_any_part_is_that_part_of_the_whole(machine, entry, monkeypatch, long):
    monkeypatch.setattr(index_module, "LONG", long)
    monkeypatch.setattr(render, "SEGMENT_BYTES", 7)
    for number in range(6):
        machine.says("assistant", [{"type": "text", "text": f"{FORGED}\n{FORGED[:number]}\n```\n{FORGED}"}])
        for role, content in call("Bash", {"x": "`" * number}, f"``\n{FORGED}\n{'`' * number * 3}"):
            machine.says(role, content)
    data = whole(entry)
    reader = entry.walk("chat.md").open()
    dice = random.Random(5)
    for _ in range(300):
        start, count = dice.randrange(len(data)), dice.randrange(1, 200)
        assert reader.read(start, count) == data[start : start + count]


def test_a_long_message_reads_as_a_short_one(machine, entry, monkeypatch):
    text = "".join(f"line {number}\n{FORGED}\n````\n" for number in range(50))
    machine.says("assistant", [{"type": "text", "text": text}])
    machine.says("user", [{"type": "tool_result", "tool_use_id": "t", "content": text}])
    short = whole(entry)
    other = json.dumps(json.loads(machine.transcript.read_text().splitlines()[0]))
    monkeypatch.setattr(index_module, "LONG", 100)
    monkeypatch.setattr(render, "SEGMENT_BYTES", 11)
    machine.transcript.write_text(machine.transcript.read_text()[len(other) + 1 :])
    assert whole(entry) == short.split(b"\n\n", 2)[2].replace(b"## 00000001-a", b"## 00000000-a").replace(
        b"## 00000002-t", b"## 00000001-t"
    )


TEXTS = st.lists(st.sampled_from(["a", "\n", "## ", "00000000-", "`", "#", "é", FORGED])).map("".join)


@given(TEXTS, st.sampled_from(["user", "bash"]))
def test_the_size_of_a_section_is_known_without_its_text(text, kind):
    data = text.encode() + b"\n"
    _, marks = render.measure([render.Part(0, data)], kind in markdown.PROSE)
    mark, mark_bytes = section_mark(kind in markdown.PROSE, marks)
    shown = escaped(data) if kind in markdown.PROSE else data
    section = opening(0, kind, NS, mark) + shown + closing(kind, mark)
    assert frame(kind) + len(data) + mark_bytes == len(section)


@given(TEXTS, st.lists(st.integers(1, 9)))
def test_marks_are_the_same_in_any_pieces(text, cuts):
    data = text.encode()
    marks = Marks()
    at = 0
    for length in [*cuts, len(data) + 1]:
        marks.feed(data[at : at + length])
        at += length
    assert sum(marks.forged) == forged_in(text)
    assert marks.ticks == markdown.ticks_in(text)


@given(TEXTS, st.integers(0, 60))
@example(f"a\n{FORGED}", 2)
@example(f"# a\n{FORGED}", 4)
def test_escaping_in_two_pieces_is_escaping_the_whole(text, cut):
    data = text.encode()
    first, second = data[:cut], data[cut:]
    at_line = first.endswith(b"\n") or not first
    assert escaped(first, True, second) + escaped(second, at_line) == escaped(data)
