"""Which holds end by themselves, and which `--until-idle` ends for: the table of docs/codes.md, code by code."""

from dataclasses import replace
from typing import Literal

import pytest

from ashep.core.analysis.issue_status import is_held_up, is_idle, needs_person, obstacle
from ashep.core.state import holds
from ashep.core.state.flow import Flow, Stage
from ashep.core.state.world import World, put
from tests.core import given
from tests.test_docs import CODES, firsts

Freed = Literal["itself", "answer", "person", "no work"]
"""By what else runs, a time, or what is under way · once something outside answers · by a person, who puts machine,
repository or settings right · nobody wants work on it: by a person's own word about the issue, or about ashep."""

FREED: dict[str, Freed] = {
    "slot": "itself", "cap_phase": "itself", "cap_runner": "itself", "cap_agent": "itself", "cap_provider": "itself",
    "work_tree": "itself", "branch": "itself", "recycling": "itself", "machine_busy": "itself", "retry": "itself",
    "turn_unsure": "itself", "cooldown": "itself", "budget": "itself", "budget_provider": "itself",
    "runs_per_hour": "itself", "quiet_hours": "itself",
    "runner_away": "answer", "tracker_away": "answer", "tree_unseen": "answer", "disk_low": "answer",
    "provider_limited": "answer", "provider_down": "answer", "base_behind": "answer", "base_unchecked": "itself",
    "repository": "answer", "base_fails": "person", "runner_misconfigured": "person",
    "no_agent": "person", "no_base": "person", "no_repository": "person", "tree_dirty": "person",
    "runner_unauthorized": "person", "provider_unauthorized": "person", "budget_total": "person",
    "paused_by_hand": "no work", "max_issues": "no work", "not_asked": "no work", "excluded": "no work",
    "not_labels": "no work", "hidden": "no work", "paused": "no work", "parked_label": "no work",
    "status": "no work", "assigned": "no work", "dependencies": "no work", "not_ready": "no work",
    "no_policy": "no work", "source": "no work", "backlog": "no work",
    "unknown_policy": "no work", "unknown_phase": "no work",
}  # fmt: skip
LANDING: dict[str, Freed] = {"landing_dirty": "person", "landing_away": "answer", "landing_failed": "itself"}


def held(code: str, stage: Stage) -> World:
    """A world in which one issue is held for this."""
    return put(World(), "t-1", Flow(given.issue("t-1"), stage=stage, code=code, why="its words"))


def test_each_hold_of_the_page_is_in_the_table() -> None:
    assert {*FREED} == firsts("Codes of holds")


@pytest.mark.promise("L2")
@pytest.mark.parametrize("code", [*FREED, *LANDING])
def test_what_only_a_person_can_free_is_told_in_its_own_words(code: str) -> None:
    freed = (FREED | LANDING)[code]
    world = held(code, "finishing" if code in LANDING else "idle")
    assert is_held_up(world) is (freed in ("answer", "person"))
    if freed == "person":
        assert needs_person(world)
        assert obstacle(world) == f"t-1 waits: its words ({holds.FREED_BY[code]})"
    if freed == "answer":
        assert not needs_person(world), "it is waited for"
        assert obstacle(world) == "t-1 waits: its words"


@pytest.mark.promise("L2")
@pytest.mark.parametrize("code", [code for code, freed in FREED.items() if freed in ("answer", "person")])
def test_a_phase_that_is_held_by_what_is_outside_is_no_work(code: str) -> None:
    assert is_idle(held(code, "work"))


def test_the_page_names_what_until_idle_ends_for() -> None:
    (line,) = (line for line in CODES.read_text().splitlines() if line.startswith("`--until-idle` ends with 1"))
    at_once, _, later = line.partition("; ")
    for words, codes in ((at_once, holds.FREED_BY), (later, holds.AWAY)):
        assert {code for code in (FREED | LANDING) if f"`{code}`" in words} == {*codes}


def test_several_are_told_by_what_holds_them() -> None:
    world = World()
    for name, code in (("t-1", "no_agent"), ("t-2", "tree_dirty"), ("t-3", "no_agent")):
        world = put(world, name, Flow(given.issue(name), code=code, why=f"{code}!"))
    first, second = obstacle(world).split("; ")
    assert first.startswith("t-1 and 1 more wait: no_agent! (")
    assert second.startswith("t-2 waits: tree_dirty! (")
    assert needs_person(world)
    away = put(world, "t-2", replace(world.flows["t-2"], code="runner_away"))
    assert not needs_person(away), "of these one may still come back"
