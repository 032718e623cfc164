"""Drawing pass over the journal for a picture: what is to be drawn, what that touches, and the World on the way."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from ashep.core.facts import records, resources
from ashep.core.reconcile.evolve import evolve
from ashep.core.state import providers
from ashep.core.state.indexes import turn
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World
from ashep.journal.reader import START, Position

CHUNK = 1000
"""Entries that are written at a time while the database catches up, so that memory stays flat."""

Progress = Callable[[int, int], None]
"""Is told at every chunk up to which number it is drawn, and up to which it will be. It may raise to end that."""

EVERYWHERE = (
    resources.Adopted, resources.BudgetReached, resources.ClockJumped, resources.DaemonStarted,
    resources.ProviderRecovered, resources.ProviderRefused, resources.RunnerSeen, resources.WorkResumed,
)  # fmt: skip
"""Facts about no issue that change how issues are shown: due times, whether a run's server answers, and what
an answer leads to."""


class JournalSource(Protocol):
    """What the store needs of the journal."""

    @property
    def instance(self) -> str | None:
        """The journal's id."""
        ...

    @property
    def position(self) -> Position:
        """The end of the last durable batch."""
        ...

    @property
    def begins(self) -> int:
        """What precedes this number was pruned; 0: nothing was."""
        ...

    def holds(self, position: Position, /) -> bool:
        """Whether the journal goes on from this position."""
        ...

    def batches(self, after: Position, /) -> Iterator[tuple[Position, Sequence[records.Entry]]]:
        """The durable batches behind a position, each with its end."""
        ...

    def load_world(self, until: Position, /) -> tuple[World, Position]:
        """A World that is known without folding, and its place, which is not behind this position."""
        ...


class Drawing:
    """The entries behind one position up to another."""

    def __init__(
        self, source: JournalSource, after: Position, until: Position, world: World | None, turn: str | None = ""
    ) -> None:
        """Take `world` as the one at `until`; None: it is folded in the same pass, from what is known without that.

        `turn`: whose turn it was to land, where it was drawn last; empty: nobody knows.
        """
        self._source, self._after, self._until = source, after, until
        self._world, self._known = (world, until) if world is not None else source.load_world(until)
        self._issues: set[str] = set()
        self._everywhere, self._turn = False, turn

    def chunks(self, progress: Progress) -> Iterator[list[records.Entry]]:
        """Give the entries, some at a time."""
        entries: list[records.Entry] = []
        passed = 0
        for end, batch in self._source.batches(min(self._after, self._known, key=lambda position: position.seq)):
            if end.seq > self._until.seq:
                break
            if end.seq > self._known.seq:
                for entry in batch:
                    self._world = evolve(self._world, entry)
            if end.seq > self._after.seq:
                for entry in batch:
                    self._touch(entry.body)
                entries += batch
            passed += len(batch)
            if passed >= CHUNK:
                progress(end.seq, self._until.seq)
                if entries:
                    yield entries
                entries, passed = [], 0
        if entries:
            yield entries

    def _touch(self, body: object) -> None:
        is_timer = isinstance(body, resources.TimerDue)
        timer, issue = split_timer(body.key) if is_timer else ("", getattr(body, "issue", None))
        if timer in (providers.TIMER, providers.PROOF) or (issue is None and isinstance(body, EVERYWHERE)):
            self._everywhere = True
        elif issue is not None:
            self._issues.add(issue)

    def end(self) -> tuple[World, Iterable[str]]:
        """Give the World at the end, once `chunks` has come there, and the issues that may be shown otherwise now."""
        if self._after == START:  # of some of them nothing else may be left
            return self._world, list(self._world.flows)
        touched = self._issues.union(self._world.indexes.unclosed) if self._everywhere else self._issues
        if turn(self._world.indexes) != self._turn:  # the others wait behind somebody else
            touched = touched.union(issue for _, _, issue in self._world.indexes.landings)
        return self._world, [issue for issue in touched if issue in self._world.flows]
