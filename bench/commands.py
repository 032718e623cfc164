"""How quick commands are that people wait for: CPU against that of the smallest Python program, in pairs."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import copies, history
from bench.figures import Figure, short, times
from bench.place import ASHEP, ROOT

PASS = (sys.executable, "-c", "pass")


def measure(*, runs: int, pairs: int) -> list[Figure]:
    """Time `--help`, and `status --json` with so many runs."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ASHEP"))}
        env["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        project = Path(folder, "project")
        state = project / ".agent-shepherd" / "state"
        made = _make(state, runs)
        run(PASS, ROOT, env)
        run((str(ASHEP), "--help"), project, env)
        drawing, _ = run((str(ASHEP), "status", "--json"), project, env)
        size = sum(file.stat().st_size for file in (state / "journal").glob("*.jsonl")) / 1e6
        return [
            _against("ashep --help, against python -c pass", ("--help",), project, env, pairs, 8),
            _against(f"ashep status --json with {made} runs, against the same", ("status", "--json"), project, env,
                     pairs, 15),
            Figure("  drawing its database anew, once", drawing, "s", None, f"from a journal of {short(size)} MB"),
        ]  # fmt: skip


def _make(state: Path, runs: int) -> int:
    state.parent.mkdir(parents=True)
    lives = -(-runs // history.RUNS)
    copies.write(state, lives)
    return lives * history.RUNS


def _against(name: str, words: Sequence[str], cwd: Path, env: dict[str, str], pairs: int, bound: float) -> Figure:
    measured = [(run((str(ASHEP), *words), cwd, env), run(PASS, cwd, env)) for _ in range(pairs)]
    figure = times(name, [(mine[0], other[0]) for mine, other in measured], bound, "s of CPU")
    wall = median(mine[1] / other[1] for mine, other in measured)
    return replace(figure, note=f"{figure.note}; by the clock {short(wall)} x")


def run(argv: Sequence[str], cwd: Path, env: dict[str, str]) -> tuple[float, float]:
    """Run a program and give its CPU and wall seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{argv} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begin
