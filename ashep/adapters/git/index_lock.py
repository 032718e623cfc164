"""Holds the index of a work tree by git's own lock, and changes it in a copy."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import fsync
from ashep.adapters.git.locks import take_away
from ashep.adapters.git.repository import WorkspacePaths
from ashep.errors import AshepError

LINE = b"Agent Shepherd moves the files of this work tree; it takes this lock away when it is done or starts again.\n"
"""What stands in a lock of ours. Git writes an index there, or nothing yet."""


class TreeBusy(Exception):
    """Another program holds the index, or it cannot be held; says so as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Held:
    """The index of a work tree, locked by us."""

    index: Path
    copy: Path
    """What git is given to work on; it locks the copy by a lock next to it."""

    async def publish(self) -> None:
        """Make the copy the index, at once and whole."""
        try:
            await anyio.to_thread.run_sync(os.replace, self.copy, self.index)
        except OSError as error:
            raise AshepError(f"{self.index} cannot be written: {error.strerror}") from error
        await fsync.files(self.index.parent, [os.fsencode(self.index.name)])

    async def renew(self) -> None:
        """Copy the index again. Raises `AshepError`, on a full disk say."""
        try:
            await anyio.to_thread.run_sync(_copy, self.index, self.copy)
        except OSError as error:
            raise AshepError(f"{self.index} cannot be copied to {self.copy}: {error.strerror}") from error


@asynccontextmanager
async def hold(tree: WorkspacePaths) -> AsyncGenerator[Held]:
    """Hold the index as long as the context lasts. Raises `TreeBusy`."""
    lock, held = tree.admin / "index.lock", Held(tree.admin / "index", tree.admin / "index.ashep")
    await anyio.to_thread.run_sync(_take, lock)
    try:
        await held.renew()
        yield held
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_release, held.copy, lock)


def _take(lock: Path, *, again: bool = False) -> None:
    """Make the lock, whole or not at all: a lock without its line would be nobody's."""
    draft = lock.with_name("index.lock.ashep")
    try:
        draft.write_bytes(LINE)
        os.link(draft, lock)
    except FileExistsError:
        if not _is_ours(lock):
            if not again and take_away(lock):
                _take(lock, again=True)
                return
            raise TreeBusy(f"another git is at work there, or left {lock}") from None
    except OSError as error:
        raise TreeBusy(f"its index cannot be locked: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _is_ours(lock: Path) -> bool:
    with suppress(OSError):
        return lock.read_bytes() == LINE
    return False


def _copy(index: Path, copy: Path) -> None:
    copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)  # of a git of ours that was killed
    if index.exists():
        # with its time: by it git tells which files may have changed since without their time or size showing it
        shutil.copy2(index, copy)
    else:
        copy.unlink(missing_ok=True)


def _release(copy: Path, lock: Path) -> None:
    with suppress(OSError):  # the lock must go, whatever is with the copy
        copy.unlink(missing_ok=True)
    if _is_ours(lock):
        lock.unlink(missing_ok=True)
