"""A made-up world that mostly answers what it is asked: a tracker, an agent server, people, and a machine that fails.

It plays the shepherd's part, too: it hands facts to `step`, keeps the entries and carries out the commands. Chance
comes from one seeded generator, so every life can be lived again.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs, sources
from ashep.core.facts import tracker as facts_tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.facts.delivery import Amendment, StoryLeft, Tree
from ashep.core.facts.outcome import Ending
from ashep.core.facts.records import Entry
from ashep.core.facts.requests import Asked, Request
from ashep.core.facts.runs import Life
from ashep.core.facts.tracker import Change, Comment, Difference, Issue, LabelEvent, Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.reconcile.observe import ready_read, requests_read, runner_read, session_read, turn_read
from ashep.core.reconcile.sources import open_intents
from ashep.core.reconcile.step import step
from ashep.core.resources.agent_server import is_due, memory_read
from ashep.core.resources.due_times import due_timers, next_due
from ashep.core.resources.notices import open_messages
from ashep.core.runs.prompt_commands import message_id
from ashep.core.runs.turns import VERDICTS
from ashep.core.state.flow import Takeover
from ashep.core.state.pauses import windows_read
from ashep.core.state.run import Run
from ashep.core.state.world import World, phase_of
from tests.core import given
from tests.core.base_of import Base
from tests.core.chances import CALM, Chances, Turn, said
from tests.core.shut import Shut
from tests.core.source_of import Forge

Reply = Callable[["MadeUp", Run], str | None]
"""What an agent says at the end of a run's turn: the text of its last json block, or None."""


def _ending(turn: Turn) -> Ending | None:
    """What the end of a turn without a report looks like."""
    silent = turn.state == "finished" and turn.error is None and turn.block is None
    return ("cut", "empty", "announced", None)[turn.tokens // 100 % 4] if silent else None  # type: ignore[return-value]


@dataclass
class MadeUp:
    """One life of a journal."""

    seed: int = 0
    chances: Chances = CALM
    reply: Reply | None = None
    world: World = field(default_factory=World)
    entries: list[Entry] = field(default_factory=list)
    tracker: dict[str, Issue] = field(default_factory=dict)
    comments: dict[str, list[Comment]] = field(default_factory=dict)
    events: dict[str, list[LabelEvent]] = field(default_factory=dict)
    history: dict[str, list[Change]] = field(default_factory=dict)
    """Who changed what."""
    sessions: dict[str, dict[str, Turn]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    """What branches of own work trees hold."""
    trees: dict[str, bool] = field(default_factory=dict)
    """Whether what a run leaves can never be sealed."""
    jobs: list[Command] = field(default_factory=list)
    posted: dict[str, int] = field(default_factory=dict)
    """How many comments stood there with one of ours."""
    done: list[Command] = field(default_factory=list)
    """Everything that was carried out and answered."""
    told: list[tuple[str, int]] = field(default_factory=list)
    """Which targets were told which notices."""
    late: list[Fact] = field(default_factory=list)
    base: Base = field(default_factory=Base)
    instance: int = 1
    silent: set[str] = field(default_factory=set)
    """Runs whose turn shows no sign of life."""
    wrote: dict[str, int] = field(default_factory=dict)
    """How many messages a person wrote in a session that was taken."""
    dead: set[str] = field(default_factory=set)
    """Daemons whose lease has run out."""
    delivered: list[c.AnswerRequest] = field(default_factory=list)
    """Answers that a session took."""
    forge: Forge = field(default_factory=Forge)
    up: bool = True
    check: Callable[["MadeUp", Sequence[Entry]], None] | None = None
    begun: list[Fact] = field(default_factory=list)
    broken: type | None = None
    """Commands of this kind always fail, in a way that nobody foresaw."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.edits = random.Random(self.seed + 7)
        self.will = random.Random(self.seed + 1)  # of its own, so that other lives are as they were without pauses
        self.asking = random.Random(self.seed + 2)
        self.base.random.seed(self.seed + 8)
        self.will_resist = random.Random(self.seed + 9)
        self.forge.random.seed(self.seed + 10)
        self.now = given.T0
        self.shut = Shut(self.will)

    # --- the shepherd's part ----------------------------------------------------------------------------------

    def begin(self, *facts: Fact) -> "MadeUp":
        """Start a daemon."""
        self.begun = list(facts) or given.start()
        self.turn(*self.begun, everything=True)
        return self

    def turn(self, *facts: Fact, everything: bool = False) -> list[Entry]:
        """Hand facts to the core; its commands are to be carried out."""
        self.world, entries = step(self.world, facts, self.now, self.world.seq + 1, everything=everything)
        self.entries += entries
        self.jobs += [entry.body for entry in entries if isinstance(entry.body, Command)]
        if self.check is not None:
            self.check(self, entries)
        return entries

    def hit(self, chance: float) -> bool:
        """Whether something of this chance happens now."""
        return chance > 0 and self.chance.random() < chance

    def crash(self) -> None:
        """End the daemon in the midst of things, and start another over the same journal."""
        for command in self.jobs:
            if self.hit(0.5):
                self._effect(command)
        self.jobs, self.late = [], []
        self.turn(*self.begun[1:-1], self.seen_server(), everything=True)
        self.jobs = [command for name in sorted(self.world.flows) for command in self.world.flows[name].open]
        self.jobs += [*open_messages(self.world), *open_intents(self.world)]

    def live(self, steps: int) -> None:
        """Let the world go on for so many steps."""
        for _ in range(steps):
            self.tick()

    def tick(self) -> None:
        """One thing happens."""
        chances = self.chances
        if self.hit(chances.crash):
            return self.crash()
        if self.hit(chances.hint):
            self.turn(facts_tracker.ChangeHinted())
        if self.hit(chances.server_death):
            self.kill_server()
        if self.hit(chances.away if self.up else 0.3):
            self.up = not self.up
            self.turn(self.seen_server())
        if self.hit(0.3 if self.world.disk_low else chances.disk):
            self.turn(resources.DiskSeen("ok" if self.world.disk_low else "low"))
        if self.hit(chances.person):
            self.person()
        if self.will.random() < chances.pause:
            self.pause()
        if self.world.settings.notify.targets and chances is not CALM and self.will.random() < 0.02:
            self.turn(resources.QuietSeen(self.now + timedelta(minutes=self.will.choice([-5, 5, 300]))))
        if chances.leak and self.will.random() < chances.leak:
            self.leak()
        self.recycle()
        if self.asking.random() < chances.asks:
            self.answer()
        if self.will.random() < chances.limit:
            self.shut.some(self.now)
        if news := self.forge.look(self.world, self.now, chances.source):
            self.turn(*news)
        if self.edits.random() < chances.edit:
            self.turn(given.adopted(self.edits.choice(given.EDITED)))
        if self.world.indexes.reviewed and (news := self.base.looked(self.world, chances.landing)):
            self.turn(*news)
        if self.hit(chances.lease):
            self.turn(*self._expired())
            self.turn(
                *(facts_tracker.LeaseLost(name, "not ours") for name, flow in self.world.flows.items() if flow.leased)
            )
        if self.late and self.hit(0.5):
            self.turn(*self._news(self.late))
            self.late = []
        if self.jobs and self.hit(0.9):
            return self.carry_out(self.jobs.pop(self.chance.randrange(len(self.jobs))))
        if self.hit(0.3):
            return self.look()
        if self.watch() or self.watch_people():
            return None
        return self.wait()

    def wait(self) -> None:
        """Let time pass up to the next due time, or a little."""
        due = next_due(self.world)
        patient = due is not None and due - self.now > timedelta(hours=12) and not self.hit(0.02)
        if due is not None and not patient and (self.hit(0.5) or not self.jobs):
            self.now = max(self.now, due)
        self.now += timedelta(seconds=self.chance.choice([0, 1, 5]))
        timers = list(due_timers(self.world, self.now))
        if timers:
            self.turn(*timers)
        else:
            self.look()

    def settle(self, steps: int = 3000) -> None:
        """Go on without any trouble until nothing is under way but what waits for people."""
        self.chances, quiet = CALM, 0
        self.shut.known.clear()
        if self.world.pauses or self.world.outages:
            self.turn(resources.WorkResumed("ann"))
        if not self.up:
            self.up = True
            self.turn(self.seen_server())
        for _ in range(steps):
            size = len(self.entries)
            self.tick()
            quiet = quiet + 1 if len(self.entries) == size and not self.jobs else 0
            if quiet > 40:
                return

    # --- looking ----------------------------------------------------------------------------------------------

    def seen_server(self) -> resources.RunnerSeen:
        """The agent server as it is."""
        return given.up(f"server-{self.instance}") if self.up else resources.RunnerSeen("away", "refused")

    def look(self) -> None:
        """Read the tracker and journal what differs; a slow read's facts come late."""
        as_of = self.world.seq
        facts: list[Fact] = [
            facts_tracker.IssueSeen(name, view, as_of) for name, view in self.tracker.items() if view.status != "closed"
        ]
        facts += [
            facts_tracker.IssueGone(name, as_of) for name, view in self.tracker.items() if view.status == "closed"
        ]
        ready = tuple(sorted(name for name, view in self.tracker.items() if self._is_ready(view)))
        facts.append(facts_tracker.ReadySeen(ready, as_of))
        if self.hit(self.chances.stale):
            self.late = facts
            return
        if news := self._news(facts):
            self.turn(*news)

    def _is_ready(self, view: Issue) -> bool:
        blockers = (self.tracker.get(name) for name in view.blocked_by)
        return view.status == "open" and all(other is None or other.status == "closed" for other in blockers)

    def _news(self, facts: Sequence[Fact]) -> list[Fact]:
        """What differs from what is known; the whole ready view becomes its difference."""
        news: list[Fact] = []
        for fact in facts:
            match fact:
                case facts_tracker.IssueSeen():
                    flow = self.world.flows.get(fact.issue)
                    news += [fact] if flow is None or flow.issue != fact.view else []
                case facts_tracker.IssueGone():
                    flow = self.world.flows.get(fact.issue)
                    news += [fact] if flow is not None and flow.stage != "closed" and not flow.look_again else []
                case facts_tracker.ReadySeen():
                    news += ready_read(self.world, fact.ids, fact.as_of)
                case _:
                    news.append(fact)
        return news

    def _expired(self) -> list[Fact]:
        views = [view for name, view in self.tracker.items() if name in self.world.flows and view.assignee in self.dead]
        gone = self.now - timedelta(minutes=11)
        return [
            facts_tracker.LeaseExpired(view.id, view.assignee or "", gone)
            for view in views
            if view.status == "in_progress"
        ]

    def watch(self) -> bool:
        """Read a running turn; whether there was news."""
        for name in sorted(self.world.indexes.live):
            run = self.world.flows[name].run
            if run is None or run.ended or not run.prompt.sent or run.session is None or not self.up:
                continue
            if news := requests_read(self.world, self.listed(), self.world.seq):
                self.turn(*news)
                return True
            fact = self._read_turn(name, run)
            if news := turn_read(self.world, fact):
                self.turn(*news)
                return True
        return False

    def watch_people(self) -> bool:
        """Read a session that a person has; whether there was news. They write there, and let a turn run, or do not."""
        for name in sorted(self.world.indexes.takeovers):
            takeover = self.world.flows[name].takeover
            if takeover is None or takeover.session is None or not self.up:
                continue
            if self.will.random() < self.chances.person / 2:
                self.wrote[takeover.session] = self.wrote.get(takeover.session, 0) + 1
            busy = self.will.random() < self.chances.person
            if news := session_read(
                self.world, runs.SessionSeen(name, takeover.session, self._people(takeover), busy, self.world.seq)
            ):
                self.turn(*news)
                return True
        return False

    def _people(self, takeover: Takeover) -> tuple[str, ...]:
        """The messages of a person behind the prompt after which they took the session."""
        first = self.sessions.get(takeover.session or "", {}).get(takeover.message or "")
        return (
            *(first.people if first else ()),
            *(f"msg_more{n}" for n in range(self.wrote.get(takeover.session or "", 0))),
        )

    def _read_turn(self, name: str, run: Run) -> runs.TurnSeen:
        message = message_id(self.world, run) or ""
        turn = self.sessions.get(run.session or "", {}).get(message)
        instance = f"server-{self.instance}"
        if turn is None:
            return runs.TurnSeen(name, run.id, run.prompt.n, message, self.world.seq, "missing", instance)
        self._go_on(turn, run)
        if self.hit(self.chances.person / 4):
            turn.people = ("msg_person",)
        return runs.TurnSeen(
            name, run.id, run.prompt.n, message, self.world.seq, turn.state, instance,  # type: ignore[arg-type]
            block=turn.block, error=turn.error, people=turn.people, tokens=turn.tokens, cost=turn.tokens / 1000,
            life=self._life(turn, run), refused=turn.refused, ending=_ending(turn),
        )  # fmt: skip

    def _life(self, turn: Turn, run: Run) -> Life | None:
        if not run.watch.doubted or run.watch.stall_after is None:
            return None
        return Life(self.now - turn.began if turn.silent else run.watch.stall_after * self.chance.random())

    def listed(self) -> list[Request]:
        """What the server lists as unanswered."""
        return [one for turns in self.sessions.values() for turn in turns.values() for one in turn.asks]

    def ask(self, session: str, kind: str = "permission", **request: Any) -> Request:
        """Let the newest turn of a session ask."""
        turn = list(self.sessions[session].values())[-1]
        number = sum(len(turn.asks) for turns in self.sessions.values() for turn in turns.values())
        values: dict[str, Any] = {"tool": "bash", "patterns": ("npm publish",)} if kind == "permission" else {}
        values = values or {"asks": (Asked("which one?", ("red", "green")),)}
        made = Request(f"{kind[:3]}_{self.world.seq}_{number}", session, kind, **(values | request))  # type: ignore[arg-type]
        turn.asks = (*turn.asks, made)
        return made

    def _answer(self, command: c.AnswerRequest) -> Fact:
        taken = False
        for turn in (turn for turns in self.sessions.values() for turn in turns.values()):
            if any(one.id == command.request for one in turn.asks):
                turn.asks, taken = tuple(one for one in turn.asks if one.id != command.request), True
                self.delivered.append(command)
        return runs.RequestAnswered(command.issue, command.run, command.key, command.request, taken)

    def _go_on(self, turn: Turn, run: Run) -> None:
        if turn.never or turn.state in ("incomplete", "finished"):
            return
        if turn.state == "running" and self.asking.random() < self.chances.asks and run.session is not None:
            tool = self.asking.choice(["bash", "webfetch", "edit"])
            self.ask(run.session, self.asking.choice(["permission", "question"]), tool=tool)
        if turn.asks:
            turn.state = "running"
            return
        if self._is_refused(turn, run):
            return
        turn.left -= 1
        turn.tokens += 100
        if turn.left > 0:
            turn.state = "running"
            return
        turn.state = "finished"
        turn.block = self.reply(self, run) if self.reply else self._says(run)

    def _is_refused(self, turn: Turn, run: Run) -> bool:
        """Whether its provider does not take it; one that wants other credentials ends the turn."""
        model = run.prompt.model or given.LARGE
        attempt = turn.refused.attempt if turn.refused else 0
        turn.refused = self.shut.refusal(model.provider, self.now, attempt + 1)
        if turn.refused is None:
            return False
        ends = turn.refused.kind == "unauthorized"
        turn.state, turn.error = ("finished", "APIError: no") if ends else ("running", None)
        return True

    def _says(self, run: Run) -> str | None:
        flow = self.world.flows[run.id.partition("/")[0]]
        phase = phase_of(self.world, flow)
        if run.prompt.kind == "diagnose":
            return said(self.chance, VERDICTS)
        if run.prompt.kind == "continue" and self.chance.random() < 0.7:
            return '{"result": "partial", "summary": "no further"}'
        return said(self.chance, phase.verdicts if phase else ())

    def kill_server(self) -> None:
        """End the agent server; another takes its place."""
        self._new_server()
        self.up = True
        self.turn(*runner_read(self.world, self.seen_server(), self.now))

    def _new_server(self) -> None:
        self.instance += 1
        for turns in self.sessions.values():
            for turn in turns.values():
                turn.asks = ()
                if turn.state == "running":
                    turn.state = "incomplete"
                if turn.state == "stored":
                    turn.never = True

    def leak(self) -> None:
        """The agent server grows."""
        used = self.will.choice([5, 9]) * 1024**3
        if news := memory_read(self.world, f"server-{self.instance}", used, self.now):
            self.turn(*news)

    def recycle(self) -> None:
        """End the agent server and begin another one, where that is wanted now."""
        if not self.up or not is_due(self.world, "opencode"):
            return
        ended = resources.ServerEnded(f"server-{self.instance}", "recycled")
        self._new_server()
        self.turn(ended, self.seen_server())

    # --- effects ----------------------------------------------------------------------------------------------

    def carry_out(self, command: Command) -> None:
        """Carry a command out, and hand its answer to the core."""
        if isinstance(command, sources.SourceCommand):
            self._say_or_fail(command)
            return
        if isinstance(command, c.SendNotice):
            failed = self.will.random() < self.chances.infra
            answer = (
                resources.NoticeFailed(command.key, command.target, "no answer") if failed else self._effect(command)
            )
            self.turn(answer)
            return
        if isinstance(command, c.SealTree) and self._resists(command.run):
            self.turn(facts_tracker.EffectFailed(command.issue, command.key, "git will not take it", infra=True))
            return
        if self.hit(self.chances.unforeseen) or type(command) is self.broken:
            if self.hit(0.5):
                self._effect(command)
            unforeseen = facts_tracker.EffectFailed(command.issue, command.key, "KeyError: 'x'", True, unforeseen=True)
            self.turn(unforeseen)
            return
        if self.hit(self.chances.infra):
            if self.hit(0.5):
                self._effect(command)
            self.turn(facts_tracker.EffectFailed(command.issue, command.key, "no answer", infra=True))
            return
        if self.hit(self.chances.refused):
            refused = facts_tracker.EffectFailed(command.issue, command.key, "no", infra=False)
            if isinstance(command, (c.ClaimIssue, c.WriteIssue)):
                refused = facts_tracker.WriteRefused(command.issue, command.key, "an open blocker")
            self.turn(refused)
            return
        answer = self._effect(command)
        self.done.append(command)
        self.turn(answer)

    def _say_or_fail(self, command: sources.SourceCommand) -> None:
        """Write at a source, or into the tracker for it; half of what fails has happened all the same."""
        fails = self.forge.random.random() < self.chances.infra
        failed = sources.SourceFailed(command.issue, command.key, "502", final=self.forge.random.random() < 0.1)
        happens = not fails or self.forge.random.random() < 0.5
        answer = self._effect(command) if happens else failed
        self.done.append(command)
        self.turn(failed if fails else answer)

    def _story(self, amend: Amendment | None) -> StoryLeft | None:
        """How a run leaves its story: now and then it cannot be marked, or its agent has stopped."""
        if amend is None or not amend.story:
            return None
        match self.base.happens(self.chances.landing, "lacking", "blocked", "put_off"):
            case "lacking" if amend.status:
                return StoryLeft(lacking="it says two statuses")
            case "blocked":
                return StoryLeft("blocked", "unknown", blocked="intent gap")
            case "put_off" if amend.status == "done":
                return StoryLeft("done", "complete", put_off=("an old smell",))
            case _:
                return StoryLeft(amend.status or "in-progress")

    def _resists(self, run: str) -> bool:
        if run not in self.trees and self.chances is not CALM:
            self.trees[run] = self.will_resist.random() < self.chances.resists
        return self.trees.get(run, False)

    def _effect(self, command: Command) -> Fact:
        match command:
            case c.ClaimIssue() | c.WriteIssue():
                return self._write(command)
            case c.TakeOffLabels():
                self.change(command.issue, given.ME, drop=command.labels)
                return facts_tracker.LabelsTakenOff(command.issue, command.key)
            case c.PostComment():
                self.say(command.issue, given.ME, command.text)
                self.posted[command.key] = len(self.comments[command.issue])
                return facts_tracker.CommentPosted(command.issue, command.key, command.name)
            case c.CreateIssue():
                status = "blocked" if command.parked else "open"
                made = given.issue(command.id, status, *command.labels, stamp=command.stamp, type=command.new.type)
                self.tracker.setdefault(command.id, made)
                return facts_tracker.IssueCreated(command.issue, command.key, command.id)
            case c.ReadIssue():
                return self._read_issue(command)
            case c.ReclaimIssue():
                return self._reclaim(command)
            case c.SendNotice():
                self.told += [(command.target, one.id) for one in command.notices]
                return resources.NoticeSent(command.key, command.target)
            case sources.MirrorIssue() | sources.SayAtSource() | sources.CloseAtSource():
                return self.forge.answer(self, command)
            case c.ReadAnswer():
                said = self.comments.get(command.issue, [])
                behind = self.posted.get(command.after, len(said)) if command.after else 0
                told = tuple(comment for comment in said[behind:] if comment.author != given.ME)
                own = [place for place, comment in enumerate(said[: behind - 1]) if comment.author == given.ME]
                early = tuple(said[own[-1] + 1 if own else 0 : behind - 1]) if command.after and behind else ()
                events = tuple(self.events.get(command.issue, []))
                return facts_tracker.AnswerRead(
                    command.issue, command.key, self.tracker[command.issue], events, told, early=early
                )
            case c.ReadAuthors():
                about = [one for one in reversed(self.history.get(command.issue, [])) if one.what in command.changes]
                return e.AuthorsRead(command.issue, command.key, tuple(about))
            case _:
                return self._run_effect(command)

    def _reclaim(self, command: c.ReclaimIssue) -> Fact:
        view = self.tracker[command.issue]
        dead = (view.status, view.assignee) == ("in_progress", command.holder) and command.holder in self.dead
        if dead:
            self.tracker[command.issue] = replace(view, status="open", assignee=None)
        return facts_tracker.IssueReclaimed(command.issue, command.key, command.holder, dead)

    def _read_issue(self, command: c.ReadIssue) -> Fact:
        view = self.tracker.get(command.issue)
        if view is None:
            return facts_tracker.IssueGone(command.issue, self.world.seq, command.key)
        return facts_tracker.IssueSeen(command.issue, view, self.world.seq, command.key)

    def _write(self, command: c.ClaimIssue | c.WriteIssue) -> Fact:
        view = self.tracker.get(command.issue)
        if view is None:
            return facts_tracker.WriteRefused(command.issue, command.key, "no such issue")
        stamp: Stamp = command.stamp
        if view.stamp is not None and view.stamp.instance == stamp.instance and view.stamp.seq >= stamp.seq:
            pass
        elif isinstance(command, c.ClaimIssue):
            if not self._is_ready(view) or view.assignee not in (None, given.ME):
                return facts_tracker.ClaimRefused(command.issue, command.key, f"{view.assignee} has it")
            self._store(view, command, "in_progress", given.ME)
        else:
            if (view.status, view.assignee) != (command.if_status, command.if_assignee):
                return facts_tracker.GuardRefused(command.issue, command.key)
            self._store(view, command, command.status, command.assignee)
        view = self.tracker[command.issue]
        if isinstance(command, c.ClaimIssue):
            return facts_tracker.IssueClaimed(command.issue, command.key, view)
        return facts_tracker.IssueWritten(command.issue, command.key, command.stamp.seq, view)

    def _store(self, view: Issue, command: c.ClaimIssue | c.WriteIssue, status: str, assignee: str | None) -> None:
        labels = tuple(sorted(set(view.labels) - set(command.remove_labels) | set(command.add_labels)))
        self._put(replace(view, status=status, assignee=assignee, labels=labels, stamp=command.stamp), given.ME)

    def _run_effect(self, command: Command) -> Fact:
        match command:
            case c.OpenSession():
                reused = command.reuse is not None and command.reuse in self.sessions
                name = "" if command.runner == OPENCODE else f"{command.runner}:"
                session = command.reuse if reused and command.reuse else f"{name}ses_{len(self.keys)}"
                session = self.keys.setdefault(command.session_key, session)
                self.sessions.setdefault(session, {})
                return runs.SessionOpened(command.issue, command.run, command.key, session, reused)
            case c.PreparePrompt():
                shown = tuple(comment.id for comment in self.comments.get(command.issue, []))
                return runs.PromptPrepared(command.issue, command.run, command.key, command.n, "cd" * 32, shown)
            case c.SendPrompt():
                if self._comes_back(command):
                    return facts_tracker.EffectFailed(
                        command.issue, command.key, "a person is in the session", infra=True
                    )
                self._deliver(command)
                return runs.PromptSent(command.issue, command.run, command.key, command.n, f"server-{self.instance}")
            case c.AnswerRequest():
                return self._answer(command)
            case c.StopTurn():
                self._abort(command.session)
                return runs.TurnStopped(command.issue, command.run, command.key)
            case c.StopOrphan():
                session = self.keys.get(command.orphan)
                self._abort(session or "")
                return runs.OrphanStopped(command.issue, command.key, session is not None)
            case c.PrepareTree():
                branch, ground, base = command.branch, command.ground, command.base or "c0ffee"
                path, head = f"/{'grounds' if ground == 'sealed' else 'trees'}/{branch}", self.heads.get(branch, base)
                about = (command.issue, command.run, command.key)
                return delivery.TreePrepared(*about, branch, path, base, head, ground, command.seals)
            case c.SealTree():
                head = self.heads[command.branch] = f"head of {command.run}"
                sealed = (head, f"tree of {command.run}", (*self.world.flows[command.issue].work.commits, head))
                flag = self.base.happens(self.chances.landing, "ci", "size", "git~1")
                names, flags = ((flag,), ()) if flag == "git~1" else ((), (flag,) if flag else ())
                return delivery.TreeSealed(
                    command.issue, command.run, command.key, *sealed, flags=flags, unwritable=names,
                    story=self._story(command.amend),
                )  # fmt: skip
            case c.RemoveTree() if self.will.random() < self.chances.landing:
                return delivery.TreeKept(command.issue, command.key, command.branch, "something in it is not committed")
            case c.RemoveTree():
                return delivery.TreeRemoved(command.issue, command.key, command.branch, 7)
            case c.ReadTree():
                branch = self.world.tree.branch if self.world.tree is not None else None
                return delivery.TreeSeen(
                    Tree(True, "c0ffee", branch=branch), command.moment, command.issue, command.run
                )
            case c.VerifyWork() | c.IntegrateWork() | c.MoveBase() | c.OpenPullRequest():
                return self.base.answer(command, self.chances.landing)
            case _:
                raise AssertionError(command)

    def _comes_back(self, command: c.SendPrompt) -> bool:
        """Before a prompt goes to a session that a person had, it is read once more; whether they wrote there again."""
        takeover = self.world.flows[command.issue].resume
        if takeover is None or takeover.session is None:
            return False
        if self.will.random() < self.chances.person * 2:
            self.wrote[takeover.session] = self.wrote.get(takeover.session, 0) + 1
        seen = runs.SessionSeen(command.issue, takeover.session, self._people(takeover), False, self.world.seq)
        if news := session_read(self.world, seen):
            self.turn(*news)
        return bool(news)

    def _abort(self, session: str) -> None:
        for turn in self.sessions.get(session, {}).values():
            if turn.state == "running":
                turn.state, turn.error = "finished", "MessageAbortedError: aborted"

    def _deliver(self, command: c.SendPrompt) -> None:
        turns = self.sessions[command.session]
        if command.message_id in turns and not (command.again and turns[command.message_id].state != "finished"):
            return
        slow = self.hit(self.chances.slow)
        left = 10**6 if slow else self.chance.randint(0, 3)
        turn = Turn(command.n, left, self.now, slow and self.hit(0.5), never=self.hit(self.chances.never_begun))
        turns[command.message_id] = turn
        run = self.world.flows[command.issue].run
        if turn.silent:
            self.silent.add(command.run)
        elif run is None or run.prompt.kind != "diagnose":  # it has stalled, whatever its diagnosis does
            self.silent.discard(command.run)

    # --- people -----------------------------------------------------------------------------------------------

    def open(self, name: str, *labels: str, **more: Any) -> None:
        """Somebody writes a new issue."""
        self.tracker[name] = given.issue(name, more.pop("status", "open"), *labels, **more)

    def say(self, name: str, who: str, text: str) -> None:
        """Somebody comments."""
        told = self.comments.setdefault(name, [])
        told.append(Comment(f"{name}-c{len(told)}", who, text, self.now))
        self.tracker[name] = replace(self.tracker[name], comments=len(told))

    def change(
        self, name: str, who: str, add: Sequence[str] = (), drop: Sequence[str] = (), **fields: str | None
    ) -> None:
        """Somebody changes labels, status or assignee."""
        view = self.tracker[name]
        for label in set(add) - set(view.labels):
            told = self.events.setdefault(name, [])
            told.append(LabelEvent(str(len(told)), label, who, self.now))
        labels = tuple(sorted(set(view.labels) - set(drop) | set(add)))
        self._put(replace(view, labels=labels, **fields), who)  # type: ignore[arg-type]

    def _put(self, view: Issue, who: str) -> None:
        """Store an issue, and who changed what."""
        before, told = self.tracker[view.id], self.history.setdefault(view.id, [])
        what: list[Difference] = [("added", label) for label in sorted({*view.labels} - {*before.labels})]
        what.extend(("removed", label) for label in sorted({*before.labels} - {*view.labels}))
        if view.status != before.status:
            what.append(("status", view.status))
        if view.assignee != before.assignee:
            what.append(("assignee", view.assignee or ""))
        told += [Change(f"{view.id}-h{len(told) + n}", one, who, self.now) for n, one in enumerate(what)]
        self.tracker[view.id] = view

    def answer(self) -> None:
        """Somebody says something to what a run asks, or nothing at all."""
        waiting = [name for name in sorted(self.world.indexes.live) if self.world.flows[name].waits_for_input]
        if not waiting or self.asking.random() < 0.5:
            return
        name, who = self.asking.choice(waiting), self.asking.choice(["ann", "ann", "ashep-agent", given.ME])
        if self.asking.random() < 0.1:
            self.change(name, "ann", drop=["needs:human_input"])
        else:
            self.say(name, who, self.asking.choice(["@ashep yes", "@ashep: no, never", "@ashep 2", "yes"]))

    def agent(self, name: str) -> None:
        """An agent does to an issue what only people may."""
        labels = ["phase:review", "policy:quick", "ashep:paused", "ashep:excluded"]
        marks = [label for label in self.tracker[name].labels if label.startswith(("phase:", "ashep:", "needs:"))]
        acts: list[dict[str, Any]] = [
            {"add": [self.will.choice(labels)]}, {"drop": marks[:1]}, {"drop": marks[-1:]},
            {"status": self.will.choice(["open", "closed", "in_progress"])}, {"assignee": None}, {"assignee": "bob"},
        ]  # fmt: skip
        self.change(name, "ashep-agent", **self.will.choice(acts))

    def pause(self) -> None:
        """A person tells the daemon to pause, to go on, or to cancel an issue; or quiet hours begin."""
        until = self.will.choice([None, self.now + timedelta(minutes=self.will.choice([1, 30, 600]))])
        provider = self.will.choice([None, None, given.LARGE.provider, given.SMALL.provider])
        facts: list[Fact] = [
            resources.WorkPaused("ann", until=until, provider=provider),
            resources.WorkResumed("ann", provider=provider),
            resources.WorkResumed("ann"),
            *windows_read(self.world.pauses, {"night": self.now + timedelta(minutes=20)}, self.now),
        ]
        facts += [resources.MachineSeen("busy", "late"), resources.MachineSeen("ok")]
        facts += [issues.IssueCancelled(name, "ann") for name in self.will.sample(sorted(self.tracker), 1)]
        self.turn(self.will.choice(facts))

    def person(self) -> None:
        """A person does something to some issue, mostly what was asked of them."""
        name = self.chance.choice(sorted(self.tracker))
        view, flow = self.tracker[name], self.world.flows.get(name)
        if flow is not None and flow.question is not None and self.hit(0.7):
            self.say(name, "ann", "here is what I think")
            label = self.chance.choice(["human:approved", "human:changes_requested"])
            return self.change(name, self.chance.choice(["ann", "ann", "ashep-agent", given.ME]), [label])
        if "ashep:paused" in view.labels and self.will.random() < 0.5:
            return self.change(name, "ann", drop=["ashep:paused"])
        if "ashep:parked" in view.labels and self.hit(0.7):
            return self.change(name, "ann", drop=["ashep:parked"])
        acts: list[Callable[[], None]] = [
            lambda: self.change(name, "ann", status="closed"),
            lambda: self.change(name, "ann", status="open"),
            lambda: self.change(name, "ann", status="open", assignee=None),
            lambda: self.change(name, "ann", status="deferred"),
            lambda: self.change(name, "ann", assignee="bob"),
            lambda: self.change(name, "ann", assignee=None),
            lambda: self.change(name, "ann", ["ashep:excluded"]),
            lambda: self.change(name, "ann", drop=["ashep:excluded", "ashep:paused"]),
            lambda: self.change(name, "ann", ["ashep:paused"]),
            lambda: self.change(name, "ann", ["phase:" + self.chance.choice(["implement", "review", "nonsense"])]),
            lambda: self.change(name, "ann", drop=[label for label in view.labels if label.startswith("phase:")]),
            lambda: self.change(name, "ashep-agent", ["human:approved"]),
            lambda: self.agent(name),
            lambda: self.say(name, "ann", "a thought"),
        ]
        self.chance.choice(acts)()
        return None
