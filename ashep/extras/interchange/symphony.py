"""A Symphony `WORKFLOW.md` -> our files: settings in its front matter, and the prompt below it.

There an agent works on a ticket, and moves it, until it is in no active state any more. Here it reports, and a person
looks at its work: the place to which a ticket is handed there.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from ashep.config.findings import read_text, refused
from ashep.config.yaml_tree import YamlProblem
from ashep.core.policy.base_types import format_duration
from ashep.extras.interchange.import_report import Imported, Note, read_yaml
from ashep.extras.interchange.liquid import converted
from ashep.extras.interchange.typed_fields import Fields
from ashep.extras.interchange.yaml_writer import as_yaml

PHASE = "work"
_TRACKER = "issues come from Beads, and bd finds its database and its credentials by itself"
_MOVES = "nobody moves a ticket here: an issue that bd lists as ready is taken, and closed where the policy leads there"
_SERVER = "say it in agents.yaml, in `permissions`, or in the configuration of what runs the agents (OpenCode's, say)"
_HOOKS = "no script runs around runs; steps that set a new work tree up stand in `worker.setup`"
_LOST: dict[str, dict[str, str]] = {
    "tracker": {
        **dict.fromkeys(("kind", "endpoint", "api_key", "project_slug", "assignee"), _TRACKER),
        **dict.fromkeys(("active_states", "terminal_states"), _MOVES),
    },
    "workspace": {"root": "each issue has a work tree or a place of its own where `worker.trees` says"},
    "hooks": dict.fromkeys(("after_create", "before_run", "after_run", "before_remove", "timeout_ms"), _HOOKS),
    "agent": {
        "max_turns": "an agent reports once for a run; another attempt is made where it failed",
        "max_concurrent_agents_by_state": "a phase has `max_runs`, and `worker.max_concurrent_runs` bounds all",
    },
    "worker": {"ssh_hosts": "agents run on this machine"},
    "server": dict.fromkeys(("port", "host"), "`ashep ui` shows the page; `ui` in config.yaml says where"),
    "observability": dict.fromkeys(
        ("dashboard_enabled", "refresh_ms", "render_interval_ms"), "`ashep status --watch` needs no settings"
    ),
}
_HEAD = (
    "Made of {what}, a workflow for Symphony. A person looks at the work where a ticket is handed over there; `next`, "
    "and `human`, say who looks at it and where it goes.",
    "Read the prompt: what it says of moving tickets, comments, workspaces and pull requests is the agent's own affair "
    "there, and not so here. Agents report, and ashep alone writes to the tracker.",
)


def read_workflow(file: Path, name: str) -> Imported:
    """Read a `WORKFLOW.md`; raises `ConfigErrors`."""
    text = read_text(file)
    front, body, first = _parts(file, text)
    reading = read_yaml(file, text=front)
    if reading.root.value is not None and not isinstance(reading.root.value, dict):
        raise reading.refuse(reading.root, "the front matter is no mapping")
    root = Fields(reading, reading.root)
    whole = {"version": 1, "default_policy": name, "policies": {name: _policy(root)}}
    config = _config(root)
    for section, keys in _LOST.items():
        for key, why in keys.items():
            root.section(section).note_lost(why, key)
    root.section("codex").note_others_lost(_SERVER)
    reading.rest()
    prompts: dict[str, str] = {}
    if body.strip():
        line = first + len(body) - len(body.lstrip("\n"))
        prompt = converted(
            body.strip(), line, lambda kind, key, line, why: reading.notes.append(Note(kind, key, line, why))
        ).strip()
        prompts[f"prompts/{PHASE}.md.j2"] = f'{prompt}\n\n{{% include "_work.md.j2" %}}\n'
    notes = sorted(reading.notes, key=lambda note: note.line)
    head = [line.format(what=file.name) for line in _HEAD]
    policies = {"policies.yaml": as_yaml(whole, head, notes)}
    settings = {"config.yaml": as_yaml({"version": 1} | config, head[:1])} if config else {}
    return Imported(policies | settings | prompts, tuple(notes))


def _parts(file: Path, text: str) -> tuple[str, str, int]:
    """Give the front matter (with an empty line in the place of its mark), the prompt, and its first line."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return "", text, 1
    ends = [number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"]
    if not ends:
        raise refused(file, YamlProblem("syntax", "the front matter has no end: a line with --- alone", 1))
    end = ends[0]
    return "\n".join(["", *lines[1:end]]) + "\n", "\n".join(lines[end + 1 :]), end + 2


def _policy(root: Fields) -> dict[str, Any]:
    codex, agent = root.section("codex"), root.section("agent")
    phase: dict[str, Any] = {"name": PHASE, "capabilities": ["implement"], "access": "write"}
    phase["timeout"] = format_duration(codex.span("turn_timeout_ms") or timedelta(hours=1))
    stall = codex.entry("stall_timeout_ms")
    if stall is not None and isinstance(stall.value, int) and stall.value <= 0:
        codex.note_lost("a turn that shows no sign of life is always given up; raise `stall.after`", "stall_timeout_ms")
    else:
        phase["stall"] = {"after": format_duration(codex.span("stall_timeout_ms") or timedelta(minutes=5))}
    longest = agent.span("max_retry_backoff_ms") or timedelta(minutes=5)
    first = format_duration(min(timedelta(seconds=10), longest))
    phase["retry"] = {"backoff": "exponential", "initial_delay": first, "max_delay": format_duration(longest)}
    phase["next"] = {"success": "human_review"}
    human = {"ask": "Is this done?", "approved": "close", "changes_requested": PHASE}
    return {
        "description": "an agent works, a person looks at it",
        "phases": [phase, {"name": "human_review", "human": human}],
    }


def _config(root: Fields) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if (span := root.section("polling").span("interval_ms")) is not None:
        made["tracker"] = {"poll_every": format_duration(span)}
    agent = root.section("agent")
    if (many := agent.whole("max_concurrent_agents", least=1)) is not None:
        made["worker"] = {"max_concurrent_runs": min(many, 64)}
        agent.note_changed(
            "max_concurrent_agents",
            "64 at most; where the work tree is shared, runs that write come one after the other (`worker.workspace`)",
        )
    return made
