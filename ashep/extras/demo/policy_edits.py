"""Edits of the policy by a person while the daemon works: first so that no issue could ever be closed, then soundly."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
from anyio import to_thread

from ashep.config.presets import preset
from ashep.extras.demo.progress import STILL
from ashep.extras.demo.project import PERSON, DemoProject
from ashep.extras.demo.state_dir import journal
from ashep.journal.durable_io import replace

UNSOUND = ("pass: human_review", "pass: implement")
"""Nothing would lead on from the three agents any more."""

SOUND = ("deadline: 7d", "reminder: 1d\n          deadline: 7d")


@dataclass(slots=True)
class Edits:
    """What became of the two edits."""

    begun: bool = False
    refused: str = ""
    """What was said of the unsound one."""
    mended: bool = False
    """Whether nothing was said any more after the sound one."""


async def edit(stage: DemoProject, edits: Edits, line: Callable[[str], None]) -> None:
    """Edit the policy twice, and look at what `ashep status` says of it; not before a daemon has read the files."""
    if not (await _daemon(stage))["running"]:
        return
    edits.begun = True
    file = stage.project / ".agent-shepherd" / "policies.yaml"
    good = preset("standard").replace(*SOUND, 1)
    await to_thread.run_sync(replace, file, good.replace(*UNSOUND, 1).encode())
    line(f"$ edit policies.yaml   ({PERSON} lets arbitrate lead to implement, whatever it says)")
    seen = await _wait_for_edit(stage, lambda told: told is not None)
    if seen is not None:
        edits.refused = str(seen["problems"][0])
        line(f"ashep status: not in force: {edits.refused}")
    await to_thread.run_sync(replace, file, good.encode())
    line(f"$ edit policies.yaml   ({PERSON} takes that back, and has questions reminded of each day)")
    edits.mended = await _wait_for_edit(stage, lambda told: told is None) is None


async def restore(stage: DemoProject) -> None:
    """Take an unsound edit back in which a demonstration was killed: `ashep work` would not begin with it."""
    file = stage.project / ".agent-shepherd" / "policies.yaml"
    if UNSOUND[1] in await to_thread.run_sync(file.read_text):
        await to_thread.run_sync(replace, file, preset("standard").encode())


async def _wait_for_edit(stage: DemoProject, ended: Callable[[dict[str, Any] | None], bool]) -> dict[str, Any] | None:
    """Ask `ashep status` until it says so, or nothing new comes for too long; give what it said last."""
    told: dict[str, Any] | None = None
    with anyio.move_on_after(STILL):
        while True:
            told = (await _daemon(stage))["edit"]
            if ended(told):
                break
            await anyio.sleep(0.5)
    return told


async def _daemon(stage: DemoProject) -> dict[str, Any]:
    return json.loads(await stage.ashep("status", "--json"))["daemon"]


def in_force(stage: DemoProject) -> bool:
    """Whether the journal says that the sound policy, and never the unsound one, came into force."""
    adopted = (one for one in journal(stage.project) if one["type"] == "Adopted" and one["kind"] == "policies")
    found = [str(record["content"]) for record in adopted]
    return '"reminder":"1d"' in found[-1] and not any('"pass":"implement"' in content for content in found)
