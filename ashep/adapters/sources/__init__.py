"""Sources: where issues are kept that are mirrored into the tracker (`ashep.ports.sources`).

Never: changing an issue's words, labels or assignee there, or what follows from them.
"""

import ashep.adapters.system.http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

# isort: split
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ashep.adapters.git.command import Git
from ashep.adapters.sources.github import HEADERS, GitHubIssues
from ashep.adapters.system.gh_login import gh_token
from ashep.adapters.system.remote_address import read_address
from ashep.adapters.system.rest_api import Api, Http
from ashep.core.policy.sources import GitHubSource
from ashep.errors import AshepError, ForgeUnauthorized
from ashep.redaction import Redaction

__all__ = ["Place", "place_of", "source_of"]

PUBLIC = "github.com"


class Place(NamedTuple):
    """Which repository a source is, and where its interface answers."""

    host: str
    repository: str
    url: str


async def place_of(project: Path, settings: GitHubSource) -> Place:
    """Find out which repository is meant. Raises `AshepError` where the remote does not say so."""
    if settings.repository is not None:
        host, path = (urlsplit(settings.url).hostname if settings.url else None) or PUBLIC, settings.repository
    else:
        result = await Git(project).run("remote", "get-url", settings.remote)
        address = result.stdout.decode(errors="replace").strip()
        host, path = read_address(address)
        if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", path):
            place = host or "nowhere"  # the rest may hold a password
            reason = f"the remote {settings.remote} leads to {place}, and names no repository as owner/name"
            raise AshepError(f"{reason}: set `sources.github.repository` in config.yaml")
    url = settings.url or ("https://api.github.com" if host == PUBLIC else f"https://{host}/api/v3")
    return Place(host, path, url.rstrip("/"))


async def source_of(
    project: Path,
    settings: GitHubSource,
    redaction: Redaction | None = None,
    environ: Mapping[str, str] | None = None,
) -> GitHubIssues:
    """Give the source that the settings name. Raises `AshepError`; `ForgeUnauthorized`: there is no token."""
    place, environ = await place_of(project, settings), os.environ if environ is None else environ
    redaction = redaction or Redaction()
    token = environ.get(settings.token_env, "").strip() or await gh_token(place.host)
    if not token or not token.isprintable():
        reason = f"the environment variable {settings.token_env} holds no token, and `gh auth token` gives none"
        raise ForgeUnauthorized(f"{reason}: set it, or log in with `gh auth login`")
    redaction.add(token)
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    api = Api(Http(place.url, headers, settings.timeout.total_seconds()), redaction)
    return GitHubIssues(api, place.repository, settings.label, graphql=f"{place.url.removesuffix('/v3')}/graphql")
