"""`ashep usage`: what runs used, each turn counted once, by whatever it is told apart."""

import contextlib
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ashep.cli.reading import read_commands
from ashep.core.facts.runs import RunEnded, TurnSeen
from ashep.core.state.run import used
from ashep.errors import UsageError
from ashep.extras.simulation.memory.runner import Play, Prompted
from ashep.store.sqlite_reader import open_read_only
from ashep.views import usage as views
from ashep.views.times import moment, stamp
from tests.loop_world import World, policy, said, simulate

pytestmark = pytest.mark.slow  # a whole life is lived first

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Give a world in which two issues went through phases that go on in one session; the second one's run repeats."""
    folder = tmp_path_factory.mktemp("lived") / ".agent-shepherd"
    text = policy(
        {"name": "implement", "capabilities": ["implement"], "access": "write", "session": "reuse"},
        {"name": "polish", "capabilities": ["implement"], "access": "write", "session": {"reuse_from": "implement"}},
    )

    def answer(world: World, asked: Prompted) -> Play:
        again = asked.key.endswith("t-2/implement.1.1") and not world.told["repeated"]
        world.told["repeated"] += again
        return Play(
            said("implement", **({"result": "partial", "next_action": "repeat_phase"} if again else {})),
            delay=20.0,
            tokens=100,
            cost=0.001,
        )

    async def scenario() -> World:
        world = World(folder, policies=text, issues=1)
        world.tracker.add("second")
        world.answer = answer
        await world.finish()
        world.draw()
        return world

    return simulate(scenario)


def told(world: World, by: str, since: str | None = None) -> Any:
    with contextlib.closing(open_read_only(world.folder / "state")) as database:
        return views.usage(database, by, since)


@pytest.mark.promise("L7")
def test_a_session_that_is_used_again_is_counted_once(lived: World) -> None:
    """Five runs in two sessions, each with one prompt of 100 tokens: 500, and not what each session held by then."""
    sessions = lived.runner.sessions.values()
    prompts = [sum(message.who == "ashep" for message in session.messages) for session in sessions]
    assert sorted(prompts) == [2, 3]
    seen = told(lived, "provider")
    assert seen["total"] == {"runs": 5, "tokens": 500, "cost": 0.005}
    assert [row["name"] for row in seen["rows"]] == [lived.runner.models[0].provider]


@pytest.mark.promise("L7")
@pytest.mark.parametrize("by", views.KINDS)
def test_rows_add_up_to_the_total(lived: World, by: str) -> None:
    seen = told(lived, by)
    assert (seen["by"], seen["since"]) == (by, None)
    for key in ("runs", "tokens", "cost"):
        assert round(sum(row[key] for row in seen["rows"]), 9) == seen["total"][key]
    assert seen["total"]["tokens"] == 500


def test_runs_are_told_apart(lived: World) -> None:
    assert {row["name"]: (row["runs"], row["tokens"]) for row in told(lived, "issue")["rows"]} == {
        "t-1": (2, 200), "t-2": (3, 300),
    }  # fmt: skip
    assert {row["name"]: row["runs"] for row in told(lived, "phase")["rows"]} == {"implement": 3, "polish": 2}
    assert [row["name"] for row in told(lived, "issue")["rows"]] == ["t-2", "t-1"], "the most expensive first"
    days = Counter(entry.at.date().isoformat() for entry in lived.entries if isinstance(entry.body, RunEnded))
    assert {row["name"]: row["runs"] for row in told(lived, "day")["rows"]} == days


def test_only_what_ended_since_is_told(lived: World) -> None:
    ends = [entry.at for entry in lived.entries if isinstance(entry.body, RunEnded)]
    assert told(lived, "phase", stamp(ends[3]))["total"]["runs"] == 2
    assert told(lived, "phase", stamp(ends[-1] + timedelta(seconds=1)))["rows"] == []
    assert views.usage(None, "phase", None)["total"]["tokens"] == 0


@pytest.mark.promise("L7")
def test_what_a_turn_used_stays_used_and_is_counted_once() -> None:
    def seen(n: int, tokens: int, cost: float) -> TurnSeen:
        return TurnSeen("t-1", "t-1/a.1.1", n, "m", 1, "running", "i", tokens=tokens, cost=cost)

    turns = used(used(used((), seen(1, 10, 0.1)), seen(1, 30, 0.3)), seen(2, 5, 0.0))
    assert turns == ((1, 30, 0.3), (2, 5, 0.0))
    assert used(turns, seen(1, 0, 0.0)) == ((2, 5, 0.0), (1, 30, 0.3)), "a read that misses it takes nothing back"


def test_the_command_prints_a_table_with_a_total_or_json(lived: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_commands.usage(lived.folder.parent, by="issue") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["ISSUE", "RUNS", "TOKENS", "COST"],
        ["t-2", "3", "300", "<$0.01"],
        ["t-1", "2", "200", "<$0.01"],
        ["total", "5", "500", "<$0.01"],
    ]
    assert read_commands.usage(lived.folder.parent, by="agent", since="2999-01-01", as_json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["by"], printed["rows"], printed["total"]["runs"]) == ("agent", [], 0)
    assert printed["since"].startswith(("2998-12-31T", "2999-01-01T"))
    for by, since in (("colour", None), ("day", "soon"), ("day", "25:00")):
        with pytest.raises(UsageError):
            read_commands.usage(lived.folder.parent, by=by, since=since)


@pytest.mark.parametrize(("text", "then"), [
    ("2h", NOW - timedelta(hours=2)),
    ("90m", NOW - timedelta(minutes=90)),
    ("7d", NOW - timedelta(days=7)),
    ("2026-05-03T18:00:00Z", NOW - timedelta(hours=18)),
])  # fmt: skip
def test_times_since(text: str, then: datetime) -> None:
    assert moment(text, NOW) == then


def test_a_time_of_day_is_the_last_one_here() -> None:
    here = NOW.astimezone()
    before, after = here - timedelta(minutes=1), here + timedelta(minutes=1)
    assert moment(f"{before:%H:%M}", NOW) == before
    assert moment(f"{after:%H:%M}", NOW) == after - timedelta(days=1)
    assert moment("2026-05-03", NOW).astimezone().strftime("%Y-%m-%d %H:%M") == "2026-05-03 00:00"
    for wrong in ("", "h", "12", "12:60", "tomorrow", "-2h"):
        with pytest.raises(ValueError, match=r"."):
            moment(wrong, NOW)
