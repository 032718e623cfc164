"""The user's files are read again while the daemon runs: the last good ones stay in force."""

import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from ashep.cli import main as command
from ashep.config import ConfigErrors, write_starter
from ashep.core.facts.resources import Adopted, EditMended, EditRefused, WorkPaused
from ashep.core.facts.runs import RunEnded, RunPlanned
from ashep.core.policy.policies import Policies
from ashep.daemon import reload as reload_module
from ashep.daemon.daemon import RunningDaemon
from ashep.daemon.reload import Reload
from ashep.journal.blobs import Blobs
from ashep.prompt import user_files
from ashep.store.schema import edit_json
from tests.loop_world import World, minutes, policy
from tests.waiting import meanwhile, wait_until

LOOK = policy({"name": "look", "capabilities": ["review"]})
CHECK = policy({"name": "check", "capabilities": ["review"]})


class Edited:
    """A daemon whose user edits its files."""

    def __init__(self, world: World, running: RunningDaemon) -> None:
        self.world, self.said = world, list[str]()
        self.reload = Reload(world.folder, running.shepherd, self.said.append)

    async def write(self, name: str, text: str | None) -> None:
        """Edit a file, or delete it, and let what follows from that happen."""
        file = self.world.folder / name
        file.parent.mkdir(exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        await self.reload.reload_files()
        await anyio.sleep(1)

    def status(self) -> dict[str, Any]:
        """What `ashep status` shows of an edit, from what is known."""
        return json.loads(edit_json(self.world.world)) or {}

    def prompts(self) -> list[str]:
        """The texts of the prompts so far."""
        sessions = self.world.runner.sessions.values()
        return [one.text for session in sessions for one in session.messages if one.who == "ashep"]


@asynccontextmanager
async def editing(folder: Path, policies: str | None = LOOK, config: str | None = None) -> AsyncGenerator[Edited]:
    """Give a daemon that has begun, and a user who edits its files."""
    world = World(folder, policies=policies, config=config)
    async with world.living() as running:
        edited = Edited(world, running)
        await anyio.sleep(1)
        yield edited


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_an_edit_counts_at_once_and_a_mistake_is_told_once_and_changes_nothing(tmp_path: Path) -> None:
    async with editing(tmp_path) as edited:
        world, reload, said = edited.world, edited.reload, edited.said
        start = len(world.bodies(Adopted))
        await reload.reload_files()
        assert said == []
        (tmp_path / "policies.yaml").write_text("version: 1\npolicies: {x: [nonsense}\n")
        for _ in range(3):
            await reload.reload_files()
        assert said[-1] == "the configuration stays as it was"
        assert len(said) == 2
        assert "policies.yaml:2" in said[0]
        assert len(world.bodies(Adopted)) == start
        await edited.write("policies.yaml", CHECK)
        assert said[2:] == ["read again, and in force now: policies"]
        world.tracker.add("first")
        await anyio.sleep(minutes(1))
        assert [fact.phase for fact in world.bodies(RunPlanned)] == ["check"]
        assert len(world.bodies(Adopted)) == start + 1


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_what_the_parts_were_made_of_counts_from_the_next_start(tmp_path: Path) -> None:
    async with editing(tmp_path) as edited:
        world, reload, said = edited.world, edited.reload, edited.said
        quiet = '{at: "* * * * *", lasts: 1h, name: always}'
        text = f"tracker: {{timeout: 7s}}\nworker: {{max_concurrent_runs: 1, quiet_hours: [{quiet}]}}\n"
        text += "budgets: {warn_at: 0.5}\n"
        (tmp_path / "config.yaml").write_text(text)
        for _ in range(2):
            await reload.reload_files()
            await anyio.sleep(1)
        assert said == ["read again, and in force now: settings", "config.yaml: tracker will count from the next start"]
        settings = world.world.settings
        assert (settings.worker.max_concurrent_runs, settings.tracker.timeout.seconds) == (1, 30)
        assert settings.budgets.warn_at == 0.5
        assert [fact.why for fact in world.bodies(WorkPaused)] == ["always"]


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_where_agents_work_counts_from_the_next_start_for_the_server_was_made_for_that(tmp_path: Path) -> None:
    alone = "version: 1\nworker: {workspace: place, max_concurrent_runs: 2}\nagents: {sandbox: auto}\n"
    async with editing(tmp_path, config=alone) as edited:
        assert edited.world.world.settings.isolated
        await edited.write("config.yaml", "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 5}\n")
        worker = edited.world.world.settings.worker
        assert (worker.workspace, worker.max_concurrent_runs) == ("place", 5)
        assert any("worker" in line and "next start" in line for line in edited.said)


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_a_broken_edit_is_on_record_and_shown_until_it_is_mended(folder: Path) -> None:
    async with editing(folder) as edited:
        world = edited.world
        await edited.write("policies.yaml", "version: 1\npolicies: {x: [nonsense]}\n")
        assert [fact.problems for fact in world.bodies(EditRefused)] == [tuple(edited.said[:-1])]
        assert "policies.yaml:2: policies.x[0]: no agent" in edited.status()["problems"][0]
        await edited.reload.reload_files()
        await anyio.sleep(1)
        assert len(world.bodies(EditRefused)) == 1
        await edited.write("policies.yaml", "version: 1\npolicies: {x: [nonsens]}\n")
        assert len(world.bodies(EditRefused)) == 2
        assert not world.bodies(EditMended)
        await edited.write("policies.yaml", LOOK)
        assert len(world.bodies(EditMended)) == 1
        assert edited.status() == {}
        assert edited.said[-1] == "read again, and nothing is wrong any more: what is in force stays so"
        await edited.write("policies.yaml", "version: 1\npolicies: {x: [nonsense]}\n")
        await edited.write("policies.yaml", CHECK)
        assert edited.status() == {}
        assert [type(body).__name__ for body in world.bodies(object)][-2:] == ["Adopted", "EditMended"]


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_policies_of_the_folder_count_at_once(folder: Path) -> None:
    async with editing(folder) as edited:
        world = edited.world
        await edited.write(
            "policies/docs.yaml", "match: {types: [epic]}\nphases: [{name: doc, capabilities: [review]}]\n"
        )
        assert edited.said == ["read again, and in force now: policies"]
        kept = world.bodies(Adopted)[-1]
        assert "docs" in Policies.model_validate_json(kept.content).policies
        assert "# --- docs.yaml ---" in Blobs(world.folder / "state" / "blobs").text(kept.text)
        world.tracker.add("an epic", type="epic")
        await anyio.sleep(minutes(1))
        assert [fact.phase for fact in world.bodies(RunPlanned)] == ["doc"]
        await edited.write("policies/docs.yaml", "phases: [doc, {}]")
        assert "policies/docs.yaml:1: phases[1].name: this key is missing" in edited.said[1]


@pytest.mark.virtual
@pytest.mark.promise("F6")
async def test_templates_count_from_the_next_prompt_and_a_broken_one_keeps_the_last_good(folder: Path) -> None:
    async with editing(folder) as edited:
        world = edited.world
        await edited.write("prompts/look.md.j2", "First words.")
        assert edited.said == ["read again, and in force now: prompts"]
        world.tracker.add("one")
        await anyio.sleep(minutes(1))
        assert "First words." in edited.prompts()[-1]
        await edited.write("prompts/look.md.j2", "Second {{ words")
        assert "prompts/look.md.j2:1: " in edited.said[1]
        assert "prompts/look.md.j2:1: " in edited.status()["problems"][0]
        world.tracker.add("two")
        await anyio.sleep(minutes(1))
        assert "First words." in edited.prompts()[-1]
        await edited.write("prompts/look.md.j2", "Third words.")
        world.tracker.add("three")
        await anyio.sleep(minutes(1))
        assert "Third words." in edited.prompts()[-1]
        await edited.write("prompts/look.md.j2", None)
        world.tracker.add("four")
        await anyio.sleep(minutes(1))
        assert "words." not in edited.prompts()[-1]
        assert len(edited.prompts()) == 4
        kept = [fact.text for fact in world.bodies(Adopted) if fact.kind == "prompts"]
        assert len(kept) == 3
        assert kept[-1] == ""
        assert "Third words." in Blobs(world.folder / "state" / "blobs").text(kept[1])


@pytest.mark.virtual
async def test_templates_are_adopted_at_a_start_and_what_is_broken_then_does_not_start(folder: Path) -> None:
    world = World(folder, policies=LOOK)
    async with world.living():
        pass
    assert "prompts" not in [fact.kind for fact in world.bodies(Adopted)]
    (folder / "prompts").mkdir()
    (folder / "prompts" / "look.md.j2").write_text("First words.")
    world.templates = user_files.read(folder).templates
    async with world.living():
        await anyio.sleep(1)
    assert world.bodies(Adopted)[-1].kind == "prompts"
    (folder / "prompts" / "look.md.j2").unlink()
    world.templates = user_files.read(folder).templates
    async with world.living():
        await anyio.sleep(1)
        assert world.world.files.prompts == ""
    (folder / "prompts" / "lok.md.j2").write_text("First words.")
    with pytest.raises(ConfigErrors, match=r"lok\.md\.j2: is never used: no policy has a phase lok"):
        user_files.read(folder)


def test_policy_check_tries_the_templates_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_starter(folder)
    (folder / "prompts").mkdir()
    (folder / "prompts" / "review.md.j2").write_text("Good {{ words")
    assert command(["-C", str(folder.parent), "policy", "check"]) == 1
    assert f"{folder}/prompts/review.md.j2:1: " in capsys.readouterr().out
    (folder / "prompts" / "review.md.j2").write_text("Good words")
    assert command(["-C", str(folder.parent), "policy", "check"]) == 0


@pytest.mark.virtual
async def test_an_edit_under_runs_and_questions_loses_nothing(folder: Path) -> None:
    """Three issues, one at work, one waiting for its turn and one asking, and a policy that renames every phase."""
    old = policy(
        {
            "name": "look", "capabilities": ["review"], "verdicts": ["good", "bad"],
            "next": {"good": "ask", "bad": "close"},
        },
        {"name": "ask", "human": {"ask": "Good?", "approved": "close", "changes_requested": "look"}},
    )  # fmt: skip
    new = policy({"name": "check", "capabilities": ["review"]})
    async with editing(folder, old, "version: 1\nworker: {max_concurrent_runs: 1}\n") as edited:
        world = edited.world
        world.outcomes = {"look": [{"verdict": "good"}]}
        asking = world.tracker.add("asks")
        await anyio.sleep(minutes(1))
        assert world.stands(asking) == "person"
        working, waiting = world.tracker.add("works"), world.tracker.add("waits")
        await anyio.sleep(15)
        assert [world.stands(one) for one in (working, waiting)] == ["running", "time"]
        await edited.write("policies.yaml", new)
        assert (world.stands(asking), world.code(asking)) == ("parked", "unknown_phase")
        assert world.stands(working) == "running"
        await anyio.sleep(minutes(2))
        ended = {fact.run: fact.state for fact in world.bodies(RunEnded)}
        assert ended == dict.fromkeys(
            (f"{asking}/look.1.1", f"{working}/look.1.1", f"{waiting}/check.1.1"), "succeeded"
        )
        assert (world.stands(working), world.code(working)) == ("parked", "unknown_phase")
        assert world.stands(waiting) == "closed"
        for one in (asking, working):
            assert any("has no phase" in text for text in world.comments(one))
            world.tracker.person_sets(one, "pat", remove_labels=("ashep:parked",))
        await anyio.sleep(minutes(2))
        assert {world.stands(one) for one in (asking, working)} == {"closed"}
    world.check()


class Counting(Reload):
    """Counts how often it would have read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, cast("Any", None), print)
        self.read = 0

    async def reload_files(self) -> None:
        self.read += 1

    async def reads(self, count: int) -> None:
        """Wait until it would have read so often."""
        await wait_until(lambda: self.read >= count)


@pytest.mark.virtual
async def test_the_agents_of_another_runner_come_with_it(tmp_path: Path) -> None:
    async with editing(tmp_path, None) as edited:
        world, reload, said = edited.world, edited.reload, edited.said
        start = len(world.bodies(Adopted))
        agents = tmp_path / "agents.yaml"
        (tmp_path / "config.yaml").write_text("version: 1\nrunners: {mine: {type: 'own:Mine'}}\n")
        agents.write_text(agents.read_text().replace("type: opencode", "type: mine"))
        await reload.reload_files()
        assert said == ["config.yaml: runners, and with them agents.yaml, will count from the next start"]
        assert len(world.bodies(Adopted)) == start
        assert world.world.agents is not None
        assert {agent.runner.type for agent in world.world.agents.agents} == {"opencode"}


@pytest.mark.promise("F6")
@pytest.mark.slow
async def test_a_signal_and_a_change_of_a_file_are_seen_and_others_are_not(tmp_path: Path) -> None:
    reload = Counting(tmp_path)
    async with meanwhile(reload.run):
        await reload.reads(1)  # once the watch has begun
        os.kill(os.getpid(), signal.SIGHUP)
        await reload.reads(2)
        (tmp_path / "runs.jsonl").write_text("x")
        await anyio.sleep(2)
        assert reload.read == 2
        fresh = tmp_path / "policies.yaml.new"
        fresh.write_text("x")
        fresh.replace(tmp_path / "policies.yaml")  # as editors write
        await reload.reads(3)
        (tmp_path / "prompts").mkdir()
        await reload.reads(4)
        await reload.reads(5)  # once that is watched, too
        (tmp_path / "prompts" / "task.md.j2").write_text("x")
        await reload.reads(6)


async def test_a_stop_does_not_wait_for_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload_module, "BEGUN", 60_000)
    with anyio.fail_after(60):
        async with meanwhile(Counting(tmp_path).run):
            await anyio.sleep(0.5)  # until it watches
