"""HTTP clients whose answers have a bound: nobody makes one otherwise, for any server may be hostile, or broken.

httpx is imported without its command line, with which click, pygments and rich would come: a fifth of a second of CPU.
Whoever imports httpx first decides that, so each adapter that does imports this before.
"""

import sys
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any, cast

_COMMAND_LINE = "httpx._main"

_modules: dict[str, Any] = sys.modules
if _modules.setdefault(_COMMAND_LINE) is None:  # httpx does without it where its import fails
    import_module("httpx")
    del _modules[_COMMAND_LINE]

import httpx  # noqa: E402 - as above


class AnswerTooLarge(httpx.ReadError):
    """An answer, or an event of a stream, has more bytes than its client takes."""


def make_client(most: int, *, headers: dict[str, str] | None = None, **options: Any) -> httpx.AsyncClient:
    """Make a client that takes `most` bytes of an answer, or of an event, and none that is packed: that may grow.

    A time for the whole answer is the caller's to set: httpx has one for each piece of it.
    """

    async def bound(answer: httpx.Response) -> None:
        if "content-encoding" in answer.headers:
            raise httpx.RemoteProtocolError("an answer is packed although none was asked for", request=answer.request)
        streams = answer.headers.get("content-type", "").startswith("text/event-stream")
        answer.stream = _Pieces(cast(httpx.AsyncByteStream, answer.stream), most, by_line=streams)

    given = {"Accept-Encoding": "identity", **(headers or {})}
    return httpx.AsyncClient(headers=given, event_hooks={"response": [bound]}, **options)


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, most: int, *, by_line: bool) -> None:
        self._stream, self._most, self._by_line = stream, most, by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            end = piece.rfind(b"\n") if self._by_line else -1
            size = len(piece) - end - 1 if end >= 0 else size + len(piece)
            if size > self._most:
                raise AnswerTooLarge(f"more than {self._most / 1024**2:g} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
