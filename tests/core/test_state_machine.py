"""Any order of facts, sensible or not, leaves legal states, raises nothing, and is derived again as it was.

A made-up world lives on as in the laws; between its turns come facts that nobody would tell: answers to commands that
were never asked, the same once more, stale reads, facts about unknown issues and ended runs, timers that do not stand.
"""

import json
import random
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from ashep.core.analysis.audit import of_indexes, of_issue, of_world
from ashep.core.analysis.replay import Replay
from ashep.core.facts import resources, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.facts.delivery import Tree
from ashep.core.facts.records import Entry, from_json, to_json
from ashep.core.facts.runs import Model
from ashep.core.facts.sources import SourceView
from ashep.core.facts.tracker import Comment, Issue, LabelEvent, Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues import routing
from ashep.core.reconcile import dispatch, evolve
from ashep.core.runs import fold
from ashep.core.state import indexes
from tests.core import given
from tests.core.chances import WILD
from tests.core.laws import accounted, at_most_one_write, the_tree_is_shared, the_wait_is_over
from tests.core.mutants import Mutant, planted, private
from tests.core.world_of import MadeUp

TOLD = sorted(
    set(get_args(Fact)) - {*e.DECISIONS, resources.JournalBegun, resources.DaemonStarted, resources.Adopted},
    key=lambda kind: kind.__name__,
)
"""What a source of facts may tell at any time; a start begins a batch of its own."""

LABELS = (
    "phase:implement", "phase:review", "phase:nonsense", "ashep:excluded", "ashep:paused", "ashep:parked",
    "needs:human_approval", "human:approved", "human:changes_requested", "policy:quick",
)  # fmt: skip


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


class Nonsense:
    """Makes facts of any type out of what the World knows, and of what it does not."""

    def __init__(self, made: MadeUp, seed: int) -> None:
        self.made, self.chance = made, random.Random(seed)

    def fact(self) -> Fact:
        kind: Any = self.chance.choice(TOLD)
        issue = self._issue()
        told: dict[str, Any] = {}
        for field in fields(kind):
            told[field.name] = self._named(field.name, issue, hints(kind)[field.name])
        return kind(**told)

    def _issue(self) -> str:
        return self.chance.choice([*sorted(self.made.world.flows), "t-unknown"])

    def _named(self, name: str, issue: str, kind: Any) -> Any:
        flow = self.made.world.flows.get(issue)
        known = flow.run.id if flow and flow.run else f"{issue}/implement.1.1"
        match name:
            case "issue":
                return issue
            case "run":
                return self.chance.choice([known, known, f"{issue}/implement.1.1", "nonsense"])
            case "key" | "orphan":
                keys = [command.key for command in flow.open] if flow else []
                done = [command.key for command in self.made.done[-5:]]
                optional = [None] if type(None) in get_args(kind) else []
                return self.chance.choice(
                    [*keys, *keys, *done, *optional, f"{issue}/write/7", f"wait:{issue}", f"sign:{issue}"]
                )
            case "as_of" | "posture":
                now = self.made.world.seq
                return self.chance.choice([0, max(now - 3, 0), now, now + 100])
            case "view" if kind is not SourceView:
                return self._view(issue)
            case "ids" | "added" | "removed":
                return tuple(one for one in [*sorted(self.made.world.flows), "t-unknown"] if self.chance.random() < 0.5)
            case _:
                return self._of(kind)

    def _view(self, issue: str) -> Issue:
        flow, chance = self.made.world.flows.get(issue), self.chance
        view = flow.issue if flow else given.issue(issue)
        if chance.random() < 0.3:
            view = replace(view, status=chance.choice(["open", "in_progress", "blocked", "closed", "deferred"]))
        if chance.random() < 0.3:
            view = replace(view, assignee=chance.choice([None, given.ME, "bob"]))
        if chance.random() < 0.3:
            view = replace(view, labels=tuple(sorted(chance.sample(LABELS, chance.randint(0, 3)))))
        if chance.random() < 0.2:
            seq = chance.choice([0, self.made.world.seq, 10**6])
            view = replace(
                view,
                stamp=chance.choice([None, Stamp(given.INSTANCE, seq), Stamp("another", 5, f"{issue}/review.1.1")]),
            )
        return view

    def _of(self, kind: Any) -> Any:
        chance, origin = self.chance, get_origin(kind)
        if origin is Literal:
            return chance.choice(get_args(kind))
        if origin in (Union, UnionType):
            return self._of(chance.choice(get_args(kind)))
        if origin is tuple:
            inner = [one for one in get_args(kind) if one is not Ellipsis]
            if Ellipsis in get_args(kind):
                return tuple(self._of(inner[0]) for _ in range(chance.randint(0, 2)))
            return tuple(self._of(one) for one in inner)
        made = {
            type(None): lambda: None,
            str: lambda: chance.choice(
                ["", "x", "server-1", '{"result": "success", "summary": "s", "verdict": "pass"}']
            ),
            int: lambda: chance.choice([0, 1, 2]),
            float: lambda: 0.5,
            bool: lambda: chance.random() < 0.5,
            datetime: lambda: self.made.now + timedelta(seconds=chance.choice([-3600, 0, 3600])),
            timedelta: lambda: timedelta(minutes=chance.choice([-90, 0, 90])),
            Tree: lambda: Tree(True, "c0ffee", (("a.py", chance.choice("12")),) if chance.random() < 0.5 else ()),
            Model: lambda: given.LARGE,
            Comment: lambda: Comment("c", "ann", "hello", given.T0),
            LabelEvent: lambda: LabelEvent("1", chance.choice(LABELS), chance.choice(["ann", given.ME, ""]), given.T0),
        }
        return made[kind]() if kind in made else self._made(kind)

    def _made(self, kind: Any) -> Any:
        return kind(**{field.name: self._of(hints(kind)[field.name]) for field in fields(kind)})


class Sturdy(MadeUp):
    """A made-up world that is asked about what was never in it: it says no, as a real one would."""

    def _effect(self, command: Command) -> Fact:
        try:
            return super()._effect(command)
        except KeyError:
            return tracker.EffectFailed(
                getattr(command, "issue", ""), command.key, "there is no such thing", infra=False
            )


class Machine(RuleBasedStateMachine):
    """The core, told all sorts of things."""

    made: MadeUp

    @initialize(seed=st.integers(0, 2**16), managed=st.booleans(), lock=st.booleans(), steps=st.integers(10, 150))
    def begin(self, seed: int, managed: bool, lock: bool, steps: int) -> None:
        self.again, self.told = Replay(), list[Fact]()
        self.made = Sturdy(seed, WILD, check=self.legal)
        self.made.begin(
            *given.start(config=given.settings(managed=managed, lock_work_tree=lock, max_concurrent_runs=2))
        )
        for number in range(3):
            self.made.open(f"t-{number}", priority=number)
        self.made.live(steps)

    @rule(steps=st.integers(1, 40))
    def live_on(self, steps: int) -> None:
        self.made.live(steps)

    @rule(seed=st.integers(0, 2**20), several=st.integers(1, 4))
    def tell_nonsense(self, seed: int, several: int) -> None:
        nonsense = Nonsense(self.made, seed)
        facts = [nonsense.fact() for _ in range(several)]
        self.told = [*self.told, *facts][-20:]
        self.made.turn(*facts)

    @rule(back=st.integers(0, 19))
    def tell_again(self, back: int) -> None:
        if self.told:
            self.made.turn(self.told[-1 - back % len(self.told)])

    @rule(seed=st.integers(0, 2**20))
    def tell_nonsense_one_by_one(self, seed: int) -> None:
        nonsense = Nonsense(self.made, seed)
        for _ in range(10):
            self.made.turn(nonsense.fact())

    @rule(again=st.booleans())
    def let_time_pass(self, again: bool) -> None:
        self.made.wait()
        if again:
            self.made.crash()

    def legal(self, made: MadeUp, entries: Any) -> None:
        """What holds after every turn, whatever was told."""
        if not entries:
            return
        read: list[Entry] = [from_json(json.loads(json.dumps(to_json(entry)))) for entry in entries]
        assert read == entries
        assert self.again.batch(read) == []
        assert self.again.world == made.world
        known = made.world
        assert not [*of_indexes(known)]
        the_tree_is_shared(known)
        for entry in entries:
            if isinstance(entry.body, resources.TimerDue):
                the_wait_is_over(known, entry.body)
        for flow in known.flows.values():
            at_most_one_write(flow)
            accounted(known, flow)
            assert len({command.key for command in flow.open}) == len(flow.open), "asked twice"
            found = [*of_issue(known, flow, made.now, living=False)]
            assert not found, found
        assert not [*of_world(known)]


def machine(examples: int, steps: int, *phases: Phase) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None,
            phases=phases or tuple(Phase), database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )  # fmt: skip


BROKEN = [
    Mutant("a fact about an unknown issue", private(evolve, "_of_issue"), "if flow is None:", "if False:"),
    Mutant("a late answer revives a run", private(fold, "_sent"), "if run.ended:", "if False:"),
    Mutant("an index is forgotten", indexes.following, "if due != before:", "if due is not None:"),
    Mutant("a rule rolls dice", routing.backoff, "jitter = 0.8 +", "import random\n    jitter = random.random() +"),
    Mutant("a slot too many", dispatch.in_the_way, "room.slots <= 0", "room.slots < 0"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BROKEN, ids=lambda mutant: mutant.name)
def test_a_mistake_shows(mutant: Mutant) -> None:
    with planted(mutant), pytest.raises(Exception):  # noqa: B017, PT011 - a law, or whatever it stumbles over
        machine(150, 30, Phase.generate)


@pytest.mark.promise("Y1")
def test_any_order_of_facts_leaves_legal_states() -> None:
    machine(6, 25)


@pytest.mark.slow
def test_any_long_order_of_facts_leaves_legal_states() -> None:
    machine(40, 40)
