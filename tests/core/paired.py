"""The same issue lived under two policies, by agents and people who answer by what they see.

An agent's report is a function of what its prompt shows, a person's answer one of the question and of the state of the
work. So what really would have been under another policy can be lived, and what `ashep.core.analysis.counterfactual`
says of it be judged.
"""

import hashlib
import json
import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ashep.core.analysis.counterfactual import Counterfactual
from ashep.core.analysis.policy_diff import CYCLE_ENDS, Compared, Count, counted
from ashep.core.facts.commands import IntegrateWork, MoveBase, OpenPullRequest, VerifyWork
from ashep.core.facts.delivery import Tree
from ashep.core.facts.records import Entry
from ashep.core.facts.runs import Model, RunEnded, RunPlanned
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Human, Phase, Policies, Policy
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.core.resources.due_times import due_timers, next_due
from ashep.core.state.run import Run
from ashep.core.state.world import World
from tests.core import given
from tests.core.base_of import Base
from tests.core.chances import Turn
from tests.core.world_of import MadeUp
from tests.policies.generate import Case, of_seed

ISSUE = "t-1"
OWN = Settings(worker=WorkerSettings(workspace="worktree"))
OVER = ("closed", "parked")
MODELS = (given.LARGE, given.SMALL, Model("scripted", "other"))
BUDGET = 600
"""Steps after which a life that goes round in circles by people's answers is left."""


def dice(*what: object) -> random.Random:
    """Dice that fall by what somebody sees."""
    return random.Random(hashlib.sha256(repr(what).encode()).hexdigest())


@dataclass
class Lived:
    """A life, and its batches."""

    world: World
    batches: list[list[Entry]]
    over: bool

    @property
    def facts(self) -> list[Any]:
        """Everything that happened."""
        return [entry.body for entries in self.batches for entry in entries]

    @property
    def count(self) -> Count:
        """Runs and questions."""
        return counted(self.facts)

    @property
    def stage(self) -> str:
        """Where the issue is."""
        stage = self.world.flows[ISSUE].stage
        return {"finishing": "closed", "person": "waiting", "work": "under_way"}.get(stage, stage)

    def ends(self) -> list[Count]:
        """What was counted where a cycle ended."""
        found, count = list[Count](), Count()
        for fact in self.facts:
            count = count.plus(counted([fact]))
            if isinstance(fact, CYCLE_ENDS):
                found.append(count)
        return [*found, count]


@dataclass
class Paired(MadeUp):
    """A world in which everybody answers by what they see."""

    kept: list[list[Entry]] = field(default_factory=list[list[Entry]])

    def turn(self, *facts: Fact, everything: bool = False) -> list[Entry]:
        """Hand facts to the core, and keep the batch."""
        entries = super().turn(*facts, everything=everything)
        if entries:
            self.kept.append(entries)
        return entries

    def phase(self, run: Run) -> Phase:
        """The phase of a run."""
        policy = self.world.policy(self.world.flows[ISSUE])
        found = policy.phase(run.phase) if policy else None
        assert found is not None
        return found

    def report(self, run: Run) -> str:
        """What an agent says to its prompt: what it does, not the tree that it may look at."""
        flow, phase = self.world.flows[ISSUE], self.phase(run)
        history = [(one.run, one.agent, one.state, one.outcome) for one in flow.reports]
        heard = [comment.text for comment in self.comments.get(ISSUE, []) if comment.author == "ann"]
        seen = (run.id, run.prompt.n, run.slug, run.model, phase.verdicts, phase.allow_suggested, history, heard)
        chance = dice(self.seed, seen)
        body: dict[str, Any] = {"result": "success", "summary": f"{run.phase} done"}
        roll = chance.random()
        if roll < 0.12:
            body["result"] = chance.choice(("failed", "partial"))
        elif roll < 0.17:
            body["needs_human"] = True
        elif roll < 0.22:
            body["created_issues"] = [{"title": "more", "type": "epic"}]
        elif roll < 0.3 and phase.allow_suggested:
            body["suggested_next_phase"] = chance.choice(phase.allow_suggested)
        if phase.verdicts and body["result"] == "success":
            body["verdict"] = chance.choice(phase.verdicts)
        return json.dumps(body)

    def length(self, run: Run) -> timedelta:
        """How long a run takes."""
        return timedelta(seconds=dice(self.seed, run.id, "length").choice((1, 20, 200, 900)))

    def _go_on(self, turn: Turn, run: Run) -> None:
        turn.left = 1 if self.now >= turn.began + self.length(run) else 2
        super()._go_on(turn, run)

    def work(self) -> list[Any]:
        """The state of the work: what runs with write access have done."""
        facts = [entry.body for entries in self.kept for entry in entries]
        writes = {fact.run for fact in facts if isinstance(fact, RunPlanned) and fact.access == "write"}
        return [
            (fact.run, fact.state, fact.outcome) for fact in facts if isinstance(fact, RunEnded) and fact.run in writes
        ]

    def thinks(self) -> tuple[str, timedelta]:
        """What a person answers, and after how long."""
        question = self.world.flows[ISSUE].question
        assert question is not None
        times = self.world.flows[ISSUE].times(question.phase)
        chance = dice(self.seed, question.phase, question.text, times, self.work())
        label = "human:approved" if chance.random() < 0.6 else "human:changes_requested"
        return label, timedelta(minutes=chance.choice((5, 5, 30, 90, 2000)))

    def lives(self) -> bool:
        """Go on until it is over; False: it was left."""
        self.reply = lambda _, run: self.report(run)
        for _ in range(BUDGET):
            while self.jobs:
                self.carry_out(self.jobs.pop(0))
            flow = self.world.flows.get(ISSUE)
            if flow is not None and flow.stage in OVER:
                return True
            self.look()
            if not self.jobs and not self.watch():
                self.passes()
        return False

    def passes(self) -> None:
        """Let time pass: to the next due time, or to the person's answer."""
        due, flow = next_due(self.world), self.world.flows.get(ISSUE)
        if flow is not None and flow.question is not None and flow.stage == "person":
            label, delay = self.thinks()
            answers = flow.question.asked + delay
            if due is None or answers <= due:
                self.now = max(self.now, answers)
                if label not in self.tracker[ISSUE].labels:
                    self.change(ISSUE, "ann", [label])
                    self.say(ISSUE, "ann", f"that is {label}")
                return
            self.now = max(self.now, due)
        run, soon = flow.run if flow is not None else None, self.now + timedelta(seconds=1)
        if run is not None and run.started is not None and not run.ended:
            soon = max(soon, run.started + self.length(run))
        self.now = max(self.now, min(soon, due or soon))
        if timers := list(due_timers(self.world, self.now)):
            self.turn(*timers)


@dataclass
class Seen(Base):
    """A base, and checks, that say what they say of a commit whenever they see it."""

    seed: int = 0

    def answer(self, command: VerifyWork | IntegrateWork | MoveBase | OpenPullRequest, chance: float = 0.0) -> Fact:
        """Carry a command out."""
        if isinstance(command, (VerifyWork, IntegrateWork)):
            work = command.commit if isinstance(command, VerifyWork) else command.head
            if dice(self.seed, type(command), work).random() < 0.2:
                self.goes_wrong(command.issue, "fails" if isinstance(command, VerifyWork) else "conflict")
        return super().answer(command, chance)


def live(seed: int, policies: Policies, agents: Agents, *, own: bool = False) -> Lived:
    """Live the issue of this seed under a policy; `own`: in a tree of its own, from which its work lands."""
    made = Paired(seed=seed, base=Seen(seed=seed))
    tree = Tree(present=True, head="c0ffee", branch="main") if own else None
    start = given.start(policies, agents, OWN if own else None, tree)
    made.begin(*start[:-1], given.up(models=MODELS))
    made.open(ISSUE)
    over = made.lives()
    return Lived(made.world, made.kept, over)


def variant(seed: int) -> tuple[Case, Case]:
    """A policy and its agents, and others that are much like them."""
    chance = random.Random(f"variant {seed}")
    case = of_seed(seed) if chance.random() < 0.6 else Case(_reviewed(chance))
    other, team = case.policy, case.agents
    for _ in range(chance.randint(1, 3)):
        other = _changed(other, chance)
    if seed % 4 == 0:
        team = _other_team(team, chance)
        other = other if seed % 8 else case.policy
    return case, Case(other, team)


def _other_team(team: Agents, chance: random.Random) -> Agents:
    some = [*team.agents]
    place = chance.randrange(len(some))
    agent = some[place]
    model = {"provider": "other", "model": "small"}
    match chance.choice(("name", "name", "priority", "model", "gone", "slow")):
        case "name":
            some[place] = agent.model_copy(update={"id": "zoe"})
        case "priority":
            some[place] = agent.model_copy(update={"priority": chance.choice((-5, 20))})
        case "model":
            some[place] = agent.model_copy(update={"runner": agent.runner.model_copy(update=model)})
        case "gone":
            del some[place]
        case _:
            slow = agent.performance.model_copy(update={"timeout_multiplier": 0.01})
            some[place] = agent.model_copy(update={"performance": slow})
    return Agents(version=1, agents=tuple(some))


def _reviewed(chance: random.Random) -> Policy:
    """Work that is looked at once or twice before a person is asked: what most people have."""
    looks = [f"look{number}" for number in range(chance.randint(1, 3))]
    ask = Phase(name="ask", human=Human(approved=chance.choice(("close", "close", "close", "work"))))
    return Policy(
        phases=(
            Phase(name="work", capabilities=("build",), access="write", next={"success": looks[0]}),
            *(
                Phase(
                    name=look, capabilities=("look",), access="read", verdicts=("good", "bad"),
                    next={"good": after, "bad": chance.choice(("work", after))},
                )
                for look, after in zip(looks, [*looks[1:], "ask"], strict=True)
            ),
            ask,
        )
    )  # fmt: skip


def _changed(policy: Policy, chance: random.Random) -> Policy:
    phases, names = [*policy.phases], [one.name for one in policy.phases]
    place = chance.randrange(len(phases))
    phase = phases[place]
    match chance.choice(
        ("edge", "edge", "edge", "skip", "skip", "skip", "attempts", "runs", "deadline", "time", "told")
    ):
        case "edge" if phase.next:
            edge = chance.choice(sorted(phase.next))
            phases[place] = phase.model_copy(update={"next": phase.next | {edge: chance.choice([*names, "close"])}})
        case "skip" if phase.human is None:  # every way to it leads past it
            way = next(iter(phase.next.values()), names[place + 1] if place + 1 < len(names) else "close")
            phases = [_past(one, phase.name, way) for one in phases]
        case "attempts":
            retry = phase.retry.model_copy(update={"max_attempts": chance.randint(1, 3)})
            phases[place] = phase.model_copy(update={"retry": retry, "max_visits": chance.randint(1, 4)})
        case "runs":
            limits = policy.limits.model_copy(update={"max_runs": chance.randint(1, 8)})
            return policy.model_copy(update={"limits": limits})
        case "deadline" if phase.human is not None:
            human = phase.human.model_copy(update={"deadline": timedelta(minutes=chance.choice((3, 20, 60, 3000)))})
            phases[place] = phase.model_copy(update={"human": human})
        case "time" if phase.human is None:
            phases[place] = phase.model_copy(update={"timeout": timedelta(seconds=chance.choice((2, 30, 300)))})
        case "told" if phase.verdicts:
            verdicts = (*phase.verdicts, "more")
            phases[place] = phase.model_copy(update={"verdicts": verdicts, "next": phase.next | {"more": "close"}})
        case _:
            pass
    return policy.model_copy(update={"phases": tuple(phases)})


def _past(phase: Phase, name: str, way: str) -> Phase:
    """Let what leads to a phase lead past it."""
    if phase.name == name:
        return phase
    leads = {edge: way if to == name else to for edge, to in phase.next.items()}
    update: dict[str, Any] = {"next": leads}
    if phase.human is not None:
        human = phase.human
        leads = {key: way for key in ("approved", "changes_requested") if getattr(human, key) == name}
        update["human"] = human.model_copy(update=leads)
    return phase.model_copy(update=update)


def judged(life: Lived, policies: Policies | None, agents: Agents | None = None, **more: Any) -> list[Compared]:
    """What is said of a life under another policy."""
    made = Counterfactual(World(), policies, agents, **more)
    for entries in life.batches:
        made.batch(entries)
    return [one for one in made.compared() if one.issue == ISSUE]


def wrong(said: Compared, recorded: Lived, real: Lived) -> str:
    """Say where what was said is not what really would have been; empty: nowhere."""
    if said.verdict == "unknown":
        return _out_of_bounds(said, real)
    claim = f"{said.verdict}: {said.least}, {said.ends[1]}; really {real.count}, {real.stage}"
    if said.least != said.most:
        return f"known, and not one number: {claim}"
    if real.over and recorded.over and (said.least, said.ends[1]) != (real.count, real.stage):
        return claim
    if said.verdict == "same" and recorded.over and said.ends[0] != said.ends[1]:
        return claim
    return ""


def _out_of_bounds(said: Compared, real: Lived) -> str:
    assert said.unknown is not None
    if said.most is None:
        return "no bound"
    behind = said.unknown.so_far.plus(Count(said.unknown.least))
    for count in real.ends():
        if count.runs >= behind.runs and count.questions >= behind.questions:
            fits = count.runs <= said.most.runs and count.questions <= said.most.questions
            return "" if fits else f"{count} is beyond {said.most}: {said.unknown}"
    return "" if not real.over else f"never came to {behind}, but to {real.count}: {said.unknown}"
