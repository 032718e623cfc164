"""Servers on loopback for one test."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


class Site:
    """What a server answers by path, and what it was asked."""

    def __init__(self, pages: Mapping[str, ASGIApp]) -> None:
        self.pages, self.asked, self.paths = {**pages}, list[Request](), list[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        self.asked.append(request)
        self.paths.append(request.url.path)
        await self.pages.get(request.url.path, Response(status_code=404))(scope, receive, send)


@asynccontextmanager
async def serving(app: ASGIApp, **more: Any) -> AsyncIterator[str]:
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none", **more)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            while not server.started:
                await anyio.sleep(0.01)
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
