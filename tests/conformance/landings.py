"""Places to land in: a repository of the real git, with a person's work tree, and one in memory."""

import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ashep.adapters.git import GitLanding
from ashep.core.policy.landing import LandingSettings
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.ports.landing import Advanced, Landing, MoveRefused

Files = dict[str, str]
T = TypeVar("T")


class LandingWorld(Protocol):
    """A base branch `main` and branches of issues."""

    @property
    def landing(self) -> Landing: ...

    def work(self, branch: str, files: dict[str, str | None], *, merge: bool = False) -> str:
        """Commit to an issue's branch, which begins where main is; None deletes, `merge` merges main into it first."""
        ...

    def commit(self, files: dict[str, str | None]) -> str:
        """Commit to main, as a person does."""
        ...

    def files(self, commit: str) -> Files:
        """What a commit holds."""
        ...


class MemoryLandingWorld:
    """Branches in memory."""

    def __init__(self) -> None:
        self.workspaces = MemoryWorkspaces({"README": "begin\n"})
        self.landing = MemoryLanding(self.workspaces)

    def work(self, branch: str, files: dict[str, str | None], *, merge: bool = False) -> str:
        _at_once(self.workspaces.prepare(branch, None, 1))
        if merge:
            self.workspaces.take_in(branch)
        for path, content in files.items():
            self.workspaces.edit(branch, path, content)
        return _at_once(self.workspaces.seal(branch, "t-1/implement.1.1", f"Work on {branch}")).head

    def commit(self, files: dict[str, str | None]) -> str:
        return [self.workspaces.commit(path, content) for path, content in files.items()][-1]

    def files(self, commit: str) -> Files:
        return self.workspaces.files(commit)


class GitLandingWorld:
    """A repository of the real git; main is checked out at `top`, unless it is detached."""

    def __init__(self, top: Path, *, protected: tuple[str, ...] = ()) -> None:
        self._take(top, protected)
        self.git("init", "-q", "-b", "main", str(top), cwd=top.parent)
        self.commit({"README": "begin\n"})

    def _take(self, top: Path, protected: tuple[str, ...] = ()) -> None:
        self.top, self.landing = top, GitLanding(top, protected=protected, by_key=LandingSettings().merge_by_key)

    @classmethod
    def standing(cls, top: Path) -> "GitLandingWorld":
        """A repository that stands already."""
        world = cls.__new__(cls)
        world._take(top)
        return world

    def git(self, *arguments: str, cwd: Path | None = None, ok: bool = True) -> str:
        identity = ("-c", "user.name=person", "-c", "user.email=person@example.invalid", "-c", "commit.gpgsign=false")
        argv = ["git", *identity, "-c", "core.fsync=none", *arguments]
        done = subprocess.run(argv, cwd=cwd or self.top, check=ok, capture_output=True, text=True)
        return done.stdout.strip("\n")

    def work(self, branch: str, files: dict[str, str | None], *, merge: bool = False) -> str:
        tree = self.top.parent / f"tree-{branch.replace('/', '-')}"
        if not tree.exists():
            self.git("worktree", "add", "-q", "-b", branch, str(tree), "main")
        if merge:
            self.git("merge", "-q", "-X", "ours", "-m", "Merge main", "main", cwd=tree)
        return self._commit(tree, files, f"Work on {branch}")

    def commit(self, files: dict[str, str | None]) -> str:
        return self._commit(self.top, files, "A person's commit")

    def _commit(self, tree: Path, files: dict[str, str | None], subject: str) -> str:
        for path, content in files.items():
            put(tree / path, content)
        self.git("add", "--all", cwd=tree)
        self.git("commit", "-q", "--allow-empty", "-m", subject, cwd=tree)
        return self.git("rev-parse", "HEAD", cwd=tree)

    def files(self, commit: str) -> Files:
        names = self.git("ls-tree", "-r", "--name-only", "-z", commit).split("\0")
        return {name: self.git("show", f"{commit}:{name}") + "\n" for name in names if name}

    def status(self, tree: Path | None = None) -> str:
        return self.git("status", "--porcelain", "--ignored", cwd=tree)

    def state(self) -> tuple[str, str, Files]:
        """What a person sees: main, its status, and every file of theirs."""
        stands = {
            str(path.relative_to(self.top)): path.read_text(errors="replace")
            for path in sorted(self.top.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }
        return self.git("rev-parse", "main"), self.status(), stands

    def left_behind(self) -> list[str]:
        """What should not be left in git's folder after a call."""
        common = self.top / ".git"
        refs = self.git("for-each-ref", "--format=%(refname)", "refs/ashep/moving").split()
        return refs + sorted(path.name for path in common.glob("index?*"))


def _at_once(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("memory does not wait")


def refusal(result: Advanced | MoveRefused, *words: str, code: str = "dirty") -> None:
    """It was refused, for this reason, in these words."""
    assert isinstance(result, MoveRefused)
    assert result.code == code
    assert all(word in result.why for word in words), result.why


def put(path: Path, content: str | None) -> None:
    """Write a file, or delete it."""
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, newline="")
