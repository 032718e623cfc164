"""What a work tree of an issue costs beside a bare `git worktree add`, and how long 200 of them take to go."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import anyio

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from bench.figures import Figure, times
from bench.place import say
from tests.places import has_bubblewrap


def measure(*, files: int, pairs: int, trees: int, sizes: Sequence[int] = (10, 1000, 20_000)) -> list[Figure]:
    """Time set-up against git's own, in turns, in one process; that of places against it; then take many trees away."""
    folder = Path(tempfile.mkdtemp(prefix="ashep-bench-trees-"))
    try:
        top = _repository(folder / "top", files)
        spaces = Worktrees(top, folder / "trees")
        anyio.run(spaces.prepare, "ashep/warm", None, 0)
        say(f"trees: {files} files, {pairs} pairs")
        measured = anyio.run(_pairs, spaces, top, folder, pairs)
        figures = [times(f"set-up of a tree of {files} files, beside `git worktree add`", measured, 1.3)]
        for count in sizes:
            say(f"trees: places of {count} files, {pairs} pairs")
            figures += anyio.run(_places, folder / str(count), count, pairs)
        say(f"trees: {trees} trees stand and go")
        return figures + anyio.run(_collected, spaces, trees)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _places(folder: Path, files: int, pairs: int) -> list[Figure]:
    """Make and seal a place and a linked tree, in turns."""
    top = _repository(folder / "top", files)
    made, sealed = list[tuple[float, float]](), list[tuple[float, float]]()
    kinds = Clones(top, folder / "places"), Worktrees(top, folder / "trees")
    for spaces in kinds:
        await spaces.prepare("ashep/warm", None, 0)
    for number in range(pairs):
        took = dict[Worktrees, tuple[float, float]]()
        for spaces in kinds if number % 2 else reversed(kinds):
            name = f"ashep/{type(spaces).__name__}-{number}"
            begin = await _timed(lambda spaces=spaces, name=name: spaces.prepare(name, None, 0))
            path = next(one.path for one in await spaces.list() if one.branch == name)
            await anyio.Path(path, "made.txt").write_text("made\n")
            took[spaces] = begin, await _timed(lambda spaces=spaces, name=name: spaces.seal(name, "t/x.1.1", "Made"))
        made.append((took[kinds[0]][0], took[kinds[1]][0]))
        sealed.append((took[kinds[0]][1], took[kinds[1]][1]))
    kind = "in a sandbox" if has_bubblewrap() else "without a sandbox"
    return [
        times(f"a place of {files} files, beside a linked tree", made, 1.3),
        times(f"  sealing it {kind}, beside that", sealed, None),
    ]


async def _pairs(spaces: Worktrees, top: Path, folder: Path, pairs: int) -> list[tuple[float, float]]:
    """Make a tree by the port and one by git, in turns; an idle event loop is there in both."""
    found = list[tuple[float, float]]()
    for number in range(pairs):

        async def ours(name: str = f"ashep/ours-{number}") -> None:
            await spaces.prepare(name, None, 0)

        async def bare(name: str = f"bare-{number}") -> None:
            path = folder / "bare" / name
            await anyio.run_process(["git", "worktree", "add", "-q", "-b", name, str(path)], cwd=top)

        first, second = (ours, bare) if number % 2 else (bare, ours)
        took = {first: await _timed(first), second: await _timed(second)}
        found.append((took[ours], took[bare]))
    return found


async def _timed(what: Callable[[], Coroutine[Any, Any, object]]) -> float:
    begin = time.perf_counter()
    await what()
    return time.perf_counter() - begin


async def _collected(spaces: Worktrees, trees: int) -> list[Figure]:
    """Let trees stand, half of them with work that is not committed, list them, and take all of them away."""
    names = [f"ashep/many-{number}" for number in range(trees)]
    for number, name in enumerate(names):
        path = Path((await spaces.prepare(name, None, 0)).path)
        if number % 2:
            (path / "loose").write_text(f"{number}\n")
    begin = time.perf_counter()
    standing = [one for one in await spaces.list() if one.branch in names]
    listed = time.perf_counter() - begin
    assert len(standing) == trees
    begin = time.perf_counter()
    removed = [await spaces.remove(name, forget=True) for name in names]
    gone = time.perf_counter() - begin
    assert [len(one.saved) for one in removed] == [number % 2 for number in range(trees)]
    note = f"{gone / trees * 1000:.0f} ms each; half of them held work that was not committed, which is saved"
    return [
        Figure(f"{trees} trees are listed, with sizes", listed, "s"),
        Figure(f"{trees} trees are saved and taken away", gone, "s", None, note),
    ]


def _repository(top: Path, files: int) -> Path:
    top.mkdir(parents=True)
    for number in range(files):
        file = top / f"folder-{number // 20}" / f"file-{number}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}: some line of code\n" * 150)
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-qm", "First")):
        subprocess.run(["git", *words], cwd=top, check=True, capture_output=True)
    return top
