"""Other projects of this machine are one click away; where there are none, no link is."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import rmtree

import pytest
from playwright.sync_api import expect

from ashep.adapters.system.control_socket import UI
from ashep.config import write_starter
from ashep.store.sqlite_reader import open_read_only
from ashep.views.status import count_states
from tests.page.conftest import Site
from tests.page.test_axe import BESIDE, there
from tests.page.test_now import PHONE, high
from tests.recorded import life
from tests.service.test_entrance import SAID, server, until
from tests.service.worlds import repository

pytestmark = pytest.mark.slow


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder, and a folder for what is temporary, that no other test's projects are found by."""
    runtime = Path(tempfile.mkdtemp(prefix="ashep-r-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(tempfile, "tempdir", str(runtime))
    yield runtime
    rmtree(runtime, ignore_errors=True)


def test_other_projects_are_a_click_away(site: Site, runtime: Path, tmp_path: Path) -> None:
    assert runtime
    context, urls = site.browser.new_context(), list[str]()
    context.on("response", lambda answer: urls.append(answer.url))
    alone = site.opened(context)
    while not any(url.endswith("/projects") for url in urls):
        alone.wait_for_timeout(100)
    expect(alone.get_by_role("link", name="Projects")).to_have_count(0)
    other_project = repository(tmp_path / "another-project-with-quite-a-long-name-of-its-own" / "calc")
    write_starter(other_project / ".agent-shepherd")
    life(other_project / ".agent-shepherd" / "state", issues=9, until="person")
    with closing(open_read_only(other_project / ".agent-shepherd" / "state")) as database:
        waiting = count_states(database)["person"]
    with server(other_project, "serve") as process:
        until(other_project / ".agent-shepherd" / "state" / UI)
        tab = site.opened(site.browser.new_context(viewport={"width": 320, "height": 640}))
        tab.get_by_role("link", name=f"Projects, {waiting} waiting in others").click()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Projects")
        rows = tab.locator(".projects li")
        first, second = rows.filter(has_text=str(other_project)), rows.filter(has_text="This project")
        expect(first).to_contain_text(f"{waiting} waiting for you")
        expect(first.get_by_role("link")).to_have_attribute("href", SAID[process.pid])
        expect(second).to_contain_text("This project")
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_projects_fit_a_phone_and_say_what_can_be_typed(site: Site) -> None:
    """In the dark, too."""
    calc = {"name": "calc", "folder": "/w/calc", "url": "http://127.0.0.1:8090", "works": True, "running": 2}
    closed = {"name": "shut", "folder": "/w/my shut", "url": None, "works": False, "running": 0}
    hidden = {"name": "hidden", "folder": None, "url": None, "works": True, "running": 1}
    found = [calc | {"current": True, "waiting": 3}, closed | {"current": False, "waiting": 0}]
    found.append(hidden | {"current": False, "waiting": 1})
    context = site.browser.new_context(viewport=PHONE, color_scheme="dark")
    context.route("**/api/v1/projects", lambda route: route.fulfill(json={"projects": found}))
    tab = site.opened(context)
    there(site, tab, "/projects")
    rows = tab.locator(".projects li")
    expect(rows.nth(1)).to_contain_text("Nothing is waiting for you · the daemon is not running")
    expect(rows.nth(1)).to_contain_text("ashep -C '/w/my shut' ui")
    expect(rows.nth(2)).not_to_contain_text("ashep -C")
    expect(tab.locator("header .others")).to_be_visible()
    name = tab.locator("header strong")
    assert name.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert high(tab) == []
    assert tab.evaluate(BESIDE) <= 0
