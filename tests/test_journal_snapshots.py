"""A start takes the newest good snapshot and the tail; whatever becomes of snapshots, what is known is the same."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import TYPES, Entry, from_json
from ashep.core.facts.resources import JournalBegun
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.world import World
from ashep.errors import JournalDamaged
from ashep.journal import snapshots, writer
from ashep.journal.framing import parse
from ashep.journal.reader import ARCHIVE, BASE, Scan, batches, head_of, journal_files
from ashep.journal.snapshot_writer import SnapshotWriter
from ashep.journal.snapshots import FOLDER, beginning, fingerprint, newest
from ashep.journal.writer import Journal, Sizes
from tests.core import laws
from tests.core.lives import live
from tests.golden.story import T0
from tests.loop_world import World as Loop
from tests.loop_world import simulate

SMALL = Sizes(file=4000)
GOLDEN = Path(__file__).parent / "golden"


@contextmanager
def opened(state: Path, sizes: Sizes = SMALL) -> Iterator[Journal]:
    journal = Journal.open(state, T0, sizes)
    try:
        yield journal
    finally:
        journal.close()


def folded(state: Path) -> World:
    """What the journal says, from its beginning."""
    return laws.of_batches(batches(state / "journal"), beginning(state / "journal")[0])


def recovered(state: Path) -> tuple[World, int]:
    """What a start knows, and how many entries it had to fold for that."""
    with opened(state) as journal:
        world, after = journal.load_world()
        tail = [entry for batch in journal.batches(after) for entry in batch.entries]
        return laws.folded(tail, world), len(tail)


def lived(state: Path, every: int = 11) -> World:
    """Write a life into a journal, with a snapshot every so many batches; some more follow the last one."""
    batches_of: dict[Any, list[Entry]] = {}
    for entry in live(5, 250).entries:
        batches_of.setdefault(entry.at, []).append(entry)
    world = World()
    with opened(state) as journal:
        for number, batch in enumerate(batches_of.values(), 1):
            again = [Entry(journal.next_seq + place, entry.at, entry.body) for place, entry in enumerate(batch)]
            world = laws.folded(again, world)
            journal.append_now(again)
            if number % every == 0:
                journal.keep_now(world, journal.mark)
    return world


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    state = tmp_path_factory.mktemp("lived") / "state"
    return state, lived(state)


@pytest.fixture
def state(made: tuple[Path, World], tmp_path: Path) -> Path:
    shutil.copytree(made[0], tmp_path / "state")
    return tmp_path / "state"


def names(state: Path) -> list[str]:
    return sorted(path.name for path in (state / FOLDER).iterdir())


@pytest.mark.promise("J10")
def test_a_start_folds_only_the_tail(state: Path, made: tuple[Path, World]) -> None:
    with opened(state) as journal:  # a life may end with the very batch that a snapshot was made of
        last = Entry(journal.next_seq, T0, IssueHeld("t-0", "slot", "w"))
        journal.append_now([last])
    world, tail = recovered(state)
    every = sum(len(batch.entries) for batch in batches(state / "journal"))
    assert world == folded(state)
    assert world.seq == last.seq > made[1].seq
    assert 0 < tail < every / 2
    assert len(names(state)) == snapshots.KEPT
    assert len(journal_files(state / "journal")) > 5
    assert (state / FOLDER).stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (state / FOLDER).iterdir()} == {0o600}


def test_what_a_snapshot_vouches_for_is_not_read_as_lines(state: Path) -> None:
    with opened(state) as journal:  # the life may end where a file is full: the first entry begins the next one
        journal.append_now([Entry(journal.next_seq, T0, IssueHeld("t-0", "slot", "w"))])
        journal.keep_now(World(), journal.mark)
        journal.append_now([Entry(journal.next_seq, T0, IssueHeld("t-0", "slot", "w"))])
    assert journal_files(state / "journal")[-1].name == journal.position.file, "it stands in the same file"
    vouched = writer._vouched(state)
    assert vouched is not None
    assert vouched.seq == journal.position.seq - 2
    with opened(state) as again:
        assert (again.position, again.mark) == (journal.position, journal.mark)


@pytest.mark.promise("J10")
def test_damage_before_a_snapshot_is_refused_with_file_and_line(state: Path) -> None:
    """In every file, sealed ones and the last one."""
    with opened(state, Sizes()) as journal:
        for _ in range(5):
            journal.append_now([Entry(journal.next_seq, T0, IssueHeld("t-0", "slot", "w"))])
        journal.keep_now(folded(state), journal.mark)
    for path in journal_files(state / "journal"):
        whole = path.read_bytes()
        for line in (2, 7):
            place = sum(map(len, whole.splitlines(keepends=True)[: line - 1])) + 20
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(JournalDamaged, match=f"{path.name}:{line}: "):
                Journal.open(state, T0)
        path.write_bytes(whole)
    assert recovered(state)[1] == 0


def test_a_snapshot_of_other_code_is_dropped(state: Path, made: tuple[Path, World]) -> None:
    for path in (state / FOLDER).iterdir():
        path.write_bytes(path.read_bytes().replace(fingerprint().encode(), b"0" * 64))
    world, tail = recovered(state)
    assert world == made[1]
    assert tail == sum(len(batch.entries) for batch in batches(state / "journal"))


@pytest.mark.promise("J10")
def test_the_fingerprint_is_of_all_that_folds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    core = tmp_path / "core"
    shutil.copytree(Path(snapshots.__file__).parent.parent / "core", core)
    monkeypatch.setattr(snapshots, "files", lambda _: tmp_path)

    def summed() -> str:
        return fingerprint.__wrapped__()

    before = summed()
    assert before == fingerprint()
    folding = ("reconcile/evolve.py", "issues/fold.py", "facts/records.py", "facts/outcome.py", "state/snapshot.py")
    for name in folding:
        text = (core / name).read_text()
        (core / name).write_text(text + "# another word\n")
        assert summed() != before
        (core / name).write_text(text)
    assert summed() == before
    (core / "new.py").write_text("")
    with_it = summed()
    assert with_it != before
    (core / "within" / "deeper").mkdir(parents=True)
    (core / "new.py").rename(core / "within" / "deeper" / "new.py")
    assert summed() not in (before, with_it), "what stands in a package of the core folds, too"


def test_a_snapshot_of_another_journal_is_dropped(state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with opened(other) as journal:
        journal.append_now([Entry(2, T0, JournalBegun("another", "s"))])
    shutil.copytree(state / FOLDER, other / FOLDER)
    assert recovered(other)[0].instance == "another"


@pytest.mark.promise("J10")
@pytest.mark.slow
def test_any_damage_to_snapshots_costs_nothing_but_time(state: Path, made: tuple[Path, World]) -> None:
    newer, older = sorted((state / FOLDER).iterdir(), reverse=True)
    whole = newer.read_bytes()
    _, tail = recovered(state)
    damages = [whole[:length] for length in range(0, len(whole), 499)]
    damages += [whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :] for place in range(0, len(whole), 499)]
    lines = whole.splitlines(keepends=True)
    damages += [b"".join(lines[:number] + lines[number + 1 :]) for number in range(len(lines))]
    damages += [b"", b"\n", whole + b"x", b"\0" * len(whole)]
    for damage in damages:
        newer.write_bytes(damage)
        world, folded_now = recovered(state)
        assert world == made[1]
        assert folded_now > tail, "the one before it was taken"
    older.write_bytes(b"")
    assert recovered(state)[0] == made[1]


def test_a_torn_snapshot_is_never_seen(state: Path, made: tuple[Path, World]) -> None:
    newest_one = sorted((state / FOLDER).iterdir())[-1]
    (state / FOLDER / "000000999999.snapshot.tmp").write_bytes(newest_one.read_bytes()[:100])
    assert recovered(state)[0] == made[1]


def test_a_journal_that_lost_its_end_does_not_take_a_later_snapshot(state: Path) -> None:
    """A power cut may take what was not durable, but a backup that is put back takes more."""
    files = journal_files(state / "journal")
    for path in files[3:]:
        path.unlink()
    world, _ = recovered(state)
    assert world == folded(state)


# --- the beginning of a pruned journal --------------------------------------------------------------------------------


def pruned(state: Path, files: int) -> None:
    """What is left when the first files are gone and a snapshot stands for them."""
    folder = state / "journal"
    gone, first = journal_files(folder)[:files], journal_files(folder)[files]
    head = head_of(folder, first.name)
    assert head is not None
    world = laws.of_batches(takewhile(lambda batch: batch.end.file < first.name, batches(folder)))
    snapshots.write(folder / BASE, world, snapshots.JournalPosition(head[1], ""))
    for path in gone:
        path.unlink()


def test_a_pruned_journal_begins_with_what_stands_for_the_rest(state: Path, made: tuple[Path, World]) -> None:
    assert beginning(state / "journal") == (World(), ("", 0, 0, ""))
    pruned(state, 3)
    shutil.rmtree(state / FOLDER)
    world, after = beginning(state / "journal")
    assert world.instance == made[1].instance
    assert newest(state) == (world, after)
    assert next(batches(state / "journal")).entries[0].seq == after.seq + 1
    assert recovered(state)[0] == folded(state) == made[1]
    with opened(state) as journal:
        assert journal.begun is not None
        assert journal.begun.instance == made[1].instance
    list(Scan(state / "journal", hashing=True).records())


@pytest.mark.promise("J11")
def test_what_stands_for_the_rest_is_good_for_other_code_too(state: Path, made: tuple[Path, World]) -> None:
    pruned(state, 3)
    shutil.rmtree(state / FOLDER)
    base = state / "journal" / BASE
    head, *parts = base.read_bytes().splitlines(keepends=True)
    parts = [part for part in parts[:-1] if not part.startswith((b"rules\t", b"hint_seq\t"))]
    body = head.replace(fingerprint().encode(), b"0" * 64)
    body = snapshots.encode({**snapshots.parse(head), "fingerprint": "0" * 64}) + b"".join(parts)
    base.write_bytes(body + b"end\t%d\t%08x\n" % (len(parts), snapshots.crc32(body)))
    world = recovered(state)[0]
    left = {
        field.name: getattr(world, field.name) for field in fields(World) if field.name not in ("rules", "hint_seq")
    }
    assert left == {name: getattr(made[1], name) for name in left}


@pytest.mark.promise("J11")
@pytest.mark.parametrize("kept", sorted(GOLDEN.glob("*.snapshot")), ids=lambda path: path.stem)
def test_what_an_earlier_version_kept_of_flows_is_read(kept: Path, tmp_path: Path) -> None:
    """A golden journal's fold up to some place, kept when flows had other fields (docs/decisions/0018-parts.md)."""
    shutil.copy(kept, tmp_path / BASE)
    known, _ = beginning(tmp_path)
    world = World()
    for record in map(parse, kept.with_suffix(".jsonl").read_bytes().splitlines(keepends=True)):
        if record["type"] in TYPES and record["seq"] <= known.seq:
            world = evolve(world, from_json(record))
    untold = {"failing": "", "error": ""}  # an earlier version did not keep what failed last: it is shown alone
    flows = {issue: replace(flow, **untold) for issue, flow in world.flows.items()}
    assert replace(known, flows=flows) == replace(world, flows=flows)
    assert dict(known.flows) == flows
    assert len(known.flows) > 2


@pytest.mark.parametrize("place", [5, 300, 2000, -3])
def test_damage_to_what_stands_for_the_rest_is_refused(state: Path, place: int) -> None:
    pruned(state, 3)
    shutil.rmtree(state / FOLDER)
    base = state / "journal" / BASE
    whole = bytearray(base.read_bytes())
    whole[place] ^= 1
    base.write_bytes(whole)
    with pytest.raises(JournalDamaged, match=BASE):
        recovered(state)


# --- beside the work --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.may_block
async def test_snapshots_are_due_at_a_new_file_and_after_many_entries_and_at_the_end(tmp_path: Path) -> None:
    state, said = tmp_path / "state", list[str]()
    world = World()
    with opened(state, Sizes(file=3000)) as journal:
        keeper = SnapshotWriter(journal, said.append, every=8)
        kept: list[int] = []
        async with anyio.create_task_group() as group:
            group.start_soon(keeper.run)
            for number in range(60):
                batch = [Entry(journal.next_seq, T0, TrackerSeen("a", "t", "x" * (1 if number < 40 else 500)))]
                world = evolve(world, batch[0])
                await journal.append(batch)
                keeper.offer(batch, world)
                await anyio.sleep(0.02)
                kept += [int(name[:12]) for name in names(state)] if (state / FOLDER).exists() else []
            group.cancel_scope.cancel()
        await keeper.finish()
        places = sorted({*kept})
        assert places[0] == 17, "eight entries, each with its commit"
        begun = [int(path.stem) for path in journal_files(state / "journal")][1:]
        assert begun
        assert {*begun} <= {*places}, "and with each new file"
        assert names(state)[-1] == f"{journal.position.seq:012}.snapshot"
        assert journal.load_world() == (world, journal.position)
    assert said == []


@pytest.mark.may_block
async def test_a_snapshot_that_cannot_be_written_is_only_reported(tmp_path: Path) -> None:
    state, said = tmp_path / "state", list[str]()
    with opened(state) as journal:
        (state / FOLDER).write_text("in the way")
        keeper = SnapshotWriter(journal, said.append)
        batch = [Entry(2, T0, TrackerSeen("a", "t", "x"))]
        await journal.append(batch)
        keeper.offer(batch, World())
        await keeper.finish()
        await journal.append([Entry(4, T0, TrackerSeen("a", "t", "y"))])
    assert len(said) == 1
    assert "the next start takes longer, nothing else" in said[0]


@pytest.mark.may_block
async def test_damage_that_is_found_beside_the_work_ends_it(state: Path) -> None:
    path = journal_files(state / "journal")[1]
    path.write_bytes(path.read_bytes().replace(b'"type":"', b'"Type":"', 1))
    with opened(state, Sizes(file=4000, at_once=0)) as journal:
        assert journal.unchecked
        with pytest.raises(JournalDamaged, match=f"{path.name}:1: "):
            await SnapshotWriter(journal, print).run()


def test_old_files_are_archived_with_the_snapshots(state: Path) -> None:
    with opened(state, Sizes(keep=9000)) as journal:
        journal.keep_now(folded(state), journal.mark)
    assert (state / "journal" / ARCHIVE).is_dir()
    assert sum(path.stat().st_size for path in (state / "journal").glob("*.jsonl")) < 9000 + 2 * 4500
    assert recovered(state)[0] == folded(state)


def test_a_daemon_that_stops_in_order_leaves_nothing_to_fold(tmp_path: Path) -> None:
    world = Loop(tmp_path)

    async def main() -> None:
        world.tracker.add("t-1")
        assert await world.live(lambda: len(world.entries) > 30)

    simulate(main)
    assert recovered(tmp_path / "state") == (world.world, 0)
