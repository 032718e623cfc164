"""How long `ashep policy check` searches: large policies against one of a single phase, in turns."""

import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.commands import run
from bench.figures import Figure, short
from bench.place import ASHEP

VERDICTS = ("a", "b", "c", "d")
AGENTS = {"version": 1, "agents": [{"id": "critic", "capabilities": ["judge"]}]}
SIZES = {10: 0.1, 50: 2.0}
"""Phases, and the seconds that looking at them may take beyond looking at one."""


def measure(*, pairs: int) -> list[Figure]:
    """Time the whole command."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        files = Path(folder, ".agent-shepherd")
        files.mkdir()
        (files / "agents.yaml").write_text(json.dumps(AGENTS))
        for size in (1, *SIZES):
            (files / f"{size}.yaml").write_text(json.dumps(policy(size)))
        env = dict(os.environ) | {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        words = {size: (str(ASHEP), "policy", "check", str(files / f"{size}.yaml")) for size in (1, *SIZES)}
        run(words[1], Path(folder), env)
        found: list[Figure] = []
        for size, bound in SIZES.items():
            measured = [(run(words[size], files, env)[0], run(words[1], files, env)[0]) for _ in range(pairs)]
            mine, one = (median(pair[side] for pair in measured) for side in (0, 1))
            name = f"ashep policy check, {size} phases of 4 verdicts, beyond one phase"
            found.append(Figure(name, mine - one, "s of CPU", bound, f"{short(mine)} s against {short(one)} s"))
        return found


def policy(size: int) -> dict[str, Any]:
    """A policy in which every verdict leads somewhere else, and some back."""
    phases: list[dict[str, Any]] = []
    for place in range(size):
        onward = f"p{place + 1}" if place + 1 < size else "close"
        targets = (onward, f"p{max(place - 1, 0)}", f"p{place * 7 % size}", "person")
        ways = dict(zip(VERDICTS, targets, strict=True))
        phases.append({"name": f"p{place}", "capabilities": ["judge"], "verdicts": [*VERDICTS], "next": ways})
    phases.append({"name": "person", "human": {"changes_requested": "p0"}})
    return {"version": 1, "policies": {"large": {"phases": phases}}}
