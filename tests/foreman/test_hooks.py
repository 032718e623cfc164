"""The endpoints, over the real routes: who may, what is kept before it is answered, and that nothing of ours stops."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread
from starlette.applications import Starlette

from ashep.extras.foreman.history import History, HistoryEntry, read
from ashep.extras.foreman.hook_rules import CONTINUE, Relaunch, Size
from ashep.extras.foreman.hook_server import MAX_BODY, Desk, routes, size_of
from ashep.extras.foreman.settings import ForemanSettings, Restart
from ashep.extras.foreman.web_tools import WebTools
from ashep.redaction import Redaction

SECRET = "a-secret-of-this-start"
AGENT = {"tool_name": "Agent", "tool_use_id": "t-1", "tool_input": {"prompt": "look"}}


class Room:
    """A desk over a real history, and a client of its routes."""

    def __init__(self, history: History, state: Path, redaction: Redaction) -> None:
        self.log, self.state, seconds = list[str](), state, count()
        send, self.relaunches = anyio.create_memory_object_stream[Relaunch](1)
        self.desk = Desk(
            history, redaction, ForemanSettings(), SECRET, send, say=self.log.append,
            now=lambda: datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=next(seconds)),
            web=WebTools(ForemanSettings(), {}, state, SECRET, redaction),
        )  # fmt: skip
        self.desk.note_start("s-1")
        transport = httpx.ASGITransport(Starlette(routes=routes(self.desk)))
        told = {"Authorization": f"Bearer {SECRET}"}
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1", headers=told)

    async def tell(self, path: str, event: str = "", **payload: object) -> Mapping[str, object]:
        answer = await self.client.post(path, json={"session_id": "s-1", "hook_event_name": event, **payload})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def prompt(self, text: str, turn: str = "p-1", session: str = "s-1") -> Mapping[str, object]:
        told = {"prompt": text, "prompt_id": turn, "session_id": session}
        return await self.tell("/hook/user-prompt-submit", "UserPromptSubmit", **told)

    async def kept(self) -> list[tuple[str, str]]:
        return [(one.kind, one.text) for one in (await to_thread.run_sync(read, self.state)).entries]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Room]:
    with History.open(tmp_path / "state", redaction := Redaction(), 1_000_000) as history:
        room = Room(history, tmp_path / "state", redaction)
        with room.relaunches, room.desk.relaunches:
            yield room


async def test_a_day_is_kept_and_what_is_told_twice_stands_once(here: Room, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("1. roof")
    for name, words in {"a": '{"toolUseId": "t-1", "spawnDepth": 1}', "b": '{"spawnDepth": 2}', "c": "["}.items():
        (tmp_path / f"agent-{name}.meta.json").write_text(words)
    for _ in range(2):
        assert await here.prompt(f"mend {SECRET}") == {}
        assert await here.tell("/hook/subagent-pretool", "PreToolUse", **AGENT) == {}
        for name in ("a", "b", "c", "d\0"):
            file = f"{tmp_path}/agent-{name}.jsonl"
            ended = {"agent_transcript_path": file, "last_assistant_message": f"{name} leaks"}
            assert await here.tell("/hook/subagent-stop", "SubagentStop", agent_id=name, **ended) == {}
        accepted = {"tool_name": "ExitPlanMode", "tool_response": {"plan": None, "filePath": f"{tmp_path}/plan.md"}}
        assert await here.tell("/hook/exit-plan-mode", "PostToolUse", tool_use_id="t-2", **accepted) == {}
        assert await here.tell("/hook/stop", "Stop", prompt_id="p-1", last_assistant_message="done") == {}
        assert await here.prompt("<task-notification>", "p-2") == {}
    assert await here.kept() == [
        ("prompt", "mend [redacted]"), ("asked", "look"), ("result", "a leaks"), ("result", "c leaks"),
        ("result", "d leaks"), ("plan", "1. roof"), ("answer", "done"),
    ]  # fmt: skip
    calls = [one.call for one in here.desk.history.entries() if one.kind == "result"]
    assert (calls, here.log) == (["t-1", "c", "d"], [])


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([("Host", "evil.example")], b"{}", 421),
        ([("Origin", "https://evil.example")], b"{}", 403),
        ([("Origin", "http://127.0.0.1:1")] * 2, b"{}", 400),
        ([("Sec-Fetch-Site", "cross-site")], b"{}", 403),
        ([("Authorization", f"Bearer {SECRET}x")], b"{}", 401),
        ([("Authorization", "Bearer \xe9")], b"{}", 401),
        ([], b" " * (MAX_BODY + 1), 413),
        *(([], body, 200) for body in (b'{"prompt": "x"', b"[1]", b"[" * 100_000, b'{"prompt": "\xff"}', b"")),
        ([], b'{"prompt": 3, "session_id": [], "hook_event_name": {}}', 200),
    ],
)
async def test_of_who_may_not_or_says_nothing_nothing_is_kept(
    here: Room, headers: list[tuple[str, str]], body: bytes, status: int
) -> None:
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    for path in ("/hook/user-prompt-submit", "/hook/session-start", "/tool/web-fetch"):
        assert (await here.client.post(path, content=body, headers=given)).status_code == status
    assert await here.kept() == []


async def test_a_mistake_of_ours_stops_nobody_and_the_person_is_told_what_is_not_kept(here: Room) -> None:
    async def fails(recent: Sequence[HistoryEntry], prompt: str, seconds: float) -> bool:
        raise RuntimeError(f"no model \x1b {SECRET}")

    here.desk.is_new_topic = fails
    assert await here.prompt("one") == await here.prompt("two", "p-2") == {}
    assert await here.kept() == [("prompt", "one"), ("prompt", "two")]
    await to_thread.run_sync(here.desk.history.close)
    told = await here.prompt("three", "p-3")
    assert str(told["systemMessage"]).startswith("ashep foreman does not keep this: ")
    assert await here.tell("/hook/stop", "Stop", prompt_id="p-3", last_assistant_message="done") == {}
    assert ("no model  [redacted]" in here.log[0], "/hook/user-prompt-submit" in here.log[2]) == (True, True)


async def test_a_new_topic_begins_a_session_with_the_prompt_and_an_old_one_does_not(here: Room) -> None:
    asked = list[list[str]]()

    async def topic(recent: Sequence[HistoryEntry], prompt: str, seconds: float) -> bool:
        asked.append([*(one.text for one in recent), prompt])
        if "fence" in prompt:
            here.desk.note_start("s-3")  # it ended while its prompt was asked about
        return "boat" in prompt or "fence" in prompt

    here.desk.is_new_topic = topic
    assert await here.prompt("mend the roof") == await here.prompt("and the gutter", "p-2") == {}
    assert await here.prompt("and the boat, too", "p-2") == {}  # said to the turn that runs
    assert (await here.prompt("paint the boat", "p-4"))["decision"] == "block"
    assert await here.prompt("a boat", "p-5") == {}  # while the relaunch is under way
    here.desk.note_start("s-2", here.relaunches.receive_nowait().prompt)
    assert await here.prompt("paint the boat\n", "q-1", "s-2") == await here.prompt("which colour?", "q-2", "s-2") == {}
    assert [one[-1] for one in asked] == ["and the gutter", "paint the boat", "which colour?"]
    assert asked[-1][:-1] == ["paint the boat", "a boat"]
    assert await here.prompt("mend the fence", "q-3", "s-2") == {}
    assert here.relaunches.statistics().current_buffer_used == 0
    prompts = [text for kind, text in await here.kept() if kind == "prompt"]
    assert prompts[3:] == ["paint the boat", "a boat", "which colour?", "mend the fence"]

    await here.prompt("one", session="s-3")
    await here.tell("/hook/subagent-stop", "SubagentStop", session_id="other", agent_id="a")
    assert here.desk.session == "s-3"
    await here.tell("/hook/session-start", "SessionStart", session_id="s-4", source="clear")
    assert await here.prompt("the first in a cleared one: a boat", "r-1", "s-4") == {}
    assert (await here.prompt("a boat", "r-2", "s-4"))["decision"] == "block"


async def test_a_long_session_is_begun_anew_once_and_the_new_one_is_let_work(here: Room, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps({"type": "user", "message": {"content": "x" * 2000}}) + "\n")
    here.desk.settings = ForemanSettings(restart=Restart(bytes=2000))

    async def asks(call: str, session: str = "s-1", **payload: object) -> bool:
        told = {**AGENT, "tool_use_id": call, "transcript_path": str(tmp_path / "s.jsonl"), "session_id": session}
        return await here.tell("/hook/subagent-pretool", "PreToolUse", **told, **payload) == {}

    await here.prompt("go")
    assert await asks("t-0", agent_id="a-1")  # a subagent's subagent is no matter of the session's size
    assert [await asks("t-1"), await asks("t-2")] == [False, False]
    here.desk.note_start("s-2", here.relaunches.receive_nowait().prompt)
    assert await here.prompt(CONTINUE, "q-1", "s-2") == {}
    assert await asks("u-1", "s-2")  # as long as it is: a restart would change nothing
    assert not await asks("u-2", "s-2")
    assert [kind for kind, _ in await here.kept()][2:] == ["restart", "asked", "asked", "asked", "restart"]


async def test_commands_and_tools_are_answered_and_the_morning_is_told_once(here: Room) -> None:
    async def hand_over(arguments: str) -> str:
        return f"handed over: {arguments} {SECRET}"

    async def command(name: str, **told: str) -> Mapping[str, object]:
        return await here.tell("/hook/user-prompt-submit", "UserPromptExpansion", command_name=name, **told)

    here.desk.hand_over, here.desk.morning = hand_over, "two stories wait"
    assert await here.prompt("<task-notification>", "p-0") == {}
    assert "two stories wait" in str((await here.prompt("one"))["hookSpecificOutput"])
    assert await here.prompt("two", "p-2") == {}
    assert (await command("foreman:clear-worker-history"))["decision"] == "block"
    assert (await command("foreman:hand-over", command_args="yes"))["reason"] == "handed over: yes [redacted]"
    assert await command("other:hand-over") == await command("compact") == {}
    await here.prompt("three", "p-3")
    assert await here.tell("/clear-history")
    assert [kind for kind, _ in await here.kept()] == ["prompt", "prompt", "cleared", "prompt", "cleared"]
    assert "Nothing was searched" in str(await here.tell("/tool/web-search", query="roofs"))
    assert "Nothing was fetched" in str(await here.tell("/tool/web-fetch", url="http://127.0.0.1:1/", question="why?"))


def test_what_was_said_in_a_transcript_is_counted(tmp_path: Path) -> None:
    file, used = tmp_path / "t.jsonl", {"input_tokens": 5, "cache_read_input_tokens": 70}
    assert size_of(file) == Size(0, 0)
    said = json.dumps({"type": "user", "message": {"content": "x" * 1000}}) + "\n"
    said += json.dumps({"type": "assistant", "message": {"usage": {**used, "cache_creation_input_tokens": 600}}}) + "\n"
    others = '{"type": "attachment", "of": "user"}\n{"type": "user", "isSidechain": true}\n{"type": "us\n[]\n'
    file.write_text(others + said + others + '{"type": "user"}')  # the last one is being written
    assert size_of(file) == Size(len(said), 675)
