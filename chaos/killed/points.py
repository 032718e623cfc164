"""The boundaries between a process of ashep and the world: counted, named, and deadly where that was asked for.

A boundary is named by what happens there and by how often that has happened in this process, `tracker.claim done#2`: so
the same boundary is met again in the next life, although polls fall differently each time. Counted are

- every call of an adapter: before it begins, and when it was carried out and nobody has heard of it yet;
- every program: at the moment in which it runs and its starter is gone;
- every write to a file of the state folder or of the agent server's record: before it, in the middle of it (half of it
  is there), after it, and after its fdatasync; every renaming, cutting and deleting of one: before and after.

A boundary that shows the world nothing that the one before it did not show (the call of an adapter, and the program
that it starts first; a finished blob, and its renaming) counts once.

Nothing of ashep is changed for that: adapters are handed over in a proxy, the system's calls are watched from outside.
"""

import inspect
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

_system_write = os.write


class Points:
    """The boundaries that one process has crossed; at `kill_at` it dies by SIGKILL, with nothing cleaned up."""

    def __init__(self, log: Path, kill_at: str) -> None:
        """`log` gets one line a boundary, written before anything else happens there.

        `kill_at` is a boundary's name, or `+12` for the twelfth that this process crosses, whatever it is, or both:
        `landing.advance asked#1+9` is the ninth behind that one.
        """
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._kill_at = kill_at
        self._after, _, steps = kill_at.rpartition("+")
        self._left = int(steps) if steps.isdecimal() else 0
        self._counts = not self._after
        self._crossed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reach(self, name: str, last_act: Callable[[], object] = lambda: None) -> None:
        """Cross a boundary; `last_act` is what a process that dies here still does."""
        with self._lock:
            self._crossed[name] += 1
            point = f"{name}#{self._crossed[name]}"
            self._left -= self._counts
            deadly = point == self._kill_at or (self._counts and self._left == 0)
            self._counts |= point == self._after
            _system_write(self._log, f"{point}{' killed' if deadly else ''}\n".encode())
            if deadly:
                last_act()
                os.kill(os.getpid(), signal.SIGKILL)


class Through:
    """An adapter with a boundary before and after each of its calls."""

    def __init__(self, port: str, target: object, points: Points) -> None:
        self._port, self._target, self._points = port, target, points

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*arguments: object, **named: object) -> object:
            self._points.reach(f"{self._port}.{name} asked")
            answer = await cast("Awaitable[object]", method(*arguments, **named))
            self._points.reach(f"{self._port}.{name} done")
            return answer

        return call


def watch_programs(points: Points) -> None:
    """Count the starts of programs."""

    class Counted(subprocess.Popen[Any]):
        def __init__(self, args: Any, *more: Any, **options: Any) -> None:
            name = _program([str(word) for word in args])
            if name == "opencode serve":  # nothing else starts it at once when it is asked
                points.reach(f"start {name}")
            super().__init__(args, *more, **options)
            points.reach(f"started {name}")

    subprocess.Popen = Counted


def _program(argv: list[str]) -> str:
    """`bd update`, `git status`, `opencode serve`: the program and its subcommand."""
    words = [word for word in argv[1:] if word.isalpha()]
    return " ".join((Path(argv[0]).name, *words[:1]))


_FOLDER_OF_A_SERVER = re.compile(r"[0-9a-f]{16}")
_OF_CLAUDE = re.compile(r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|msg_[0-9a-z]+)(?P<draft>\.tmp)?")


def watch_files(points: Points, *folders: Path) -> None:
    """Count what is done to files below these folders."""
    roots = tuple(f"{os.path.realpath(folder)}/" for folder in folders)

    def area(path: str) -> str | None:
        if not path.startswith(roots):
            return None
        parts = Path(path).parts
        # what a place keeps beside it is named by its issue, and an issue of an agent's has another id in each life
        named = ("journal", "blobs", "snapshots", ".notes", ".making")
        name = next((part for part in named if part in parts), Path(path).name)
        if named := _OF_CLAUDE.fullmatch(name):  # it is named by its run, and that by the life's own journal
            return f"claude{named['draft'] or ''}"
        return "server" if _FOLDER_OF_A_SERVER.fullmatch(name) else name  # its name is a hash of the project's place

    def of(place: int | str | bytes | os.PathLike[str]) -> str | None:
        if isinstance(place, int):
            try:
                return area(os.readlink(f"/proc/self/fd/{place}"))
            except OSError:
                return None
        folder, name = os.path.split(os.fsdecode(place))
        return area(os.path.join(os.path.realpath(folder or "."), name))

    def write(file: int, data: Any) -> int:
        name = of(file)
        if name is None:
            return _system_write(file, data)
        points.reach(f"{name} write")
        points.reach(f"{name} torn", lambda: _system_write(file, bytes(data)[: len(data) // 2]))
        count = _system_write(file, data)
        points.reach(f"{name} written")
        return count

    def counted(call: Callable[..., Any], word: str) -> Callable[..., Any]:
        def called(place: Any, *more: Any, **options: Any) -> Any:
            name = of(place)
            if name is None:
                return call(place, *more, **options)
            if word not in ("synced", "renamed"):  # before it is after the write
                points.reach(f"{name} {word}")
            answer = call(place, *more, **options)
            if (name, word) != ("blobs", "synced"):
                points.reach(f"{name} {word} done")
            return answer

        return called

    os.write = write
    for call, word in (
        ("fdatasync", "synced"),
        ("fsync", "synced"),
        ("ftruncate", "cut"),
        ("rename", "renamed"),
        ("replace", "renamed"),
        ("unlink", "deleted"),
    ):
        setattr(os, call, counted(getattr(os, call), word))
