"""What nobody foresaw: an effect that raises anything at all parks its issue, and ends neither the daemon nor its next
start; what fails in the journal does.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts.delivery import TreeKept
from ashep.core.facts.resources import NoticeFailed
from ashep.core.facts.tracker import Stamp
from ashep.core.state.world import World
from ashep.daemon.effects.executor import Effects
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.leases import Leases
from ashep.errors import DiskFailed, JournalDamaged
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.journal.blobs import Blobs
from tests.core.given import ME
from tests.memory import ManualClock

KINDS = sorted(get_args(c.Command), key=lambda kind: kind.__name__)


def decoding() -> Exception:
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        return error
    raise AssertionError


TWELVE: list[Exception] = [
    RecursionError("maximum recursion depth exceeded"), MemoryError(), OSError(36, "File name too long"),
    PermissionError(13, "Permission denied"), decoding(), KeyError("x"), ValueError("no number"), TypeError("None"),
    AttributeError("'NoneType' has no attribute"), AssertionError(), TimeoutError(),
    ExceptionGroup("in a task group", [RuntimeError("inner"), StopAsyncIteration()]),
]  # fmt: skip
BOUNDARIES = ("before", "after")

Do = Callable[..., Awaitable[Any]]


class Planted:
    """Faults in effects of one kind: raised before the act, or once it is done, so many times."""

    def __init__(self, kind: type, boundary: str, error: BaseException, times: int) -> None:
        self.kind, self.boundary, self.error, self.left = kind, boundary, error, times
        self.raised, self.issue = 0, ""

    def around(self, real: Do) -> Do:
        async def do(effects: Effects, command: c.Command, *more: Any, **named: Any) -> Any:
            about = self.issue in ("", getattr(command, "issue", self.issue))
            fails = type(command) is self.kind and about and self.left > 0
            if fails:
                self.left, self.raised = self.left - 1, self.raised + 1
            if fails and self.boundary == "before":
                raise self.error
            answer = await real(effects, command, *more, **named)
            if fails:
                raise self.error
            return answer

        return do

    def put(self, monkeypatch: pytest.MonkeyPatch) -> "Planted":
        for name in ("_do", "_notify"):
            monkeypatch.setattr(Effects, name, self.around(getattr(Effects, name)))
        return self


def made(kind: type) -> Any:
    """A command of a kind, whatever it says."""
    values: dict[str, Any] = {"issue": "t-1", "key": "t-1/x", "stamp": Stamp("51", 1)}
    return kind(**{
        one.name: values.get(one.name, "") for one in fields(kind) if one.default is MISSING
    })  # fmt: skip


@pytest.mark.promise("E5")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_each_effect_may_raise_anything_at_each_boundary(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, said = ManualClock(), list[str]()
    tracker = MemoryTracker(clock.now, ME)
    effects = Effects(
        tracker=tracker, runner=MemoryRunner(clock, lambda _: Play()), trees=TreeEffects(MemoryTree()),
        blobs=Blobs(tmp_path), leases=Leases(tracker, clock), report=said.append,
    )  # fmt: skip

    async def answer(_: Effects, command: c.Command, *more: object, **named: object) -> list[object]:
        return []

    for name in ("_do", "_notify"):
        monkeypatch.setattr(Effects, name, answer)

    async def carry_out(error: BaseException, boundary: str) -> list[Any]:
        with monkeypatch.context() as context:
            Planted(kind, boundary, error, 1).put(context)
            return await effects.execute(made(kind), World, probe=False)

    for error, boundary in itertools.product(TWELVE, BOUNDARIES):
        (fact,) = await carry_out(error, boundary)
        assert isinstance(fact, (NoticeFailed, TreeKept)) or fact.unforeseen
        assert type(error).__name__ in getattr(fact, "error", "") + getattr(fact, "why", "")
        assert "Traceback (most recent call last)" in said.pop()
    torn = ExceptionGroup("", [KeyError(), ExceptionGroup("", [JournalDamaged("torn")])])
    for error in (DiskFailed("full"), torn, KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await carry_out(error, "after")
    assert not said
