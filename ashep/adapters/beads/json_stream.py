"""The rows of an array that bd prints, read one by one while it prints: no more than one is held as text.

What is too long to be of use is left out on the way, and named: one text must not cost the sight of all other issues.
"""

import re
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import ValidationError

from ashep.core.text import clean
from ashep.errors import TrackerUnavailable
from ashep.redaction import Redaction

LONGEST = 1024 * 1024
"""Bytes of one text, as it is printed; no prompt shows a tenth of that. Not less than a piece of a program's output."""

WIDEST = 8 * 1024 * 1024
"""Bytes of a row without the texts that were left out of it."""

_HEAD = 64 * 1024  # bytes of an answer that is no array: what a call that failed complains of
_NAMES = 4096  # bytes at a row's beginning in which its id stands
_PLAIN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)  # whole texts, and what opens nothing
_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)  # as much of a text as is there
_KEY = re.compile(rb'"([^"\\]{1,100})"\s*:\s*$')
_ID = re.compile(rb'\{\s*"id"\s*:\s*"((?:[^"\\]|\\.){1,300})"')
_BETWEEN = re.compile(rb"[\s,]*")
_T = TypeVar("_T")


def size(number: int) -> str:
    """Say how many bytes that is."""
    return f"{number / 1024**2:.1f} MiB"


class Rows(Generic[_T]):
    """A reader of such an array: give it to a program as what takes its output, then ask for the end.

    `read` makes of a row's JSON, and of the names and sizes of its own texts that were left out, what is kept of it.
    """

    def __init__(self, read: Callable[[bytes, tuple[str, ...]], _T], redaction: Redaction) -> None:
        self.head = bytearray()
        """How the answer begins."""
        self.unread: dict[str, str] = {}
        """The rows that could not be read, by id, and why."""
        self._misshapen = ""
        self._read, self._redaction = read, redaction
        self._rows: list[_T] = []
        self._error: str = ""
        self._depth = 0
        self._ended = False
        self._row, self._bytes, self._wide = bytearray(), 0, False
        self._left_out: list[str] = []
        self._begun: int | None = None  # where in the row the text that is being read begins
        self._length = 0
        self._rest = b""  # a backslash whose character has not come yet

    def take(self, piece: bytes) -> None:
        """Read on."""
        if len(self.head) < _HEAD:
            self.head += piece[: _HEAD - len(self.head)]
        data, at = self._rest + piece, 0
        self._rest = b""
        while at < len(data) and not self._error:
            at = self._structure(data, at) if self._begun is None else self._text(data, at)

    def end(self, *, null: bool = False) -> list[_T]:
        """Give what was kept, in order; `null`: that is an empty array, too."""
        if null and not self._rows and bytes(self.head).strip() == b"null":
            return []
        if not self._error and not (self._ended and self._depth == 0):
            self._error = "an array was expected"
        if not self._error and not self._rows:
            self._error = self._misshapen  # not a single row has the form that we know: it is another bd's
        if self._error:
            raise TrackerUnavailable(f"bd's answer is not one of bd 1.3.0: {self._error}")
        return self._rows

    def _structure(self, data: bytes, at: int) -> int:
        """Read up to the next bracket, or into a text that this piece does not end."""
        found = _PLAIN.match(data, at)
        end = found.end() if found else at
        if self._depth > 1:
            self._keep(data[at:end])
        elif not _BETWEEN.fullmatch(data, at, end):
            self._error = f"{bytes(data[at : at + 20])!r} stands between its rows"
        if end == len(data):
            return end
        mark = data[end : end + 1]
        if mark == b'"':
            if self._depth < 2:
                self._error = "an array of objects was expected"
            self._keep(mark)
            self._begun, self._length = len(self._row), 0
        elif mark in b"[{":
            self._open(mark)
        else:
            self._close(mark)
        return end + 1

    def _open(self, mark: bytes) -> None:
        wanted = {0: b"[", 1: b"{"}.get(self._depth, mark)
        if mark != wanted or (self._depth == 0 and self._ended):
            self._error = "an array of objects was expected"
        self._depth += 1
        if self._depth == 2:
            self._row, self._bytes, self._wide, self._left_out = bytearray(), 0, False, []
        if self._depth > 1:
            self._keep(mark)

    def _close(self, mark: bytes) -> None:
        if self._depth == 0:
            self._error = "an array was expected"
        elif self._depth > 1:
            self._keep(mark)
        self._depth -= 1
        if self._depth == 1:
            self._end_row()
        self._ended = self._depth == 0

    def _keep(self, data: bytes) -> None:
        self._bytes += len(data)
        if not self._wide:
            self._row += data
            if len(self._row) > WIDEST:
                self._wide = True
                del self._row[_NAMES:]

    def _text(self, data: bytes, at: int) -> int:
        """Read up to the end of a text, or as much of it as this piece holds."""
        found = _TEXT.match(data, at)
        end = found.end() if found else at
        self._length += end - at
        if self._length <= LONGEST:
            self._keep(data[at:end])
        elif not self._wide:
            self._bytes -= len(self._row) - (self._begun or 0)
            del self._row[self._begun :]
        if end == len(data):
            return end
        if data[end : end + 1] == b"\\":  # its character comes with the next piece
            self._rest = b"\\"
            return len(data)
        if self._length > LONGEST:
            begun = self._begun or 0
            key = _KEY.search(self._row, max(begun - 120, 0), begun - 1)
            if self._depth == 2 and key:
                self._left_out.append(f"{key[1].decode(errors='replace')}: {size(self._length)}")
            self._keep(f"({size(self._length)}: too long to be read)".encode())
        self._begun = None
        self._keep(b'"')
        return end + 1

    def _end_row(self) -> None:
        """Read the row. One that cannot be read is named, and does not hide the others."""
        row, why = self._redaction.data(bytes(self._row)), f"it is too big: {size(self._bytes)}"
        if not self._wide:
            try:
                self._rows.append(self._read(row, tuple(self._left_out)))
                return
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                place = ".".join(map(str, first["loc"])) or "its beginning"
                self._misshapen = why = f"{first['msg']} at {place}"
        match = _ID.match(row)
        if match is None:
            self._error = f"a row of {size(self._bytes)} that begins with no id" if self._wide else why
        else:
            self.unread[clean(match[1].decode(errors="replace"))] = why
