"""What a turn asks: leave to use a tool, or questions. Each is a file that its hook wrote and waits beside (`hook.py`).

So what is asked survives the daemon, which a connection would not; and an answer that the daemon wrote is taken once
the hook looks, whoever lives then. A question of a process that has ended is nobody's. All of it blocks.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ashep.adapters.runners.claude.jsonl import Event, parts, strings, text
from ashep.adapters.runners.claude.session_store import Attempt
from ashep.adapters.runners.foreign_json import parse_object
from ashep.core.facts.requests import MOST, Answers, Asked, Request, RequestKind, Verdict, cut
from ashep.journal import durable_io
from ashep.redaction import Redaction

_NAME = re.compile("[0-9a-f]{24}")
_LOOKED_AT = 1000  # of what its agent may have put there
_BIGGEST = 1024 * 1024  # bytes of a question that are read


def names(attempt: Attempt) -> list[str]:
    """The ids of what an attempt asks and was not answered."""
    with suppress(OSError):
        with os.scandir(attempt.folder / "asks") as entries:
            listed = [one.name for one in islice(entries, _LOOKED_AT)]
        idents = sorted(filter(_NAME.fullmatch, listed))[:MOST]
        return [one for one in idents if not (attempt.folder / "answers" / one).exists()]
    return []


def open_in(attempt: Attempt, redaction: Redaction) -> Iterator[Request]:
    """What an attempt asks."""
    for name in names(attempt):
        event = _read(attempt, name, redaction)
        if event is not None and text(event, "kind") == "question":
            questions = tuple(map(_read_question, parts(event, "questions")[:MOST]))
            yield Request(name, attempt.session, "question", asks=questions)
        elif event is not None:
            patterns = tuple(cut(string) for string in strings(event, "patterns")[:MOST])
            tool, detail = cut(text(event, "tool")), cut(text(event, "detail"))
            yield Request(name, attempt.session, "permission", tool, patterns, detail)


def answer(attempt: Attempt, name: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str) -> bool:
    """Answer what an attempt asks; whether that was still open."""
    if (
        name not in names(attempt)
        or (event := _read(attempt, name, Redaction())) is None
        or text(event, "kind") != kind
    ):
        return False
    reply: Event = {"verdict": "deny" if kind == "permission" and verdict != "allow" else "allow", "message": message}
    if kind == "question":
        questions = [text(one, "question") for one in parts(event, "questions")]
        reply["answers"] = {one: ", ".join(chosen) for one, chosen in zip(questions, answers, strict=False)}
    durable_io.replace(attempt.folder / "answers" / name, json.dumps(reply).encode())
    return True


def _read(attempt: Attempt, name: str, redaction: Redaction) -> Event | None:
    with suppress(OSError), durable_io.opened(attempt.folder / "asks" / name) as file:
        return parse_object(redaction.data(file.read(_BIGGEST)))
    return None


def _read_question(question: Event) -> Asked:
    options = tuple(cut(text(part, "label")) for part in parts(question, "options")[:MOST])
    return Asked(cut(text(question, "question")), options, question.get("multiSelect") is True)
