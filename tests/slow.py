"""`python -m tests.slow NIGHT`: a night on a machine whose processors are taken and whose agents start late.

Four loops without an end run at the priority of everybody else, and each agent server needs a minute and a half longer
for its first start, and 20 seconds for each later one. The night must end as it does on an idle machine, only later: no
attempt is used up by the machine, no issue is given to a person who was not there, and nothing lives on.

The starts of OpenCode are counted for each server by its folder of data, those of Claude Code, which has no server, by
the home that it sees: a sandbox has one of its own.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ashep.adapters.system import programs
from ashep.extras.demo.state_dir import journal
from chaos import mishaps
from tests.places import living_in, sweep
from tests.test_demo import as_shown, mixed_as_shown, stories_as_shown

LOOPS = 4
"""Processes that use all that they get of a processor."""

FIRST, LATER = 90, 20
"""Seconds that the first start of an agent takes longer, and each later one."""

BLAMED = {"failed", "timed_out", "stalled", "lost"}
"""How a run ends that uses up an attempt."""

_LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"

_LATE = """#!/bin/sh
# {program}, which starts late
case " $* " in
  *{when}*)
    mkdir -p "${where}"
    if mkdir "${where}/late" 2> /dev/null; then late={first}; else late={later}; fi
    echo "$late" >> "${where}/late/starts"
    sleep "$late";;
esac
exec {program} "$@"
"""

_STARTS = {"opencode": (" serve ", "XDG_DATA_HOME"), "claude": (" --strict-mcp-config ", "HOME")}
"""A word with which an agent is started, and the variable that names the folder in which its starts are counted."""


@contextmanager
def busy(loops: int = LOOPS) -> Iterator[list[int]]:
    """Take the processors, and return who does; a loop also ends with its parent."""
    started = [subprocess.Popen([sys.executable, "-c", _LOOP, str(os.getpid())]) for _ in range(loops)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def late(folder: Path) -> str:
    """Make programs that start late, and return a PATH on which they are found first."""
    folder.mkdir(parents=True)
    real = {name: path.resolve() for name in _STARTS if (path := programs.find(name)) is not None}
    for name, program in real.items():
        when, where = _STARTS[name]
        words = {"program": shlex.quote(str(program)), "when": shlex.quote(when), "where": where}
        (folder / name).write_text(_LATE.format(**words, first=FIRST, later=LATER))
        (folder / name).chmod(0o755)
    # what is on PATH is also in the sandboxes
    return os.pathsep.join((str(folder), *(str(program.parent) for program in real.values()), os.environ["PATH"]))


def starts(folder: Path) -> Counter[int]:
    """How often programs started late, by the seconds."""
    return Counter(int(line) for file in folder.rglob("late/starts") for line in file.read_text().split())


@dataclass(slots=True)
class Outcome:
    """What became of a night."""

    wrong: list[str]
    figures: str


Fates = Mapping[str, Collection[str]]
"""How runs of issues may end, and `parked` or `taken` where that may become of the issue, by issue."""


def spent(records: Iterable[Mapping[str, Any]], fates: Fates) -> list[str]:
    """Attempts that only the machine can have used up."""
    return [
        f"{record['run']} {record['state']}: {record['why']} {record['error'] or ''}"
        for record in records
        if record["type"] == "RunEnded"
        and record["state"] in BLAMED
        and record["state"] not in fates.get(str(record["issue"]), ())
    ]


def given_away(records: Iterable[Mapping[str, Any]], fates: Fates) -> list[str]:
    """Issues that were given to a person who was not there."""
    fate = {"SessionTaken": "taken", "IssueParked": "parked"}
    return [
        f"{record['issue']} {record['type']}: {record['why']}"
        for record in records
        if record["type"] in fate and fate[record["type"]] not in fates.get(str(record["issue"]), ())
    ]


def judge(records: Iterable[Mapping[str, Any]], late_starts: Mapping[int, int], fates: Fates | None = None) -> Outcome:
    """What the journal says of a night, and what the night cost in figures."""
    records = list(records)
    attempts, persons = spent(records, fates or {}), given_away(records, fates or {})
    ended = [record for record in records if record["type"] == "RunEnded"]
    types = Counter(record["type"] for record in records)
    states = Counter(str(record["state"]) for record in ended)
    figures = (
        f"{len(attempts)} attempts used up by the machine",
        f"{len(persons)} issues given to a person who was not there",
        "starts: " + ", ".join(f"{count} {seconds} s late" for seconds, count in sorted(late_starts.items())),
        "runs: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
        f"{sum(bool(record.get('doubt')) for record in ended)} stopped out of doubt",
        f"{types['EffectFailed']} effects failed",
        f"bd was away {types['TrackerLost']} times",
    )
    wrong = attempts + persons
    if not late_starts.get(FIRST):
        wrong.append("no agent started late: the night was not slow")
    return Outcome(wrong, "; ".join(figures))


def demonstration(*words: str, shown: Callable[[str], None]) -> Callable[[Path], Outcome]:
    """Show a demonstration."""

    def night(folder: Path) -> Outcome:
        place = folder / "demo"
        environ = os.environ | {"PATH": late(folder / "bin"), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        argv = (sys.executable, "-m", "ashep", "demo", *words, "--in", str(place))
        lines = list[str]()
        with subprocess.Popen(
            argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    print(f"    {line}", end="", flush=True)
                    lines.append(line)
            except BaseException:
                process.terminate()
                raise
        outcome = judge(journal(place / "calc"), starts(folder))
        if process.returncode:
            outcome.wrong.append(f"exit code {process.returncode}")
        try:
            shown("".join(lines))
        except (AssertionError, ValueError) as error:
            outcome.wrong.append(f"it does not end as on an idle machine: {error}")
        return outcome

    return night


FATES: Fates = {
    "never ends": ("timed_out", "parked"),
    "answers 1 MiB of fences": ("failed", "parked"),
    "leaves a file named git~1": ("parked",),
    "removes its own tree": ("parked",),
    "makes a git of its own in its tree": ("parked",),
    "has a person in its session": ("taken",),
}
"""How runs end, and what becomes of issues, of which that is the mishap."""


def fourteen(folder: Path) -> Outcome:
    """Live through the night of `chaos.mishaps`."""
    late_starts = Counter[int]()
    slow = mishaps.Slow(late(folder / "bin"), lambda place: late_starts.update(starts(place)))
    night = mishaps.night(mishaps.MISHAPS, slow)
    for line in mishaps.ends(night):
        print(f"    {line}", flush=True)
    fates = {issue: FATES.get(title, ()) for issue, title in night.issues.items()}
    outcome = judge(night.records, late_starts, fates)
    outcome.wrong += night.wrong
    return outcome


PROOF = "proof\n"
"""What is the same on an idle machine begins there: who comes first before it is the machine's."""

NIGHTS: Mapping[str, Callable[[Path], Outcome]] = {
    "mishaps": fourteen,
    "demo": demonstration(shown=partial(as_shown, since=PROOF)),
    "stories": demonstration("--stories", shown=partial(stories_as_shown, since=PROOF)),
    "mixed": demonstration("--agents", "mixed", shown=mixed_as_shown),
}


def main() -> int:
    """Live through a night; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("night", choices=NIGHTS)
    parser.add_argument("--idle", action="store_true", help="with the late starts, without the loops")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was begun is ended with it
    folder, began = Path(tempfile.mkdtemp(prefix="ashep-slow-")), time.monotonic()
    tempfile.tempdir = str(folder)
    try:
        with busy(0 if chosen.idle else LOOPS):
            outcome = NIGHTS[chosen.night](folder)
        left = [f"process {pid} lives on: {_words(pid)}" for pid in living_in(folder)]
    finally:
        sweep(folder)
        shutil.rmtree(folder, ignore_errors=True)
    wrong = outcome.wrong + left
    for words in wrong:
        print(f"WRONG {words}")
    seconds = time.monotonic() - began
    print(f"{chosen.night}: {len(wrong)} things wrong, {seconds:.0f} s; {outcome.figures}; {len(left)} processes left")
    return int(bool(wrong))


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "it has ended"


if __name__ == "__main__":
    sys.exit(main())
