"""A day with the foreman: over the real `claude` at a terminal, from a plan to what a new topic begins with."""

import json
import re
import sys
from pathlib import Path

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply
from tests.foreman.killed import sweep
from tests.foreman.serving import serving
from tests.foreman.sittings import SHELL, Day, unit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.may_block]

PLAN = "# The roof\n\nIt leaks.\n\n1. Look at the tiles\n2. Mend them\n"
SETTINGS = """\
memory: {{tokens: 800, full: 3}}
model: {{kind: openai, url: "{url}/v1", model: small}}
topic_timeout: 25.0
"""
MUCH = "all that there is to say of it\n\n" * 20_000  # more than 600 kB


class Agent:
    """The main agent, its subagents and the small model."""

    def __init__(self) -> None:
        self.begun = list[tuple[str, str]]()  # prompt and system prompt of each session of the main agent
        self._sessions, self.asked = set[str](), list[str]()  # the prompts that the small model was asked about

    def __call__(self, ask: ModelRequest) -> Reply:
        if ask.prompt.startswith("unit"):
            return Reply(f"did {ask.prompt}")
        if ask.kind == "helper":
            return Reply("a title")
        whole = "\n".join(json.dumps(one, ensure_ascii=False) for one in ask.messages)
        if ask.session not in self._sessions:
            self._sessions.add(ask.session)
            self.begun.append((ask.prompt, whole.replace("\\n", "\n")))
        if "plan the roof" in ask.prompt:
            return self._plan(ask, whole)
        if "two units" in ask.prompt and "task-notification" not in ask.prompt and len(ask.results) < 2:
            return Reply(calls=(unit(len(ask.results) + 1, background=len(ask.results) == 1),))
        if "one more" in ask.prompt and not ask.results:
            return Reply(calls=(unit(3),))
        return Reply(MUCH if "say all" in ask.prompt else f"heard {len(self.begun)}")

    def _plan(self, ask: ModelRequest, whole: str) -> Reply:
        file = re.search(r"(/[^\s\"\\`]+/plans/[^\s\"\\`]+\.md)", whole)
        assert file is not None
        if not ask.results:
            return Reply("plan", (Call("write", {"file_path": file[1], "content": PLAN}),))
        return Reply("it is planned", (Call("ExitPlanMode", {}),)) if len(ask.results) == 1 else Reply("ACCEPTED")

    async def small(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The small model: a garden is a new topic."""
        question = json.loads((await receive())["body"])["messages"][0]["content"]
        self.asked.append(re.findall(r"\[BEGIN new message \w+\]\n(.*)", question)[0])
        said = "YES" if "the garden" in self.asked[-1] else "NO"
        await JSONResponse({"choices": [{"message": {"role": "assistant", "content": said}}]})(scope, receive, send)


async def test_from_a_plan_to_a_new_topic(tmp_path: Path) -> None:
    agent = Agent()
    async with ModelServer(agent) as model, serving(agent.small, interface="asgi3") as url:
        day = Day(tmp_path, model, SETTINGS.format(url=url))
        with day.sits(argv=SHELL) as sitting:
            await sitting.says("$ ")
            sitting.types(f"{sys.executable} -m ashep foreman --permission-mode plan 'plan the roof'; echo code=$?.\n")
            await sitting.says("manually")
            # where the first answer leads to, a server is asked (facts/claude-code.md 46)
            await sitting.until(lambda: day.has("plan", "Look at the tiles"), "2")
            await sitting.until(lambda: day.has("answer", "ACCEPTED"))
            await sitting.tells("do two units")
            await sitting.until(lambda: day.has("result", "did unit 1") and day.has("result", "did unit 2"))
            at = len(sitting.said)
            sitting.types("\x03")  # whatever it is taken for: who stands between does not end by it
            await sitting.until(lambda: "code=148." in sitting.said[at:], "\x1a")
            sitting.types("fg; echo then=$?.\n")
            await sitting.says("manual", at)
            await sitting.tells("say all")
            await sitting.until(lambda: day.has("answer", "all that there is"))
            await sitting.tells("one more")
            await sitting.until(lambda: len(agent.begun) == 2 and day.has("answer", "heard 2"))
            prompt, told = agent.begun[1]
            assert prompt.startswith("Continue with what was under way")
            places = [told.find(part) for part in ("entries omitted", "say all", "not begun", "Explore")]
            assert places == sorted(places)
            assert -1 not in places, places
            assert not any("unit 3" in ask.prompt for ask in model.asks), "it was denied"

            await sitting.tells("and the gutter")
            await sitting.until(lambda: sum(one["text"] == "heard 2" for one in day.history()) == 2)
            assert len(agent.begun) == 2, "no new topic"
            assert "and the gutter" in agent.asked
            assert not any(one.startswith(("plan the roof", "Continue with")) for one in agent.asked), "each is a first"
            await sitting.tells("now the garden")
            await sitting.until(lambda: len(agent.begun) == 3 and day.has("answer", "heard 3"))
            assert agent.begun[2][0] == "now the garden"
            assert "gutter" not in agent.begun[2][1], "of what was said before there is a count"
            before = len(model.asks)
            await sitting.tells("/clear-worker-history")
            await sitting.until(lambda: day.has("cleared", ""))
            assert len(model.asks) == before
            await sitting.tells("/exit")
            await sitting.until(lambda: "then=0." in sitting.said[at:], "\r")
            assert not day.marked()


async def test_whoever_is_killed_nothing_is_left_and_nothing_lost(tmp_path: Path) -> None:
    assert await sweep(tmp_path, (2.5, 2.5, 3.5)) == []  # in full: `python -m tests.foreman.killed`
