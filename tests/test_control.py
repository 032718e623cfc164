"""Control: what people ask a running daemon for becomes a fact, durable before it is answered, or it is refused."""

import json
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from typer.testing import CliRunner

from ashep.adapters.system import control_socket as wire
from ashep.cli.commands import app
from ashep.cli.running import daemon_control
from ashep.core.facts.issues import IssueParked
from ashep.core.facts.resources import WorkPaused, WorkResumed
from ashep.core.facts.runs import RunEnded, RunPlanned, TurnStopped
from ashep.daemon.control import Control
from ashep.errors import AshepError, UsageError
from ashep.journal.lock import Lock
from tests.loop_world import ACTOR, World, minutes, policy

pytestmark = pytest.mark.virtual

READ = policy({"name": "look", "capabilities": ["review"]}, {"name": "decide", "capabilities": ["arbitrate"]})


def line(do: str, **more: Any) -> bytes:
    return json.dumps({"do": do, **({} if do == "ask" else {"by": "ann"}), **more}).encode()


# --- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("K6")
async def test_a_pause_is_durable_before_it_is_answered_and_everything_goes_on_after_it(tmp_path: Path) -> None:
    world = World(tmp_path, policies=READ)
    for title in ("first", "second"):
        world.tracker.add(title)
    async with world.living() as running:
        control = Control(running.shepherd)
        told = await control.answer(line("pause", why="the night"))
        assert told["pauses"] == ["paused by ann until `ashep resume`: the night"]
        assert (told["paused"], told["runs"]) == (True, [])
        assert world.bodies(WorkPaused) == [WorkPaused("ann", "the night")]  # as the disk has it
        await anyio.sleep(minutes(5))
        assert not world.bodies(RunPlanned)
        told = await control.answer(line("resume"))
        assert told == {"runs": told["runs"], "pauses": [], "paused": False, "ended": [*told["ended"]]}
        assert len(told["ended"]) == 1
        await anyio.sleep(minutes(1))
        assert world.bodies(RunPlanned)


async def test_a_pause_with_an_end_is_over_then_also_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, policies=READ, issues=1)
    until = world.clock.now() + timedelta(hours=2)
    async with world.living() as running:
        await Control(running.shepherd).answer(line("pause", until=until.isoformat()))
    async with world.living():
        await anyio.sleep(minutes(100))
        assert not world.bodies(RunPlanned)
        await anyio.sleep(minutes(21))
        assert world.bodies(RunPlanned)


@pytest.mark.promise("K7")
async def test_what_runs_when_it_is_drained_ends_and_is_recorded(tmp_path: Path) -> None:
    world = World(tmp_path, policies=READ, issues=1)
    world.delay = 600
    async with world.living() as running:
        control = Control(running.shepherd)
        while not world.world.indexes.live:
            await running.shepherd.changed()
        await anyio.sleep(60)
        told = await control.answer(line("pause", drain=True))
        assert len(told["runs"]) == 1
        while told["runs"]:
            await anyio.sleep(10)
            told = await control.answer(line("ask"))
        assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded"]
        assert len(world.bodies(RunPlanned)) == 1


@pytest.mark.promise("K6")
async def test_a_cancelled_run_is_seen_to_stop_before_it_is_answered(tmp_path: Path) -> None:
    world = World(tmp_path, policies=READ)
    world.delay = 600
    issue = world.tracker.add("first")
    async with world.living() as running:
        control = Control(running.shepherd)
        while not world.world.indexes.live:
            await running.shepherd.changed()
        await anyio.sleep(60)
        run = f"{issue}/look.1.1"
        told = await control.answer(line("cancel", target=run))
        assert told == {"issue": issue, "run": run, "stopped": True}
        assert [(fact.run, fact.state, fact.why) for fact in world.bodies(RunEnded)] == [
            (run, "aborted", "cancelled by ann")
        ]
        assert [fact.code for fact in world.bodies(IssueParked)] == ["cancelled"]
        (stopped,) = world.bodies(TurnStopped)
        assert (stopped.n, stopped.tokens > 0, world.world.spending.tokens) == (1, True, stopped.tokens)
        await anyio.sleep(30)
        assert "ashep:parked" in world.issues()[issue].labels
        assert (await control.answer(line("cancel", target=run)))["error"] == f"{run} is not under way"
    world.check()


@pytest.mark.promise("K6")
@pytest.mark.parametrize(("request_", "said"), [
    (b"", "not understood"),
    (b"pause", "not understood"),
    (b"[1]", "not understood"),
    (b'{"do": "stop", "by": "ann"}', "not understood"),
    (b'{"do": "pause"}', "not understood: pause.by: Field required"),
    (b'{"do": "pause", "by": ""}', "not understood: pause.by"),
    (line("pause", forever=True), "not understood: pause.forever"),
    (line("pause", until="2026-01-01T07:00:00"), "not understood: pause.until"),
    (line("pause", until="2001-01-01T07:00:00Z"), "2001-01-01 07:00:00Z is over"),
    (line("pause", provider="nobody"), "no agent runs on nobody"),
    (line("pause", by="ashep-agent"), "ashep-agent is no person"),
    (line("resume", by=ACTOR), f"{ACTOR} is no person"),
    (line("cancel", by=ACTOR, target="x"), f"{ACTOR} is no person"),
    (line("cancel", target="nope-1"), "there is no issue and no run nope-1"),
])  # fmt: skip
async def test_what_is_not_understood_or_not_a_persons_is_refused_and_leaves_nothing(
    tmp_path: Path, request_: bytes, said: str
) -> None:
    world = World(tmp_path, policies=READ)
    async with world.living() as running:
        await anyio.sleep(5)
        before = len(world.journal())
        told = await Control(running.shepherd).answer(request_)
        assert told["error"].startswith(said), told
        assert len(world.journal()) == before


@pytest.mark.promise("P14")
@pytest.mark.parametrize("do", ["pause", "resume", "cancel"])
async def test_who_is_not_named_asks_in_vain(tmp_path: Path, do: str) -> None:
    world = World(tmp_path, policies=READ, config="version: 1\npeople: {tracker: [ANN]}\n", issues=1)
    target = {"target": "t-1"} if do == "cancel" else {}
    async with world.living() as running:
        await anyio.sleep(5)
        told = await Control(running.shepherd).answer(line(do, by="bob", **target))
        assert told["error"].startswith("bob is not named in `people.tracker`"), told
        assert not [*world.bodies(WorkPaused), *world.bodies(WorkResumed), *world.bodies(IssueParked)]
        assert "error" not in await Control(running.shepherd).answer(line(do, **target))


async def test_going_on_is_a_fact_also_where_nothing_was_paused(tmp_path: Path) -> None:
    world = World(tmp_path, policies=READ)
    async with world.living() as running:
        await anyio.sleep(5)
        told = await Control(running.shepherd).answer(line("resume"))
        assert told["ended"] == []
        assert len(world.bodies(WorkResumed)) == 1


# --- the socket ---------------------------------------------------------------------------------------------------


@contextmanager
def listening(state: Path, environ: dict[str, str], answer: wire.Answer | None = None) -> Iterator[list[str]]:
    """A daemon that answers, in a thread of its own, and holds the state folder."""
    said: list[str] = []

    async def echo(request: bytes) -> dict[str, Any]:
        return {"you": json.loads(request)}

    async def run() -> None:
        await wire.serve(state, environ, answer or echo, said.append)

    with Lock.acquire(state, datetime.now(UTC)), anyio.from_thread.start_blocking_portal() as portal:
        future = portal.start_task_soon(run)
        for _ in range(500):
            with suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str((state / wire.LINK).readlink()))
                break
            if said or future.done():
                break
            threading.Event().wait(0.01)
        yield said
        future.cancel()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A state folder, and a runtime folder with a path that is short enough wherever tests run."""
    runtime = Path(tempfile.mkdtemp(prefix="ashep-r-", dir="/tmp"))
    yield tmp_path / "s", {"XDG_RUNTIME_DIR": str(runtime)}
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.mark.promise("K5")
def test_it_is_this_users_alone_and_is_found_by_its_link(home: tuple[Path, dict[str, str]]) -> None:
    state, environ = home
    with listening(state, environ):
        path = (state / wire.LINK).readlink()
        assert path.parent == Path(environ["XDG_RUNTIME_DIR"]) / "ashep"
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
        assert wire.ask(state, {"do": "ask"}) == {"you": {"do": "ask"}}
    assert not path.exists()
    assert not (state / wire.LINK).is_symlink()
    with pytest.raises(AshepError, match="does not listen"):
        wire.ask(state, {"do": "ask"})


@pytest.mark.promise("K5")
def test_what_a_killed_daemon_left_is_replaced(home: tuple[Path, dict[str, str]]) -> None:
    state, environ = home
    state.mkdir()
    path = wire.place(state, environ)
    assert path is not None
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    (state / wire.LINK).symlink_to(path)
    with pytest.raises(AshepError, match="does not listen"):
        wire.ask(state, {})
    with listening(state, environ):
        assert wire.ask(state, {"do": "ask"}) == {"you": {"do": "ask"}}


@pytest.mark.promise("K5")
def test_it_lies_where_it_is_private_and_its_path_is_short(home: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    state, environ = home
    runtime = Path(environ["XDG_RUNTIME_DIR"])
    first, second, third = wire.places(state, environ)
    assert first.name == second.name == third.name
    assert next(wire.places(tmp_path / "t", environ)).name != first.name
    assert wire.place(state, environ) == first
    (runtime / "ashep").chmod(0o755)
    assert wire.place(state, environ) == second
    assert second.parent.name == f"ashep-{os.getuid()}"
    long = {"XDG_RUNTIME_DIR": str(runtime / ("x" * 90))}
    Path(long["XDG_RUNTIME_DIR"]).mkdir()
    assert wire.place(state, long) == second
    assert wire.place(state, {"XDG_RUNTIME_DIR": str(runtime / "gone")}) == second
    assert next(wire.places(state, {})) == second


def test_without_a_place_the_daemon_says_so_and_goes_on(
    home: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LONGEST_PATH", 3)
    with listening(*home) as said:
        assert len(said) == 1


@pytest.mark.promise("K6")
def test_a_request_has_bounds_and_the_next_one_is_answered(
    home: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, environ = home
    monkeypatch.setattr(wire, "READING", 0.2)
    monkeypatch.setattr(wire, "ANSWERING", 0.2)

    async def never(request: bytes) -> dict[str, Any]:
        await anyio.sleep(60 if b"slow" in request else 0)
        return {}

    with listening(state, environ, never):
        path = str((state / wire.LINK).readlink())
        for sent in (b"", b"half a li", b"x" * (wire.LONGEST_LINE + 1), b"slow\n"):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(10)
                peer.connect(path)
                with suppress(BrokenPipeError):
                    peer.sendall(sent)
                assert b'"error"' in peer.makefile("rb").readline()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)  # and away
        assert wire.ask(state, {}) == {}


# --- commands -----------------------------------------------------------------------------------------------------

COMMANDS = [["pause"], ["pause", "--for", "2h"], ["resume"], ["drain"], ["cancel", "t-1"]]


@pytest.mark.promise("K7")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_a_daemon_a_command_says_that_nothing_runs(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / ".agent-shepherd" / "state").mkdir(parents=True)
    with pytest.raises(AshepError, match="ashep is not running") as raised:
        CliRunner().invoke(app, ["-C", str(tmp_path), *words], catch_exceptions=False)
    assert raised.value.exit_code == 1


@pytest.mark.promise("K7")
@pytest.mark.may_block
def test_commands_ask_the_daemon_in_the_persons_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / ".agent-shepherd" / "state"
    state.mkdir(parents=True)
    (tmp_path / ".agent-shepherd" / "config.yaml").write_text("version: 1\n")
    monkeypatch.setattr(daemon_control, "_LOOK", 0.01)
    for name in ("BEADS_ACTOR", "BD_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    for key, value in {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ann"}.items():
        monkeypatch.setenv(key, value)
    asked: list[dict[str, Any]] = []
    runs = [["t-1/review.1.1"], ["t-1/review.1.1"], []]

    async def answer(request: bytes) -> dict[str, Any]:
        asked.append(json.loads(request))
        left = runs.pop(0) if runs and asked[-1]["do"] in ("pause", "ask") else []
        cancelled = {"issue": "t-1", "run": "t-1/review.1.1", "stopped": True}
        return {"runs": left, "pauses": ["paused by Ann"], "paused": True, "ended": []} | cancelled

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["-C", str(tmp_path), *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    with listening(state, {"XDG_RUNTIME_DIR": str(tmp_path)}, answer):
        assert run("drain", "-m", "a new kernel").splitlines() == [
            "still under way: t-1/review.1.1", "drained: nothing runs",
        ]  # fmt: skip
        assert [one["do"] for one in asked] == ["pause", "ask", "ask"]
        assert asked[0] == {
            "do": "pause", "by": "Ann", "until": None, "why": "a new kernel", "drain": True,
        }  # fmt: skip
        assert "aborted; its session is at rest" in run("cancel", "t-1")
        assert run("resume") == "still paused by Ann\nnothing was paused\n"
        assert run("pause", "--for", "2h", "--provider", "acme").startswith("acme is paused until 20")
        assert asked[-1]["provider"] == "acme"
        left = datetime.fromisoformat(asked[-1]["until"]) - datetime.now(UTC)
        assert timedelta(minutes=119) < left <= timedelta(hours=2)
        monkeypatch.setenv("BEADS_ACTOR", "ashep-agent")
        with pytest.raises(UsageError, match="only a person"):
            run("pause")


@pytest.mark.parametrize(("text", "then"), [
    ("07:00", "2026-03-02T07:00"),
    ("22:31", "2026-03-01T22:31"),
    ("22:30", "2026-03-02T22:30"),
    ("2026-03-05T12:00", "2026-03-05T12:00"),
])  # fmt: skip
def test_a_time_of_day_is_the_next_one(text: str, then: str) -> None:
    at = datetime(2026, 3, 1, 22, 30).astimezone()
    assert daemon_control._end(None, text, at) == datetime.fromisoformat(then).astimezone()


def test_a_time_that_is_none_is_told() -> None:
    at = datetime.now(UTC)
    for words in ((None, "noon"), (None, "25:00"), ("soon", None), ("1h", "07:00")):
        with pytest.raises(UsageError):
            daemon_control._end(*words, at)
