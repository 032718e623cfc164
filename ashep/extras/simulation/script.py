"""A script of what agents and people do in the life of one issue.

    # what follows is a comment, up to the end of its line
    implement: success; review: needs_changes
    implement: failed, success in 20m       # several moves, one after the other
    review: approve*                        # now and for ever
    implement/diagnosis: retry              # what comes of looking into a stalled turn
    review/landing: conflict                # what comes of landing what review closes; else it lands
    human_review: approved in 2d

Items stand on lines of their own, or are parted by `;`. Each point has moves of its own, and takes them in the order in
which they stand, whatever stands between them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ashep.config.error_messages import nearest
from ashep.core.policy.base_types import parse_duration
from ashep.core.policy.policies import Phase, Policy
from ashep.errors import ConfigError
from ashep.extras.simulation.actor_moves import (
    ANSWERS,
    DIAGNOSES,
    DIAGNOSIS,
    LANDING,
    LANDINGS,
    LANDS,
    ActorStep,
    Point,
    moves,
)

_MOVE = re.compile(r"(?P<move>\S+?)(?:\s+in\s+(?P<after>\S+?))?\s*(?P<always>\*?)")


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A move of a script."""

    point: str
    step: ActorStep
    always: bool
    """It is made whenever the point is reached from then on."""
    number: int
    """Of its line in the file."""


@dataclass
class Script:
    """The moves of a script that are left, by point: as an `Act`, it makes them."""

    file: Path
    left: defaultdict[str, list[ScriptLine]] = field(default_factory=lambda: defaultdict[str, list[ScriptLine]](list))
    error: ConfigError | None = None
    """The script says what is not possible where it says it; the life ended there."""

    def __call__(self, point: Point) -> ActorStep | None:
        """Make the next move of this point; None where the script has no more for it, or an impossible one."""
        if not (lines := self.left[point.name]):
            return ActorStep(LANDS) if point.kind == "landing" else None
        line = lines[0] if lines[0].always else lines.pop(0)
        if line.step.move in point.moves:
            return line.step
        asked = "a person is asked" if point.kind == "question" else "an agent works"
        message = f"{line.step.move} is not possible where {asked}{nearest(line.step.move, point.moves)}"
        self.error = ConfigError(message, file=self.file, line=line.number, key=point.name)
        return None

    def rest(self) -> list[ScriptLine]:
        """The moves that were not made, in the order of the file."""
        left = (line for lines in self.left.values() for line in lines if not line.always)
        return sorted(left, key=lambda line: line.number)


def read_script(text: str, policy: Policy, file: Path) -> Script:
    """Read a script for a policy; raises `ConfigError` with the line of the first mistake."""
    script = Script(file)
    for number, row in enumerate(text.splitlines(), 1):
        for item in row.partition("#")[0].split(";"):
            if item.strip():
                for line in _item(item, policy, file, number):
                    _add(script, line)
    return script


def _add(script: Script, line: ScriptLine) -> None:
    lines = script.left[line.point]
    if lines and lines[-1].always:
        message = f"comes after {lines[-1].step.move}*, which is for ever (line {lines[-1].number}); leave one out"
        raise ConfigError(message, file=script.file, line=line.number, key=line.point)
    lines.append(line)


def _item(item: str, policy: Policy, file: Path, number: int) -> Iterator[ScriptLine]:
    point, colon, said = (part.strip() for part in item.partition(":"))
    if not colon:
        message = f"expected `phase: move`, found {item.strip()[:80]!r}"
        raise ConfigError(message, file=file, line=number)
    possible = _possible(policy, point)
    if isinstance(possible, str):
        raise ConfigError(possible, file=file, line=number, key=point)
    for one in said.split(","):
        found = _MOVE.fullmatch(one.strip())
        if found is None:
            message = f"expected a move, such as `{possible[0]}`, `{possible[0]} in 20m` or `{possible[0]}*`"
            raise ConfigError(f"{message}, found {one.strip()[:80]!r}", file=file, line=number, key=point)
        if found["move"] not in possible:
            message = f"there is no move {found['move'][:80]}{nearest(found['move'], possible)}"
            raise ConfigError(message, file=file, line=number, key=point)
        after = found["after"] and _duration(found["after"], file, number, point)
        yield ScriptLine(point, ActorStep(found["move"], after or None), bool(found["always"]), number)


def _duration(word: str, file: Path, number: int, point: str) -> timedelta:
    try:
        duration = parse_duration(word)
    except ValueError as error:
        raise ConfigError(f"{error}, found {word[:80]!r}", file=file, line=number, key=point) from error
    assert isinstance(duration, timedelta)
    return duration


def _possible(policy: Policy, point: str) -> tuple[str, ...] | str:
    """The moves at a point of this name; a string says what is wrong with the name."""
    name = point.removesuffix(DIAGNOSIS).removesuffix(LANDING)
    phase = policy.phase(name)
    if phase is None:
        return f"the policy has no phase {name[:80]}{nearest(name, [phase.name for phase in policy.phases])}"
    if name == point:
        return possible_in(phase)
    if point == name + LANDING:
        return LANDINGS
    if phase.human is not None or phase.stall.action != "diagnose":
        return f"a stalled turn of {name} is not looked into: its stall.action is not diagnose"
    return DIAGNOSES


def possible_in(phase: Phase) -> tuple[str, ...]:
    """All that can be done in a phase: by its agent, and by a person whom it asks."""
    return ANSWERS if phase.human is not None else (*moves(phase, "run"), *ANSWERS)


def write_script(moves: list[tuple[str, ActorStep]]) -> str:
    """The script that says this again."""
    return "; ".join(f"{point}: {step}" for point, step in moves)
