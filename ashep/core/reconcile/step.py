"""One turn of the shepherd: facts in, the batch to be made durable out. `step` composes the rules; it adds none."""

from collections.abc import Iterable
from datetime import datetime

from ashep.core.facts.commands import Command
from ashep.core.facts.issues import IssueAdopted, IssueHeld
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import AccountAudited, TimerDue
from ashep.core.facts.runs import PromptPrepared, PromptSent, QuotaSeen, SessionOpened, TurnBegun, TurnSeen
from ashep.core.facts.tracker import CommentPosted
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.decide import decide
from ashep.core.reconcile.dispatch import dispatch_all
from ashep.core.reconcile.dispatcher import Dispatcher
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.outstanding import outstanding
from ashep.core.reconcile.sources import lacking, late_stops
from ashep.core.resources.budgets import fused
from ashep.core.resources.notices import messages, plan_notices
from ashep.core.state.indexes import turn
from ashep.core.state.notices import RECORDS
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World

RULES = 6
"""The number of the core's rules: a replay derives again the decisions that were made under the present number."""

QUIET = (
    SessionOpened, PromptPrepared, PromptSent, TurnBegun, CommentPosted, TurnSeen, QuotaSeen, IssueHeld,
    AccountAudited, *RECORDS,
)  # fmt: skip
"""Facts that change no input of `dispatch`; what follows from them (a RunEnded, say) is another fact."""


class Batch:
    """The entries of one turn, with the World as it is after each."""

    def __init__(self, world: World, time: datetime, first: int, dispatcher: Dispatcher | None) -> None:
        self.world, self.at, self.next, self.dispatcher = world, max(time, world.now), first, dispatcher
        self.entries: list[Entry] = []
        self.touched: set[str] = set()

    def add(self, body: Fact | Command) -> World:
        """Fold one more entry; the World before it is returned."""
        before = self.world
        entry = Entry(self.next, self.at, body)
        self.world = evolve(before, entry)
        self.next += 1
        self.entries.append(entry)
        if self.dispatcher is not None:
            self.dispatcher.note(before, entry)
        issue = getattr(body, "issue", None)
        if isinstance(issue, str):
            self.touched.add(issue)
        return before

    def follow(self, fact: Fact) -> None:
        """Fold a fact and everything that follows from it, at once and in order."""
        before = self.add(fact)
        for decision in (*decide(before, self.world, fact), *plan_notices(before, self.world, fact)):
            self.follow(decision)

    def follow_all(self, facts: Iterable[Fact]) -> bool:
        """Fold what was dispatched; whether issues were adopted."""
        adopted = False
        for fact in facts:
            self.follow(fact)
            adopted |= isinstance(fact, IssueAdopted)
        return adopted


def step(
    world: World,
    facts: Iterable[Fact],
    time: datetime,
    first: int,
    *,
    everything: bool = False,
    dispatcher: Dispatcher | None = None,
) -> tuple[World, list[Entry]]:
    """Fold facts, decide, dispatch once, and add the commands that are lacking; `first` is the first entry's number.

    `everything` looks for lacking commands at every issue: once after a start. With a `dispatcher`, which remembers the
    turns before, the same comes out at a cost that does not grow with the number of issues.
    """
    if dispatcher is not None:
        dispatcher.begin(world)
    batch = Batch(world, time, first, dispatcher)
    for fact in facts:
        batch.follow(fact)
    for fact in late_stops(batch.world, batch.world.sources if everything else batch.touched):
        batch.follow(fact)
    if everything or any(not isinstance(entry.body, QUIET) for entry in batch.entries):
        start = dispatcher.dispatch if dispatcher else dispatch_all
        adopted = batch.follow_all(start(batch.world))
        if adopted:  # what was taken in wants a run now
            batch.follow_all(start(batch.world))
    issues = batch.touched | {
        split_timer(entry.body.key)[1] for entry in batch.entries if isinstance(entry.body, TimerDue)
    }
    if everything or world.seen is not batch.world.seen:  # what is closed, and has come to rest, lacks nothing
        issues |= {*batch.world.indexes.unclosed, *batch.world.indexes.busy}
    if (next_to_land := turn(batch.world.indexes)) is not None:
        issues.add(next_to_land)  # whoever was before it in the queue may be gone, or wait
    for issue in sorted(issues):  # maps of the World are in no order that another process would repeat
        for command in outstanding(batch.world, issue):
            batch.add(fused(batch.world, command))
    for issue in sorted({*batch.world.sources} if everything else batch.touched):
        for command in lacking(batch.world, issue):
            batch.add(command)
    for message in messages(batch.world):
        batch.add(message)
    if dispatcher is not None:
        dispatcher.end(batch.world)
    return batch.world, batch.entries
