"""Work trees to test on: one in memory, one of the real git; somebody works in both."""

import subprocess
from pathlib import Path
from typing import Protocol

from ashep.adapters.git.user_work_tree import GitTree
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.ports.workspaces import WorkTree


class TreeWorld(Protocol):
    """A work tree and whoever works in it."""

    @property
    def tree(self) -> WorkTree: ...

    def write(self, path: str, content: str) -> None: ...
    def delete(self, path: str) -> None: ...
    def stage(self, path: str) -> None: ...
    def commit(self, subject: str, run: str | None = None) -> str: ...


class MemoryTreeWorld:
    """A tree in memory."""

    def __init__(self, *, present: bool = True) -> None:
        self.tree = MemoryTree(present=present)
        self.write, self.delete, self.stage, self.commit = (
            self.tree.write, self.tree.delete, self.tree.stage, self.tree.commit,
        )  # fmt: skip


class GitTreeWorld:
    """A repository of the real git; the tree is read from the folder `project` of it."""

    def __init__(self, top: Path, project: str = ".", *, present: bool = True) -> None:
        self.top = top
        top.mkdir()
        (top / project).mkdir(exist_ok=True)
        self.tree = GitTree(top / project)
        if present:
            self.git("init", "-q")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=person", "-c", "user.email=person@example.invalid", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.top, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, content: str) -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(content, newline="")

    def delete(self, path: str) -> None:
        (self.top / path).unlink()

    def stage(self, path: str) -> None:
        self.git("add", "--", path)

    def commit(self, subject: str, run: str | None = None) -> str:
        self.git("add", "--all")
        trailer = [] if run is None else [f"--trailer=Ashep-Run: {run}"]
        self.git("commit", "-q", "--no-verify", "-m", subject, *trailer)
        return self.git("rev-parse", "HEAD")
