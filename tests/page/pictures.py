"""The guide's pictures, made of a night that is always the same: `python -m tests.page.pictures`, after `make page`."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import ViewportSize, expect, sync_playwright

from ashep.adapters.system.clock import RealClock
from ashep.api import static
from ashep.daemon.daemon import WorkOptions, daemon
from ashep.extras.demo.page import BEFORE, Night, beforehand
from ashep.extras.demo.simulated import FOLDER, begin_project
from ashep.extras.simulation.virtual_time import VIRTUAL, open_now, wait_for_threads
from ashep.journal.lock import Lock
from ashep.ports.tracker import IssueText
from tests.page import sheets
from tests.page.conftest import CHROMIUM, Site
from tests.page.test_axe import THERE
from tests.recorded import draw
from tests.service.worlds import World, repository

ROOT = Path(__file__).parents[2] / "docs" / "guides" / "page"
BEGINS = datetime(2026, 1, 2, 4, tzinfo=UTC)
RUNS = 500.0
"""Virtual seconds that issues which were written last are worked on."""

DESKTOP, PHONE = ViewportSize(width=1200, height=700), ViewportSize(width=390, height=760)
TITLES = {"calc-4": "Document min()", "calc-5": "Document max()", "calc-6": "Document mode()"}
ACCEPTANCE = "A page of notes tells what it is for, with an example."
PICTURES = {
    "now": ("/", DESKTOP),
    "course": ("/issues/calc-5/runs", DESKTOP),
    "report": ("/report", DESKTOP),
    "phone": ("/", PHONE),
}


async def night(project: Path) -> datetime:
    """Live through the night, and say when it ends; the last issues are still worked on."""
    wait_for_threads()
    made = Night(project, RealClock().now() - BEGINS)
    configuration, state = begin_project(project), project / FOLDER / "state"
    journal = open_now(state, made.clock.now())
    async with (
        daemon(made.parts(project), configuration, journal, WorkOptions()) as running,
        anyio.create_task_group() as group,
    ):
        group.start_soon(running.poller.run, await made.tracker.check())
        group.start_soon(running.monitors[0].run)
        await beforehand(made, running)
        for _ in range(BEFORE):
            made.write()
        await anyio.sleep(RUNS)
        group.cancel_scope.cancel()
    draw(state, journal)
    journal.close()
    return made.clock.now()


def main() -> None:
    """Make them."""
    ROOT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "calc"
        show(project, anyio.run(night, project, backend_options=dict(VIRTUAL)))


def show(project: Path, at: datetime) -> None:
    """Take the pictures of this project as somebody sees it at that moment."""
    world = World(project, page=static.built())
    world.clock = at
    with sync_playwright() as playwright, start_blocking_portal() as portal:
        site = Site(world, portal, "", playwright.chromium.launch(executable_path=CHROMIUM))
        site.begin()
        with Lock.acquire(project / FOLDER / "state", BEGINS):
            for name, (path, size) in PICTURES.items():
                context = site.browser.new_context(viewport=size, reduced_motion="reduce", timezone_id="UTC")
                context.clock.set_fixed_time(at)
                shown = site.opened(context)
                site.go(shown, path)
                shown.evaluate(THERE)
                expect(shown.locator(".live").get_by_role("status")).to_have_text("live")
                shown.wait_for_timeout(1000)  # graphs find their place
                shown.screenshot(path=ROOT / f"{name}.png")
                context.close()
            for issue, title in TITLES.items():
                world.tracker.add(
                    title, id=issue, text=IssueText(f"The guide says how {title[9:]} is used.", acceptance=ACCEPTANCE)
                )
            sheets.take(site, sheets.VIEWS, at, (at - timedelta(minutes=10)).isoformat().replace("+00:00", "Z"))
            sheets.take(site, sheets.OTHERS, at)
            sheets.lengthen(project / FOLDER / "state")
            sheets.take(site, sheets.EDGES, at)
        site.end()
        site.world = World(repository(project.parent / "empty" / "calc"), page=static.built())
        site.world.clock = at
        begin_project(site.world.project)
        site.begin()
        with Lock.acquire(site.world.folder / "state", BEGINS):
            sheets.take(site, sheets.EMPTY, at)
        site.end()
        site.browser.close()
    sheets.write_guide()


if __name__ == "__main__":
    main()
