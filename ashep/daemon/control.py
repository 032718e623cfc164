"""Control requests of people to the running daemon: pause, resume, cancel. Each becomes a fact, or is refused.

An answer is given once the fact is durable. Nothing is decided here: the core says what a pause or a cancellation is.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Annotated, Any, Literal

import anyio
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ashep.core.analysis.audit import in_sessions
from ashep.core.facts.resources import WorkPaused, WorkResumed
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.human_overrides import cancellation, is_person, unnamed
from ashep.core.runs.agent_selection import model_of
from ashep.core.state.pauses import find_hold
from ashep.core.state.run import runner_of
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError, RunnerError
from ashep.ports.clock import Clock
from ashep.ports.runner import Runner
from ashep.ports.runner_router import RunnerRouter, runners_of

STOPPING = 10.0
"""Seconds that the answer to a cancellation waits for the session to be seen at rest."""

Text = Annotated[str, Field(max_length=1000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PauseRequest(_Request):
    """Let no run start, until a time or until somebody resumes."""

    do: Literal["pause"]
    by: Name
    why: Text = ""
    until: AwareDatetime | None = None
    provider: Name | None = None
    drain: bool = False


class ResumeRequest(_Request):
    """Go on."""

    do: Literal["resume"]
    by: Name
    why: Text = ""
    provider: Name | None = None


class CancelRequest(_Request):
    """Stop what is done for an issue."""

    do: Literal["cancel"]
    by: Name
    target: Name


class StatusRequest(_Request):
    """Say what is under way, and, to who watches it, how alive it is."""

    do: Literal["watch", "ask"]


Request = PauseRequest | ResumeRequest | CancelRequest | StatusRequest
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])

Judged = Fact | str
"""The fact that a request becomes, or why it is refused."""


class Control:
    """Answers requests."""

    def __init__(self, shepherd: Shepherd, signs: Callable[[], Awaitable[dict[str, Any]]] | None = None) -> None:
        """`signs`: reads how alive the runs under way are."""
        self._shepherd, self._signs = shepherd, signs

    async def answer(self, line: bytes) -> dict[str, Any]:
        """Answer a request; `error` says why nothing came of it."""
        try:
            request = _REQUEST.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return {"error": f"not understood: {'.'.join(map(str, first['loc']))}: {first['msg']}"}
        more: dict[str, Any] = {}
        try:
            match request:
                case PauseRequest():
                    await self._ask(lambda world: _pause(world, request))
                case ResumeRequest():
                    pauses = _standing(self._shepherd.world)
                    resumed = WorkResumed(clean(request.by), clean(request.why), request.provider)
                    await self._ask(lambda world: _no_person(world, request.by) or resumed)
                    more["ended"] = [pause for pause in pauses if pause not in _standing(self._shepherd.world)]
                case CancelRequest():
                    return await self._cancel(request)
                case StatusRequest():
                    if request.do == "watch" and self._signs is not None:
                        more["signs"] = await self._signs()
        except AshepError as error:
            return {"error": str(error)}
        return self._stands() | more

    def _stands(self) -> dict[str, Any]:
        world = self._shepherd.world
        runs = [run.id for issue in sorted(world.indexes.live) if (run := world.flows[issue].run) is not None]
        return {"runs": runs, "pauses": _standing(world), "paused": find_hold(world.pauses, None) is not None}

    async def _cancel(self, request: CancelRequest) -> dict[str, Any]:
        before = self._shepherd.world
        cancelled = await self._ask(lambda world: _cancellation(world, request))
        issue = str(getattr(cancelled, "issue", ""))
        flow = before.flows.get(issue)
        run = flow.run.id if flow is not None and flow.run is not None and not flow.run.ended else None
        await self._shepherd.wait_while(lambda world: issue in world.indexes.live, STOPPING)
        return {"issue": issue, "run": run, "stopped": issue not in self._shepherd.world.indexes.live}

    async def _ask(self, judge: Callable[[World], Judged]) -> Fact:
        """Give what a request became, once that is durable; raises `AshepError` with why it is refused."""
        refusals: list[str] = []

        def observed(world: World) -> list[Fact]:
            judged = judge(world)
            if isinstance(judged, str):
                refusals.append(judged)
                return []
            return [judged]

        facts = await self._shepherd.ask(observed)
        if refusals:
            raise AshepError(refusals[0])
        return facts[0]


def _standing(world: World) -> list[str]:
    return [pause.sentence for pause in world.pauses if not pause.lifted]


def _no_person(world: World, by: str) -> str:
    return unnamed(world, (by,)) if is_person(by, world.actor) else f"{by} is no person"


def _pause(world: World, request: PauseRequest) -> Judged:
    until = request.until.astimezone(UTC) if request.until else None
    refusal = _no_person(world, request.by) or _unknown_provider(world, request.provider)
    if until is not None and until <= world.now:
        refusal = refusal or f"{until:%Y-%m-%d %H:%M:%S}Z is over"
    return refusal or WorkPaused(clean(request.by), clean(request.why), until, request.provider, request.drain)


def _unknown_provider(world: World, provider: str | None) -> str:
    if provider is None or world.agents is None:
        return ""
    models = (model_of(agent, world.seen) for agent in world.agents.agents)
    known = sorted({model.provider for model in models if model is not None})
    return "" if provider in known else f"no agent runs on {provider}; there are {', '.join(known) or 'none'}"


def _cancellation(world: World, request: CancelRequest) -> Judged:
    fact, why = cancellation(world, request.target, clean(request.by))
    return _no_person(world, request.by) or fact or why


FRESH = 1.0
"""Seconds for which what was read is told again: several may watch."""

BOUND = 5.0
"""Seconds that reading may take; what is not known by then is not told."""

Signs = dict[str, dict[str, Any]]
"""By run: `quiet` seconds without a sign, `tool` at work for `tool_for` seconds, the provider's wait `retry_in`."""


class LiveSigns:
    """Reads signs of life."""

    def __init__(self, shepherd: Shepherd, runner: Runner | RunnerRouter, clock: Clock) -> None:
        self._shepherd, self._runners, self._clock = shepherd, runners_of(runner), clock
        self._known: Signs = {}
        self._read_at: float | None = None
        self._reading = anyio.Lock()

    async def read(self) -> Signs:
        """Give the signs of every run whose server answers."""
        async with self._reading:
            if self._read_at is None or self._clock.monotonic() - self._read_at >= FRESH:
                self._known = await self._anew()
                self._read_at = self._clock.monotonic()
            return self._known

    async def _anew(self) -> Signs:
        world, found = self._shepherd.world, Signs()
        with anyio.move_on_after(BOUND):
            for _, run, session in in_sessions(world):
                if not world.is_up(runner_of(session)):
                    continue
                try:
                    life = await self._runners.find_runner(session).life(session)
                except RunnerError:
                    continue
                found[run.id] = {
                    "quiet": life.quiet.total_seconds(),
                    "tool": life.tool,
                    "tool_for": life.tool_for.total_seconds(),
                    "retry_in": None if life.retry_in is None else life.retry_in.total_seconds(),
                }
        return found
