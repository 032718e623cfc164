"""Now shows what was answered, what runs and what is in the way, in the order in which people look."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from ashep.core.policy.settings import Labels
from ashep.journal.lock import Lock
from tests.page.conftest import Site
from tests.page.test_acts import CASES, PHONE, WORDS, card, drawn, stands
from tests.service.worlds import AT

pytestmark = pytest.mark.slow

LABELS = Labels()
LANDED = {"state": "landed", "onto": "main", "commit": "e080c0358a11", "due": None}
NARROW = ViewportSize(width=900, height=700)
BEHIND = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def set_state(site: Site, issue: str, state: str, code: str, *, phase: str | None = None, landing: Any = None) -> None:
    """Let an issue stand so, as a daemon would draw it."""
    query = (
        "UPDATE issues SET state = ?, code = ?, phase = ?, run = NULL,"
        " body = json_set(body, '$.landing', json(?), '$.question', json('null')) WHERE issue = ?"
    )
    drawn(site, (query, (state, code, phase, json.dumps(landing), issue)))


def noted(site: Site, issue: str, kind: str, body: dict[str, str]) -> None:
    """Let the journal have one more record about an issue."""
    query = (
        "INSERT INTO facts (seq, at, kind, type, issue, body) SELECT value + 1, '2026-01-02T21:06:00.000000Z', 'fact',"
        " ?, ?, ? FROM meta WHERE key = 'seq'"
    )
    drawn(site, (query, (kind, issue, json.dumps(body))))


def answered(site: Site, issue: str, answer: str, person: str) -> None:
    """Let the journal know that somebody has answered."""
    noted(site, issue, "PersonAnswered", {"answer": answer, "actor": person, "why": f"{person} answered {answer}"})


def high(tab: Page) -> list[str]:
    """Name what can be clicked and is less than 44 px high or wide."""
    elements: list[str] = tab.evaluate("""() => [...document.querySelectorAll('a, button, summary, select')]
        .filter(one => one.checkVisibility() && one.closest('header, main, .lines') && !one.closest('.skip'))
        .map(one => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
        .filter(([, { height, width }]) => Math.round(height) < 44 || Math.round(width) < 44).map(([one]) => one)""")
    return elements


def test_an_answer_becomes_a_line_that_tells_what_came_of_it_and_goes(site: Site) -> None:
    for case in (CASES["approve"], CASES["reject"], CASES["take"]):
        stands(site, case)
    context = site.browser.new_context(viewport=NARROW)
    context.clock.install()
    tab = site.opened(context)
    cards, lines = tab.locator(".card"), tab.get_by_role("list", name="Just answered").get_by_role("listitem")
    first = card(tab, "t-1")
    first.get_by_role("textbox").fill("well done")
    first.get_by_role("button", name="Approve").click()
    expect(cards).to_have_count(2)
    expect(tab.get_by_role("heading", name="Waiting for you")).to_have_text("Waiting for you 2")
    expect(lines).to_have_text([re.compile(r"✓ t-1 approved by you Undo \(\d s\)")])
    expect(lines.first).to_be_focused()
    lines.get_by_role("button", name="Undo").click()
    expect(lines).to_have_count(0)
    expect(first.get_by_role("textbox")).to_have_value("well done")
    expect(first).to_be_focused()
    context.clock.fast_forward(1000)
    tab.keyboard.press("a")
    context.clock.fast_forward(5000)
    expect(lines).to_have_text(["✓ t-1 approved by you · counts when the daemon runs Edit answer"])
    assert site.tracked("t-1")[1] == [("Pat", "well done")]

    with Lock.acquire(site.world.folder / "state", AT):
        answered(site, "t-1", "approved", "Pat")
        set_state(site, "t-1", "running", "landing", phase="human_review", landing={**LANDED, "state": "integrating"})
        expect(lines).to_have_text([re.compile("✓ t-1 approved by you at .* → landing on main …")])
        context.clock.fast_forward(60_000)  # it stays as long as its end is not known
        expect(lines).to_have_count(1)
    set_state(site, "t-1", "closed", "shepherd", landing=LANDED)
    expect(lines).to_have_text([re.compile("✓ t-1 approved by you at .* → merged into main as e080c03")])
    expect(cards).to_have_count(2)

    neighbour = card(tab, "t-2")
    neighbour.get_by_role("textbox").fill(WORDS)
    answered(site, "t-2", "changes_requested", "Kim")
    set_state(site, "t-2", "time", "slot", phase="implement")
    pattern = "✓ t-2 changes requested by Kim at .* → back to implement. Your text was not sent: “{}” Dismiss"
    second = lines.filter(has_text="t-2")
    expect(second).to_have_text(re.compile(pattern.format(WORDS)))
    expect(cards).to_have_count(1)
    noted(site, "t-2", "CommentPosted", {"name": "progress"})
    set_state(site, "t-2", "running", "slot", phase="review")
    expect(tab.get_by_role("region", name="Interrupted")).to_contain_text("t-2")
    expect(second).to_contain_text("back to implement")  # and from there on
    context.clock.fast_forward(30_000)
    expect(lines).to_have_text([re.compile("t-2")])
    lines.get_by_role("button", name="Dismiss").click()
    expect(lines).to_have_count(0)


def test_what_is_true_of_everything_stays_in_sight(site: Site) -> None:
    for case in CASES.values():
        stands(site, case)
    site.world.acts.ask = lambda *_: {"runs": [], "ended": ["everything is paused by Kim until 2026-01-01 21:00:00Z"]}
    pause = {"by": "Kim", "why": "lunch", "since": "2026-01-01T00:00:00.000000Z", "until": None, "provider": None}
    with Lock.acquire(site.world.folder / "state", AT):
        for viewport in (NARROW, PHONE):
            tab = site.opened(site.browser.new_context(viewport=viewport))
            button = tab.get_by_role("button", name="Pause for an hour")
            button.scroll_into_view_if_needed()
            button.click()
            drawn(site, ("INSERT OR REPLACE INTO meta VALUES ('pauses', ?)", (json.dumps([pause | {"drain": False}]),)))
            line = tab.locator(".lines .line", has_text="paused by Kim")
            expect(line).to_be_in_viewport(ratio=1)
            assert tab.evaluate("scrollY") > 0
            line.get_by_role("button", name="Resume").click()
            drawn(site, ("DELETE FROM meta WHERE key = 'pauses'", ()))
            expect(tab.get_by_role("status").filter(has_text="Resumed: new runs start again.")).to_be_in_viewport()
            expect(tab.get_by_text("paused by")).to_have_count(0)


def test_nothing_runs_without_a_daemon_and_what_lands_is_no_run(site: Site) -> None:
    set_state(site, "t-2", "running", "landing", phase="arbiter", landing={**LANDED, "state": "integrating"})
    set_state(site, "t-3", "running", "verify", phase="implement")
    drawn(site, ("UPDATE issues SET state = 'closed' WHERE issue IN ('t-4', 't-5', 't-6')", ()))
    tab = site.opened(site.browser.new_context())
    main, counts = tab.locator("main"), tab.get_by_role("list", name="Issues by state")
    cut = tab.get_by_role("region", name="Interrupted")
    expect(cut.get_by_role("columnheader")).to_have_text(["Issue", "Step", "Since"])
    expect(cut).to_contain_text("Landing on main")
    expect(counts).to_have_text(re.compile("2 interrupted"))
    expect(main).not_to_contain_text(re.compile(r"[Rr]unning|\b0\b [a-z]"))
    site.go(tab, "/issues/t-3")
    expect(tab.locator(".pinned")).to_contain_text("interrupted")
    site.go(tab, "/")
    with Lock.acquire(site.world.folder / "state", AT):
        drawn(site)
        expect(tab.get_by_role("region", name="Running")).to_contain_text("Verifying the work")
        expect(counts).to_contain_text("1 landing")
        expect(counts).to_contain_text("1 verifying")
        expect(counts).not_to_contain_text("running")


def test_the_policy_and_the_past_are_asked_for_and_what_waits_comes_first(site: Site) -> None:
    urls = list[str]()
    context = site.browser.new_context()
    context.on("request", lambda item: urls.append(item.url))
    tab = site.opened(context)
    card(tab, "t-1")
    heads = tab.locator("main h2").all_inner_texts()
    assert [item.split(" ")[0] for item in heads] == ["Waiting", "Interrupted"]
    assert not [item for item in urls if "Flow" in item or "/then" in item or "/policies/" in item]
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('.desk, .cards') !== null")
    tab.locator(".card").get_by_role("link", name="human_review").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Policy standard")
    expect(tab.get_by_role("application", name="Policy standard")).to_be_visible()
    expect(tab.get_by_role("table")).to_be_visible()


def test_a_phone_shows_the_first_answer_at_once_and_all_can_be_hit(site: Site) -> None:
    for case in CASES.values():
        stands(site, case)
    set_state(site, "t-6", "running", "landing", landing=LANDED)
    tab = site.opened(site.browser.new_context(viewport=PHONE, has_touch=True))
    approve = tab.get_by_role("button", name="Approve").first
    approve.click(trial=True)
    nav = tab.get_by_role("navigation", name="Pages").bounding_box()
    box = approve.bounding_box()
    assert nav is not None
    assert box is not None
    assert box["y"] + box["height"] <= nav["y"]
    assert high(tab) == []
    assert tab.evaluate(BEHIND) <= 0
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('.cards') !== null")


def test_the_card_follows_the_list(site: Site) -> None:
    for case in (CASES["approve"], CASES["reject"], CASES["take"]):
        stands(site, case)
    tab = site.opened(site.browser.new_context())
    tab.locator(".desk").wait_for()
    items, head = tab.locator(".desk > ol button"), tab.locator(".desk .card h3")
    expect(items).to_have_count(3)
    names = [item.split()[1] for item in items.all_inner_texts()]
    for name, key in zip((names[0], names[1], names[2], names[1]), "jjjk", strict=True):
        tab.keyboard.press(key)
        expect(head).to_contain_text(name)
        expect(tab.locator(".desk [aria-current]")).to_contain_text(name)
    tab.keyboard.press("a")  # what is seen is approved
    expect(tab.get_by_role("list", name="Just answered")).to_contain_text(f"{names[1]} approved by you")
    expect(head).to_contain_text(names[2])  # and the next is there
    for key, name in (("x", names[2]), ("Escape", names[2]), ("k", names[0])):
        tab.keyboard.press(key)
        expect(head).to_contain_text(name)
    drawn(site, ("UPDATE issues SET body = json_set(body, '$.priority', 0) WHERE issue = ?", (names[2],)))
    tab.get_by_role("button", name="Undo").click()
    expect(head).to_contain_text(names[1])
    tab.keyboard.press("k")
    expect(items.first).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator(".desk .card h3 a")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_be_visible()
    expect(tab).to_have_url(re.compile(r"/issues/t-\d$"))


def test_what_comes_in_before_it_does_not_take_the_card_away(site: Site) -> None:
    stands(site, CASES["reject"])
    tab = site.opened(site.browser.new_context())
    head = tab.locator(".desk .card h3")
    tab.locator(".desk > ol button").first.wait_for()
    first = head.inner_text()
    stands(site, CASES["take"])
    drawn(site, ("UPDATE issues SET body = json_set(body, '$.priority', 0) WHERE issue = 't-4'", ()))
    expect(tab.locator(".desk > ol button").first).to_contain_text("t-4")
    expect(head).to_have_text(first)
