"""Effects on issues of sources, for `ashep.daemon.effects.executor`: they are mirrored, spoken to and closed.

Each is harmless to repeat: an issue is found by its id and note, a comment by its mark.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio import to_thread
from pydantic import JsonValue

from ashep.core.facts.sources import (
    CloseAtSource,
    ClosedAtSource,
    IssueMirrored,
    MirrorIssue,
    SaidAtSource,
    SourceCommand,
)
from ashep.core.facts.tracker import Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.admission import is_other
from ashep.core.policy.settings import Settings
from ashep.core.policy.sources import Sources
from ashep.core.runs.source_comments import mark
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.errors import AshepError, ForgeRefused, TrackerRefused
from ashep.ports.journal import Blobs
from ashep.ports.sources import Source
from ashep.ports.tracker import Annotations, IssueDraft, IssuePatch, Tracker, Update

NOTE = "source"
"""The key in an issue's metadata."""

MOST_TITLE, MOST_TEXT = 200, 60_000

CLOSING = 2.0
"""Seconds that connections get to be closed."""


@dataclass(frozen=True, slots=True)
class SourceAdapters:
    """The sources of a project, by name, and what writes their issues into the tracker."""

    sources: Mapping[str, Source]
    annotations: Annotations


Make = Callable[[Settings], Awaitable[SourceAdapters]]


@dataclass
class SourceEffects:
    """Carries out what is asked about issues of sources. `make` gives the adapters; None: there are none."""

    tracker: Tracker
    blobs: Blobs
    make: Make | None = None
    _current: tuple[Sources, SourceAdapters] | None = None
    _making: anyio.Lock = field(default_factory=anyio.Lock)

    async def adapters(self, settings: Settings) -> SourceAdapters:
        """Give the adapters, as the settings say. Raises `AshepError`."""
        if self.make is None:
            raise AshepError("nothing here can reach sources of issues")
        async with self._making:
            if self._current is None or self._current[0] != settings.sources:
                await self.aclose()
                self._current = (settings.sources, await self.make(settings))
            return self._current[1]

    async def carry_out(self, command: SourceCommand, world: World) -> list[Fact]:
        """Do it. Raises `AshepError`."""
        adapters = await self.adapters(world.settings)
        if isinstance(command, MirrorIssue):
            await self._mirror(command, world, adapters.annotations)
            return [IssueMirrored(command.issue, command.key)]
        source = adapters.sources.get(command.source)
        if source is None:
            raise ForgeRefused(f"{command.source} is no source any more")
        if isinstance(command, CloseAtSource):
            await source.close(command.number)
            return [ClosedAtSource(command.issue, command.key)]
        comment = await source.say(command.number, command.text, mark(command.issue, command.name), command.comment)
        number = int(comment.id.rpartition("/")[2])
        return [SaidAtSource(command.issue, command.key, command.name, number, comment.moment)]

    async def _mirror(self, command: MirrorIssue, world: World, annotations: Annotations) -> None:
        issue, view = command.issue, command.view
        words = json.loads(await to_thread.run_sync(self.blobs.text, command.text))
        comment = await to_thread.run_sync(self.blobs.text, command.comments) if command.comments else ""
        title = " ".join(clean(words["title"]).split())[:MOST_TITLE] or f"#{view.number}"
        end = "".join(f"\n\n{part}" for part in (f"({view.url})", comment) if part)  # answers reach agents in any case
        description = f"{clean(words['body']).strip()[: MOST_TEXT - len(end)]}{end}".strip()
        identity: dict[str, JsonValue] = {name: getattr(view, name) for name in ("source", "number", "url", "key")}
        note: dict[str, JsonValue] = {NOTE: identity}
        fresh = IssueDraft(issue, title, description, "task", 2, "", note, external_ref=view.url)
        if not await annotations.create(fresh):
            annotated = await annotations.read(issue)
            note_seen = annotated.metadata.get(NOTE) if annotated is not None else None
            values = note_seen if isinstance(note_seen, dict) else {}
            number, key = values.get("number"), str(values.get("key") or "")
            if not isinstance(number, int) or is_other(view, str(values.get("source")), number, key):
                raise TrackerRefused(f"there is an issue {issue}, which is not that of {view.url}")
            await annotations.rewrite(issue, IssuePatch(title, description, metadata=note))
        if command.closed is not None:
            await self._set_closed(issue, world, closed=command.closed)

    async def _set_closed(self, issue: str, world: World, *, closed: bool) -> None:
        """Close or open it in the tracker, where it is nobody's."""
        issue_seen = await self.tracker.issue(issue)
        if issue_seen is None or (issue_seen.issue.status == "closed") == closed:
            return
        view, status = issue_seen.issue, "closed" if closed else "open"
        if closed and view.assignee not in (None, self.tracker.actor):
            return
        stamp = view.stamp or Stamp(world.instance, world.seq, actor=self.tracker.actor)
        await self.tracker.update(Update(issue, view.status, view.assignee, stamp, status, None))

    async def aclose(self) -> None:
        """Let go of connections."""
        adapters, self._current = self._current, None
        if adapters is not None:
            with anyio.move_on_after(CLOSING, shield=True):
                for source in adapters[1].sources.values():
                    await source.aclose()
