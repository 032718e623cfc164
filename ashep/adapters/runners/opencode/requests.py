"""What OpenCode's sessions ask, as `GET /permission` and `GET /question` list it, and how it is answered.

As tried on the real server 1.18.33 (tests/e2e/test_asking.py repeats it): a permission that is denied *with* a message
lets the model go on, and one without ends the turn; so does a rejected question, and therefore none is ever rejected.
An answer to a question may be any text. Whatever was answered is not listed any more, and a second answer is a 404.

One request that the server cannot write down, a `webfetch` without its optional timeout say, and the list of its folder
is a 400 until that one is answered (tests/conformance/test_runner.py does it again). The event stream tells it all the
same: so what it tells is kept, and stands in for a list that is refused.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import httpx
from pydantic import TypeAdapter, ValidationError

from ashep.adapters.runners.opencode import schema
from ashep.adapters.runners.opencode.provider_errors import Read
from ashep.adapters.runners.opencode.session_directories import SessionDirectories
from ashep.core.facts.requests import LONGEST, MOST, Answers, Asked, Request, RequestKind, Verdict, cut
from ashep.core.text import read_json
from ashep.errors import RunnerRefused
from ashep.redaction import Redaction

Get = Callable[[str, str | None], Awaitable[bytes]]
"""Asks the server for a path, of a folder."""

Whose = Callable[[str], Awaitable[str | None]]
"""The session of ours at whose root a session is; None: it is a stranger's."""


class _Option(Read):
    label: str


class _Question(Read):
    question: str
    options: tuple[_Option, ...] = ()
    multiple: bool = False


class _Permission(Read):
    id: str
    sessionID: str
    permission: str = ""
    patterns: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}

    def as_request(self) -> Request:
        patterns = tuple(cut(pattern) for pattern in self.patterns[:MOST])
        detail = next((cut(str(self.metadata[name])) for name in _DETAILS if name in self.metadata), "")
        return Request(self.id, self.sessionID, "permission", self.permission, patterns, detail)


class _Questions(Read):
    id: str
    sessionID: str
    questions: tuple[_Question, ...] = ()

    def as_request(self) -> Request:
        asks = tuple(
            Asked(cut(one.question), tuple(cut(option.label) for option in one.options[:MOST]), one.multiple)
            for one in self.questions[:MOST]
        )
        return Request(self.id, self.sessionID, "question", asks=asks)


_LISTS: dict[RequestKind, TypeAdapter[Any]] = {
    "permission": TypeAdapter(tuple[_Permission, ...]),
    "question": TypeAdapter(tuple[_Questions, ...]),
}
_DETAILS = ("command", "filepath", "url", "query")
"""What the metadata of a permission calls the thing that a tool is to be used for."""

KEPT = 1000
"""Requests that are kept of what the stream told, the newest."""


class ReportedRequests:
    """What the event stream told of requests: those that were asked and not answered since, while it stood."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._open: dict[str, Request] = {}

    def hear(self, kind: str, event: str) -> None:
        """Take in an event of a request; where its text cannot be read, its ids are kept, so that it can be denied."""
        try:
            content: Any = read_json(self._redaction.data(event.encode(errors="replace")))
            properties = content["payload"]["properties"]
            if kind.endswith(".asked"):
                request = _request(kind, properties)
                self._open.pop(request.id, None)
                self._open[request.id] = request
            else:
                self._open.pop(str(properties["requestID"]), None)
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if len(self._open) > KEPT:
            del self._open[next(iter(self._open))]

    def forget(self) -> None:
        """The server's life is over, and what it asked with it."""
        self._open.clear()

    def list_open(self, kind: str) -> tuple[Request, ...]:
        """What waits for an answer, by the sessions that ask."""
        return tuple(one for one in self._open.values() if one.kind == kind)


def _request(kind: str, properties: dict[str, Any]) -> Request:
    list_kind = "permission" if kind.startswith("permission") else "question"
    try:
        return _LISTS[list_kind].validate_python((properties,))[0].as_request()
    except ValidationError:
        return Request(str(properties["id"]), str(properties["sessionID"]), list_kind)


async def list_requests(
    get: Get, whose: Whose, places: SessionDirectories, reported: ReportedRequests, sessions: Collection[str]
) -> tuple[Request, ...]:
    """What these sessions ask, by the lists of their folders; where one is refused, by what the stream told."""
    open_requests: list[Request] = []
    for place in await places.find_directories(sessions):
        requests, refused = await listed(get, place, whose)
        open_requests += requests
        for kind, reason in refused.items():
            candidates = [Request("", session, kind) for session in sorted(sessions)]
            candidates += await of_ours(reported.list_open(kind), whose)
            here = [one for one in candidates if await places.find_directory(one.session) == place]
            open_requests += [replace(request, unlisted=reason) for request in here]
    return tuple({(one.session, one.id): one for one in open_requests}.values())


async def drop(
    post: Callable[[str, str, object], Awaitable[httpx.Response]], whose: Whose, session: str, open_: Iterable[Request]
) -> None:
    """Take what a stopped turn asked off the server's list (facts/opencode.md 19), which it may keep unreadable."""
    for one in await of_ours(open_, whose):
        if one.session == session:
            how = "reply" if one.kind == "permission" else "reject"
            await post(session, f"/{one.kind}/{one.id}/{how}", {"reply": "reject"})


async def of_ours(requests: Iterable[Request], whose: Whose) -> list[Request]:
    """Those that sessions of ours ask, or subagents below them, under the name of ours."""
    owned = [(one, await whose(one.session)) for one in requests]
    return [replace(one, session=session) for one, session in owned if session is not None]


async def listed(get: Get, place: str | None, whose: Whose) -> tuple[list[Request], dict[RequestKind, str]]:
    """Everything that sessions of ours in a folder ask; and why a kind of it is not listed."""
    open_requests: list[Request] = []
    refused: dict[RequestKind, str] = {}
    for kind, shape in _LISTS.items():
        try:
            content = await get(f"/{kind}", place)
            entries: tuple[Any, ...] = shape.validate_json(schema.whole(content))
        except RunnerRefused as error:
            refused[kind] = str(error)[:LONGEST]
        except ValidationError as error:
            refused[kind] = f"GET /{kind}: {error.errors(include_url=False, include_input=False)[0]}"[:LONGEST]
        else:
            open_requests += await of_ours([entry.as_request() for entry in entries], whose)
    return open_requests, refused


def reply(kind: RequestKind, verdict: Verdict, answers: Answers, message: str) -> dict[str, object]:
    """What a request is answered with."""
    if kind == "permission":
        return {"reply": "once"} if verdict == "allow" else {"reply": "reject", "message": message}
    return {"answers": [list(answer) for answer in answers]}
