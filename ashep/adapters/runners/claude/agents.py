"""The agents that a prompt can name: the user's own, and those of the base commit, which its processes do not look for.

An agent is a file `agents/<name>.md`: a head in YAML with its description, tools and model, and its prompt. Those in a
work tree are not read, since `--setting-sources user` leaves them out, and an agent might have written them: what the
base holds is handed over on the command line.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ashep.adapters.runners.foreign_json import as_list, as_object

BUILT_IN = ("claude", "Explore", "general-purpose", "Plan")
"""What 2.1.330 has of itself."""

_BIGGEST = 64 * 1024  # bytes of a definition; an argument of a program takes 128 KiB
_KEPT = ("description", "tools", "disallowedTools", "model")
_WRITERS = frozenset({"Bash", "Edit", "NotebookEdit", "Write"})


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent that can be named, as far as its definition says what it is."""

    name: str
    writes: bool
    """It has a tool by which files are changed."""
    model: str | None
    """The model that it is tied to."""


def list_names(config: Path) -> tuple[str, ...]:
    """The user's own, by name. Blocks."""
    return tuple(name for name, _ in _read_own_agents(config))


def listed(config: Path, base: Mapping[str, str]) -> tuple[AgentDefinition, ...]:
    """The user's own and those of the base, each once: what the base says of a name counts. Blocks."""
    heads = dict(_read_own_agents(config)) | {name: _split(text[:_BIGGEST])[0] for name, text in sorted(base.items())}
    return tuple(_listed(name, head) for name, head in heads.items())


def _listed(name: str, head: Mapping[str, Any]) -> AgentDefinition:
    tools, without = _words(head.get("tools")), _words(head.get("disallowedTools"))
    model = str(head.get("model") or "inherit")
    return AgentDefinition(
        name, bool((_WRITERS & tools if tools else _WRITERS) - without), None if model == "inherit" else model
    )


def _words(value: object) -> frozenset[str]:
    words = value.split(",") if isinstance(value, str) else as_list(value)
    return frozenset(str(one).strip() for one in words)


def _read_own_agents(config: Path) -> list[tuple[str, dict[str, Any]]]:
    heads = list[tuple[str, dict[str, Any]]]()
    with suppress(OSError):
        for file in sorted((config / "agents").glob("*.md")):
            with suppress(OSError, ValueError), file.open(encoding="utf-8") as opened:
                head, _ = _split(opened.read(_BIGGEST))
                heads.append((str(head.get("name") or file.stem), head))
    return heads


def definition(name: str, base: Mapping[str, str]) -> str | None:
    """What an agent of the base is, as `--agents` takes it; None: the base has none of this name, or it is none."""
    head, prompt = _split(base.get(name, "")[:_BIGGEST])
    if not prompt:
        return None
    known = {key: head[key] for key in _KEPT if key in head}
    for key in ("tools", "disallowedTools"):
        if isinstance(known.get(key), str):
            known[key] = [one.strip() for one in known[key].split(",")]
    return json.dumps({name: {"description": name, **known, "prompt": prompt}}, default=str)


def _split(document: str) -> tuple[dict[str, Any], str]:
    first, mark, rest = document.partition("---\n")
    head, end, body = rest.partition("\n---")
    if first.strip() or not mark or not end:
        return {}, document.strip()
    with suppress(yaml.YAMLError):
        return as_object(yaml.safe_load(head)), body.lstrip("-").strip()
    return {}, body.lstrip("-").strip()
