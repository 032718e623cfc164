"""Waiting in tests: for what comes to pass in the end, within a bound, and beside what goes on meanwhile."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

T = TypeVar("T")


async def wait_until(fact: Callable[[], T | Awaitable[T]], within: float = 20.0, every: float = 0.02) -> T:
    """Wait until there is something, and give it."""
    with anyio.fail_after(within):
        while True:
            found = fact()
            known = await found if inspect.isawaitable(found) else found
            if known:
                return known
            await anyio.sleep(every)
    raise AssertionError


@asynccontextmanager
async def meanwhile(*acts: Callable[[], Awaitable[object]]) -> AsyncGenerator[None]:
    """What goes on beside something else, and no longer than that."""
    async with anyio.create_task_group() as group:
        for act in acts:
            group.start_soon(act)
        yield
        group.cancel_scope.cancel()
