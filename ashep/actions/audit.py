"""Audit: the account computed again from the journal, the tracker, the agent server and the database.

Nothing is written, and nothing is started: a daemon may run meanwhile. Where one runs, only what two looks in a row
show is told.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from ashep.actions.runner_wait import Say, call_runner, silent
from ashep.actions.runners.kinds import kind_of
from ashep.adapters.git.integration import is_integration
from ashep.adapters.system.clock import RealClock
from ashep.adapters.system.signatures import is_signed
from ashep.core.analysis.audit import (
    Ledger,
    in_sessions,
    lasting,
    of_answers,
    of_indexes,
    of_issue,
    of_look,
    of_sessions,
    of_world,
)
from ashep.core.facts.resources import DaemonStarted, Finding
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.flow import Flow
from ashep.core.state.run import runner_of
from ashep.core.state.world import World
from ashep.errors import AshepError, RunnerError, RunnerUnavailable, TrackerUnavailable
from ashep.factories import people_of, runners_of, tracker_of
from ashep.journal import lock, reader, snapshots
from ashep.journal.reader import Told, nobody
from ashep.ports.clock import Clock
from ashep.ports.tracker import Tracker
from ashep.store.issue_row import issue_row
from ashep.store.sqlite_reader import NAME, open_read_only

MOST_ANSWERED = 200
"""Issues whose answers are compared with the tracker's history, those that were answered last: each is a call."""

AGAIN = 5.0
"""Seconds between the two looks next to a running daemon."""


HasSession = Callable[[str], Awaitable[bool]]
"""Whether its server still has a session; raises what the runner raises."""


@dataclass
class AuditResult:
    """What was found, and what could not be asked."""

    findings: list[Finding] = field(default_factory=list[Finding])
    issues: int = 0
    no_tracker: str = ""
    """Why the tracker could not be asked; empty: it was."""
    no_signatures: str = ""
    """Why a signature could not be verified; empty: all were."""
    no_server: str = ""
    """Why the agent server could not be asked about sessions; empty: it was, or there was nothing to ask."""
    unverified: list[str] = field(default_factory=list[str])
    """What was closed with nothing that shows that its work holds: no finding where nothing was to be checked."""
    unchanged: list[str] = field(default_factory=list[str])
    """What was closed although nothing was changed: no finding where the policy has it so."""


@dataclass(frozen=True, slots=True)
class IssuesAtSeq:
    """The database's picture of the issues, and of which number it is."""

    seq: int
    rows: dict[str, dict[str, Any]]


def read_issues(state: Path) -> IssuesAtSeq | None:
    """Read the database's picture at one moment; None: there is none, or none that can be read."""
    try:
        with closing(open_read_only(state)) as database:
            database.execute("BEGIN")
            meta = {row["key"]: row["value"] for row in database.execute("SELECT * FROM meta")}
            rows = {row["issue"]: dict(row) for row in database.execute("SELECT * FROM issues")}
    except sqlite3.Error:
        return None
    return IssuesAtSeq(int(meta["seq"]), rows) if "seq" in meta else None


class Books:
    """The journal, folded up to its last complete batch, as often as one goes on."""

    def __init__(self, state: Path, told: Told = nobody) -> None:
        self.world, _ = snapshots.beginning(state / "journal")
        self.ledger = Ledger(self.world)
        self.started: datetime | None = None
        self.picture: list[Finding] = []
        self._state, self._told, self._drawn = state, told, read_issues(state)
        self._position: reader.Position = reader.START

    def go_on(self) -> World:
        """Fold what has come; raises `JournalDamaged`."""
        for batch in reader.batches(self._state / "journal", self._position):
            for entry in batch.entries:
                self.world = evolve(self.world, entry)
                self.ledger.note(entry, self.world.settings.labels)
                if isinstance(entry.body, DaemonStarted):
                    self.started = entry.at
            self._position = batch.end
            self._told(batch.end.seq)
            if self._drawn is not None and self._drawn.seq == batch.end.seq:
                self.picture = [*_compared(self.world, self._drawn)]
                self._drawn = None
        return self.world

    def findings(self, at: datetime, *, living: bool) -> list[Finding]:
        """Say what the journal alone shows."""
        since = {key: max(asked, self.started or asked) for key, asked in self.ledger.asked.items()}
        found = [*of_world(self.world), *of_indexes(self.world), *self.ledger.findings(self.world), *self.picture]
        for flow in self.world.flows.values():
            found += of_issue(self.world, flow, at, since, living=living)
        return found


def _compared(world: World, picture: IssuesAtSeq) -> Iterator[Finding]:
    """Compare the database's rows with the World of the same number."""
    for issue in sorted({*world.flows} ^ {*picture.rows}):
        yield Finding("picture", issue, f"stands in {'the journal' if issue in world.flows else NAME} alone")
    for issue in sorted({*world.flows} & {*picture.rows}):
        row, should = picture.rows[issue], issue_row(world, issue)
        wrong = sorted(name for name, value in should.items() if row.get(name) != value)
        if wrong:
            yield Finding("picture", issue, f"has another {', '.join(wrong)} in {NAME} than in the journal")


def is_closed_by_us(flow: Flow) -> bool:
    """Whether we closed an issue that had its own tree."""
    return flow.stage == "closed" and flow.code == "shepherd" and flow.work.own is not None


def is_unverified(flow: Flow) -> bool:
    """Whether we closed such an issue, and neither checks nor a person say that its work holds."""
    found = flow.work.evidence
    holds = found is not None and found.changed and found.status == "passing"
    return is_closed_by_us(flow) and not (holds or flow.work.waived)


async def examine(
    project: Path, state: Path, tracker: Tracker, has_session: HasSession, clock: Clock, told: Told = nobody
) -> AuditResult:
    """Audit a state folder against repository, tracker and agent server. Raises `JournalDamaged`, `TrackerMissing`."""
    books, account = Books(state, told), AuditResult()
    await to_thread.run_sync(books.go_on)
    living = lock.holder(state) is not None
    look = partial(_look, books, tracker, has_session, clock, account, living=living)
    found = await look()
    if found and living:
        await anyio.sleep(AGAIN)
        found = list(lasting(found, await look()))
    account.findings, account.issues = found, len(books.world.flows)
    flows = sorted(books.world.flows.items())
    for _, flow in flows:
        await verify_signature(project, books.world.settings, flow, account)
    account.unverified = [issue for issue, flow in flows if is_unverified(flow)]
    account.unchanged = [issue for issue, flow in flows if is_closed_by_us(flow) and flow.work.is_empty]
    return account


async def verify_signature(project: Path, settings: Settings, flow: Flow, account: AuditResult) -> None:
    """Where signed work landed, verify the signature by the base's keys, and repeat the merge that landed it."""
    signature, base, landed = flow.work.signed, flow.work.landed_onto, flow.work.landed
    if signature is None or landed is None or not base:
        return
    commit = landed[1]
    approval, by_key = signature.approval, settings.landing.merge_by_key
    what = f"landed as {commit[:12]} on {base[:12]}, approved by {signature.signer} for {approval.commit[:12]}"
    try:
        people = await people_of(project, settings, base)
        keys = people.keys_of(signature.signer) if people is not None else ()
        if not await is_signed(approval.text, signature.armor, keys):
            account.findings.append(Finding("signature", flow.issue.id, f"{what}: no key of theirs there signed that"))
        elif approval.commit and not await is_integration(project, by_key, approval.commit, base, commit):
            account.findings.append(Finding("signature", flow.issue.id, f"{what}: that commit is something else"))
    except AshepError as error:
        account.no_signatures = f"{flow.issue.id}: {error}"


async def _look(
    books: Books, tracker: Tracker, has_session: HasSession, clock: Clock, account: AuditResult, *, living: bool
) -> list[Finding]:
    as_of, of_tracker = books.world.seq, list[Finding]()
    try:
        look = await tracker.look()
    except TrackerUnavailable as error:
        account.no_tracker = str(error)
        await to_thread.run_sync(books.go_on)
    else:
        await to_thread.run_sync(books.go_on)
        of_tracker = [*of_look(books.world, [issue.issue for issue in look.issues], as_of, taken_in=False)]
        answers = sorted(books.ledger.answers.items(), key=lambda one: one[1][-1].seq)
        try:
            for issue, given in answers[-MOST_ANSWERED:]:
                of_tracker += of_answers(issue, given, await tracker.changes(issue))
        except TrackerUnavailable as error:
            account.no_tracker = str(error)
    gone = set[str]()
    try:
        for _, _, session in in_sessions(books.world):
            if not await has_session(session):
                gone.add(session)
    except RunnerError as error:
        account.no_server = str(error)
    return [*books.findings(clock.now(), living=living), *of_tracker, *of_sessions(books.world, gone)]


# --- with the real tools ------------------------------------------------------------------------------------------


def audit(project: Path, state: Path, settings: Settings, told: Told = nobody, say: Say = silent) -> AuditResult:
    """Audit a project. Raises `JournalDamaged`, and `TrackerMissing` where there is none to be asked at all."""
    return anyio.run(_audit, project, state, settings, told, say)


async def _audit(project: Path, state: Path, settings: Settings, told: Told, say: Say) -> AuditResult:
    clock = RealClock()
    tracker = tracker_of(project, settings, "ashep-audit", clock=clock)
    runners, reached = runners_of(project, settings, clock=clock), set[str]()

    async def has_session(session: str) -> bool:
        """Ask the runners as they are, each only where there is something to ask; no agent server is started."""
        name = runner_of(session)
        if name in settings.runners.custom:
            raise RunnerUnavailable("only a daemon asks a runner of your own, which may have to be started for that")
        runner = runners.find_runner(session)

        async def start() -> None:
            if name not in reached:
                await kind_of(settings, name).reach(runner)
                reached.add(name)

        return await call_runner(start, partial(runner.has_session, session), say)

    try:
        return await examine(project, state, tracker, has_session, clock, told)
    finally:
        await tracker.aclose()
        await runners.aclose()
