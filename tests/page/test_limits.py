"""What the page may cost: bytes, shifts of what is read, memory as things change, and nothing while nobody looks."""

import pytest
from playwright.sync_api import expect

from ashep.api import static
from ashep.api.handlers import events
from bench.browser import VITALS, asked_while_hidden, counted, heap
from bench.page import scripts
from bench.writer import Writer
from tests.page.conftest import Site

pytestmark = pytest.mark.slow

CHANGES = 100
MOST_GROWN = 1.5
"""Megabytes; after a thousand changes 5 are allowed, and what caches keep comes first."""


def test_scripts_stay_small() -> None:
    if not static.built().files:
        pytest.skip(static.MISSING)
    found = scripts()
    assert len(found) == 2
    assert [one for one in found if one.is_over] == []


def test_changes_cost_no_memory_and_a_hidden_tab_asks_for_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK", 0.01)
    shown = site.opened(site.browser.new_context())
    shown.locator(".counts").wait_for()
    with Writer(site.world.folder / "state") as writer:
        start = 0.0
        for number in range(CHANGES + 20):
            writer.change()
            counted(shown, writer.changes)
            if number == 19:  # the page has met everything once
                start = heap(shown)
        assert heap(shown) - start <= MOST_GROWN
        assert asked_while_hidden(shown, writer, 1.0) == []


def test_nothing_moves_under_a_reader(site: Site) -> None:
    context = site.browser.new_context()
    context.add_init_script(VITALS)
    shown = site.opened(context)
    for path in ("/", "/issues", "/issues/t-1", "/runs", "/report"):
        shown.goto(site.address + path)
        expect(shown.get_by_role("heading", level=1)).to_be_visible()
        shown.wait_for_timeout(400)
        assert shown.evaluate("vitals.cls") <= 0.05, path


def test_runs_are_walked_by_keys_and_said(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    site.go(shown, "/runs")
    canvas = shown.get_by_role("application")
    canvas.press("End")
    said = shown.locator(".pointed")
    last = said.inner_text()
    canvas.press("ArrowLeft")
    expect(said).not_to_have_text(last)
    run = said.inner_text().split(" ")[0]
    canvas.press("Enter")
    expect(shown.get_by_role("heading", level=1)).to_contain_text(run.split("/")[1])


def test_a_phone_loads_no_canvas(site: Site) -> None:
    asked = list[str]()
    context = site.browser.new_context(viewport={"width": 390, "height": 844})
    context.on("request", lambda one: asked.append(one.url))
    shown = site.opened(context)
    site.go(shown, "/runs")
    expect(shown.get_by_role("table")).to_be_visible()
    assert any("Runs" in one for one in asked)
    assert [one for one in asked if "timeline" in one.lower()] == []
