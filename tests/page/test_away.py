"""What is not there is said, what was last seen stays, it comes back by itself, and words that were begun are kept."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Locator, Page, expect

from ashep.api import static
from ashep.api.browser_sessions import BrowserSessions
from tests.page.conftest import Site
from tests.service.worlds import World

pytestmark = pytest.mark.slow

WORDS = "the tests are miss"


@pytest.fixture
def shown(site: Site) -> Iterator[Page]:
    """A page on which somebody has begun to write."""
    shown = site.opened(site.browser.new_context())
    field(shown).fill(WORDS)
    yield shown
    site.said = [one for one in site.said if not one.startswith("Failed to load resource: ")]


def field(shown: Page) -> Locator:
    return shown.locator(".card").first.get_by_role("textbox")


def live(shown: Page) -> Locator:
    return shown.locator(".live").get_by_role("status")


def test_a_network_that_is_cut_comes_back(site: Site, shown: Page) -> None:
    site.go(shown, "/issues")
    expect(shown.locator("main")).to_contain_text("t-5")  # its code is there by now
    expect(live(shown)).to_have_text("live")
    shown.context.set_offline(True)
    expect(live(shown)).to_have_text(re.compile(r"^as of .+, not connected$"))
    site.goes_on("t-8")
    site.go(shown, "/issues")
    expect(shown.locator("main")).to_contain_text("t-5")
    expect(shown.locator("main")).not_to_contain_text("t-8")
    shown.get_by_role("searchbox").fill("t-8")
    expect(shown.locator("main")).to_contain_text("The server does not answer")
    site.go(shown, "/")
    expect(field(shown)).to_have_value(WORDS)
    shown.context.set_offline(False)
    expect(live(shown)).to_have_text("live")
    site.go(shown, "/issues")
    expect(shown.locator("main")).to_contain_text("t-8")


def test_a_server_that_was_begun_anew_wants_a_fresh_link_and_has_the_words(site: Site, shown: Page) -> None:
    expect(live(shown)).to_have_text("live")
    site.end()
    expect(live(shown)).to_contain_text("not connected")
    expect(field(shown)).to_have_value(WORDS)
    site.world = World(site.world.project, page=static.built())
    site.begin(int(site.address.rpartition(":")[2]))
    expect(shown.locator("h1")).to_have_text("This link has expired, or you are signed out")
    shown.goto(site.link())
    expect(live(shown)).to_have_text("live")
    expect(field(shown)).to_have_value(WORDS)


def serves(site: Site, world: World) -> None:
    """Know those who came in at an earlier server of this address."""
    world.sessions.browsers = BrowserSessions(world.folder / "state", lambda: world.clock, site.address)
    world.sessions.browsers.load()
    site.world = world


def test_a_restart_sends_nobody_out_and_tells_no_stranger_on_its_port_a_token(site: Site) -> None:
    serves(site, site.world)
    shown = site.opened(site.browser.new_context())
    field(shown).fill(WORDS)
    shown.wait_for_timeout(4000)  # it fetches its other pages while nobody waits
    site.end()
    expect(live(shown)).to_contain_text("not connected")
    heard = list[tuple[str, str | None]]()

    class Stranger(BaseHTTPRequestHandler):
        """Whoever takes the port meanwhile, and says what they like."""

        def do_GET(self) -> None:
            heard.append((self.path, self.headers["Authorization"]))
            body = json.dumps({"proof": "0" * 64}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the library calls them so

        def log_message(self, format: str, *args: object) -> None:
            pass

    port = int(site.address.rpartition(":")[2])
    with ThreadingHTTPServer(("127.0.0.1", port), Stranger) as stranger:
        Thread(target=stranger.serve_forever).start()
        while len(heard) < 2:
            shown.wait_for_timeout(200)
        shown.get_by_role("navigation").get_by_role("link", name="Issues").click()
        shown.wait_for_timeout(1500)
        stranger.shutdown()
    assert {path for path, _ in heard} == {"/api/v1/prove"}
    assert {token for _, token in heard} == {None}
    serves(site, World(site.world.project, page=static.built()))
    site.begin(port)
    expect(live(shown)).to_have_text("live", timeout=45_000)
    expect(shown.locator("main")).to_contain_text("t-5")
    site.go(shown, "/")
    expect(field(shown)).to_have_value(WORDS)
    site.said = [one for one in site.said if not one.startswith("Failed to load resource: ")]


def test_a_database_that_is_deleted_is_drawn_again(site: Site, shown: Page) -> None:
    for file in (site.world.folder / "state").glob("ashep.db*"):
        file.unlink()
    site.go(shown, "/issues")
    expect(shown.locator("main")).to_contain_text("t-5")
    site.go(shown, "/")
    expect(field(shown)).to_have_value(WORDS)


def test_a_tab_that_slept_asks_for_nothing_and_then_for_what_is_new(site: Site, shown: Page) -> None:
    site.go(shown, "/issues")
    expect(shown.locator("main")).to_contain_text("t-5")
    sleeps = "asleep => { Object.defineProperty(document, 'hidden', { value: asleep, configurable: true }); %s }"
    sleeps %= "document.dispatchEvent(new Event('visibilitychange'))"
    shown.wait_for_timeout(2500)  # what is asked for once after the first picture
    shown.evaluate(sleeps, True)
    asked = list[str]()
    shown.on("request", lambda one: asked.append(one.url))
    site.goes_on("t-8")
    shown.wait_for_timeout(1500)
    assert asked == []
    expect(shown.locator("main")).not_to_contain_text("t-8")
    shown.evaluate(sleeps, False)
    expect(shown.locator("main")).to_contain_text("t-8")
    site.go(shown, "/")
    expect(field(shown)).to_have_value(WORDS)
