"""What a machine, or a person, checks of an issue: the language of the `checks` block in its acceptance criteria.

`ashep.config.checks.parser` finds and reads the block; `ashep.adapters.verifier` carries checks out. A phase of a
policy may have a list of them, too (`Phase.checks`).
"""

import hashlib
import re
import shlex
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, JsonValue, Tag

from ashep.core.policy.base_types import Document, Duration, Name, Span, Word

Text = Annotated[str, Field(max_length=10_000)]
"""A text that may be empty."""

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""What may be asked of a service."""


def parse_inside(value: str) -> str:
    """Read a path or glob beneath the checkout: relative, with `/`, without `..`; a ValueError says what is wrong."""
    if value.startswith(("/", "~")) or ".." in value.split("/") or "\\" in value or "\0" in value:
        raise ValueError("expected a path beneath the checkout: relative, and without ..")
    return value


Inside = Annotated[Word, AfterValidator(parse_inside)]
"""A path beneath the checkout."""

Argv = Annotated[tuple[Annotated[str, Field(max_length=4000)], ...], Field(min_length=1, max_length=200)]
"""A program and its arguments; no shell reads them."""

_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OPERATOR = re.compile(r"&&|\|\||>>|<<|[;&|<>()`\n]|\$\(")


def parse_command(value: object) -> object:
    """Split a command that is written as a text, as a shell splits words: quotes and backslashes, and nothing else.

    What only a shell executes is refused, unless it is quoted: as words of the first program `true && false` would
    be a check that cannot fail. A ValueError says what is wrong.
    """
    if isinstance(value, list | tuple):
        return tuple(cast("list[object]", value))
    if not isinstance(value, str):
        raise ValueError("a program and its arguments: a list, or a text that is split like a shell's words")
    if found := _OPERATOR.search(_QUOTED.sub("", value.strip())):
        mark = "a line break" if found[0] == "\n" else f"`{found[0]}`"
        raise ValueError(
            f"a command without {mark}, which only a shell reads, and none does: quote it, or make two checks"
        )
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise ValueError(f"a command that a shell can split into words ({str(error).lower()})") from error


Words = Annotated[Argv, BeforeValidator(parse_command, json_schema_input_type=str | Argv)]
"""A program and its arguments, or one text that is split into them; no shell reads them."""


class Service(Document):
    """A server that a check starts for itself, and ends."""

    start: Argv
    """The program and its arguments, run in the checkout. The variable `PORT` holds the port that it is to listen on,
    and `{port}` in an argument is replaced by it."""
    ready: Annotated[str, Field(pattern=r"^/", max_length=200)] = "/"
    """The path that is asked until it answers, with whatever status below 500."""
    port: Annotated[int, Field(ge=1024, le=65535)] | None = None
    """The port; `null`: one that is free."""
    timeout: Annotated[Span, Field(le=timedelta(minutes=10))] = timedelta(seconds=30)
    """How long it may take to get ready."""


class HttpRequest(Document):
    """Ask the service that the check starts; without one the address that config.yaml names, and nothing else."""

    method: Method = "GET"
    """The method."""
    path: Annotated[str, Field(pattern=r"^/", max_length=2000)]
    """The path and query."""
    body: JsonValue = None
    """Sent as JSON, a text as it is."""
    headers: Annotated[dict[Word, Text], Field(max_length=50)] = Field(default_factory=dict)
    """Headers of the request."""
    expect_status: Annotated[int, Field(ge=100, le=599)] = 200
    """The status of the answer."""
    expect_body: JsonValue = None
    """What the answer must hold: a text anywhere in it; an object, each of whose keys the answer's JSON has with that
    value (objects in it alike); any other value the answer's JSON must be. `null`: anything."""
    service: Service | None = None
    """The service; without one `verification.service_url` of config.yaml is asked: it is not of the checkout."""
    timeout: Annotated[Span, Field(le=timedelta(minutes=10))] = timedelta(seconds=30)
    """How long the answer may take."""


class FileExists(Document):
    """Look for a file."""

    path: Inside
    """The file."""
    contains: Annotated[tuple[Annotated[Text, Field(min_length=1)], ...], Field(max_length=100)] = ()
    """Texts that must stand in it, all of them."""


class CodePattern(Document):
    """Count the lines of files in which a regular expression is found."""

    glob: Inside
    """Which files: `*` within a folder, `**` across them."""
    pattern: Annotated[str, Field(min_length=1, max_length=2000)]
    """The regular expression, as Python's `re` reads it, searched in each line."""
    must: Literal["match", "not_match"] = "match"
    """Whether such lines must be there, or must not."""
    min: Annotated[int, Field(ge=0)] = 1
    """With `match`: so many lines at least."""
    max: Annotated[int, Field(ge=0)] | None = None
    """With `match`: so many lines at most; `null`: any number."""
    timeout: Annotated[Span, Field(le=timedelta(minutes=10))] = timedelta(seconds=10)
    """How long the search may take."""


class TestPass(Document):
    """Run a program: the tests, say."""

    __test__ = False  # pytest takes what begins like this for tests

    command: Words
    """The program and its arguments, run in the checkout; a text is split like a shell's words, and run without one.
    `{base}` in an argument is replaced by the commit before any work."""
    expect_exit_code: Annotated[int, Field(ge=0, le=255)] = 0
    """The exit code."""
    timeout: Annotated[Span, Field(le=timedelta(hours=6))] = timedelta(minutes=10)
    """How long it may take."""


class Manual(Document):
    """Ask a person, in the human phase."""

    question: Annotated[str, Field(min_length=1, max_length=2000)]
    """The question."""


class _Check(Document):
    id: Name
    """Its name; no two checks of a list have the same."""
    description: Text = ""
    """What it is for, for people and agents."""


class HttpRequestCheck(_Check):
    """A request to a service that the check starts."""

    type: Literal["http_request"]
    """Which kind of check it is."""
    verify: HttpRequest
    """What is looked at."""


class FileExistsCheck(_Check):
    """A file that must be there."""

    type: Literal["file_exists"]
    """Which kind of check it is."""
    verify: FileExists
    """What is looked at."""


class CodePatternCheck(_Check):
    """A pattern that must be found, or must not."""

    type: Literal["code_pattern"]
    """Which kind of check it is."""
    verify: CodePattern
    """What is looked at."""


class TestPassCheck(_Check):
    """A program that must end as expected."""

    __test__ = False

    type: Literal["test_pass"]
    """Which kind of check it is."""
    verify: TestPass
    """What is run."""


class ManualCheck(_Check):
    """A question to a person."""

    type: Literal["manual"]
    """Which kind of check it is."""
    verify: Manual
    """What is asked."""


class OwnCheck(_Check):
    """A check of a type that the user registered (`verification.types` in config.yaml)."""

    type: Name
    """The type's name."""
    verify: dict[str, JsonValue] = Field(default_factory=dict)
    """What its class is given."""
    timeout: Duration = timedelta(minutes=10)
    """How long it may take."""


class BuiltInCheck(NamedTuple):
    """A type of checks that is built in."""

    model: type[_Check]
    static: bool = False
    """It runs nothing of the candidate's."""


CHECK_TYPES: Mapping[str, BuiltInCheck] = {
    "http_request": BuiltInCheck(HttpRequestCheck),
    "file_exists": BuiltInCheck(FileExistsCheck, static=True),
    "code_pattern": BuiltInCheck(CodePatternCheck, static=True),
    "test_pass": BuiltInCheck(TestPassCheck),
    "manual": BuiltInCheck(ManualCheck, static=True),
}
"""The types that are built in; how each is executed is in `ashep.adapters.verifier.check_runners`."""


def _kind(value: Any) -> str:
    # whatever a file may say where a check is to stand
    found: object = (
        cast("dict[str, object]", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
    )
    return found if isinstance(found, str) and found in CHECK_TYPES else "own"


Check = Annotated[
    Annotated[HttpRequestCheck, Tag("http_request")]
    | Annotated[FileExistsCheck, Tag("file_exists")]
    | Annotated[CodePatternCheck, Tag("code_pattern")]
    | Annotated[TestPassCheck, Tag("test_pass")]
    | Annotated[ManualCheck, Tag("manual")]
    | Annotated[OwnCheck, Tag("own")],
    Discriminator(_kind),
]
"""One thing that is checked."""


class Criteria(Document):
    """The block in an issue's acceptance criteria."""

    checks: Annotated[tuple[Check, ...], Field(max_length=100)] = ()
    """What is checked, in this order."""


def asks_elsewhere(check: Check) -> bool:
    """Whether a check asks a service that runs by itself: its answer holds for no tree, and for no longer than that."""
    return isinstance(check, HttpRequestCheck) and check.verify.service is None


BASE = "{base}"
"""In an argument of a program the commit before any work."""


def names_base(check: Check) -> bool:
    """Whether the answer depends on the commit before any work."""
    return isinstance(check, TestPassCheck) and any(BASE in word for word in check.verify.command)


def is_look(check: Check) -> bool:
    """Whether a check runs nothing of the candidate's."""
    return check.type in CHECK_TYPES and CHECK_TYPES[check.type].static


def passes_without_work(check: Check) -> bool:
    """Whether a project's own check is to pass whatever is worked on: its suite, say, and nothing that work is to make.

    One that looks at files, or at the change since the base, asks for work.
    """
    return not (is_look(check) or names_base(check) or asks_elsewhere(check))


def canonical(criteria: Criteria) -> str:
    """Write criteria so that equal ones have equal texts."""
    return criteria.model_dump_json(exclude_defaults=False)


def hash_of(criteria: Criteria) -> str:
    """By which criteria are known: 64 hex digits."""
    return hashlib.sha256(canonical(criteria).encode()).hexdigest()
