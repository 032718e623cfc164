"""How everything stood at a moment, told from checkpoints of the journal, which are made next to what is asked."""

import anyio
from anyio import to_thread

from ashep.api.handlers.queries import InvalidQuery, QueryHandlers
from ashep.api.schemas import page
from ashep.api.schemas.verification import Given, TicketId
from ashep.store import playback
from ashep.store.checkpoints import CheckpointWriter
from ashep.views import point_in_time, times
from ashep.views.json_types import ThenJson

SLICE = 0.04
"""Seconds for which checkpoints are made at a time; as long a pause follows, in which others are answered."""

LOOK = 30.0
"""Seconds between looks whether the journal has grown."""


class WhichMoment(Given):
    """Which moment is told."""

    at: page.Since
    """A time (03:00), a span (12h), a date or both."""
    issue: TicketId | None = None
    """An issue that is to be told of, too."""


async def keep(of: QueryHandlers) -> None:
    """Make checkpoints of the journal for ever, next to what is asked."""
    keeper = of.keeper = CheckpointWriter(of.state)
    alone = anyio.CapacityLimiter(1)
    try:
        while True:
            began = anyio.current_time()
            more = await to_thread.run_sync(keeper.advance, SLICE, limiter=alone)
            await anyio.sleep(anyio.current_time() - began if more else LOOK)
    finally:
        keeper.close()


async def read_moment(queries: QueryHandlers, query: WhichMoment) -> ThenJson:
    """Tell how everything stood at a moment, one at a time. Raises `InvalidQuery`."""
    now = queries.now()
    try:
        moment = min(times.moment(query.at, now), now)
    except (ValueError, OverflowError) as error:
        raise InvalidQuery("at: give a time (03:00), a span (12h), a date (2026-01-31) or both") from error

    def look() -> ThenJson:
        most, keeper = playback.FOLDED, queries.keeper
        with playback.open_past(queries.state, moment, query.issue, most=most, keeper=keeper) as past:
            return point_in_time.describe_moment(past, moment, queries.recalled, query.issue)

    async with queries.folds:
        return await to_thread.run_sync(look)
