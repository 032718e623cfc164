"""The loop that ashep is compared with: it knows everything beforehand, writes nothing down and survives nothing.

One process without a thread, an HTTP connection that it keeps, and bd: nothing else. It asks bd once what is ready; for
each issue it claims, lets three agents answer, notes the phase twice and closes: four calls of bd, three sessions,
three prompts (the texts that ashep sent). `python -m bench.bare PLAN` with a plan as `issues.plan_of` makes it.

Where the plan has `claude`, its command line, that answers, a process a prompt, and no server is asked.

Where the plan has `at_once`, so many issues are worked on at a time, each in a thread with a connection of its own, and
bd is called one at a time, as ever: what a second core costs by itself is told by that.
"""

import base64
import http.client
import json
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

PASSWORD = "bench"
"""Of the server, for `place`, too: importing that here would be more than all of this."""
_ONE_BD = threading.Lock()


def main(plan: dict[str, Any]) -> None:
    """Work through the plan."""
    ready = {row["id"] for row in json.loads(_bd(plan, "ready", "--limit=0", "--brief"))}
    if missing := plan["issues"].keys() - ready:
        raise RuntimeError(f"{missing} are not ready")
    left = iter(plan["issues"].items())
    at_once = plan.get("at_once", 1)
    if at_once == 1:
        _work(plan, left)
        return
    failed = list[BaseException]()
    threading.excepthook = lambda told: failed.append(told.exc_value or SystemExit(1))
    threads = [threading.Thread(target=_work, args=(plan, left)) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _work(plan: dict[str, Any], left: Iterator[tuple[str, Sequence[dict[str, Any]]]]) -> None:
    """Take one issue after the other, until none is left; an iterator gives each to one thread."""
    host = urllib.parse.urlsplit(plan["url"])
    server = http.client.HTTPConnection(host.hostname or "", host.port, timeout=120)
    for issue, runs in left:
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
        if "claude" in plan:
            _claude(plan, run)
            continue
        opened = {"title": run["run"], "permission": run["permission"]}
        session = json.loads(_post(plan, server, "/session", opened))["id"]
        prompt = {"agent": run["agent"], "parts": [{"type": "text", "text": run["text"]}]}
        answer = _post(plan, server, f"/session/{session}/message", prompt)
        if b'"finish":"stop"' not in answer:
            raise RuntimeError(f"{run['run']}: {answer[:300]!r}")
    _bd(plan, "update", issue, "--status=closed", f"--remove-label=phase:{runs[-1]['phase']}")


def _claude(plan: dict[str, Any], run: dict[str, Any]) -> None:
    mode = "acceptEdits" if run["access"] == "write" else "dontAsk"
    argv = [*plan["claude"], "--permission-mode", mode]
    done = subprocess.run(
        argv, cwd=plan["folder"], input=run["text"].encode(), capture_output=True, check=True, timeout=120
    )
    if b'"is_error":false' not in done.stdout:
        raise RuntimeError(f"{run['run']}: {done.stdout[:300]!r}")


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
    with _ONE_BD:
        done = subprocess.run(
            argv, cwd=plan["folder"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=120
        )
    return done.stdout


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        main(json.load(file))
