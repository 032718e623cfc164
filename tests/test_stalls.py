"""Stalls in a whole daemon, over memory and virtual time: what hangs is noticed in time, what lives is left alone."""

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from ashep.config import load
from ashep.core.facts.resources import TimerDue
from ashep.core.facts.runs import RunEnded, RunPlanned
from ashep.extras.simulation.memory.runner import Play, Prompted
from tests.full import amount
from tests.loop_world import World, minutes, policy, said

pytestmark = pytest.mark.virtual

AFTER, CHECK, MANY = minutes(5), 2.0, amount(25, 70)
PHASE: dict[str, object] = {"name": "check", "capabilities": ["review"], "timeout": "12h"}


def one_phase(**stall: object) -> str:
    limits = {"max_runs": 100, "max_wall_time": "30d"}
    rule: dict[str, object] = {"after": "5m", "tool_timeout": "1h"}
    return policy(PHASE | {"stall": rule | stall}, limits=limits)


@pytest.mark.promise("T11")
async def test_a_turn_that_hangs_is_ended_within_the_bound_and_one_check(tmp_path: Path) -> None:
    world = World(tmp_path / "p", policies=one_phase(), issues=1)
    world.answer = lambda _, asked: Play(fate="hangs") if ".1.1" in asked.key else None
    await world.finish()
    ended = [entry for entry in world.journal() if isinstance(entry.body, RunEnded)]
    assert [entry.body.state for entry in ended] == ["stalled", "succeeded"]  # type: ignore[union-attr]
    sent = next(at for at in (session.messages[0].at for session in world.runner.sessions.values()))
    took = (ended[0].at - sent).total_seconds()
    assert AFTER <= took <= AFTER + CHECK + 1
    assert not await world.runner.busy(world.runner.sessions)


@pytest.mark.promise("T12")
async def test_a_turn_that_hangs_is_looked_into_and_the_next_agent_does_it(tmp_path: Path) -> None:
    """The agent of the highest priority hangs whenever it works; another one reads that, and says so."""
    phase: dict[str, object] = {"name": "implement", "stall": {"after": "5m", "action": "diagnose"}}
    world = World(tmp_path / "p", policies=policy(phase))
    hands = [{"id": name, "capabilities": ["implement"], "read_write": "write"} for name in ("first", "second")]
    doctor = {"id": "doctor", "capabilities": ["debug"], "runner": {"agent_slug": "plan"}}
    team = {"version": 1, "agents": [hands[0] | {"priority": 9, "runner": {"agent_slug": "build"}}, hands[1], doctor]}
    (tmp_path / "p" / "agents.yaml").write_text(yaml.safe_dump(team))
    world.configuration = load(tmp_path / "p")
    world.tracker.add("first")
    asked: list[Prompted] = []

    def answer(_: World, prompt: Prompted) -> Play | None:
        asked.append(prompt)
        if prompt.key.endswith("/diagnose"):
            return Play(text=said("doctor", verdict="change_agent", summary="it waits for a key"), delay=20)
        return Play(fate="hangs") if prompt.agent == "build" else None

    world.answer = answer
    await world.finish()
    assert [(run.agent, run.attempt) for run in world.bodies(RunPlanned)] == [("first", 1), ("second", 2)]
    (looked,) = [prompt for prompt in asked if prompt.key.endswith("/diagnose")]
    assert "Another agent, first, worked on the phase `implement`" in looked.text
    assert "doctor says change_agent: it waits for a key" in world.bodies(RunEnded)[0].why
    assert not await world.runner.busy(world.runner.sessions)
    assert all(count == 1 for count in world.runner.deliveries.values())


async def test_a_turn_that_falls_silent_later_is_ended_within_the_bound_of_its_last_sign(tmp_path: Path) -> None:
    """It shows a sign each 4 minutes, and none after 40."""
    world = World(tmp_path / "p", policies=one_phase(), issues=1)
    world.answer = lambda _, asked: Play(pulse=AFTER * 0.8, delay=1e9) if ".1.1" in asked.key else None
    points = world.clock.monotonic() + minutes(40)

    def quiet_by_now() -> bool:
        if world.clock.monotonic() < points:
            return False
        for session in world.runner.sessions.values():
            for message in session.messages:
                if message.work is not None and ".1.1" in session.request.key:
                    message.work.play = Play(pulse=None, delay=1e9)
                    message.work.at = world.clock.monotonic()
        return True

    await world.live(quiet_by_now)
    silent = world.clock.now()
    await world.live(lambda: any(isinstance(entry.body, RunEnded) for entry in world.entries))
    ended = next(entry for entry in world.journal() if isinstance(entry.body, RunEnded))
    assert isinstance(ended.body, RunEnded)
    assert ended.body.state == "stalled"
    # the daemon began anew meanwhile: what it did not watch itself does not count
    assert timedelta(seconds=AFTER) <= ended.at - silent <= timedelta(seconds=2 * AFTER + CHECK + 1)


@pytest.mark.promise("T11")
@pytest.mark.parametrize(("name", "play"), [
    ("one token each after x 0.8", Play(text=said("check"), pulse=AFTER * 0.8, delay=AFTER * 8)),
    ("a tool that runs ten times as long", Play(text=said("check"), pulse=None, tool="bash", delay=AFTER * 10)),
    ("a quiet parent with a busy child", Play(text=said("check"), pulse=3.0, tool=None, delay=AFTER * 6)),
])  # fmt: skip
@pytest.mark.slow
async def test_none_of_many_slow_healthy_agents_is_ended(tmp_path: Path, name: str, play: Play) -> None:
    """Many of each kind; a subagent's signs are the parent's (tests/conformance/test_runner.py, tests/test_life.py)."""
    config = "version: 1\nworker: {max_concurrent_runs: 64, lock_work_tree: false}\n"
    world = World(tmp_path / "p", policies=one_phase(), config=config, issues=MANY)
    world.answer = lambda _, asked: play
    await world.finish()
    assert {fact.state for fact in world.bodies(RunEnded)} == {"succeeded"}, name
    looked = [fact for fact in world.bodies(TimerDue) if fact.key.startswith("stall:")]
    assert len(looked) >= MANY  # it was asked after them all the same


async def test_a_tool_that_never_ends_is_ended_by_its_own_bound(tmp_path: Path) -> None:
    world = World(tmp_path / "p", policies=one_phase(), issues=1)

    def answer(_: World, asked: Prompted) -> Play | None:
        return Play(fate="hangs", pulse=None, tool="bash") if ".1.1" in asked.key else None

    world.answer = answer
    await world.live()
    ended = [entry for entry in world.journal() if isinstance(entry.body, RunEnded)]
    assert isinstance(ended[0].body, RunEnded)
    assert (ended[0].body.state, "bash" in ended[0].body.why) == ("stalled", True)
    sent = next(session.messages[0].at for session in world.runner.sessions.values())
    assert minutes(60) <= (ended[0].at - sent).total_seconds() <= minutes(65) + CHECK + 1


async def test_a_stall_while_the_stream_was_cut_is_noticed_later_and_never_wrongly(tmp_path: Path) -> None:
    """Between two lives of the daemon nobody watches: a turn that lives is left alone, whatever was missed."""
    world = World(tmp_path / "p", policies=one_phase(), issues=1)
    world.answer = lambda _, asked: Play(text=said("check"), pulse=AFTER * 0.9, delay=AFTER * 12)
    for number in range(1, 12):
        goal = world.clock.monotonic() + AFTER * number * 0.97
        await world.live(lambda goal=goal: world.all_closed() or world.clock.monotonic() >= goal)
    await world.live()
    assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded"]
