"""Patience of commands: a runner that is slow on a busy machine is waited for, and whoever waits can see that."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from ashep.errors import ServerSlow, ServerStarting

LONGEST = 600.0
"""Seconds for which a command asks a server again that is alive and does not answer in time."""

_REMEDY = "See its log; a plugin or an MCP server of its configuration may keep it"

Say = Callable[[str], None]
_Answer = TypeVar("_Answer")


def silent(_: str) -> None:
    """Say nothing: nobody waits there."""


async def call_runner(
    start: Callable[[], Awaitable[None]], call: Callable[[], Awaitable[_Answer]], say: Say = silent
) -> _Answer:
    """Start a runner, or attach to it, and return the answer of a call; both again while its server is alive.

    The adapter ends a start at its own bound. `say` gets one line for each step. Raises what the runner raises.
    """
    over = anyio.current_time() + LONGEST
    while True:
        try:
            await start()
            return await call()
        except ServerStarting as error:
            say(str(error))
        except ServerSlow as error:
            if anyio.current_time() >= over:
                raise ServerSlow(f"{error}, for {LONGEST / 60:g} minutes. {_REMEDY}") from error
            say(f"{error}; the agent server is alive, and is asked again")
