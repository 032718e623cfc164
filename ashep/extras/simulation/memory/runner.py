"""`MemoryRunner`: an agent server in memory, whose agents follow a script and whose time is a Clock's.

It keeps the contract of the port `Runner`, and can misbehave in each way that a real server was seen to
(facts/opencode.md): it can die in mid-turn, lose an answer, take a prompt and do nothing, ask for a permission.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, TypeVar

import anyio

from ashep.core.facts.requests import Answers, Request, RequestKind, Verdict
from ashep.core.facts.runs import Life, Model
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.extras.simulation.memory import scripted_sessions as plays
from ashep.extras.simulation.memory.scripted_sessions import (
    Play,
    Prompted,
    Script,
    ScriptedMessage,
    ScriptedSession,
    ScriptedTurn,
)
from ashep.ports.clock import Clock
from ashep.ports.runner import MOST_TEXT, Catalog, Prompt, SessionRequest, Sign, Turn
from ashep.ports.transcripts import TranscriptStep

T = TypeVar("T")
ABORTED = "MessageAbortedError: Aborted"
UNLISTED = "GET /permission: 400"
Fault = Callable[[str, Literal["before", "after"]], Exception | None]


class MemoryRunner:
    """Agents in memory. It is the world of a test: a restarted ashep is given the same object again."""

    def __init__(
        self,
        clock: Clock,
        script: Script,
        *,
        agents: tuple[str, ...] = ("build", "plan"),
        models: tuple[Model, ...] = (Model("scripted", "default"), Model("scripted", "other")),
    ) -> None:
        self.script = script
        """May be replaced at any time."""
        self.fault: Fault | None = None
        """Asked before and after each method does its work; an exception that it gives is raised: a lost answer."""
        self.agents, self.models = agents, models
        self.version = "memory"
        """A test may upgrade it."""
        self.memory: int | None = None
        """Bytes that the server holds: a test lets it grow; a new life has none of them."""
        self.deliveries: Counter[str] = Counter()
        """How often each message id was sent, repetitions included."""
        self.began: Counter[str] = Counter()
        """How many turns each prompt began, by message id."""
        self.replied: list[tuple[str, Verdict, tuple[tuple[str, ...], ...], str]] = []
        """Every answer that a session took: request, verdict, answers, message."""
        self.sessions: dict[str, ScriptedSession] = {}
        self._clock = clock
        self._life = 0
        self._up = False
        self._changed = anyio.Event()
        self._signs: list[str | None] = []
        self._watched: float | None = None
        """Since when somebody follows the signs."""

    # --- what tests do and ask ------------------------------------------------------------------------------------

    def prompts_seen(self, text: str) -> int:
        """How many turns began with a prompt that holds this text."""
        return sum(
            self.began[message.id]
            for session in self.sessions.values()
            for message in session.messages
            if text in message.text
        )

    def person_writes(self, session: str, text: str, *, delay: float | None = 0.0, unheard: bool = False) -> str:
        """Let a person write in a session, and an agent answer that after `delay`, None: never; give the message's id.

        `unheard`: the stream does not tell of it.
        """
        found, now = self.sessions[session], self._clock.now()
        message = ScriptedMessage(f"msg_person{len(found.messages):04d}", "person", text, now)
        ends = None if delay is None else now + timedelta(seconds=delay)
        work = ScriptedTurn(Play(text="ok"), self.instance, now, self._clock.monotonic(), ends)
        message.work = work
        found.messages.append(message)
        if not unheard:
            self._sign(session)
        return message.id

    def kill(self) -> None:
        """End the server at once: its turns die, nothing answers until `start()`, then under another instance."""
        now = self._clock.now()
        for _, _, work in self._turns():
            if work.active(now):
                work.dead, work.asked = True, 0
        self._up = False
        self._sign(None)

    @property
    def instance(self) -> str:
        """The name of this life."""
        return f"memory:{self._life}"

    # --- the port -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Make the server answer (see the port)."""
        self._fail("start", "before")
        if not self._up:
            self._up = True
            self._life += 1
            self.memory = None
        self._fail("start", "after")

    async def catalog(self) -> Catalog:
        """Say what there is (see the port)."""
        self._enter("catalog")
        told = Catalog(self.version, self.instance, self.agents, self.models, self.models[0], memory=self.memory)
        return self._leave("catalog", told)

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session (see the port)."""
        self._enter("open_session")
        session = ScriptedSession(f"ses_{len(self.sessions):06d}", request)
        self.sessions[session.id] = session
        return self._leave("open_session", session.id)

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        """Find a session by its key (see the port)."""
        self._enter("find_session")
        wanted = (key, directory)
        found = (one.id for one in self.sessions.values() if (one.request.key, one.request.directory) == wanted)
        return self._leave("find_session", next(found, None))

    async def has_session(self, session: str) -> bool:
        """Whether there is this session (see the port)."""
        self._enter("has_session")
        return self._leave("has_session", session in self.sessions)

    async def asked(self, session: str) -> tuple[str, ...]:
        """The ids of a session's user messages (see the port)."""
        self._enter("asked")
        found = self.sessions.get(session)
        return self._leave("asked", tuple(message.id for message in found.messages) if found else ())

    async def send(self, prompt: Prompt) -> str:
        """Deliver a prompt (see the port)."""
        self._enter("send")
        if prompt.session not in self.sessions:
            raise RunnerRefused(f"no session {prompt.session}")
        if not prompt.message_id.startswith("msg") or not prompt.part_id.startswith("prt"):
            raise RunnerRefused(f"{prompt.message_id}, {prompt.part_id}: not ids of a message and a part")
        self.deliveries[prompt.message_id] += 1
        self._take(self.sessions[prompt.session], prompt)
        return self._leave("send", self.instance)

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read what followed a prompt (see the port)."""
        self._enter("turn")
        found = self.sessions.get(session)
        return self._leave("turn", self._read(found, message_id, ours) if found else Turn("missing", self.instance))

    async def life(self, session: str) -> Life:
        """Read a session's signs of life (see the port)."""
        self._enter("life")
        found, now = self.sessions.get(session), self._clock.monotonic()
        works = self._active(found) if found else []
        quiet = min((_quiet(work, now) for work in works), default=0.0)
        watched = now - self._watched if self._watched is not None else 0.0
        tool, at = next(((work.play.tool, work.at) for work in works if work.play.tool), (None, now))
        waits = (waits.again_in for work in works if (waits := work.refused(self._clock.now())) is not None)
        tool_for = timedelta(seconds=min(now - at, watched))
        return self._leave("life", Life(timedelta(seconds=min(quiet, watched)), tool, tool_for, next(waits, None)))

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those sessions that run a turn (see the port)."""
        self._enter("busy")
        busy = frozenset(
            session for session in sessions if session in self.sessions and self._active(self.sessions[session])
        )
        return self._leave("busy", busy)

    async def abort(self, session: str) -> None:
        """Stop a session's turn (see the port)."""
        self._enter("abort")
        found = self.sessions.get(session)
        for work in self._active(found) if found else ():
            work.ends, work.asked, work.error = max(self._clock.now(), work.began), 0, ABORTED
            self._sign(session)
        self._leave("abort", None)

    async def transcript(self, session: str, limit: int) -> str:
        """The tail of a session's text (see the port)."""
        self._enter("transcript")
        entries: list[str] = []
        now = self._clock.now()
        for message in self.sessions[session].messages if session in self.sessions else ():
            entries.append(f"user:\n{message.text}\n")
            if message.work is not None and not message.work.active(now):
                entries.append(f"assistant:\n{message.work.play.text}\n")
        return self._leave("transcript", "\n".join(entries)[-limit:] if limit > 0 else "")

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        """What waits for an answer (see the port)."""
        self._enter("requests")
        everything = self._list_requests()
        asked = [(one, work) for one, work in everything if one.session in sessions]
        odd = {self.sessions[one.session].request.directory for one, work in everything if not work.play.listed}
        there = self.sessions.keys() & {*sessions}
        refused = {session for session in there if self.sessions[session].request.directory in odd}
        found = [one for one, _ in asked if one.session not in refused]
        found += [replace(one, unlisted=UNLISTED) for one, work in asked if one.session in refused and work.told]
        found += [Request("", one, "permission", unlisted=UNLISTED) for one in sorted(refused)]
        return self._leave("requests", tuple(found))

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        """Answer a request (see the port)."""
        self._enter("reply")
        work = next((turn for one, turn in self._list_requests() if (one.session, one.id) == (session, request)), None)
        if work is not None:
            self.replied.append((request, verdict, answers, message))
            work.asked -= 1
            work.told = self._watched is not None
            work.ends = self._clock.now() + timedelta(seconds=work.play.delay)
            self._sign(session)
        return self._leave("reply", work is not None)

    def _turns(self) -> Iterator[tuple[str, str, ScriptedTurn]]:
        """Every turn, with the ids of its session and of its message."""
        for session in self.sessions.values():
            yield from ((session.id, one.id, one.work) for one in session.messages if one.work is not None)

    def _list_requests(self) -> list[tuple[Request, ScriptedTurn]]:
        return [
            (plays.request(work.play, session, message, work.asked), work)
            for session, message, work in self._turns()
            if work.asked and not work.dead
        ]

    async def signs(self) -> AsyncGenerator[Sign]:
        """Signs of life, for ever (see the port)."""
        since, self._watched = self._clock.now(), self._clock.monotonic()
        try:
            yield Sign(None)
            while True:
                await self._something(since)
                now = self._clock.now()
                signs, self._signs = self._signs, []
                signs.extend(session for session, ends in self._ends() if since < ends <= now)
                since = now
                for session in dict.fromkeys(signs):
                    yield Sign(session)
        finally:
            self._watched = None

    async def aclose(self) -> None:
        """Do nothing: there are no connections (see the port)."""

    async def stop_server(self) -> bool:
        """End the server (see the port)."""
        was, _ = self._up, self.kill()
        return was

    # --- inside ---------------------------------------------------------------------------------------------------

    def _take(self, session: ScriptedSession, prompt: Prompt) -> None:
        """Store a prompt once and begin its turn, again where an earlier one died with its server (fact 11)."""
        message = next((message for message in session.messages if message.id == prompt.message_id), None)
        if message is None:
            known = (message.id for one in self.sessions.values() for message in one.messages)
            if prompt.message_id in known:
                return  # fact 17: taken, and never seen again
            play = self._ask(session, prompt)
            if play.fate == "missing" or (prompt.agent is not None and prompt.agent not in self.agents):
                return
            now = self._clock.now()
            message = ScriptedMessage(prompt.message_id, "ashep", prompt.text, now, prompt.agent, prompt.model)
            session.messages.append(message)
        elif message.work is not None and not (message.work.dead and message.work.instance != self.instance):
            return
        else:
            play = self._ask(session, prompt)
        if play.fate != "stored" and (prompt.model is None or prompt.model in self.models):
            self._begin(session, message, play)
        self._sign(session.id)

    def _ask(self, session: ScriptedSession, prompt: Prompt) -> Play:
        began = self.began[prompt.message_id]
        return self.script(
            Prompted(session.request.key, session.id, prompt.text, prompt.agent, prompt.model, turn=began)
        )

    def _begin(self, session: ScriptedSession, message: ScriptedMessage, play: Play) -> None:
        now = self._clock.now()
        free = max([now, *(work.ends for work in self._active(session) if work.ends is not None)])
        ends = None if play.fate == "hangs" else free + timedelta(seconds=play.delay)
        at, asks = self._clock.monotonic(), play.times if play.asks else 0
        told = self._watched is not None
        message.work = ScriptedTurn(play, self.instance, now, at, ends, asked=asks, told=told, error=play.error)
        self.began[message.id] += 1

    def _active(self, session: ScriptedSession) -> list[ScriptedTurn]:
        now = self._clock.now()
        return [m.work for m in session.messages if m.work is not None and m.work.active(now)]

    def _read(self, session: ScriptedSession, message_id: str, ours: frozenset[str]) -> Turn:
        at = next((i for i, message in enumerate(session.messages) if message.id == message_id), None)
        if at is None:
            return Turn("missing", self.instance)
        theirs = [m for m in session.messages[at + 1 :] if m.who == "person" and m.id not in ours]
        people, human_message_at = tuple(m.id for m in theirs), max((m.at for m in theirs), default=None)
        message = session.messages[at]
        busy = self._active(session)
        blank = Turn("stored", self.instance, people=people, human_message_at=human_message_at)
        work = self._last_work(session, at)
        if work is None:
            return replace(blank, state="running" if busy else "stored")
        model = message.model or self.models[0]
        blank = replace(blank, provider=model.provider, model=model.model, quota=work.play.quota)
        if busy and not (people and work.has_ended(self._clock.now())):  # else it is the person's turn that runs
            refusals = (refusal for one in busy if (refusal := one.refused(self._clock.now())) is not None)
            return replace(blank, state="running", refused=next(refusals, None))
        if work.dead or (work.play.fate == "dies" and work.error != ABORTED):
            return replace(blank, state="incomplete")
        assert work.ends is not None  # it is not active
        return replace(
            blank,
            state="finished",
            text=work.play.text[-MOST_TEXT:] if work.error is None else "",
            error=work.error,
            tokens=work.play.tokens,
            cost=work.play.cost,
            refused=work.play.refused if work.error is not None and work.error == work.play.error else None,
            cut=work.play.cut,
            agent_message_at=work.ends,
            steps=(TranscriptStep("assistant", work.error or work.play.text, written_at=work.ends),),
        )

    def _last_work(self, session: ScriptedSession, at: int) -> ScriptedTurn | None:
        """The newest turn from a prompt on, up to the first message of a person."""
        last = session.messages[at].work
        for message in session.messages[at + 1 :]:
            if message.who == "person":
                break
            last = message.work or last
        return last

    def _ends(self) -> list[tuple[str, datetime]]:
        return [(session, work.ends) for session, _, work in self._turns() if work.ends is not None]

    async def _something(self, since: datetime) -> None:
        """Return once a sign is there, or when a turn ends."""
        due = [ends for _, ends in self._ends() if ends > since]
        if self._signs or (due and min(due) <= self._clock.now()):
            return
        self._changed = anyio.Event()
        async with anyio.create_task_group() as group:
            if due:
                group.start_soon(self._until, min(due), group.cancel_scope)
            await self._changed.wait()
            group.cancel_scope.cancel()

    async def _until(self, when: datetime, scope: anyio.CancelScope) -> None:
        await self._clock.sleep_until(when)
        scope.cancel()

    def _sign(self, session: str | None) -> None:
        self._signs.append(session)
        self._changed.set()

    def _fail(self, method: str, when: Literal["before", "after"]) -> None:
        error = self.fault(method, when) if self.fault is not None else None
        if error is not None:
            raise error

    def _enter(self, method: str) -> None:
        if not self._up:
            raise RunnerUnavailable("the memory server is not running")
        self._fail(method, "before")

    def _leave(self, method: str, answer: T) -> T:
        self._fail(method, "after")
        return answer


def _quiet(work: ScriptedTurn, now: float) -> float:
    """Seconds since a turn's last sign of life."""
    since = now - work.at
    return since if work.play.fate == "hangs" or work.play.pulse is None else since % work.play.pulse
