"""Signs of life of sessions: what the event stream told, and what a read shows.

As tried on the real server 1.18.33 (tests/test_life.py does it again): a text that streams in shows as
`message.part.delta` events and in no read before it is whole; what a tool prints shows in both; a subagent has a
session of its own, which its events and reads name; a provider's wait shows as the status `retry` with its time.

So the stream alone knows that a slow model is alive, and silence counts only for as long as a stream stood without a
gap that has been heard to tell of sessions at all. One that tells nothing any more (facts/opencode.md 10) is found out
by a read that shows something newer than what it told; it is given up for another one.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import anyio
import httpx
import httpx_sse

from ashep.adapters.runners.opencode import provider_errors, requests, schema, turns
from ashep.adapters.runners.opencode.client import Client, check
from ashep.core.facts.runs import Life
from ashep.core.text import read_json
from ashep.ports.runner import Sign

Get = Callable[[str], Awaitable[httpx.Response]]
"""Asks the server; 400 and 404 are answers."""

FAMILY = 64
"""Subagents' sessions that are looked at below one session."""

TAIL = 3
"""Messages of a session that are read."""

SLACK = 5.0
"""Seconds by which a read may be ahead of the stream: the server's clock is given in whole ones."""

_SUBAGENT = "task"  # the tool that waits for a subagent, which shows signs of its own


class ActivityMonitor:
    """When which session last showed a sign, and since when that is watched: on the clock that only grows."""

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        """Our last prompt in each session, by its message's id."""
        self.deaf = False
        """Whether the stream was found not to tell what happens."""
        self.errors: dict[str, str] = {}
        """What the server said of our last prompt in a session that failed: a plugin that threw, say."""
        self._since: float | None = None
        self._heard = False
        self._signs: dict[str, float] = {}
        self._tools: dict[str, dict[str, float]] = {}

    def stands(self) -> None:
        """The stream stands; what came before may have been missed, and is no sign any more."""
        self._since, self._heard, self.deaf = anyio.current_time(), False, False
        self._signs = {}

    def cut(self) -> None:
        """The stream is gone."""
        self._since = None

    def sign(self, session: str) -> None:
        """The stream told of a session."""
        self._signs[session], self._heard = anyio.current_time(), True

    def sent(self, session: str, message: str) -> None:
        """A prompt was given to it: from then on it may be quiet."""
        self.prompts[session] = message
        self.errors.pop(session, None)
        self._signs[session] = anyio.current_time()

    def fail(self, session: str, event: str) -> None:
        """The stream told of an error in a session: the first says most, and a stack follows its first line."""
        try:
            said: Any = read_json(event.encode(errors="replace"))
            error = provider_errors.Failure.model_validate(said["payload"]["properties"]["error"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if session in self.prompts and error.name != "MessageAbortedError":
            self.errors.setdefault(session, str(error).partition("\n")[0][:500])

    def quiet(self, sessions: Sequence[str], shown: float | None) -> float:
        """Seconds without a sign of these sessions while watched; `shown`: since the newest one that a read shows."""
        now = anyio.current_time()
        if self._since is None or self.deaf or not self._heard:
            return 0.0
        quiet = now - max([self._since, *(self._signs.get(session, 0.0) for session in sessions)])
        self.deaf = shown is not None and shown + SLACK < quiet
        return 0.0 if self.deaf else quiet

    def tool_for(self, session: str, calls: Sequence[str]) -> float:
        """Seconds for which the newest of these calls has been seen at work; others of its session are forgotten."""
        now, known = anyio.current_time(), self._tools.pop(session, {})
        if not calls:
            return 0.0
        self._tools[session] = {call: known.get(call, now) for call in calls}
        return now - max(self._tools[session].values())


class Shown(NamedTuple):
    """What a read of one session shows."""

    newest: float
    """The latest of its times, in milliseconds since 1970 by the server's clock."""
    tools: tuple[tuple[str, str], ...] = ()
    """Calls at work: id and name of the tool."""


async def read(get: Get, watch: ActivityMonitor, session: str) -> Life:
    """Read a busy session and those below it, and say how alive they are."""
    statuses = await get("/session/status")
    now = provider_errors.server_time(statuses.headers.get("date", ""))
    busy = schema.parse(schema.STATUSES, statuses.content)
    family = [session]  # with the sessions of its subagents and theirs
    for member in family:
        answer = await get(f"/session/{member}/children")
        if answer.status_code == 200 and len(family) < FAMILY:
            children = schema.parse(schema.SESSIONS, answer.content)
            family.extend(child.id for child in children if child.id not in family)
    del family[FAMILY:]
    shown = [found for member in family if member in busy and (found := await _show(get, member))]
    tools = dict(tool for one in shown for tool in one.tools)
    waits = [entry.next for member in family if (entry := busy.get(member)) and entry.next is not None]
    newest = max((one.newest for one in shown), default=None)
    return Life(
        quiet=timedelta(seconds=watch.quiet(family, (now - newest) / 1000 if now and newest else None)),
        tool=next(reversed(tools.values()), None),
        tool_for=timedelta(seconds=watch.tool_for(session, tuple(tools))),
        retry_in=timedelta(milliseconds=max(waits) - now) if waits and now else None,
    )


async def _show(get: Get, session: str) -> Shown | None:
    answer = await get(f"/session/{session}/message?limit={TAIL}")
    if answer.status_code != 200:  # a message that the server cannot show (fact 1): the stream is what is left
        return None
    messages = turns.order(schema.parse(turns.MESSAGES, answer.content))
    parts = messages[-1].parts if messages else ()
    running = (part for part in parts if part.state is not None and part.state.status == "running")
    calls = tuple((part.callID, part.tool) for part in running if part.tool != _SUBAGENT)
    return Shown(max((message.newest for message in messages), default=0.0), calls)


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


async def listen(client: Client, watch: ActivityMonitor, reported: requests.ReportedRequests) -> AsyncIterator[Sign]:
    """Yield `Sign(None)` once the stream stands, then those of sessions; ends when the server closes it.

    The watch is told of every event, and `told` of what is asked. Raises httpx.HTTPError, RunnerUnauthorized or
    RunnerUnavailable where it breaks.
    """
    last, users = dict[str, float](), dict[str, None]()
    try:
        async with httpx_sse.aconnect_sse(client.http, "GET", "/global/event", timeout=SILENCE) as source:
            check(source.response)
            watch.stands()
            yield Sign(None)
            async for event in source.aiter_sse():
                if watch.deaf:
                    return
                kind, match = _TYPE.search(event.data), _SESSION.search(event.data)
                if kind is None or match is None or kind[1] in _IGNORED:
                    continue
                session, now = match[1], anyio.current_time()
                watch.sign(session)
                if kind[1].startswith(_ASKING):
                    reported.hear(kind[1], event.data)
                if kind[1] == "session.error":
                    watch.fail(session, event.data)
                is_persons = _may_be_a_persons(kind[1], event.data, users, watch.prompts.get(session))
                urgent = is_persons or kind[1] in _URGENT
                if urgent or now - last.get(session, -_SPACING) >= _SPACING:
                    last[session] = now
                    yield Sign(session, urgent)
    finally:
        watch.cut()


def _may_be_a_persons(kind: str, event: str, users: dict[str, None], ours: str | None) -> bool:
    """Whether an event shows what somebody wrote; `users`: messages of users that were told of, the newest last."""
    if kind == "message.updated" and _USERS.search(event) and (found := _MESSAGE.search(event)) and found[1] != ours:
        users[found[1]] = None
        if len(users) > _KEPT:
            del users[next(iter(users))]
    of = _OF_MESSAGE.search(event) if kind == "message.part.updated" and users else None
    return of is not None and of[1] in users
