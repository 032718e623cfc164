"""What a session may do: the tools, permissions and hooks that each of its processes is given.

How Claude Code 2.1.330 judges, as tried on the real binary (tests/claude does it again): a deny rule wins over all, an
ask rule over a hook that allows; in `acceptEdits` files of the folder may be read and changed, in `dontAsk` nothing
happens but reading and what a rule allows. What would be asked in `-p` is denied at once (facts/claude-code.md 14), and
so is it where a prompt tool is named whose other end is closed: but then the tool exists by which an agent asks, and a
`PreToolUse` hook answers it.

So a rule of the user's is judged by a hook of ours (`hook.py`), exactly as rules are judged elsewhere, and nothing of
Claude Code's own rules has to mean the same. It is run only for tools of which a rule says something, and before each
call: it refuses, asks on the issue, or leaves the call to what is allowed here. In a `write` session the hook stops an
agent that means no harm from calling `bd` and `ashep`; `b''d close` passes, as it does on other runners.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ashep.adapters.runners.claude.hook import NAMES
from ashep.adapters.runners.claude.session_store import SessionOptions
from ashep.core.policy.permissions import (
    PROTECTED,
    READS,
    SECRETS,
    calls_of,
    deciding,
    expression,
    fitting,
    matches,
    may_ask,
)
from ashep.core.policy.policies import PermissionRule

Rule = tuple[str, str, str]

WAITS = 7 * 86400
"""Seconds that a question waits for an answer, at most; the daemon's own bound comes sooner."""

_READERS = ("Glob", "Grep", "Read")
_WEB = ("WebFetch", "WebSearch")
_PLANS = ("TaskCreate", "TaskGet", "TaskList", "TaskUpdate")
_WRITERS = (*_READERS, *_WEB, *_PLANS, "Agent", "Bash", "Edit", "NotebookEdit", "Skill", "Write")
"""All that 2.1.330 offers but: what starts later or elsewhere (Cron…, Monitor, ScheduleWakeup, Workflow, …Worktree),
what talks to other agents of this account [19], and plan mode."""

_NEVER = ("ListAgents", "SendMessage")
_QUESTIONS = "AskUserQuestion"
_FILES = frozenset({"Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"})  # the mode decides about these, by place
_GATE = 60  # seconds that the daemon has to let a prompt through
_DENIED = "a rule of the project's does not allow this; go on without it"

_CLAIMS = "bd ready *--claim*"


def _issues_are_ours(users: Sequence[PermissionRule]) -> list[PermissionRule]:
    """Of bd and ashep only what reads, where the user's rules have nothing against it; they come first."""
    reads = {pattern: deciding(users, "bash", pattern) for pattern in READS}
    calls = [call for one in PROTECTED for call in calls_of(one, f"eval {one} *", f"eval * {one} *")]
    return [
        PermissionRule(tool="bash", pattern=_CLAIMS, action="deny"),
        *(
            PermissionRule(tool="bash", pattern=one, action=read.action if read else "allow")
            for one, read in reads.items()
        ),
        *(PermissionRule(tool="bash", pattern=call, action="deny") for call in calls),
    ]


_ENV_FILES = (
    PermissionRule(tool="read", pattern="*.env.example", action="allow"),
    *(PermissionRule(tool="read", pattern=one, action="ask") for one in SECRETS),
)
"""What a writer is asked about where no rule says something else, as on OpenCode."""


def rules_of(session: SessionOptions) -> list[Rule]:
    """The rules that the hook judges by, the first that fits decides; as regular expressions."""
    writes = session.access == "write"
    users = [*fitting(session.permissions, writes=writes)]
    ordered = [*_issues_are_ours(users), *users, *_ENV_FILES] if writes else users
    return [(expression(one.tool), expression(one.pattern), one.action) for one in ordered]


def tools_of(session: SessionOptions, *, web: bool) -> list[str]:
    """The tools that a session's agent is offered. `web`: a reader may fetch pages although no rule says so."""
    users = [*fitting(session.permissions, writes=session.access == "write")]
    if session.access == "write":
        offered = [*_WRITERS]
    else:
        named = [
            tool for tool in _WRITERS if any(user.tool == NAMES.get(tool) and user.action != "deny" for user in users)
        ]
        offered = sorted({*_READERS, *(_WEB if web else ()), *named})
    kept = [tool for tool in offered if not _is_denied(users, NAMES.get(tool, tool))]
    return [*kept, *([_QUESTIONS] if may_ask(users) else [])]


def _is_denied(users: Iterable[PermissionRule], tool: str) -> bool:
    first = next((user for user in users if matches(user.tool, tool)), None)
    return first is not None and (first.action, first.pattern) == ("deny", "*")


def settings_of(session: SessionOptions, tools: Sequence[str], folder: Path, gate: str) -> dict[str, Any]:
    """The settings of a process. `folder`: that of its attempt; `gate`: the address that lets its prompt through."""
    secrets = [f"Read(**/{one})" for one in SECRETS] if session.access == "read" else []
    lets_begin = {
        "type": "http", "url": gate, "timeout": _GATE, "onFailure": "block",
        "headers": {"X-Ashep-Turn": "$ASHEP_TURN", "X-Ashep-Secret": "$ASHEP_SECRET"},
        "allowedEnvVars": ["ASHEP_TURN", "ASHEP_SECRET"],
    }  # fmt: skip
    allowed = [tool for tool in tools if tool not in _FILES and tool != _QUESTIONS]
    return {
        "cleanupPeriodDays": 36500,  # else transcripts are deleted after 30 days [20]
        "skipWebFetchPreflight": True,
        "permissions": {"allow": allowed, "deny": [*_NEVER, *secrets]},
        "hooks": {"UserPromptSubmit": [{"hooks": [lets_begin]}], "PreToolUse": _before_tools(session, tools, folder)},
    }


def _before_tools(session: SessionOptions, tools: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    line = "exec " + shlex.join([sys.executable, "-I", "-S", str(folder / "hook.py")])
    command = {"type": "command", "command": line, "timeout": WAITS + 60}
    users = [*fitting(session.permissions, writes=session.access == "write")]
    # where the user's rules say nothing of a tool, ours do of these uses only: a call is cheaper then
    ours = {"Bash": [f"Bash(*{one} *)" for one in PROTECTED], "Read": [f"Read(**/{one})" for one in SECRETS]}
    found = list[dict[str, Any]]()
    for tool in tools:
        if tool == _QUESTIONS or any(
            matches(user.tool, NAMES.get(tool, tool)) and user.action != "allow" for user in users
        ):
            conditions = [""]
        else:
            conditions = ours.get(tool, []) if session.access == "write" else []
        hooks = [{**command, "if": condition} if condition else command for condition in conditions]
        found += [{"matcher": tool, "hooks": hooks}] if hooks else []
    return found


def rules_file(session: SessionOptions, turn: str) -> str:
    """What the hook reads. `turn`: what tells this attempt from all others."""
    known: Mapping[str, object] = {
        "rules": rules_of(session), "folder": session.directory, "turn": turn, "seconds": WAITS, "denied": _DENIED,
    }  # fmt: skip
    return json.dumps(known)


def mode_of(session: SessionOptions) -> str:
    """The permission mode of a session."""
    return "acceptEdits" if session.access == "write" else "dontAsk"
