"""Every order of an abort, its answer, reads and the turn: nobody is blamed, and no two turns act on one tree.

The world here is one issue on one server, searched breadth-first. A prompt may begin its turn at any time or never. A
call to stop a turn takes effect at once, later or never, and its answer comes, or is lost. A read shows what is so. The
laws are asked in each state; the search stops at a depth, and at states it has seen. A session runs one turn at a
time, that of its newest prompt (facts/opencode.md 8); a prompt may begin its turn although a call to stop it was
answered (26).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from ashep.core.facts import commands, issues, runs, tracker
from ashep.core.facts.commands import Command
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues import fold
from ashep.core.policy.policies import Phase
from ashep.core.reconcile.observe import turn_read
from ashep.core.reconcile.step import step
from ashep.core.resources.due_times import due_timers, next_due
from ashep.core.runs import turns
from ashep.core.runs.prompt_commands import message_id
from ashep.core.state.world import World
from tests.core import given
from tests.core.mutants import Mutant, planted
from tests.core.playbook import Playbook

POLICY = given.policy_of(Phase(name="review", session="reuse"))
ABORTED = "MessageAbortedError: aborted"
DEPTH = 24
"""Events of a story: two lost calls, a turn that each of them stops later, and what follows, take twenty-three."""


@dataclass(frozen=True)
class Server:
    """What one server holds: turns by session and message, and calls to stop that have not taken effect yet."""

    turns: tuple[tuple[str, str, str], ...] = ()
    """Session, message, and state: stored, running, aborted or ended."""
    late: tuple[str, ...] = ()
    """Sessions that a lost call will still stop."""

    def state(self, session: str, message: str) -> str:
        return next((state for s, m, state in self.turns if (s, m) == (session, message)), "missing")

    def put(self, session: str, message: str, state: str) -> "Server":
        known = self.state(session, message) != "missing"
        changed = tuple((s, m, state if (s, m) == (session, message) else was) for s, m, was in self.turns)
        return replace(self, turns=changed if known else (*self.turns, (session, message, state)))

    def abort(self, session: str) -> "Server":
        """A turn that has not begun cannot be stopped (facts/opencode.md 26)."""
        stopped = {"running": "aborted"}
        changed = tuple((s, m, stopped.get(state, state) if s == session else state) for s, m, state in self.turns)
        return replace(self, turns=changed)

    @property
    def states(self) -> set[tuple[str, str]]:
        return {(session, state) for session, _, state in self.turns}

    @property
    def at_work(self) -> list[tuple[str, str]]:
        return [(session, message) for session, message, state in self.turns if state == "running"]


@dataclass(frozen=True)
class State:
    """The core's World, the real server, and the commands under way."""

    world: World
    server: Server
    jobs: tuple[Command, ...]
    read: runs.TurnSeen | None = None
    """A read that was made, and is not judged yet."""
    path: tuple[str, ...] = ()

    def told(self, event: str, *facts: Fact, server: Server | None = None, done: Command | None = None) -> "State":
        now = self.world.now
        world, entries = step(self.world, list(facts), now, self.world.seq + 1)
        made = tuple(entry.body for entry in entries if isinstance(entry.body, Command))
        for entry in entries:
            judge(entry.body, (*self.path, event))
        jobs = tuple(job for job in self.jobs if job is not done)
        read = None if event.startswith("read") else self.read
        return State(world, server or self.server, (*jobs, *made), read, (*self.path, event))

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two states the same: what the rules read of the run and the issue, and what really is so."""
        flow = self.world.flows["t-1"]
        run = flow.run
        watch = run.watch if run else None
        bits = (
            (watch.probation, watch.stopping, watch.overdue, bool(watch.sign_due), watch.fresh_after != 0)
            if watch
            else ()
        )
        about = (
            (run.id, run.session, run.turn, run.stop, run.abort_unseen, run.prompt.tries, run.prompt.sent)
            if run
            else ()
        )
        waits = flow.stage, flow.doubts, bool(flow.effect_after), bool(flow.not_before)
        read = self.read
        late = read and (read.run, read.message, read.state, read.error, read.as_of < run.effect_seq if run else 0)
        return (about, bits, waits, self.server, late, tuple(job.key for job in self.jobs))


def judge(body: object, path: tuple[str, ...]) -> None:
    """Nobody is blamed for what ashep did out of doubt; no person is here, and no agent fails."""
    assert not isinstance(body, runs.SessionTaken), f"a person is blamed: {path}"
    if isinstance(body, runs.RunEnded):
        assert body.state in ("succeeded", "aborted"), f"an attempt is burnt by {body.state}: {path}"
    if isinstance(body, issues.RetryScheduled):
        assert body.failures == 0, f"a failure is counted: {path}"


def followers(state: State) -> Iterator[State]:
    """Everything that can happen next."""
    yield from effects(state)
    server, world = state.server, state.world
    newest = {session: message for session, message, _ in server.turns}
    for session, message, now in server.turns:
        if now == "stored" and newest[session] == message and (session, "running") not in server.states:
            others = [turn for turn in server.at_work if turn != (session, message)]
            assert not others, f"{message} begins while {others} is at work: {state.path}"
            yield replace(state, server=server.put(session, message, "running"), path=(*state.path, "turn begins"))
        if now == "running":
            yield replace(state, server=server.put(session, message, "ended"), path=(*state.path, "turn ends"))
    for session in dict.fromkeys(server.late):
        left = list(server.late)
        left.remove(session)
        after = replace(server.abort(session), late=tuple(left))
        yield replace(state, server=after, path=(*state.path, f"late abort of {session}"))
    if state.read is not None:
        event = f"read {state.read.state} {state.read.error or ''}"
        yield state.told(event, *turn_read(world, state.read))
    elif (read := _read(state)) is not None and turn_read(world, read):
        yield replace(state, read=read, path=(*state.path, "looked"))
    if (due := next_due(world)) is not None and due - world.now < timedelta(minutes=5):
        later = replace(state, world=replace(world, now=max(world.now, due)))
        yield later.told(f"time {due - world.now}", *due_timers(later.world, later.world.now))


def effects(state: State) -> Iterator[State]:
    """A command is answered, and done or not done, now or later."""
    for command in state.jobs[:1]:
        match command:
            case commands.StopTurn(session=session):
                stopped = runs.TurnStopped(command.issue, command.run, command.key)
                lost = tracker.EffectFailed(command.issue, command.key, "no answer", infra=True)
                yield state.told("abort answered", stopped, server=state.server.abort(session), done=command)
                yield state.told("abort lost, done", lost, server=state.server.abort(session), done=command)
                late = replace(state.server, late=(*state.server.late, session)[-2:])
                yield state.told("abort lost, late", lost, server=late, done=command)
            case commands.SendPrompt(session=session, message_id=message):
                server = state.server
                if server.state(session, message) == "missing":
                    server = server.put(session, message, "stored")
                sent = runs.PromptSent(command.issue, command.run, command.key, command.n, "server-1")
                yield state.told("prompt sent", sent, server=server, done=command)
            case commands.OpenSession():
                session = command.reuse or f"ses_{command.session_key.rpartition('.')[2]}"
                about = (command.issue, command.run, command.key, session)
                yield state.told("session", runs.SessionOpened(*about, reused=command.reuse is not None), done=command)
            case _:
                book = Playbook(POLICY)
                book.made.world, book.made.tracker = state.world, {"t-1": state.world.flows["t-1"].issue}
                yield state.told(type(command).__name__, book.made._effect(command), done=command)  # pyright: ignore[reportPrivateUsage]


def _read(state: State) -> runs.TurnSeen | None:
    run = state.world.flows["t-1"].run
    message = message_id(state.world, run) if run is not None else None
    if run is None or message is None or run.session is None or run.ended or not run.prompt.sent:
        return None
    real = state.server.state(run.session, message)
    shown = {"aborted": "finished", "ended": "finished"}.get(real, real)
    block = '{"result": "success", "summary": "x"}' if real == "ended" else None
    error = ABORTED if real == "aborted" else None
    about = (run.prompt.n, message, state.world.seq, shown, "server-1")
    return runs.TurnSeen("t-1", run.id, *about, block=block, error=error)  # type: ignore[arg-type]


def search(depth: int = DEPTH) -> tuple[int, set[str]]:
    """Go through all stories from a prompt that is out; gives how many states there are, and what was decided."""
    book = Playbook(POLICY).looked()
    run = book.run()
    message = message_id(book.world, run)
    assert run.session is not None
    assert message is not None
    first = State(book.world, Server().put(run.session, message, "stored"), ())
    seen, layer, decided = {first.key}, [first], set[str]()
    for _ in range(depth):
        found = [after for state in layer for after in followers(state)]
        layer = []
        for after in found:
            decided.add(after.path[-1].split(" ")[0])
            if after.key not in seen:
                seen.add(after.key)
                layer.append(after)
    return len(seen), decided


@pytest.mark.promise("T6", "E5")
def test_no_order_of_abort_answer_and_turn_blames_anybody_or_lets_two_turns_act() -> None:
    states, events = search()
    assert states > 500, "the search comes nowhere"
    assert {"abort", "late", "turn", "read", "prompt", "session"} <= events


PLANTED = (
    Mutant("a late abort is the agent's failure", turns._finished, "is_stopped and (by_ashep or by_server)", "False"),
    Mutant("a late abort is a person's", turns._finished, "run.watch.stopping or run.abort_unseen", "False"),
    Mutant("a lost abort is forgotten", fold._abort_unseen, "abort_unseen=True", "abort_unseen=False"),
    Mutant("the session of a lost abort is used again", fold._abort_unseen, "entry[1] != session", "True"),
    Mutant("an unbegun prompt goes to another session", turns._not_begun, "is_exhausted(", "(lambda *_: 1)("),
)  # fmt: skip


@pytest.mark.parametrize("mutant", PLANTED, ids=lambda mutant: mutant.name)
def test_the_search_finds(mutant: Mutant) -> None:
    with planted(mutant), pytest.raises(AssertionError):
        search()
