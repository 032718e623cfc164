"""Who comes in by a fresh link gets to the place that they had asked for, in whichever tab, and nowhere else."""

import pytest
from playwright.sync_api import Page, expect

from ashep.api.login_links import link
from tests.page.conftest import Site

pytestmark = pytest.mark.slow

OUT = "This link has expired, or you are signed out"


def place(site: Site, path: str = "/issues/t-1/runs") -> Page:
    """A page of somebody who has no session."""
    tab = site.browser.new_context().new_page()
    tab.goto(f"{site.address}{path}")
    expect(tab.get_by_role("heading", level=1)).to_have_text(OUT)
    return tab


def is_at(site: Site, tab: Page, path: str) -> None:
    expect(tab.locator(".live")).to_contain_text("as Pat")
    expect(tab).to_have_url(f"{site.address}{path}")


def test_a_fresh_link_leads_to_the_place_that_was_asked_for(site: Site) -> None:
    tab = place(site)
    tab.goto(link(site.address, "an-old-code"))
    expect(tab.get_by_role("alert")).to_contain_text("not good any more")
    tab.goto(site.link())
    is_at(site, tab, "/issues/t-1/runs")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("t-1")
    tab.goto(site.address)
    is_at(site, tab, "/")  # it was for once

    first = place(site, "/runs?state=failed")
    second = first.context.new_page()
    second.goto(site.link())
    is_at(site, second, "/runs?state=failed")
    is_at(site, first, "/runs?state=failed")

    tab = place(site)
    tab.goto(link(site.address, site.world.sessions.code("Pat"), "/issues/t-2"))  # as `ashep ui t-2` gives it
    is_at(site, tab, "/issues/t-2")

    for elsewhere in ("//evil.example/", "/\\evil.example/", "https://evil.example/", "javascript:alert(1)"):
        tab = place(site)
        tab.evaluate("place => sessionStorage.setItem('ashep-place', place)", elsewhere)
        tab.goto(site.link())
        is_at(site, tab, "/")
