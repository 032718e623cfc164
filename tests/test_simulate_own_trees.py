"""`ashep policy simulate` where issues have trees of their own: what is found of their work, and whether it lands."""

from pathlib import Path

import pytest

from ashep.config import write_starter
from ashep.core.policy.policies import Human, Phase, Policies, Policy, Verify
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.errors import UsageError
from ashep.extras.simulation.actor_moves import Point, moves
from ashep.extras.simulation.probabilities import LANDED, SHORT, TOUCHED, Chances, Dice
from ashep.extras.simulation.script import read_script
from ashep.extras.simulation.simulator import Cast, SimulatedIssue, cast_of, live, of_preset, starter_agents
from tests.test_simulate import share

PAGE = Path("docs/guides/policies.md")
WORK = Phase(name="implement", verify=Verify(max_attempts=2), when_flags={"ci": "look"}, next={"success": "review"})
JUDGE = Phase(name="review", verdicts=("approve", "back"), next={"approve": "close", "back": "implement"})
LOOK = Phase(name="look", human=Human(approved="review", changes_requested="implement"))


def lived(text: str, *phases: Phase) -> SimulatedIssue:
    policies = Policies(version=1, policies={"made": Policy(phases=phases or (WORK, JUDGE, LOOK))})
    own = Settings(worker=WorkerSettings(workspace="worktree"))
    scene = Cast(policies, "made", starter_agents(), own)
    script = read_script(text, scene.rules, Path("night.txt"))
    (life,) = live(scene, ["sim-1"], script)
    assert script.error is None
    assert not script.rest(), "the script is gone through to its end"
    return life


STORIES = [
    ("implement: success; review: approve", "closed", 2, 0, 1),
    ("implement: falls_short, success; review: approve", "closed", 3, 0, 1),
    ("implement: falls_short, falls_short, approved; review: approve", "closed", 3, 1, 1),
    ("implement: falls_short, falls_short, changes_requested, success; review: approve", "closed", 4, 1, 2),
    ("implement: falls_short, falls_short, silence", "parked", 2, 1, 1),
    ("implement: success*; review: approve*; review/landing: conflict, lands", "closed", 4, 0, 2),
    ("implement: success*; review: approve*; review/landing: conflict*", "parked", 8, 0, 4),
    ("implement: touches:ci; look: approved; review: approve", "closed", 2, 1, 1),
    ("implement: touches:ci, success; look: changes_requested, approved; review: approve", "closed", 3, 2, 2),
]


@pytest.mark.parametrize(("text", "end", "runs", "questions", "visits"), STORIES)
def test_work_goes_where_the_loop_sends_it(text: str, end: str, runs: int, questions: int, visits: int) -> None:
    life = lived(text)
    assert (life.end, life.runs, life.questions, life.visits["implement"]) == (end, runs, questions, visits), life


def test_what_nobody_wrote_is_not_brought_anywhere() -> None:
    life = lived("review: approve", JUDGE.model_copy(update={"next": {"approve": "close", "back": "review"}}))
    assert (life.end, [step.move for _, step in life.moves]) == ("closed", ["approve"])


def test_chances_of_work_that_is_looked_into_are_said_on_the_page() -> None:
    policy = Policy(phases=(WORK, JUDGE, LOOK))
    dice = Dice(policy, Chances(), 1)
    assert share(dice, WORK, "run", "falls_short") == pytest.approx(SHORT, abs=0.02)
    assert share(dice, WORK, "run", "touches:ci") == pytest.approx(TOUCHED, abs=0.01)
    assert share(dice, JUDGE, "landing", "conflict") == pytest.approx(LANDED["conflict"], abs=0.02)
    dice = Dice(policy, Chances().but(["implement.falls_short=0.5", "*.conflict=0"]), 1)
    assert share(dice, WORK, "run", "falls_short") == pytest.approx(0.5, abs=0.03)
    assert share(dice, LOOK, "landing", "conflict") == 0
    with pytest.raises(UsageError, match="there is no move falls_short"):
        Dice(policy, Chances().but(["review.falls_short=0.5"]), 1)
    page = " ".join(PAGE.read_text().split())
    assert f"{SHORT:.0%}".replace("%", " %") + " of runs are `falls_short`" in page
    assert f"{TOUCHED:.0%}".replace("%", " %") + " are `touches:<flag>`" in page
    assert f"{LANDED['conflict']:.0%}".replace("%", " %") + " of landings are a `conflict`" in page


def test_in_the_shared_work_tree_nothing_is_looked_into(tmp_path: Path) -> None:
    folder = tmp_path / ".agent-shepherd"
    write_starter(folder, "quick")
    for said, own in (("workspace: shared", False), ("workspace: worktree", True)):
        (folder / "config.yaml").write_text(f"version: 1\nworker: {{{said}}}\n")
        cast = cast_of(folder, "quick", None)
        assert cast.own_trees == own
        assert ("falls_short" in moves(cast.rules.phases[0], "run")) == own
    assert not of_preset("quick").own_trees
    assert of_preset("quick").rules.phases[0].verify is None
    assert Point("sim-1", JUDGE, "landing", LOOK.timeout).name == "review/landing"
