"""The configuration enters the journal at every start: what a decision rested on can be read there for ever."""

from pathlib import Path

import pytest

from ashep.config import load
from ashep.core.facts.resources import Adopted, DaemonStarted
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.journal.blobs import Blobs
from tests.loop_world import World


@pytest.mark.virtual
@pytest.mark.promise("F3")
async def test_each_start_adopts_the_files_as_they_are_then(folder: Path) -> None:
    world = World(folder)
    async with world.living(sources=False):
        pass
    policies = folder / "policies.yaml"
    policies.write_text("version: 1\npolicies: {quick: [implement]}\n")
    before = world.world
    assert before.policies is not None
    assert "standard" in before.policies.policies
    world.configuration = load(folder)
    async with world.living(sources=False):
        pass
    bodies = [entry.body for entry in world.entries if isinstance(entry.body, (Adopted, DaemonStarted))]
    kinds = [body.kind if isinstance(body, Adopted) else "start" for body in bodies]
    assert kinds == ["start", "settings", "agents", "policies"] * 2
    adopted = [body for body in bodies if isinstance(body, Adopted)]
    assert Policies.model_validate_json(adopted[-1].content) == load(folder).policies
    assert Settings.model_validate_json(adopted[-3].content) == load(folder).settings
    blobs = Blobs(folder / "state" / "blobs")
    assert blobs.text(adopted[-1].text) == policies.read_text()
    assert "standard" in blobs.text(adopted[2].text)
    assert world.world.policies == load(folder).policies
