"""`make deep`: everything in full that the ordinary test command does a part of. `python -m chaos.deep [PART …]`.

Each part is cut into pieces that end within an hour on two processors. A piece that was good at this commit is not done
again: an interrupted night goes on where it was. What came of each part is written into docs/deep.md.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "deep.md"
LONGEST = 2 * 3600.0
"""Seconds after which a piece hangs; on a machine with other work it may well take more than its hour."""

TOOK = re.compile(r"[,;] \d+ s (on \d+ processes|of one core)$")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Part:
    """What is done in full, in pieces; each is a command of Python's."""

    what: str
    pieces: tuple[tuple[str, ...], ...]
    tells: str = r".+"
    """The lines of its output that say what came of it; the last one counts."""


@dataclass(frozen=True)
class Done:
    """What came of a piece."""

    good: bool
    figures: str
    seconds: float
    day: str


def _cut(pieces: int, *words: str) -> tuple[tuple[str, ...], ...]:
    """Each so-manieth of what there is, from the first, the second, … on."""
    return tuple((*words, "--each", str(pieces), "--first", str(first)) for first in range(pieces))


_LIVES = (
    ("", "", ()),
    ("-sandbox", " in places, with agents in sandboxes", ("--sandbox",)),
    ("-claude", " whose makers are Claude Code's", ("--claude",)),
    ("-claude-both", " whose makers are Claude Code's, and their process with it", ("--claude", "--both")),
)


def _killed() -> Iterator[tuple[str, Part]]:
    for suffix, where, flags in _LIVES:
        tells = r"\d+/\d+ came .*"
        for often, pieces in (("once", 3), ("twice", 5)):
            words = ("chaos.killed", "--only", often, *flags)
            yield (
                f"killed-{often}{suffix}",
                Part(
                    f"the real process killed {often} at every boundary of a life{where}", _cut(pieces, *words), tells
                ),
            )


BENCHMARKS = (
    "commands", "policies", "scale", "issues", "idle", "labels", "landing", "verifier", "trees", "parallel",
    "sandboxes", "kinds", "page", "tabs", "playback", "foreman", "first_hour",
)  # fmt: skip

PARTS: dict[str, Part] = {
    "mutants": Part(
        "deliberate mistakes in the core against all playbooks and lives",
        (("tests.core.killers",), ("tests.core.killers", "--afresh")),
    ),
    "planted": Part("planted bugs looked for from the first seed on", (("chaos.torture.finding",),)),
    "soundness": Part("the checker of policies against brute force", (("tests.policies.sound", "--seeds", "5000"),)),
    "repeated": Part(
        "the tests that repeat less in the ordinary run", (("tests.full", "-m", "not real", "tests", "chaos"),),
        r"\d+ passed.*",
    ),
    "repeated-real": Part(
        "tests on the real tools that repeat what others see",
        (("tests.full", "-m", "full", "tests", "chaos"),), r"\d+ passed.*",
    ),
    "hour": Part(
        "one kind of agents away for an hour, and the others work on",
        (("tests.full", "-n", "0", "-s", "tests/e2e/hour.py"),),
        r"\d+ issues closed.*",
    ),
    "wheel": Part(
        "what is installed from the wheels, where there is no Node, no Go and no checkout", (("tools.wheel_check",),),
        r"\d+ s:? .*",
    ),
    "policies": Part("lives under policies that pass the check", (("tests.policies", "--lives", "10000"),)),
    "torture": Part(
        "simulated nights on lying tools and failing disks",
        tuple(("chaos.torture", "--seeds", "2500", "--first", str(first)) for first in range(0, 20_000, 2500)),
    ),
    "night": Part(
        "nights of 200 issues", tuple(("chaos.night", "--seed", str(seed)) for seed in range(1, 5)), r"\d+ nights.*",
    ),
    "month": Part("a month of 500 issues, and what another policy had done", (("chaos.month",),), r"\d+ issues.*"),
    "crowd": Part(
        "200 issues that contradict each other in twelve files", (("chaos.crowd", "--issues", "200"),),
        r"\d+ issues: .*",
    ),
    "soak-virtual": Part(
        "a day of virtual time: does anything grow?", (("chaos.soak", "--virtual", "24h"),), r"\w+ virtual, .*",
    ),
    "soak-real": Part(
        "half an hour on the real tools: does anything grow?", (("chaos.soak", "--real", "30m"),), r"\w+ real, .*",
    ),
    **dict(_killed()),
    "foreman-killed": Part(
        "the foreman, Claude Code, or both killed at 50 moments of a sitting", (("tests.foreman.killed",),),
        r"\d+ moments; .*",
    ),
    "slow": Part(
        "nights with both cores taken and agents that start late; a piece each: mishaps, demo, stories, mixed",
        tuple(("tests.slow", night) for night in ("mishaps", "demo", "stories", "mixed")),
        r"\w+: \d+ things wrong.*",
    ),
    "race": Part(
        "four daemons on one database, and one that sleeps until its lease is gone",
        (
            ("chaos.killed", "--only", "race"),
            ("chaos.killed", "--only", "race", "--sandbox"),
            ("chaos.killed", "--only", "lease"),
        ),
    ),
    "bench": Part(
        "figures and their bounds (benchmarks.md)", tuple(("bench", name, "--strict") for name in BENCHMARKS),
        r"\d+ over the bound.*",
    ),
}  # fmt: skip


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def commit() -> str:
    """What is tried: a commit, and a sum of what was changed since."""
    here = ("--", ".", f":!{PAGE.relative_to(ROOT)}")
    changes = _git("diff", "HEAD", *here) + _git("status", "--porcelain", *here)
    head = _git("rev-parse", "--short=10", "HEAD").strip()
    return f"{head}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else head


def cache() -> Path:
    """Where it is kept what was done at which commit, and what it said."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if os.path.isabs(configured) else Path.home() / ".cache") / "ashep" / "deep"


class Book:
    """What was done at a commit; written after each piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "done.json"
        told = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.done = {piece: Done(**one) for piece, one in told.items()}

    def note(self, piece: str, one: Done) -> None:
        """Keep it, in one go: whoever is ended in the midst of this has the book of before."""
        self.done[piece] = one
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as file:
            json.dump({piece: asdict(one) for piece, one in self.done.items()}, file, indent=1)
        Path(file.name).replace(self._file)


def names(part: str, of: Part) -> list[str]:
    """The pieces' names."""
    count = len(of.pieces)
    return [part] if count == 1 else [f"{part}-{number}" for number in range(1, count + 1)]


def figures(lines: Sequence[str]) -> str:
    """What the pieces say, in one line: where they say the same but for their numbers, these are added up."""
    lines = [TOOK.sub("", line) for line in lines if line]
    if len({NUMBER.sub("#", line) for line in lines}) != 1:
        return "; ".join(dict.fromkeys(lines))
    sums = iter([sum(map(float, column)) for column in zip(*map(NUMBER.findall, lines), strict=True)])
    return NUMBER.sub(lambda _: f"{next(sums):.12g}", lines[0]) if len(lines) > 1 else lines[0]


def row(name: str, part: Part, at: str, done: dict[str, Done]) -> str | None:
    """The part's line of the table; none where nothing of it was done."""
    had = [done[piece] for piece in names(name, part) if piece in done]
    if not had:
        return None
    result = "good" if all(one.good for one in had) else "BAD"
    if len(had) < len(part.pieces):
        result += f", {len(had)} of {len(part.pieces)} pieces"
    minutes = sum(one.seconds for one in had) / 60
    told = figures([one.figures for one in had]).replace("|", "/")
    return (
        f"| `{name}` | {part.what} | `{at}` | {told} | {minutes:.1f} min | {max(one.day for one in had)} | {result} |"
    )


HEAD = """\
# What was tried in full

`make test` lives through a part of what can be lived through; `make deep` does all of it, in parts that end within an
hour each on two processors, or are cut into pieces that do (`make deep ARGS="mutants torture"`: these parts;
`ARGS=--list`: all of them, and what is done at this commit). It writes the last result of each part here: the commit
that it was done at (`+…`: with changes that were in no commit yet), what it counted, how long it took, and when.

| Part | What | Commit | Figures | Took | Day | Result |
|---|---|---|---|---|---|---|
"""


def page(rows: dict[str, str]) -> str:
    """The page, with a line for each part."""
    lines = [rows.get(name) or f"| `{name}` | {part.what} | - | - | - | - | not run |" for name, part in PARTS.items()]
    return HEAD + "\n".join(lines) + "\n"


def rows_of(text: str) -> dict[str, str]:
    """The lines of a page, by part, of what was run."""
    found = re.findall(r"^\| `([a-z-]+)` \|.*\|$", text, flags=re.M)
    lines = re.findall(r"^\| `[a-z-]+` \|.*\|$", text, flags=re.M)
    return {name: line for name, line in zip(found, lines, strict=True) if not line.endswith("| not run |")}


def told(output: Iterable[str], part: Part) -> str:
    """The last line that says what came of it."""
    wanted = re.compile(part.tells)
    return next((line for line in reversed([*output]) if wanted.fullmatch(line)), "said nothing")


def do(part: Part, words: Sequence[str], log: Path, say: Callable[[str], None]) -> Done:
    """Do a piece, and keep what it says."""
    say(f"python -m {' '.join(words)}")
    begun, lines = time.monotonic(), list[str]()
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-u", "-m", *words], cwd=ROOT, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        hangs = threading.Timer(LONGEST, os.killpg, (process.pid, signal.SIGTERM))
        hangs.start()
        try:
            for line in process.stdout:
                file.write(line)
                lines.append(line.strip())
                say(f"    {line.rstrip()}")
            process.wait()
        except BaseException:  # whoever has enough has enough of all of it
            os.killpg(process.pid, signal.SIGTERM)
            raise
        finally:
            hangs.cancel()
    seconds, day = time.monotonic() - begun, datetime.now(UTC).date().isoformat()
    figure = told(lines, part) if seconds < LONGEST else f"ended after {LONGEST / 3600:g} h"
    return Done(process.returncode == 0, figure, seconds, day)


def main() -> int:
    """Do what is left of the parts; 1 where anything is bad."""
    parser = argparse.ArgumentParser(prog="python -m chaos.deep", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}, or of their pieces")
    parser.add_argument("--again", action="store_true", help="also what was good at this commit")
    parser.add_argument("--list", action="store_true", help="say what there is, and what is done; do nothing")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was begun is ended with it
    pieces = {
        piece: (name, words)
        for name, one in PARTS.items()
        for piece, words in zip(names(name, one), one.pieces, strict=True)
    }
    if unknown := {*asked.parts} - {*PARTS, *pieces}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    at = commit()
    book = Book(cache() / at)
    for piece, (name, words) in pieces.items():
        if asked.parts and not {piece, name} & {*asked.parts}:
            continue
        before = book.done.get(piece)
        if asked.list:
            state = "to do" if before is None else f"{'good' if before.good else 'BAD'}: {before.figures}"
            print(f"{piece}: python -m {' '.join(words)}: {state}")
            continue
        if before is not None and before.good and not asked.again:
            print(f"{piece}: was good at {at}, {before.day}")
            continue
        print(f"{piece}: ", end="", flush=True)
        done = do(PARTS[name], words, book.folder / f"{piece}.log", lambda line: print(line, flush=True))
        print(f"{piece}: {'good' if done.good else 'BAD'}, after {done.seconds / 60:.1f} min", flush=True)
        book.note(piece, done)
        line = row(name, PARTS[name], at, book.done)
        assert line is not None
        PAGE.write_text(page(rows_of(PAGE.read_text() if PAGE.exists() else "") | {name: line}))
    wanted = [piece for piece, (name, _) in pieces.items() if not asked.parts or {piece, name} & {*asked.parts}]
    bad = [piece for piece in wanted if piece in book.done and not book.done[piece].good]
    if bad:
        print(f"BAD: {', '.join(bad)}; their outputs lie in {book.folder}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
