"""A sitting starts Claude Code, keeps what its hooks tell, begins it anew, and leaves nothing behind."""

import re
import signal
from pathlib import Path

import pytest

from ashep.extras.demo.protocols import text_of
from ashep.extras.demo.scripted_model import ModelRequest, ModelServer, Reply
from ashep.extras.foreman.claude_process import VARIABLE
from ashep.extras.foreman.session import RESTARTS
from tests.foreman.sittings import ROOT, Day, unit

pytestmark = [pytest.mark.slow, pytest.mark.may_block]

SETTINGS = "restart: {bytes: 1000}\n"  # a prompt alone is longer


def script(ask: ModelRequest) -> Reply:
    """One that asks a subagent three times, however it is answered."""
    works = ask.prompt.startswith("unit") or ask.kind == "helper" or len(ask.results) == 3
    return Reply("done") if works else Reply(calls=(unit(1),))


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path).plays("echo begun; exec sleep 1000")


@pytest.mark.real
async def test_one_that_answers_once_is_never_begun_anew(tmp_path: Path) -> None:
    async with ModelServer(script) as model:
        day = Day(tmp_path, model, SETTINGS)
        with day.sits("-p", "build it") as sitting:
            assert await sitting.ended() == 0
            assert sitting.said.startswith("done\r\n")
            assert not re.search(r"ashep|anew|uvicorn|INFO", sitting.said), "nothing of ours, or of a library's"
    assert day.has("prompt", "build it")
    assert day.has("answer", "done")


@pytest.mark.real
async def test_one_that_is_begun_anew_again_and_again_is_left_running_and_the_person_is_told(tmp_path: Path) -> None:
    async with ModelServer(script) as model:
        day = Day(tmp_path, model, SETTINGS)
        (day.work / "own.md").write_text("mind the gap")
        with day.sits("--append-system-prompt-file", "own.md", "build it") as sitting:
            await sitting.until(lambda: sum(one["kind"] == "result" for one in day.history()) > RESTARTS)
            await sitting.until(lambda: day.history()[-1]["kind"] == "answer")  # an exit typed in a turn may wait
            await sitting.tells("/exit")
            assert await sitting.ended("\r") == 0  # a key that comes while it draws may be lost
            assert sitting.said.count("begun anew") >= RESTARTS
            assert re.search(r"is left as it is now\s+ended", sitting.said), "told last"
        turns = [ask for ask in model.asks if ask.kind == "turn" and ask.prompt != "unit 1"]
        assert len({ask.session for ask in turns}) == RESTARTS + 1
        for ask in turns[1:]:
            system = " ".join(text_of(one.get("content")) for one in ask.messages if one["role"] == "system")
            assert system.index("build it") < system.index("How you work") < system.index("mind the gap")
    assert not [*day.marked(), *day.state.glob("now")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_wrapper_told_to_end_ends_its_child_and_a_second_one_is_told(day: Day, number: signal.Signals) -> None:
    left = ("env", f"{VARIABLE}={day.state}", "sleep", "1000")
    with day.sits(argv=left) as dead, day.sits() as sitting:
        await sitting.says("begun")
        assert dead.code() == 143, "an earlier one left it"
        with day.sits() as second:
            assert await second.ended() == 3
            assert f"process {sitting.pid}" in second.said
            assert "begun" not in second.said
        sitting.kill(sitting.pid, number=number)
        assert await sitting.ended() == 143
    assert not [*day.marked(), *day.state.glob("now")]


async def test_what_begins_no_session_here_is_claudes_own(day: Day) -> None:
    with day.plays('echo "$@"; exit 3').sits("mcp", "add", "--help") as sitting:
        assert await sitting.ended() == 3
        assert sitting.said.startswith("mcp add --help\r\n")
    assert not day.state.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--append-system-prompt-file nothing.md", "nothing.md"),
        ("--clear --history", "at a time"),
        ("--worker a/b", "a/b"),
        ("--history --model opus", "--model"),
    ],
)
async def test_words_that_cannot_be_meant_are_told_of_and_nothing_begins(day: Day, words: str, said: str) -> None:
    with day.sits(*words.split()) as sitting:
        assert await sitting.ended() == 2
        assert said in sitting.said
        assert not re.search("Traceback|begun", sitting.said)


async def test_a_session_goes_on_where_nobody_can_hear_it(day: Day) -> None:
    """What is installed is broken: hooks are refused at once, and the person is told in the end."""
    (day.home / "uvicorn.py").write_text("raise RuntimeError('it is broken')")
    url = f"$(grep -o 'http://[^\"]*/hook/stop' {day.state}/now/plugin/hooks/hooks.json)"
    day.plays(f"until curl -d {{}} {url}; [ $? = 7 ]; do sleep 0.1; done; exit 4")
    with day.sits(PYTHONPATH=f"{ROOT}:{day.home}") as sitting:
        assert await sitting.ended() == 4, "connections are refused"
        assert "RuntimeError: it is broken\r\nended" in sitting.said
