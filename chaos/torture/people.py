"""People: they act at any moment, knowing nothing of what ashep is about to do. In the end they put things right."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from chaos.torture.sessions import Session

if TYPE_CHECKING:
    from chaos.torture.world import World

PAT, ANN = "pat", "ann"
AGENT = "ashep-agent"


class People:
    """What people do to the tracker, the sessions and the work tree."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.dice = world.dice
        sets, excluded, paused = self._sets, ("ashep:excluded",), ("ashep:paused",)
        approve = sets("approves (asked or not)", add=("human:approved",))
        reject = sets("rejects (asked or not)", ANN, add=("human:changes_requested",))
        self._acts: dict[str, list[Callable[[str], str]]] = {
            "people_close": [sets("closes", status="closed"), self._reopen, self._delete],
            "people_assign": [
                sets("takes over", status="in_progress", assignee=PAT),
                sets("assigns to ann", assignee=ANN),
                sets("clears the assignee of", assignee=""),
            ],
            "people_status": [sets("sets to open", status="open"), sets("defers", status="deferred"), self._set_free],
            "people_phase": [
                self._phase,
                self._phase_off,
                sets("sets phase:nonsense on", add=("phase:nonsense",)),
                self._unpark,
            ],
            "people_exclude": [
                sets("excludes", add=excluded),
                sets("includes", remove=excluded),
                sets("pauses", add=paused),
                sets("ends the pause of", remove=paused),
            ],
            "people_comment": [self._comment, sets("labels", add=("team-x",))],
            "people_answer_early": [approve, reject, lambda issue: f"{approve(issue)} and {reject(issue)}"],
            "agent_answers": [self._agent_approves, self._agent_says],
            "agent_moves": [self._agent_moves],
        }

    # --- while the chaos lasts ---

    async def act(self) -> None:
        """Act now and then, each kind at its own times."""
        async with anyio.create_task_group() as group:
            for kind, acts in self._acts.items():
                if self.dice.on(kind):
                    group.start_soon(self._now_and_then, kind, acts)
            if self.dice.on("people_add"):
                group.start_soon(self._add)
            if self.dice.on("people_write"):
                group.start_soon(self._write)
            group.start_soon(self._answer)

    async def _now_and_then(self, kind: str, acts: list[Callable[[str], str]]) -> None:
        dice = self.dice.of(kind)
        while True:
            await anyio.sleep(dice.expovariate(1 / 30))
            issues = sorted(self.world.store.rows)
            if self.dice.calm:
                return
            if issues:
                self._do(dice.choice(acts), dice.choice(issues))

    def act_between(self, issue: str) -> None:
        """Act on an issue in the moment before our write reaches bd."""
        dice = self.dice.of("people_between")
        acts = [act for kind, some in self._acts.items() for act in some if not kind.startswith("agent_")]
        if issue in self.world.store.rows:
            self._do(dice.choice(acts), issue)

    def _do(self, act: Callable[[str], str], issue: str) -> None:
        if told := act(issue):
            self.world.tell(f"a person: {told} {issue}")

    async def _answer(self) -> None:
        """Answer what is asked, sooner or later; mostly yes."""
        dice = self.dice.of("answers")
        while True:
            await anyio.sleep(dice.uniform(8, 50))
            for row in list(self.world.store.rows.values()):
                if "needs:human_input" in row.labels and dice.random() < 0.6:
                    words = dice.choice(("@ashep yes", "@ashep 2", "@ashep no, not that", "yes"))
                    self.world.tell(f"a person: says {words} on {row.id}")
                    self.world.store.comment(row.id, PAT, words)
                if "needs:human_approval" in row.labels and row.status == "blocked":
                    label = "human:approved" if self.dice.calm or dice.random() < 0.75 else "human:changes_requested"
                    if label not in row.labels:
                        self.world.tell(f"a person: answers {label} {row.id}")
                        self.world.store.set(row.id, PAT, add=(label,))

    async def _add(self) -> None:
        dice = self.dice.of("people_add")
        for number in range(3):
            await anyio.sleep(dice.uniform(2, 60))
            if self.dice.calm:
                return
            issues = sorted(self.world.store.rows)
            blockers = (dice.choice(issues),) if issues and dice.random() < 0.4 else ()
            self.world.tell(f"a person: adds an issue blocked by {blockers}")
            self.world.store.add(f"late {number}", blocked_by=blockers, priority=dice.randint(0, 4))

    async def _write(self) -> None:
        dice = self.dice.of("people_write")
        while not self.dice.calm:
            await anyio.sleep(dice.expovariate(1 / 30))
            sessions = self.world.server.sessions
            busy = [session for session in sessions.all.values() if session.turn is not None]
            if busy and sessions.up and not self.dice.calm:
                self._in_session(dice.choice(busy), stop=dice.random() < 0.3)

    def _in_session(self, session: Session, *, stop: bool) -> None:
        sessions = self.world.server.sessions
        self.world.tell(f"a person: {'stops the turn' if stop else 'writes'} in {session.metadata.get('ashep')}")
        sessions.people.add(session.id)
        if stop:
            sessions.abort(session)
        else:
            sessions.take(session, {"parts": [{"type": "text", "text": "I do it myself."}]}, who="person")

    # --- acts ---

    def _sets(self, told: str, actor: str = PAT, **what: Any) -> Callable[[str], str]:
        """An act that sets this, whatever stands there."""

        def act(issue: str) -> str:
            self.world.store.set(issue, actor, **what)
            return told

        return act

    def _reopen(self, issue: str) -> str:
        if self.world.store.rows[issue].status != "closed":
            return ""
        self.world.store.set(issue, PAT, status="open")
        return "re-opens"

    def _delete(self, issue: str) -> str:
        if self.dice.of("delete").random() < 0.7:
            return ""
        self.world.store.delete(issue, PAT)
        return "deletes"

    def _set_free(self, issue: str) -> str:
        self.world.store.set(issue, PAT, status="open", assignee="", remove=self._ours(issue))
        return "sets free"

    def _phase(self, issue: str) -> str:
        name = self.dice.of("phase").choice(self.world.phases)
        self.world.store.set(issue, PAT, add=(f"phase:{name}",), remove=self._phases(issue) - {f"phase:{name}"})
        return f"sets phase:{name} on"

    def _phase_off(self, issue: str) -> str:
        self.world.store.set(issue, PAT, remove=self._phases(issue))
        return "takes the phase off"

    def _unpark(self, issue: str) -> str:
        if "ashep:parked" not in self.world.store.rows[issue].labels:
            return ""
        self.world.store.set(issue, PAT, remove=("ashep:parked",))
        return "un-parks"

    def _comment(self, issue: str) -> str:
        self.world.store.comment(issue, PAT, "Mind the \u2028 edge cases.")
        return "comments on"

    def _agent_says(self, issue: str) -> str:
        self.world.store.comment(issue, AGENT, "@ashep yes")
        return "(an agent) allows itself what it asked on"

    def _agent_approves(self, issue: str) -> str:
        actor = self.dice.of("agent_name").choice((AGENT, self.world.actor))
        self.world.store.set(issue, actor, add=("human:approved",))
        return f"({actor} it is) approves"

    def _agent_moves(self, issue: str) -> str:
        row, dice = self.world.store.rows[issue], self.dice.of("agent_moves")
        if row.assignee != self.world.actor or row.status not in ("in_progress", "blocked"):
            return ""
        marks = sorted({"ashep:paused", "ashep:parked"} & row.labels)
        what = dice.choice(("phase", "phase", "close", "open", "mark"))
        if what == "phase":
            name = dice.choice(self.world.phases)
            remove = self._phases(issue) - {f"phase:{name}"}
            self.world.store.set(issue, AGENT, add=(f"phase:{name}",), remove=remove)
        elif what == "mark":
            self.world.store.set(issue, AGENT, remove=marks)
        else:
            self.world.store.set(issue, AGENT, status="closed" if what == "close" else "open")
        return f"({AGENT} it is) moves ({what})"

    def _phases(self, issue: str) -> set[str]:
        return {label for label in self.world.store.rows[issue].labels if label.startswith("phase:")}

    def _ours(self, issue: str) -> set[str]:
        marks = ("phase:", "needs:", "ashep:", "human:")
        return {label for label in self.world.store.rows[issue].labels if label.startswith(marks)}

    # --- in the end ---

    def put_right(self) -> None:
        """Give everything that is not closed back to ashep."""
        for row in list(self.world.store.rows.values()):
            if row.status != "closed":
                self.world.tell(f"a person: gives {row.id} back ({row.standing} {sorted(row.labels)})")
                self.world.store.set(row.id, PAT, status="open", assignee="", remove=self._ours(row.id))
