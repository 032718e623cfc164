"""Where the OpenCode server is: one that ashep runs itself, or one that somebody else does."""

import ipaddress
import json
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread

from ashep.adapters.runners.opencode.client import PROBE, Address, probe, was_refused
from ashep.adapters.runners.opencode.server import ManagedServer, folder_of
from ashep.core.policy.settings import OpencodeSettings
from ashep.errors import ConfigError, RunnerUnavailable, ServerSlow
from ashep.journal import durable_io

_LONGEST_PROBE = 60.0  # seconds that a server which others run gets for its health, where it is slow


def endpoint_of(
    settings: OpencodeSettings, directory: Path, state: Path, environ: Mapping[str, str], secret: Collection[str] = ()
) -> "Endpoint":
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
        names=settings.environment,
        secret=secret,
    )


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine alone. A name is not looked up: any but `localhost` may lead elsewhere."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


class AttachedServer:
    """The server at a URL.

    Its life has no name of its own, so that one is made: it holds until the address refuses a connection, which proves
    that the life is over. The name is kept next to the managed server's things, because another name after a restart of
    ashep would claim that the server had died.
    """

    def __init__(self, *, url: str, password: str | None, state: Path, environ: Mapping[str, str]) -> None:
        self._url = url.rstrip("/")
        self._password = password
        self._state, self._environ = state, environ
        self._over, self._patience = False, PROBE

    async def reach(self) -> Address:
        """Probe the address: RunnerUnavailable or RunnerUnauthorized where it does not let us in."""
        try:
            await self._probe()
        except RunnerUnavailable as error:
            self._over = self._over or was_refused(error)
            raise
        name = await anyio.to_thread.run_sync(self._name)
        return Address(url=self._url, password=self._password, instance=name)

    async def living(self) -> Address:
        """Probe the address as `reach` does, and leave its life without a name: nothing is written."""
        await self._probe()
        return Address(url=self._url, password=self._password, instance=f"attached:{self._url}")

    async def _probe(self) -> None:
        """Ask for its health. One that is slow gets twice as long the next time."""
        try:
            await probe(self._url, self._password, self._patience)
        except ServerSlow:
            self._patience = min(self._patience * 2, _LONGEST_PROBE)
            raise
        self._patience = PROBE

    def refused(self) -> None:
        """Note that the address refused a connection: that life of the server is over."""
        self._over = True

    async def stop(self) -> bool:
        return False

    async def memory(self) -> int | None:
        return None

    async def ask_for_room(self) -> None:
        """Do nothing: its disk is not ours to look at."""

    def _name(self) -> str:
        """The name of the present life: the kept one, or a new one where there is none or that life is over."""
        file = folder_of(self._state, self._environ) / "attached.json"
        names: dict[str, str] = {}
        with suppress(OSError, ValueError):
            names = {str(url): str(name) for url, name in json.loads(file.read_text()).items()}
        if self._over or self._url not in names:
            names[self._url] = f"attached:{self._url}:{secrets.token_hex(4)}"
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            durable_io.replace(file, json.dumps(names).encode())
            self._over = False
        return names[self._url]


Endpoint = ManagedServer | AttachedServer
"""Where the server is."""
