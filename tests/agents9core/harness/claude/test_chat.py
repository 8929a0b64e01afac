"""Who said what in a Claude Code transcript (DESIGN section 4)."""

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents9core.harness.claude.chat import SideChain, read, read_subagent
from agents9core.tree.facts import line as fact
from tests.support.chatlines import index_of, line, shown

SECOND = 1_000_000_000
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 9}}
HUMAN = {"kind": "human"}


def user(content: object, **fields: object) -> bytes:
    return line(type="user", message={"role": "user", "content": content}, **fields)


def assistant(*content: object, **fields: object) -> bytes:
    return line(type="assistant", message={"role": "assistant", "content": list(content)}, **fields)


def queued(prompt: object, **fields: object) -> bytes:
    return line(type="attachment", attachment={"type": "queued_command", "prompt": prompt, **fields})


def text(words: object) -> dict[str, object]:
    return {"type": "text", "text": words}


def call(id_: object, name: object = "Bash", given: object = None) -> dict[str, object]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given if given is not None else {}}


def result(id_: object, content: object = "ok", **fields: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **fields}


def says(*lines: bytes) -> list[tuple[str, str]]:
    return shown(read, *lines)


# Who speaks in the user's role


@pytest.mark.parametrize(
    ("spoken", "kind"),
    [
        (user("go on"), "user"),
        (user("go on", isMeta=False, isCompactSummary=False), "user"),
        (user("go on", isMeta="true"), "user"),
        (user("go on", isMeta=True), "system"),
        (user([text("go on")], isMeta=True), "system"),
        (user("go on", isCompactSummary=True, isVisibleInTranscriptOnly=True), "system"),
        (user("go on", isVisibleInTranscriptOnly=True), "user"),
        (user("go on", origin=HUMAN, promptSource="typed"), "user"),
        (user("go on", origin=HUMAN, promptSource="queued"), "user"),
        (user("go on", promptSource="sdk"), "user"),
        (user("go on", promptSource="system"), "system"),
        (user("go on", origin=HUMAN, promptSource="system"), "system"),
        (user("go on", origin={"kind": "task-notification"}), "system"),
        (user("go on", origin={"kind": "auto-continuation"}), "system"),
        (user("go on", origin={"kind": "peer"}), "system"),
        (user("go on", origin={}), "user"),
        (user("go on", origin={"kind": None}), "user"),
        (user("go on", origin=None), "user"),
        (user("go on", origin="human"), "user"),
        (user("go on", origin=HUMAN, isMeta=True), "system"),
    ],
)
def test_flags_and_origin_tell_the_person_from_the_program(spoken, kind):
    assert says(spoken) == [(kind, "go on\n")]


PROGRAM_WRITTEN = [
    "<task-notification>done</task-notification>",
    "<local-command-stdout>x</local-command-stdout>",
    "<local-command-stderr>x</local-command-stderr>",
    "<local-command-caveat>x</local-command-caveat>",
    "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>",
    "<bash-stderr>x</bash-stderr>",
    '<teammate-message teammate_id="a">x</teammate-message>',
    '<agent-message from="a">x</agent-message>',
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
]
THE_PERSONS = [
    "<command-name>/clear</command-name>",
    "<command-message>review</command-message>\n<command-name>/review</command-name>",
    "<bash-input>ls</bash-input>",
    " <task-notification>",
    "what is <task-notification>?",
    "<task-notifications>",
    "<bash-stdoutx>",
    "request interrupted by user",
]


@pytest.mark.parametrize("words", PROGRAM_WRITTEN)
@pytest.mark.parametrize("shape", [lambda words: words, lambda words: [text(words)]])
def test_text_that_only_the_program_writes_is_systems(words, shape):
    assert says(user(shape(words))) == [("system", words + "\n")]


@pytest.mark.parametrize("words", THE_PERSONS)
def test_text_that_the_person_caused_is_the_users(words):
    assert says(user(words)) == [("user", words + "\n")]


@pytest.mark.parametrize("words", PROGRAM_WRITTEN)
def test_what_a_person_pasted_is_the_users(words):
    assert says(user(words, origin=HUMAN)) == [("user", words + "\n")]


def test_the_programs_text_is_known_also_where_it_is_escaped():
    assert says(rb'{"type":"user","message":{"content":"\u003ctask-notification\u003e done"}}') == [
        ("system", "<task-notification> done\n")
    ]


@pytest.mark.parametrize("padding", range(20))
def test_a_long_escaped_beginning_is_not_torn(padding):
    words = "<" + "a" * padding + "\u20ac" * 300
    assert says(user(words)) == [("user", words + "\n")]


def test_only_the_first_words_tell():
    assert says(user([text("look:"), text("<bash-stdout>x")])) == [("user", "look:\n<bash-stdout>x\n")]


def test_a_picture_before_the_words_is_the_persons():
    assert says(user([PNG, text("<bash-stdout>x")])) == [("user", "[image]\n<bash-stdout>x\n")]


# Prompts typed while the agent worked


@pytest.mark.parametrize(
    ("spoken", "kind"),
    [
        (queued("and this", commandMode="prompt", origin=HUMAN), "user"),
        (queued("and this", commandMode="task-notification", origin=HUMAN), "user"),
        (queued("and this", origin=HUMAN), "user"),
        (queued("and this", commandMode="prompt"), "user"),
        (queued("and this", commandMode="prompt", origin={}), "user"),
        (queued("and this"), "system"),
        (queued("and this", commandMode="bash"), "system"),
        (queued("and this", commandMode="task-notification"), "system"),
        (queued("and this", commandMode="prompt", origin={"kind": "hook"}), "system"),
        (queued("and this", commandMode="prompt", origin={"kind": "coordinator"}), "system"),
    ],
)
def test_a_queued_prompt_is_the_users_where_a_person_typed_it(spoken, kind):
    assert says(spoken) == [(kind, "and this\n")]


@pytest.mark.parametrize("words", PROGRAM_WRITTEN)
def test_a_queued_prompt_without_origin_that_the_program_wrote_is_systems(words):
    assert says(queued(words, commandMode="prompt")) == [("system", words + "\n")]


@pytest.mark.parametrize("words", THE_PERSONS)
def test_a_queued_prompt_without_origin_is_else_the_users(words):
    assert says(queued(words, commandMode="prompt")) == [("user", words + "\n")]


def test_a_queued_prompt_may_be_words_and_pictures():
    assert says(queued([text("see"), PNG], commandMode="prompt", origin=HUMAN)) == [
        ("user", "see\n[image]\n")
    ]


@pytest.mark.parametrize(
    "silent",
    [
        line(type="attachment", attachment={"type": "todo_reminder", "prompt": "no", "content": "no"}),
        line(type="attachment", attachment={"prompt": "no"}),
        line(type="attachment", attachment="queued_command"),
        line(type="attachment"),
        queued("", commandMode="prompt", origin=HUMAN),
        queued(None, commandMode="prompt", origin=HUMAN),
        line(type="queue-operation", operation="enqueue", content="no"),
        line(type="queue-operation", operation="remove", content="no", reason="absorbed_mid_turn"),
        line(type="queue-operation", operation="popAll", content="no"),
    ],
)
def test_the_queue_and_other_attachments_say_nothing(silent):
    assert says(silent) == []


# Blocks


def test_each_block_of_an_answer_is_a_message_in_their_order():
    spoken = assistant(
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        text("One."),
        call("t1", "Bash", {"command": "ls"}),
        text("Two."),
    )
    assert says(spoken) == [
        ("thinking", "hm\n"),
        ("assistant", "One.\n"),
        ("bash", 'Bash\n{"command":"ls"}\n'),
        ("assistant", "Two.\n"),
    ]


def test_one_message_id_over_several_records_hides_none_of_them():
    records = [line(type="assistant", message={"id": "m1", "content": [text(word)]}) for word in "abb"]
    assert says(*records) == [("assistant", "a\n"), ("assistant", "b\n"), ("assistant", "b\n")]


@pytest.mark.parametrize(
    "silent",
    [
        assistant({"type": "thinking", "thinking": "", "signature": "sig"}),
        assistant({"type": "thinking", "signature": "sig"}),
        assistant({"type": "thinking", "thinking": None}),
        assistant({"type": "redacted_thinking", "data": "QUJD"}),
        assistant(text("")),
        assistant(text(None)),
        assistant({"type": "text"}),
        assistant(),
        user([]),
        user(""),
        user([text("")]),
    ],
)
def test_what_is_empty_uses_no_id(silent):
    assert says(silent, assistant(text("next"))) == [("assistant", "next\n")]


def test_an_answer_may_be_a_string():
    assert says(line(type="assistant", message={"content": "plain"})) == [("assistant", "plain\n")]


@pytest.mark.parametrize(
    ("type_", "kind"),
    [("tool_use", "web"), ("server_tool_use", "web"), ("mcp_tool_use", "web"), ("advisor_tool_use", "web")],
)
def test_every_block_that_ends_tool_use_is_a_call(type_, kind):
    block = {"type": type_, "id": "s1", "name": "Web", "input": {"q": 1}}
    assert says(assistant(block)) == [(kind, 'Web\n{"q":1}\n')]


@pytest.mark.parametrize("type_", ["tool_result", "web_search_tool_result", "advisor_tool_result"])
def test_every_block_that_ends_tool_result_is_a_result(type_):
    block = {"type": type_, "tool_use_id": "s1", "content": "found"}
    assert says(assistant(call("s1", "Web"), block))[1:] == [("web-result", "found\n")]


def test_a_call_in_a_users_record_is_a_call_too():
    assert says(user([text("a"), call("t1"), {"type": "thinking", "thinking": "hm"}, text("b")])) == [
        ("user", "a\n"),
        ("bash", "Bash\n{}\n"),
        ("thinking", "hm\n"),
        ("user", "b\n"),
    ]


def test_a_calls_input_is_what_stands_in_the_file():
    spoken = b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Do","input":%b}]}}'
    given = b'{ "b": 1.50,"a":"\\u00e9\\/","b":2 }'
    assert says(spoken % given) == [("do", "Do\n" + given.decode() + "\n")]


def test_a_call_whose_input_comes_before_its_name():
    spoken = (
        b'{"type":"assistant","message":{"content":[{"input":{"name":"Do"},"name":"Do","type":"tool_use"}]}}'
    )
    assert says(spoken) == [("do", 'Do\n{"name":"Do"}\n')]


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"type": "tool_use", "id": "t1", "name": "Bash"}, ("bash", "Bash\n")),
        ({"type": "tool_use", "id": "t1", "name": "Bash", "input": None}, ("bash", "Bash\n")),
        ({"type": "tool_use", "id": "t1", "name": "Bash", "input": "raw"}, ("bash", 'Bash\n"raw"\n')),
        ({"type": "tool_use", "id": "t1", "input": {}}, ("tool-call", "{}\n")),
        ({"type": "tool_use", "id": "t1", "name": 7, "input": {}}, ("tool-call", "{}\n")),
        ({"type": "tool_use", "id": "t1", "name": "", "input": {}}, ("tool-call", "{}\n")),
        ({"type": "tool_use", "id": 7, "name": "User", "input": {}}, ("tool-call", "User\n{}\n")),
        ({"type": "tool_use"}, ("tool-call", "")),
    ],
)
def test_a_call_that_lacks_something_is_shown_all_the_same(block, message):
    assert says(assistant(block)) == [message]


def test_results_are_named_after_their_calls_in_file_order():
    spoken = says(
        assistant(call("t1", "Bash")),
        assistant(call("t2", "Read")),
        user([result("t2", "2")]),
        user([result("t1", "1")]),
    )
    assert spoken[2:] == [("read-result", "2\n"), ("bash-result", "1\n")]


@pytest.mark.parametrize(
    ("content", "shown_as"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("one\n", "one\n"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([text("a"), text(""), text("b\n"), text("c")], "a\nb\nc\n"),
        ([text("a"), PNG], "a\n[image]\n"),
        ([PNG], "[image]\n"),
        ([{"type": "image", "source": {"type": "url", "url": "http://x"}}], "[image]\n"),
        ([{"type": "document", "source": {"data": "QUJD"}}], "[document]\n"),
        ([{"type": "audio", "source": {"data": "QUJD"}}], "[audio]\n"),
        ([{"type": "tool_reference", "tool_name": "Web"}], '{"type":"tool_reference","tool_name":"Web"}\n'),
        (["bare", 7, None], '"bare"\n7\nnull\n'),
        ({"odd": 1}, '{"odd":1}\n'),
        (7, "7\n"),
        (
            "<persisted-output>\nsaved\n</persisted-output>",
            "<persisted-output>\nsaved\n</persisted-output>\n",
        ),
        ("\x1b[31mred\x1b[0m \0", "\x1b[31mred\x1b[0m \0\n"),
    ],
)
def test_what_a_result_shows(content, shown_as):
    assert says(assistant(call("t1")), user([result("t1", content)]))[1:] == [("bash-result", shown_as)]


def test_a_result_without_content_is_a_message_of_no_bytes():
    assert says(user([{"type": "tool_result", "tool_use_id": "gone"}])) == [("tool-result", "")]


def test_a_result_without_an_id_is_a_tool_result():
    assert says(assistant(call(None)), user([{"type": "tool_result", "content": "x"}]))[1:] == [
        ("tool-result", "x\n")
    ]


def test_an_error_is_a_result_like_any():
    assert says(user([result("t1", "no such file", is_error=True)])) == [("tool-result", "no such file\n")]


@pytest.mark.parametrize(
    "flags",
    [
        {"isMeta": True},
        {"isCompactSummary": True},
        {"promptSource": "system"},
        {"origin": {"kind": "task-notification"}},
    ],
)
def test_a_record_with_results_gives_results_whatever_its_flags(flags):
    assert says(user([result("t1")], **flags)) == [("tool-result", "ok\n")]


def test_words_beside_a_result_are_messages_of_their_own():
    spoken = says(user([text("no,"), text("stop"), result("t1"), PNG, text("instead")]))
    assert spoken == [("user", "no,\nstop\n"), ("tool-result", "ok\n"), ("user", "[image]\ninstead\n")]


def test_words_beside_a_result_keep_the_flags_of_their_record():
    assert says(user([result("t1"), text("note")], isMeta=True)) == [
        ("tool-result", "ok\n"),
        ("system", "note\n"),
    ]


def test_words_and_pictures_of_one_record_are_one_message():
    assert says(user([text("a"), PNG, text("b"), {"type": "document"}])) == [
        ("user", "a\n[image]\nb\n[document]\n")
    ]


def test_the_structured_copy_of_a_result_is_no_message():
    assert says(user([result("t1", "once")], toolUseResult={"stdout": "once"})) == [("tool-result", "once\n")]


@pytest.mark.parametrize(
    "block", ['{"type":"hologram","x":[1,2.50,"\\u00e9"]}', '{"x":1}', "7", '"bare"', "null", "[[]]"]
)
def test_a_block_that_nobody_knows_is_served_as_its_json(block):
    spoken = b'{"type":"assistant","message":{"content":[' + block.encode() + b"]}}"
    assert says(spoken) == [("assistant", block + "\n")]


@pytest.mark.parametrize("media", ["image", "document", "audio"])
def test_base64_is_never_shown(media):
    data = "QUJDREVG" * 50
    block = {"type": media, "source": {"type": "base64", "data": data}, "data": data, "text": data}
    spoken = says(
        user([block]), assistant(block), user([result("t1", [block])]), queued([block], origin=HUMAN)
    )
    assert [words for _, words in spoken] == [f"[{media}]\n"] * 4


# The program's own records


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"subtype": "compact_boundary", "content": "Conversation compacted"}, "Conversation compacted\n"),
        ({"content": "Running PostToolUse:x", "isMeta": False}, "Running PostToolUse:x\n"),
        (
            {"subtype": "local_command", "content": "<local-command-stdout></local-command-stdout>"},
            "<local-command-stdout></local-command-stdout>\n",
        ),
    ],
)
def test_a_system_record_with_content_is_systems(fields, expected):
    assert says(line(type="system", **fields)) == [("system", expected)]


@pytest.mark.parametrize("fields", [{}, {"content": ""}, {"content": None}, {"subtype": "turn_duration"}])
def test_a_system_record_without_content_says_nothing(fields):
    assert says(line(type="system", durationMs=1, **fields)) == []


def test_a_failure_of_the_api_is_systems():
    spoken = assistant(text("API Error: 529"), isApiErrorMessage=True)
    assert says(spoken) == [("system", "API Error: 529\n")]


def test_a_failure_of_the_api_may_be_a_string():
    failed = line(type="assistant", isApiErrorMessage=True, message={"content": "API Error"})
    assert says(failed) == [("system", "API Error\n")]


def test_a_made_up_answer_that_is_no_failure_is_the_assistants():
    spoken = line(
        type="assistant", message={"model": "<synthetic>", "content": [text("No response requested.")]}
    )
    assert says(spoken) == [("assistant", "No response requested.\n")]


@pytest.mark.parametrize(
    "silent",
    [
        line(type="progress", data={"type": "agent_progress", "message": {"type": "user", "content": "no"}}),
        line(type="file-history-snapshot", snapshot={}),
        line(type="last-prompt", lastPrompt="no", rewound=True),
        line(type="mode", mode="plan"),
        line(type="ai-title", aiTitle="no"),
        line(type="summary", summary="no"),
        line(type="some-future-type", content="no", message={"content": "no"}),
        line(message={"content": "no"}),
        line(type=7, message={"content": "no"}),
        line(type=["user"], message={"content": "no"}),
        line(type="user"),
        line(type="user", message="no"),
        line(type="user", message=None),
        line(type="user", message={}),
        line(type="user", message={"content": None}),
        line(type="user", message={"content": 7}),
        line(type="user", message={"content": {"type": "text", "text": "no"}}),
        line(type="assistant"),
        line(type="assistant", message=[]),
        line(type="assistant", message={"content": None}),
        b"[1]",
        b"7",
        b"null",
        b"",
    ],
)
def test_a_record_of_another_kind_or_shape_is_silence(silent):
    assert says(silent, user("next")) == [("user", "next\n")]


# Branches, copies, order


def test_a_side_chain_is_not_this_chat():
    spoken = says(
        assistant(call("t1", "Grep"), isSidechain=True),
        user([result("t1", "sub")], isSidechain=True),
        user([result("t1", "main")], isSidechain=False),
    )
    assert spoken == [("tool-result", "main\n")]


def test_in_a_subagents_own_file_every_record_is_its_chat():
    assert shown(read_subagent, user("task", isSidechain=True)) == [("user", "task\n")]


def test_a_record_that_was_seen_is_skipped():
    again = user("changed", uuid="u1")
    assert says(user("first", uuid="u1"), user("other", uuid="u2"), again) == [
        ("user", "first\n"),
        ("user", "other\n"),
    ]


def test_a_record_that_said_nothing_counts_as_seen():
    assert says(user("", uuid="u1"), user("later", uuid="u1")) == []


def test_the_copy_of_a_side_chain_record_is_not_one():
    assert says(user("sub", uuid="u1", isSidechain=True), user("main", uuid="u1")) == [("user", "main\n")]


def test_records_without_an_id_are_never_copies():
    assert says(user("same"), user("same"), user("same", uuid=None)) == [("user", "same\n")] * 3


def test_a_seen_record_on_a_glued_line_hides_only_itself():
    first = user("a", uuid="u1")
    assert says(first, first + user("b", uuid="u2")) == [("user", "a\n"), ("user", "b\n")]


def test_turns_that_were_rewound_stay_in_file_order():
    spoken = says(
        user("one", uuid="a", parentUuid=None),
        assistant(text("two"), uuid="b", parentUuid="a"),
        line(type="last-prompt", rewound=True, explicit=True, leafUuid="a"),
        user("three", uuid="c", parentUuid="a"),
    )
    assert [words for _, words in spoken] == ["one\n", "two\n", "three\n"]


def stamp(second: int) -> str:
    return f"1970-01-01T00:00:{second:02d}.000Z"


def test_order_is_the_files_and_times_may_go_back():
    data = b"\n".join([user("late", timestamp=stamp(9)), user("early", timestamp=stamp(3)), b""])
    index = index_of(read, data)
    assert [index.time(id_) for id_ in range(len(index))] == [9 * SECOND, 3 * SECOND]


@pytest.mark.parametrize(
    "missing", [None, "", "yesterday", 7, "99999-01-01T00:00:00Z", "2026-02-30T00:00:00Z"]
)
def test_a_time_that_cannot_be_read_is_that_of_the_message_before(missing):
    index = index_of(read, user("a", timestamp=stamp(5)) + b"\n" + user("b", timestamp=missing) + b"\n")
    assert index.time(1) == 5 * SECOND


def test_before_the_first_time_it_is_the_transcripts_birth():
    assert index_of(read, user("a") + b"\n", birth_ns=77).time(0) == 77


def test_a_record_that_says_nothing_does_not_move_the_time():
    silent = line(type="system", timestamp=stamp(9))
    index = index_of(read, b"\n".join([user("a", timestamp=stamp(5)), silent, user("b"), b""]))
    assert index.time(1) == 5 * SECOND


# What the transcript says of the session


def facts(*lines: bytes) -> dict[str, str]:
    return {name: value for name, (value, _) in index_of(read, b"\n".join([*lines, b""])).facts.items()}


def test_each_kind_of_title_is_kept_the_last_one_wins():
    titles = facts(
        line(type="custom-title", customTitle="a"),
        line(type="ai-title", aiTitle="b"),
        user("hi", uuid="x"),
        line(type="summary", summary="c", leafUuid="x"),
        line(type="custom-title", customTitle="d"),
    )
    assert titles == {"custom-title": "d", "ai-title": "b", "summary": "c"}


@pytest.mark.parametrize("title", [None, 7, {}])
def test_a_title_that_is_no_text_is_none(title):
    assert facts(line(type="custom-title", customTitle=title)) == {}


def test_words_of_the_program_are_no_title():
    assert facts(user("Base directory", isMeta=True)) == {}


def test_the_model_is_the_one_that_spoke_last():
    def answered(model: object, **fields: object) -> bytes:
        return line(type="assistant", message={"model": model, "content": []}, **fields)

    assert facts(
        answered("first"),
        answered("second"),
        answered("<synthetic>"),
        answered("sub", isSidechain=True),
        answered(None),
        line(type="user", message={"model": "no", "content": "x"}),
        line(type="assistant", message="no"),
    ) == {"model": "second"}


# Damage


def test_a_glued_line_loses_nothing():
    assert says(assistant(text("Done.")) + line(type="summary", summary="S"), user("next")) == [
        ("assistant", "Done.\n"),
        ("user", "next\n"),
    ]


def test_bad_lines_in_the_middle_are_skipped_and_counted():
    data = b"\n".join([user("a"), b"\0" * 300, b'{"type":"assis', b"", assistant(text("b")), b""])
    index = index_of(read, data)
    assert (len(index), index.skipped, len(index.skipped_at)) == (2, 2, 2)


LONE = "\ud83d"
SPOILT = [(LONE, "\ufffd"), ("\udcb2x", "\ufffdx"), (LONE + "\u2026", "\ufffd\u2026")]


def escaped(data: bytes) -> bytes:
    """Write surrogates as escapes, as JavaScript does."""
    return data.decode("utf-8", "surrogatepass").encode("ascii", "backslashreplace")


@pytest.mark.parametrize(("spoilt", "good"), SPOILT)
def test_a_lone_surrogate_is_replaced_wherever_text_is_shown(spoilt, good):
    spoken = says(
        escaped(user(spoilt)),
        escaped(assistant(text(spoilt), {"type": "thinking", "thinking": spoilt})),
        escaped(user([result("t1", spoilt), result("t2", [text(spoilt)])])),
        escaped(queued(spoilt, origin=HUMAN)),
        escaped(line(type="system", content=spoilt)),
    )
    assert [words for _, words in spoken] == [good + "\n"] * 7


def test_an_escape_in_a_calls_input_stays_as_it_stands():
    assert says(escaped(assistant(call("t1", "Do", {"x": LONE})))) == [("do", 'Do\n{"x":"\\ud83d"}\n')]


@pytest.mark.parametrize("damage", [b"\\ud800", b"\xff", b"\x01", b"\t", b"\xf0\x9f"])
@pytest.mark.parametrize(
    "record",
    [
        user("MARK", uuid="u", timestamp="t"),
        user("fine", uuid="MARK"),
        user("fine", timestamp="MARK"),
        user("fine", MARK=1),
        user("fine", origin={"kind": "MARK"}),
        user("fine", promptSource="MARK"),
        user([text("MARK")]),
        user([{"type": "MARK", "text": "MARK"}]),
        user([result("MARK", "MARK")]),
        user([result("t", [{"type": "MARK"}])]),
        assistant(text("MARK")),
        assistant(call("MARK", "MARK", {"MARK": "MARK"})),
        queued("MARK", commandMode="MARK"),
        line(type="system", content="MARK"),
    ],
)
def test_damage_in_any_field_costs_no_message(record, damage):
    (spoken,) = says(record.replace(b"MARK", b"a" + damage + b"z"))
    assert spoken[1].encode()


def test_a_title_with_a_lone_surrogate_is_text():
    assert facts(escaped(line(type="ai-title", aiTitle=LONE))) == {"ai-title": "\ufffd"}


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("spoilt", [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xe2\x82\xe2\x82"])
def test_bytes_that_are_no_character_are_one_in_a_name_and_in_a_fact(spoilt):
    good = spoilt.decode("utf-8", "replace")
    spoken = assistant(call("t1", "aMARKz")) + b"\n" + line(type="ai-title", aiTitle="aMARKz") + b"\n"
    index = index_of(read, spoken.replace(b"MARK", spoilt))
    assert index.kind(0) == f"a{'-' * len(good)}z"
    assert fact(index.facts["ai-title"][0]) == f"a{good}z\n".encode()


def test_a_part_is_taken_from_its_own_place_on_a_damaged_line():
    damaged = user("what\x7f", slug="what?").replace(b"\x7f", b"\xff")
    assert says(damaged) == [("user", "what\ufffd\n")]


def test_deep_nesting_in_a_calls_input_is_shown_as_it_stands():
    spoken = assistant(call("t1", "Do", "DEEP")).replace(b'"DEEP"', DEEP)
    assert says(spoken) == [("do", f"Do\n{DEEP.decode()}\n")]


def test_deep_nesting_elsewhere_costs_no_message():
    assert says(user("still here", x="DEEP").replace(b'"DEEP"', DEEP)) == [("user", "still here\n")]


def test_a_deep_block_costs_only_itself():
    spoken = assistant(text("a"), "DEEP", text("b")).replace(b'"DEEP"', DEEP)
    assert says(spoken) == [("assistant", "a\n"), ("assistant", DEEP.decode() + "\n"), ("assistant", "b\n")]


def test_of_two_equal_keys_the_last_counts():
    assert says(
        b'{"type":"system","content":"no","type":"user",'
        b'"message":{"content":"no"},"message":{"content":"no","content":"yes"}}'
    ) == [("user", "yes\n")]


def test_numbers_of_any_length_are_copied():
    digits = b"9" * 10_000
    spoken = assistant(call("t1", "Do", {"n": "N"}), line="N").replace(b'"N"', digits)
    assert says(spoken) == [("do", 'Do\n{"n":' + digits.decode() + "}\n")]


LINES = [
    user("plain", uuid="u1", timestamp=stamp(1)),
    user([text("a"), PNG, result("t1", [text("b"), PNG])], uuid="u2", origin=HUMAN),
    assistant({"type": "thinking", "thinking": "hm"}, text("x"), call("t1", "Bash", {"k": [1, "\u20ac"]})),
    queued([text("q")], commandMode="prompt"),
    line(type="system", content="c"),
    line(type="custom-title", customTitle="t"),
]


@given(st.integers(0, 2**32))
@example(5537)  # a tool's name with a byte that is not UTF-8
def test_no_line_that_was_damaged_raises(seed):
    chance = random.Random(seed)
    spoilt = bytearray(chance.choice(LINES))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(spoilt))
        with_what = chance.choice(
            [b"", b"\\", b'"', b"\xff", b"{", b"]", b"\0", b"\\ud800", b"null", b"[1]", b":"]
        )
        spoilt[at : at + chance.choice([0, 0, 1, 5])] = with_what
    says(bytes(spoilt).replace(b"\n", b""))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | (
                st.dictionaries(
                    st.sampled_from(["type", "text", "content", "name", "input", "id", "thinking"]), inner
                )
            )
        ),
    )
)
def test_no_shape_raises(shape):
    says(user(shape), assistant(shape), queued(shape), line(type="user", message=shape, origin=shape))


# A side chain in the session's own file


def test_a_side_chains_record_of_any_shape_is_read_as_it_stands():
    odd = assistant({"type": "news", "x": 1}, text("hi"), isSidechain=True, uuid="u1")
    said = SideChain("u1")(odd)
    assert said == read_subagent(odd)
    assert [message.role for message in said.messages] == ["assistant", "assistant"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_summary_counts_where_its_leaf_is_a_record_of_this_file(is_first):
    ours = line(type="summary", summary="ours", leafUuid="x")
    others = line(type="summary", summary="others", leafUuid="y")
    spoken = [user("hi", uuid="x")]
    lines = [ours, others, *spoken] if is_first else [*spoken, ours, others]
    assert facts(*lines) == {"summary": "ours"}


PROGRAM_WRITTEN = [
    "<bash-notification>\n<shell-id>b</shell-id>",
    "<agent-notification>x",
    '<cross-session-message from="s">hi</cross-session-message>',
    "<system-reminder>x",
    "Caveat: The messages below were generated by the user while running local commands.",
    "This session is being continued from a previous conversation that ran out of context.",
    "Stop hook feedback:\n- failed",
    "Another Claude session sent a message:\nhi",
]


@pytest.mark.parametrize("text", PROGRAM_WRITTEN)
def test_what_the_program_wrote_is_the_systems_in_every_place(text):
    assert says(user(text)) == [("system", text + "\n")]
    assert says(user([{"type": "text", "text": text}, {"type": "text", "text": "more"}]))[0][0] == "system"
    assert says(queued(text, commandMode="prompt")) == [("system", text + "\n")]
    assert says(user(text, origin={"kind": "human"})) == [("user", text + "\n")]


@pytest.mark.parametrize("text", ["<bash-input>ls</bash-input>", "<user-memory-input>x", "Caveat: mine"])
def test_what_the_person_caused_stays_the_persons(text):
    assert says(user(text)) == [("user", text + "\n")]


SEALED = "QUJD" * 16


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "odd", "encrypted_content": SEALED, "title": "T"}, '"encrypted_content": "[encrypted]"'),
        ({"type": "odd", "deep": [{"blob": SEALED, "uri": "u"}]}, '"blob": "[data]", "uri": "u"'),
        ({"type": "odd", "data": SEALED[:60]}, f'"data": "{SEALED[:60]}"'),
        ({"type": "odd", "url": "data:image/png;base64," + SEALED}, '"url": "[data]"'),
        ({"type": "odd", "text": SEALED}, SEALED),
        ({"type": "odd", "list": ["data", SEALED]}, SEALED),
        ({"type": "odd", "file_data": SEALED, "name": 'a "b": "c'}, '"file_data": "[data]"'),
        ({"type": "odd", "data": {"blob": "short", "words": SEALED}}, SEALED),
        ({"type": "odd", "blob": [SEALED, SEALED + "x"]}, '"blob": ["[data]", "[data]"]'),
        ({"type": "odd", "data": 5, "list": [SEALED]}, SEALED),
        ({"type": "odd", "list": [{"data": 5}, SEALED]}, SEALED),
    ],
)
def test_sealed_and_binary_strings_of_an_unknown_block_are_named_only(block, shown):
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    [(_, text)] = says(json.dumps({"type": "user", "message": {"content": [result]}}).encode())
    assert shown in text
    long = dict(block, padding="p" * 200_000)
    result["content"] = [long]
    [(_, text)] = says(json.dumps({"type": "user", "message": {"content": [result]}}).encode())
    assert shown in text
    assert (SEALED in text) == (shown == SEALED)


def test_a_document_of_plain_text_is_its_text():
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    other = {"type": "document", "source": {"type": "base64", "data": SEALED}}
    assert says(user([plain, other])) == [("user", "words\n[document]\n")]


def test_an_escaped_key_names_a_sealed_string_too():
    block = {"type": "odd", "BLOB": SEALED, "u": "DATA:x;base64," + SEALED}
    record = line(type="user", message={"content": [{"type": "tool_result", "content": [block]}]})
    [(_, text)] = says(record.replace(b"BLOB", b"bl\\u006fb").replace(b"DATA", b"d\\u0061ta"))
    assert SEALED not in text
