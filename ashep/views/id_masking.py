"""Ids of other issues, taken out of a text.

A list of issues says each id once, in the issue's own entry, so that a program (or a person with `grep`) that looks for
an id finds that entry and no other. Reasons and titles name other issues, so they are told without their ids.
"""

import re
from collections.abc import Collection

ANOTHER = "another issue"

_WORD = re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*")
_COMPOUND = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[-_.][A-Za-z0-9]++)++")
_SEPARATOR = re.compile(r"([-_.])")


class KnownIds:
    """The ids that are known."""

    def __init__(self, ids: Collection[str]) -> None:
        self._ids = frozenset(ids)
        simple = any(_COMPOUND.fullmatch(name) is None for name in self._ids)
        self._word = _WORD if simple else _COMPOUND  # most words of a text are simple: they need not be looked at
        self._harmless: set[str] = set()
        """Words that were looked at and hold no id: most texts are made of the same ones."""
        self._longest = max((len(_SEPARATOR.split(name)) for name in self._ids), default=0)

    def hide(self, text: str, own: str | None = None) -> str:
        """Give the text with `another issue` in the place of every known id but one's own."""
        if all(word in self._harmless or word == own for word in self._word.findall(text)):
            return text
        return self._word.sub(lambda found: self._judge(found[0], own), text)

    def _judge(self, word: str, own: str | None) -> str:
        if word in self._ids:
            return word if word == own else ANOTHER
        parts = _SEPARATOR.split(word)
        told: list[str] = []
        at = 0
        while at < len(parts):
            most = min(self._longest, len(parts) - at)
            length = next((n for n in range(most, 0, -1) if "".join(parts[at : at + n]) in self._ids), 1)
            name = "".join(parts[at : at + length])
            told.append(name if name == own or name not in self._ids else ANOTHER)
            at += length
        if told == parts and self._ids.isdisjoint(parts):
            self._harmless.add(word)
        return "".join(told)
