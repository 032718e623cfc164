"""How many clicks the three jobs of a person take, from the first page, with what is read on the way: by keys, too."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page import test_review, test_run
from tests.page.conftest import Site
from tests.page.test_acts import CASES, stands

pytestmark = pytest.mark.slow

branch, work = test_review.branch, test_review.work
agents, run_site = test_run.agents, test_run.worked
MOST, MOST_STEPS = 3, 90
FOCUSED = "one => one.closest('a, button, summary') === document.activeElement"


class Hand:
    """A hand that counts its clicks, or the Enter keys that it presses in their place."""

    def __init__(self, tab: Page, *, keys: bool) -> None:
        self.tab, self.keys, self.clicks = tab, keys, 0

    def click(self, place: Locator) -> None:
        if self.keys:
            place.wait_for()
            for _ in range(MOST_STEPS):
                if place.evaluate(FOCUSED):
                    break
                self.tab.keyboard.press("Tab")
            assert place.evaluate(FOCUSED), f"Tab does not reach {place}"
            self.tab.keyboard.press("Enter")
        else:
            place.click()
        self.clicks += 1
        assert self.clicks <= MOST


@pytest.fixture(params=["pointer", "keys"])
def keys(request: pytest.FixtureRequest) -> bool:
    return request.param == "keys"


@pytest.mark.usefixtures("work")
def test_work_is_approved_with_its_evidence_read(site: Site, keys: bool) -> None:
    tab = site.opened(site.browser.new_context())
    hand = Hand(tab, keys=keys)
    card = tab.locator("main")
    hand.click(card.get_by_text(test_review.FOLD).first)
    test_review.shows_the_work(card)
    expect(card).to_contain_text("No test ran")
    hand.click(card.get_by_role("button", name="Approve").first)
    expect(tab.locator("main")).to_contain_text("approved by you")


def test_why_an_issue_is_parked_and_it_goes_on(site: Site, keys: bool) -> None:
    stands(site, CASES["retry"])
    tab = site.opened(site.browser.new_context())
    hand = Hand(tab, keys=keys)
    hand.click(tab.get_by_role("list", name="Issues by state").get_by_role("link", name="parked"))
    hand.click(tab.get_by_role("link", name="t-6", exact=True))
    expect(tab.locator(".pinned")).to_contain_text("parked")
    hand.click(tab.get_by_role("button", name="Retry"))
    expect(tab.locator("main")).to_contain_text("retried")


def test_what_a_run_cost_was_asked_changed_and_said(run_site: Site, keys: bool) -> None:
    tab = run_site.opened(run_site.browser.new_context())
    for name in ("Prompt 1", "Transcript", "many.txt"):
        hand = Hand(tab, keys=keys)
        hand.click(tab.locator("header nav").get_by_role("link", name="Runs"))
        hand.click(tab.locator(f"a[href='/runs/{test_run.RUN}']").first)
        expect(tab.locator(".pinned")).to_contain_text("0.10")
        hand.click(tab.locator("summary", has_text=name).first)
        expect(
            tab.locator("details[open]", has_text=name).locator("pre, p").first
        ).to_be_visible()  # a made-up life keeps no prompts
