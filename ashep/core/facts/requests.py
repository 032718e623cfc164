"""What a session asks while its turn goes on: leave to use a tool, or the questions of OpenCode's question tool."""

from dataclasses import dataclass
from typing import Literal

from ashep.core.text import clean

LONGEST = 4000
"""Characters of one text of an agent's that are kept."""

MOST = 50
"""Patterns, questions and options that are kept of one request, and requests that are read of one turn."""

RequestKind = Literal["permission", "question"]
Answers = tuple[tuple[str, ...], ...]
"""To each question of a request: the labels that are chosen, or a text."""


def cut(text: str) -> str:
    """Give a text of an agent's as a request holds it."""
    return clean(text)[:LONGEST]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a request."""

    text: str
    options: tuple[str, ...] = ()
    """The labels that it offers; another text answers it, too."""
    several: bool = False
    """More than one option may be chosen."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something that a session waits for an answer to. Its texts are an agent's, and bounded."""

    id: str
    session: str
    """The run's session, also where a subagent below it asks."""
    kind: RequestKind
    tool: str = ""
    """What leave is asked for, by OpenCode's name of the permission."""
    patterns: tuple[str, ...] = ()
    """What its rules are matched with: the commands of a line, paths."""
    detail: str = ""
    """The whole command line, or the file."""
    asks: tuple[Asked, ...] = ()
    """The questions, where it is one."""
    unlisted: str = ""
    """Why the server cannot list what is asked there: this is what it told when it was asked. Without an id nothing is
    known of what the session asks, if it asks anything."""


Verdict = Literal["allow", "deny", "answer", "ask"]
"""allow, deny: the answer to a permission · answer: that to a question · ask: a person is to answer."""
