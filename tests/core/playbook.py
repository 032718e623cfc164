"""A playbook is a conversation with the core: `book >> fact << what << follows`, exactly and in that order.

What is expected is a type, or `like(type, field=value, …)` for a type with some of its fields; `...` is whatever else
follows. `assert book` says that nothing more came out. Between the lines that a test is about, `answered()` lets a
made-up world that never fails carry out what was asked for.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import EllipsisType
from typing import Any, TypeVar

from ashep.core.facts import commands as c
from ashep.core.facts import runs, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command, SendNotice
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies, Policy
from ashep.core.policy.settings import Settings
from ashep.core.resources.due_times import due_timers
from ashep.core.runs.prompt_commands import message_id
from ashep.core.state.flow import Flow
from ashep.core.state.run import Run
from ashep.core.state.world import World
from tests.core import given
from tests.core.laws import Laws
from tests.core.world_of import MadeUp

T = TypeVar("T")
LOOKED_UP = (e.ChangeDoubted, e.ChangeJudged, e.AuthorsRead, c.ReadAuthors)


@dataclass(frozen=True)
class Like:
    """A record of this type with these fields, whatever the others are."""

    kind: type
    fields: tuple[tuple[str, Any], ...]

    def fits(self, body: Fact | Command) -> bool:
        """Whether a record is like this."""
        return type(body) is self.kind and all(getattr(body, name) == value for name, value in self.fields)


def like(record: type, /, **fields: Any) -> Like:
    """Expect a record of this type with these fields."""
    return Like(record, tuple(fields.items()))


class Playbook:
    """A conversation with the core about one issue, `t-1`, unless another is named."""

    def __init__(
        self, policy: Policy | Policies = given.STANDARD, team: Agents = given.TEAM, config: Settings | None = None,
        issues: Iterable[str] = ("t-1",), **daemon: Any,
    ) -> None:  # fmt: skip
        rules = policy if isinstance(policy, Policies) else given.policies(policy)
        self.made = MadeUp(check=Laws(signs=False))
        self.left: list[Fact | Command] = []
        self.looks_up = True
        """Who changed an issue is looked up at once, and not told: only some playbooks are about that."""
        self.made.begin(*given.start(rules, team, config, **daemon))
        for name in issues:
            self.made.open(name)

    @property
    def world(self) -> World:
        """The World by now."""
        return self.made.world

    @property
    def now(self) -> datetime:
        """The time by now."""
        return self.made.now

    def flow(self, name: str = "t-1") -> Flow:
        """Where the issue is."""
        return self.world.flows[name]

    def bodies(self, kind: type[T]) -> list[T]:
        """All facts and commands of this kind, by now."""
        return [entry.body for entry in self.made.entries if isinstance(entry.body, kind)]

    def run(self, name: str = "t-1") -> Run:
        """The issue's last run."""
        run = self.flow(name).run
        assert run is not None
        return run

    # --- the conversation -------------------------------------------------------------------------------------

    def __rshift__(self, told: Fact | Iterable[Fact]) -> "Playbook":
        assert self
        facts = list(told) if isinstance(told, (list, tuple)) else [told]
        entries = self.made.turn(*facts)  # type: ignore[arg-type]
        self.left = [entry.body for entry in entries if not any(entry.body is fact for fact in facts)]
        if self.looks_up and (asked := [one for one in self.made.jobs if isinstance(one, c.ReadAuthors)]):
            self.made.jobs.remove(asked[0])
            entries = self.made.turn(self.made._effect(asked[0]))
            bodies = [*self.left, *(entry.body for entry in entries)]
            self.left = [body for body in bodies if not isinstance(body, LOOKED_UP)]
        return self

    def __lshift__(self, expected: Like | type | EllipsisType) -> "Playbook":
        if expected is ...:
            self.left = []
            return self
        wanted = expected if isinstance(expected, Like) else Like(expected, ())
        assert self.left, f"expected {wanted}, and nothing more came"
        body = self.left.pop(0)
        assert wanted.fits(body), f"expected {wanted}, got {body}\nthen {self.left}"
        return self

    def __bool__(self) -> bool:
        assert not self.left, "more came out: " + "\n".join(map(str, self.left))
        return True

    # --- what happens in between ------------------------------------------------------------------------------

    def answered(self) -> "Playbook":
        """Let everything that is asked for be carried out, one after the other."""
        self.left = []
        while self.made.jobs:
            self.made.carry_out(self.made.jobs.pop(0))
        return self

    def looked(self) -> "Playbook":
        """Let the tracker be looked at, and what follows be carried out."""
        self.left = []
        self.made.look()
        return self.answered()

    def next(self) -> Fact:
        """The answer of the next command that waits to be carried out."""
        command = self.made.jobs.pop(0)
        self.made.done.append(command)
        return self.made._effect(command)

    def dropped(self) -> Command:
        """The next command, which nobody carries out."""
        return self.made.jobs.pop(0)

    def failed(self, *, infra: bool = True, landed: bool = False) -> Fact:
        """The next command fails; `landed`: only its answer is lost."""
        command = self.made.jobs.pop(0)
        if landed:
            self.made._effect(command)
        assert not isinstance(command, SendNotice)  # that fails in its own way
        return tracker.EffectFailed(command.issue, command.key, "no answer", infra)

    def later(self, seconds: float) -> list[Fact]:
        """Let time pass, and give the timers that are due then."""
        self.made.now += timedelta(seconds=seconds)
        return list(due_timers(self.world, self.now))

    def seen(self, name: str = "t-1", **fields: Any) -> tracker.IssueSeen:
        """A person changes the issue, and a look shows it. `add` and `drop` are labels."""
        self.made.change(name, fields.pop("who", "ann"), fields.pop("add", ()), fields.pop("drop", ()), **fields)
        return tracker.IssueSeen(name, self.made.tracker[name], self.world.seq)

    def turn(self, state: str, name: str = "t-1", **fields: Any) -> runs.TurnSeen:
        """A read of the run's session."""
        run = self.run(name)
        message = message_id(self.world, run) or ""
        values: dict[str, Any] = {"instance": f"server-{self.made.instance}", "as_of": self.world.seq} | fields
        return runs.TurnSeen(name, run.id, run.prompt.n, message, state=state, **values)  # type: ignore[arg-type]

    def reports(self, result: str = "success", name: str = "t-1", **outcome: Any) -> runs.TurnSeen:
        """The agent's turn is finished with this outcome."""
        block = json.dumps({"result": result, "summary": "what I did"} | outcome)
        return self.turn("finished", name, block=block)

    def until(self, phase: str, name: str = "t-1") -> "Playbook":
        """Go through the standard policy until the run of a phase is at work, or the question is asked."""
        script: dict[str, dict[str, Any]] = {
            "implement": {}, "review": {"verdict": "approve"}, "arbitrate": {"verdict": "pass"},
        }  # fmt: skip
        self.looked()
        while self.flow(name).phase != phase:
            at = self.flow(name).phase
            assert at is not None
            self.left = []
            self.__rshift__(self.reports(name=name, **script.get(at, {})))
            self.answered()
        return self
