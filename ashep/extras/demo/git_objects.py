"""Git objects of the trees in memory, so that the page of the demonstration shows what each run changed.

They are written as git has them, without starting it: the ids of commits and trees are then git's own.
"""

import hashlib
import zlib
from pathlib import Path

from ashep.extras.simulation.memory.workspaces import Files, MemoryWorkspaces

_WHO = "Agent Shepherd <ashep@localhost> 1767225600 +0000"


class StoredWorkspaces(MemoryWorkspaces):
    """Those whose commits can be read in the repository at `project`."""

    def __init__(self, project: Path, files: Files) -> None:
        self._objects = project / ".git" / "objects"
        self._objects.mkdir(parents=True)
        (project / ".git" / "refs").mkdir()
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        super().__init__(files)

    def name_tree(self, files: Files) -> str:
        """Store a tree, with the folders in it."""
        entries, folders = list[tuple[str, str, str]](), dict[str, Files]()
        for path, text in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = text
            else:
                entries.append((name, "100644", self._store("blob", text.encode())))
        entries += [(f"{name}/", "40000", self.name_tree(below)) for name, below in folders.items()]
        lines = (f"{mode} {name.rstrip('/')}\0".encode() + bytes.fromhex(id_) for name, mode, id_ in sorted(entries))
        return self._store("tree", b"".join(lines))

    def name_commit(self, subject: str, files: Files, parents: tuple[str, ...], run: str) -> str:
        """Store a commit."""
        head = [f"tree {self.name_tree(files)}", *(f"parent {parent}" for parent in parents)]
        head += [f"author {_WHO}", f"committer {_WHO}", "", subject, *(("", f"Run: {run}") if run else ()), ""]
        return self._store("commit", "\n".join(head).encode())

    def _store(self, kind: str, content: bytes) -> str:
        data = f"{kind} {len(content)}\0".encode() + content
        name = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        file = self._objects / name[:2] / name[2:]
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(zlib.compress(data, 1))
        return name
