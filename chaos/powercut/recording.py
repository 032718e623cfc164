"""Records what a program and its children did below a folder, by strace."""

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.powercut.disk import Entry, Flush, Recording, Told, Write, held, write

CALLS = (
    "open,openat,read,write,pwrite64,writev,lseek,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,"
    "unlinkat,rmdir,mkdir,mkdirat,ftruncate,truncate,fsync,fdatasync,sync,syncfs,chdir,fchdir,fallocate,"
    "copy_file_range,sendfile"
)
LONGEST = 300  # seconds
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|\?|0x[0-9a-f]+)(?:<(.*)>)?.*")
_BEGUN = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>")
_ENDED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_PLACE = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>")


def record(argv: Sequence[str], top: Path, told: Path, env: dict[str, str] | None = None) -> Recording:
    """Run a program and give what it, and whatever it began, did below `top`. What is written to `told` is words."""
    reader = _Reader(top, told)
    log = told.with_suffix(".strace")
    words = ["strace", "-f", "-y", "-xx", "-s", "100000000", "--seccomp-bpf", "-e", f"trace={CALLS}"]
    words += [
        "-e",
        "raw=read",
        "-o",
        str(log),
    ]  # how much was read tells where the next write goes; what was is of no use
    done = subprocess.run([*words, *argv], capture_output=True, text=True, timeout=LONGEST, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    with log.open() as lines:
        reader.read(lines)
    return reader.recording


class _Reader:
    """Reads what strace printed, with the live folder beside it: calls name paths, and a disk knows nodes."""

    def __init__(self, top: Path, told: Path) -> None:
        self.recording = Recording()
        self._top, self._told = os.fsencode(top), os.fsencode(told)
        self._folders = self.recording.folders
        self._next = 0
        self._at = dict[tuple[int, str], int]()
        """Where an open file is, by its node and descriptor."""
        self._cwd = dict[str, bytes]()
        self._files = dict[tuple[str, str], int]()
        """What a process opened, by its number and the descriptor."""
        root = self._new(folder=True)
        assert root == 0
        for path, data in held(top).items():
            folder, name = self._parent(os.fsencode(top / path))
            node = self._new(folder=data is None)
            self._folders[folder][name] = node
            if data is not None:
                self.recording.files[node] = data
        self._live = {node: dict(entries) for node, entries in self._folders.items()}
        self._content = defaultdict(bytearray, {node: bytearray(data) for node, data in self.recording.files.items()})

    def _new(self, *, folder: bool) -> int:
        """Number a node: folders are even, files odd."""
        self._next += 1
        node = 2 * self._next - (1 if not folder else 2)
        if folder:
            self._folders.setdefault(node, {})
            if hasattr(self, "_live"):
                self._live[node] = {}
        return node

    # --- paths ---

    def _parts(self, path: bytes) -> list[str] | None:
        """Give a path's parts below the top; None: it is not there."""
        path = os.path.normpath(path)
        if path != self._top and not path.startswith(self._top + b"/"):
            return None
        return [os.fsdecode(part) for part in path[len(self._top) :].split(b"/") if part]

    def _node(self, path: bytes) -> int | None:
        parts, node = self._parts(path), 0
        if parts is None:
            return None
        live = self._live if hasattr(self, "_live") else self._folders
        for part in parts:
            found = live.get(node, {}).get(part)
            if found is None:
                return None
            node = found
        return node

    def _parent(self, path: bytes) -> tuple[int, str]:
        folder = self._node(os.path.dirname(os.path.normpath(path)))
        assert folder is not None, path
        return folder, os.fsdecode(os.path.basename(os.path.normpath(path)))

    # --- lines ---

    def read(self, lines: Iterator[str] | Sequence[str]) -> None:
        begun = dict[str, str]()
        for line in lines:
            if found := _BEGUN.fullmatch(line.rstrip("\n")):
                begun[found[1]] = found[2]
                continue
            if found := _ENDED.fullmatch(line.rstrip("\n")):
                line = f"{found[1]} {begun.pop(found[1], '')}{found[2]}"
            if found := _LINE.fullmatch(line.rstrip("\n")):
                pid, call, words, answer, _ = found.groups()
                self._call(pid, call, words, -1 if answer == "?" else int(answer, 0))

    def _call(self, pid: str, call: str, words: str, answer: int) -> None:
        places = [_bytes(one) for one in _PLACE.findall(_TEXT.sub('""', words))]
        texts = [_bytes(one) for one in _TEXT.findall(words)]
        at_cwd = re.findall(r"AT_FDCWD<((?:\\x[0-9a-f]{2})*)>", words)
        if at_cwd:
            self._cwd[pid] = _bytes(at_cwd[0])
        if answer < 0:
            return
        if call in (
            "read",
            "write",
            "pwrite64",
            "writev",
            "lseek",
            "ftruncate",
            "fsync",
            "fdatasync",
            "syncfs",
            "fallocate",
        ):
            self._on_file(call, places[0] if places else b"", texts, words, answer)
        elif call in ("copy_file_range", "sendfile"):
            self._copied(call, places, words, answer)
        elif call == "sync":
            self.recording.steps.append(Flush(None))
        elif call in ("chdir", "fchdir"):
            self._cwd[pid] = os.path.join(self._cwd.get(pid, b"/"), texts[0]) if texts else places[0]
        else:
            bases = places if call.endswith(("at", "at2")) else [self._cwd.get(pid, b"/")] * 2
            if call in ("symlink", "symlinkat"):
                self._named(pid, call, [os.path.join(bases[0], texts[1])], words, answer, texts[0])
            else:
                paths = [os.path.join(base, text) for base, text in zip(bases, texts, strict=False)]
                self._named(pid, call, paths, words, answer)

    def _on_file(self, call: str, place: bytes, texts: list[bytes], words: str, answer: int) -> None:
        if call in ("write", "writev") and place == self._told:
            self.recording.steps.extend(Told(word) for word in b"".join(texts).decode().splitlines())
            return
        if call == "syncfs":
            self.recording.steps.append(Flush(None))
            return
        node = self._node(place)
        if node is None:
            return
        opened = node, words.partition("<")[0]
        if call in ("fsync", "fdatasync"):
            self.recording.steps.append(Flush(node, "/".join(self._parts(place) or ())))
        elif call == "lseek":
            self._at[opened] = answer
        elif call in ("ftruncate", "fallocate"):
            assert call == "ftruncate", f"{call} is not modelled"
            self._size(node, int(words.rsplit(",", 1)[1]))
        else:
            data = b"".join(texts)[:answer]
            at = int(words.rsplit(",", 1)[1]) if call == "pwrite64" else self._at.get(opened, 0)
            self._add(Write(node, at, data))
            if call != "pwrite64":
                self._at[opened] = at + len(data)

    def _copied(self, call: str, places: list[bytes], words: str, answer: int) -> None:
        """Bytes that the kernel carried from one file to another."""
        assert call == "sendfile" or not any(map(self._parts, places)), f"{call} is not modelled"
        to, source = self._node(places[0]), self._node(places[1])
        offset = re.search(r"\[(\d+)\]", words)
        if to is not None and answer:
            assert source is not None, words
            assert offset is not None, words
            opened = to, words.partition("<")[0]
            at, start = self._at.get(opened, 0), int(offset[1])
            self._add(Write(to, at, bytes(self._content[source][start : start + answer])))
            self._at[opened] = at + answer

    def _add(self, step: Write) -> None:
        self.recording.steps.append(step)
        write(self._content[step.node], step, len(step.data))

    def _size(self, node: int, size: int) -> None:
        if len(self._content[node]) != size:
            self._add(Write(node, 0, b"", size))

    def _named(self, pid: str, call: str, paths: list[bytes], words: str, answer: int, target: bytes = b"") -> None:
        if self._parts(paths[-1]) is None:
            return
        if call in ("open", "openat"):
            self._open(pid, paths[0], words, str(answer))
        elif call.startswith("mkdir"):
            self._enter(paths[0], self._new(folder=True))
        elif call.startswith("symlink"):
            node = self._new(folder=False)
            self._enter(paths[0], node)
            self._add(Write(node, 0, b"link:" + target))
        elif call.startswith(("unlink", "rmdir")):
            self._enter(paths[0], None)
        elif call.startswith("link"):
            self._enter(paths[1], self._node(paths[0]))
        elif call.startswith("rename"):
            node, former = self._node(paths[0]), self._parent(paths[0])
            del self._live[former[0]][former[1]]
            self._enter(paths[1], node, former)
        else:
            node = self._node(paths[0])
            assert node is not None, paths
            assert call == "truncate", call
            self._size(node, int(words.rsplit(",", 1)[1]))

    def _open(self, pid: str, path: bytes, words: str, opened: str) -> None:
        node = self._node(path)
        if node is None:
            if "O_CREAT" not in words:
                return
            node = self._new(folder=False)
            self._enter(path, node)
        elif "O_TRUNC" in words:
            self._size(node, 0)
        self._files[pid, opened] = node
        self._at[node, opened] = len(self._content[node]) if "O_APPEND" in words else 0

    def _enter(self, path: bytes, node: int | None, former: tuple[int, str] | None = None) -> None:
        folder, name = self._parent(path)
        if node is None:
            self._live[folder].pop(name, None)
        else:
            self._live[folder][name] = node
        self.recording.steps.append(Entry(folder, name, node, former))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
