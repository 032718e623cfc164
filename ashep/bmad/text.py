"""Text of a file with its own line ends: what is not meant to change stays as it is, byte for byte."""

import re
from dataclasses import dataclass

from ashep.errors import AshepError

LARGEST = 500_000
"""Bytes of a file that are read; stories have 1 to 47 kB (facts/bmad.md 10)."""

_BOM = "\ufeff"
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class UnreadableText(AshepError):
    """The file is none that can be read."""

    def __init__(self, why: str, line: int = 1) -> None:
        super().__init__(why)
        self.line = line


class NotWritable(AshepError):
    """What is to be changed is not there, or not in one place."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines with their ends."""

    lines: tuple[str, ...]
    bom: bool = False

    @classmethod
    def from_bytes(cls, data: bytes) -> "Text":
        """Read a file. Raises `UnreadableText`."""
        if len(data) > LARGEST:
            raise UnreadableText(f"it has more than {LARGEST} bytes, and is not read")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise UnreadableText("this is not UTF-8", data.count(b"\n", 0, error.start) + 1) from error
        if "\0" in text:
            raise UnreadableText("this is no text", text.count("\n", 0, text.index("\0")) + 1)
        bom = text.startswith(_BOM)
        return cls(tuple(_LINES.findall(text[bom:])), bom)

    @property
    def bytes(self) -> bytes:
        """The file."""
        return (_BOM * self.bom + "".join(self.lines)).encode()

    @property
    def plain(self) -> str:
        """The same with one kind of line end, line for line."""
        text = "".join(self.lines).replace("\r\n", "\n").replace("\r", "\n")
        return text if text.endswith("\n") or not text else f"{text}\n"

    def line(self, number: int) -> str:
        """Give a line without its end; the first is 1."""
        return self.lines[number - 1].rstrip("\r\n")

    def with_part(self, number: int, column: int, old: str, new: str) -> "Text":
        """Replace what stands at a place, its column from 0. Raises `NotWritable` where it does not stand there."""
        line = self.lines[number - 1] if 0 < number <= len(self.lines) else ""
        if not old or not line.startswith(old, column):
            raise NotWritable(f"line {number} does not say {old or 'anything'} in one piece")
        line = line[:column] + new + line[column + len(old) :]
        return Text((*self.lines[: number - 1], line, *self.lines[number:]), self.bom)
