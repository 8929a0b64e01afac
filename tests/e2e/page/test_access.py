"""Rules of accessibility (axe-core) on every view, dark and light; phones; and the pictures of the documents.

`AGENTS9_SCREENS=directory` has the pictures written there: `make screens`.
"""

import os
import subprocess
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.e2e.page.test_chat import CHAT, MESSAGES, message, unfold

pytestmark = pytest.mark.e2e

SCREENS = os.environ.get("AGENTS9_SCREENS")
SERIOUS = {"serious", "critical"}
PHONE = {
    "viewport": {"width": 390, "height": 780},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


def findings(page):
    """What axe finds that is serious: the rule, and where."""
    result = Axe().run(page).response
    return [
        (one["id"], [node["target"] for node in one["nodes"]][:3])
        for one in result["violations"]
        if one["impact"] in SERIOUS
    ]


def picture(page, name):
    if SCREENS:
        path = Path(SCREENS) / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        subprocess.run(["pngquant", "--force", "--output", path, "--speed", "1", "128", path], check=True)


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture
def see(look_at_shop, scheme):
    """Opens a path as axe can look at it: its script is injected, which the policy would forbid."""

    def open_page(path, **options):
        return look_at_shop(path, color_scheme=scheme, bypass_csp=True, **options)

    return open_page


def test_agents(see, scheme):
    page = see("/", viewport={"width": 1200, "height": 560})
    expect(page.locator(".agent")).to_have_count(4)
    assert findings(page) == []
    picture(page, f"agents-{scheme}")


def test_a_chat(see, scheme):
    page = see(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    page.keyboard.press("g")
    expect(message(page, 0)).to_be_in_viewport()
    unfold(message(page, 4))
    expect(page.locator(".hl-keyword").first).to_be_attached()
    page.mouse.move(0, 0)
    picture(page, f"chat-{scheme}")
    for number in (3, 8):
        unfold(message(page, number))
    assert findings(page) == []


def test_a_diff(see, scheme):
    page = see(f"{CHAT}#00000010", viewport={"width": 1200, "height": 640})
    expect(message(page, 10).locator(".diff")).to_be_visible()
    assert findings(page) == []
    picture(page, f"diff-{scheme}")


def test_a_search_and_the_keys(see):
    page = see(f"{CHAT}?q=heisenbug")
    expect(page.locator("article")).to_have_count(1)
    assert findings(page) == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert findings(page) == []


def test_files(see):
    page = see("/active/claude/601/")
    expect(page.locator("table")).to_be_visible()
    assert findings(page) == []


def test_nobody_is_there(look, scheme):
    page = look("/", color_scheme=scheme, bypass_csp=True, viewport={"width": 1200, "height": 420})
    expect(page.locator("[data-state=empty]")).to_be_visible()
    assert findings(page) == []
    picture(page, f"empty-{scheme}")


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_phone(see, scheme):
    page = see("/", **PHONE)
    expect(page.locator(".agent")).to_have_count(4)
    assert fits(page)
    assert findings(page) == []
    picture(page, f"phone-agents-{scheme}")
    page.get_by_role("link", name="Fix the flaky checkout test").tap()
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    expect(message(page, MESSAGES - 1).locator("summary")).to_be_visible()
    assert fits(page)
    assert findings(page) == []
    picture(page, f"phone-chat-{scheme}")


def test_a_screen_reader_is_told_what_things_are(look_at_shop):
    page = look_at_shop(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    feed = page.get_by_role("feed", name="Messages")
    expect(feed.get_by_role("article").last).to_have_attribute("aria-posinset", str(MESSAGES))
    expect(feed.get_by_role("heading", name="Prompt 14")).to_be_attached()
    expect(page.get_by_role("navigation", name="Which messages are shown")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="17 messages")).to_be_visible()
