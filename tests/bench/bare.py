"""The loop that ashep is compared with: it knows everything beforehand, writes nothing down and survives nothing.

For each issue it claims, lets three agents answer, notes the phase twice and closes: four calls of bd, three sessions,
three prompts (the texts that ashep sent). `python -m tests.bench.bare PLAN` with a plan as `issues.plan_of` makes it.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bench.place import call


def main(plan: dict[str, Any]) -> None:
    """Work through the plan."""
    with ThreadPoolExecutor(plan["concurrency"]) as pool:
        for done in [pool.submit(_issue, plan, issue, runs) for issue, runs in plan["issues"].items()]:
            done.result()


def _issue(plan: dict[str, Any], issue: str, runs: Sequence[dict[str, Any]]) -> None:
    folder, url = Path(plan["folder"]), plan["url"]
    for number, run in enumerate(runs, 1):
        stamp = f"--metadata={json.dumps({'ashep': {'instance': 'bare', 'seq': number, 'run': run['run']}})}"
        moved = [f"--add-label=phase:{run['phase']}"]
        if number == 1:
            _bd(plan, issue, "--claim", stamp, *moved)
        else:
            moved.append(f"--remove-label=phase:{runs[number - 2]['phase']}")
            _bd(plan, issue, "--status=in_progress", stamp, *moved)
        session = json.loads(
            call(url, "POST", "/session", folder, {"title": run["run"], "permission": run["permission"]})
        )["id"]
        prompt = {"agent": run["agent"], "parts": [{"type": "text", "text": run["text"]}]}
        answer = call(url, "POST", f"/session/{session}/message", folder, prompt)
        if b'"finish":"stop"' not in answer:
            raise RuntimeError(f"{run['run']}: {answer[:300]!r}")
    _bd(plan, issue, "--status=closed", f"--remove-label=phase:{runs[-1]['phase']}")


def _bd(plan: dict[str, Any], issue: str, *flags: str) -> None:
    argv = [plan["bd"], "--actor=bare", "update", issue, *flags, "--json"]
    subprocess.run(argv, cwd=plan["folder"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=120)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
