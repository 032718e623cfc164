"""A turn in a sandbox: what it sees and can change, and that all of it ends, whoever ends it."""

import json
import os
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.runners.claude import permission_requests, process
from ashep.adapters.runners.claude.jsonl import Lines
from ashep.adapters.runners.claude.session_store import Attempt
from ashep.adapters.sandboxes import registered_processes
from ashep.adapters.sandboxes.exec import start
from ashep.adapters.system import process_table
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.extras.demo.scripted_model import Call
from ashep.extras.testing.worlds import Act, name, opened, prompt, settled
from ashep.ports.runner import SessionRequest
from tests.conformance.claudes import ApartWorld
from tests.places import called, has_bubblewrap

pytestmark = [
    pytest.mark.real,
    pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]

HIDDEN = "xhiddenx"
LOGIN = {"claudeAiOauth": {"accessToken": "access-0", "refreshToken": "refresh-0"}, "mcpOAuth": {"x": {"a": HIDDEN}}}


@pytest.fixture
def shut(tmp_path: Path) -> ApartWorld:
    """A world in which nothing runs yet."""
    world = ApartWorld(tmp_path / "claude")
    (world.home / "key").write_text(HIDDEN)
    (world.places.parent / "config.yaml").write_text(HIDDEN)
    (world.user / ".credentials.json").write_text(json.dumps(LOGIN))
    return world


@pytest.fixture
async def apart(shut: ApartWorld) -> AsyncIterator[ApartWorld]:
    """The same once its model and its gate are open."""
    world = shut
    async with world.model:
        await world.runner.start()
        yield world
        await world.end()


def attempt_of(world: ApartWorld, message: str) -> Attempt:
    (folder,) = world.kept.glob(f"sessions/*/turns/{message}/1")
    return Attempt(folder)


async def said(world: ApartWorld, session: str, *lines: str) -> tuple[Attempt, list[str]]:
    """What came out of commands that an agent ran in its shell."""
    word = name()
    for n, line in enumerate(lines):  # in a script: what the rules see is none of it
        (world.directory / f"{n}.sh").write_text(line)
    world.steps[word] = [
        Call("bash", {"command": f"sh {n}.sh >{n}.out 2>&1", "description": "try"}) for n in range(len(lines))
    ]
    world.acts[word] = Act("END")
    sent = prompt(session, word)
    await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.error) == ("END", None)
    return attempt_of(world, sent.message_id), [(world.directory / f"{n}.out").read_text() for n in range(len(lines))]


@pytest.mark.promise("I7")
async def test_who_makes_sees_its_place_and_can_change_nothing_that_judges_it(apart: ApartWorld) -> None:
    session = await opened(apart)
    before = apart.user.stat().st_mtime_ns
    attempt, found = await said(
        apart,
        session,
        f"cat {apart.home}/key; ls -a {apart.home}; cat {apart.places.parent}/config.yaml",
        "echo made > made && git init -q . 2>/dev/null; touch ~/mine && echo home",
        f"for one in {apart.kept}/sessions/*/turns/*/1; do ls $one; echo x > $one/rules.json; echo x > $one/hook.py; "
        "touch $one/answers/0123456789abcdef01234567; mv $one/asks $one/answers; done; "
        "echo x > $one/asks/0 && echo asks",
        'cd "$CLAUDE_CONFIG_DIR"; echo {} > settings.json; touch agents/x.md; rm -r agents; mv agents y; '
        "touch plugins/x; ls agents; "
        'cd "$CLAUDE_SECURESTORAGE_CONFIG_DIR"; rm .credentials.json; ls -A; cat .credentials.json; '
        "echo new > .credentials.json; touch other",
        "ps -A 2>/dev/null | wc -l; ls /proc | grep -c '^[0-9]'",
    )
    key, home, files, config, count = found
    assert HIDDEN not in key
    assert "home" in home
    assert (apart.directory / "made").exists()
    assert not (apart.home / "mine").exists()
    assert "asks" in files.splitlines()[-1]
    assert files.count("Read-only file system") >= 4, files
    assert sorted(os.listdir(attempt.folder / "answers")) == []
    assert "build.md" in config
    assert "access-0" in config
    assert "refresh-0" not in config
    assert config.count("Read-only file system") + config.count("busy") >= 7, config
    assert json.loads((apart.user / ".credentials.json").read_text()) == LOGIN
    assert apart.user.stat().st_mtime_ns == before
    assert int(count.split()[-1]) < 30, count


@pytest.mark.promise("I7")
@pytest.mark.parametrize("who", ["abort", "evict", "unrecorded"])
async def test_whoever_ends_a_turn_ends_all_that_it_started(apart: ApartWorld, who: str) -> None:
    """Also what has taken our mark off itself, and when the daemon died before it wrote down which process it is."""
    session, word = await opened(apart), name()
    (apart.directory / "shed.sh").write_text("env -i setsid sleep 987 & sleep 1; echo shed")
    apart.steps[word] = [Call("bash", {"command": "sh shed.sh", "description": "try"})]
    apart.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await apart.runner.send(sent)

    with anyio.fail_after(60):
        while apart.model.requests_seen(word) < 2 or not await anyio.to_thread.run_sync(called, "sleep", "987"):
            await anyio.sleep(0.05)
    attempt = await anyio.to_thread.run_sync(attempt_of, apart, sent.message_id)
    known = attempt.process()
    assert known is not None
    if who == "unrecorded":
        (attempt.folder / "process.json").unlink()
        assert await anyio.to_thread.run_sync(process.find_process, attempt) == known
    if who == "evict":
        await registered_processes.evict(apart.things, RunnerUnavailable)
    else:
        await apart.runner.abort(session)
    assert not process_table.lives(known.pid, known.started)
    with anyio.fail_after(5):
        while await anyio.to_thread.run_sync(called, "sleep", "987"):
            await anyio.sleep(0.05)
    assert (await apart.runner.turn(session, sent.message_id)).state == "finished" or who != "abort"


async def test_a_transcript_that_leads_elsewhere_is_none(apart: ApartWorld) -> None:
    session = await opened(apart)
    _, _ = await said(apart, session, "true")
    assert "END" in await apart.runner.transcript(session, 1000)
    (file,) = apart.config.glob(f"projects/*/{session}.jsonl")
    (apart.home / "other.jsonl").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(apart.home / "other.jsonl")
    another = apart.another()
    await another.start()
    assert await another.transcript(session, 1000) == ""
    await another.aclose()


async def test_who_judges_has_a_folder_of_its_own_and_who_makes_needs_a_place(apart: ApartWorld) -> None:
    ground = apart.folder / "ground"
    ground.mkdir()
    (ground / "one.txt").write_text("sealed")
    with pytest.raises(RunnerRefused):
        await apart.runner.open_session(SessionRequest(name(), "t", "write", directory=str(ground)))
    session, word = await apart.runner.open_session(SessionRequest(name(), "t", "read", directory=str(ground))), name()
    apart.steps[word] = [Call("read", {"filePath": str(one)}) for one in (ground / "one.txt", apart.home / "key")]
    sent = prompt(session, word)
    await apart.runner.send(sent)
    assert (await settled(apart, session, sent.message_id)).text == "END"
    assert "sealed" in apart.results[word][0]
    assert HIDDEN not in apart.results[word][1]
    assert (apart.kept / "sessions" / session / "claude" / "projects").is_dir()
    assert not apart.config.exists()


async def test_nothing_begins_beside_a_person_who_has_the_session_open_in_a_sandbox(apart: ApartWorld) -> None:
    session, word = await opened(apart), name()
    await said(apart, session, "true")
    apart.acts[word] = Act(does="hangs")
    profile = await apart.apart.of_place(apart.directory, apart.things)
    assert profile.sandbox is not None
    argv = [apart.program, "-p", "--resume", session, "--", word]
    nothing = (subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
    person, _ = start(profile.sandbox, profile.view, argv, profile.make_environment(apart.environ), nothing)
    apart.people.append(person)
    with anyio.fail_after(60):
        while apart.model.requests_seen(word) < 1:
            await anyio.sleep(0.05)
    assert await apart.runner.busy((session,)) == {session}
    with pytest.raises(RunnerRefused, match="person"):
        await apart.runner.send(prompt(session, name()))


def test_what_an_agent_writes_where_it_can_keeps_nobody_busy(tmp_path: Path) -> None:
    file = tmp_path / "stdout"
    file.write_bytes(b'{"a": 1}\n')
    os.truncate(file, 64 * 1024**4)
    begun = time.monotonic()
    assert [line for _, line in Lines(file)] == [b'{"a": 1}']
    attempt, config = Attempt(tmp_path / "1"), tmp_path / "config"
    (attempt.folder / "asks").mkdir(parents=True)
    (config / "sessions").mkdir(parents=True)
    for n in range(20_000):
        (attempt.folder / "asks" / f"{n:024x}").touch()
        (config / "sessions" / f"{n}.json").touch()
    mark = time.monotonic()
    assert len(permission_requests.names(attempt)) == permission_requests.MOST
    assert process.strangers(config, ["x"]) == {}
    assert (mark - begun < 30, time.monotonic() - mark < 2) == (True, True)


async def test_what_was_opened_in_a_sandbox_runs_nowhere_else(apart: ApartWorld) -> None:
    session = await opened(apart)
    await said(apart, session, "true")
    outside = apart.another(apart=None)
    await outside.start()
    with pytest.raises(RunnerUnavailable, match="not there any more"):
        await outside.send(prompt(session, name()))
    await outside.aclose()


async def test_who_has_no_login_has_no_folder_of_one(apart: ApartWorld) -> None:
    (apart.user / ".credentials.json").unlink()
    _, (none,) = await said(
        apart, await opened(apart), f'ls {apart.folder}/login; echo "<$CLAUDE_SECURESTORAGE_CONFIG_DIR>"'
    )
    assert ("No such file" in none, none.endswith("<>\n")) == (True, True)
