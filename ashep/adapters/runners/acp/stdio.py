"""The line to an agent: JSON messages over its standard input and output, whatever else it prints there."""

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel

from ashep.adapters.runners.foreign_json import as_object, parse_object

LONGEST = 16 * 1024 * 1024
"""Bytes of one message; a longer one is passed over, as is whatever is no message."""

_CHUNK = 256 * 1024


class StdioTransport:
    """A transport for the protocol's library: updates are told to `hear`, in their order, and the rest goes there."""

    def __init__(self, process: Process, hear: Callable[[dict[str, Any]], None]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._into, self._out, self._hear = process.stdin, process.stdout, hear
        self._kept, self._skips, self._lines = bytearray(), False, list[bytes]()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._into.write(json.dumps(message).encode() + b"\n")
        await self._into.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is no update; None: the agent has closed the line."""
        while True:
            while self._lines:
                message = parse_object(self._lines.pop())
                if not message:
                    continue
                if message.get("method") == "session/update":
                    self._hear(as_object(message.get("params")))
                else:
                    return message
            data = await self._out.read(_CHUNK)
            if not data:
                return None
            self._take(data)
            await asyncio.sleep(0)

    def _take(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for line in whole:
            if not self._skips and len(self._kept) + len(line) <= LONGEST:
                self._lines.append(bytes(self._kept) + line)
            self._kept, self._skips = bytearray(), False
        self._lines.reverse()
        self._skips = self._skips or len(self._kept) + len(rest) > LONGEST
        self._kept = bytearray() if self._skips else self._kept + rest

    async def close(self) -> None:
        """Close what the agent reads from; it ends by that."""
        self._into.close()
        await anyio.lowlevel.checkpoint()
