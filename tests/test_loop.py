"""The whole daemon, over memory and virtual time: the standard way, and everything that can come between.

`tests/loop_world.py` is the world that it lives in. Where a scenario is tried at many moments, each moment is a crash
or a person's act at another boundary between the daemon and the world.
"""

import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

import anyio
import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts.delivery import Tree
from ashep.core.facts.issues import AnswerRefused, IssueParked, IssueTaken, PhaseEntered, RetryScheduled
from ashep.core.facts.resources import ClockJumped, DaemonStopped
from ashep.core.facts.runs import (
    OutcomeRejected,
    PromptAbandoned,
    PromptSent,
    RunEnded,
    RunPlanned,
    TurnDied,
    TurnSeen,
    TurnStopped,
)
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.runs.prompt_commands import EXTRACTION
from ashep.daemon.daemon import WorkOptions
from ashep.errors import AshepError, RunnerUnavailable, TrackerUnavailable
from ashep.extras.simulation.memory.runner import ABORTED, MemoryRunner, Play, Prompted
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.runner import Prompt
from ashep.ports.tracker import Look, PartialSnapshot
from ashep.ports.transcripts import read_steps
from ashep.views.runs import blob
from tests.loop_world import (
    ACTOR,
    REJECTED_ONCE,
    Points,
    World,
    crash_at_each,
    crossed,
    lose_each,
    minutes,
    policy,
    some,
)  # fmt: skip
from tests.waiting import wait_until

pytestmark = pytest.mark.virtual


# --- the standard way ---------------------------------------------------------------------------------------------


async def test_two_issues_a_rejection_and_a_person(folder: Path) -> None:
    world = World(folder)
    world.outcomes = REJECTED_ONCE
    first = world.tracker.add("first")
    second = world.tracker.add("second", blocked_by=(first,))
    await world.finish(person=True)
    runs = [fact.run for fact in world.bodies(RunEnded)]
    ways = [
        "implement.1.1", "review.1.1", "arbitrate.1.1", "implement.2.1", "review.2.1", "arbitrate.2.1",
    ]  # fmt: skip
    assert runs == [f"{issue}/{way}" for issue in (first, second) for way in ways]
    assert all(count == 1 for count in world.runner.deliveries.values())


@pytest.mark.promise("D5")
async def test_the_work_tree_stays_with_an_issue_until_a_person_is_asked(folder: Path) -> None:
    world = World(folder)
    first, second = world.tracker.add("first"), world.tracker.add("second")
    await world.finish(person=True)
    order = [fact.run.split("/")[0] for fact in world.bodies(RunEnded)]
    assert order == [first] * 3 + [second] * 3


@pytest.mark.promise("R12")
async def test_created_issues_exist_before_the_transition(folder: Path) -> None:
    world = World(folder, issues=1)
    world.outcomes = {"t-1/implement": [{"created_issues": [{"title": "found", "priority": 1}]}, {}]}
    await world.finish(person=True)
    found = next(issue for issue in world.issues().values() if issue.title == "found")
    entries = world.journal()
    created = next(e.seq for e in entries if type(e.body).__name__ == "IssueCreated")
    entered = next(e.seq for e in entries if type(e.body).__name__ == "IssueWritten")
    assert created < entered
    assert found.stamp.depth == 1


@pytest.mark.promise("Q4")
async def test_an_agents_question_leads_back_into_its_phase_with_the_persons_words(folder: Path) -> None:
    world = World(folder)
    world.outcomes = {"implement": [{"needs_human": True, "summary": "Which colour?"}, {}]}
    issue = world.tracker.add("first")

    async def person() -> None:
        await wait_until(lambda: "needs:human_approval" in world.issues()[issue].labels, minutes(60), 5)
        world.tracker.person_comments(issue, "pat", "The colour is blue.")
        world.tracker.person_sets(issue, "pat", add_labels=("human:approved",))
        await world.person()

    await world.finish(beside=person)
    phases = [fact.phase for fact in world.bodies(PhaseEntered)]
    assert phases == ["implement", "implement", "review", "arbitrate"]
    assert world.runner.prompts_seen("The colour is blue.") == 1


@pytest.mark.promise("R11")
async def test_an_invalid_outcome_gets_one_recovery_in_the_same_session(folder: Path) -> None:
    world = World(folder, issues=1)

    def answer(_: World, asked: Prompted) -> Play | None:
        if "/implement.1.1" in asked.key and world.told[asked.key] == 0:
            world.told[asked.key] += 1
            return Play(text="I am done.", delay=5)
        return None

    world.answer = answer
    await world.finish(person=True)
    assert [fact.then for fact in world.bodies(OutcomeRejected)] == ["recover"]
    assert len(world.runner.sessions) == 3


@pytest.mark.promise("R11")
async def test_an_answer_without_an_outcome_is_read_by_the_starters_extractor(folder: Path) -> None:
    world = World(folder, issues=1)

    def answer(_: World, asked: Prompted) -> Play | None:
        if "/implement.1.1" in asked.key and not asked.key.endswith(EXTRACTION):
            return Play(text="I am done.", delay=5)
        return None

    world.answer = answer
    await world.finish(person=True)
    said = [(fact.then, fact.extractor) for fact in world.bodies(OutcomeRejected)]
    assert said == [("recover", None), ("extract", "extractor")]
    assert [run.attempt for run in world.bodies(RunPlanned)] == [1, 1, 1], "no attempt was lost"


@pytest.mark.promise("R11")
@pytest.mark.parametrize("text", ["The parser is half done; continuing now.", ""], ids=["announced", "empty"])
async def test_a_turn_that_ends_before_its_work_goes_on_in_its_session(folder: Path, text: str) -> None:
    world = World(folder, issues=1)
    texts: list[str] = []

    def answer(_: World, asked: Prompted) -> Play | None:
        if "/implement.1.1" not in asked.key:
            return None
        texts.append(asked.text)
        return Play(text=text, delay=5) if len(texts) < 3 else None

    world.answer = answer
    await world.finish(person=True)
    assert [fact.then for fact in world.bodies(OutcomeRejected)] == ["continue", "continue"]
    assert [run.attempt for run in world.bodies(RunPlanned)] == [1, 1, 1], "no attempt was lost"
    assert len(world.runner.sessions) == 3
    for prompt in texts[1:]:
        assert "Go on with your task" in prompt
        assert "Do no further work" not in prompt
        assert "cut off" not in prompt


# --- whatever is killed when --------------------------------------------------------------------------------------


def full(folder: Path) -> World:
    """A world with most kinds of effects in it, for one issue and one that it creates."""
    world = World(folder)
    world.delay = 4.0
    world.outcomes = {
        "t-1/implement": [{"created_issues": [{"title": "found", "type": "chore"}]}, {}],
        "review": [{"verdict": "needs_changes"}, {"verdict": "approve"}],
        "arbitrate": [{"verdict": "needs_work"}, {"verdict": "pass"}],
    }
    world.tracker.add("first")
    return world


async def lived(folder: Path, points: Points, again: int = 0) -> None:
    """A life with most kinds of effects in it, which may crash once more soon after it began anew."""
    world = full(folder)
    if not again or not await world.live(points=points, beside=world.person):
        await world.live_on(Points(again) if again else points, world.person)
    world.check_done()


@pytest.mark.promise("G1", "E1", "E4")
@pytest.mark.slow
def test_a_crash_at_each_kind_of_boundary(folder: Path) -> None:
    crash_at_each(lived, folder, some(crossed(lived, folder).names, 1))


async def partly(folder: Path, points: Points) -> None:
    """A life in which an agent does a part of the work first."""
    world = World(folder, issues=1)
    world.outcomes = {"t-1/implement": [{"result": "partial"}, {}]}
    await world.live_on(points, world.person)
    world.check_done()
    assert [fact.then for fact in world.bodies(OutcomeRejected)] == ["continue"]
    assert [run.attempt for run in world.bodies(RunPlanned)] == [1, 1, 1], "no attempt was lost"


@pytest.mark.promise("R3", "G1")
def test_a_crash_at_any_moment_while_a_part_of_the_work_is_gone_on_with(folder: Path) -> None:
    names = crossed(partly, folder).names
    durable = [number for number, name in enumerate(names, 1) if name == "durable"]
    crash_at_each(partly, folder, durable[4 : len(durable) // 2 : 2])


@pytest.mark.promise("G2", "E1")
@pytest.mark.slow
def test_a_second_crash_soon_after_the_start(folder: Path) -> None:
    points = crossed(lived, folder)
    chosen = [number for number, name in enumerate(points.names, 1) if name == "durable"]
    for again in (4, 9):
        crash_at_each(partial(lived, again=again), folder / str(again), chosen[5 :: len(chosen) // 5])


@pytest.mark.promise("E4")
@pytest.mark.slow
@pytest.mark.parametrize("which", ["before", "after"])
def test_a_lost_answer_of_each_kind_of_call(folder: Path, which: str) -> None:
    lose_each(lived, folder, which)


@pytest.mark.promise("G2", "E4")
@pytest.mark.parametrize("seed", range(3))
async def test_every_answer_is_lost_for_a_while(folder: Path, seed: int) -> None:
    """A third of them, in no rhythm: a loss that keeps step with the tries would lose every try of one effect."""
    lost = Random(seed).sample(range(5, 400), 130)
    world = full(folder)
    await world.finish(Points(lose=dict.fromkeys(lost, "after")), person=True)


# --- the agent server ---------------------------------------------------------------------------------------------


class Replaced(MemoryRunner):
    """A server that died and came up again just before its first prompt: nobody has seen that yet."""

    async def send(self, prompt: Prompt) -> str:
        if not self.began:
            self.kill()
            await self.start()
        return await super().send(prompt)


async def test_a_prompt_counts_as_given_to_the_server_that_took_it(folder: Path) -> None:
    """Not to the one that was last seen: its successor's turn would be taken for dead, and begun twice."""
    world = World(folder, issues=1)
    world.runner = Replaced(world.clock, world.play)
    await world.live(person=True)
    first = world.bodies(PromptSent)[0]
    assert first.instance == "memory:2"
    assert set(world.runner.began.values()) == {1}
    world.check_done()


@pytest.mark.promise("G1", "T4")
async def test_a_server_killed_in_mid_turn_begins_the_turn_once_more(folder: Path) -> None:
    world = World(folder, issues=1)

    async def killer() -> None:
        await anyio.sleep(12)
        world.runner.kill()

    await world.finish(beside=killer, person=True, restarts=1)
    assert len(world.bodies(TurnDied)) == 1
    assert sorted(world.runner.began.values()) == [1, 1, 2]


@pytest.mark.promise("G1")
@pytest.mark.parametrize("at", [2.0, 4.0, 12.0, 26.0])
async def test_ashep_and_its_server_are_killed_together(folder: Path, at: float) -> None:
    world = World(folder, issues=1)
    points = Points()

    async def killer() -> None:
        await anyio.sleep(at)
        points.dead = True
        world.runner.kill()

    assert not await world.live(points=points, beside=killer)
    await anyio.sleep(5)
    await world.finish(person=True, restarts=1)


@pytest.mark.promise("T2", "E5")
@pytest.mark.parametrize("fate", ["missing", "stored"])
async def test_a_prompt_that_comes_to_nothing_is_sent_again_and_fails_nobody(
    folder: Path, fate: Literal["missing", "stored"]
) -> None:
    world = World(folder, issues=1)
    world.answer = lambda _, asked: Play(fate=fate, delay=1) if len(world.bodies(PromptAbandoned)) < 3 else None
    await world.finish(person=True)
    assert {fact.state for fact in world.bodies(RunEnded)} == {"succeeded"}
    assert [fact.n for fact in world.bodies(PromptAbandoned)] == [1, 1, 1]


@pytest.mark.promise("T2", "E5")
async def test_a_turn_that_dies_again_and_again_parks_its_issue(folder: Path) -> None:
    world = World(folder, issues=1)
    world.answer = lambda _, asked: Play(fate="dies", delay=1)
    await world.live(lambda: bool(world.world.flows) and bool(world.comments("t-1")))
    assert account(world.world, "t-1").code == "infrastructure"
    assert "died 11 times" in world.comments("t-1")[-1]
    assert world.world.flows["t-1"].failures == 0


@pytest.mark.promise("T5")
async def test_an_agent_that_never_ends_times_out_three_times_and_parks(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    world.answer = lambda _, asked: Play(delay=1e9)
    await world.live(lambda: bool(world.world.flows) and world.issues()[issue].status == "blocked")
    await world.live(lambda: bool(world.comments(issue)))
    assert [fact.state for fact in world.bodies(RunEnded)] == ["timed_out"] * 3
    assert account(world.world, issue).code == "attempts"
    assert "ashep:parked" in world.issues()[issue].labels
    assert not await world.runner.busy(world.runner.sessions)
    # a person takes the label off, and it starts afresh
    world.answer = None
    world.tracker.person_sets(issue, "pat", remove_labels=("ashep:parked",))
    await world.finish(person=True)
    stopped, *_, finished = [fact for fact in (*world.bodies(TurnStopped), *world.bodies(TurnSeen)) if fact.steps]
    ends = [blob(folder / "state", fact.steps or "") or "" for fact in (stopped, finished)]
    assert [read_steps([text]).steps[-1].text[:14] for text in ends] == [ABORTED[:14], "Done.\n\n```json"]


@pytest.mark.promise("C2")
async def test_a_suspended_machine_times_nothing_out(folder: Path) -> None:
    world = World(folder, issues=1)
    world.delay = minutes(20)

    async def sleeper() -> None:
        await anyio.sleep(minutes(5))
        world.clock.jump(timedelta(hours=9))

    await world.finish(beside=sleeper, person=True)
    assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded"] * 3
    assert len(world.bodies(ClockJumped)) == 1


@pytest.mark.promise("C2")
@pytest.mark.parametrize("hours", [-9, -90_000])
async def test_a_clock_that_is_set_back_makes_no_wait_longer(folder: Path, hours: int) -> None:
    world = World(folder)
    world.outcomes = {"implement": [{"result": "failed", "summary": "cannot"}, {}]}
    issue = world.tracker.add("first")

    async def back() -> None:
        await wait_until(lambda: world.bodies(RetryScheduled), minutes(60), 1)
        world.clock.jump(timedelta(hours=hours))

    await world.live(lambda: bool(world.world.flows) and world.stands(issue) == "person", beside=back)
    assert world.clock.monotonic() < 180
    await world.live(lambda: world.clock.monotonic() > 240)  # nor a start by the clock that is right now
    await world.finish(person=True)
    assert not world.bodies(ClockJumped)


async def test_a_git_that_fails_for_a_while_is_waited_out(folder: Path) -> None:
    world = World(folder, issues=1)
    read, until = world.tree.read, world.clock.now() + timedelta(seconds=55)

    async def broken() -> Tree:
        if world.entries and world.clock.now() < until:
            raise AshepError("git status ended with exit code 128: fatal: bad config line 1 in file .git/config")
        return await read()

    async def breaks() -> None:
        await wait_until(lambda: world.world.tree, minutes(60), 1)
        world.tree.read = broken  # pyright: ignore[reportAttributeAccessIssue]
        world.tracker.add("second")

    await world.live(lambda: len(world.world.flows) == 2 and world.all_closed(), beside=breaks, person=True)
    world.check_done()


async def test_work_that_comes_after_a_long_quiet_time_is_begun(folder: Path) -> None:
    world = World(folder)

    async def later() -> None:
        await anyio.sleep(minutes(100))
        world.tracker.add("first")

    await world.finish(beside=later, person=True)


@pytest.mark.promise("G2")
async def test_an_hour_without_tracker_or_server_is_waited_out(folder: Path) -> None:
    world = World(folder, issues=1)
    away = world.away()
    methods = ("look", "issue", "claim", "update", "comment", "commented", "changes", "relabel")

    async def outage() -> None:
        await anyio.sleep(15)
        away.now = True
        for method in methods:
            world.tracker.fail(method, TrackerUnavailable("away"), times=10_000)
        await anyio.sleep(minutes(60))
        away.now = False
        world.tracker._failures.clear()  # pyright: ignore[reportPrivateUsage]

    await world.finish(beside=outage, person=True)
    assert not world.bodies(IssueParked)


@pytest.mark.promise("E3")
async def test_a_tracker_that_is_away_is_asked_each_ten_seconds_while_runs_are_live(folder: Path) -> None:
    world = World(folder, issues=1)
    world.delay = minutes(60)
    async with world.living():
        await anyio.sleep(30)
        assert world.world.indexes.live
        world.tracker.fail("look", TrackerUnavailable("away"), times=10_000)
        await anyio.sleep(60)
        before = world.tracker.calls["look"]
        await anyio.sleep(minutes(10))
        assert 58 <= world.tracker.calls["look"] - before <= 61


async def test_a_look_at_thousands_of_issues_is_told_bit_by_bit_and_the_most_urgent_go_first(folder: Path) -> None:
    world = World(folder)
    many = [world.tracker.add(f"part {number}", priority=3) for number in range(2000)]
    first = world.tracker.add("urgent", priority=0)
    sizes: list[int] = []
    async with world.living(sources=False) as running, anyio.create_task_group() as group:
        running.shepherd.show(lambda entries, _: sizes.append(len(entries)))
        group.start_soon(running.monitors[0].run)
        await anyio.sleep(5)
        group.start_soon(running.poller.run, await world.tracker.check())
        await running.poller.fresh_look()
        assert {*world.world.indexes.unclosed} == {*many, first}
        assert world.bodies(IssueTaken)[0].issue == first
        assert max(sizes) < 500, "what is decided at once keeps everybody else waiting"
        # people change most of them, and close some
        for issue in many:
            if issue not in world.world.indexes.live:
                world.tracker.person_sets(issue, "pat", add_labels=("x",))
        for issue in many[-5:]:
            world.tracker.person_sets(issue, "pat", status="closed")
        await running.poller.fresh_look()
        labelled = [flow for flow in world.world.flows.values() if "x" in flow.issue.labels]
        assert len(labelled) >= 1990
        assert max(sizes) < 500
        await anyio.sleep(5)
        assert not {*world.world.indexes.unclosed} & {*many[-5:]}
        group.cancel_scope.cancel()


@pytest.mark.promise("E3")
async def test_what_a_look_saw_counts_where_it_could_not_see_what_is_ready(folder: Path) -> None:
    class Half(MemoryTracker):
        fails = False

        async def look(self) -> Look:
            look = await super().look()
            if self.fails:
                raise PartialSnapshot("ready said no", replace(look, ready=()))
            return look

    world = World(folder)
    world.tracker = tracker = Half(world.clock.now, ACTOR)
    tracker.fails = True
    first = tracker.add("first")
    async with world.living():
        await anyio.sleep(1)
        assert first in world.world.flows, "the issue was seen"
        assert not world.world.tracker_error
        assert not world.bodies(IssueTaken), "but whether it is ready is not known"
        assert world.world.tracker is not None
        assert world.world.tracker.lacks == ""
        await anyio.sleep(60)
        assert [one.lacks for one in world.bodies(TrackerSeen)] == ["", "ready said no"], "told once, and not at once"
        tracker.fails = False
        await anyio.sleep(35)
        assert world.world.tracker.lacks == ""
        assert world.bodies(IssueTaken)


# --- people -------------------------------------------------------------------------------------------------------

MOMENTS = [
    pytest.param(moment, marks=[] if place % 3 == 0 else [pytest.mark.slow])
    for place, moment in enumerate((
        0.2, 0.5, 0.8, 1.1, 1.5, 2.0, 3.0, 5.5, 6.0, 6.3, 6.6, 7.0, 9.0,
        11.5, 12.0, 12.5, 13.0, 16.0, 17.5, 18.0, 19.0, 25.0,
    ))
]  # fmt: skip
"""Seconds at which a person acts, from before the claim until the question stands."""


async def interfered(
    folder: Path, moment: float, settle: float, act: Callable[[World, str], object]
) -> tuple[World, str]:
    """A world and its issue, with which a person did something at a moment, some time after that."""
    world = World(folder, seed=int(moment * 10))
    world.delay = 4.0
    issue = world.tracker.add("first")
    end = moment + settle

    async def person() -> None:
        await anyio.sleep(moment)
        act(world, issue)

    await world.live(lambda: world.clock.monotonic() >= end, beside=person)
    world.check()
    assert not await world.runner.busy(world.runner.sessions), world.state()
    return world, issue


def set_to(**fields: Any) -> Callable[[World, str], object]:
    """A person sets this."""
    return lambda world, issue: world.tracker.person_sets(issue, "pat", **fields)


def phases_of(world: World, issue: str, *kinds: str) -> tuple[str, ...]:
    """The labels of an issue that say its phase, or are of other kinds."""
    return tuple(label for label in world.issues()[issue].labels if label.startswith(("phase:", *kinds)))


@pytest.mark.promise("G5", "P2")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_closes_it(folder: Path, moment: float) -> None:
    world, issue = await interfered(folder, moment, 60, set_to(status="closed"))
    assert world.issues()[issue].status == "closed", world.state()
    if issue in world.world.flows:
        assert world.stands(issue) == "closed", world.state()
    assert world.world.lock is None


@pytest.mark.promise("P4")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_excludes_it(folder: Path, moment: float) -> None:
    world, issue = await interfered(folder, moment, 60, set_to(add_labels=("ashep:excluded",)))
    view = world.issues()[issue]
    assert (view.status, view.assignee) == ("open", None), world.state()
    assert world.stands(issue) == "not_eligible", world.state()
    assert world.code(issue) == "excluded"


@pytest.mark.promise("G5", "P3")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_takes_it_over(folder: Path, moment: float) -> None:
    world, issue = await interfered(folder, moment, 60, set_to(assignee="pat", status="in_progress"))
    view = world.issues()[issue]
    assert (view.status, view.assignee) == ("in_progress", "pat"), world.state()
    assert world.stands(issue) == "not_eligible", world.state()


@pytest.mark.promise("P1")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_sets_it_to_open(folder: Path, moment: float) -> None:
    world, issue = await interfered(folder, moment, 100, set_to(status="open"))
    flow = world.world.flows[issue]
    if world.stands(issue) == "person":  # it was open still, or not yet ours: nothing was taken away from us
        assert moment < 1.0
        return
    assert (world.issues()[issue].status, world.issues()[issue].assignee) == ("open", None), world.state()
    assert flow.not_before is not None
    assert world.code(issue) == "cooldown", world.state()


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_sets_it_free(folder: Path, moment: float) -> None:
    def act(world: World, issue: str) -> None:
        set_to(status="open", assignee="", remove_labels=phases_of(world, issue, "needs:"))(world, issue)

    world, issue = await interfered(folder, moment, 150, act)
    assert world.stands(issue) == "person", world.state()
    assert world.issues()[issue].assignee == ACTOR


@pytest.mark.promise("P6")
@pytest.mark.parametrize("moment", MOMENTS[4:])
async def test_a_person_sets_the_phase(folder: Path, moment: float) -> None:
    def act(world: World, issue: str) -> None:
        others = {*phases_of(world, issue)} - {"phase:arbitrate"}
        set_to(add_labels=("phase:arbitrate",), remove_labels=tuple(others))(world, issue)

    world, issue = await interfered(folder, moment, 60, act)
    assert world.stands(issue) == "person", world.state()
    assert "arbitrate" in [fact.phase for fact in world.bodies(PhaseEntered)]
    assert phases_of(world, issue) == ("phase:human_review",)


@pytest.mark.promise("P7")
@pytest.mark.parametrize("moment", MOMENTS[4:])
async def test_a_person_takes_the_phase_off(folder: Path, moment: float) -> None:
    def act(world: World, issue: str) -> None:
        set_to(remove_labels=phases_of(world, issue))(world, issue)

    world, issue = await interfered(folder, moment, 60, act)
    if phases_of(world, issue):  # it fell together with our own next transition
        assert world.stands(issue) == "person", world.state()
        return
    assert world.stands(issue) == "not_eligible", world.state()
    assert world.code(issue) == "phase_taken_off"
    assert world.world.lock is None


@pytest.mark.promise("P2")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_person_deletes_it(folder: Path, moment: float) -> None:
    world, issue = await interfered(folder, moment, 60, lambda world, issue: world.tracker.person_deletes(issue, "pat"))
    if issue in world.world.flows:
        assert world.stands(issue) == "closed", world.state()


@pytest.mark.promise("G5", "P10")
@pytest.mark.parametrize("moment", MOMENTS[6:-5])
async def test_a_person_writes_in_the_session(folder: Path, moment: float) -> None:
    world = World(folder)
    world.delay = 4.0
    issue = world.tracker.add("first")

    async def person() -> None:
        await anyio.sleep(moment)
        if busy := await world.runner.busy(world.runner.sessions):
            world.runner.person_writes(next(iter(busy)), "stop, I do it myself", delay=3)

    await world.live(lambda: world.clock.monotonic() >= moment + 60, beside=person)
    world.check()
    assert world.stands(issue) in ("parked", "person"), world.state()


@pytest.mark.promise("Q2")
async def test_an_agents_own_approval_passes_nothing(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"

    async def agent() -> None:
        await wait_until(lambda: "needs:human_approval" in world.issues()[issue].labels, minutes(60), 1)
        world.tracker.person_sets(issue, "ashep-agent", add_labels=("human:approved",))

    await world.live(lambda: world.clock.monotonic() > 300, beside=agent)
    world.check()
    assert world.stands(issue) == "person"
    assert "human:approved" not in world.issues()[issue].labels
    assert len(world.bodies(AnswerRefused)) == 1
    assert any("Only a person's label answers" in text for text in world.comments(issue))
    await world.finish(person=True)


@pytest.mark.promise("Q2")
@pytest.mark.parametrize("moment", [3.0, 8.0, 12.0])
async def test_a_label_set_early_is_no_answer(folder: Path, moment: float) -> None:
    """An approval that is older than the question answers nothing: it would close what nobody has seen."""
    world, issue = await interfered(folder, moment, 60, set_to(add_labels=("human:approved",)))
    assert world.stands(issue) == "person", world.state()
    assert world.issues()[issue].status == "blocked"


async def test_a_failed_implement_and_an_approval_close_nothing(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    world.outcomes = {"implement": [{"result": "failed", "summary": "cannot"}]}
    await world.live(lambda: bool(world.world.flows) and world.issues()[issue].status == "blocked")
    world.tracker.person_sets(issue, "pat", add_labels=("human:approved",))
    await world.live(lambda: world.clock.monotonic() > minutes(20))
    assert world.stands(issue) == "parked"
    assert world.issues()[issue].status == "blocked"
    world.check()


@pytest.mark.promise("G6", "Q5")
async def test_a_question_that_nobody_answers_parks_at_its_deadline(folder: Path) -> None:
    text = policy(
        {"name": "implement", "access": "write"}, {"name": "sign_off", "human": {"ask": "Fine?", "deadline": "30m"}}
    )
    world, issue = World(folder, policies=text, issues=1), "t-1"
    await world.live(lambda: bool(world.world.flows) and world.stands(issue) == "parked")
    assert world.code(issue) == "question_deadline"
    assert minutes(30) < world.clock.monotonic() < minutes(32)
    world.check()


# --- the end of a daemon ------------------------------------------------------------------------------------------


@pytest.mark.promise("C1", "L1")
@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.7, 1.0, 1.4, 2.0, 4.0, 6.2, 6.5, 8.0, 12.0, 20.0])
async def test_a_stop_at_any_moment_and_a_new_start(folder: Path, seconds: float) -> None:
    world = full(folder)
    async with world.living() as running:
        await anyio.sleep(seconds)
        began = world.clock.monotonic()
        await running.shepherd.stop("asked to")
        assert world.clock.monotonic() - began < 4
    assert len(world.bodies(DaemonStopped)) == 1
    await anyio.sleep(3)
    await world.finish(person=True)


async def until(world: World, options: WorkOptions, said: list[str]) -> int:
    info = await world.tracker.check()
    async with world.living(options=options, sources=False) as running:
        return await running.until(info, options, said.append)
    raise AssertionError


@pytest.mark.promise("L2")
async def test_until_idle_ends_where_only_people_can_go_on(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    lines = list[str]()
    code = await until(world, WorkOptions(until_idle=True), lines)
    assert code == 0
    assert world.stands(issue) == "person"
    assert lines[-1] == "idle: 1 waiting for a person"
    assert world.clock.monotonic() < 80


@pytest.mark.promise("L2")
async def test_until_idle_waits_for_a_retry_that_is_due_soon(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    world.outcomes = {"implement": [{"result": "failed", "summary": "cannot"}, {}]}
    assert await until(world, WorkOptions(until_idle=True), []) == 0
    assert world.stands(issue) == "person", world.state()


@pytest.mark.promise("L2")
async def test_until_idle_says_so_where_the_server_stays_away(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    world.runner.fault = lambda method, when: RunnerUnavailable("away")
    options = WorkOptions(until_idle=True, idle_grace=timedelta(minutes=2))
    assert await until(world, options, []) == 1
    assert minutes(2) <= world.clock.monotonic() < minutes(4)
    assert world.stands(issue) == "time"


@pytest.mark.promise("L2")
async def test_until_idle_ends_at_once_where_only_a_person_can_put_it_right(folder: Path) -> None:
    world, lines = World(folder, issues=2), list[str]()
    world.tree.write("calc.py", "2")
    assert await until(world, WorkOptions(until_idle=True), lines) == 1
    gave_up = "gave up waiting: t-1 and 1 more wait: the work tree has changes that are not ashep's: calc.py"
    assert lines[-2:] == [
        f"{gave_up} (commit or stash them, or set `worker.allow_dirty`)", "idle: 2 waiting for a time or a slot",
    ]  # fmt: skip
    assert world.clock.monotonic() < 60
    world.tree.commit("mended")
    assert await until(world, WorkOptions(until_idle=True), lines) == 0
    assert [world.stands(issue) for issue in ("t-1", "t-2")] == ["person"] * 2


async def test_until_idle_fails_where_nothing_like_what_was_asked_for_is_there(folder: Path) -> None:
    world = World(folder)
    issue, lines = world.tracker.add("first"), list[str]()
    assert await until(world, WorkOptions(issues=("t-none",), until_idle=True), lines) == 1
    assert lines[-1] == "there is no issue t-none that is not closed"
    assert world.stands(issue) == "not_eligible"


async def test_until_idle_on_an_empty_tracker_ends_at_once(folder: Path) -> None:
    world, lines = World(folder), list[str]()
    assert await until(world, WorkOptions(until_idle=True), lines) == 0
    assert world.clock.monotonic() < 5
    assert lines[-1] == "idle: no issue is known"


@pytest.mark.promise("D8")
async def test_max_issues_and_named_issues(folder: Path) -> None:
    world = World(folder)
    first, second, third = (world.tracker.add(name) for name in ("first", "second", "third"))
    options = WorkOptions(issues=(second, third), until_idle=True, max_issues=1)
    assert await until(world, options, []) == 0
    assert [world.stands(one) for one in (first, second, third)] == ["not_eligible", "person", "not_eligible"]
    assert [world.code(one) for one in (first, third)] == ["not_asked", "max_issues"]


@pytest.mark.promise("L1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_within_seconds_and_says_so(folder: Path, number: signal.Signals) -> None:
    world = World(folder, issues=1)
    lines, ended = list[str](), list[float]()

    async def send() -> None:
        await anyio.sleep(10)
        signal.raise_signal(number)

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        await until(world, WorkOptions(), lines)
        ended.append(world.clock.monotonic())
    assert ended[0] < 14
    assert any(number.name in line for line in lines)
    assert len(world.bodies(DaemonStopped)) == 1
    await world.finish(person=True)
