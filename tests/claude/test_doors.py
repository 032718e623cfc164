"""Who may begin a turn, and what may begin beside it: the gate, people, and what stands in the tree."""

import json
import os
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest

from ashep.adapters.system import programs
from ashep.errors import RunnerRefused, RunnerUnauthorized, RunnerUnavailable
from ashep.extras.demo.scripted_model import Call
from ashep.extras.testing.worlds import Act, asked_of_model, begun, name, opened, prompt, reached, settled
from ashep.ports.runner import Sign
from chaos.attacks.planting import SAID, planted
from tests.conformance.claudes import ClaudeWorld

pytestmark = pytest.mark.real


def given(world: ClaudeWorld, message: str) -> tuple[str, str, str]:
    """What the process of a message has for the gate: its address, its name, its secret."""
    (folder,) = world.kept.glob(f"sessions/*/turns/{message}/1")
    settings = json.loads((folder / "settings.json").read_text())
    address = settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["url"]
    return address, "/".join(folder.parts[-4:-3] + folder.parts[-2:]), (folder / "secret").read_text()


async def test_a_secret_opens_the_gate_for_its_own_turn_and_once(world: ClaudeWorld) -> None:
    one, word, sent = await begun(world, Act(does="hangs"), runs=True)
    await asked_of_model(world, word)
    other, _, unsent = await begun(world, Act(does="hangs"), runs=True)
    address, turn, secret = await anyio.to_thread.run_sync(given, world, sent.message_id)
    _, others, _ = await anyio.to_thread.run_sync(given, world, unsent.message_id)
    before = len(world.begun)

    async def answer(turn: str, secret: str, session: str, said: str = "hello") -> str:
        headers, body = {"x-ashep-turn": turn, "x-ashep-secret": secret}, {"session_id": session, "prompt": said}
        async with httpx.AsyncClient(trust_env=False) as http:
            return (await http.post(address, headers=headers, json=body)).json().get("reason", "")

    assert await answer(turn, secret, one) == "this turn has begun already"
    assert await answer(turn, secret, one, "<task-notification> a subagent has ended") == ""
    assert await answer(others, secret, other) == "this is no turn of ours"
    assert await answer(turn, "", one) == "this is no turn of ours"
    assert await answer(turn, secret, other) == "this is another session's turn"
    assert await answer("../../x/y/1", secret, one) == "this is no turn of ours"
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.post(address, content=b"{")).json()["decision"] == "block"
        assert (await http.get(address)).status_code == 405
        for foreign, status in (({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 421)):
            assert (await http.post(address, headers=foreign, json={})).status_code == status
    assert len(world.begun) - before == 0 or world.begun[before:] == [(other, unsent.message_id)]
    for session in (one, other):
        await world.runner.abort(session)


async def test_what_may_not_begin_is_not_asked_of_the_model_and_may_later(world: ClaudeWorld) -> None:
    session, word = await opened(world), name()
    sent = prompt(session, word)
    world.may_begin = False
    await world.runner.send(sent)
    with anyio.fail_after(60):
        while (turn := await world.runner.turn(session, sent.message_id)).state == "running":
            await anyio.sleep(0.05)
    assert (turn.state, world.model.requests_seen(word)) == ("missing", 0)
    world.may_begin = True
    await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people, world.seen(word)) == ("END", (), 1)


PLANTED = "xplantedx"


def plant(folder: Path) -> Path:
    """Hooks and a server in a work tree, as an agent may leave them for the next one; gives what they would write."""
    mark = folder / "planted"
    for one, text in planted(f"echo program >> {mark}").items():
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_text(text.replace(SAID, PLANTED))
    command = [{"hooks": [{"type": "command", "command": f"echo hook >> {mark}"}]}]
    hooks = dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop"), command)
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    server = {"command": "/bin/sh", "args": ["-c", f"echo server >> {mark}"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"planted": server}}))
    for one in ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude/CLAUDE.md", ".claude/rules/one.md"):
        (folder / one).parent.mkdir(exist_ok=True)
        (folder / one).write_text(PLANTED)
    (folder / ".claude" / "agents").mkdir(exist_ok=True)
    (folder / ".claude" / "agents" / "planted.md").write_text(f"---\nname: {PLANTED}\ndescription: x\n---\nDo it.\n")
    (folder / ".claude" / "skills" / "planted").mkdir(parents=True, exist_ok=True)
    skill = f"---\nname: {PLANTED}\ndescription: x\n---\nDo it.\n"
    (folder / ".claude" / "skills" / "planted" / "SKILL.md").write_text(skill)
    return mark


async def test_nothing_that_stands_in_the_tree_starts(world: ClaudeWorld) -> None:
    """facts/claude-code.md 18."""
    mark = anyio.Path(await anyio.to_thread.run_sync(plant, world.directory))
    session, word = await opened(world), name()
    sent = prompt(session, word)
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    assert not await mark.exists()
    assert PLANTED not in json.dumps([(ask.messages, ask.offered) for ask in world.model.asks])
    plain = [world.program, "-p", "--", "hello"]
    await programs.run(plain, cwd=world.directory, env=world.environ, timeout=240)
    assert "hook" in await mark.read_text(), "without our settings it does, so that this test can fail"


async def test_instructions_of_the_base_arrive_and_a_base_agent_can_be_named(world: ClaudeWorld) -> None:
    await world.runner.aclose()
    text = "---\ndescription: looks\nmodel: claude-haiku-4-5\n---\nYou look at things.\n"
    runner = world.another(instructions=lambda: "HOUSE RULES", base_agents=lambda: {"looker": text})
    await runner.start()
    assert "looker" in (await runner.catalog()).agents
    session, word = await opened(world), name()
    await runner.send(sent := prompt(session, word, agent="looker", model=world.models[0]))
    await settled(world, session, sent.message_id)
    said = json.dumps(world.model.asks[-1].messages)
    assert "HOUSE RULES" in said
    assert "You look at things." in said
    with pytest.raises(RunnerRefused, match="no agent nobody"):
        await runner.send(prompt(session, word, agent="nobody"))
    await runner.aclose()


async def test_nothing_of_ours_begins_beside_a_person(world: ClaudeWorld) -> None:
    """facts/claude-code.md 28."""
    session, _, sent = await begun(world, Act())
    await settled(world, session, sent.message_id)
    world.acts[theirs := name()] = Act(does="hangs")
    person = await world.person_writes(session, theirs)
    await asked_of_model(world, theirs)
    assert await world.runner.busy((session,)) == {session}
    again = prompt(session, name())
    with pytest.raises(RunnerRefused, match="a person has this session open"):
        await world.runner.send(again)
    assert (await world.runner.turn(session, sent.message_id)).people == (person,)
    await world.runner.abort(session)
    assert world.people[-1].poll() is None, "a person's process is theirs"
    world.people[-1].kill()
    await anyio.to_thread.run_sync(world.people[-1].wait)
    assert await world.runner.busy((session,)) == frozenset()
    await world.runner.send(again)
    turn = await settled(world, session, again.message_id)
    assert (turn.text, turn.people) == ("END", ())


async def test_a_turn_that_ends_while_somebody_follows_is_an_urgent_sign_and_leaves_nothing(world: ClaudeWorld) -> None:
    urgent, signs = anyio.Event(), list[Sign]()
    word = name()
    left = f"setsid sleep 60 > /dev/null 2>&1 & echo $! > {world.directory}/left"
    world.steps[word] = [Call("bash", {"command": left, "description": "leave something"})]

    session = await opened(world)
    sent = prompt(session, word)

    async def listen() -> None:
        async for sign in world.runner.signs():
            signs.append(sign)
            # A look between the turn's record and its process finds none, and says that it may have ended.
            may_have = sign == Sign(session, urgent=True)
            if may_have and (await world.runner.turn(session, sent.message_id)).state == "finished":
                urgent.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await world.runner.send(sent)
        with anyio.fail_after(60):
            await urgent.wait()
            pid = int(await anyio.Path(world.directory, "left").read_text())
            while await anyio.Path(f"/proc/{pid}").exists():
                await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    assert signs[0] == Sign(None)


async def test_four_at_once_in_one_folder(world: ClaudeWorld) -> None:
    sessions, word = [await opened(world) for _ in range(4)], name()
    world.acts[word] = Act("ONE OF FOUR", delay=0.5)
    sent = [prompt(session, word) for session in sessions]
    async with anyio.create_task_group() as group:
        for one in sent:
            group.start_soon(world.runner.send, one)
    turns = [await settled(world, one.session, one.message_id) for one in sent]
    assert [turn.text for turn in turns] == ["ONE OF FOUR"] * 4
    assert world.seen(word) == 4
    assert len({turn.instance for turn in turns}) == 4


@pytest.mark.parametrize("said", ["/clear", "/compact all of it"])
async def test_a_prompt_is_no_command_and_names_no_file(world: ClaudeWorld, said: str) -> None:
    outside = anyio.Path(world.folder, "private.txt")
    await outside.write_text("OUTSIDE")
    session, word = await opened(world), name()
    sent = prompt(session, f"{said} and look at @{outside} {word}")
    await world.runner.send(sent)
    assert (await settled(world, session, sent.message_id)).text == "END"
    assert world.seen(word) == 1
    assert "OUTSIDE" not in json.dumps(world.model.asks[-1].messages)


async def test_what_is_kept_is_for_this_user_alone(world: ClaudeWorld) -> None:
    session, _, sent = await begun(world, Act())
    await settled(world, session, sent.message_id)

    def modes() -> set[int]:
        found = [Path(top, one) for top, folders, files in os.walk(world.kept) for one in (*folders, *files)]
        return {one.stat().st_mode & 0o077 for one in found}

    assert await anyio.to_thread.run_sync(modes) == {0}


async def test_who_is_not_logged_in_is_told_so(world: ClaudeWorld) -> None:
    environ = {key: value for key, value in world.environ.items() if key != "ANTHROPIC_API_KEY"}
    runner = world.another(environ=environ)
    await runner.start()
    with pytest.raises(RunnerUnauthorized):
        await runner.catalog()
    session = await opened(world)
    with pytest.raises(RunnerUnauthorized):
        await runner.send(prompt(session, "hello"))
    await anyio.Path(world.config, ".credentials.json").write_text("{}")
    assert (await runner.catalog()).version == programs.CLAUDE_VERSION
    await runner.aclose()
    gone = world.another()
    gone._command = ("/nowhere/claude",)  # pyright: ignore[reportPrivateUsage] - it was taken away
    with pytest.raises(RunnerUnavailable):
        await gone.start()


async def test_a_session_that_runs_a_turn_takes_no_other(world: ClaudeWorld) -> None:
    session, _, sent = await begun(world, Act(does="hangs"), runs=True)
    with pytest.raises(RunnerRefused, match=sent.message_id):
        await world.runner.send(prompt(session, "another"))
    await world.runner.abort(session)
    assert (await reached(world, session, sent.message_id, "finished")).error is not None
