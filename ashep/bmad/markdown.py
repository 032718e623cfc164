"""Markdown as pieces that know their line: headings, items and paragraphs; and the ids that they name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt

_EMPHASIS = re.compile(r"[*_`~]+")
_NUMBER = re.compile(r"^(?:\d+[.)]\s*)?[^\w#]*")
_ID = r"(?P<team>[a-z]{1,4}-)?(?P<epic>\d{1,3}[a-z]?)[-._](?P<story>\d{1,3}[a-z]?)(?:[-._](?P<part>\d{1,2}))?"
_NAME = re.compile(rf"(?:(?:story|spec)[-._]?)?{_ID}(?=$|[-._])", re.IGNORECASE)
_TITLE = re.compile(rf"(?:\w+\s+){{0,3}}?Story\s+{_ID}(?!\w)\s*[:–—-]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A heading, a paragraph, or the first lines of a list's item."""

    kind: Literal["heading", "item", "paragraph", "other"]
    level: int
    """Of a heading, or how deep lists are."""
    text: str
    line: int
    end: int = 0
    """The line behind it; of an item behind all that belongs to it, and blank lines."""


@cache
def _markdown() -> MarkdownIt:
    # What is inside of a line is not looked at. BMAD underlines no headings: a status above a rule is none, nor is what
    # stands above the middle of a merge.
    return MarkdownIt("commonmark").disable(["inline", "text_join", "lheading", "reference"])


def pieces(plain: str, *, whole: bool = False) -> Iterator[MarkdownBlock]:
    """Read Markdown; what is code, a quotation or HTML is left out, or with `whole` of the kind `other`."""
    depth, quoted, heading, item, end = 0, 0, 0, False, 0
    for token in _markdown().parse(plain):
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "blockquote_open" | "blockquote_close":
                quoted += token.nesting
            case "heading_open":
                heading = int(token.tag[1])
            case "list_item_open" if token.map:
                item, end = True, token.map[1] + 1
            case "inline" if token.map:
                kind = "other" if quoted else "heading" if heading else "item" if item else "paragraph"
                if whole or not quoted:
                    ends = end if kind == "item" else token.map[1] + 1
                    yield MarkdownBlock(kind, heading or depth, token.content, token.map[0] + 1, ends)
                heading, item = 0, False
            case "fence" | "code_block" | "html_block" if whole and token.map:
                yield MarkdownBlock("other", depth, token.content, token.map[0] + 1, token.map[1] + 1)
            case _:
                pass


def bare(text: str) -> str:
    """Give a heading without its number, emphasis and signs."""
    return _NUMBER.sub("", _EMPHASIS.sub("", text)).strip()


def id_in(name: str) -> str | None:
    """Give the id in a file's name, or in what a person types: `1-3`, `1.3`, `story-1.3.md`; None: there is none."""
    found = _NAME.match(name)
    return _id(found) if found else None


def id_and_title(heading: str) -> tuple[str | None, str]:
    """Take the id off a title: `Story 1.3: Login`."""
    found = _TITLE.match(heading)
    return (_id(found), heading[found.end() :]) if found else (None, heading)


def _id(found: re.Match[str]) -> str:
    part = f"-{found['part']}" if found["part"] else ""
    return f"{found['team'] or ''}{found['epic']}-{found['story']}{part}".lower()
