"""Small made-up policies with a team for them, by seed or by hypothesis: for oracles of the checker and for lives.

Whatever a policy of the language can say about where an issue goes is in some of them. Without `flaws` a case keeps
what `ashep.config.check` asks of files; whether it can end is another question. With them some verdicts lead nowhere,
some targets do not exist, and some phases need an agent that nobody is.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from hypothesis import strategies as st

from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.checks import FileExists, FileExistsCheck
from ashep.core.policy.policies import (
    CLOSE,
    Human,
    Limits,
    Phase,
    Policies,
    Policy,
    Prefer,
    Retry,
    ReuseFrom,
    Stall,
    Verify,
)

NAMES: Final = ("alpha", "beta", "gamma", "delta", "epsilon")
VERDICTS: Final = ("good", "bad", "odd")
PARK, NOWHERE, UNKNOWN = "park", "nowhere", "unheard"

BUILDER = Agent(id="builder", capabilities=("build", "look"), read_write="write", priority=10)
SECOND = Agent(
    id="second", capabilities=("build",), read_write="write", tags=("fast",),
    runner=RunnerChoice(provider="scripted", model="other"),
)  # fmt: skip
CRITIC = Agent(id="critic", capabilities=("look",), runner=RunnerChoice(provider="scripted", model="other"))
ANN = Agent(id="ann", capabilities=("sign",), is_human=True)
TEAM = Agents(version=1, agents=(BUILDER, SECOND, CRITIC, ANN))


@dataclass(frozen=True)
class Case:
    """A policy and who works by it."""

    policy: Policy
    agents: Agents = TEAM

    @property
    def policies(self) -> Policies:
        """As a file of one policy."""
        return Policies(version=1, default_policy="made", policies={"made": self.policy})

    def __str__(self) -> str:
        phases = "\n".join(phase.model_dump_json(exclude_defaults=True) for phase in self.policy.phases)
        agents = ", ".join(agent.id for agent in self.agents.agents)
        return f"{self.policy.limits.model_dump_json(exclude_defaults=True)}\n{phases}\n{agents}"


def of_seed(seed: int, *, flaws: float = 0.0) -> Case:
    """Make the case of a number: the same one for ever, until this file changes."""
    return made(random.Random(seed), flaws=flaws)


def made(chance: random.Random, *, flaws: float = 0.0) -> Case:
    """Make up a policy; `flaws`: how likely each of its parts is broken."""
    names = NAMES[: chance.choices((1, 2, 3, 4, 5), (1, 3, 4, 3, 2))[0]]
    kinds = [chance.choices(("plain", "judge", "person", "sign"), (5, 4, 3, 1))[0] for _ in names]
    phases: list[Phase] = []
    for place, kind in enumerate(kinds):
        phases.append(_Maker(chance, names, place, phases, flaws).phase(kind))
    limits: dict[str, Any] = {}
    if chance.random() < 0.3:
        limits["max_runs"] = chance.randint(1, 6)
    if chance.random() < 0.1:
        limits["max_wall_time"] = timedelta(minutes=chance.choice((20, 45, 90)))
    team = TEAM
    if flaws and chance.random() < flaws:
        gone = chance.choice(TEAM.agents)
        team = Agents(version=1, agents=tuple(agent for agent in TEAM.agents if agent is not gone))
    return Case(Policy(phases=tuple(phases), limits=Limits(**limits)), team)


@dataclass(frozen=True)
class _Maker:
    """Makes one phase of a policy."""

    chance: random.Random
    names: Sequence[str]
    place: int
    before: Sequence[Phase]
    flaws: float

    def phase(self, kind: str) -> Phase:
        """Make a phase: `plain`, `judge` with verdicts, `person`, or `sign`, which a person takes as an agent."""
        name = self.names[self.place]
        if kind == "person":
            return Phase(name=name, human=self._human())
        chance = self.chance
        wants: dict[str, Any] = {"name": name, "capabilities": (self._capability(kind),), "next": {}}
        if kind == "judge":
            wants["verdicts"] = VERDICTS[: chance.randint(1, 3)]
            wants["next"] = {verdict: self._target() for verdict in wants["verdicts"] if not self._is_broken()}
            if looked_into := self._proof(wants):
                wants |= {"must_pass": wants["verdicts"][:1], **looked_into}
        else:
            if chance.random() < 0.5:
                wants["next"]["success"] = self._target()
            if chance.random() < 0.25:
                wants["allow_suggested"] = tuple(dict.fromkeys(self._target() for _ in range(chance.randint(1, 2))))
            wants |= self._proof(wants)
        for result in ("failed", "partial"):
            if chance.random() < 0.25:
                wants["next"][result] = self._target()
        return Phase(**wants, **self._limits(), **self._wishes(wants))

    def _capability(self, kind: str) -> str:
        if self._is_broken():
            return UNKNOWN
        return "sign" if kind == "sign" else self.chance.choice(("build", "look"))

    def _limits(self) -> dict[str, Any]:
        chance = self.chance
        some: dict[str, Any] = {"max_visits": chance.randint(1, 3)}
        delay = timedelta(seconds=chance.choice((0, 10)))
        change = chance.choice((None, None, "next", "different_provider"))
        some["retry"] = Retry(max_attempts=chance.randint(1, 2), initial_delay=delay, change_agent=change)
        if chance.random() < 0.3:
            some["stall"] = Stall(action=chance.choice(("retry", "fail", "diagnose")))
        return some

    def _proof(self, phase: dict[str, Any]) -> dict[str, Any]:
        """What is looked into before a success leads on; what is made up besides is the same with and without it."""
        chance, some = random.Random(repr((self.names, self.before, phase))), dict[str, Any]()
        if chance.random() < 0.3:
            some["verify"] = Verify(max_attempts=chance.randint(1, 2))
        if chance.random() < 0.15:
            some["checks"] = (FileExistsCheck(id="there", type="file_exists", verify=FileExists(path="README.md")),)
        if chance.random() < 0.25:
            flags = chance.sample(("ci", "rules", "size"), chance.randint(1, 2))
            some["when_flags"] = {flag: NOWHERE if self._is_broken() else chance.choice(self.names) for flag in flags}
        return some

    def _wishes(self, phase: dict[str, Any]) -> dict[str, Any]:
        chance, some = self.chance, dict[str, Any]()
        some["access"] = "write" if "build" in phase["capabilities"] and chance.random() < 0.6 else "read"
        agents = [one.name for one in self.before if one.human is None]
        if agents and chance.random() < 0.3:
            some["prefer"] = Prefer(different_model_from=chance.choice(agents))
        same = [one.name for one in self.before if one.human is None and one.access == some["access"]]
        if "verdicts" not in phase and chance.random() < 0.3:
            some["session"] = ReuseFrom(reuse_from=chance.choice(same)) if same else "reuse"
        return some

    def _human(self) -> Human:
        chance, some = self.chance, dict[str, Any]()
        if not any(one.human is None and one.writes for one in self.before) or chance.random() < 0.5:
            some["changes_requested"] = self._target()
        some["deadline"] = timedelta(hours=chance.choice((1, 24)))
        if chance.random() < 0.6:
            some["on_deadline"] = self._target(PARK)
        return Human(approved=self._target(), **some)

    def _target(self, *more: str) -> str:
        """A phase or `close`, rather further on than back."""
        if self._is_broken():
            return NOWHERE
        ahead, behind = self.names[self.place + 1 :], self.names[: self.place + 1]
        known = [*ahead, *behind, CLOSE, *more]
        weights = [*(3 for _ in ahead), *(1 for _ in behind), 2, *(3 for _ in more)]
        return self.chance.choices(known, weights)[0]

    def _is_broken(self) -> bool:
        return self.flaws > 0 and self.chance.random() < self.flaws


CASES: st.SearchStrategy[Case] = st.randoms(use_true_random=False).map(made)
"""Cases without flaws, for hypothesis: it shrinks what chance said."""

FLAWED: st.SearchStrategy[Case] = st.randoms(use_true_random=False).map(lambda chance: made(chance, flaws=0.15))
