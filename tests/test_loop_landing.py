"""The whole daemon where work is verified and lands, killed at its boundaries, over adapters in memory."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.core.facts.delivery import LandingRefused, WorkConflicted, WorkLanded, WorkVerified
from ashep.core.facts.issues import IssueClosed, IssueParked, PersonAsked, RetryScheduled
from ashep.core.facts.records import Entry, to_json
from ashep.core.facts.runs import RunPlanned
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.branches import branch_of
from ashep.core.state.indexes import turn
from ashep.core.state.world import World as Known
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryLanding
from ashep.extras.simulation.virtual_time import EPOCH
from ashep.journal.reader import START
from ashep.journal.writer import Journal
from ashep.ports.landing import Advanced, MoveRefused
from ashep.store.issue_row import issue_row, landing
from ashep.store.projection import Drawing
from ashep.views import evidence
from ashep.views.issue_story import SENTENCES, Telling
from tests.loop_hands import IMPLEMENT, Hands, check_landed, landing_world
from tests.loop_world import Points, World, crash_at_each, crossed, lose_each, minutes, simulate, some

pytestmark = pytest.mark.virtual


def alone(issue: str) -> tuple[str, ...]:
    """Each issue writes a file of its own."""
    return (f"{issue}.py",)


def together(_: str) -> tuple[str, ...]:
    """All write the same file."""
    return ("calc.py",)


class Moving(MemoryLanding):
    """A base to which a person commits in the moment before ashep moves it, so many times."""

    times = 1

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        if self.times > 0:
            self.times -= 1
            self._workspaces.commit(f"notes.{self.times}", "a person's")
        return await super().advance(base_branch, old, new)


class Failing(MemoryLanding):
    """A base to which git never writes the first issue's file."""

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        if "t-1.py" in self._workspaces.files(new):
            return MoveRefused("failed", "git says: external filter 'no-git-lfs filter-process' failed")
        return await super().advance(base_branch, old, new)


def add(world: World, count: int) -> list[str]:
    return [world.tracker.add(f"issue {number}") for number in range(count)]


async def test_the_work_of_issues_that_do_not_meet_lands(folder: Path) -> None:
    hands = Hands(alone)
    world = landing_world(folder, hands)
    issues = add(world, 4)
    await world.finish()
    check_landed(world, hands)
    assert hands.taken_in == 0
    assert [fact.run for fact in world.bodies(RunPlanned)] == [f"{issue}/implement.1.1" for issue in issues]
    for issue in issues:
        (told,) = [text for text in world.comments(issue) if text.startswith("Landed on `main` as ")]
        assert "1 of 1 checks passed in tree " in told


async def test_work_that_contradicts_the_base_goes_back_to_who_wrote_it_and_lands_then(folder: Path) -> None:
    hands = Hands(together)
    world = landing_world(folder, hands)
    add(world, 3)
    await world.finish()
    check_landed(world, hands)
    # one lands, the others contradict it; the second of them that comes back may contradict the first
    assert len({fact.issue for fact in world.bodies(WorkConflicted)}) == 2
    assert 2 <= hands.taken_in == len(world.bodies(WorkConflicted)) <= 3
    assert all(fact.paths == ("calc.py",) for fact in world.bodies(WorkConflicted))


async def test_a_check_that_fails_is_mended_in_the_second_attempt(folder: Path) -> None:
    hands = Hands(alone, bad={"t-2": 1})
    world = landing_world(folder, hands)
    add(world, 3)
    await world.finish()
    check_landed(world, hands)
    (again,) = world.bodies(RetryScheduled)
    told = "implement says success, but these checks do not pass: sound; attempt 1 of 3"
    assert (again.issue, again.why) == ("t-2", told)
    runs = [fact.run for fact in world.bodies(RunPlanned) if fact.issue == "t-2"]
    assert runs == ["t-2/implement.1.1", "t-2/implement.1.2"]


@pytest.mark.promise("Z5")
async def test_an_agent_that_changes_nothing_closes_nothing(folder: Path) -> None:
    hands = Hands(alone, idle={"t-2": 99})
    world = landing_world(folder, hands)
    add(world, 3)
    await world.live(lambda: world.issues()["t-2"].status == "blocked" and len(world.bodies(IssueClosed)) == 2)
    world.check()
    (asked,) = world.bodies(PersonAsked)
    assert (asked.issue, asked.about) == ("t-2", "proof")
    assert "implement says success, but the work changes nothing" in asked.question
    assert world.issues()["t-2"].status == "blocked"
    assert {fact.issue for fact in world.bodies(WorkLanded)} == {"t-1", "t-3"}


@pytest.mark.promise("Z5")
async def test_what_a_person_lets_pass_lands_nothing_where_there_is_nothing(folder: Path) -> None:
    hands = Hands(alone, idle={"t-1": 99})
    world = landing_world(folder, hands)
    add(world, 2)
    await world.finish(person=True)
    flow = world.world.flows["t-1"]
    assert flow.work.waived == ("unchanged",)
    other, landed = sorted(world.bodies(WorkLanded), key=lambda fact: fact.already)
    assert (other.issue, landed.issue, other.empty, landed.empty) == ("t-2", "t-1", False, True)
    (closed,) = [fact.why for fact in world.bodies(IssueClosed) if fact.issue == "t-1"]
    assert closed == "nothing was changed, and nothing landed on main"
    (comment,) = [text for text in world.comments("t-1") if "landed" in text]
    assert comment.startswith("Nothing was changed, and nothing landed on `main`; ")
    notes = world.tracker.metadata("t-1")
    assert (notes["landed"], notes["landing"]) == (None, "nothing was changed")
    assert evidence.landing(landing(flow)) == "landed nowhere: nothing was changed"
    sentence = SENTENCES["WorkLanded"](Telling(), to_json(Entry(1, EPOCH, landed)))
    assert sentence == ("nothing was changed, and nothing landed on main", "")
    assert other.commit[:12] not in comment + closed + json.dumps([notes["landed"], notes["landing"]])
    assert world.tracker.metadata("t-2")["landing"] == "landed"


@pytest.mark.promise("Z5")
async def test_work_that_a_later_phase_undid_closes_nothing(folder: Path) -> None:
    """What was found after the phase is asked again as it lands: only then is it known what there is to land."""

    class Undone(Hands):
        def __call__(self, world: World, asked: Prompted) -> Play:
            played = super().__call__(world, asked)
            if "/tidy." in asked.key and world.workspaces is not None:
                world.own_trees.edit(branch_of("t-1"), "t-1.py", None)
            return played

    tidy = {"name": "tidy", "capabilities": ["implement"], "access": "write", "max_visits": 2}
    world = landing_world(folder, Undone(alone), IMPLEMENT, tidy)
    add(world, 1)
    await world.live(lambda: bool(world.bodies(IssueParked)))
    (parked,) = world.bodies(IssueParked)
    assert parked.code == "max_visits"
    assert "on main it did not hold: unchanged" in parked.why
    assert [fact.phase for fact in world.bodies(RunPlanned)] == ["implement", "tidy", "tidy"]
    assert [fact.changed for fact in world.bodies(WorkVerified)] == [True, False, False]
    assert not world.bodies(IssueClosed)


@pytest.mark.promise("Z5")
@pytest.mark.parametrize("squashed", [False, True])
async def test_work_that_a_person_brought_to_the_base_by_hand_has_changed_something(
    folder: Path, squashed: bool
) -> None:
    async def by_hand(world: World) -> None:
        trees = world.own_trees
        while not world.bodies(PersonAsked):
            await anyio.sleep(1)
        if squashed:
            trees.commit("t-1.py", trees.read(branch_of("t-1"))["t-1.py"])
        else:
            own = world.world.flows["t-1"].work.own
            assert own is not None
            assert trees.advance(trees.base, own.head)

    look = {"name": "look", "human": {"ask": "Fine?", "approved": "close"}}
    world = landing_world(folder, Hands(alone), IMPLEMENT, look)
    add(world, 1)
    await world.finish(beside=lambda: by_hand(world), person=True)
    (landed,) = world.bodies(WorkLanded)
    found = world.bodies(WorkVerified)[-1]
    assert (landed.already, found.run, found.commit) == (True, "", landed.commit)
    assert (found.must_change, found.changed, len(found.results)) == (True, True, 1)


async def test_a_base_that_a_person_moves_meanwhile_is_met_again_and_verified_again(folder: Path) -> None:
    hands = Hands(alone)
    world = landing_world(folder, hands)
    world.landing = Moving(world.own_trees)
    world.landing.times = 6
    add(world, 2)
    await world.finish()
    check_landed(world, hands)
    held = world.own_trees.files(world.own_trees.base)
    assert {f"notes.{number}" for number in range(6)} <= held.keys()
    refused = world.bodies(LandingRefused)
    assert [fact.code for fact in refused] == ["moved"] * 6
    verified = [fact.commit for fact in world.bodies(WorkVerified) if not fact.run]
    assert len(set(verified)) == len(verified) == 8


@pytest.mark.parametrize("seen_to_change", [False, True])
def test_a_checkout_that_a_person_works_in_is_waited_for(folder: Path, seen_to_change: bool) -> None:
    async def scenario() -> None:
        hands = Hands(alone)
        world = landing_world(folder, hands)
        world.landing = MemoryLanding(world.own_trees)
        first, second = add(world, 2)
        world.landing.edited = {f"{first}.py"}

        async def person() -> None:
            while not world.bodies(LandingRefused):
                await anyio.sleep(5)
            await anyio.sleep(minutes(30))
            while world.code(first) != "landing_dirty":
                await anyio.sleep(0.5)  # it is being tried just now
            tried = len(world.bodies(LandingRefused))
            if seen_to_change:
                world.tree.write("calc.py", "a person's")
                await anyio.sleep(minutes(1.5))
                assert len(world.bodies(LandingRefused)) == tried + 1, "it is tried when the checkout changes"
            assert (world.code(first), world.stands(first)) == ("landing_dirty", "time")
            assert [fact.issue for fact in world.bodies(WorkLanded)] == [second], "it does not touch that file"
            assert world.stands(second) == "closed"
            assert world.landing is not None
            world.landing.edited.clear()

        await world.finish(beside=person)
        check_landed(world, hands)
        refused = world.bodies(LandingRefused)
        assert len(refused) == 6 + seen_to_change  # after 1, 2, 4, 8 and 10 minutes
        assert {fact.issue for fact in refused} == {first}
        assert {fact.code for fact in refused} == {"dirty"}

    simulate(scenario)
    assert check_drawn(folder) >= {"landing_dirty", "landing_queue", "landing"}


@pytest.mark.promise("Z5")
def test_what_git_writes_nowhere_is_a_persons_and_the_others_land(folder: Path) -> None:
    async def scenario() -> None:
        hands = Hands(alone)
        world = landing_world(folder, hands)
        world.landing = Failing(world.own_trees)
        first, *others = add(world, 4)
        await world.live(lambda: world.issues()[first].status == "blocked" and len(world.bodies(IssueClosed)) == 3)
        assert world.code(first) == "landing_unwritten"
        assert "no-git-lfs" in world.world.flows[first].why
        assert {fact.issue for fact in world.bodies(LandingRefused)} == {first}
        world.check()
        check_landed(world, hands, but=[first])
        closed = {fact.issue for fact in world.bodies(IssueClosed)}
        assert closed == {*others}

    simulate(scenario)
    assert check_drawn(folder) >= {"landing_failed"}


def test_whoever_waits_behind_is_drawn_anew_when_the_queue_moves(folder: Path) -> None:
    async def scenario() -> None:
        world = landing_world(folder, Hands(together))
        add(world, 3)
        await world.live()

    simulate(scenario)
    codes = check_drawn(folder)
    assert codes >= {"verify", "landing", "landing_queue", "landing_verify", "finishing", "shepherd"}


def check_drawn(folder: Path) -> set[str]:
    """Whatever a batch changes about how an issue is shown is drawn with it; gives the codes that were shown."""
    journal, shown, codes = Journal.open(folder / "state", EPOCH), dict[str, Any](), set[str]()
    known, after, first = Known(), START, None
    for end, entries in journal.batches(after):
        for entry in entries:
            known = evolve(known, entry)
        drawing = Drawing(journal, after, end, known, first)
        assert [entry for chunk in drawing.chunks(lambda *_: None) for entry in chunk] == list(entries)
        touched, after, first = {*drawing.end()[1]}, end, turn(known.indexes)
        for issue in known.flows:
            row = issue_row(known, issue)
            assert issue in touched or shown[issue] == row, f"{issue} is shown as {shown[issue]}, and is {row}"
            shown[issue] = row
            codes.add(row["code"])
    journal.close()
    return codes


# --- whatever is killed or lost -----------------------------------------------------------------------------------


def full(folder: Path) -> tuple[World, Hands]:
    """Three issues: two that contradict each other, one whose check fails at first, and a base that moves once."""
    hands = Hands(lambda issue: ("calc.py",) if issue != "t-3" else ("apart.py",), bad={"t-3": 1})
    world = landing_world(folder, hands)
    world.landing = Moving(world.own_trees)
    add(world, 3)
    return world, hands


async def lived(folder: Path, points: Points) -> None:
    """A life in which all three land, whatever happens at its points."""
    world, hands = full(folder)
    crashed = not await world.live_on(points)
    world.check_done(restarts=int(crashed))
    check_landed(world, hands)
    if not crashed and not points.lose:
        assert hands.taken_in == 1
        assert [fact.code for fact in world.bodies(LandingRefused)] == ["moved"]


@pytest.mark.promise("Z5")
@pytest.mark.slow
def test_a_crash_at_each_kind_of_boundary(folder: Path) -> None:
    names = crossed(lived, folder).names
    of_work = ("verify", "integrate", "advance", "seal", "read", "forget")
    kinds = {f"{name} {end}" for name in of_work for end in ("asked", "done")}
    assert kinds <= {*names}
    here = [name if name in kinds else "" for name in names]
    crash_at_each(lived, folder, sorted({*some(names, 1), *some(here, 4)}))


@pytest.mark.promise("Z5")
@pytest.mark.slow
@pytest.mark.parametrize("which", ["before", "after"])
def test_a_lost_answer_of_each_kind_of_call(folder: Path, which: str) -> None:
    lose_each(lived, folder, which)
