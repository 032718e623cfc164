"""Asks a REST interface: every request bounded in time, every answer in size, and every failure told apart."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import anyio
import httpx

from ashep.adapters.system.http_client import AnswerTooLarge, make_client
from ashep.core.text import clean
from ashep.errors import ForgeRefused, ForgeUnauthorized, ForgeUnavailable
from ashep.redaction import Redaction

LARGEST = 16 * 1024 * 1024
"""Bytes of the largest answer."""

PER_PAGE = 100

MOST_PAGES = 10
"""Pages of one list."""

SECONDARY = 60.0
"""Seconds to wait where a forge refuses for its rate limit and does not say how long (GitHub asks for a minute)."""

_LIMITED = re.compile(r"rate limit|abuse", re.IGNORECASE)
_JSON = (dict, list)


@dataclass(frozen=True, slots=True)
class ForgeResponse:
    """What a forge answered; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Transport(Protocol):
    """A way to ask."""

    async def ask(
        self, method: str, path: str, params: Mapping[str, str | int], data: Any, etag: str = ""
    ) -> ForgeResponse:
        """Send a request; `path` begins with a slash and is encoded already. Raises `ForgeUnavailable`.

        `etag`: what is known; where that is still so the status is 304.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what is open."""
        ...


class Http:
    """Asks with httpx; redirects are not followed, because a token is sent along."""

    def __init__(self, address: str, headers: Mapping[str, str], timeout: float) -> None:
        self._timeout = timeout
        self._client = make_client(
            LARGEST,
            base_url=address,
            headers={"User-Agent": "agent-shepherd", **headers},
            timeout=timeout,
            follow_redirects=False,
        )

    async def ask(
        self, method: str, path: str, params: Mapping[str, str | int], data: Any, etag: str = ""
    ) -> ForgeResponse:
        conditions = {"If-None-Match": etag} if etag else {}
        try:
            with anyio.fail_after(self._timeout):
                response = await self._client.request(method, path, params=params, json=data, headers=conditions)
            return ForgeResponse(
                response.status_code, {k.lower(): v for k, v in response.headers.items()}, response.content
            )
        except AnswerTooLarge as error:
            raise ForgeRefused(f"{path} answers with more than {LARGEST // 1024**2} MiB") from error
        except (httpx.HTTPError, TimeoutError) as error:
            never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            reason = str(error) or type(error).__name__
            unknown = method != "GET" and not never_sent
            raise ForgeUnavailable(f"{self._client.base_url.host}: {reason}", unknown=unknown) from error

    async def aclose(self) -> None:
        await self._client.aclose()


class Api:
    """Requests of JSON by a transport; what a forge says loses secrets."""

    def __init__(self, transport: Transport, redaction: Redaction) -> None:
        self._transport, self._redaction = transport, redaction

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def get(self, path: str, **params: str | int) -> Any:
        """Read. Raises the errors of `ashep.ports.landing.Forge`."""
        return (await self.get_changed(path, "", **params))[0]

    async def get_changed(self, path: str, etag: str, **params: str | int) -> tuple[Any, ForgeResponse]:
        """Read what may be known by its ETag: None where that is still so."""
        answer = await self._transport.ask("GET", path, params, None, etag)
        return (None if etag and answer.status == 304 else self._read(path, answer)), answer

    async def post(self, path: str, data: Mapping[str, Any], *, method: str = "POST") -> Any:
        """Write. Raises the errors of `ashep.ports.landing.Forge`."""
        return self._read(path, await self._transport.ask(method, path, {}, dict(data)), is_write=True)

    async def pages(self, path: str, size: str = "per_page", **params: str | int) -> list[Any]:
        """Read a list, `MOST_PAGES` pages of it at most. A server may give fewer on a page than it is asked for."""
        items: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            part, answer = await self.get_changed(path, "", **params, **{size: PER_PAGE, "page": page})
            items += part if isinstance(part, list) else []
            if not part or 'rel="next"' not in answer.headers.get("link", ""):
                break
        return items

    def _read(self, path: str, answer: ForgeResponse, *, is_write: bool = False) -> Any:
        text = self._redaction.text(answer.content[:4000].decode(errors="replace"))
        message = " ".join(clean(text).split())[:300]
        if answer.status in (200, 201):
            try:
                data = json.loads(self._redaction.data(answer.content))
            except ValueError as error:
                raise ForgeUnavailable(f"{path} answers with something that is no JSON", unknown=is_write) from error
            if not isinstance(data, _JSON):
                raise ForgeUnavailable(f"{path} answers with neither an object nor a list", unknown=is_write)
            return data  # pyright: ignore[reportUnknownVariableType] - JSON
        if answer.status == 401:
            raise ForgeUnauthorized(f"the forge does not take the token: {message}")
        spent = answer.headers.get("x-ratelimit-remaining") == "0"
        limited = spent or "retry-after" in answer.headers or _LIMITED.search(message) is not None
        if answer.status == 429 or (answer.status == 403 and limited):
            raise ForgeUnavailable(f"the forge's rate limit is used up: {message}", retry_after=_wait(answer))
        if answer.status >= 500:
            raise ForgeUnavailable(
                f"{path} answers {answer.status}: {message}", retry_after=_wait(answer, 0), unknown=is_write
            )
        raise ForgeRefused(f"{path} answers {answer.status}: {message}", status=answer.status)


def _wait(answer: ForgeResponse, otherwise: float = SECONDARY) -> float:
    """Give the seconds after which the forge wants to be asked again; its own clock says what time it is there."""
    headers = answer.headers
    if (seconds := headers.get("retry-after", "")).isdecimal():
        return float(seconds)
    reset = headers.get("x-ratelimit-reset") or headers.get("ratelimit-reset") or ""
    if headers.get("x-ratelimit-remaining", headers.get("ratelimit-remaining")) == "0" and reset.isdecimal():
        try:
            server_time = parsedate_to_datetime(headers["date"]).timestamp()
        except (KeyError, ValueError, TypeError):
            return otherwise
        return max(0.0, float(reset) - server_time)
    return otherwise
