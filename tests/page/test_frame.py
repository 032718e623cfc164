"""What stands around every place: the project, the number that waits, what is told outside of the page, the search."""

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


def settings(shown: Page) -> None:
    shown.get_by_role("button", name="Keys and settings").click()


def told(shown: Page, many: int) -> list[str]:
    """Wait until the person was notified so often."""
    until = time.monotonic() + 30
    while len(shown.evaluate("told")) < many and time.monotonic() < until:
        shown.wait_for_timeout(50)
    return shown.evaluate("told")


def test_every_page_names_the_project_and_the_number_that_waits(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    expect(shown.locator(".project")).to_have_text("project→ main")
    assert ">1</text>" in shown.evaluate(ICON)
    for path, name in (("/", "Now"), ("/issues", "Issues"), ("/runs", "Runs"), ("/report", "Report")):
        there(site, shown, path)
        expect(shown).to_have_title(f"(1) project · {name}")
        expect(shown.get_by_role("link", name="Now 1 waiting for you")).to_be_visible()
    drawn(site, ("UPDATE issues SET state = 'closed', code = 'closed'", ()))
    expect(shown).to_have_title("project · Report")
    expect(shown.get_by_role("link", name="Now", exact=True)).to_be_visible()
    assert ">P</text>" in shown.evaluate(ICON)


def test_what_is_new_is_told_once_also_where_nobody_looks_and_to_who_wants_it_alone(site: Site) -> None:
    context = site.browser.new_context()
    context.add_init_script(NOTIFICATION)
    shown = site.opened(context)
    stands(site, CASES["reject"])
    expect(shown).to_have_title("(2) project · Now")
    assert shown.evaluate("told") == []
    settings(shown)
    switch = shown.get_by_role("combobox", name="Browser notifications")
    expect(switch).to_have_value("off")
    shown.evaluate("answer = 'denied'")
    switch.select_option("on")
    expect(shown.get_by_text("The browser does not allow them")).to_be_visible()
    expect(switch).to_have_value("off")
    shown.evaluate("answer = 'granted'")
    switch.select_option("on")
    expect(switch).to_have_value("on")
    shown.get_by_role("button", name="Close").click()
    shown.evaluate(HIDDEN)
    stands(site, CASES["take"])
    told(shown, 1)
    stands(site, CASES["release"])
    assert told(shown, 2) == [
        "project: 1 issue waiting for you|t-4 Title of t-4",
        "project: 1 issue waiting for you|t-5 Title of t-5",
    ]


def test_a_journal_that_is_read_for_the_first_time_says_how_far(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, draw = threading.Event(), read_model._draw  # pyright: ignore[reportPrivateUsage] - it is held there

    def held(state: Path, scratch: Path, say: Callable[[str], None], progress: Callable[[int, int], None]) -> Path:
        progress(43, 100)
        goes_on.wait(60)
        return draw(state, scratch, say, progress)

    monkeypatch.setattr(drawing, "PATIENCE", 0.1)
    monkeypatch.setattr(read_model, "_draw", held)
    for file in (site.world.folder / "state").glob("ashep.db*"):
        file.unlink()
    shown = site.browser.new_context().new_page()
    shown.goto(site.link())
    expect(shown.get_by_role("status").filter(has_text="Reading")).to_have_text(
        "Reading the journal for the first time: 43 %"
    )
    expect(shown.get_by_role("progressbar")).to_have_attribute("value", "0.43")
    expect(shown.locator(".live").get_by_role("status")).to_have_text("loading")
    goes_on.set()
    expect(shown.locator(".card")).to_have_count(1)
    expect(shown.locator(".live").get_by_role("status")).to_have_text("live")


def find(shown: Page, text: str) -> None:
    shown.keyboard.press("Control+k")
    box = shown.get_by_role("combobox", name="Search")
    assert box.get_attribute("placeholder")
    box.fill(text)


def test_control_k_finds_issues_runs_pages_and_acts(site: Site) -> None:
    asked: list[dict[str, Any]] = []
    site.world.acts.ask = lambda _, request: asked.append(dict(request)) or {"runs": [], "ended": []}
    with Lock.acquire(site.world.folder / "state", AT):
        shown = site.opened(site.browser.new_context())
        found, heading = shown.get_by_role("listbox", name="Found"), shown.get_by_role("heading", level=1)
        find(shown, "t-4 title")  # words of it, in any order
        option = found.get_by_role("group", name="Issues").get_by_role("option")
        expect(option).to_have_count(1)
        expect(option).to_contain_text("t-4 Title of t-4")
        shown.keyboard.press("Enter")
        expect(heading).to_be_focused()
        expect(heading).to_contain_text("t-4")
        find(shown, "t-1/impl")
        expect(found.get_by_role("group", name="Runs").get_by_role("option")).to_have_count(1)
        shown.keyboard.press("Enter")
        expect(heading).to_have_text("t-1/implement.1.1")
        find(shown, "rep")
        shown.keyboard.press("Enter")
        expect(heading).to_have_text("Report")
        find(shown, "dark")
        shown.keyboard.press("Enter")
        expect(shown.locator("html")).to_have_attribute("data-scheme", "dark")
        find(shown, "pause")
        shown.keyboard.press("Enter")
        expect(shown.get_by_role("dialog")).to_have_count(0)
        assert [(one["do"], one["by"]) for one in asked] == [("pause", "Pat")]
        find(shown, "settings")
        shown.keyboard.press("Enter")
        expect(shown.get_by_role("heading", name="Keys and settings")).to_be_visible()
        shown.keyboard.press("Escape")
        find(shown, "zzz")
        expect(shown.get_by_role("dialog")).to_contain_text("No matches.")


def test_what_is_not_there_leads_on(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    places = {"/issues/zzz": "All issues", "/runs/t-1/implement.9.9": "Issue t-1", "/nowhere": "All issues"}
    for path, link in places.items():
        there(site, shown, path)
        expect(shown.get_by_role("alert")).to_be_visible()
        expect(shown.get_by_role("main").get_by_role("link", name=link)).to_be_visible()
        expect(shown.get_by_role("button", name="Try again")).to_have_count(0)
    shown.get_by_role("button", name="Search issues, runs and pages").click()
    expect(shown.get_by_role("combobox", name="Search")).to_be_focused()
    site.said = [one for one in site.said if "404" not in one]


def test_moments_are_shown_as_a_person_chose(site: Site) -> None:
    shown = site.opened(site.browser.new_context(timezone_id="Asia/Tokyo"))
    there(site, shown, "/runs")
    queued = shown.locator(".runs .inner time").first
    expect(queued).to_have_text("2 Jan, 07:00")
    for choice, text in (("UTC", "1 Jan, 22:00 UTC"), ("relative, in lists", " ago")):
        settings(shown)
        shown.get_by_role("combobox", name="Time").select_option(choice)
        shown.keyboard.press("Escape")
        expect(queued).to_contain_text(text)
    shown.reload()
    expect(queued).to_contain_text(" ago")
    assert "January 2026 at" in (queued.get_attribute("title") or "")


@pytest.mark.parametrize("width", [1101, 1440])
def test_runs_have_cost_and_result_and_the_report_its_figures(site: Site, width: int) -> None:
    drawn(
        site,
        ("UPDATE runs SET body = json_set(body, '$.cost', 1234.5, '$.tokens', 22600)", ()),
        ("UPDATE runs SET body = json_set(body, '$.cost', 0.004) WHERE trace = (SELECT max(trace) FROM runs)", ()),
    )
    shown = site.opened(site.browser.new_context(viewport={"width": width, "height": 800}))
    there(site, shown, "/runs")
    rows = shown.get_by_role("row")
    for name in ("Cost", "Result"):
        expect(shown.get_by_role("columnheader", name=name)).to_be_visible()
    expect(rows.nth(1)).to_contain_text("<$0.01")
    expect(rows.nth(2)).to_contain_text("$1,234.50")
    table = shown.locator(".rows")
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    there(site, shown, "/report")
    line = shown.get_by_role("region", name="Cost").get_by_role("listitem").first
    assert line.locator("span").first.evaluate("one => one.getBoundingClientRect().width") > 200
    waiting = shown.get_by_role("region", name="Waiting for you").get_by_role("listitem").first
    assert "asked" not in waiting.inner_text()


def test_the_report_says_in_the_agents_words_what_was_done(site: Site) -> None:
    shown = site.opened(site.browser.new_context(viewport=PHONE))
    summary = "A table of sums is there."
    query = (
        "UPDATE runs SET body = json_set(body, '$.outcome.summary', ?) WHERE json_extract(body, '$.access') = 'write'"
    )
    drawn(site, (query, (f"{summary} More of it.",)))
    there(site, shown, "/report")
    expect(shown.locator(".summary").first).to_have_text(summary)
