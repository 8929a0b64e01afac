"""Somebody who has only the address finds what an agent wants, and what was said about it."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e


def test_from_the_address_alone(look_at_shop, shop_server):
    page = look_at_shop("/", permissions=["clipboard-read", "clipboard-write"])

    # An agent waits for an answer: it is seen first.
    expect(page.locator(".agent").first).to_contain_text("waits for you: permission to run Bash")
    page.get_by_role("link", name="Fix the flaky checkout test").click()

    # Its last message is what one sees.
    expect(page.get_by_text("against the staging database. May I?")).to_be_in_viewport()
    expect(page.locator("article").last).to_contain_text("pytest -n 8 --count 2000")

    # What it was asked, without the rest.
    page.get_by_role("link", name="Prompts", exact=True).click()
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("article").first).to_contain_text("test_checkout fails about once in twenty runs")

    # A word that stands only in a tool's output.
    page.get_by_role("link", name="All", exact=True).click()
    page.get_by_role("searchbox", name="Search in this chat").fill("heisenbug-7731")
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator("article")).to_contain_text("AssertionError: -1 != 0 (heisenbug-7731)")

    # The link of that message, which leads somebody else to it.
    page.locator("article").hover()
    page.get_by_role("button", name="copy link").click()
    expect(page.get_by_text("Link to message 4 copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{shop_server.url}/active/claude/601/chat/#00000004"
    page.goto("about:blank")
    page.goto(copied)
    expect(page.locator("article[aria-current]")).to_contain_text("Exit code 1")
    expect(page.locator("article[aria-current]")).to_be_in_viewport()
