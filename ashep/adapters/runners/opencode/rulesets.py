"""What a session of ours may do: the rulesets that go with `POST /session`.

How OpenCode 1.18.33 judges, as tried on the real server (tests/test_opencode.py does it again): the last rule that
matches wins, and a session's rules come after the server's and the agent's own; `*` matches any text, and a pattern
that ends in ` *` matches the bare word as well; a tool whose last rule is a deny of `*` is not offered to the model.

Bash is judged by the text of each *command* in the line, redirections of that command included, and by nothing else.
What stands around commands is not seen: `cat a | grep b > c`, `{ cat a; } > c`, `cd . > c` and a bare `> c` all write c
although only `cat` and `grep` are allowed, and `export GIT_EXTERNAL_DIFF=…` is no command at all. So **no** list of
allowed commands keeps a reader from writing, and the list for `read` sessions is empty: they have no bash.

In a `write` session the rules against `bd` and `ashep` stop an agent that means no harm; `b''d close` passes. What
protects issues are guarded writes and that an agent's bd runs under an actor of its own (`BEADS_ACTOR`).
"""

from collections.abc import Sequence
from typing import Literal

from ashep.core.policy.permissions import (
    CHANGES,
    PROTECTED,
    QUESTION,
    READS,
    SECRETS,
    SUBAGENTS,
    asks_of_tools,
    calls_of,
    deciding,
    fitting,
)
from ashep.core.policy.policies import PermissionRule

Rule = dict[str, str]
_READER_TOOLS = ("read", "glob", "grep", "list", "lsp", "skill", "todoread", "todowrite")
_WEB = ("webfetch", "websearch")


def _rules(action: str, permission: str, *patterns: str) -> list[Rule]:
    return [{"permission": permission, "pattern": pattern, "action": action} for pattern in patterns or ("*",)]


def _issues_are_ours(permissions: Sequence[PermissionRule]) -> list[Rule]:
    """Of ashep and bd only what reads, where the user's rules have nothing against it."""
    said = {pattern: deciding(permissions, "bash", pattern) for pattern in READS}
    reads = [rule for pattern, one in said.items() for rule in _rules(one.action if one else "allow", "bash", pattern)]
    denied = not any(one is None or one.action != "deny" for one in said.values())
    calls = [call for one in PROTECTED for call in calls_of(one, f"*=* {one} *", f"eval *{one} *")]
    return [
        *_rules("deny", "bash", *calls),
        *([] if denied else reads),
        *_rules("deny", "bash", "bd ready *--claim*"),
    ]


def _bounds(access: Literal["read", "write"], permissions: Sequence[PermissionRule]) -> list[Rule]:
    """What no rule of the user's is above of: nobody leaves the folder (fact 6), and a question is for ashep to answer.

    A subagent has the denials of its parent's rules, and no more: where something is to be asked, there is none.
    """
    rule = deciding(permissions, QUESTION, "*")
    if rule is not None:
        question = _rules("deny" if rule.action == "deny" else "allow", QUESTION)
    else:  # a writer's is as OpenCode's configuration has it
        question = _rules("allow", QUESTION) if access == "read" else []
    alone = _rules("deny", SUBAGENTS) if asks_of_tools(permissions) else []
    return [*alone, *question, *_rules("deny", "external_directory")]


def ruleset(
    access: Literal["read", "write"], permissions: Sequence[PermissionRule] = (), *, web: bool = True
) -> list[Rule]:
    """The rules of a session with this access, and with the user's rules, of which the first that fits decides.

    It is what a session is held to; no more than its agent may do is given to it (`narrowing`). A writer keeps the
    rules of the user's OpenCode configuration, as far as they are not made stricter here. A reader has at most the
    tools listed above, and those that a rule names: others, as those of MCP servers, might write.
    `web`: a reader may fetch pages although no rule says so; what they say, and what is asked of them, is not bounded.
    """
    users = [*fitting(permissions, writes=access == "write")]
    own = [rule for user in reversed(users) for rule in _rules(user.action, user.tool, user.pattern)]
    if access == "write":
        return [*own, *_issues_are_ours(users), *_bounds(access, users)]
    readable = [rule for tool in (*_READER_TOOLS, *(_WEB if web else ())) for rule in _rules("allow", tool)]
    # once more and for all its uses, or a user's `deny bash "npm *"` would have bash offered, and a bare `> c` pass
    never = [rule for tool in CHANGES for rule in _rules("deny", tool)]
    return [*_rules("deny", "*"), *readable, *own, *never, *_rules("deny", "read", *SECRETS), *_bounds(access, users)]
