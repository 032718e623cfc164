"""Repositories elsewhere: branches are pushed to a remote, forward only, and fetched from an address; and the commits
that are to be verified are found.

A repository from an address is kept as a bare one, into which branches are fetched; nothing is pushed to it, and no
program that it names is run.
"""

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from ashep.adapters.git.command import ELSEWHERE, LANDING, SHA, Git, commit_of
from ashep.adapters.git.objects import commits, holds
from ashep.adapters.git.repository import size_of
from ashep.adapters.system.folders import delete
from ashep.core.state.branches import BASES, branch_of
from ashep.core.text import clean
from ashep.errors import AshepError, ForgeUnavailable, ProgramTimedOut
from ashep.ports.landing import NotPushed, Pushed
from ashep.redaction import Redaction

FETCH = 300.0
"""Seconds for a fetch."""

MOST_KEPT = 20
MOST_BYTES = 10 * 1024**3
"""What is kept of repositories from elsewhere: so many, and so large all together."""

IN_USE = 6 * 3600.0
"""Seconds for which what was fetched stays whatever the bounds: a verification may still read it."""

_MAIN = ("main", "master", "trunk")  # what branches are called that work is brought to
_THEIRS = "ashep-head-of-theirs"  # the branch of a bare repository that is what HEAD is where it comes from


class GitRemote:
    """A remote of the repository that holds the folder `project`; each call of git is bound by `timeout` seconds.

    `protected` are patterns of branches to which only people push; the base of a push is one, too. Hooks don't run, a
    `pre-push` of Git LFS neither.
    """

    def __init__(
        self,
        project: Path,
        remote: str = "origin",
        timeout: float = 120.0,
        redaction: Redaction | None = None,
        protected: tuple[str, ...] = (),
    ) -> None:
        self._git = Git(project, LANDING, timeout, redaction)
        self._remote, self._protected = remote, protected

    async def head(self, branch: str) -> str | None:
        ref = f"refs/heads/{branch}"
        try:
            done = await self._git.bare("ls-remote", "--", self._remote, ref, accepted=(0, 128))
        except ProgramTimedOut as error:
            raise ForgeUnavailable(f"the remote {self._remote} does not answer: {error}") from error
        if done.returncode:
            raise ForgeUnavailable(f"the remote {self._remote} cannot be read: {self._git.redact_stderr(done)[:300]}")
        lines = (line.split("\t") for line in done.stdout.decode(errors="replace").split("\n"))
        return next((line[0] for line in lines if line[1:] == [ref] and SHA.fullmatch(line[0])), None)

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        if branch == base or any(fnmatchcase(branch, pattern) for pattern in self._protected):
            return NotPushed("protected", f"{branch} is a branch to which only people push")
        if not SHA.fullmatch(commit):
            raise AshepError(f"{branch} can only be pushed as the full id of a commit")
        await commits(self._git, [commit])
        stands = await self.head(branch)
        if stands == commit:
            return Pushed(commit)
        if stands is not None:
            known = await self._git.bare("cat-file", "-e", f"{stands}^{{commit}}", accepted=(0, 1, 128))
            if known.returncode or not await holds(self._git, commit, stands):  # what we do not have it cannot hold
                where = f"{branch} at {self._remote} is at {stands[:12]}"
                return NotPushed("theirs", f"{where}, which {commit[:12]} does not hold")
        refspec = f"{commit}:refs/heads/{branch}"  # without a plus: the remote compares once more
        try:
            done = await self._git.bare(
                "push", "--porcelain", "--no-follow-tags", self._remote, refspec, accepted=(0, 1, 128)
            )
        except ProgramTimedOut as error:
            raise ForgeUnavailable(f"the remote {self._remote} does not answer: {error}", unknown=True) from error
        if done.returncode == 0:
            return Pushed(commit)
        said = self._git.redact_bytes(done.stdout + done.stderr).strip()[:500]
        if "[rejected]" in said:
            return NotPushed("theirs", f"{branch} at {self._remote} went on meanwhile: {said}")
        if "[remote rejected]" in said:
            return NotPushed("refused", f"{self._remote} does not take {branch}: {said}")
        raise ForgeUnavailable(f"the remote {self._remote} cannot be written to: {said}", unknown=True)


# --- what is verified ---


@dataclass(frozen=True, slots=True)
class VerifiedCommit:
    """What is to be verified."""

    repository: Path
    commit: str
    base: str | None
    """The commit before the work; None: not known, or there is none."""
    name: str
    """What it was named by: a branch, or what somebody gave."""


async def candidate(repository: Path, issue: str, commit: str | None = None, base: str | None = None) -> VerifiedCommit:
    """Find the commit of an issue: the given one, else the tip of its branch, else HEAD.

    The base is the given one; else, of the issue's branch, where it left the branch that work is brought to. Raises
    `AshepError` where there is no such commit, or no repository.
    """
    branch = branch_of(issue)
    tip = None if commit else await _resolve(repository, f"refs/heads/{branch}")
    name = commit or (branch if tip else "HEAD")
    found = tip or await resolve(repository, name)
    if base is not None:
        return VerifiedCommit(repository, found, await resolve(repository, base), name)
    return VerifiedCommit(repository, found, await find_branch_point(repository, found, branch) if tip else None, name)


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


async def find_branch_point(repository: Path, commit: str, branch: str) -> str | None:
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
    return await commit_of(Git(repository, ELSEWHERE), name)


async def fetched(url: str, branch: str, folder: Path) -> Path:
    """Bring a branch of a repository from elsewhere, and the one that its HEAD means, into a bare one below `folder`.

    Raises `AshepError` where it cannot be reached, or has no such branch.
    """
    place = folder / sha256(url.encode()).hexdigest()[:16]
    await to_thread.run_sync(lambda: place.mkdir(mode=0o700, parents=True, exist_ok=True))
    await _git(place, "init", "--bare", "--quiet", f"--initial-branch={_THEIRS}", ".")
    refs = (f"+refs/heads/{branch}:refs/heads/{branch}", f"+HEAD:refs/heads/{_THEIRS}")
    flags = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    git = Git(place, ELSEWHERE, FETCH)
    done = await git.run("fetch", *flags, "--", url, *refs)
    if done.returncode != 0:
        raise AshepError(f"{url} cannot be fetched: {' '.join(git.redact_stderr(done).split())[:300]}")
    await to_thread.run_sync(_bound, folder, place)
    return place


def _bound(folder: Path, used: Path) -> None:
    """Delete what was not used for longest, down to the bounds; what is looked into at present was used lately."""
    os.utime(used)
    latest = used.stat().st_mtime
    found = sorted((one for one in folder.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    sizes = {one: size_of(one) for one in found}
    for one in found:
        if len(sizes) <= MOST_KEPT and sum(sizes.values()) <= MOST_BYTES:
            return
        if one != used and latest - one.stat().st_mtime > IN_USE:
            delete(one)
            del sizes[one]


async def _git(repository: Path, *words: str, fine: tuple[int, ...] = (0,)) -> str:
    return (await Git(repository, ELSEWHERE).run(*words, accepted=fine)).stdout.decode(errors="replace")
