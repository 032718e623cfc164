"""The loop that ashep is compared with: it knows everything beforehand, writes nothing down and survives nothing.

One process without a thread, an HTTP connection that it keeps, and bd: nothing else. It asks bd once what is ready; for
each issue it claims, lets three agents answer, notes the phase twice and closes: four calls of bd, three sessions,
three prompts (the texts that ashep sent). `python -m tests.bench.bare PLAN` with a plan as `issues.plan_of` makes it.
"""

import base64
import http.client
import json
import subprocess
import sys
import urllib.parse
from collections.abc import Sequence
from typing import Any

PASSWORD = "bench"
"""Of the server, for `place`, too: importing that here would be more than all of this."""


def main(plan: dict[str, Any]) -> None:
    """Work through the plan."""
    host = urllib.parse.urlsplit(plan["url"])
    server = http.client.HTTPConnection(host.hostname or "", host.port, timeout=120)
    ready = {row["id"] for row in json.loads(_bd(plan, "ready", "--limit=0", "--brief"))}
    for issue, runs in plan["issues"].items():
        if issue not in ready:
            raise RuntimeError(f"{issue} is not ready")
        _issue(plan, server, issue, runs)
    server.close()


def _issue(
    plan: dict[str, Any], server: http.client.HTTPConnection, issue: str, runs: Sequence[dict[str, Any]]
) -> None:
    for number, run in enumerate(runs, 1):
        stamp = f"--metadata={json.dumps({'ashep': {'instance': 'bare', 'seq': number, 'run': run['run']}})}"
        moved = [f"--add-label=phase:{run['phase']}"]
        if number == 1:
            _bd(plan, "update", issue, "--claim", stamp, *moved)
        else:
            moved.append(f"--remove-label=phase:{runs[number - 2]['phase']}")
            _bd(plan, "update", issue, "--status=in_progress", stamp, *moved)
        opened = {"title": run["run"], "permission": run["permission"]}
        session = json.loads(_post(plan, server, "/session", opened))["id"]
        prompt = {"agent": run["agent"], "parts": [{"type": "text", "text": run["text"]}]}
        answer = _post(plan, server, f"/session/{session}/message", prompt)
        if b'"finish":"stop"' not in answer:
            raise RuntimeError(f"{run['run']}: {answer[:300]!r}")
    _bd(plan, "update", issue, "--status=closed", f"--remove-label=phase:{runs[-1]['phase']}")


def _post(plan: dict[str, Any], server: http.client.HTTPConnection, path: str, body: dict[str, Any]) -> bytes:
    query = urllib.parse.urlencode({"directory": plan["folder"]})
    password = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {password}", "Content-Type": "application/json"}
    server.request("POST", f"{path}?{query}", json.dumps(body), headers)
    answer = server.getresponse()
    said = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {said[:300]!r}")
    return said


def _bd(plan: dict[str, Any], *arguments: str) -> bytes:
    argv = [plan["bd"], "--actor=bare", *arguments, "--json"]
    done = subprocess.run(
        argv, cwd=plan["folder"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=120
    )
    return done.stdout


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        main(json.load(file))
