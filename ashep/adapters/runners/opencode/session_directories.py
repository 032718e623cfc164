"""In which folder a session works: what the server lists, it lists by folder (`directory=`), and by no other.

As tried on the real server 1.18.33 (tests/test_opencode.py does it again): a call about one session goes to the folder
that it was opened in, whatever the call names; `GET /session`, `/session/status`, `/permission` and `/question` tell
only of the folder named; `/global/event` tells of all of them.
"""

from collections.abc import Awaitable, Callable, Collection

import httpx

from ashep.adapters.runners.opencode import schema

Find = Callable[[str], Awaitable[httpx.Response]]
"""Asks the server for a path; 400 and 404 are answers."""


class SessionDirectories:
    """The folders of sessions, as far as they were asked for; None: the project's own."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[str, str | None] = {}

    def keep(self, session: str, directory: str | None) -> None:
        """Remember where a session was opened or found."""
        self._known[session] = directory

    async def find_directory(self, session: str) -> str | None:
        """Give the folder of a session; a session that is not there has none of its own."""
        if session not in self._known:
            answer = await self._find(f"/session/{session}")
            if answer.status_code != 200:
                return None
            self._known[session] = schema.parse(schema.SESSION, answer.content).directory
        return self._known[session]

    async def find_directories(self, sessions: Collection[str]) -> list[str | None]:
        """Give the folders of several, each once, in an order that another process repeats."""
        directories = {await self.find_directory(session) for session in sorted(sessions)}
        return sorted(directories, key=lambda place: place or "")
