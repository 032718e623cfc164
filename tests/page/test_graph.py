"""Graphs are read without a glass, loops are seen as loops, and nothing counts as running where nothing runs."""

import json
from typing import Any

import pytest
from playwright.sync_api import ViewportSize, expect

from ashep.core.state.run import Run
from ashep.journal.lock import Lock
from tests.page.conftest import Site
from tests.page.test_acts import drawn
from tests.page.test_axe import BESIDE, there
from tests.service.worlds import AT

pytestmark = pytest.mark.slow

SIZES = [ViewportSize(width=width, height=800) for width in (1440, 900, 720, 390)]
RUN = "t-1/implement.1.1"
THEN = "/?at=2026-01-01T22:00:25Z"
VERDICTS = {"review": "approve", "arbitrate": "pass"}

SMALL = """() => {
    const scale = one => one ? new DOMMatrix(getComputedStyle(one).transform).a * scale(one.parentElement) : 1
    return [...document.querySelectorAll('main *')].filter(one => one.checkVisibility())
        .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
        .map(one => [one.outerHTML.slice(0, 90), parseFloat(getComputedStyle(one).fontSize) * scale(one)])
        .filter(([, size]) => size < 12)
}"""
"""Texts whose letters are drawn less than 12 px high."""


def loops(_: Any, run: Run) -> str:
    """Fail the first run of all, and want more work of the first visit."""
    if run.id.endswith("implement.1.1"):
        return json.dumps({"result": "failed", "summary": "a test fails"})
    phase = run.id.partition("/")[2].partition(".")[0]
    verdict = "needs_work" if run.id.endswith("arbitrate.1.1") else VERDICTS.get(phase)
    return json.dumps({"result": "success", "summary": f"{phase} is done"} | ({"verdict": verdict} if verdict else {}))


def test_text_of_a_graph_is_never_below_12_px_and_scrolls_in_its_own_box(site: Site) -> None:
    site.world.clock = site.world.clock.replace(hour=23)
    tab = site.opened(site.browser.new_context())
    box = tab.locator(".graph")
    for size in SIZES:
        tab.set_viewport_size(size)
        for path in (THEN, "/policies/standard", "/issues/t-1/runs"):
            there(site, tab, path)
            if size["width"] > 760:
                expect(box.locator(".box").first).to_be_visible()
                box.hover()
                tab.keyboard.down("Control")
                tab.mouse.wheel(0, 400)
                tab.keyboard.up("Control")
            tab.evaluate("() => new Promise(done => setTimeout(done, 100))")
            assert tab.evaluate(SMALL) == [], (size, path)
            assert tab.evaluate(BESIDE) <= 0, (size, path)
    tab.set_viewport_size(SIZES[1])
    there(site, tab, THEN)
    box.focus()
    tab.keyboard.press("ArrowRight")
    end = box.locator(".box", has_text="close")
    expect(end).not_to_be_in_viewport(ratio=1)
    for _ in range(20):
        tab.keyboard.press("ArrowRight")
    expect(end).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("site", [loops], indirect=True)
def test_attempts_and_rounds_are_bracketed_and_told(site: Site) -> None:
    for size in (SIZES[0], SIZES[-1]):
        tab = site.opened(site.browser.new_context(viewport=size))
        there(site, tab, "/issues/t-1/runs")
        rounds = tab.locator(":not(.loop) > .course > .loop")
        expect(rounds.locator("> b")).to_have_text(["Round 1", "Round 2"])
        tries = rounds.first.get_by_role("listitem").filter(has_text="implement, 2 attempts")
        expect(tries.get_by_role("link")).to_have_text(["implement.1.1", "implement.1.2"])
        expect(rounds.last.get_by_role("link").first).to_have_text("implement.2.1")
        assert tab.evaluate(BESIDE) <= 0
        assert tab.evaluate(SMALL) == []
        if size is SIZES[0]:
            expect(tab.locator(".bracket")).to_have_text(["Round 1", "Round 2", "implement, 2 attempts"])
            second = tab.get_by_role("group", name="implement.1.2")
            expect(second).to_have_accessible_name(name := second.get_attribute("aria-label") or "")
            assert "Round 1, implement, 2 attempts" in name


def test_no_run_is_said_to_run_without_a_daemon(site: Site) -> None:
    goes = "UPDATE runs SET state = 'running', ended_at = NULL,"
    goes += " body = json_set(body, '$.ended_at', NULL, '$.state', 'running', '$.outcome', NULL) WHERE run = ?"
    drawn(site, (goes, (RUN,)))
    tab = site.opened(site.browser.new_context())
    main, row = tab.locator("main"), tab.get_by_role("row").filter(has_text="implement.1.1")
    there(site, tab, "/runs?issue=t-1")
    expect(row).to_contain_text("▷interrupted")
    expect(tab.get_by_role("list", name="Runs by state")).to_contain_text("1 interrupted")
    expect(main).not_to_contain_text("running")
    for path in ("/issues/t-1/runs", "/policies/standard"):
        there(site, tab, path)
        expect(main).not_to_contain_text("running")
    there(site, tab, f"/runs/{RUN}")
    facts = tab.locator(".pinned")
    expect(facts).to_contain_text("interrupted")
    with Lock.acquire(site.world.folder / "state", AT):
        drawn(site)
        expect(facts).to_contain_text("running")
        there(site, tab, "/runs?issue=t-1")
        expect(row).to_contain_text("▶running")
