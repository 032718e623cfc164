"""States of a git work tree that somebody left, and what of them is lost afterwards."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ashep.adapters.git.workspaces.linked import Worktrees

BRANCH = "ashep/t-1"
NAMES = ("a.txt", "dir/b", "dir", "c.ignored", "ignored/deep/d", "-dash", "sp ace", 'quo"te\\', "new\nline", "ü\r",
         b"raw-\xff".decode(errors="surrogateescape"), "sub/.git", ".gitattributes", "%2Egit")  # fmt: skip
ENV = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "agent", "LC_ALL": "C",
    "GIT_AUTHOR_EMAIL": "agent@example.invalid", "GIT_COMMITTER_NAME": "agent", "GIT_EDITOR": "true",
    "GIT_COMMITTER_EMAIL": "agent@example.invalid", "PATH": os.environ["PATH"], "HOME": "/nonexistent",
}  # fmt: skip


class Place:
    """A repository, and in it a tree whose agent does what `act` says."""

    def __init__(self, folder: Path) -> None:
        self.top, self.trees = folder / "top", folder / "trees"
        self.tree = self.trees / BRANCH
        self.spaces = Worktrees(self.top, self.trees)
        self._count = 0

    def git(self, *arguments: str, at: Path | None = None, stdin: bytes | None = None) -> bytes:
        """Run git, which may fail: an agent tries things."""
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.tree, env=ENV, input=stdin, capture_output=True, timeout=240
        )
        return done.stdout

    def begin(self) -> None:
        """Make a repository with two commits, in which both sides of a merge can be."""
        self.top.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", at=self.top)
        (self.top / ".gitignore").write_text("*.ignored\nignored/\n")
        for number in range(2):
            for name in ("a.txt", "dir/b"):
                (self.top / name).parent.mkdir(exist_ok=True)
                (self.top / name).write_text(f"{name} {number}\n" * 5)
            self.git("add", "-A", at=self.top)
            self.git("commit", "-qm", f"Commit {number}", at=self.top)

    def content(self) -> bytes:
        """Bytes that were never there before."""
        self._count += 1
        return f"{self._count}\r\n\0$Id$ ".encode() + bytes(range(self._count % 256))

    def act(self, what: str, name: str = "a.txt") -> None:
        """Do what an agent may do."""
        file = self.tree / name
        with suppress(OSError):  # a folder where a file is to be, and the like
            _ACTS[what](self, file)

    # --- what is lost ---

    def bytes_there(self) -> dict[str, str]:
        """Every blob that is in the tree, the index, the stash, or a commit that this tree knows, by what it is of."""
        changed = {*self.git("diff-files", "--name-only", "-z").split(b"\0")}
        listed = [line for line in self.git("ls-files", "-v", "-z").split(b"\0") if line.startswith(b"H ")]
        same = {os.fsdecode(line[2:]) for line in listed if line[2:] not in changed}  # up to line ends, as git has it
        files = [path for path in _files(self.tree) if str(path.relative_to(self.tree)) not in same]
        found = {_blob(path): str(path) for path in files}
        for line in self.git("ls-files", "--stage", "-z").split(b"\0"):
            if line and not line.startswith(b"160000") and b" e69de29" not in line:
                found[line.split()[1].decode()] = f"index {line!r}"
        tips = [*self.git("log", "-g", "--format=%H", "refs/stash", at=self.top).decode().split()]
        tips += self.git("log", "-g", "--format=%H", "HEAD").decode().split()
        tips += self.git("log", "-g", "--format=%H", BRANCH).decode().split()
        known = self.git("rev-list", "--objects", "--ignore-missing", *dict.fromkeys(tips), "--") if tips else b""
        return found | {line.split()[0].decode(): f"history {line!r}" for line in known.splitlines()}

    def lost(self, before: dict[str, str]) -> list[str]:
        """What of it no ref reaches; as long as the tree stands, what stands in it, its past and the stash stay too."""
        reached = self.git("rev-list", "--objects", "--glob=refs/*", at=self.top)
        there = {line.split()[0].decode() for line in reached.splitlines()}
        if self.tree.is_dir():
            there |= {*self.bytes_there(), *map(_blob, _files(self.tree))}
        return [of for blob, of in before.items() if blob not in there]


@contextmanager
def place() -> Iterator[Place]:
    """Give a place with a tree that was just prepared."""
    shm = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tree-", dir=shm if shm.is_dir() else None))
    try:
        one = Place(folder)
        one.begin()
        yield one
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files(top: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder, name)
            if path != top / ".git":
                yield path
    for folder, folders, _ in os.walk(top):  # links to folders
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def _blob(path: Path) -> str:
    data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# --- what an agent may do ---


def _write(one: Place, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"* text eol=crlf ident\n" if file.name == ".gitattributes" else one.content())


def _link(one: Place, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(f"nowhere-{one.content()[:3].strip().decode()}")


def _nested(one: Place, file: Path) -> None:
    folder = one.tree / "nested"
    folder.mkdir()
    one.git("init", "-q", at=folder)
    (folder / "x").write_bytes(one.content())
    one.git("add", "-A", at=folder)
    one.git("commit", "-qm", "Nested", at=folder)


def _clash(one: Place, command: str) -> None:
    """Let two branches change the same lines, and bring them together."""
    number = one.content()[:3].strip().decode()
    one.git("commit", "-qam", f"Before {number}")
    head = one.git("rev-parse", "HEAD").decode().strip()
    one.git("checkout", "-q", "-b", f"side-{number}", "HEAD~1")
    (one.tree / "a.txt").write_bytes(one.content())
    (one.tree / "dir/b").write_bytes(one.content())
    one.git("commit", "-qam", f"Side {number}")
    one.git("checkout", "-q", BRANCH)
    one.git("reset", "-q", "--hard", head)
    (one.tree / "a.txt").write_bytes(one.content())
    one.git("commit", "-qam", f"Mine {number}")
    one.git(command, f"side-{number}")


def _runs(*arguments: str) -> Callable[[Place, Path], None]:
    def run(one: Place, file: Path) -> None:
        named = [str(file.relative_to(one.tree)) if word == "{}" else word for word in arguments]
        one.git(*named)

    return run


def _each(*commands: tuple[str, ...]) -> Callable[[Place, Path], None]:
    def run(one: Place, file: Path) -> None:
        for command in commands:
            _runs(*command)(one, file)

    return run


_ACTS: dict[str, Callable[[Place, Path], None]] = {
    "write": _write,
    "exec": lambda one, file: file.chmod(0o755),
    "link": _link,
    "delete": lambda one, file: file.unlink(),
    "delete folder": lambda one, file: shutil.rmtree(file.parent) if file.parent != one.tree else None,
    "stage": _runs("add", "-f", "--", "{}"),
    "stage all": _runs("add", "-A"),
    "intend": _runs("add", "-N", "--", "{}"),
    "unstage": _runs("rm", "-q", "--cached", "--", "{}"),
    "rename": _runs("mv", "-f", "--", "{}", "renamed"),
    "hide": _runs("update-index", "--assume-unchanged", "--", "{}"),
    "skip": _runs("update-index", "--skip-worktree", "--", "{}"),
    "commit": _runs("commit", "-qm", "Commit"),
    "commit all": _each(("add", "-A"), ("commit", "-qm", "Commit all")),
    "amend": _runs("commit", "-q", "--amend", "-m", "Amend"),
    "forget": _runs("reset", "-q", "--hard", "HEAD~1"),
    "detach": _runs("checkout", "-q", "--detach"),
    "step back": _runs("checkout", "-q", "HEAD~1"),
    "branch": _runs("checkout", "-q", "-B", "other"),
    "orphan": _runs("checkout", "-q", "--orphan", "new"),
    "back": _runs("checkout", "-q", BRANCH),
    "delete branch": _runs("update-ref", "-d", f"refs/heads/{BRANCH}"),
    "stash": _runs("stash", "push", "-q"),
    "stash untracked": _runs("stash", "push", "-q", "-u", "-m", "mine: all"),
    "pop": _runs("stash", "pop", "-q"),
    "merge": lambda one, file: _clash(one, "merge"),
    "rebase": lambda one, file: _clash(one, "rebase"),
    "cherry-pick": lambda one, file: _clash(one, "cherry-pick"),
    "revert": _runs("revert", "--no-edit", "HEAD~1"),
    "bisect": _each(("bisect", "start"), ("bisect", "bad"), ("bisect", "good", "HEAD~2")),
    "nested": _nested,
    "kill": lambda one, file: (Path(one.git("rev-parse", "--git-dir").decode().strip()) / "index.lock").touch(),
}
ACTS = tuple(name for name in _ACTS if name != "kill")
