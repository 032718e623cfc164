"""Each act by mouse, by keys and by touch: once, under the person's name; and what disturbs nobody who writes."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from ashep.core.policy.settings import Labels
from ashep.journal.lock import Lock
from tests.page.conftest import Site
from tests.page.test_page import PHONE
from tests.service.worlds import AT

pytestmark = pytest.mark.slow

LABELS = Labels()
WORDS = "the tests are missing"


class Case(NamedTuple):
    """An act, on an issue of its own."""

    issue: str
    state: str
    code: str
    label: str
    """What the tracker shows of it."""
    button: str
    said: str
    """What the page says then."""
    comment: str
    """The one that is written."""
    key: str = ""


CASES = {
    "approve": Case("t-1", "person", "question", LABELS.needs_approval, "Approve", "approved", WORDS, "a"),
    "reject": Case("t-2", "person", "question", LABELS.needs_approval, "Request changes", "changes requested", WORDS),
    "answer": Case("t-3", "person", "input", LABELS.needs_input, "Postgres", "answered", "@ashep Postgres"),
    "take": Case("t-4", "person", "question", LABELS.needs_approval, "Take over", "taken over", WORDS, "t"),
    "release": Case("t-5", "person", "paused", LABELS.paused, "Hand back", "handed back", WORDS, "t"),
    "retry": Case("t-6", "parked", "max_visits", LABELS.parked, "Retry", "retried", WORDS),
}
AFTER: Mapping[str, Callable[[set[str]], bool]] = {
    "approve": lambda labels: LABELS.approved in labels,
    "reject": lambda labels: LABELS.changes_requested in labels,
    "answer": lambda labels: LABELS.needs_input in labels,  # the daemon takes it off
    "take": lambda labels: LABELS.paused in labels,
    "release": lambda labels: LABELS.paused not in labels,
    "retry": lambda labels: LABELS.parked not in labels,
}
"""What stands in the tracker then."""


def drawn(site: Site, *changes: tuple[str, tuple[Any, ...]]) -> None:
    """Change the picture, as a daemon would draw it."""
    with closing(sqlite3.connect(site.world.folder / "state" / "ashep.db")) as database, database:
        for query, values in changes:
            database.execute(query, values)
        database.execute("UPDATE meta SET value = value + 1 WHERE key = 'seq'")


def stands(site: Site, case: Case) -> None:
    """Let an issue stand as its act wants it, in the tracker and in the picture."""
    site.asks(case.issue, case.label)
    with closing(sqlite3.connect(site.world.folder / "state" / "ashep.db")) as database:
        (body,) = database.execute("SELECT body FROM issues WHERE issue = 't-1'").fetchone()
    question: dict[str, Any] | None = json.loads(body)["question"] if case.code in ("question", "input") else None
    if question is not None and case.code == "input":
        question |= {"kind": "input", "about": "question", "options": ["Postgres", "SQLite"], "text": "Which?"}
    drawn(
        site,
        (
            "UPDATE issues SET state = ?, code = ?, since = '2026-01-01T00:00:00.000000Z',"
            " body = json_set(body, '$.question', json(?)) WHERE issue = ?",
            (case.state, case.code, json.dumps(question), case.issue),
        ),
    )


def card(shown: Page, issue: str) -> Locator:
    """Give the card of an issue; where there is a list next to it, after a click there."""
    shown.locator(".desk, .cards").wait_for()
    if shown.locator(".desk").count():
        shown.locator(".desk > ol button", has_text=issue).click()
    return shown.locator(".card").filter(has_text=re.compile(rf"^{issue}\b"))


def by_mouse(shown: Page, place: Locator, case: Case) -> None:
    if case.button != "Postgres":
        place.get_by_role("textbox").fill(WORDS)
    place.get_by_role("button", name=case.button).dblclick()


def by_touch(shown: Page, place: Locator, case: Case) -> None:
    if case.button != "Postgres":
        place.get_by_role("textbox").fill(WORDS)
    place.get_by_role("button", name=case.button).tap()


def by_keys(shown: Page, place: Locator, case: Case) -> None:
    if case.state == "person":
        item = shown.locator(".desk > ol button", has_text=case.issue)
        for _ in range(20):
            if item.evaluate("one => one === document.activeElement"):
                break
            shown.keyboard.press("j")
    shown.keyboard.press("x")
    expect(place.get_by_role("textbox")).to_be_focused()
    shown.keyboard.type("Postgres" if case.button == "Postgres" else WORDS)
    if case.key:
        shown.keyboard.press("Escape")
        shown.keyboard.press(case.key)
    elif case.state == "parked":
        shown.keyboard.press("Tab")
        shown.keyboard.press("Enter")
    else:
        shown.keyboard.press("Control+Enter")


def context_of(site: Site, press: object) -> BrowserContext:
    context = site.browser.new_context(viewport=PHONE, has_touch=True) if press is by_touch else None
    context = context or site.browser.new_context()
    context.clock.install()
    return context


@pytest.mark.parametrize("press", [by_mouse, by_keys, by_touch])
def test_every_act_is_written_once_as_the_person(site: Site, press: Callable[[Page, Locator, Case], None]) -> None:
    for case in CASES.values():
        stands(site, case)
    context = context_of(site, press)
    shown = site.opened(context)
    expect(shown.locator(".card" if press is by_touch else ".desk > ol > li")).to_have_count(5)
    for act, case in CASES.items():
        place = card(shown, case.issue) if case.state == "person" else shown.locator("[data-alone]")
        if case.state == "parked":
            site.go(shown, f"/issues/{case.issue}")
            expect(shown.get_by_role("button", name=case.button)).to_be_visible()
        press(shown, place, case)
        if act == "approve":
            expect(shown.get_by_role("button", name="Undo")).to_be_visible()
            assert site.tracked(case.issue)[1] == []  # it can still be taken back
            context.clock.fast_forward(5000)
        told = place if act in ("take", "retry") else shown.get_by_role("list", name="Just answered")
        expect(told, act).to_contain_text(f"{case.said} by you · counts when the daemon runs")
        context.clock.fast_forward(1000)  # what has moved up takes no click before
        labels, said = site.tracked(case.issue)
        assert said == [("Pat", case.comment)], act
        assert AFTER[act](labels), act


def test_what_was_answered_in_the_terminal_meanwhile_is_told_and_the_words_stay(site: Site) -> None:
    case = CASES["reject"]
    stands(site, case)
    shown = site.opened(site.browser.new_context())
    place = card(shown, case.issue)
    site.portal.call(site.world.tracker.relabel, case.issue, (LABELS.approved,), (LABELS.needs_approval,))
    by_mouse(shown, place, case)
    expect(place.get_by_role("alert")).to_contain_text("asks nothing")
    expect(place.get_by_role("textbox")).to_have_value(WORDS)
    assert site.tracked(case.issue)[1] == []
    drawn(site, ("UPDATE issues SET state = 'running', code = 'running' WHERE issue = ?", (case.issue,)))
    line = shown.get_by_role("list", name="Just answered").get_by_role("listitem")
    expect(line).to_contain_text(f"{case.issue} no longer waits for you")  # nobody knows of an answer
    expect(line).to_contain_text(WORDS)  # and so it stays until it is dismissed
    line.get_by_role("button", name="Dismiss").click()
    expect(line).to_have_count(0)
    site.said = [one for one in site.said if "409" not in one]


def test_an_answer_that_no_daemon_has_seen_is_shown_after_a_reload_and_replaced_knowingly(site: Site) -> None:
    case = CASES["reject"]
    stands(site, case)
    kim = site.world.tracker.as_actor("Kim")
    site.portal.call(kim.relabel, case.issue, (LABELS.approved,), ())
    shown = site.opened(site.browser.new_context())
    place = card(shown, case.issue)
    expect(place).to_contain_text(re.compile("approved by Kim at .*, counts when the daemon runs"))
    place.get_by_role("textbox").fill(WORDS)
    place.get_by_role("button", name="Replace the approval of").click()
    line = shown.get_by_role("list", name="Just answered")
    expect(line).to_contain_text("changes requested by you · counts when the daemon runs")
    assert LABELS.approved not in site.tracked(case.issue)[0]
    shown.reload()
    card(shown, case.issue)
    expect(place).to_contain_text(re.compile("changes requested by you at .*, counts when the daemon runs"))


def test_what_an_agent_asks_has_one_box_and_one_button(site: Site) -> None:
    case = CASES["approve"]
    stands(site, case)
    drawn(site, ("UPDATE issues SET body = json_set(body, '$.question.kind', 'input') WHERE issue = ?", (case.issue,)))
    shown = site.opened(site.browser.new_context())
    place = card(shown, case.issue)
    expect(place.get_by_role("button", name="Approve")).to_have_count(0)
    expect(place.get_by_role("button", name="Request changes")).to_have_count(0)
    place.get_by_role("textbox").fill(WORDS)
    place.get_by_role("button", name="Answer").click()
    expect(shown.get_by_role("list", name="Just answered")).to_contain_text(f"{case.issue} answered by you")
    assert site.tracked(case.issue)[1] == [("Pat", WORDS)]


def test_a_change_disturbs_nobody_who_writes(site: Site) -> None:
    stands(site, CASES["reject"])
    shown = site.opened(site.browser.new_context(viewport=PHONE))
    cards = shown.locator(".card")
    expect(cards).to_have_count(2)
    second = cards.nth(1)
    before = [one[:3] for one in cards.locator("h3").all_inner_texts()]
    second.get_by_role("textbox").press_sequentially("the te")
    urgent = CASES["take"].issue
    stands(site, CASES["take"])
    drawn(site, ("UPDATE issues SET body = json_set(body, '$.priority', 0) WHERE issue = ?", (urgent,)))
    expect(cards).to_have_count(3)
    second.get_by_role("textbox").press_sequentially("sts")
    expect(second.get_by_role("textbox")).to_have_value("the tests")
    expect(second.get_by_role("textbox")).to_be_focused()
    assert [one[:3] for one in cards.locator("h3").all_inner_texts()] == [*before, urgent]


def test_pause_resume_and_cancel_reach_the_daemon(site: Site) -> None:
    asked: list[dict[str, Any]] = []

    def ask(_: object, request: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(dict(request))
        return {"runs": [], "ended": ["the pause ended"], "issue": request.get("target")}

    site.world.acts.ask = ask
    drawn(site, ("UPDATE issues SET state = 'running', code = 'running' WHERE issue = 't-2'", ()))
    with Lock.acquire(site.world.folder / "state", AT):
        shown = site.opened(site.browser.new_context())
        running = shown.get_by_role("region", name="Running")
        running.get_by_role("button", name="Cancel t-2").click()
        assert asked == []  # it asks once more
        running.get_by_role("button", name="Stop and park").click()
        expect(running).to_contain_text("Cancelled and parked")
        running.get_by_role("button", name="Pause for an hour").click()
        expect(shown.get_by_role("status").filter(has_text="Paused for an hour")).to_be_visible()
        pause = {"by": "Kim", "why": "lunch", "since": "2026-01-01T00:00:00.000000Z", "until": None, "provider": None}
        drawn(site, ("UPDATE meta SET value = ? WHERE key = 'pauses'", (json.dumps([pause | {"drain": False}]),)))
        line = shown.locator(".line", has_text="paused by Kim")
        line.get_by_role("button", name="Resume").click()
        expect(shown.get_by_role("status").filter(has_text="Resumed: new runs start again.")).to_be_visible()
        assert "paused by" not in shown.locator(".sending").inner_text()
    assert [(one["do"], one["by"], one.get("target")) for one in asked] == [
        ("cancel", "Pat", "t-2"),
        ("pause", "Pat", None),
        ("resume", "Pat", None),
    ]


def test_tabs_of_an_issue_are_walked_by_keys(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    site.go(shown, "/issues/t-4")
    tabs = shown.locator(".tabs")
    expect(tabs.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    shown.keyboard.press("]")
    expect(tabs.get_by_role("link", name="Runs")).to_have_attribute("aria-current", "page")
