"""A run on the page: what it changed, what was said in its session, and what work has used."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from ashep.store.sqlite_reader import NAME
from tests.page.conftest import Site
from tests.service.test_page_work import Server, changes

pytestmark = pytest.mark.slow

RUN = "t-1/implement.1.1"
LIMITS = (
    ("day", "2026-01-01", "tokens", 900, 1000, "2099-01-02T00:00:00.000000Z"),
    ("provider", "acme on 2026-01-01", "cost", 0.2, 1.5, "2099-01-02T00:00:00.000000Z"),
    ("total", "", "cost", 5, 5, None),
    ("issue", "", "cost", None, 2, None),
)


@pytest.fixture
def agents() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def worked(site: Site, agents: str) -> Site:
    """A run with commits, a session that stands, and limits, one of which keeps an issue."""
    folder = site.world.folder
    (folder / "config.yaml").write_text(f"runners: {{opencode: {{managed: false, url: '{agents}'}}}}\n")
    base, head = changes(site.world.project)
    with sqlite3.connect(folder / "state" / NAME) as database:
        database.execute("DELETE FROM facts WHERE run = ? AND type = 'TreeSeen'", [RUN])
        for seq, kind, at in ((-2, "TreePrepared", base), (-1, "TreeSealed", head)):
            body = json.dumps({"head": at, "path": str(site.world.project)})
            row = (seq, "2026-01-01T00:00:00.000000Z", "fact", kind, "t-1", RUN, body)
            database.execute(
                "INSERT INTO facts (seq, at, kind, type, issue, run, body) VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
        database.execute("UPDATE runs SET session = 'ses_1' WHERE run = ?", [RUN])
        keys = ("scope", "name", "unit", "used", "limit", "until")
        limits = [dict(zip(keys, one, strict=True)) | {"warn_at": 0.8 * (one[4] or 0)} for one in LIMITS]
        database.execute("UPDATE meta SET value = ? WHERE key = 'limits'", [json.dumps(limits)])
        database.execute("UPDATE issues SET state = 'time', code = 'budget_total' WHERE issue = 't-2'")
        database.execute("UPDATE runs SET provider = '=acme' WHERE run = ?", [RUN])
    return site


def test_a_run_shows_what_it_changed_and_what_was_said(worked: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(worked.world.folder / "state" / NAME) as database:  # it goes on
        goes = "UPDATE runs SET ended_at = NULL, body = json_set(body, '$.ended_at', NULL, '$.state', 'running')"
        database.execute(f"{goes} WHERE run = ?", [RUN])
    worked.world.live.ask = lambda *_: {"signs": {RUN: {"quiet": 3.0, "tool": "bash", "tool_for": 65.0}}}
    shown = worked.opened(worked.browser.new_context())
    worked.go(shown, f"/runs/{RUN}")
    expect(shown.locator("[data-signs]")).to_contain_text("last activity 3 s agobash for 1 min100 tokens so far")
    files = shown.locator(".files > li")
    expect(files).to_have_count(7)
    expect(files.filter(has_text="image.bin")).to_contain_text("binary")
    moved = files.filter(has_text="old.txt → new.txt")
    moved.locator("summary").click()
    expect(moved.locator("pre .add")).to_contain_text("+[31mred[0m back")
    long = files.filter(has_text="many.txt")
    long.locator("summary").click()
    long.get_by_role("button", name="Show more: 3,001 lines left").click()
    expect(long.locator("pre span")).to_have_count(4000)
    expect(shown.get_by_role("link", name="Open in OpenCode")).to_have_attribute("rel", "noopener")
    shown.get_by_text("Transcript").click()
    steps = shown.get_by_role("group", name="Transcript")
    expect(steps).to_contain_text("done")
    expect(steps.locator("details[open]")).to_contain_text("it ended with 1")
    expect(steps.locator("details:not([open])")).to_contain_text("odd")
    shown.get_by_role("searchbox", name="Filter").fill("no such words")
    expect(steps).to_have_text("No matches.")
    shown.get_by_role("searchbox", name="Filter").fill("")
    monkeypatch.setattr(Server, "words", "gone on")
    expect(steps).to_contain_text("gone on")
    assert not (worked.world.project / "ran").exists()


def test_usage_is_drawn_told_and_saved(worked: Site) -> None:
    shown = worked.opened(worked.browser.new_context(accept_downloads=True))
    worked.go(shown, "/usage")
    expect(shown.get_by_role("img", name="Bars by day and provider")).to_be_visible()
    budgets = shown.locator(".budgets li")
    expect(budgets).to_have_count(len(LIMITS))
    expect(budgets.filter(has_text="Tokens today")).to_contain_text("900 of 1,000 ! nearly used up")
    expect(budgets.filter(has_text="in total")).to_contain_text("■ used up · holds up t-2")
    with shown.expect_download() as saved:
        shown.get_by_role("button", name="Save as CSV").click()
    assert saved.value.suggested_filename == "usage-by-provider.csv"
    lines = saved.value.path().read_text().splitlines()
    assert lines[0] == '"provider","runs","tokens","cost"'
    assert any(line.startswith('"\'=acme",') for line in lines[1:])
