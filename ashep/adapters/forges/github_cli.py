"""Asks GitHub by its own program, `gh api`, which is logged in already: the interface is the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from ashep.adapters.forges.github import HEADERS
from ashep.adapters.system import programs
from ashep.adapters.system.rest_api import ForgeResponse
from ashep.core.text import clean
from ashep.errors import ForgeUnauthorized, ForgeUnavailable, ProgramTimedOut

_NO_LOGIN = 4  # the exit code by which gh says that nobody is logged in


class GhProgram:
    """Asks with `gh api`; each call is bound by `timeout` seconds. Raises `ProgramMissing` where there is no gh."""

    def __init__(self, timeout: float, command: tuple[str, ...] = ("gh",), cwd: Path | None = None) -> None:
        self._timeout, self._command, self._cwd = timeout, command, cwd

    async def ask(
        self, method: str, path: str, params: Mapping[str, str | int], data: Any, etag: str = ""
    ) -> ForgeResponse:
        """Send a request. What is written goes to its standard input, never into its command line."""
        program = str(await anyio.to_thread.run_sync(programs.find, self._command[0]) or self._command[0])
        place = path.removeprefix("/") + (f"?{urlencode(params)}" if params else "")
        given = HEADERS | ({"If-None-Match": etag} if etag else {})
        headers = [part for name, value in given.items() for part in ("--header", f"{name}: {value}")]
        argv = [program, *self._command[1:], "api", "--include", "--method", method, *headers, place]
        body = None if data is None else json.dumps(data).encode()
        argv += [] if body is None else ["--input", "-"]
        try:
            done = await programs.run(argv, cwd=self._cwd, env=None, timeout=self._timeout, stdin=body)
        except ProgramTimedOut as error:
            raise ForgeUnavailable(str(error), unknown=method != "GET") from error
        if (answer := _parsed(done.stdout)) is not None:
            return answer
        said = " ".join(clean(done.stderr.decode(errors="replace")).split())[:300]
        if done.returncode == _NO_LOGIN:
            raise ForgeUnauthorized(f"gh is not logged in: {said}")
        raise ForgeUnavailable(f"gh ended with exit code {done.returncode}: {said}", unknown=method != "GET")

    async def aclose(self) -> None:
        """Nothing is open."""


def _parsed(printed: bytes) -> ForgeResponse | None:
    """Read an answer with its head, as `gh api --include` prints it; None where there is none."""
    head, found, content = printed.replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.decode(errors="replace").split("\n")
    words = first.split()
    if not found or not first.startswith("HTTP/") or len(words) < 2 or not words[1].isdecimal():
        return None
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return ForgeResponse(int(words[1]), headers, content)
