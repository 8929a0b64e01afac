"""A chat on the page: what each message looks like, filters, search, links, keys, and following."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.machine import get
from tests.e2e.page.conftest import Watched, looking
from tests.e2e.page.scene import FINDING
from tests.support.waiting import eventually

pytestmark = pytest.mark.e2e

CHAT = "/active/claude/601/chat/"
MESSAGES = 17


def message(page, number):
    return page.locator(f"article[data-id='{number}']")


def unfold(one):
    if one.locator("details[open]").count() == 0:
        one.locator("summary").click()


def shown(page):
    return [int(one.get_attribute("data-id")) for one in page.locator("article").all()]


@pytest.fixture
def chat(look_at_shop):
    """The chat of the agent that waits, from its first message on."""
    page = look_at_shop(CHAT, viewport={"width": 1200, "height": 2400})
    expect(message(page, MESSAGES - 1)).to_be_visible()
    return page


@pytest.fixture(scope="module")
def whole(browser, shop_server):
    """The same, for tests that leave it as it is but for folds."""
    watched = Watched()
    with looking(browser, shop_server, watched) as look:
        page = look(CHAT, viewport={"width": 1200, "height": 2400})
        expect(message(page, MESSAGES - 1)).to_be_visible()
        yield page


# -- what is shown of each


def test_it_opens_at_its_end_and_says_whose_it_is(look_at_shop):
    page = look_at_shop(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    expect(page.locator("#heading h1")).to_have_text("Fix the flaky checkout test")
    expect(page.locator("#heading .status")).to_have_text("waits for you: permission to run Bash")
    expect(page.locator("#state")).to_have_text("live")


def test_messages_stand_in_their_order(whole):
    assert shown(whole) == list(range(MESSAGES))


def test_a_prompt_is_plain_and_stands_out(whole):
    said = message(whole, 0).locator(".said")
    expect(said).to_have_text(re.compile("^test_checkout fails about once in twenty runs"))
    papers = [
        message(whole, n).locator(".said").evaluate("(one) => getComputedStyle(one).backgroundColor")
        for n in (0, 2)
    ]
    assert papers[0] != papers[1]


def test_thinking_is_dimmed(whole):
    inks = [
        message(whole, n).locator(".said").evaluate("(one) => getComputedStyle(one).color") for n in (1, 2)
    ]
    assert inks[0] != inks[1]


def test_what_the_assistant_says_is_markdown(whole):
    said = message(whole, 9).locator(".said")
    expect(said.locator("strong")).to_have_text("two customers can take the last mug")
    expect(said.locator("p code")).to_have_text("reserve")
    expect(said.locator("table td")).to_have_text(["A", "1", "0", "reserved", "B", "1", "0", "reserved"])
    assert said.locator("pre code").inner_text() in FINDING
    expect(said.locator("pre .hl-keyword").first).to_have_text("def")


def test_a_call_and_its_result_are_folded_with_their_first_line(whole):
    call, result = message(whole, 3), message(whole, 4)
    expect(call.locator("summary")).to_contain_text("pytest -q --count 40 tests/test_checkout.py")
    expect(call.locator(".body")).to_be_hidden()
    expect(result.locator("summary")).to_contain_text("Exit code 1")
    expect(result.locator("summary")).to_contain_text("+11 lines")
    unfold(result)
    expect(result.locator(".body")).to_contain_text("213 passed")
    unfold(call)
    expect(call.locator("dt")).to_have_text(["command", "description"])


def test_a_result_of_an_error_says_so(whole):
    expect(message(whole, 4).locator(".bad")).to_have_text("error")
    expect(message(whole, 6).locator(".bad")).to_have_count(0)


def test_colours_of_a_result_are_colours(whole):
    unfold(message(whole, 4))
    failed = message(whole, 4).locator(".body .ink-red", has_text="1 failed")
    ink = failed.evaluate("(one) => getComputedStyle(one).color")
    red, green, blue = (int(part) for part in re.findall(r"\d+", ink))
    assert red > 2 * max(green, blue)
    expect(message(whole, 4).locator(".body")).not_to_contain_text("[31m")


def test_an_edit_is_a_diff(whole):
    edit = message(whole, 10)
    expect(edit.locator("summary")).to_contain_text("/srv/shop/shop/stock.py")
    expect(edit.locator(".tally")).to_have_text("+4 \N{MINUS SIGN}5")
    expect(edit.locator(".diff .removed .line").first).to_have_text("        left = self.stock.left(item)")
    expect(edit.locator(".diff .added .line").last).to_have_text("        return taken.rowcount == 1")
    expect(message(whole, 12).locator(".diff .added")).to_have_count(3)


def test_a_patch_of_codex_is_a_diff(look_at_shop):
    page = look_at_shop("/active/codex/611/chat/")
    patch = message(page, 1)
    expect(patch.locator("summary")).to_contain_text("ingress/certificates.yaml")
    expect(patch.locator(".removed .line")).to_have_text("  renewBefore: 72h")
    expect(patch.locator(".added .line")).to_have_text("  renewBefore: 720h")


def test_the_file_of_a_message_is_one_click_away(chat, shop_server):
    raw = message(chat, 4).locator(".raw")
    href = raw.get_attribute("href")
    message(chat, 4).hover()
    raw.click()
    chat.wait_for_url(f"**{CHAT}00000004-bash-result")
    assert "heisenbug-7731" in get(shop_server.url + href)


# -- which are shown


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("Prompts", [0, 14]),
        ("No tools", [0, 1, 2, 9, 14, 15]),
        ("Errors", [4]),
        ("All", list(range(MESSAGES))),
    ],
)
def test_a_filter_shows_its_kinds(chat, name, ids):
    chat.get_by_role("link", name=name, exact=True).click()
    expect(chat.locator("article")).to_have_count(len(ids))
    assert shown(chat) == ids
    expect(chat.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "true")


def test_a_filter_is_in_the_address_and_back_leaves_it(chat):
    chat.get_by_role("link", name="Prompts", exact=True).click()
    expect(chat.locator("article")).to_have_count(2)
    assert chat.url.endswith(f"{CHAT}?show=prompts")
    expect(chat.locator(".counted")).to_have_text("2 of 17 messages")
    chat.reload()
    expect(chat.locator("article")).to_have_count(2)
    chat.go_back()
    expect(chat.locator("article")).to_have_count(MESSAGES)


def test_a_search_finds_what_stands_only_in_a_tool_s_output(chat, shop_server):
    chat.get_by_role("searchbox").fill("HEISENBUG-7731")
    expect(chat.locator(".counted")).to_have_text("1 found")
    assert shown(chat) == [4]
    expect(message(chat, 4).locator("summary")).to_contain_text("AssertionError: -1 != 0 (heisenbug-7731)")
    marks = "[...(CSS.highlights.get('found') ?? [])].map(String)"
    eventually(lambda: chat.evaluate(marks) == ["heisenbug-7731"])  # they come a moment after the messages
    query = chat.url.partition("?")[2]
    assert "00000004-bash-result" in get(f"{shop_server.url}{CHAT}?{query}")  # curl takes the same address


def test_a_found_message_leads_to_where_it_stands_and_back(chat):
    chat.get_by_role("searchbox").fill("heisenbug")
    expect(chat.locator("article")).to_have_count(1)
    message(chat, 4).get_by_role("link", name="#4").click()
    expect(chat.locator("article")).to_have_count(MESSAGES)
    expect(chat.locator("article.target")).to_have_attribute("data-id", "4")
    assert chat.url.endswith(f"{CHAT}#00000004")
    chat.go_back()
    expect(chat.locator("article")).to_have_count(1)
    expect(chat.get_by_role("searchbox")).to_have_value("heisenbug")


def test_a_search_and_a_filter_go_together(chat):
    chat.get_by_role("searchbox").fill("checkout")
    expect(chat.locator(".counted")).to_have_text("4 found")
    chat.get_by_role("link", name="Errors", exact=True).click()
    expect(chat.locator("article")).to_have_count(1)
    chat.get_by_role("searchbox").fill("nowhere at all")
    expect(chat.locator("[data-state=none]")).to_contain_text("Nothing here holds “nowhere at all”")
    chat.get_by_role("link", name="Show all 17 messages").click()
    expect(chat.locator("article")).to_have_count(MESSAGES)


# -- one message


def test_a_link_opens_at_its_message(look_at_shop):
    page = look_at_shop(f"{CHAT}#00000003")
    expect(message(page, 3)).to_be_in_viewport()
    expect(message(page, 3)).to_have_attribute("aria-current", "true")
    expect(message(page, 3)).to_be_focused()
    expect(page.get_by_role("button", name="End")).to_be_visible()
    bar = page.locator("header").bounding_box()
    top = message(page, 3).bounding_box()["y"]
    assert 0 <= top - (bar["y"] + bar["height"]) < 40


def test_a_link_may_be_short_and_one_to_nothing_says_so(look_at_shop):
    page = look_at_shop(f"{CHAT}#3")
    expect(message(page, 3)).to_be_focused()
    page.evaluate("location.hash = '#99999999'")
    expect(page.locator(".note")).to_contain_text("No message 99999999 is in this chat")
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()


def test_a_link_is_copied(look_at_shop, shop_server):
    page = look_at_shop(CHAT, permissions=["clipboard-read", "clipboard-write"])
    message(page, 15).hover()
    message(page, 15).get_by_role("button", name="copy link").click()
    expect(page.locator(".note")).to_have_text("Link to message 15 copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"{shop_server.url}{CHAT}#00000015"


def test_where_there_is_no_clipboard_the_address_bar_has_the_link(look_at_shop):
    page = look_at_shop(CHAT)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('denied')); }")
    message(page, 15).hover()
    message(page, 15).get_by_role("button", name="copy link").click()
    expect(page.locator(".note")).to_have_text("The link is in the address bar")
    assert page.url.endswith(f"{CHAT}#00000015")


def test_keys_move_about(look_at_shop):
    page = look_at_shop(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    page.keyboard.press("k")
    expect(message(page, MESSAGES - 1)).to_be_focused()
    page.keyboard.press("k")
    expect(message(page, MESSAGES - 2)).to_be_focused()
    page.keyboard.press("g")
    expect(message(page, 0)).to_be_focused()
    expect(message(page, 0)).to_be_in_viewport()
    for number in (1, 2, 3):
        page.keyboard.press("j")
        expect(message(page, number)).to_be_focused()
    page.keyboard.press("o")
    expect(message(page, 3).locator(".body")).to_be_visible()
    page.keyboard.press("G")
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("jkgG?")
    expect(page.get_by_role("searchbox")).to_have_value("jkgG?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_the_keys_are_told(look_at_shop):
    page = look_at_shop(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Next message")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_back_returns_to_where_one_was(look_at_shop):
    page = look_at_shop()
    page.locator(".agent[data-status=waiting] .title").click()
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    page.keyboard.press("g")
    expect(message(page, 0)).to_be_in_viewport()
    until(page, "history.state?.stood?.id === 0")
    page.get_by_role("link", name="files").click()
    page.wait_for_url("**/601/")
    page.go_back()
    expect(message(page, 0)).to_be_in_viewport()
    page.go_back()
    expect(page.locator(".agent")).to_have_count(4)


def until(page, expression):
    """Wait for what a script says. (`wait_for_function` asks within the page, whose policy forbids it.)"""
    assert any(page.evaluate(expression) or page.wait_for_timeout(50) for _ in range(200))


def leave_by_click(page):
    page.get_by_role("link", name="files").click()


def leave_by_key(page):
    page.keyboard.press("u")


@pytest.mark.parametrize("leave", [leave_by_click, leave_by_key])
def test_who_leaves_at_once_comes_back_to_where_he_was(look_at_shop, leave):
    page = look_at_shop(CHAT, viewport={"width": 1200, "height": 400})
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    until(page, "history.state?.stood?.sticks")
    page.evaluate("scrollBy(0, -600)")
    expect(page.get_by_role("button", name="End")).to_be_visible()
    leave(page)
    page.wait_for_url(lambda url: not url.endswith("/chat/"))
    page.go_back()
    expect(page.get_by_role("button", name="End")).to_be_visible()
    expect(message(page, MESSAGES - 1)).not_to_be_in_viewport()


# -- following


@pytest.fixture
def talker(scene):
    agent = scene.claude(601, status="busy")
    agent.prompt("Begin.")
    return agent


def test_what_is_said_appears_and_the_end_is_kept(talker, look):
    page = look(CHAT)
    for number in range(1, 40):
        talker.says(f"word {number}")
    expect(message(page, 39)).to_be_in_viewport()
    expect(page.locator(".news")).to_be_hidden()
    talker.says("and one more")
    expect(message(page, 40)).to_be_in_viewport()


def settled(page):
    """The first message below the bar, and where it is, once nothing moves any longer."""
    script = """() => {
        const all = [...document.querySelectorAll("article")];
        const seen = all.find((one) => one.getBoundingClientRect().y > 200);
        return [seen.dataset.id, seen.getBoundingClientRect().y];
    }"""
    before = None
    while before != (before := page.evaluate(script)):
        page.wait_for_timeout(150)
    return before


def test_who_reads_above_stays_there_and_is_told_how_many_are_new(talker, look):
    for number in range(1, 80):
        talker.says(f"word {number}\n\nand more")
    page = look(CHAT)
    expect(message(page, 79)).to_be_in_viewport()
    page.mouse.move(600, 400)
    page.mouse.wheel(0, -1500)
    expect(page.get_by_role("button", name="End")).to_be_visible()
    number, y = settled(page)
    for extra in range(3):
        talker.says(f"new {extra}\n\nwith lines\n\nand more of them")
    page.get_by_role("button", name="3 new").wait_for()
    assert message(page, number).bounding_box()["y"] == pytest.approx(y, abs=1)
    page.get_by_role("button", name="3 new").click()
    expect(message(page, 82)).to_be_in_viewport()
    expect(page.locator(".news")).to_be_hidden()


def test_what_comes_goes_through_the_filter(talker, look):
    page = look(f"{CHAT}?show=prompts")
    expect(page.locator("article")).to_have_count(1)
    talker.says("not a prompt")
    talker.prompt("a prompt")
    expect(page.locator("article")).to_have_count(2)
    page.get_by_role("searchbox").fill("needle")
    expect(page.locator(".counted")).to_have_text("0 found")
    talker.prompt("another with a needle")
    expect(page.locator(".counted")).to_have_text("1 found")
    assert shown(page) == [3]


def test_another_transcript_is_another_chat(talker, scene, look):
    scene.claude(602, status="idle").says("another, so that their home is still looked into")
    talker.says("of the old one")
    page = look(CHAT)
    expect(message(page, 1)).to_contain_text("of the old one")
    fresh = type(talker)(talker.transcript.with_name("0d0f6c1e-1111-4222-8333-999999999999.jsonl"))
    fresh.prompt("of the new one")
    scene.register(601, fresh.transcript.stem, cwd="/srv/shop")
    expect(message(page, 0)).to_contain_text("of the new one")
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator(".note")).to_contain_text("another transcript")
    scene.end(601)
    kept = page.get_by_role("link", name="Its session is kept")
    expect(kept).to_have_attribute("href", f"/sessions/claude/{fresh.transcript.stem}/chat/")
    expect(page.locator("#heading .status")).to_be_hidden()


def test_where_the_server_will_not_stream_the_page_asks(talker, look):

    def refuse(route):
        if "text/event-stream" in route.request.headers.get("accept", ""):
            route.fulfill(status=503, headers={"Retry-After": "5"}, body="Too many wait already")
        else:
            route.continue_()

    page = look("/")
    page.context.route("**/chat/**", refuse)
    page.goto(page.url + CHAT[1:])
    expect(page.locator("#state")).to_have_text("live, asking every second")
    talker.says("heard all the same")
    expect(message(page, 1)).to_contain_text("heard all the same")


def test_an_agent_that_ends_leaves_what_it_said(talker, scene, look):
    scene.claude(602, status="idle").says("another, so that their home is still looked into")
    page = look(CHAT)
    expect(message(page, 0)).to_be_visible()
    scene.end(601)
    expect(page.locator(".ended")).to_contain_text("This agent has ended")
    expect(message(page, 0)).to_contain_text("Begin.")
    expect(page.locator("#state")).to_have_text("ended")
    page.get_by_role("link", name="Its session is kept").click()
    page.wait_for_url("**/sessions/claude/*/chat/")
    expect(message(page, 0)).to_contain_text("Begin.")
