"""Whose turn it is to land: one at a time, in the order in which they were finished; whoever waits is passed by."""

from __future__ import annotations

from collections.abc import Iterator

from ashep.core.facts.commands import IntegrateWork, MoveBase, OpenPullRequest, PrepareTree, VerifyWork
from ashep.core.state.flow import Flow

WORK_EFFECTS = (VerifyWork, IntegrateWork, MoveBase, OpenPullRequest)
"""Effects on an issue's work, one of which is open at a time."""


AT_IT, NEXT, PASSED_BY = range(3)
"""Its landing is under way · it may begin, or try again · it waits for something else than its turn."""


Place = tuple[int, int, str]
"""One of these, the decision to finish, and the issue: the first in the queue has the turn, unless it is passed by."""


def steps_of(flow: Flow) -> Iterator[str]:
    """The effects under way with which an issue lands now; what is left of an earlier landing moves nothing of it."""
    now = f"/{flow.landing.seq}." if flow.landing is not None else "/."
    for command in flow.open:
        of_landing = isinstance(command, (IntegrateWork, MoveBase)) or (
            isinstance(command, VerifyWork) and not command.run
        )
        if of_landing and now in command.key:
            yield command.key


def at_liberty(flow: Flow) -> bool:
    """Whether something may be done about its work now: nobody is at it, and it is known whose it is."""
    run = flow.run
    if flow.own is None or (run is not None and not run.forgettable) or flow.look_again or flow.lease_lost:
        return False
    return not any(isinstance(one, (*WORK_EFFECTS, PrepareTree)) for one in flow.open)
