"""Where the OpenCode server is: one that ashep runs itself, or one that somebody else does."""

import ipaddress
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from ashep.adapters.opencode.attached import AttachedServer
from ashep.adapters.opencode.client import Address
from ashep.adapters.opencode.server import ManagedServer
from ashep.core.policy.settings import OpencodeSettings
from ashep.errors import ConfigError


class Endpoint(Protocol):
    """Where the server is, managed or attached."""

    async def reach(self) -> Address:
        """Make it answer and say where."""
        ...

    async def living(self) -> Address:
        """Say where it is, if it runs; nothing is started."""
        ...

    async def stop(self) -> bool:
        """End it where it is ours."""
        ...

    async def memory(self) -> int | None:
        """How many bytes it and what it keeps running hold, where it is ours; its log is kept short on the way."""
        ...

    async def ask_for_room(self) -> None:
        """Raise RunnerUnavailable, on one line, where its disk takes hardly anything more and it is ours."""
        ...

    def refused(self) -> None:
        """Learn that its address refused a connection."""
        ...


def endpoint_of(
    settings: OpencodeSettings,
    directory: Path,
    state: Path,
    environ: Mapping[str, str],
    secret: Collection[str] = (),
) -> Endpoint:
    """Find what config.yaml describes; ConfigError for what must not be used, or cannot be.

    `secret`: variables that a server of ours never gets.
    """
    if settings.url is not None:
        password = environ.get(settings.password_env) or None
        if password is None and not (urlsplit(settings.url).password or is_loopback(settings.url)):
            raise ConfigError(
                f"an agent server on another machine needs a password: whoever reaches {settings.url} may run anything "
                f"there. Start it with OPENCODE_SERVER_PASSWORD, and set {settings.password_env} for ashep",
                file="config.yaml",
                key="runners.opencode.url",
            )
        return AttachedServer(url=settings.url, password=password, state=state, environ=environ)
    if not settings.managed:
        message = "a server that is not managed needs a url"
        raise ConfigError(message, file="config.yaml", key="runners.opencode.url")
    return ManagedServer(
        command=settings.command,
        directory=directory,
        state=state,
        environ=environ,
        nice=settings.nice,
        named=settings.environment,
        secret=secret,
    )


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine alone. A name is not looked up: any but `localhost` may lead elsewhere."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
