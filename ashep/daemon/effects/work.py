"""Effects on the work of issues: looking into it, and bringing it onto the base (`ashep.daemon.effects.executor`)."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from pydantic import TypeAdapter

from ashep.config.checks.parser import KEY, Compiled, apart, compiled_here, read_criteria
from ashep.config.findings import ConfigErrors
from ashep.core.delivery.base_checks import base_of, base_revisions
from ashep.core.delivery.closing_metadata import (
    LOG,
    WITH_COMMENT,
    Notes,
    appended,
    entry_of,
    escalation_of,
    notes_of,
    unknown,
)
from ashep.core.delivery.landing import found_before, is_wanted
from ashep.core.facts import delivery
from ashep.core.facts.commands import IntegrateWork, MoveBase, PostComment, VerifyWork
from ashep.core.facts.tracker import EffectFailed
from ashep.core.facts.vocabulary import Fact
from ashep.core.impact.changes import Impact, impact_of
from ashep.core.impact.config_references import NOTHING, ReferencedFiles, named_by
from ashep.core.policy.checks import Check, Criteria, ManualCheck, canonical, hash_of
from ashep.core.policy.policies import Policy, Verify
from ashep.core.policy.settings import ImpactSettings, Settings
from ashep.core.reconcile.observe import criteria_read
from ashep.core.state.flow import Flow
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.errors import AshepError, TrackerRefused, TrackerUnavailable
from ashep.ports.journal import Blobs
from ashep.ports.landing import Advanced, Candidate, Conflict, Integrated, Landing
from ashep.ports.tracker import Annotations, IssueText, Seen, Tracker
from ashep.ports.verifier import Verifier, VerifyRequest, verify_against_base, verify_before_work
from ashep.ports.workspaces import Diffs
from ashep.redaction import MARK

AT_ONCE = 2
"""How many verifications are executed at once: their programs are as heavy as the project's tests."""

UNWANTED = 1.0
"""Seconds between looks whether a verification is still wanted."""

MOST_LOG = 20_000
"""Characters of what failed that an agent is shown."""

WorkCommand = VerifyWork | IntegrateWork | MoveBase
_CRITERIA: TypeAdapter[Criteria] = TypeAdapter(Criteria)


@dataclass(frozen=True, slots=True)
class DeliveryAdapters:
    """What looks into the work of issues, and lands it."""

    repository: Path
    verifier: Verifier
    diffs: Diffs
    landing: Landing
    annotations: Annotations | None = None
    """Reads what stands on issues; None: the tracker has no place for such things."""
    compiled: Compiled = compiled_here
    """Judges the patterns of an issue's checks."""


class WorkEffects:
    """Executes what is asked for about the work of issues.

    `means`: what does so, as the settings say; None: nothing can. `head`: gives the head of the journal's chain.
    """

    def __init__(
        self,
        tracker: Tracker,
        blobs: Blobs,
        means: Callable[[Settings], DeliveryAdapters] | None = None,
        head: Callable[[], str] = str,
    ) -> None:
        self._tracker, self._blobs, self._head = tracker, blobs, head
        lacking = "nothing here can look into the work of issues, or land it; set landing.mode to branch"
        self._means = CachedFactory(means, lacking)
        self._verifying, self._landing = anyio.CapacityLimiter(AT_ONCE), anyio.Lock()

    async def execute(self, command: WorkCommand, now: Callable[[], World]) -> list[Fact]:
        """Do what a command says and give its answer; it may have been done before, in part or whole.

        Raises `AshepError` with what a person can do.
        """
        means = self._means.get_part(now().settings)
        match command:
            case VerifyWork():
                return await self._verify_if_wanted(means, command, now)
            case IntegrateWork():
                async with self._landing:  # an issue that is not to land any more may still be at it
                    return await self._integrate(means.landing, command, now().flows[command.issue])
            case MoveBase():
                async with self._landing:
                    return await self._move(means.landing, command)

    async def settle(self, settings: Settings) -> None:
        """Finish or undo what an earlier life left half done on a base."""
        if self._means.possible:
            async with self._landing:
                await self._means.get_part(settings).landing.settle()

    async def touched(self, sealed: delivery.TreeSealed, flow: Flow, world: World) -> delivery.TreeSealed:
        """Say with what was sealed which files all that the issue changed touches, and what else."""
        own = flow.work.own
        if not self._means.possible or own is None or not own.base:
            return sealed
        if sealed.head == own.base:
            return replace(sealed, files=delivery.FileMap())
        settings, named = world.settings, named_by(world.settings, world.policies)
        impact = await assess(self._means.get_part(settings).diffs, own.fits, sealed.head, settings.impact, named)
        files = delivery.shortened(impact.files)
        if files != delivery.FileMap():
            files = replace(files, lines=(impact.added, impact.removed))
        return replace(sealed, flags=impact.raised, files=files)

    async def fork(self, flow: Flow, settings: Settings) -> str:
        """Give the commit where the issue's branch and the one that it must fit last were one; empty: none is known."""
        own = flow.work.own
        if not self._means.possible or own is None or not own.base or not own.head:
            return own.base if own is not None else ""
        diffs = self._means.get_part(settings).diffs
        try:
            return (await diffs.read(own.fits, own.head)).base
        except AshepError:
            return own.base

    async def notes(self, flow: Flow, world: World, *, closed: bool) -> Notes:
        """Say what is to stand on an issue that is about to be closed, or to wait for a person; nothing here keeps it
        from that. The log is read first, which is a call of the tracker's program: while it waits, only for a failure.
        """
        notes = notes_of(flow, closed=closed)
        if closed and notes and (journal := self._head()):
            notes["journal"] = journal
        if not flow.work.proofs or not self._means.possible or not (closed or flow.work.proofs[-1].status != "passing"):
            return notes
        policy = world.policy(flow)
        phase = policy.phase(flow.phase) if policy is not None and flow.phase else None
        most = (phase.verify if phase is not None else None) or Verify()
        escalated = escalation_of(flow, most.max_attempts)
        with suppress(AshepError):  # without the log as it stands there, nothing can be added to it
            annotations = self._means.get_part(world.settings).annotations
            if annotations is not None and (found := await annotations.read(flow.issue.id)) is not None:
                log = found.metadata.get(LOG)
                entries = [*map(entry_of, flow.work.proofs), *([escalated] if escalated is not None else ())]
                notes[LOG] = appended(log, unknown(log, entries))
        return notes

    async def note(self, comment: PostComment, world: World) -> None:
        """Put that on an issue which begins to wait with this comment, and without a write of its own: again, where the
        comment is posted again. A tracker that does not answer is an error of both; all else keeps no comment back.
        """
        flow = world.flows.get(comment.issue)
        if flow is None or not self._means.possible or not comment.name.startswith(WITH_COMMENT):
            return
        annotations = self._means.get_part(world.settings).annotations
        if annotations is None or not (notes := await self.notes(flow, world, closed=False)):
            return
        try:
            await annotations.annotate(flow.issue.id, notes)
        except TrackerUnavailable:
            raise
        except AshepError:
            return

    async def base_tip(self, world: World) -> str | None:
        """Return the commit at which issues begin; None: there is none that git can read."""
        diffs = self._means.get_part(world.settings).diffs
        with suppress(AshepError):
            for revision in base_revisions(world):
                if (tip := await diffs.find(revision)) is not None:
                    return tip
        return None

    async def check_base(self, name: str, world: World, tip: str | None, *, again: bool) -> delivery.BaseChecked:
        """Run the checks of a policy on the base; `again`: whatever is known of it."""
        branch, known = base_of(world) or "HEAD", world.bases.get(name)
        before = known.found if known is not None else None
        try:
            if tip is None:
                raise AshepError("there is no base: the checkout is on no branch with a commit")
            if before is not None and any(result.fails for result in before.results):
                before = None  # what failed may pass by now
            means, (criteria, _) = self._means.get_part(world.settings), to_check(world.policy_of(name), "", "")
            async with self._verifying:
                request = VerifyRequest(means.repository, tip, tip, criteria, before, afresh=again)
                found = await verify_before_work(means.verifier, request)
        except AshepError as error:
            return delivery.BaseChecked(name, branch, "", error=clean(str(error))[:500])
        return delivery.BaseChecked(name, branch, tip, found)

    # --- what is checked --------------------------------------------------------------------------------------------

    async def adopted(self, seen: Seen, settings: Settings) -> delivery.CriteriaAdopted:
        """Adopt an issue's checks as they stand."""
        issue = seen.issue.id
        if seen.text.left_out:
            return delivery.CriteriaAdopted(issue, "", left_out=seen.text.left_out)
        try:
            criteria = await self._read(seen.text, issue, settings)
        except ConfigErrors as error:
            return delivery.CriteriaAdopted(issue, "", error=str(error))
        if criteria is None:
            return delivery.CriteriaAdopted(issue, "")
        manual = tuple(check.verify.question for check in criteria.checks if isinstance(check, ManualCheck))
        text = self._blobs.redact(canonical(criteria))
        if MARK in text:  # what is kept, and would be executed, is not what was written
            told = f"they hold a secret of this machine, which is known as {MARK} only: take it out of them"
            return delivery.CriteriaAdopted(issue, "", error=told)
        blob = await self._blobs.keep(text)
        return delivery.CriteriaAdopted(issue, hash_of(criteria), blob, len(criteria.checks), manual)

    async def changed(self, seen: Seen, flow: Flow | None, settings: Settings) -> list[Fact]:
        """Compare an issue's checks as they stand with those that were adopted."""
        if flow is None:
            return []
        try:
            criteria = await self._read(seen.text, seen.issue.id, settings)
        except ConfigErrors:
            criteria = None
        return criteria_read(flow, criteria)

    async def _read(self, text: IssueText, issue: str, settings: Settings) -> Criteria | None:
        if KEY not in text.acceptance:  # as of most issues
            return None
        types, where = tuple(settings.verification.types), f"acceptance criteria of {issue}"
        compiled = self._means.get_part(settings).compiled if self._means.possible else compiled_here
        return await apart(partial(read_criteria, text.acceptance, where, types), compiled, text.acceptance)

    async def _verify_if_wanted(
        self, means: DeliveryAdapters, command: VerifyWork, now: Callable[[], World]
    ) -> list[Fact]:
        """Verify while something would follow from it: checks may take hours, and people change their minds."""

        async def give_up(verifying: anyio.CancelScope) -> None:
            while is_wanted(now().flows[command.issue], command):
                await anyio.sleep(UNWANTED)
            verifying.cancel()

        why = "nobody wants to know any more what these checks find"
        answer: list[Fact] | AshepError = [EffectFailed(command.issue, command.key, why, infra=False)]
        async with anyio.create_task_group() as group:
            group.start_soon(give_up, group.cancel_scope)
            try:
                async with self._verifying:
                    if is_wanted(now().flows[command.issue], command):  # it may have waited for long
                        answer = await self._verify(means, command, now())
            except AshepError as error:
                answer = error  # the group would wrap it
            group.cancel_scope.cancel()
        if isinstance(answer, AshepError):
            raise answer
        return answer

    async def _verify(self, means: DeliveryAdapters, command: VerifyWork, world: World) -> list[Fact]:
        flow = world.flows[command.issue]
        facts: list[Fact] = []
        blob = command.criteria
        if command.adopt:
            seen = await self._tracker.issue(command.issue)
            if seen is None:
                raise TrackerRefused(f"the tracker has no issue {command.issue}")
            adopted = await self.adopted(seen, world.settings)
            facts.append(adopted)
            blob = adopted.blob
        own = await self._text(blob)
        (known, afresh), policy = found_before(flow), world.policy(flow)
        if policy is None and not command.run:  # without its checks anything would land
            raise AshepError(f"policies.yaml has no policy {flow.policy} any more, whose checks the work must pass")
        criteria, strangers = to_check(policy, command.phase, own)
        request = VerifyRequest(means.repository, command.commit, command.base, criteria, known, strangers, afresh)
        before = flow.work.own.base if flow.work.own is not None else ""
        found = await verify_against_base(means.verifier, request, before or command.base)
        changes = await _changes(means.diffs, flow, world.settings, command)
        log = await self._log(found, criteria, unchanged=command.change and not changes)
        checks = found.checks if criteria.checks else ""
        verified = delivery.WorkVerified(
            command.issue, command.key, found.commit, found.tree, changes, command.run, checks, found.results,
            found.isolated, log, command.change, policy is not None and policy.on_base_failure == "ignore",
        )  # fmt: skip
        return [*facts, verified]

    async def _text(self, blob: str) -> str:
        return await to_thread.run_sync(self._blobs.text, blob) if blob else ""

    async def _log(self, found: delivery.Verification, criteria: Criteria, *, unchanged: bool) -> str:
        descriptions = {check.id: check.description for check in criteria.checks}
        parts = ["The work changes nothing: its tree is that of its base."] if unchanged else []
        for one in found.results:
            if one.fails:
                about = f" ({descriptions[one.check_id]})" if descriptions.get(one.check_id) else ""
                output = (await self._text(one.output)).strip()
                blame = f"; it {one.blame}" if one.on_base else ""
                words = f"{one.check_id}{about}: {one.status}: {one.message}{blame}"
                parts.append(words + (f"\n{output}" if output else ""))
        room = MOST_LOG // max(len(parts), 1)
        for at, part in enumerate(parts):
            if len(part) > room:
                parts[at] = f"{part[: room // 4]}\n[…]\n{part[-(room - room // 4) :]}"
        return await self._blobs.keep("\n\n".join(parts)) if parts else ""

    # --- landing ----------------------------------------------------------------------------------------------------

    async def _integrate(self, landing: Landing, command: IntegrateWork, flow: Flow) -> list[Fact]:
        issue, key, head, onto = command.issue, command.key, command.head, command.onto
        what = command.branch, head, onto, command.message, command.method, self._head()
        made = await landing.integrate(Candidate(issue, *what))
        if isinstance(made, Integrated):
            return [delivery.WorkIntegrated(issue, key, head, made.base, made.commit, made.tree)]
        if isinstance(made, Conflict):
            log = await self._blobs.keep(made.text[:MOST_LOG])
            return [delivery.WorkConflicted(issue, key, head, made.base, made.paths, log)]
        told = await _forgotten(landing, command.branch)  # an earlier round may have made something
        empty = flow.work.own is not None and flow.work.own.is_empty
        return [delivery.WorkLanded(issue, key, onto, head, made.base, already=True, told=told, empty=empty)]

    async def _move(self, landing: Landing, command: MoveBase) -> list[Fact]:
        moved = await landing.advance(command.onto, command.old, command.new)
        if isinstance(moved, Advanced):
            told = (*moved.told, *await _forgotten(landing, command.branch))
            # the base may be further by now, where the answer of a move was lost: that is others' work
            return [delivery.WorkLanded(command.issue, command.key, command.onto, command.head, command.new, told=told)]
        return [delivery.LandingRefused(command.issue, command.key, moved.code, moved.why)]


def to_check(policy: Policy | None, phase: str, own: str) -> tuple[Criteria, frozenset[str]]:
    """Give what is checked in a phase, and which of it stands in the issue's text. No phase: what is in any.

    `own`: the issue's checks, as they were adopted; empty: it has none.
    """
    phases = [one for one in policy.phases if phase in ("", one.name)] if policy is not None else []
    issues = _CRITERIA.validate_json(own).checks if own else ()
    own_checks = [check for phase in phases for check in phase.checks]
    checks = tuple(_apart([*own_checks, *issues]))
    return Criteria(checks=checks), frozenset(check.id for check in checks[len(own_checks) :])


async def _forgotten(landing: Landing, branch: str) -> tuple[str, ...]:
    """Let go of what was made for a landing that is done; where that fails it is told, and undoes nothing."""
    try:
        await landing.forget(branch)
    except AshepError as error:
        return (f"what was made to land {branch} stays in the repository: {error}",)
    return ()


async def _changes(diffs: Diffs, flow: Flow, settings: Settings, command: VerifyWork) -> bool:
    """Whether work changes anything.

    After a run: whether it brings anything that neither its own beginning nor the base branch as it stands now has.
    As it lands, that branch may hold it already, because a person brought it there: then it is the issue's own work
    that counts, of which its last seal knows the files.
    """
    own = flow.work.own
    assert own is not None, "whoever has no tree has no work of its own"
    if command.run:
        onto = settings.landing.base or own.onto
        tip = await diffs.find(f"refs/heads/{onto}") if onto else None
        bases = {own.fits, tip or own.fits}
        return all([(await diffs.read(base, command.commit)).files for base in bases])
    if own.files is not None:
        return own.files != delivery.FileMap()
    held = flow.work.landing is not None and flow.work.landing.landed  # what it fits is that very work then
    return bool((await diffs.read(own.base if held else own.fits, own.head)).files)


def _apart(checks: Iterable[Check]) -> Iterable[Check]:
    """Give every check a name of its own: an issue's may have that of a policy's."""
    known = set[str]()
    for check in checks:
        name, number = check.id, 1
        while name in known:
            number += 1
            name = f"{check.id[:60]}-{number}"
        known.add(name)
        yield check if name == check.id else check.model_copy(update={"id": name})


async def assess(
    diffs: Diffs, base: str, head: str, settings: ImpactSettings, named: ReferencedFiles = NOTHING
) -> Impact:
    """Say what `head` touches since it and `base` last were one. `named`: by the configuration.

    Errors: those of `Diffs`.
    """
    return await to_thread.run_sync(impact_of, await diffs.read(base, head), settings, named)
