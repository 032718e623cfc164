"""The real Claude Code with the scripted model: what a script plays on OpenCode it plays on this, too."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ashep.adapters.system import programs
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, claude_environment
from ashep.extras.testing.worlds import name, opened, prompt, settled
from tests.conformance.runners import RealWorld, real_place, real_world

__all__ = ["real_place", "real_world"]

pytestmark = pytest.mark.real

HEADLESS = ("-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose")


class Claude:
    """One home and one folder for Claude Code, and a scripted model."""

    def __init__(self, folder: Path) -> None:
        program = programs.find("claude")
        assert program is not None, "make claude installs it"
        self.argv = (program, *HEADLESS, "--allowedTools", "Bash", "Edit", "Write")
        self.home, self.directory, self.model = folder / "home", folder / "work", ModelServer()
        self.home.mkdir()
        self.directory.mkdir()
        self.session = str(uuid4())

    async def says(self, text: str) -> tuple[int, list[dict[str, Any]]]:
        """Give it one prompt; its exit code, and what it tells until it ends."""
        others = ("ANTHROPIC", "CLAUDE", "XDG_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        message = {"type": "user", "message": {"role": "user", "content": text}}
        async with self.model:
            environ = kept | claude_environment(self.model.url, self.home)
            argv, stdin = [*self.argv, "--session-id", self.session], f"{json.dumps(message)}\n".encode()
            done = await programs.run(argv, cwd=self.directory, env=environ, timeout=240, stdin=stdin)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    return Claude(tmp_path)


async def test_a_turn_is_one_question_that_holds_our_prompt_and_nothing_besides(claude: Claude) -> None:
    claude.model.script = lambda _: Reply("THE ANSWER", drip=0.05, tokens=(1_000, 10))
    returncode, told = await claude.says("Do it.\n\nThank you.")
    (ask,) = claude.model.asks
    assert (ask.kind, ask.prompt, ask.session, ask.results) == ("turn", "Do it.\n\nThank you.", claude.session, ())
    assert {"bash", "edit", "read", "write", "task"} <= set(ask.tools)
    (result,) = [event for event in told if event["type"] == "result"]
    assert (returncode, result["is_error"], result["result"]) == (0, False, "THE ANSWER")
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (1_000, 10)


PLAYED = (
    Call("write", {"filePath": "made.txt", "content": "one\n"}),
    Call("edit", {"filePath": "made.txt", "oldString": "one", "newString": "two"}),
    Call("bash", {"command": "cat made.txt", "description": "Look at it"}),
)


def play(ask: ModelRequest) -> Reply:
    """Use one tool after the other, and repeat what the last one answered."""
    return Reply(calls=(PLAYED[len(ask.results)],)) if len(ask.results) < len(PLAYED) else Reply(ask.results[-1])


async def test_one_script_plays_on_either(real_world: RealWorld, claude: Claude) -> None:
    usual, real_world.model.script = real_world.model.script, play
    try:
        session, word = await opened(real_world), name()
        sent = prompt(session, word)
        await real_world.runner.send(sent)
        turn = await settled(real_world, session, sent.message_id)
    finally:
        real_world.model.script = usual
    claude.model.script = play
    _, told = await claude.says(word)
    asks = [ask for ask in real_world.model.asks if word in ask.prompt and ask.kind != "helper"]
    assert [ask.kind for ask in claude.model.asks] == [ask.kind for ask in asks] == ["turn", "step", "step", "step"]
    assert turn.text.strip() == told[-1]["result"].strip() == "two"
    assert (claude.directory / "made.txt").read_text() == (real_world.directory / "made.txt").read_text() == "two\n"


@pytest.mark.parametrize("reply", [Reply("busy", status=529), Reply("half of it", drop=True)])
async def test_what_went_wrong_at_the_model_is_asked_again(claude: Claude, reply: Reply) -> None:
    claude.model.script = lambda ask: Reply("END") if ask.repeated else reply
    returncode, told = await claude.says("Do it.")
    assert [ask.repeated for ask in claude.model.asks] == [False, True]
    assert claude.model.prompts_seen("Do it.") == 1
    retries = [event["error_status"] for event in told if event.get("subtype") == "api_retry"]
    assert (returncode, told[-1]["result"], retries) == (0, "END", [529] if reply.status == 529 else [None])


async def test_a_conversation_that_is_too_long_ends_the_turn(claude: Claude) -> None:
    claude.model.script = lambda _: Reply("prompt is too long: 200001 tokens > 200000 maximum", status=400)
    returncode, told = await claude.says("Do it.")
    (result,) = [event for event in told if event["type"] == "result"]
    assert (returncode, result["is_error"], result["terminal_reason"]) == (1, True, "prompt_too_long")
    assert len(claude.model.asks) == 1
