"""Port of the runner: sessions, prompts, turns, and what sessions ask. `ashep.errors` has the errors."""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from ashep.core.facts.requests import Answers, Request, RequestKind, Verdict
from ashep.core.facts.runs import Life, Model, Quota, Refusal
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.policies import PermissionRule
from ashep.ports.transcripts import TranscriptStep

MOST_TEXT = 256 * 1024
"""Characters that a runner gives of what an agent said last: the end, where the outcome stands."""
STOPPED = "MessageAbortedError: the turn was stopped"
"""The error of a turn that we stopped, where the agent's own program says none."""
_MOST = 1e12


def bound_amount(found: object) -> float:
    """Give what an agent's program counted, tokens, a price or the milliseconds of a wait, as far as a fact and a time
    can hold it: JSON has infinity as well, and whole numbers of any length.
    """
    return min(max(found, 0), _MOST) if isinstance(found, int | float) and found == found else 0


# --- the runner --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Catalog:
    """What the agent server offers now."""

    version: str
    instance: str
    """This life of the server: by pid and start, or (attached) new each time its address refused a connection."""
    agents: tuple[str, ...]
    models: tuple[Model, ...]
    default: Model | None
    """What a prompt without a model would use, where the server says so."""
    memory: int | None = None
    """Bytes that a managed server, and what it keeps running, hold; None: not ours, or not known."""
    tried: str = ""
    """The version that the adapter was tried with."""
    exhaustive: bool = True
    """Whether it has no other agents and models than those that are listed."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Open a session of its own for a run."""

    key: str
    """`<instance>:<run>` or with a suffix; stands in the session's metadata and finds it again."""
    title: str
    access: Literal["read", "write"]
    agent: str | None = None
    model: Model | None = None
    permissions: tuple[PermissionRule, ...] = ()
    """The user's rules: the first that fits decides. None of them widens the access."""
    directory: str | None = None
    """The folder in which it works; None: the project's."""
    snapshot: str = ""
    """The issue's words, for who cannot ask the tracker; empty: they are not needed."""
    sandbox: Sandbox | None = None
    """Where it runs, for the whole of its life, if the runner separates who changes files; None: as all others do."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One message to a session, under ids of our own so that sending it again starts nothing new."""

    session: str
    message_id: str
    """`msg_…`"""
    part_id: str
    """`prt_…`"""
    text: str
    agent: str | None = None
    model: Model | None = None


TurnState = Literal["missing", "stored", "running", "incomplete", "finished"]
"""missing: no such message (or it is without parts) · stored: the message stands, no assistant message follows, not
busy · running: busy (or retrying) · incomplete: an assistant message without an end, not busy · finished: the last
assistant message that is no summary has an error, or a finish other than tool-calls and unknown, and not busy, or busy
with what a person wrote behind it (facts/opencode.md 4, 8, 11, 24)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What followed a prompt, up to the next user message that is neither ours nor the server's own."""

    state: TurnState
    instance: str
    """The server's instance that answered this read."""
    text: str = ""
    """The text of the last assistant message that is no summary; of a longer one its last `MOST_TEXT` characters."""
    error: str | None = None
    """Its error, as `Name: message`; of one that is missing or stored, what the server said why, where it did."""
    provider: str | None = None
    model: str | None = None
    tokens: int = 0
    """Input, output, reasoning and cache reads and writes of the whole turn."""
    cost: float = 0.0
    """In the provider's currency, of the whole turn, as far as the server told it: some do so at the end only."""
    people: tuple[str, ...] = ()
    """Ids of user messages after the prompt that are neither ours nor the server's own."""
    refused: Refusal | None = None
    """The provider did not take it: the server waits to ask again, or that was the turn's end."""
    starting: bool = False
    """Missing or stored, and the process that is to answer the prompt is starting. The runner ends such a start in the
    end, and says so with `not_started`."""
    not_started: str = ""
    """Missing or stored, and that process could not start: no turn began, and none will."""
    cut: bool = False
    """A limit cut off its last answer: on the length of an answer, or on the steps of a turn. That is no error."""
    quota: Quota | None = None
    """How much of its quota the login has used, where the session shows that."""
    agent_message_at: datetime | None = None
    """When the agent wrote last in this turn; None: nobody knows."""
    human_message_at: datetime | None = None
    """When a person wrote last, of the messages in `people`; None: nobody knows."""
    steps: tuple[TranscriptStep, ...] = ()
    """What was said and done in it, once it is over, where nobody can read that without its server."""


@dataclass(frozen=True, slots=True)
class Sign:
    """Something happened in a session; `session` None: the stream was (re)connected, anything may have been missed."""

    session: str | None
    urgent: bool = True
    """Its turn may have ended, or waits for somebody, or a person wrote there; False: it goes on."""


class Requesting(Protocol):
    """A server whose sessions ask for leave to use tools, and ask questions."""

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        """What these sessions of ours, and subagents below them, wait for an answer to; it may name some that a stopped
        turn left behind, and others' of ours. A request's id is never used twice.
        """
        ...

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        """Answer a request of this session's, so that its turn goes on: allow it this once, deny it with a message, or
        answer each of its questions. False: nobody waits for that any more.
        """
        ...


class Runner(Requesting, Protocol):
    """A server that runs coding agents in sessions. Errors, for every method: `RunnerUnavailable` (no answer in time,
    connection refused, 5xx), `RunnerUnauthorized`, `RunnerRefused` (never try the same again), `SessionUnavailable`
    (the server or process of this session alone does not answer).
    """

    async def start(self) -> None:
        """Make the server answer: start or re-attach to a managed one, or reach the attached one."""
        ...

    async def catalog(self) -> Catalog:
        """Say what the server offers."""
        ...

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session with a ruleset of its access and give its id. Not idempotent: probe with `find_session`."""
        ...

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        """The oldest session in this folder (None: the project's) that carries this key, if one does."""
        ...

    async def has_session(self, session: str) -> bool:
        """Whether the server still has this session."""
        ...

    async def asked(self, session: str) -> tuple[str, ...]:
        """Ids of the user messages in the session, the server's own included; none where there is no such session."""
        ...

    async def send(self, prompt: Prompt) -> str:
        """Deliver the prompt; give the server's instance that has taken it. Idempotent by the prompt's ids."""
        ...

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read what followed the prompt. `ours`: user messages of ours, and those that stood there before it."""
        ...

    async def life(self, session: str) -> Life:
        """What signs of life a busy session shows, its subagents' included. Only what was watched counts as quiet."""
        ...

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those of these sessions that run a turn now. Absence proves nothing while a turn is young (fact 26)."""
        ...

    async def abort(self, session: str) -> None:
        """Stop the session's turn, and return only when a read showed that it stopped, or when the process that ran it
        is gone; its error then is `MessageAbortedError: …`. Nothing to stop is fine. A prompt of ours that has not
        begun begins no turn after that.
        """
        ...

    async def transcript(self, session: str, limit: int) -> str:
        """The tail of the session's text, at most `limit` characters, for an extraction."""
        ...

    def signs(self) -> AsyncIterator[Sign]:
        """Signs of life of sessions, for ever, reconnecting with backoff; a reconnect yields `Sign(None)`."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; a managed server goes on."""
        ...

    async def stop_server(self) -> bool:
        """End a managed server and see it dead; False where there is none. Never ends what ashep did not start."""
        ...
