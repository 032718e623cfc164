"""Agents that speak ACP and do what a real one seldom does; and what holds whatever they do."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.runners.acp import AcpRunner
from ashep.adapters.runners.acp.mailbox import MARK, MOST_RECORD
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.sandboxes import registered_processes
from ashep.adapters.sandboxes.profiles import SandboxProfiles
from ashep.adapters.sandboxes.session_sandboxes import SessionSandboxes
from ashep.adapters.system.process_table import ProcessMark, holders_of
from ashep.core.facts.runs import Model, Quota, QuotaWindow
from ashep.core.policy.policies import PermissionRule
from ashep.core.policy.settings import AgentPaths, AgentsSettings
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.ports.runner import Prompt, SessionRequest, Turn
from tests.acp.worlds import end_all, folder_of, keepers, kill_keepers
from tests.places import has_bubblewrap

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

COMMAND = (sys.executable, "-S", str(Path(__file__).with_name("agent.py")))


class Place:
    """A folder in which scripted agents work."""

    def __init__(self, path: Path) -> None:
        self.work, self.store, self.kept = path / "work", path / "store", path / "kept"
        for made in (self.work, self.store):
            made.mkdir()
        self.runner = self.another()

    def another(self, **more: object) -> AcpRunner:
        environ = {**os.environ, "STORE": str(self.store)}
        return AcpRunner(COMMAND, directory=self.work, folder=self.kept, environ=environ, name="scripted", **more)  # pyright: ignore[reportArgumentType] - a test's

    def asked(self) -> list[tuple[str, str]]:
        """Every prompt that an agent was given, with the mode it was in."""
        file = self.store / "asked"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    async def begin(self, text: str, access: str = "write", rules: Sequence[PermissionRule] = ()) -> Prompt:
        await self.runner.start()
        request = SessionRequest(f"k:{text}", "a test", access, permissions=tuple(rules))  # pyright: ignore[reportArgumentType]
        prompt = Prompt(await self.runner.open_session(request), "msg_1", "prt_1", text)
        await self.runner.send(prompt)
        return prompt

    async def reached(self, prompt: Prompt, state: str = "finished", runner: AcpRunner | None = None) -> Turn:
        with anyio.fail_after(60):
            while True:
                turn = await (runner or self.runner).turn(prompt.session, prompt.message_id)
                if turn.state == state:
                    return turn
                await anyio.sleep(0.02)

    async def question(self, prompt: Prompt, runner: AcpRunner | None = None) -> str:
        with anyio.fail_after(60):
            while not (found := await (runner or self.runner).requests((prompt.session,))):
                await anyio.sleep(0.02)
        assert [(one.kind, one.tool, one.patterns) for one in found] == [("permission", "read", ("secret.env",))]
        return found[0].id

    async def processes(self, prompt: Prompt) -> list[tuple[int, int]]:
        mark = ProcessMark(MARK, str(folder_of(self.kept, prompt.session).path))
        return await anyio.to_thread.run_sync(holders_of, mark)


@pytest.fixture(scope="module")
def about(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the scripted agent can do, once it was asked."""
    return tmp_path_factory.mktemp("acp") / "about.json"


@pytest.fixture
async def place(tmp_path: Path, about: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    if about.exists():
        place.kept.mkdir()
        shutil.copy(about, place.kept)
    yield place
    await end_all(place.kept)
    if not about.exists() and (place.kept / "about.json").exists():
        shutil.copy(place.kept / "about.json", about)


@pytest.mark.promise("X9")
async def test_an_agent_that_works_at_its_start_is_waited_for_and_its_prompt_is_not_in_doubt(place: Place) -> None:
    await place.runner.start()
    (place.store / "flags").write_text("works:3")
    place.runner = place.another(start_timeout=timedelta(seconds=1))
    prompt = await place.begin("slow")
    with anyio.fail_after(60):
        while not (turn := await place.runner.turn(prompt.session, prompt.message_id)).starting:
            await anyio.sleep(0.02)
    assert (turn.state, turn.not_started) == ("stored", "")
    done = await place.reached(prompt)
    assert (done.error, done.starting) == (None, False)
    assert len(place.asked()) == 1


@pytest.mark.promise("E5", "X9")
@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("sleeps:30", "AgentSilent: no answer to initialize within 1 s; it had used 0 s of CPU, and was ended"),
        ("dies", "AgentDied: it ended with 1: npm error network: no such host"),
    ],
)
async def test_an_agent_that_does_not_start_has_begun_no_turn(place: Place, flag: str, why: str) -> None:
    """The next prompt may go to the same session, and its agent gets twice as long."""
    await place.runner.start()
    (place.store / "flags").write_text(flag)
    place.runner = place.another(start_timeout=timedelta(seconds=1))
    prompt = await place.begin("never")
    with anyio.fail_after(60):
        while not (turn := await place.runner.turn(prompt.session, prompt.message_id)).not_started:
            await anyio.sleep(0.02)
    assert (turn.state, turn.error, turn.not_started) == ("stored", None, why)
    assert await place.processes(prompt) == []
    assert await place.runner.busy((prompt.session,)) == frozenset()
    (place.store / "flags").write_text("sleeps:1.5")
    again = Prompt(prompt.session, "msg_2", "prt_2", "never")
    await place.runner.send(again)
    assert (await place.reached(again)).error is None
    assert len(place.asked()) == 1


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
async def test_nothing_is_done_outside_for_an_agent_in_a_sandbox_and_its_session_goes_with_its_place(
    place: Place,
) -> None:
    things = place.work.parent / "things"
    agents = AgentsSettings(sandbox="bwrap", paths=AgentPaths(write=(str(place.store),)))
    surroundings = SandboxProfiles(place.work.parent / "project", place.work.parent / "places", (), agents, os.environ)
    place.runner = place.another(
        quarters=SessionSandboxes(
            surroundings, place_of=lambda _: place.work, folder_of=lambda _: things,
            needs=lambda: (Path(COMMAND[-1]),),
        )
    )  # fmt: skip
    prompt = await place.begin(f"FS:{place.work / 'in.txt'}")
    assert (await place.reached(prompt)).text == "END of default"
    assert "Method not found" in await place.runner.transcript(prompt.session, 1000)
    assert not [*place.work.iterdir()]
    await registered_processes.evict(things, RunnerUnavailable)
    assert (await anyio.to_thread.run_sync(keepers, place.kept), await place.processes(prompt)) == ([], [])
    assert await place.runner.has_session(prompt.session)
    for one in (things, *place.store.glob("s*.jsonl")):
        one.rename(place.work.parent / f"was {one.name}")
    assert not await place.runner.has_session(prompt.session)
    assert (await place.begin(f"FS:{place.work / 'in.txt'}")).session == prompt.session
    again = Prompt(prompt.session, "msg_2", "prt_2", "and on")
    await place.runner.send(again)
    assert (await place.reached(again)).text == "END of default", "in another session of the agent's"


OWNER = """
import anyio, os, sys
from pathlib import Path
from ashep.ports.runner import Prompt, SessionRequest
from tests.acp.test_acp_cases import Place
async def main():
    place = object.__new__(Place)
    root = Path(sys.argv[1])
    place.work, place.store, place.kept = root / "work", root / "store", root / "kept"
    place.runner = place.another()
    sent = await place.begin(sys.argv[2])
    await place.reached(sent, "running")
    print(sent.session, flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


async def owned(place: Place, text: str) -> Prompt:
    """Have another process begin a turn, and kill it in the midst of it."""

    def play() -> str:
        argv = [sys.executable, "-c", OWNER, str(place.work.parent), text]
        owner = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert owner.stdout is not None
        session = owner.stdout.readline().strip()
        os.killpg(owner.pid, signal.SIGKILL)
        owner.stdout.close()
        owner.wait()
        return session

    session = await anyio.to_thread.run_sync(play)
    await place.runner.start()
    return Prompt(session, "msg_1", "prt_1", text)


async def test_the_death_of_who_sent_it_ends_no_turn(place: Place) -> None:
    """Nor is it begun again by who comes after."""
    prompt = await owned(place, "SLOW")
    assert (await place.runner.turn(prompt.session, "msg_1")).state == "running"
    await place.runner.send(prompt)
    turn = await place.reached(prompt)
    assert (turn.text, len(place.asked())) == ("END of default", 1)


async def test_a_permission_is_answered_by_another_life_of_ours(place: Place) -> None:
    prompt = await owned(place, "ASKS")
    asked = await place.question(prompt)
    assert await place.runner.reply(prompt.session, asked, "permission", "deny", (), "not that one")
    assert not await place.runner.reply(prompt.session, asked, "permission", "allow", (), "")
    assert (await place.reached(prompt)).text == "END of default"


async def test_a_turn_that_died_with_its_keeper_is_begun_again_when_it_is_sent_again(place: Place) -> None:
    prompt = await place.begin("HANGS")
    running = await place.reached(prompt, "running")
    while not place.asked():
        await anyio.sleep(0.02)
    await kill_keepers(place.kept)
    turn = await place.runner.turn(prompt.session, "msg_1")
    assert (turn.state, turn.instance) == ("incomplete", f"{running.instance} ended")
    assert await place.runner.busy((prompt.session,)) == frozenset()
    taken = await place.runner.send(prompt)
    assert (await place.reached(prompt, "running")).instance == taken != running.instance
    while len(place.asked()) < 2:
        await anyio.sleep(0.02)
    await place.runner.abort(prompt.session)
    assert str((await place.reached(prompt)).error).startswith("MessageAbortedError: ")


async def test_a_turn_whose_end_nobody_saw_is_found_by_its_key_and_not_asked_again(place: Place) -> None:
    """And who else wrote there since is told."""
    prompt = await place.begin("HANGS")
    await place.reached(prompt, "running")
    while not (kept := [*place.store.glob("*.jsonl")]):
        await anyio.sleep(0.02)
    await kill_keepers(place.kept)
    with kept[0].open("a") as file:
        said = [("user's own", "go on"), ("agent", "THE END"), ("user", "a person was here"), ("agent", "OH")]
        for number, (who, text) in enumerate(said):
            file.write(json.dumps({"who": who, "text": text, "id": f"p{number}"}) + "\n")
    await place.runner.send(prompt)
    turn = await place.reached(prompt)
    assert (turn.text, turn.people, turn.error, len(place.asked())) == ("THE END", ("p2",), None, 1)
    assert set(await place.runner.asked(prompt.session)) == {"msg_1", "p2"}


async def test_what_cannot_be_known_is_not_asked_again(place: Place) -> None:
    prompt = await place.begin("HANGS")
    await place.reached(prompt, "running")
    while not (kept := [*place.store.glob("*.jsonl")]):
        await anyio.sleep(0.02)
    await kill_keepers(place.kept)
    kept[0].unlink()
    await place.runner.send(prompt)
    assert str((await place.reached(prompt)).error).startswith("SessionLost: ")
    assert len(place.asked()) == 1


async def test_an_agent_that_dies_leaves_a_turn_of_which_nothing_is_known(place: Place) -> None:
    prompt = await place.begin("DIES")
    turn = await place.reached(prompt, "incomplete")
    assert turn.instance.endswith(" ended")
    assert await place.runner.busy((prompt.session,)) == frozenset()


async def test_an_agent_without_a_history_is_asked_at_least_once(place: Place) -> None:
    (place.store / "flags").write_text("noload")
    (place.kept / "about.json").unlink(missing_ok=True)
    prompt = await place.begin("HANGS")
    assert place.runner.guarantee == "at least once"
    await place.reached(prompt, "running")
    await kill_keepers(place.kept)
    again = place.another()
    await again.start()
    assert again.guarantee == "at least once"
    await again.send(prompt)
    await place.reached(prompt, "running", again)


async def test_an_agent_with_a_history_is_asked_once(place: Place) -> None:
    await place.runner.start()
    assert place.runner.guarantee == "once"
    catalog = await place.runner.catalog()
    assert (catalog.version, catalog.instance) == ("1.2.3", "scripted-1.2.3")
    assert catalog.models == (Model("scripted", "default"), Model("scripted", "other"))


async def test_one_that_does_not_stop_is_killed_with_all_that_it_started(place: Place) -> None:
    prompt = await place.begin("HANGS STUBBORN")
    await place.reached(prompt, "running")
    with anyio.fail_after(60):
        await place.runner.abort(prompt.session)
    turn = await place.runner.turn(prompt.session, "msg_1")
    assert (turn.state, turn.error) == ("finished", "MessageAbortedError: the turn was stopped")
    assert await place.processes(prompt) == []


async def test_a_flood_and_lines_that_are_none_end_nothing(place: Place) -> None:
    prompt = await place.begin("FLOODS ODD")
    turn = await place.reached(prompt)
    assert (turn.text, turn.error) == ("END of default", None)
    own = folder_of(place.kept, prompt.session)
    assert sum(one.stat().st_size for one in own.path.glob("record*")) < 2 * MOST_RECORD + 2_000_000
    assert (await place.runner.transcript(prompt.session, 100)).endswith("END of default\n")


def test_half_a_character_is_none() -> None:
    """The journal cannot hold it: such an answer ended the daemon, and each next one that read the session."""
    said = b'{"cut": "\\ud83d", "whole": "\\ud83d\\ude00", "raw": "\xed\xa0\x80"}'
    assert parse_object(said) == {"cut": "?", "whole": "\U0001f600", "raw": "\ufffd\ufffd\ufffd"}


async def test_who_may_only_read_has_a_mode_of_readers_and_leave_for_nothing_else(place: Place) -> None:
    inside = place.work / "b.txt"
    prompt = await place.begin(f"EDITS RUNS FS:{inside}", "read", [PermissionRule(tool="*", action="allow")])
    assert (await place.reached(prompt)).text == "END of plan"
    assert [*place.work.iterdir()] == []
    assert {mode for mode, _ in place.asked()} == {"plan"}


async def test_a_reader_that_writes_unasked_is_stopped(place: Place) -> None:
    prompt = await place.begin("UNASKED", "read")
    assert str((await place.reached(prompt)).error).startswith("ReaderWrote: edit")


async def test_who_may_write_has_leave_within_its_folder_and_the_rules(place: Place) -> None:
    prompt = await place.begin(
        "EDITS RUNS CLOSES STRAYS", rules=[PermissionRule(tool="bash", pattern="touch *", action="deny")]
    )
    await place.reached(prompt)
    assert [one.name for one in place.work.iterdir()] == ["a.txt"]


async def test_a_file_is_written_for_an_agent_only_in_its_folder(place: Place) -> None:
    inside, outside, link = place.work / "in.txt", place.work.parent / "out.txt", place.work / "link"
    link.symlink_to(outside)
    (place.work / "away").symlink_to(place.work.parent)
    names = (inside, outside, link, place.work / "away" / "out.txt", place.work / ".." / "out.txt")
    prompt = await place.begin(" ".join(f"FS:{name}" for name in names))
    await place.reached(prompt)
    assert (inside.read_text(), outside.exists(), link.is_symlink()) == ("by fs", False, True)


async def test_idle_keepers_end_and_the_next_prompt_starts_another(place: Place) -> None:
    place.runner = place.another(idle=timedelta(seconds=0.2))
    prompt = await place.begin("hello")
    first = await place.reached(prompt)
    with anyio.fail_after(60):
        while await anyio.to_thread.run_sync(keepers, place.kept):
            await anyio.sleep(0.05)
    again = Prompt(prompt.session, "msg_2", "prt_2", "and on")
    await place.runner.send(again)
    assert (await place.reached(again)).instance != first.instance
    assert (await place.runner.turn(prompt.session, "msg_1")).text == "END of default"
    assert len([*place.store.glob("s*.jsonl")]) == 1, "in the same session of the agent's"


async def test_only_idle_ones_are_ended_when_the_server_is_to_stop(place: Place) -> None:
    idle, busy = await place.begin("hello"), await place.begin("HANGS")
    await place.reached(idle)
    await place.reached(busy, "running")
    assert await place.runner.stop_server()
    assert (await place.processes(idle), len(await place.processes(busy))) == ([], 1)
    with pytest.raises(RunnerUnavailable):
        await place.runner.turn(busy.session, "msg_1")
    await place.runner.start()
    assert (await place.runner.turn(busy.session, "msg_1")).state == "running"


async def test_what_is_not_there_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = AcpRunner(("/nothing/agent",), directory=place.work, folder=place.kept, environ={}, name="gone")
    with pytest.raises(RunnerUnavailable, match="no program /nothing/agent"):
        await gone.start()
    silent = AcpRunner(("false",), directory=place.work, folder=place.kept, environ=dict(os.environ), name="silent")
    with pytest.raises(RunnerUnavailable, match="it ended with 1"):
        await silent.start()
    with monkeypatch.context() as patched:
        patched.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(RunnerUnavailable, match=r"pip install 'ashep\[acp\]'"):
            await place.runner.start()
    prompt = await place.begin("hello")
    with pytest.raises(RunnerRefused):
        await place.runner.send(Prompt(prompt.session, "../msg", "prt_1", "hello"))
    unknown = Prompt(prompt.session, "msg_3", "prt_3", "hello", agent="nobody", model=Model("no", "model"))
    await place.runner.send(unknown)
    assert str((await place.reached(unknown)).error).startswith("ModeUnknown: ")


@pytest.mark.promise("U5")
async def test_a_quota_is_read_as_the_adapter_of_claude_code_hands_it_on(place: Place) -> None:
    turn = await place.reached(await place.begin("QUOTA"))
    week, resets = datetime.fromtimestamp(1_900_086_400, UTC), datetime.fromtimestamp(1_900_000_000, UTC)
    window = QuotaWindow("five_hour", 0.93, resets, "allowed_warning")
    assert turn.quota == Quota("scripted", "", "rejected", "seven_day", week, (window,))
    assert turn.refused is not None
    assert (turn.refused.kind, "resets 3am" in turn.refused.why) == ("limited", True)


async def test_a_cost_in_another_currency_than_dollars_is_none_and_said_once(place: Place) -> None:
    prompt = await place.begin("COSTS:EUR COSTS:EUR")
    assert (await place.reached(prompt)).cost == 0.0
    said = [step.text for step in await place.runner.read_steps(prompt.session, 10_000) if step.tool == "cost"]
    assert said == ["EUR: not counted, for budgets and reports are in US dollars"]
    assert (await place.reached(await place.begin("COSTS:EUR COSTS:usd"))).cost == 3.0


async def test_a_turn_that_a_limit_ended_is_cut_off_and_no_error(place: Place) -> None:
    turn = await place.reached(await place.begin("CUT"))
    assert (turn.cut, turn.error) == (True, None)
    turn = await place.reached(await place.begin("well"))
    assert (turn.cut, turn.text) == (False, "END of default")
    assert turn.agent_message_at is not None
