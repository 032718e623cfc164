"""Read a session's messages: what followed our prompt. Pure; the rules are facts/opencode.md 1, 4, 11, 24 and 25."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from ashep.adapters.runners.opencode.provider_errors import Failure, Read, of_error
from ashep.core.facts.runs import Refusal
from ashep.ports.runner import MOST_TEXT, Turn, TurnState, bound_amount
from ashep.ports.transcripts import TranscriptStep, make_tool_step

FARTHEST = 1e14
"""Milliseconds since 1970 that can be a date."""


class Time(Read):
    """Milliseconds since 1970."""

    created: float | None = None
    completed: float | None = None
    start: float | None = None
    end: float | None = None

    @property
    def newest(self) -> float:
        """The latest of them."""
        return max(self.created or 0, self.completed or 0, self.start or 0, self.end or 0)


class Cache(Read):
    """Tokens that came from or went to the provider's cache."""

    read: float = 0
    write: float = 0


class Tokens(Read):
    """What one answer used."""

    input: float = 0
    output: float = 0
    reasoning: float = 0
    cache: Cache = Cache()


class Info(Read):
    """A message without its parts."""

    id: str
    role: Literal["user", "assistant"]
    time: Time
    parentID: str | None = None
    providerID: str | None = None
    modelID: str | None = None
    error: Failure | None = None
    finish: str | None = None
    summary: bool | dict[str, Any] | None = None
    """True on the answer of a compaction; on a user message an object that is something else."""
    tokens: Tokens = Tokens()
    cost: float = 0


class ToolState(Read):
    """How a tool's call stands."""

    time: Time = Time()
    status: str = ""
    input: Any = None
    output: Any = None
    error: Any = None


class MessagePart(Read):
    """A piece of a message."""

    type: str
    text: str = ""
    tool: str = ""
    callID: str = ""
    synthetic: bool = False
    ignored: bool = False
    time: Time = Time()
    state: ToolState | None = None

    @property
    def newest(self) -> float:
        """Its latest time."""
        return max(self.time.newest, self.state.time.newest if self.state else 0)


class Message(Read):
    """A message of a session."""

    info: Info
    parts: tuple[MessagePart, ...] = ()

    @property
    def text(self) -> str:
        """What was written in it, without what OpenCode added.

        Where the provider broke off and OpenCode asked again, one message holds both tries, each after a part of type
        `step-start`: only the last one counts.
        """
        begins = max((i for i, part in enumerate(self.parts) if part.type == "step-start"), default=0)
        return "\n".join(part.text for part in self.parts[begins:] if part.type == "text" and not part.synthetic)

    @property
    def steps(self) -> tuple[TranscriptStep, ...]:
        """What was said and done in it, in order; its cost is with the last step."""
        steps = list[TranscriptStep]()
        for part in self.parts:
            written_at = _date(part.newest or self.info.time.newest)
            if part.type == "text" and part.text and not part.synthetic:
                steps.append(TranscriptStep(self.info.role, part.text, written_at=written_at))
            elif part.type == "tool" and (state := part.state) is not None:
                failed = state.status == "error"
                answer = state.error if failed else state.output
                steps.append(make_tool_step(part.tool, state.input, answer, written_at, failed=failed))
        if steps and self.info.cost:
            steps[-1] = replace(steps[-1], cost=bound_amount(self.info.cost))
        return tuple(steps)

    @property
    def newest(self) -> float:
        """Its latest time."""
        return max(self.info.time.newest, *(part.newest for part in self.parts), 0)

    @property
    def is_ended(self) -> bool:
        """Whether this answer is the last of its turn (fact 24)."""
        return self.info.error is not None or self.info.finish not in {None, "tool-calls", "unknown"}

    @property
    def is_summary(self) -> bool:
        """Whether it is a compaction's answer (fact 25)."""
        return self.info.role == "assistant" and self.info.summary is True


MESSAGES = TypeAdapter(tuple[Message, ...])
"""Reads `GET /session/{id}/message`."""


def order(messages: Iterable[Message]) -> list[Message]:
    """Each message once, in the order in which they were made."""
    unique = {message.info.id: message for message in messages}
    return sorted(unique.values(), key=lambda message: (message.info.time.created or 0, message.info.id))


def is_servers_own(message: Message, prompt_text: str) -> bool:
    """Whether OpenCode wrote this user message itself: a compaction's parts, a synthetic text, our text once more.

    A message without parts counts too: it is being written, and who wrote it shows in the next read (facts 11, 25).
    """
    if any(part.type == "compaction" for part in message.parts):
        return True
    if all(part.synthetic for part in message.parts if part.type == "text") and not any(
        part.type in {"file", "agent", "subtask"} for part in message.parts
    ):
        return True
    return bool(prompt_text) and message.text == prompt_text


@dataclass(frozen=True, slots=True)
class Status:
    """A session's entry in `GET /session/status`."""

    busy: bool
    refused: Refusal | None = None


def read_turn(
    messages: Sequence[Message], message_id: str, ours: frozenset[str], status: Status, instance: str
) -> Turn:
    """What followed the prompt among `messages` (in order).

    An abort deletes a prompt, and a turn may be shorter than that call: then the answers still name it (fact 27).
    """
    at = next((i for i, message in enumerate(messages) if message.info.id == message_id), None)
    if at is None:
        at = next((i for i, message in enumerate(messages) if message.info.parentID == message_id), None)
        if at is None:
            return Turn("missing", instance)
        deleted = Message(info=Info(id=message_id, role="user", time=Time()))
        messages = (*messages[:at], deleted, *messages[at:])
    prompt = messages[at]
    answers, people = _split_turn(messages, at, ours)
    if not prompt.parts and not answers:
        return Turn("missing", instance)
    last = _last(answers, messages[:at])
    state = _state(answers, last, status, people)
    return Turn(
        state,
        instance,
        text=last.text[-MOST_TEXT:] if last else "",
        error=str(last.info.error) if last and last.info.error else None,
        provider=last.info.providerID if last else None,
        model=last.info.modelID if last else None,
        tokens=round(bound_amount(sum(_tokens(answer.info.tokens) for answer in answers))),
        cost=float(bound_amount(sum(answer.info.cost for answer in answers))),
        people=people,
        refused=(of_error(last.info.error) if state == "finished" and last and last.info.error else None)
        or (status.refused if state != "finished" else None),
        cut=last is not None and last.info.finish == "length",
        agent_message_at=_latest(answers),
        human_message_at=_latest(message for message in messages if message.info.id in people),
        steps=() if state == "running" else tuple(step for message in messages[at:] for step in message.steps),
    )


def _latest(messages: Iterable[Message]) -> datetime | None:
    """The time of the newest of these messages, by the server's clock."""
    return _date(max((message.info.time.newest for message in messages), default=0))


def _date(milliseconds: float) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if 0 < milliseconds < FARTHEST else None


def is_being_written(messages: Sequence[Message], message_id: str, ours: frozenset[str]) -> bool:
    """Whether the newest message of a user is not ours and has no parts yet, which come a moment later."""
    newest = next((one for one in reversed(messages) if one.info.role == "user"), None)
    return newest is not None and not newest.parts and newest.info.id != message_id and newest.info.id not in ours


def _split_turn(messages: Sequence[Message], start: int, ours: frozenset[str]) -> tuple[list[Message], tuple[str, ...]]:
    """The answers of the turn that begins at an index, and the user messages after it that a person wrote.

    Where the clock was set back, what came earlier stands behind the prompt, and what came later before it: `ours` says
    what was there already, and the parent of an answer whose it is. An answer that was on its way when a person wrote
    belongs to the turn as well, because its parent does.
    """
    prompt = messages[start]
    questions = {message.info.id for message in messages if message.info.role == "user"}
    turn = {prompt.info.id}
    answers: list[Message] = [m for m in messages[:start] if m.info.parentID == prompt.info.id]
    answer_ids = {answer.info.id for answer in answers}
    people: list[str] = []
    for place, message in enumerate((*messages[start + 1 :], *messages[:start])):
        if message.info.role == "assistant":
            behind = place < len(messages) - start - 1
            ours_by_parent = message.info.parentID in turn and message.info.id not in answer_ids
            if ours_by_parent or (behind and not (people or message.info.parentID in questions)):
                answers.append(message)
        elif message.info.id in ours:
            continue
        elif not is_servers_own(message, prompt.text):
            people.append(message.info.id)
        elif not people:
            turn.add(message.info.id)
    return answers, tuple(people)


def _last(answers: Sequence[Message], before: Sequence[Message]) -> Message | None:
    """The answer that says how the turn stands.

    An answer that stands before its prompt is an earlier one, where the prompt was sent again (which dates it again),
    or a later one, where the clock was set back: then the one that has ended counts.
    """
    candidates = [answer for answer in answers if not answer.is_summary]
    earlier = {message.info.id for message in before}
    if any(answer.info.id in earlier for answer in candidates):
        candidates.sort(key=lambda answer: answer.is_ended)
    return candidates[-1] if candidates else None


def _state(answers: Sequence[Message], last: Message | None, status: Status, people: tuple[str, ...]) -> TurnState:
    ended = last is not None and last.is_ended
    if status.busy and not (ended and people):  # behind an end, it is the person's turn that runs
        return "running"
    if ended:
        return "finished"
    return "incomplete" if answers else "stored"


def _tokens(tokens: Tokens) -> float:
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
