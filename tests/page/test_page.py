"""People come in by a link, see what waits for them and why, and answer it: once, under their own name."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from ashep.core.policy.settings import Labels
from tests.page.conftest import Site

pytestmark = pytest.mark.slow

PHONE = ViewportSize(width=390, height=844)


def card(shown: Page) -> tuple[str, Locator]:
    """The first card of what waits, and its issue."""
    found = shown.locator(".card").first
    issue = re.search(r"t-\d+", found.inner_text())
    assert issue is not None
    return issue[0], found


def test_a_link_lets_one_browser_in(site: Site) -> None:
    link, first = site.link(), site.browser.new_context().new_page()
    first.goto(link)
    first.locator(".card").first.wait_for()
    assert "enter" not in first.url
    first.reload()
    first.locator(".card").first.wait_for()
    second = site.browser.new_context().new_page()
    second.goto(link)
    expect(second.locator("main")).to_contain_text("ashep ui")
    assert second.locator(".card").count() == 0
    site.said = [one for one in site.said if "403" not in one]


def by_mouse(shown: Page, found: Locator) -> None:
    found.get_by_role("button", name="Approve").dblclick()


def by_keys(shown: Page, found: Locator) -> None:
    shown.keyboard.press("j")
    expect(shown.locator(".desk > ol button").first).to_be_focused()
    shown.keyboard.press("a")


@pytest.mark.parametrize("approve", [by_mouse, by_keys])
def test_an_approval_is_written_once_as_the_person(site: Site, approve: Callable[[Page, Locator], None]) -> None:
    shown = site.opened(site.browser.new_context())
    issue, found = card(shown)
    site.asks(issue)
    if approve is by_mouse:
        found.get_by_role("textbox").fill("well done")
    approve(shown, found)
    shown.get_by_text(f"{issue} approved by you · counts when the daemon runs").wait_for()
    labels, said = site.tracked(issue)
    assert Labels().approved in labels
    assert said == ([("Pat", "well done")] if approve is by_mouse else [])


def test_what_was_answered_meanwhile_keeps_the_words(site: Site) -> None:
    shown = site.opened(site.browser.new_context(viewport=PHONE, has_touch=True))
    issue, found = card(shown)
    found.get_by_role("textbox").fill("the tests are missing")
    found.get_by_role("button", name="Request changes").tap()  # the tracker knows of no question any more
    expect(found).to_contain_text("there is no issue")
    expect(found.get_by_role("textbox")).to_have_value("the tests are missing")
    site.said = [one for one in site.said if "409" not in one]
    assert issue


def test_how_a_session_is_opened_stands_at_its_run(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    issue, _ = card(shown)
    site.go(shown, f"/runs/{issue}/implement.1.1")
    shown.get_by_text("How to open it").click()
    expect(shown.locator("pre")).to_contain_text("the agent server is not running")
    assert "MIT" in shown.request.get(f"{site.address}/THIRD_PARTY.txt").text()


def test_every_place_is_there_and_complains_of_nothing(site: Site) -> None:
    for context in (site.browser.new_context(viewport=PHONE), site.browser.new_context(color_scheme="dark")):
        shown = site.opened(context)
        for path in ("/", "/issues", "/issues/t-1", "/issues/t-1/runs", "/runs", "/report", "/usage", "/records/5"):
            site.go(shown, path)
            expect(shown.get_by_role("heading", level=1)).to_be_visible()
            wide = shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, path
