"""Work trees of issues to test on: in memory, and of the real git; somebody works in both."""

import shutil
import subprocess
from pathlib import Path
from typing import Protocol

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.workspaces import Prepared, Workspaces


class WorkspacesWorld(Protocol):
    """A repository with one commit, trees of issues, and whoever works in them."""

    @property
    def spaces(self) -> Workspaces: ...

    def edit(self, branch: str, path: str, content: str | None) -> None:
        """Let an agent write a file, or delete it."""
        ...

    def lose(self, branch: str) -> None:
        """Let an agent remove its own tree."""
        ...

    def read(self, branch: str) -> dict[str, str]:
        """What the tree of a branch holds."""
        ...

    def base(self) -> str:
        """The commit of the base branch."""
        ...

    def person_commits(self, path: str, content: str) -> str:
        """Let a person commit to the base branch."""
        ...


class MemoryWorkspacesWorld:
    """In memory."""

    def __init__(self) -> None:
        self.spaces = MemoryWorkspaces({"a.txt": "a\n"})
        self.edit, self.read, self.person_commits = self.spaces.edit, self.spaces.read, self.spaces.commit
        self.lose = self.spaces.lose

    def base(self) -> str:
        return self.spaces.base


class GitWorkspacesWorld:
    """A repository of the real git."""

    kind: type[Worktrees] = Worktrees

    def __init__(self, folder: Path, **options: object) -> None:
        self.top, self.place = folder / "top", folder / "trees"
        self.top.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "person")
        self.git("config", "user.email", "person@example.invalid")
        self.person_commits("a.txt", "a\n")
        self.spaces = self.kind(self.top, self.place, **options)  # pyright: ignore[reportArgumentType] - as given

    @classmethod
    def of(cls, top: Path, place: Path) -> "GitWorkspacesWorld":
        """Trees elsewhere, of a repository that is there."""
        world = cls.__new__(cls)
        world.top, world.place, world.spaces = top, place, Worktrees(top, place)
        return world

    def git(self, *arguments: str, at: str | None = None, check: bool = True, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.top if at is None else self.place / at, capture_output=True, input=stdin
        )
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done.stdout.decode(errors="surrogateescape").strip()

    def edit(self, branch: str, path: str, content: str | None) -> None:
        file = self.place / branch / path
        if content is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    async def begun(self, branch: str, files: dict[str, str]) -> Prepared:
        """The tree of a branch, in which an agent has written these files."""
        prepared = await self.spaces.prepare(branch, None, 0)
        for path, content in files.items():
            self.edit(branch, path, content)
        return prepared

    def lose(self, branch: str) -> None:
        shutil.rmtree(self.place / branch)

    def read(self, branch: str) -> dict[str, str]:
        top = self.place / branch
        return {
            path.relative_to(top).as_posix(): path.read_text()
            for path in sorted(top.rglob("*"))
            if path.is_file() and path.relative_to(top).parts[0] != ".git"
        }

    def base(self) -> str:
        return self.git("rev-parse", "main")

    def person_commits(self, path: str, content: str) -> str:
        (self.top / path).write_text(content)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "Edit")
        return self.base()


class PlacesWorld(GitWorkspacesWorld):
    """A repository whose branches have places of their own."""

    kind = Clones

    def __init__(self, folder: Path, *, sandbox: bool = True) -> None:
        super().__init__(folder, sandbox=sandbox)
        self.canary, self.sandboxed = folder / "canary", sandbox

    def again(self, top: Path | None = None) -> Clones:
        """Places of this or another repository, as another life has them."""
        return Clones(top or self.top, self.place, sandbox=self.sandboxed)
