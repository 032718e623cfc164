"""A turn begins once, whoever is killed when; what died in the midst is seen, and begins again where that is asked."""

import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.runners.claude.session_store import Attempt
from ashep.adapters.system import process_table, programs
from ashep.errors import RunnerUnavailable
from ashep.extras.demo.scripted_model import Call, Reply
from ashep.extras.testing.worlds import Act, asked_of_model, begun, name, opened, prompt, settled
from ashep.ports.runner import Prompt
from tests.conformance.claudes import ClaudeWorld
from tests.full import repeated

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


async def owned(world: ClaudeWorld, word: str, when: str) -> tuple[str, str, str]:
    """What another daemon sent that is dead by now: session, message, and the instance that it was told."""
    message = f"msg_{name()}"
    argv = [sys.executable, "-m", "tests.claude.owner", world.program, world.kept, world.directory, world.home]
    done = await programs.run([*argv, name(), message, word, when], cwd=ROOT, env=world.environ, timeout=240)
    assert done.returncode == -9, done.stderr
    session, instance = done.stdout.decode().split()
    return session, message, instance


async def test_a_turn_goes_on_without_its_daemon_and_its_end_is_taken_from_the_files(world: ClaudeWorld) -> None:
    word = name()
    world.acts[word] = Act("THE END", delay=3)
    session, message, instance = await owned(world, word, "begun")
    turn = await world.runner.turn(session, message)
    assert (turn.state, turn.instance) == ("running", instance)
    assert session in await world.runner.busy((session,))
    turn = await settled(world, session, message)
    assert (turn.text, turn.error, turn.instance) == ("THE END", None, instance)
    assert turn.cost > 0
    assert await world.runner.send(Prompt(session, message, "prt_1", word)) == instance
    assert world.model.requests_seen(word) == 1


async def test_without_a_daemon_nothing_begins_and_then_it_does_once(world: ClaudeWorld) -> None:
    word = name()
    session, message, instance = await owned(world, word, "at-once")
    with anyio.fail_after(60):
        while (turn := await world.runner.turn(session, message)).state == "running":
            await anyio.sleep(0.05)
    assert (turn.state, turn.instance) == ("missing", f"{instance} ended")
    assert world.model.requests_seen(word) == 0
    assert await world.runner.send(Prompt(session, message, "prt_1", word)) != instance
    assert (await settled(world, session, message)).text == "END"
    assert (world.seen(word), world.begun) == (1, [(session, message)])


async def test_killed_at_the_gate_it_may_have_begun_and_begins_again_where_it_is_asked_for(world: ClaudeWorld) -> None:
    at_gate, opens = anyio.Event(), anyio.Event()

    async def waits(*_: str) -> bool:
        at_gate.set()
        await opens.wait()
        return True

    await world.runner.aclose()
    runner = world.another(begin=waits)
    await runner.start()
    session, word = await opened(world), name()
    sent = prompt(session, word)
    first = await runner.send(sent)
    with anyio.fail_after(60):
        await at_gate.wait()
    assert (await runner.turn(session, sent.message_id)).state == "running"
    await world.kill()
    opens.set()
    turn = await runner.turn(session, sent.message_id)
    assert (turn.state, turn.instance) == ("incomplete", f"{first} ended")
    assert await runner.send(sent) != first
    assert (await settled(world, session, sent.message_id)).text == "END"
    assert world.seen(word) == 1
    await runner.aclose()


@pytest.mark.parametrize("by", ["send", "abort"])
async def test_killed_in_a_tool_the_tool_ends_too_before_anything_begins(world: ClaudeWorld, by: str) -> None:
    word, mark = name(), world.directory / "at-work"
    world.steps[word] = [Call("bash", {"command": f"echo $$ > {mark}; exec sleep 25", "description": "wait"})]
    session = await opened(world)
    sent = prompt(session, word)
    first = await world.runner.send(sent)
    with anyio.fail_after(60):
        while not await anyio.Path(mark).exists() or not (pid := await anyio.Path(mark).read_text()).strip():
            await anyio.sleep(0.02)
    _, started = await anyio.to_thread.run_sync(process_table.stat, int(pid))
    await world.kill()
    assert await anyio.to_thread.run_sync(process_table.lives, int(pid), started), (
        "the tool has a session of its own (facts/claude-code.md 26)"
    )
    turn = await world.runner.turn(session, sent.message_id)
    assert (turn.state, turn.instance, turn.tokens > 0) == ("incomplete", f"{first} ended", True)
    world.steps[word] = []
    await (world.runner.send(sent) if by == "send" else world.runner.abort(session))
    assert not await anyio.to_thread.run_sync(process_table.lives, int(pid), started)
    await world.runner.send(sent)
    assert (await settled(world, session, sent.message_id)).text == "END"
    assert world.seen(word) == 2


@pytest.mark.parametrize("by", ["terminated", *repeated("aborted", "killed")])
async def test_what_a_stopped_turn_cost_is_known_and_nobody_pays_it_again(world: ClaudeWorld, by: str) -> None:
    """facts/claude-code.md 71: it is in the transcript, but for one that was killed outright."""
    look = Call("bash", {"command": "true", "description": "look"})
    calls = [Reply(calls=(look,), tokens=(50_000, 100)), Reply(calls=(look,), tokens=(50_000, 100)), Reply(hang=True)]
    world.model.script = lambda ask: calls[len(ask.results)] if "first" in ask.prompt else Reply("END", tokens=(7, 0))
    session = await opened(world)
    first, second = prompt(session, "first"), prompt(session, "second")
    await world.runner.send(first)
    with anyio.fail_after(60):
        while len(world.model.asks) < 3:
            await anyio.sleep(0.02)
    if by == "aborted":
        await world.runner.abort(session)
    else:
        await world.kill(signal.SIGTERM if by == "terminated" else signal.SIGKILL)
    cost = 0.0 if by == "killed" else 2 * (50_000 * 3 + 100 * 15) / 1e6
    turn = await world.runner.turn(session, first.message_id)
    assert (turn.tokens, turn.cost) == (2 * 50_100, pytest.approx(cost))
    await world.runner.send(second)
    turn = await settled(world, session, second.message_id)
    assert (turn.tokens, turn.cost) == (7, pytest.approx(7 * 3e-6))
    turn = await world.runner.turn(session, first.message_id)
    assert (turn.tokens, turn.cost) == (2 * 50_100, pytest.approx(cost))


async def test_killed_with_its_daemon_it_is_seen_by_the_next_one(world: ClaudeWorld) -> None:
    word = name()
    world.acts[word] = Act(does="hangs")
    session, message, instance = await owned(world, word, "begun")
    await asked_of_model(world, word)
    await world.kill()
    turn = await world.runner.turn(session, message)
    assert (turn.state, turn.instance) == ("incomplete", f"{instance} ended")
    world.acts[word] = Act("AFTER")
    assert await world.runner.send(Prompt(session, message, "prt_1", word)) != instance
    assert (await settled(world, session, message)).text == "AFTER"
    assert (world.seen(word), world.begun) == (2, [(session, message)])


@pytest.mark.parametrize("at", ["start", "gate"])
async def test_killed_at_any_moment_it_is_asked_as_often_as_it_began(world: ClaudeWorld, at: str) -> None:
    async def once(delay: float) -> None:
        session, word = await opened(world), name()
        world.steps[word] = [Call("bash", {"command": "true", "description": "look"})]
        sent = prompt(session, word)
        pid, started = map(int, (await world.runner.send(sent)).split("."))
        while at == "gate" and (session, sent.message_id) not in world.begun:
            await anyio.sleep(0.005)
        await anyio.sleep(delay)
        await process_table.kill(pid, started, RunnerUnavailable)
        died = await world.runner.turn(session, sent.message_id)
        began = world.begun.count((session, sent.message_id))
        assert world.seen(word) <= began, "and never without having been written down"
        assert (died.state != "missing") is (began == 1)
        await world.runner.send(sent)
        turn = await settled(world, session, sent.message_id)
        assert (turn.text, turn.error, turn.people) == ("END", None, ())
        assert world.seen(word) <= (1 if died.state in ("missing", "finished") else 2)

    async with anyio.create_task_group() as group:
        for k in range(4):
            group.start_soon(once, 0.1 + 0.12 * k)


async def test_a_process_that_nobody_wrote_down_is_found(world: ClaudeWorld) -> None:
    """The daemon was killed between its start and the note of it."""
    session, word, sent = await begun(world, Act(does="hangs"), runs=True)
    await asked_of_model(world, word)
    known = await world.runner.turn(session, sent.message_id)
    (note,) = await anyio.to_thread.run_sync(lambda: [*world.kept.glob("sessions/*/turns/*/1/process.json")])
    note.unlink()
    other = world.another()
    await other.start()
    turn = await other.turn(session, sent.message_id)
    assert (turn.state, turn.instance) == ("running", known.instance)
    assert await other.send(sent) == known.instance
    await other.abort(session)
    assert (await other.turn(session, sent.message_id)).error == "MessageAbortedError: the turn was stopped"
    assert world.seen(word) == 1
    await other.aclose()


async def test_two_daemons_begin_a_prompt_once(world: ClaudeWorld) -> None:
    other, word = world.another(), name()
    await other.start()
    session = await opened(world)
    sent = prompt(session, word)
    instances = list[str]()

    async def send(runner: object) -> None:
        instances.append(await runner.send(sent))  # pyright: ignore[reportAttributeAccessIssue] - one of the two

    async with anyio.create_task_group() as group:
        group.start_soon(send, world.runner)
        group.start_soon(send, other)
    await settled(world, session, sent.message_id)
    assert (len({*instances}), world.seen(word)) == (1, 1)
    await other.aclose()


@pytest.mark.promise("E5")
async def test_a_process_that_cannot_start_has_begun_no_turn_and_says_why(world: ClaudeWorld) -> None:
    await world.runner.aclose()
    odd = world.another()
    odd._command = (*odd._command, "--no-such-option")  # pyright: ignore[reportPrivateUsage] - a wrong configuration
    await odd.start()
    session = await opened(world)
    sent = prompt(session, name())
    await odd.send(sent)
    with anyio.fail_after(60):
        while not (turn := await odd.turn(session, sent.message_id)).not_started:
            await anyio.sleep(0.05)
    assert (turn.state, turn.error) == ("missing", None)
    assert "no-such-option" in turn.not_started
    await odd.aclose()


def test_an_attempt_is_named_by_where_it_stands(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path / "sessions" / "s" / "turns" / "msg_1" / "2")
    assert (attempt.name, attempt.number, os.path.basename(attempt.folder)) == ("s/msg_1/2", 2, "2")
