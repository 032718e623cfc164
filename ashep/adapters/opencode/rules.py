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

from typing import Literal

Rule = dict[str, str]

_READER_TOOLS = ("read", "glob", "grep", "list", "lsp", "skill", "todoread", "todowrite", "webfetch", "websearch")
_SECRETS = ("*.env", "*.env.*")
_WRAPPERS = ("env", "command", "exec", "nohup", "time", "timeout", "nice", "setsid", "sudo", "xargs")
_SHELLS = ("bash", "sh", "zsh", "dash")
_BD_READS = ("bd show *", "bd list *", "bd ready *", "bd search *", "bd help *", "bd --help")


def _rules(action: str, permission: str, *patterns: str) -> list[Rule]:
    return [{"permission": permission, "pattern": pattern, "action": action} for pattern in patterns or ("*",)]


def _calls_of(program: str) -> list[str]:
    """Patterns of bash commands that run a program, as an agent would write them."""
    wrapped = [f"{wrapper}{more} {program} *" for wrapper in _WRAPPERS for more in ("", " *")]
    scripts = [f"{shell} -*c *{program} *" for shell in _SHELLS]
    return [
        f"{program} *",
        f"*/{program} *",
        f'"{program}" *',
        f"'{program}' *",
        f"\\{program} *",
        f"*=* {program} *",
        f"eval *{program} *",
        *wrapped,
        *scripts,
    ]


def _issues_are_ours() -> list[Rule]:
    """No ashep, and of bd only what reads."""
    return [
        *_rules("deny", "bash", *_calls_of("bd"), *_calls_of("ashep")),
        *_rules("allow", "bash", *_BD_READS),
        *_rules("deny", "bash", "bd ready *--claim*"),
    ]


def _nobody_answers() -> list[Rule]:
    """Nothing that waits for a person (facts 6, 19): the tool reports an error and the turn goes on."""
    return [*_rules("deny", "question"), *_rules("deny", "external_directory")]


def ruleset(access: Literal["read", "write"]) -> list[Rule]:
    """The rules of a session with this access.

    A writer keeps the rules of the user's configuration, as far as they are not made stricter here. A reader has
    exactly the tools listed above: others, as those of MCP servers, might write.
    """
    if access == "write":
        return [*_issues_are_ours(), *_nobody_answers()]
    readable = [rule for tool in _READER_TOOLS for rule in _rules("allow", tool)]
    return [*_rules("deny", "*"), *readable, *_rules("deny", "read", *_SECRETS), *_nobody_answers()]
