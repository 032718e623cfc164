"""HTTP: who may ask, how much, and what becomes of what goes wrong. The answers themselves are those of `tickets`."""

import re
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from http import HTTPStatus
from typing import Any

import anyio
from anyio import to_thread
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ashep.actions.answers import Answered, NotAsked
from ashep.actions.verify import NoChecks, NoSuchIssue
from ashep.api.connection_limits import AT_ONCE, ConnectionLimiter, OriginCheck
from ashep.api.handlers.actions import NoDaemon, NotAnApprover, StaleAnswer
from ashep.api.handlers.allowed_repositories import NoBranch, NotAllowed, Unclear
from ashep.api.handlers.drawing import PREFERENCE, NotReady, prefer_progress
from ashep.api.handlers.events import Stream, TooManyStreams
from ashep.api.handlers.queries import InvalidQuery, NotFound
from ashep.api.handlers.tickets import Busy, Ending, KeyTaken
from ashep.api.openapi import PATTERNS, PROBLEM, ApiRoute, ApiServices, RequestContext, document
from ashep.api.routes import ALSO, OPERATIONS
from ashep.api.schemas.verification import KEY, ProblemAnswer, TicketAnswer
from ashep.api.sessions import NOBODY, Session, WrongCode
from ashep.api.static import MISSING, Page
from ashep.core.text import clean
from ashep.errors import AshepError, TrackerError, TrackerMissing, UsageError
from ashep.request_guard import POLICY

MAX_BODY = 256 * 1024
"""Bytes of a request's body."""

READING = 10.0
"""Seconds in which a body must have come."""

LONGEST = 2 * 60 * 60.0
"""Seconds that a request is worked on at most; every check has a time of its own."""

_MISTAKES = 20  # that an answer names
_SHOWN = 1000  # characters of a message

EVENTS = "text/event-stream"

_ESCAPES = re.compile(r"\\(?:u00[01][0-9a-f]|[bfr]|(.))")
"""Escapes of JSON; those without the group are of control characters other than tab and newline."""

_PARTS = dict.fromkeys(("ticket_id", "id", "issue"), "id of an issue") | {"run": "id of a run", "seq": "number"}

_STATUSES: tuple[tuple[int, tuple[type[AshepError], ...]], ...] = (
    (403, (WrongCode, NotAnApprover, NotAllowed)),
    (404, (NotFound, NoSuchIssue, NoBranch)),
    (409, (StaleAnswer, NotAsked, Answered, Busy)),
    (503, (NoDaemon, TooManyStreams, Ending, TrackerError, TrackerMissing)),  # the last is a UsageError, too
    (422, (InvalidQuery, NoChecks, KeyTaken, Unclear, UsageError)),
    (502, (AshepError,)),
)
"""What an error is to whoever asked; the first that fits."""


class HttpProblem(Exception):
    """A request that is not executed."""

    def __init__(self, status: int, detail: str, errors: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.errors = status, detail, errors


def problem(
    status: int,
    detail: str,
    errors: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
    progress: float | None = None,
) -> Response:
    """Give a problem as an answer."""
    told = ProblemAnswer(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=clean(detail)[:_SHOWN],
        errors=tuple(clean(error)[:_SHOWN] for error in errors[:_MISTAKES]),
        progress=progress,
    )
    return Response(told.model_dump_json(), status, headers, PROBLEM)


_DOCUMENT = document(OPERATIONS)  # while the module is imported: it reads sources, for which the event loop would wait


def application(
    service: ApiServices, say: Callable[[str], None], page: Page, origins: Collection[str] = ()
) -> Starlette:
    """Make the application; `say` is told of mistakes of the service's own, `origins` are those of proxies."""
    by_path: dict[str, dict[str, ApiRoute]] = {}
    for one in OPERATIONS:
        by_path.setdefault(one.path, {})[one.method] = one

    async def openapi(request: Request) -> Response:
        return JSONResponse(_DOCUMENT)

    def endpoint(operations: dict[str, ApiRoute]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            operation = operations["GET" if request.method == "HEAD" else request.method]
            return await _answer(service, say, operation, request)

        return answer

    async def answer_page(request: Request) -> Response | None:
        answer = page.answer(request)
        if answer is not None and answer.media_type == "text/html":
            panel = (await to_thread.run_sync(service.pictures.about.read_settings)).page.panel
            if panel is not None:
                answer.headers["content-security-policy"] = f"{POLICY}; frame-src {'/'.join(panel.split('/')[:3])}"
        return answer

    def also(operation: ApiRoute) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            if "text/html" in request.headers.get("accept", ""):
                return await answer_page(request) or problem(406, MISSING)
            found = await _answer(service, say, operation, request)
            found.headers["Vary"] = "Accept"
            return found

        return answer

    async def elsewhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.NOT_FOUND and (found := await answer_page(request)) is not None:
            return found
        if "text/html" in request.headers.get("accept", "") and not page.files:
            return problem(404, MISSING)
        if _find_session(service, request) is None:
            return _unknown()
        return problem(error.status_code, f"{request.method} {request.url.path}", (), dict(error.headers or {}))

    routes = [Route(path, endpoint(known), methods=[*known]) for path, known in by_path.items()]
    routes += [Route(path, also(by_path[of]["GET"]), methods=["GET"]) for path, of in ALSO.items()]
    full = problem(503, f"{AT_ONCE} requests are worked on; ask again", (), {"Retry-After": "5"})
    made = Starlette(
        routes=[*routes, Route("/openapi.json", openapi)],
        middleware=[
            Middleware(OriginCheck, origins, lambda one: problem(one.status, one.why)),
            Middleware(ConnectionLimiter, lambda scope: _find_session(service, Request(scope)) is not None, full),
        ],
        exception_handlers={HTTPException: elsewhere},
    )
    made.router.redirect_slashes = False
    return made


async def _answer(service: ApiServices, say: Callable[[str], None], operation: ApiRoute, request: Request) -> Response:
    session = _find_session(service, request)
    if operation.scope is not None:
        if session is None:
            return _unknown()
        if operation.scope not in session.scopes:
            return problem(403, f"this token may not {operation.scope}: a person comes in by `ashep ui`")
    try:
        with anyio.fail_after(LONGEST), prefer_progress(enabled=request.headers.get("prefer") == PREFERENCE):
            answer = await operation.carry(service, await _read(operation, request, session or NOBODY))
        if isinstance(answer, Stream):
            asks = request.method != "HEAD"
            return StreamingResponse(answer.lines, media_type=EVENTS) if asks else Response(media_type=EVENTS)
        told = await to_thread.run_sync(_dump_answer, operation, answer)
        where = {"Location": f"/tickets/{answer.ticket_id}"} if isinstance(answer, TicketAnswer) else None
        headers = where if operation.status == HTTPStatus.CREATED else None
        return Response(told, operation.status, headers, "application/json")
    except HttpProblem as refused:
        return problem(refused.status, refused.detail, refused.errors)
    except NotReady as error:
        return problem(503, str(error), (), {"Retry-After": "1"}, error.progress)
    except AshepError as error:
        status = next(status for status, kinds in _STATUSES if isinstance(error, kinds))
        return problem(status, str(error), tuple(map(str, getattr(error, "errors", ()))))
    except TimeoutError:
        return problem(504, f"it was not done after {LONGEST:.0f} s, and was given up")
    except ClientDisconnect:
        return problem(400, "the request broke off")
    except Exception as error:  # a mistake of ours: who asks learns that there was one, and not how we look inside
        say(f"warning: {request.method} {operation.path} failed: {type(error).__name__}: {error}")
        return problem(500, "the service made a mistake; it says more in its own output")


def _dump_answer(operation: ApiRoute, answer: Any) -> str:
    """Write JSON by which nobody can be misled, also where control characters stand in it as JSON writes them."""
    adapter = operation.adapter
    text = adapter.dump_json(adapter.validate_python(answer), warnings=False).decode()
    return clean(_ESCAPES.sub(lambda match: match[0] if match[1] else "", text))


def _find_session(service: ApiServices, request: Request) -> Session | None:
    return service.sessions.find_session(request.headers.get("authorization", ""))


def _unknown() -> Response:
    detail = "give a token: Authorization: Bearer …; `ashep ui` lets a person in"
    return problem(401, detail, (), {"WWW-Authenticate": "Bearer"})


async def _read(operation: ApiRoute, request: Request, session: Session) -> RequestContext:
    place: dict[str, str] = dict(request.path_params)
    for name, part in place.items():
        if not re.fullmatch(PATTERNS[name].removeprefix("^").removesuffix("$"), part):
            raise HttpProblem(404, f"{part!r} is no {_PARTS.get(name, name)}")
    content = None
    if operation.query is not None:
        content = _checked(partial(operation.query.model_validate_strings, dict(request.query_params)))
    elif operation.body is not None:
        content = await _body(operation.body, request)
    key = request.headers.get("idempotency-key") if operation.status == HTTPStatus.CREATED else None
    if key is not None and not re.fullmatch(KEY.removeprefix("^").removesuffix("$"), key):
        raise HttpProblem(400, "Idempotency-Key: expected 1 to 200 printable characters of ASCII, without a space")
    authorization, agent = (request.headers.get(name, "") for name in ("authorization", "user-agent"))
    return RequestContext(place, content, session, authorization, key, agent)


async def _body(kind: type[BaseModel], request: Request) -> BaseModel:
    """Read the body no further than it may go, and no longer than it may take."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise HttpProblem(415, "the body is JSON: Content-Type: application/json")
    raw = bytearray()
    with anyio.move_on_after(READING) as limit:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > MAX_BODY:
                raise HttpProblem(413, f"a body has at most {MAX_BODY // 1024} KiB")
    if limit.cancelled_caught:
        raise HttpProblem(408, f"the body had not come after {READING:.0f} s")
    return await to_thread.run_sync(_checked, partial(kind.model_validate_json, bytes(raw)))


def _checked(read: Callable[[], BaseModel]) -> BaseModel:
    try:
        return read()
    except ValidationError as error:
        found: list[Any] = error.errors(include_url=False, include_input=False, include_context=False)
        if found[0]["type"] == "json_invalid":
            raise HttpProblem(400, found[0]["msg"]) from error
        errors = tuple(": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"]))) for one in found)
        more = f" (and {len(errors) - 1} more)" if errors[1:] else ""
        raise HttpProblem(422, f"{errors[0]}{more}", errors) from error
