"""The policies that ship: each loads, has agents for its phases, and leads an issue to its end and to a person."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ashep.config import examine, load, write_starter, yaml_tree
from ashep.config.presets import PRESETS, preset
from ashep.core.facts.issues import IssueParked, PersonAsked
from ashep.core.facts.runs import Model, RunPlanned
from ashep.errors import UsageError
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from tests.loop_world import World, simulate
from tests.loop_world import said as words
from tools import schemas

pytestmark = pytest.mark.promise("L6")

Script = dict[str, list[dict[str, object]]]


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_loads_with_the_agents_that_are_written_beside_it(tmp_path: Path, name: str) -> None:
    write_starter(tmp_path, name)
    assert examine(tmp_path).findings == []
    loaded = load(tmp_path).policies
    assert loaded.default_policy == name
    policy = loaded.policies[name]
    assert policy.match is not None
    assert policy.description
    jsonschema.validate(yaml_tree.read(preset(name))[0].plain(), schemas.schema("policies"))


def test_an_unknown_preset_is_refused_with_the_list_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_starter(tmp_path / "new", "planed")
    assert str(caught.value) == f"there is no preset 'planed'; did you mean planned? There are {', '.join(PRESETS)}"
    assert not (tmp_path / "new").exists()
    with pytest.raises(UsageError, match="there is no preset '/etc/passwd'; there are standard, quick, "):
        preset("/etc/passwd")


@dataclass(frozen=True)
class Lived:
    """What became of an issue."""

    ran: list[str]
    asked: list[str]
    parked: list[str]


def live(
    folder: Path, name: str, outcomes: Script, *, answers: str = "human:approved", labels: tuple[str, ...] = ()
) -> Lived:
    """Lead one issue through a preset with what its agents report: the phases that ran and asked, and why it parked."""

    async def scenario() -> Lived:
        issue = world.tracker.add("one", labels=labels)
        await world.live(
            lambda: world.all_closed() or "ashep:parked" in world.issues()[issue].labels,
            beside=lambda: world.person(answers),
        )
        ran, asked = ([fact.phase for fact in world.bodies(kind)] for kind in (RunPlanned, PersonAsked))
        lived = Lived(ran, asked, [fact.code for fact in world.bodies(IssueParked)])
        if not lived.parked:
            world.check_done()
        return lived

    write_starter(folder, name)
    world = World(folder)
    world.outcomes = outcomes
    return simulate(scenario)


def said(**verdicts: Any) -> Script:
    """What each phase reports, by verdict, the last for ever."""
    return {phase.replace("_", "-"): [{"verdict": word} for word in words] for phase, words in verdicts.items()}


def test_standard_lives_to_its_end(folder: Path) -> None:
    script = said(review=["needs_changes", "approve"], arbitrate=["needs_work", "pass"])
    lived = live(folder, "standard", script)
    assert (lived.ran, lived.asked) == (["implement", "review", "arbitrate"] * 2, ["human_review"])


def test_quick_lives_to_its_end(folder: Path) -> None:
    lived = live(folder, "quick", {})
    assert (lived.ran, lived.asked) == (["implement"], ["human_review"])


def test_planned_lives_to_its_end(folder: Path) -> None:
    script = said(test=["fail", "pass", "pass"], review=["needs_changes", "approve"])
    lived = live(folder, "planned", script)
    assert lived.ran == ["plan", "implement", "test", "implement", "test", "review", "implement", "test", "review"]
    assert lived.asked == ["human_review"]


def test_multi_tier_lives_to_its_end_through_all_tiers_and_asks_nobody(folder: Path) -> None:
    script = said(planner=["done"], implementer=["done"], code_reviewer=["needs_changes", "approve"])
    lived = live(folder, "multi-tier", script)
    assert lived.ran == ["planner", "implementer", "code-reviewer", "implementer", "code-reviewer"]
    assert not lived.asked


@pytest.mark.parametrize("answer", ["human:approved", "human:changes_requested"])
@pytest.mark.parametrize("tier", ["planner", "implementer", "code-reviewer"])
def test_multi_tier_waits_for_a_person_where_a_tier_is_blocked_and_leaves_no_tier_out(
    folder: Path, tier: str, answer: str
) -> None:
    words = {"planner": ["done"], "implementer": ["done"], "code_reviewer": ["approve"]}
    words[tier.replace("-", "_")].insert(0, "blocked")
    lived = live(folder, "multi-tier", said(**words), answers=answer)
    tiers = ["planner", "implementer", "code-reviewer"]
    assert (lived.ran, lived.asked) == ([*tiers[: tiers.index(tier) + 1], *tiers], ["blocked"])


def test_bmad_story_lives_to_its_end_and_its_arbiter_always_runs(folder: Path) -> None:
    script = said(reviewer=["needs_changes", "approve"], arbiter=["needs_work", "pass"])
    lived = live(folder, "bmad-story", script)
    assert lived.ran == ["developer", "reviewer", "arbiter"] * 2
    assert not lived.asked


def test_bmad_story_waits_for_a_person_after_three_iterations(folder: Path) -> None:
    lived = live(folder, "bmad-story", said(reviewer=["approve"], arbiter=["needs_work"]))
    assert (lived.ran, lived.parked) == (["developer", "reviewer", "arbiter"] * 3, ["max_visits"])


@pytest.mark.parametrize(("labels", "asked"), [
    (("policy:bmad-story-spec",), ["spec_checkpoint"]),
    (("policy:bmad-story-done",), ["spec_checkpoint", "done_checkpoint"]),
    (("policy:bmad-story-done", "phase:developer"), ["done_checkpoint"]),
])  # fmt: skip
def test_a_person_looks_at_the_checkpoints_of_a_story(folder: Path, labels: tuple[str, ...], asked: list[str]) -> None:
    lived = live(folder, "bmad-story", said(reviewer=["approve"], arbiter=["pass"]), labels=labels)
    assert (lived.ran, lived.asked) == (["developer", "reviewer", "arbiter"], asked)


CROSSED = """\
version: 1
agents:
  - {id: builder, capabilities: [implement], read_write: write, runner: {provider: anthropic, model: opus}}
  - {id: twin, capabilities: [review, arbitrate], priority: 9, runner: {provider: anthropic, model: sonnet}}
  - {id: critic, capabilities: [review, arbitrate], runner: {provider: openai, model: gpt-5}}
"""


@pytest.mark.parametrize(("team", "judge"), [
    (CROSSED, "critic"), ("\n".join(line for line in CROSSED.splitlines() if "critic" not in line), "twin"),
])  # fmt: skip
def test_cross_reviewed_is_judged_by_another_provider_where_there_is_one(folder: Path, team: str, judge: str) -> None:
    async def scenario() -> list[tuple[str, str]]:
        world.tracker.add("one")
        await world.live(world.all_closed, beside=lambda: world.person("human:approved"))
        return [(fact.phase, fact.agent) for fact in world.bodies(RunPlanned)]

    write_starter(folder, "cross-reviewed")
    (folder / "agents.yaml").write_text(team)
    world = World(folder)
    names = ("anthropic/opus", "anthropic/sonnet", "openai/gpt-5")
    world.runner.models = tuple(Model(*name.split("/")) for name in names)
    world.outcomes = said(review=["needs_changes", "approve"], arbitrate=["needs_work", "pass"])
    assert simulate(scenario) == [("implement", "builder"), ("review", judge), ("arbitrate", judge)] * 2


WRITERS = {
    "standard": "implement", "quick": "implement", "planned": "implement", "multi-tier": "implementer",
    "bmad-story": "developer", "cross-reviewed": "implement",
}  # fmt: skip


@pytest.mark.promise("Z5")
@pytest.mark.parametrize(("name", "label"), [*((name, "") for name in PRESETS), ("standard", "policy:quick")])
def test_a_success_that_changes_nothing_closes_no_issue(folder: Path, name: str, label: str) -> None:
    phase, verdict = WRITERS[name], {"verdict": "done"} if name == "multi-tier" else {}

    def idle(_: World, asked: Prompted) -> Play:
        return Play(text=words(asked.key.split("/")[1].split(".")[0], **verdict), delay=20.0)

    async def scenario() -> None:
        issue = world.tracker.add("one", labels=(label,) if label else ())
        await world.live(lambda: bool(world.bodies(PersonAsked)))
        assert world.world.flows[issue].policy == (label.removeprefix("policy:") or name)
        (asked,) = world.bodies(PersonAsked)
        assert (asked.phase, asked.about) == (phase, "proof")
        assert f"{phase} says {verdict.get('verdict', 'success')}, but the work changes nothing" in asked.question
        assert {run.phase for run in world.bodies(RunPlanned)} - {"plan", "planner"} == {phase}
        assert not world.all_closed()

    write_starter(folder, name)
    (folder / "config.yaml").write_text("version: 1\nworker: {workspace: worktree}\n")
    world = World(folder)
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.answer = idle
    simulate(scenario)
