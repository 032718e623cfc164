"""What uses up an attempt, and what does not: the table of docs/codes.md, row by row, whatever kind of runner it is."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ashep.core.facts import commands, runs, tracker
from ashep.core.facts.runs import Life, Refusal
from ashep.core.facts.vocabulary import Fact, ReadRefused
from ashep.core.policy.policies import Phase
from ashep.daemon.error_facts import failed
from ashep.errors import RunnerError, RunnerRefused, RunnerUnavailable, ServerNotStarted, SessionUnavailable
from tests.core.given import T0, policy_of, up
from tests.core.playbook import Playbook

ROOT = Path(__file__).resolve().parents[2]
POLICY = policy_of(Phase(name="review", timeout="10m", stall={"after": "5m"}))  # type: ignore[arg-type]
ABORTED = "MessageAbortedError: aborted"
Story = Callable[[Playbook], None]


def go(book: Playbook, *facts: Fact | list[Fact]) -> None:
    """Hand facts to the core, whatever follows."""
    for fact in facts:
        book.left = []
        book >> fact
    book.left = []


def later(book: Playbook, seconds: float) -> None:
    book.left = []
    book >> book.later(seconds)
    book.left = []


def read(state: str, **fields: Any) -> Story:
    """A read of the turn."""

    def story(book: Playbook) -> None:
        go(book, book.turn(state, **fields))

    return story


def report(result: str) -> Story:

    def story(book: Playbook) -> None:
        go(book, book.reports(result))

    return story


def silent(book: Playbook) -> None:
    """A turn that shows no sign of life for as long as it may."""
    go(book, book.turn("running"))
    later(book, 300)
    go(book, book.turn("running", life=Life(quiet=book.now - T0)))


def late(book: Playbook) -> None:
    go(book, book.turn("running"))
    later(book, 600)
    go(book, book.turn("running", life=Life(quiet=timedelta())))


def never_reports(book: Playbook) -> None:
    go(book, book.turn("finished", block=None))
    book.answered()
    go(book, book.turn("finished", block=None))


def doubt(book: Playbook) -> None:
    """It seems not to begin, and is stopped."""
    go(book, book.turn("stored"))
    later(book, 30)
    go(book, book.turn("stored"))


def stopped_by_doubt(book: Playbook) -> None:
    doubt(book)
    go(book, book.failed())
    go(book, book.turn("finished", error=ABORTED))


def never_begun(book: Playbook) -> None:
    doubt(book)
    go(book, book.next())
    go(book, book.turn("stored"))


def stopped_by_person(book: Playbook) -> None:
    go(book, book.turn("running"))
    go(book, book.turn("finished", error=ABORTED))


def stopped_with_server(book: Playbook) -> None:
    go(book, book.turn("running"))
    book.made.instance = 2
    go(book, book.turn("finished", error=ABORTED))


def died(book: Playbook) -> None:
    go(book, book.turn("running"), up("server-2"))
    book.made.instance = 2
    go(book, book.turn("incomplete"))


def unreadable(book: Playbook) -> None:
    """The server of the session answers no read until the run's time is over."""
    go(book, book.turn("running"))
    later(book, 600)
    go(book, ReadRefused("t-1", book.run().id, "turn", "no answer", book.world.seq, away=True))


def send_fails(error: RunnerError, times: int = 1) -> Story:
    """The next prompt cannot be sent."""

    def story(book: Playbook) -> None:
        go(book, book.turn("finished", block=None))
        go(book, book.next())
        for _ in range(times):
            command = book.made.jobs.pop(0)
            assert isinstance(command, commands.SendPrompt)
            go(book, failed(command, error), up())
            later(book, 61)

    return story


def lost_lease(book: Playbook) -> None:
    go(book, tracker.LeaseLost("t-1", "not ours"))


USES_UP: dict[str, Story] = {
    "reports `failed`": report("failed"),
    "reports `partial`": report("partial"),
    "reports no valid outcome, also when it was asked again": never_reports,
    "ends with an error that is no provider's refusal": read("finished", error="UnknownError: boom"),
    "is over its `timeout`": late,
    "shows no sign of life for `stall.after`": silent,
    "is refused by what the agent server answers": send_fails(RunnerRefused("400 no such agent")),
}
NOT: dict[str, Story] = {
    "is refused by its provider": read("finished", error="APIError: no", refused=Refusal("limited", "slow down")),
    "is stopped by ashep, to which it seemed not to begin": stopped_by_doubt,
    "never begins": never_begun,
    "has a process that does not start": read("missing", not_started="npx ended with 1"),
    "is stopped with its server": stopped_with_server,
    "dies with its server": died,
    "cannot be read, for its own server does not answer": unreadable,
    "cannot be sent, for the agent server does not answer": send_fails(RunnerUnavailable("no answer")),
    "cannot be sent, for the agent server does not start": send_fails(ServerNotStarted("it ended")),
    "cannot be sent, for its own server does not answer": send_fails(SessionUnavailable("no answer"), times=10),
    "is stopped by a person": stopped_by_person,
    "loses its lease": lost_lease,
}


@pytest.mark.promise("E5", "T9")
@pytest.mark.parametrize(("story", "is_used_up"), [*((one, True) for one in USES_UP), *((one, False) for one in NOT)])
def test_an_attempt_is_used_up_by_an_agent_alone(story: str, is_used_up: bool) -> None:
    book = Playbook(POLICY).looked()
    before = len(book.made.entries)
    (USES_UP | NOT)[story](book)
    ended = book.bodies(runs.RunEnded)
    assert len(book.made.entries) > before + 1, "nothing happened"
    assert bool(book.flow().failures) is is_used_up, [fact.why for fact in ended]
    assert is_used_up is any(fact.state in ("failed", "timed_out", "stalled") for fact in ended)


def test_the_page_of_codes_lists_these_and_no_others() -> None:
    text = (ROOT / "docs" / "codes.md").read_text()
    table = text.partition("## What uses up an attempt")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (.+?) \| (yes|no) \|", table, re.MULTILINE)
    assert dict(rows) == dict.fromkeys(USES_UP, "yes") | dict.fromkeys(NOT, "no")
