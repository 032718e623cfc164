"""Where issues come from besides the tracker: stories of BMAD, and issues of GitHub."""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ashep.core.policy.base_types import Document, Span, Word


class Bmad(Document):
    """Stories of the BMAD method (docs/guides/stories.md)."""

    enabled: bool = False
    """Whether `ashep work` keeps an issue of each story, as `ashep story sync` does: when it begins, and when a story
    has changed."""
    contexts: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=100)] = ()
    """Files that the arbiter reads next to the story, as `docs/architecture.md`; a path begins at the project's
    folder."""


class GitHubSource(Document):
    """Issues of a repository at GitHub (docs/guides/github.md)."""

    label: Word = "ashep"
    """An issue is worked on once somebody who may write to the repository has set this label."""
    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)] | None = None
    """`owner/name`; null: what the git remote `remote` leads to."""
    remote: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)] = "origin"
    """The git remote that says which repository it is."""
    url: Annotated[str, Field(pattern=r"^https?://[^\s@?#]+$")] | None = None
    """The address of its interface, as `https://git.example/api/v3`; null: that of github.com, or of
    the remote's host."""
    token_env: Word = "GITHUB_TOKEN"
    """The environment variable that holds the token; where it is not set, `gh auth token` is asked."""
    poll_every: Span = timedelta(minutes=1)
    """How often it is asked what has changed: one request, where nothing has."""
    timeout: Span = timedelta(seconds=30)
    """The bound of one request."""
    strangers: Literal["hide", "read"] = "hide"
    """Whether agents read comments of people who may not write to the repository."""
    publish: Literal["state", "full"] = "state"
    """What is published there: `state`: how far it is, questions and results; `full`, for private repositories: the
    phase, the agent, the cost and what agents said, too."""


def short_name(repository: str) -> str:
    """Give the word for a repository in ids of issues, where there are several."""
    return "-".join(re.findall(r"[A-Za-z0-9]+", repository.rpartition("/")[2])).lower()


class Sources(Document):
    """Where issues come from besides the tracker. They are kept in the tracker, too."""

    github: GitHubSource | Annotated[tuple[GitHubSource, ...], Field(max_length=20)] | None = None
    """Issues of GitHub that carry a label: of one repository, or a list of several."""

    @property
    def all(self) -> tuple[GitHubSource, ...]:
        """Give each of them."""
        github = self.github
        return () if github is None else github if isinstance(github, tuple) else (github,)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [source.repository for source in self.all]
        if len(names) > 1 and (None in names or len({short_name(name) for name in names if name}) < len(names)):
            raise ValueError("of several repositories each needs `repository`, with a name that no other has")
        return self
