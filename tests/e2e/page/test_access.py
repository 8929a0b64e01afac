"""Rules of accessibility (axe-core) on every view, dark and light; phones; and the pictures of the documents.

`AGENTS9_SCREENS=directory` has the pictures written there: `make screens`.
"""

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.e2e.page.test_chat import CHAT, MESSAGES, message, unfold

pytestmark = pytest.mark.e2e

SCREENS = os.environ.get("AGENTS9_SCREENS")
SCHEMES = ("light", "dark")
PHONE = {
    "viewport": {"width": 390, "height": 780},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


def findings(page):
    """What axe finds that is serious, on the light page and on the dark one: the rule, and where."""
    found = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        violations = Axe().run(page).response["violations"]
        serious = [one for one in violations if one["impact"] in ("serious", "critical")]
        found += [(scheme, one["id"], one["nodes"][0]["target"]) for one in serious]
    return found


def picture(page, name):
    for scheme in SCHEMES if SCREENS else ():
        path = Path(SCREENS) / f"{name}-{scheme}.png"
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=path, animations="disabled")
        subprocess.run(["pngquant", "--force", "--output", path, "--speed", "1", "128", path], check=True)


@pytest.fixture
def see(look_at_shop):
    """Opens a path so that axe can look at it: its script is injected, which the policy would forbid."""
    return partial(look_at_shop, bypass_csp=True)


def test_agents(see):
    page = see("/", viewport={"width": 1200, "height": 560})
    expect(page.locator(".agent")).to_have_count(4)
    picture(page, "agents")
    assert findings(page) == []


def test_a_chat(see):
    page = see(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    page.keyboard.press("g")
    expect(message(page, 0)).to_be_in_viewport()
    unfold(message(page, 4))
    expect(page.locator(".hl-keyword").first).to_be_attached()
    page.mouse.move(0, 0)
    picture(page, "chat")
    for number in (3, 8):
        unfold(message(page, number))
    assert findings(page) == []


def test_a_diff(see):
    page = see(f"{CHAT}#00000010", viewport={"width": 1200, "height": 640})
    expect(message(page, 10).locator(".diff")).to_be_visible()
    picture(page, "diff")
    assert findings(page) == []


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


def test_nobody_is_there(look):
    page = look("/", bypass_csp=True, viewport={"width": 1200, "height": 420})
    expect(page.locator("[data-state=empty]")).to_be_visible()
    picture(page, "empty")
    assert findings(page) == []


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_phone(see):
    page = see("/", **PHONE)
    expect(page.locator(".agent")).to_have_count(4)
    assert fits(page)
    picture(page, "phone-agents")
    assert findings(page) == []
    page.get_by_role("link", name="Fix the flaky checkout test").tap()
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    expect(message(page, MESSAGES - 1).locator("summary")).to_be_visible()
    assert fits(page)
    picture(page, "phone-chat")
    assert findings(page) == []


def test_a_screen_reader_is_told_what_things_are(look_at_shop):
    page = look_at_shop(CHAT)
    expect(message(page, MESSAGES - 1)).to_be_in_viewport()
    feed = page.get_by_role("feed", name="Messages")
    expect(feed.get_by_role("article").last).to_have_attribute("aria-posinset", str(MESSAGES))
    expect(feed.get_by_role("heading", name="Prompt 14")).to_be_attached()
    expect(page.get_by_role("navigation", name="Which messages are shown")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="17 messages")).to_be_visible()
