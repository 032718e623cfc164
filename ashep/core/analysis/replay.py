"""Exact replay: every decision derived again from the facts alone, and compared with what the journal says.

A batch holds what was told (facts that no rule makes) and what followed from it: decisions, and commands. What was told
is handed to `step` once more, under the World as it was; what follows now must be what followed then, in order, with
its numbers, reasons and keys - the decisions not to start an issue included. Decisions that were made under other rules
(`RULES`, which enters with the `Adopted` facts of each start) are folded and counted, not judged.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, get_args

from ashep.core.facts import commands, records, resources
from ashep.core.facts.vocabulary import DECISIONS, Fact
from ashep.core.reconcile.dispatcher import Dispatcher
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES, step
from ashep.core.state.world import World

DERIVED = frozenset((*DECISIONS, *get_args(commands.Command)))
"""The types of records that the core makes; all others were told."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A record that is not derived again as it stands: another one is, or none; or one that is derived was not made."""

    seq: int
    """Where it stands in the journal, or would."""
    recorded: records.Entry | None
    derived: records.Entry | None

    @property
    def issue(self) -> str | None:
        """The issue that it is about, where it is about one."""
        entry = self.recorded or self.derived
        return getattr(entry.body, "issue", None) if entry else None

    def as_json(self) -> dict[str, Any]:
        """Give it as plain JSON data."""
        recorded = records.to_json(self.recorded) if self.recorded else None
        derived = records.to_json(self.derived) if self.derived else None
        return {"seq": self.seq, "issue": self.issue, "recorded": recorded, "derived": derived}


class Replay:
    """One pass over the batches of a journal, in order.

    It begins at the World that the journal begins with. `issue`: only what is about this issue is counted and compared;
    everything is derived all the same, for the others decide what is left for it.
    """

    def __init__(self, world: World | None = None, issue: str | None = None) -> None:
        self.world = world or World()
        self.issue = issue
        self._dispatcher = Dispatcher()
        self.covers = 1
        """The first sequence number of the journal that is there."""
        self.decisions = 0
        """Decisions and commands that were derived again."""
        self.folded: Counter[int] = Counter()
        """Decisions and commands that were made under other rules, by the number of those."""

    def batch(self, entries: Sequence[records.Entry]) -> list[Difference]:
        """Go on by one batch; what is recorded is what the next one begins with, whatever was derived."""
        told = [entry.body for entry in entries if type(entry.body) not in DERIVED]
        decided = [entry.body for entry in entries if type(entry.body) in DERIVED]
        made = sum(not self.issue or getattr(body, "issue", None) == self.issue for body in decided)
        if len(told) == len(entries) and all(isinstance(fact, resources.JournalPruned) for fact in told):
            self._fold(entries)  # the owner's act, written while no daemon ran: nobody took a turn
            return []
        rules = next((fact.rules for fact in told if isinstance(fact, resources.Adopted)), self.world.rules)
        if rules != RULES:
            self.folded[rules] += made
            self._fold(entries)
            return []
        self.decisions += made
        world, derived = derive(self.world, told, entries, self._dispatcher)
        if derived == list(entries):
            self.world = world
            return []
        self._fold(entries)
        return [difference for difference in differences(entries, derived) if self.issue in (None, difference.issue)]

    def _fold(self, entries: Iterable[records.Entry]) -> None:
        for entry in entries:
            self.world = evolve(self.world, entry)


def derive(
    world: World, told: Iterable[Any], entries: Sequence[records.Entry], dispatcher: Dispatcher | None = None
) -> tuple[World, list[records.Entry]]:
    """Take the turn of a batch once more: the same facts, at the same time, under the same numbers."""
    facts: list[Fact] = list(told)
    first = entries[0]
    # the first batch of a start looks at every issue (`Shepherd.running`), and only there a daemon starts
    everything = any(isinstance(fact, resources.DaemonStarted) for fact in facts)
    return step(world, facts, first.at, first.seq, everything=everything, dispatcher=dispatcher)


def differences(recorded: Sequence[records.Entry], derived: Sequence[records.Entry]) -> Iterator[Difference]:
    """Line up two accounts of a turn by what they say; their numbers part where one says more than the other."""
    old, new = [_dump_entry(entry) for entry in recorded], [_dump_entry(entry) for entry in derived]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for was, now in zip_longest(recorded[i1:i2], derived[j1:j2]):
            seq = was.seq if was else recorded[min(i2, len(recorded) - 1)].seq
            yield Difference(seq, was, now)


def _dump_entry(entry: records.Entry) -> str:
    data = records.to_json(entry)
    del data["seq"]
    return json.dumps(data, sort_keys=True)
