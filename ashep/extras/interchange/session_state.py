"""Session state of a flow: where it is in the words of its policy's transition table, and how it came there.

Told from the database's rows alone, without pydantic, as every command that only looks.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ashep.extras.interchange import state_names
from ashep.extras.interchange.state_names import States, event_of, named_phases
from ashep.views import Data, Database

OTHERS = {
    "dispatch": "an agent began",
    "approved": "a person said yes",
    "changes_requested": "a person said no",
    "deadline": "nobody answered in time",
    "parked": "it was given up, and waits for a person",
    "blocked": "an agent, or somebody else, needs a person",
    "person": "a person put it there: a label, a retry, another status",
    "taken_again": "it was taken after it had been closed, or in the phase of its label",
    "adopted": "it was found under our name, and is gone on with",
    "given_back": "it was given back to be taken again",
    "left": "it is a person's now",
    "closed": "somebody closed it",
}
"""Events of a history that stand in no table, and what they mean."""

_ANSWERS = ("approved", "changes_requested")
_LEADING = ("IssueTaken", "IssueAdopted", "PhaseEntered", "PersonAsked")
"""Records at which the policy that is in force by then counts."""


def session_state(database: Database | None, issue: str) -> Data | None:
    """Tell where an issue is; None: nothing is known of it."""
    if database is None:
        return None
    stands = database.execute("SELECT title, policy FROM issues WHERE issue = ?", [issue]).fetchone()
    if stands is None:
        return None
    policies, name = _policies(database), stands["policy"]
    told = _Telling(States(named_phases(policies(0, name))))  # where the journal was pruned: as of later
    for row in database.execute("SELECT seq, at, type, body FROM facts WHERE issue = ? ORDER BY seq", [issue]):
        body = json.loads(row["body"])
        if row["type"] in _LEADING:
            name = body.get("policy", name)
            told.states = States(named_phases(policies(row["seq"], name)))
        for to, event, route, run in told.follow(row["type"], body):
            step = {"from": told.state, "event": event, "to": to, "route_to": route, "run": run}
            told.history.append({"seq": row["seq"], "at": row["at"], **step, "why": body.get("why", "")})
            told.state, told.route = to, route
    last = told.history[-1] if told.history else None
    return {
        "version": 1, "issue": issue, "title": stands["title"], "policy": stands["policy"], "state": told.state,
        "route_to": told.route, "phase": told.phase, "run": told.run, "since": last["at"] if last else None,
        "history": told.history,
    }  # fmt: skip


def _policies(database: Database) -> Callable[[int, str | None], Data]:
    """Give what finds a policy as it was in force at a number of the journal; one that is not known has no phases."""
    rows = database.execute("SELECT seq, body FROM facts WHERE type = 'Adopted' ORDER BY seq DESC")
    bodies = [(row["seq"], json.loads(row["body"])) for row in rows]
    adopted = [(seq, body["content"]) for seq, body in bodies if body["kind"] == "policies"]

    @cache
    def parse_policy(content: str, name: str | None) -> Data:
        unknown: Data = {"phases": []}
        return json.loads(content)["policies"].get(name, unknown)

    def find(seq: int, name: str | None) -> Data:
        known = [content for at, content in adopted if at <= seq] or [content for _, content in adopted[-1:]]
        return parse_policy(known[0] if known else '{"policies": {}}', name)

    return find


Step = tuple[str, str, str | None, str | None]
"""The next state, the event, whose turn it is, and the run."""


@dataclass
class _Telling:
    """What is known while the rows go by."""

    states: States
    state: str = state_names.IDLE
    route: str | None = None
    phase: str | None = None
    run: str | None = None
    asked: str | None = None
    """The human phase that asked last; None: an agent did."""
    cause: tuple[str, str | None, str | None] | None = None
    """What the next step follows from: the event, the phase that it came from, and the run."""

    def __post_init__(self) -> None:
        self.history: list[Data] = []

    def follow(self, kind: str, body: Data) -> Iterator[Step]:
        match kind:
            case "IssueTaken":
                self.cause = (state_names.TAKEN, None, None)
            case "RunEnded":
                self.cause, self.run = self._reported(body), body["run"]
            case "PersonAnswered":
                self.cause = (body["answer"], self.asked, None)
            case "RetryScheduled":
                self.cause = None
            case "CycleBegan" if self.cause is None or self.cause[0] not in (state_names.TAKEN, *_ANSWERS):
                self.cause = ("person", None, None)
            case "IssueAdopted":
                self.cause, self.phase = ("adopted", None, None), body["phase"]
                if body["kind"] == "park":
                    yield from self._finish(state_names.BLOCKED, "adopted", state_names.HUMAN)
                elif body["kind"] == "ask":
                    yield from self._handle_question(body)
                else:
                    yield from self._entered(body["phase"])
            case "PhaseEntered":
                yield from self._entered(body["phase"])
            case "RunPlanned" if body["phase"] in self.states:
                self.run = body["run"]
                to = self.states.name_state(body["phase"])
                if to != self.state:
                    yield to, "dispatch", body["phase"], body["run"]
            case "PersonAsked":
                yield from self._handle_question(body)
            case "IssueParked":
                yield from self._finish(state_names.BLOCKED, "parked", state_names.HUMAN)
            case "IssueFinished":
                event, _, run = self.cause or ("closed", None, None)
                success = event.endswith(".done")
                self.cause = None
                yield state_names.DONE if success else state_names.APPROVED, event, state_names.COMPLETE, run
            case "IssueClosed" if self.state not in (state_names.APPROVED, state_names.DONE):
                yield from self._finish(state_names.DONE, "closed", state_names.COMPLETE)
            case "IssueGivenBack" | "IssueLeft":
                yield from self._finish(state_names.IDLE, "given_back" if kind == "IssueGivenBack" else "left", None)
            case _:
                pass

    def _reported(self, body: Data) -> tuple[str, str | None, str | None] | None:
        place = next((place for place in self.states.places if place.name == self.phase), None)
        if place is None or body["state"] == "aborted":
            return None
        outcome: Data = body.get("outcome") or {}
        result = outcome.get("result", "failed")
        edge = (outcome.get("verdict") or "success") if result == "success" else result
        return event_of(place, edge), place.name, body["run"]

    def _caused(self, phase: str, otherwise: str) -> tuple[str, str | None, str | None]:
        """Say what a step to a phase follows from, and forget it."""
        event, source, run = self.cause or (otherwise, None, None)
        self.cause, self.phase = None, phase
        first = self.states.places[0].name if self.states.places else phase
        if event == state_names.TAKEN and (self.state != state_names.IDLE or phase != first):
            event = "taken_again"
        return event, source, run

    def _entered(self, phase: str) -> Iterator[Step]:
        event, source, run = self._caused(phase, "person")
        if phase in self.states:
            yield self.states.towards(source, phase), event, phase, run

    def _handle_question(self, body: Data) -> Iterator[Step]:
        phase = body["phase"]
        event, _, run = self._caused(phase, "deadline" if self.route == state_names.HUMAN else "blocked")
        if body.get("human_phase", False) and phase in self.states:
            self.asked = phase
            yield self.states.name_state(phase), event, state_names.HUMAN, run
        else:
            self.asked = None
            yield state_names.BLOCKED, event if event == "adopted" else "blocked", state_names.HUMAN, run

    def _finish(self, state: str, event: str, route: str | None) -> Iterator[Step]:
        self.cause = None
        if state != self.state or event == "parked":
            yield state, event, route, None
