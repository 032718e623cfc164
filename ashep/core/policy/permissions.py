"""Rules about tools: which one decides, and which ones a configuration cannot have (docs/decisions/0013)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Literal

from ashep.core.policy.policies import PermissionRule

Action = Literal["allow", "deny", "ask"]

QUESTION = "question"
"""The tool by which an agent asks; as a rule's tool it can be asked or denied."""

SUBAGENTS = "task"
"""The tool that starts a subagent. OpenCode hands it the denials of its parent's rules and nothing else."""

JUDGED_AS = dict.fromkeys(("write", "patch", "apply_patch", "multiedit"), "edit")
"""Tools that OpenCode judges by the name of another."""

CHANGES = ("bash", "edit", SUBAGENTS)
"""What a `read` phase cannot have in any form: no list of commands keeps a reader from writing."""

SECRETS = ("*.env", "*.env.*")
"""Files that a `read` phase cannot read."""

PROTECTED = ("bd", "ashep")
"""Programs that no agent may call, but for bd's reading commands and `ashep verify`, which writes nothing."""

READS = ("bd show *", "bd list *", "bd ready *", "bd search *", "bd help *", "bd --help", "ashep verify *")
"""Calls of theirs that only read."""

_WRAPPERS = ("env", "command", "exec", "nohup", "time", "timeout", "nice", "setsid", "sudo", "xargs")
_SHELLS = ("bash", "sh", "zsh", "dash")
_LONGEST, _STARS, _MOST = 200, 6, 6
"""Characters and `*` of two patterns, and patterns common to them, above which one of the two stands for all that."""


def calls_of(program: str, *others: str) -> list[str]:
    """Give the patterns of a line that calls a program, also by another one or in a shell, and these `others`."""
    wrapped = [f"{wrapper}{more} {program} *" for wrapper in _WRAPPERS for more in ("", " *")]
    scripts = [f"{shell} -*c *{program} *" for shell in _SHELLS]
    plain = [f"{program} *", f"*/{program} *", f'"{program}" *', f"'{program}' *", f"\\{program} *"]
    return [*plain, *others, *wrapped, *scripts]


@lru_cache(4096)
def _matcher(pattern: str, character: str = ".") -> re.Pattern[str]:
    """OpenCode's patterns: `*` is any text, `?` one character; one that ends in ` *` matches the bare word, too.

    What stands between two stars is looked for from the left, and the first place serves: no text makes that slow.
    """
    bare = pattern.removesuffix(" *")
    wild = {"?": character, "\\": "/"}
    first, *rest = ("".join(wild.get(char, re.escape(char)) for char in part) for part in re.split(r"\*+", bare))
    end = r"(?: .*)?\Z" if bare != pattern else r"\Z"
    if not rest:
        return re.compile(first + end, re.DOTALL)
    *middle, last = rest
    return re.compile(first + "".join(f"(?>.*?{text})" for text in middle) + f"(?>.*?{last}{end})", re.DOTALL)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of a rule fits a text."""
    return _matcher(pattern).fullmatch(text.replace("\\", "/")) is not None


def _alternatives(pattern: str) -> tuple[str, ...]:
    pattern = pattern.replace("\\", "/")
    return (pattern, pattern.removesuffix(" *")) if pattern.endswith(" *") else (pattern,)


def expression(pattern: str) -> str:
    """The same as a regular expression, for a program that judges without any of this."""
    return f"(?s:{_matcher(pattern).pattern})"


def covers(pattern: str, other: str) -> bool:
    """Whether a pattern fits all that another one fits; never True where it does not."""
    return all(_matcher(pattern, "[^*]").fullmatch(text) for text in _alternatives(other))


@lru_cache(4096)
def common(pattern: str, other: str) -> frozenset[str]:
    """Patterns that fit whatever both fit, and as little else as can be; empty: nothing fits both."""
    for one, two in ((pattern, other), (other, pattern)):
        if not any(character in one for character in "*?"):
            return frozenset({one} if matches(two, one) else ())
    if len(pattern) + len(other) > _LONGEST or (pattern + other).count("*") > _STARS:
        return frozenset({pattern})
    pairs = product(_alternatives(pattern), _alternatives(other))
    found = frozenset[str]().union(*(_common(*pair) for pair in pairs))
    return found if len(found) <= _MOST else frozenset({pattern})


@lru_cache(65536)
def _common(one: str, two: str) -> frozenset[str]:
    """The same of patterns whose ` *` at the end is nothing special. More than are kept become one that fits more."""
    if not one or not two:
        return frozenset({""} if set(one + two) <= {"*"} else ())
    if one[0] == "*" == two[0]:
        found = {f"*{rest}" for rest in _common(one[1:], two) | _common(one, two[1:])}
    elif one[0] == "*":
        found = _common(one[1:], two) | {two[0] + rest for rest in _common(one, two[1:])}
    elif two[0] == "*":
        found = _common(two, one)
    elif one[0] == two[0] or "?" in (one[0], two[0]):
        first = two[0] if one[0] == "?" else one[0]
        found = {first + rest for rest in _common(one[1:], two[1:])}
    else:
        found = set[str]()
    return frozenset(found) if len(found) <= _MOST else frozenset({one})


def deciding(rules: Iterable[PermissionRule], tool: str, text: str) -> PermissionRule | None:
    """The first rule that fits a tool and what it is to be used for."""
    return next((rule for rule in rules if matches(rule.tool, tool) and matches(rule.pattern, text)), None)


def judge(
    rules: Sequence[PermissionRule], tool: str, patterns: Sequence[str]
) -> tuple[Action | None, PermissionRule | None]:
    """What the rules say to a request, and which of them: the strictest word on any of its patterns.

    None: they do not say it of all of them, so that it was OpenCode's own configuration that asked.
    """
    found = [deciding(rules, tool, pattern) for pattern in patterns or ("*",)]
    for action in ("deny", "ask"):
        strict = next((rule for rule in found if rule is not None and rule.action == action), None)
        if strict is not None:
            return action, strict
    first = found[0]
    return ("allow", first) if first is not None and all(found) else (None, None)


def may_ask(rules: Iterable[PermissionRule]) -> bool:
    """Whether an agent may use the question tool: it may where no rule denies it."""
    rule = deciding(rules, QUESTION, "*")
    return rule is None or rule.action != "deny"


def asks_of_tools(rules: Iterable[PermissionRule]) -> bool:
    """Whether some use of a tool is asked about. A subagent would not be: such a session has none."""
    return any(rule.action == "ask" and rule.tool not in (QUESTION, SUBAGENTS) for rule in rules)


def impossible(rule: PermissionRule) -> str | None:
    """Say why a rule can be in no phase; None: it can."""
    if rule.tool in JUDGED_AS:
        return f"OpenCode judges {rule.tool} as {JUDGED_AS[rule.tool]}; write `tool: {JUDGED_AS[rule.tool]}`"
    if rule.tool == QUESTION and rule.action == "allow":
        return "a question is answered, and not allowed; write `ask`, or `deny`"
    if rule.tool == QUESTION and rule.pattern != "*":
        return "a question has no pattern; remove it"
    if rule.action == "deny":
        return None
    if rule.tool == "external_directory":
        return "no agent leaves the project's folder; remove the rule"
    if rule.tool == "bash" and rule.pattern.split(" ")[0].rstrip("*").rpartition("/")[2] in PROTECTED:
        return "no agent calls ashep, or writes to the tracker, whatever a rule says; remove it"
    return None


def against_reading(rule: PermissionRule) -> str | None:
    """Say why a rule of a `read` phase would let it write, or read secrets; None: it would not."""
    if rule.action == "deny":
        return None
    if any(character in rule.tool for character in "*?"):
        return "a read phase has no tools but those that are named; name the tool"
    if rule.tool in CHANGES:
        return f"no rule about {rule.tool} keeps a reader from writing; give the phase `access: write`, or remove it"
    if rule.tool == "read" and any(matches(secret, rule.pattern) for secret in SECRETS):
        return "a read phase reads no .env files; remove the rule"
    return None


def fitting(rules: Iterable[PermissionRule], *, writes: bool) -> Iterator[PermissionRule]:
    """The rules that a phase of this access can have: those for all phases may be meant for others."""
    return (rule for rule in rules if writes or against_reading(rule) is None)
