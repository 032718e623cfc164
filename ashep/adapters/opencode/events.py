"""OpenCode's event stream, of every folder: which sessions show a sign of life (facts/opencode.md 4, 10).

Only a hint: what it says is believed after a read. So an event is not parsed, it is searched for its type and session,
and apart from what ends or holds up a turn a session shows at most one sign a second.

A message of a person's shows as a user message that is not our last prompt; who wrote it is seen once it has parts, so
that these are the sign (tests/conformance/test_runner.py). So is what a compaction writes: the read says who it was.
"""

import re
from collections.abc import AsyncIterator

import anyio
import httpx
import httpx_sse

from ashep.adapters.opencode.client import Client, check
from ashep.adapters.opencode.questions import Told
from ashep.adapters.opencode.signs import Watch
from ashep.ports.tracker import Sign

SILENCE = httpx.Timeout(5.0, read=45.0)
"""The server sends a heartbeat every 10 s; a stream without any is dead."""

_SPACING = 1.0
_TYPE = re.compile(r'"type":"([a-z.]+)"')
_SESSION = re.compile(r'"sessionID":"(ses_\w+)"')
_URGENT = frozenset({"session.idle", "session.error", "permission.asked", "question.asked"})
_USERS = re.compile(r'"role":"user"')
_MESSAGE = re.compile(r'"id":"(msg_\w+)"')
_OF_MESSAGE = re.compile(r'"messageID":"(msg_\w+)"')
_KEPT = 1000
_ASKING = ("permission.", "question.")
_IGNORED = frozenset({"session.diff", "sync"})  # sync: what was told just before, once more


async def listen(client: Client, watch: Watch, told: Told) -> AsyncIterator[Sign]:
    """Yield `Sign(None)` once the stream stands, then those of sessions; ends when the server closes it.

    The watch is told of every event, and `told` of what is asked. Raises httpx.HTTPError, RunnerUnauthorized or
    RunnerUnavailable where it breaks.
    """
    try:
        async for sign in _listen(client, watch, told):
            yield sign
    finally:
        watch.cut()


async def _listen(client: Client, watch: Watch, told: Told) -> AsyncIterator[Sign]:
    last: dict[str, float] = {}
    users: dict[str, None] = {}
    async with httpx_sse.aconnect_sse(client.stream(), "GET", "/global/event", timeout=SILENCE) as source:
        check(source.response)
        watch.stands()
        yield Sign(None)
        async for event in source.aiter_sse():
            if watch.deaf:
                return
            kind, found = _TYPE.search(event.data), _SESSION.search(event.data)
            if kind is None or found is None or kind[1] in _IGNORED:
                continue
            session, now = found[1], anyio.current_time()
            watch.sign(session)
            if kind[1].startswith(_ASKING):
                told.hear(kind[1], event.data)
            urgent = kind[1] in _URGENT
            urgent = _may_be_a_persons(kind[1], event.data, users, watch.prompts.get(session)) or urgent
            if not urgent and now - last.get(session, -_SPACING) < _SPACING:
                continue
            last[session] = now
            yield Sign(session, urgent)


def _may_be_a_persons(kind: str, event: str, users: dict[str, None], ours: str | None) -> bool:
    """Whether an event shows what somebody wrote; `users`: messages of users that were told of, the newest last."""
    if kind == "message.updated" and _USERS.search(event) and (found := _MESSAGE.search(event)) and found[1] != ours:
        users[found[1]] = None
        if len(users) > _KEPT:
            del users[next(iter(users))]
    of = _OF_MESSAGE.search(event) if kind == "message.part.updated" and users else None
    return of is not None and of[1] in users
