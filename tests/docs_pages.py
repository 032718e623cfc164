"""What a page shows: files to write, commands to carry out, and what these print. And a shell that follows it.

In blocks of `console` each line behind `$ ` is a command, and what stands below it is all that it prints; with nothing
below it, its output is not shown. In blocks of `sh` each line is a command. `…` in a line stands for anything in it,
and a line of `…` for any lines. A block with `title="name"` is a file of the project; the command of one with
`console title="in another terminal"` goes on.
"""

import difflib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ashep.extras.demo.scripted_model import MODELS_FILE
from tests import places
from tests.forks import shared

LONGEST = 240.0
"""Seconds that a command of a page may take."""

BESIDE = 'title="in another terminal"'


@dataclass(frozen=True, slots=True)
class Command:
    """A line that is typed, and what it is shown to print (None: that is not shown)."""

    at: int
    line: str
    shown: str | None
    beside: bool = False
    """It goes on in a terminal of its own."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the project, by its block's title."""

    at: int
    name: str
    text: str


def steps(page: str) -> Iterator[Command | File]:
    """Give what a page wants done, from top to bottom, with the number of the line where it stands."""
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```\s*$", page, re.M | re.S):
        (language, _, title), text = found[1].strip().partition(" "), found[2]
        at = page.count("\n", 0, found.start()) + 2
        if language == "console":
            yield from _typed(text, at, beside=title == BESIDE)
        elif name := re.fullmatch(r'title="([^" ]+\.[^" ]+)"', title):
            yield File(at, name[1], text)
        elif language == "sh":
            lines = enumerate(text.splitlines(), at)
            yield from (Command(number, line, None) for number, line in lines if line and not line.startswith("#"))


def _typed(text: str, at: int, *, beside: bool) -> Iterator[Command]:
    assert text.startswith("$ "), f"line {at}: a block of console begins with a command: `$ …`"
    for part in re.split(r"^(?=\$ )", text, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(at, line.removeprefix("$ "), shown or None, beside)
        at += part.count("\n")


def differs(shown: str, said: str) -> str:
    """Say how what was printed differs from what is shown; empty: it is that."""
    lines, printed = ([_told(line) for line in text.rstrip().splitlines()] for text in (shown, said))
    pattern = "".join(map(_matching, lines))
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)):
        return ""
    filled = [next((one for one in printed if re.fullmatch(_matching(line), f"{one}\n")), line) for line in lines]
    return "\n".join(difflib.unified_diff(filled, printed, "shown", "printed", lineterm="", n=1))


def _told(line: str) -> str:
    """A line without what only the widths of columns decide."""
    return re.sub(r"(?<=\S) +", " ", line.rstrip())


def _matching(line: str) -> str:
    if line.strip() == "…":
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*?".join(map(re.escape, line.split("…"))) + "\n"


@dataclass(slots=True)
class Terminal:
    """A folder in which a page is followed, as in a shell: one that changes it goes on there."""

    folder: Path
    environ: Mapping[str, str]
    names: dict[str, str] = field(default_factory=dict[str, str])
    """What is called otherwise here than on the page, such as ids and ports."""
    before: Callable[[str], None] = lambda _line: None
    """Called before each command, to wait for what the page takes for granted."""
    goes_on: tuple[str, ...] = ("ashep work",)
    """Commands that are ended by Ctrl-C alone."""
    machine: tuple[str, ...] = ()
    """Lines that a machine prints for what it lacks: the pages show one that has everything."""
    _beside: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def follow(self, page: str, left_out: Mapping[str, str], ends: Mapping[str, int]) -> None:
        """Write each file and carry out each command that is not left out; `ends`: those that do not end with 0."""
        for step in steps(page):
            if isinstance(step, File):
                (self.folder / step.name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / step.name).write_text(step.text)
            elif (line := bare(step.line)) not in left_out:
                self.before(line)
                if step.beside or line in self.goes_on:
                    self.begin(line)
                    continue
                code, said = self.run(self._called(step.line))
                assert code == ends.get(line, 0), f"line {step.at}: {line}: ended with {code}\n{said}"
                said = "".join(line for line in said.splitlines(keepends=True) if line.rstrip() not in self.machine)
                wrong = differs(self._called(step.shown), said) if step.shown is not None else ""
                assert not wrong, f"line {step.at}: {line}\n{wrong}"

    def run(self, line: str) -> tuple[int, str]:
        """Carry out a line; give its exit code and what a terminal shows of it."""
        words = shlex.split(line, comments=True)
        if words[:1] == ["ashep"] and not set(line) & set("|&;<>$`*~(){}\n"):  # no work for a shell
            said = self.folder.parent / f"{self.folder.name}.said"
            started = shared().start("ashep", tuple(words[1:]), self.environ, said, folder=self.folder)
            return started.wait(LONGEST), said.read_text()
        script = f'{line}\ncode=$?\npwd > "$PAGE_PLACE"\nexit $code'
        place = self.folder.parent / f"{self.folder.name}.place"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env={**self.environ, "PAGE_PLACE": str(place)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST,
        )  # fmt: skip
        if place.exists():
            self.folder = Path(place.read_text().rstrip("\n"))
            place.unlink()
        return done.returncode, done.stdout

    def begin(self, line: str) -> subprocess.Popen[str]:
        """Start what goes on in a terminal of its own."""
        started = subprocess.Popen(
            shlex.split(self._called(line)), cwd=self.folder, env=self.environ, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._beside.append(started)
        return started

    def close(self) -> None:
        """End what goes on, as Ctrl-C does."""
        for started in self._beside:
            started.send_signal(signal.SIGINT)
            try:
                started.communicate(timeout=240)
            finally:
                started.kill()

    def _called(self, text: str) -> str:
        for name, here in self.names.items():
            text = text.replace(name, here)
        return text


def bare(line: str) -> str:
    """A command without the comment behind it."""
    return re.sub(r"\s+# .*", "", line).strip()


def environment(home: Path, *programs: Path) -> dict[str, str]:
    """What the programs of a page see: a home of their own, and nothing of who runs the tests."""
    kept = {name: os.environ[name] for name in ("ASHEP_TESTS_RUN",) if name in os.environ}
    for folder in ("tmp", "config"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    git = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _IDENTITY.items()}
    return {
        **kept, **git, **places.QUICK, "HOME": str(home),
        "PATH": os.pathsep.join((*map(str, programs), os.environ["PATH"])),
        "TMPDIR": str(home / "tmp"), "XDG_CONFIG_HOME": str(home / "config"), "XDG_STATE_HOME": str(home / "state"),
        "XDG_DATA_HOME": str(home / "data"), "LANG": "C.UTF-8", "TZ": "UTC", "BD_DISABLE_METRICS": "1",
        "BD_NON_INTERACTIVE": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_MODELS_PATH": str(home / "config" / "opencode" / MODELS_FILE), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


_IDENTITY = {"NAME": "Ann", "EMAIL": "ann@example.org"}
