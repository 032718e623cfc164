"""A disk that keeps what was synced, and of the rest whatever it likes.

The files are real ones in memory (/dev/shm). While a story runs, the calls of `os` that make bytes and names durable
are watched; at a power cut every file keeps its synced bytes and a torn rest: any prefix, also between lines, and a
sector in the middle of it may be lost. Names in a folder that was not synced since may vanish. A killed process loses
nothing: its pages are the system's; but what it had not synced is still not synced when the next one reads it.
"""

import errno
import os
import random
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

from chaos.torture.loop import LIFE

SECTOR = 512
Fault = Callable[[str], None]


class Disk:
    """One folder and what of it would survive."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._sizes: dict[int, int] = {}
        """Synced bytes by inode."""
        self._names: dict[str, set[str]] = {str(root): set()}
        """Synced names by folder."""
        self.lost = 0
        """Bytes that power cuts took."""

    def synced(self, file: int) -> None:
        """Note that a file or folder is durable now."""
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            path = os.readlink(f"/proc/self/fd/{file}")
            self._names[path] = set(os.listdir(path))
        else:
            self._sizes[status.st_ino] = status.st_size

    def delete(self, folder: Path) -> None:
        """Somebody deletes a folder, durably."""
        for place, _, files in os.walk(folder):
            self._names.pop(place, None)
            for file in files:
                self._sizes.pop(os.stat(os.path.join(place, file)).st_ino, None)
        shutil.rmtree(folder, ignore_errors=True)

    def cut(self, chance: random.Random) -> str:
        """Lose what a power cut loses, and tell."""
        told: list[str] = []
        self._cut_folder(str(self.root), chance, told)
        self._sizes = {os.stat(path).st_ino: os.stat(path).st_size for path in self._files()}
        self._names = {folder: {*folders, *files} for folder, folders, files in os.walk(self.root)}
        return "; ".join(told) or "nothing was lost"

    def _files(self) -> Iterator[str]:
        for folder, _, files in os.walk(self.root):
            for file in sorted(files):
                yield os.path.join(folder, file)

    def _cut_folder(self, folder: str, chance: random.Random, told: list[str]) -> None:
        kept = self._names.get(folder, set())
        for entry in sorted(os.listdir(folder)):
            path = os.path.join(folder, entry)
            name = os.path.relpath(path, self.root)
            is_folder = os.path.isdir(path)
            if entry not in kept and chance.random() < 0.6:
                shutil.rmtree(path) if is_folder else os.unlink(path)
                told.append(f"{name} vanished")
            elif is_folder:
                self._cut_folder(path, chance, told)
            else:
                self._cut_file(path, name, chance, told)

    def _cut_file(self, path: str, name: str, chance: random.Random, told: list[str]) -> None:
        status = os.stat(path)
        safe, size = min(self._sizes.get(status.st_ino, 0), status.st_size), status.st_size
        if safe == size:
            return
        with open(path, "rb") as file:
            data = bytearray(file.read())
        keep = self._some_end(data, safe, chance)
        if keep > safe and chance.random() < 0.4:  # a sector of what had not been synced did not reach the platter
            first = safe // SECTOR
            sector = chance.randint(first, (keep - 1) // SECTOR)
            begin, end = max(sector * SECTOR, safe), min((sector + 1) * SECTOR, keep)
            data[begin:end] = bytes(end - begin)
            told.append(f"{name} lost its bytes {begin} to {end}")
        with open(path, "wb") as file:
            file.write(data[:keep])
        self.lost += size - keep
        told.append(f"{name} kept {keep} of {size} bytes ({safe} were synced)")

    def _some_end(self, data: bytearray, safe: int, chance: random.Random) -> int:
        ends = [safe + found.end() for found in re.finditer(rb"\n", data[safe:])]
        kind = chance.random()
        if kind < 0.3 or not ends:
            return chance.randint(safe, len(data))
        return safe if kind < 0.5 else len(data) if kind < 0.65 else chance.choice(ends)


_WATCHED = ("fsync", "fdatasync", "write", "rename", "replace", "ftruncate", "unlink")


@contextmanager
def watched() -> Iterator[None]:
    """Watch the calls of `os`, also where a module took one by name; they concern only tasks of a daemon's life."""
    originals = {name: getattr(os, name) for name in _WATCHED}
    watching = {originals[name]: _watch(name, originals[name]) for name in _WATCHED}
    places: list[tuple[Any, str, Any]] = []
    modules = [module for name, module in sys.modules.items() if name == "os" or name.startswith("ashep.journal")]
    for module in modules:
        for name, value in list(vars(module).items()):
            if isinstance(value, BuiltinFunctionType) and value in watching:
                places.append((module, name, value))
    for module, name, value in places:
        setattr(module, name, watching[value])
    try:
        yield
    finally:
        for module, name, value in places:
            setattr(module, name, value)


def _watch(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        life = LIFE.get()
        if life is None:
            return original(*arguments, **named)
        life.reach(f"{name} asked")
        life.disk_fault(name)
        if name == "write" and life.tear():
            file, data = arguments
            original(file, bytes(data)[: len(data) // 2])
            life.die("in the middle of a write")
        answer = original(*arguments, **named)
        if name == "write":
            life.world.laws.wrote(arguments[1])
        if name in ("fsync", "fdatasync"):
            life.world.disk.synced(arguments[0])
        life.reach(f"{name} done")
        return answer

    return call


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def broken() -> OSError:
    return OSError(errno.EIO, "Input/output error")
