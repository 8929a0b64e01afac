"""Text that wants to be more than text, in every place that it can come from: nothing of it runs."""

import pytest
from playwright.sync_api import expect

from tests.e2e.machine import served
from tests.e2e.page.conftest import Watched, looking
from tests.e2e.page.scene import Scene
from tests.e2e.page.test_chat import CHAT, message, unfold

pytestmark = pytest.mark.e2e

MARKUP = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'></svg>"
    "<iframe srcdoc='<script>parent.ran = 4</script>'></iframe><style>body { display: none }</style>"
    "<form action='http://evil.example/'><button autofocus onfocus='window.ran = 5'>x</button></form>"
    "<base href='http://evil.example/'><meta http-equiv=refresh content='0;url=http://evil.example/'>"
)
MARKDOWN = f"""{MARKUP}

# {MARKUP}

- [click](javascript:window.ran=6) and [this](JaVaScRiPt:window.ran=7) and [data](data:text/html,<script>1</script>)
- [file](file:///etc/passwd) and [entity](&#106;avascript:window.ran=8) and <javascript:window.ran=9>
- ![alt {MARKUP}](http://evil.example/pixel.png) ![x](javascript:window.ran=10) [![in](http://evil.example/b.png)](http://ok.example/)
- [ok](https://ok.example/ "title' onmouseover='window.ran=11") http://bare.example/<script>window.ran=12</script>

[ref]: javascript:window.ran=13
[ref] and ```` ```{MARKUP} ````

```html" onload="window.ran=14
{MARKUP}
```

| {MARKUP} | b |
|---|---|
| x | {MARKUP} |

&lt;script&gt;window.ran=15&lt;/script&gt;
"""  # noqa: E501
BIDI = "left \u202egnp.exe\u202c \u2066isolated\u2069 \u200fmark"
ANSI = "\x1b]0;title\x07\x1b]8;;javascript:window.ran=16\x1b\\link\x1b]8;;\x1b\\"
ANSI += f" \x1b[31m{MARKUP}\x1b[0m \x1b[8mhidden\x1b[0m"
ANSI += "\x1b[2J\x1b[1;1Hcleared\x00\x07\x08 \x1bP evil \x1b\\ over\rwritten \x9b31mc1"
LONG = 5_000_000


@pytest.fixture(scope="module")
def hostile_server(tmp_path_factory):
    scene = Scene(tmp_path_factory.mktemp("hostile"))
    odd = dict.fromkeys(("waitingFor", "name", "version"), MARKUP)
    agent = scene.claude(601, "/srv/<img src=x onerror=window.ran=17>", status="waiting", **odd)
    agent.model = MARKUP
    agent.titled(MARKUP + BIDI)
    say_everything(agent)
    with served(scene) as server:
        yield server


def say_everything(agent):
    agent.prompt(BIDI + MARKDOWN)  # 0
    agent.says(MARKDOWN + BIDI)  # 1
    agent.thinks(MARKDOWN)  # 2
    agent.told(MARKDOWN + ANSI)  # 3
    agent.calls("Bash", command=MARKUP + ANSI, **{MARKUP: MARKUP})  # 4
    agent.gets(MARKDOWN + ANSI + BIDI)  # 5
    agent.calls(MARKUP, value=MARKUP)  # 6
    agent.gets([{"type": "image", "source": {"type": "url", "url": "http://evil.example/i.png"}}])  # 7
    agent.calls("Edit", file_path=MARKUP + BIDI, old_string=MARKUP + BIDI, new_string=MARKDOWN + ANSI)  # 8
    agent.gets("x" * LONG)  # 9
    agent.calls("Write", file_path="a", content="y" * LONG)  # 10
    agent.gets("\n" * 100_000)  # 11
    agent.says("> " * 5000 + "deep\n\n" + "[" * 5000 + "*_`" * 3000)  # 12
    agent.calls("Edit", file_path=None, old_string={"__proto__": 1}, edits="no list")  # 13
    agent.calls("__proto__", constructor="x")  # 14
    agent.says("```" + "a" * 20_000 + "\n" + "(" * 20_000 + "\n```")  # 15
    agent.says("last")  # 16


def opened(page):
    """Bring every message to the window and unfold it."""
    for number in range(17):
        page.evaluate(f"location.hash = '#{number:08}'")
        expect(message(page, number)).to_be_in_viewport()
        if page.evaluate(
            f"document.querySelector(\"[data-id='{number}'] details:not([open]) summary\")?.click()"
        ):
            pass
    page.evaluate("location.hash = '#00000016'")
    expect(message(page, 16)).to_be_in_viewport()


@pytest.fixture(scope="module")
def heard():
    """What the shared page did wrong, and whom it asked."""
    return Watched()


@pytest.fixture(scope="module")
def page(browser, hostile_server, heard):
    with looking(browser, hostile_server, heard) as look:
        page = look(CHAT)
        expect(message(page, 16)).to_be_in_viewport()
        yield page
        assert page.evaluate("window.ran") is None


def test_nothing_of_it_runs_in_a_chat(page, heard):
    opened(page)
    assert page.evaluate("window.ran") is None
    assert not [url for url in heard.asked if "example" in url]
    assert (
        page.locator("main :is(script, img, iframe, svg, style, form, base, meta, object, embed)").count()
        == 0
    )
    assert (
        page.evaluate("""[...document.querySelectorAll("main *")].flatMap((one) =>
        [...one.attributes].map(({ name }) => name).filter((name) => name.startsWith("on")))""")
        == []
    )


def test_links_lead_to_the_web_or_nowhere(page):
    page.evaluate("location.hash = '#00000001'")
    expect(message(page, 1)).to_be_in_viewport()
    hrefs = page.evaluate("[...document.querySelectorAll('.said a')].map((one) => one.href)")
    assert "https://ok.example/" in hrefs
    assert [href for href in hrefs if not href.startswith(("http://", "https://"))] == []
    assert set(page.evaluate("[...document.querySelectorAll('.said a[target]')].map((one) => one.rel)")) == {
        "noopener noreferrer"
    }


def test_markup_is_shown_as_it_stands(page):
    for number in (0, 1):
        page.evaluate(f"location.hash = '#{number:08}'")
        expect(message(page, number).locator(".said")).to_contain_text("<script>window.ran = 1</script>")


def test_images_are_named_and_not_loaded(page):
    page.evaluate("location.hash = '#00000001'")
    expect(message(page, 1).locator(".image").first).to_contain_text("[image] alt")
    page.evaluate("location.hash = '#00000007'")
    expect(message(page, 7).locator("summary")).to_contain_text("[image]")


def test_what_turns_text_around_is_seen(page):
    page.evaluate("location.hash = '#00000000'")
    expect(message(page, 0).locator(".unseen")).to_have_text(["RLO", "PDF", "LRI", "PDI", "RLM"])


def test_a_terminal_hides_nothing(page):
    page.evaluate("location.hash = '#00000005'")
    unfold(message(page, 5))
    body = message(page, 5).locator(".body")
    expect(body).to_contain_text("hidden")
    expect(body).to_contain_text("cleared\N{SYMBOL FOR NULL}\N{SYMBOL FOR BELL}\N{SYMBOL FOR BACKSPACE}")
    expect(body.locator(".ink-red").first).to_contain_text("<script>")


def test_a_line_of_5_MB_is_shown_a_piece_at_a_time(page):
    page.evaluate("location.hash = '#00000009'")
    result = message(page, 9)
    unfold(result)
    expect(result.locator(".cut")).to_contain_text("of 5.0 MB shown")
    assert len(result.locator(".body pre").text_content()) < 40_000
    result.get_by_role("button", name="more").click()
    expect(result.locator(".cut")).to_contain_text("295 kB of 5.0 MB shown")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_agents_and_the_files_show_it_as_text(browser, hostile_server):
    with looking(browser, hostile_server, Watched()) as look:
        page = look()
        expect(page.locator(".agent .title")).to_contain_text("<script>window.ran = 1</script>")
        expect(page.locator(".agent > .status")).to_contain_text("<iframe")
        page.goto(hostile_server.url + "/active/claude/601/")
        expect(page.locator(".fact").filter(has_text="<script>").first).to_be_visible()
        assert page.evaluate("window.ran") is None


def test_a_name_of_a_file_is_text(scene, look):
    scene.claude(601, status="idle").says("a word")
    (scene.home / ".claude" / "projects" / "<img src=x onerror=window.ran=1> & \"'%2f?#").mkdir()
    page = look("/claude/projects/")
    page.get_by_role("link", name="<img src=x").click()
    expect(page.locator("main h1")).to_have_text("<img src=x onerror=window.ran=1> & \"'%2f?#")
    expect(page.locator("#trail a").last).to_have_text("<img src=x onerror=window.ran=1> & \"'%2f?#")
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize(
    "address", ["?q=<script>window.ran=1</script>", "?show=__proto__#00000000", "?show=<b>&q=%00%ff#<b>"]
)
def test_an_address_is_text(browser, hostile_server, address):
    with looking(browser, hostile_server, Watched()) as look:
        page = look(CHAT + address)
        expect(page.locator(".counted")).not_to_be_empty()
        assert page.evaluate("window.ran") is None
