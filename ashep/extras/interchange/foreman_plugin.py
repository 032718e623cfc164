"""The plugin foreman: its configuration, taken over into our files (docs/facts/bmad.md 16), and its commands."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ashep.bmad.paths import USUAL, relative
from ashep.config import read
from ashep.config.sync_agents import round_trip
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Limits, Phase, Policies
from ashep.core.policy.settings import Settings
from ashep.extras.interchange.import_report import grouped, read_json
from ashep.extras.interchange.typed_fields import Fields

POLICY = "bmad-story"
ROLES = {
    "developer": {"capabilities": ["implement", "code", "debug", "test", "doc"], "read_write": "write"},
    "reviewer": {"capabilities": ["review"], "read_write": "write"},  # what it finds goes into the story
    "arbiter": {"capabilities": ["arbitrate"], "read_write": "read"},
}
"""What the agent of each role is in our registry; the policy's phases are called as the roles are."""

_PRIORITY = 20
"""Above those that `ashep init` writes."""
_MOST_VISITS = 1000
_VISITS: int = Phase.model_fields["max_visits"].default
_ABOVE = "ashep looks where BMAD's own configuration says, else in the usual places: `ashep story status` says which"


@dataclass(frozen=True, slots=True)
class Foreman:
    """What its configuration says."""

    roles: dict[str, dict[str, str]]
    """By role what is to stand in the `runner` of an agent."""
    iterations: int | None
    contexts: list[str]
    told: list[str]
    """What is not carried over."""


def read_foreman(file: Path) -> Foreman:
    """Read a `foreman.json`; raises `ConfigErrors` with the line and the key of what is wrong, and what is expected."""
    reading = read_json(file)
    top = Fields(reading, reading.root)
    roles = {role: _runner(top.section("roles").section(role)) for role in ROLES if role in top.section("roles")}
    iterations = top.whole("max_iterations", least=1)
    if (iterations or 0) > _MOST_VISITS:
        raise top.refuse(f"expected a whole number of at most {_MOST_VISITS}, found {iterations}", "max_iterations")
    contexts = top.words("contexts")
    if (folder := top.text("stories_dir")) and relative(folder) not in USUAL:
        top.note_changed("stories_dir", _ABOVE)
    sprint = top.text("sprint_status")
    if sprint and str(Path(relative(sprint)).parent) not in (*USUAL, "docs", relative(folder or "")):
        top.note_changed("sprint_status", _ABOVE)
    reading.rest()
    return Foreman(roles, iterations, contexts, grouped(reading.notes))


def _runner(role: Fields) -> dict[str, str]:
    runner = {"agent_slug": role.text("agent"), "provider": role.text("provider"), "model": role.text("model")}
    if (runner["provider"] is None) != (runner["model"] is None):
        raise role.refuse("expected `provider` and `model`, or neither; found one of them")
    return {key: value for key, value in runner.items() if value is not None}


# --- into our files -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Taking:
    """Puts values where none are; what says something else stays, unless it is `force`, and is told."""

    force: bool
    kept: list[str] = field(default_factory=list[str])

    def put(self, at: Any, key: str, value: Any, place: str) -> None:
        old = at.get(key)
        if old is None or (self.force and old != value):
            at[key] = value
        elif old != value:
            self.kept.append(f"kept: {place}.{key} is {old}, and not {value} (--force writes that)")

    def agents(self, said: Foreman, document: Any, load: Callable[[str], Any]) -> None:
        for role, runner in reversed(said.roles.items()):
            ids: dict[str, Any] = {one["id"]: one for one in document["agents"]}
            wants, name = ROLES[role]["read_write"], role
            if not self.force and role in ids and ids[role].get("read_write", "read") != wants:
                name = f"story-{role}"  # that one is somebody's, and could not do this
            found = ids.get(name)
            if found is None:
                entry = {**ROLES[role], "runner": runner, "priority": _PRIORITY}
                lines = [f"id: {name}", *(f"{key}: {json.dumps(value)}" for key, value in entry.items())]
                document["agents"].insert(0, load("\n".join(lines)))  # behind the last one may be comments
                continue
            self.put(found, "read_write", wants, f"agents.yaml: {name}")
            if found.get("runner") is None:
                found["runner"] = {}
            for key, value in runner.items():
                self.put(found["runner"], key, value, f"agents.yaml: {name}.runner")

    def policies(self, said: Foreman, document: Any, _: Callable[[str], Any]) -> None:
        new = {"extends": f"preset:{POLICY}", "match": None}
        policy: Any = document["policies"].setdefault(POLICY, new)
        count = said.iterations
        if count is None:
            return
        if policy.get("phases") is None:
            policy["phases"] = []
        for role in ROLES if count > _VISITS else ("developer",):
            phase: Any = next((one for one in policy["phases"] if one["name"] == role), None)
            if phase is None and "extends" not in policy:
                self.kept.append(
                    f"kept: policies.yaml: {POLICY} has no phase {role}, so that max_iterations is not said"
                )
            elif phase is None:
                policy["phases"].append({"name": role, "max_visits": count})
            else:
                self.put(phase, "max_visits", count, f"policies.yaml: {POLICY}.{role}")
        if count * len(ROLES) > Limits().max_runs:
            if policy.get("limits") is None:
                policy["limits"] = {}
            self.put(policy["limits"], "max_runs", count * len(ROLES), f"policies.yaml: {POLICY}.limits")

    def config(self, said: Foreman, document: Any, _: Callable[[str], Any]) -> None:
        if document.get("bmad") is None:
            document["bmad"] = {}
        self.put(document["bmad"], "enabled", True, "config.yaml: bmad")
        if said.contexts:
            self.put(document["bmad"], "contexts", said.contexts, "config.yaml: bmad")


def taken_over(
    said: Foreman, there: Mapping[Path, str], begun: Mapping[Path, str], *, force: bool
) -> tuple[dict[Path, str], list[str]]:
    """Put what the plugin's configuration says into our files, and say what was kept; raises `ConfigErrors`.

    `begun`: those that are not there, as a new project has them; nothing of them is kept.
    """
    new, kept = dict[Path, str](), list[str]()
    for file, text in ({**there, **begun}).items():
        if file.name == "policies.yaml" and (file.parent / "policies").is_dir():
            kept.append(f"kept: policies.yaml, for there are policies in a folder, too: see to {POLICY} there")
            continue
        taking = _Taking(force or file in begun)
        model, change = {
            "agents.yaml": (Agents, taking.agents), "policies.yaml": (Policies, taking.policies),
            "config.yaml": (Settings, taking.config),
        }[file.name]  # fmt: skip
        read(model, text, file)  # what is wrong with it already is told as its own
        new[file] = round_trip(text, partial(change, said))
        read(model, new[file], file)
        kept += taking.kept
    return new, kept


# --- commands -----------------------------------------------------------------------------------------------------

_COMMAND = """\
---
description: Work on stories of the BMAD method by ashep
{head}---

What is asked for: $ARGUMENTS

Its first word is `run` or `status`; where it is neither, say so and stop. The other words are ids of stories, as `1-3`,
their paths, or options of the command. Run `ashep story run` or `ashep story status` with exactly these words, each
quoted for the shell, in the folder of this project, and nothing else. Tell what it printed and its exit code.

A run takes as long as the story does. Where your shell ends it before, nothing is lost: `ashep story status` says how
far it is, and the same command goes on. Change no file, and do nothing of the story yourself.
"""
_HEADS = {
    ".opencode/commands/foreman.md": "",
    ".claude/commands/foreman.md": "argument-hint: run 1-3 | status\n"
    "allowed-tools: Bash(ashep story run:*), Bash(ashep story status:*)\n",
}
_OLDER = {".opencode/commands/foreman.md": ".opencode/command/foreman.md"}
"""Where a command of the same name may be, too."""
_MARK = "\n<!-- of `ashep story install-commands`, {} -->\n"


def commands() -> dict[str, str]:
    """Give the files of the commands, by their paths in a project; each says by its last line that it is ours."""
    texts = {name: _COMMAND.format(head=head) for name, head in _HEADS.items()}
    return {name: text + _mark(text) for name, text in texts.items()}


def _mark(text: str) -> str:
    return _MARK.format(sha256(text.encode()).hexdigest()[:16])


def is_ours(project: Path, name: str) -> bool | None:
    """Whether a file is one of ours, as we wrote it; None: there is none. One that somebody changed is theirs."""
    for place in filter(None, (name, _OLDER.get(name))):
        if os.path.lexists(project / place):
            try:
                text, mark = (project / place).read_text(encoding="utf-8"), len(_mark(""))
            except (OSError, UnicodeDecodeError):
                return False
            return place == name and not (project / place).is_symlink() and text[-mark:] == _mark(text[:-mark])
    return None
