"""What a scripted agent does with a prompt: how long it takes, what comes in between, what it reports."""

import json
import random
from dataclasses import dataclass
from typing import Any, Literal

from ashep.core.runs.turns import VERDICTS as DIAGNOSES
from chaos.torture.chaos import Dice


@dataclass(frozen=True, slots=True)
class Play:
    """What happens after a prompt."""

    text: str = ""
    """The final message."""
    error: str | None = None
    fate: Literal["ends", "hangs", "stored", "silent", "dies"] = "ends"
    young: float = 0.05
    """Seconds until it is busy."""
    steps: tuple[str, ...] = ()
    pause: float = 1.0
    """Seconds between its steps, and to its end."""


VERDICTS = {"review": ("approve", "needs_changes")}


class Agents:
    """Decides what each prompt leads to; what was said is told apart by a number in its summary."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self._fates: dict[str, str] = {}
        self._failing = dice.of("temper").choice((0.15, 0.15, 0.7))
        self._late = dice.of("turn_late often").choice((0.3, 1.0))
        """How often a turn begins late: now and then, or always."""
        self.said = 0

    def play(self, run: str, message: str, began: int, text: str) -> Play:
        """What comes of a message; -1: it has only just arrived."""
        if message not in self._fates:
            self._fates[message] = self._fate()
        fate = self._fates[message]
        if began < 0:
            return Play(fate="silent" if fate == "silent" else "ends")
        if fate == "stored":
            return Play(fate="stored")
        dice = self.dice.of("play")
        if fate == "dies" and began > 0:
            fate = "ends"
        young = dice.uniform(0.2, 2.0) if self.dice.roll("server_young", 0.3) else dice.uniform(0.01, 0.05)
        if self.dice.roll("turn_late", self._late):
            young = self.dice.of("turn_late").uniform(20, 200)
        return Play(
            text=self._report(run, dice, text, extra=began == 0),
            error="APIError" if self.dice.roll("turn_errs", 0.08) else None,
            fate=fate if fate in ("hangs", "dies") else "ends",  # pyright: ignore[reportArgumentType]
            young=young,
            steps=self._steps(),
            pause=dice.choice((0.3, 1.0, 2.5, 6.0)),
        )

    def _fate(self) -> str:
        for kind, chance, fate in (
            ("turn_hangs", 0.03, "hangs"),
            ("turn_dies", 0.06, "dies"),
            ("turn_silent", 0.04, "silent"),
            ("turn_silent", 0.04, "stored"),
        ):
            if self.dice.roll(kind, chance):
                return fate
        return "ends"

    def _steps(self) -> tuple[str, ...]:
        steps: list[str] = []
        for kind, chance, some in (
            ("turn_tools", 0.6, ("tools",)),
            ("turn_tools", 0.4, ("tools",)),
            ("turn_breaks", 0.2, ("breaks",)),
            ("turn_compacts", 0.2, ("compacts",)),
            ("turn_replays", 0.2, ("replays",)),
            ("turn_waits", 0.2, ("waits", "tools")),
            ("turn_asks", 0.15, ("permission", "question")),
        ):
            if self.dice.roll(kind, chance):
                steps.append(self.dice.of(kind).choice(some))
        self.dice.of("steps").shuffle(steps)
        return tuple(steps)

    def _report(self, run: str, dice: random.Random, prompt: str, *, extra: bool) -> str:
        phase = run.split("/")[1].split(".")[0] if "/" in run else ""
        self.said += 1
        summary = f"{run} said {self.said}"
        if self.dice.roll("agent_babbles", 0.15):
            return dice.choice(("I am done.", '```json\n{"result": "great"}\n```', "```json\n{\n```"))
        body: dict[str, Any] = {"result": "success", "summary": summary}
        if "fell silent: its turn was stopped" in prompt:
            body["verdict"] = dice.choice(DIAGNOSES)
        elif phase in VERDICTS:
            verdict = "needs_changes" if self.dice.roll("agent_rejects", 0.3) else "approve"
            body["verdict"] = verdict
        if self.dice.roll("agent_fails", self._failing):
            body = {"result": dice.choice(("failed", "partial")), "summary": summary}
        elif self.dice.roll("agent_asks", 0.15):
            body["needs_human"] = True
        if extra and self.dice.roll("agent_creates", 0.2):
            body["created_issues"] = [{"title": f"found {self.said}.{n}"} for n in range(dice.randint(1, 2))]
        return f"Done.\n\n```json\n{json.dumps(body)}\n```\n"
