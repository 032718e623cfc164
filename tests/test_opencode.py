"""The OpenCode adapter beyond the port's contract: what facts/opencode.md says that a client must survive, on the real
server with a scripted model, and the reading of messages without a server.
"""

import json
import os
import secrets
import socket
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.adapters.runners.opencode import OpencodeRunner, turns
from ashep.adapters.runners.opencode import schema as shapes
from ashep.adapters.runners.opencode.endpoints import AttachedServer
from ashep.adapters.runners.opencode.requests import KEPT, ReportedRequests
from ashep.adapters.runners.opencode.rulesets import ruleset
from ashep.core.facts.requests import Request
from ashep.core.facts.runs import Model
from ashep.core.policy.permissions import matches
from ashep.core.policy.policies import PermissionRule
from ashep.core.policy.settings import OpencodeSettings
from ashep.errors import ConfigError, RunnerUnauthorized, RunnerUnavailable
from ashep.extras.demo.scripted_model import Call, Reply, verdict_asked
from ashep.extras.testing.runners import followed
from ashep.extras.testing.worlds import ASKS_TO_FETCH, Act, settled
from ashep.ports.runner import Prompt, SessionRequest
from ashep.redaction import Redaction
from tests.conformance.runners import RealWorld, real_place, real_world

__all__ = ["real_place", "real_world"]

_RUN = secrets.token_hex(4)
_number = count()


def name() -> str:
    return f"{_RUN}y{next(_number):04d}y"


def test_half_a_character_makes_no_answer_unreadable() -> None:
    """A tool's output cut in the middle of an emoji: JavaScript writes the half that is left as an escape."""
    cut = (
        rb'[{"info":{"id":"msg_1","role":"assistant","time":{"created":1}},"parts":[{"type":"text","text":"\ud83d"}]}]'
    )
    (message,) = shapes.parse(turns.MESSAGES, cut)
    assert message.text == "?"
    whole = cut.replace(rb"\ud83d", rb"\ud83d\ude00 \udc00")
    assert shapes.parse(turns.MESSAGES, whole)[0].text == "\U0001f600 ?"
    with pytest.raises(RunnerUnavailable):
        shapes.parse(turns.MESSAGES, b"{")


async def sent(
    world: RealWorld, access: str, *calls: Call, model: Model | None = None, text: str = "",
    rules: tuple[PermissionRule, ...] = (),
) -> Prompt:  # fmt: skip
    """Send a prompt whose agent makes these calls; the session is new."""
    word = name()
    world.steps[word] = list(calls)
    kind: Any = access
    request = SessionRequest(key=word, title="a test", access=kind, permissions=rules)
    session = await world.runner.open_session(request)
    prompt = Prompt(session, f"msg_{word}", f"prt_{word}", f"{word} {text}", "build", model)
    await world.runner.send(prompt)
    return prompt


async def tried(world: RealWorld, access: str, *calls: Call, rules: tuple[PermissionRule, ...] = ()) -> list[str]:
    """What the tools answered to an agent that makes these calls."""
    prompt = await sent(world, access, *calls, rules=rules)
    await settled(world, prompt.session, prompt.message_id)
    return list([ask for ask in world.model.asks if prompt.message_id[4:] in ask.prompt][-1].results)


def bash(command: str) -> Call:
    return Call("bash", {"command": command, "description": "a test"})


# --- rulesets ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X1")
@pytest.mark.real
async def test_a_reader_cannot_write_edit_or_run_bash(real_world: RealWorld) -> None:
    there = real_world.directory
    (there / "kept.txt").write_text("kept\n")
    before = sorted(os.listdir(there))
    answers = await tried(
        real_world, "read", bash("git log; touch new"), bash("cat kept.txt | grep k > new"), bash("> new"),
        Call("write", {"filePath": str(there / "new"), "content": "x"}),
        Call("edit", {"filePath": str(there / "kept.txt"), "oldString": "kept", "newString": "lost"}),
        Call("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"}),
        Call("task", {"description": "d", "prompt": "touch new", "subagent_type": "general"}),
        Call("read", {"filePath": str(there / "kept.txt")}),
    )  # fmt: skip
    assert all("unavailable tool" in answer for answer in answers[:-1])
    assert "kept" in answers[-1]
    assert sorted(os.listdir(there)) == before
    assert (there / "kept.txt").read_text() == "kept\n"


@pytest.mark.promise("X3")
@pytest.mark.real
async def test_nobody_reads_or_writes_outside_of_the_directory(real_world: RealWorld) -> None:
    outside = real_world.folder / "outside"
    outside.write_text("a secret")
    read = Call("read", {"filePath": str(outside)})
    write = Call("write", {"filePath": f"{outside}2", "content": "x"})
    answers = [
        *await tried(real_world, "read", read),
        *await tried(real_world, "write", read, write, bash(f"cat {outside}")),
    ]
    assert all("specified a rule" in answer for answer in answers)
    assert not Path(f"{outside}2").exists()


@pytest.mark.promise("X3")
@pytest.mark.real
@pytest.mark.parametrize("access", ["read", "write"])
async def test_where_questions_are_denied_there_is_no_tool_to_ask_them(real_world: RealWorld, access: str) -> None:
    """facts/opencode.md 2, 19."""
    question = {"question": "why?", "header": "h", "options": [{"label": "a", "description": "b"}]}
    denied = PermissionRule(tool="question", action="deny")
    (answer,) = await tried(real_world, access, Call("question", {"questions": [question]}), rules=(denied,))
    assert "unavailable tool" in answer


@pytest.mark.promise("H1")
@pytest.mark.real
async def test_the_first_rule_that_fits_decides_within_the_bounds_of_the_access(real_world: RealWorld) -> None:
    def rule(action: Any, tool: str, pattern: str = "*") -> PermissionRule:
        return PermissionRule(tool=tool, pattern=pattern, action=action)

    before = real_world.ran
    rules = (
        rule("allow", "bash", "echo fine *"), rule("deny", "bash", "echo *"), rule("deny", "glob"),
        rule("allow", "bash"),
    )  # fmt: skip
    look = Call("glob", {"pattern": "*"})
    commands = [bash("echo fine one"), bash("echo two"), bash("true"), bash("bd close x-1"), look]
    answers = await tried(real_world, "write", *commands, rules=rules)
    assert [("specified a rule" in one) or ("unavailable" in one) for one in answers] == [
        False, True, False, True, True
    ]  # fmt: skip
    assert real_world.ran == before
    writes = bash("> made-by-a-reader"), bash("echo fine > made-by-a-reader")
    reads = await tried(real_world, "read", *writes, look, rules=rules)
    assert all("unavailable tool" in one for one in reads), reads
    assert not (real_world.directory / "made-by-a-reader").exists()


@pytest.mark.promise("H2")
@pytest.mark.real
async def test_where_a_tool_is_asked_about_there_is_no_subagent(real_world: RealWorld) -> None:
    """OpenCode hands a subagent the denials of its parent's rules, and nothing that is to be asked."""
    call = Call("task", {"description": "d", "prompt": name(), "subagent_type": "general"})
    asks = PermissionRule(tool="bash", pattern="npm *", action="ask")
    assert "unavailable tool" in (await tried(real_world, "write", call, rules=(asks,)))[0]
    assert "unavailable tool" not in (await tried(real_world, "write", call))[0]


@pytest.mark.promise("X2")
@pytest.mark.real
async def test_a_writer_may_work_and_look_at_issues(real_world: RealWorld) -> None:
    answers = await tried(
        real_world, "write", *map(bash, ("echo hi > made", "bd show x-1", "bd list", "bd ready", "ashep verify x-1"))
    )
    assert (real_world.directory / "made").read_text() == "hi\n"
    assert not any("rule" in answer for answer in answers)
    assert real_world.ran.splitlines()[-4:] == ["bd show x-1", "bd list", "bd ready", "ashep verify x-1"]


@pytest.mark.promise("X2")
@pytest.mark.real
async def test_nobody_writes_issues_or_calls_ashep(real_world: RealWorld) -> None:
    before = real_world.ran
    spies = real_world.folder / "bin"
    commands = [
        "bd close x-1",
        "bd",
        "bd ready --claim",
        "bd update x-1 --status closed",
        "echo hi && bd comment x-1 text",
        "cat $(bd label add x-1 y)",
        f"{spies}/bd close x-1",
        "env A=1 bd close x-1",
        "BEADS_ACTOR=me bd close x-1",
        "bash -c 'bd close x-1'",
        "command bd close x-1",
        "echo x-1 | xargs bd close",
        "ashep retry x-1",
        "ashep verify x-1; ashep approve x-1",
        "ashep verify $(ashep stop)",
        "ashep approve x-1 -m 'ashep verify x-1'",
        f"{spies}/ashep stop",
    ]
    answers = await tried(real_world, "write", *map(bash, commands))
    assert all("specified a rule" in answer for answer in answers)
    assert real_world.ran == before


@pytest.mark.promise("X4")
@pytest.mark.real
async def test_a_subagent_is_held_to_the_same_rules(real_world: RealWorld) -> None:
    before, word = real_world.ran, name()
    real_world.steps[word] = [bash("bd close x-1"), bash("echo sub > sub")]
    await tried(real_world, "write", Call("task", {"description": "d", "prompt": word, "subagent_type": "general"}))
    assert real_world.ran == before
    assert (real_world.directory / "sub").exists()


@pytest.mark.real
async def test_what_a_subagent_asks_is_its_parents_to_answer(real_world: RealWorld) -> None:
    """OpenCode's own configuration asks before it reads an .env file."""
    word = name()
    real_world.steps[word] = [Call("read", {"filePath": str(real_world.directory / "secret.env")})]
    prompt = await sent(
        real_world, "write", Call("task", {"description": "d", "prompt": word, "subagent_type": "general"})
    )
    with anyio.fail_after(60):
        while not (mine := await real_world.runner.requests((prompt.session,))):
            await anyio.sleep(0.1)
    assert (mine[0].kind, mine[0].tool) == ("permission", "read")
    assert await real_world.runner.reply(prompt.session, mine[0].id, "permission", "deny", (), "go on without it")
    assert (await settled(real_world, prompt.session, prompt.message_id, bound=60)).text == "END"


# --- turns on the real server --------------------------------------------------------------------------------------


@pytest.mark.promise("T2")
@pytest.mark.real
async def test_a_tools_step_is_not_the_end(real_world: RealWorld) -> None:
    """facts/opencode.md 24."""
    prompt = await sent(real_world, "write", bash("sleep 0.4"), bash("sleep 0.4"))
    states = set[tuple[str, str]]()
    with anyio.fail_after(60):
        while True:
            turn = await real_world.runner.turn(prompt.session, prompt.message_id)
            states.add((turn.state, turn.text))
            if turn.state == "finished":
                break
    assert turn.text == "END"
    assert not any(state == "finished" and text != "END" for state, text in states)
    assert {state for state, _ in states} <= {"missing", "stored", "running", "finished"}
    assert real_world.seen(prompt.message_id[4:]) == 1
    # an abort may delete the prompt of a turn that was shorter than the call: it has been answered (fact 27)
    async with real_world.http() as http:
        await http.delete(f"/session/{prompt.session}/message/{prompt.message_id}")
    turn = await real_world.runner.turn(prompt.session, prompt.message_id)
    assert (turn.state, turn.text) == ("finished", "END")


@pytest.mark.promise("T3")
@pytest.mark.real
async def test_a_compaction_is_no_person_and_its_summary_no_outcome(real_world: RealWorld) -> None:
    """facts/opencode.md 25: the model's context is nearly full after the first step."""
    word = name()
    full = Reply(calls=(bash("echo one"),), tokens=(13_500, 100))

    def script(ask: Any) -> Reply:
        if word in ask.prompt and not ask.results:
            return full
        return Reply("THE ANSWER", tokens=(1_000, 10))

    usual, real_world.model.script = real_world.model.script, script
    try:
        session = await real_world.runner.open_session(SessionRequest(key=word, title="a test", access="write"))
        prompt = Prompt(session, f"msg_{word}", f"prt_{word}", f"{word} hello", "build", Model("scripted", "small"))
        await real_world.runner.send(prompt)
        turn = await settled(real_world, session, prompt.message_id)
    finally:
        real_world.model.script = usual
    async with real_world.http() as http:
        infos = [entry["info"] for entry in (await http.get(f"/session/{session}/message")).json()]
    assert any(info.get("summary") is True for info in infos if info["role"] == "assistant"), "no compaction was forced"
    assert len([info for info in infos if info["role"] == "user"]) > 1
    assert (turn.text, turn.people) == ("THE ANSWER", ())
    assert real_world.seen(word) == 1


@pytest.mark.real
@pytest.mark.parametrize("before", [True, False])
async def test_a_message_with_a_format_does_not_hide_the_session(real_world: RealWorld, before: bool) -> None:
    """facts/opencode.md 1: such a message, a person's, makes the server refuse the list."""
    word = name()
    session = await real_world.runner.open_session(SessionRequest(key=word, title="a test", access="write"))
    prompt = Prompt(session, f"msg_{word}", f"prt_{word}", f"{word} hello", "build")
    if not before:
        await real_world.runner.send(prompt)
        await settled(real_world, session, prompt.message_id)
    async with real_world.http() as http:
        schema = {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
        body = {"parts": [{"type": "text", "text": "formatted"}], "format": schema}
        assert (await http.post(f"/session/{session}/prompt_async", json=body)).status_code == 204
        with anyio.fail_after(60):
            while (await http.get(f"/session/{session}/message")).status_code != 400:
                await anyio.sleep(0.05)
    await real_world.runner.abort(session)
    if before:
        await real_world.runner.send(prompt)
    turn = await settled(real_world, session, prompt.message_id)
    assert (turn.text, len(turn.people)) == ("END", 0 if before else 1)
    assert "hello" in await real_world.runner.transcript(session, 10_000)


@pytest.mark.real
async def test_a_long_session_is_read_page_by_page(real_world: RealWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ashep.adapters.runners.opencode.runner._PAGE", 2)
    prompt = await sent(real_world, "write", *[bash("true")] * 5)
    turn = await settled(real_world, prompt.session, prompt.message_id)
    assert (turn.text, turn.people, turn.state) == ("END", (), "finished")
    assert turn.tokens > 5 * 1_000


@pytest.mark.real
async def test_a_stream_that_breaks_off_is_asked_again_by_the_server(real_world: RealWorld) -> None:
    """facts/opencode.md 20."""
    word = name()

    def script(ask: Any) -> Reply:
        return Reply("half of", drop=True, drip=0.3) if not ask.repeated and word in ask.prompt else Reply("END")

    usual, real_world.model.script = real_world.model.script, script
    try:
        session = await real_world.runner.open_session(SessionRequest(key=word, title="a test", access="write"))
        await real_world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, "build"))
        turn = await settled(real_world, session, f"msg_{word}", bound=30)
    finally:
        real_world.model.script = usual
    assert (turn.text, turn.error) == ("END", None)


@pytest.mark.real
async def test_a_prompt_that_the_server_drops_shows_what_it_said_of_it(real_world: RealWorld) -> None:
    """facts/opencode.md 16: the answer is 204, no message shows it, and the stream alone says why. So with a plugin."""
    word = name()
    session = await real_world.runner.open_session(SessionRequest(key=word, title="a test", access="write"))
    async with followed(real_world):
        await real_world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, "nobody"))
        with anyio.fail_after(60):
            while not (turn := await real_world.runner.turn(session, f"msg_{word}")).error:
                await anyio.sleep(0.1)
        assert turn.state == "missing"
        assert turn.error.startswith('UnknownError: Agent not found: "nobody"')
        await real_world.runner.send(Prompt(session, f"msg_{word}2", f"prt_{word}2", word, "build"))
        turn = await settled(real_world, session, f"msg_{word}2")
    assert (turn.state, turn.error) == ("finished", None)


@pytest.mark.real
async def test_a_left_over_question_of_an_aborted_turn_waits_for_nobody(real_world: RealWorld) -> None:
    """facts/opencode.md 19."""
    word = name()
    real_world.acts[word] = Act(does="asks")
    session = await real_world.runner.open_session(SessionRequest(key=word, title="a test", access="write"))
    await real_world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, "build"))
    async with real_world.http() as http:
        with anyio.fail_after(60):
            while not (await http.get("/permission")).json():
                await anyio.sleep(0.05)
    (asked,) = [one for one in await real_world.runner.requests((session,)) if one.session == session]
    await real_world.runner.abort(session)
    # whether the server still lists it or not: nothing comes of an answer
    await real_world.runner.reply(session, asked.id, "permission", "allow", (), "")
    assert session not in await real_world.runner.busy((session,))


@pytest.mark.real
async def test_what_was_asked_while_nobody_listened_is_not_taken_for_nothing(
    real_world: RealWorld, tmp_path: Path
) -> None:
    """A request that cannot be listed, made while no stream told of it: nothing is known of it but that."""
    (tmp_path / "opencode.json").write_text((real_world.directory / "opencode.json").read_text())
    word, folder = name(), str(tmp_path)
    real_world.acts[word] = Act(does="fetches")
    request = SessionRequest(word, "a test", "write", permissions=(ASKS_TO_FETCH,), directory=folder)
    session = await real_world.runner.open_session(request)
    await real_world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, "build"))
    with anyio.fail_after(60):
        while not (listed := await real_world.runner.requests((session,))):
            await anyio.sleep(0.05)
    assert [(one.id, one.session, one.tool) for one in listed] == [("", session, "")]
    assert '["metadata"]["timeout"]' in listed[0].unlisted.replace("\\", "")
    await real_world.runner.abort(session)
    assert (await real_world.runner.turn(session, f"msg_{word}")).state == "finished"


@pytest.mark.real
async def test_what_a_stopped_turn_asked_keeps_no_list_from_being_shown(real_world: RealWorld) -> None:
    """facts/opencode.md 19: what it asked stays in the list, which cannot be shown while it is there."""
    word = name()
    real_world.acts[word] = Act(does="fetches")
    async with followed(real_world):
        request = SessionRequest(word, "a test", "write", permissions=(ASKS_TO_FETCH,))
        session = await real_world.runner.open_session(request)
        await real_world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, "build"))
        with anyio.fail_after(60):
            while not any(one.id for one in await real_world.runner.requests((session,))):
                await anyio.sleep(0.05)
        await real_world.runner.abort(session)
        async with real_world.http() as http:
            assert (await http.get("/permission")).status_code == 200


def test_an_event_that_is_hardly_understood_is_known_by_its_id() -> None:
    """So that what it asks is denied; one that is not understood at all is nothing."""
    told = ReportedRequests(Redaction())
    properties = {"id": "per_1", "sessionID": "ses_1", "patterns": 7}
    told.hear("permission.asked", json.dumps({"payload": {"properties": properties}}))
    for odd in ("", "[]", "{", '{"payload":{"properties":{"id":"per_2"}}}', "[" * 100_000):
        told.hear("permission.asked", odd)
        told.hear("permission.replied", odd)
    assert told.list_open("permission") == (Request("per_1", "ses_1", "permission"),)
    told.hear("permission.replied", json.dumps({"payload": {"properties": {"requestID": "per_1"}}}))
    assert told.list_open("permission") == ()
    for number in range(KEPT + 10):
        properties = {"id": f"per_{number}", "sessionID": "ses_1"}
        told.hear("permission.asked", json.dumps({"payload": {"properties": properties}}))
    assert len(told.list_open("permission")) == KEPT
    assert told.list_open("permission")[-1].id == f"per_{KEPT + 9}"


def test_what_the_stream_tells_of_requests_holds_no_secret() -> None:
    redaction = Redaction()
    redaction.add("hunter2-hunter2")
    told = ReportedRequests(redaction)
    properties: dict[str, Any] = {"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["curl *"]}
    properties["metadata"] = {"command": "curl -H hunter2-hunter2"}
    told.hear("permission.asked", json.dumps({"payload": {"properties": properties}}))
    (one,) = told.list_open("permission")
    assert (one.tool, one.patterns) == ("bash", ("curl *",))
    assert "hunter2" not in one.detail


@pytest.mark.real
async def test_what_a_stranger_is_asked_is_not_ours_to_answer(real_world: RealWorld) -> None:
    word = name()
    real_world.acts[word] = Act(does="asks")
    async with real_world.http() as http:
        session = (await http.post("/session", json={"title": "theirs"})).json()["id"]
        await http.post(f"/session/{session}/prompt_async", json={"parts": [{"type": "text", "text": word}]})
        with anyio.fail_after(60):
            while not (asked := [p for p in (await http.get("/permission")).json() if p["sessionID"] == session]):
                await anyio.sleep(0.05)
        assert session not in {one.session for one in await real_world.runner.requests((session,))}
        assert [p for p in (await http.get("/permission")).json() if p["sessionID"] == session] == asked
        await http.post(f"/session/{session}/abort")


# --- attaching -----------------------------------------------------------------------------------------------------


def attached(world: RealWorld, password: str | None, port: int | None = None) -> OpencodeRunner:
    url = f"http://127.0.0.1:{port or world.record['port']}"
    endpoint = AttachedServer(url=url, password=password, state=world.state, environ=world.environ)
    return OpencodeRunner(endpoint, directory=world.directory)


@pytest.mark.real
@pytest.mark.parametrize("password", ["wrong", None])
async def test_a_wrong_password_is_unauthorized(real_world: RealWorld, password: str | None) -> None:
    runner = attached(real_world, password)
    with pytest.raises(RunnerUnauthorized):
        await runner.start()
    await runner.aclose()


@pytest.mark.promise("X7")
@pytest.mark.real
async def test_an_attached_servers_name_changes_when_it_refused_a_connection(real_world: RealWorld) -> None:
    port, password = real_world.record["port"], real_world.record["password"]
    names: list[str] = []
    for _ in range(2):  # another runner, as after a restart of ashep
        runner = attached(real_world, password)
        await runner.start()
        await runner.start()
        names.append((await runner.catalog()).instance)
        assert not await runner.stop_server()
    assert names[0] == names[1]
    endpoint = AttachedServer(
        url=f"http://127.0.0.1:{port}", password=password, state=real_world.state, environ=real_world.environ
    )
    endpoint.refused()
    assert (await endpoint.reach()).instance != names[0]
    assert await real_world.runner.busy(("ses_1",)) == frozenset(), "it was not ours to stop"


@pytest.mark.promise("X10")
async def test_a_server_that_accepts_and_never_answers_is_away_within_the_bound(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as wedged:
        url = f"http://127.0.0.1:{wedged.getsockname()[1]}"
        endpoint = AttachedServer(url=url, password="x", state=tmp_path, environ={"HOME": str(tmp_path)})
        runner = OpencodeRunner(endpoint, directory=tmp_path)
        began = anyio.current_time()
        with pytest.raises(RunnerUnavailable, match="did not answer within 1 s"):
            await runner.start()
        assert anyio.current_time() - began < 10
        assert not endpoint._over, "its life may go on"


async def test_nothing_listens_there(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    endpoint = AttachedServer(url="http://127.0.0.1:1", password="x", state=tmp_path, environ=environ)
    runner = OpencodeRunner(endpoint, directory=tmp_path)
    with pytest.raises(RunnerUnavailable):
        await runner.start()
    with pytest.raises(RunnerUnavailable):
        await runner.busy(("ses_1",))


def test_the_settings_choose_between_managed_and_attached(tmp_path: Path) -> None:
    def made(**keys: Any) -> OpencodeRunner:
        return OpencodeRunner.from_settings(
            OpencodeSettings(**keys), directory=tmp_path, state=tmp_path, environ={"HOME": str(tmp_path)}
        )

    assert made() is not None
    assert made(url="http://localhost:1") is not None
    assert made(url="http://127.8.0.1:1") is not None
    assert made(url="http://[::1]:1") is not None
    with pytest.raises(ConfigError):
        made(managed=False)


# --- reading, without a server -------------------------------------------------------------------------------------


def entry(role: str, ident: str, at: int, *parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {"info": {"id": ident, "role": role, "time": {"created": at}, **info}, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


PROMPT = entry("user", "msg_1", 10, text("do it"))
DONE = entry("assistant", "msg_2", 20, text("done"), parentID="msg_1", finish="stop")


def read(*entries: dict[str, Any], busy: bool = False, ours: frozenset[str] = frozenset()) -> tuple[str, str, int]:
    messages = turns.order(turns.MESSAGES.validate_json(json.dumps(entries)))
    turn = turns.read_turn(messages, "msg_1", ours, turns.Status(busy), "i")
    return turn.state, turn.text, len(turn.people)


@pytest.mark.parametrize("amount", ["1e400", "NaN", "-1e300", "1e300"])
def test_amounts_that_no_fact_can_hold_are_bounded(amount: str) -> None:
    """Whoever works in a place can answer for its server; one such number ended the daemon, and each next one."""
    done = DONE | {"info": {**DONE["info"], "tokens": {"input": 7e77}, "cost": 7e77}}
    said = json.dumps([PROMPT, done]).replace("7e+77", amount)
    turn = turns.read_turn(turns.MESSAGES.validate_json(said), "msg_1", frozenset(), turns.Status(busy=False), "i")
    assert 0 <= turn.tokens <= 10**12
    assert 0.0 <= turn.cost <= 1e12
    waits = shapes.parse(shapes.STATUSES, f'{{"s": {{"type": "retry", "next": {amount}}}}}'.encode())["s"].next
    assert waits is not None
    assert abs(waits) <= 1e14


def test_a_message_without_its_words_is_waited_for_and_no_other() -> None:
    """Whose it is shows in its parts, a moment later."""
    blank, person = entry("user", "msg_3", 30), entry("user", "msg_3", 30, text("not like this"))
    answer = entry("assistant", "msg_4", 40, parentID="msg_3")

    def waits(*entries: dict[str, Any], ours: frozenset[str] = frozenset()) -> bool:
        messages = turns.order(turns.MESSAGES.validate_json(json.dumps(entries)))
        return turns.is_being_written(messages, "msg_1", ours)

    assert waits(PROMPT, DONE, blank)
    assert read(PROMPT, DONE, blank) == ("finished", "done", 0)
    assert not waits(PROMPT, DONE, person)
    assert not waits(PROMPT, DONE)
    assert not waits(PROMPT, DONE, blank, ours=frozenset({"msg_3"}))
    assert read(PROMPT, DONE, person, busy=True) == ("finished", "done", 1), "it waited for the end of ours"
    assert read(PROMPT, DONE, person, answer, busy=True) == ("finished", "done", 1)
    step = entry("assistant", "msg_2", 20, parentID="msg_1", finish="tool-calls")
    assert read(PROMPT, step, person, busy=True) == ("running", "", 1)


@pytest.mark.promise("T2")
def test_reading_a_turn() -> None:
    step = entry("assistant", "msg_2", 20, parentID="msg_1", finish="tool-calls")
    unknown = entry("assistant", "msg_2", 20, parentID="msg_1", finish="unknown")
    open_ = entry("assistant", "msg_2", 20, parentID="msg_1")
    failed = entry("assistant", "msg_2", 20, parentID="msg_1", error={"name": "APIError", "data": {"message": "no"}})
    summary = entry("assistant", "msg_3", 30, text("so far"), parentID="msg_c", summary=True, finish="stop")
    assert read() == ("missing", "", 0)
    assert read(PROMPT) == ("stored", "", 0)
    assert read(PROMPT, busy=True) == ("running", "", 0)
    assert read(PROMPT, DONE) == ("finished", "done", 0)
    assert read(PROMPT, DONE, busy=True) == ("running", "done", 0)
    assert read(PROMPT, failed) == ("finished", "", 0)
    assert read(PROMPT, PROMPT, DONE, DONE) == ("finished", "done", 0)
    for unfinished in (step, unknown, open_, summary):
        assert read(PROMPT, unfinished)[0] == "incomplete"


@pytest.mark.promise("T3")
def test_what_a_broken_stream_left_is_not_read() -> None:
    """facts/opencode.md 20."""
    start = {"type": "step-start"}
    tries = entry("assistant", "msg_2", 20, start, text("ha"), start, text("half"), parentID="msg_1", finish="stop")
    assert read(PROMPT, tries) == ("finished", "half", 0)


@pytest.mark.promise("T2")
def test_a_message_of_ours_without_parts_is_missing() -> None:
    """facts/opencode.md 11."""
    assert read(entry("user", "msg_1", 10))[0] == "missing"
    assert read(entry("user", "msg_1", 10), DONE)[0] == "finished"


def test_a_prompt_that_was_sent_again_stands_behind_the_answer_that_died() -> None:
    """facts/opencode.md 11: sending the same ids again dates the prompt anew."""
    died = entry("assistant", "msg_0", 5, text("half"), parentID="msg_1")
    assert read(died, PROMPT)[:2] == ("incomplete", "half")
    assert read(died, PROMPT, DONE)[:2] == ("finished", "done")


@pytest.mark.promise("C2")
def test_who_wrote_a_message() -> None:
    """facts/opencode.md 3, 11, 25."""
    assert read(PROMPT, DONE, entry("user", "msg_5", 50, text("hello")))[2] == 1
    assert read(PROMPT, DONE, entry("user", "msg_5", 50, text("hello")), ours=frozenset({"msg_5"}))[2] == 0
    earlier = (
        entry("user", "msg_5", 50, text("hello")),
        entry("assistant", "msg_6", 60, text("old"), parentID="msg_5"),
    )
    # a session that is used again, and a clock that was set back between the two
    assert read(PROMPT, DONE, *earlier, ours=frozenset({"msg_5"})) == ("finished", "done", 0)
    compacted = (
        entry("user", "msg_7", 70, {"type": "compaction", "auto": True}),
        entry("assistant", "msg_8", 80, text("old"), parentID="msg_7", finish="stop"),
        entry("user", "msg_9", 90, text("hello")),
    )
    stood_there = frozenset({"msg_5", "msg_7", "msg_9"})
    assert read(PROMPT, *earlier, *compacted, ours=stood_there) == ("stored", "", 0)
    assert read(PROMPT, DONE, *earlier, *compacted, ours=stood_there) == ("finished", "done", 0)
    assert read(PROMPT, entry("user", "msg_5", 50, {"type": "compaction", "auto": True}))[2] == 0
    assert read(PROMPT, entry("user", "msg_5", 50, text("Continue", synthetic=True)))[2] == 0
    assert read(PROMPT, entry("user", "msg_5", 50, text("do it")))[2] == 0
    assert read(PROMPT, entry("user", "msg_5", 50))[2] == 0
    assert read(PROMPT, entry("user", "msg_5", 50, {"type": "file", "url": "x"}))[2] == 1
    assert read(PROMPT, entry("user", "msg_5", 50, text("look"), text("the file", synthetic=True)))[2] == 1


def test_the_answer_to_a_person_is_not_ours() -> None:
    person = entry("user", "msg_5", 50, text("hello"))
    answer = entry("assistant", "msg_6", 60, text("hi"), parentID="msg_5", finish="stop")
    late = entry("assistant", "msg_7", 55, text("ours, late"), parentID="msg_1", finish="stop")
    assert read(PROMPT, DONE, person, answer) == ("finished", "done", 1)
    assert read(PROMPT, person, late, answer) == ("finished", "ours, late", 1)


def test_the_answer_follows_a_compaction() -> None:
    """facts/opencode.md 25."""
    step = entry("assistant", "msg_2", 20, parentID="msg_1", finish="tool-calls")
    compaction = entry("user", "msg_3", 30, {"type": "compaction", "auto": True})
    summary = entry("assistant", "msg_4", 40, text("so far"), parentID="msg_3", summary=True, finish="stop")
    go_on = entry("user", "msg_5", 50, text("Continue", synthetic=True, metadata={"compaction_continue": True}))
    answer = entry("assistant", "msg_6", 60, text("done"), parentID="msg_5", finish="stop")
    assert read(PROMPT, step, compaction, summary, go_on)[0] == "incomplete"
    assert read(PROMPT, step, compaction, summary, go_on, answer) == ("finished", "done", 0)


@pytest.mark.promise("X1")
def test_a_reader_is_denied_whatever_is_not_listed() -> None:
    def action(access: Any, permission: str, pattern: str = "*") -> str | None:
        found = [r for r in ruleset(access) if r["permission"] in {"*", permission} and r["pattern"] in {"*", pattern}]
        return found[-1]["action"] if found else None

    for tool in ("bash", "edit", "write", "task", "external_directory", "mcp_anything"):
        assert action("read", tool) == "deny"
    assert action("read", "read") == "allow"
    assert action("read", "question") == "allow"
    assert action("read", "read", "*.env") == "deny"
    assert action("write", "edit") is None
    assert action("write", "question") is None
    assert action("write", "external_directory") == "deny"


@pytest.mark.promise("H2")
def test_no_rule_of_the_users_is_above_the_bounds_and_none_is_lost_in_them() -> None:
    def action(access: Any, tool: str, text: str, *rules: PermissionRule) -> str | None:
        found = [r for r in ruleset(access, rules) if matches(r["permission"], tool) and matches(r["pattern"], text)]
        return found[-1]["action"] if found else None

    def rule(action: Any, tool: str, pattern: str = "*") -> PermissionRule:
        return PermissionRule(tool=tool, pattern=pattern, action=action)

    everything = rule("allow", "*")
    assert action("write", "bash", "make", everything) == "allow"
    assert action("write", "bash", "bd close x", everything) == "deny"
    assert action("write", "external_directory", "/etc/*", everything) == "deny"
    for tool in ("bash", "edit", "task", "mcp_write", "external_directory"):
        assert action("read", tool, "x", everything, rule("allow", "bash"), rule("ask", "edit")) == "deny"
    assert action("read", "mcp_search", "x", rule("allow", "mcp_search")) == "allow"
    assert action("read", "read", "a.env", rule("allow", "read")) == "deny"
    assert action("write", "bash", "bd show x", rule("deny", "bash")) == "deny"
    assert action("write", "bash", "bd show x", rule("ask", "bash")) == "ask"
    assert action("write", "bash", "bd show x", rule("deny", "bash", "npm *")) == "allow"
    first = (rule("ask", "bash", "npm publish *"), rule("allow", "bash", "npm *"), rule("deny", "bash"))
    assert [action("write", "bash", text, *first) for text in ("npm publish", "npm test", "ls")] == [
        "ask", "allow", "deny"
    ]  # fmt: skip
    assert action("write", "task", "general", *first) == "deny"
    assert action("write", "task", "general", *first[1:]) is None
    assert action("write", "question", "*", rule("ask", "question")) == "allow"
    assert action("read", "question", "*", rule("deny", "question")) == "deny"


def test_the_scripted_agent_gives_the_verdict_that_is_asked_for() -> None:
    assert verdict_asked("no such word") is None
    assert verdict_asked('say\n"verdict": "approve | needs_changes"\n') == "approve"
    contract = '{"verdict": "needs_work"}\n- `verdict`, required with "success": one of "needs_work", "pass".\n'
    assert verdict_asked(contract) == "pass"


def test_an_answer_to_another_prompt_is_none_to_ours_although_the_clock_was_set_back() -> None:
    def message(id: str, role: str, created: int, **more: object) -> turns.Message:
        info = {"id": id, "role": role, "time": {"created": created}} | more
        return turns.Message.model_validate({"info": info, "parts": [{"type": "text", "text": id}]})

    old = message("msg_a", "user", 1)
    late = message("msg_b", "assistant", 9, parentID="msg_a", finish="stop")  # before the clock was set back
    ours = message("msg_c", "user", 5)
    before = frozenset({"msg_a"})
    turn = turns.read_turn(turns.order([old, late, ours]), "msg_c", before, turns.Status(busy=False), "i")
    assert (turn.state, turn.people) == ("stored", ())
    # it was set back in the midst of the turn: what followed stands before the prompt
    compaction = message("msg_d", "user", 2)
    own = compaction.model_copy(update={"parts": (turns.MessagePart(type="compaction"),)})
    answer = message("msg_e", "assistant", 3, parentID="msg_d", finish="stop")
    turn = turns.read_turn(turns.order([old, late, ours, own, answer]), "msg_c", before, turns.Status(busy=False), "i")
    assert (turn.state, turn.text, turn.people) == ("finished", "msg_e", ())
    step = message("msg_g", "assistant", 6, parentID="msg_c", finish="tool-calls")
    answer = message("msg_e", "assistant", 3, parentID="msg_c", finish="stop")
    turn = turns.read_turn(turns.order([old, late, ours, step, answer]), "msg_c", before, turns.Status(busy=False), "i")
    assert (turn.state, turn.text) == ("finished", "msg_e")
    person = message("msg_f", "user", 4)
    turn = turns.read_turn(turns.order([old, late, ours, person]), "msg_c", before, turns.Status(busy=False), "i")
    assert (turn.state, turn.people) == ("stored", ("msg_f",))
    # an abort deleted the prompt, after a turn that was shorter than the call
    answer = message("msg_e", "assistant", 6, parentID="msg_c", finish="stop")
    turn = turns.read_turn(turns.order([old, late, answer]), "msg_c", before, turns.Status(busy=False), "i")
    assert (turn.state, turn.text, turn.people) == ("finished", "msg_e", ())


@pytest.mark.promise("X14")
@pytest.mark.parametrize("host", ["10.0.0.7", "0.0.0.0", "[2001:db8::1]", "build.example.org", "localhost.example.org"])
def test_a_server_on_another_machine_needs_a_password(tmp_path: Path, host: str) -> None:
    def made(url: str, **environ: str) -> OpencodeRunner:
        settings = OpencodeSettings(url=url, password_env="PASSWORD")
        return OpencodeRunner.from_settings(settings, directory=tmp_path, state=tmp_path, environ=environ)

    for environ in ({}, {"PASSWORD": ""}):
        with pytest.raises(ConfigError, match="needs a password") as refused:
            made(f"http://{host}:4096", **environ)
        assert (refused.value.exit_code, refused.value.key) == (2, "runners.opencode.url")
    assert made(f"http://{host}:4096", PASSWORD="secret") is not None
    assert made(f"http://opencode:secret@{host}:4096") is not None
