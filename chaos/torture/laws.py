"""What must hold, whatever happened: judged by what really became of the world, not by what the daemon says of it."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ashep.core.analysis.issue_status import account
from ashep.core.analysis.replay import Replay
from ashep.core.facts.commands import ClaimIssue, CreateIssue, PostComment, SendPrompt, WriteIssue
from ashep.core.facts.issues import CycleBegan, IssueClosed, IssueGivenBack, IssueLeft, IssueParked
from ashep.core.facts.outcome import last_block
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import ClockJumped, DaemonStarted, Finding
from ashep.core.facts.runs import InputEnded, RequestGone, RequestJudged, RunEnded, RunPlanned, SessionTaken, TurnSeen
from ashep.core.facts.vocabulary import ChangeJudged
from ashep.core.issues.human_overrides import COOLDOWN
from ashep.journal.writer import Journal

if TYPE_CHECKING:
    from chaos.torture.bd import Process, Standing
    from chaos.torture.sessions import Session
    from chaos.torture.world import World

T = TypeVar("T")
OURS = ("phase:", "needs:", "ashep:parked", "ashep:paused", "human:")
"""Labels that ashep may take off."""
ADDED = ("phase:", "needs:", "ashep:parked", "ashep:paused")
"""Labels that ashep may set."""
PAUSED = "ashep:paused"
SAME_MOMENT = timedelta(seconds=15)
"""From the last look at a session to the prompt's arrival: the server is slow now and then."""
SLOW = timedelta(seconds=30)
"""A batch that waits for a slow machine."""
IN_FLIGHT = timedelta(seconds=60)
"""What was on its way when the machine fell asleep, arrives when it wakes: nobody could have stopped it."""
AGENT = "ashep-agent"
RIVAL = "ashep-rival"
"""Another daemon, which takes over what a dead one left."""
BLAME = ("assigned", "status_changed", "reopened", "phase_taken_off", "unknown_phase", "excluded")
"""Codes of leaving and giving back that say what somebody did."""


class Laws:
    """Watches the story; `bad` names the laws that were broken."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.bad: list[str] = []
        self._entries: dict[int, Entry] = {}
        """Everything that the daemon took for durable."""
        self._before: list[Any] = []
        """What journals held that were deleted."""
        self._losses = 0
        """How many were."""
        self._read: dict[tuple[str, str], set[Standing]] = defaultdict(set)
        self._used, self._days, self._over = Counter[tuple[str, int]](), Counter[str](), set[str]()
        """Tokens of each turn and of each day, as the journal tells them; runs that ended."""
        self._whole: set[tuple[str, int]] = set()
        """Batches that were written from their first line to their commit record: its checksum, and their entries."""
        self._landed: list[tuple[str, str, Any]] = []
        """Effects that reached bd: command, issue and what identifies the intent."""

    def broken(self, law: str, how: str) -> None:
        """A law does not hold."""
        self.bad.append(f"{law}: {how}")
        self.world.tell(f"BROKEN {law}: {how}")

    def durable(self, entries: Sequence[Entry]) -> None:
        """A batch that the daemon acts on."""
        for entry in entries:
            if entry.seq in self._entries:
                self.broken("no durable fact is lost", f"number {entry.seq} is given twice: {entry.body}")
            self._entries[entry.seq] = entry
            self.world.tell(entry)
            self._may_start(entry)
            if self.world.own is not None:
                self.world.own.durable(entry.body)
            if isinstance(entry.body, RunEnded) and entry.body.state == "stalled":
                self._was_silent(entry.body.run)

    def _may_start(self, entry: Entry) -> None:
        """No run starts in a pause, or on a day whose limit is used up, by a count of its own."""
        body, known, day = entry.body, self.world.known, f"{entry.at:%Y-%m-%d}"
        if isinstance(body, TurnSeen) and body.run not in self._over:
            more = max(body.tokens - self._used[body.run, body.n], 0)
            self._used[body.run, body.n] += more
            self._days[day] += more
        if isinstance(body, RunEnded):
            self._over.add(body.run)
        if not isinstance(body, RunPlanned):
            return
        provider = body.model.provider if body.model else None
        for pause in known.pauses:
            if not pause.lifted and pause.provider in (None, provider):
                self.broken("nothing starts in a pause", f"{body.run}, and {pause.sentence}")
        limit = known.settings.budgets.day.tokens
        if limit is not None and self._days[day] >= limit:
            self.broken("nothing starts without budget", f"{body.run}, and {self._days[day]} of {limit} are used")

    def _was_silent(self, run: str) -> None:
        for session in self.world.server.sessions.all.values():
            key = str(session.metadata.get("ashep", "")).removesuffix("/extract").removesuffix("/diagnose")
            if key.endswith(f":{run}") and session.turn is not None and session.turn.play.fate == "ends":
                self.broken("no healthy turn is called stalled", run)

    def forget(self) -> None:
        """The journal is about to be deleted: another one begins."""
        if any((self.world.state / "journal").glob("*.jsonl")):
            self._before += [entry.body for entries in self._journal() for entry in entries]
        self._entries.clear()
        self._used.clear()
        self._days.clear()
        self._losses += 1

    def wrote(self, data: bytes) -> None:
        """Bytes went to a file in one piece; where they were the journal's, they were one batch (or a header)."""
        data = bytes(data)
        self._whole.add((data[-9:-1].decode(errors="replace"), data.count(b"\n") - 1))

    def read(self, actor: str, shown: "dict[str, Standing]") -> None:
        """An answer of bd reached ashep."""
        for issue, standing in shown.items():
            self._read[actor, issue].add(standing)

    # --- people win (promise 5) ---

    def landed(self, process: "Process", before: Any) -> None:
        """A write of ashep's was done by bd: `before` is how the issue stood."""
        command, issue = process.arguments[0], process.arguments[1]
        row = self.world.store.rows.get(issue)
        fresh = self.world.clock.now() - process.asked < IN_FLIGHT
        if row is not None and fresh and command == "comment" and row.standing == ("in_progress", RIVAL):
            self.broken("another daemon's issue is not touched", f"comment on {issue}, which {RIVAL} holds")
        if command == "create":
            made = next(one.removeprefix("--id=") for one in process.arguments if one.startswith("--id="))
            self._landed.append(("create", made, None))
        if command == "comment":
            self._landed.append(("comment", issue, (process.stdin or "").split("\n")[-1]))
        if command != "update" or row is None or before is None:
            return
        standing, by, labels, stamp = before
        if row.stamp != stamp:
            self._landed.append(("update", issue, row.stamp.get("seq")))
        self._judge_labels(issue, labels, row.labels)
        if row.standing != standing:
            self._judge(process, standing, by, row.standing)

    def _judge_labels(self, issue: str, before: frozenset[str], after: set[str]) -> None:
        for label in before - after:
            theirs = label == PAUSED and self._set_by(issue, label) != self.world.actor
            if theirs or not label.startswith(OURS):
                self.broken("no act of a person is overwritten", f"ashep took {label} off {issue}")
        for label in after - before:
            if not label.startswith(ADDED):
                self.broken("no act of a person is overwritten", f"ashep set {label} on {issue}")

    def _set_by(self, issue: str, label: str) -> str:
        """Who set a label last."""
        events = self.world.store.rows[issue].events
        return next((one["actor"] for one in reversed(events) if one.get("comment") == f"Added label: {label}"), "")

    def _judge(self, process: "Process", before: "Standing", by: str, after: "Standing") -> None:
        issue, actor = process.arguments[1], process.actor
        status, assignee = before
        what = f"{issue} was {before} by {by}, and ashep made it {after}"
        if assignee not in (None, actor):
            self.broken("no act of a person is overwritten", f"assigned to somebody else: {what}")
        elif status in ("closed", "deferred") and by != AGENT:
            self.broken("no act of a person is overwritten", what)
        elif not by.startswith("ashep-") and before not in self._read[actor, issue]:
            self.broken("no act of a person is overwritten", f"never read: {what}")

    def prompted(self, session: "Session", prompt: dict[str, Any]) -> None:
        """A prompt of ashep's reached the server: the issue must not be another daemon's by now, nor the session a
        person's.
        """
        run = str(session.metadata.get("ashep", ":")).split(":", 1)[1]
        self._left_alone(session, prompt)
        row = self.world.store.rows.get(run.split("/")[0])
        if row is not None and row.standing == ("in_progress", RIVAL):
            self.broken("another daemon's issue is not touched", f"a prompt of {run}, and {RIVAL} holds the issue")

    def _left_alone(self, session: "Session", prompt: dict[str, Any]) -> None:
        """Where only quiet ends a takeover, nothing is sent while a person is in the session but in the same moment."""
        said = [m["info"]["time"]["created"] for m in session.messages if m["info"].get("who") == "person"]
        issue = str(session.metadata.get("ashep", ":")).split(":", 1)[1].split("/")[0]
        takeover = self.world.configuration.policies.policies["standard"].takeover
        row = self.world.store.rows.get(issue)  # somebody may have deleted it
        by_label = row is not None and any(PAUSED in str(one.get("comment")) for one in row.events)
        if not said or session.message(prompt["messageID"]) or by_label or takeover.action == "pause":
            return
        if "A person has worked in this session" not in prompt["parts"][0]["text"] or self.world.dice.on("clock"):
            return
        age = timedelta(milliseconds=self.world.server.sessions.millis() - max(said))
        if SAME_MOMENT < age < (takeover.cooldown or COOLDOWN):
            self.broken("a person is left alone", f"a prompt {age} after they wrote in {session.metadata}")

    # --- at rest ---

    def standing(self) -> str:
        """How everything stands, for a story."""
        known = self.world.known
        told = [f"{account(known, issue)}" for issue in known.flows]
        told += [f"{row.id} {row.standing} {sorted(row.labels)}" for row in self.world.store.rows.values()]
        return " | ".join(told)

    def audited(self, findings: Sequence[Finding]) -> None:
        """Promise 3, as the daemon itself checks it."""
        if findings:
            self.broken("the audit finds nothing", " | ".join(map(str, findings)))

    def at_rest(self, findings: Sequence[Finding]) -> None:
        """Nobody acts any more: each issue is where its account says, and nothing of ashep's is left over."""
        self.audited(findings)
        if self.world.own is not None:
            self.world.own.at_rest()
        known = self.world.known
        for issue in known.flows:
            if why := self._untrue(issue):
                told = account(known, issue)
                self.broken("the account is true", f"{issue} is {told.state}, {told.code} ({told.reason}), but {why}")
        for session in self.world.server.sessions.all.values():
            run = str(session.metadata.get("ashep", "")) .split(":", 1)[-1] .removesuffix("/extract") .removesuffix(
                "/diagnose",
            )  # fmt: skip
            ends = [e.body for e in self._entries.values() if isinstance(e.body, RunEnded) and e.body.run == run]
            theirs = session.id in self.world.server.sessions.people  # a message of theirs begins what waited, too
            if session.turn is not None and ends and ends[-1].abort and not theirs:
                self.broken("no turn goes on after its run", f"{run} was aborted, and its session is busy")

    def _untrue(self, issue: str) -> str:
        """What speaks against the account of an issue."""
        known = self.world.known
        flow, row = known.flows[issue], self.world.store.rows.get(issue)
        told = account(known, issue)
        if row is None:
            return "" if told.state == "closed" else "it is gone"
        if (told.state == "closed") != (row.status == "closed"):
            return f"its status is {row.status}"
        if told.state == "closed":
            return ""
        if told.state == "parked":
            # what was adopted was parked by another journal, which may have been lost before it said why
            marks = told.code == "adopted" or any(f"park.{flow.counters.cycle}." in one["text"] for one in row.comments)
            right = row.standing == ("blocked", self.world.actor) and "ashep:parked" in row.labels and marks
            return "" if right else f"it is {row.standing} {sorted(row.labels)}, its comment posted: {marks}"
        labels = row.labels
        phases = [label.removeprefix("phase:") for label in labels if label.startswith("phase:")]
        good = len(phases) == 1 and phases[0] in self.world.phases
        true = {
            "excluded": "ashep:excluded" in labels
            and (row.assignee != self.world.actor or row.status in ("open", "deferred")),
            "parked_label": "ashep:parked" in labels,
            "paused": "ashep:paused" in labels,
            "status": row.status != "open",
            "assigned": row.assignee not in (None, self.world.actor),
            "work_tree": known.lock not in (None, issue),
            "branch": any(issue != other for some in known.indexes.branches.values() for other in some),
            "dependencies": self.world.store.is_blocked(row),
            "status_changed": row.standing not in (("in_progress", self.world.actor), ("open", None)),
            "phase_taken_off": not good or issue in self.world.store.moved,  # an agent's label counts for nothing
            "unknown_phase": not good,
        }
        return "" if true.get(told.code, False) else f"it is {row.standing} {sorted(labels)}"

    # --- in the end ---

    def at_end(self) -> None:
        """Everything is closed: look at what was done, and at the record of it."""
        batches = self._journal()
        entries = [entry for batch in batches for entry in batch]
        bodies = [entry.body for entry in entries]
        self._run_ids(bodies)
        bodies = [*self._before, *bodies]
        self._once(bodies)
        self._comments()
        self._intents(bodies)
        self._true_ends(bodies)
        self._bounds(bodies)
        self._blames(bodies)
        self._slow(bodies)
        self._waits(entries)
        self._replays(batches)
        if self.world.own is not None:
            self.world.own.at_end(entries, bodies)
        left = self.world.known
        if left.lock is not None or list(left.indexes.live):
            self.broken("nothing is left over", f"lock {left.lock}, live {list(left.indexes.live)}")

    def _journal(self) -> list[Sequence[Entry]]:
        """The journal as it is on the disk, which must hold all that was acted on."""
        journal = Journal.open(self.world.state, self.world.clock.now())
        try:
            found = list(journal.batches())
        finally:
            journal.close()
        for batch in found:
            if (batch.end.crc, len(batch.entries)) not in self._whole:
                self.broken("a batch counts whole or not at all", f"the one of {batch.entries[0]} at {batch.end}")
                break
        batches = [batch.entries for batch in found]
        there = {entry.seq: entry for entries in batches for entry in entries}
        for seq, entry in self._entries.items():
            if there.get(seq) != entry:
                self.broken("no durable fact is lost", f"{seq} was {entry.body}, and is {there.get(seq)}")
                break
        return batches

    def _once(self, bodies: list[Any]) -> None:
        """Promise 1: each prompt of a run begins one turn, and one more for each that died."""
        begun, gone = self.world.server.sessions.begun, self.world.server.sessions.died
        known: dict[str, tuple[str, int]] = {}
        for command in _of(bodies, SendPrompt):
            known[command.message_id] = (command.run, command.n)
        turns, died = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        for session in self.world.server.sessions.all.values():
            for message in session.messages:
                info = message["info"]
                if info["role"] == "user" and not info["who"] and info["id"] not in known:
                    self.broken("no effect without its intent", f"prompt {info['id']} in {session.metadata}")
        for message, prompt in known.items():
            turns[prompt] += begun[message]
            died[prompt] += gone[message]
        for prompt, count in turns.items():
            if count > 1 + died[prompt]:
                self.broken("each prompt is delivered once", f"{prompt} began {count} turns, {died[prompt]} died")

    def _run_ids(self, bodies: list[Any]) -> None:
        for kind, runs in (("planned", _of(bodies, RunPlanned)), ("ended", _of(bodies, RunEnded))):
            for run, count in Counter(fact.run for fact in runs).items():
                if count > 1:
                    self.broken("no run id is used twice", f"{run} was {kind} {count} times")

    def _comments(self) -> None:
        for row in self.world.store.rows.values():
            last = Counter(
                comment["text"].split("\n")[-1] for comment in row.comments if "<!-- ashep" in comment["text"]
            )
            for marker, count in last.items():
                if count > 1:
                    self.broken("no comment is posted twice", f"{row.id}: {marker} {count} times")
        for title, count in Counter(row.title for row in self.world.store.rows.values()).items():
            if count > 1:
                self.broken("no issue is created twice", f"{title!r} {count} times")

    def _intents(self, bodies: list[Any]) -> None:
        """Every effect that reached bd has its intent in the journal."""
        writes = {(c.issue, c.stamp.seq) for c in _of(bodies, WriteIssue) + _of(bodies, ClaimIssue)}
        creations = {c.id for c in _of(bodies, CreateIssue)}
        keys = {c.key for c in _of(bodies, PostComment)}
        for command, issue, what in self._landed:
            there = {
                "update": (issue, what) in writes,
                "create": issue in creations,
                "comment": any(f" {key} -->" in str(what) for key in keys),
            }[command]
            if not there:
                self.broken("no effect without its intent", f"{command} {issue} {what}")

    def _true_ends(self, bodies: list[Any]) -> None:
        """A turn counts as finished only where it really ended, with the outcome that was really reported."""
        ended = self.world.server.sessions.ended
        for fact in _of(bodies, TurnSeen):
            if fact.state != "finished":
                continue
            said = ended.get(fact.message, [])
            true = (
                any(fact.error.startswith(text) for text in said) if fact.error else fact.block in map(last_block, said)
            )
            if not true:
                self.broken("a turn is finished when it ended", f"{fact}, but it said {said}")

    def _bounds(self, bodies: list[Any]) -> None:
        """A phase is tried no more often than its policy says, in one visit; each lost state folder costs a new try."""
        most = {phase.name: phase.retry.max_attempts + self._losses for phase in self.world.phases_of_policy}
        failed = Counter(
            fact.run.rpartition(".")[0] for fact in _of(bodies, RunEnded) if fact.state in ("failed", "timed_out")
        )
        for visit, count in failed.items():
            phase = visit.split("/")[1].split(".")[0]
            if count > most.get(phase, count):
                self.broken("attempts have a bound", f"{visit} failed {count} times, {most[phase]} are allowed")

    def _waits(self, entries: list[Entry]) -> None:
        """What a person is asked in the midst of a run has an end: at its due time, or when ashep is there again."""
        if self.world.dice.on("paused"):
            return  # nothing of ashep ran for a while, and no record says so
        open_: dict[str, tuple[str, datetime]] = {}
        for entry in entries:
            match entry.body:
                case RequestJudged(verdict="ask", due=due, run=run, request=request):
                    assert due is not None
                    open_[request] = run, due
                case RequestJudged(request=request) | RequestGone(request=request):
                    open_.pop(request, None)
                case InputEnded(run=run) | RunEnded(run=run):
                    open_ = {name: one for name, one in open_.items() if one[0] != run}
                case DaemonStarted() | ClockJumped():
                    open_ = {name: (run, max(due, entry.at)) for name, (run, due) in open_.items()}
                case _:
                    pass
            for request, (run, due) in open_.items():
                if entry.at - due > SLOW:
                    self.broken("nothing waits longer than its bound", f"{request} of {run}, due {due}, at {entry.seq}")
                    return
            if isinstance(entry.body, RequestJudged) and entry.body.by in (AGENT, self.world.actor):
                self.broken("an agent answers for nobody", f"{entry.body}")

    def _blames(self, bodies: list[Any]) -> None:
        """Nobody is said to have done what ashep did itself."""
        touched = self.world.store.touched
        blamed = [fact for fact in _of(bodies, IssueLeft) + _of(bodies, IssueGivenBack) if fact.code in BLAME]
        cycles = [fact for fact in _of(bodies, CycleBegan) if fact.why.startswith("somebody set the phase")]
        for fact in [*blamed, *cycles]:
            if fact.issue not in touched | self.world.store.moved:
                self.broken("nobody is blamed for ashep's own acts", f"{fact}")
        # who is not on record by the tracker's own words is taken for a person, but where that would let work go on
        nobody = {fact.issue for fact in _of(bodies, ChangeJudged) if "nobody who is on record" in fact.why}
        closed = [fact for fact in _of(bodies, IssueClosed) if fact.by != "shepherd"]
        for fact in [*blamed, *cycles, *closed]:
            if fact.issue in self.world.store.moved - touched - nobody and not self._losses:
                self.broken("an agent moves nothing", f"{fact}")

    def _slow(self, bodies: list[Any]) -> None:
        """What ashep ends out of doubt is nobody's doing, and what is merely slow is not given up."""
        people, on = self.world.server.sessions.people, self.world.dice.on
        for fact in _of(bodies, SessionTaken):
            if fact.session is not None and fact.label != "theirs" and fact.session not in people and not self._losses:
                self.broken("nobody is said to have taken a session", f"{fact}")
        sessions = (self.world.server.sessions.all[session] for session in people)
        stopped = {str(session.metadata.get("ashep")).partition(":")[2] for session in sessions}
        for fact in _of(bodies, RunEnded):
            by_agent = fact.run in stopped  # who works alone in a place may be whoever stops a turn there
            if fact.state == "failed" and (fact.error or "").startswith("MessageAborted") and not by_agent:
                self.broken("an abort is no agent's failure", f"{fact}")
        for fact in _of(bodies, IssueParked):
            if fact.code == "infrastructure" and "came to no turn" in fact.why and not on("turn_silent"):
                self.broken("what is slow is not given up", f"{fact}")

    def _replays(self, batches: list[Sequence[Entry]]) -> None:
        """Every decision is derived again, and what is folded is what the daemon knew."""
        replay = Replay()
        for entries in batches:
            for one in replay.batch(entries):
                self.broken("the replay is equal", f"{one.seq}: {one.recorded} is now {one.derived}"[:600])
                return
        held = self.world.known
        if dict(replay.world.flows.items()) != dict(held.flows.items()) or replay.world.seq != held.seq:
            self.broken("the fold of the journal is what the daemon knew", f"{replay.world.seq} {held.seq}")


def _of(bodies: Sequence[Any], kind: type[T]) -> list[T]:
    return [body for body in bodies if isinstance(body, kind)]
