"""Pushes branches to a remote, forward only."""

from fnmatch import fnmatchcase
from pathlib import Path

from ashep.adapters.git.git_program import SHA
from ashep.adapters.git.objects import commits, holds
from ashep.adapters.git.program import Git
from ashep.errors import AshepError, ForgeUnavailable, ProgramTimedOut
from ashep.ports.landing import NotPushed, Pushed
from ashep.redaction import Redaction


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
        self._git = Git(project, timeout, redaction or Redaction())
        self._remote, self._protected = remote, protected

    async def head(self, branch: str) -> str | None:
        """Ask where the branch is at the remote."""
        ref = f"refs/heads/{branch}"
        try:
            done = await self._git.bare("ls-remote", "--", self._remote, ref, accepted=(0, 128))
        except ProgramTimedOut as error:
            raise ForgeUnavailable(f"the remote {self._remote} does not answer: {error}") from error
        if done.returncode:
            raise ForgeUnavailable(
                f"the remote {self._remote} cannot be read: {self._git.shown(done.stderr).strip()[:300]}"
            )
        lines = (line.split("\t") for line in done.stdout.decode(errors="replace").splitlines())
        return next((line[0] for line in lines if line[1:] == [ref] and SHA.fullmatch(line[0])), None)

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        """Bring the branch to the commit, if that holds all that stands there."""
        if branch == base or any(fnmatchcase(branch, pattern) for pattern in self._protected):
            return NotPushed("protected", f"{branch} is a branch to which only people push")
        if not SHA.fullmatch(commit):
            raise AshepError(f"{branch} can only be pushed as the full id of a commit")
        await commits(self._git, [commit])
        stands = await self.head(branch)
        if stands == commit:
            return Pushed(commit)
        if stands is not None and not await self._ours(stands, commit):
            return NotPushed(
                "theirs", f"{branch} at {self._remote} is at {stands[:12]}, which {commit[:12]} does not hold"
            )
        refspec = f"{commit}:refs/heads/{branch}"  # without a plus: the remote compares once more
        try:
            done = await self._git.bare(
                "push", "--porcelain", "--no-follow-tags", self._remote, refspec, accepted=(0, 1, 128)
            )
        except ProgramTimedOut as error:
            raise ForgeUnavailable(f"the remote {self._remote} does not answer: {error}", unknown=True) from error
        if done.returncode == 0:
            return Pushed(commit)
        said = self._git.shown(done.stdout + done.stderr).strip()[:500]
        if "[rejected]" in said:
            return NotPushed("theirs", f"{branch} at {self._remote} went on meanwhile: {said}")
        if "[remote rejected]" in said:
            return NotPushed("refused", f"{self._remote} does not take {branch}: {said}")
        raise ForgeUnavailable(f"the remote {self._remote} cannot be written to: {said}", unknown=True)

    async def _ours(self, stands: str, commit: str) -> bool:
        """Say whether the commit holds what stands at the remote; what we do not have it cannot hold."""
        known = await self._git.bare("cat-file", "-e", f"{stands}^{{commit}}", accepted=(0, 1, 128))
        return known.returncode == 0 and await holds(self._git, commit, stands)
