"""A server on loopback for one test, which remembers what it was asked."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import uvicorn


class _Uvicorn(uvicorn.Server):
    def capture_signals(self) -> Any:
        return nullcontext()


@asynccontextmanager
async def serving(app: Any, **more: Any) -> AsyncIterator[str]:
    """Serve an ASGI app, and give its address."""
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none", **more)
    server = _Uvicorn(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            while not server.started:
                await anyio.sleep(0.01)
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
