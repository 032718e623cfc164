"""An OpenCode server that somebody else runs: ashep only attaches to it, and never ends it."""

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from ashep.adapters.opencode.client import Address, probe, was_refused
from ashep.adapters.opencode.server import folder_of
from ashep.errors import RunnerUnavailable


class AttachedServer:
    """The server at a URL.

    Its life has no name of its own, so that one is made: it holds until the address refuses a connection, which proves
    that the life is over. The name is kept beside the managed server's things, because another name after a restart of
    ashep would claim that the server had died.
    """

    def __init__(self, *, url: str, password: str | None, state: Path, environ: Mapping[str, str]) -> None:
        self._url = url.rstrip("/")
        self._password = password
        self._state, self._environ = state, environ
        self._over = False

    async def reach(self) -> Address:
        """Probe the address: RunnerUnavailable or RunnerUnauthorized where it does not let us in."""
        try:
            await probe(self._url, self._password)
        except RunnerUnavailable as error:
            self._over = self._over or was_refused(error)
            raise
        name = await anyio.to_thread.run_sync(self._name)
        return Address(url=self._url, password=self._password, instance=name)

    async def living(self) -> Address:
        """Probe the address as `reach` does, and leave its life without a name: nothing is written."""
        await probe(self._url, self._password)
        return Address(url=self._url, password=self._password, instance=f"attached:{self._url}")

    async def memory(self) -> int | None:
        """Say nothing: it is not on this machine, or not ours."""
        return None

    async def ask_for_room(self) -> None:
        """Ask nothing: where its data lie is not known."""

    def refused(self) -> None:
        """Note that the address refused a connection: that life of the server is over."""
        self._over = True

    async def stop(self) -> bool:
        """Do nothing: this server is not ours."""
        return False

    def _name(self) -> str:
        """The name of the present life: the kept one, or a new one where there is none or that life is over."""
        file = folder_of(self._state, self._environ) / "attached.json"
        names: dict[str, str] = {}
        with suppress(OSError, ValueError):
            names = {str(url): str(name) for url, name in json.loads(file.read_text()).items()}
        if self._over or self._url not in names:
            names[self._url] = f"attached:{self._url}:{secrets.token_hex(4)}"
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = file.with_suffix(".new")
            temporary.write_text(json.dumps(names))
            temporary.rename(file)
            self._over = False
        return names[self._url]
