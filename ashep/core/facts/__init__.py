"""The journal's vocabulary: facts and commands by domain, and how they are written.

The name of a class is the type of a record, for ever: later forms are made by defaults and `UPCASTS`. Never: a rule, or
what is known by folding.
"""

from dataclasses import dataclass


class Decision:
    """A fact that the core makes; a replay derives it again. All others were told."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OfIssue:
    """A fact about an issue."""

    issue: str


@dataclass(frozen=True, slots=True)
class OfRun(OfIssue):
    """A fact about a run of an issue."""

    run: str


@dataclass(frozen=True, slots=True)
class Answer(OfIssue):
    """What became of a command about an issue, by its key."""

    key: str


@dataclass(frozen=True, slots=True)
class RunAnswer(OfRun):
    """What became of a command about a run, by its key."""

    key: str
