"""Where work goes that is done: landing, and the forges where pull requests are opened."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ashep.core.policy.base_types import Document, Span, Word
from ashep.core.policy.globs import GlobList

ForgeType = Literal["github", "gitlab", "gitea", "gh"]

_ADDRESSES = {"github": "https://api.github.com", "gitlab": "https://gitlab.com/api/v4", "gh": "", "gitea": ""}
_TOKENS = {"github": "GITHUB_TOKEN", "gitlab": "GITLAB_TOKEN", "gitea": "GITEA_TOKEN", "gh": ""}


class ForgeSettings(Document):
    """Where pull requests are opened."""

    type: ForgeType
    """`github`, `gitlab` or `gitea` (Forgejo too) by their HTTP interface; `gh`: GitHub by its own program, which is
    logged in already."""
    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$", max_length=300)]
    """`owner/name`; at GitLab the whole path of the project."""
    url: Annotated[str, Field(pattern=r"^https?://[^\s@?#]+$")] | None = None
    """The address of its interface, as `https://git.example/api/v1`; null: that of github.com or gitlab.com. Needed for
    `gitea`; no part of `gh`."""
    token_env: Word | None = None
    """The environment variable that holds the token; null: `GITHUB_TOKEN`, `GITLAB_TOKEN` or `GITEA_TOKEN`."""
    remote: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)] = "origin"
    """The git remote that branches are pushed to."""
    timeout: Span = timedelta(seconds=30)
    """The bound of one request."""
    poll_every: Span = timedelta(minutes=1)
    """How often an open pull request is looked at."""

    people: tuple[Word, ...] | None = None
    """Whose remarks and reviews count, by their names there, or as `people.forge` says it, which takes its place; null:
    those of who belongs to the repository (GitHub: owners, members, collaborators; GitLab: members from Developer on;
    Gitea: who may push). No agent sees others'."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if ".." in self.repository.split("/"):
            raise ValueError("`repository` is the path of a repository, as owner/name")
        if self.type == "gitea" and self.url is None:
            raise ValueError("gitea needs `url`, as https://git.example/api/v1")
        if self.type == "gh" and (self.url is not None or self.token_env is not None):
            raise ValueError("gh knows its address and its token itself: leave `url` and `token_env` out")
        return self

    @property
    def address(self) -> str:
        """The address of its interface, without a slash at its end."""
        return (self.url or _ADDRESSES[self.type]).rstrip("/")

    @property
    def token_variable(self) -> str:
        """The environment variable that holds the token; empty for gh."""
        return self.token_env or _TOKENS[self.type]


class LandingSettings(Document):
    """Where the work of an issue goes that its policy closes. It concerns issues with a work tree of their own."""

    mode: Literal["merge", "branch", "pull_request"] = "merge"
    """`merge`: it is brought onto the newest base, verified there where anything is to be checked, and then the base
    moves. `branch`: it stays on the issue's branch. `pull_request`: once what is to be checked holds, the branch is
    pushed, and a pull request asks people to merge it; the issue closes when one of them did. It needs `forge`."""
    base: Annotated[str, Field(pattern=r"^[^-\s][^\s]*$", max_length=200)] | None = None
    """The branch on which work lands; `null`: the one that the user's checkout had when the issue's tree was made."""
    fetch: bool | None = None
    """Whether the branch of a remote that the base follows is fetched; no branch of yours is moved by that. `null`:
    with `pull_request` before an issue begins, which begins there, and never otherwise. `true` with another mode: at
    the start and every ten minutes, so that `ashep status` says how far the base is behind."""
    method: Literal["merge", "squash", "rebase"] = "merge"
    """A merge commit; one commit with all of it; or its commits again on the base, one by one."""
    forge: ForgeSettings | None = None
    """Where pull requests are opened."""
    merge_by_key: GlobList = ("**/sprint-status.yaml",)
    """YAML files in which changes of different keys never conflict: where git cannot merge one, the base gets what the
    branch changed, key by key (docs/guides/landing.md#files-that-are-merged-by-key)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.mode == "pull_request" and self.forge is None:
            raise ValueError("`mode: pull_request` needs `forge`, as {type: github, repository: owner/name}")
        return self

    @property
    def fetches(self) -> bool:
        """Whether the base is fetched."""
        return self.mode == "pull_request" if self.fetch is None else self.fetch

    @property
    def begins_at_remote(self) -> bool:
        """Whether issues begin where the base is at the remote."""
        return self.mode == "pull_request" and self.fetches
