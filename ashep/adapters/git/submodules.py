"""Submodules: folders of a commit whose files other repositories hold. Places and checks have them as plain files.

They come from the user's `.git/modules`, which is only read; nothing is fetched. The base names them: a candidate does
not say which of the user's repositories are read. To the git around them such files do not exist (facts/git.md 8).
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters.git.command import Git
from ashep.adapters.git.export import ALONE, CommitSource, ExportedFiles, end_of_history
from ashep.adapters.system.folders import delete
from ashep.core.text import clean
from ashep.errors import AshepError

MODULES = "modules"
"""The folder in git's own in which a repository keeps those of its submodules, by their names."""
FILL = "`git submodule update --init --recursive` in your checkout gets it"

_LINK = b"160000"
_NAMES = ".gitmodules"
_MOST, _DEEPEST = 200, 5  # submodules of a commit, and how deep they are in each other
_GIT = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a commit."""

    path: bytes
    """Its folder, from the top of the work tree."""
    commit: str
    source: CommitSource | None
    """Where its objects are; None: nothing here has its files."""
    lacking: str = ""
    """Why not, as the end of a sentence."""
    inner: "tuple[Submodule, ...]" = ()
    """Those in it; their paths begin at the same top."""

    def __str__(self) -> str:
        return f"the submodule {clean(os.fsdecode(self.path))[:100]} is an empty folder here: {self.lacking}"


def flat(submodules: Iterable[Submodule]) -> Iterator[Submodule]:
    """Give submodules, each followed by those in it."""
    for submodule in submodules:
        yield submodule
        yield from flat(submodule.inner)


async def find_submodules(
    common: Path, commit: str, base: str | None, above: bytes = b"", depth: int = 1
) -> tuple[Submodule, ...]:
    """List the submodules of a commit. `common`: git's folder; `base`: whose `.gitmodules` counts, None: the commit's.

    Returns nothing where neither of the commits has such a file. Raises `AshepError` with git's words.
    """
    names = await _names(common, base or commit)
    if names is None and (base is None or await _names(common, commit) is None):
        return ()
    submodules, before = list[Submodule](), await _links(common, base) if base else {}
    for path, link in [*(await _links(common, commit)).items()][:_MOST]:
        store, lacking = await _store(common, (names or {}).get(path), path, link)
        source, inner = None, ()
        if store is not None:
            source = CommitSource(store / "objects", link, await to_thread.run_sync(end_of_history, store))
            began = before.get(path, link)
            if depth < _DEEPEST:
                base_within = began if await _holds(store, began) else None
                inner = await find_submodules(store, link, base_within, above + path + b"/", depth + 1)
        submodules.append(Submodule(above + path, link, source, lacking, inner))
    return tuple(submodules)


async def _store(common: Path, name: bytes | None, path: bytes, commit: str) -> tuple[Path | None, str]:
    """Find the repository of a submodule; else say why there is none."""
    if name is None:
        return None, f"the base's {_NAMES} does not name it"
    if not (_is_plain(name) and _is_plain(path)):
        return None, f"its name or path in {_NAMES} leads elsewhere"
    root = await to_thread.run_sync((common / MODULES).resolve)
    store = root / os.fsdecode(name)
    if await to_thread.run_sync(store.resolve) != store or not await to_thread.run_sync((store / "objects").is_dir):
        return None, f"git's folder {MODULES} does not have it; {FILL}"
    if not await _holds(store, commit):
        return None, f"git's folder {MODULES} does not have its commit {commit[:12]}; {FILL}"
    return store, ""


def _is_plain(name: bytes) -> bool:
    """Say whether a name stays below the folder that it is looked for in."""
    return all(part.lower() not in (b"", b".", b"..", b".git") for part in name.split(b"/"))


async def _names(common: Path, commit: str) -> dict[bytes, bytes] | None:
    """Give the names of submodules by their paths, as a commit has them; None: it has no such file that can be read."""
    arguments = ("config", "-z", f"--blob={commit}:{_NAMES}", "--get-regexp", r"^submodule\..*\.path$")
    finished = await Git(common, timeout=_GIT).run(*arguments, env=_alone(common))
    if finished.returncode and finished.stderr:
        return None
    lines = (line.partition(b"\n") for line in finished.stdout.split(b"\0") if line)
    return {path: key.removeprefix(b"submodule.").removesuffix(b".path") for key, _, path in lines}


async def _links(common: Path, commit: str) -> dict[bytes, str]:
    printed = await Git(common, timeout=_GIT).raw("ls-tree", "-r", "-z", "--full-tree", commit, env=_alone(common))
    lines = (line.partition(b"\t") for line in printed.split(b"\0") if line.startswith(_LINK))
    return {path: about.split()[2].decode() for about, _, path in lines}


async def _holds(store: Path, commit: str) -> bool:
    arguments = ("cat-file", "-e", f"{commit}^{{tree}}")
    return not (await Git(store, timeout=_GIT).run(*arguments, env=_alone(store))).returncode


def _alone(common: Path) -> dict[str, str]:
    return ALONE | {"GIT_DIR": str(common)}


# --- filling ----------------------------------------------------------------------------------------------------------


async def fill(
    submodules: Iterable[Submodule], top: Path, scratch: Path, floor: int
) -> tuple[list[ExportedFiles], list[Submodule]]:
    """Write the files of submodules below `top`, which nobody works in; give how, and those that are not there.

    `scratch`: a folder for git's own, of which each gets one below.
    """
    filled, lacking = list[ExportedFiles](), list[Submodule]()
    for number, submodule in enumerate(flat(submodules)):
        if submodule.source is None:
            lacking.append(submodule)
            continue
        tree = top / os.fsdecode(submodule.path)
        files = ExportedFiles(submodule.source, scratch / f"module-{number}", tree, floor)
        try:
            await files.begin(submodule.commit)
            await files.write()
            filled.append(files)
        except AshepError as error:
            await to_thread.run_sync(delete, tree)
            with suppress(OSError):
                await anyio.Path(tree).mkdir()
            lacking.append(replace(submodule, source=None, lacking=str(error)[:200]))
    return filled, lacking
