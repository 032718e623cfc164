"""A program of its own that Claude Code runs before a tool: it refuses, or asks and waits for the answer.

It knows nothing but Python and the files next to it, so that it goes on while no daemon is there; what it asks stands
in `asks/`, and what is answered in `answers/`, each whole or not there. `rules.json`: the rules as regular expressions,
the first that fits decides; a line of commands is judged by each of its pieces, and the strictest word counts. What a
rule allows is left to Claude Code, so that none widens what the session may do. What goes wrong refuses: exit code 2.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from typing import Any

NAMES = {
    "Agent": "task",
    "AskUserQuestion": "question",
    "Bash": "bash",
    "Edit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "NotebookEdit": "edit",
    "Read": "read",
    "Skill": "skill",
    "Task": "task",
    "WebFetch": "webfetch",
    "WebSearch": "websearch",
    "Write": "edit",
}
"""Claude Code's tools, by the names that rules have for them."""

DETAILS = ("command", "file_path", "notebook_path", "url", "query", "pattern", "subagent_type", "skill")
"""What a tool is used for, as its input calls that."""

_BETWEEN = re.compile(r"&&|\|\||[;|&\n`(){}]|\$\(|[<>]+")
_GIVEN = re.compile(r"(?:[A-Za-z_]\w*=\S*\s+)+")
_LOOK = 0.2  # seconds


def texts(tool: str, detail: str, folder: str) -> list[str]:
    """What rules about a tool are matched with: a whole line of commands and each of them, or a path in the folder."""
    if tool == "bash":
        pieces = [detail, *_BETWEEN.split(detail)]
        stripped = [" ".join(piece.split()) if piece is not detail else piece.strip() for piece in pieces]
        return list(
            dict.fromkeys(form for one in stripped if one for form in (one, _GIVEN.sub("", one, count=1)) if form)
        )
    if tool in ("read", "edit") and detail.startswith(folder + "/"):
        return [detail[len(folder) + 1 :]]
    return [detail]


def judge(rules: list[list[str]], tool: str, found: list[str]) -> str:
    """The strictest word of the rules."""
    words = {
        next((action for of, fits, action in rules if re.fullmatch(of, tool) and re.fullmatch(fits, one)), "")
        for one in (text.replace("\\", "/") for text in found)
    }
    return next((word for word in ("deny", "ask") if word in words), "")


def ask(here: str, name: str, what: dict[str, object], seconds: float) -> dict[str, object]:
    """Ask, and wait for the answer so long; it is a denial then."""
    asked, answered = os.path.join(here, "asks", name), os.path.join(here, "answers", name)
    draft = f"{asked}.{os.getpid()}.tmp"
    with open(draft, "w") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, asked)
    until, parent = time.monotonic() + seconds, os.getppid()
    while time.monotonic() < until and os.getppid() == parent:  # nobody waits for the answer where it has died
        if os.path.exists(answered):
            with open(answered) as file:
                said = json.load(file)
            delete_question(asked)
            return said
        time.sleep(_LOOK)  # it is a process of its own, with nothing else to do
    delete_question(asked)
    return {"verdict": "deny", "message": "nobody answered in time; go on without it"}


def delete_question(file: str) -> None:
    """Take a question away; another one of us, who asked the same, may have done so."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)


def decide(here: str, given: dict[str, Any]) -> dict[str, object] | None:
    """Say what follows for a use of a tool; None: Claude Code decides."""
    with open(os.path.join(here, "rules.json")) as file:
        rules = json.load(file)
    put: dict[str, Any] = given["tool_input"]
    tool = NAMES.get(str(given["tool_name"])) or str(given["tool_name"])
    detail = next((str(put[name]) for name in DETAILS if name in put), "")
    found = texts(tool, detail, rules["folder"])
    word = "ask" if tool == "question" else judge(rules["rules"], tool, found)
    if word == "deny":
        return {"permissionDecision": "deny", "permissionDecisionReason": rules["denied"]}
    if not word:
        return None
    name = hashlib.sha256(f"{rules['turn']} {given.get('tool_use_id')}".encode()).hexdigest()[:24]
    kind = "question" if tool == "question" else "permission"
    what: dict[str, object] = {
        "kind": kind,
        "tool": tool,
        "patterns": found,
        "detail": detail,
        "questions": put.get("questions", []),
    }
    said = ask(here, name, what, rules["seconds"])
    if said["verdict"] == "deny":
        return {"permissionDecision": "deny", "permissionDecisionReason": said["message"] or "denied"}
    if kind == "permission":
        return {"permissionDecision": "allow"}
    return {"permissionDecision": "allow", "updatedInput": {**put, "answers": said["answers"]}}


def main() -> int:
    """Read what Claude Code is about to do from standard input, and print what follows."""
    try:
        said = decide(os.path.dirname(os.path.abspath(__file__)), json.load(sys.stdin))
    except Exception as error:  # whatever it is, 2 blocks the tool: any other end would let it through
        sys.stderr.write(f"this could not be judged: {error}")
        return 2
    if said is not None:
        sys.stdout.write(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
