"""Forges: where people look at branches before they merge them (`ashep.ports.landing.Forge`).

Never: merging or closing what they look at, or what follows from it.
"""

import ashep.adapters.system.http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

# isort: split
import os
from collections.abc import Mapping

from ashep.adapters.forges.gitea import Gitea
from ashep.adapters.forges.github import HEADERS, GitHub
from ashep.adapters.forges.github_cli import GhProgram
from ashep.adapters.forges.gitlab import GitLab
from ashep.adapters.forges.parsing import people_of
from ashep.adapters.system.rest_api import Api, Http
from ashep.core.policy.landing import ForgeSettings
from ashep.errors import ForgeUnauthorized
from ashep.ports.landing import Forge
from ashep.redaction import Redaction

__all__ = ["forge_of"]

_SCHEMES = {
    "github": ("Authorization", "Bearer "),
    "gitlab": ("PRIVATE-TOKEN", ""),
    "gitea": ("Authorization", "token "),
}


def forge_of(
    settings: ForgeSettings, redaction: Redaction | None = None, environ: Mapping[str, str] | None = None
) -> Forge:
    """Give the forge that the settings name. Its token is read now, and never written down.

    Raises `ForgeUnauthorized` where the variable of the token is not set.
    """
    redaction, environ = redaction or Redaction(), os.environ if environ is None else environ
    timeout = settings.timeout.total_seconds()
    people = people_of(settings.people)
    if settings.type == "gh":
        return GitHub(Api(GhProgram(timeout), redaction), settings.repository, people)
    token = environ.get(settings.token_variable, "").strip()
    if not token or not token.isprintable():
        raise ForgeUnauthorized(f"the environment variable {settings.token_variable} holds no token")
    redaction.add(token)
    name, scheme = _SCHEMES[settings.type]
    headers = {name: scheme + token} | (HEADERS if settings.type == "github" else {})
    api = Api(Http(settings.address, headers, timeout), redaction)
    kinds = {"github": GitHub, "gitlab": GitLab, "gitea": Gitea}
    return kinds[settings.type](api, settings.repository, people)
