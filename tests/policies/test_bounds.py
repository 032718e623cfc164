"""What a policy can cost: of the presets, of small ones that can be counted by hand, and of large ones in time."""

from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ashep.cli.commands import app
from ashep.cli.policy.check import describe_bounds
from ashep.config import examine, load, write_starter
from ashep.config.presets import PRESETS
from ashep.core.analysis.cost_bounds import Bounds
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.agents import Agents, Performance
from ashep.core.policy.policies import Human, Phase, Policies, Policy, Retry, Verify
from ashep.core.policy.settings import Settings, WorkerSettings
from tests.core.given import BUILDER, CRITIC, TEAM, policy_of

GUIDE = Path("docs/guides/policies.md")
ONCE = Retry(max_attempts=1)


OWN = Settings(worker=WorkerSettings(workspace="worktree"))
SHARED = Settings(worker=WorkerSettings(workspace="shared"))


def bounds(policy: Policy, agents: Agents = TEAM, settings: Settings = SHARED) -> Bounds | None:
    policies = Policies(version=1, policies={"p": policy})
    return analyse(policies, agents, settings)["p"].bounds


@pytest.mark.promise("F7")
@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_have_no_mistake_and_the_bounds_that_the_guide_says(name: str, tmp_path: Path) -> None:
    write_starter(tmp_path, name)
    assert examine(tmp_path).findings == []
    config = load(tmp_path)
    one = analyse(config.policies, config.agents, OWN)[name].bounds
    assert one is not None
    best, most = describe_bounds(one).split("; until a person answers at most ")
    best = best.removeprefix("at best ").replace(" and ", ", ")
    row = f"| `{name}` | {best} | {most.split(', 7d')[0]} |"
    assert row in GUIDE.read_text(encoding="utf-8")


def test_questions_are_those_of_phases_and_that_is_said_for_agents_may_ask_too(tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd", "bmad-story")
    at = ["-C", str(tmp_path), "policy"]
    checked = CliRunner().invoke(app, [*at, "check"]).stdout
    assert "bmad-story: at best 3 runs and 0 questions; until a person answers at most 12 runs, 0 questions" in checked
    assert "questions: those of phases; agents may ask people, too" in checked
    (tmp_path / "night.txt").write_text("developer: need_human\n")
    lived = CliRunner().invoke(app, [*at, "simulate", "bmad-story", "--script", str(tmp_path / "night.txt")]).stdout
    assert "1 question to people" in lived


def test_a_phase_off_every_circle_comes_once_and_one_on_it_as_often_as_it_may() -> None:
    line = policy_of(Phase(name="implement", retry=Retry(max_attempts=2)), Phase(name="review", retry=ONCE))
    found = bounds(line)
    assert found is not None
    assert (found.best_runs, found.worst_runs) == (2, 3)
    back = Phase(name="review", verdicts=("yes", "no"), next={"yes": "close", "no": "implement"}, max_visits=3)
    found = bounds(policy_of(Phase(name="implement", retry=ONCE, max_visits=2), back, max_runs=100))
    assert found is not None
    assert (found.best_runs, found.worst_runs) == (2, 2 * 1 + 3 * 3)
    found = bounds(policy_of(Phase(name="implement", retry=ONCE, max_visits=2), back, max_runs=5))
    assert found is not None
    assert found.worst_runs == 5


def runs(policy: Policy, settings: Settings) -> tuple[int, int]:
    found = bounds(policy, TEAM, settings)
    assert found is not None
    return found.best_runs, found.worst_runs


def test_work_that_does_not_hold_and_work_that_does_not_fit_the_base_cost_runs() -> None:
    ask = Phase(name="ask", human=Human())
    proven = Phase(name="implement", retry=Retry(max_attempts=2), verify=Verify(max_attempts=3), max_visits=3)
    assert runs(policy_of(proven, ask, max_runs=100), SHARED) == (1, 2)
    assert runs(policy_of(proven, ask, max_runs=100), OWN) == (1, 2 + 3 - 1)  # the answer ends it
    assert runs(policy_of(proven, max_runs=100), OWN) == (1, (2 + 3 - 1) * 3)  # each visit ends with a conflict
    assert runs(policy_of(proven, max_runs=100), SHARED) == (1, 2)
    flagged = Phase(name="implement", retry=ONCE, when_flags={"ci": "code"}, next={"success": "ask"})
    policy = policy_of(flagged, ask, Phase(name="code", retry=ONCE, next={"success": "ask"}), max_runs=100)
    assert runs(policy, SHARED) == (1, 1)
    assert runs(policy, OWN) == (1, 1 + 3 - 1 + 1)  # three attempts by default, and one of the other phase


def test_of_two_ways_the_longer_one_counts() -> None:
    fork = Phase(name="plan", capabilities=("review",), verdicts=("a", "b"), next={"a": "one", "b": "two"}, retry=ONCE)
    one = Phase(name="one", capabilities=("review",), retry=Retry(max_attempts=5), next={"success": "close"})
    found = bounds(policy_of(fork, one, Phase(name="two", capabilities=("review",), retry=Retry(max_attempts=2))))
    assert found is not None
    assert found.worst_runs == 1 + 5


def test_questions_that_nobody_answers_add_up_where_the_deadline_leads_on() -> None:
    ask = Phase(name="ask", human=Human(deadline=timedelta(days=1), on_deadline="boss"))
    found = bounds(policy_of(Phase(name="implement"), ask, Phase(name="boss", human=Human(deadline=timedelta(days=2)))))
    assert found is not None
    assert (found.best_questions, found.worst_questions, found.worst_wait) == (1, 2, timedelta(days=3))


def test_costs_are_added_up_where_all_agents_have_one() -> None:
    cheap = BUILDER.model_copy(update={"id": "cheap", "performance": Performance(cost=0.5)})
    dear = BUILDER.model_copy(update={"performance": Performance(cost=2.0, timeout_multiplier=2.0)})
    critic = CRITIC.model_copy(update={"performance": Performance(cost=0.25)})
    policy = policy_of(Phase(name="implement", retry=ONCE), Phase(name="review", retry=ONCE))
    found = bounds(policy, Agents(version=1, agents=(cheap, dear, critic)))
    assert found is not None
    assert (found.best_cost, found.worst_cost) == (0.75, 4.0)
    assert found.worst_work == timedelta(hours=7)
    found = bounds(policy, Agents(version=1, agents=(cheap, dear, CRITIC)))
    assert found is not None
    assert (found.best_cost, found.worst_cost) == (None, None)


def test_what_never_closes_has_no_bounds() -> None:
    assert bounds(policy_of(Phase(name="implement", next={"success": "implement"}))) is None
