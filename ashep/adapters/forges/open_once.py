"""Opens a pull request unless there is one, at all forges."""

from collections.abc import Awaitable, Callable
from typing import Any

from ashep.errors import ForgeRefused
from ashep.ports.landing import Opened, PullRequest


async def open_once(
    find: Callable[[str, str, str], Awaitable[Opened | None]],
    post: Callable[[], Awaitable[Any]],
    read: Callable[[Any], Opened],
    request: PullRequest,
    taken: tuple[int, ...],
) -> Opened:
    """Open a pull request, unless there is one. `taken`: the statuses by which the forge says that there is by now."""
    if opened := await find(request.key, request.branch, request.base):
        return opened
    try:
        return read(await post())
    except ForgeRefused as refused:
        if refused.status in taken and (opened := await find(request.key, request.branch, request.base)):
            return opened
        raise
