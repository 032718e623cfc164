"""What of a recorded life counts under another policy: which decisions are the same, and when an outcome stands.

Both are conservative: what is not named here as of no account must be equal (docs/decisions/0014).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal

from ashep.core.facts.vocabulary import (
    CommentWanted,
    Fact,
    IssueHeld,
    IssueTaken,
    PersonAsked,
    PersonReminded,
    RunEnded,
    RunPlanned,
)
from ashep.core.policy.settings import Phase, Policy
from ashep.core.state.flow import Run
from ashep.core.state.notices import RECORDS

Said = tuple[Any, ...]
"""What a decision comes to, whatever its words are."""

_WORDS = frozenset({"why", "text"})
_OF_NO_ACCOUNT: dict[type, frozenset[str]] = {
    IssueTaken: _WORDS | {"policy"},  # a name; what the policy says shows in what follows
    IssueHeld: _WORDS | {"of"},
    PersonAsked: _WORDS | {"due", "remind"},  # compared with the time of the answer
    RunPlanned: _WORDS
    | {"agent", "others", "lock", "branch", "slot", "onto"}
    | {"timeout", "stall_after", "tool_timeout"},  # compared with the run's length
}
_ROUTES = frozenset(
    {
        "tags", "provider", "model", "not_agents", "prefer", "timeout", "retry", "stall", "takeover", "session",
        "max_visits", "next", "requires", "must_pass", "human", "verify", "checks", "when_flags",
    }
)  # fmt: skip
"""Keys of a phase that decide who runs when, and where it leads: no agent is shown them, and no session is given them.
What they come to is compared decision by decision."""


def said(fact: Fact) -> Said:
    """Give what a decision comes to."""
    left_out = _OF_NO_ACCOUNT.get(type(fact), _WORDS)
    return (type(fact), *(getattr(fact, one.name) for one in fields(fact) if one.name not in left_out))


def weighty(facts: Iterable[Fact], issue: str) -> list[Fact]:
    """Leave out what leads nowhere, comments and what people are told, and what is about no or another issue."""
    mine = (fact for fact in facts if getattr(fact, "issue", None) == issue)
    return [fact for fact in mine if not isinstance(fact, (CommentWanted, PersonReminded, *RECORDS))]


def parted(was: Sequence[Fact], now: Sequence[Fact]) -> tuple[Fact | None, Fact | None] | None:
    """Give the first decisions that are not the same; None: all are."""
    for place in range(max(len(was), len(now))):
        one = was[place] if place < len(was) else None
        other = now[place] if place < len(now) else None
        if one is None or other is None or said(one) != said(other):
            return one, other
    return None


def shown(phase: Phase) -> dict[str, Any]:
    """Give what an agent, or its session, is given of a phase."""
    return phase.model_dump(exclude={*_ROUTES, "capabilities", "access"}) | {
        "needs": phase.needs,
        "writes": phase.writes,
    }


def looked_for(policy: Policy | None, phase: str) -> tuple[Any, ...]:
    """Give what is looked for in the work of a phase; empty name: in what is to land. Evidence is of exactly that."""
    phases = policy.phases if policy is not None else ()
    some = [one for one in phases if phase in ("", one.name)]
    change = any(one.verify is not None for one in some)
    return (change, *(check for one in some for check in one.checks))


@dataclass(frozen=True, slots=True)
class Limit:
    """A time that may end a run, under both policies; None: there is none."""

    name: Literal["timeout", "stall.after", "stall.tool_timeout"]
    recorded: timedelta | None
    other: timedelta | None


def limits(was: RunPlanned, now: RunPlanned) -> tuple[Limit, ...]:
    """Give the times that may end a run."""
    return (
        Limit("timeout", was.timeout, now.timeout),
        Limit("stall.after", was.stall_after, now.stall_after),
        Limit("stall.tool_timeout", was.tool_timeout, now.tool_timeout),
    )


_ENDS = {"timed_out": ("timeout",), "stalled": ("stall.after", "stall.tool_timeout")}
"""Which limits may have ended a run that ended so."""


def untimely(run: Run, times: Iterable[Limit], now: datetime, ended: RunEnded | None) -> Limit | None:
    """Give the limit under which a run might have gone otherwise than it went up to now; None: there is none.

    A run that took no longer than a limit did not reach it. One that a limit ended needs the very same limit.
    """
    took = now - run.planned
    fired = _ENDS.get(ended.state, ()) if ended else ()
    for one in times:
        if one.other == one.recorded:
            continue
        longer = one.other is None or (one.recorded is not None and one.other > one.recorded)
        if one.name in fired or not (longer or (one.other is not None and took <= one.other)):
            return one
    return None
