"""What is wrong with the configuration, where it stands, and how it is said."""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ashep.config.yaml_tree import MAX_BYTES, Node, YamlProblem, YamlUnreadable, decode
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
    story: tuple[str, ...] = ()
    """How an issue comes to it, step by step."""

    def error(self) -> ConfigError:
        """Give it as an exception."""
        return ConfigError(self.message, file=self.file, line=self.line, key=self.key)

    def __str__(self) -> str:
        return str(self.error())


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Leave the warnings out."""
    return [finding for finding in findings if finding.severity == "error"]


class ConfigErrors(ConfigError):
    """The configuration cannot be used: `errors` holds every problem, `str()` is one line for the first."""

    def __init__(self, findings: list[Finding]) -> None:
        first, more = findings[0], len(findings) - 1
        message = f"{first.message} (and {more} more)" if more else first.message
        super().__init__(message, file=first.file, line=first.line, key=first.key)
        tip = " (`ashep policy check` tells how)"  # who tells these does not show the way to it
        hinted = (replace(finding, message=finding.message + tip) if finding.story else finding for finding in findings)
        self.errors: tuple[ConfigError, ...] = tuple(finding.error() for finding in hinted)


def refused(file: Path, *problems: YamlProblem) -> ConfigErrors:
    """Give problems of a file as an exception."""
    return ConfigErrors([Finding(one.code, str(file), one.line, one.key, one.message) for one in problems])


def read_bytes(file: Path) -> bytes | None:
    """Read a file no further than is needed to see that it is too large; None where there is none."""
    try:
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise YamlUnreadable(YamlProblem("unreadable", "not a file"))
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise YamlUnreadable(YamlProblem("unreadable", f"cannot be read: {error.strerror}")) from error


def read_text(file: Path) -> str:
    """Read what a user names, of bounded size; it may be a link or a pipe. Raises `ConfigErrors`."""
    try:
        with file.open("rb") as stream:
            return decode(stream.read(MAX_BYTES + 1))
    except YamlUnreadable as error:
        raise refused(file, error.problem) from error
    except OSError as error:
        raise refused(file, YamlProblem("unreadable", f"cannot be read: {error.strerror}")) from error


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was read: its text for people and the journal, its tree for the places in it."""

    file: Path
    text: str
    """Without a byte order mark; empty where the file is missing and may be. Of several files one after the other."""
    sha256: str
    """Of the text's UTF-8 bytes."""
    root: Node


@dataclass(frozen=True, slots=True)
class FindingFactory:
    """Makes findings whose places are looked up in the files; without a file a finding has no line."""

    sources: Mapping[FileName, SourceFile]

    def finding(
        self,
        code: str,
        name: FileName,
        path: KeyPath,
        message: str,
        severity: Literal["error", "warning"] = "error",
        story: tuple[str, ...] = (),
    ) -> Finding:
        """Say that something is wrong at a key."""
        source = self.sources.get(name)
        place = (source.root if source else Node(None, 1, "")).locate(path)
        file, line = (place.file or str(source.file), place.line) if source else (f"{name}.yaml", None)
        return Finding(code, file, line, place.key or None, message, severity, story)
