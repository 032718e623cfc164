"""Landing against what a person types: `integrate` and `advance` of branches, and `git merge` of the same ones.

Both land the same branches on a base that is checked out, one after the other, on the same disk; in each pair the one
that goes first alternates. Git syncs what it writes in ours alone (`core.fsync`), as ashep asks it to.
"""

import tempfile
import time
from pathlib import Path

import anyio

from ashep.adapters.git import GitLanding
from ashep.ports.landing import Advanced, Candidate, Integrated
from bench.figures import Figure, times
from tests.conformance.landings import GitLandingWorld

FILES = 500
"""Files of the repository."""


def measure(*, issues: int, pairs: int) -> list[Figure]:
    """Land `issues` branches, `pairs` times each way."""
    measured: list[tuple[float, float]] = []
    for number in range(pairs):
        with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
            ways = [_ours, _bare][:: 1 if number % 2 else -1]
            spent = {way: way(_scene(Path(folder, way.__name__), issues), issues) for way in ways}
        measured.append((spent[_ours] / issues, spent[_bare] / issues))
    return [times("a landing, against git merge", measured, None)]


def _scene(place: Path, issues: int) -> GitLandingWorld:
    """A repository, and a branch for each issue that changes a file of its own and adds one."""
    place.mkdir()
    world = GitLandingWorld(place / "top")
    world.commit({f"src/{number % 20}/file{number}": f"{number}\n" * 40 for number in range(FILES)})
    tree = place / "tree"
    world.git("worktree", "add", "-q", "--detach", str(tree), "main")
    for number in range(issues):
        world.git("checkout", "-q", "-b", f"ashep/t-{number}", "main", cwd=tree)
        (tree / f"src/{number % 20}/file{number}").write_text("changed\n")
        (tree / f"new{number}").write_text("new\n")
        world.git("add", "--all", cwd=tree)
        world.git("commit", "-q", "-m", f"Work on {number}", cwd=tree)
    world.git("worktree", "remove", "--force", str(tree))
    return world


def _ours(world: GitLandingWorld, issues: int) -> float:
    heads = [world.git("rev-parse", f"ashep/t-{number}") for number in range(issues)]

    async def land() -> float:
        landing, start = GitLanding(world.top), time.perf_counter()
        for number, head in enumerate(heads):
            made = await landing.integrate(Candidate(f"t-{number}", f"ashep/t-{number}", head, "main"))
            assert isinstance(made, Integrated)
            assert isinstance(await landing.advance("main", made.base, made.commit), Advanced)
        return time.perf_counter() - start

    spent = anyio.run(land)
    assert world.status() == ""
    return spent


def _bare(world: GitLandingWorld, issues: int) -> float:
    start = time.perf_counter()
    for number in range(issues):
        world.git("merge", "-q", "--no-ff", "--no-edit", f"ashep/t-{number}")
    return time.perf_counter() - start
