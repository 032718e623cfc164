"""The block of checks in an issue's acceptance criteria -> `Criteria`, or every problem with its line and key.

A block is fenced, its language is `yaml` or `json`, and at its top stands the key `checks`; the words around it are for
people and agents. It is read as the users' files are (`nodes`): no aliases, no tags, no duplicate keys, and bounded.

There is one block at most. Two would have to be joined, and then whoever adds a block behind the words of somebody
else would change what is checked without touching what they wrote; a person who reads the first would not know.
"""

import json
import re
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError

from ashep.config import yaml_tree
from ashep.config.error_messages import describe, nearest, problems
from ashep.config.findings import ConfigErrors, Finding
from ashep.config.yaml_tree import Node, YamlProblem, YamlUnreadable, shorten
from ashep.core.policy import checks as language
from ashep.core.policy.checks import Criteria

KEY = "checks"
"""What stands at the top of a block."""

MAX_BLOCK = 64 * 1024
"""Characters of a block: a hundred checks of ordinary length have room in half of it."""

MAX_BLOCKS = 20
"""Blocks of a text, `MAX_BLOCK` characters together, that are looked at because the word stands in them."""

SHORT = 4096
"""Characters of a text that is read within milliseconds."""

MAX_CHECKS = 100
"""Checks of a block."""

Wrong = Callable[[str], str | None]
"""Says what is wrong with a regular expression; None: nothing."""

Compiled = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Says of regular expressions what is wrong with those that are none, within a bounded time."""

_T = TypeVar("_T")
_LANGUAGES = ("yaml", "yml", "json")
_FENCE = re.compile(r"([ \t]*+)(`{3,}+|~{3,}+)([^`]*+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block in a text."""

    first: int
    """The line of its opening fence; the text's first line is 1."""
    last: int | None
    """The line of its closing fence; None: the text ends before."""
    language: str
    text: str
    """What stands between, without the fence's indentation; each line with its end."""
    indent: str = ""
    """The fence's."""

    @property
    def looks_like_checks(self) -> bool:
        """Whether `checks` seems to stand at its top: decides only where it cannot be read."""
        if self.text.lstrip().startswith("{"):
            return re.search(rf"[{{,]\s*[\"']?{KEY}[\"']?\s*:", self.text) is not None
        lines = [line for line in self.text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
        indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        return any(re.match(rf"[\"']?{KEY}[\"']?\s*:", line[indent:]) for line in lines)


@dataclass
class ParsedCriteria:
    """What was found in an issue's acceptance criteria."""

    where: str
    """What the text is, as findings name it in the place of a file."""
    blocks: list[Block] = field(default_factory=list[Block])
    """Those with checks."""
    criteria: Criteria | None = None
    """None: there is no block, or it is wrong."""
    root: Node | None = None
    """The block's tree, whose lines are those of the text."""
    findings: list[Finding] = field(default_factory=list[Finding])

    def wrong(self, code: str, message: str, line: int | None, key: str | None = None) -> None:
        """Keep an error."""
        self.findings.append(Finding(code, self.where, line, key, message))


def wrong_pattern(pattern: str) -> str | None:
    """Compile a pattern, which can take minutes: for those of the user's own files, and programs that do nothing else.

    It is never searched with here.
    """
    with warnings.catch_warnings(action="ignore"):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error)
    return None


async def compiled_here(patterns: Sequence[str]) -> Mapping[str, str]:
    """Compile them in this process, where it has nothing else to do."""
    return {pattern: why for pattern in patterns if (why := wrong_pattern(pattern)) is not None}


async def apart(read: Callable[[Wrong], _T], compiled: Compiled, text: str) -> _T:
    """Read checks, of a long text next to the event loop, and have patterns compiled by somebody who can be stopped."""

    async def reads(wrong: Wrong) -> _T:
        return await to_thread.run_sync(read, wrong) if len(text) > SHORT else read(wrong)

    asked = list[str]()
    found = await reads(asked.append)
    said = await compiled(asked) if asked else None
    return await reads(said.get) if said else found


def read_criteria(text: str, where: str, types: Collection[str] = (), wrong: Wrong = wrong_pattern) -> Criteria | None:
    """Find the block of checks in an issue's acceptance criteria and read it; None: there is none.

    `where` names the text in errors, whose lines are those of the text. `types` are those that the user registered.
    Raises `ConfigErrors` with every problem.
    """
    reading = examine(text, where, types, wrong)
    if reading.findings:
        raise ConfigErrors(reading.findings)
    return reading.criteria


def examine(text: str, where: str, types: Collection[str] = (), wrong: Wrong = wrong_pattern) -> ParsedCriteria:
    """Find and read the block for somebody who wants to see everything that is wrong; nothing is raised."""
    reading, left = ParsedCriteria(where), MAX_BLOCK
    for block in fenced(text):
        if KEY in block.text and block.language in _LANGUAGES:
            left -= max(len(block.text), MAX_BLOCK // MAX_BLOCKS)
            if left < 0 and len(block.text) <= MAX_BLOCK:
                message = (
                    f"`{KEY}` stands in too many blocks, or in too long ones, before this: they are not all looked at"
                )
                reading.wrong("too-large", message, block.first)
                break
            read_block(block, reading, types, wrong)
    for block in reading.blocks[1:]:
        message = f"a second block of checks; one begins on line {reading.blocks[0].first} already: join them"
        reading.wrong("several-blocks", message, block.first)
    if reading.findings:
        reading.criteria = None
    return reading


def fenced(text: str) -> Iterator[Block]:
    """Give the fenced blocks of a text in Markdown, in order; a fence inside of one is its text."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    start: tuple[int, str, str, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(lines, 1):
        if start is None:
            if found := _FENCE.fullmatch(line):
                start, inside = (number, found[1], found[2], found[3]), []
        elif len(bare := line.strip(" \t")) >= len(start[2]) and set(bare) == {start[2][0]}:
            yield _block(start, inside, number)
            start = None
        else:
            inside.append(line)
    if start is not None:
        yield _block(start, inside, None)


def _block(start: tuple[int, str, str, str], inside: list[str], last: int | None) -> Block:
    number, indent, _, words = start
    name = next(iter(words.split()), "").lower()
    plain = (line[min(len(indent), len(line) - len(line.lstrip(" \t"))) :] for line in inside)
    return Block(number, last, name, "".join(f"{line}\n" for line in plain), indent)


def read_block(block: Block, reading: ParsedCriteria, types: Collection[str], wrong: Wrong) -> None:
    """Read a block that holds the word; one in which it stands elsewhere than at the top is somebody else's."""
    if refused := _refused(block):
        if block.looks_like_checks:
            reading.blocks.append(block)
            reading.wrong(*refused, block.first)
        return
    try:
        # JSON is indented by tabs at times, and holds none inside of its texts
        text = block.text.replace("\t", " ") if block.language == "json" else block.text
        root, found = yaml_tree.read(text, above=block.first)
    except YamlUnreadable as error:
        if block.looks_like_checks:
            reading.blocks.append(block)
            _keep([error.problem], reading)
        return
    if root.child(KEY) is None:
        return
    reading.blocks.append(block)
    if block.language == "json":
        try:
            json.loads(text)  # YAML is more than JSON is: who says json means it, and other programs may read it
        except json.JSONDecodeError as error:
            found.append(YamlProblem("syntax", f"not valid JSON: {error.msg}", block.first + error.lineno))
    reading.root = root
    reading.criteria = _criteria(root, found, types, wrong)
    _keep(found, reading)


def _refused(block: Block) -> tuple[str, str] | None:
    if block.last is None:
        return "open-block", "the block that begins here does not end: close it with its fence"
    if len(block.text) > MAX_BLOCK:
        return "too-large", f"a block of checks has at most {MAX_BLOCK // 1024} KiB"
    return None


def _keep(found: list[YamlProblem], reading: ParsedCriteria) -> None:
    found.sort(key=lambda problem: (problem.line or 0, problem.code == "missing-key"))
    for problem in found:
        reading.wrong(problem.code, problem.message, problem.line, problem.key)


# --- what stands in it ------------------------------------------------------------------------------------------------


def _criteria(root: Node, found: list[YamlProblem], types: Collection[str], wrong: Wrong) -> Criteria | None:
    """Read the checks one by one, each by the model of its type, so that what is said of it is about that."""
    for key, node in root.entries.items():
        if key != KEY:
            found.append(node.problem("unknown-key", f"unknown key{nearest(key, [KEY])}"))
    checks = root.entries[KEY]
    if not isinstance(checks.value, list):
        found.append(_expected("a list of checks", checks))
        return None
    if len(checks.value) > MAX_CHECKS:
        found.append(checks.problem("wrong-value", f"expected at most {MAX_CHECKS} checks"))
        return None
    read = [_check(node, found, types, wrong) for node in checks.value]
    _refuse_twins(checks.value, found)
    return None if found else Criteria.model_validate({KEY: tuple(read)})


def _expected(what: str, node: Node) -> YamlProblem:
    return node.problem("wrong-type", f"expected {what}, found {describe(node)}")


def check_problems(checks: list[Node]) -> list[YamlProblem]:
    """Say what is wrong with a list of checks, whatever types of their own the user has registered."""
    found: list[YamlProblem] = []
    for node in checks:
        _check(node, found, None, wrong_pattern)
    _refuse_twins(checks, found)
    return found


def _check(node: Node, found: list[YamlProblem], types: Collection[str] | None, wrong: Wrong) -> BaseModel | None:
    """Read a check; `types` are those that the user registered, None: that is not known."""
    if not isinstance(node.value, dict):
        found.append(_expected("a check ({id, type, description, verify})", node))
        return None
    kind = node.value.get("type")
    known = (*language.CHECK_TYPES, *(types or ()))
    if kind is None:
        words = f"this key is missing; add it: one of {', '.join(known)}"
        found.append(node.locate(["type"]).problem("missing-key", words))
        return None
    if not isinstance(kind.value, str):
        found.append(_expected(f"one of {', '.join(known)}", kind))
        return None
    if kind.value not in known and types is not None:
        found.append(kind.problem("unknown-type", unknown_type(kind.value, types)))
        return None
    built_in = language.CHECK_TYPES.get(kind.value)
    model = built_in.model if built_in else language.OwnCheck
    try:
        # JSON's strict mode takes lists for tuples and words for durations, and converts nothing else
        check = model.model_validate_json(json.dumps(node.plain()))
    except ValidationError as error:
        found += problems(error, model, node)
        return None
    if isinstance(check, language.CodePatternCheck) and (said := wrong(check.verify.pattern)):
        found.append(node.locate(["verify", "pattern"]).problem("wrong-value", f"not a regular expression: {said}"))
    return check


def unknown_type(name: str, types: Collection[str]) -> str:
    """Say that there is no type of checks of this name."""
    words = f"unknown type {shorten(repr(name))}{nearest(name, (*language.CHECK_TYPES, *types))}"
    return f"{words}; a type of your own is registered by `verification.types` in config.yaml"


def _refuse_twins(checks: list[Node], found: list[YamlProblem]) -> None:
    first: dict[str, int] = {}
    for node in checks:
        name = node.locate(["id"])
        if not isinstance(name.value, str):
            continue
        if name.value in first:
            message = f"another check is named {describe(name)}, on line {first[name.value]}; give each its own id"
            found.append(name.problem("duplicate-id", message))
        first.setdefault(name.value, name.line)
