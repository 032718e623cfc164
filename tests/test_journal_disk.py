"""A disk that fails or is full: what is safe is said, nothing is tried again, and the last facts still fit."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ashep.cli import main
from ashep.cli.context import FOLDER
from ashep.core.facts.issues import IssueHeld, IssueTaken
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import DiskSeen
from ashep.core.policy.disk_limits import LOW_DISK
from ashep.core.reconcile.observe import disk_read
from ashep.core.state.world import World
from ashep.errors import DiskFailed
from ashep.journal import disk_reserve, durable_io, writer
from ashep.journal.disk_reserve import RESERVE, Reserve
from ashep.journal.writer import Journal
from tests.core.laws import entries_of
from tests.golden.story import T0
from tests.loop_world import World as Loop
from tests.test_journal_snapshots import lived, opened
from tests.waiting import wait_until


def held(seq: int, why: str = "w") -> Entry:
    return Entry(seq, T0, IssueHeld("demo-1", "slots", why))


def test_a_folder_is_made_by_several_at_once(tmp_path: Path) -> None:
    """Runners of two kinds, which begin together, make the folder that holds both of theirs."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for number in range(200):
                together = threading.Barrier(8)

                def make(leaf: int, above: Path = tmp_path / f"{number}" / "of", barrier: Any = together) -> None:
                    barrier.wait(20)
                    durable_io.make_folder(above / f"{leaf}")

                list(threads.map(make, range(8)))
                assert len([*(tmp_path / f"{number}" / "of").iterdir()]) == 8
    finally:
        sys.setswitchinterval(interval)


# --- one that fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write", "sync", "begin", "reserve"])
def test_any_failure_of_an_append_ends_it_at_once(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the write, of fdatasync, of the next file, and of freeing the reserve; the second try is refused untried."""
    calls: list[object] = []

    def fails(*arguments: object, **_: object) -> Any:
        calls.append(arguments)
        raise OSError(5, "Input/output error")

    journal = Journal.open(tmp_path, T0, writer.Sizes(file=600))
    journal.append_now([held(2)])
    with monkeypatch.context() as patch:
        if call == "begin":
            patch.setattr(writer, "_headed", fails)
        elif call == "reserve":
            patch.setattr(Reserve, "see_to", fails)
        else:
            patch.setattr(*((durable_io, "write_all") if call == "write" else (writer, "_sync")), fails)
        with pytest.raises(DiskFailed, match=r"up to record \d+ is safe") as caught:
            journal.append_now([held(4, "x" * 600)])
        assert caught.value.exit_code == 74
        with pytest.raises(DiskFailed, match="takes no more records"):
            journal.append_now([held(journal.next_seq)])
    with pytest.raises(DiskFailed, match="takes no more records"):
        journal.append_now([held(journal.next_seq)])
    assert len(calls) == 1
    journal.close()
    with opened(tmp_path) as again:
        assert next(iter(entries_of(again.batches()))) == held(2)


@pytest.mark.promise("J2")
def test_what_a_start_reads_is_durable_before_anything_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wrote the last batch may have been killed before it was durable: a power cut could take it later."""
    journal = Journal.open(tmp_path, T0)
    journal.append_now([held(2)])
    journal.close()
    synced, original = list[int](), os.fsync

    def fsync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        original(file)

    monkeypatch.setattr(os, "fsync", fsync)
    Journal.open(tmp_path, T0).close()
    assert (tmp_path / "journal" / journal.position.file).stat().st_ino in synced


# --- a real one that is full ------------------------------------------------------------------------------------------

FULL = """
import os, subprocess, sys
from pathlib import Path
import anyio
from ashep.errors import AshepError
from ashep.journal.writer import Journal
from ashep.core.facts.records import Entry
from ashep.core.facts.issues import IssueHeld
from datetime import UTC, datetime

AT = datetime(2026, 1, 1, tzinfo=UTC)
place = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], check=True)
journal = Journal.open(place / "state", AT)

def append(size):
    journal.append_now([Entry(journal.next_seq, AT, IssueHeld("demo-1", "c", "x" * size))])

append(10)
print("reserve", (place / "state" / "reserve").exists())
filler = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(filler, b"x" * 65536)
except OSError as error:
    print("full", error.errno, journal.room() < 65536)
before = journal.position.seq
append(1000)
print("freed", not (place / "state" / "reserve").exists(), journal.position.seq == before + 2)
written = 0
try:
    while True:
        append(50_000)
        written += 50_000
except AshepError as error:
    print("ended", error.exit_code, 500_000 < written < 1_100_000, "is safe" in str(error))
safe = journal.position
journal.close()
os.ftruncate(filler, 0)
journal = Journal.open(place / "state", AT)
print("again", journal.position == safe, journal.cut > 0)
append(10)
print("reserve", (place / "state" / "reserve").exists())
"""


def in_a_small_disk(tmp_path: Path, code: str) -> str:
    """Run a program that may mount a file system of its own."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "full.py").write_text(code)
    probe = ["unshare", "-Urm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path / "disk")]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of his own")
    argv = ["unshare", "-Urm", sys.executable, str(tmp_path / "full.py"), str(tmp_path / "disk")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.promise("J13")
def test_the_reserve_lets_the_last_facts_be_written(tmp_path: Path) -> None:
    assert in_a_small_disk(tmp_path, FULL).splitlines() == [
        "reserve True", "full 28 True", "freed True True", "ended 74 True True", "again True True", "reserve True",
    ]  # fmt: skip


def test_the_reserve_is_laid_aside_where_there_is_plenty_and_really_takes_room(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    reserve.see_to(10, plenty=disk_reserve.free(tmp_path))
    assert not reserve.held, "there is not so much that it would not be missed"
    reserve.see_to(10, plenty=0)
    assert reserve.held
    found = (tmp_path / "reserve").stat()
    assert found.st_blocks * 512 >= RESERVE
    assert found.st_mode & 0o777 == 0o600
    assert Reserve(tmp_path).held
    os.truncate(tmp_path / "reserve", 0)
    assert not Reserve(tmp_path).held


# --- little room ------------------------------------------------------------------------------------------------------


def test_little_room_is_a_fact_once_and_does_not_flutter() -> None:
    plenty, low = World(), World(disk_low=True)
    assert disk_read(plenty, LOW_DISK) == []
    assert disk_read(plenty, LOW_DISK - 1) == [DiskSeen("low")]
    assert disk_read(low, LOW_DISK - 1) == disk_read(low, 2 * LOW_DISK - 1) == []
    assert disk_read(low, 2 * LOW_DISK) == [DiskSeen("ok")]


@pytest.mark.virtual
@pytest.mark.promise("J13")
async def test_nothing_new_is_taken_while_there_is_little_room_and_what_runs_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, first = Loop(tmp_path, issues=1), "t-1"
    room = [1 << 30]
    monkeypatch.setattr(Journal, "room", lambda _: room[0])

    async def fill() -> None:
        await wait_until(lambda: world.bodies(IssueTaken), 3600, 1)
        room[0] = LOW_DISK - 1
        second = world.tracker.add("second")
        await wait_until(lambda: world.code(first) == "question" and world.bodies(DiskSeen), 3600, 10)
        assert world.stands(second) == "time"
        assert world.code(second) == "disk_low"
        world.tracker.person_sets(first, "pat", add_labels=("human:approved",))
        await wait_until(lambda: world.stands(first) == "closed", 3600, 10)
        assert [taken.issue for taken in world.bodies(IssueTaken)] == [first]
        room[0] = 1 << 30
        world.tracker.add("third")

    assert await world.live(beside=fill, person=True)
    assert [fact.state for fact in world.bodies(DiskSeen)] == ["low", "ok"]
    assert len(world.bodies(IssueTaken)) == 3


def test_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "project"
    lived(project / FOLDER / "state")

    def status(room: int) -> tuple[str, str]:
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((1, 1, room, room, room, 0, 0, 0, 0, 255)))
        assert main(["-C", str(project), "status", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["daemon"]["disk"]
        assert main(["-C", str(project), "status"]) == 0
        return told, capsys.readouterr().out

    assert status(LOW_DISK)[0] == "ok"
    told, said = status(LOW_DISK - 1)
    assert told == "low"
    assert "the disk is nearly full: nothing new is taken" in said
