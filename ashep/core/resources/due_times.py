"""What is due: every wait is a time in the World, of an issue or of all of them, so that a restart resumes it."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice, takewhile

from ashep.core.facts.resources import TimerDue
from ashep.core.resources import notices
from ashep.core.state import pauses, providers, runner_state, spending, timers
from ashep.core.state.world import World


def due_timers(world: World, now: datetime) -> Iterator[TimerDue]:
    """The timers whose time has passed."""
    for key, due in _of_all(world):
        if due <= now:
            yield TimerDue(key, due)
    passed = takewhile(lambda item: item[0] <= now, world.indexes.due_order)
    for issue in sorted(issue for _, issue in passed):
        for name, due in timers.flow_dues(world.flows[issue]):
            if due <= now:
                yield TimerDue(f"{name}:{issue}", due)


def next_due(world: World) -> datetime | None:
    """The earliest due time there is."""
    issues = islice((due for due, _ in world.indexes.due_order), 1)
    return min(chain(issues, (due for _, due in _of_all(world))), default=None)


def _of_all(world: World) -> list[tuple[str, datetime]]:
    budget = spending.next_budget(world.spending)
    budgets = [(f"{spending.TIMER}:", budget)] if budget else []
    shared = [*pauses.dues(world.pauses), *providers.dues(world.outages), *budgets]
    return [*shared, *runner_state.dues(world.servers), *notices.dues(world)]
