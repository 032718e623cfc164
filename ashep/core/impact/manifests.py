"""Manifests: files that name dependencies and hold, next to them, what decides how a project's checks run.

A change to dependencies alone is ordinary work. A change to anything else there (scripts, settings of the test runner,
sources of packages) may decide what a check finds.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

LARGEST_MANIFEST = 1024**2
"""Bytes of a manifest that is parsed."""

_TABLES = {
    "package.json": ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "version"),
    "composer.json": ("require", "require-dev", "version"),
    "pyproject.toml": (
        "project.dependencies", "project.optional-dependencies", "project.version", "dependency-groups",
        "tool.poetry.dependencies", "tool.poetry.group", "tool.poetry.version",
    ),
    "Cargo.toml": ("dependencies", "dev-dependencies", "build-dependencies", "package.version"),
}  # fmt: skip
"""The tables of each manifest that name dependencies, and its version, which decides nothing."""

_SOURCES = {"path", "git", "url", "file", "source", "registry", "package"}
"""Keys of a dependency that say where it comes from."""

_PLAIN = re.compile(r"[^/@:\\]*")
"""A version, or a requirement without a source of its own: no URL, path or alias."""


def is_manifest(path: str) -> bool:
    """Whether the path is that of a manifest that can be parsed."""
    return path.rpartition("/")[2] in _TABLES


def changes_dependencies_alone(path: str, before: bytes, after: bytes) -> bool:
    """Whether two versions of a manifest differ in plain dependencies only; False where one cannot be parsed."""
    name = path.rpartition("/")[2]
    try:
        documents = [_parse(name, before), _parse(name, after)]
    except (ValueError, RecursionError):
        return False
    tables = [[_take(document, key.split(".")) for key in _TABLES[name]] for document in documents]
    if documents[0] != documents[1]:
        return False
    return all(_is_plain(new) for old, new in zip(*tables, strict=True) if old != new)


def _parse(name: str, text: bytes) -> dict[str, Any]:
    read = json.loads(text) if name.endswith(".json") else tomllib.loads(text.decode())
    if not isinstance(read, dict):
        raise ValueError("a manifest is a table")
    return cast("dict[str, Any]", read)


def _take(document: dict[str, Any], keys: list[str]) -> object:
    """Take a table or field out of a document."""
    *folders, last = keys
    for key in folders:
        found = document.get(key)
        if not isinstance(found, dict):
            return None
        document = cast("dict[str, Any]", found)
    return document.pop(last, None)


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return not _SOURCES & set(table) and all(map(_is_plain, table.values()))
    if isinstance(value, list):
        return all(map(_is_plain, cast("list[object]", value)))
    return not isinstance(value, str) or _PLAIN.fullmatch(value) is not None
