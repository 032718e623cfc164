"""Runs: `ashep runs` and `ashep show`."""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ashep.views import Data, Database, Text, evidence, read_facts
from ashep.views.times import duration, local

if TYPE_CHECKING:
    from ashep.views import json_types

COLUMNS = ("RUN", "STATE", "AGENT", "PLANNED", "TOOK", "TOKENS", "RESULT", "SUMMARY")


def runs(database: Database | None, issue: str | None, limit: int) -> Data:
    """Give the newest runs, newest first, each as runs.jsonl has it; `limit` 0: all."""
    if database is None:
        return {"runs": []}
    where, values = ("WHERE issue = ?", [issue]) if issue is not None else ("", [])
    query = f"SELECT body FROM runs {where} ORDER BY trace DESC LIMIT ?"
    rows = database.execute(query, [*values, limit or -1])
    return {"runs": [json.loads(row["body"]) for row in rows]}


def folder_of(database: Database, run: str) -> str | None:
    """Give the folder of the work tree of its own that a run was in; None: it was in the shared one."""
    prepared = "SELECT body FROM facts WHERE run = ? AND type = 'TreePrepared' ORDER BY seq DESC LIMIT 1"
    row = database.execute(prepared, [run]).fetchone()
    return json.loads(row["body"])["path"] if row else None


def session_of(database: Database | None, run: str) -> tuple[str | None, str | None] | None:
    """Give the session of a run, and the folder of its own that it is in; None: there is no such run."""
    row = database.execute("SELECT session FROM runs WHERE run = ?", [run]).fetchone() if database else None
    return None if database is None or row is None else (row["session"], folder_of(database, run))


def kept_steps(database: Database | None, run: str) -> list[str]:
    """Name the blobs of what was kept of a run's turns, in their order."""
    facts = read_facts(database, ("TurnSeen", "TurnStopped"), "run = ?", run) if database else ()
    return [*{fact["body"].get("n"): fact["body"]["steps"] for fact in facts if fact["body"].get("steps")}.values()]


def running(database: Database | None, run: str) -> Data | None:
    """Give what is known of a run that goes on: what it used, and when it was last heard of; None: it does not."""
    query = "SELECT tokens, cost FROM runs WHERE run = ? AND ended_at IS NULL"
    row = database.execute(query, [run]).fetchone() if database else None
    if database is None or row is None:
        return None
    heard = database.execute("SELECT at FROM facts WHERE run = ? ORDER BY seq DESC LIMIT 1", [run]).fetchone()
    return {"tokens": row["tokens"], "cost": row["cost"], "heard": heard["at"] if heard else None}


def ends(database: Database | None, run: str) -> tuple[str, str] | str | None:
    """Say between which commits lies what a run changed, or why that cannot be told; None: there is no such run."""
    row = database.execute("SELECT body FROM runs WHERE run = ?", [run]).fetchone() if database else None
    if database is None or row is None:
        return None
    told, base, head = json.loads(row["body"]), None, None
    for fact in read_facts(database, ("TreePrepared", "TreeSealed", "TreeSeen"), "run = ?", run):
        body = fact["body"]
        if fact["type"] == "TreeSealed":
            head = body["head"]
        elif fact["type"] == "TreePrepared":
            base = base or body["head"]
        elif body.get("moment") == "before":
            base = base or body["tree"].get("head")
        elif body.get("moment") == "after":
            head = body["tree"].get("head")
    if told["access"] == "read":
        return "It was to read only: it changes nothing."
    if head is None or base is None:
        ended = "It left no commit." if told["ended_at"] else "What it changes is told once it has ended."
        return ended if base is not None or not told["ended_at"] else "It had not begun to work."
    return (base, head) if base != head else "It committed nothing."


def blob_file(state: Path, name: str) -> Path:
    """Say where a text lies, as ashep.journal.blobs has it (which imports too much for a reader)."""
    return state / "blobs" / name[:2] / name


def blob(state: Path, name: str) -> str | None:
    """Read a text; None: it is gone."""
    try:
        return blob_file(state, name).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def knows(database: Database | None, issue: str) -> bool:
    """Say whether anything is known of an issue."""
    return database is not None and bool(database.execute("SELECT 1 FROM issues WHERE issue = ?", [issue]).fetchone())


def names(database: Database | None, issue: str) -> list[str]:
    """Give the ids of an issue's runs."""
    rows = database.execute("SELECT run FROM runs WHERE issue = ? ORDER BY trace", [issue]) if database else ()
    return [row["run"] for row in rows]


def table(seen: Data, now: datetime) -> list[tuple[str, ...]]:
    """Give the rows of the table."""
    rows = list[tuple[str, ...]]()
    for run in seen["runs"]:
        outcome: Data = run["outcome"] or {}
        line = " ".join((outcome.get("summary") or run["error"] or run["why"]).split())
        rows.append((
            run["run"], run["state"], run["agent"], local(run["planned_at"]),
            duration(run["started_at"], run["ended_at"], now), str(run["tokens"]) if run["tokens"] else "",
            " ".join(filter(None, (outcome.get("result"), outcome.get("verdict")))),
            line if len(line) <= 100 else line[:99] + "…",
        ))  # fmt: skip
    return rows


# --- one run ------------------------------------------------------------------------------------------------------


def show(
    database: Database | None, run: str, place: Callable[[str], str], text: Text | None = None
) -> json_types.RunStoryJson | None:
    """Give everything that is known of a run; None: there is no such run.

    `place` says where a blob lies; with `text` the prompts are given in full.
    """
    row = database.execute("SELECT body FROM runs WHERE run = ?", [run]).fetchone() if database else None
    if database is None or row is None:
        return None
    told: json_types.RunStoryJson = {
        "run": json.loads(row["body"]),
        "choice": None,
        "prompts": [],
        "turns": [],
        "rejected": [],
        "commits": [],
        "verified": [],
    }
    for fact in database.execute("SELECT at, type, body FROM facts WHERE run = ? ORDER BY seq", [run]):
        _add(told, fact["type"], fact["at"], json.loads(fact["body"]), place)
    if text is not None:
        for prompt in told["prompts"]:
            prompt["text"] = text(prompt["blob"])
    return told


def _add(told: json_types.RunStoryJson, kind: str, at: str, body: Data, place: Callable[[str], str]) -> None:
    match kind:
        case "RunPlanned":
            told["choice"] = {
                "agent": body["agent"], "why": body["why"],
                "others": [{"agent": agent, "why": why} for agent, why in body.get("others", ())],
                "slug": body["slug"],
                "model": body["model"], "capabilities": body["capabilities"], "timeout": body["timeout"],
            }  # fmt: skip
        case "PromptPrepared":
            told["prompts"].append({"n": body["n"], "blob": body["blob"], "file": place(body["blob"]), "sent": None})
        case "PromptSent":
            for prompt in told["prompts"]:
                if prompt["n"] == body["n"]:
                    prompt["sent"] = prompt["sent"] or at
        case "TurnSeen" if body["state"] == "finished":
            answer = body.get("text")
            told["turns"].append({
                "n": body["n"], "error": body.get("error"), "provider": body.get("provider"),
                "model": body.get("model"), "tokens": body.get("tokens"), "cost": body.get("cost"), "at": at,
                "answer": place(answer) if answer else None,
            })  # fmt: skip
        case "OutcomeRejected":
            told["rejected"].append({"at": at, "n": body["n"], "why": body["why"], "then": body["then"]})
        case "TreeSeen":
            told["commits"] += body.get("commits", ())
        case "WorkVerified":
            fresh = {"output": "", "proves_nothing": False, "cause": "", "on_base": False}
            told["verified"].append({
                "at": at, "commit": body.get("commit"), "tree": body.get("tree"), "changed": body.get("changed"),
                "isolated": body.get("isolated"), "results": [fresh | one for one in body.get("results") or ()],
            })  # fmt: skip
        case _:
            pass


def lines(told: json_types.RunStoryJson) -> list[tuple[str, str]]:
    """Give the run as pairs of a name and a text; a name that is empty belongs to the one before."""
    run, choice = told["run"], told["choice"]
    outcome: Data = run["outcome"] or {}
    pairs: list[tuple[str, Any]] = [
        ("run", run["run"]),
        ("state", run["state"]),
        ("why", run["why"]),
        ("agent", run["agent"]),
        ("chosen", choice and choice["why"]),
        *(("not chosen", f"{other['agent']}: {other['why']}") for other in (choice["others"] if choice else ())),
        ("server's agent", choice and choice["slug"]),
        ("model", "/".join(filter(None, (run["provider"], run["model"])))),
        ("needs", run["capability"]),
        ("access", run["access"]),
        ("time limit", choice and choice["timeout"]),
        ("planned", local(run["planned_at"])),
        ("started", run["started_at"] and local(run["started_at"])),
        ("ended", run["ended_at"] and local(run["ended_at"])),
        ("agent wrote", run["last_agent_message_at"] and local(run["last_agent_message_at"])),
        ("person wrote", run["last_human_message_at"] and local(run["last_human_message_at"])),
        ("session", run["session"]),
        *((f"prompt {prompt['n']}", prompt["file"]) for prompt in told["prompts"]),
        *((f"answer {turn['n']}", turn["answer"]) for turn in told["turns"]),
        *(("rejected", f"{rejected['why']} (then: {rejected['then']})") for rejected in told["rejected"]),
        ("result", outcome.get("result")),
        ("verdict", outcome.get("verdict")),
        ("summary", outcome.get("summary")),
        *(("pointer", pointer) for pointer in outcome.get("pointers", ())),
        *(("commit", commit) for commit in told["commits"]),
        *(line for verified in told["verified"] for line in _verified(verified)),
        ("error", run["error"]),
        ("tokens", run["tokens"]),
        ("cost", run["cost"]),
        ("turns again", run["restarts"]),
        ("trace", f"#{run['trace']}"),
    ]
    return [(name, str(value)) for name, value in pairs if value not in (None, "", 0)]


def _verified(verified: json_types.VerifiedJson) -> list[tuple[str, str]]:
    """Say what checks found in the tree that the run left."""
    unchanged = "" if verified["changed"] else ": it changes nothing"
    said = [f"git tree {verified['tree']}{unchanged}"]
    for one in verified["results"]:
        because = f" (it {evidence.blame(one)})" if one["on_base"] else ""
        said.append(f"{one['check_id']}: {one['status']}: {one['message']}{because}")
    return [("evidence" if not place else "", line) for place, line in enumerate(said)]
