"""The checks that only look at files of the commit: before any program of the candidate has run."""

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from ashep.adapters.system import programs
from ashep.adapters.verifier.program_run import CHILDREN, python
from ashep.core.facts.delivery import Cause
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.checks import CodePattern, FileExists, Manual
from ashep.core.text import clean
from ashep.errors import ProgramTimedOut
from ashep.ports.verifier import CheckFinding

_READING = 20.0  # seconds for the patterns of an issue, beyond those that their process gives itself

_LARGEST = 64 * 1024 * 1024  # bytes of a file in which texts are looked for


async def file_exists(tree: Path, wanted: FileExists) -> CheckFinding:
    """Look for a file, and for texts in it."""
    return await to_thread.run_sync(_file_exists, tree, wanted)


def _file_exists(tree: Path, wanted: FileExists) -> CheckFinding:
    opened = _open(tree, wanted.path)
    if isinstance(opened, CheckFinding):
        return opened
    with open(opened, "rb") as file:
        if not wanted.contains:
            return pass_check(f"{wanted.path} is there")
        if os.fstat(file.fileno()).st_size > _LARGEST:
            return report_error(f"{wanted.path} is larger than {_LARGEST // 1024**2} MiB: it is not searched")
        data = file.read()
    missing = [text for text in wanted.contains if text.encode(errors="replace") not in data]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        return fail_check(f"{wanted.path} is there, but does not hold {_short(missing[0])}{more}")
    number = len(wanted.contains)
    return pass_check(f"{wanted.path} is there, and holds {'the text' if number == 1 else f'all {number} texts'}")


def _open(tree: Path, path: str) -> int | CheckFinding:
    """Open a regular file beneath a folder, one name after the other, so that no link is ever followed."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names:
        return report_error(f"{path} is no path of a file beneath the checkout")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    at = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for place, name in enumerate(names):
            walked = "/".join(names[: place + 1])
            try:
                mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
            except (FileNotFoundError, NotADirectoryError):
                return fail_check(f"{path} is not there")
            if stat.S_ISLNK(mode):
                return fail_check(f"{walked} is a link: links are not followed")
            last = place == len(names) - 1
            if last and not stat.S_ISREG(mode):
                return fail_check(f"{path} is a folder; expected a file")
            if not last and not stat.S_ISDIR(mode):
                return fail_check(f"{path} is not there: {walked} is a file")
            at, above = os.open(name, flags, dir_fd=at), at
            os.close(above)
        return os.dup(at)
    finally:
        os.close(at)


async def code_pattern(tree: Path, wanted: CodePattern) -> CheckFinding:
    """Count the lines in which a pattern is found, in a process that is ended when it takes too long."""
    order = {"root": str(tree), "glob": wanted.glob, "pattern": wanted.pattern}
    try:
        done = await programs.run(
            [*python(), CHILDREN / "grep.py"],
            cwd=tree,
            env={},
            timeout=wanted.timeout.total_seconds(),
            stdin=json.dumps(order).encode(),
        )
    except ProgramTimedOut:
        return report_error(
            f"the search for {_short(wanted.pattern)} had not ended after {format_duration(wanted.timeout)}"
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return report_error(
            f"the search ended with exit code {done.returncode}", clean(done.stderr.decode(errors="replace"))
        )
    if "wrong" in found:
        return report_error(found["wrong"])
    return _judged(wanted, found["count"], found["files"], "\n".join(found["shown"]))


async def ask_person(tree: Path, question: Manual) -> CheckFinding:
    """Leave a question to a person."""
    return CheckFinding("skipped", "a person is asked")


async def wrong_patterns(patterns: Sequence[str]) -> dict[str, str]:
    """Say which patterns are no regular expressions, and why, in a process that is ended when they take too long."""
    asked = list(dict.fromkeys(patterns))
    argv = [*python(), CHILDREN / "regex_lint.py"]
    stdin = json.dumps(asked).encode()
    try:
        done = await programs.run(argv, cwd=CHILDREN, env={}, timeout=_READING, stdin=stdin)
        said: list[str | None] = json.loads(done.stdout)
    except (ProgramTimedOut, ValueError):
        return dict.fromkeys(asked, "it cannot be read within the time and memory that there is for that")
    return {pattern: why for pattern, why in zip(asked, said, strict=True) if why is not None}


def _judged(wanted: CodePattern, count: int, files: int, where: str) -> CheckFinding:
    lines = f"{count or 'no'} line{'' if count == 1 else 's'} match{'es' if count == 1 else ''}"
    said = f"{lines} in {files} file{'' if files == 1 else 's'} of {wanted.glob}"
    if wanted.must == "not_match":
        return fail_check(f"{said}; expected none", where) if count else pass_check(f"{said}, as expected", where)
    if count < wanted.min:
        return fail_check(f"{said}; expected at least {wanted.min}", where)
    if wanted.max is not None and count > wanted.max:
        return fail_check(f"{said}; expected at most {wanted.max}", where)
    return pass_check(said, where)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")


def pass_check(message: str, output: str = "") -> CheckFinding:
    """It is as expected."""
    return CheckFinding("passed", message, output)


def fail_check(message: str, output: str = "", cause: Cause = "") -> CheckFinding:
    """It is otherwise than expected."""
    return CheckFinding("failed", message, output, cause)


def report_error(message: str, output: str = "", cause: Cause = "") -> CheckFinding:
    """It could not run, which proves nothing."""
    return CheckFinding("error", message, output, cause)
