"""People look back on Now: by the slider, its keys or a line of the report, and nothing can be done there."""

import re

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.page.conftest import Site

pytestmark = pytest.mark.slow

PHONE = ViewportSize(width=390, height=844)


def test_a_moment_is_shown_without_anything_of_now(site: Site) -> None:
    site.world.clock = site.world.clock.replace(hour=23)
    for context in (site.browser.new_context(), site.browser.new_context(viewport=PHONE, has_touch=True)):
        shown = site.opened(context)
        site.go(shown, "/report?since=2020-01-01")
        waits = shown.locator("li", has_text="Merge this?").filter(
            has=shown.get_by_role("link", name="Show this moment in the history")
        )
        waits.first.get_by_role("link", name="Show this moment in the history").click()
        expect(shown).to_have_url(re.compile(r"/\?at=2026-01-01T2\d.*&issue=t-\d"))
        expect(shown.get_by_role("status").filter(has_text="History:")).to_contain_text("back to now")
        expect(shown.locator(".stands").first).to_contain_text("t-")
        expect(shown.get_by_role("textbox")).to_have_count(0)
        for act in ("Approve", "Request changes", "Take over"):
            expect(shown.get_by_role("button", name=act)).to_have_count(0)
        expect(shown.get_by_text("Nothing new will start")).to_have_count(0)
        wide = shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0

        site.go(shown, "/?at=2026-01-01T00:00:00Z")
        expect(shown.locator("main")).to_contain_text("The history begins at")
        shown.get_by_role("link", name="back to now").click()
        expect(shown.locator(".card").first.get_by_role("button", name="Approve")).to_be_visible()
        assert "at=" not in shown.url


def test_the_slider_is_led_by_keys_and_the_address_keeps_the_moment(site: Site) -> None:
    site.world.clock = site.world.clock.replace(hour=23)
    shown = site.opened(site.browser.new_context())
    shown.get_by_role("button", name="History").click()
    slider = shown.get_by_role("slider")
    slider.focus()
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^as of"))
    expect(shown).to_have_url(re.compile(r"/\?at=20\d\d-"))
    expect(shown.get_by_role("status").filter(has_text="History:")).to_be_visible()
    expect(slider).to_be_focused()
    shown.keyboard.press("End")
    expect(shown.locator(".card").first.get_by_role("button", name="Approve")).to_be_visible()
    expect(slider).to_have_attribute("aria-valuetext", "now")
