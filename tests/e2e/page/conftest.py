"""A real Chromium that looks at the page of a real server, which looks at a made machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page, expect, sync_playwright

from tests.e2e.machine import Served, served
from tests.e2e.page.scene import Scene, shop

CHROMIUM = "/usr/bin/chromium"
OPTIONS = [
    "--no-sandbox",  # the tests may be root
    "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[BrowserType]:
    """Playwright's hold on Chromium: one a process."""
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="session")
def browser(chromium) -> Iterator[Browser]:
    browser = chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
    yield browser
    browser.close()


@pytest.fixture
def scene(tmp_path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def server(scene) -> Iterator[Served]:
    with served(scene) as server:
        yield server


class Watched:
    """What went wrong in a page while a test looked at it, and whom it asked for something."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.asked: list[str] = []

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.faults.append(f"{error.message}\n{error.stack}"))
        page.on("console", self._hear)
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def _hear(self, message) -> None:
        # The browser's own word for an answer of 4xx or 5xx is no fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)


Look = Callable[..., Page]


@contextmanager
def looking(browser: Browser, server: Served, watched: Watched) -> Iterator[Look]:
    """Give what opens paths in new windows. In none may anything go wrong, or another server be asked."""
    with ExitStack() as stack:

        def open_page(path: str = "/", is_timed: bool = False, **options: object) -> Page:
            """*is_timed*: the page's clock is the test's (`page.clock`)."""
            options = {"viewport": {"width": 1200, "height": 760}, **options}
            context: BrowserContext = browser.new_context(**options)
            stack.callback(context.close)
            context.set_default_timeout(WAIT_MS)
            page = context.new_page()
            if is_timed:
                page.clock.install()
            watched.watch(page)
            page.goto(server.url + path)
            return page

        yield open_page
    assert watched.faults == []
    assert [url for url in watched.asked if not url.startswith((server.url, "blob:", "data:"))] == []


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def look(browser, server, watched) -> Iterator[Look]:
    with looking(browser, server, watched) as opened:
        yield opened


@pytest.fixture(scope="session")
def shop_server(tmp_path_factory) -> Iterator[Served]:
    scene = Scene(tmp_path_factory.mktemp("shop"))
    shop(scene)
    with served(scene) as server:
        yield server


@pytest.fixture
def look_at_shop(browser, shop_server, watched) -> Iterator[Look]:
    """The same for the agents of `scene.shop`, which say nothing more: for tests that only look."""
    with looking(browser, shop_server, watched) as look:
        yield look
