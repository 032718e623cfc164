"""What the verifier adds to the commands that it carries out, with and without a sandbox.

Each command is run bare and as a check within one round, so that a loaded machine slows both.
"""

import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

import anyio

from ashep.core.policy.verification_settings import VerificationSettings
from bench.figures import Figure, short
from tests.verifier.place import World, repository

CHECKS = 10
FILES = 200
BOUND = 50.0
_COMMAND = ["sh", "-c", "exit 0"]


def _program(number: int) -> dict[str, Any]:
    return {"id": f"p{number}", "type": "test_pass", "verify": {"command": _COMMAND}}


def _file(number: int) -> dict[str, Any]:
    return {"id": f"f{number}", "type": "file_exists", "verify": {"path": "part0.py", "contains": ["answer"]}}


def _pattern(number: int) -> dict[str, Any]:
    return {"id": f"r{number}", "type": "code_pattern", "verify": {"glob": "*.py", "pattern": "answer"}}


class Took(NamedTuple):
    """Milliseconds by the clock, and of processors: on a loaded machine only these tell of the code."""

    wall: float
    cpu: float


def _cpu() -> float:
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in found)


async def _timed(call: Callable[[], Awaitable[object]]) -> Took:
    began, spent = time.perf_counter(), _cpu()
    await call()
    return Took((time.perf_counter() - began) * 1000, (_cpu() - spent) * 1000)


def _median(took: Sequence[Took]) -> Took:
    return Took(median(one.wall for one in took), median(one.cpu for one in took))


async def _bare() -> Took:
    """What the command takes by itself, as a script would start it."""
    return await _timed(lambda: anyio.run_process(_COMMAND))


async def _verified(world: World, checks: list[dict[str, Any]]) -> Took:
    """What a verification takes that knows nothing of an earlier one."""
    world.begin()
    if any(check["type"] == "test_pass" for check in checks):
        await world.verifier.isolation()  # found out once in the life of a process

    async def verify() -> None:
        found = await world.verify(*checks)
        assert all(result.status == "passed" for result in found.results), found

    return await _timed(verify)


async def _each_more(world: World, make: Callable[[int], dict[str, Any]], rounds: int) -> tuple[Took, Took]:
    """Each check beyond the first, and a verification with one check: medians over rounds."""
    more, one = list[Took](), list[Took]()
    for _ in range(rounds):
        first = await _verified(world, [make(0)])
        several = await _verified(world, [make(number) for number in range(CHECKS + 1)])
        more.append(Took((several.wall - first.wall) / CHECKS, (several.cpu - first.cpu) / CHECKS))
        one.append(first)
    return _median(more), _median(one)


def _note(took: Took, rounds: int, more: str = "") -> str:
    return f"{short(took.wall)} ms, {short(took.cpu)} ms of processors{more}; {rounds} rounds"


async def _programs(world: World, kind: Literal["none", "bwrap"], rounds: int) -> list[Figure]:
    world.settings = VerificationSettings(sandbox=kind)
    world.begin()
    if kind == "bwrap" and not (await world.verifier.isolation()).sandbox.isolated:
        return []
    bare = [await _bare() for _ in range(rounds * 2)]
    more, one = await _each_more(world, _program, rounds)
    command = _median(bare + [await _bare() for _ in range(rounds * 2)])
    note = _note(more, rounds, f", its command {short(command.wall)} and {short(command.cpu)}")
    name = f"a program, sandbox {kind}: beyond its command"
    return [
        Figure(name, more.wall - command.wall, "ms", BOUND, note),
        Figure("  a verification with one", one.wall, "ms", note=f"with a checkout of {FILES} files"),
    ]


async def _measured(rounds: int) -> list[Figure]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        world = World(repository(Path(folder, "repository")), Path(folder, "state", "checks"))
        world.repository.commit({f"part{number}.py": "answer = 42\n" * 20 for number in range(FILES)})
        figures += [*await _programs(world, "none", rounds), *await _programs(world, "bwrap", rounds)]
        for name, make in (("a file", _file), (f"a pattern in {FILES} files", _pattern)):
            more, _ = await _each_more(world, make, rounds)
            figures.append(Figure(f"{name}: each check", more.wall, "ms", BOUND, _note(more, rounds)))
    return figures


def measure(rounds: int) -> list[Figure]:
    """Measure it all."""
    return anyio.run(_measured, rounds)
