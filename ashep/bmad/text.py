"""Text of a file with its own line ends: what is not meant to change stays as it is, byte for byte."""

import re
from dataclasses import dataclass

from ashep.errors import AshepError

LARGEST = 1_000_000
"""Bytes of a file that are read; stories have 1 to 47 kB (facts/bmad.md 10)."""

_BOM = "\ufeff"
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Unreadable(AshepError):
    """The file is none that can be read."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines with their ends."""

    lines: tuple[str, ...]
    bom: bool = False

    @classmethod
    def of(cls, data: bytes) -> "Text":
        """Read a file. Raises `Unreadable`."""
        if len(data) > LARGEST:
            raise Unreadable(f"it has {len(data)} bytes, and more than {LARGEST} are not read")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise Unreadable(f"line {line}: this is not UTF-8") from error
        if "\0" in text:
            raise Unreadable(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1}: this is no text")
        bom = text.startswith(_BOM)
        return cls(tuple(_LINES.findall(text[bom:])), bom)

    @property
    def bytes(self) -> bytes:
        """The file."""
        return (_BOM * self.bom + "".join(self.lines)).encode()

    @property
    def plain(self) -> str:
        """The same with one kind of line end, line for line."""
        return "".join(f"{self.line(number)}\n" for number in range(1, len(self.lines) + 1))

    def line(self, number: int) -> str:
        """Give a line without its end; the first is 1."""
        return self.lines[number - 1].rstrip("\r\n")

    def with_part(self, number: int, start: int, end: int, new: str) -> "Text":
        """Replace a part of a line, by columns from 0."""
        old = self.lines[number - 1]
        line = old[:start] + new + old[end:]
        return Text((*self.lines[: number - 1], line, *self.lines[number:]), self.bom)
