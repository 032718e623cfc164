"""A day with the foreman: over the real `claude` at a terminal, from a plan to what a new topic begins with."""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from ashep.demo.model import Ask, Call, ModelServer, Reply
from tests.foreman.sittings import LONGEST, Day, Sitting

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.may_block]

PLAN = "# The roof\n\nIt leaks.\n\n1. Look at the tiles\n2. Mend them\n"
SETTINGS = """\
memory: {{tokens: 800, full: 3}}
model: {{kind: openai, url: "http://127.0.0.1:{port}/v1", model: small}}
topic_timeout: 25.0
"""
MUCH = "all that there is to say of it\n\n" * 20_000
"""More than 600 kB."""


class Agent:
    """The main agent, its subagents and the small model."""

    def __init__(self) -> None:
        self.begun = list[tuple[str, str]]()
        """Prompt and system prompt of the first request of each session of the main agent."""
        self._sessions = set[str]()

    def __call__(self, ask: Ask) -> Reply:
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
            return Reply(calls=(self._unit(len(ask.results) + 1, background=len(ask.results) == 1),))
        if "one more" in ask.prompt and not ask.results:
            return Reply(calls=(self._unit(3, background=False),))
        return Reply(MUCH if "say all" in ask.prompt else f"heard {len(self.begun)}")

    def _plan(self, ask: Ask, whole: str) -> Reply:
        file = re.search(r"(/[^\s\"\\`]+/plans/[^\s\"\\`]+\.md)", whole)
        assert file is not None
        if not ask.results:
            return Reply("plan", (Call("write", {"file_path": file[1], "content": PLAN}),))
        return Reply("it is planned", (Call("ExitPlanMode", {}),)) if len(ask.results) == 1 else Reply("ACCEPTED")

    def _unit(self, number: int, *, background: bool) -> Call:
        agent = "foreman:mini-goal-worker"
        unit = {"description": "a unit", "prompt": f"unit {number}", "subagent_type": agent}
        return Call("Agent", unit | {"run_in_background": background})


class Small(ThreadingHTTPServer):
    """A small model, for which a garden is a new topic."""

    def __init__(self) -> None:
        self.asked = list[str]()
        super().__init__(("127.0.0.1", 0), _Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Small)
        self.server.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        said = "YES" if "the garden" in self.server.asked[-1] else "NO"
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


async def until(fact: Callable[[], object], sitting: Sitting) -> None:
    with anyio.move_on_after(LONGEST):
        while not fact():
            await anyio.sleep(0.05)
        return
    raise AssertionError(sitting.said[-2000:])


async def says(sitting: Sitting, words: str) -> None:
    """Type words, and once they stand there send them."""
    sitting.types("\x15")
    before = len(sitting.said)
    sitting.types(words)
    shown = words.split()[-1]
    await until(lambda: shown in sitting.said[before:], sitting)
    sitting.types("\r")


async def test_from_a_plan_to_a_new_topic(tmp_path: Path) -> None:
    agent, small = Agent(), Small()
    async with ModelServer(agent) as model:
        day = Day(tmp_path, model, SETTINGS.format(port=small.server_address[1]))

        def has(kind: str, text: str) -> bool:
            return any(one["kind"] == kind and text in one["text"] for one in day.history())

        sitting = day.sits("--permission-mode", "plan", "--", "plan the roof")
        try:
            await until(lambda: "manually" in sitting.said, sitting)
            with anyio.fail_after(LONGEST):
                while not has("plan", "Look at the tiles"):
                    sitting.types("2")  # where the first one leads to, a server is asked (facts/claude-code.md 46)
                    await anyio.sleep(1)
            await until(lambda: has("answer", "ACCEPTED"), sitting)
            await says(sitting, "do two units")
            await until(lambda: has("result", "did unit 1") and has("result", "did unit 2"), sitting)
            await says(sitting, "say all")
            await until(lambda: has("answer", "all that there is"), sitting)
            await says(sitting, "one more")
            await until(lambda: len(agent.begun) == 2 and has("answer", "heard 2"), sitting)
            prompt, told = agent.begun[1]
            assert prompt.startswith("Continue with what was under way")
            places = [told.find(part) for part in ("entries omitted", "say all", "not begun", "Explore")]
            assert places == sorted(places), places
            assert -1 not in places, places
            assert not any("unit 3" in ask.prompt for ask in model.asks), "it was denied"

            await says(sitting, "and the gutter")
            await until(lambda: sum(one["text"] == "heard 2" for one in day.history()) == 2, sitting)
            assert len(agent.begun) == 2, "no new topic"
            assert len(small.asked) == 3, (
                "of two units, all there is, one more, and the gutter all but the first after a start"
            )
            await says(sitting, "now the garden")
            await until(lambda: len(agent.begun) == 3 and has("answer", "heard 3"), sitting)
            assert agent.begun[2][0] == "now the garden"
            assert "gutter" not in agent.begun[2][1], "of what was said before there is a count"
            asked = len(model.asks)
            await says(sitting, "/clear-worker-history")
            await until(lambda: has("cleared", ""), sitting)
            assert len(model.asks) == asked
            await says(sitting, "/exit")
            assert await sitting.ended() == 0
        finally:
            sitting.close()
            small.shutdown()
            small.server_close()
