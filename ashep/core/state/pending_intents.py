"""Intents of a flow: what is under way, whether a read is older than what it answers, and how far a landing is."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from ashep.core.facts.commands import (
    WRITES,
    IntegrateWork,
    MoveBase,
    OpenPullRequest,
    OpenSession,
    PrepareTree,
    SendPrompt,
    StopTurn,
    VerifyWork,
)
from ashep.core.facts.runs import TurnSeen
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace
from ashep.core.state.run import Run


def stale(flow: Flow, as_of: int) -> bool:
    """Whether a read that began at `as_of` may show what was before our own write."""
    return as_of < flow.write_seq or any(isinstance(command, WRITES) for command in flow.open)


MAX_REPORTS = 40
"""Reports that a flow keeps for its prompts."""

INFRA_LIMIT, INFRA_TIME = 10, timedelta(minutes=2)
"""Infrastructure failures in a row after which an issue parks, and the least time since the first of them."""

FAULT_LIMIT = 3
"""Unforeseen failures of one effect after which it is given up."""


def is_exhausted(failures: int, since: datetime | None, now: datetime) -> bool:
    """Whether infrastructure has failed so often in a row, and for so long, that the issue parks."""
    return failures >= INFRA_LIMIT and since is not None and now - since >= INFRA_TIME


def infra_delay(failures: int) -> timedelta:
    """Returns the pause after so many earlier failures of infrastructure in a row: 1, 2, 4, … 60 seconds."""
    return timedelta(seconds=min(2.0 ** min(failures, 6), 60.0))


def unfounded(flow: Flow, run: Run, fact: TurnSeen) -> bool:
    """Whether a read says nothing about the present prompt, or began before our last write to the session was done."""
    if run.ended or fact.run != run.id or fact.n != run.prompt.n or not run.prompt.sent:
        return True
    return fact.as_of < run.effect_seq or any(isinstance(command, (SendPrompt, StopTurn)) for command in flow.open)


def settle_intent(flow: Flow, key: str | None, seq: int) -> Flow:
    """The effect of this key has an answer: its intent is no longer open, and a row of failures is over."""
    command = next((command for command in flow.open if command.key == key), None)
    if command is None:
        return flow
    flow = replace(
        flow, open=tuple(other for other in flow.open if other.key != key), effect_after=None,
        tries=tuple(item for item in flow.tries if item[0] != key),
    )  # fmt: skip
    if isinstance(command, WRITES):
        flow = replace(flow, write_seq=seq)
    if isinstance(command, (OpenSession, SendPrompt, StopTurn)) and flow.run is not None:
        flow = replace(flow, run=replace(flow.run, effect_seq=seq))
    return replace(flow, infra=0, infra_began=None, failing="", error="")


# --- landing: one at a time, in the order in which they were finished; whoever waits is passed by --------------------


WORK_EFFECTS = (VerifyWork, IntegrateWork, MoveBase, OpenPullRequest)
"""Effects on an issue's work, one of which is open at a time."""

AT_IT, NEXT, PASSED_BY = range(3)
"""Its landing is under way · it may begin, or try again · it waits for something else than its turn."""

Place = tuple[int, int, str]
"""One of these, the decision to finish, and the issue: the first in the queue has the turn, unless it is passed by."""


def steps_of(flow: Flow) -> Iterator[str]:
    """The effects under way with which an issue lands now; what is left of an earlier landing moves nothing of it."""
    now = f"/{flow.work.landing.seq}." if flow.work.landing is not None else "/."
    for command in flow.open:
        verifies = isinstance(command, VerifyWork) and not command.run
        if (verifies or isinstance(command, (IntegrateWork, MoveBase))) and now in command.key:
            yield command.key


def at_liberty(flow: Flow) -> bool:
    """Whether something may be done about its work now: nobody is at it, and it is known whose it is."""
    run = flow.run
    if flow.work.own is None or (run is not None and not run.forgettable) or flow.look_again or flow.lease_lost:
        return False
    return not any(isinstance(command, (*WORK_EFFECTS, PrepareTree)) for command in flow.open)
