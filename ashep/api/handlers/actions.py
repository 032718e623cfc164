"""What people do on the page: answers, as the commands write them, under the person's own name; pauses by the daemon.

Nothing is decided here. An answer is a label and a comment in the tracker (`ashep.actions.answers`), which count when
the daemon sees them, also one that starts tomorrow. It names the question that the person saw: where another one stands
there by now, nothing is written.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from ashep.actions import answers
from ashep.adapters.system.control_socket import NotListening, ask
from ashep.api.handlers.queries import NotFound, QueryHandlers
from ashep.api.handlers.seen_files import find_unseen
from ashep.api.handlers.tickets import alone
from ashep.api.schemas import actions
from ashep.config import load, settings_in
from ashep.core.policy.settings import Labels, Settings
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import tracker_of
from ashep.journal.lock import holder
from ashep.ports.tracker import Tracker
from ashep.views import status
from ashep.views.json_types import IssueJson
from ashep.views.times import stamp

Trackers = Callable[[Path, Settings, str], Tracker]
_Answered = tuple[str | None, answers.PendingAnswer]

_ANSWERS = {"approve": "approved", "reject": "changes_requested", "answer": ""}

READER = "ashep-service"
"""Under which name the tracker is read."""

EVERY = 10.0
"""Seconds between looks into the tracker for answers, where nobody answers here."""


class StaleAnswer(AshepError):
    """What the person answered is not what is asked now."""


class NotAnApprover(AshepError):
    """The person is none whose answer counts."""


class NoDaemon(AshepError):
    """Nobody is there who could do it."""


@dataclass
class ActionHandlers:
    """Those of one project."""

    pictures: QueryHandlers
    now: Callable[[], datetime]
    tracker_of: Trackers = tracker_of
    ask: Callable[[Path, Mapping[str, Any]], dict[str, Any]] = ask
    """Asks the daemon."""
    _under_way: set[str] = field(default_factory=set[str])
    _answered: dict[str, tuple[str, str | None]] = field(default_factory=dict[str, tuple[str, "str | None"]])
    """Of each issue the last answer, and the question that it was to."""
    _given: dict[str, _Answered] = field(default_factory=dict[str, "_Answered"])
    """What stood in the tracker at the last look, with the question that was open then."""
    _written: int = 0
    """How often somebody wrote here."""
    _read: tuple[int, float] = (-1, 0.0)
    """How often that was at the last look, and when it began."""
    _reads: anyio.Lock = field(default_factory=anyio.Lock)

    async def act(self, person: str, issue: str, wanted: actions.Act) -> actions.Done:
        """Execute what a person wants of an issue; once at a time for each.

        Raises `StaleAnswer`, `NotAnApprover`, `NotFound`, `Busy`, `NotAsked`, `UsageError`, and what the tracker does.
        """
        with alone(self._under_way, issue, f"an answer to {issue} is being written"):
            settings = await to_thread.run_sync(settings_in, self.pictures.folder)
            if (reason := answers.why_not_counted(settings, person)) is not None:
                raise NotAnApprover(reason)
            stands, known = await self.pictures.read(
                lambda seen: (status.read_issue(seen.database, issue), status.read_model_position(seen.database))
            )
            if stands is None:
                raise NotFound(f"nothing is known of an issue {issue}")
            _check(stands, wanted)
            if wanted.do == "approve":
                answers.refuse_unsigned(settings, issue)
                if (reason := await find_unseen(self.pictures, stands, wanted.seen)) is not None:
                    raise StaleAnswer(reason)
            answers_it = wanted.do in _ANSWERS
            if wanted.do == "retry" and wanted.phase is not None:
                policies = (await to_thread.run_sync(load, self.pictures.folder)).policies.policies
                answers.check_phase(wanted.phase, policies, stands["policy"])
            try:
                async with aclosing(self.tracker_of(self.pictures.folder.parent, settings, person)) as tracker:
                    if answers_it and self._answered.get(issue) == (wanted.do, wanted.asked):
                        stands_now = (await answers.find_answers(tracker, settings, [issue])).get(issue)
                        if stands_now is None or (stands_now.by, stands_now.answer) == (person, _ANSWERS[wanted.do]):
                            raise StaleAnswer("that was answered so already; ashep sees it at its next look")
                    said, beside = await self._write(tracker, settings.labels, issue, wanted, stands, known)
            finally:
                self._written += 1
            if answers_it:
                self._answered[issue] = wanted.do, wanted.asked
        return actions.Done(said=f"{issue}: {said} as {person}{beside and f'; {beside}'}")

    async def list_answers(self) -> actions.Answers:
        """Give the answers that stand in the tracker, and that no daemon has followed yet. Raises what it does."""
        asking, seq = await self.pictures.read(
            lambda seen: (status.asking(seen.database), status.read_model_position(seen.database)[1])
        )
        async with self._reads:
            began, written = anyio.current_time(), self._written
            if asking and (written != self._read[0] or began - self._read[1] >= EVERY):
                settings = await to_thread.run_sync(settings_in, self.pictures.folder)
                async with aclosing(self.tracker_of(self.pictures.folder.parent, settings, READER)) as tracker:
                    newest = await answers.find_answers(tracker, settings, asking)
                self._given = {issue: (asking[issue], one) for issue, one in newest.items()}
                self._read = written, began
        items = [
            actions.StandingAnswer(issue=issue, id=one.id, answer=one.answer, by=one.by, at=stamp(one.at))
            for issue, (asked, one) in self._given.items()
            if asking.get(issue) == asked
        ]
        return actions.Answers(seq=seq, running=holder(self.pictures.state) is not None, items=items)

    async def _write(
        self,
        tracker: Tracker,
        labels: Labels,
        issue: str,
        wanted: actions.Act,
        stands: IssueJson,
        known: answers.Known,
    ) -> tuple[str, str]:
        """Write; say what was done, and what else happened in the same moment."""
        at, words, instead = self.now(), clean(wanted.message).strip() or None, wanted.instead or False
        match wanted.do:
            case "approve" | "reject":
                approved = wanted.do == "approve"
                beside = await answers.answer(
                    tracker, labels, issue, approved=approved, comment=words, at=at, known=known, instead=instead
                )
                return "approved" if approved else "changes requested", beside
            case "answer":
                leads_back = stands["question"] is not None and stands["question"]["kind"] == "input"
                beside = await answers.say(
                    tracker, labels, issue, words or "", at, known, instead=instead, leads_back=leads_back
                )
                return "answered", beside
            case "retry":
                held = stands["state"] == "not_eligible"
                await answers.retry(tracker, labels, issue, phase=wanted.phase, held=held, comment=words, at=at)
                return "starts afresh", ""
            case "take":
                new = await answers.take(tracker, labels, issue, comment=words, at=at)
                return "taken" if new else "was taken already", ""
            case "release":
                await answers.release(tracker, labels, issue, comment=words, at=at)
                return "goes on", ""

    # --- of all ---------------------------------------------------------------------------------------------------

    async def pause(self, person: str, wanted: actions.Pause) -> actions.Done:
        """Let no run start. Raises `NoDaemon`, and `AshepError` where the daemon refuses."""
        end = self.now() + timedelta(minutes=wanted.minutes) if wanted.minutes is not None else None
        request = {"do": "pause", "until": end and end.isoformat(), "why": clean(wanted.why)}
        answer = await self._daemon(person, request | {"provider": wanted.provider})
        under_way = f"; under way, and brought to an end: {', '.join(answer['runs'])}" if answer["runs"] else ""
        return actions.Done(said=f"paused {f'until {stamp(end)}' if end else 'until it is resumed'}{under_way}")

    async def resume(self, person: str, wanted: actions.Resume) -> actions.Done:
        """Go on. Raises as `pause` does."""
        answer = await self._daemon(person, {"do": "resume", "why": clean(wanted.why), "provider": wanted.provider})
        return actions.Done(said="; ".join(answer["ended"]) or "nothing was paused")

    async def cancel(self, person: str, wanted: actions.Cancel) -> actions.Done:
        """Stop what is done for an issue, which parks. Raises as `pause` does."""
        answer = await self._daemon(person, {"do": "cancel", "target": wanted.target})
        return actions.Done(said=f"{answer['issue']}: cancelled and parked")

    async def _daemon(self, person: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return await to_thread.run_sync(self.ask, self.pictures.state, request | {"by": person})
        except NotListening as error:
            raise NoDaemon("ashep is not running: nothing runs and nothing starts; `ashep work` starts it") from error


def _check(stands: IssueJson, wanted: actions.Act) -> None:
    """Raise `StaleAnswer` where the person saw something else than what stands there."""
    if wanted.do in _ANSWERS:
        question = stands["question"]
        if question is None or question["asked"] != wanted.asked:
            now = f"{question['phase']}: {question['text']}" if question else "nothing is asked any more"
            raise StaleAnswer(f"that was another question; now {now}")
    if wanted.do == "approve" and set(stands["flags"]) - set(wanted.flags):
        raise StaleAnswer(f"its work touches {', '.join(stands['flags'])}: say that you saw it")
