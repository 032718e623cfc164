"""A work tree in memory, edited and committed to by a script."""

import hashlib

from ashep.core.facts.delivery import Tree
from ashep.ports.workspaces import Changes, Commit


class MemoryTree:
    """Files, an index of names and a history; `write`, `delete`, `stage` and `commit` play whoever works in it.

    `present=False` is a folder outside of any repository.
    """

    def __init__(self, *, present: bool = True) -> None:
        self._present = present
        self._files: dict[str, str] = {}
        self._tracked: set[str] = set()
        self._committed: dict[str, str] = {}
        self._history: list[tuple[Commit, str | None, tuple[str, ...]]] = []

    def write(self, path: str, content: str) -> None:
        """Write a file."""
        self._files[path] = content

    def delete(self, path: str) -> None:
        """Delete a file."""
        del self._files[path]

    def stage(self, path: str) -> None:
        """Let git know of a file, without a commit."""
        self._tracked.add(path)

    def commit(self, subject: str, run: str | None = None) -> str:
        """Commit everything, as a run where one is named, and give the commit's id."""
        paths = tuple(path for path, _ in self._differences(set(self._files) | self._tracked))
        self._tracked, self._committed = set(self._files), dict(self._files)
        sha = hashlib.sha1(f"{len(self._history)} {subject}".encode(), usedforsecurity=False).hexdigest()
        self._history.append((Commit(sha, subject), run, paths))
        return sha

    def _differences(self, paths: set[str]) -> list[tuple[str, str]]:
        contents = {path: self._files.get(path) for path in sorted(paths | set(self._committed))}
        return [
            (path, "deleted" if content is None else hashlib.sha256(content.encode()).hexdigest())
            for path, content in contents.items()
            if content != self._committed.get(path)
        ]

    async def read(self) -> Tree:
        """Give the present state."""
        if not self._present:
            return Tree(present=False)
        known = self._tracked | set(self._committed)
        return Tree(
            present=True,
            head=self._history[-1][0].sha if self._history else None,
            dirty=tuple(self._differences(self._tracked)),
            untracked=tuple(sorted(set(self._files) - known)),
            branch="main",
        )

    async def changes(
        self, base: str | None, issue: str, commits: tuple[str, ...], left_over: tuple[str, ...]
    ) -> Changes:
        """Give the commits that name the issue, or are named, with the paths that they changed."""
        if not self._present:
            return Changes()
        shas = [commit.sha for commit, _, _ in self._history]
        after = shas[shas.index(base) + 1 :] if base and base in shas else []
        mine = {
            commit.sha: (commit, paths)
            for commit, run, paths in self._history
            if commit.sha in commits or (commit.sha in after and run is not None and run.split("/")[0] == issue)
        }
        return Changes(
            commits=tuple(commit for commit, _ in mine.values()),
            stat="\n".join(f" {path} | changed" for _, paths in mine.values() for path in paths),
            left_over=(left := tuple(path for path, _ in self._differences(self._tracked) if path in left_over)),
            diff="\n".join(f"+++ {path}" for path in [*(path for _, paths in mine.values() for path in paths), *left]),
        )

    async def between(self, before: str | None, after: str | None) -> tuple[str, ...]:
        """List commit ids."""
        shas = [commit.sha for commit, _, _ in self._history]
        if before not in shas or after not in shas:
            return ()
        return tuple(shas[shas.index(before) + 1 : shas.index(after) + 1])
