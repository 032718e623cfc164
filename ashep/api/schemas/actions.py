"""What people ask to be done on the page, and what is said of it."""

from typing import Annotated, Literal

from pydantic import Field

from ashep.api.schemas.verification import Answer, Given

Words = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")]


MOST_FILES = 2000
"""Changed files that are listed."""


class SeenFiles(Given):
    """Files that a person has looked through."""

    head: Annotated[str, Field(max_length=100)]
    """The commit that they are of."""
    paths: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=MOST_FILES)]


class Act(Given):
    """What a person wants of an issue."""

    do: Literal["approve", "reject", "answer", "retry", "take", "release"]
    message: Words = ""
    """A comment; of `answer` and `reject` what the agent is told."""
    asked: Annotated[str, Field(max_length=40)] | None = None
    """Of approve, reject and answer: the `asked` of the question that the person saw."""
    instead: Annotated[str, Field(max_length=200)] | None = None
    """Of approve, reject and answer: the `id` of the answer of a person that the person saw, and replaces."""
    flags: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=50)] = ()
    """Of approve: the flags of the work that the person saw."""
    seen: SeenFiles | None = None
    """Of approve: the files that the person marked as seen."""
    phase: Name | None = None
    """Of retry: the phase to go on with."""


class StandingAnswer(Answer):
    """An answer of a person that stands in the tracker, and that no daemon has followed yet."""

    issue: str
    id: str
    """What another answer names that replaces it."""
    answer: Literal["approved", "changes_requested", "answered"]
    by: str
    at: str


class Answers(Answer):
    """Answers to questions that are open by the journal, as the tracker showed them a moment ago."""

    seq: int
    """The number of the last record of the journal that this is a picture of."""
    running: bool
    """Whether a daemon runs: it counts them at its next look; else they count once one does."""
    items: list[StandingAnswer]


class Pause(Given):
    """That no run is to start."""

    minutes: Annotated[int, Field(ge=1, le=60 * 24 * 365)] | None = None
    """For how long; null: until it is resumed."""
    provider: Name | None = None
    """Only runs on this provider."""
    why: Words = ""


class Resume(Given):
    """That runs may start again."""

    provider: Name | None = None
    why: Words = ""


class Cancel(Given):
    """That what is done for an issue is to stop."""

    target: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f]*$")]
    """The issue, or the run."""


class Done(Answer):
    """What was done."""

    said: str
