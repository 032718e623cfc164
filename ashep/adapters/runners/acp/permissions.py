"""What an agent asks leave for, in the words of the user's rules, and what these and the access say to it.

An agent says itself what kind of tool it is that it wants to use; what it does not ask for, nobody is asked about here.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ashep.adapters.runners.foreign_json import as_list, as_object
from ashep.core.facts.requests import MOST, cut
from ashep.core.policy.permissions import PROTECTED, SECRETS, fitting, judge, matches
from ashep.core.policy.policies import PermissionRule

WRITES = frozenset({"edit", "delete", "move"})
"""Kinds of tools that change files."""

_READS = frozenset({"read", "search", "think", "fetch"})
_TOOLS = {"execute": "bash", "search": "grep", "fetch": "webfetch", "read": "read", "think": "think"} | dict.fromkeys(
    WRITES, "edit"
)
_PATHS = ("filePath", "filepath", "file_path", "path", "abs_path", "notebook_path")
_CALL = re.compile(rf"(?:^|[\s;&|(`$/'\"\\])(?:{'|'.join(PROTECTED)})(?=[\s'\";&|)]|$)")
_READING = re.compile(r"bd (?:show|list|search|help|--help)\b[^;&|`$<>\n]*|ashep verify\b[^;&|`$<>\n]*")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool that an agent asks leave for."""

    kind: str
    tool: str
    """By the name that rules call it."""
    patterns: tuple[str, ...]
    detail: str
    outside: str = ""
    """A path that is not in the session's folder, if there is one."""


def read_tool_use(call: Mapping[str, Any], directory: Path) -> ToolUse:
    """Read the `toolCall` of a request, with all that was told of that call before."""
    kind, inputs = str(call.get("kind") or "other"), as_object(call.get("rawInput"))
    paths = [as_object(one).get("path") for one in as_list(call.get("locations"))[:MOST]]
    paths += [inputs.get(name) for name in _PATHS]
    files = dict.fromkeys(os.path.realpath(directory / one) for one in paths if isinstance(one, str) and one)
    home = os.path.realpath(directory)
    strangers = [one for one in files if not f"{one}/".startswith(f"{home}/")]
    patterns = tuple(cut(one if one in strangers else os.path.relpath(one, home)) for one in files)
    title = str(call.get("title") or "").strip().lower().split(" ")[0]
    tool = _TOOLS.get(kind) or (title if re.fullmatch(r"[a-z_][\w-]{0,60}", title) else "other")
    texts = [str(inputs[name]) for name in ("command", "url", "query") if isinstance(inputs.get(name), str)]
    if kind == "execute":  # it is named by its command; where that works is no path that it is for
        patterns, strangers = (), []
    patterns = patterns or tuple(cut(one) for one in texts[:1])
    detail = cut(texts[0]) if texts else next(iter(patterns), cut(str(call.get("title") or "")))
    return ToolUse(kind, tool, patterns[:MOST], detail, cut(strangers[0]) if strangers else "")


def verdict(
    asks: ToolUse, access: Literal["read", "write"], permissions: Sequence[PermissionRule]
) -> tuple[Literal["allow", "deny", "ask"], str]:
    """What is said to it, and why: by the access first, then by the first of the user's rules that fits."""
    if asks.outside:
        return "deny", f"no agent leaves its folder: {asks.outside}"
    if asks.kind == "switch_mode":
        return "deny", "the mode of this session stays as it is"
    if access == "read" and asks.kind not in _READS:
        return "deny", "this session may only read"
    secret = asks.kind == "read" and any(matches(one, file) for one in SECRETS for file in asks.patterns)
    if access == "read" and secret:
        return "deny", "a session that reads has no .env files"
    if asks.tool == "bash" and _CALL.search(asks.detail) and not _READING.fullmatch(asks.detail.strip()):
        return "deny", "issues are Agent Shepherd's to change"
    action, rule = judge([*fitting(permissions, writes=access == "write")], asks.tool, asks.patterns)
    if action is not None and rule is not None:
        return action, f"the rule {rule.tool} {rule.pattern}: {rule.action}"
    unknown = asks.kind not in _READS and asks.tool not in ("edit", "bash")
    blind = not asks.patterns and asks.kind in ("read", "execute", *WRITES)
    return ("ask", "no rule says it") if secret or unknown or blind else ("allow", "its access has it")
