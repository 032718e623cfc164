"""Globs over paths of a repository: `*` and `?` within a folder, `**` across folders."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field

from ashep.core.policy.base_types import Word


def parse_glob(value: str) -> str:
    """Read a glob: relative to the repository's top, with `/`, without `..`; a ValueError says what is wrong."""
    parts = value.split("/")
    if value.startswith(("/", "~", "!")) or "" in parts or ".." in parts or "\\" in value or "\0" in value:
        raise ValueError("expected a glob from the repository's top, such as **/migrations/**")
    return value


GlobList = Annotated[tuple[Annotated[Word, AfterValidator(parse_glob)], ...], Field(max_length=200)]
"""Some globs."""


class Globs:
    """A set of globs. Unless they are `exact`, capitals and small letters are the same, as some file systems have it.

    No glob makes a path slow: what a star took is never given back.
    """

    def __init__(self, globs: Iterable[str], *, exact: bool = False) -> None:
        self._name, self._path = _patterns(tuple(globs), re.DOTALL if exact else re.DOTALL | re.IGNORECASE)

    def has(self, path: str) -> bool:
        """Whether one of them fits the whole path."""
        name = path.rpartition("/")[2]
        return self._name.fullmatch(name) is not None or self._path.fullmatch(path) is not None


@lru_cache(256)  # every diff asks for the same ten sets, of some two hundred globs
def _patterns(globs: tuple[str, ...], flags: re.RegexFlag) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Translate the globs that are names in any folder, of which the last name alone is looked at, and the others."""
    parts = [glob.rpartition("/") for glob in globs]
    names = [_name(name) for head, _, name in parts if head == "**" and name != "**"]
    paths = [_path(head + slash + name) for head, slash, name in parts if head != "**" or name == "**"]
    return re.compile("|".join(names) or r"(?!)", flags), re.compile("|".join(paths) or r"(?!)", flags)


def _path(glob: str) -> str:
    """Between two `**` stands a sequence of names that is looked for from the left; the first place serves.

    What is passed over is one repeated character: a repeated group would need memory for each folder of a path.
    """
    first, *rest = ("/".join(map(_name, part.split("/"))) for part in re.split(r"(?:^|/)(?:\*\*(?:/|$))+", glob))
    if not rest:
        return first
    *middle, last = rest
    within = "".join(f"(?>(?:.*?/)??{names}/)" for names in middle)
    return (f"{first}/" if first else "") + within + (f"(?>(?:.*?/)??{last}\\Z)" if last else ".+")


def _name(glob: str) -> str:
    """Translate a name: here, too, the first place serves for what stands between two stars."""
    first, *rest = (
        "".join("[^/]" if char == "?" else re.escape(char) for char in text) for text in re.split(r"\*+", glob)
    )
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{text})" for text in middle) + rf"(?>[^/]*?{last}(?=/|\Z))"
