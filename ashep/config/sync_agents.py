"""Keep agents.yaml in step with the server: its text in, its text out, and what changed.

New entries are written as text after the last entry, so that everything that a person wrote stays byte for byte. A file
that is laid out in a way in which that does not work (`agents: [...]`) goes through ruamel.yaml's round trip instead,
which keeps comments and values but may set spaces its own way. Either way the result is read back and compared.
"""

import difflib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from ruamel.yaml import YAML

from ashep.config import yaml_tree
from ashep.config.files import read
from ashep.config.findings import ConfigErrors
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.base_types import name_of
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.errors import ConfigError

GUESSED = "guessed from the server's agent; edit as you like"
_BEGIN = "# --- the server's providers and models; `ashep sync-agents` rewrites this block ---"
_END = "# --- end of the server's providers and models ---"
_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that some reader of YAML takes for something else, in any case: `NULL` is nothing to ruamel."""

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_GUESSED_PRIORITY = -10


@dataclass(frozen=True, slots=True)
class ServerAgent:
    """An agent as the server lists it."""

    name: str
    mode: Literal["primary", "subagent", "all"]
    native: bool
    """It comes with the server."""
    writes: bool
    """Its permissions let it change files."""
    model: Model | None = None
    """The model that it is tied to, where it is."""
    hidden: bool = False
    """The server uses it for itself (titles, summaries), or everybody has it: never added."""
    runner: str = OPENCODE
    """The runner that lists it."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """Something that an entry names and its runner no longer lists; the entry was kept."""

    agent: str
    key: Literal["agent_slug", "model"]
    value: str


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The new text of agents.yaml, and what is new in it."""

    text: str
    diff: str
    """Unified; empty where nothing changed."""
    added: tuple[str, ...]
    """Ids of the new entries."""
    vanished: tuple[Vanished, ...]


def sync(
    text: str,
    agents: Sequence[ServerAgent],
    models: Sequence[Model],
    default: Model | None = None,
    *,
    file: Path = Path("agents.yaml"),
    beside: Mapping[str, Sequence[Model]] | None = None,
) -> SyncResult:
    """Add the server's agents that no entry names yet and refresh the list of its models, which is a comment.

    `beside`: models of runners next to the server, by their names. Doing it twice changes nothing more. Raises
    `ConfigError` where the text is not a valid agents.yaml.
    """
    registry = read(Agents, text, file)
    entries = _new_entries(registry, agents)
    body = _without_block(text)
    if entries:
        body = _add(body, registry, entries, file)
    newline = "\r\n" if "\r\n" in body else "\n"
    ended = body if not body or body.endswith(("\n", "\r")) else body + newline
    new = ended + newline + "".join(line + newline for line in _block(models, default, beside or {}))
    added = tuple(entry.id for entry in entries)
    return SyncResult(new, diff(text, new, file), added, vanished(registry, agents, models))


# --- what is new, what is gone ----------------------------------------------------------------------------------


def _new_entries(registry: Agents, agents: Sequence[ServerAgent]) -> list[Agent]:
    named = {(agent.runner.type, agent.runner.agent_slug) for agent in registry.agents}
    taken = {agent.id for agent in registry.agents}
    entries: list[Agent] = []
    for agent in sorted(agents, key=lambda agent: (agent.runner != OPENCODE, agent.runner, agent.name)):
        if agent.hidden or (agent.runner, agent.name) in named or not 0 < len(agent.name) <= 200:
            continue
        word = name_of(agent.name, "agent", 60)
        number = 1
        while (free := word if number == 1 else f"{word}-{number}") in taken:
            number += 1
        entries.append(_entry(agent, free))
        named.add((agent.runner, agent.name))
        taken.add(entries[-1].id)
    return entries


def _entry(agent: ServerAgent, name: str) -> Agent:
    runner: dict[str, str] = {"type": agent.runner, "agent_slug": agent.name}
    if agent.model is not None:
        runner |= {"provider": agent.model.provider, "model": agent.model.model}
    able = ("implement", "code", "debug") if agent.writes else ("plan", "review", "arbitrate", "analyze")
    # a guess from its kind; a subagent is made to look things up for another agent
    able = ("analyze",) if agent.mode == "subagent" else able
    access = "write" if agent.writes else "read"
    entry = {"id": name, "capabilities": able, "read_write": access, "runner": runner, "priority": _GUESSED_PRIORITY}
    return Agent.model_validate(entry)


def vanished(registry: Agents, agents: Sequence[ServerAgent], models: Sequence[Model]) -> tuple[Vanished, ...]:
    """Give what entries name and the server does not list, or another runner that listed its agents."""
    slugs, known = {(agent.runner, agent.name) for agent in agents}, set(models)
    asked = {OPENCODE, *(agent.runner for agent in agents)}
    gone: list[Vanished] = []
    for agent in registry.agents:
        runner = agent.runner
        if agent.is_human or runner.type not in asked:
            continue
        if runner.agent_slug is not None and (runner.type, runner.agent_slug) not in slugs:
            gone.append(Vanished(agent.id, "agent_slug", runner.agent_slug))
        model = Model(runner.provider, runner.model) if runner.provider and runner.model else None
        if model is not None and runner.type == OPENCODE and model not in known:
            gone.append(Vanished(agent.id, "model", f"{model.provider}/{model.model}"))
    return tuple(gone)


# --- the text ---------------------------------------------------------------------------------------------------


def _add(text: str, registry: Agents, entries: list[Agent], file: Path) -> str:
    wanted = registry.agents + tuple(entries)
    for attempt in (_insert, _round_trip):
        new = attempt(text, entries)
        with suppress(ConfigErrors):
            if new is not None and read(Agents, new, file).agents == wanted:
                return new
    raise ConfigError("entries cannot be added to this layout; write each on lines of its own", file=file, key="agents")


def _insert(text: str, entries: list[Agent]) -> str | None:
    """Write the entries after the last line of the last one; None where the list is not one entry a line."""
    place = _end_of_list(text)
    if place is None:
        return None
    after, dash, key = place
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if not lines[after - 1].endswith(("\n", "\r")):
        lines[after - 1] += newline
    new = [line + newline for entry in entries for line in _lines(entry, " " * dash, " " * (key - dash - 1))]
    return "".join(lines[:after] + new + lines[after:])


def _end_of_list(text: str) -> tuple[int, int, int] | None:
    """Find the last line of the list `agents`, and the columns of its dashes and of its keys."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs: list[tuple[yaml.Node, yaml.Node]] = root.value if isinstance(root, yaml.MappingNode) else []
    agents = next((value for key, value in pairs if key.value == "agents"), None)
    if not isinstance(agents, yaml.SequenceNode) or agents.flow_style:
        return None
    items: list[yaml.Node] = agents.value
    return _last_line(items[-1]), agents.start_mark.column, items[-1].start_mark.column


def _last_line(node: yaml.Node) -> int:
    """Give the number of the last line that a value covers; blank lines and comments after it do not count."""
    below: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        below = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
        below = node.value
    if below:
        return max(_last_line(part) for part in below)
    end = node.end_mark
    return end.line + 1 if end.column or end.line == node.start_mark.line else end.line


def _lines(entry: Agent, margin: str, gap: str) -> list[str]:
    inner = f"{margin} {gap}"
    runner = {"type": entry.runner.type, "agent_slug": entry.runner.agent_slug}
    if entry.runner.model is not None:
        runner |= {"provider": entry.runner.provider, "model": entry.runner.model}
    fields = ", ".join(f"{key}: {_word(value or '')}" for key, value in runner.items())
    return [
        "",
        f"{inner}# {GUESSED}",
        f"{margin}-{gap}id: {_word(entry.id)}",
        f"{inner}capabilities: [{', '.join(entry.capabilities)}]",
        f"{inner}read_write: {entry.read_write}",
        f"{inner}runner: {{{fields}}}",
        f"{inner}priority: {entry.priority}",
    ]


def _word(text: str) -> str:
    bare = (
        _BARE.fullmatch(text) is not None and text.lower() not in _MEANING and isinstance(yaml_tree.resolve(text), str)
    )
    return text if bare else json.dumps(text)


def _round_trip(text: str, entries: list[Agent]) -> str:
    """Add the entries with ruamel.yaml, whatever the layout."""

    def add(document: Any, load: Callable[[str], Any]) -> None:
        for entry in entries:
            # read by the same editor, so that quotes which other readers of YAML need stay where they are
            bare = "\n".join(line for line in _lines(entry, "", " ") if not line.lstrip().startswith("#"))
            document["agents"] += load(bare)

    return round_trip(text, add)


def round_trip(text: str, change: Callable[[Any, Callable[[str], Any]], None]) -> str:
    """Change YAML, whatever its layout: comments and values stay. `change` gets the document, and what reads others."""
    editor: Any = YAML(typ="rt")  # ruamel is not annotated
    editor.preserve_quotes = True
    editor.width = 4096
    editor.indent(mapping=2, sequence=4, offset=2)
    editor.representer.add_representer(type(None), _null)
    document = editor.load(text)
    change(document, editor.load)
    out = io.StringIO()
    editor.dump(document, out)
    return out.getvalue()


def _null(representer: Any, _: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


# --- the comment block ------------------------------------------------------------------------------------------


def _block(models: Sequence[Model], default: Model | None, beside: Mapping[str, Sequence[Model]]) -> list[str]:
    providers: dict[str, list[str]] = {}
    for model in sorted(set(models), key=lambda model: (model.provider, model.model)):
        providers.setdefault(model.provider, []).append(model.model)
    lines = [_BEGIN]
    if default is not None:
        lines.append(f"# default: {_clean(default.provider)}/{_clean(default.model)}")
    for provider, names in providers.items():
        lines.append(f"# {_clean(provider)}:")
        lines += [f"#   {_clean(name)}" for name in names]
    for runner, offered in sorted(beside.items()):
        lines.append(f"# the runner {_clean(runner)}, and more by their own names:")
        lines += [
            f"#   {_clean(one.provider)}/{_clean(one.model)}" for one in sorted(offered, key=lambda one: one.model)
        ]
    return [*lines, _END]


def _clean(text: str) -> str:
    """Foreign names stay on their line of the comment."""
    return "".join(character if character.isprintable() else "?" for character in text)[:200]


def _without_block(text: str) -> str:
    """Take the block out, with the blank line that was written before it."""
    lines = text.splitlines(keepends=True)
    bare = [line.strip() for line in lines]
    if _BEGIN not in bare or _END not in bare[bare.index(_BEGIN) :]:
        return text
    begin = bare.index(_BEGIN)
    end = bare.index(_END, begin)
    start = begin - 1 if begin and not bare[begin - 1] else begin
    return "".join(lines[:start] + lines[end + 1 :])


def diff(before: str, after: str, file: Path) -> str:
    """Show what is changed in a file; empty where nothing is."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, f"a/{file.name}", f"b/{file.name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
