"""Virtual time that can also stop one life of a daemon, as SIGSTOP does: the rest of the world goes on without it.

No selector, no threads: when nothing is ready, time jumps to the next timer. Whose task a callback belongs to is known
by a context variable, which tasks hand down to the tasks that they start.
"""

import asyncio
import heapq
import random
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio

from ashep.adapters.system.clock import LONGEST

if TYPE_CHECKING:
    from chaos.torture.life import Life

LIFE: ContextVar["Life | None"] = ContextVar("LIFE", default=None)
"""The life of a daemon that a task belongs to; None: the world outside."""

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


class StandsStill(Exception):
    """Nothing is ready and no timer is set: somebody waits for ever."""


class TortureLoop(asyncio.SelectorEventLoop):
    """Runs everything in one thread, in an order that the seed decides where `order` is given."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual = 0.0
        self.order: random.Random | None = None
        self.stopped: dict[Any, list[Any]] = {}
        """Lives that do not run at present, with the callbacks that wait for them to go on."""

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.virtual

    def stop_life(self, life: "Life") -> None:
        """Let nothing of this life run (SIGSTOP)."""
        self.stopped.setdefault(life, [])

    def continue_life(self, life: "Life") -> None:
        """Let it go on (SIGCONT), with everything that has become due meanwhile."""
        for handle in self.stopped.pop(life, []):
            self._ready.append(handle)  # pyright: ignore[reportAttributeAccessIssue]

    def _run_once(self) -> None:
        ready: Any = self._ready  # pyright: ignore[reportAttributeAccessIssue]
        scheduled: Any = self._scheduled  # pyright: ignore[reportAttributeAccessIssue]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled:
                raise StandsStill
            self.virtual = max(self.virtual, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self.virtual:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                ready.append(handle)
        if self.order is not None and len(ready) > 1 and self.order.random() < 0.2:
            ready.rotate(1)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self.stopped and (waiting := self.stopped.get(handle._context.get(LIFE))) is not None:
                waiting.append(handle)
                continue
            handle._run()

    def _write_to_self(self) -> None:
        """Nobody waits for a selector."""


class InOrder(dict[Any, None]):
    """A set that is walked in the order in which it was filled, whatever the addresses of its members."""

    add = dict[Any, None].setdefault

    def discard(self, item: Any) -> None:
        self.pop(item, None)

    def remove(self, item: Any) -> None:
        del self[item]


def cancelled_in_order(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap the `__init__` of anyio's cancel scope: who is cancelled first is seen in what chance brings next."""

    def init(scope: Any, *arguments: Any, **named: Any) -> None:
        original(scope, *arguments, **named)
        scope._tasks, scope._child_scopes = InOrder(), InOrder()

    return init


class WorldClock:
    """The wall clock and the monotonic clock of the machine; both stand in the same place for every life."""

    def __init__(self) -> None:
        self._wall = START

    def now(self) -> datetime:
        """The wall clock."""
        return self._wall + timedelta(seconds=asyncio.get_running_loop().time())

    def monotonic(self) -> float:
        """The monotonic clock, which does not count while the machine is suspended."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`, or earlier, as the real clock does."""
        await anyio.sleep(min(max((when - self.now()).total_seconds(), 0.0), LONGEST.total_seconds()))

    def jump(self, by: timedelta) -> None:
        """Set the wall clock, or sleep through a suspend: the monotonic clock does not see it."""
        self._wall += by
