"""What a person reads before they answer: what was asked, what was done, and the sum of what lands."""

import json

import pytest
from playwright.sync_api import Locator, expect

from ashep.core.policy.settings import Labels
from ashep.ports.tracker import IssueText
from tests.page.conftest import Site
from tests.page.test_acts import drawn
from tests.service.worlds import git

pytestmark = pytest.mark.slow

FOLD = "What was asked, what was done, what it changes"


def commit_work(site: Site, words: str) -> None:
    """Commit a line on the branch of t-1, as a run of it would: two more facts are about it."""
    top = site.world.folder.parent
    base = git(top, "rev-parse", "HEAD")
    with (top / "more.txt").open("a") as file:
        file.write(f"{words}\n")
    git(top, "commit", "-qam", words)
    head = git(top, "rev-parse", "HEAD")
    row = (
        "INSERT INTO facts (seq, at, kind, type, issue, run, body) SELECT meta.value + ?, at, kind, type, issue, run,"
        " json_set(body, '$.moment', ?, '$.tree.head', ?, '$.commits', json(?)) FROM facts, meta"
        " WHERE issue = 't-1' AND type = 'TreeSeen' AND key = 'seq' ORDER BY seq LIMIT 1"
    )
    drawn(
        site, (row, (1, "before", base, "[]")), (row, (2, "after", head, json.dumps([head]))),
        ("UPDATE meta SET value = value + 1 WHERE key = 'seq'", ()),
    )  # fmt: skip


@pytest.fixture
def branch(site: Site) -> None:
    git(site.world.folder.parent, "checkout", "-q", "ashep/t-1")
    drawn(site, ("UPDATE facts SET body = json_set(body, '$.moment', 'look') WHERE issue = 't-1'", ()))
    commit_work(site, "Two numbers.")


@pytest.fixture
def work(site: Site, branch: None) -> None:
    text = IssueText("Title of t-1", "Two numbers are added.", acceptance="1 + 1 is 2.")
    site.portal.call(lambda: site.world.tracker.add("Title of t-1", id="t-1", text=text))


def shows_the_work(place: Locator) -> None:
    """Expect description, acceptance, an agent's summary and a changed line."""
    for words in ("Two numbers are added.", "1 + 1 is 2.", "done"):
        expect(place).to_contain_text(words)
    expect(place.locator("pre.diff")).to_contain_text("+Two numbers.")


def test_one_click_on_a_card_shows_what_is_to_be_approved(site: Site, work: None) -> None:
    shown = site.opened(site.browser.new_context())
    card = shown.locator(".card", has=shown.get_by_role("link", name="t-1", exact=True))
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    expect(card.locator("pre.diff")).to_have_count(0)
    card.get_by_text(FOLD).click()
    shows_the_work(card)
    commit_work(site, "Three numbers.")  # what is open is of now
    expect(card.locator("pre.diff")).to_contain_text("+Three numbers.")
    assert site.said == []


def test_the_page_of_an_issue_begins_with_its_work(site: Site, work: None) -> None:
    shown = site.opened(site.browser.new_context())
    site.go(shown, "/issues/t-1")
    shows_the_work(shown.locator("main"))
    shown.get_by_role("link", name="History").click()
    history = shown.locator(".story")
    expect(history).to_contain_text("goes to critic")
    expect(history).not_to_contain_text("lacks the capability")
    shown.get_by_label("Detail").select_option("everything")
    expect(history).to_contain_text("lacks the capability")
    assert site.said == []


def test_marks_that_cannot_be_read_are_none(site: Site, branch: None) -> None:
    """Anybody who had this port before could have left something under their name."""
    context = site.browser.new_context()
    context.add_init_script("localStorage.setItem('ashep-seen', '{\"t-1\": 5')")
    shown = site.opened(context)
    site.go(shown, "/issues/t-1")
    expect(shown.locator(".review")).to_contain_text("0 of 1 seen")
    shown.get_by_label("seen").check()
    expect(shown.locator(".review")).to_contain_text("1 of 1 seen")


def test_every_file_is_seen_before_work_is_approved_where_the_policy_asks_for_it(site: Site, branch: None) -> None:
    """What is written to a line goes into the request for changes; a new commit is to be seen again."""
    policies = site.world.folder / "policies.yaml"
    policies.write_text(policies.read_text().replace("ask: Merge this?", "seen: all"))
    site.asks("t-1")
    shown = site.opened(site.browser.new_context())
    site.go(shown, "/issues/t-1")
    answer, files = shown.get_by_role("region", name="What you can do"), shown.locator(".review")
    files.locator("[data-line='2']").click()
    assert files.get_by_label("Line").input_value() == "2"
    shown.keyboard.type("why two?")
    files.get_by_role("button", name="Add").click()
    expect(answer.get_by_role("textbox")).to_have_value("more.txt:2: why two?")
    expect(files).to_contain_text("0 of 1 seen")
    answer.get_by_role("button", name="Approve").click()
    expect(answer).to_contain_text("every changed file is seen first; not marked as seen: more.txt")
    files.locator("summary", has_text="more.txt").focus()
    shown.keyboard.press("v")
    expect(files).to_contain_text("1 of 1 seen")
    expect(files.locator("pre.diff")).to_have_count(0)
    commit_work(site, "Three numbers.")
    expect(files).to_contain_text("0 of 1 seen")
    files.get_by_label("seen").check()
    answer.get_by_role("button", name="Approve").click()
    expect(answer).to_contain_text("approved by you · counts when the daemon runs")
    labels, comments = site.tracked("t-1")
    assert Labels().approved in labels
    assert len(comments) == 1
    assert all("409" in line for line in site.said)  # the browser's own
    site.said.clear()
