"""The scripted model over either of its protocols, where no real agent is waited for."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from ashep.extras.demo.scripted_model import Call, ModelServer, Reply

ROUTES = ("/v1/chat/completions", "/v1/messages?beta=true")
TOOLS = {
    ROUTES[0]: [{"type": "function", "function": {"name": "write"}}],
    ROUTES[1]: [{"name": "Write", "input_schema": {}}, {"name": "Agent", "input_schema": {}}],
}


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def http(model: ModelServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=model.url, trust_env=False, timeout=10) as client:
        yield client


def said(*messages: tuple[str, object], route: str = ROUTES[1]) -> dict[str, Any]:
    """The body of a request."""
    spoken = [{"role": role, "content": content} for role, content in messages]
    return {"model": "m", "messages": spoken, "tools": TOOLS[route]}


def events(text: str) -> list[dict[str, Any]]:
    """The data of each event of a stream."""
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


async def test_what_claude_code_puts_beside_a_prompt_is_no_prompt(model: ModelServer, http: httpx.AsyncClient) -> None:
    reminder, result = "<system-reminder>\nBe brief.\n</system-reminder>", [{"type": "text", "text": "it is done"}]
    prompt = [{"type": "text", "text": reminder}, {"type": "text", "text": "Go."}]
    answered = [{"type": "tool_result", "tool_use_id": "a", "content": result}, {"type": "text", "text": reminder}]
    first = (("user", prompt), ("system", "# Environment"))
    await http.post(ROUTES[1], json=said(*first))
    await http.post(ROUTES[1], json=said(*first, ("assistant", [{"type": "tool_use"}]), ("user", answered)))
    turn, step = model.asks
    assert (turn.kind, turn.prompt, turn.results) == ("turn", "Go.", ())
    assert (step.kind, step.prompt, step.results) == ("step", "Go.", ("it is done",))
    assert step.tools == ("write", "task")
    assert [message["content"] for message in step.messages if message["role"] == "system"][1:] == [
        reminder, "# Environment", reminder,
    ]  # fmt: skip


async def test_a_text_and_two_calls_are_three_blocks(model: ModelServer, http: httpx.AsyncClient) -> None:
    calls = Call("write", {"filePath": "a", "content": "filePath"}), Call("task", {"subagent_type": "general"})
    model.script = lambda _: Reply("I do it", calls, drip=0.01)
    found = events((await http.post(ROUTES[1], json=said(("user", "Go.")))).text)
    begun = [one["content_block"] for one in found if one["type"] == "content_block_start"]
    assert [(one["type"], one.get("name")) for one in begun] == [
        ("text", None), ("tool_use", "Write"), ("tool_use", "Agent"),
    ]  # fmt: skip
    blocks: list[str] = [""] * 3
    for one in found:
        if one["type"] == "content_block_delta":
            blocks[one["index"]] += one["delta"].get("text", "") + one["delta"].get("partial_json", "")
    assert blocks[0] == "I do it"
    assert [json.loads(one) for one in blocks[1:]] == [
        {"file_path": "a", "content": "filePath"}, {"subagent_type": "general"},
    ]  # fmt: skip
    assert [one["index"] for one in found if one["type"] == "content_block_stop"] == [0, 1, 2]
    assert len({one["id"] for one in begun[1:]}) == 2
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(("status", "kind"), [
    (400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"), (500, "api_error"),
    (529, "overloaded_error"),
])  # fmt: skip
async def test_an_error_says_what_it_is_and_when_to_ask_again(
    model: ModelServer, http: httpx.AsyncClient, status: int, kind: str
) -> None:
    model.script = lambda _: Reply("not now", status=status, retry_after=7)
    answers = [await http.post(route, json=said(("user", "Go."), route=route)) for route in ROUTES]
    assert {(answer.status_code, answer.headers["retry-after"]) for answer in answers} == {(status, "7")}
    assert [answer.json()["error"]["message"] for answer in answers] == ["not now", "not now"]
    assert answers[1].json()["error"]["type"] == kind


@pytest.mark.parametrize("route", ROUTES)
async def test_a_model_may_give_signs_of_life_and_no_answer(
    model: ModelServer, http: httpx.AsyncClient, route: str
) -> None:
    model.script = lambda _: Reply("never said", pings=True)
    lines = list[str]()
    with anyio.fail_after(5):
        async with http.stream("POST", route, json=said(("user", "Go."), route=route)) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)
                if sum("ping" in one and not one.startswith("data") for one in lines) == 2:
                    break
    assert "never said" not in "".join(lines)


async def test_an_agent_that_looks_whether_a_server_is_there_finds_one(http: httpx.AsyncClient) -> None:
    answers = [await http.head("/"), await http.get("/v1/models")]
    assert [answer.status_code for answer in answers] == [200, 200]
    counted = await http.post("/v1/messages/count_tokens", json=said(("user", "word " * 400)))
    assert counted.json()["input_tokens"] > 400
