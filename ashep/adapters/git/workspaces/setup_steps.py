"""Set a new tree up: copy files into it that git does not hold, and run the user's commands, once."""

import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.command import NOTHING, Git
from ashep.adapters.git.repository import Repository, TreeRepository, WorkspacePaths
from ashep.adapters.git.tree_scan import OWN, Stat, files_of, read_stats, write_stats
from ashep.adapters.system import programs
from ashep.adapters.system.folders import walk
from ashep.core.policy.settings import SetupStep
from ashep.core.text import clean
from ashep.errors import AshepError

_MARK = "set-up"
_LINES, _WORDS = 6, 600
"""How much of what a failed command said is told."""
_NOT_COPIED = (".git", *OWN)

Inside = Callable[[Sequence[str], Path, Mapping[str, str], float], Awaitable[programs.Finished]]
"""Runs a program where the agents of a place run: in a folder, with variables beside theirs, for so many seconds."""


async def set_up(
    repository: Repository,
    inner: TreeRepository,
    steps: Sequence[SetupStep],
    folder: Path,
    slot: int,
    enter: Callable[[Path], Awaitable[Inside | None]] | None = None,
) -> None:
    """Carry the steps out in `folder`, unless that was done; it counts as done once all have worked.

    `inner`: by which git is called in the place. `enter`: gives where its agents run; None: as we do. Raises
    `AshepError` where a step failed, with what it said last. They begin again at the next call.
    """
    place = inner.place
    mark = place.notes / _MARK
    if await anyio.Path(mark).exists():
        return
    inside = await enter(place.path) if enter is not None else None
    for number, step in enumerate(steps, 1):
        if step.files:
            await _copy(repository.project, repository.git, inner, step.files, folder)
        else:
            await _run(repository, step, folder, f"step {number} of worker.setup", slot, inside)
    link = await _lead_to_beads(repository, place, folder) if inside is None else None  # none could follow it in there
    made = dict[bytes, Stat]()
    if steps or link:  # the files that git ignores now, and the link to the database
        listed = await inner.inside("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
        names = {path for path in (*listed.split(b"\0"), os.fsencode(link or "")) if path}
        files = await anyio.to_thread.run_sync(files_of, place)
        made = {path: about for path, about in files.items() if path in names}
    await anyio.to_thread.run_sync(write_stats, mark, made)


def made_by_set_up(place: WorkspacePaths) -> dict[bytes, Stat]:
    """Give the ignored files that the set-up left, as they were then; they can be made again."""
    return read_stats(place.notes / _MARK)


async def _lead_to_beads(repository: Repository, place: WorkspacePaths, folder: Path) -> str | None:
    """Let bd find the project's database from the tree; give the path of what was written for that.

    By itself bd looks in the folders above, and at the top of the checkout that a linked tree belongs to: so it misses
    a project in a folder of its repository, where the tree stands elsewhere or has files of `.beads` of its own; and
    every project from a place, which belongs to no checkout.
    """
    prefix, database = (await repository.folders()).prefix, repository.project / ".beads"
    if not (prefix or place.whole) or not await anyio.Path(database).is_dir():
        return None
    link = anyio.Path(folder, ".beads", "redirect")
    await link.parent.mkdir(exist_ok=True)
    await link.write_text(f"{database}\n")
    return Path(link).relative_to(place.path).as_posix()


async def _copy(project: Path, git: Git, inner: TreeRepository, patterns: Iterable[str], folder: Path) -> None:
    """Copy what the patterns find in the user's checkout and git does not hold; what is there already stays.

    Raises `AshepError` where git would not ignore it in the tree: it would be committed with what an agent did; and
    where a link that an agent left there would lead it elsewhere.
    """
    listed = await git.raw("ls-files", "-z")
    tracked = {os.fsdecode(path) for path in listed.split(b"\0")}

    def find_files() -> list[str]:
        sources = {path for pattern in patterns for path in project.glob(pattern)}
        names = {path.relative_to(project).as_posix() for source in sources for path in _files(source)}
        return sorted(
            name
            for name in names - tracked
            if not any(name == own or name.startswith(f"{own}/") for own in _NOT_COPIED)
        )

    def copy(names: Iterable[str]) -> None:
        for name in names:
            target = folder / name
            if not os.path.lexists(target):
                refuse_links(inner.place.path, target.parent)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / name, target, follow_symlinks=False)

    try:
        names = await anyio.to_thread.run_sync(find_files)
        prefix = folder.relative_to(inner.place.path)
        asked = {os.fsencode(prefix / name) for name in names}
        stdin = b"".join(path + b"\0" for path in asked)
        ignored = await inner.inside("check-ignore", "-z", "--stdin", stdin=stdin, absent=NOTHING) if asked else b""
        if left := sorted(asked - {*ignored.split(b"\0")}):
            raise AshepError(
                f"worker.setup: git does not ignore {clean(os.fsdecode(left[0]))} in {inner.place.path}, so that it "
                "would be committed with the work of an agent; put it into .gitignore"
            )
        await anyio.to_thread.run_sync(copy, names)
    except (OSError, shutil.Error, ValueError, NotImplementedError) as error:
        raise AshepError(f"worker.setup: {', '.join(patterns)} cannot be copied to {folder}: {error}") from error


def refuse_links(top: Path, folder: Path) -> None:
    """Raise `AshepError` where a folder below `top` is a link, or in one: what is made there would be elsewhere."""
    below = [above for above in (folder, *folder.parents) if above != top and above.is_relative_to(top)]
    if link := next((above for above in below if above.is_symlink()), None):
        raise AshepError(f"{clean(str(link))} is a link, and nothing is written to where it leads: make it a folder")


def _files(source: Path) -> Iterator[Path]:
    """Give the files of a folder, and the links, which are not followed; or the file itself."""
    if source.is_symlink() or not source.is_dir():
        yield source
        return
    for path, folders, names in walk(str(source)):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (Path(path, name) for name in names)


async def _run(
    repository: Repository, step: SetupStep, folder: Path, name: str, slot: int, inside: Inside | None
) -> None:
    limit, main = step.timeout.total_seconds(), await anyio.to_thread.run_sync(repository.project.resolve)
    if inside is not None:
        done = await inside(step.run, folder, {"ASHEP_SLOT": str(slot), "ASHEP_MAIN": str(main)}, limit)
    else:
        ours = {word: value for word, value in os.environ.items() if not word.startswith("GIT_")}
        env = ours | {"ASHEP_SLOT": str(slot), "ASHEP_MAIN": str(repository.project)}
        done = await programs.run(step.run, cwd=folder, env=env, timeout=limit)
    if done.returncode:
        said = repository.redaction.text((done.stderr or done.stdout).decode(errors="replace")).strip()
        last = clean("\n".join(said.splitlines()[-_LINES:]))[-_WORDS:]
        raise AshepError(
            f"{name}, `{clean(' '.join(step.run))}`, ended with exit code {done.returncode} in {folder}: {last}"
        )
