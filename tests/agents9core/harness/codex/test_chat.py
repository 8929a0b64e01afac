"""Who said what in a Codex rollout (DESIGN section 4)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import index as index_module
from agents9core.harness.codex.chat import read
from tests.support.chatlines import index_of, line, shown

SECOND = 1_000_000_000
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,QUJDREVG"}


def record(type_: str, payload: object, **fields: object) -> bytes:
    return line(type=type_, payload=payload, **fields)


def item(type_: str, **fields: object) -> bytes:
    return record("response_item", {"type": type_, **fields})


def words(text: object) -> dict[str, object]:
    return {"type": "input_text", "text": text}


def user(*items: object, kinds: object = None, **fields: object) -> bytes:
    passed = (
        {} if kinds is None else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}
    )
    payload = {"type": "message", "role": "user", "content": list(items), **passed}
    return record("response_item", payload, **fields)


def assistant(text: str, **fields: object) -> bytes:
    content = [{"type": "output_text", "text": text}]
    return record("response_item", {"type": "message", "role": "assistant", "content": content}, **fields)


def call(id_: object, name: object = "exec", arguments: object = "{}", **fields: object) -> bytes:
    return item("function_call", call_id=id_, name=name, arguments=arguments, **fields)


def output(id_: object, content: object = "ok") -> bytes:
    return item("function_call_output", call_id=id_, output=content)


def says(*lines: bytes) -> list[tuple[str, str]]:
    return shown(read, *lines)


# Roles


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("assistant", "assistant"),
        ("developer", "system"),
        ("system", "system"),
        (None, "system"),
        ("x", "system"),
    ],
)
def test_a_message_is_its_roles(role, kind):
    assert says(item("message", role=role, content=[words("said")])) == [(kind, "said\n")]


@pytest.mark.parametrize("phase", ["commentary", "final_answer", None])
def test_an_answer_is_the_assistants_in_every_phase(phase):
    spoken = item("message", role="assistant", phase=phase, content=[{"type": "output_text", "text": "a"}])
    assert says(spoken) == [("assistant", "a\n")]


def test_the_items_of_an_answer_are_one_message():
    content = [{"type": "output_text", "text": "a"}, {"type": "text", "text": "b"}, PICTURE]
    assert says(item("message", role="assistant", content=content)) == [("assistant", "a\nb\n[image]\n")]


@pytest.mark.parametrize("role", ["user", "assistant", "developer"])
@pytest.mark.parametrize("content", [[], "", None, [words("")], [words(None)], [{"type": "input_text"}]])
def test_a_message_without_text_uses_no_id(role, content):
    assert says(item("message", role=role, content=content), assistant("next")) == [("assistant", "next\n")]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_content_may_be_a_string(role):
    assert says(item("message", role=role, content="plain")) == [(role, "plain\n")]


def test_an_item_that_nobody_knows_is_served_as_its_json():
    assert says(user({"type": "hologram", "x": 1})) == [("user", '{"type":"hologram","x":1}\n')]


# What codex writes in the user's role

MARKED = [
    "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
    "# AGENTS.md instructions\n<INSTRUCTIONS>x</INSTRUCTIONS>",
    "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>",
    "<ENVIRONMENT_CONTEXT>x</Environment_Context>",
    "  \n<environment_context>x</environment_context>\n ",
    "<environment_context></environment_context>",
    "<skill>x</skill>",
    "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>",
    "<user_shell_cmd>ls</user_shell_cmd>",
    "<user_action><context>x</context><action>review</action></user_action>",
    "<user_instructions>\nx\n</user_instructions>",
    "<turn_aborted>\nx\n</turn_aborted>",
    '<subagent_notification>{"status":"done"}</subagent_notification>',
    '<codex_internal_context source="goal">x</codex_internal_context>',
    '<codex_internal_context source="a_9">x</codex_internal_context>',
    "<goal_context>x</goal_context>",
    "<recommended_plugins>x</recommended_plugins>",
    "<external_jira>x</external_jira>",
    '<hook_prompt hook_run_id="7">x</hook_prompt>',
    "<agent_message_board_notification>x</agent_message_board_notification>",
    "<warning>x</warning>",
    "Warning: The maximum number of unified exec processes you can keep open is 60 and so on",
    "Warning: apply_patch was requested via shell. Use the apply_patch tool instead of exec_command.",
    "Warning: Your account was flagged for potentially high-risk cyber activity, x",
    "Another language model started to solve this problem and produced a summary of its thinking process. x",
]
NOT_MARKED = [
    "what does <environment_context> mean?",
    "<environment_context> is what?",
    "is it </environment_context>",
    "<environment_context>x</environment_context> and now?",
    "see <environment_context>x</environment_context>",
    "<environment_context>x</turn_aborted>",
    "<environment_context x='1'>x</environment_context>",
    "# AGENTS.md instructions are wrong, see </INSTRUCTIONS> there",
    "<external_a>x</external_b>",
    '<codex_internal_context source="">x</codex_internal_context>',
    '<codex_internal_context source="9">x</codex_internal_context>',
    "<codex_internal_context>x</codex_internal_context>",
    '<hook_prompt hook_run_id="">x</hook_prompt>',
    "<realtime_delegation>x</realtime_delegation>",
    "<\u017fkill>x</\u017fkill>",
    "Warning: it rains",
    "# Context from my IDE setup:\n\n## Active file: a.c\n\n## My request for Codex:\nfix",
    "fix it",
]


@pytest.mark.parametrize("text", MARKED)
def test_text_between_codexs_marks_is_systems(text):
    assert says(user(words(text))) == [("system", text.rstrip("\n") + ("" if text[-1] == "\n" else "\n"))]


@pytest.mark.parametrize("text", NOT_MARKED)
def test_text_that_only_mentions_a_mark_is_the_users(text):
    assert says(user(words(text))) == [("user", text + "\n")]


@pytest.mark.parametrize(("texts", "kind"), [(MARKED[:3], "system"), (NOT_MARKED[:3], "user")])
def test_marks_tell_also_where_content_is_a_string(texts, kind):
    assert [spoken for text in texts for spoken, _ in says(item("message", role="user", content=text))] == [
        kind
    ] * 3


@pytest.mark.parametrize(
    ("kind", "speaker"),
    [
        ("user.text", "user"),
        ("user.answered_question", "user"),
        ("goal.internal_context", "system"),
        ("environments.environment_context", "system"),
        ("user", "system"),
        ("users.text", "system"),
        ("some.future_kind", "system"),
        ("", "system"),
    ],
)
@pytest.mark.parametrize("text", ["Follow the goal.", "<skill>x</skill>"])
def test_an_items_kind_goes_before_its_marks(text, kind, speaker):
    assert says(user(words(text), kinds=[kind])) == [(speaker, text + "\n")]


@pytest.mark.parametrize(
    "kinds",
    [[], ["goal.x", "goal.x"], [None], [7], None, "goal.x", {"0": "goal.x"}, ["goal.x", "user.text", "a"]],
)
def test_kinds_that_do_not_match_the_items_leave_it_to_the_marks(kinds):
    assert says(user(words("go"), kinds=kinds)) == [("user", "go\n")]


def test_kinds_of_another_shape_leave_it_to_the_marks():
    content = [words("go")]
    spoken = item("message", role="user", content=content, internal_chat_message_metadata_passthrough=["x"])
    assert says(spoken) == [("user", "go\n")]


def test_neighbours_of_one_class_are_one_message():
    spoken = user(words(MARKED[0]), words(MARKED[2]), words("fix"), PICTURE, words("it"), words(MARKED[6]))
    assert says(spoken) == [
        ("system", f"{MARKED[0]}\n{MARKED[2]}\n"),
        ("user", "fix\n[image]\nit\n"),
        ("system", f"{MARKED[6]}\n"),
    ]


def test_each_item_is_classed_by_its_own_kind():
    kinds = ["agents_md.instructions", "user.text", "user.image", "hooks.additional_context"]
    assert says(user(words("a"), words("b"), PICTURE, words("c"), kinds=kinds)) == [
        ("system", "a\n"),
        ("user", "b\n[image]\n"),
        ("system", "c\n"),
    ]


def test_an_empty_item_parts_nobody():
    assert says(user(words("a"), words(""), words("b"))) == [("user", "a\nb\n")]


AUDIO = {"type": "input_audio", "audio_url": "data:audio/wav;base64,QUJD"}


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (
            [words('<image name=[Image #1] path="p.png">'), PICTURE, words("</image>"), words("look")],
            "[image]\nlook\n",
        ),
        ([words("<image>"), PICTURE, words("</image>")], "[image]\n"),
        ([words(" <image> "), PICTURE, words("\n</image>\n")], "[image]\n"),
        ([words("<audio x>"), AUDIO, words("</audio>")], "[audio]\n"),
        ([words("<image>"), PICTURE, words("</image>"), words("<image>"), PICTURE], "[image]\n[image]\n"),
        ([words("<image>"), words("look")], "<image>\nlook\n"),
        ([words("look"), words("</image>")], "look\n</image>\n"),
        ([words("<images>"), PICTURE], "<images>\n[image]\n"),
        ([words("<image> look"), PICTURE], "<image> look\n[image]\n"),
        ([PICTURE, words("</image> look")], "[image]\n</image> look\n"),
        ([words("</image>"), PICTURE, words("<image>")], "</image>\n[image]\n<image>\n"),
    ],
)
def test_the_tags_round_a_picture_are_dropped(items, text):
    assert says(user(*items)) == [("user", text)]


def test_dropped_tags_still_count_where_kinds_are_matched():
    items = [words("<image>"), PICTURE, words("</image>"), words("a"), words("b")]
    kinds = ["user.text", "user.image", "user.text", "user.text", "goal.internal_context"]
    assert says(user(*items, kinds=kinds)) == [("user", "[image]\na\n"), ("system", "b\n")]


# Reasoning, agents, compaction


def thought(summary: object, content: object = None) -> bytes:
    return item("reasoning", summary=summary, content=content, encrypted_content="QUJD")


SUMMARY = [{"type": "summary_text", "text": "**A**"}, {"type": "summary_text", "text": "**B**"}]
RAW_THOUGHT = [{"type": "reasoning_text", "text": "raw"}]


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        (thought(SUMMARY), [("thinking", "**A**\n**B**\n")]),
        (thought(SUMMARY, RAW_THOUGHT), [("thinking", "**A**\n**B**\n")]),
        (thought([], RAW_THOUGHT), [("thinking", "raw\n")]),
        (thought([{"type": "summary_text", "text": ""}], RAW_THOUGHT), [("thinking", "raw\n")]),
        (thought(None, RAW_THOUGHT), [("thinking", "raw\n")]),
        (thought([]), []),
        (thought(None), []),
        (item("reasoning"), []),
    ],
)
def test_reasoning_is_its_summary_else_its_text_else_nothing(spoken, expected):
    assert says(spoken) == expected


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"author": "/root", "content": [words("do\n"), {"type": "encrypted_content"}]},
            "/root\ndo\n[encrypted]\n",
        ),
        ({"author": "/root/a", "content": [words("done")]}, "/root/a\ndone\n"),
        ({"content": [words("done")]}, "done\n"),
        ({"author": "/root/a", "content": []}, "/root/a\n"),
        ({"author": "/root/a", "encrypted_content": "QUJD"}, "/root/a\n[encrypted]\n"),
        ({"author": "/root/a", "content": [words("x")], "encrypted_content": "QUJD"}, "/root/a\nx\n"),
    ],
)
def test_an_agents_message_is_its_author_then_its_words(fields, text):
    assert says(item("agent_message", recipient="/root/b", **fields)) == [("agent", text)]


def between(**fields: object) -> bytes:
    return record("inter_agent_communication", {"recipient": "/root", "trigger_turn": False, **fields})


def test_agents_talk_at_the_top_level_too():
    assert says(between(author="/root/a", content="done")) == [("agent", "/root/a\ndone\n")]


def test_what_agents_said_sealed_is_named():
    assert says(between(author="/root/a", content="", encrypted_content="QUJD")) == [
        ("agent", "/root/a\n[encrypted]\n")
    ]


@pytest.mark.parametrize("id_", ["i1", None])
def test_talk_between_agents_is_shown_once_an_id(id_):
    first = item("agent_message", id="i1", author="/root/a", content=[words("done")])
    spoken = says(first, between(id=id_, author="/root/a", content="done"))
    assert len(spoken) == (1 if id_ else 2)


def test_two_agent_messages_of_one_id_are_both_shown():
    twice = [
        item("agent_message", id="i1", author="/root/a", content=[words(text)]) for text in ("one", "two")
    ]
    assert [text for _, text in says(*twice)] == ["/root/a\none\n", "/root/a\ntwo\n"]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"message": "S", "replacement_history": [{"type": "message", "role": "user"}]}, [("system", "S\n")]),
        ({"message": "", "replacement_history": []}, []),
        ({"message": None}, []),
        ({}, []),
    ],
)
def test_a_compaction_says_its_summary_and_never_the_history_again(payload, expected):
    assert says(record("compacted", payload)) == expected


# Tools


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        (call("c", "exec_command", '{"cmd":"ls\\n"}'), ("exec_command", 'exec_command\n{"cmd":"ls\\n"}\n')),
        (call("c", "Spawn", "{}", namespace="team"), ("spawn", "Spawn\n{}\n")),
        (call("c", "x", {"a": 1.5}), ("x", 'x\n{"a":1.5}\n')),
        (call("c", "x", ""), ("x", "x\n")),
        (call("c", "x", None), ("x", "x\n")),
        (call("c", "x", None, input="later"), ("x", "x\nlater\n")),
        (call("c", "x", "first", input="later", action={}), ("x", "x\nfirst\n")),
        (call("c", None), ("function", "function\n{}\n")),
        (call("c", ""), ("function", "function\n{}\n")),
        (call("c", 7), ("function", "function\n{}\n")),
        (call("c", "User"), ("tool-call", "User\n{}\n")),
        (
            item("custom_tool_call", call_id="c", name="apply_patch", input="*** Begin\n*** End\n"),
            ("apply_patch", "apply_patch\n*** Begin\n*** End\n"),
        ),
        (item("custom_tool_call", call_id="c", input="x"), ("custom_tool", "custom_tool\nx\n")),
        (
            item("local_shell_call", call_id="c", action={"type": "exec", "command": ["ls"]}),
            ("local_shell", 'local_shell\n{"type":"exec","command":["ls"]}\n'),
        ),
        (
            item("web_search_call", id="w", action={"type": "search", "query": "q"}),
            ("web_search", 'web_search\n{"type":"search","query":"q"}\n'),
        ),
        (item("web_search_call", status="in_progress"), ("web_search", "web_search\n")),
        (
            item("tool_search_call", call_id=None, execution="client", arguments={"query": "m"}),
            ("tool_search", 'tool_search\n{"query":"m"}\n'),
        ),
        (item("future_call", arguments="x"), ("future", "future\nx\n")),
        (item('od"d\\_call', arguments="x"), ("od-d-", 'od"d\\\nx\n')),
        (item("\n_call"), ("-", "\n")),
        (item("_call"), ("tool-call", "")),
        (
            item("image_generation_call", id="g", revised_prompt="a cat", result="QUJDREVG"),
            ("image_generation", "image_generation\na cat\n[image]\n"),
        ),
        (
            item("image_generation_call", result="QUJDREVG"),
            ("image_generation", "image_generation\n[image]\n"),
        ),
    ],
)
def test_a_call_is_its_name_then_its_input(spoken, expected):
    assert says(spoken) == [expected]


@pytest.mark.parametrize("damage", [b"\\ud800", b"\xff"])
def test_a_call_without_a_name_is_named_also_on_a_damaged_line(damage):
    spoken = item("web_search_call", action={"query": "MARK"}).replace(b"MARK", damage)
    assert [kind for kind, _ in says(spoken)] == ["web_search"]


def test_a_generated_picture_that_fills_a_long_line_is_only_named(monkeypatch):
    monkeypatch.setattr(index_module, "LONG", 100)
    spoken = item("image_generation_call", revised_prompt="a cat", result="QUJD" * 500)
    assert says(spoken) == [("image_generation", "image_generation\na cat\n[image]\n")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a\nb", "a\nb\n"),
        ('{"output":"a\\n","metadata":{"exit_code":1}}', '{"output":"a\\n","metadata":{"exit_code":1}}\n'),
        ([words("a"), PICTURE, words("b")], "a\n[image]\nb\n"),
        ([PICTURE], "[image]\n"),
        ([AUDIO], "[audio]\n"),
        ([{"type": "encrypted_content", "encrypted_content": "QUJD"}], "[encrypted]\n"),
        ({"content": "x"}, '{"content":"x"}\n'),
        ("", ""),
        ([], ""),
        (None, ""),
    ],
)
def test_what_an_output_shows(content, text):
    assert says(call("c"), output("c", content))[1:] == [("exec-result", text)]


def test_outputs_are_named_after_their_calls_in_file_order():
    spoken = says(
        call("x", "a"), call("y", "b"), output("y"), record("event_msg", {"type": "x"}), output("x")
    )
    assert [kind for kind, _ in spoken] == ["a", "b", "b-result", "a-result"]


@pytest.mark.parametrize("id_", ["never seen", None, 7])
def test_an_output_of_no_known_call_is_a_tool_result(id_):
    assert says(call(None, "a"), item("web_search_call"), output(id_, "x"))[2:] == [("tool-result", "x\n")]


def test_an_output_finds_a_local_shell_call_by_its_id():
    assert says(item("local_shell_call", call_id="c"), output("c"))[1:] == [("local_shell-result", "ok\n")]


def test_the_answer_of_a_tool_search_is_its_tools_as_they_stand():
    found = item("tool_search_output", call_id="c", tools=[{"type": "namespace", "name": "mail"}])
    assert says(item("tool_search_call", call_id="c", arguments={}), found)[1:] == [
        ("tool_search-result", '[{"type":"namespace","name":"mail"}]\n')
    ]


def test_an_output_that_has_nothing_is_a_message_of_no_bytes():
    assert says(item("tool_search_output", call_id="c")) == [("tool-result", "")]


# Silence


@pytest.mark.parametrize(
    "silent",
    [
        record("event_msg", {"type": "user_message", "message": "no"}),
        record("event_msg", {"type": "agent_message", "message": "no"}),
        record("event_msg", {"type": "agent_reasoning", "text": "no"}),
        record("event_msg", {"type": "item_completed", "item": {"type": "AgentMessage", "text": "no"}}),
        record("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
        record("event_msg", {"type": "turn_aborted", "reason": "interrupted"}),
        record("turn_context", {"model": "m"}),
        record("world_state", {"full": True}),
        record("inter_agent_communication_metadata", {"trigger_turn": False}),
        record("token_usage_record", {}),
        record("realtime_item", {"type": "audio_segment", "role": "user", "text": "no"}),
        record("some_future_type", {"content": "no"}),
        record("session_meta", {"id": "B"}),
        item("ghost_snapshot", ghost_commit={}),
        item("compaction", encrypted_content="QUJD"),
        item("context_compaction", encrypted_content="QUJD"),
        item("some_future_item", content=[words("no")]),
        record("response_item", None),
        record("response_item", "no"),
        record("response_item", {}),
        record("response_item", {"type": 7}),
        line(type=None, payload={"type": "message", "role": "user", "content": "no"}),
        line(record_type="state"),
        b"[]",
        b"",
    ],
)
def test_copies_and_bookkeeping_say_nothing(silent):
    assert says(silent, assistant("next")) == [("assistant", "next\n")]


def test_turns_that_were_rolled_back_stay():
    rolled_back = record("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    spoken = says(user(words("a")), assistant("b"), rolled_back, user(words("c")))
    assert [text for _, text in spoken] == ["a\n", "b\n", "c\n"]


def test_equal_answers_are_both_real():
    again = [item("message", id=id_, role="assistant", content=[words("hi")]) for id_ in ("m1", "m2", "m2")]
    assert says(*again) == [("assistant", "hi\n")] * 3


# The format of 2025, without wrappers


def test_the_format_without_wrappers_is_read():
    spoken = says(
        line(id="cf4def41", timestamp="2025-09-10T18:58:38.331Z", instructions="no", git={}),
        line(record_type="state"),
        line(type="message", role="user", content=[words("<user_instructions>x</user_instructions>")]),
        line(type="message", role="user", content=[words("hi")]),
        line(type="reasoning", summary=SUMMARY[:1]),
        line(type="function_call", name="shell", arguments="{}", call_id="c"),
        line(type="function_call_output", call_id="c", output="done"),
        line(type="message", role="assistant", content=[{"type": "output_text", "text": "bye"}]),
    )
    assert spoken == [
        ("system", "<user_instructions>x</user_instructions>\n"),
        ("user", "hi\n"),
        ("thinking", "**A**\n"),
        ("shell", "shell\n{}\n"),
        ("shell-result", "done\n"),
        ("assistant", "bye\n"),
    ]


# A subagent's own file


def meta(start: object, ordinal: int = 0) -> bytes:
    return record("session_meta", {"id": "B", "subagent_history_start_ordinal": start}, ordinal=ordinal)


def test_a_subagents_inherited_records_are_not_its_chat():
    spoken = says(
        meta(3),
        record("session_meta", {"id": "A"}, ordinal=1),
        assistant("parent's", ordinal=2),
        assistant("own", ordinal=3),
    )
    assert spoken == [("assistant", "own\n")]


def test_only_the_first_record_says_where_the_own_history_begins():
    assert says(meta(0), meta(9, ordinal=1), assistant("own", ordinal=2)) == [("assistant", "own\n")]


def test_where_the_first_record_is_no_header_nothing_is_inherited():
    assert says(assistant("a", ordinal=0), meta(9), assistant("b", ordinal=2)) == [
        ("assistant", "a\n"),
        ("assistant", "b\n"),
    ]


@pytest.mark.parametrize("start", [None, -1, "3", 1.5, [], True])
def test_a_beginning_that_is_no_number_is_none(start):
    assert says(meta(start), assistant("own", ordinal=1)) == [("assistant", "own\n")]


def test_a_negative_ordinal_is_nobodys_history():
    assert says(assistant("own", ordinal=-1)) == [("assistant", "own\n")]


def test_records_without_an_ordinal_are_not_counted_as_inherited():
    assert says(meta(3), assistant("own")) == [("assistant", "own\n")]


def test_an_ordinal_of_any_length_is_read():
    own = assistant("own", ordinal="N").replace(b'"N"', b"9" * 10_000)
    assert says(meta(3), own) == [("assistant", "own\n")]


@pytest.mark.parametrize(("inherited", "count"), [(True, 0), (False, 1), (None, 1), ("true", 1)])
def test_an_inherited_message_is_not_this_chat(inherited, count):
    assert len(says(user(words("a"), metadata={"inherited_user_message": inherited}))) == count


def test_a_call_that_was_inherited_names_no_result():
    spoken = says(
        meta(2), record("response_item", {"type": "function_call", "name": "a", "call_id": "c"}, ordinal=1)
    )
    assert spoken == []


def test_facts_of_inherited_records_are_the_parents():
    index = index_of(read, meta(3) + b"\n" + record("turn_context", {"model": "m"}, ordinal=1) + b"\n")
    assert index.facts == {}


# Times and facts


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02d}.000Z"


def test_a_message_has_the_time_of_its_record():
    index = index_of(read, assistant("a", timestamp=at(3)) + b"\n" + assistant("b") + b"\n")
    assert [index.time(0), index.time(1)] == [3 * SECOND, 3 * SECOND]


def test_a_mixed_record_gives_messages_of_one_time():
    index = index_of(read, user(words(MARKED[6]), words("go"), timestamp=at(7)) + b"\n", birth_ns=1)
    assert [index.time(0), index.time(1)] == [7 * SECOND, 7 * SECOND]


@pytest.mark.parametrize(
    ("event", "turn"),
    [
        ("task_started", "busy"),
        ("turn_started", "busy"),
        ("task_complete", "idle"),
        ("turn_complete", "idle"),
        ("turn_aborted", "idle"),
    ],
)
def test_whether_a_turn_runs_and_since_when(event, turn):
    index = index_of(read, record("event_msg", {"type": event}, timestamp=at(5)) + b"\n")
    assert index.facts == {"turn": (turn, 5 * SECOND)}


def test_the_model_is_the_last_turns():
    turns = [record("turn_context", {"model": model}) for model in ("a", "b", "", None)]
    assert index_of(read, b"\n".join([*turns, b""])).facts["model"][0] == "b"


# Damage

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("damage", [b"\\ud800", b"\xff", b"\x01", b"\t", b"\xf0\x9f"])
@pytest.mark.parametrize(
    "spoken",
    [
        user(words("MARK")),
        user(words("MARK"), kinds=["MARK"]),
        assistant("MARK", timestamp="MARK"),
        thought([{"type": "summary_text", "text": "MARK"}]),
        call("MARK", "MARK", "MARK"),
        call("c", "a", {"MARK": "MARK"}),
        output("MARK", "MARK"),
        output("MARK", [words("MARK")]),
        item("MARK_call"),
        item("agent_message", author="MARK", content=[words("MARK")]),
        between(id="MARK", content="MARK"),
        record("compacted", {"message": "MARK"}),
        line(type="message", role="user", content="MARK"),
    ],
)
def test_damage_in_any_field_costs_no_message(spoken, damage):
    ((_, text),) = says(spoken.replace(b"MARK", b"a" + damage + b"z"))
    assert "a" in text


def test_a_lone_surrogate_in_arguments_is_replaced():
    assert says(call("c", "x", "MARK").replace(b"MARK", rb"a\ud800")) == [("x", "x\na\ufffd\n")]


def test_deep_nesting_is_shown_as_it_stands():
    assert says(call("c", "x", "DEEP").replace(b'"DEEP"', DEEP)) == [("x", "x\n" + DEEP.decode() + "\n")]


LINES = [
    user(
        words("a"),
        PICTURE,
        words("<skill>x</skill>"),
        kinds=["user.text", "user.image", "skills.x"],
        ordinal=4,
    ),
    item("agent_message", id="i", author="/root", content=[words("a"), {"type": "encrypted_content"}]),
    call("c", "x", '{"a":"\u20ac"}'),
    output("c", [words("a"), PICTURE]),
    item("image_generation_call", revised_prompt="p", result="QUJD"),
    meta(3),
    thought(SUMMARY),
    record("event_msg", {"type": "task_started"}, timestamp=at(1)),
]


@given(st.integers(0, 2**32))
def test_no_line_that_was_damaged_raises(seed):
    chance = random.Random(seed)
    spoilt = bytearray(chance.choice(LINES))
    for _ in range(chance.randint(1, 6)):
        where = chance.randrange(len(spoilt))
        with_what = chance.choice(
            [b"", b"\\", b'"', b"\xff", b"{", b"]", b"\0", b"\\ud800", b"null", b"[1]", b"_call"]
        )
        spoilt[where : where + chance.choice([0, 0, 1, 5])] = with_what
    says(bytes(spoilt).replace(b"\n", b""))


FIELDS = st.sampled_from(
    ["type", "text", "content", "name", "output", "arguments", "summary", "tools", "role"]
)
TYPES = st.sampled_from(
    ["message", "reasoning", "agent_message", "x_call", "x_output", "image_generation_call"]
)


@given(
    TYPES,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner),
    ),
)
def test_no_shape_raises(type_, shape):
    fields = dict.fromkeys(["role", "content", "summary", "name", "arguments", "output", "author"], shape)
    says(item(type_, **fields), user(shape), record("compacted", shape), record("session_meta", shape))


# Events that repeat an item are read as carefully as items: nothing hides behind one


EVENT = record("event_msg", {"type": "agent_message", "message": 'so it is: {"type":"x"}{'}, timestamp="t")


@pytest.mark.parametrize("between", [b"", b" ", b"\0\0", b"\xef\xbb\xbf"])
def test_an_item_glued_onto_an_event_is_read(between):
    assert says(EVENT + between + assistant("hello")) == [("assistant", "hello\n")]


@pytest.mark.parametrize("end", [40, len(EVENT) - 1, len(EVENT) - 2, len(EVENT) - 4])
def test_a_torn_event_counts_as_skipped(end):
    index = index_of(read, EVENT[:end] + b"\n" + EVENT[:end] + assistant("hello") + b"\n" + EVENT + b"\n")
    assert (len(index), index.skipped) == (0, 2)


def test_the_last_of_two_types_counts():
    assert says(
        EVENT[:-1] + b',"type":"response_item","payload":' + b'{"type":"reasoning","summary":"hm"}}'
    ) == [("thinking", "hm\n")]


@pytest.mark.parametrize(
    "odd",
    [
        {"arguments": {"a": 1}},
        {"arguments": None, "action": {"a": 1}},
        {"name": 7, "arguments": '{"a": 1}'},
        {"call_id": 7, "arguments": '{"a": 1}'},
    ],
)
def test_a_call_of_another_shape_is_read_all_the_same(odd):
    [(_, text)] = says(item("function_call", **{"name": "exec", "call_id": "c", **odd}))
    assert text.replace(" ", "").endswith('\n{"a":1}\n')


def plan(text):
    return record("event_msg", {"type": "item_completed", "item": {"type": "Plan", "id": "p", "text": text}})


def test_a_plan_that_no_message_holds_is_said_by_its_event():
    assert says(plan("1. cut"), assistant("next")) == [("assistant", "1. cut\n"), ("assistant", "next\n")]


@pytest.mark.parametrize("around", ["{}", "Here:\n{}\nShall I?"])
def test_a_plan_that_a_message_holds_is_said_once(around):
    held = around.format("<proposed_plan>\n1. cut\n2. glue\n</proposed_plan>")
    assert says(assistant(held), plan("1. cut\n2. glue")) == [("assistant", held + "\n")]
    two = says(assistant(held), plan("1. other"))
    assert [text for _, text in two] == [held + "\n", "1. other\n"]


@pytest.mark.parametrize(
    "odd", [{"type": "Plan"}, {"type": "Plan", "text": 7}, {"type": "Plan", "text": ""}, [], "x"]
)
def test_an_odd_plan_says_nothing(odd):
    assert says(record("event_msg", {"type": "item_completed", "item": odd})) == []


def test_spoken_words_are_messages_by_their_role():
    def spoken(role, text):
        return record("realtime_item", {"type": "transcript_segment", "role": role, "text": text})

    assert says(spoken("user", "a"), spoken("assistant", "b"), spoken("other", "c"), spoken("user", "")) == [
        ("user", "a\n"),
        ("assistant", "b\n"),
        ("system", "c\n"),
    ]


@pytest.mark.parametrize(("text", "speaker"), [("<user_action>x</user_action>", "system"), ("go", "user")])
def test_an_item_of_unknown_kind_is_sorted_by_its_marks(text, speaker):
    assert says(user(words(text), kinds=["unknown"])) == [(speaker, text + "\n")]


def test_the_last_name_of_the_thread_is_kept():
    def named(name):
        return record("event_msg", {"type": "thread_name_updated", "thread_name": name})

    index = index_of(read, b"\n".join([named("first"), named("second"), named(None), b""]))
    assert index.facts["thread_name"][0] == "second"
