"""Waiting in tests: for what comes to pass in the end, within a bound, and beside what goes on meanwhile."""

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


async def wait_until(fact: Callable[[], object], within: float = 60.0, every: float = 0.02) -> None:
    """Wait until something holds, which may have to be awaited itself."""
    with anyio.fail_after(within):
        while True:
            found = fact()
            if await found if inspect.isawaitable(found) else found:
                return
            await anyio.sleep(every)


@asynccontextmanager
async def meanwhile(*acts: Callable[[], Coroutine[Any, Any, object]]) -> AsyncGenerator[None]:
    """What goes on beside something else, and no longer than that."""
    async with anyio.create_task_group() as group:
        for act in acts:
            group.start_soon(act)
        yield
        group.cancel_scope.cancel()
