"""Reads what forges answer: fields that may be missing or of another type, and texts of strangers."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from ashep.adapters.system.json_fields import text, whole
from ashep.adapters.system.rest_api import Api
from ashep.core.delivery.pull_request_body import OURS
from ashep.core.policy.settings import PUSHES
from ashep.errors import ForgeRefused, ForgeUnauthorized
from ashep.ports.landing import PullRequestComment, PullState

MOST_NAME = 200
MOST_WORDS = 4_000
"""Characters that are kept of what one check says."""
MOST_URL = 500
BELONGING = frozenset({"OWNER", "MEMBER", PUSHES})
"""What GitHub calls who belongs to a repository; anybody may be a CONTRIBUTOR."""


class ForgeCheck(NamedTuple):
    """What a check of the forge came to."""

    name: str
    state: str
    """passing, pending or failing."""
    words: str = ""
    """What it says of that."""
    url: str = ""
    """Where more of it is."""

    @property
    def label(self) -> str:
        """Its name in one line."""
        return " ".join(self.name.split())[:MOST_NAME]


def state_of(
    state: Literal["open", "merged", "closed"],
    head: str,
    by: str,
    merged_as: str,
    checks: Sequence[ForgeCheck],
    said: tuple[PullRequestComment, ...],
) -> PullState:
    """Put together what became of a pull request, with what its checks come to, which failed, and what those say."""
    failing, states = [check for check in checks if check.state == "failing"], {check.state for check in checks}
    told = {
        f"{one.label}{f' ({one.url[:MOST_URL]})' if one.url else ''}: {one.words.strip()[:MOST_WORDS]}".rstrip(": ")
        for one in failing
        if one.words.strip() or one.url  # one that says nothing is named all the same
    }
    return PullState(
        state=state,
        head=head,
        by=by or None,
        merged_as=merged_as or None,
        ci="failing" if failing else "pending" if "pending" in states else "passing" if states else "none",
        failing=tuple(sorted({one.label for one in failing})),
        failures=tuple(sorted(told)),
        said=said,
    )


def chosen(pulls: list[Any], mark: str, body: str, is_open: str) -> Any:
    """Give the pull request whose body has the mark, whatever became of it; else one that is open; else None."""
    ours = [pull for pull in pulls if mark in text(pull, body)]
    others = [pull for pull in pulls if text(pull, "state") == is_open]
    return next(iter([*ours, *others]), None)


def people_of(names: Iterable[str] | None) -> frozenset[str]:
    """Give who is heard: logins in small letters, and what a forge calls authors; without names, who belongs."""
    if names is None:
        return BELONGING
    return frozenset(name if name in BELONGING else name.casefold() for name in names)


async def belonging(
    api: Api, path: str, name: str, level: int, said: Iterable[PullRequestComment], people: frozenset[str]
) -> tuple[PullRequestComment, ...]:
    """Keep what was said by these people, and, where that counts, by those of a list of the forge's who may push: they
    have that access at least. It is read where it is needed.

    Raises `ForgeUnauthorized` where the token may not read it: then nobody knows whose words count.
    """
    if not (said := ordered(said)) or PUSHES not in people:
        return heard(said, people)
    try:
        listed = await api.pages(path)
    except ForgeRefused as refused:
        why = f"the token may not read who belongs to the repository ({refused})"
        why += "; name them in `landing.forge.people`, or in `people.forge`"
        raise ForgeUnauthorized(why) from refused
    pushing = {text(one, name).casefold() for one in listed if whole(one, "access_level") >= level}
    return heard(said, people | pushing)


def heard(said: Iterable[PullRequestComment], people: frozenset[str]) -> tuple[PullRequestComment, ...]:
    """Keep what these people said."""
    return tuple(one for one in ordered(said) if one.by.casefold() in people)


def ordered(said: Iterable[PullRequestComment]) -> tuple[PullRequestComment, ...]:
    """Put remarks into their order, and leave out what is ours or says nothing."""
    kept = {one.id: one for one in said if OURS not in one.text and (one.text.strip() or one.kind != "comment")}
    return tuple(sorted(kept.values(), key=lambda one: (one.at, one.id)))
