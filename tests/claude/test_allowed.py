"""What a session may do, and what it asks: over the real binary, by what comes of calls of its tools."""

import json

import anyio
import pytest

from ashep.core.policy.policies import PermissionRule
from ashep.extras.demo.scripted_model import Call
from ashep.extras.testing.runners import asked
from ashep.extras.testing.worlds import Act, begun, name, opened, prompt, settled
from ashep.ports.runner import SessionRequest
from tests.conformance.claudes import ClaudeWorld

pytestmark = pytest.mark.real


def bash(command: str) -> Call:
    return Call("bash", {"command": command, "description": "do it"})


def rule(tool: str, pattern: str, action: str) -> PermissionRule:
    return PermissionRule.model_validate({"tool": tool, "pattern": pattern, "action": action})


async def results(world: ClaudeWorld, session: str, *calls: Call) -> list[str]:
    """What the tools answer to these calls, one after the other."""
    word = name()
    world.steps[word] = [*calls]
    sent = prompt(session, word)
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    return [*next(ask for ask in reversed(world.model.asks) if word in ask.prompt).results]


async def test_what_was_asked_is_answered_by_another_daemon(world: ClaudeWorld) -> None:
    session, word, sent = await begun(world, Act(does="asks"))
    request = await asked(world, session)
    await world.runner.aclose()
    other = world.another()
    await other.start()
    assert await other.requests((session,)) == (request,)
    assert (request.tool, request.detail) == ("read", str(world.directory / "secret.env"))
    assert not await other.reply(session, request.id, "question", "answer", (), "")
    assert not await other.reply(session, "0" * 24, "permission", "allow", (), "")
    assert await other.reply(session, request.id, "permission", "allow", (), "")
    with anyio.fail_after(60):
        while (await other.turn(session, sent.message_id)).state != "finished":
            await anyio.sleep(0.05)
    (answer,) = world.model.asks[-1].results
    assert "SECRET=1" in answer
    assert await other.requests((session,)) == ()
    assert world.seen(word) == 1
    await other.aclose()


async def test_a_question_of_a_turn_that_died_is_nobodys(world: ClaudeWorld) -> None:
    session, _, sent = await begun(world, Act(does="questions"))
    request = await asked(world, session)
    await world.kill()
    assert await world.runner.requests((session,)) == ()
    assert not await world.runner.reply(session, request.id, "question", "answer", (("first",),), "")
    assert (await world.runner.turn(session, sent.message_id)).state == "incomplete"


async def test_a_writer_stays_in_its_folder_and_leaves_issues_alone(world: ClaudeWorld) -> None:
    outside, inside = anyio.Path(world.folder, "outside.txt"), anyio.Path(world.directory, "inside.txt")
    await anyio.Path(world.folder, "other.txt").write_text("OTHER")
    told = await results(
        world,
        await opened(world),
        Call("write", {"filePath": str(outside), "content": "x"}),
        Call("read", {"filePath": str(world.folder / "other.txt")}),
        Call("write", {"filePath": str(inside), "content": "x"}),
        bash("cd . && bd close t-1 || true"),
        bash("bd show t-1; echo AFTER"),
        bash("echo PLAIN"),
    )
    assert not await outside.exists()
    assert await inside.read_text() == "x"
    assert "OTHER" not in told[1]
    assert "does not allow this" in told[3]
    assert "AFTER" in told[4]
    assert "PLAIN" in told[5]


async def test_a_rule_decides_about_each_command_of_a_line(world: ClaudeWorld) -> None:
    rules = (rule("bash", "echo *", "allow"), rule("bash", "touch *", "ask"), rule("bash", "*", "deny"))
    session, word = await opened(world, None, *rules), name()
    world.steps[word] = [bash("echo ONE"), bash("echo ONE && printf TWO"), bash("echo ONE; touch made")]
    sent = prompt(session, word)
    await world.runner.send(sent)
    request = await asked(world, session)
    assert (request.tool, request.detail) == ("bash", "echo ONE; touch made")
    assert "touch made" in request.patterns
    assert await world.runner.reply(session, request.id, "permission", "deny", (), "rather not")
    await settled(world, session, sent.message_id)
    told = world.model.asks[-1].results
    assert ("ONE" in told[0], "does not allow" in told[1], "rather not" in told[2]) == (True, True, True)
    assert not await anyio.Path(world.directory, "made").exists()


async def test_a_reader_reads_and_does_nothing_else(world: ClaudeWorld) -> None:
    (made,) = [anyio.Path(world.directory, "made")]
    await anyio.Path(world.directory, "plain.txt").write_text("PLAIN")
    await anyio.Path(world.folder, "other.txt").write_text("OTHER")
    key = name()
    rules = (rule("bash", "*", "allow"), rule("edit", "*", "allow"))  # which are meant for other phases
    session = await world.runner.open_session(SessionRequest(key, key, "read", permissions=rules))
    told = await results(
        world,
        session,
        Call("read", {"filePath": str(world.directory / "plain.txt")}),
        Call("read", {"filePath": str(world.directory / "secret.env")}),
        Call("read", {"filePath": str(world.folder / "other.txt")}),
        Call("Write", {"file_path": str(made), "content": "x"}),
        Call("Bash", {"command": f"touch {made}", "description": "make it"}),
    )
    assert "PLAIN" in told[0]
    assert "SECRET" not in told[1]
    assert "OTHER" not in told[2]
    assert not await made.exists()
    assert {*world.model.asks[-1].tools} == {"askuserquestion", "glob", "grep", "read", "webfetch", "websearch"}


async def test_agents_cannot_talk_to_each_other_nor_begin_what_comes_later(world: ClaudeWorld) -> None:
    """facts/claude-code.md 19."""
    await results(world, await opened(world))
    assert {*world.model.asks[-1].tools} == {
        "askuserquestion", "bash", "edit", "glob", "grep", "notebookedit", "read", "skill", "task",
        "taskcreate", "taskget", "tasklist", "taskupdate", "webfetch", "websearch", "write",
    }  # fmt: skip


async def test_a_rule_against_questions_and_subagents_takes_the_tools_away(world: ClaudeWorld) -> None:
    rules = (rule("question", "*", "deny"), rule("task", "*", "deny"), rule("web*", "*", "deny"))
    await results(world, await opened(world, None, *rules))
    assert {*world.model.asks[-1].tools}.isdisjoint({"askuserquestion", "task", "webfetch", "websearch"})


async def test_a_subagent_and_a_command_in_the_background_end_in_one_result(world: ClaudeWorld) -> None:
    """facts/claude-code.md 8."""
    word, below = name(), name()
    task = Call("task", {"description": "look", "prompt": below, "subagentType": "general-purpose"})
    later = {"command": "sleep 1; echo LATER", "description": "wait", "runInBackground": True}
    now = Call("bash", {"command": "sh -c 'sleep 1; echo LATER' & wait", "description": "wait"})
    world.steps[word], world.acts[below] = [task, Call("bash", later), now], Act("FOUND IT")
    session = await opened(world)
    sent = prompt(session, word)
    await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people) == ("END", ())
    results = next(ask for ask in reversed(world.model.asks) if word in ask.prompt).results
    assert "FOUND IT" in results[0]
    assert ("run_in_background" in results[1], "LATER" in results[2]) == (True, True)
    (output,) = [one async for one in anyio.Path(world.kept).glob(f"sessions/*/turns/{sent.message_id}/1/stdout")]
    kinds = [json.loads(line)["type"] for line in (await output.read_text()).splitlines()]
    assert kinds.count("result") == 1
    assert turn.tokens > sum(len(json.dumps(ask.messages)) for ask in world.model.asks[-1:]) // 10


async def test_a_reader_asks_too_and_is_asked_about(world: ClaudeWorld) -> None:
    key, word = name(), name()
    asks = (rule("webfetch", "*", "ask"),)
    session = await world.runner.open_session(SessionRequest(key, key, "read", permissions=asks))
    options = [{"label": one, "description": "d"} for one in ("first", "second")]
    which = {"question": "Which one?", "header": "h", "multiSelect": False, "options": options}
    fetch = Call("webfetch", {"url": "http://127.0.0.1:1/x", "prompt": "what does it say?"})
    world.steps[word] = [Call("askuserquestion", {"questions": [which]}), fetch, fetch]
    sent = prompt(session, word)
    await world.runner.send(sent)
    question = await asked(world, session)
    assert await world.runner.reply(session, question.id, "question", "answer", (("neither of them",),), "")
    first = await asked(world, session, question.id)
    assert (first.tool, first.patterns) == ("webfetch", ("http://127.0.0.1:1/x",))
    assert await world.runner.reply(session, first.id, "permission", "allow", (), "")
    second = await asked(world, session, first.id)
    assert await world.runner.reply(session, second.id, "permission", "deny", (), "not this time")
    await settled(world, session, sent.message_id)
    told = world.model.asks[-1].results
    assert "neither of them" in told[0]
    assert "ECONNREFUSED" in told[1], "it was fetched, in vain"
    assert "not this time" in told[2]


async def test_an_agent_that_names_more_tools_has_no_more(world: ClaudeWorld) -> None:
    tools = "Bash, Write, Read, Grep, SendMessage, CronCreate, ListAgents"
    text = f"---\nname: greedy\ndescription: wants all\ntools: {tools}\n---\nDo it.\n"
    await anyio.Path(world.config, "agents", "greedy.md").write_text(text)
    key, word, made = name(), name(), anyio.Path(world.directory, "made")
    session = await world.runner.open_session(SessionRequest(key, key, "read"))
    world.steps[word] = [
        Call("Bash", {"command": f"touch {made}", "description": "make it"}),
        Call("Write", {"file_path": str(made), "content": "x"}),
        Call("grep", {"pattern": "SECRET", "outputMode": "content"}),
    ]
    sent = prompt(session, word, agent="greedy")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    assert not await made.exists()
    assert {*world.model.asks[-1].tools}.isdisjoint({"sendmessage", "croncreate", "listagents", "bash", "write"})
