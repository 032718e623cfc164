"""Admission of connections, and how many: whoever has no token keeps nobody out who has one.

Only requests with the token count towards those that are worked on at once; connections on which nothing is answered
have bounds of their own (`ashep.adapters.system.http_server`).
"""

from collections import Counter
from collections.abc import Callable, Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ashep.request_guard import HEADERS, Refusal, refusal

_NO_STORE = (b"cache-control", b"no-store")
_ONCE = ("host", "origin", "sec-fetch-site", "authorization", "content-type")

AT_ONCE = 64
"""Requests with the token that are worked on at once; more are told to come again."""


class OriginCheck:
    """Judges every request by its head before anything else is done for it (`ashep.request_guard`), and marks every
    answer.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str], refuse: Callable[[Refusal], ASGIApp]) -> None:
        self._app, self._origins, self._refuse = app, frozenset(origins), refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request on, or refuse it."""
        if scope["type"] != "http":
            return
        given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        twice = {name for name, count in Counter(name for name, _ in given).items() if count > 1 and name in _ONCE}
        refused = Refusal(400, f"{min(twice)} is given twice") if twice else None
        refused = refused or refusal(scope["method"], dict(given), self._origins)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = [*message.get("headers", ())]
                names = {name for name, _ in told}
                message["headers"] = [*told, *(header for header in (*HEADERS, _NO_STORE) if header[0] not in names)]
            await send(message)

        await (self._app if refused is None else self._refuse(refused))(scope, receive, marked)


class ConnectionLimiter:
    """Counts the requests of those who have the token, and keeps no connection of others open behind its answer."""

    def __init__(self, app: ASGIApp, knows: Callable[[Scope], bool], refuse: ASGIApp) -> None:
        self._app, self._knows, self._refuse = app, knows, refuse
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http" or not self._knows(scope):

            async def last(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
                await send(message)

            await self._app(scope, receive, last)
        elif self._inside >= AT_ONCE:
            await self._refuse(scope, receive, send)
        else:
            self._inside += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._inside -= 1
