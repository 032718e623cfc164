"""What files of OpenCode's configuration ask for that nobody answers at night, and the plugins that they name."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ashep.actions.security import Line
from ashep.core.policy.permissions import impossible, judge
from ashep.core.policy.policies import PermissionRule, Policies
from ashep.core.policy.settings import Settings
from ashep.core.text import clean

_NAMES = ("opencode.json", "opencode.jsonc")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST = 1024 * 1024


def describe_files(project: Path, settings: Settings, policies: Policies | None, home: Path) -> list[Line]:
    """Say what the project's files and the user's ask for, with the rule to add, and name plugins. Blocks."""
    phases = [phase for policy in (policies.policies.values() if policies else ()) for phase in policy.phases]
    rules, lines = [*settings.permissions, *(rule for phase in phases for rule in phase.permissions)], list[Line]()
    folders = (project, project / ".opencode", home / ".config" / "opencode")
    for file in (folder / name for folder in folders for name in _NAMES):
        if (content := _read(file)) is None:
            continue
        for tool, pattern in sorted({*_asks(content)}):
            if judge(rules, tool, (pattern,))[0] is None:
                lines.append(_asked(file, tool, pattern))
        if plugins := [clean(str(one))[:100] for one in _list(content.get("plugin"))]:
            off = settings.isolated and settings.agents.sandbox != "none" and not settings.agents.plugins
            how = "off in sandboxes" if off else "the server loads them; for those of npm its registry must answer"
            remedy = "`agents: {plugins: true}` lets them run there" if off else ""
            lines.append(Line("ok", "plugins", f"{file} names {', '.join(plugins)}: {how}", remedy))
    return lines


def _asked(file: Path, tool: str, pattern: str) -> Line:
    about = f"{clean(tool)} `{clean(pattern)}`"[:200]
    why = f"{file} asks a person about {about}: at night nobody answers OpenCode, and what no rule allows is denied"
    rule = json.dumps({"tool": tool, "pattern": pattern, "action": "allow"}, ensure_ascii=False)
    remedy = f"to allow it add to config.yaml, or to a phase: `permissions: [{rule}]`; `ask` asks you on the issue"
    return Line("warning", "permissions", why, remedy)


def _read(file: Path) -> Mapping[str, Any] | None:
    """Read a file as OpenCode does, with comments and commas at an end; None: it is not there, or cannot be used."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(_MOST)
        plain = _COMMENT.sub(lambda found: found[1] or " ", text)
        content = json.loads(_COMMA.sub(lambda found: found[1] or "", plain))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", content) if isinstance(content, dict) else None


def _asks(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    agents = content.get("agent")
    for holder in (content, *(cast("dict[str, Any]", agents).values() if isinstance(agents, dict) else ())):
        said = cast("dict[str, Any]", holder).get("permission") if isinstance(holder, dict) else None
        tools = {"*": said} if said == "ask" else cast("dict[str, Any]", said) if isinstance(said, dict) else {}
        for tool, action in tools.items():
            patterns = cast("dict[str, Any]", action) if isinstance(action, dict) else {"*": action}
            for pattern, word in patterns.items():
                if word == "ask" and tool and pattern and _may_be_allowed(tool, pattern):
                    yield tool, pattern


def _may_be_allowed(tool: str, pattern: str) -> bool:
    try:
        return impossible(PermissionRule(tool=tool, pattern=pattern, action="allow")) is None
    except ValueError:  # no word that a rule can have
        return False


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
