"""What a message is called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat.kinds import CALLS, FIXED, TOOLS, Kinds, tool_kind
from agents9core.chat.records import CALL, RESULT, Message


def named(kinds: Kinds, role: str, call: str | None = None, tool: str = "") -> str:
    return kinds.names[kinds.number(Message(role, [], call, tool))]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("Bash", "bash"),
        ("exec_command", "exec_command"),
        ("mcp__a-b__Do.It", "mcp__a-b__do.it"),
        ("a/b c\0d\ne", "a-b-c-d-e"),
        ("ÄBC", "-bc"),
        ("\u0130\u212a", "--"),
        ("漢字", "--"),
        ("😀", "-"),
        ("\ufffd", "-"),
        ("A" * 100, "a" * 48),
        ("é" * 100, "-" * 48),
        ("x" * 48 + "-result", "x" * 48),
        ("...", "..."),
        ("-", "-"),
        ("resultx", "resultx"),
        ("result", "result"),
    ],
)
def test_a_call_is_named_after_its_tool(tool, kind):
    assert tool_kind(tool) == kind


@pytest.mark.parametrize(
    "tool",
    [
        *FIXED,
        "User",
        "SYSTEM",
        "",
        ".",
        "..",
        "bash-result",
        "-result",
        "Bash-Result",
        "bash/result",
        "x" * 41 + "-result-and-more",
    ],
)
def test_a_tool_whose_name_would_read_as_another_kind_is_a_tool_call(tool):
    assert tool_kind(tool) == CALL


@given(st.text())
def test_a_kind_is_a_file_name_of_at_most_48_bytes(tool):
    kind = tool_kind(tool)
    assert 0 < len(kind.encode()) <= 48
    assert kind.isascii()
    assert not set(kind) & set("/\0 ")
    assert kind == kind.lower()


@pytest.mark.parametrize("role", ["user", "assistant", "thinking", "system", "agent"])
def test_a_speaker_is_its_own_kind(role):
    assert named(Kinds(), role) == role


def test_a_result_is_named_after_its_call():
    kinds = Kinds()
    named(kinds, CALL, "c1", "Bash")
    assert named(kinds, RESULT, "c1") == "bash-result"


def test_results_find_their_calls_in_any_order_and_more_than_once():
    kinds = Kinds()
    named(kinds, CALL, "c1", "Bash")
    named(kinds, CALL, "c2", "Read")
    assert [named(kinds, RESULT, call) for call in ("c2", "c1", "c2")] == [
        "read-result",
        "bash-result",
        "read-result",
    ]


def test_the_latest_call_of_a_repeated_id_is_the_one_that_is_answered():
    kinds = Kinds()
    named(kinds, CALL, "c1", "Bash")
    named(kinds, CALL, "c1", "Read")
    assert named(kinds, RESULT, "c1") == "read-result"


@pytest.mark.parametrize("call", [None, "never seen", ""])
def test_a_result_of_no_call_that_is_known_is_a_tool_result(call):
    kinds = Kinds()
    named(kinds, CALL, "c1", "Bash")
    named(kinds, CALL, None, "Bash")
    assert named(kinds, RESULT, call) == RESULT


def test_the_result_of_a_tool_call_is_a_tool_result():
    kinds = Kinds()
    named(kinds, CALL, "c1", "User")
    assert named(kinds, RESULT, "c1") == RESULT


@pytest.mark.parametrize(("later", "expected"), [(CALLS - 1, "bash-result"), (CALLS, RESULT)])
@pytest.mark.parametrize("id_", ["c{}", None, "same"])
def test_a_result_answers_one_of_the_last_256_calls(later, expected, id_):
    kinds = Kinds()
    named(kinds, CALL, "first", "Bash")
    for number in range(later):
        named(kinds, CALL, id_ and id_.format(number), "Read")
    assert named(kinds, RESULT, "first") == expected


def test_a_repeated_id_makes_its_call_a_late_one():
    kinds = Kinds()
    named(kinds, CALL, "again", "Bash")
    for number in range(CALLS - 1):
        named(kinds, CALL, f"c{number}", "Read")
    named(kinds, CALL, "again", "Bash")
    named(kinds, CALL, "one more", "Read")
    assert named(kinds, RESULT, "again") == "bash-result"


def test_a_chat_has_at_most_255_tool_names():
    kinds = Kinds()
    names = [named(kinds, CALL, f"c{number}", f"tool{number}") for number in range(300)]
    assert names == [f"tool{number}" for number in range(TOOLS)] + [CALL] * 45


def test_a_result_past_the_last_tool_name_is_a_tool_result():
    kinds = Kinds()
    for number in range(TOOLS + 1):
        named(kinds, CALL, f"c{number}", f"tool{number}")
    assert [named(kinds, RESULT, call) for call in ("c254", "c255")] == ["tool254-result", RESULT]


def test_a_name_that_is_known_stays_good_when_the_names_have_run_out():
    kinds = Kinds()
    for number in range(300):
        named(kinds, CALL, None, f"tool{number}")
    assert named(kinds, CALL, None, "Tool7") == "tool7"


def test_memory_for_calls_is_bounded():
    kinds = Kinds()
    held = []
    for number in range(10 * CALLS):
        named(kinds, CALL, f"c{number}", "Bash")
        held.append(kinds.nbytes)
    assert max(held[2 * CALLS :]) <= max(held[: 2 * CALLS])
