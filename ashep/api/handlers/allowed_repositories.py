"""Allow-list of the repositories that the service may be asked for, by path and address, and the commits in them."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread

from ashep.adapters.git.remotes import VerifiedCommit, fetched, find_branch_point, resolve
from ashep.errors import AshepError

_ADDRESS = re.compile(r"(?:https?|ssh|git)://[^\s]+|[\w.-]+@[\w.-]+:[^\s]+")
_NO_BRANCH = re.compile(r"\.\.|//|@\{|/\.|\.lock(?:/|$)|[/.]$")
"""What git refuses in the name of a branch, of what its pattern lets through."""


class NotAllowed(AshepError):
    """The repository is none that may be asked for."""


class Unclear(AshepError):
    """Which repository is meant is not known."""


class NoBranch(AshepError):
    """The repository has no such branch."""


class AllowedRepositories:
    """The project, or what the settings name in its place."""

    def __init__(self, project: Path, allowed: Sequence[str], folder: Path) -> None:
        """`allowed`: paths (relative ones begin at the project) and addresses; none: the project alone. `folder`: where
        repositories from elsewhere are kept.
        """
        self._project, self._folder = project, folder
        self._allowed = tuple(allowed) or (str(project),)
        self._fetching = {one: anyio.Lock() for one in self._allowed}

    async def candidate(self, repository: str | None, branch: str) -> VerifiedCommit:
        """Find the tip of a branch, and where it began. None: in the project, or the only repository that is allowed.

        Raises `NotAllowed`, `Unclear`, `NoBranch`, and `AshepError`.
        """
        place = await to_thread.run_sync(self._find_repository, repository)
        if _NO_BRANCH.search(branch):
            raise NoBranch(f"{branch} is no name of a branch")
        if isinstance(place, str):
            async with self._fetching[place]:
                try:
                    place = await fetched(place, branch, self._folder)
                except AshepError as error:
                    if "couldn't find remote ref" in str(error):
                        raise NoBranch(f"{place} has no branch {branch}") from error
                    raise
        try:
            commit = await resolve(place, f"refs/heads/{branch}")
        except AshepError as error:
            raise NoBranch(f"{repository or place} has no branch {branch}") from error
        return VerifiedCommit(place, commit, await find_branch_point(place, commit, branch), branch)

    def _find_repository(self, repository: str | None) -> Path | str:
        """Give the folder, or the address as the settings have it."""
        places = {name: self._plain(name) for name in self._allowed}
        address = self._plain(repository or str(self._project))
        if repository is None and address not in places.values():
            if len(places) > 1:
                raise Unclear(f"repo_url: name one of the {len(places)} repositories of `verification.repositories`")
            (address,) = places.values()
        for name, place in places.items():
            if place == address:
                return place if isinstance(place, Path) else name
        reason = "is not among the repositories that may be verified (`verification.repositories`)"
        raise NotAllowed(f"{repository} {reason}")

    def _plain(self, repository: str) -> Path | str:
        """Give a path or address so that the same ones are equal."""
        if repository.startswith("file://"):
            parts = urlsplit(repository)
            return Path(unquote(parts.path)).resolve() if parts.netloc in ("", "localhost") else repository
        if _ADDRESS.fullmatch(repository):
            return repository.rstrip("/").removesuffix(".git")
        try:
            return (self._project / Path(repository).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):  # a name that no file can have
            return repository
