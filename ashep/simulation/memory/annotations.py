"""Annotations in memory, of the issues of a tracker in memory."""

import json
from collections.abc import Mapping

import anyio.lowlevel
from pydantic import JsonValue

from ashep.errors import TrackerRefused
from ashep.ports.annotations import Annotated, Fresh, Rewritten, Titled
from ashep.ports.tracker import IssueText
from ashep.simulation.memory.tracker import MemoryTracker


class MemoryAnnotations:
    """Everything is the tracker's."""

    def __init__(self, tracker: MemoryTracker) -> None:
        self._tracker = tracker

    async def read(self, issue: str) -> Annotated | None:
        """Give a copy of what stands there."""
        await anyio.lowlevel.checkpoint()
        text = self._tracker.stored(issue)
        return None if text is None else Annotated(text.acceptance, _copy(self._tracker.metadata(issue)))

    async def listed(self, status: str | None) -> tuple[Titled, ...]:
        """List the issues."""
        await anyio.lowlevel.checkpoint()
        found = [
            Titled(issue, one.title, one.status, _copy(self._tracker.metadata(issue)))
            for issue, one in sorted(self._tracker.everything().items())
            if status in ("all", one.status) or (status is None and one.status != "closed")
        ]
        return tuple(found)

    async def create(self, fresh: Fresh) -> bool:
        """Add it."""
        await anyio.lowlevel.checkpoint()
        if self._tracker.stored(fresh.id) is not None:
            return False
        text = IssueText(description=fresh.description, acceptance=fresh.acceptance)
        kind, priority, actor = fresh.type, fresh.priority, self._tracker.actor
        self._tracker.add(fresh.title, id=fresh.id, type=kind, priority=priority, text=text, actor=actor)
        self._tracker.metadata(fresh.id).update(_copy(fresh.metadata))
        return True

    async def rewrite(self, issue: str, words: Rewritten) -> None:
        """Replace it."""
        await self._check(issue)
        self._tracker.person_rewrites(
            issue,
            self._tracker.actor,
            words.acceptance,
            title=None if words.title is None else words.title.strip(),
            description=words.description,
            priority=words.priority,
        )

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Merge the keys."""
        assert "ashep" not in values, "the stamp is the daemon's"
        await self._check(issue)
        self._tracker.metadata(issue).update(_copy(values))

    async def _check(self, issue: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self._tracker.stored(issue) is None:
            raise TrackerRefused(f"there is no issue {issue}")


def _copy(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return json.loads(json.dumps(dict(values)))
