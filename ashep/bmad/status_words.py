"""Words for a status as people write them, and the state that follows by the table of facts/bmad.md 16."""

import re
from collections.abc import Mapping
from typing import Literal

Status = Literal["backlog", "draft", "ready-for-dev", "in-progress", "review", "done", "blocked", "optional"]
State = Literal["idle", "developing", "ready-for-review", "fixing", "complete", "unknown"]

_WORDS: dict[str, Status] = {
    "backlog": "backlog", "draft": "draft", "drafted": "ready-for-dev", "ready-for-dev": "ready-for-dev",
    "ready-for-development": "ready-for-dev", "ready-for-implementation": "ready-for-dev",
    "contexted": "in-progress", "in-progress": "in-progress", "inprogress": "in-progress",
    "review": "review", "in-review": "review", "ready-for-review": "review", "ready-for-code-review": "review",
    "done": "done", "complete": "done", "completed": "done", "blocked": "blocked", "optional": "optional",
}  # fmt: skip
"""Documented words, older ones and those that say the same. Others that people use (approved, deferred, archived) mean
one thing here and another there.
"""

ORDER: tuple[Status, ...] = ("backlog", "draft", "ready-for-dev", "in-progress", "review", "done")
"""How far a status is; one is never written over one that is further."""

_FORM = r"[ _-]+"
_WORD = re.compile(
    "("
    + "|".join(sorted((one.replace("-", _FORM) for one in _WORDS), key=len, reverse=True))
    + r")(?=$|[\s.,;:!|/(\[*_`—–]|-(?!\w)|\s-)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"^[\W_]*")
_CHAIN = re.compile(r"→|[-=]>")
_BEHIND = re.compile(r"\s*(?:[|,;:!·•(\[*`—–]|\.\s|\s[-/]\s|_(?!\w))|\s{2,}")
"""Where words end that are no status of ours, and others begin: another field, a remark."""

HALTS = (
    "blocked spec supplied", "story already blocked", "no stories.yaml found", "story id not found in stories.yaml",
    "ambiguous story file match", "unrecognized status in existing story file", "no epic spec found",
    "version-control metadata not writable", "no subagents", "intent gap",
    "review repair loop exceeded 5 iterations (non-convergence)", "patch verification failed",
    "finalization left repository dirty", "matrix ambiguity", "matrix test audit failed",
)  # fmt: skip
"""What build-auto says where it stops, word by word (facts/bmad.md 14)."""


def status_of(said: str) -> Status | None:
    """Give the documented word for what a file says; None where it says no known one at its beginning, or several."""
    found = _WORD.match(said, _BEFORE.match(said).end())  # pyright: ignore[reportOptionalMemberAccess] - matches ""
    if _CHAIN.search(said):
        return None
    return _WORDS[re.sub(_FORM, "-", found[1].lower())] if found else None


def only_status(said: str) -> Status | None:
    """Give the documented word for a text that is a status and nothing else."""
    return _WORDS.get(re.sub(_FORM, "-", said.strip().lower()))


def styled(status: Status, like: str) -> str:
    """Write a status as a file does: with capitals and spaces where the old one has them."""
    old = like[_BEFORE.match(like).end() :]  # pyright: ignore[reportOptionalMemberAccess] - matches ""
    if not old[:1].isupper():
        return status
    spaced = status.replace("-", " ") if "-" not in old.split(" ")[0] else status
    if old.isupper():
        return spaced.upper()
    return " ".join(one if one == "for" else one[:1].upper() + one[1:] for one in spaced.split(" "))


def restated(status: Status, text: str) -> str:
    """Write a status into the text of another: in its style, with the words that follow it."""
    begin = _BEFORE.match(text).end()  # pyright: ignore[reportOptionalMemberAccess] - matches ""
    word = None if _CHAIN.search(text) else _WORD.match(text, begin)
    behind = _BEHIND.search(text, begin)
    end = word.end(1) if word else behind.start() if behind else len(text)
    new = styled(status, text[:end])
    return new + text[end:] if status_of(new + text[end:]) == status else new


def halt_in(said: str) -> str | None:
    """Give the documented words with which build-auto stopped; None where they are others."""
    plain = " ".join(said.lower().split())
    return next((halt for halt in HALTS if re.search(rf"(?<!\w){re.escape(halt)}(?!\w)", plain)), None)


def further(one: Status, other: Status) -> bool:
    """Whether a status is further than another; those next to the order are not comparable."""
    return one in ORDER and other in ORDER and ORDER.index(one) > ORDER.index(other)


_STATES: Mapping[tuple[Status, bool], tuple[State, str]] = {
    ("ready-for-dev", False): ("idle", ""),
    ("ready-for-dev", True): ("unknown", "it was not begun, and has a review"),
    ("in-progress", False): ("developing", ""),
    ("in-progress", True): ("fixing", ""),
    ("review", False): ("ready-for-review", ""),
    ("review", True): ("unknown", "it waits for a review, and has one: of which work is not said"),
}
"""What follows from a status, and from whether there is a review."""


def state_of(status: Status, *, reviewed: bool, unresolved: int) -> tuple[State, str]:
    """Give the state, and for an unknown one why (facts/bmad.md 16, every row)."""
    if status == "done":
        return ("unknown", f"it is done, and of its findings {unresolved} are open") if unresolved else ("complete", "")
    return _STATES.get((status, reviewed), ("unknown", f"no state follows from {status}"))
