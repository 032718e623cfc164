"""What is around every place: the project, the number that waits, notifications, the search."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ashep.api.handlers import drawing
from ashep.journal.lock import Lock
from ashep.store import read_model
from tests.page.conftest import Site
from tests.page.test_acts import CASES, drawn, stands
from tests.page.test_axe import there
from tests.page.test_page import PHONE
from tests.service.worlds import AT

pytestmark = pytest.mark.slow

ICON = "() => decodeURIComponent(document.querySelector('link[rel=icon]').href)"

NOTIFICATION = """
window.told = []
window.Notification = class {
    static permission = 'default'
    static async requestPermission() { return (Notification.permission = window.answer ?? 'granted') }
    constructor(title, { body }) { told.push(`${title}|${body}`) }
    close() {}
}
document.hasFocus = () => false
"""

HIDDEN = """() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
}"""


def settings(tab: Page) -> None:
    tab.get_by_role("button", name="Keys and settings").click()


def message(tab: Page, many: int) -> list[str]:
    """Wait until the person was notified so often."""
    until = time.monotonic() + 30
    while len(tab.evaluate("told")) < many and time.monotonic() < until:
        tab.wait_for_timeout(50)
    return tab.evaluate("told")


def test_every_page_names_the_project_and_the_number_that_waits(site: Site) -> None:
    tab = site.opened(site.browser.new_context())
    expect(tab.locator(".project")).to_have_text("project→ main")
    assert ">1</text>" in tab.evaluate(ICON)
    for path, name in (("/", "Now"), ("/issues", "Issues"), ("/runs", "Runs"), ("/report", "Report")):
        there(site, tab, path)
        expect(tab).to_have_title(f"(1) project · {name}")
        expect(tab.get_by_role("link", name="Now 1 waiting for you")).to_be_visible()
    drawn(site, ("UPDATE issues SET state = 'closed', code = 'closed'", ()))
    expect(tab).to_have_title("project · Report")
    expect(tab.get_by_role("link", name="Now", exact=True)).to_be_visible()
    assert ">P</text>" in tab.evaluate(ICON)


def test_what_is_new_is_told_once_also_where_nobody_looks_and_to_who_wants_it_alone(site: Site) -> None:
    context = site.browser.new_context()
    context.add_init_script(NOTIFICATION)
    tab = site.opened(context)
    stands(site, CASES["reject"])
    expect(tab).to_have_title("(2) project · Now")
    assert tab.evaluate("told") == []
    settings(tab)
    switch = tab.get_by_role("combobox", name="Browser notifications")
    expect(switch).to_have_value("off")
    tab.evaluate("answer = 'denied'")
    switch.select_option("on")
    expect(tab.get_by_text("The browser blocks notifications")).to_be_visible()
    expect(switch).to_have_value("off")
    tab.evaluate("answer = 'granted'")
    switch.select_option("on")
    expect(switch).to_have_value("on")
    tab.get_by_role("button", name="Close").click()
    tab.evaluate(HIDDEN)
    stands(site, CASES["take"])
    message(tab, 1)
    stands(site, CASES["release"])
    assert message(tab, 2) == [
        "project: 1 issue waiting for you|t-4 Title of t-4",
        "project: 1 issue waiting for you|t-5 Title of t-5",
    ]


def test_a_journal_that_is_read_for_the_first_time_says_how_far(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, draw = threading.Event(), read_model._draw  # pyright: ignore[reportPrivateUsage] - it is held there

    def holder(state: Path, scratch: Path, say: Callable[[str], None], progress: Callable[[int, int], None]) -> Path:
        progress(43, 100)
        goes_on.wait(60)
        return draw(state, scratch, say, progress)

    monkeypatch.setattr(drawing, "PATIENCE", 0.1)
    monkeypatch.setattr(read_model, "_draw", holder)
    for file in (site.world.folder / "state").glob("ashep.db*"):
        file.unlink()
    tab = site.browser.new_context().new_page()
    tab.goto(site.link())
    expect(tab.get_by_role("status").filter(has_text="Reading")).to_have_text(
        "Reading the journal for the first time: 43 %"
    )
    expect(tab.get_by_role("progressbar")).to_have_attribute("value", "0.43")
    expect(tab.locator(".live").get_by_role("status")).to_have_text("loading")
    goes_on.set()
    expect(tab.locator(".card")).to_have_count(1)
    expect(tab.locator(".live").get_by_role("status")).to_have_text("live")


def find(tab: Page, text: str) -> None:
    tab.keyboard.press("Control+k")
    box = tab.get_by_role("combobox", name="Search")
    assert box.get_attribute("placeholder")
    box.fill(text)


def test_control_k_finds_issues_runs_pages_and_acts(site: Site) -> None:
    requests: list[dict[str, Any]] = []
    site.world.acts.ask = lambda _, request: requests.append(dict(request)) or {"runs": [], "ended": []}
    with Lock.acquire(site.world.folder / "state", AT):
        tab = site.opened(site.browser.new_context())
        matches, heading = tab.get_by_role("listbox", name="Found"), tab.get_by_role("heading", level=1)
        find(tab, "t-4 title")  # words of it, in any order
        option = matches.get_by_role("group", name="Issues").get_by_role("option")
        expect(option).to_have_count(1)
        expect(option).to_contain_text("t-4 Title of t-4")
        tab.keyboard.press("Enter")
        expect(heading).to_be_focused()
        expect(heading).to_contain_text("t-4")
        find(tab, "t-1/impl")
        expect(matches.get_by_role("group", name="Runs").get_by_role("option")).to_have_count(1)
        tab.keyboard.press("Enter")
        expect(heading).to_have_text("t-1/implement.1.1")
        find(tab, "rep")
        tab.keyboard.press("Enter")
        expect(heading).to_have_text("Report")
        find(tab, "dark")
        tab.keyboard.press("Enter")
        expect(tab.locator("html")).to_have_attribute("data-scheme", "dark")
        find(tab, "pause")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        assert [(item["do"], item["by"]) for item in requests] == [("pause", "Pat")]
        find(tab, "settings")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name="Keys and settings")).to_be_visible()
        tab.keyboard.press("Escape")
        find(tab, "zzz")
        expect(tab.get_by_role("dialog")).to_contain_text("No matches.")


def test_what_is_not_there_leads_on(site: Site) -> None:
    tab = site.opened(site.browser.new_context())
    places = {"/issues/zzz": "All issues", "/runs/t-1/implement.9.9": "Issue t-1", "/nowhere": "All issues"}
    for path, link in places.items():
        there(site, tab, path)
        expect(tab.get_by_role("alert")).to_be_visible()
        expect(tab.get_by_role("main").get_by_role("link", name=link)).to_be_visible()
        expect(tab.get_by_role("button", name="Try again")).to_have_count(0)
    tab.get_by_role("button", name="Search issues, runs and pages").click()
    expect(tab.get_by_role("combobox", name="Search")).to_be_focused()
    site.said = [item for item in site.said if "404" not in item]


def test_moments_are_shown_as_a_person_chose(site: Site) -> None:
    tab = site.opened(site.browser.new_context(timezone_id="Asia/Tokyo"))
    there(site, tab, "/runs")
    queued = tab.locator(".runs .inner time").first
    expect(queued).to_have_text("2 Jan, 07:00")
    for choice, text in (("UTC", "1 Jan, 22:00 UTC"), ("relative, in lists", " ago")):
        settings(tab)
        tab.get_by_role("combobox", name="Time").select_option(choice)
        tab.keyboard.press("Escape")
        expect(queued).to_contain_text(text)
    tab.reload()
    expect(queued).to_contain_text(" ago")
    assert "January 2026 at" in (queued.get_attribute("title") or "")


@pytest.mark.parametrize("width", [1101, 1440])
def test_runs_have_cost_and_result_and_the_report_its_figures(site: Site, width: int) -> None:
    drawn(
        site,
        ("UPDATE runs SET body = json_set(body, '$.cost', 1234.5, '$.tokens', 22600)", ()),
        ("UPDATE runs SET body = json_set(body, '$.cost', 0.004) WHERE trace = (SELECT max(trace) FROM runs)", ()),
    )
    tab = site.opened(site.browser.new_context(viewport={"width": width, "height": 800}))
    there(site, tab, "/runs")
    rows = tab.get_by_role("row")
    for name in ("Cost", "Result"):
        expect(tab.get_by_role("columnheader", name=name)).to_be_visible()
    expect(rows.nth(1)).to_contain_text("<$0.01")
    expect(rows.nth(2)).to_contain_text("$1,234.50")
    table = tab.locator(".rows")
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    there(site, tab, "/report")
    line = tab.get_by_role("region", name="Cost").get_by_role("listitem").first
    assert line.locator("span").first.evaluate("one => one.getBoundingClientRect().width") > 200
    waiting = tab.get_by_role("region", name="Waiting for you").get_by_role("listitem").first
    assert "asked" not in waiting.inner_text()


def test_the_report_says_in_the_agents_words_what_was_done(site: Site) -> None:
    tab = site.opened(site.browser.new_context(viewport=PHONE))
    summary = "A table of sums is there."
    query = (
        "UPDATE runs SET body = json_set(body, '$.outcome.summary', ?) WHERE json_extract(body, '$.access') = 'write'"
    )
    drawn(site, (query, (f"{summary} More of it.",)))
    there(site, tab, "/report")
    expect(tab.locator(".summary").first).to_have_text(summary)
