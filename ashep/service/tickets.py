"""What the service is asked about issues, carried out over the ports of tracker, annotations and verifier.

It is no part of the loop: the daemon has its own way to the verifier, and adopts the checks of an issue when it begins.
What is written here is an issue's acceptance criteria, on request, and its verifications, in keys of their own.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
from anyio import to_thread

from ashep.annotations import Annotated, Annotations
from ashep.config.criteria import Reading, examine, read_criteria
from ashep.config.criteria_put import read_given
from ashep.core.criteria import hash_of
from ashep.core.evidence import Status
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.issue_checks import NoSuchIssue, of, seen, set_checks, where
from ashep.ports import Seen, Tracker
from ashep.service import history
from ashep.service.models import (
    CheckAnswer,
    Checks,
    HistoryAnswer,
    StatusAnswer,
    SummaryAnswer,
    TicketAnswer,
    VerificationAnswer,
)
from ashep.service.places import Places
from ashep.verification import Verifier
from ashep.verifying import Outputs, Verified, verify

AT_ONCE = 2
"""Issues that are verified at one time; others wait."""


class Busy(AshepError):
    """The issue is being verified already."""


class Ending(AshepError):
    """The service ends."""


@dataclass
class Tickets:
    """The issues of a project, for the service."""

    tracker: Tracker
    annotations: Annotations
    verifier: Verifier
    outputs: Outputs
    places: Places
    now: Callable[[], datetime]
    types: tuple[str, ...] = ()
    """Types of checks that the user registered."""
    _running: set[str] = field(default_factory=set[str])
    _turns: anyio.CapacityLimiter | None = None
    _scopes: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])
    _ending: bool = False

    def end(self) -> None:
        """Give up what is being verified, and begin nothing more: whoever asked is told so (`Ending`)."""
        self._ending = True
        for scope in self._scopes:
            scope.cancel()

    async def verify(self, issue: str, branch: str, repository: str) -> VerificationAnswer:
        """Carry the checks of an issue out on the tip of a branch, and write down what came of it.

        Raises `Busy`, `Ending`, `NoSuchIssue`, `NoChecks`, `ConfigErrors`, and what `Places.candidate` and the tracker
        do.
        """
        with self._alone(issue):
            found = await seen(self.tracker, issue)
            criteria = await to_thread.run_sync(of, found, self.types)
            candidate = await self.places.candidate(repository, branch)
            self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)
            with self._until_the_end():
                async with self._turns:
                    verified = await verify(self.verifier, issue, criteria, candidate)
                await self._write_down(verified)
                return self._told(verified)
        raise Ending(f"the service ends: {issue} was not verified")

    @contextmanager
    def _alone(self, issue: str) -> Generator[None]:
        if issue in self._running:
            raise Busy(f"{issue} is being verified already: ask for its status")
        self._running.add(issue)
        try:
            yield
        finally:
            self._running.discard(issue)

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

    async def _write_down(self, verified: Verified) -> None:
        """Add it to the issue's log; what was read a moment ago is what it is added to."""
        before = await self._annotated(verified.issue)
        await self.annotations.annotate(verified.issue, history.added(before.metadata, verified, self.now()))

    def _told(self, verified: Verified) -> VerificationAnswer:
        told = verified.as_json(self.outputs)
        return VerificationAnswer(
            ticket_id=verified.issue,
            verification_status=verified.status,
            checks=tuple(CheckAnswer(**one) for one in told["checks"]),
            summary=SummaryAnswer(**told["summary"]),
            **{key: told[key] for key in ("commit", "tree", "base", "criteria", "isolated")},
        )

    async def status(self, issue: str) -> StatusAnswer:
        """Say how an issue stands; raises `NoSuchIssue`."""
        found = await self._annotated(issue)
        return StatusAnswer(**await self._standing(issue, found))

    async def history(self, issue: str) -> HistoryAnswer:
        """Say how an issue stands, and how it came to that; raises `NoSuchIssue`."""
        found = await self._annotated(issue)
        log = history.read(found.metadata)
        return HistoryAnswer(**await self._standing(issue, found), verification_log=log)

    async def ticket(self, issue: str) -> TicketAnswer:
        """Show an issue and its checks; raises `NoSuchIssue`."""
        shown, found = await seen(self.tracker, issue), await self._annotated(issue)
        return await self._ticket(shown, found)

    async def edit(self, issue: str, acceptance: str | Checks) -> TicketAnswer:
        """Replace the acceptance criteria, or the block of checks in them.

        Raises `ConfigErrors` where the checks are wrong, before anything is written, and `NoSuchIssue`.
        """
        if isinstance(acceptance, str):
            await self._annotated(issue)
            await to_thread.run_sync(read_criteria, acceptance, "acceptance_criteria", self.types)
            await self.annotations.set_acceptance(issue, acceptance)
        else:
            text = json.dumps(acceptance.model_dump(mode="json"), indent=2, ensure_ascii=False)
            given = await to_thread.run_sync(read_given, text, "acceptance_criteria.json", self.types)
            await set_checks(self.annotations, issue, given, self.types)
        return await self.ticket(issue)

    async def _annotated(self, issue: str) -> Annotated:
        found = await self.annotations.read(issue)
        if found is None:
            raise NoSuchIssue(f"there is no issue {issue}")
        return found

    async def _reading(self, issue: str, acceptance: str) -> Reading:
        return await to_thread.run_sync(examine, clean(acceptance), where(issue), self.types)

    async def _standing(self, issue: str, found: Annotated, reading: Reading | None = None) -> dict[str, Any]:
        """Give the fields of `StatusAnswer`."""
        log = history.read(found.metadata)
        status: Status | None = log[-1].status if log else None
        if reading is None and log:
            reading = await self._reading(issue, found.acceptance)
        present = None if reading is None or reading.criteria is None else hash_of(reading.criteria)
        return {
            "ticket_id": issue,
            "verification_status": status,
            "current": log[-1].criteria == present if log else None,
            "running": issue in self._running,
        }

    async def _ticket(self, shown: Seen, found: Annotated) -> TicketAnswer:
        issue = shown.issue.id
        reading = await self._reading(issue, found.acceptance)
        criteria = reading.criteria
        standing = await self._standing(issue, found, reading)
        return TicketAnswer(
            **standing,
            title=shown.issue.title,
            status=shown.issue.status,
            acceptance_criteria=clean(found.acceptance),
            criteria=None if criteria is None else hash_of(criteria),
            checks=criteria,
            problems=tuple(map(str, reading.findings)),
        )
