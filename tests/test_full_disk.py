"""A disk that takes nothing more in the midst of git's work: one clear line, nothing lost, and on with more room."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.runners.opencode.server import ManagedServer
from ashep.core.policy.disk_limits import FILE, LOW_DISK
from ashep.errors import RunnerUnavailable
from ashep.journal import disk_reserve
from tests.full import repeated
from tests.full_disk import KINDS

ROOT = Path(__file__).parents[1]


def in_a_small_disk(folder: Path, *words: str, module: str = "tests.full_disk") -> dict[str, Any]:
    """Run a program that may mount a file system of its own, and give what it printed."""
    (folder / "disk").mkdir()
    probe = ["unshare", "-Urm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder / "disk")]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of his own")
    argv = ["unshare", "-Urm", sys.executable, "-m", module, str(folder / "disk"), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.promise("I4")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_disk_that_takes_nothing_more_is_one_clear_line_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    said = in_a_small_disk(tmp_path, kind)
    words = "Read-only file system" if kind == "read-only" else "No space left on device"
    for step in ("seal", "checkout", "merge"):
        assert words in said[step] or "unable to write file, on the disk" in said[step], step
        assert "\n" not in said[step]
        assert str(tmp_path / "disk") in said[step]
        assert "tried again" in said[step]
    assert "\n" not in said["land"]
    assert any(one in said["land"] for one in (words, "no room")), said["land"]
    assert [said[one] for one in ("nothing lost", "base stays", "landed")] == [True] * 3
    assert (said["sealed"], said["checked out"]) == (1, 201)


@pytest.mark.promise("I4")
@pytest.mark.real
@pytest.mark.parametrize("kind", ["bytes", "read-only", *repeated("files")])
def test_a_tracker_on_such_a_disk_is_away_and_says_why_on_one_line(tmp_path: Path, kind: str) -> None:
    said = in_a_small_disk(tmp_path, kind, "bd")
    words = "read-only file system" if kind == "read-only" else "no space left on device"
    for step in ("list", "claim"):
        assert words in said[step].lower(), step
        assert "\n" not in said[step]
        assert str(tmp_path / "disk/project") in said[step]
        assert "tried again" in said[step]
    assert said["untouched"] is True
    assert said["claimed"] == "in_progress"


@pytest.mark.promise("I4")
@pytest.mark.real
def test_the_agent_server_on_such_a_disk_is_away_and_says_why_on_one_line(tmp_path: Path) -> None:
    said = in_a_small_disk(tmp_path, "each", "opencode")
    for step in (*KINDS, "turn"):
        assert ("Read-only file system" if step == "read-only" else "No space left on device") in said[step], step
        assert "\n" not in said[step]
        assert str(tmp_path / "disk/ashep") in said[step]
        assert "tried again" in said[step]
    assert said["same server"], "one that lives is left alone"
    assert said["text"] == "slept", "the same ids, once there is room"


@pytest.mark.promise("I4")
async def test_hardly_any_room_is_told_until_there_is_twice_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ManagedServer(command=("none",), directory=tmp_path, state=tmp_path, environ={"HOME": str(tmp_path)})
    found = os.statvfs(tmp_path)
    for free, low in ((LOW_DISK, False), (LOW_DISK - 1, True), (2 * LOW_DISK - 1, True), (2 * LOW_DISK, False)):
        answer = os.statvfs_result((1, 1, free, free, free, 0, 0, 0, found.f_flag, 255), {"f_fsid": 0})
        monkeypatch.setattr(os, "statvfs", lambda _, answer=answer: answer)
        with pytest.raises(RunnerUnavailable, match=f"but {free // 1024} KiB, on") if low else nullcontext():
            await server.ask_for_room()


@pytest.mark.promise("I4")
@pytest.mark.slow
def test_files_count_as_room_for_a_tree(tmp_path: Path) -> None:
    said = in_a_small_disk(tmp_path, "floor")
    assert "worker.disk_floor" in said["floor"]
    assert "more files fit" in said["floor"]
    assert said["made"]


@pytest.mark.promise("I4")
def test_files_count_as_room_for_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.statvfs(tmp_path)

    def told(files: int, left: int) -> os.statvfs_result:
        return os.statvfs_result((found.f_bsize, 4096, 10**6, 10**6, 10**6, files, left, left, 0, 255), {"f_fsid": 0})

    for files, left, room in ((10**6, 100, 100 * FILE), (10**6, 10**6, 10**6 * 4096), (0, 0, 10**6 * 4096)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _, answer=(files, left): told(*answer))
            assert disk_reserve.free(tmp_path) == room, "a file system without a table of files reports none"
    assert 500 * FILE < LOW_DISK < 600 * FILE
