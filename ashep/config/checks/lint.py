"""What is allowed in a block of checks and yet most likely not meant: warnings, each with its line and key.

A check that cannot fail is worse than none: an issue closes by it, and everybody believes in what it says.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from ashep.config.checks.parser import KEY, ParsedCriteria, examine, fenced
from ashep.config.findings import Finding
from ashep.core.policy.checks import (
    Check,
    CodePatternCheck,
    Criteria,
    HttpRequestCheck,
    ManualCheck,
    TestPassCheck,
)

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_ALWAYS = frozenset({"true", ":", "echo", "printf", "sleep"})
"""Programs that end with 0 whatever is the case."""
_SWALLOWED = re.compile(r"(?:\|\||;|&)\s*(?:true|:|exit\s+0|echo\b[^;&|]*+)\s*$")
_ANYTHING = frozenset(
    {".", ".*", ".*?", ".+", "^", "$", "^.*$", "^.*", ".*$", r"\s*", r"\S*", r"\w*", "(?:)", "()", "|"}
)
"""Patterns that are found in any line, or in any that is not empty."""
_SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
_MISSPELT = re.compile(r"^[\"']?(check|cheks|checs|criteria|verification)[\"']?[ \t]*:", re.M)

Said = tuple[str, str, tuple[str | int, ...]]
"""A code, what is said, and the path to where."""


def lint(text: str, where: str, types: Collection[str] = ()) -> ParsedCriteria:
    """Read a block of checks with all that is wrong and all that is doubtful; nothing is raised."""
    reading = examine(text, where, types)
    if reading.criteria is not None and reading.root is not None:
        for code, message, path in _doubts(reading.criteria):
            place = reading.root.locate(path)
            reading.findings.append(Finding(code, where, place.line, place.key, message, "warning"))
    reading.findings += list(_strays(text, reading))
    reading.findings.sort(key=lambda finding: (finding.severity != "error", finding.line or 0))
    return reading


def _doubts(criteria: Criteria) -> Iterator[Said]:
    checks = criteria.checks
    if not checks:
        yield "no-checks", "the list is empty: nothing is checked", (KEY,)
    elif all(isinstance(check, ManualCheck) for check in checks):
        yield "only-manual", "a person answers all of these: no machine finds out whether the work is done", (KEY,)
    for place, check in enumerate(checks):
        if not check.description.strip():
            message = "without a description neither people nor agents read what it is for"
            yield "no-description", message, (KEY, place)
        for code, message, path in _of_check(check):
            yield code, message, (KEY, place, "verify", *path)


def _of_check(check: Check) -> Iterator[Said]:
    match check:
        case CodePatternCheck():
            yield from _of_pattern(check)
        case TestPassCheck():
            yield from _of_command(check)
        case HttpRequestCheck():
            yield from _of_request(check)
        case _:
            return


def _of_pattern(check: CodePatternCheck) -> Iterator[Said]:
    verify = check.verify
    if verify.must == "not_match":
        for key in ("min", "max"):
            if key in verify.model_fields_set:
                yield "pointless-key", "counts only with `must: match`", (key,)
        return
    if verify.max is not None and verify.max < verify.min:
        yield "cannot-pass", f"max is less than min ({verify.min}): no number of lines is both", ("max",)
    if verify.min == 0 and verify.max is None:
        yield "cannot-fail", "any number of lines is at least 0: it passes whatever is there", ("min",)
    elif verify.pattern in _ANYTHING and verify.max is None:
        yield "cannot-fail", "this is found in any file that has a line", ("pattern",)


def _of_command(check: TestPassCheck) -> Iterator[Said]:
    argv, fine = check.verify.command, check.verify.expect_exit_code == 0
    name = PurePosixPath(argv[0]).name
    if fine and name in _ALWAYS:
        yield "cannot-fail", f"{name} ends with 0 whatever is the case", ("command",)
    if name in _SHELLS and len(argv) > 1 and re.fullmatch(r"-\w*c", argv[1]):
        if fine and len(argv) > 2 and _SWALLOWED.search(argv[2].strip()):
            yield "cannot-fail", "the last part of this ends with 0 whatever came before it", ("command",)
        message = "a shell tells only of the last part of what it is given: name the program and its arguments"
        yield "shell", message, ("command",)


def _of_request(check: HttpRequestCheck) -> Iterator[Said]:
    verify = check.verify
    for name in verify.headers:
        if name.lower() in _SECRET:
            yield "secret", "issues are read by people and agents: no real secret belongs here", ("headers", name)
    if verify.service is None:
        message = (
            "it asks what runs at `verification.service_url`, whatever work that is: start a `service` of the checkout"
        )
        yield "no-service", message, ("service",)
    elif verify.service.port is not None:
        message = "a port of its own can be taken where several issues are checked at once: leave it out"
        yield "fixed-port", message, ("service", "port")


def _strays(text: str, reading: ParsedCriteria) -> Iterator[Finding]:
    """Find blocks that were most likely meant as checks, and are read by nobody."""
    taken = {block.first for block in reading.blocks}
    for block in fenced(text):
        if block.first in taken:
            continue
        if block.looks_like_checks and block.language not in ("yaml", "yml", "json"):
            told = f"`{block.language}`" if block.language else "nothing"
            message = f"a block of checks is called yaml or json; this one is called {told}, and is not read"
            yield Finding("stray-block", reading.where, block.first, None, message, "warning")
        elif (
            block.language in ("yaml", "yml", "json") and not reading.blocks and (found := _MISSPELT.search(block.text))
        ):
            message = f"at the top of a block of checks stands `{KEY}`, and not `{found[1]}`: this one is not read"
            yield Finding("stray-block", reading.where, block.first, None, message, "warning")
