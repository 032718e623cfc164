"""What is wrong with the configuration, where it stands, and how it is said."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ashep.config.nodes import Node
from ashep.errors import ConfigError

FileName = Literal["config", "policies", "agents"]
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, as a line: `file:line: key: message`."""

    code: str
    """A short name that stays the same from release to release, such as `unknown-key`."""
    file: str
    line: int | None
    key: str | None
    message: str
    """What was found, what was expected, what to do."""
    severity: Literal["error", "warning"] = "error"

    def error(self) -> ConfigError:
        """Give it as an exception."""
        return ConfigError(self.message, file=self.file, line=self.line, key=self.key)

    def __str__(self) -> str:
        """Give it as a line of text."""
        return str(self.error())


class ConfigErrors(ConfigError):
    """The configuration cannot be used: `errors` holds every problem, `str()` is one line for the first."""

    def __init__(self, findings: list[Finding]) -> None:
        first, more = findings[0], len(findings) - 1
        message = f"{first.message} (and {more} more)" if more else first.message
        super().__init__(message, file=first.file, line=first.line, key=first.key)
        self.errors: tuple[ConfigError, ...] = tuple(finding.error() for finding in findings)


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: its text for people and the journal, its tree for the places in it."""

    file: Path
    text: str
    """Without a byte order mark; empty where the file is missing and may be."""
    sha256: str
    """Of the text's UTF-8 bytes."""
    root: Node

    def place(self, path: KeyPath) -> tuple[int, str]:
        """Find the line and the key, as a person would write it, of a path; a missing entry is on its parent's line."""
        node = self.root
        for depth, part in enumerate(path):
            found = node.child(part)
            if found is None:
                key = node
                for missing in path[depth:]:
                    key = Node(None, node.line, key.key_of(missing))
                return node.line, key.key
            node = found
        return node.line, node.key


@dataclass(frozen=True, slots=True)
class Places:
    """Makes findings whose places are looked up in the files; without a file a finding has no line."""

    sources: Mapping[FileName, Source]

    def finding(
        self, code: str, name: FileName, path: KeyPath, message: str, severity: Literal["error", "warning"] = "error"
    ) -> Finding:
        """Say that something is wrong at a key."""
        source = self.sources.get(name)
        if source is None:
            _, key = Source(Path(), "", "", Node(None, 1, "")).place(path)
            return Finding(code, f"{name}.yaml", None, key or None, message, severity)
        line, key = source.place(path)
        return Finding(code, str(source.file), line, key or None, message, severity)
