"""Secrets that must not be written down: what comes in from programs and servers loses them at the door.

The journal, blobs, prompts and pictures are made of what came in; so nothing that is kept ever holds one, and a read
that is compared with what is known compares like with like.

A secret is looked for in the forms that programs print: plain, in JSON, in base64 (also in the midst of more), in hex
and percent-encoded. That is hundreds of forms, and each text goes through here: the text is read once, eight bytes at a
time, and only a form of which such a word occurs is looked for.
"""

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Literal
from urllib.parse import quote, quote_plus, urlsplit

MARK = "[redacted]"
"""What stands in the place of a secret."""

SHORTEST = 8
"""Characters; a shorter word would be found in the midst of ordinary text."""

# bytes that are compared at once; a form of twice as many but one holds a whole word of any text
_WORDS: dict[int, Literal["Q", "I"]] = {8: "Q", 4: "I"}
_FEW = 50  # forms that are looked for one by one sooner than in words of four bytes

_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PWD|_PAT|KEY_ID|KEY_BASE)(?:_?\d+)?\Z"
)
"""How variables are named that hold a secret."""

_KEY_LINE = re.compile(r"[A-Za-z0-9+/=_-]{16,}\Z")  # of a private key, of which a program may print a part

_PLAIN = re.compile(r"[A-Za-z]+(?:[-_. :/][A-Za-z]+)*+\Z")
_PLAINEST = 20  # characters of words alone


_Form = tuple[str, bytes]


class Redaction:
    """The secrets of this process, all of which are strings of at least `SHORTEST` characters."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = frozenset[str]()
        self._finder = _Finder(())
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str | None) -> None:
        """Remember a secret, also as it looks encoded; one that is too short or None is ignored."""
        if secret is not None and len(secret) >= SHORTEST and secret not in self._secrets:
            self._secrets |= {secret}
            self._finder = _Finder((*self._finder.forms, *_forms(secret)))

    def add_url(self, url: str) -> None:
        """Remember a URL, and each part of it that may be a secret."""
        self.add(url)
        with suppress(ValueError):
            parts = urlsplit(url)
            self.add(parts.password)
            for part in (parts.username or "", *parts.path.split("/"), *parts.query.split("&")):
                self.add(None if _is_plain(part) else part)

    def text(self, text: str) -> str:
        """Give the text without secrets."""
        for form, _ in self._finder.find_forms(_bytes(text)):
            text = text.replace(form, MARK)
        return text

    def data(self, data: bytes, mark: str = MARK) -> bytes:
        """Give bytes of UTF-8 without secrets."""
        for _, form in self._finder.find_forms(data):
            data = data.replace(form, mark.encode())
        return data


def guessed(environ: Mapping[str, str]) -> Iterator[str]:
    """Give what looks like a secret in an environment, by the names of variables; of a URL its password, of any."""
    for name, value in environ.items():
        if _NAME.search(name.upper()) and _may_be_secret(value):
            yield value
            yield from (line for line in value.splitlines()[1:-1] if _KEY_LINE.match(line))
        if "://" in value and "@" in value:
            with suppress(ValueError):
                yield urlsplit(value).password or ""


def _is_plain(text: str) -> bool:
    """Whether it is a few words: `services`, `postgres` or `in_progress` stands in many texts."""
    return len(text) < _PLAINEST and _PLAIN.match(text) is not None


def _may_be_secret(value: str) -> bool:
    """Tell a secret from a number, words, and the path of a file or of one that is not there yet."""
    if not any(map(str.isalpha, value)) or _is_plain(value):
        return False
    folder = os.path.dirname(os.path.expanduser(value))
    return not (os.path.exists(os.path.expanduser(value)) or (len(folder) > 1 and os.path.isdir(folder)))


def _forms(secret: str) -> set[str]:
    raw = _bytes(secret)
    plain, ascii_only = json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(secret)[1:-1]
    go = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # as bd writes it
    quoted = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    quoted |= {re.sub("%..", lambda found: found[0].lower(), one) for one in quoted}
    whole = base64.b64encode(raw).decode()
    within = set[str]()
    for before in range(3):  # behind other bytes, as many as there are beyond a multiple of three
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        within.add(encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    urlsafe = {one.replace("+", "-").replace("/", "_") for one in (whole, *within)}
    return {secret, plain, ascii_only, go, raw.hex(), raw.hex().upper(), whole} | quoted | within | urlsafe


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


class _Finder:
    """Says which of many texts occur in another."""

    def __init__(self, forms: tuple[str, ...]) -> None:
        self.forms = forms

    def find_forms(self, data: bytes) -> list[_Form]:
        few, groups = self._index
        forms = {one for one in few if one[1] in data}
        for size, words in groups:
            whole = memoryview(data)[: len(data) // size * size].cast(_WORDS[size])
            forms.update(one for word in words.keys() & whole for one in words[word] if one[1] in data)
        return sorted(forms, key=lambda one: (-len(one[0]), one))

    @cached_property
    def _index(self) -> tuple[set[_Form], list[tuple[int, dict[int, list[_Form]]]]]:
        """The forms that are looked for one by one, and the others by words of which a text that holds one has one."""
        left, groups = {(form, _bytes(form)) for form in self.forms}, list[tuple[int, dict[int, list[_Form]]]]()
        for size, code in _WORDS.items():
            words = dict[int, list[_Form]]()
            long = {one for one in left if len(one[1]) >= 2 * size - 1}
            for one in long if len(long) > _FEW else ():
                for begin in range(size):
                    (word,) = memoryview(one[1][begin : begin + size]).cast(code)
                    words.setdefault(word, []).append(one)
            if words:
                groups.append((size, words))
                left -= long
        return left, groups
