"""What a policy can lead to, by a second reading of the language: brute force over whole states, nothing of the core.

A state here holds everything at once (what every phase ended with, and every failure that nobody made good), where
`ashep.core.analysis.soundness` asks one question at a time. The rules are those of the design's section 5, written down
anew.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Phase, Policy

Passed = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Spot:
    """Where an issue stands, and what it carries."""

    kind: str
    phase: str = ""
    passed: Passed = frozenset()
    failed: frozenset[str] = frozenset()
    writer: str = ""
    """Who wrote last."""
    on: str = ""
    """Where the work leads that a person is asked to let pass."""


ASKED = ("own", "proof", "change")
"""Questions that no human phase asks."""

ALWAYS = ("rules", "agent_instructions", "ci")

Move = tuple[str, bool, Spot]
"""How it is told, whether it is a success or an answer, and where it leads."""


@dataclass
class Oracle:
    """All spots of one policy, found by trying everything."""

    policy: Policy
    agents: Agents
    moves: dict[Spot, list[Move]] = field(default_factory=dict[Spot, list[Move]])
    ways: dict[Spot, tuple[str, ...]] = field(default_factory=dict[Spot, tuple[str, ...]])

    def __post_init__(self) -> None:
        self.start = self._enter(self.policy.phases[0].name, frozenset(), frozenset())
        self.ways[self.start] = ()
        queue = deque([self.start])
        while queue:
            spot = queue.popleft()
            self.moves[spot] = list(self._moves(spot))
            for told, _, after in self.moves[spot]:
                if after not in self.ways:
                    self.ways[after] = (*self.ways[spot], told)
                    queue.append(after)

    # --- what the checker is asked for ------------------------------------------------------------------------------

    def unreachable(self) -> set[str]:
        """Phases that are nowhere."""
        return {phase.name for phase in self.policy.phases} - {spot.phase for spot in self.ways}

    def trapped(self) -> set[str]:
        """Phases in which an issue may stand although nothing good leads to `close` from there."""
        return {spot.phase for spot in self.ways if spot.kind in ("work", "ask", *ASKED) and not self._closes(spot)}

    def closed_without(self, phase: Phase) -> int | None:
        """Steps of the shortest life that ends with `close` although this phase was not passed."""
        return self._shortest(lambda spot: dict(spot.passed).get(phase.name) not in phase.must_pass)

    def closed_over(self, phase: Phase) -> int | None:
        """Steps of the shortest life that leaves a failure of this phase behind."""
        return self._shortest(lambda spot: phase.name in spot.failed)

    def unmet(self) -> set[str]:
        """Phases from which something leads to where the issue is not let in; `` where it cannot even begin."""
        found = {spot.phase for spot, some in self.moves.items() for _, _, after in some if after.kind == "unmet"}
        return found | ({""} if self.start.kind == "unmet" else set())

    def fewest_runs(self) -> int | None:
        """Runs of the life that closes with the fewest, by success and answers alone."""
        best = {self.start: 0}
        queue = deque([self.start])
        while queue:
            spot = queue.popleft()
            for _, good, after in self.moves[spot]:
                runs = best[spot] + (spot.kind == "work")
                if good and spot.kind not in ASKED and after.kind not in ASKED and runs < best.get(after, 10**9):
                    best[after] = runs
                    queue.append(after)
        return min((runs for spot, runs in best.items() if spot.kind == "close"), default=None)

    def closes_within_limits(self) -> bool:
        """Whether a life by success and answers alone closes with no more runs and visits than a cycle may have."""
        begin = self._worn(self.start, (0, frozenset()))
        queue = deque([(self.start, begin)])
        seen = set(queue)
        while queue:
            spot, worn = queue.popleft()
            if spot.kind == "close":
                return True
            for _, good, after in self.moves[spot] if worn is not None and spot.kind not in ASKED else ():
                fresh = spot.kind == "ask" and after.kind != "close"
                then = self._worn(after, (0, frozenset()) if fresh or worn is None else worn)
                if good and after.kind not in ASKED and (after, then) not in seen:
                    seen.add((after, then))
                    queue.append((after, then))
        return False

    def _worn(self, spot: Spot, worn: tuple[int, Passed]) -> tuple[int, Passed] | None:
        if spot.kind != "work":
            return worn
        visits = dict(worn[1])
        times = int(visits.get(spot.phase, 0)) + 1
        phase = self.policy.phase(spot.phase)
        if worn[0] >= self.policy.limits.max_runs or phase is None or times > phase.max_visits:
            return None
        return worn[0] + 1, frozenset((visits | {spot.phase: str(times)}).items())

    def is_told(self, story: tuple[str, ...]) -> bool:
        """Whether these lines are a life, from the beginning."""
        spots = {self.start}
        for line in story:
            spots = {after for spot in spots for told, _, after in self.moves.get(spot, ()) if told == line}
        return bool(spots)

    def _shortest(self, wrong: Callable[[Spot], bool]) -> int | None:
        return min((len(way) for spot, way in self.ways.items() if spot.kind == "close" and wrong(spot)), default=None)

    def _closes(self, spot: Spot) -> bool:
        seen, queue = {spot}, deque([spot])
        while queue:
            here = queue.popleft()
            if here.kind == "close":
                return True
            for _, good, after in self.moves[here]:
                if good and after not in seen:
                    seen.add(after)
                    queue.append(after)
        return False

    # --- the rules, once more ---------------------------------------------------------------------------------------

    def _moves(self, spot: Spot) -> Iterator[Move]:
        phase = self.policy.phase(spot.phase)
        if phase is None or spot.kind not in ("work", "ask", *ASKED):
            return
        writer = phase.name if spot.kind == "work" and phase.writes else spot.writer
        for name, good, after in self._steps(phase, spot, writer):
            after = replace(after, writer=writer if after.kind in ("work", "ask", *ASKED) else "")
            yield f"{phase.name}: {name} → {_place(after)}", good, after

    def _steps(self, phase: Phase, spot: Spot, writer: str) -> Iterator[Move]:
        """What can happen, and what becomes of work that is to be closed, on its way to the base."""
        rules = {
            "work": self._works, "ask": self._is_asked, "own": self._asks_itself, "proof": self._is_doubted,
            "change": self._may_land,
        }  # fmt: skip
        for name, good, after in rules[spot.kind](phase, spot):
            yield name, good, after
            if after.kind != "close" or not writer:
                continue
            yield f"{name}, but it does not fit the base", False, self._back(writer, after)
            flag = next((flag for flag in ALWAYS if flag not in phase.when_flags), None)
            if flag is not None and name != "a person answers approved":
                yield f"{name}, and it touches {flag}", good, replace(after, kind="change", phase=phase.name)

    def _back(self, writer: str, after: Spot) -> Spot:
        return self._enter(writer, after.passed, after.failed)

    def _may_land(self, phase: Phase, spot: Spot) -> Iterator[Move]:
        yield "a person answers approved", True, Spot("close", "", spot.passed)
        back = self._back(spot.writer, replace(spot, failed=frozenset()))
        yield "a person answers changes_requested", True, back
        yield "nobody answers in time", False, Spot("park")

    def _is_doubted(self, phase: Phase, spot: Spot) -> Iterator[Move]:
        yield "a person answers approved", True, self._enter(spot.on, spot.passed, frozenset())
        yield "a person answers changes_requested", True, self._enter(phase.name, spot.passed, frozenset())
        yield "nobody answers in time", False, Spot("park")

    def _works(self, phase: Phase, spot: Spot) -> Iterator[Move]:
        rest = frozenset(one for one in spot.passed if one[0] != phase.name)
        well = spot.failed - {phase.name}
        good = [(verdict, verdict, phase.next[verdict]) for verdict in phase.verdicts]
        if not phase.verdicts:
            good = [("success", "success", phase.next.get("success") or self._following(phase))]
            if "success" not in phase.next:
                good += [(f"suggests {other}", "success", other) for other in phase.allow_suggested]
        looked_into = phase.verify or phase.checks or phase.when_flags
        for name, word, target in good:
            done = rest | {(phase.name, word)}
            yield name, True, self._enter(target, done, well)
            if not looked_into or (phase.verdicts and word not in phase.must_pass):
                continue
            doubted = Spot("proof", phase.name, done, spot.failed, on=target)
            yield f"{name}, but it does not hold", False, doubted
            for flag, there in phase.when_flags.items() if name == word and (phase.writes or spot.writer) else ():
                yield f"{name} that touches {flag}", False, self._enter(there, done, well)
        yield "asks a person", True, Spot("own", phase.name, rest, spot.failed)
        for word in ("failed", "timed out", "stalled"):
            yield word, False, self._or_park(phase.next.get("failed"), rest, spot.failed | {phase.name})
        partial = rest | {(phase.name, "partial")}
        yield "partial", False, self._or_park(phase.next.get("partial"), partial, spot.failed)

    def _asks_itself(self, phase: Phase, spot: Spot) -> Iterator[Move]:
        for word in ("approved", "changes_requested"):
            yield f"a person answers {word}", True, self._enter(phase.name, spot.passed, spot.failed)
        yield "nobody answers in time", False, Spot("park")

    def _is_asked(self, phase: Phase, spot: Spot) -> Iterator[Move]:
        human = phase.human
        rest = frozenset(one for one in spot.passed if one[0] != phase.name)
        yes = human.approved if human else phase.next.get("success") or self._following(phase)
        done = self._enter(yes, rest | {(phase.name, "approved")}, frozenset())
        yield "a person answers approved", True, done
        no = (human.changes_requested if human else None) or self._writer_before(phase)
        undone = rest | {(phase.name, "changes_requested")} if no == "close" else frozenset()
        yield "a person answers changes_requested", True, self._enter(no, undone, frozenset())
        late = human.on_deadline if human else "park"
        yield "nobody answers in time", False, self._or_park(None if late == "park" else late, spot.passed, spot.failed)

    def _or_park(self, target: str | None, passed: Passed, failed: frozenset[str]) -> Spot:
        return Spot("park") if target is None else self._enter(target, passed, failed)

    def _enter(self, target: str, passed: Passed, failed: frozenset[str]) -> Spot:
        if target == "close":
            return Spot("close", "", passed, failed)
        phase = self.policy.phase(target)
        assert phase is not None
        if any(dict(passed).get(name) not in words for name, words in phase.requires.items()):
            return Spot("unmet")
        return Spot("ask" if self._is_a_persons(phase) else "work", target, passed, failed)

    def _is_a_persons(self, phase: Phase) -> bool:
        fit = [agent for agent in self.agents.agents if set(phase.needs) <= set(agent.capabilities)]
        return phase.human is not None or (bool(fit) and all(agent.is_human for agent in fit))

    def _following(self, phase: Phase) -> str:
        names = [other.name for other in self.policy.phases]
        return [*names, "close"][names.index(phase.name) + 1]

    def _writer_before(self, phase: Phase) -> str:
        before = self.policy.phases[: self.policy.phases.index(phase)]
        writers = [other.name for other in before if other.human is None and other.writes]
        return writers[-1] if writers else self.policy.phases[0].name


def _place(spot: Spot) -> str:
    words = {"work": spot.phase} | dict.fromkeys(("ask", *ASKED), f"{spot.phase} asks a person")
    return words.get(spot.kind, {"close": "closed", "unmet": "parked (requires)"}.get(spot.kind, "parked"))
