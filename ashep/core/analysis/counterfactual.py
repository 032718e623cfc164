"""What another policy would have done with recorded outcomes: one pass over a journal, two policies side by side.

The core's own rules decide in both lives of an issue. As long as they decide the same, the recorded life *is* the other
one. From the first decision that differs the other goes on by itself, for as long as what it needs was observed
(docs/decisions/0014); where it was not, that is said, and nothing is made up.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ashep.core.analysis import alternate_run
from ashep.core.analysis.policy_diff import (
    NOTHING,
    Compared,
    ComparedIssue,
    Fork,
    NotObserved,
    compare,
    dump_agent_view,
    extract_decision,
    find_first,
    limits,
    looked_for,
    parted,
    untimely,
    weighty,
)
from ashep.core.facts import commands, issues, runs
from ashep.core.facts.delivery import TreeSeen, WorkVerified
from ashep.core.facts.records import Entry
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import after_deadline
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.reconcile.decide import decide
from ashep.core.reconcile.dispatch import CANDIDATE, queue_of
from ashep.core.reconcile.evolve import evolve
from ashep.core.resources.retention import issue_of
from ashep.core.state.immutable import replace
from ashep.core.state.world import World

DISPATCHED = (
    issues.IssueTaken, issues.IssueAdopted, issues.IssueHeld, issues.IssueParked, issues.PersonAsked, runs.RunPlanned,
)  # fmt: skip
"""Decisions that `dispatch` makes; the last two the rules of one issue make, too."""

OTHER_RULES = "today's rules do not lead from what was told to what is recorded, or an edit did"
"""Decisions of an older version: they would have to be compared by its rules."""


class Counterfactual:
    """One pass over the batches of a journal, in order.

    `policies`, `agents`: the other ones; None: those that were in force. `strict`: no answer of a person's counts that
    was given after runs that the other policy leaves out. `named`: prompts show the policy's name.
    """

    def __init__(
        self,
        world: World,
        policies: Policies | None,
        agents: Agents | None,
        *,
        strict: bool = False,
        named: bool = False,
    ) -> None:
        self.world, self.policies, self.agents = world, policies, agents
        self.strict, self.named = strict, named
        self.lives: dict[str, ComparedIssue] = {}
        self._created: dict[str, tuple[int, issues.CreationWanted]] = {}
        """Who asked for which issue, and where."""
        self._asking: set[str] = set()
        """Issues whose other life waits for a question that is still to be asked in the record."""
        self._timed: set[str] = set()
        """Issues whose question may be open for another time under the other policy."""
        self._expected: dict[str, list[Fact]] = {}
        """Decisions of this batch that the other policy is known to make, too."""
        for issue in sorted(world.indexes.unclosed):
            if world.flows[issue].active:
                why = "it was under way where the journal begins: what led there was pruned"
                life = self.lives[issue] = ComparedIssue(issue, world.flows[issue].policy, strict)
                life.fork = Fork(world.seq, world.now, None, None, why)
                life.end = NotObserved(world.seq, "what was pruned", why, NOTHING, 0, None)

    def batch(self, entries: Sequence[Entry]) -> None:
        """Go on by one batch."""
        self._expected.clear()
        for life in [self.lives[issue] for issue in sorted(self._timed)]:
            if life.due is None or life.fork is not None:
                self._timed.discard(life.issue)
            elif entries[0].at > life.due:
                self._out_of_time(life, entries[0])
        for place, entry in enumerate(entries):
            before = self.world
            self.world = evolve(before, entry)
            if isinstance(entry.body, TreeSeen):
                for asking in self._asking:
                    alternate_run.tree_seen(self.lives[asking], entry.body)
            if isinstance(entry.body, runs.RunPlanned) and entry.body.access == "write":
                for asking in self._asking - {entry.body.issue}:
                    alternate_run.spoil_shared_tree(self.lives[asking], entry.body)
            issue = issue_of(entry.body)
            if issue is None or isinstance(entry.body, commands.Command):
                continue
            if isinstance(entry.body, issues.CreationWanted):
                self._created[entry.body.id] = (entry.seq, entry.body)
            self._entry(before, entry, issue, entries[place + 1 :])
        for life in [self.lives[issue] for issue, left in self._expected.items() if left and issue in self.lives]:
            if life.fork is None:  # what both should have decided was not
                life.fork = Fork(entries[-1].seq, entries[-1].at, None, self._expected[life.issue][0], OTHER_RULES)
                self._go_on(life, self._alter_world(self.world, life), [], (), entries[-1])

    def compared(self, last: int | None = None) -> list[Compared]:
        """Give what was found of the last issues, by their last record, in that order."""
        self._never_taken()
        for life in self.lives.values():
            if life.fork is None:
                self._untimely(life, self.world.seq, None)
            alternate_run.conclude(life, self.world.flows[life.issue])
        return compare(self.lives, self._created, self.world, self.policies, last)

    # --- one entry ----------------------------------------------------------------------------------------------------

    def _entry(self, before: World, entry: Entry, issue: str, rest: Sequence[Entry]) -> None:
        body, life = entry.body, self.lives.get(issue)
        if life is None:
            held = isinstance(body, issues.IssueHeld) and body.code in alternate_run.NOT_CLAIMED
            if not held and not isinstance(body, (issues.IssueTaken, issues.IssueAdopted)):
                return
            life = ComparedIssue(issue, None, self.strict)
            if not held:
                self.lives[issue] = life
        life.last = entry.seq
        if life.fork is None:
            self._side_by_side(before, entry, life, rest)
            if life.fork is not None:
                self.lives[issue] = life
        else:
            if life.world is not None and not self._looked_elsewhere(life, life.world, body):
                alternate_run.met(life, entry, rest)
            self._note(life)
            life.count(entry)

    def _go_on(
        self, life: ComparedIssue, world: World, facts: Sequence[Fact], rest: Sequence[Entry], entry: Entry
    ) -> None:
        alternate_run.go_on(life, world, facts, rest, entry)
        self._note(life)

    def _note(self, life: ComparedIssue) -> None:
        waits = life.world is not None and life.met is None
        (self._asking.add if waits else self._asking.discard)(life.issue)

    # --- as long as both are the same ---------------------------------------------------------------------------------

    def _side_by_side(self, before: World, entry: Entry, life: ComparedIssue, rest: Sequence[Entry]) -> None:
        body, expected = entry.body, self._expected.setdefault(life.issue, [])
        assert not isinstance(body, commands.Command)
        if expected and extract_decision(expected[0]) == extract_decision(body):
            expected.pop(0)
        elif isinstance(body, DISPATCHED):
            self._dispatched(before, entry, life, expected, rest)
        life.count(entry)
        if life.fork is not None:
            return
        if isinstance(body, runs.RunEnded) and self._untimely(life, entry.seq, body):
            return
        if isinstance(body, WorkVerified) and self._other_evidence(life, entry, body):
            return
        was = weighty(decide(before, self.world, body), life.issue)
        now = weighty(
            decide(self._alter_world(before, life), self._alter_world(self.world, life), body),
            life.issue,
        )
        if (parts := parted(was, now)) is not None:
            at = _place(parts[0], rest, entry)
            life.fork = Fork(at, entry.at, *parts)
            self._go_on(life, self._alter_world(self.world, life), now, rest, entry)
            return
        self._same(life, was, now)
        expected[:0] = was

    def _dispatched(
        self, before: World, entry: Entry, life: ComparedIssue, expected: list[Fact], rest: Sequence[Entry]
    ) -> None:
        body, flow = entry.body, before.flows[life.issue]
        assert not isinstance(body, commands.Command)
        if isinstance(body, issues.IssueAdopted):
            why = "it is gone on with from another journal: what led there is not known"
            life.fork = Fork(entry.seq, entry.at, body, None, why)
            life.end = NotObserved(entry.seq, "another journal", why, life.counted, 0, None)
            return
        was = alternate_run.started(before, flow)
        derived = any(extract_decision(decision) == extract_decision(body) for decision in was)
        if isinstance(body, issues.IssueHeld) and not derived:
            return  # it waits for room, which is not compared
        if queue_of(flow) == CANDIDATE:
            life.policy = None
        other = self._alter_world(before, life)
        now = alternate_run.started(other, other.flows[life.issue])
        life.policy = next((fact.policy for fact in now if isinstance(fact, issues.IssueTaken)), life.policy)
        parts, why = parted(was, now), ""
        # an edit may lead there, and the other one has none
        edited = isinstance(body, (issues.IssueParked, issues.PersonAsked))
        if parts is None and not derived and (self.policies is not None or not edited):
            parts, why = (body, None), OTHER_RULES
        if parts is None:
            parts = self._told_otherwise(before, life, was, now)
        if parts is not None:
            at = entry.seq if parts[0] in (None, body) or was[0] == parts[0] else _place(parts[0], rest, entry)
            life.fork = Fork(at, entry.at, *parts, why)
            self._go_on(life, other, now, rest, entry)
            return
        self._same(life, was, now)
        expected[:0] = [fact for fact in was[1:] if not isinstance(fact, runs.RunPlanned)]  # that is compared by itself

    def _told_otherwise(
        self, before: World, life: ComparedIssue, was: Sequence[Fact], now: Sequence[Fact]
    ) -> tuple[Fact | None, Fact | None] | None:
        """Find a run that both start, and whose agent would not be given the same."""
        for one, other in zip(was, now, strict=True):
            if not isinstance(one, runs.RunPlanned) or not isinstance(other, runs.RunPlanned):
                continue
            flow = before.flows[life.issue]
            named = next((fact.policy for fact in was if isinstance(fact, issues.IssueTaken)), flow.policy)
            told = _phase(before.policies, named, one.phase)
            tells = _phase(self.policies or before.policies, life.policy or named, one.phase)
            if life.renamed:
                life.because = "its prompt would name an agent of an earlier run otherwise"
            elif self.named and named != life.policy:
                life.because = f"its prompt would name the policy {life.policy}"
            elif told != tells:
                changed = sorted(key for key in told.keys() | tells.keys() if told.get(key) != tells.get(key))
                life.because = f"its phase has another {', '.join(changed)}"
            else:
                continue
            return one, other
        return None

    def _same(self, life: ComparedIssue, was: Sequence[Fact], now: Sequence[Fact]) -> None:
        """Keep what decisions that are the same have next to that."""
        for one, other in zip(was, now, strict=True):
            if isinstance(one, runs.RunPlanned) and isinstance(other, runs.RunPlanned):
                life.limits = limits(one, other)
                life.renamed = life.renamed or one.agent != other.agent
            if isinstance(one, issues.PersonAsked) and isinstance(other, issues.PersonAsked):
                life.due = other.due if other.due != one.due else None
                self._timed.add(life.issue)
            if isinstance(one, (issues.PersonAnswered, issues.IssueParked, issues.CycleBegan)):
                life.due = None

    def _other_evidence(self, life: ComparedIssue, entry: Entry, found: WorkVerified) -> bool:
        """Whether something else would have been looked for: what was found then says nothing."""
        other, flow = self._alter_world(self.world, life), self.world.flows[life.issue]
        phase = (flow.phase or "") if found.run else ""
        if self._looked_for(self.world, life, phase) == self._looked_for(other, life, phase):
            return False
        what = f"the work of {phase}" if phase else "what is to land"
        why = f"something else would be looked for in {what}"
        life.fork = Fork(entry.seq, entry.at, found, None, why)
        alternate_run.lacking(life, other, f"evidence about {what}", why, entry.seq)
        return True

    def _looked_elsewhere(self, life: ComparedIssue, other: World, found: Fact | commands.Command) -> bool:
        """Whether something else would have been looked for in what the other life is about to land."""
        landing = other.flows[life.issue].work.landing
        if not isinstance(found, WorkVerified) or found.run or landing is None or not landing.verify or life.spoilt:
            return False
        if self._looked_for(self.world, life, "") == self._looked_for(other, life, ""):
            return False
        why, life.world = "something else would be looked for in what is to land", None
        alternate_run.lacking(life, other, alternate_run.CHECKED, why, life.seq)
        return True

    @staticmethod
    def _looked_for(world: World, life: ComparedIssue, phase: str) -> tuple[Any, ...]:
        flow = world.flows[life.issue]
        return (flow.work.criteria and flow.work.criteria.hash, *looked_for(world.policy(flow), phase))

    def _untimely(self, life: ComparedIssue, seq: int, ended: runs.RunEnded | None) -> bool:
        """Whether the run might have gone otherwise by now under the other policy's times."""
        run, now = self.world.flows[life.issue].run, self.world.now
        if run is None or (run.ended if ended is None else run.id != ended.run):
            return False
        limit = untimely(run, life.limits, now, ended)
        if limit is None:
            return False
        did = f"it ended ({ended.state}) after" if ended else "it has gone on for"
        why = f"{did} {now - run.planned}, and its {limit.name} would be {limit.other} in the place of {limit.recorded}"
        life.fork = Fork(seq, now, ended, None, why)
        needs = f"how {run.id} ends under another {limit.name}"
        alternate_run.lacking(life, self._alter_world(self.world, life), needs, why, seq)
        return True

    def _out_of_time(self, life: ComparedIssue, entry: Entry) -> None:
        """The other policy's question is open no longer; the recorded one is."""
        world = self._alter_world(self.world, life)
        flow = world.flows[life.issue]
        if flow.question is None or flow.stage != "person" or life.due is None:
            life.due = None
            return
        life.fork = Fork(entry.seq, life.due, None, None, f"its question would be open until {life.due} only")
        self._go_on(life, world, weighty(after_deadline(world, flow, flow.question), life.issue), (), entry)

    def _alter_world(self, world: World, life: ComparedIssue) -> World:
        flow = world.flows[life.issue]
        if flow.policy is not None and life.policy is not None:
            flow = replace(flow, policy=life.policy)
        if self.policies is not None and flow.run is not None and flow.run.began is not None:
            flow = replace(flow, run=replace(flow.run, began=None))  # no edit of the recorded policies changes it
        if life.due is not None and flow.question is not None:
            flow = replace(flow, question=dataclasses.replace(flow.question, due=life.due))
        flows = world.flows.insert(life.issue, flow)
        return replace(world, flows=flows, policies=self.policies or world.policies, agents=self.agents or world.agents)

    def _never_taken(self) -> None:
        """Find issues that nobody took, and that the other policy would take as things stand."""
        world = replace(self.world, ready_fresh=True)
        for issue in sorted(world.indexes.unclosed):
            flow, life = world.flows[issue], self.lives.get(issue)
            if flow.code not in alternate_run.NOT_CLAIMED or queue_of(flow) != CANDIDATE or (life and life.fork):
                continue
            life = life or ComparedIssue(issue, None, self.strict)
            life.policy = None
            other = self._alter_world(world, life)
            now = alternate_run.started(other, other.flows[issue])
            if (taken := find_first(now, issues.IssueTaken)) is not None:
                life.policy, life.last = taken.policy, life.last or world.seq
                life.fork = Fork(world.seq, world.now, None, now[0])
                self.lives[issue] = life
                self._go_on(life, other, now, (), Entry(world.seq, world.now, now[0]))


def _phase(policies: Policies | None, policy: str | None, phase: str) -> dict[str, Any]:
    known = policies.policies.get(policy) if policies and policy else None
    found = known.phase(phase) if known else None
    return dump_agent_view(found) if found else {}


def _place(fact: Fact | None, rest: Sequence[Entry], entry: Entry) -> int:
    """Where the recorded decision stands; where there is none, what it would have followed."""
    return next((later.seq for later in rest if fact is not None and later.body == fact), entry.seq)
