"""The journal says after any accident exactly what it said before, or less by the last batch, or nothing at all."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ashep.app import stay_at_home
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import TYPES, Entry
from ashep.core.facts.resources import JournalBegun
from ashep.core.facts.runs import TurnSeen
from ashep.core.facts.tracker import ChangeHinted, TrackerLost
from ashep.errors import AlreadyRunning, AshepError, DiskFailed, JournalDamaged
from ashep.journal.blobs import Blobs
from ashep.journal.framing import encode, encode_batch, header, parse
from ashep.journal.lock import Holder, Lock, holder
from ashep.journal.reader import START, Position, Scan, batches, holds
from ashep.journal.writer import Journal
from tests.core.laws import entries_of, of_batches
from tests.full import amount
from tests.golden.make import COMING
from tests.golden.picture import picture
from tests.golden.story import INSTANCE, T0, story
from tests.strategies import BATCHES, numbered

GOLDEN = Path(__file__).parent / "golden"
FILE = "000000000001.jsonl"


@contextlib.contextmanager
def opened(state: Path) -> Iterator[Journal]:
    """Open a journal for a moment."""
    journal = Journal.open(state, T0)
    try:
        yield journal
    finally:
        journal.close()


def written(state: Path, batches: list[list[Entry]]) -> bytes:
    """Write batches into a new journal and give its bytes."""
    with opened(state) as journal:
        for batch in batches:
            journal.append_now(batch)
    return (state / "journal" / FILE).read_bytes()


def held(seq: int, why: str = "w") -> Entry:
    """Make a small entry."""
    return Entry(seq, T0, IssueHeld("demo-1", "slots", why))


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, bytes, list[list[Entry]]]:
    """Give a state folder with three small batches, the journal's bytes, and the batches."""
    batches = [
        [Entry(2, T0, JournalBegun("i", "s"))],
        [held(4, "\u2028\n\t"), held(5)],
        [Entry(7, T0, ChangeHinted()), held(8), held(9, "ü")],
    ]
    return tmp_path / "state", written(tmp_path / "state", batches), batches


# --- what is written is read --------------------------------------------------------------------------------------


@pytest.mark.promise("J1")
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=amount(20, 300))
@given(BATCHES)
def test_any_batches_come_back(tmp_path_factory: pytest.TempPathFactory, made: list[list[Any]]) -> None:
    state = tmp_path_factory.mktemp("any") / "state"
    entries: list[Entry] = []
    for batch in made:  # a daemon that ends after each batch
        with opened(state) as journal:
            numbers = numbered(journal.next_seq, batch)
            journal.append_now(numbers)
            entries += numbers
            end = journal.position
        with opened(state) as journal:
            assert (list(entries_of(journal.batches())), journal.position, journal.cut) == (entries, end, 0)


@pytest.mark.promise("J1")
async def test_append_is_durable_numbered_and_positioned(tmp_path: Path) -> None:
    journal = await in_thread(Journal.open, tmp_path / "state", T0)
    assert (journal.next_seq, journal.instance) == (2, None)
    await journal.append([Entry(2, T0, JournalBegun(INSTANCE, "s")), held(3)])
    await journal.append([])
    assert (journal.next_seq, journal.instance) == (5, INSTANCE)
    await journal.append([held(5)])
    path = tmp_path / "state" / "journal" / FILE
    assert journal.position[:3] == (FILE, path.stat().st_size, 6)
    lines = [json.loads(line.split(b"\t")[0]) for line in path.read_bytes().split(b"\n")[:-1]]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["type"] for line in lines] == [
        "JournalFile", "JournalBegun", "IssueHeld", "Commit", "IssueHeld", "Commit",
    ]  # fmt: skip
    assert all({"v", "seq", "at", "type"} <= line.keys() for line in lines)
    journal.close()


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Run something that blocks."""
    from anyio import to_thread

    return await to_thread.run_sync(function, *arguments)


@pytest.mark.promise("V3")
def test_folders_and_files_are_for_the_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "project" / ".agent-shepherd" / "state"
    old = os.umask(0)
    try:
        with opened(state), Lock.acquire(state, T0):
            modes = {path.name: path.stat().st_mode & 0o777 for path in (state, *state.rglob("*"))}
    finally:
        os.umask(old)
    assert modes == {"state": 0o700, "journal": 0o700, "blobs": 0o700, FILE: 0o600, "lock": 0o600}


def test_reading_goes_on_behind_a_position(small: tuple[Path, bytes, list[list[Entry]]]) -> None:
    state, _, made = small
    ends = [batch.end for batch in batches(state / "journal")]
    with opened(state) as journal:
        for number, end in enumerate(ends):
            assert journal.holds(end)
            assert [list(batch.entries) for batch in journal.batches(end)] == made[number + 1 :]
            assert not journal.holds(end._replace(crc="00000000"))
            assert not journal.holds(end._replace(offset=end.offset - 1))
        assert not journal.holds(START)
        assert not journal.holds(ends[-1]._replace(offset=ends[-1].offset + 400))


def test_wrong_numbers_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        for numbers in ([1], [3], [2, 2], [2, 4]):
            with pytest.raises(ValueError, match="from 2 on"):
                journal.append_now([held(number) for number in numbers])
        journal.append_now([held(2)])


@pytest.mark.parametrize(
    "body",
    [
        IssueHeld("demo-1", "slots", "\ud800"),
        TurnSeen("demo-1", "r", 1, "m", 1, "running", "i", cost=float("nan")),
        IssueHeld("demo-1", 7, "w"),  # type: ignore[arg-type]
        TurnSeen("demo-1", "r", 1, "m", 1, "running", "i", people=["a"]),  # type: ignore[arg-type]
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer")
def test_what_would_not_come_back_is_refused_before_anything_is_written(tmp_path: Path, body: Any) -> None:
    with opened(tmp_path) as journal:
        with pytest.raises(ValueError):  # noqa: PT011 - pydantic's, json's and ours, each with a text of its own
            journal.append_now([held(2), Entry(3, T0, body)])
        journal.append_now([held(2)])
        assert list(entries_of(journal.batches())) == [held(2)]


# --- accidents ----------------------------------------------------------------------------------------------------


def read_whole(state: Path) -> list[list[Entry]]:
    """Recover a journal and give its batches; check that recovery is complete and can be gone on from."""
    with opened(state) as journal:
        made = [list(batch.entries) for batch in journal.batches()]
        journal.append_now([held(journal.next_seq, "after")])
    with opened(state) as journal:
        assert journal.cut == 0
        assert [list(batch.entries) for batch in journal.batches()][:-1] == made
    return made


@pytest.mark.promise("J2")
@pytest.mark.slow
def test_every_truncation_leaves_a_prefix_of_the_batches(small: tuple[Path, bytes, list[list[Entry]]]) -> None:
    state, whole, made = small
    ends = [0, *(batch.end.offset for batch in batches(state / "journal"))]
    for length in range(len(whole) + 1):
        (state / "journal" / FILE).write_bytes(whole[:length])
        kept = sum(end <= length for end in ends[1:])
        assert read_whole(state) == made[:kept], length


@pytest.mark.promise("J2")
@pytest.mark.parametrize("junk", [b"\0" * 5000, b"\0\n\0\n", b"\n", b"{}\t00000000\n", b"\xff" * 100, b"x"])
def test_junk_behind_the_last_batch_is_cut(small: tuple[Path, bytes, list[list[Entry]]], junk: bytes) -> None:
    state, whole, made = small
    (state / "journal" / FILE).write_bytes(whole + junk)
    with opened(state) as journal:
        assert journal.cut == len(junk)
        assert (state / "journal" / FILE).read_bytes() == whole
    assert read_whole(state) == made


@pytest.mark.promise("J2")
@pytest.mark.slow
def test_holes_where_a_power_cut_lost_pages_are_cut(small: tuple[Path, bytes, list[list[Entry]]]) -> None:
    state, whole, made = small
    last = [batch.end.offset for batch in batches(state / "journal")][1]
    for begin in range(last, len(whole), 7):
        for end in range(begin + 1, len(whole) + 1, 11):
            (state / "journal" / FILE).write_bytes(whole[:begin] + bytes(end - begin) + whole[end:])
            assert read_whole(state) == made[:2]


@pytest.mark.parametrize("flip", [1, *(pytest.param(flip, marks=pytest.mark.slow) for flip in (4, 32, 128, 255))])
def test_every_flipped_byte_is_noticed(small: tuple[Path, bytes, list[list[Entry]]], flip: int) -> None:
    state, whole, made = small
    ends = [batch.end.offset for batch in batches(state / "journal")]
    for place in range(len(whole)):
        (state / "journal" / FILE).write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        if place >= ends[-2]:  # it may have been the batch that was being written
            assert read_whole(state) == made[:2], place
            continue
        with pytest.raises(JournalDamaged) as caught:
            Journal.open(state, T0)
        line = whole.count(b"\n", 0, place) + 1
        assert f"{FILE}:{line}: " in str(caught.value)
        assert "Restore" in str(caught.value)
        assert caught.value.exit_code == 65


@pytest.mark.promise("J3")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=amount(60, 2000))
@given(data=st.data())
def test_any_damage_is_cut_or_refused_and_never_read_as_something_else(
    small: tuple[Path, bytes, list[list[Entry]]], data: st.DataObject
) -> None:
    state, whole, made = small
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    (state / "journal" / FILE).write_bytes(whole[:begin] + data.draw(st.binary(max_size=60)) + whole[end:])
    try:
        with opened(state) as journal:
            found = [list(batch.entries) for batch in journal.batches()]
    except JournalDamaged:
        return
    assert found == made[: len(found)]


@pytest.mark.promise("J3")
@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_taken_out_by_hand_is_noticed(small: tuple[Path, bytes, list[list[Entry]]], number: int) -> None:
    state, whole, _ = small
    ends = [batch.end.offset for batch in batches(state / "journal")]
    begins = [len(whole.split(b"\n")[0]) + 1, *ends]
    (state / "journal" / FILE).write_bytes(whole[: begins[number]] + whole[ends[number] :])
    with pytest.raises(JournalDamaged, match=r"sequence number \d is missing"):
        Journal.open(state, T0)


def test_a_commit_taken_out_by_hand_is_noticed(small: tuple[Path, bytes, list[list[Entry]]]) -> None:
    state, whole, _ = small
    lines = whole.splitlines(keepends=True)
    commits = [number for number, line in enumerate(lines) if b'"Commit"' in line]
    for number in commits[:-1]:
        (state / "journal" / FILE).write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        with pytest.raises(JournalDamaged, match="later batches follow it"):
            Journal.open(state, T0)


@pytest.mark.promise("J3")
@pytest.mark.parametrize("change", [{"type": "Surprise"}, {"v": 2}])
def test_a_journal_of_a_later_version_is_never_cut(tmp_path: Path, change: dict[str, Any]) -> None:
    whole = written(tmp_path, [[held(2)]])
    lines = whole.split(b"\n")
    line = encode(parse(lines[1] + b"\n") | change)
    commit = encode(parse(lines[2] + b"\n") | {"crc": line_sum(line)})
    foreign = lines[0] + b"\n" + line + commit
    (tmp_path / "journal" / FILE).write_bytes(foreign)
    with pytest.raises(JournalDamaged, match="another version of ashep"):
        Journal.open(tmp_path, T0)
    assert (tmp_path / "journal" / FILE).read_bytes() == foreign


def line_sum(line: bytes) -> str:
    """Give the checksum of a batch of one line."""
    from zlib import crc32

    return f"{crc32(line):08x}"


def test_a_record_that_does_not_fit_its_type_is_damage(tmp_path: Path) -> None:
    whole = written(tmp_path, [[held(2)]])
    lines = whole.split(b"\n")
    line = encode(parse(lines[1] + b"\n") | {"code": None})
    (tmp_path / "journal" / FILE).write_bytes(
        lines[0] + b"\n" + line + encode(parse(lines[2] + b"\n") | {"crc": line_sum(line)})
    )
    with opened(tmp_path) as journal, pytest.raises(JournalDamaged, match=f"{FILE}:2: a record that this version"):
        list(entries_of(journal.batches()))


def test_several_files_are_read_in_order_and_a_missing_one_is_noticed(tmp_path: Path) -> None:
    made = [[held(2)], [held(5)], [held(8)]]
    written(tmp_path, made[:1])
    folder = tmp_path / "journal"
    second, third = folder / "000000000004.jsonl", folder / "000000000007.jsonl"
    second.write_bytes(header(4, T0, FILE) + encode_batch(made[1]))
    third.write_bytes(header(7, T0, second.name) + encode_batch(made[2]) + b"torn")
    with opened(tmp_path) as journal:
        assert (journal.cut, journal.next_seq, journal.position.file) == (4, 10, third.name)
        ends = [batch.end for batch in journal.batches()]
        assert [list(batch.entries) for batch in journal.batches(ends[0])] == made[1:]
        journal.append_now([held(10)])
        assert list(entries_of(journal.batches())) == [held(2), held(5), held(8), held(10)]
    kept = second.read_bytes()
    second.write_bytes(kept[:-3])
    with pytest.raises(JournalDamaged, match="does not end with a batch"):
        Journal.open(tmp_path, T0)
    second.unlink()
    with pytest.raises(JournalDamaged, match="not the file before it"):
        Journal.open(tmp_path, T0)
    third.write_bytes(header(4, T0, FILE)[:30])  # a power cut while the next file was begun
    with opened(tmp_path) as journal:
        assert (journal.next_seq, list(entries_of(journal.batches()))) == (5, [held(2)])
    assert parse(third.read_bytes())["previous"] == FILE


def test_a_reader_takes_the_journal_as_it_was_when_it_came(tmp_path: Path) -> None:
    """A batch that is completed while it reads may be followed by more, and would look like damage."""
    made = [[held(2, "x" * 100_000)], [held(4, "y" * 100_000)], [held(6)]]
    whole = written(tmp_path, made)
    ends = [batch.end.offset for batch in batches(tmp_path / "journal")]
    for length in range(ends[1] - 3, ends[1]):
        (tmp_path / "journal" / FILE).write_bytes(whole[:length])
        scan = Scan(tmp_path / "journal")
        reading = scan.batches()
        assert list(next(reading).entries) == made[0]
        (tmp_path / "journal" / FILE).write_bytes(whole)
        assert list(reading) == []
        assert scan.torn == length - ends[0]


def test_a_reader_beside_a_writer_sees_complete_batches_only(tmp_path: Path) -> None:
    stop = threading.Event()
    problems: list[str] = []

    def look() -> None:
        while not stop.is_set():
            try:
                found = [entry.seq for batch in batches(tmp_path / "journal") for entry in batch.entries]
            except AshepError as error:
                problems.append(str(error))
                return
            if found != [seq for seq in range(2, 2 + len(found) // 3 * 4) if seq % 4 != 1]:
                problems.append(str(found))

    with opened(tmp_path) as journal:
        reader = threading.Thread(target=look)
        reader.start()
        try:
            for _ in range(150):
                first = journal.next_seq
                journal.append_now([held(first + n, "x" * 5000) for n in range(3)])
        finally:
            stop.set()
            reader.join()
    assert problems == []


# --- a disk that fails --------------------------------------------------------------------------------------------

FULL_DISK = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
import anyio
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import Entry
from ashep.errors import AshepError
from ashep.journal.writer import Journal

async def main(state):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    journal = Journal.open(state, at)
    await journal.append([Entry(2, at, IssueHeld("demo-1", "c", "kept"))])
    size = journal.position.offset
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    failures = []
    for why in ("x" * 500, "short"):
        try:
            await journal.append([Entry(4, at, IssueHeld("demo-1", "c", why))])
        except AshepError as error:
            failures.append(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(*failures, sep="\\n")
    sys.exit(failures[0].exit_code)

anyio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.promise("J4")
def test_a_full_disk_ends_it_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, timeout=240)
    first, second = done.stdout.splitlines()
    assert done.returncode == 74, done.stderr
    assert "File too large" in first
    assert "up to record 3 is safe" in first
    assert "takes no more records" in second
    with opened(tmp_path) as journal:
        assert journal.cut == 100, "the part that still went in"
        assert [entry.body for entry in entries_of(journal.batches())] == [IssueHeld("demo-1", "c", "kept")]


@pytest.mark.promise("J4")
async def test_a_failed_fsync_ends_it(tmp_path: Path) -> None:
    """A pipe takes the bytes but cannot be synced."""
    journal = await in_thread(Journal.open, tmp_path, T0)
    read, write = os.pipe()
    os.dup2(write, journal._file)
    with pytest.raises(DiskFailed, match="Invalid argument"):
        await journal.append([held(2)])
    with pytest.raises(DiskFailed, match="takes no more"):
        await journal.append([held(2)])
    for file in (read, write, journal._file):
        os.close(file)


async def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal = await in_thread(Journal.open, tmp_path, T0)
    journal.close()
    with pytest.raises(DiskFailed, match="it was closed"):
        await journal.append([held(2)])


def test_a_folder_that_cannot_be_made_is_a_disk_that_failed(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(DiskFailed, match="cannot be opened"):
        Journal.open(tmp_path / "state", T0)


async def test_cancelling_does_not_interrupt_an_append(tmp_path: Path) -> None:
    import anyio

    journal = await in_thread(Journal.open, tmp_path, T0)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.append([held(2)])
    assert journal.next_seq == 4
    await journal.append([held(4)])
    journal.close()


# --- one daemon a folder ------------------------------------------------------------------------------------------


@pytest.mark.promise("J5")
@pytest.mark.may_block
async def test_a_daemon_whose_folder_is_deleted_or_moved_ends(tmp_path: Path) -> None:
    for number, move in enumerate((shutil.rmtree, lambda state: state.rename(tmp_path / "elsewhere"))):
        state = tmp_path / str(number)
        with Lock.acquire(state, T0) as lock:
            with anyio.move_on_after(0.05) as waited:
                await stay_at_home(lock, 0.01)
            assert waited.cancelled_caught
            move(state)
            with pytest.raises(DiskFailed, match="deleted or moved"):
                await stay_at_home(lock, 0.01)
            with Lock.acquire(state, T0):  # another one in its place
                assert not lock.stands()


@pytest.mark.promise("J5")
def test_the_second_daemon_is_told_of_the_first(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert holder(state) is None
    code = (
        "import sys, datetime, pathlib; from ashep.journal.lock import Lock\n"
        "lock = Lock.acquire(pathlib.Path(sys.argv[1]), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert holder(state) == Holder(other.pid, "2026-01-01T00:00:00+00:00", "0.1.0")
        with pytest.raises(AlreadyRunning, match=rf"process {other.pid}, started 2026-01-01T00:00:00") as caught:
            Lock.acquire(state, T0)
        assert caught.value.exit_code == 3
        other.send_signal(signal.SIGKILL)
    assert holder(state) is None
    with Lock.acquire(state, T0):
        found = holder(state)
        assert found is not None
        assert found.pid == os.getpid()
    assert holder(state) is None


def test_readers_that_ask_do_not_keep_a_daemon_out(tmp_path: Path) -> None:
    Lock.acquire(tmp_path, T0).release()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            holder(tmp_path)

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(30):
            Lock.acquire(tmp_path, T0).release()
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_asking_for_the_holder_imports_nothing_heavy() -> None:
    code = "import sys, ashep.journal.lock; print([m for m in ('pydantic', 'anyio', 'asyncio') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


# --- blobs --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("J6")
async def test_blobs_come_back(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    text = "line\r\n\u2028 ü \U0001f411 \0"
    name = await blobs.keep(text)
    assert name == await blobs.keep(text) == await Blobs(tmp_path / "blobs").keep(text)
    assert await in_thread(blobs.text, name) == text
    assert [path.name for path in (tmp_path / "blobs" / name[:2]).iterdir()] == [name]
    assert await in_thread(blobs.text, await blobs.keep("\ud800")) == "?"


@pytest.mark.promise("J6")
async def test_a_blob_that_changed_or_vanished_is_damage(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    name = await blobs.keep("text")
    blobs.path(name).write_text("test")
    with pytest.raises(JournalDamaged, match="not what was written"):
        await in_thread(blobs.text, name)
    blobs.path(name).unlink()
    with pytest.raises(JournalDamaged, match="is missing"):
        await in_thread(blobs.text, name)


async def test_a_blob_that_cannot_be_written_is_a_disk_that_failed(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file")
    with pytest.raises(DiskFailed, match="blobs"):
        await Blobs(tmp_path / "blobs").keep("text")


# --- old journals -------------------------------------------------------------------------------------------------


@pytest.mark.promise("J7")
@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("journal-*.jsonl")), ids=lambda path: path.stem)
def test_a_journal_of_an_earlier_release_reads_folds_and_is_gone_on_with(golden: Path, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / FILE).write_bytes(golden.read_bytes())
    with opened(tmp_path) as journal:
        assert (journal.cut, journal.instance) == (0, INSTANCE)
        world = of_batches(journal.batches())
        assert world.instance == INSTANCE
        kept = json.loads(golden.with_suffix(".world.json").read_text(encoding="utf-8"))
        assert picture(world, kept["fields"]) == kept
        assert len({flow.stage for flow in world.flows.values()}) > 3
        journal.append_now([Entry(journal.next_seq, T0, TrackerLost("later"))])


RELEASED = {
    "journal-0.1.jsonl": "29c7721b8ca0f7de2b80d13b8906bc6d9264b9e47774bababb38d604ea413b68",
    "journal-0.2.jsonl": "9482af1041d7f4cdf6f2c7cd49e5515a5dce114009d0c1912ba0cf9f5f598f7f",
    "journal-0.3.jsonl": "6b128ca6181061635becf2043bdff359df9d9305f50976dd77e568b5c4287bcf",
    "journal-0.4.jsonl": "32681495b4eb32b73860a2714559403e1d014ec21b2b80667f2d694985b589d6",
}
"""SHA-256 of the golden journals of releases that are out: they are never written again."""


@pytest.mark.promise("J7")
def test_golden_journals_of_earlier_releases_stand_as_they_were() -> None:
    for name, digest in RELEASED.items():
        assert sha256((GOLDEN / name).read_bytes()).hexdigest() == digest, f"{name}: make {COMING.name} instead"


@pytest.mark.promise("J7")
def test_the_coming_release_has_a_golden_journal_of_every_type_and_writes_the_same_bytes(tmp_path: Path) -> None:
    """Is a type lacking? Tell of it in tests/golden/story.py, and run `python -m tests.golden.make`."""
    golden = COMING.read_bytes()
    (tmp_path / "golden" / "journal").mkdir(parents=True)
    (tmp_path / "golden" / "journal" / FILE).write_bytes(golden)
    made = [list(batch.entries) for batch in batches(tmp_path / "golden" / "journal")]
    assert {type(entry.body).__name__ for batch in made for entry in batch} == set(TYPES)
    assert written(tmp_path / "again", made) == golden


def test_the_story_fits_the_types(tmp_path: Path) -> None:
    written(tmp_path, story())
    assert holds(tmp_path / "journal", Position(*[batch.end for batch in batches(tmp_path / "journal")][-1]))
