"""Bugs that are planted, one at a time: the laws must find each of them, or they prove nothing.

Each is a context in which ashep's code is another one: a fault that somebody could write by mistake.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from ashep.adapters.beads.tracker import BeadsTracker
from ashep.adapters.runners.opencode.turns import Message
from ashep.core.delivery import landing as delivery_landing
from ashep.core.delivery import pull_requests
from ashep.core.facts.commands import Command, IssueCommand, SendPrompt
from ashep.core.facts.delivery import PullRequestMerged, PullRequestSeen
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.runs import RunEnded, TurnSeen
from ashep.core.facts.vocabulary import Fact, TreeLeft
from ashep.core.issues import fold, human_overrides, routing
from ashep.core.reconcile import attribution, decide, dispatch, effect_failures, observe, outstanding
from ashep.core.reconcile.observe import disk_read
from ashep.core.reconcile.step import step
from ashep.core.resources import budgets
from ashep.core.runs import requests, turns
from ashep.core.state.delivery import Pull
from ashep.core.state.flow import Flow
from ashep.core.state.indexes import NO_QUEUE
from ashep.core.state.run import NO_SIGN, Run, with_watch
from ashep.core.state.world import World
from ashep.daemon.effects import pulls as forge_effects
from ashep.daemon.effects.executor import Effects
from ashep.daemon.lease_heartbeat import Heartbeat
from ashep.daemon.leases import Leases
from ashep.daemon.pull_request_poller import PullWatch
from ashep.daemon.shepherd import Shepherd
from ashep.journal import writer
from ashep.journal.framing import COMMIT, HEADER, BadLine, parse
from ashep.journal.reader import Position, Scan, open_file
from ashep.ports.tracker import Seen
from chaos.torture.chaos import Kinds
from tests.memory import MemoryForge

Planted = Callable[[], AbstractContextManager[object]]


def random_message_id() -> AbstractContextManager[object]:
    """A prompt that is sent again gets a new id."""
    original = Effects._send  # pyright: ignore[reportPrivateUsage]

    async def send(self: Effects, command: SendPrompt, world: World, probe: bool) -> list[Fact]:
        if probe:
            digits = f"{random.getrandbits(96):024x}"
            head = command.message_id[4:16]
            command = replace(command, message_id=f"msg_{head}{digits[:14]}", part_id=f"prt_{head}{digits[:14]}")
        return await original(self, command, world, probe)

    return patch.object(Effects, "_send", send)


def no_fsync() -> AbstractContextManager[object]:
    """The journal writes, and leaves the rest to the system."""
    return patch.object(writer, "_sync", lambda file: None)


def effect_before_intent() -> AbstractContextManager[object]:
    """Commands are carried out while their batch is still being written."""

    async def turn(self: Any, told: Iterable[Any], *, everything: bool = False) -> None:
        facts: list[Any] = []
        for one in told:
            seen: Any = one(self.world) if callable(one) else [one]
            facts += seen
        facts = [*disk_read(self.world, self._journal.room()), *facts]
        if facts or everything:
            facts = [*self._jumped(), *facts]
            at, dispatcher = self.get_time(), self._dispatcher
            world, entries = step(
                self.world, facts, at, self._journal.next_seq, everything=everything, dispatcher=dispatcher
            )
            self.world = world
            for entry in entries:
                if isinstance(entry.body, Command):
                    self._start(entry.body, probe=False)
            await self._journal.append(entries)
            for picture in self._pictures:
                picture(entries, world)

    return patch.object(Shepherd, "_turn", turn)


def probe_skipped() -> AbstractContextManager[object]:
    """After a crash or a failure an effect is simply done again."""
    original = Effects._do  # pyright: ignore[reportPrivateUsage]

    def do(self: Effects, command: IssueCommand, world: Callable[[], World], probe: bool) -> Any:
        return original(self, command, world, False)

    return patch.object(Effects, "_do", do)


def retry_count_lost() -> AbstractContextManager[object]:
    """Every failure is taken for the first one."""
    original = routing._try_again  # pyright: ignore[reportPrivateUsage]

    def try_again(world: World, flow: Flow, *more: Any) -> list[Fact]:
        return original(world, replace(flow, failures=1), *more)

    return patch.object(routing, "_try_again", try_again)


def unguarded_transition() -> AbstractContextManager[object]:
    """A transition is written whatever the issue has become."""
    original = BeadsTracker._update  # pyright: ignore[reportPrivateUsage]

    async def update(self: BeadsTracker, issue: str, wanted: Any, *flags: str, **more: Any) -> Seen:
        return await original(self, issue, wanted, *(flag for flag in flags if not flag.startswith("--if-")), **more)

    return patch.object(BeadsTracker, "_update", update)


def stale_read_believed() -> AbstractContextManager[object]:
    """A read is believed whenever it began."""
    return _everywhere("stale", lambda flow, as_of: False, fold, attribution, effect_failures, observe)


def lease_ignored() -> AbstractContextManager[object]:
    """Once claimed, an issue is taken for ours: no effect asks after the lease, and no heartbeat hears a no."""

    async def assure(self: Leases, issue: str) -> None:
        return None

    async def beat(self: Heartbeat, issue: str) -> None:
        self._leases.confirm(issue, self._leases.moment())  # pyright: ignore[reportPrivateUsage]

    return _all(patch.object(Leases, "assure", assure), patch.object(Heartbeat, "_beat", beat))


def commit_record_ignored() -> AbstractContextManager[object]:
    """Every good line of the journal counts, also those of a batch that was not written to its end."""

    def read_file(self: Any, name: str) -> Iterator[tuple[int, Position, list[Any]]]:
        with open_file(self.folder, name) as file:
            self._begin(file, name)
            start = at = self.position.offset
            pending: list[Any] = []
            file.seek(start)
            for raw in file:
                try:
                    record = parse(raw)
                except BadLine:
                    break
                at += len(raw)
                self.digest.update(raw)
                self.position = Position(name, at, record["seq"], raw[-9:-1].decode())
                if record["type"] in (HEADER, COMMIT):
                    if pending:
                        yield start, self.position, pending
                    start, pending = at, []
                else:
                    pending.append(record)
            if pending:
                yield start, self.position, pending
            self.torn = file.seek(0, 2) - at
        self._previous = name

    return patch.object(Scan, "_file", read_file)


def tool_calls_taken_for_the_end() -> AbstractContextManager[object]:
    """An answer that has a `finish` is the last one of its turn."""

    def is_ended(self: Message) -> bool:
        return self.info.error is not None or self.info.finish not in {None, "unknown"}

    return patch.object(Message, "is_ended", property(is_ended))


def clock_in_a_hold() -> AbstractContextManager[object]:
    """A hold depends on what time it is on the wall."""

    def held(flow: Flow, hold: budgets.Hold) -> list[Fact]:
        code, why, *_ = hold
        # never the same twice: by whether it is late, say, the replay would be equal by chance in a story of few holds
        return [] if flow.code == code else [IssueHeld(flow.issue.id, code, f"{why} (at {time.time_ns()})")]

    return patch.object(dispatch, "_hold", held)


def question_without_an_end() -> AbstractContextManager[object]:
    """The time for an answer is up, and nothing comes of it."""
    return patch.object(requests, "expired", lambda world, flow: [])


def agent_taken_for_a_person() -> AbstractContextManager[object]:
    """Who wrote an answer is not looked at."""
    return patch.object(human_overrides, "AGENT_ACTORS", ("nobody-",))


def moves_unjudged() -> AbstractContextManager[object]:
    """Who changed an issue is not looked at: what it shows is followed."""
    return patch.object(attribution, "_differences", lambda *_: iter(()))


@contextmanager
def _all(*contexts: AbstractContextManager[object]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


@contextmanager
def _everywhere(name: str, value: object, *modules: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch.object(module, name, value))
        yield


def _kinds(words: str) -> Kinds:
    return frozenset(words.split())


def pause_forgotten() -> AbstractContextManager[object]:
    """A pause keeps no phase of an issue from its run."""
    return patch.object(dispatch, "_paused", lambda *_: None)


def budget_forgotten() -> AbstractContextManager[object]:
    """A day's limit is told, and keeps nothing from starting."""
    return patch.object(budgets, "used_up", lambda _: None)


def close_before_landing() -> AbstractContextManager[object]:
    """The close does not wait until the work is where it is to be."""
    return patch.object(outstanding, "may_close", lambda _: True)


def landing_unverified() -> AbstractContextManager[object]:
    """What lands is what the branch was found to be, whatever the base is by now."""
    return patch.object(routing, "is_checked", lambda *_: False)


def landing_out_of_turn() -> AbstractContextManager[object]:
    """Whoever is finished lands at once."""

    def step(world: World, flow: Flow, landing: Any) -> Any:
        only = NO_QUEUE.insert((0, landing.seq, flow.issue.id))
        return original(replace(world, indexes=replace(world.indexes, landings=only)), flow, landing)

    original = delivery_landing._landing_step  # pyright: ignore[reportPrivateUsage]
    return patch.object(delivery_landing, "_landing_step", step)


def push_by_force() -> AbstractContextManager[object]:
    """Whatever stands at the remote, the branch is set to our commit."""
    return patch.object(MemoryForge, "_ours", lambda *_: True)


def two_pull_requests() -> AbstractContextManager[object]:
    """Nobody looks whether a pull request stands already."""

    async def find(self: MemoryForge, *_: str) -> None:
        return None

    return patch.object(MemoryForge, "find", find)


def push_taken_for_ours() -> AbstractContextManager[object]:
    """Whose commit is the newest of a pull request is not looked at."""
    return patch.object(Pull, "theirs", property(lambda _: False))


def closed_taken_for_merged() -> AbstractContextManager[object]:
    """A pull request that is open no more counts as merged."""

    def seen(world: World, earlier: Flow, flow: Flow, fact: Any) -> list[Fact]:
        if fact.state == "closed" and flow.reviewed:
            return [PullRequestMerged(fact.issue, fact.number, "", "it is over")]
        return original(world, earlier, flow, fact)

    original = pull_requests.follow_pull_request
    return patch.dict(decide.RULES, {PullRequestSeen: seen})


def merged_is_merged() -> AbstractContextManager[object]:
    """Of a pull request that is merged nobody asks with which commit."""

    async def never(*_: object) -> None:
        return None

    def seen(world: World, earlier: Flow, flow: Flow, fact: Any) -> list[Fact]:
        return original(world, earlier, flow, replace(fact, head=""))

    original = pull_requests.follow_pull_request
    return _all(patch.dict(decide.RULES, {PullRequestSeen: seen}), patch.object(forge_effects, "_merged_before", never))


def old_results_believed() -> AbstractContextManager[object]:
    """What CI said once of a pull request counts for every commit that follows."""

    def pushed(self: Any, number: int, ci: str, *failing: str) -> None:
        if ci != "none" or self._states[number].ci != "failing":
            original(self, number, ci, *failing)  # pyright: ignore[reportArgumentType]

    original = MemoryForge.checks
    return patch.object(MemoryForge, "checks", pushed)


def remarks_heard_again() -> AbstractContextManager[object]:
    """What people said before the last push is taken for new."""
    original = PullWatch._build_fact  # pyright: ignore[reportPrivateUsage]

    async def seen(self: PullWatch, issue: str, pull: Pull, *more: Any) -> Any:
        return await original(self, issue, replace(pull, heard=frozenset()), *more)

    return patch.object(PullWatch, "_build_fact", seen)


def pushed_unverified() -> AbstractContextManager[object]:
    """A branch is pushed without having been looked into."""
    return patch.object(routing, "is_checked", lambda *_: False)


def branch_for_all() -> AbstractContextManager[object]:
    """Whoever shares a branch may begin on it at any time."""
    return patch.object(dispatch, "branch_taken", lambda *_: None)


def sealed_for_ever() -> AbstractContextManager[object]:
    """A tree that cannot be sealed parks its issue, and is sealed again and again."""

    def failed(earlier: Flow, flow: Flow, *more: Any) -> list[Fact]:
        return [fact for fact in original(earlier, flow, *more) if not isinstance(fact, TreeLeft)]

    original = effect_failures._tree_failed  # pyright: ignore[reportPrivateUsage]
    return patch.object(effect_failures, "_tree_failed", failed)


def abort_taken_for_failure() -> AbstractContextManager[object]:
    """A turn that ashep stopped out of doubt has failed."""

    def failed(world: World, flow: Flow, run: Run, why: str) -> list[Fact]:
        return [RunEnded(flow.issue.id, run.id, "failed", why, error="MessageAbortedError")]

    return patch.object(turns, "_end_doubted", failed)


def abort_taken_for_a_person() -> AbstractContextManager[object]:
    """That ashep asked for an abort is forgotten."""
    original = turns._finished  # pyright: ignore[reportPrivateUsage]

    def finished(world: World, flow: Flow, run: Run, fact: TurnSeen) -> list[Fact]:
        return original(world, flow, replace(with_watch(run, stopping=False), abort_unseen=False), fact)

    return patch.object(turns, "_finished", finished)


def patience_does_not_grow() -> AbstractContextManager[object]:
    """Each prompt has 30 s to show a sign of a turn, however often none did."""
    return _everywhere("sign_patience", lambda doubts: NO_SIGN, turns, dispatch)


# A stale read that is believed spoils the account, too: somebody "set" what ashep wrote.
BUGS: dict[str, tuple[Planted, Kinds, tuple[str, ...]]] = {
    "a late abort is the agent's failure": (
        abort_taken_for_failure,
        _kinds("turn_late abort_lost turn_tools turn_waits turn_compacts"),
        ("an abort is no agent's failure",),
    ),
    "a late abort is a person's": (
        abort_taken_for_a_person,
        _kinds("turn_late abort_lost turn_tools turn_waits turn_compacts"),
        ("nobody is said to have taken a session",),
    ),
    "patience that does not grow": (
        patience_does_not_grow, _kinds("turn_late"), ("what is slow is not given up",),
    ),
    "random message id at retry": (
        random_message_id,
        _kinds("crash crash_again server_forgets"),
        ("no effect without its intent", "each prompt is delivered once"),
    ),
    "no fsync": (no_fsync, _kinds("crash power"), ("no durable fact is lost",)),
    "effect before intent": (
        effect_before_intent,
        _kinds("crash crash_again bd_orphan"),
        ("no effect without its intent", "each prompt is delivered once", "no durable fact is lost"),
    ),
    "probe skipped": (
        probe_skipped,
        _kinds("crash crash_again server_forgets bd_killed_late"),
        ("each prompt is delivered once", "no comment is posted twice"),
    ),
    "retry count lost": (retry_count_lost, _kinds("agent_fails"), ("attempts have a bound",)),
    "unguarded transition": (
        unguarded_transition,
        _kinds("people_status people_close people_assign people_between"),
        ("no act of a person is overwritten",),
    ),
    "stale read believed": (
        stale_read_believed,
        _kinds("bd_slow hints_late order agent_rejects agent_fails agent_creates people_add"),
        ("nobody is blamed for ashep's own acts", "the account is true"),
    ),
    "lease ignored": (
        lease_ignored,
        _kinds("rival paused agent_babbles turn_tools"),
        ("another daemon's issue is not touched",),
    ),
    "commit record ignored": (
        commit_record_ignored,
        _kinds("crash crash_again power"),
        ("a batch counts whole or not at all",),
    ),
    "tool-calls taken for the end": (
        tool_calls_taken_for_the_end,
        _kinds("server_killed turn_tools turn_dies"),
        ("a turn is finished when it ended",),
    ),
    "a question without an end": (
        question_without_an_end, _kinds("turn_asks"),
        ("nothing waits longer than its bound", "everything comes to rest"),
    ),
    "an agent taken for a person": (
        agent_taken_for_a_person,
        _kinds("turn_asks agent_answers"),
        ("an agent answers for nobody",),
    ),
    "an agent's change is followed": (
        moves_unjudged,
        _kinds("agent_moves turn_tools agent_rejects"),
        ("an agent moves nothing",),
    ),
    "a hold that depends on a clock": (
        clock_in_a_hold, _kinds("people_add people_exclude people_status"), ("the replay is equal",),
    ),
    "a pause is forgotten": (pause_forgotten, _kinds("hand_pauses agent_fails"), ("nothing starts in a pause",)),
    "a budget is forgotten": (
        budget_forgotten,
        _kinds("budgets turn_tools agent_fails"),
        ("nothing starts without budget",),
    ),
    "the close does not wait for the landing": (
        close_before_landing,
        _kinds("work_slow base_dirty"),
        ("what is closed is on the base", "every closing is accounted for", "the audit finds nothing"),
    ),
    "what lands is not verified": (
        landing_unverified, _kinds("base_moves"), ("what lands is verified", "evidence is of what people get"),
    ),
    "two land at once": (landing_out_of_turn, _kinds("work_slow work_contradicts"), ("one lands at a time",)),
    "a push by force": (
        push_by_force,
        _kinds("pull_pushes pull_reviews ci_fails people_status"),
        ("nothing is pushed over a person's commit",),
    ),
    "a second pull request": (
        two_pull_requests,
        _kinds("forge_loses ci_fails"),
        ("a branch has one open pull request",),
    ),
    "a person's push is taken for ours": (
        push_taken_for_ours,
        _kinds("pull_pushes pull_reviews ci_fails"),
        ("what a person pushed is left to them",),
    ),
    "closed is taken for merged": (closed_taken_for_merged, _kinds("pull_closes"), ("what is closed was merged",)),
    "merged is merged": (merged_is_merged, _kinds("forge_away people_status"), ("what is closed was merged",)),
    "old results of CI are believed": (old_results_believed, _kinds("ci_fails"), ("CI counts for what it saw",)),
    "a review counts again": (remarks_heard_again, _kinds("pull_reviews"), ("a review counts once",)),
    "what is pushed is not verified": (
        pushed_unverified,
        _kinds("work_falls_short agent_rejects"),
        ("evidence is of what people get",),
    ),
    "a tree is sealed for ever": (
        sealed_for_ever, _kinds("work_resists"), ("a seal is tried a bounded number of times",),
    ),
    "two at work on a branch": (branch_for_all, _kinds("turn_tools"), ("a shared branch has one at work",)),
}  # fmt: skip
"""The bugs, the kinds of chaos in which they are looked for, and the laws of which one must be broken."""
