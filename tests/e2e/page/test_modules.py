"""The page's pure modules, each by itself, in the browser that runs them."""

import pytest

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
        ("\x1b[38;5;196mred", [["", "rgb(255, 0, 0)", "red"]]),
        ("\x1b[38;5;244mgrey", [["", "rgb(128, 128, 128)", "grey"]]),
        ("\x1b[38;2;1;2;3mrgb", [["", "rgb(1, 2, 3)", "rgb"]]),
        ("\x1b[38;5;999mno colour", [["", "", "no colour"]]),
        ("\x1b[7mturned", [["ink-paper paper-ink", "", "turned"]]),
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
    pieces = [piece for piece in coloured(text) if piece[2]]
    assert pieces == shown


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
        + '{"command":["bash","-lc","apply_patch <<\'EOF\'\\n'
        + PATCH.replace("\n", "\\n")
        + '*** End Patch\\nEOF"]}',
        "exec_command\n" + '{"cmd":"apply_patch \'' + PATCH.replace("\n", "\\n") + "*** End Patch'\"}",
        f"apply_patch\n{PATCH}",
    ],
)
def test_a_patch_is_read_wherever_it_stands(run, text):
    wrap = "it.edits.map(({ path, changes }) => [path, changes.map((one) => one.join(''))])"
    assert run("call", "parseCall", text, wrap=wrap) == PARTS


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
    assert run("words", "age", "2026-11-02T10:00:00Z", 1793613600000 + seconds * 1000) == said
