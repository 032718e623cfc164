"""The endpoints, over the real routes: who may, what is kept before it is answered, and that nothing of ours stops."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.applications import Starlette

from ashep.foreman.history import Entry, History, read
from ashep.foreman.hooks import MAX_BODY, Desk, routes
from ashep.foreman.rules import CONTINUE, Relaunch
from ashep.foreman.settings import ForemanSettings, Restart
from ashep.redaction import Redaction

SECRET = "a-secret-of-this-start"
TOLD = {"Authorization": f"Bearer {SECRET}"}
AT = datetime(2026, 1, 2, tzinfo=UTC)


SECONDS = count()


def ticking() -> datetime:
    return AT + timedelta(seconds=next(SECONDS))


class Room:
    """A desk over a real history, and a client of its routes."""

    def __init__(
        self, desk: Desk, folder: Path, relaunches: MemoryObjectReceiveStream[Relaunch], log: list[str]
    ) -> None:
        self.desk, self.folder, self.relaunches, self.log = desk, folder, relaunches, log
        transport = httpx.ASGITransport(Starlette(routes=routes(desk)))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1", headers=TOLD)

    async def tell(self, path: str, **payload: object) -> Mapping[str, object]:
        answer = await self.client.post(path, json={"session_id": "s-1", **payload})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def prompt(self, text: str, number: str = "p-1", **payload: object) -> Mapping[str, object]:
        return await self.tell("/hook/user-prompt-submit", prompt=text, prompt_id=number, **payload)

    async def entries(self) -> Sequence[Entry]:
        """What is on the disk."""
        return (await to_thread.run_sync(read, self.folder)).entries

    async def kept(self) -> list[tuple[str, str]]:
        return [(one.kind, one.text) for one in await self.entries()]


@asynccontextmanager
async def room(folder: Path, settings: ForemanSettings | None = None, **given: object) -> AsyncIterator[Room]:
    send, receive = anyio.create_memory_object_stream[Relaunch](1)
    redaction, log = Redaction(), list[str]()
    history = await to_thread.run_sync(History.open, folder / "state", redaction, 1_000_000)
    with send, receive:
        desk = Desk(history, redaction, settings or ForemanSettings(), SECRET, send, ticking, log.append, **given)  # pyright: ignore[reportArgumentType] - as given
        desk.begun("s-1")
        made = Room(desk, folder / "state", receive, log)
        async with made.client:
            yield made
    await to_thread.run_sync(history.close)


async def test_a_day_is_kept_and_what_is_told_twice_stands_once(tmp_path: Path) -> None:
    plan, about = tmp_path / "plan.md", tmp_path / "agent-a.meta.json"
    plan.write_text("1. roof")
    about.write_text(json.dumps({"toolUseId": "t-1", "spawnDepth": 1}))
    (tmp_path / "agent-b.meta.json").write_text(json.dumps({"toolUseId": "t-9", "spawnDepth": 2}))
    (tmp_path / "agent-c.meta.json").write_text("[")
    asked = {"tool_name": "Agent", "tool_use_id": "t-1", "tool_input": {"prompt": "look", "subagent_type": "Explore"}}
    ended = {"agent_type": "Explore", "last_assistant_message": "it leaks"}
    async with room(tmp_path) as here:
        for _ in range(2):
            told = [
                await here.prompt(f"mend {SECRET}"),
                await here.tell("/hook/subagent-pretool", hook_event_name="PreToolUse", **asked),
                await here.tell(
                    "/hook/subagent-stop", agent_id="a", agent_transcript_path=str(tmp_path / "agent-a.jsonl"), **ended
                ),
                await here.tell(
                    "/hook/subagent-stop", agent_id="b", agent_transcript_path=str(tmp_path / "agent-b.jsonl"), **ended
                ),
                await here.tell(
                    "/hook/subagent-stop", agent_id="c", agent_transcript_path=str(tmp_path / "agent-c.jsonl"), **ended
                ),
                await here.tell("/hook/subagent-stop", agent_id="d", agent_transcript_path="/a\0b", **ended),
                await here.tell(
                    "/hook/subagent-stop", hook_event_name="PostToolUse",
                    **asked, tool_response={"content": [{"type": "text", "text": "it leaks!"}]},
                ),
                await here.tell(
                    "/hook/exit-plan-mode", tool_name="ExitPlanMode", tool_use_id="t-2",
                    tool_response={"plan": None, "filePath": str(plan)},
                ),
                await here.tell("/hook/stop", prompt_id="p-1", last_assistant_message="done"),
                await here.tell("/hook/stop", hook_event_name="PreToolUse", **asked),
                await here.prompt("<task-notification>", "p-2"),
            ]  # fmt: skip
            assert told == [{}] * len(told)
        assert await here.kept() == [
            ("prompt", "mend [redacted]"), ("asked", "look"), ("result", "it leaks"), ("result", "it leaks"),
            ("result", "it leaks"), ("plan", "1. roof"), ("answer", "done"),
        ]  # fmt: skip
        results = [one.call for one in await here.entries() if one.kind == "result"]
        assert (results, here.log) == (["t-1", "c", "d"], [])


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Host": "evil.example"}, b"{}", 421),
        ({"Origin": "https://evil.example"}, b"{}", 403),
        ({"Sec-Fetch-Site": "cross-site"}, b"{}", 403),
        ({"Authorization": f"Bearer {SECRET}x"}, b"{}", 401),
        ({"Authorization": "Bearer \xe9"}, b"{}", 401),
        ({"Authorization": ""}, b"{}", 401),
        ({}, b'{"prompt": "x"', 400),
        ({}, b"[1]", 400),
        ({}, b"[" * 100_000, 400),
        ({}, b'{"prompt": "\xff"}', 400),
        ({}, b" " * (MAX_BODY + 1), 413),
        ({}, b"", 200),
        ({}, b'{"prompt": 3, "session_id": [], "hook_event_name": {}}', 200),
    ],
)
async def test_who_may_not_or_says_nothing_is_told_so_and_nothing_is_kept(
    tmp_path: Path, headers: dict[str, str], body: bytes, status: int
) -> None:
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with room(tmp_path) as here:
        for path in ("/hook/user-prompt-submit", "/hook/session-start", "/tool/web-search"):
            answer = await here.client.post(path, content=body, headers=given)
            assert answer.status_code == status
        if status != 200:
            refused = await here.client.post("/clear-history", content=body, headers=given)
            assert refused.status_code == status
        assert await here.kept() == []


async def test_a_mistake_of_ours_stops_nobody(tmp_path: Path) -> None:
    async def fails(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        raise RuntimeError(f"no model \x1b {SECRET}")

    async with room(tmp_path, is_new_topic=fails) as here:
        await here.prompt("one")
        assert await here.prompt("two", "p-2") == {}
        assert await here.kept() == [("prompt", "one"), ("prompt", "two")]
        await to_thread.run_sync(here.desk.history.close)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType] - a History
        (told,) = (await here.prompt("three", "p-3")).items()
        assert told[0] == "systemMessage"
        assert str(told[1]).startswith("ashep foreman does not keep this: ")
        assert await here.tell("/hook/stop", prompt_id="p-3", last_assistant_message="done") == {}
        assert len(here.log) == 4
        assert "no model  [redacted]" in here.log[0]
        assert "/hook/user-prompt-submit" in here.log[2]


async def test_a_new_topic_begins_a_session_with_the_prompt_and_an_old_one_does_not(tmp_path: Path) -> None:
    asked = list[tuple[list[str], str]]()

    async def topic(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        asked.append(([one.text for one in recent], prompt))
        if "slow" in prompt:
            await anyio.sleep_forever()
        return "boat" in prompt

    async with room(tmp_path, ForemanSettings(topic_timeout=0.01), is_new_topic=topic) as here:
        assert await here.prompt("mend the roof") == await here.prompt("and the gutter", "p-2") == {}
        assert await here.prompt("a slow one", "p-3") == {}  # a second after its time it is let go
        assert await here.prompt("and the boat, too", "p-3") == {}  # said to the turn that runs
        answer = await here.prompt("paint the boat", "p-4")
        assert answer["decision"] == "block"
        relaunch = here.relaunches.receive_nowait()
        assert (relaunch.why, relaunch.prompt) == ("topic", "paint the boat")
        here.desk.begun("s-2", relaunch.prompt)
        assert await here.prompt("paint the boat", "q-1", session_id="s-2") == {}
        assert await here.prompt("which colour?", "q-2", session_id="s-2") == {}
        assert [prompt for _, prompt in asked] == ["and the gutter", "a slow one", "paint the boat", "which colour?"]
        assert asked[-1][0] == ["paint the boat"]
        assert await here.kept() == [
            ("prompt", "mend the roof"), ("prompt", "and the gutter"), ("prompt", "a slow one"),
            ("prompt", "and the boat, too"), ("topic", "a new topic"), ("prompt", "paint the boat"),
            ("prompt", "which colour?"),
        ]  # fmt: skip


async def test_a_session_that_ended_while_its_prompt_was_asked_about_is_not_ended_again(tmp_path: Path) -> None:
    async def topic(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        here.desk.begun("s-2")
        return True

    async with room(tmp_path, is_new_topic=topic) as here:
        await here.prompt("one")
        assert await here.prompt("two", "p-2") == {}
        assert here.relaunches.statistics().current_buffer_used == 0
        assert await here.kept() == [("prompt", "one"), ("prompt", "two")]


async def test_a_long_session_is_begun_anew_once_and_the_new_one_is_let_work(tmp_path: Path) -> None:
    transcript = tmp_path / "s.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"content": "x" * 2000}}) + "\n")

    async def asks(number: str, **payload: object) -> bool:
        answer = await here.tell(
            "/hook/subagent-pretool", tool_name="Agent", tool_use_id=number, tool_input={"prompt": number},
            transcript_path=str(transcript), **payload,
        )  # fmt: skip
        return answer == {}

    async with room(tmp_path, ForemanSettings(restart=Restart(bytes=2000))) as here:
        await here.prompt("go")
        assert await asks("t-0", agent_id="a-1")  # a subagent's subagent is no matter of the session's size
        assert [await asks("t-1"), await asks("t-2")] == [False, False]
        assert here.relaunches.receive_nowait().prompt == CONTINUE
        assert here.relaunches.statistics().current_buffer_used == 0
        here.desk.begun("s-2", CONTINUE)
        assert await here.prompt(CONTINUE, "q-1", session_id="s-2") == {}
        assert await asks("u-1", session_id="s-2")  # as long as it is: a restart would change nothing
        assert not await asks("u-2", session_id="s-2")
        assert [kind for kind, _ in await here.kept()] == [
            "prompt",
            "asked",
            "restart",
            "asked",
            "asked",
            "asked",
            "restart",
        ]


async def test_the_main_session_is_followed_and_a_cleared_one_is_not_asked_about(tmp_path: Path) -> None:
    async def topic(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        return True

    async with room(tmp_path, is_new_topic=topic) as here:
        await here.prompt("one")
        await here.tell("/hook/subagent-stop", session_id="other", agent_id="a", last_assistant_message="x")
        assert here.desk.session == "s-1"
        await here.tell("/hook/session-start", session_id="s-2", source="clear")
        assert here.desk.session == "s-2"
        assert await here.prompt("two", "p-2", session_id="s-2") == {}
        assert (await here.prompt("three", "p-3", session_id="s-2"))["decision"] == "block"


async def test_commands_are_answered_without_a_model_and_the_morning_is_told_once(tmp_path: Path) -> None:
    async def hand_over(arguments: str) -> str:
        return f"handed over: {arguments} {SECRET}"

    async def command(name: str, arguments: str = "") -> Mapping[str, object]:
        return await here.tell(
            "/hook/user-prompt-submit", hook_event_name="UserPromptExpansion", command_name=f"foreman:{name}",
            command_args=arguments,
        )  # fmt: skip

    async with room(tmp_path, hand_over=hand_over, morning="two stories wait") as here:
        assert await here.prompt("<task-notification>", "p-0") == {}
        carried = {"hookEventName": "UserPromptSubmit", "additionalContext": "two stories wait"}
        assert await here.prompt("one") == {"hookSpecificOutput": carried}
        assert await here.prompt("two", "p-2") == {}
        cleared = await command("clear-worker-history")
        assert (cleared["decision"], "2 entries" in str(cleared["reason"])) == ("block", True)
        assert list(here.desk.history.entries()) == []
        assert await command("hand-over", "yes") == {"decision": "block", "reason": "handed over: yes [redacted]"}
        await here.prompt("three", "p-3")
        assert await here.tell("/clear-history") == {"cleared": 1}
        assert [kind for kind, _ in await here.kept()] == ["prompt", "prompt", "cleared", "prompt", "cleared"]


async def test_web_tools_answer_where_there_are_any(tmp_path: Path) -> None:
    class Web:
        async def search(self, query: str) -> str:
            return f"found {query}"

        async def fetch(self, url: str, question: str = "") -> str:
            return f"{url} {question}"

    async with room(tmp_path) as here:
        assert "error" in await here.tell("/tool/web-search", query="roofs")
        here.desk.web = Web()
        assert await here.tell("/tool/web-search", query="roofs") == {"result": "found roofs"}
        asked = {"url": "https://x.example", "question": "why?"}
        assert await here.tell("/tool/web-fetch", **asked) == {"result": "https://x.example why?"}
