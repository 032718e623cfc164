"""An agent over ACP in a sandbox: what it sees and can change, and that all of it ends, whoever ends it."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.sandboxes import registered_processes
from ashep.core.state.branches import branch_of
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.extras.demo.scripted_model import Call, opencode_config, settle
from ashep.extras.testing.worlds import Act, name, opened, prompt, settled
from ashep.ports.runner import SessionRequest
from chaos.attacks.planting import SAID, planted, settings
from tests.acp.worlds import QWEN, ApartWorld, JudgeWorld, folder_of, keepers, kill_keepers
from tests.conformance.workspaces import PlacesWorld
from tests.full import repeated
from tests.places import called, has_bubblewrap

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.real,
    pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]

HIDDEN = "xhiddenx"
QWEN_CODE = (pytest.mark.full, pytest.mark.skipif(not QWEN.exists(), reason="Qwen Code is not there"))
NAMES = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "acp_[0-9a-f]{32}", r"ashep-msg-\w+-\w+\.md",
    r"msg_\w+",
)  # fmt: skip
"""Names that an agent, or ashep, makes anew each time."""


@pytest.fixture(scope="module")
async def apart(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApartWorld]:
    world = ApartWorld(tmp_path_factory.mktemp("acp"))
    (world.home / "key").write_text(HIDDEN)
    (world.places.parent / "config.yaml").write_text(HIDDEN)
    async with world.model:
        world.configure()
        await world.runner.start()
        yield world
        await world.aclose()


async def said(world: ApartWorld, session: str, *lines: str) -> list[str]:
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
    return [(world.directory / f"{n}.out").read_text() for n in range(len(lines))]


@pytest.mark.promise("I7")
async def test_who_makes_sees_its_place_and_nothing_that_its_keeper_has(apart: ApartWorld) -> None:
    session = await opened(apart)
    own = folder_of(apart.kept, session)
    key, made, kept, count = await said(
        apart,
        session,
        f"cat {apart.home}/key; ls -a {apart.home}; cat {apart.places.parent}/config.yaml",
        "echo made > made; touch ~/mine && echo home; ashep close; bd show",
        f"ls {own.path} && echo kept; touch {own.inbox}/prompt.msg_x.json && echo kept; ls {apart.kept} && echo kept",
        "ls /proc | grep -c '^[0-9]'",
    )
    assert HIDDEN not in key
    assert "home" in made.splitlines()
    assert ("ashep is not in here" in made, "bd is not in here" in made) == (True, True)
    assert (apart.directory / "made").exists()
    assert ((apart.home / "mine").exists(), (apart.things / "home" / "mine").exists()) == (False, True)
    assert "kept" not in kept.splitlines()
    assert int(count) < 15


@pytest.mark.promise("I7")
@pytest.mark.parametrize("who", ["abort", "evict", "kill"])
async def test_whoever_ends_a_turn_ends_all_that_it_started(apart: ApartWorld, who: str) -> None:
    """Also what has taken our mark off itself; and nothing goes on as if it had not been ended."""
    session, word = await opened(apart), name()
    (apart.directory / "shed.sh").write_text("env -i setsid sleep 9876 & sleep 1; echo shed")
    apart.steps[word] = [Call("bash", {"command": "sh shed.sh", "description": "try"})]
    apart.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await apart.runner.send(sent)

    with anyio.fail_after(60):
        while apart.model.requests_seen(word) < 2 or not await anyio.to_thread.run_sync(called, "sleep", "9876"):
            await anyio.sleep(0.05)
    match who:
        case "abort":
            await apart.runner.abort(session)
        case "evict":
            await registered_processes.evict(apart.things, RunnerUnavailable)
            assert not keepers(apart.kept)
        case _:
            await kill_keepers(apart.kept)
    with anyio.fail_after(5):
        while await anyio.to_thread.run_sync(called, "sleep", "9876"):
            await anyio.sleep(0.05)
    turn = await apart.runner.turn(session, sent.message_id)
    assert turn.state == ("finished" if who == "abort" else "incomplete")
    assert await apart.runner.busy((session,)) == frozenset()


async def test_who_judges_sees_its_ground_alone_and_who_makes_needs_a_place(apart: ApartWorld) -> None:
    ground = apart.kept.parent / "ground"
    ground.mkdir()
    (ground / "one.txt").write_text("sealed")
    (ground / "opencode.json").write_text(json.dumps(opencode_config(apart.model.url)))
    with pytest.raises(RunnerRefused):
        await apart.runner.open_session(SessionRequest(name(), "t", "write", directory=str(ground)))
    session, word = await apart.runner.open_session(SessionRequest(name(), "t", "read", directory=str(ground))), name()
    settle(folder_of(apart.kept, session).path / "apart" / "home" / ".config" / "opencode", {})
    # it asks no leave to read in its folder: what a link leads to is not there
    for one, target in (("key", apart.home / "key"), ("other", apart.directory / "opencode.json")):
        (ground / one).symlink_to(target)
    apart.steps[word] = [Call("read", {"filePath": str(ground / one)}) for one in ("one.txt", "key", "other")]
    sent = prompt(session, word)
    await apart.runner.send(sent)
    turn = await settled(apart, session, sent.message_id)
    assert (turn.text, turn.error) == ("END", None)
    sealed, key, other = max(ask.results for ask in apart.model.asks if word in ask.prompt)
    assert "sealed" in sealed
    assert ("not found" in key, "not found" in other) == (True, True), (key, other)


@pytest.mark.promise("I7")
@pytest.mark.parametrize("kind", ["claude", *repeated("opencode"), pytest.param("qwen", marks=QWEN_CODE)])
async def test_a_judge_is_told_what_the_base_says_to_the_byte_and_starts_nothing(tmp_path: Path, kind: str) -> None:
    """On a real ground: the base's settings start what the candidate has changed, and the candidate plants all else."""
    world, git = JudgeWorld(tmp_path / "acp", kind), PlacesWorld(tmp_path / "git", sandbox=False)
    words = {
        "AGENTS.md": "the base's words",
        "CLAUDE.md": "the base's words",
        ".claude/rules/one.md": "the base's rule",
    }
    base = settings("sh tools/run.sh") | words | {"tools/run.sh": "true"}
    for file, text in base.items():
        (git.top / file).parent.mkdir(parents=True, exist_ok=True)
        (git.top / file).write_text(text)
    git.person_commits("b.txt", "x")
    told = list[str]()
    async with world.model, AsyncExitStack() as stack:
        world.runner = world.another()
        await world.runner.start()
        stack.push_async_callback(world.aclose)
        for files in ({"src.txt": "made"}, planted("touch ~/RAN; true")):
            await git.begun(branch_of("t-1"), files)
            await git.spaces.seal(branch_of("t-1"), "t-1/implement.1.1", "Made")
            ground = (await git.spaces.prepare(branch_of("t-1"), None, 0, "sealed")).path
            session = await world.runner.open_session(SessionRequest(name(), "t", "read", directory=ground))
            world.settle(session)
            word = name()
            world.acts[word] = Act("END")
            sent = prompt(session, word)
            await world.runner.send(sent)
            turn = await settled(world, session, sent.message_id)
            assert (turn.text, turn.error) == ("END", None)
            (ask,) = [one for one in world.model.asks if word in one.prompt and one.kind == "turn"]
            messages = [one for one in ask.messages if kind != "qwen" or one["role"] == "system"]  # it lists all files
            said = json.dumps([messages, ask.offered])
            assert SAID not in json.dumps(ask.messages)
            told.append(re.sub("|".join((word, rf"\b{sent.message_id[4:]}\b", *NAMES)), "NAME", said))
            assert not (world.home_of(session) / "RAN").exists()
            assert (world.home_of(session) / "started").read_text().splitlines() == ["/tmp"]
    assert "the base's words" in told[0]
    assert told[1] == told[0]


async def test_what_was_opened_in_a_sandbox_runs_nowhere_else_and_is_gone_with_its_place(
    apart: ApartWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(apart)
    monkeypatch.setattr(apart, "quarters", None)
    another = await anyio.to_thread.run_sync(apart.another)
    await another.start()
    assert await another.has_session(session)
    with pytest.raises(RunnerUnavailable):
        await another.send(prompt(session, name()))
    apart.things.rename(apart.kept.parent / "forgotten")
    assert not await another.has_session(session)
