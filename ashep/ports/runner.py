"""The part of the port `Runner` that is about what sessions ask: `ashep.ports.tracker` has the rest, and the errors."""

from collections.abc import Collection
from typing import Literal, Protocol

from ashep.core.facts.requests import Request, Verdict


class Requesting(Protocol):
    """A server whose sessions ask for leave to use tools, and ask questions."""

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        """What these sessions of ours, and subagents below them, wait for an answer to; it may name some that a stopped
        turn left behind, and others' of ours. A request's id is never used twice.
        """
        ...

    async def reply(
        self,
        session: str,
        request: str,
        kind: Literal["permission", "question"],
        verdict: Verdict,
        answers: tuple[tuple[str, ...], ...],
        message: str,
    ) -> bool:
        """Answer a request of this session's, so that its turn goes on: allow it this once, deny it with a message, or
        answer each of its questions. False: nobody waits for that any more.
        """
        ...
