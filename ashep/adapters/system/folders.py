"""Folders that others fill: gone through without recursion, and deleted by a program within a time.

An agent or a check may leave thousands of folders in folders: Python's own ways recurse, and fail at that. `rm` is a
well-kept tool on each system; it goes by open folders, however deep, follows no link and enters no other disk.
"""

import logging
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import AnyStr

from anyio import from_thread

from ashep.adapters.system import programs
from ashep.errors import AshepError

ASIDE = ".ashep-undeletable"
"""The folder, next to what could not be deleted, that this is moved to; nobody looks into it again."""

LONGEST = 600.0
"""Seconds that a deletion may take."""

_REPORTS = logging.getLogger("ashep.folders")
_ONE_DISK = "-x" if sys.platform == "darwin" else "--one-file-system"
_DELETE = f"""
rm -rf {_ONE_DISK} -- "$1" 2> /dev/null && exit
[ -L "$1" ] || chmod -R u+rwx -- "$1" 2> /dev/null
rm -rf {_ONE_DISK} -- "$1"
"""


def delete(folder: Path) -> None:
    """Delete a folder with all that is in it, also where somebody took its rights away. Blocks; to be called in a
    worker thread of an event loop.

    What resists is moved aside and reported, once.
    """
    if folder.name == ASIDE or not os.path.lexists(folder):
        return
    reason = from_thread.run(_delete, folder)
    if os.path.lexists(folder):
        _set_aside(folder, reason)


async def _delete(folder: Path) -> str:
    try:
        done = await programs.run(["sh", "-c", _DELETE, "sh", folder], cwd=None, env=None, timeout=LONGEST)
    except AshepError as error:
        return str(error)
    return done.stderr.decode(errors="replace").partition("\n")[0][:300]


def _set_aside(folder: Path, reason: str) -> None:
    target = folder.parent / ASIDE / secrets.token_hex(4)
    try:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(OSError):
            folder.chmod(stat.S_IRWXU)  # a folder that may not be written to cannot be moved
        folder.rename(target)
    except OSError as error:
        reason, target = f"{reason}; nor can it be moved: {error.strerror}", folder
    report = "%s cannot be deleted (%s). It is left in %s: delete it by hand"
    from_thread.run_sync(_REPORTS.warning, report, folder, reason, target)


def walk(top: AnyStr) -> Iterator[tuple[AnyStr, list[AnyStr], list[AnyStr]]]:
    """Give a folder and each one below it, from above, with the names of its folders, and of all else in it.

    Folders that are taken out of their list are left out, as is what cannot be read. Links are not followed.
    """
    left = [top]
    while left:
        folder, below, names = left.pop(), dict[AnyStr, AnyStr](), list[AnyStr]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below[entry.name] = entry.path
                else:
                    names.append(entry.name)
        folders = [*below]
        yield folder, folders, names
        left += [below[name] for name in reversed(folders)]
