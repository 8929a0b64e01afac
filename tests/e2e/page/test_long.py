"""A chat of 32,000 messages: only what is seen is read and in the document, and it moves like a short one."""

import statistics
import time

import pytest
from playwright.sync_api import expect

from tests.e2e.machine import served
from tests.e2e.page.conftest import looking
from tests.e2e.page.scene import Scene, long_chat
from tests.e2e.page.test_chat import CHAT, message, settled

pytestmark = pytest.mark.e2e

MANY = 32_000
FEW = 250
"""More articles than a window and a screen around it can hold."""


@pytest.fixture(scope="module")
def long_server(tmp_path_factory):
    scene = Scene(tmp_path_factory.mktemp("long"))
    long_chat(scene.claude(601, status="idle"), MANY)
    with served(scene) as server:
        yield server


@pytest.fixture
def page(browser, long_server, watched):
    with looking(browser, long_server, watched) as look:
        page = look(CHAT)
        expect(message(page, MANY - 1)).to_be_in_viewport()
        yield page


def in_document(page):
    return page.locator("article").count()


def test_only_what_is_seen_is_read_and_in_the_document(page, watched):
    expect(page.locator(".counted")).to_have_text("32\N{NARROW NO-BREAK SPACE}000 messages")
    assert in_document(page) < FEW
    assert sum("/chat/0" in url for url in watched.asked) < FEW


def test_it_goes_anywhere_at_once(page):
    page.keyboard.press("g")
    expect(message(page, 0)).to_be_in_viewport()
    page.keyboard.press("G")
    expect(message(page, MANY - 1)).to_be_in_viewport()
    page.evaluate("location.hash = '#00016001'")
    expect(message(page, 16001)).to_be_in_viewport()
    expect(message(page, 16001)).to_contain_text("Answer 4000.")
    page.keyboard.press("End")
    expect(message(page, MANY - 1)).to_be_in_viewport()
    expect(page.locator(".news")).to_be_hidden()
    page.keyboard.press("Home")
    expect(message(page, 0)).to_be_in_viewport()
    assert in_document(page) < FEW


def test_scrolling_keeps_frames_short_and_reads_little(page, watched):
    page.evaluate("location.hash = '#00016001'")
    settled(page)
    before = len(watched.asked)
    frames = page.evaluate("""async () => {
        const frames = [];
        let last = await new Promise(requestAnimationFrame);
        for (let step = 0; step < 120; step++) {
            scrollBy(0, 240);
            const now = await new Promise(requestAnimationFrame);
            frames.push(now - last);
            last = now;
        }
        return frames;
    }""")
    print(f"\nframes: median {statistics.median(frames):.1f} ms, longest {max(frames):.0f} ms")  # noqa: T201
    assert in_document(page) < FEW
    assert len(watched.asked) - before < 2000


def test_nothing_jumps_when_what_is_above_turns_out_higher(page):
    page.evaluate("location.hash = '#00020000'")
    settled(page)
    jumps = page.evaluate("""async () => {
        const jumps = [];
        const frame = () => new Promise(requestAnimationFrame);
        for (let step = 0; step < 40; step++) {
            while (document.querySelector(".said:empty")) await frame();  // what is on its way
            const all = [...document.querySelectorAll("article")];
            const at = all.find((one) => one.getBoundingClientRect().y > 300);
            const y = at.getBoundingClientRect().y;
            scrollBy(0, -100);
            await frame();
            await frame();
            jumps.push(at.isConnected ? Math.abs(at.getBoundingClientRect().y - y - 100) : 0);
        }
        return jumps;
    }""")
    assert max(jumps) <= 1.5


def test_a_filter_of_many_is_quick_and_keeps_the_place(page):
    page.evaluate("location.hash = '#00020000'")
    expect(message(page, 20000)).to_be_in_viewport()
    settled(page)
    page.get_by_role("link", name="Prompts", exact=True).click()
    expect(message(page, 20000)).to_be_in_viewport()
    assert in_document(page) < FEW


def test_errors_are_looked_for_from_the_end(page):
    page.get_by_role("link", name="Errors", exact=True).click()
    expect(page.locator(".counted")).to_contain_text("looked at")
    page.get_by_role("link", name="All", exact=True).click()
    expect(page.locator(".counted")).to_have_text("32\N{NARROW NO-BREAK SPACE}000 messages")


def test_from_the_harness_s_write_to_the_page(scene, look):
    """The figure is reported; that it comes at all is what is tested."""
    agent = scene.claude(601, status="busy")
    agent.prompt("Begin.")
    page = look(CHAT)
    expect(page.locator("#state")).to_have_text("live")
    page.evaluate("""() => {
        window.seen = {};
        new MutationObserver(() => {
            for (const one of document.querySelectorAll("article")) {
                const word = /word-\\d+/.exec(one.textContent)?.[0];
                if (word) window.seen[word] ??= Date.now();
            }
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
    }""")
    written = []
    for number in range(20):
        agent.says(f"word-{number}")
        written.append(time.time() * 1000)
        expect(page.locator("article").last).to_contain_text(f"word-{number}")
    seen = page.evaluate("window.seen")
    taken = [seen[f"word-{number}"] - written[number] for number in range(20)]
    print(f"\nfrom write to page: median {statistics.median(taken):.0f} ms, longest {max(taken):.0f} ms")  # noqa: T201
    assert len(taken) == 20
