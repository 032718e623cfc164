"""The user's logins as agents in a sandbox have them: a copy that they can only read, without what renews it.

Whatever reads a login obeys it: one of OpenCode may name an address from which it takes configuration, and an account
decides who reads what is said. So nothing of a copy comes back. A refresh token is the login itself, and an issuer may
take it once: an agent that used it would log the user out. So no sandbox gets one; it is ashep that renews a login, in
a request of its own with the user's own token, where it knows how to ask the issuer (`ISSUERS`: as OpenCode 1.18.33 and
Claude Code 2.1.330 do). Any other ends with its access token, until the user renews it.
"""

import json
import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import anyio
import anyio.to_thread
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from ashep.adapters.system.http_client import make_client  # it comes before httpx

# isort: split
import httpx

from ashep.journal import durable_io

_DUE = 15 * 60.0  # seconds before its end at which a login is renewed: a look a minute finds it in time
_WHOLE = 20.0  # seconds for an issuer to answer
_MOST = 64 * 1024  # bytes of its answer
_STALE = 60.0  # seconds after which Claude Code takes nobody to hold its lock
_LOCK = ".oauth_refresh.lock"


class Keys(NamedTuple):
    """How a kind of agent names the parts of a login."""

    access: str
    refresh: str
    expires: str


OPENCODE, CLAUDE = Keys("access", "refresh", "expires"), Keys("accessToken", "refreshToken", "expiresAt")


class Issuer(NamedTuple):
    """Who gives tokens, and how it is asked for another pair."""

    url: str
    client: str
    form: bool = True


ISSUERS = {
    "openai": Issuer("https://auth.openai.com/oauth/token", "app_EMoamEEZ73f0CkXaXp7hrann"),
    "xai": Issuer("https://auth.x.ai/oauth2/token", "b1a00492-073a-47ea-816f-4c329264a828"),
    "claudeAiOauth": Issuer(
        "https://platform.claude.com/v1/oauth/token", "9d1c250a-e61b-44d9-88ed-5944d1962f5e", form=False
    ),
}
"""By the name of the login in its file: those that ashep can ask."""

_Login = dict[str, JsonValue]
_FILE = TypeAdapter(_Login)


class _Pair(BaseModel):
    access_token: str
    refresh_token: str | None = None
    expires_in: float = 3600.0


class Logins:
    """A file of the user's with logins, and its copy for sandboxes."""

    def __init__(self, file: Path, folder: Callable[[], Path], keys: Keys) -> None:
        """`folder` gives that of the copy, which no sandbox may write to, and may block."""
        self.file, self._folder, self._keys = file, folder, keys
        self._refused, self._turn = set[str](), anyio.Lock()
        self.used = False
        """Whether a sandbox of this process has it."""

    @cached_property
    def folder(self) -> Path:
        """The folder of the copy."""
        return self._folder()

    @property
    def copy(self) -> Path:
        """The copy; it is not there where the user has no login."""
        return self.folder / self.file.name

    def lasting(self) -> list[str]:
        """Name the logins that somebody renews, and ashep cannot. Blocks."""
        return [
            name
            for name, login in _logins(self.file).items()
            if name not in ISSUERS and self._drop_refresh_token(login) != login
        ]

    async def keep(self) -> None:
        """Renew what is about to end, and update the copy: before a sandbox begins, and at times. Raises `OSError`."""
        self.used = True
        async with self._turn:
            await anyio.to_thread.run_sync(lambda: durable_io.make_folder(self.folder))
            for name, issuer in ISSUERS.items():
                if await anyio.to_thread.run_sync(self._due, name):
                    with anyio.CancelScope(shield=True):  # an answer that is not written down is a login that is lost
                        await self._renew(name, issuer)
            await anyio.to_thread.run_sync(self._write_copy)

    def _due(self, name: str) -> str:
        """Give the token that renews a login, where it is about to end; empty: nothing is to be done."""
        login = _logins(self.file).get(name, {})
        ends, token = login.get(self._keys.expires), login.get(self._keys.refresh)
        if not isinstance(ends, int | float) or not isinstance(token, str) or token in self._refused:
            return ""
        return token if ends / 1000 < time.time() + _DUE else ""

    async def _renew(self, name: str, issuer: Issuer) -> None:
        lock = self.file.resolve().parent / _LOCK  # Claude Code's own, so that the user's does not ask meanwhile
        token = ""
        try:
            with suppress(FileNotFoundError):
                if time.time() - lock.stat().st_mtime > _STALE:
                    lock.rmdir()
            lock.mkdir()
        except OSError:  # somebody else renews it
            return
        try:
            if not (token := await anyio.to_thread.run_sync(self._due, name)):
                return
            status, body = await _ask(issuer, token, _logins(self.file).get(name, {}).get("scopes"))
            if status in {400, 401, 403}:
                self._refused.add(token)
            elif status == 200:
                await anyio.to_thread.run_sync(self._write, name, token, _Pair.model_validate_json(body))
        except ValidationError:  # it answers something else
            self._refused.add(token)
        finally:
            with suppress(OSError):
                lock.rmdir()

    def _write(self, name: str, token: str, pair: _Pair) -> None:
        content, login, keys = _read(self.file), _logins(self.file).get(name, {}), self._keys
        if login.get(keys.refresh) == token:  # else the user has logged in meanwhile
            ends = int((time.time() + pair.expires_in) * 1000)
            new = {keys.access: pair.access_token, keys.refresh: pair.refresh_token or token, keys.expires: ends}
            durable_io.replace(self.file.resolve(), json.dumps(content | {name: login | new}, indent=2).encode())

    def _write_copy(self) -> None:
        if not self.file.is_file():
            self.copy.unlink(missing_ok=True)
            return
        copy = {
            name: self._drop_refresh_token(login) for name, login in _logins(self.file).items() if name != "mcpOAuth"
        }
        text = json.dumps(copy).encode()
        if not self.copy.is_file() or self.copy.read_bytes() != text:
            durable_io.replace(self.copy, text)

    def _drop_refresh_token(self, login: _Login) -> _Login:
        """Take away what renews a login; where it is what is sent with each request, too, it stays."""
        if login.get(self._keys.refresh) == login.get(self._keys.access):
            return login
        return {name: "" if name == self._keys.refresh else value for name, value in login.items()}


async def _ask(issuer: Issuer, token: str, scopes: JsonValue) -> tuple[int, bytes]:
    """Ask for another pair: the status of the answer (0: there is none that can be taken), and what it says."""
    request = {"grant_type": "refresh_token", "refresh_token": token, "client_id": issuer.client}
    if isinstance(scopes, list):
        request["scope"] = " ".join(map(str, scopes))
    body, kind = (urlencode(request), "x-www-form-urlencoded") if issuer.form else (json.dumps(request), "json")
    headers = {"Content-Type": f"application/{kind}", "Accept": "application/json"}
    with suppress(httpx.HTTPError, OSError):
        trusted = await anyio.to_thread.run_sync(_trusted)
        with anyio.fail_after(_WHOLE):
            async with make_client(_MOST, verify=trusted, timeout=_WHOLE, follow_redirects=False) as client:
                answer = await client.post(issuer.url, content=body, headers=headers)
        return answer.status_code, answer.content
    return 0, b""


def _trusted() -> ssl.SSLContext:
    """Whom the machine trusts, and, as both programs do, whom `NODE_EXTRA_CA_CERTS` names."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
        context.load_verify_locations(extra)
    return context


def _read(file: Path) -> _Login:
    """Read a file of logins; one that cannot be read has none."""
    with suppress(OSError, ValidationError):
        return _FILE.validate_json(file.read_bytes())
    return {}


def _logins(file: Path) -> dict[str, _Login]:
    return {name: login for name, login in _read(file).items() if isinstance(login, dict)}


_KNOWN = dict[Path, frozenset[str]]()
"""The addresses that stood in each file when this process looked first."""


def orders(file: Path) -> list[str]:
    """Name addresses in a file of logins that OpenCode is configured from, new since our first look at it. Blocks."""
    addresses = {name for name, login in _logins(file).items() if login.get("type") == "wellknown"}
    return sorted(addresses - _KNOWN.setdefault(file, frozenset(addresses)))
