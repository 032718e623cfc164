"""Locks of git's: which file stops a git, whether a git that lives may hold it, and taking away what a dead one left.

Git closes most of its locks at once (`packed-refs.lock`, say), so that no open file shows who holds one: a lock is left
alone for as long as any git runs in its repository, in whatever work tree, and for ten minutes anyway.
"""

import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from ashep.adapters.system import process_table
from ashep.adapters.system.programs import Finished
from ashep.core.text import clean
from ashep.errors import RepositoryLocked

STALE = 600.0
"""Seconds after which a lock that nobody holds was left by a git that is dead."""
_MOST = 5  # locks that may stop one call, one after the other
_CREATE = re.compile(r"Unable to create '(?P<path>[^'\n]+\.lock)': File exists")
_CONFIG = re.compile(r"could not lock config file (?P<path>[^\n]+): File exists")


async def past_locks(call: Callable[[], Awaitable[Finished]], cwd: Path, told: list[str]) -> Finished:
    """Call git; again where a lock stopped it that a dead git left, which is taken away, and `told`."""
    done = await call()
    for _ in range(_MOST):
        lock = named_in(os.fsdecode(done.stderr), cwd) if done.returncode else None
        if lock is None or not await anyio.to_thread.run_sync(take_away, lock):
            break
        told.append(f"a git that died had left {clean(str(lock))}; it was taken away")
        done = await call()
    return done


def named_in(said: str, cwd: Path) -> Path | None:
    """Give the lock that a git says has stopped it; None: it says no such thing."""
    if created := _CREATE.search(said):
        return cwd / created["path"]
    config = _CONFIG.search(said)
    return cwd / f"{config['path']}.lock" if config else None


def in_the_way(lock: Path, what: str) -> RepositoryLocked:
    """Make the error of a git that a lock stopped which is not ours to take away."""
    file = clean(str(lock))
    return RepositoryLocked(
        f"{file} is there: another git is at work in this repository, or died there ({what}). It is taken away once it "
        f"is {STALE / 60:.0f} minutes old and no git runs there; delete it yourself if you know that none does",
        file,
    )


def take_away(lock: Path) -> bool:
    """Take a lock away, if it is old and no git may hold it; whether it is gone. Blocks."""
    try:
        before = os.stat(lock)
        with tempfile.TemporaryFile(dir=lock.parent) as file:  # a file's age is what the disk's own clock says
            clock = os.fstat(file.fileno()).st_mtime
        if clock - before.st_mtime < STALE or is_held(lock):
            return False
        after = os.stat(lock)
        if (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns):
            return False
        lock.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def is_held(lock: Path) -> bool:
    """Say whether a git runs in the repository of a lock, or anybody has it open; also where that cannot be told."""
    common = next(
        (one for one in lock.absolute().parents if (one / "objects").is_dir() and (one / "HEAD").exists()), None
    )
    if common is None or not os.path.isdir("/proc/self"):
        return True
    tops = (top for _, top in linked(common))  # git's own folders of them are below the first
    main = (common.parent,) if common.name == ".git" else ()
    places = [os.path.realpath(place) for place in (common, *main, *tops)]
    file = os.path.realpath(lock)
    pids = process_table.list_pids()
    return any(_runs_in(Path(f"/proc/{pid}"), places) or file in process_table.list_open_files(pid) for pid in pids)


def linked(common: Path) -> Iterator[tuple[Path, Path]]:
    """Give, of each work tree that git knows next to the main one, git's folder for it and its top, there or not."""
    with suppress(OSError):
        for admin in sorted((common / "worktrees").iterdir()):
            with suppress(OSError, UnicodeDecodeError):
                link = (admin / "gitdir").read_text().rstrip("\n")  # relative since git 2.48
                yield admin, Path(os.path.normpath(admin / link)).parent


def _runs_in(process: Path, places: list[str]) -> bool:
    """Say whether a process is a git at work in one of these places; one that cannot be looked at may be."""
    try:
        name = (process / "comm").read_text().strip()
        if name != "git" and not name.startswith("git-"):
            return False
        if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            return False
        where = [os.readlink(process / "cwd")]
        named = (process / "environ").read_bytes().split(b"\0") + (process / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
    except OSError:
        return True
    where += [os.path.join(where[0], os.fsdecode(word.rpartition(b"=")[2])) for word in named if b"/" in word]
    return any(os.path.normpath(one) == place or one.startswith(f"{place}/") for one in where for place in places)
