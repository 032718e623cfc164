"""What OpenCode's sessions ask, as `GET /permission` and `GET /question` list it, and how it is answered.

As tried on the real server 1.18.33 (tests/test_asking.py does it again): a permission that is denied *with* a message
lets the model go on, and one without ends the turn; so does a rejected question, and therefore none is ever rejected.
An answer to a question may be any text. Whatever was answered is not listed any more, and a second answer is a 404.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ConfigDict, TypeAdapter

from ashep.adapters.opencode import shapes
from ashep.core.requests import Asked, Request, Verdict
from ashep.core.text import clean

LONGEST = 4000
"""Characters of one text of an agent's, and entries of one list."""

MOST = 50
"""Patterns, questions and options that are kept of one request."""

Get = Callable[[str], Awaitable[bytes]]
Whose = Callable[[str], Awaitable[str | None]]
"""The session of ours at whose root a session is; None: it is a stranger's."""


class _Json(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Option(_Json):
    label: str
    description: str = ""


class _Question(_Json):
    question: str
    options: tuple[_Option, ...] = ()
    multiple: bool = False


class _Permission(_Json):
    id: str
    sessionID: str
    permission: str = ""
    patterns: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class _Questions(_Json):
    id: str
    sessionID: str
    questions: tuple[_Question, ...] = ()


_PERMISSIONS = TypeAdapter(tuple[_Permission, ...])
_QUESTIONS = TypeAdapter(tuple[_Questions, ...])
_DETAILS = ("command", "filepath", "url", "query")
"""What the metadata of a permission calls the thing that a tool is to be used for."""


async def listed(get: Get, whose: Whose) -> tuple[Request, ...]:
    """Everything that sessions of ours ask."""
    found: list[Request] = []
    for asked in shapes.parse(_PERMISSIONS, await get("/permission")):
        if (session := await whose(asked.sessionID)) is not None:
            patterns = tuple(_cut(pattern) for pattern in asked.patterns[:MOST])
            detail = next((_cut(str(asked.metadata[name])) for name in _DETAILS if name in asked.metadata), "")
            found.append(Request(asked.id, session, "permission", asked.permission, patterns, detail))
    for asking in shapes.parse(_QUESTIONS, await get("/question")):
        if (session := await whose(asking.sessionID)) is not None:
            asks = tuple(
                Asked(_cut(one.question), tuple(_cut(option.label) for option in one.options[:MOST]), one.multiple)
                for one in asking.questions[:MOST]
            )
            found.append(Request(asking.id, session, "question", asks=asks))
    return tuple(sorted(found, key=lambda one: one.id))


def _cut(text: str) -> str:
    return clean(text)[:LONGEST]


async def reply(
    call: Callable[[str, object], Awaitable[httpx.Response]],
    request: str,
    kind: Literal["permission", "question"],
    verdict: Verdict,
    answers: tuple[tuple[str, ...], ...],
    message: str,
) -> bool:
    """Answer a request; False: nobody waits for that any more."""
    body: dict[str, object] = {"answers": [list(answer) for answer in answers]}
    if kind == "permission":
        body = {"reply": "once"} if verdict == "allow" else {"reply": "reject", "message": message}
    return (await call(f"/{kind}/{request}/reply", body)).status_code < 300
