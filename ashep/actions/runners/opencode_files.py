"""What files of OpenCode's configuration ask for that nobody answers at night, and the plugins that they name."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ashep.actions.doctor_security import CheckLine
from ashep.adapters.runners.foreign_json import as_object
from ashep.adapters.runners.opencode.jsonc import read_jsonc
from ashep.core.policy.permissions import impossible, judge
from ashep.core.policy.policies import PermissionRule, Policies
from ashep.core.policy.settings import Settings
from ashep.core.text import clean

_MOST = 1024 * 1024


def describe_files(
    project: Path, settings: Settings, policies: Policies | None, environ: Mapping[str, str]
) -> list[CheckLine]:
    """Return what the project's files and the user's ask for, with the rule to add, and their plugins. Blocks."""
    phases = [phase for policy in (policies.policies.values() if policies else ()) for phase in policy.phases]
    rules, lines = [*settings.permissions, *(rule for phase in phases for rule in phase.permissions)], list[CheckLine]()
    folders = (project, project / ".opencode", Path(environ.get("HOME") or Path.home()) / ".config" / "opencode")
    for file in (folder / f"opencode.{suffix}" for folder in folders for suffix in ("json", "jsonc")):
        content = _read(file)
        for tool, pattern in sorted({*_list_asks(content)}):
            if judge(rules, tool, (pattern,))[0] is None and _may_be_allowed(tool, pattern):
                about = f"{clean(tool)} `{clean(pattern)}`"[:200]
                why = f"{file} asks a person about {about}: nobody answers OpenCode, and what no rule allows is denied"
                rule = json.dumps({"tool": tool, "pattern": pattern, "action": "allow"}, ensure_ascii=False)
                remedy = f"to allow it add to config.yaml, or a phase: `permissions: [{rule}]`; `ask` asks on the issue"
                lines.append(CheckLine("warning", "permissions", why, remedy))
        if isinstance(plugins := content.get("plugin"), list) and plugins:
            names = ", ".join(clean(str(plugin))[:100] for plugin in cast("list[object]", plugins))
            off = settings.isolated and settings.agents.sandbox != "none" and not settings.agents.plugins
            effect = "off in sandboxes" if off else "the server loads them; for those of npm its registry must answer"
            remedy = "`agents: {plugins: true}` lets them run there" if off else ""
            lines.append(CheckLine("ok", "plugins", f"{file} names {names}: {effect}", remedy))
    return lines


def _read(file: Path) -> Mapping[str, Any]:
    """Read a file as OpenCode does, with comments and commas at an end; empty: it is missing, or cannot be used."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return read_jsonc(opened.read(_MOST))
    except (OSError, ValueError, RecursionError):
        return {}


def _list_asks(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List the tools and patterns that a person is asked about."""
    for holder in (content, *as_object(content.get("agent")).values()):
        permission = as_object(holder).get("permission")
        for tool, action in as_object({"*": "ask"} if permission == "ask" else permission).items():
            patterns = as_object(action) or {"*": action}
            yield from ((tool, pattern) for pattern, word in patterns.items() if word == "ask" and tool and pattern)


def _may_be_allowed(tool: str, pattern: str) -> bool:
    with suppress(ValueError):  # no word that a rule can have
        return impossible(PermissionRule(tool=tool, pattern=pattern, action="allow")) is None
    return False
