"""Laws over whole lives in a made-up world that mostly answers what it is asked.

`tests/core/laws.py` holds the laws, `tests/core/lives.py` the lives; `test_mutants.py` shows that they can fail.
"""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.facts.records import Entry, from_json, to_json
from ashep.core.reconcile.step import step
from ashep.core.state.world import World
from tests.core.given import QUICK, adopted, policies
from tests.core.laws import at_rest, folded
from tests.core.lives import EDITS, digest, live
from tests.full import amount

SEEDS = st.integers(0, 2**32)
LIVES = settings(max_examples=amount(20, 1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(LIVES, max_examples=amount(5, 100))


@pytest.mark.slow
@pytest.mark.promise("G2", "G3", "G4", "D5", "R8", "P11", "E1", "K1", "B6", "U1", "X12", "H5")
@LIVES
@given(SEEDS)
def test_every_life_keeps_the_laws_and_comes_to_rest(seed: int) -> None:
    made = live(seed)
    made.settle()
    at_rest(made)


@pytest.mark.promise("J7")
@FEW
@given(SEEDS)
def test_a_journals_text_folds_to_the_same_world(seed: int) -> None:
    made = live(seed)
    told = [from_json(json.loads(json.dumps(to_json(entry)))) for entry in made.entries]
    assert told == made.entries
    assert folded(told) == made.world


@pytest.mark.promise("J7")
@FEW
@given(SEEDS)
def test_folding_knows_no_policy(seed: int) -> None:
    """Whatever the policies say by now, the flows are the same: decisions are facts.

    But for runs that were under way when the policies were edited: what they began with is kept.
    """
    assume(seed % EDITS[0] != EDITS[1])
    made = live(seed)
    other = adopted(policies(QUICK))
    world = folded(Entry(entry.seq, entry.at, other) if is_policy(entry) else entry for entry in made.entries)
    assert world.policies != made.world.policies
    assert world.flows == made.world.flows
    assert (world.lock, world.indexes) == (made.world.lock, made.world.indexes)


@FEW
@example(22263333)  # its policies are edited until a question's phase is gone
@given(SEEDS)
def test_a_step_is_the_same_twice_and_a_restart_in_quiet_asks_for_nothing(seed: int) -> None:
    made = live(seed)
    facts = [tracker.ChangeHinted(), made.seen_server()]
    assert step(made.world, facts, made.now, 10**6) == step(made.world, facts, made.now, 10**6)
    made.settle()
    assert made.world.policies is not None
    files = adopted(made.world.policies)  # as they were edited: other files may well ask for something
    begun = [files if is_policies(fact) else fact for fact in made.begun[1:]]
    _, entries = step(made.world, begun, made.now, made.world.seq + 1, everything=True)
    assert not [entry.body for entry in entries if isinstance(entry.body, Command)]


@pytest.mark.slow
def test_a_life_is_the_same_in_another_process() -> None:
    """Maps and sets of strings are in another order there."""
    program = "from tests.core.lives import EDITS, digest; print(digest(7))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=240
        )
        assert done.stdout.strip() == digest(7)


@pytest.mark.slow
def test_the_lives_see_almost_everything() -> None:
    """Laws over lives in which nothing happens would hold for nothing."""
    seen: Counter[str] = Counter()
    for seed in range(120, 160):
        bodies = [entry.body for entry in live(seed).entries]
        seen.update(type(body).__name__ for body in bodies)
        seen.update(
            body.code for body in bodies if isinstance(body, (issues.IssueHeld, issues.IssueParked, issues.IssueLeft))
        )
    kinds = {
        kind.__name__ for kind in (*e.DECISIONS, *c.WRITES, c.ReadIssue, c.ReadAnswer, c.StopTurn, delivery.TreeSealed)
    }
    # the made-up tree is never changed by people, targets answer, and no life begins with eleven issues
    rare = {"RunWithdrawn", "NoticesGivenUp", "BacklogHeld"}
    codes = {"attempts", "question_deadline", "cooldown", "slot", "work_tree", "dependencies", "paused"}
    assert codes | kinds - rare <= set(seen), codes | kinds - rare - set(seen)


def is_policies(body: object) -> bool:
    return isinstance(body, resources.Adopted) and body.kind == "policies"


def is_policy(entry: Entry) -> bool:
    return is_policies(entry.body)


def test_a_world_is_a_value() -> None:
    assert World() == World()
