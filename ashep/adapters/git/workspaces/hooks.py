"""The team's hooks in places: they run for the commits that an agent makes there, and for no git call of ashep's.

A folder of hooks that the repository itself holds, `.husky` say, is the candidate's: a place has it as its branch has
it. Hooks from elsewhere are copied when the place is made.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ashep.adapters.git.command import NOTHING
from ashep.adapters.git.repository import RepositoryFolders, TreeRepository, WorkspacePaths

HookPolicy = Literal["run", "skip"]
"""What becomes of hooks: `git.hooks` in config.yaml."""

KEY = "core.hooksPath"
NO_HOOKS = os.devnull
"""The value of `KEY` with which git runs no hook."""

_MOST, _LARGEST = 200, 1024**2
"""Files that are copied, and bytes of one."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where the hooks of a place are."""

    path: str | None
    """What the git of a place has as `core.hooksPath`; None: nothing, its hooks are in its own folder."""
    source: Path | None
    """The user's folder that is copied into that folder; None: the branch holds the hooks, or nothing does."""


def find_hooks(user_settings: Sequence[tuple[str, str]], folders: RepositoryFolders, policy: HookPolicy) -> Hooks:
    """Find the hooks by the user's settings of git. Blocks."""
    value = next((value for key, value in reversed(user_settings) if key.lower() == KEY.lower()), None)
    top, common = (Path(os.path.realpath(path)) for path in (folders.top, folders.common))
    folder = common / "hooks" if value is None else Path(os.path.realpath(top / os.path.expanduser(value)))
    inner = folder.is_relative_to(top) and not folder.is_relative_to(common)
    path = folder.relative_to(top).as_posix() if inner else None
    return Hooks(NO_HOOKS if policy == "skip" else path, None if inner else folder)


def copy_hooks(hooks: Hooks, place: WorkspacePaths) -> None:
    """Copy the user's hooks, and what lies with them, into a place that is being made. Blocks."""
    target = place.admin / "hooks"
    for file in hook_files(hooks.source):
        with suppress(OSError):  # one that vanishes, or that nobody may read
            shutil.copy(file, target / file.name)


def hook_files(folder: Path | None) -> Iterable[Path]:
    """List the files of a folder of hooks that may be copied: no sample, no folder, nothing that is large. Blocks."""
    found = list[Path]()
    with suppress(OSError):  # there is none, or nobody may read it
        for file in sorted(folder.iterdir()) if folder is not None else ():
            with suppress(OSError):  # a link to nowhere
                if file.suffix != ".sample" and file.is_file() and file.stat().st_size <= _LARGEST:
                    found.append(file)
    return found[:_MOST]


async def switch_hooks(inner: TreeRepository, hooks: Hooks) -> None:
    """Switch hooks on or off in an existing place; another folder that an agent set stays."""
    printed = await inner.inside("config", "--local", KEY, absent=NOTHING)
    present = os.fsdecode(printed).strip() or None
    if present == hooks.path or NO_HOOKS not in (present, hooks.path):
        return
    change = ("--replace-all", KEY, hooks.path) if hooks.path is not None else ("--unset-all", KEY)
    await inner.inside("config", "--local", *change)
