"""What the users' files are written in: durations, sizes, names, and the model under all others."""

import re
from datetime import timedelta
from typing import Annotated
from unicodedata import normalize

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo

from ashep.core.policy.runner_kinds import DECLARED_KINDS

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")

_LONGEST = timedelta(days=1000)
"""Longer ones are slips of the pen, and far longer ones would leave the calendar when added to a date."""


def parse_duration(value: object) -> object:
    """Read `500ms`, `30s`, `5m`, `6h` or `7d`; anything else is a ValueError that says so."""
    if isinstance(value, timedelta):
        return value
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a duration such as 500ms, 30s, 5m, 6h or 7d")
    duration = timedelta(milliseconds=int(found[1]) * round(_UNITS[found[2]] * 1000))
    if duration > _LONGEST:
        raise ValueError(f"expected a duration of at most {_LONGEST.days}d")
    return duration


def format_duration(value: timedelta) -> str:
    """Write a duration in the largest unit that gives a whole number: the inverse of `parse_duration`."""
    ms = round(value / timedelta(milliseconds=1))
    for unit in ("d", "h", "m", "s"):
        size = round(_UNITS[unit] * 1000)
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


_SIZES = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_SIZE = re.compile(r"([1-9][0-9]{0,5})(KiB|MiB|GiB)")


class Bytes(int):
    """A size in bytes, which is written as the files write it."""

    def __str__(self) -> str:
        unit = next((unit for unit in ("GiB", "MiB") if self % _SIZES[unit] == 0), "KiB")
        return f"{self // _SIZES[unit]}{unit}"


def parse_size(value: object) -> Bytes:
    """Read `64KiB`, `16MiB` or `1GiB`; anything else is a ValueError that says so."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a size such as 64KiB, 16MiB or 1GiB")
    return Bytes(int(found[1]) * _SIZES[found[2]])


Size = Annotated[
    Bytes,
    PlainValidator(parse_size),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[1-9][0-9]{0,5}(KiB|MiB|GiB)$"}),
]

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]{1,9}(ms|s|m|h|d)$"}),
]

LEAST_KEPT = Bytes(1024**2), timedelta(days=1)
"""What is kept at the least."""


def parse_kept(value: object) -> Bytes | timedelta:
    """Read how much is kept, or how long; anything else is a ValueError that says so."""
    try:
        kept = parse_size(value)
    except ValueError:
        found = _DURATION.fullmatch(value) if isinstance(value, str) else isinstance(value, timedelta)
        if not found:
            raise ValueError("expected a size such as 256MiB or a duration such as 30d") from None
        kept = parse_duration(value)
    least = LEAST_KEPT[0] if isinstance(kept, Bytes) else LEAST_KEPT[1]
    if not isinstance(kept, Bytes | timedelta) or kept < least:  # pyright: ignore[reportOperatorIssue] - each with its own kind
        raise ValueError(f"expected at least {LEAST_KEPT[0]} or {format_duration(LEAST_KEPT[1])}")
    return kept


Kept = Annotated[
    Bytes | timedelta,
    PlainValidator(parse_kept),
    PlainSerializer(lambda kept: str(kept) if isinstance(kept, Bytes) else format_duration(kept), return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^([1-9][0-9]{0,5}(KiB|MiB|GiB)|[0-9]{1,9}(ms|s|m|h|d))$"}),
]
"""How much is kept, or how long."""

Span = Annotated[Duration, Field(gt=timedelta(0))]
"""A duration that is not zero."""

Word = Annotated[str, Field(min_length=1, max_length=200)]
"""A text that is not empty."""

PATTERN = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
"""A letter, then letters, digits, `_` or `-`: a name stands in labels, file names and command lines."""

Name = Annotated[str, Field(pattern=f"^{PATTERN}$")]
"""A phase, policy, agent, capability, verdict or tag: a letter, then letters, digits, `_` or `-`."""

Names = Annotated[tuple[Name, ...], Field(max_length=100)]
"""Some of them."""

AtOnce = Annotated[int, Field(ge=1)]
"""A cap on runs at one time."""


def file_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the keys that a file has for them: some of those are words of Python."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


class Document(BaseModel):
    """A part of a user's file: unknown keys and wrong types are errors, and nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, serialize_by_alias=True
    )


_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
r"""What a JSON schema can read, too: no `\w`, which means more there."""

BEADS = "beads"
"""The tracker that is built in."""


def parse_dotted(value: str) -> str:
    """Read `package.module:Class`; anything else is a ValueError that says so."""
    if not re.fullmatch(_PATTERN, value):
        raise ValueError("expected a class as package.module:Class")
    return value


def parse_tracker(value: str) -> str:
    """Read `beads` or `package.module:Class`; anything else is a ValueError that says so."""
    if value != BEADS and not re.fullmatch(_PATTERN, value):
        raise ValueError("expected beads, or a class as package.module:Class")
    return value


def parse_runner(value: str) -> str:
    """Read `claude`, `acp` or `package.module:Class`; anything else is a ValueError that says so."""
    if value not in DECLARED_KINDS and not re.fullmatch(_PATTERN, value):
        raise ValueError(f"expected {', '.join(DECLARED_KINDS)}, or a class as package.module:Class")
    return value


Dotted = Annotated[str, AfterValidator(parse_dotted), WithJsonSchema({"type": "string", "pattern": _PATTERN})]
"""A class of the user's."""

TrackerType = Annotated[
    str,
    AfterValidator(parse_tracker),
    WithJsonSchema({"anyOf": [{"const": BEADS, "type": "string"}, {"type": "string", "pattern": _PATTERN}]}),
]
"""The built-in tracker, or a class of the user's."""

RunnerType = Annotated[
    str,
    AfterValidator(parse_runner),
    WithJsonSchema({"anyOf": [{"enum": [*DECLARED_KINDS], "type": "string"}, {"type": "string", "pattern": _PATTERN}]}),
]
"""A kind of runner that is built in, or a class of the user's."""

Options = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})]
"""What a class of the user's is given."""


def same_name(text: str) -> str:
    """Give a person's name as it is compared: without regard to capitals, white space, and how accents are written."""
    return " ".join(normalize("NFC", normalize("NFC", text).casefold()).split())


LONGEST = 64


def is_name(text: str) -> bool:
    """Whether a text can be a name as it is."""
    return re.fullmatch(PATTERN, text) is not None


def name_of(text: str, prefix: str, longest: int = LONGEST) -> str:
    """Make a name of any text; `prefix` begins it where the text has no letter at its beginning."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:longest]
    return word if word[:1].isalpha() else f"{prefix}-{word}"[:longest].rstrip("-")


PLACE = r"^(?:~/|/[^/])"
"""A path that is one wherever it is read; `/` itself is none."""
