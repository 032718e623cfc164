"""Find the commits that are to be verified, and bring a repository from elsewhere here: git, which only reads.

A repository from elsewhere is kept as a bare one, into which branches are fetched; nothing is pushed, and no program
that it names is run.
"""

import os
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from ashep.adapters.git.git_program import SHA, Git
from ashep.core.state.branches import BASES, branch_of
from ashep.core.text import clean
from ashep.errors import AshepError

FETCH = 300.0
"""Seconds for a fetch."""

MOST_KEPT = 20
MOST_BYTES = 10 * 1024**3
"""What is kept of repositories from elsewhere: so many, and so large all together."""

IN_USE = 6 * 3600.0
"""Seconds for which what was fetched stays whatever the bounds: a verification may still read it."""

_MAIN = ("main", "master", "trunk")
"""What branches are called that work is brought to."""
_THEIRS = "ashep-head-of-theirs"
"""The branch of a bare repository that is what HEAD is where it comes from."""
_QUIET = {"GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
"""No question is asked of a person who is not there."""
_SAFE = ("protocol.ext.allow=never",)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is to be verified."""

    repository: Path
    commit: str
    base: str | None
    """The commit before the work; None: not known, or there is none."""
    name: str
    """What it was named by: a branch, or what somebody gave."""


async def candidate(repository: Path, issue: str, commit: str | None = None, base: str | None = None) -> Candidate:
    """Find the commit of an issue: the given one, else the tip of its branch, else HEAD.

    The base is the given one; else, of the issue's branch, where it left the branch that work is brought to. Raises
    `AshepError` where there is no such commit, or no repository.
    """
    branch = branch_of(issue)
    tip = None if commit else await _resolve(repository, f"refs/heads/{branch}")
    name = commit or (branch if tip else "HEAD")
    found = tip or await resolve(repository, name)
    if base is not None:
        return Candidate(repository, found, await resolve(repository, base), name)
    return Candidate(repository, found, await left(repository, found, branch) if tip else None, name)


async def resolve(repository: Path, name: str) -> str:
    """Give the commit that a name means; raises `AshepError` where it means none."""
    found = await _resolve(repository, name)
    if found is None:
        raise AshepError(f"{repository} has no commit {clean(name)!r}")
    return found


async def differ(repository: Path, commit: str, base: str | None) -> bool | None:
    """Whether a commit changes anything since its base, both by their ids; None: it has no base that is known."""
    if base is None:
        return None
    trees = (await _git(repository, "rev-parse", f"{commit}^{{tree}}", f"{base}^{{tree}}")).split()
    return trees[0] != trees[1]


async def left(repository: Path, commit: str, branch: str) -> str | None:
    """Say where a branch left the one that it is to be brought to: what is recorded, else by what is checked out here,
    else by `main`.
    """
    if (recorded := await _resolve(repository, f"{BASES}{branch}")) is not None:
        return recorded
    head = (await _git(repository, "symbolic-ref", "--quiet", "HEAD", fine=(0, 1))).strip()
    names = [] if head == f"refs/heads/{branch}" else ["HEAD"]
    for name in (*names, *(f"refs/heads/{one}" for one in _MAIN if one != branch)):
        other = await _resolve(repository, name)
        if other is not None:
            return (await _git(repository, "merge-base", other, commit, fine=(0, 1))).strip() or None
    return None


async def _resolve(repository: Path, name: str) -> str | None:
    if not name or set("\n\0") & set(name):
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    found = (await _git(repository, *words, fine=(0, 1))).strip()
    return found if SHA.fullmatch(found) else None


async def fetched(url: str, branch: str, folder: Path) -> Path:
    """Bring a branch of a repository from elsewhere, and the one that its HEAD means, into a bare one below `folder`.

    Raises `AshepError` where it cannot be reached, or has no such branch.
    """
    place = folder / sha256(url.encode()).hexdigest()[:16]
    await to_thread.run_sync(lambda: place.mkdir(mode=0o700, parents=True, exist_ok=True))
    await _git(place, "init", "--bare", "--quiet", f"--initial-branch={_THEIRS}", ".")
    refs = (f"+refs/heads/{branch}:refs/heads/{branch}", f"+HEAD:refs/heads/{_THEIRS}")
    flags = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    git = Git(FETCH, settings=_SAFE)
    done = await git.run("fetch", *flags, "--", url, *refs, cwd=place, env=_QUIET)
    if done.returncode != 0:
        raise AshepError(f"{url} cannot be fetched: {' '.join(clean(git.said(done)).split())[:300]}")
    await to_thread.run_sync(_bound, folder, place)
    return place


def _bound(folder: Path, used: Path) -> None:
    """Delete what was not used for longest, down to the bounds; what is looked into at present was used lately."""
    os.utime(used)
    latest = used.stat().st_mtime
    found = sorted((one for one in folder.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    sizes = {one: sum(file.lstat().st_size for file in one.rglob("*")) for one in found}
    for one in found:
        if len(sizes) <= MOST_KEPT and sum(sizes.values()) <= MOST_BYTES:
            return
        if one != used and latest - one.stat().st_mtime > IN_USE:
            shutil.rmtree(one, ignore_errors=True)
            del sizes[one]


async def _git(repository: Path, *words: str, fine: tuple[int, ...] = (0,), timeout: float | None = None) -> str:
    """Run git in a repository and give what it printed; raises `AshepError` with its words where it failed."""
    git = Git()
    done = await git.run(*words, cwd=repository, env=_QUIET, timeout=timeout)
    if done.returncode not in fine:
        said = " ".join(clean(git.said(done)).split())[:300]
        raise AshepError(f"git {words[0]} failed in {repository}: {said or f'exit code {done.returncode}'}")
    return done.stdout.decode(errors="replace")
