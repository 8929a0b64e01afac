"""The page's pure modules, each by itself, in the browser that runs them."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def blank(browser, shop_server):
    """A document of the page's origin without the page."""
    page = browser.new_page()
    page.goto(f"{shop_server.url}/active/claude/601/session")
    yield page
    page.close()


@pytest.fixture(scope="module")
def run(blank):
    """Calls a function of a module; *wrap* is JavaScript of what it returns, called `it`."""

    def call(module: str, function: str, *arguments: object, wrap: str = "it") -> object:
        return blank.evaluate(
            f"async (given) => {{ const {{ {function} }} = await import('/.page/{module}.js');"
            f" const it = {function}(...given); return {wrap}; }}",
            list(arguments),
        )

    return call


@pytest.fixture(scope="module")
def coloured(blank):
    """Gives what the page makes of a terminal's text: the classes, colour and text of each piece."""
    script = """async (text) => {
        const { addTerminalText } = await import('/.page/ansi.js');
        const box = addTerminalText(document.createElement('pre'), text);
        return [...box.childNodes].map((one) =>
            one.data ? ['', '', one.data] : [one.className, one.style.color, one.textContent]);
    }"""
    return lambda text: blank.evaluate(script, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", [["", "", "plain"]]),
        ("\x1b[31mred\x1b[0m not", [["ink-red", "", "red"], ["", "", " not"]]),
        ("\x1b[1;31mred", [["sgr-bold ink-red", "", "red"]]),
        ("\x1b[91mred\x1b[39;4m_", [["ink-bright-red", "", "red"], ["sgr-underline", "", "_"]]),
        ("\x1b[38;5;1mred", [["ink-red", "", "red"]]),
        ("\x1b[38;5;196mred", [["", "light-dark(rgb(217, 0, 0), rgb(255, 51, 51))", "red"]]),
        ("\x1b[38;5;244mgrey", [["", "light-dark(rgb(109, 109, 109), rgb(134, 134, 134))", "grey"]]),
        ("\x1b[38;2;1;2;3mrgb", [["", "light-dark(rgb(1, 2, 3), rgb(141, 141, 142))", "rgb"]]),
        (
            "\x1b[38:2::255:100:0;1mcolons",
            [["sgr-bold", "light-dark(rgb(191, 75, 0), rgb(255, 100, 0))", "colons"]],
        ),
        ("\x1b[38:5:1mred", [["ink-red", "", "red"]]),
        ("\x1b[4:3mcurly\x1b[4:0mnot", [["sgr-underline", "", "curly"], ["", "", "not"]]),
        ("\x1b[1;58;2;1;4;9mline", [["sgr-bold", "", "line"]]),
        ("\x1b[31;7mturned", [["paper-red", "", "turned"]]),
        ("\x1b[38;5;999mno colour", [["", "", "no colour"]]),
        ("\x1b[7mturned", [["paper-ink ink-paper", "", "turned"]]),
        ("\x1b[8mconcealed", [["", "", "concealed"]]),
        ("\x1b[2J\x1b[1;1Hmoved\x1b[K", [["", "", "moved"]]),
        ("\x1b]0;a title\x07\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\", [["", "", "link"]]),
        ("\x1bPq#0;2;0\x1b\\sixel", [["", "", "sixel"]]),
        ("\x1b(Bset\x1bM", [["", "", "set"]]),
        ("one\r\ntwo\rthree", [["", "", "one\ntwo\nthree"]]),
        ("\x1b]0;no end\nthe rest", [["unseen", "", "␛"], ["", "", "]0;no end\nthe rest"]]),
        ("\x1b[31", [["unseen", "", "␛"], ["", "", "[31"]]),
    ],
)
def test_colours_of_a_terminal_stay_and_other_escapes_go(coloured, text, shown):
    segments = [piece for piece in coloured(text) if piece[2]]
    assert segments == shown


PARTS_OF_RGB = (
    "38;2;250;250;250",
    "38;2;10;10;10",
    "38;5;226",
    "38;2;255;0;0;42",
    "48;2;9;9;9",
    "48;5;255;31",
    "7;38;5;226",
)
NAMED = *(f"{ink};{mode}" for ink in range(30, 38) for mode in (1, 7)), "7", "41;7", "33;46;7"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_colour_of_a_terminal_hides_its_text(look_at_shop, scheme):
    page = look_at_shop("/", color_scheme=scheme)
    script = """async (codes) => {
        const { addTerminalText } = await import('/.page/ansi.js');
        const { contrast } = await import('/.page/contrast.js');
        const box = document.createElement('pre');
        const said = document.createElement('div');
        said.className = 'message';
        said.append(box);
        document.body.append(said);
        const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
        return codes.map((code) => {
            box.replaceChildren();
            addTerminalText(box, `\\x1b[${code}mtext`);
            const { color, backgroundColor } = getComputedStyle(box.lastChild);
            const own = parts(backgroundColor);
            const paper = own[3] === 0 ? parts(getComputedStyle(box).backgroundColor) : own;
            return [code, contrast(parts(color).slice(0, 3), paper.slice(0, 3))];
        });
    }"""
    found = page.evaluate(script, [*PARTS_OF_RGB, *NAMED])
    assert [(code, round(many, 1)) for code, many in found if many < 4] == []


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("", "a\n", ["+a"]),
        ("a\nb\nc\n", "a\nx\nc\n", [" a", "-b", "+x", " c"]),
        ("a\nb\nc", "a\nc", [" a", "-b", " c"]),
        ("a\na\n", "a\na\na\n", [" a", " a", "+a"]),
        ("a\nb\nc\nd", "b\nx\nd", ["-a", " b", "-c", "+x", " d"]),
        ("same", "same", [" same"]),
        ("a", "", ["-a"]),
    ],
)
def test_a_diff_keeps_what_both_have(run, before, after, changes):
    assert run("diff", "lineDiff", before, after, wrap="it.map((one) => one.join(''))") == changes


def test_a_diff_of_much_is_all_of_both(run):
    changes = run("diff", "lineDiff", "a\n" * 2000 + "x", "b\n" * 2000 + "y")
    assert [sign for sign, _ in changes] == ["-"] * 2001 + ["+"] * 2001


PATCH = """*** Begin Patch
*** Update File: a.py
@@ f
 x
-y
+z

*** Add File: b.py
+new
*** Delete File: c.py
"""
PARTS = [
    ["a.py", ["@f", " x", "-y", "+z", " "]],
    ["b.py", ["+new"]],
    ["c.py (deleted)", []],
]


@pytest.mark.parametrize(
    "text",
    [
        f"apply_patch\n{PATCH}*** End Patch\n",
        "apply_patch\n" + '{"input":"' + PATCH.replace("\n", "\\n") + '*** End Patch"}\n',
        "shell\n"
        + '{"command":["bash","-lc","cd x && apply_patch <<\'EOF\'\\n'
        + PATCH.replace("\n", "\\n")
        + '*** End Patch\\nEOF"]}',
        "exec_command\n" + '{"cmd":"apply_patch \'' + PATCH.replace("\n", "\\n") + "*** End Patch'\"}",
        f"apply_patch\n{PATCH}",
    ],
)
def test_a_patch_is_read_in_apply_patch_and_in_a_shell_s_call_of_it(run, text):
    wrap = "it.edits.map(({ path, changes }) => [path, changes.map((one) => one.join(''))])"
    assert run("call", "parseCall", text, wrap=wrap) == PARTS


def call(tool, **arguments):
    return f"{tool}\n{json.dumps(arguments)}\n"


HEREDOC = f"cat <<'X'\n{PATCH}*** End Patch\nX\nrm -rf ~/precious"
APPLIED = f"cd x && apply_patch <<'EOF'\n{PATCH}*** End Patch\nEOF\nmake install"


@pytest.mark.parametrize(
    ("text", "summary", "paths", "left"),
    [
        (call("Bash", command=HEREDOC), "cat <<'X'", [], {"command": HEREDOC}),
        (
            call("exec_command", cmd=APPLIED),
            "cd x && apply_patch <<'EOF'",
            ["a.py", "b.py", "c.py (deleted)"],
            {"cmd": APPLIED},
        ),
        (
            call("Edit", file_path="own", old_string=PATCH, new_string="", replace_all=False),
            "own",
            ["own"],
            None,
        ),
        (call("Write", file_path="own", content=PATCH, mode="x"), "own", ["own"], {"mode": "x"}),
        (
            call("MultiEdit", file_path="own", edits=[{"old_string": "a", "new_string": PATCH}]),
            "own",
            ["own"],
            None,
        ),
        (call("Task", prompt=PATCH), "*** Begin Patch", [], {"prompt": PATCH}),
        (f"apply_patch\necho {PATCH}", "echo *** Begin Patch", [], f"echo {PATCH}".rstrip("\n")),
    ],
)
def test_only_a_tool_s_own_arguments_say_what_it_changes(run, text, summary, paths, left):
    wrap = "[it.summary, it.edits.map(({ path }) => path), it.left]"
    assert run("call", "parseCall", text, wrap=wrap) == [summary, paths, left]


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ({"old_string": "a\n", "new_string": "a"}, [" a", "@the newline at the end has gone"]),
        ({"old_string": "a", "new_string": "b", "replace_all": True}, ["@everywhere", "-a", "+b"]),
    ],
)
def test_an_edit_tells_what_its_lines_do_not(run, arguments, changes):
    text = call("Edit", file_path="f", **arguments)
    wrap = "it.edits[0].changes.map((one) => one.join(''))"
    assert run("call", "parseCall", text, wrap=wrap) == changes


def test_the_line_of_a_call_tells_that_more_follows(run):
    wrap = "[it.summary, it.more]"
    assert run("call", "parseCall", call("Bash", command="one\n\nthree\n"), wrap=wrap) == ["one", 2]
    assert run("call", "parseCall", call("Bash", command="x" * 500), wrap=wrap) == ["x" * 400 + "…", 0]


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ('Bash\n{"description":"d","command":"make\\ntest"}\n', "make"),
        ('Grep\n{"path":"src","pattern":"x+"}\n', "x+"),
        ('shell\n{"command":["git","diff"]}\n', "git diff"),
        ('Edit\n{"file_path":"a","old_string":"x","new_string":"y"}\n', "a"),
        ('Edit\n{"file_path":"a","old_string":7}\n', "a"),
        ('MultiEdit\n{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}\n', "a"),
        ("exec\nls -l\n", "ls -l"),
        ('Odd\n{"a":1}\n', '{"a":1}'),
        ("Bash\n{}\n", "{}"),
        ("Bash", ""),
        ("", ""),
        ('Bash\n{"command":"cut', '{"command":"cut'),
        ("Odd\n[1]\n", "[1]"),
        ("Odd\nnull\n", "null"),
    ],
)
def test_a_call_is_summed_up_in_a_line(run, text, summary):
    assert run("call", "parseCall", text, wrap="it.summary") == summary


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("Exit code 1\nno\n", True),
        ("Error: Exit code 2\n", True),
        ("<tool_use_error>File does not exist.</tool_use_error>", True),
        ("Exit code: 0\nWall time: 1 s\nOutput:\nfine", False),
        ("Exit code: 127\nWall time: 1 s\n", True),
        ("Process exited with code 0\n", False),
        ("Chunk ID: 1\nProcess exited with code 3\n", True),
        ('{"output":"oops","metadata":{"exit_code":1}}', True),
        ('{"output":"error: is only a word here","metadata":{"exit_code":0}}', False),
        ("Chunk ID: 1\nProcess exited with code 3\nOutput:\nx", True),
        ("Process exited with code 0\nOutput:\nerror: is only a word here", False),
        ("unsupported call: update_plan", True),
        ("unsupported custom tool call: x", True),
        ("Traceback (most recent call last):\n  File", True),
        ("error[E0382]: borrow of moved value", True),
        ("ValueError: no", True),
        ("\x1b[31mERROR: red\x1b[0m", True),
        ("sh: foo: command not found\n", True),
        ("there was no error in it", False),
        ("errors.py\nerror_page.html", False),
        ("", False),
    ],
)
def test_an_error_is_known_by_its_words(run, text, is_error):
    assert run("result", "isError", text) == is_error


def test_a_result_is_summed_up_by_its_output(run):
    text = "Chunk ID: 823d4b\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n\nfirst\nsecond\n"
    wrap = "[it.summary, it.more, it.exit]"
    assert run("result", "parseResult", text, wrap=wrap) == ["first", 1, 0]
    assert run("result", "parseResult", "a\nb", wrap=wrap) == ["a", 1, None]


def test_heights_say_where_each_row_is(blank):
    script = """async () => {
        const { Heights } = await import('/.page/heights.js');
        const heights = new Heights();
        const none = heights.at(0);
        for (let row = 0; row < 3000; row++) heights.add(10);
        heights.set(5, 30);
        heights.top(3000);
        heights.set(2, 0);
        return [none, heights.total, heights.top(6), ...[-5, 24, 45, 1e9].map((y) => heights.at(y))];
    }"""
    assert blank.evaluate(script) == [-1, 30010, 70, 0, 3, 5, 2999]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "now"), (59, "59 s"), (61, "1 min"), (7300, "2 h"), (90000, "1 day"), (900000, "10 days")],
)
def test_ages_are_said_in_the_largest_unit(run, seconds, said):
    assert run("format", "age", "2026-11-02T10:00:00Z", 1793613600000 + seconds * 1000) == said


# -- messages, on the page of a phone


@pytest.fixture(scope="module")
def phone(browser, shop_server):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(f"{shop_server.url}/active/claude/601/")
    page.locator("table").wait_for()
    yield page
    page.close()


@pytest.fixture(scope="module")
def fits(phone):
    """Shows a message alone; returns its article, once nothing of it is wider than the window."""

    def show(kind, text):
        script = """async ([kind, text]) => {
            const { article, fill } = await import('/.page/message.js');
            const message = { id: 0, kind, name: `00000000-${kind}`, mtime: new Date().toISOString(), size: text.length, href: '/x' };
            const made = article(message, null, { path: '/', row: 0, of: 1 });
            document.querySelector('main').replaceChildren(made);
            fill(made, { text, message, isWhole: true, read: text.length }, new Map(), () => {}, '');
            return document.documentElement.scrollWidth;
        }"""  # noqa: E501
        assert phone.evaluate(script, [kind, text]) <= 390
        return phone.locator("article")

    return show


@pytest.mark.parametrize(
    "text",
    [
        "before\n\n" + "> " * 45 + "HIDDEN\n\nafter",
        "before\n\n" + "- " * 25 + "HIDDEN\n\nafter",
        "before\n\n" + "> " * 14 + "HIDDEN\n\nafter",
        "before\n\n" + "- " * 7 + "HIDDEN\n\nafter",
        "before " + "**a _b_ " * 60 + "HIDDEN after",
    ],
)
def test_however_deep_markdown_is_nested_all_of_it_shows(fits, text):
    said = fits("assistant", text).locator(".said").inner_text()
    assert [word for word in ("before", "HIDDEN", "after") if word not in said] == []


def test_a_wide_table_scrolls_in_its_box(fits):
    row = "|" + " word |" * 14 + "\n"
    table = fits("assistant", row + "|" + "---|" * 14 + "\n" + row).locator("table")
    assert table.evaluate("(one) => one.scrollWidth > one.clientWidth && one.clientWidth > 300")
    assert table.locator("td").first.evaluate("(one) => one.offsetHeight < 40")


def test_a_tool_s_name_is_whole(fits):
    for tool in ("TodoWrite", "shell", "Bash"):
        name = fits(tool.lower(), call(tool, command="word " * 200)).locator(".tool")
        assert name.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    assert fits("bash", call("Bash", command="one\ntwo")).locator(".more").inner_text() == "+1 line"


OPTIONS = [{"label": "Yes", "description": "go on"}, {"label": "No", "preview": "x"}]
TODO = [{"content": "first", "status": "completed"}, {"content": "next", "status": "in_progress"}]
PLAN = [{"step": "first", "status": "completed"}, {"step": "next", "status": "pending"}]


@pytest.mark.parametrize(
    ("text", "summary", "body"),
    [
        (
            call("AskUserQuestion", questions=[{"question": "May I?", "header": "Ask", "options": OPTIONS}]),
            "AskUserQuestion\nMay I?",
            ["Ask", "May I?", "Yes: go on", "No", "x"],
        ),
        (
            call("ExitPlanMode", plan="# Plan\n\n- one", more=1),
            "ExitPlanMode\n# Plan",
            ["Plan", "one", "more"],
        ),
        (call("TodoWrite", todos=TODO), "TodoWrite\n1 of 2 done: next", ["✓ first", "▸ next"]),
        (
            call("update_plan", plan=PLAN, explanation="so"),
            "update_plan\n1 of 2 done",
            ["✓ first", "○ next", "so"],
        ),
    ],
)
def test_what_is_asked_and_planned_is_said_at_once(fits, text, summary, body):
    made = fits(text.partition("\n")[0].lower(), text)
    assert made.locator("summary").inner_text() == summary
    shown = made.locator(".body").inner_text()
    assert [part for part in body if part not in shown] == []


def test_what_is_not_a_question_or_plan_shows_as_it_stands(fits):
    for tool in ("AskUserQuestion", "ExitPlanMode", "TodoWrite", "update_plan"):
        made = fits(tool.lower(), call(tool, questions=7, plan={"a": 1}, todos=[{"b": 2}]))
        made.locator("summary").click()
        expect(made.locator("dt")).to_have_text(["questions", "plan", "todos"])


SLASH = (
    "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    "<command-args>src</command-args>"
)


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("assistant", " \n\n", "(blank)"),
        ("user", SLASH, "/review src"),
        ("user", "<command-name>/a</command-name> and more", "<command-name>/a</command-name> and more"),
        ("user", "a\u200bb\u00adc\ufeff\U000e0041", "aZWSPbSHYcBOMU+E0041"),
        ("user", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ],
)
def test_a_message_says_what_is_in_it(fits, kind, text, shown):
    assert fits(kind, text).locator(".said").inner_text() == shown


def test_an_empty_file_and_a_shell_s_patch_say_so(fits):
    fits("write", call("Write", file_path="f", content="")).get_by_text("(no lines)").wait_for()
    made = fits("shell", call("shell", command=APPLIED))
    assert made.locator(".tally").inner_text().startswith("+2")
    assert "make install" in made.locator(".input").inner_text()
    assert made.locator(".path").all_inner_texts() == ["a.py", "b.py", "c.py (deleted)"]
