"""A place's server that is slow keeps what is in it: only one that stays silent for long is ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from ashep.adapters.runners.opencode.isolated_runner import IsolatedRunner
from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.errors import RunnerUnavailable, ServerSlow, SessionUnavailable
from ashep.ports.runner import SessionRequest

pytestmark = pytest.mark.virtual


class PlaceServer:
    """A server that starts, and answers no call as it should."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self.error, self.ends, self.endpoint = error, 0, self

    async def start(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def ask_for_room(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def open_session(self, _: SessionRequest) -> str:
        await anyio.lowlevel.checkpoint()
        raise self.error()

    async def stop_server(self) -> bool:
        self.ends += 1
        return True


async def fail(server: PlaceServer, folder: Path, times: int) -> int:
    """Ask it so often in a row; return how often it was ended."""
    runner = IsolatedRunner(
        cast("Any", None), lambda _: cast("OpencodeRunner", server), place_of=lambda _: folder, state=folder / "state"
    )
    for number in range(times):
        with pytest.raises(SessionUnavailable):
            await runner.open_session(SessionRequest("i:t-1/1", f"t-1/{number}", "write", directory=str(folder)))
    return server.ends


@pytest.mark.promise("I7")
async def test_a_slow_server_is_ended_after_several_silent_calls_and_a_broken_one_at_once(folder: Path) -> None:
    def make_slow() -> Exception:
        return ServerSlow("GET /session: no answer in 15 s")

    assert [await fail(PlaceServer(make_slow), folder, times) for times in (1, 3, 4)] == [0, 0, 1]
    assert await fail(PlaceServer(lambda: RunnerUnavailable("GET /session: 500")), folder, 1) == 1
