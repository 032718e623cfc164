"""A dispatcher that remembers comes to what the rule comes to that looks at everything, in lives of many issues."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ashep.core.facts import delivery, resources, tracker
from ashep.core.facts.delivery import Tree
from ashep.core.facts.records import Entry
from ashep.core.facts.tracker import Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.policies import Phase
from ashep.core.reconcile import dispatcher
from ashep.core.reconcile.dispatcher import Dispatcher, WaitingIssues
from ashep.core.reconcile.step import step
from ashep.core.runs import concurrency_caps as caps
from ashep.core.state.world import World
from tests.core import given as g
from tests.core import playbook
from tests.core.chances import WILD
from tests.core.killers import is_caught, named, words
from tests.core.lives import ANN, READER, ROUND, SHORT, budgets, capped
from tests.core.mutants import Mutant, mutants
from tests.core.test_playbook_workspaces import (
    test_whoever_goes_first_on_a_branch_waits_until_no_run_of_another_is_at_work_there as first_on_a_branch,
)
from tests.core.world_of import MadeUp
from tests.full import amount

HURRIED = g.policy_of(
    Phase(name="review"), Phase(name="implement"), max_runs=3, max_wall_time=timedelta(minutes=2), max_created_issues=1
)
"""Reads, then writes, within a short time."""


OWN = (4, 3)
"""Issues have work trees of their own, and some share a branch, in lives whose seed leaves this rest."""

CAPS = (11, 6)
"""Some agents, providers, phases, or the runner have caps in lives whose seed leaves this rest."""

MAIN = Tree(True, "c0ffee", branch="main")


@dataclass
class Compared(MadeUp):
    """A life in which each turn is taken twice: by one who remembers, and by one who looks at everything."""

    dispatcher: Dispatcher = field(default_factory=Dispatcher)
    earlier: World = field(default_factory=World)
    caps: random.Random | None = None
    """Who says what has caps, where anything has."""

    def turn(self, *facts: Fact, everything: bool = False) -> list[Entry]:
        first = self.world.seq + 1
        world, entries = step(self.world, facts, self.now, first, everything=everything, dispatcher=self.dispatcher)
        plain = super().turn(*facts, everything=everything)
        assert entries == plain, "what is remembered is not so any more"
        assert world == self.world
        self.world = world  # the very one that the dispatcher goes on from
        return plain


def live(seed: int, steps: int = 160) -> Compared:
    chance, own = random.Random(seed), seed % OWN[0] == OWN[1]
    many = {"infra": 0.02, "crash": 0.005, "person": 0.1, "hint": 0.15, "pause": 0.02 if seed % 3 == 0 else 0.0}
    made = Compared(seed, replace(WILD, **many))
    daemon: dict[str, Any] = {"max_issues": chance.choice([None, None, 2, 6])}
    if chance.random() < 0.15:
        daemon["only"] = ("t-0", "t-3", "t-4")
    config, tree = some_settings(chance), None
    made.caps = random.Random(seed) if seed % CAPS[0] == CAPS[1] else None
    if own:
        config, tree, made.chances = in_own_trees(config), MAIN, replace(made.chances, landing=0.15)
    config, rules, team = with_caps(made.caps, config, some_policies(chance), some_team(chance))
    made.begin(*g.start(rules, team, config, tree, **daemon))
    for number in range(12):
        shares = (f"branch:{number % 4}",) if own and number % 2 else ()
        made.open(f"t-{number}", *shares, priority=chance.randrange(4), type=chance.choice(["task", "task", "epic"]))
    made.open("t-90", blocked_by=("t-0", "t-1"))
    for number in (91, 92, 93) if own else ():  # begun by a journal that is lost, on one branch
        stamp = Stamp("another", 50, f"t-{number}/implement.2.1", visit=2, attempt=1, runs=3, cycle_runs=2, actor=g.ME)
        more: dict[str, Any] = {"status": "in_progress", "assignee": g.ME, "stamp": stamp}
        made.open(f"t-{number}", "branch:1", "phase:implement", **more)
    for _ in range(steps):
        made.tick()
        disturb(made, chance, own=own)
    return made


def some_settings(chance: random.Random) -> g.Settings:
    made = g.settings(
        lock_work_tree=chance.random() < 0.5,
        max_concurrent_runs=chance.choice([1, 2, 3]),
        allow_dirty=chance.random() < 0.2,
    )
    return made.model_copy(update={"budgets": budgets(chance)}) if chance.random() < 0.5 else made


def with_caps(
    caps: random.Random | None, config: g.Settings, rules: g.Policies, team: g.Agents
) -> tuple[g.Settings, g.Policies, g.Agents]:
    """The same, with caps, which others may have at the next edit."""
    if caps is None:
        return config, rules, team
    policy, team, config = capped(caps, rules.policies["standard"], team, config)
    return config, rules.model_copy(update={"policies": rules.policies | {"standard": policy}}), team


def in_own_trees(made: g.Settings) -> g.Settings:
    return made.model_copy(update={"worker": made.worker.model_copy(update={"workspace": "worktree"})})


def some_policies(chance: random.Random) -> g.Policies:
    return g.policies(chance.choice([g.STANDARD, ROUND, SHORT, HURRIED]))


def some_team(chance: random.Random) -> g.Agents:
    rest = chance.sample([ANN, READER, g.CRITIC, g.JUDGE], chance.choice([1, 2, 3, 4]))
    return g.Agents(version=1, agents=(g.BUILDER, *rest))


def reprioritise(made: Compared, chance: random.Random) -> None:
    name = chance.choice([*made.tracker])
    made.tracker[name] = replace(made.tracker[name], priority=chance.randrange(4))


def aside(made: Compared) -> None:
    """A turn from an earlier World with the same memory, which is not of it."""
    facts = [delivery.TreeSeen(Tree(True, "beef")), tracker.ReadyChanged((), (), made.earlier.seq)]
    plain = step(made.earlier, facts, made.now, made.earlier.seq + 1)
    assert step(made.earlier, facts, made.now, made.earlier.seq + 1, dispatcher=made.dispatcher) == plain


def disturb(made: Compared, chance: random.Random, *, own: bool) -> None:
    """What the made-up world leaves as it is: the tree, priorities, what the server lists, the clock, who else runs."""
    config = in_own_trees if own else lambda settings: settings
    acts: list[Callable[[], object]] = [
        lambda: made.turn(delivery.TreeSeen(replace(MAIN, dirty=(("a.py", "11"),) if chance.random() < 0.5 else ()))),
        lambda: reprioritise(made, chance),
        lambda: made.turn(g.up("server-1", agents=("build",) if chance.random() < 0.4 else ("build", "plan"))),
        lambda: made.turn(tracker.TrackerLost("no bd")),
        lambda: made.turn(tracker.TrackerSeen(g.ME, "t", "1.3.0")),
        lambda: made.turn(resources.ClockJumped(timedelta(minutes=chance.choice([-5, 1, 90])))),
        lambda: made.turn(tracker.ReadySeen(tuple(chance.sample(sorted(made.tracker), 4)), made.world.seq)),
        lambda: setattr(made, "now", made.now + timedelta(minutes=chance.choice([1, 3, 70]))),
        lambda: setattr(made, "dispatcher", Dispatcher()),
        lambda: setattr(made, "earlier", made.world),
        lambda: aside(made),
        lambda: made.turn(
            g.adopted(
                chance.choice(
                    with_caps(made.caps, config(some_settings(chance)), some_policies(chance), some_team(chance))
                )
            )
        ),
    ]
    if own:
        acts += [lambda: made.turn(delivery.TreeSeen(replace(MAIN, branch=None)))] * 2
        acts += [lambda: made.turn(delivery.TreeSeen(replace(MAIN, head=None)))] * 2
        acts += [lambda: made.turn(delivery.RepositorySeen(chance.choice(["", "", "full", "no rights"])))] * 2
    if chance.random() < 0.12:
        chance.choice(acts)()


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**9))
def test_remembering_changes_nothing(seed: int) -> None:
    live(seed)


@pytest.mark.slow
def test_remembering_changes_nothing_in_many_lives() -> None:
    for seed in range(amount(60, 160)):
        live(seed)


def test_who_waits_for_a_paused_provider_gives_way_to_there_being_nothing_left_to_take() -> None:
    reviews = g.policy_of(Phase(name="review")).model_copy(update={"match": None})
    with patch.object(playbook, "MadeUp", Compared):
        book = playbook.Playbook(g.policies(reviews=reviews), max_issues=1)
    book.made.turn(resources.WorkPaused("ann", "", provider="acme"))
    assert book.looked().flow().code == "paused_by_hand"
    book.made.open("t-2", "policy:reviews")
    assert book.looked().looked().flow("t-2").stage == "work"
    assert book.flow().code == "max_issues"


KEYS = ("branches", *range(160))
"""Who may see a mistake: a playbook, and lives."""


def remembers_wrongly(key: str | int) -> bool:
    if key == "branches":
        return not remembers_in_a_playbook()
    try:
        live(int(key))
    except (AssertionError, KeyError):
        return True
    return False


def remembers_in_a_playbook() -> bool:
    """Tell of two that were led onto one branch, which lives hardly ever do."""
    with patch.object(playbook, "MadeUp", Compared):
        try:
            first_on_a_branch()
        except AssertionError:
            return False
    return True


MUTANTS = mutants([
    ("what is ready is not noted", Dispatcher, "note", "self._touched.update(added, removed)", "pass"),
    ("what was ready is not noted", Dispatcher, "note", "|= {*before.ready}.symmetric",
     "|= set(ids) or {*()}.symmetric"),
    ("timers touch nothing", Dispatcher, "note", "self._touched.add(split_timer(key)[1])", "pass"),
    ("the clock never jumps", Dispatcher, "note", " | ClockJumped()", ""),
    ("rules never change", Dispatcher, "note", " | Adopted()", ""),
    ("another World is taken for the last one", Dispatcher, "begin", "is not world", "is None"),
    ("the server never changes", Dispatcher, "_due", "world.seen, ", ""),
    ("pauses change nothing", Dispatcher, "_due", "world.pauses, ", ""),
    ("the tracker is never away", Dispatcher, "_due", ", world.tracker_error,", ","),
    ("providers always have budget", Dispatcher, "_due", " spent_providers(world),", ""),
    ("branches are never free", Dispatcher, "_due", "world.indexes.branches, ", ""),
    ("nobody is at work on a branch", Dispatcher, "_due", "world.indexes.branch_runs,", ""),
    ("there is always a base", Dispatcher, "_due", "has_base(world), ", ""),
    ("issues always work where they do", Dispatcher, "_due", "mode(world), ", ""),
    ("a look changes nothing", Dispatcher, "_due", "if world.ready_fresh:", "if False:"),
    ("times are never up", Dispatcher, "_overtime", "while self._time_order and", "while False and"),
    ("time is not kept", Dispatcher, "_keep_time", "if policy is not None", "if False"),
    ("room is what it was at first", Dispatcher, "_go_through", "if of is not room:", "if False:"),
    ("nobody waits for room", WaitingIssues, "next_after", "ways.get(kind, code) != code", "False"),
    ("everybody waits for the same", WaitingIssues, "next_after", "(found is None or ranks[at] < found)",
     "found is None"),
    ("caps are never free", WaitingIssues, "next_after", "is_full(cap, room.runs)", "True"),
    ("an agent waits for others alone", caps, "in_the_way", "{cap, *rest}", "rest"),
    ("who has left waits on", WaitingIssues, "leave", "del ranks[", "ranks["),
    ("all may be taken", dispatcher, "_ways", "room.takes <= 0", "False"),
    ("one kind of run", dispatcher, "_ways", "room, kind)", 'room, "write")'),
])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_in_remembering_is_found(mutant: Mutant) -> None:
    assert is_caught("remembering", mutant), words("remembering", mutant)


@pytest.mark.slow
def test_without_a_mistake_nothing_is_found() -> None:
    assert [key for key in {*named("remembering").values()} if remembers_wrongly(key)] == []
