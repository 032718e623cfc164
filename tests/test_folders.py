"""Folders that agents and checks fill, however deep: gone through, deleted, or moved aside once."""

import logging
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from ashep.adapters.git.tree_scan import walk as contents
from ashep.adapters.git.workspaces.review_checkout import _close  # pyright: ignore[reportPrivateUsage] - what reads a ground
from ashep.adapters.git.workspaces.setup_steps import _files  # pyright: ignore[reportPrivateUsage] - what reads what is copied
from ashep.adapters.system.folders import ASIDE, delete, walk
from ashep.adapters.verifier.children.grep import files
from ashep.errors import AshepError
from tests.deep_folders import dig

DEEP = 1500
"""More than Python recurses; a path of it is still one that the system takes."""


@pytest.mark.parametrize(("depth", "name"), [(DEEP, "d"), (3000, "d"), (100, "d" * 200)])
async def test_what_is_deep_is_deleted_and_no_link_is_followed(tmp_path: Path, depth: int, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top = tmp_path / "top"
    bottom = dig(top, depth, name)
    os.symlink(outside, "link", dir_fd=bottom)
    os.fchmod(bottom, 0)
    os.close(bottom)
    await to_thread.run_sync(delete, top)
    assert {path.name for path in tmp_path.iterdir()} == {"outside"}
    assert (outside / "kept").exists()
    (tmp_path / "link").symlink_to(outside)
    await to_thread.run_sync(delete, tmp_path / "link")
    await to_thread.run_sync(delete, tmp_path / "none")
    assert [path.name for path in outside.iterdir()] == ["kept"]


async def test_what_resists_is_opened_then_moved_aside_once_and_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    programs, top, outside = tmp_path / "bin", tmp_path / "top", tmp_path / "outside"
    programs.mkdir()
    (programs / "rm").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\necho 'rm: it resists' >&2\nexit 1\n")
    (programs / "rm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for folder in (top / "inner", outside):
        folder.mkdir(parents=True)
    (top / "link").symlink_to(outside)
    for folder in (outside, top / "inner", top):
        folder.chmod(0)
    with caplog.at_level(logging.WARNING):
        await to_thread.run_sync(delete, top)
        (aside,) = (tmp_path / ASIDE).iterdir()
        await to_thread.run_sync(delete, top)
        await to_thread.run_sync(delete, tmp_path / ASIDE)
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in (aside, aside / "inner", outside)]
    outside.chmod(0o700)
    assert modes == [0o700, 0o700, 0]
    assert len((tmp_path / "asked").read_text().splitlines()) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{top} cannot be deleted (rm: it resists). It is left in {aside}: delete it by hand"
    ]


def _walked(top: Path) -> int:
    return sum(1 for _ in walk(str(top)))


READERS: dict[str, Callable[[Path], object]] = {
    "contents": contents,
    "ground": lambda top: _close(top, ""),
    "set up": lambda top: [*_files(top)],
    "search": lambda top: [*files(str(top), "")],
}


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top = tmp_path_factory.mktemp("deep") / "t"
    os.close(dig(top, DEEP))
    yield top
    subprocess.run(["rm", "-rf", top], check=True)  # pytest's own way recurses


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_what_is_deep_comes_to_its_end(deep: Path, reader: str) -> None:
    READERS[reader](deep)


def test_what_no_path_reaches_is_an_error_that_is_foreseen(tmp_path: Path) -> None:
    os.close(dig(tmp_path / "top", 30, "d" * 200))
    assert _walked(tmp_path / "top") < 30
    with pytest.raises(AshepError, match="… cannot be read: File name too long") as error:
        contents(tmp_path / "top")
    assert len(str(error.value)) < 400  # as much as is told
    subprocess.run(["rm", "-rf", tmp_path / "top"], check=True)
