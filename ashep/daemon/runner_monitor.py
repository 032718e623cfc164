"""Monitor of a runner: looks at its server and at live sessions, and tells the shepherd. It decides nothing.

Events wake it; only a read is believed (facts/opencode.md 4, 10). While no run is under way it reads nothing but, now
and then, the server's catalogue.
"""

import math
import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import anyio

from ashep.core.facts import outcome, requests, runs
from ashep.core.facts.resources import RunnerSeen, ServerEnded, ServerFailed
from ashep.core.facts.runs import Quota, Refusal
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.reconcile import observe
from ashep.core.resources.agent_server import is_due, memory_read
from ashep.core.runs.prompt_commands import message_id
from ashep.core.state.flow import Flow, Takeover
from ashep.core.state.run import Run, runner_of
from ashep.core.state.runner_state import Server, get_server
from ashep.core.state.world import World
from ashep.daemon.effects.sessions import keep_steps, look
from ashep.daemon.error_facts import LONGEST_TRACE, is_final, server_lost, short
from ashep.daemon.reset_times import find_reset
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError, RunnerError, RunnerRefused, ServerNotStarted, SessionUnavailable
from ashep.ports.clock import Clock
from ashep.ports.journal import Blobs
from ashep.ports.runner import Runner, Turn
from ashep.ports.runner_router import RunnerRouter

CATALOGUE = 60.0
"""Seconds between reads of the catalogue while all is well."""

BACKOFF = (0.5, 15.0)
"""Seconds between tries to reach a server that is away, from the first to the longest."""

QUESTION = 5.0
"""Seconds after which a permission or a question is seen whose sign was missed, as that of a subagent is."""

SERVER_STOP = 1.5
"""Seconds that a stopping daemon waits for its server to end; SIGTERM promises five in all."""

PEOPLE_EVERY = 10.0
"""Seconds between full reads of a session that is busy: a person may have written in it."""


class TurnReading(NamedTuple):
    """What a read of a session shows."""

    seen: runs.TurnSeen
    quota: Quota | None


class Monitor:
    """A source of facts about one of the project's runners, by its name, and its sessions."""

    def __init__(
        self, shepherd: Shepherd, runners: RunnerRouter, name: str, blobs: Blobs, clock: Clock, settings: Settings,
        report: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`report`: says in the daemon's log what nobody foresaw."""
        self._report = report
        self._shepherd, self._runners, self._name, self._blobs, self._clock = shepherd, runners, name, blobs, clock
        self._every = settings.monitor.check_every.total_seconds()
        self._idle_stop = settings.runners.opencode.idle_stop.total_seconds()
        self._signed: set[str] = set()
        """Sessions of ours that may have ended, or wait for somebody."""
        self._woken = anyio.Event()
        self._due, self._asked_at = 0.0, 0.0
        self._looked: dict[tuple[str, int], float] = {}
        """When a prompt's session was last looked at, or the prompt sent."""
        self._read_at: dict[str, float] = {}
        self._last_live = clock.monotonic()
        self._asleep = False
        self._ended: list[Fact] = []
        """What is to be told with the next look at the server: that it was ended so that another one begins."""

    @property
    def _runner(self) -> Runner:
        return self._runners[self._name]

    @property
    def _server(self) -> Server:
        return get_server(self._shepherd.world.servers, self._name)

    def _in_use(self) -> bool:
        return self._shepherd.world.in_use(self._name)

    async def run(self) -> None:
        """Watch for ever, from the moment on in which an agent is of this runner."""
        await self._shepherd.wait_while(lambda world: self._name not in world.runners and not self._in_use())
        self._last_live = self._clock.monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_server)
            group.start_soon(self._watch_turns)
            group.start_soon(self._watch_people)

    async def let_go(self) -> None:
        """End a managed server on which nothing runs, and nobody works: without a daemon nobody would end it."""
        if self._name in self._shepherd.world.seen and not self._in_use():
            with anyio.move_on_after(SERVER_STOP):
                await self._runner.stop_server()

    # --- the server -------------------------------------------------------------------------------------------------

    async def _watch_server(self) -> None:
        failures = 0
        while True:
            await self._shepherd.wait_while(lambda _: self._server.start_after is not None)
            if await self._look_at_server():
                failures = 0
                async with anyio.create_task_group() as group:
                    group.start_soon(self._follow_signs)
                    await self._while_it_answers()
                    group.cancel_scope.cancel()
                if is_due(self._shepherd.world, self._name):
                    instance = self._server.instance
                    # one that does not end does not answer either, or is at its limit again soon
                    with suppress(RunnerError):
                        await self._runner.stop_server()
                        self._ended = [ServerEnded(instance, "recycled", self._name)]
            else:
                failures += 1
                await anyio.sleep(min(BACKOFF[0] * 2 ** min(failures - 1, 9), BACKOFF[1]))

    async def _look_at_server(self) -> bool:
        failed: list[Fact] = []
        used: int | None = None
        tried = ""
        try:
            await self._runner.start()
            catalog = await self._runner.catalog()
        except RunnerError as error:
            seen = replace(server_lost(error), runner=self._name)
            if isinstance(error, ServerNotStarted):
                failed.append(ServerFailed("", seen.detail, self._name))
        else:
            self._asleep = False
            listed = catalog.version, catalog.instance, catalog.agents, catalog.models, catalog.default
            seen = RunnerSeen("up", *listed, exhaustive=catalog.exhaustive, runner=self._name)
            used, tried = catalog.memory, catalog.tried
        ended, self._ended = self._ended, []
        now = self._shepherd.get_time()
        # what follows from it may be a time to wait for
        await self._shepherd.ask(lambda world: _news(world, seen, tried, [*ended, *failed], now))
        if self._name == OPENCODE:
            self._shepherd.tell(lambda world: memory_read(world, seen.instance, used, now))
        return seen.state == "up" and not self._away()

    async def _while_it_answers(self) -> None:
        """Read the catalogue now and then; return once the server was seen to be away, is to be begun again, or was
        sent to sleep.

        The stream of signs goes on meanwhile: silence is only worth something while nothing can be missed.
        """
        while not self._is_over() and not self._asleep:
            with anyio.move_on_after(CATALOGUE) as waited:
                await self._shepherd.wait_while(lambda _: not self._is_over() and not self._asleep)
            if self._server.start_after is not None:
                continue  # where it is gone again, a look would start another one
            if waited.cancelled_caught and not self._asleep and not await self._look_at_server():
                return
        await self._shepherd.wait_while(lambda _: self._asleep and not self._away() and not self._in_use())

    def _is_over(self) -> bool:
        return self._away() or is_due(self._shepherd.world, self._name)

    def _away(self) -> bool:
        seen = self._shepherd.world.seen.get(self._name)
        return seen is not None and seen.state != "up"

    async def _follow_signs(self) -> None:
        async for sign in self._runner.signs():
            if not sign.urgent:
                continue  # the next check sees what goes on; to read a long session at each step of it costs much
            ours = {flow.run.session for flow in self._flows() if flow.run and flow.run.session}
            self._signed |= ours if sign.session is None else ours & {sign.session}
            self._woken.set()

    # --- turns ------------------------------------------------------------------------------------------------------

    async def _watch_turns(self) -> None:
        while True:
            if not self._live():
                await self._rest()
                continue
            await self._check()
            self._last_live = self._clock.monotonic()
            with anyio.move_on_after(max(self._due - self._last_live, 0.0)):
                # a session with a prompt under way may have shown a sign before that prompt was known as sent
                while not self._is_signed():
                    await (self._shepherd.until(lambda _: self._is_signed()) if self._signed else self._woken.wait())
                    self._woken = anyio.Event()

    def _is_signed(self) -> bool:
        """Whether a sign was seen of a session with a prompt under way."""
        return not self._signed.isdisjoint(run.session for _, run in self._live())

    async def _rest(self) -> None:
        """Wait until a prompt is out; end a managed server that had nothing to do for long."""
        if self._in_use():  # a run is being prepared, or brought to its end; or a person is there
            await self._shepherd.wait_while(lambda _: self._in_use() and not self._live())
            self._last_live = self._clock.monotonic()
            return
        left, asleep = self._idle_stop - (self._clock.monotonic() - self._last_live), self._asleep
        await self._shepherd.wait_while(
            lambda _: not self._in_use() and self._asleep == asleep, None if asleep else max(left, 0.0)
        )
        if not self._in_use() and not asleep:
            self._asleep = True
            instance = self._server.instance
            with suppress(RunnerError):  # one that does not end is found again when it is needed
                await self._runner.stop_server()
                self._shepherd.tell(lambda world: _slept(world, self._name, instance))

    def _flows(self) -> list[Flow]:
        world = self._shepherd.world
        flows = (world.flows[issue] for issue in sorted(world.indexes.live))  # in an order that another process repeats
        return [flow for flow in flows if flow.run is not None and flow.run.session_runner == self._name]

    def _live(self) -> list[tuple[Flow, Run]]:
        flows = self._flows()
        return [(flow, flow.run) for flow in flows if flow.run and flow.run.prompt.sent and not flow.run.ended]

    async def _check(self) -> None:
        if not self._shepherd.world.is_up(self._name):  # or it was not started yet, which is no absence
            await self._shepherd.wait_while(lambda world: not world.is_up(self._name) and bool(self._live()))
            return
        now, as_of, live = self._clock.monotonic(), self._shepherd.world.seq, self._live()
        signed = {run.session for _, run in live} & self._signed
        self._signed -= signed
        try:
            shown = [(flow, run) for flow, run in live if run.session in signed]
            going_on = [await self._read(flow, run, as_of) for flow, run in shown]
            if any(going_on):  # whose turn is over asks nothing
                await self._read_requests(as_of)
            due = self._not_looked_at(live, signed, now)
            if not due:
                return  # a sign tells of its own session only
            busy = frozenset[str]()
            with suppress(RunnerRefused):  # then each of them is read, and what is refused there is told
                busy = await self._runner.busy(_sessions(due))
            for flow, run in due:
                runs = run.session in busy and run.turn == "running"
                read_for = self._clock.monotonic() - self._read_at.get(run.id, 0.0)
                if not runs or run.watch.fresh_after or run.watch.doubted or read_for > PEOPLE_EVERY:
                    await self._read(flow, run, as_of)
            if now - self._asked_at >= QUESTION:
                await self._read_requests(as_of)
        except RunnerError as error:
            self._report_outage(error)

    def _not_looked_at(
        self, live: list[tuple[Flow, Run]], signed: Collection[str | None], now: float
    ) -> list[tuple[Flow, Run]]:
        """Give those whose sessions nobody has looked at, or written to, for `check_every`: what no sign tells of is
        found by then. Where one is due, so are those whose time is half over: one list tells of all.
        """
        self._looked = {
            (run.id, run.prompt.n): now
            if run.session in signed
            else self._looked.get((run.id, run.prompt.n), self._sent_at(run, now))
            for _, run in live
        }
        is_due = any(at + self._every <= now for at in self._looked.values())
        due = [one for one in live if is_due and self._looked[(one[1].id, one[1].prompt.n)] + self._every / 2 <= now]
        self._looked |= {(run.id, run.prompt.n): now for _, run in due}
        self._due = min(self._looked.values(), default=now) + self._every
        return due

    def _sent_at(self, run: Run, now: float) -> float:
        """When its prompt went out; where that was long ago, or is not known, it is due."""
        if run.started is None or run.prompt.n != 1:
            return -math.inf
        age = (self._shepherd.get_time() - run.started).total_seconds()
        return now - max(age, 0.0) if age < self._every else -math.inf

    def _report_outage(self, error: RunnerError) -> None:
        outage, moment = replace(server_lost(error), runner=self._name), self._clock.monotonic()
        self._looked, self._due = dict.fromkeys(self._looked, moment), moment + self._every
        now = self._shepherd.get_time()
        self._shepherd.tell(lambda world: observe.runner_read(world, outage, now))

    async def _read_requests(self, as_of: int) -> None:
        self._asked_at = self._clock.monotonic()
        sessions = _sessions(self._live())
        try:
            listed = await self._runner.requests(sessions)
        except RunnerRefused as error:
            reason, ordered = str(error), sorted(sessions)
            listed = tuple(requests.Request("", session, "permission", unlisted=reason) for session in ordered)
        if any(observe.requests_read(self._shepherd.world, listed, as_of)):
            self._shepherd.tell(lambda world: observe.requests_read(world, listed, as_of))

    async def _read(self, flow: Flow, run: Run, as_of: int) -> bool:
        """Read a session; whether its turn may go on."""
        self._read_at[run.id] = self._clock.monotonic()
        try:
            read = await self._read_turn(flow, as_of)
            if read is not None and read.seen.state == "finished" and run.session in self._signed:
                self._signed.discard(run.session)  # somebody may have written since: nobody looks after the end
                read = await self._read_turn(flow, as_of)
        except Exception as error:  # what it shows is its agent's: whatever that comes to keeps no other waiting
            about_all = isinstance(error, RunnerError) and not isinstance(error, (RunnerRefused, SessionUnavailable))
            if about_all or is_final(error):
                raise
            if not isinstance(error, AshepError) and "turn" not in run.asks.unshown:
                trace = self._blobs.redact("".join(traceback.format_exception(error))[-LONGEST_TRACE:])
                self._report(f"The session of {run.id} cannot be read, and nobody foresaw how:\n{trace}")
            why, away = short(error), isinstance(error, SessionUnavailable)
            self._shepherd.tell(lambda world: observe.turn_refused(world, flow.issue.id, run.id, why, as_of, away=away))
            return True
        if read is None:
            return False
        seen, quota = read
        self._shepherd.tell(
            lambda world: [*observe.quota_read(world, seen.issue, seen.run, quota), *observe.turn_read(world, seen)]
        )
        if seen.state == "finished":
            self._read_at.pop(run.id, None)
        return seen.state != "finished"

    async def _read_turn(self, flow: Flow, as_of: int) -> TurnReading | None:
        now = self._shepherd.get_time()
        return await read_turn(self._runner, self._blobs, self._shepherd.world, flow, as_of, now)

    # --- people -------------------------------------------------------------------------------------------------

    async def _watch_people(self) -> None:
        """Look at the sessions that people took, now and then, and at once where something waits for a fresh look."""
        while True:
            if not self._takeovers() or not self._shepherd.world.is_up(self._name):
                await self._shepherd.until(lambda world: bool(self._takeovers()) and world.is_up(self._name))
                continue
            world = self._shepherd.world
            try:
                for flow, takeover in self._takeovers():
                    with suppress(SessionUnavailable):  # whether they are quiet is asked again
                        session = await look(self._runner, world, flow, takeover)
                        if session is not None:
                            self._shepherd.tell(partial(observe.session_read, seen=session))
            except RunnerError as error:
                self._report_outage(error)
            with anyio.move_on_after(PEOPLE_EVERY):
                await self._shepherd.changed()
                await self._shepherd.wait_while(lambda _: not any(one.fresh_after for _, one in self._takeovers()))

    def _takeovers(self) -> list[tuple[Flow, Takeover]]:
        world = self._shepherd.world
        flows = (world.flows[issue] for issue in sorted(world.indexes.takeovers))
        taken = ((flow, flow.takeover) for flow in flows if flow.takeover is not None and flow.takeover.session)
        return [(flow, one) for flow, one in taken if runner_of(one.session or "") == self._name]


def _sessions(live: Iterable[tuple[Flow, Run]]) -> frozenset[str]:
    return frozenset(run.session for _, run in live if run.session is not None)


async def read_turn(
    runner: Runner, blobs: Blobs, world: World, flow: Flow, as_of: int, now: datetime
) -> TurnReading | None:
    """Read what became of the present prompt of a flow's run, and its signs of life where those are in doubt.

    None: no prompt of it is out. Raises `RunnerError`, and what the blobs raise.
    """
    run = flow.run
    message = message_id(world, run) if run is not None else None
    if run is None or message is None or run.session is None or not run.prompt.sent or run.ended:
        return None
    ours = frozenset((*flow.messages, *run.prompt.before)) - {message}
    life = await runner.life(run.session) if run.watch.doubted else None
    turn = await runner.turn(run.session, message, ours)
    turn = replace(turn, refused=_with_reset(turn, now))
    is_over = turn.state == "finished"
    reading = runs.TurnSeen(
        issue=flow.issue.id,
        run=run.id,
        n=run.prompt.n,
        message=message,
        as_of=as_of,
        state=turn.state,
        instance=turn.instance,
        block=outcome.last_block(turn.text) if is_over else None,
        text=await blobs.keep(turn.text) if is_over and turn.text else None,
        error=turn.error,
        provider=turn.provider,
        model=turn.model,
        tokens=turn.tokens,
        cost=turn.cost,
        people=turn.people,
        life=life,
        refused=turn.refused,
        starting=turn.starting,
        not_started=turn.not_started[:1000],
        ending=outcome.read_ending(turn.text, cut=turn.cut) if is_over and not turn.error else None,
        agent_message_at=turn.agent_message_at,
        human_message_at=turn.human_message_at,
        steps=await keep_steps(blobs, turn) if is_over else None,
    )
    return TurnReading(reading, turn.quota)


def _with_reset(turn: Turn, now: datetime) -> Refusal | None:
    """Return the turn's refusal with the time that its provider names: as a quota that is used up, or in its words."""
    refused, quota = turn.refused, turn.quota
    if refused is None or refused.until is not None or refused.kind == "unauthorized":
        return refused
    if refused.kind == "limited" and quota is not None and quota.status == "rejected" and quota.resets is not None:
        return replace(refused, until=quota.resets)
    return replace(refused, until=find_reset(refused.why, turn.agent_message_at or now))


def _news(world: World, seen: RunnerSeen, tried: str, known: list[Fact], now: datetime) -> list[Fact]:
    """What a look at the server tells; `known`: why it is not the one that it was, where that is known."""
    if seen.state == "up":
        before = get_server(world.servers, seen.runner).version
        seen = replace(seen, replaced=observe.replaced_by(before, seen.detail, tried))
    if known:
        return known if observe.is_known(world.seen.get(seen.runner), seen) else [*known, seen]
    return observe.runner_read(world, seen, now)


def _slept(world: World, name: str, instance: str) -> list[Fact]:
    """An idle managed server was ended; who was ended already is nothing to tell of."""
    is_known = instance and instance == get_server(world.servers, name).instance
    return [ServerEnded(instance, "idle", name)] if is_known else []
