"""Tickets: what the service is asked about issues, executed over the ports of tracker, annotations and verifier.

It is no part of the loop: the daemon has its own way to the verifier, and adopts the checks of an issue when it begins.
What is written here is an issue's acceptance criteria, on request, and its verifications, in keys of their own.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import anyio
from pydantic import JsonValue

from ashep.actions.verify import CheckReport, Outputs, name_criteria, read_annotated, read_checks, read_issue, verify
from ashep.api.handlers import ticket_history
from ashep.api.handlers.allowed_repositories import AllowedRepositories
from ashep.api.schemas import verification
from ashep.config.checks.parser import Compiled, ParsedCriteria, apart, compiled_here, examine, read_criteria
from ashep.config.checks.writer import put, read_given
from ashep.core.delivery.workspaces import branch_for
from ashep.core.policy.checks import hash_of
from ashep.core.policy.settings import Labels
from ashep.core.text import clean
from ashep.errors import AshepError, TrackerUnavailable
from ashep.ports.tracker import AnnotatedIssue, Annotations, IssueDraft, IssuePatch, Seen, Tracker
from ashep.ports.verifier import Verifier

AT_ONCE = 2
"""Issues that are verified at one time; others wait."""

CRITERIA = "acceptance_criteria"
"""The key of acceptance criteria, as mistakes name it."""

REQUEST = "request"
"""The key of the metadata that says which request made an issue."""

ID_OF = "ashep serve"
DIGITS = 10
"""Of the hash of a request's key, in the id of the issue that it makes."""


class Busy(AshepError):
    """The issue is being verified already."""


@contextmanager
def alone(under_way: set[str], issue: str, why: str) -> Generator[None]:
    """Do something of an issue once at a time. Raises `Busy` with this reason."""
    if issue in under_way:
        raise Busy(why)
    under_way.add(issue)
    try:
        yield
    finally:
        under_way.discard(issue)


class Ending(AshepError):
    """The service ends."""


class KeyTaken(AshepError):
    """The key of a request is that of another one."""


@dataclass
class Tickets:
    """The issues of a project, for the service."""

    tracker: Tracker
    annotations: Annotations
    verifier: Verifier
    outputs: Outputs
    places: AllowedRepositories
    now: Callable[[], datetime]
    types: tuple[str, ...] = ()
    """Types of checks that the user registered."""
    compiled: Compiled = compiled_here
    """Judges the patterns of checks."""
    labels: Labels = field(default_factory=Labels)
    """The labels of the project: one names the branch that issues share."""
    _prefix: str | None = None
    _running: set[str] = field(default_factory=set[str])
    _turns: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(AT_ONCE))
    _scopes: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])
    _ending: bool = False

    def end(self) -> None:
        """Give up what is being verified, and begin nothing more: whoever asked is told so (`Ending`)."""
        self._ending = True
        for scope in self._scopes:
            scope.cancel()

    async def verify(self, issue: str, branch: str | None, repository: str | None) -> verification.VerificationAnswer:
        """Run the checks of an issue on the tip of a branch, by default of its own, and write down what came of it.

        Raises `Busy`, `Ending`, `NoSuchIssue`, `NoChecks`, `ConfigErrors`, and what `AllowedRepositories` and the
        tracker do.
        """
        with alone(self._running, issue, f"{issue} is being verified already: ask for its status"):
            found = await read_issue(self.tracker, issue)
            criteria = await apart(partial(read_checks, found, self.types), self.compiled, found.text.acceptance)
            candidate = await self.places.candidate(repository, branch or branch_for(found.issue, self.labels))
            with self._until_the_end():
                async with self._turns:
                    verified = await verify(self.verifier, issue, criteria, candidate)
                before = await read_annotated(self.annotations, issue)  # as it stood a moment ago
                log = ticket_history.added(before.metadata, verified, self.now())
                await self.annotations.annotate(verified.issue, log)
                return self._build_answer(verified)
        raise Ending(f"the service ends: {issue} was not verified")

    @contextmanager
    def _until_the_end(self) -> Generator[None]:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self._ending:
                scope.cancel()
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def _build_answer(self, verified: CheckReport) -> verification.VerificationAnswer:
        report = verified.as_json(self.outputs)
        return verification.VerificationAnswer(
            ticket_id=verified.issue,
            verification_status=verified.status,
            checks=tuple(verification.CheckAnswer(**check) for check in report["checks"]),
            summary=verification.SummaryAnswer(**report["summary"]),
            **{key: report[key] for key in ("commit", "tree", "base", "criteria", "changed", "isolated")},
        )

    async def status(self, issue: str) -> verification.StatusAnswer:
        """Say how an issue stands; raises `NoSuchIssue`."""
        found = await read_annotated(self.annotations, issue)
        checks, log = ticket_history.last_checks(found.metadata), ticket_history.read(found.metadata)
        failed = tuple(entry for entry in log if entry.status != "passing" and entry.action is None)
        return verification.StatusAnswer(**await self._standing(issue, found), checks=checks, failed_attempts=failed)

    async def history(self, issue: str) -> verification.HistoryAnswer:
        """Say how an issue stands, and how it came to that; raises `NoSuchIssue`."""
        found = await read_annotated(self.annotations, issue)
        log = ticket_history.read(found.metadata)
        return verification.HistoryAnswer(**await self._standing(issue, found), verification_log=log)

    async def ticket(self, issue: str) -> verification.TicketAnswer:
        """Show an issue and its checks; raises `NoSuchIssue`."""
        shown, found = await read_issue(self.tracker, issue), await read_annotated(self.annotations, issue)
        return await self._ticket(shown, found)

    async def listed(self, status: str | None) -> verification.TicketsAnswer:
        """List issues (`Annotations.listed`)."""
        rows = [
            verification.RowAnswer(
                ticket_id=one.id,
                title=one.title,
                status=one.status,
                verification_status=ticket_history.standing(one.metadata),
            )
            for one in await self.annotations.listed(status)
        ]
        return verification.TicketsAnswer(tickets=tuple(rows))

    async def create(self, new: verification.NewTicket, key: str | None) -> verification.TicketAnswer:
        """Create an issue, once for each `key`: its id is made of that, so that the tracker itself refuses another.

        Raises `ConfigErrors` where the checks are wrong, before anything is written, and `KeyTaken`.
        """
        acceptance = await self._acceptance(new.acceptance_criteria)
        self._prefix = self._prefix or (await self.tracker.check()).prefix
        asked = hashlib.sha256(f"{ID_OF}\0{key or secrets.token_hex(16)}".encode()).hexdigest()
        mark: JsonValue = {"key": asked, "body": hashlib.sha256(new.model_dump_json().encode()).hexdigest()}
        issue = f"{self._prefix}-{asked[:DIGITS]}"
        metadata = {ticket_history.STATUS: "pending", REQUEST: mark}
        fresh = IssueDraft(issue, new.title, new.description, new.type, new.priority, acceptance, metadata)
        try:
            await self.annotations.create(fresh)
        except TrackerUnavailable:  # it may have been created all the same
            found = await self.annotations.read(issue)
            if found is None or found.metadata.get(REQUEST) != mark:
                raise
        found = await read_annotated(self.annotations, issue)
        if found.metadata.get(REQUEST) != mark:
            raise KeyTaken(f"Idempotency-Key: it was given before, with another request, which made {issue}")
        return await self._ticket(await read_issue(self.tracker, issue), found)

    async def _acceptance(self, criteria: str | verification.Checks, former: str = "", place: str = CRITERIA) -> str:
        """Give acceptance criteria as a text, once their checks have been read. Raises `ConfigErrors`.

        Checks are put into the former text, which errors name as `place`.
        """
        if isinstance(criteria, str):
            await apart(partial(read_criteria, criteria, CRITERIA, self.types), self.compiled, criteria)
            return criteria
        text = json.dumps(criteria.model_dump(mode="json"), indent=2, ensure_ascii=False)
        checks = await apart(partial(read_given, text, f"{CRITERIA}.json", self.types), self.compiled, text)
        return put(former, checks, place, self.types)

    async def edit(self, issue: str, edit: verification.Edit) -> verification.TicketAnswer:
        """Replace what is given, in one write; of acceptance criteria perhaps only the block of checks in them.

        Raises `ConfigErrors` where the checks are wrong, before anything is written, and `NoSuchIssue`.
        """
        former, criteria = (await read_annotated(self.annotations, issue)).acceptance, edit.acceptance_criteria
        acceptance = None if criteria is None else await self._acceptance(criteria, former, name_criteria(issue))
        words = IssuePatch(edit.title, edit.description, edit.priority, acceptance)
        await self.annotations.rewrite(issue, words)
        return await self.ticket(issue)

    async def _reading(self, issue: str, acceptance: str) -> ParsedCriteria:
        reader = partial(examine, clean(acceptance), name_criteria(issue), self.types)
        return await apart(reader, self.compiled, acceptance)

    async def _standing(
        self, issue: str, found: AnnotatedIssue, reading: ParsedCriteria | None = None
    ) -> dict[str, Any]:
        log = ticket_history.read(found.metadata)
        if reading is None and log:
            reading = await self._reading(issue, found.acceptance)
        present = None if reading is None or reading.criteria is None else hash_of(reading.criteria)
        return {
            "ticket_id": issue,
            "verification_status": ticket_history.standing(found.metadata),
            "current": log[-1].criteria == present if log else None,
            "running": issue in self._running,
        }

    async def _ticket(self, shown: Seen, found: AnnotatedIssue) -> verification.TicketAnswer:
        issue = shown.issue.id
        reading = await self._reading(issue, found.acceptance)
        criteria = reading.criteria
        standing = await self._standing(issue, found, reading)
        return verification.TicketAnswer(
            **standing,
            title=shown.issue.title,
            description=shown.text.description,
            priority=shown.issue.priority,
            status=shown.issue.status,
            acceptance_criteria=clean(found.acceptance),
            criteria=None if criteria is None else hash_of(criteria),
            checks=criteria,
            problems=tuple(map(str, reading.findings)),
        )
