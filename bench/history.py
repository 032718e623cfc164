"""Issues' lives, made by the core itself from made-up answers: no agent, no tracker, no waiting."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from ashep.config import read
from ashep.config.starter import starter
from ashep.core.facts.commands import ClaimIssue, Command, OpenSession, PreparePrompt, ReadTree, SendPrompt, WriteIssue
from ashep.core.facts.delivery import Tree, TreeSeen
from ashep.core.facts.resources import Adopted, DaemonStarted, JournalBegun, RunnerSeen
from ashep.core.facts.runs import Model, PromptPrepared, PromptSent, SessionOpened, TurnSeen
from ashep.core.facts.tracker import Issue, IssueClaimed, IssueSeen, IssueWritten, ReadyChanged, Stamp, TrackerSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.core.reconcile.dispatcher import Dispatcher
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES, step
from ashep.core.state.world import World
from ashep.journal.writer import Journal
from bench.place import THREE

START = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = "1" * 40
VERDICTS = {"review": "approve", "arbitrate": "pass"}
INSTANCE, ACTOR, SERVER = "bench", "ashep-bench", "bench:1"
BLOB = "0" * 64


RUNS = 3
"""Runs of a life."""


def name_of(number: int) -> str:
    """The id of an issue."""
    return f"t-{number:05}"


class History:
    """One writer's turns, without a world around it; it goes on with what the journal holds."""

    def __init__(self, state: Path) -> None:
        self.journal = Journal.open(state, START)
        self.world, self.at, self.sessions = World(), START, 0
        for entry in chain.from_iterable(batch.entries for batch in self.journal.batches()):
            self.world = evolve(self.world, entry)
            self.at = entry.at
            self.sessions += isinstance(entry.body, SessionOpened)
        self._dispatcher = Dispatcher()

    def close(self) -> None:
        self.journal.close()

    def begin(self) -> None:
        settings = Settings(worker=WorkerSettings(lock_work_tree=False))
        adopted: list[tuple[str, Settings | Agents | Policies]] = [
            ("settings", settings),
            ("agents", read(Agents, starter("agents.yaml"), Path("agents.yaml"))),
            ("policies", read(Policies, THREE, Path("policies.yaml"))),
        ]
        self.tell(JournalBegun(INSTANCE, "secret", ACTOR), DaemonStarted(1, "bench"))
        for kind, model in adopted:
            self.tell(Adopted(kind, model.model_dump_json(), BLOB, RULES))  # pyright: ignore[reportArgumentType]
        agents = ("build", "plan")
        default = Model("scripted", "default")
        self.tell(
            TrackerSeen(ACTOR, "t", "1.3.0"), RunnerSeen("up", "1.18.33", SERVER, agents, (default,), default),
            TreeSeen(Tree(True, HEAD)),
        )  # fmt: skip

    def leave_open(self, count: int) -> None:
        """See so many issues that are not ready, and stay so."""
        views = [
            Issue(f"o-{number:05}", f"Wait for part {number}", "open", "task", number % 5, self.at)
            for number in range(count)
        ]
        self.tell(*(IssueSeen(view.id, view, self.world.seq) for view in views))

    def issue(self, number: int) -> None:
        """Walk an issue through its three phases."""
        name = name_of(number)
        view = Issue(name, f"Make part {number} of the program", "open", "task", 2, self.at)
        self.tell(IssueSeen(name, view, self.world.seq))
        self.tell(ReadyChanged((name,), (), self.world.seq))
        assert self.world.flows[name].stage == "closed", self.world.flows[name]
        self.tell(ReadyChanged((), (name,), self.world.seq))

    def tell(self, *facts: Fact) -> None:
        """Take a turn, and those that follow from the answers to its commands."""
        self.at += timedelta(seconds=1)
        self.world, entries = step(self.world, facts, self.at, self.journal.next_seq, dispatcher=self._dispatcher)
        self.journal.append_now(entries)
        for entry in entries:
            if isinstance(entry.body, Command):
                for answer in self._answers(entry.body):
                    self.tell(answer())

    def _answers(self, command: Command) -> Iterator[Callable[[], Fact]]:
        """What the world says to a command, one thing after the other."""
        match command:
            case ClaimIssue():
                view = self._written(command, "in_progress", ACTOR)
                yield lambda: IssueClaimed(command.issue, command.key, view, BLOB)
            case WriteIssue():
                view = self._written(command, command.status, command.assignee)
                yield lambda: IssueWritten(command.issue, command.key, command.stamp.seq, view, BLOB)
            case OpenSession():
                self.sessions += 1
                session = f"ses_{self.sessions}"
                yield lambda: SessionOpened(command.issue, command.run, command.key, session)
            case PreparePrompt():
                yield lambda: PromptPrepared(command.issue, command.run, command.key, command.n, BLOB)
            case ReadTree():
                tree = Tree(True, HEAD)
                yield lambda: TreeSeen(tree, command.moment, command.issue, command.run)
            case SendPrompt():
                yield lambda: PromptSent(command.issue, command.run, command.key, command.n, SERVER)
                yield lambda: self._turn(command)
            case _:
                raise AssertionError(f"nothing here asks for this: {command}")

    def _written(self, command: ClaimIssue | WriteIssue, status: str, assignee: str | None) -> Issue:
        before, stamp = self.world.flows[command.issue].issue, command.stamp
        labels = tuple(sorted({*before.labels, *command.add_labels} - {*command.remove_labels}))
        known = Stamp(stamp.instance, stamp.seq, stamp.run, stamp.visit, stamp.attempt, stamp.runs, stamp.depth)
        return Issue(
            before.id, before.title, status, before.type, before.priority, before.created_at, assignee, labels,
            stamp=known,
        )  # fmt: skip

    def _turn(self, command: SendPrompt) -> TurnSeen:
        run = self.world.flows[command.issue].run
        assert run is not None
        outcome = {"result": "success", "summary": "It is done, and the tests of it pass."}
        verdict = {"verdict": VERDICTS[run.phase]} if run.phase in VERDICTS else {}
        return TurnSeen(
            command.issue, command.run, command.n, command.message_id, self.world.seq, "finished", SERVER,
            block=json.dumps(outcome | verdict), text=BLOB, provider="scripted", model="default", tokens=1000,
        )  # fmt: skip
