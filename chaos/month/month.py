"""One month, by a seed: issues that come in, agents that mostly succeed, a person who looks in twice a day."""

import json
import random
from pathlib import Path
from typing import Any

import anyio
import yaml

from ashep.config import write_starter
from ashep.core.runs.prompt_commands import EXTRACTION
from ashep.extras.simulation.memory.runner import Play, Prompted
from tests.loop_world import World

DAY = 24 * 3600.0
PATIENCE = 20 * DAY
"""In which the last issues must have come to rest: questions that nobody answers are open for a week."""

CODE = ["task", "bug", "feature", "chore"]
IMPLEMENT = {"name": "implement", "retry": {"max_attempts": 2}, "next": {"success": "review"}}
REVIEW = {
    "name": "review", "verdicts": ["approve", "needs_changes"],
    "next": {"approve": "human_review", "needs_changes": "implement"},
}  # fmt: skip
HUMAN = {"name": "human_review", "human": {"ask": "Merge this?", "changes_requested": "implement", "deadline": "7d"}}


def policies(*, skip: bool = False) -> str:
    """The policy of the month; with `skip` another one, in which nobody reviews what is labelled `docs`."""
    docs = {"match": {"types": CODE, "labels": ["docs"]}, "phases": [IMPLEMENT | {"next": {"success": "human_review"}}]}
    docs["phases"].append(HUMAN)
    standard = {"match": {"types": CODE}, "phases": [IMPLEMENT, REVIEW, HUMAN]}
    some = {"docs": docs, "standard": standard} if skip else {"standard": standard}
    whole = {"version": 1, "default_policy": "standard", "policies": some}
    return yaml.safe_dump(json.loads(json.dumps(whole)), sort_keys=False)  # no aliases


CONFIG = yaml.safe_dump({"version": 1, "tracker": {"poll_every": "5m"}, "monitor": {"check_every": "15s"}})
"""Most of a month nothing happens."""


class Month:
    """A month."""

    def __init__(self, folder: Path, seed: int, issues: int, days: float = 30.0, docs: float = 0.3) -> None:
        self.seed, self.count, self.days, self.docs = seed, issues, days, docs
        write_starter(folder)
        self.world = World(folder, seed=seed, policies=policies(), config=CONFIG)
        self.world.answer = lambda _, asked: self._play(asked)

    def dice(self, *name: object) -> random.Random:
        """Dice of this name."""
        return random.Random(f"{self.seed}/{name}")

    async def live(self, quarters: int = 4) -> None:
        """Live the month, in a few lives of the daemon, and what it takes to come to rest; or so much of it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._come_in)
            group.start_soon(self._answers)
            for _ in range(quarters):
                await self.world.live(self._passed(self.days * DAY / 4), patience=self.days * DAY)
            if quarters == 4:
                await self.world.live(self._rests, patience=PATIENCE)
            group.cancel_scope.cancel()

    def _passed(self, seconds: float) -> Any:
        end = self.world.clock.monotonic() + seconds
        return lambda: self.world.clock.monotonic() >= end

    def _rests(self) -> bool:
        flows = self.world.world.flows.values()
        return len(flows) >= self.count and all(flow.stage in ("closed", "parked", "idle") for flow in flows)

    async def _come_in(self) -> None:
        dice = self.dice("issues")
        for number in range(self.count):
            labels = ("docs",) if dice.random() < self.docs else ()
            self.world.tracker.add(
                f"issue {number}", type=dice.choice(CODE), priority=dice.randint(0, 4), labels=labels
            )
            await anyio.sleep(self.days * DAY / self.count * dice.uniform(0.0, 2.0))

    async def _answers(self) -> None:
        """Pat answers twice a day, all but a few questions, and sets some of what was parked free."""
        tracker = self.world.tracker
        while True:
            await anyio.sleep(self.dice("pause", self.world.clock.monotonic()).uniform(0.2, 0.6) * DAY)
            for name, issue in sorted(self.world.issues().items()):
                dice = self.dice("answer", name, self.world.told[f"{name}/implement"])
                if "needs:human_approval" in issue.labels and dice.random() < 0.94:
                    answer = "human:changes_requested" if dice.random() < 0.15 else "human:approved"
                    tracker.person_sets(name, "pat", add_labels=(answer,))
                elif "ashep:parked" in issue.labels and dice.random() < 0.3:
                    tracker.person_sets(name, "pat", remove_labels=("ashep:parked",))

    def _play(self, asked: Prompted) -> Play:
        run = asked.key.split(":", 1)[1]
        key, phase = run.split(".")[0], run.split("/")[1].split(".")[0]
        begins = asked.turn == 0 and not run.endswith(EXTRACTION)  # that reads what the run wrote, and does no work
        if begins:
            self.world.told[key] += 1
        dice = self.dice("turn", run, asked.turn)
        fate = dice.choices(("works", "fails", "babbles", "dies", "asks", "creates"), (88, 5, 2, 1, 2, 2))[0]
        body: dict[str, Any] = {"result": "success", "summary": f"{phase} done, {dice.random():.4f}"}
        if phase == "implement" and begins:
            self.world.tree.write("calc.py", run)
            self.world.tree.commit(f"work of {run}", run)
        if phase == "review":
            body["verdict"] = "needs_changes" if dice.random() < 0.25 else "approve"
        match fate:
            case "fails":
                body = {"result": dice.choice(("failed", "partial")), "summary": "could not"}
            case "asks":
                body["needs_human"] = True
            case "creates":
                body["created_issues"] = [{"title": f"found in {run}", "type": "bug"}]
            case _:
                pass
        text = "I am done." if fate == "babbles" else f"Done.\n\n```json\n{json.dumps(body)}\n```\n"
        dies = fate == "dies" and asked.turn == 0
        return Play(text, delay=dice.uniform(60, 900), fate="dies" if dies else "ends")
