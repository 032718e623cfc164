"""Put a block of checks into an issue's acceptance criteria: in the place of the one that is there, else at the end."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from ashep.config.checks.parser import KEY, Block, Wrong, examine, fenced, read_block, wrong_pattern
from ashep.config.findings import ConfigErrors, Finding
from ashep.core.policy.checks import Criteria, hash_of


@dataclass(frozen=True, slots=True)
class WrittenChecks:
    """A list of checks as somebody wrote it."""

    text: str
    language: str
    """yaml or json."""
    criteria: Criteria


def read_given(text: str, where: str, types: Collection[str] = (), wrong: Wrong = wrong_pattern) -> WrittenChecks:
    """Read a file with `checks` at its top, YAML or JSON, without a fence. Raises `ConfigErrors` with every problem.

    A file in which a fenced block stands is read as an issue's acceptance criteria are: its block is taken.
    """
    text = text if text.endswith("\n") else text + "\n"
    reading = examine(text, where, types, wrong)
    if reading.blocks:
        block = reading.blocks[0]
    else:
        is_json = where.endswith(".json") or text.lstrip().startswith("{")
        block = Block(0, text.count("\n") + 1, "json" if is_json else "yaml", text)
        read_block(block, reading, types, wrong)
    if not reading.blocks and not reading.findings:
        reading.wrong("missing-key", f"the key `{KEY}` is missing at the top; it holds the list of checks", 1, KEY)
    if reading.findings or reading.criteria is None:
        raise ConfigErrors(reading.findings)
    return WrittenChecks(block.text, block.language, reading.criteria)


def _read_before(pattern: str) -> None:
    """What is put was read, its patterns too; what it takes the place of does not matter."""


def put(acceptance: str, given: WrittenChecks, where: str, types: Collection[str] = ()) -> str:
    """Give the acceptance criteria with these checks, and every other word as it was.

    Raises `ConfigErrors` where it is not clear what is to be replaced: there are several blocks, or one without an end.
    """
    reading = examine(acceptance, where, types, _read_before)
    unclear = [finding for finding in reading.findings if finding.code == "several-blocks"]
    unclear += [
        Finding("open-block", reading.where, block.first, None, "a block begins here and does not end; close it first")
        for block in fenced(acceptance)
        if block.last is None
    ]
    if unclear:
        raise ConfigErrors(unclear)
    if reading.blocks:
        old = reading.blocks[0]
        lines = acceptance.split("\n")
        assert old.last is not None  # one without an end is refused
        new = "\n".join([*lines[: old.first - 1], *_fenced(given, old.indent), *lines[old.last :]])
    else:
        gap = "" if not acceptance or acceptance.endswith("\n\n") else "\n" if acceptance.endswith("\n") else "\n\n"
        new = acceptance + gap + "\n".join([*_fenced(given, ""), ""])
    read = examine(new, where, types, _read_before)
    assert read.criteria is not None, "what was read from its file is read in the text, too"
    assert hash_of(read.criteria) == hash_of(given.criteria), "and it says the same there"
    return new


def _fenced(given: WrittenChecks, indent: str) -> list[str]:
    """Give the lines of a block; its fence is longer than any that stands inside."""
    longest = max((len(run) for run in re.findall(r"`+", given.text)), default=0)
    fence = "`" * max(3, longest + 1)
    inside = given.text.removesuffix("\n").split("\n")
    return [f"{indent}{line}" if line else line for line in (f"{fence}{given.language}", *inside, fence)]
