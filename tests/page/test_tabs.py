"""Many tabs are one reader: one stream, few connections; what changes reaches all of them, and disturbs nobody."""

import time

import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Site

pytestmark = pytest.mark.slow

TABS, MOST = 12, 3


def connections(site: Site) -> int:
    """How many the server has."""
    port = int(site.address.rpartition(":")[2])
    held = psutil.Process().net_connections("tcp")
    return sum(one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in held)


def sees(tab: Page, issue: str) -> None:
    """It shows this issue by itself."""
    expect(tab.locator("main")).to_contain_text(issue)


def test_twelve_tabs_read_one_stream_which_outlives_the_tab_that_holds_it(site: Site) -> None:
    context, streams = site.browser.new_context(), list[Page]()
    context.on("request", lambda one: streams.append(one.frame.page) if one.url.endswith("/events") else None)
    tabs = [site.opened(context), *(context.new_page() for _ in range(TABS - 1))]
    for tab in tabs[1:]:
        tab.goto(f"{site.address}/issues", wait_until="commit")
    for tab in tabs:
        sees(tab, "t-1")
    assert len(streams) == 1
    until = time.monotonic() + 30  # connections that were opened for loading end by themselves
    while connections(site) > MOST and time.monotonic() < until:
        tabs[0].wait_for_timeout(250)
    assert connections(site) <= MOST
    site.goes_on("t-8")
    for tab in tabs[1:]:
        sees(tab, "t-8")
    tabs.remove(streams[0])
    streams[0].close()
    site.goes_on("t-9")
    for tab in tabs[:3]:
        site.go(tab, "/issues")
        sees(tab, "t-9")
    assert len(streams) == 2


def test_a_change_disturbs_nobody_who_writes(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    field = shown.locator(".card").first.get_by_role("textbox")
    field.press_sequentially("half a wo")
    before = shown.locator(".card h3").all_inner_texts()
    counts = shown.locator(".counts").inner_text()
    site.goes_on("t-8", "t-9")
    expect(shown.locator(".counts")).not_to_have_text(counts)
    expect(field).to_be_focused()
    shown.keyboard.type("rd")
    expect(field).to_have_value("half a word")
    assert shown.locator(".card h3").all_inner_texts()[: len(before)] == before
