"""A stranger before a month's project: three questions, answered by looking alone, and how many clicks each takes."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Browser, Page, ViewportSize, expect
from typer.testing import CliRunner

from ashep.api import static
from ashep.cli.commands import app
from ashep.store.sqlite_reader import open_read_only
from ashep.views.report import default_since
from chaos.month.compared import same_each_time
from chaos.month.month import Month
from tests.loop_world import simulate
from tests.page.conftest import Site
from tests.page.test_page import PHONE
from tests.service.worlds import World

pytestmark = pytest.mark.slow

SEED, ISSUES, DAYS = 11, 14, 2.0
"""A short one, in which something is parked by then, and something waits."""

CLICKS: Mapping[str, int] = {"what do I have to decide": 0, "what did the night cost": 1, "why was this parked": 1}
"""Three at most are allowed."""

COUNTED = "window.clicks = 0; addEventListener('click', () => { clicks += 1 }, true)"


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> World:
    """What somebody finds in the morning."""
    folder = tmp_path_factory.mktemp("month") / ".agent-shepherd"
    month = Month(folder, SEED, ISSUES, DAYS)
    world = World(folder.parent, page=static.built())

    async def scenario() -> None:
        await month.live(3)
        world.clock = month.world.clock.now()

    with same_each_time(SEED), ThreadPoolExecutor(1) as aside:  # here the browser's loop runs
        aside.submit(simulate, scenario).result()
    return world


def told(project: Path, *words: str) -> Any:
    """What a command says."""
    return json.loads(CliRunner().invoke(app, ["-C", str(project), *words, "--json"]).stdout)


@pytest.mark.parametrize("size", [None, PHONE], ids=["desktop", "phone"])
def test_three_questions_are_answered_by_looking(month: World, browser: Browser, size: ViewportSize | None) -> None:
    found: dict[str, int] = {}

    def answers(shown: Page, question: str) -> None:
        found[question] = shown.evaluate("clicks")
        shown.goto(site.address)

    issues = told(month.project, "status")["issues"]
    waiting, parked = ([one for one in issues if one["state"] == state] for state in ("person", "parked"))
    with closing(open_read_only(month.folder / "state")) as database:
        night = told(month.project, "report", "--since", default_since(database, month.clock))["sections"]
    assert waiting, "something is to be decided"
    assert parked, "something else does not go on"
    assert "cost $0." in night["cost"][0]["text"]
    with start_blocking_portal() as portal:
        site = Site(month, portal, "", browser)
        site.begin()
        context = browser.new_context(viewport=size or ViewportSize(width=1280, height=800))
        context.add_init_script(COUNTED)
        shown = site.opened(context)
        expect(shown.locator(".card").first).to_contain_text("Merge this?")
        for one in waiting:
            expect(shown.locator(".card" if size else ".desk li", has_text=one["title"])).to_be_visible()
        answers(shown, "what do I have to decide")

        shown.get_by_role("navigation").get_by_role("link", name="Report").click()
        for line in night["cost"]:
            expect(shown.get_by_role("region", name="Cost")).to_contain_text(f"{line['provider']}: {line['runs']} run")
            expect(shown.get_by_role("region", name="Cost")).to_contain_text(f"${line['cost']:,.2f}")
        answers(shown, "what did the night cost")

        shown.get_by_role("list", name="Issues by state").get_by_role("link", name="parked").click()
        for one in parked:
            expect(shown.get_by_role("row", name=f"{one['issue']} {one['title']}")).to_contain_text(one["reason"])
        answers(shown, "why was this parked")
        site.end()
    assert found == CLICKS
    assert site.said == []
