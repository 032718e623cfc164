"""Executor of effects, the one place from which the world is changed: a command in, the facts of its answer out.

Each effect has its probe. A command that was tried before, or was found open after a crash, is probed and never blindly
repeated. No effect decides anything; what an answer means is the core's business. Whatever an effect raises is its
answer, too: only what fails in the journal ends the daemon.
"""

import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from anyio import to_thread
from pydantic import TypeAdapter

from ashep.core.delivery.closing_metadata import Notes
from ashep.core.delivery.stories import story_of
from ashep.core.facts import commands, delivery, resources, runs
from ashep.core.facts import tracker as tracker_facts
from ashep.core.facts.approvals import Signature
from ashep.core.facts.sources import CloseAtSource, MirrorIssue, SayAtSource, SourceCommand
from ashep.core.facts.vocabulary import AuthorsRead, Fact
from ashep.core.issues.human_overrides import label_events
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.eligibility import LEASE_GRACE
from ashep.core.resources.notices import targets
from ashep.core.runs.requests import ADDRESSED
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.effects import sessions, work
from ashep.daemon.effects.prompts import PromptEffects, Render, peoples
from ashep.daemon.effects.pulls import ForgeAdapters, PullEffects
from ashep.daemon.effects.sources import Make, SourceEffects
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.error_facts import LONGEST_TRACE, failed, short
from ashep.daemon.leases import Leases
from ashep.errors import AshepError, ClaimLost, NotSent, RunnerUnavailable, TrackerRefused
from ashep.ports.journal import Blobs
from ashep.ports.notifier import Notifier, message_of
from ashep.ports.runner import Prompt, Runner, SessionRequest
from ashep.ports.runner_router import RunnerRouter, runners_of
from ashep.ports.tracker import ClaimRequest, Creation, IssueText, Seen, Tracker, Update
from ashep.prompt.templates import render

MOST_CHANGES = 100
"""Of the same changes of an issue, the newest so many are looked at."""

UNDER_LEASE = (
    commands.WriteIssue,
    commands.TakeOffLabels,
    commands.PostComment,
    commands.CreateIssue,
    commands.OpenSession,
    commands.SendPrompt,
)
"""What is not done to an issue in progress by a daemon that may have lost it. A claim brings its own lease."""

ReadSignatures = Callable[
    [Settings, str, Sequence[tracker_facts.Comment]], Awaitable[tuple[tuple[Signature, ...], bool]]
]
"""Reads the signatures in comments, each with its signer, and whether a branch has only signed approvals count."""

_TEXT: TypeAdapter[IssueText] = TypeAdapter(IssueText)
_MOST_EARLY = 20  # early answers that a comment names


class Effects:
    """Carries commands out."""

    def __init__(
        self,
        *,
        tracker: Tracker,
        runner: Runner | RunnerRouter,
        trees: TreeEffects,
        blobs: Blobs,
        leases: Leases,
        means: Callable[[Settings], work.DeliveryAdapters] | None = None,
        pulls: Callable[[ForgeSettings], ForgeAdapters] | None = None,
        prompts: Path | None = None,
        notifier: Notifier | None = None,
        render: Render = render,
        asks: bool = False,
        where: Callable[[], str | None] | None = None,
        head: Callable[[], str] = str,
        report: Callable[[str], None] = lambda _: None,
        signatures: ReadSignatures | None = None,
        sources: Make | None = None,
    ) -> None:
        """`prompts`: the folder of templates, for messages; `render`: another writer where nobody reads the prompts;
        `asks`: agents in places may ask for verifications; `where`: asks where the page is, and blocks;
        `head`: gives the head of the journal's chain, which is told where others keep it; `report`: takes what the
        daemon's log is to say.
        """
        self.tracker, self.runners, self.trees, self.blobs = tracker, runners_of(runner), trees, blobs
        self.leases, self.notifier, self._where, self._head = leases, notifier, where, head
        self._report, self._signatures = report, signatures
        self.work = work.WorkEffects(tracker, blobs, means, head)
        self.prompts = PromptEffects(tracker, self.runners, trees, blobs, prompts, render, self.work, asks=asks)
        self.pulls = PullEffects(pulls)
        self.sources = SourceEffects(tracker, blobs, sources)

    async def execute(self, command: commands.Command, world: Callable[[], World], *, probe: bool) -> list[Fact]:
        """Do what a command says and give its answer; `probe`: it may have been done before."""
        probe = probe or command.tries > 0
        try:
            if isinstance(command, commands.SendNotice):
                return await self._notify(command, world(), again=probe)
            is_leased = not isinstance(command, SourceCommand)
            if is_leased and (why := await self._lease_lost(command, world, probe)) is not None:
                failure = tracker_facts.EffectFailed(command.issue, command.key, "the lease was lost", infra=True)
                return [tracker_facts.LeaseLost(command.issue, why), failure]
            return await self._do(command, world, probe)
        except Exception as error:  # whatever it is: it ends nothing but its issue
            facts = failed(command, error)
            if not isinstance(error, AshepError) or any(getattr(fact, "unforeseen", False) for fact in facts):
                trace = "".join(traceback.format_exception(error))[-LONGEST_TRACE:]
                self._report(f"{command.key} failed, and nobody foresaw how:\n{self.blobs.redact(trace)}")
            return facts

    async def _lease_lost(self, command: commands.IssueCommand, world: Callable[[], World], probe: bool) -> str | None:
        """Renew the lease under which a command is executed, if need be; why that cannot be is an answer."""
        flow = world().flows.get(command.issue)
        if not isinstance(command, UNDER_LEASE) or flow is None or not flow.leased:
            return None
        stamp = command.stamp if isinstance(command, commands.WriteIssue) and probe else None
        try:
            # a write that landed may have ended the lease
            if stamp is None or not await self._landed(command.issue, stamp):
                await self.leases.assure(command.issue)
        except (ClaimLost, TrackerRefused) as error:
            return short(error)
        return None

    async def _do(
        self, command: commands.IssueCommand | SourceCommand, world: Callable[[], World], probe: bool
    ) -> list[Fact]:
        issue, key = command.issue, command.key
        match command:
            case commands.ClaimIssue():
                return await self._claim(command, world(), probe)
            case commands.WriteIssue():
                return await self._write(command, world(), probe)
            case commands.PostComment():
                return await self._comment(command, world(), probe)
            case commands.CreateIssue():
                parked, labels = command.parked, command.labels
                creation = Creation(command.id, command.new, issue, command.stamp, parked=parked, labels=labels)
                await self.tracker.create(creation)
                return [tracker_facts.IssueCreated(issue, key, command.id)]
            case commands.TakeOffLabels():
                await self.tracker.relabel(issue, (), command.labels)
                return [tracker_facts.LabelsTakenOff(issue, key)]
            case commands.ReadIssue():
                as_of, snapshot = world().seq, await self.tracker.issue(issue)
                if snapshot is None:
                    return [tracker_facts.IssueGone(issue, as_of, key)]
                return [tracker_facts.IssueSeen(issue, snapshot.issue, as_of, key)]
            case commands.ReadAnswer():
                return await self._read_answer(command, world())
            case commands.ReadAuthors():
                changes = await self.tracker.changes(issue)
                about = tuple(change for change in changes if change.what in command.changes)
                return [AuthorsRead(issue, key, about[:MOST_CHANGES])]
            case commands.ReadTree() | commands.PrepareTree() | commands.RemoveTree():
                return await self.trees.execute(command, world().settings)
            case commands.SealTree():
                return await self._seal(command, world())
            case commands.MoveBase():
                return await self._move(command, world)
            case commands.VerifyWork() | commands.IntegrateWork():
                return await self.work.execute(command, world)
            case commands.OpenPullRequest():
                return await self.pulls.execute(command, world())
            case MirrorIssue() | SayAtSource() | CloseAtSource():
                return await self.sources.carry_out(command, world())
            case commands.OpenSession():
                return await self._open_session(command, world(), probe)
            case commands.PreparePrompt():
                return await self.prompts.prepare(command, world)
            case commands.SendPrompt():
                return await self._send(command, world(), probe)
            case commands.AnswerRequest():
                return await sessions.deliver(self.runners.find_runner(command.session), command, probe=probe)
            case commands.StopTurn():
                return await sessions.stop(self.runners.find_runner(command.session), command, world(), self.blobs)
            case commands.StopOrphan():
                current = world()
                place = await self.trees.place(command.branch, current.settings)
                return await sessions.stop_orphan([self.runners[name] for name in current.runners], command, place)
            case commands.ReclaimIssue():
                done = await self.tracker.reclaim(issue, command.holder, LEASE_GRACE)
                return [tracker_facts.IssueReclaimed(issue, key, command.holder, done)]

    async def _seal(self, command: commands.SealTree, world: World) -> list[Fact]:
        """Seal, and say of what was sealed what is the issue's own: not what its branch took in since it was begun."""
        sealed, flow = await self.trees.seal(command, world.settings), world.flows[command.issue]
        if flow.work.own is not None and flow.work.own.since:
            commits = (await self.trees.changes(world, flow, flow.work.own.since)).commits
            sealed = replace(sealed, commits=tuple(commit.sha for commit in commits))
        return [await self.work.touched(sealed, flow, world)]

    async def _move(self, command: commands.MoveBase, world: Callable[[], World]) -> list[Fact]:
        """Move a base. Where its checkout is in the way, how that looks is told first: it must be seen to change."""
        facts = await self.work.execute(command, world)
        if any(isinstance(fact, delivery.LandingRefused) and fact.code == "dirty" for fact in facts):
            with suppress(AshepError):
                facts = [delivery.TreeSeen(await self.trees.shared.read()), *facts]
        return facts

    # --- the tracker ----------------------------------------------------------------------------------------------

    async def _claim(self, command: commands.ClaimIssue, world: World, probe: bool) -> list[Fact]:
        seen, began = await self._landed(command.issue, command.stamp) if probe else None, self.leases.moment()
        if seen is None:
            request = ClaimRequest(command.issue, command.stamp, command.add_labels, command.remove_labels)
            seen = await self.tracker.claim(request)
            if not probe:  # claiming again does not renew a lease
                self.leases.confirm(command.issue, began)
        claimed = tracker_facts.IssueClaimed(command.issue, command.key, seen.issue, await self._keep_text(seen))
        return [claimed, await self.work.adopted(seen, world.settings)]

    async def _write(self, command: commands.WriteIssue, world: World, probe: bool) -> list[Fact]:
        seen = await self._landed(command.issue, command.stamp) if probe else None
        if seen is None:
            seen = await self.tracker.update(
                Update(
                    issue=command.issue,
                    if_status=command.if_status,
                    if_assignee=command.if_assignee,
                    stamp=command.stamp,
                    status=command.status,
                    assignee=command.assignee,
                    add_labels=command.add_labels,
                    remove_labels=command.remove_labels,
                    metadata=await self._notes(command, world),
                )
            )
        text = await self._keep_text(seen)
        written = tracker_facts.IssueWritten(command.issue, command.key, command.stamp.seq, seen.issue, text)
        return [written, *await self.work.changed(seen, world.flows.get(command.issue), world.settings)]

    async def _notes(self, command: commands.WriteIssue, world: World) -> Notes:
        """Say what was found, with the write that closes an issue, has it wait, or goes on with what fell short."""
        flow = world.flows.get(command.issue)
        short = command.kind == "work" and flow is not None and flow.work.flaw is not None
        if flow is None or not (short or command.kind in ("close", "ask", "park")):
            return {}
        return await self.work.notes(flow, world, closed=command.kind == "close")

    async def _landed(self, issue: str, stamp: tracker_facts.Stamp) -> Seen | None:
        """The probe of a write: our metadata with this or a later number means that it was done."""
        seen = await self.tracker.issue(issue)
        if seen is None:
            raise TrackerRefused(f"the tracker has no issue {issue}")
        there = seen.issue.stamp
        return seen if there and there.instance == stamp.instance and there.seq >= stamp.seq else None

    async def _keep_text(self, seen: Seen) -> str:
        return await self.blobs.keep(_TEXT.dump_json(seen.text).decode())

    async def _comment(self, command: commands.PostComment, world: World, probe: bool) -> list[Fact]:
        sign = sessions.marker(world.instance, command.key)
        if not (probe and await self.tracker.commented(command.issue, sign)):
            await self.work.note(command, world)
            await self.tracker.comment(command.issue, clean(command.text), sign)
        return [tracker_facts.CommentPosted(command.issue, command.key, command.name)]

    async def _read_answer(self, command: commands.ReadAnswer, world: World) -> list[Fact]:
        seen = await self.tracker.issue(command.issue)
        if seen is None:
            raise TrackerRefused(f"the tracker has no issue {command.issue}")
        events = label_events(await self.tracker.changes(command.issue))
        actor = self.tracker.actor
        before, behind = sessions.around(seen.text.comments, actor, world.instance, command.after)
        comments = peoples(behind, actor)
        early = tuple(comment for comment in peoples(before, actor) if ADDRESSED.match(comment.text))[-_MOST_EARLY:]
        own = world.flows[command.issue].work.own
        base = world.settings.landing.base or (own.onto if own is not None else None) or ""
        signed = ((), False) if self._signatures is None else await self._signatures(world.settings, base, comments)
        return [tracker_facts.AnswerRead(command.issue, command.key, seen.issue, events, comments, *signed, early)]

    # --- sessions ---------------------------------------------------------------------------------------------------

    async def _open_session(self, command: commands.OpenSession, world: World, probe: bool) -> list[Fact]:
        """Open a session; only a server that does not answer is started: one that nothing ran on has been ended."""
        try:
            return await self._session(command, world, probe)
        except RunnerUnavailable:
            await self.runners[command.runner].start()
            return await self._session(command, world, probe=True)

    async def _session(self, command: commands.OpenSession, world: World, probe: bool) -> list[Fact]:
        runner = self.runners[command.runner]
        if command.reuse is not None and await runner.has_session(command.reuse):
            return [runs.SessionOpened(command.issue, command.run, command.key, command.reuse, reused=True)]
        session = await runner.find_session(command.session_key, command.directory) if probe else None
        if session is None:
            flow = world.flows[command.issue]
            story = PurePosixPath(story_of(flow.issue, world.settings.labels)).stem
            role = f"{story} {flow.run.phase} · " if story and flow.run is not None else ""
            session = await runner.open_session(
                SessionRequest(
                    key=command.session_key,
                    title=f"ashep {role}{command.run}",  # people look for it by that
                    access=command.access,
                    agent=command.slug,
                    model=command.model,
                    permissions=command.permissions,
                    directory=command.directory,
                    snapshot=self._snapshot(command, world) if world.settings.isolated else "",
                    sandbox=command.sandbox,
                )
            )
        return [runs.SessionOpened(command.issue, command.run, command.key, session)]

    def _snapshot(self, command: commands.OpenSession, world: World) -> str:
        """Give the issue's words, as far as they are kept: who works alone in a place has no tracker."""
        flow = world.flows[command.issue]
        if command.access == "read" or flow.text is None or not self.blobs.has(flow.text):
            return ""
        text = _TEXT.validate_json(self.blobs.text(flow.text))
        words = (
            ("", text.description),
            ("Design", text.design),
            ("Acceptance", text.acceptance),
            ("Notes", text.notes),
        )
        parts = (f"{name}\n\n{said}".strip() for name, said in words if said)
        return "\n\n".join((f"{command.issue}: {text.title}", *parts)) + "\n"

    async def _send(self, command: commands.SendPrompt, world: World, probe: bool) -> list[Fact]:
        runner = self.runners.find_runner(command.session)
        if probe and not command.again:
            turn = await runner.turn(command.session, command.message_id)
            if turn.state != "missing":
                # which life of the server was given it is not known: nothing but the present one counts as its own
                return [runs.PromptSent(command.issue, command.run, command.key, command.n, "")]
        if back := await sessions.came_back(runner, world, command.issue):
            failure = (command.issue, command.key, "a person is in the session")
            return [*back, tracker_facts.EffectFailed(*failure, infra=True)]
        instance = await runner.send(
            Prompt(
                session=command.session,
                message_id=command.message_id,
                part_id=command.part_id,
                text=self.blobs.text(command.blob),
                agent=command.slug,
                model=command.model,
            )
        )
        return [runs.PromptSent(command.issue, command.run, command.key, command.n, instance)]

    # --- people -------------------------------------------------------------------------------------------------

    async def _notify(self, command: commands.SendNotice, world: World, *, again: bool) -> list[Fact]:
        target = targets(world.settings.notify).get(command.target)
        if target is None:
            raise NotSent("it is in the configuration no more")
        if self.notifier is None:
            raise NotSent("nobody is here who could tell people")
        address = next(iter(world.settings.ui.origins), None)
        if address is None and self._where is not None:
            address = await to_thread.run_sync(self._where)
        about, head = (command.notices, world.instance, command.key), self._head()
        message = message_of(*about, again=again, address=address, head=head)
        await self.notifier.send(target, message)
        return [resources.NoticeSent(command.key, command.target)]
