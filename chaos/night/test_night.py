"""A few nights of the ordinary test command, smaller than those of `python -m chaos.night`."""

from collections import Counter
from typing import Any

import pytest

from chaos.night.lived import Lived, lived
from chaos.night.recount import Recount, compare

SEEDS = (4, 6)
ISSUES = 30

pytestmark = [pytest.mark.slow, pytest.mark.may_block, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nights() -> list[Lived]:
    return [lived(seed, ISSUES) for seed in SEEDS]


@pytest.mark.promise("L8")
def test_by_morning_everything_is_closed_or_waits_or_is_parked_with_a_reason_and_the_report_says_so(
    nights: list[Lived],
) -> None:
    for night in nights:
        assert night.wrong == [], night.summary
        assert sum(night.stands.values()) >= ISSUES
        assert night.told.takeovers == 2, night.summary
        assert night.told.server_deaths, night.summary
        assert night.lines > ISSUES, "each issue has its line"


def test_the_nights_see_everything(nights: list[Lived]) -> None:
    """Nights in which nothing goes wrong would be no proof."""
    happened = sum((Counter(night.told.happened) for night in nights), Counter[str]())
    fates = sum((Counter(night.fates) for night in nights), Counter[str]())
    assert {"answered", "pause", "resume", "reloaded", "released"} <= set(happened)
    assert {"tracker away", "server away", "server leaked", "pager away", "provider limited"} <= set(happened)
    assert {"works", "fails", "hangs", "dies", "limited", "refused", "babbles", "asks", "permission"} <= set(fates)
    assert sum(night.told.crashes for night in nights) >= 1


def test_the_same_seed_is_the_same_night() -> None:
    assert lived(5, 6).digest == lived(5, 6).digest


# --- a test that cannot fail is a defect ----------------------------------------------------------------------------


def row(seq: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"seq": seq, "at": f"2026-01-01T20:00:{seq:02}.000000Z", "type": kind} | fields


class Seen:
    def __init__(self, status: str, *labels: str) -> None:
        self.status, self.labels, self.assignee = status, labels, "ashep-sim"


ROWS = [
    row(1, "DaemonStarted", pid=1, version="0"),
    row(2, "RunPlanned", issue="t-1", run="t-1/x.1.1", model={"provider": "acme", "model": "m"}),
    row(3, "TurnSeen", issue="t-1", run="t-1/x.1.1", n=1, tokens=5, cost=0.5),
    row(4, "RunEnded", issue="t-1", run="t-1/x.1.1"),
    row(5, "IssueFinished", issue="t-1", why="review said yes"),
    row(6, "IssueClosed", issue="t-1", by="shepherd", why="-"),
    row(7, "PersonAsked", issue="t-2", question="Ship  it?"),
    row(8, "IssueParked", issue="t-3", code="attempts", why="3 failed"),
    row(9, "BudgetReached", why="used up: the day"),
    row(10, "NoticeFailed", target="pager", key="k", error="no"),
    row(11, "DaemonStarted", pid=2, version="0"),
]
ISSUES_SEEN = {
    "t-1": Seen("closed"), "t-2": Seen("blocked", "needs:human_approval"), "t-3": Seen("blocked", "ashep:parked"),
}  # fmt: skip


def line(text: str, *seqs: int, issue: str | None = None, **more: Any) -> dict[str, Any]:
    return {"text": text, "issue": issue, "seqs": [*seqs]} | more


def report() -> dict[str, Any]:
    return {
        "closed": [line("t-1 (x): closed: review said yes", 5, 6, issue="t-1")],
        "waiting": [line("t-2 (x): Ship it?", 7, issue="t-2")],
        "parked": [line("t-3 (x): attempts: 3 failed", 8, issue="t-3")],
        "going_on": [],
        "cost": [line("acme: 1 run", 3, provider="acme", runs=1, tokens=5, cost=0.5)],
        "limits": [line("used up: the day (until 00:00)", 9)],
        "servers": [
            line("ashep 0 began as process 1", 1),
            line("ashep 0 began; the one before ended without a word", 11),
        ],
        "findings": [],
        "notices": [line("pager was not told, once: no", 10)],
    }


def recounted(sections: dict[str, Any]) -> list[str]:
    return compare({"sections": sections}, Recount(ROWS, ISSUES_SEEN, "2026"))


def test_a_true_report_is_true() -> None:
    assert recounted(report()) == []


@pytest.mark.parametrize(("section", "changed"), [
    ("closed", []),
    ("closed", [line("t-1 (x): closed: because", 5, 6, issue="t-1")]),
    ("waiting", [line("t-2 (x): Ship it?", 7, issue="t-2")] * 2),
    ("waiting", [line("t-2 (x): Fine?", 7, issue="t-2")]),
    ("parked", [line("t-3 (x): attempts: 3 failed", 8, issue="t-3"), line("t-2: attempts", 8, issue="t-2")]),
    ("parked", [line("t-3 (x): budget: 3 failed", 8, issue="t-3")]),
    ("going_on", [line("t-2 runs", 7, issue="t-2")]),
    ("cost", [line("acme: 1 run", 3, provider="acme", runs=1, tokens=6, cost=0.5)]),
    ("cost", [line("acme: 1 run", 3, provider="acme", runs=2, tokens=5, cost=0.5)]),
    ("cost", []),
    ("limits", []),
    ("limits", [line("used up: the week", 9)]),
    ("servers", [line("ashep 0 began as process 1", 1), line("ashep 0 began as process 2", 11)]),
    ("servers", [line("ashep 0 began as process 1", 1)]),
    ("findings", [line("no_end: t-1", 7)]),
    ("notices", []),
    ("notices", [line("pager was not told", 10), line("pager was not told", 10)]),
    ("notices", [line("pager was not told", 10), line("surprise", 99)]),
    ("notices", [line("pager was not told", 10), line("surprise")]),
])  # fmt: skip
def test_a_report_that_is_not_true_is_found(section: str, changed: list[Any]) -> None:
    assert recounted(report() | {section: changed})
