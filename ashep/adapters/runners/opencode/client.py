"""HTTP with an OpenCode server: one connection pool, and every failure as one of ashep's errors."""

import json
from typing import Any, cast

import anyio
import httpx
from pydantic import BaseModel, ValidationError

from ashep.adapters.system.http_client import make_client
from ashep.core.text import clean
from ashep.errors import RunnerMisconfigured, RunnerRefused, RunnerUnauthorized, RunnerUnavailable, ServerSlow
from ashep.redaction import Redaction

CALL = 15.0
"""Seconds for any call to say something."""
_WHOLE = 30.0  # seconds for an answer to be whole
_MOST_TIMES = 8  # so many times as long waits at most a patient call that was not answered in time
MOST = 64 * 1024**2
"""Bytes of an answer that are taken: a page of a session's messages holds a few at most."""
_HEALTH = 64 * 1024  # bytes of an answer to a probe
PROBE = 1.0
"""Seconds of the first probe: the first connection to a starting server may never be answered (fact 18)."""

USER = "opencode"
"""The server's basic-auth user."""


class Address(BaseModel):
    """Where a server answers, and which life of it that is."""

    url: str
    password: str | None
    instance: str


async def probe(url: str, password: str | None, timeout: float = PROBE) -> str:
    """Ask a server's version over a fresh connection (fact 18); RunnerUnavailable or RunnerUnauthorized otherwise."""
    auth = None if password is None else (USER, password)
    try:
        with anyio.fail_after(2 * timeout):
            async with make_client(
                _HEALTH, auth=auth, timeout=timeout, trust_env=False, verify=url.startswith("https:")
            ) as client:
                answer = await client.get(f"{url}/global/health")
        if answer.status_code in {401, 403}:
            raise RunnerUnauthorized(f"the agent server at {url} refuses our password")
        return _Health.model_validate_json(answer.raise_for_status().content).version
    except (TimeoutError, httpx.ReadTimeout) as error:
        raise ServerSlow(f"the agent server at {url} did not answer within {timeout:g} s") from error
    except (httpx.HTTPError, ValidationError) as error:
        raise RunnerUnavailable(f"the agent server at {url} does not answer: {type(error).__name__}") from error


class _Health(BaseModel):
    healthy: bool
    version: str


def was_refused(error: BaseException | None) -> bool:
    """Whether a connection failed because nobody listens at the address; other failures do not prove that."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        if isinstance(error, BaseExceptionGroup):
            inner = cast("tuple[BaseException, ...]", error.exceptions)
            return all(was_refused(one) for one in inner)
        error = error.__cause__ or error.__context__
    return False


class Client:
    """Calls to one life of a server, about one directory."""

    def __init__(self, address: Address, directory: str, redaction: Redaction | None = None) -> None:
        self.address, self._redaction = address, redaction or Redaction()
        self._times = dict[str, int]()
        """So many times as long waits the next patient call to a path that did not answer in time."""
        auth = None if address.password is None else httpx.BasicAuth(USER, address.password)
        self.http = make_client(
            MOST,
            verify=address.url.startswith("https:"),  # to load certificates costs time
            base_url=address.url,
            auth=auth,
            params={"directory": directory},
            timeout=CALL,
            trust_env=False,
        )

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: dict[str, Any] | None = None,
        accept: frozenset[int] = frozenset(),
        patient: bool = False,
    ) -> httpx.Response:
        """Make a call. Statuses in `accept` are answers, beyond those below 400. `patient`: where there is no answer in
        time, the next such call waits twice as long.

        Raises:
            Refused: nobody listens at the address.
            ServerSlow: no answer in time.
            RunnerUnavailable: a broken connection, or a 5xx.
            RunnerUnauthorized: 401 or 403.
            RunnerRefused: another 4xx.

        """
        times = self._times.get(path, 1) if patient else 1
        patience, whole = CALL * times, _WHOLE * times
        try:
            with anyio.fail_after(whole):
                answer = await self.http.request(method, path, json=json, params=params, timeout=patience)
        except (TimeoutError, httpx.TimeoutException) as error:
            if patient:
                self._times[path] = min(times * 2, _MOST_TIMES)
            is_begun = isinstance(error, TimeoutError)
            late = f"no whole answer in {whole:g} s" if is_begun else f"no answer in {patience:g} s"
            raise ServerSlow(f"{method} {path}: {late}") from error
        except httpx.HTTPError as error:
            if isinstance(error, httpx.ConnectError) and was_refused(error):
                raise ConnectionRefused(f"nothing listens at {self.address.url}") from error
            raise RunnerUnavailable(f"{method} {path}: {type(error).__name__} {error}".rstrip()) from error
        self._times.pop(path, None)
        answer = self._redacted(answer)
        check(answer, accept)
        return answer

    def _redacted(self, answer: httpx.Response) -> httpx.Response:
        content = self._redaction.data(answer.content)
        if content is answer.content:
            return answer
        kept = ("content-type", "date", "x-next-cursor")
        kind = {"content-type": "application/json"} | {k: answer.headers[k] for k in kept if k in answer.headers}
        return httpx.Response(answer.status_code, headers=kind, content=content, request=answer.request)

    async def aclose(self) -> None:
        """Close its connections."""
        await self.http.aclose()


class ConnectionRefused(RunnerUnavailable):
    """Nobody listens at the server's address: that life of it is over."""


def check(answer: httpx.Response, accept: frozenset[int] = frozenset()) -> None:
    """Raise the error that a status stands for."""
    status = answer.status_code
    if status < 400 or status in accept:
        return
    what = f"{answer.request.method} {answer.request.url.path}: {status}"
    if status in {401, 403}:
        raise RunnerUnauthorized(f"the agent server refuses our password ({what})")
    if status >= 500 or status in {408, 429}:
        raise RunnerUnavailable(what)
    if answer.is_stream_consumed and (refusal := _refusal_of_configuration(answer.content)) is not None:
        raise refusal
    raise RunnerRefused(f"{what} {answer.text[:300]}" if answer.is_stream_consumed else what)


def _refusal_of_configuration(content: bytes) -> RunnerMisconfigured | None:
    """Read what OpenCode answers of a file of its configuration that it cannot use; None: it is something else."""
    try:
        error: dict[str, Any] = json.loads(content)
        name, data = str(error["name"]), cast("dict[str, Any]", error["data"])
        file, message = clean(str(data["path"])), str(data.get("message", ""))
        problems = [
            f"{'.'.join(map(str, problem['path']))}: {problem['message']}" for problem in data.get("issues", ())
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    words = "; ".join(dict.fromkeys(problems)) or message.rpartition("--- Errors ---")[2].removesuffix("--- End ---")
    refusal = RunnerMisconfigured(file, clean(" ".join(words.split()))[:500] or name)
    return refusal if name.startswith("Config") else None
