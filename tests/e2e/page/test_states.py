"""What the page says where there is nothing to show, and what to do then."""

import pytest
from playwright.sync_api import expect

from tests.e2e.page.test_chat import CHAT, message

pytestmark = pytest.mark.e2e


FAILURES = [
    (CHAT, 403, "refused", "You may not read this"),
    (CHAT, 401, "refused", "agents9 passwd"),
    (CHAT, 507, "failed", "too large to list"),
    (CHAT, 0, "unreachable", "agents9 serve"),
    ("/active/claude/601/", 500, "failed", "It said 500"),
    ("/", 403, "refused", "You may not read this"),
]


def answering(status):
    """Answers listings with *status*, 0: not at all."""

    def answer(route):
        if "application/json" not in route.request.headers.get("accept", ""):
            route.continue_()
        elif status:
            route.fulfill(status=status, body="too large to list")
        else:
            route.abort()

    return answer


def test_a_failure_says_what_is_so_and_what_to_do(look_at_shop, shop_server):
    page = look_at_shop("/.page/icon.svg", is_timed=True)
    for path, status, state, said in FAILURES:
        page.route("**/active/**", answering(status))
        page.goto(shop_server.url + path)
        expect(page.locator(f"[data-state={state}]")).to_contain_text(said)
        page.unroute("**/active/**")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("article, .agent, table").first).to_be_visible()


def test_an_agent_that_is_gone(look_at_shop):
    page = look_at_shop("/active/claude/999/chat/")
    expect(page.locator("[data-state=gone]")).to_contain_text("The agent has ended, or never was here")
    expect(page.locator("#state")).to_have_text("the server said 404")
    page.locator("[data-state=gone]").get_by_role("link", name="All agents").click()
    expect(page.locator(".agent")).to_have_count(4)


def test_a_chat_in_which_nothing_was_said(scene, look):
    agent = scene.claude(601, status="idle")
    agent.writes({"type": "summary", "summary": "none"})
    page = look(CHAT)
    expect(page.locator("[data-state=empty]")).to_contain_text("Nothing has been said yet")
    agent.prompt("the first word")
    expect(message(page, 0)).to_contain_text("the first word")
    expect(page.locator("[data-state=empty]")).to_have_count(0)


def test_no_prompt_in_a_chat(scene, look):
    scene.claude(601, status="idle").says("only this")
    page = look(f"{CHAT}?show=prompts")
    expect(page.locator("[data-state=none]")).to_contain_text("No prompts in this chat")
    page.get_by_role("link", name="Show all 1 message").click()
    expect(message(page, 0)).to_be_visible()


def test_a_slow_server_is_told_of(look_at_shop, shop_server):
    page = look_at_shop("/.page/icon.svg")
    held = []

    def hold(route):
        if "application/json" in route.request.headers.get("accept", ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/chat/", hold)
    page.goto(shop_server.url + CHAT)
    expect(page.locator(".loading")).to_contain_text("Loading")
    held[0].continue_()
    expect(message(page, 16)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def test_a_message_that_cannot_be_read_says_so(scene, look):
    scene.claude(601, status="idle").says("a word")
    page = look()
    page.route("**/00000000-assistant", lambda route: route.fulfill(status=404))
    page.goto(page.url + CHAT[1:])
    expect(message(page, 0)).to_contain_text("This message is gone")
