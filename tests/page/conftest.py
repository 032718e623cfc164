"""A server with the page, over a project in which a few issues were worked on, and a browser."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from ashep.adapters.system.http_server import make_server
from ashep.api import server as serving
from ashep.api import static
from ashep.api.login_links import link
from ashep.config import write_starter
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.settings import Labels
from ashep.journal.writer import Journal
from ashep.ports.tracker import ClaimRequest, Update
from tests.core import given
from tests.recorded import Recorded, life
from tests.service.worlds import World, repository

expect.set_options(timeout=30_000)  # milliseconds: other tests compute beside these
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OURS = "ashep-host-1"


@dataclass
class Site:
    """The server, and the browsers that look at it."""

    world: World
    portal: BlockingPortal
    address: str
    browser: Browser
    said: list[str] = field(default_factory=list[str])
    """What pages complained of."""
    made: Recorded | None = None
    """The life that it shows."""
    end: Callable[[], None] = lambda: None
    """Ends the server."""

    def begin(self, port: int = 0) -> None:
        """Begin to answer, as a server does that knows of no earlier one."""
        listener = serving.listen("127.0.0.1", port)
        server = make_server(self.world.app, serving.GRACE)
        served, live = self.portal.start_task_soon(server.serve, [listener]), self.world.live

        def end() -> None:
            live.end()
            server.should_exit = True
            served.result(20)

        self.end, self.address = end, f"http://127.0.0.1:{listener.getsockname()[1]}"

    def goes_on(self, *issues: str) -> None:
        """Let somebody write issues, and ashep see them, while people look."""
        assert self.made is not None
        self.made.journal = Journal.open(self.world.folder / "state", given.T0)
        for issue in issues:
            self.made.open(issue)
        for _ in range(3):
            self.made.tick()
        self.made.journal.close()

    def link(self) -> str:
        """A link for Pat."""
        return link(self.address, self.world.sessions.code("Pat"))

    def opened(self, context: BrowserContext) -> Page:
        """Come in by a link."""
        shown = context.new_page()
        shown.on("console", lambda one: self.said.append(one.text) if one.type in ("error", "warning") else None)
        shown.on("pageerror", lambda error: self.said.append(str(error)))
        shown.goto(self.link())
        shown.get_by_role("heading", level=1).wait_for()
        return shown

    def go(self, shown: Page, path: str) -> None:
        """Go to a place, as a link of the page does."""
        shown.evaluate(
            "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
        )

    def asks(self, issue: str, label: str = Labels().needs_approval, status: str = "blocked") -> None:
        """Let the tracker know an issue as one that ashep asks about, or has parked, by the label."""

        async def stands() -> None:
            tracker, stamp = self.world.tracker, Stamp("0f" * 8, 7, f"{issue}/review.1.1", 1, 1, 1)
            tracker.add("Work", id=issue)
            ours = tracker.as_actor(OURS)
            await ours.claim(ClaimRequest(issue, stamp))
            asks = (label,) if label else ()
            await ours.update(Update(issue, "in_progress", OURS, stamp, status, OURS, add_labels=asks))

        self.portal.call(stands)

    def tracked(self, issue: str) -> tuple[set[str], list[tuple[str, str]]]:
        """An issue's labels, and who said what."""
        seen = self.portal.call(self.world.tracker.issue, issue)
        assert seen is not None
        return set(seen.issue.labels), [(one.author, one.text.split("\n")[0]) for one in seen.text.comments]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: install the package chromium")
    if not static.built().files:
        pytest.skip(static.MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path: Path, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Site]:
    """`request.param`: how agents reply."""
    project = repository(tmp_path / "project")
    write_starter(project / ".agent-shepherd")
    made = life(project / ".agent-shepherd" / "state", issues=6, until="person", reply=getattr(request, "param", None))
    with start_blocking_portal() as portal:
        site = Site(
            World(project, page=static.built(), origins=("https://box.example.net",)), portal, "", browser, made=made
        )
        site.begin()
        try:
            yield site
        finally:
            for context in browser.contexts:  # a page that lives on asks a server that has ended, in another test
                context.unroute_all(behavior="ignoreErrors")
                context.close()
            site.end()
    assert site.said == []
