"""Who said what in an omp or pi transcript (DESIGN section 4)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import index as index_module
from agents9core.harness.omp.chat import read, slot_bytes
from tests.support.chatlines import index_of, line, shown
from tests.support.fakestore import title_slot

SECOND = 1_000_000_000
PICTURE = {"type": "image", "data": "blob:sha256:0a1b", "mimeType": "image/png"}


def message(role: str, **fields: object) -> bytes:
    return line(type="message", id="m", parentId=None, message={"role": role, **fields})


def words(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


def thought(text: object) -> dict[str, object]:
    return {"type": "thinking", "thinking": text, "thinkingSignature": "x"}


def call(id_: object, name: object = "bash", arguments: object = None, **fields: object) -> dict[str, object]:
    return {
        "type": "toolCall",
        "id": id_,
        "name": name,
        "arguments": arguments or {"command": "ls"},
        **fields,
    }


def user(*content: object, **fields: object) -> bytes:
    return message("user", content=list(content), **fields)


def assistant(*content: object, **fields: object) -> bytes:
    return message("assistant", content=list(content), **fields)


def result(id_: object, *content: object) -> bytes:
    return message("toolResult", toolCallId=id_, toolName="bash", content=list(content), isError=False)


def says(*lines: bytes) -> list[tuple[str, str]]:
    return shown(read, *lines)


def facts(*lines: bytes) -> dict[str, str]:
    index = index_of(read, b"".join(one + b"\n" for one in lines))
    return {name: value for name, (value, _) in index.facts.items()}


# Roles


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", "user"),
        ("assistant", "assistant"),
        ("developer", "system"),
        ("system", "system"),
        ("custom", "system"),
        ("hookMessage", "system"),
        ("x", "system"),
    ],
)
@pytest.mark.parametrize("content", ["plain", [words("plain")]])
def test_a_message_is_its_roles_and_its_content_may_be_a_string(role, kind, content):
    assert says(message(role, content=content)) == [(kind, "plain\n")]


@pytest.mark.parametrize("role", ["user", "assistant", "developer"])
@pytest.mark.parametrize("content", [[], "", None, 7, [words("")], [words(None)], [{"type": "text"}]])
def test_a_message_without_text_uses_no_id(role, content):
    said = says(message(role, content=content), user(words("next")))
    assert said[-1] == ("user", "next\n")
    assert len(said) == (2 if content == 7 and role != "assistant" else 1)


def test_a_prompt_with_a_picture_is_one_message():
    assert says(user(words("what is"), PICTURE, words("this?"))) == [("user", "what is\n[image]\nthis?\n")]


@pytest.mark.parametrize(
    "fields", [{"steering": True}, {"attribution": "user"}, {"attribution": "agent"}, {"synthetic": True}]
)
def test_a_prompt_is_the_users_also_when_it_was_queued_or_an_assignment(fields):
    assert says(user(words("go"), **fields)) == [("user", "go\n")]


def test_each_block_of_an_answer_is_a_message_in_order():
    answer = assistant(
        thought("hm"), words("a"), call("1"), thought(""), words("b"), call("2", "read", {"path": "x"})
    )
    assert says(answer) == [
        ("thinking", "hm\n"),
        ("assistant", "a\n"),
        ("bash", 'bash\n{"command":"ls"}\n'),
        ("assistant", "b\n"),
        ("read", 'read\n{"path":"x"}\n'),
    ]


def test_sealed_thinking_says_nothing():
    assert says(assistant({"type": "redactedThinking", "data": "QUJD"}, words("a"))) == [("assistant", "a\n")]


def test_a_block_that_nobody_knows_is_served_as_its_json():
    assert says(assistant({"type": "hologram", "x": 1})) == [("assistant", '{"type":"hologram","x":1}\n')]


# Calls


def test_the_input_of_a_call_stays_as_it_stands_and_its_copies_are_not_read():
    spaced = (
        b'{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"1",'
        b'"name":"edit","arguments":{ "b" : 1.50,\t"a": "\\u00e9" },"partialArgs":"{}","streamIndex":0}]}}'
    )
    assert says(spaced) == [("edit", 'edit\n{ "b" : 1.50,\t"a": "\\u00e9" }\n')]


def test_results_find_their_calls_in_any_order():
    answer = assistant(call("1", "read"), call("2", "bash"))
    said = says(answer, result("2", words("two")), result("1", words("one"), PICTURE))
    assert said[2:] == [("bash-result", "two\n"), ("read-result", "one\n[image]\n")]


def test_a_result_of_no_known_call_is_a_tools():
    assert says(result("9", words("x"))) == [("tool-result", "x\n")]


def test_a_result_without_content_is_an_empty_message():
    assert says(assistant(call("1")), result("1"))[1] == ("bash-result", "")


@pytest.mark.parametrize("name", ["user", "Assistant", "x-result", "", None, 7])
def test_a_tool_whose_name_reads_as_another_kind_is_a_tool_call(name):
    kinds = [kind for kind, _ in says(assistant(call("1", name)), result("1", words("x")))]
    assert kinds == ["tool-call", "tool-result"]


# What the person typed


@pytest.mark.parametrize(
    ("role", "field", "tool"), [("bashExecution", "command", "bash"), ("pythonExecution", "code", "python")]
)
@pytest.mark.parametrize("hidden", [True, False])
def test_a_typed_command_and_its_output(role, field, tool, hidden):
    typed = message(role, **{field: "a\nb"}, output="out\n", exitCode=0, excludeFromContext=hidden)
    assert says(typed) == [(tool, f"{tool}\na\nb\n"), (f"{tool}-result", "out\n")]


@pytest.mark.parametrize("output", ["", None])
def test_a_typed_command_without_output_has_an_empty_result(output):
    assert says(message("bashExecution", command="true", output=output)) == [
        ("bash", "bash\ntrue\n"),
        ("bash-result", ""),
    ]


def test_a_typed_command_does_not_part_a_call_from_its_result():
    typed = message("pythonExecution", code="1", output="1")
    said = says(assistant(call("1", "read")), typed, result("1", words("x")), typed)
    assert [kind for kind, _ in said] == [
        "read", "python", "python-result", "read-result", "python", "python-result"
    ]  # fmt: skip


# What the program says


@pytest.mark.parametrize(
    "entry",
    [
        line(type="compaction", id="c", summary="so far", shortSummary="s", firstKeptEntryId="x"),
        line(type="branch_summary", id="c", summary="so far", fromId="x"),
        line(type="custom_message", customType="async-result", content="so far", display=True),
        line(type="custom_message", customType="x", content=[words("so far")], display=False),
        message("branchSummary", summary="so far"),
        message("compactionSummary", summary="so far"),
    ],
)
def test_what_the_program_adds_is_systems(entry):
    assert says(entry) == [("system", "so far\n")]


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "title", "title": "x"},
        {"type": "session", "version": 3, "id": "x", "cwd": "/p", "title": "x"},
        {"type": "model_change", "model": "a/b"},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        {"type": "title_change", "title": "x"},
        {"type": "label", "label": "x"},
        {"type": "custom", "customType": "tool_execution_start", "data": {"args": {"command": "ls"}}},
        {"type": "custom", "customType": "session_exit"},
        {"type": "session_init", "systemPrompt": "x", "task": "x"},
        {"type": "session_info", "name": "x"},
        {"type": "ttsr_injection", "content": "x"},
        {"type": "reset_boundary"},
        {"type": "hologram", "summary": "x", "content": "x", "message": {"role": "user", "content": "x"}},
        {"type": None, "message": {"role": "user", "content": "x"}},
        {"type": "message"},
        {"type": "message", "message": "x"},
    ],
)
def test_bookkeeping_is_silent(entry):
    assert says(line(**entry), user(words("next"))) == [("user", "next\n")]


def test_files_that_a_prompt_mentions_are_named_with_what_they_hold():
    files = [{"path": "a.c", "content": "int a;"}, {"path": "b.png", "image": PICTURE}, 7, {"path": "c"}]
    assert says(message("fileMention", files=files)) == [("system", "a.c\nint a;\nb.png\n[image]\nc\n")]


def test_pi_s_first_message_is_its_sections_a_blank_line_between():
    sections = {"preamble": "You are pi.", "tools": "", "skills": None, "rules": "Be\nbrief."}
    assert says(message("system", content="", sections=sections)) == [
        ("system", "You are pi.\n\nBe\nbrief.\n")
    ]


@pytest.mark.parametrize("odd", [None, [], "x", 7])
def test_sections_and_files_of_another_shape_say_nothing(odd):
    files = None if odd == [] else odd
    assert says(message("system", content="a", sections=odd, files=files)) == [("system", "a\n")]


# Interrupts, errors, branches


def test_of_an_interrupted_answer_what_was_said_stays_and_the_note_of_it_is_no_words():
    partial = assistant(thought("h"), words("a"), stopReason="aborted", errorMessage="Interrupted by user")
    assert says(partial) == [("thinking", "h\n"), ("assistant", "a\n")]


def test_an_answer_that_failed_says_why():
    failed = assistant(words("a"), stopReason="error", errorMessage="overloaded")
    assert says(failed) == [("assistant", "a\n"), ("system", "overloaded\n")]
    assert says(assistant(stopReason="error")) == []


def test_every_branch_stays_in_the_order_of_the_file():
    entries = [("a", None, "one"), ("b", "a", "two"), ("c", "a", "three"), ("a", "zz", "four")]
    lines = [
        line(type="message", id=id_, parentId=above, message={"role": "user", "content": text})
        for id_, above, text in entries
    ]
    assert [text for _, text in says(*lines)] == ["one\n", "two\n", "three\n", "four\n"]


# Times and facts


def test_a_message_has_its_entrys_time_and_not_the_answers():
    lines = (
        line(type="session", timestamp="1970-01-01T00:00:09.000Z", id="x"),
        line(
            type="message",
            timestamp="1970-01-01T00:00:01.500Z",
            message={"role": "user", "content": "a", "timestamp": 7},
        ),
        line(type="message", timestamp="soon", message={"role": "user", "content": "b"}),
        line(type="message", message={"role": "bashExecution", "command": "c", "output": "d"}),
    )
    index = index_of(read, b"".join(one + b"\n" for one in lines), birth_ns=5 * SECOND)
    assert [index.time(id_) for id_ in range(4)] == [1_500_000_000] * 4


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (line(type="model_change", model="a/one"), "a/one"),
        (line(type="model_change", provider="a", modelId="one"), "a/one"),
        (line(type="session", version=1, provider="a", modelId="one"), "a/one"),
        (line(type="model_change", model="a/one", role="default"), "a/one"),
        (assistant(words("x"), provider="a", model="one"), "a/one"),
        (assistant(words("x"), model="one"), "one"),
        (line(type="model_change", model="a/passing", role="fallback"), "b/two"),
        (line(type="model_change", model=7), "b/two"),
        (user(words("x"), provider="a", model="one"), "b/two"),
        (assistant(words("x")), "b/two"),
    ],
)
def test_the_model_is_what_was_chosen_or_spoke_last(entry, model):
    before = line(type="model_change", model="b/two")
    assert facts(before, entry)["model"] == model


@pytest.mark.parametrize("name", ["Pond", ""])
def test_a_pi_session_is_called_what_it_was_named_last(name):
    assert (
        facts(line(type="session_info", name="x"), line(type="session_info", name=name))["session_name"]
        == name
    )


@pytest.mark.parametrize(
    ("entries", "turn"),
    [
        ([user(words("x"))], "busy"),
        ([user(words("x")), assistant(call("1"), stopReason="toolUse")], "busy"),
        ([user(words("x")), assistant(call("1"), stopReason="toolUse"), result("1")], "busy"),
        ([user(words("x")), assistant(words("y"), stopReason="stop")], "idle"),
        ([user(words("x")), assistant(words("y"), stopReason="length")], "idle"),
        ([user(words("x")), assistant(stopReason="aborted")], "idle"),
        ([user(words("x")), assistant(stopReason="error")], "idle"),
        ([user(words("x")), line(type="custom", customType="session_exit")], "idle"),
        ([user(words("x")), line(type="reset_boundary")], "idle"),
        (
            [assistant(words("y"), stopReason="stop"), message("bashExecution", command="ls", output="")],
            "idle",
        ),
        ([assistant(words("y"), stopReason="stop"), line(type="compaction", summary="x")], "idle"),
        ([user(words("x")), line(type="custom", customType="tool_execution_start")], "busy"),
        ([assistant(words("y"))], None),
    ],
)
def test_whether_a_turn_runs(entries, turn):
    assert facts(*entries).get("turn") == turn


# The slot


@pytest.mark.parametrize(
    ("beginning", "length"),
    [
        (title_slot("x").encode() + b'{"type":"session"}\n', 256),
        (title_slot("").encode(), 256),
        (title_slot("x").encode()[:100], 256),
        (line(type="title", title="short") + b"\n" + b"x" * 400, 0),
        (line(type="title", title="x" * 400) + b"\n", 0),
        (line(type="session", id="x") + b"\n", 0),
        (b"", 0),
    ],
)
def test_how_long_the_slot_is(beginning, length):
    assert slot_bytes(beginning) == length


# Anything


@given(st.integers(0, 1 << 40))
def test_no_line_that_was_damaged_raises_and_all_ways_say_the_same(seed):
    chance = random.Random(seed)
    spoilt = bytearray(assistant(thought("h\u00e9"), words("a"), call("1"), stopReason="stop"))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(spoilt))
        with_what = chance.choice([b"", b"\\", b'"', b"{", b"]", b"\0", b"\\ud800", b"null", b"[1]", b":"])
        spoilt[at : at + chance.choice([0, 0, 1, 5])] = with_what
    says(bytes(spoilt).replace(b"\n", b""), user(words("next")))


@pytest.mark.parametrize(
    "odd",
    [
        {"content": {"a": 1}},
        {"content": [7, "x", None, [], words(5)]},
        {"toolCallId": 7},
        {"command": 7},
        {"output": [1]},
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant", "toolResult", "bashExecution", "pythonExecution", "x"])
def test_an_odd_field_costs_itself_only(role, odd):
    said = says(message(role, **{"content": "x", **odd}), user(words("next")))
    assert said[-1] == ("user", "next\n")


def test_a_long_answer_is_cut_and_says_the_same(monkeypatch):
    monkeypatch.setattr(index_module, "LONG", 200)
    texts = ['\u00e9\U0001f980\\"\n' * 100, "b" * 5000]
    said = says(
        assistant(thought(texts[0]), words(texts[1])),
        message("bashExecution", command="c" * 900, output="o" * 900),
    )
    assert [text for _, text in said] == [
        texts[0],
        texts[1] + "\n",
        "bash\n" + "c" * 900 + "\n",
        "o" * 900 + "\n",
    ]
