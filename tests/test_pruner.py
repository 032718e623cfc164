"""`journal: {keep: 2d}`: what is older goes by itself, with its texts, rows and lines, and what is open loses nothing.

A week in virtual time, 200 issues that land: files, texts, lines and rows stay within their bound. One issue waits with
unmerged work until a person closes it and takes its branch away: as long nothing of it is missing. One was never begun,
and holds nothing.
"""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.actions.replay import replay
from ashep.core.analysis.replay import Replay
from ashep.core.facts.resources import JournalPruned, TimerDue
from ashep.core.facts.tracker import IssueSeen
from ashep.core.policy.settings import JournalSettings, Settings
from ashep.core.resources.retention import SealedFile, going, issue_of, needed_for, pruned, why_kept
from ashep.core.state.branches import branch_of
from ashep.core.state.delivery import OwnTree, Work
from ashep.core.state.flow import Counters, Flow
from ashep.core.state.world import World as Known
from ashep.errors import AshepError, DiskFailed
from ashep.journal import prune, snapshots
from ashep.journal.archive import aged, archive_aged, archived, look
from ashep.journal.blobs import GRACE, Blobs
from ashep.journal.prune import find_blob_names, finish, stand_in, unfinished
from ashep.journal.reader import BASE, base, batches, journal_files
from ashep.journal.writer import Sizes
from ashep.store.journal_reader import JournalView
from ashep.store.sqlite_reader import NAME
from ashep.store.writer import Store
from tests.core.given import issue as an_issue
from tests.core.mutants import Mutant, planted
from tests.golden.story import T0
from tests.loop_hands import Hands, landing_world
from tests.loop_world import World, simulate
from tests.test_journal_snapshots import folded, lived, opened, recovered
from tests.test_store import dump

pytestmark = pytest.mark.promise("J11")

ISSUES, DAY, DAYS = 200, 24 * 3600.0, 7
KEEP = timedelta(days=2)
CONFIG = (
    "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\nlanding: {mode: merge}\n"
    "tracker: {poll_every: 30m}\nmonitor: {check_every: 15s}\njournal: {keep: 2d}\ntrees: {keep: 1d}\n"
)
STUCK = 30
"""The number of the issue whose work does not come to its end."""


# --- a week -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """What is on the disk at the end of a day."""

    journal: int
    texts: int
    rows: int
    lines: int
    database: int


def measured(world: World) -> Size:
    """Draw the pictures as a daemon does, and measure everything."""
    state = world.folder / "state"
    Store.open(state, JournalView(state / "journal")).close()
    with closing(sqlite3.connect(state / NAME)) as database:
        rows = sum(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("facts", "runs"))
    return Size(
        sum(path.stat().st_size for path in journal_files(state / "journal")), len([*state.glob("blobs/*/*")]), rows,
        len((world.folder / "runs.jsonl").read_bytes().splitlines()), (state / NAME).stat().st_size,
    )  # fmt: skip


class Week:
    """What is seen of a week, day by day."""

    def __init__(self, folder: Path) -> None:
        self.hands = Hands(lambda issue: (f"{issue}.py",))
        self.world = landing_world(folder, self.hands, config=CONFIG)
        self.world.sizes = Sizes(file=96 * 1024, keep=KEEP)
        self.state, self.sizes = folder / "state", list[Size]()
        self.texts = set[str]()
        """Every text that was there at the end of a day."""
        self.stuck = ""

    async def come_in(self) -> None:
        """Have people file issues, and close the one that waits on the fifth day."""
        world = self.world
        world.tracker.add("never to be begun", labels=("ashep:excluded",))
        for day in range(DAYS):
            for number in range(day * ISSUES // DAYS, (day + 1) * ISSUES // DAYS):
                issue = world.tracker.add(f"issue {number}")
                if number == STUCK:
                    self.stuck = issue
                    self.hands.bad[issue] = 99
                await anyio.sleep(DAYS * DAY / ISSUES)
            self.look()
            if day == 4:
                assert world.stands(self.stuck) in ("person", "parked")
                world.tracker.person_sets(self.stuck, "pat", status="closed")
                await world.own_trees.remove(branch_of(self.stuck), forget=True)

    def look(self) -> None:
        """Nothing that is young is missing, and nothing of what is open, nor a text that a record names."""
        self.sizes.append(measured(self.world))
        there = {entry.seq for batch in batches(self.state / "journal") for entry in batch.entries}
        young = self.world.clock.now() - KEEP
        for entry in self.world.entries:
            if entry.at > young or (self.stuck and len(self.sizes) <= 5 and issue_of(entry.body) == self.stuck):
                assert entry.seq in there, f"{entry} is gone"
        kept = {path.name for path in self.state.glob("blobs/*/*")}
        self.texts |= kept
        records = "".join(path.read_text() for path in journal_files(self.state / "journal"))
        lost = [text for text in self.texts - kept if text in records]
        assert not lost, f"{lost} are gone, and named"

    def compare(self) -> None:
        """What was held is gone, all is within the bound of its days, and the pictures are those of what is left."""
        first, held, last = self.sizes[0], self.sizes[5], self.sizes[6]
        for name, days in (("journal", 3), ("texts", 4), ("rows", 3), ("lines", 3)):
            a_day, until, now = (getattr(size, name) for size in (first, held, last))
            assert until > a_day * 4, f"{name}: nothing was held for what was open"
            assert now < a_day * days, f"{name}: {now}, on the first day {a_day}"
        assert last.database <= held.database
        assert self.texts - {path.name for path in self.state.glob("blobs/*/*")}
        Store.open(
            self.state, JournalView(self.state / "journal")
        ).close()  # the rest is drawn, as by whoever reads next
        drawn, lines = dump(self.state), (self.state.parent / "runs.jsonl").read_bytes()
        assert {row[0] for row in drawn["issues"]} == {*self.world.world.flows}
        (self.state / NAME).unlink()
        (self.state.parent / "runs.jsonl").unlink()
        Store.open(self.state, JournalView(self.state / "journal")).close()
        assert dump(self.state) == drawn
        assert (self.state.parent / "runs.jsonl").read_bytes() == lines
        assert {body.keep for body in self.world.bodies(JournalPruned)} == {KEEP}


def week(folder: Path) -> None:
    """Live it, and look at what is left at the end of every day."""

    async def scenario() -> None:
        seen = Week(folder)
        await seen.world.live(lambda: len(seen.sizes) == DAYS, patience=(DAYS + 2) * DAY, beside=seen.come_in)
        seen.compare()
        seen.world.check()  # it is derived again, and audited, from where the journal begins

    simulate(scenario)


@pytest.mark.slow
def test_a_week_leaves_what_is_young_and_all_that_is_open(folder: Path) -> None:
    week(folder)


def leaves(error: BaseException) -> list[BaseException]:
    """What a group of errors holds."""
    return (
        [leaf for one in error.exceptions for leaf in leaves(one)] if isinstance(error, BaseExceptionGroup) else [error]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake",
    [
        Mutant("the records of an open issue go", needed_for, "if begun else", "if False else"),
        Mutant(
            "a text goes that is named",
            find_blob_names,
            "names.update(name for line in file for name in _names(line))",
            "pass",
        ),
    ],
    ids=lambda mutant: mutant.name,
)
def test_what_goes_too_early_is_seen(folder: Path, mistake: Mutant) -> None:
    with planted(mistake), pytest.raises((AssertionError, BaseExceptionGroup)) as seen:
        week(folder)
    words = " ".join(map(str, leaves(seen.value)))
    assert "is gone" in words or "and named" in words, words


# --- what may go ------------------------------------------------------------------------------------------------------


ONCE = Counters(cycle=1)


def flow_of(**more: object) -> Flow:
    return Flow(an_issue(), **more)  # type: ignore[arg-type]


def own(**more: object) -> OwnTree:
    return replace(OwnTree("ashep/t-1", 0, base="a" * 40, head="b" * 40), **more)  # type: ignore[arg-type]


def test_what_was_begun_and_is_not_done_holds_its_records() -> None:
    free = [
        flow_of(),
        flow_of(stage="left"),
        flow_of(stage="closed", counters=ONCE),
        flow_of(stage="closed", counters=ONCE, work=Work(own=own(), landed=("main", "c"))),
        flow_of(stage="closed", counters=ONCE, work=Work(own=own(base=""))),
        flow_of(stage="closed", counters=ONCE, work=Work(own=own(head="a" * 40))),
    ]
    assert [needed_for(flow) for flow in free] == [""] * len(free)
    holding = [
        flow_of(stage=stage, counters=ONCE)
        for stage in ("idle", "work", "person", "parked", "finishing", "giving_back", "left")
    ]
    assert all(needed_for(flow) == "was begun, and is not done" for flow in holding)
    assert needed_for(flow_of(work=Work(own=own()))), "it was worked on"
    assert needed_for(flow_of(stage="closed", work=Work(own=own()))) == "is closed, and its work is on ashep/t-1 alone"
    assert "under way" in needed_for(flow_of(stage="closed", look_again=True))


def test_only_a_beginning_goes_that_is_old_and_held_by_nobody() -> None:
    settings = Settings(journal=JournalSettings.model_validate({"keep": "2d"}))
    flows = Known().flows.insert("t-1", flow_of(stage="parked", counters=ONCE)).insert("t-2", flow_of())
    world = Known(flows=flows, settings=settings)
    files = [
        SealedFile("1", T0, 10, frozenset({"t-2"})),
        SealedFile("10", T0 + timedelta(days=1), 20, frozenset()),
        SealedFile("20", T0 + timedelta(days=1), 30, frozenset({"t-1", "t-2"})),
        SealedFile("30", T0 + timedelta(days=1), 40, frozenset()),
    ]
    later = T0 + timedelta(days=9)
    assert pruned(world, files, later) == [JournalPruned(20, ("1", "10"), KEEP)]
    assert "t-1, which was begun" in why_kept(world, files[2], later)
    assert going(world, files, T0 + KEEP + timedelta(hours=1)) == files[:1]
    assert pruned(world, files, T0) == []
    assert pruned(world, files[2:], later) == []
    unset = replace(world, settings=Settings())
    assert pruned(unset, files, later) == []
    assert issue_of(TimerDue("deadline:t-1", T0)) == "t-1"
    assert issue_of(IssueSeen("t-2", an_issue(), 1)) == "t-2"


# --- how it goes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A journal of some files, with texts: of a record in the first file, of one in the last, and of none."""
    state = tmp_path / "state"
    lived(state)
    return state


def last_to_go(state: Path) -> str:
    return journal_files(state / "journal")[-3].name


def given_up(state: Path, blobs: Blobs) -> None:
    """Do all that follows the fact."""
    stand_in(state / "journal", last_to_go(state))
    finish(state / "journal", blobs)


def kept_text(state: Path, text: str) -> str:
    return anyio.run(Blobs(state / "blobs").keep, text)


@pytest.mark.parametrize("step", ["snapshot", "texts", "first file"])
def test_a_deletion_that_was_interrupted_is_finished(state: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, blobs = state / "journal", Blobs(state / "blobs")
    whole, gone = recovered(state)[0], kept_text(state, "nothing names it")
    before = [*replay(state, Replay())]  # the life was numbered again, which a decision may notice
    with opened(state) as journal:
        archive_aged(folder, T0 + timedelta(days=99))
        first = archived(folder)[0]
        unlink = Path.unlink

        def fails(*_: object) -> None:
            raise OSError(5, "the machine went away")

        def fails_later(path: Path) -> None:
            fails() if path.suffix == ".jsonl" and path != first else unlink(path)

        with monkeypatch.context() as patch:
            if step == "snapshot":
                patch.setattr(snapshots, "write", fails)
            elif step == "texts":
                patch.setattr(Blobs, "sweep", fails)
            else:
                patch.setattr(Path, "unlink", fails_later)
            with pytest.raises(DiskFailed, match="can be done again"):
                given_up(state, blobs)
        assert recovered(state)[0] == whole == folded(state)
        assert unfinished(folder) == (step != "snapshot")
        if step == "snapshot":
            assert not (folder / BASE).exists()
            stand_in(folder, last_to_go(state))
        assert finish(folder, blobs).files
        assert not unfinished(folder)
        assert not blobs.has(gone)
        assert journal.begins == base(folder).seq > 0
    assert recovered(state)[0] == whole == folded(state)
    shutil.rmtree(state / "snapshots")
    assert recovered(state)[0].flows == whole.flows
    assert [*replay(state, Replay())] == [one for one in before if one.seq > journal.begins]


def test_what_one_reads_while_it_goes_is_said_to_be_gone_and_not_damaged(state: Path) -> None:
    folder = state / "journal"
    reading, late = batches(folder), snapshots.beginning(folder)[1]
    next(reading)
    archive_aged(folder, T0 + timedelta(days=99))
    given_up(state, Blobs(state / "blobs"))
    with pytest.raises(AshepError, match="was pruned while it was read"):
        list(reading)
    assert late.seq == 0
    assert next(batches(folder)).end.seq > base(folder).seq


def test_a_text_that_is_about_to_be_named_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        blobs = Blobs(tmp_path / "blobs")
        name, other = await blobs.keep("a"), await blobs.keep("b")
        now = anyio.current_time()
        assert blobs.sweep({other}, now) == 0
        assert blobs.sweep({other}, now + GRACE + 1) == 1
        assert (blobs.has(name), blobs.has(other)) == (False, True)
        assert await blobs.keep("a") == name
        assert blobs.text(name) == "a", "it is written anew"

    anyio.run(scenario)


def test_files_that_are_old_are_told_by_the_time_of_the_next_one(state: Path) -> None:
    folder = state / "journal"
    names = [path.name for path in journal_files(folder)]
    assert aged(folder, T0 - timedelta(days=1)) == []
    assert aged(folder, T0 + timedelta(days=99)) == names[:-1], "the last one goes on"
    one = look(folder, names[2])
    inside = [entry for batch in batches(folder) for entry in batch.entries if batch.end.file == names[2]]
    assert one.until >= max(entry.at for entry in inside)
    assert one.issues == {issue for entry in inside if (issue := issue_of(entry.body)) is not None}
    assert one.following == int(names[3].removesuffix(".jsonl"))


@pytest.mark.virtual
async def test_what_cannot_be_deleted_is_said_once_and_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = prune.stand_in, list[str]()

    def fails_twice(place: Path, last: str) -> None:
        tries.append(last)
        if len(tries) <= 2:
            raise DiskFailed("the disk is read-only")
        real(place, last)

    world = landing_world(folder, Hands(lambda issue: (f"{issue}.py",)), config=CONFIG)
    world.sizes = Sizes(file=4096, keep=KEEP)
    world.tracker.add("the only one")
    monkeypatch.setattr(prune, "stand_in", fails_twice)
    await world.live(lambda: bool(world.said) and "are deleted" in world.said[-1], patience=9 * DAY)
    assert [line.split(":")[0] for line in world.said] == [
        "what is older than journal.keep could not be deleted",
        world.said[-1].split(":")[0],
    ]
    assert tries[0] == tries[1] == tries[2]
    world.check()
