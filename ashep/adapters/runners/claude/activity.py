"""Signs of life of turns: what grows in their files, what they ask, who writes, and what their tools compute.

Nothing tells of that by itself, so it is looked at several times a second while a turn runs, and not at all while none
does. Pings of a provider show nowhere: a turn that hangs is silent, however alive its connection
(facts/claude-code.md 33). What was not watched does not count as silence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from ashep.ports.runner import Sign

LOOK = 0.2
"""Seconds between looks."""

IDLE = 5.0
"""Seconds between looks whether there is a turn, where somebody else may have begun one."""

TOOLS = 5.0
"""Seconds between looks at the processor time of a turn's tools."""

_WORKS = 0.05  # seconds of processor time in that, above which a tool is at work
_SPACING = 1.0


@dataclass(frozen=True, slots=True)
class SessionActivity:
    """What a look at a session with a turn showed."""

    session: str
    running: bool
    size: int
    """Bytes of its output and transcripts."""
    asks: tuple[str, ...]
    people: tuple[str, ...]
    worked: float | None = None
    """Seconds of its tools, where that was looked at."""


@dataclass(slots=True)
class _Last:
    seen: SessionActivity
    at: float
    """When it last showed a sign."""
    told: float = float("-inf")
    worked: float = 0.0


@dataclass(slots=True)
class ActivityMonitor:
    """When which session last showed a sign, and since when that is watched: on the clock that only grows."""

    since: float | None = None
    """Since when somebody follows; None: nobody does."""
    _last: dict[str, _Last] = field(default_factory=dict[str, _Last])
    _tools: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def take(self, seen: Sequence[SessionActivity]) -> list[Sign]:
        """Take in what a look showed, and give the signs that follow."""
        now, signs = anyio.current_time(), list[Sign]()
        for one in seen:
            last = self._last.get(one.session)
            if last is None:
                last = self._last[one.session] = _Last(one, now, worked=one.worked or 0.0)
                urgent, stirs = bool(one.asks or one.people or not one.running), True
            else:
                ended, before = last.seen.running and not one.running, last.seen
                urgent = ended or bool({*one.asks} - {*before.asks} or {*one.people} - {*before.people})
                stirs = one.size != before.size or urgent
                if one.worked is not None:
                    stirs, last.worked = stirs or one.worked - last.worked > _WORKS, one.worked
                last.seen = one
            if stirs:
                last.at = now
            if urgent or (stirs and now - last.told >= _SPACING):
                last.told = now
                signs.append(Sign(one.session, urgent))
        for gone in self._last.keys() - {one.session for one in seen if one.running}:
            del self._last[gone]
        return signs

    def sent(self, session: str) -> None:
        """A prompt was given to it: from then on it may be quiet."""
        if (last := self._last.get(session)) is not None:
            last.at = anyio.current_time()

    def quiet(self, session: str) -> float:
        """Seconds for which a session showed nothing while that was watched."""
        last = self._last.get(session)
        return 0.0 if self.since is None or last is None else anyio.current_time() - max(self.since, last.at)

    def tool_for(self, session: str, call: str | None) -> float:
        """Seconds for which a call has been seen at work."""
        if call is None:
            self._tools.pop(session, None)
            return 0.0
        now, known = anyio.current_time(), self._tools.get(session)
        if known is None or known[0] != call:
            known = self._tools[session] = call, now
        return now - known[1]
