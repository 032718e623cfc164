"""Fences around foreign text: what issues, people and agents wrote is shown as data by a prompt."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import NoReturn

from ashep.core.text import clean, invisible

_OPEN, _CLOSE = "\x02", "\x03"
"""Stand at the edges of a fence until the prompt is finished; no foreign text holds them."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Text that somebody else wrote: true where there is any; it is printed only by `fence`."""

    text: str
    limit: int
    tail: bool = False
    """Of a text that is too long, show the end and not the beginning."""
    rest: str = ""
    """Where the rest can be read."""

    def __bool__(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.text.strip())

    def __str__(self) -> NoReturn:
        """Refuse to become part of a prompt's own words."""
        raise TypeError("this text was written by others; print it with the filter fence, as {{ description | fence }}")


@dataclass(frozen=True, slots=True)
class Fenced:
    """Foreign text between two lines that it could not have written itself; nothing can be cut from it."""

    text: str

    def __str__(self) -> NoReturn:
        """Refuse to be taken apart."""
        raise TypeError("a fenced text can only be printed as it is")


@dataclass
class Fences:
    """Makes the fences of one prompt. Their tokens come from the secret and a name that no other prompt has."""

    secret: str
    name: str
    made: int = 0

    def token(self, text: str) -> str:
        """Give the next token that the text does not hold."""
        while True:
            self.made += 1
            message = f"{self.name}\n{self.made}".encode(errors="surrogatepass")
            key = self.secret.encode(errors="surrogatepass")
            token = hmac.new(key, message, hashlib.sha256).hexdigest()[:16]
            if token not in text:
                return token

    def fence(self, value: object, label: str = "text") -> Fenced:
        """Put foreign text into a fence; nothing where there is none. What is cut off is told after the fence."""
        if not isinstance(value, Foreign):
            str(value)  # an undefined name says so
            raise TypeError("the filter fence is for text that was written by others")
        if not value:
            return Fenced("")
        text = tidy(value.text).strip("\n")
        cut = len(text) - value.limit
        if cut > 0:
            text = text[cut:] if value.tail else text[: value.limit]
        token = self.token(text)
        end = f"[END {label} {token}]"
        if cut > 0:
            where = "before" if value.tail else "after"
            rest = f"; {value.rest}" if value.rest else ""
            end += f"\n({cut} characters {where} this part are not shown{rest}.)"
        if unseen := invisible(value.text):
            end += f"\n({unseen} characters that nobody sees were taken out of this text.)"
        return Fenced(f"{_OPEN}[BEGIN {label} {token}]\n{text}\n{end}{_CLOSE}")


def on_lines(text: str) -> str:
    """Give each fence of a finished prompt lines of its own, whatever the template has around it."""
    text = re.sub(f"(?<=[^\n]){_OPEN}", "\n", text)
    text = re.sub(f"{_CLOSE}(?=[^\n])", "\n", text)
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def tidy(text: str) -> str:
    """Give the text without control, bidirectional and invisible characters, with no line ends but newlines."""
    return clean(text.replace("\r\n", "\n").replace("\u2028", "\n").replace("\u2029", "\n"))
