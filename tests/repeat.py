"""A journal derived again in a process of its own, and watched: `python -m tests.repeat STATE [MUTANT]`.

Everything is read and imported first. From then on nothing may be opened, asked, rolled or timed: an audit hook sees
what the interpreter reports, and a profile hook every call of a built-in function, `datetime.now` and `time.time`
included, which no audit event tells of.
"""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from ashep.core.analysis import replay as core
from ashep.core.reconcile import step
from ashep.journal.reader import batches
from tests.core.mutants import Mutant, planted, private

IMPURE_MODULES = {
    "time", "posix", "os", "_io", "io", "_socket", "socket", "_random", "random", "_ssl", "select", "_posixsubprocess",
    "_uuid", "_thread",
}  # fmt: skip
IMPURE_CALLS = {"datetime.now", "datetime.utcnow", "date.today", "datetime.today", "id", "open", "input", "print"}
QUIET_EVENTS = ("object.__getattr__", "object.__setattr__", "code.__new__", "sys._getframe", "sys.setprofile")

MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Mutant("clock", private(core, "derive"), "first = entries[0]", "first = entries[0]\n    first.at.now()"),
        Mutant("file", private(core, "derive"), "first = entries[0]", "first = entries[0]\n    open('/dev/null')"),
        Mutant(
            "chance", private(core, "derive"), "first = entries[0]",
            "first = entries[0]\n    import random\n    random.random()",
        ),
        Mutant("order", step.step, "for issue in sorted(issues):", "for issue in issues:"),
    )
}  # fmt: skip
"""Deliberate mistakes, each of which must be seen."""


def main(state: Path, mutant: str | None) -> dict[str, Any]:
    """Derive again; say what was found and which impure things were done."""
    read = [batch.entries for batch in batches(state / "journal")]
    with planted(MUTANTS[mutant]) if mutant else nullcontext():
        again = core.Replay()
        for entries in read:  # once unwatched: schemas of records are built when they are first needed
            again.batch(entries)
        again = core.Replay()
        with Watch() as watch:
            found = [one for entries in read for one in again.batch(entries)]
    return {"decisions": again.decisions, "differences": [one.as_json() for one in found], "impure": watch.seen}


class Watch:
    """Notes what should not happen in here."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._on = False
        sys.addaudithook(self._audit)

    def __enter__(self) -> "Watch":
        self._on = True
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._on = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._on and event not in QUIET_EVENTS:
            self.seen.append(f"{event} {arguments!r}"[:200])

    def _profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or frame.f_code.co_filename == __file__:
            return
        module, name = getattr(called, "__module__", None), getattr(called, "__qualname__", "")
        owner = getattr(getattr(called, "__self__", None), "__module__", None)
        if {module, owner} & IMPURE_MODULES or name in IMPURE_CALLS:
            self.seen.append(f"{module or owner}.{name} from {frame.f_code.co_filename}:{frame.f_lineno}")


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)))
