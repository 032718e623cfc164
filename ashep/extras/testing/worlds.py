"""Worlds that the conformance suites are played in, and what their tests have in common."""

import itertools
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol

import anyio
import pytest
from pydantic import JsonValue

from ashep.adapters.system.clock import RealClock
from ashep.core.facts.runs import Model
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.policies import PermissionRule
from ashep.ports.runner import Prompt, Runner, SessionRequest, Turn
from ashep.ports.tracker import IssueText, Seen, Tracker
from ashep.ports.user_classes import Context

ACTOR = "ashep-test"
"""The name under which a world's tracker writes."""

STAMP = Stamp("instance-1", 7, run="t-1/implement.1.1", visit=1, attempt=1, runs=1, depth=0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run on asyncio, as ashep does."""
    return "asyncio"


def needs(world: "TrackerWorld | RunnerWorld", *what: str) -> None:
    """Skip a test of what this world cannot do."""
    if lacking := [word for word in what if word not in world.can]:
        pytest.skip(f"this world has no {', '.join(lacking)}")


class TrackerWorld(Protocol):
    """A database with a tracker of ours, and people who don't ask us: what the fixture `world` gives, new to each test.

    Its ids begin with `t-`, its time goes on by itself, and nobody else writes to it.
    """

    @property
    def can(self) -> Collection[str]:
        """What the tracker keeps next to what all must keep; tests of the rest are skipped.

        `blocks`: that an issue waits for another; `parents`: that it is a part of another; `words`: design, acceptance
        criteria and notes; `leases`: that a claim runs out; `hints`: that it tells of changes by itself.
        """
        ...

    @property
    def tick(self) -> float:
        """Seconds after which a write has another time than the one before it."""
        ...

    @property
    def settle(self) -> float:
        """Seconds after which whoever watches for changes does so, and a hint of one has come."""
        ...

    @property
    def tracker(self) -> Tracker:
        """Ours."""
        ...

    def another(self, actor: str) -> Tracker:
        """Another tracker on the same database."""
        ...

    def add(
        self,
        title: str,
        *,
        id: str | None = None,
        type: str = "task",
        priority: int = 2,
        labels: tuple[str, ...] = (),
        status: str = "open",
        text: IssueText | None = None,
        blocked_by: tuple[str, ...] = (),
        parent: str | None = None,
        actor: str = "person",
    ) -> str:
        """A person creates an issue."""
        ...

    def person_sets(
        self,
        issue: str,
        actor: str,
        *,
        status: str | None = None,
        assignee: str | None = None,
        add_labels: tuple[str, ...] = (),
        remove_labels: tuple[str, ...] = (),
    ) -> None:
        """A person changes an issue."""
        ...

    def person_comments(self, issue: str, actor: str, text: str) -> None:
        """A person comments."""
        ...


async def shown(tracker: Tracker, issue: str) -> Seen:
    seen = await tracker.issue(issue)
    assert seen is not None
    return seen


def later(seq: int) -> Stamp:
    return Stamp("instance-1", seq)


@dataclass(frozen=True)
class Act:
    """What an agent does with a prompt."""

    text: str = "END"
    does: Literal["answers", "hangs", "waits", "asks", "fetches", "questions", "fails", "drips", "works", "cut"] = (
        "answers"
    )
    """hangs: until aborted · waits: the provider lets it wait 1 s, because of `slow down` · asks: for leave to `read` a
    file `secret.env` first · fetches: for leave to `webfetch` the address `FETCHED` first, in a way that the server
    cannot list if there is one (in a session whose rules ask about it) · questions: asks `Which one?` first, twice,
    with the options `first` and `second` · fails: the provider refuses its credentials, and says `no` · drips: writes a
    word each 0.3 s for 3 s · works: uses the tool bash for 3 s, which shows nothing · cut: answers, and a limit on the
    length of answers cuts that off."""
    delay: float = 0.0


FETCHED = "http://127.0.0.1:1/fetched"
ASKS_TO_FETCH = PermissionRule(tool="webfetch", action="ask")


class RunnerWorld(Protocol):
    """A runner whose agents do as they are told, and people who write in its sessions: what the fixture `world` gives.

    It may be the same for several tests, and may have been started.
    """

    acts: dict[str, Act]
    """What an agent is to do with a prompt that holds this word, the first that fits; with any other it answers END.
    A test adds to them."""

    @property
    def can(self) -> Collection[str]:
        """What its agents can be made to do (`Act.does`); tests of the rest are skipped.

        And more: `counts` (tokens and cost), `people` (somebody writes in a session), `dies` (`kill` works), `serves`
        (one server runs all turns, and its life is theirs: without it each turn has one of its own), `words` (what a
        provider says is told while a turn waits for it), `unlists` (one odd request, and its server lists none),
        `times` (it tells when the agent and people wrote).
        """
        ...

    @property
    def agents(self) -> Collection[str]:
        """Some agents that it lists."""
        ...

    @property
    def models(self) -> Sequence[Model]:
        """Some models that it lists, its default first."""
        ...

    @property
    def runner(self) -> Runner:
        """The runner that is tried."""
        ...

    def seen(self, text: str) -> int:
        """How many turns began with a prompt that holds this text."""
        ...

    async def person_writes(self, session: str, text: str) -> str:
        """Let a person write in a session; gives the message's id."""
        ...

    async def kill(self) -> None:
        """End the server with SIGKILL; where each turn has a life of its own, all that run."""
        ...


_RUN = secrets.token_hex(4)
_number = itertools.count()


def name() -> str:
    """A word that no other test uses."""
    return f"{_RUN}x{next(_number):04d}x"


BOUND = 60.0
"""Seconds for what takes one or two: a machine may be slow, and a server just have begun."""


async def settled(world: RunnerWorld, session: str, message: str, bound: float = BOUND) -> Turn:
    """The turn once it has ended, one way or another."""
    return await reached(world, session, message, "finished", bound)


async def reached(world: RunnerWorld, session: str, message: str, state: str, bound: float = BOUND) -> Turn:
    """The turn once it is in a state."""
    with anyio.fail_after(bound):
        while (turn := await world.runner.turn(session, message)).state != state:
            await anyio.sleep(0.05)
    return turn


async def opened(world: RunnerWorld, key: str | None = None, *rules: PermissionRule) -> str:
    await world.runner.start()
    request = SessionRequest(key=key or name(), title="a test", access="write", permissions=rules)
    return await world.runner.open_session(request)


def prompt(session: str, text: str, agent: str | None = None, model: Model | None = None) -> Prompt:
    ident = name()
    return Prompt(session, f"msg_{ident}", f"prt_{ident}", f"{text} {ident}", agent, model)


async def begun(world: RunnerWorld, act: Act, *, runs: bool = False) -> tuple[str, str, Prompt]:
    """A session in which this was sent, the word that tells it from others, and the prompt; `runs`: once it does."""
    session, word = await opened(world), name()
    world.acts[word] = act
    sent = prompt(session, word)
    await world.runner.send(sent)
    if runs:
        await reached(world, session, sent.message_id, "running")
    return session, word, sent


async def asked_of_model(world: RunnerWorld, word: str) -> None:
    """Wait until a turn with this word has come as far as the model."""
    with anyio.fail_after(BOUND):
        while not world.seen(word):
            await anyio.sleep(0.02)


def context(project: Path, *, actor: str = ACTOR, **options: JsonValue) -> Context:
    """Give a context in which `options` are the options, and everything that is kept lies below `project`."""
    return Context(
        options=options,
        project=project,
        state=project / ".agent-shepherd" / "state" / "own" / "mine",
        clock=RealClock(),
        actor=actor,
        timeout=timedelta(seconds=30),
        secret=lambda name: os.environ.get(name, ""),
        redact=lambda text: text,
    )
