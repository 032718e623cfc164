"""What a session of ours may do: the rulesets that go with `POST /session`.

The last rule that matches wins, and a session's rules come after the server's and the agent's own. `*` matches any
text, and a pattern that ends in ` *` matches the bare word as well. For bash the pattern is compared with the text of
each command in the line, redirections included.
"""

from typing import Literal

Rule = dict[str, str]


def _rules(action: str, permission: str, *patterns: str) -> list[Rule]:
    return [{"permission": permission, "pattern": pattern, "action": action} for pattern in patterns or ("*",)]


_BD_READS = ("bd show *", "bd list *")

_NEVER = [
    *_rules("deny", "question"),
    *_rules("deny", "external_directory"),
    *_rules("deny", "doom_loop"),
    *_rules("deny", "plan_enter"),
    *_rules("deny", "plan_exit"),
]


def ruleset(access: Literal["read", "write"]) -> list[Rule]:
    """The rules of a session with this access."""
    return [*_NEVER]
