"""What is known of who changed an issue: a part of its flow, and how facts change it."""

from dataclasses import dataclass, replace

from ashep.core.facts.commands import ReadAuthors
from ashep.core.facts.tracker import Difference, Issue
from ashep.core.facts.vocabulary import ChangeJudged

MOST_TOLD = 20
"""Refused changes that are remembered, so that an agent that goes on making them is answered once."""


@dataclass(frozen=True, slots=True)
class Undo:
    """A refused change that is to be put back with the next write."""

    seq: int
    labels: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Authors:
    """Whose changes are known, are being looked up, and are to be undone."""

    doubts: tuple[Difference, ...] = ()
    """Nothing follows from these, and no run begins, before their authors are known."""
    seq: int = 0
    """By which decision."""
    known: tuple[Difference, ...] = ()
    """These count, for as long as they stand."""
    told: tuple[str, ...] = ()
    """What was refused with a comment."""
    undo: Undo | None = None
    before: tuple[str, ...] = ()
    """Labels that stood when it was taken: what they choose has not been asked about yet."""

    @property
    def busy(self) -> bool:
        """Whether something is still to be read or put back."""
        return bool(self.doubts) or self.undo is not None


NOBODY = Authors()


def judged(authors: Authors, fact: ChangeJudged, seq: int) -> Authors:
    """Fold what was found."""
    told = authors.told if not fact.refused or fact.why in authors.told else (*authors.told, fact.why)[-MOST_TOLD:]
    undo = Undo(seq, fact.refused) if fact.refused and fact.undo else authors.undo
    known = tuple(dict.fromkeys((*authors.known, *fact.counts)))
    return Authors((), authors.seq, known, told, undo)


def forget_changes(authors: Authors, view: Issue) -> Authors:
    """Forget who changed what does not stand any more: it may be changed again, by others."""
    known = tuple(change for change in authors.known if stands(change, view))
    return authors if known == authors.known else replace(authors, known=known)


def forget_undo(authors: Authors) -> Authors:
    """Our write was done, and with it what it put back."""
    return replace(authors, undo=None) if authors.undo is not None else authors


def lookup(issue: str, authors: Authors) -> ReadAuthors:
    """Give the read that says who made the changes that are doubted."""
    return ReadAuthors(f"{issue}/authors/{authors.seq}", issue, authors.doubts)


def stands(what: Difference, view: Issue) -> bool:
    """Whether the issue shows a change."""
    kind, value = what
    match kind:
        case "added":
            return value in view.labels
        case "removed":
            return value not in view.labels
        case "status":
            return view.status == value
        case "assignee":
            return (view.assignee or "") == value


def undone(view: Issue, changes: tuple[Difference, ...], status: str, assignee: str | None) -> Issue:
    """Show the issue as it would be without these changes, with the status and the holder that it should have."""
    labels, kinds = set(view.labels), {kind for kind, _ in changes}
    labels -= {value for kind, value in changes if kind == "added"}
    labels |= {value for kind, value in changes if kind == "removed"}
    return replace(
        view, labels=tuple(sorted(labels)), status=status if "status" in kinds else view.status,
        assignee=assignee if "assignee" in kinds else view.assignee,
    )  # fmt: skip
