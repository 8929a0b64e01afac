"""The page of the agents: who runs, who waits for somebody, how old the last word is."""

import re
from itertools import combinations

import pytest
from playwright.sync_api import expect

from tests.e2e.machine import served
from tests.e2e.page.conftest import looking
from tests.e2e.page.scene import Scene, shop

pytestmark = pytest.mark.e2e


EVERY_MS = 2600
"""A little more than the page waits between two looks."""


def titles(page):
    return page.locator(".agent > .title")


def test_each_agent_shows_what_it_is_and_how_it_is(look_at_shop):
    page = look_at_shop()
    card = page.locator(".agent", has_text="Fix the flaky checkout test")
    expect(card.locator("> .status")).to_have_text("waits for you: permission to run Bash")
    expect(card.locator(".who")).to_have_text("claude 601")
    expect(card.locator(".model")).to_have_text("opus-made-up")
    expect(card.locator("> .age")).to_have_text(re.compile(r"^\d+ min$"))
    assert card.locator(".title").get_attribute("href") == "/active/claude/601/chat/"
    expect(page.locator(".agent", has_text="certificates").locator(".who")).to_have_text("codex 611")


def test_agents_stand_under_their_directory_and_who_waits_comes_first(look_at_shop):
    page = look_at_shop("/active/")
    expect(page.locator(".group h2").first).to_have_text("/srv/shop")
    expect(titles(page).first).to_have_text("Fix the flaky checkout test")
    assert sorted(page.locator(".group h2").all_text_contents()) == [
        "/srv/handbook",
        "/srv/infra",
        "/srv/shop",
    ]
    expect(page).to_have_title("(1) agents9")


def test_subagents_stand_under_their_agent(look_at_shop):
    page = look_at_shop()
    within = page.locator(".agent", has_text="product search").locator(".within li a")
    expect(within).to_have_count(2)
    assert sorted(within.all_text_contents()) == ["explore", "measure"]
    within.get_by_text("explore").click()
    expect(page.locator("article").last).to_contain_text("Three places")


def test_what_changes_shows_without_asking(scene, look):
    waits = shop(scene)
    page = look(is_timed=True)
    expect(titles(page)).to_have_count(4)
    titles(page).last.focus()
    scene.register(601, waits.transcript.stem, cwd="/srv/shop", status="busy")
    waits.titled("Another title")
    scene.end(603)
    scene.claude(609, "/srv/new", status="idle").says("hello")
    page.clock.fast_forward(EVERY_MS)
    expect(page.locator(".group h2").filter(has_text="/srv/new")).to_be_visible()
    expect(page.locator(".agent[data-status=waiting]")).to_have_count(0)
    expect(page.locator(".group h2").filter(has_text="/srv/handbook")).to_have_count(0)
    expect(titles(page).filter(has_text="Another title")).to_be_visible()
    expect(page.locator("#state")).to_have_text("4 agents")


def test_a_card_that_did_not_change_keeps_the_focus(scene, look):
    for pid in (601, 602):
        scene.claude(pid, f"/srv/{pid}", status="idle").says(f"I am {pid}")
    page = look(is_timed=True)
    title = page.locator(".agent", has_text="601").locator("> .title")
    title.focus()
    scene.claude(609, "/srv/new", status="waiting").says("hello")
    page.clock.fast_forward(EVERY_MS)
    expect(titles(page)).to_have_count(3)
    expect(title).to_be_focused()


def test_a_hidden_page_asks_for_nothing(look_at_shop, watched):
    page = look_at_shop(is_timed=True)
    expect(titles(page)).to_have_count(4)
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.clock.run_for(EVERY_MS)
    before = len(watched.asked)
    page.clock.run_for(4 * EVERY_MS)
    assert len(watched.asked) == before
    with page.expect_request("**/active/"):
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")


def test_sessions_that_are_over_are_listed_when_they_are_unfolded(look_at_shop):
    page = look_at_shop()
    expect(titles(page)).to_have_count(4)
    page.locator(".sessions summary").click()
    expect(page.locator(".past .title", has_text="Chapter 4")).to_be_visible()


@pytest.fixture(scope="module")
def wordy_server(tmp_path_factory):
    """Of one agent whose every fact is as long as can be, and of one that says nothing of itself."""
    scene = Scene(tmp_path_factory.mktemp("wordy"))
    agent = scene.claude(601, status="waiting", waitingFor="permission " * 60, name="n" * 300)
    agent.model = "m" * 400
    agent.titled("A title that does not end. " * 110)
    agent.says("a word")
    helper = scene.subagent(601, "h" * 100)
    helper.model = "m" * 400
    helper.says("a word")
    scene.claude(602, status="idle")
    with served(scene) as server:
        yield server


@pytest.mark.parametrize("width", [390, 1200])
def test_what_is_too_long_is_cut_and_pointing_at_it_tells_it_whole(browser, wordy_server, watched, width):
    with looking(browser, wordy_server, watched) as look:
        page = look("/", viewport={"width": width, "height": 800})
        card = page.locator(".agent[data-status=waiting]")
        expect(card.locator(".within .model")).to_have_attribute("title", "m" * 400)
        expect(card.locator("> .model")).to_have_attribute("title", "m" * 400)
        expect(card.locator("> .title")).to_have_attribute("title", re.compile("^A title .* end. A"))
        expect(page.locator(".agent .title", has_text="claude 602")).to_be_visible()
        assert card.bounding_box()["height"] < 220
        assert card.locator("> .title").bounding_box()["width"] > 200
        boxes = [card.locator(f"> {part}").bounding_box() for part in (".title", ".model", ".age", ".files")]
        assert not [(one, other) for one, other in combinations(boxes, 2) if over(one, other)]
        page.locator(".sessions summary").click()
        expect(page.locator(".past .model").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(wordy_server.url + "/active/claude/601/chat/")
        expect(page.locator("#heading .model")).to_have_attribute("title", "m" * 400)
        assert page.locator("header").bounding_box()["height"] < 220


def over(one, other):
    """Tell whether two boxes cover some of the same place."""
    return all(
        min(one[at] + one[size], other[at] + other[size]) - max(one[at], other[at]) > 1
        for at, size in (("x", "width"), ("y", "height"))
    )


def test_no_agent_says_so_and_what_to_do(look):
    page = look()
    expect(page.locator("[data-state=empty]")).to_contain_text("No agent is running")
    expect(page.locator("[data-state=empty]")).to_contain_text("agents9 doctor")


def test_an_agent_s_directory_shows_its_facts(look_at_shop):
    page = look_at_shop("/active/claude/601/")
    row = page.locator("tr", has=page.get_by_role("link", name="waitingfor", exact=True))
    expect(row).to_contain_text("permission to run Bash")
    page.get_by_role("link", name="chat/", exact=True).click()
    expect(page.locator("article").first).to_be_visible()


def test_a_server_that_has_gone_is_told_and_come_back_is_seen(look_at_shop):
    page = look_at_shop(is_timed=True)
    expect(titles(page)).to_have_count(4)
    page.route("**/active/", lambda route: route.abort())
    page.clock.fast_forward(EVERY_MS)
    expect(page.locator("[data-state=unreachable]")).to_contain_text("The server does not answer")
    page.unroute("**/active/")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-state=unreachable]")).to_have_count(0)
    expect(page.locator("#state")).to_have_text("4 agents, 1 waiting")
