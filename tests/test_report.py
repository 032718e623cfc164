"""The morning report against the journal, line by line: each record that a line names exists, and says what it says."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.cli.reading import read_commands
from ashep.core.analysis.issue_status import account
from ashep.core.facts import issues, resources, runs
from ashep.core.facts.records import Entry
from ashep.errors import UsageError
from ashep.extras.simulation.memory.runner import Play, Prompted
from ashep.store.sqlite_reader import open_read_only
from ashep.views import report as views
from ashep.views.times import stamp
from tests.core.laws import folded
from tests.loop_world import World, policy, said, simulate
from tests.waiting import meanwhile

pytestmark = pytest.mark.slow  # a whole night is lived first

CONFIG = "version: 1\nbudgets: {day: {tokens: 1000}, runs_per_hour: 7}\n"
POLICY = policy(
    {"name": "review", "capabilities": ["review"], "timeout": "3h", "retry": {"max_attempts": 2}},
    {"name": "merge", "human": {"ask": "Merge this?", "approved": "close", "changes_requested": "review"}},
)
CLOSED, ASKED, FIRST, PARKED, BY_HAND, HANGS = (f"t-{number}" for number in range(1, 7))


class Night:
    """What a night left."""

    def __init__(self, state: Path, entries: list[Entry], now: datetime) -> None:
        self.state, self.entries, self.now = state, {entry.seq: entry for entry in entries}, now
        self.world = folded(entries)

    def told(self, since: datetime | None = None) -> Any:
        began = since or min(entry.at for entry in self.entries.values())
        with closing(open_read_only(self.state)) as database:
            return views.report(database, stamp(began), self.now)

    def of(self, kind: type, since: datetime | None = None) -> list[Any]:
        return [
            one.body for one in self.entries.values() if isinstance(one.body, kind) and (not since or one.at >= since)
        ]


def answers(world: World, asked: Prompted) -> Play:
    run = asked.key.split(":", 1)[1]
    if run.startswith(f"{HANGS}/"):
        return Play(fate="hangs")
    if run.startswith(f"{PARKED}/"):
        return Play(said("review", result="failed", verdict=None), delay=20.0, tokens=10, cost=0.25)
    return Play(said("plain"), delay=20.0, tokens=200, cost=0.5)


async def lives(world: World, hangs: Callable[[], None]) -> None:
    """Two daemons, the first of which dies, and an agent server that dies, too."""
    for number, priority in enumerate((2, 1, 0, 2, 2, 3), 1):
        world.tracker.add(f"issue {number}", priority=priority)
    async with meanwhile(partial(approve, world)):
        await world.live(lambda: known(world, FIRST) and world.world.flows[FIRST].stage == "work")
        await world.live(lambda: known(world, HANGS) and world.world.flows[HANGS].run is not None)
        hangs()
        goal = ((CLOSED, "closed"), (ASKED, "person"), (FIRST, "person"), (PARKED, "parked"), (BY_HAND, "closed"))
        await world.live(lambda: all(world.stands(name) == state for name, state in goal))
        late = world.tracker.add("a late one", priority=4)
        await world.live(lambda: known(world, late) and world.code(late) == "runs_per_hour")


def known(world: World, name: str) -> bool:
    return name in world.world.flows


async def approve(world: World) -> None:
    """A person approves one issue, and closes another one by hand."""
    while True:
        await anyio.sleep(30)
        if "needs:human_approval" in world.issues()[CLOSED].labels:
            world.tracker.person_sets(CLOSED, "pat", add_labels=("human:approved",))
        if world.issues()[BY_HAND].status == "blocked":
            world.tracker.person_sets(BY_HAND, "pat", status="closed")


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Live a night in which some of everything happens."""
    folder = tmp_path_factory.mktemp("night") / ".agent-shepherd"

    async def scenario() -> Night:
        world = World(folder, policies=POLICY, config=CONFIG)
        world.answer = answers
        await lives(world, world.runner.kill)
        entries = world.journal()
        world.draw()
        return Night(folder / "state", entries, world.clock.now())

    return simulate(scenario)


# --- line by line ---------------------------------------------------------------------------------------------------


def newest(night: Night, issue: str, kind: type) -> int:
    found = (seq for seq, one in night.entries.items() if isinstance(one.body, kind))
    return max(seq for seq in found if getattr(night.entries[seq].body, "issue", None) == issue)


@pytest.mark.promise("L8")
def test_every_line_rests_on_records_that_exist(night: Night) -> None:
    told = night.told()
    assert list(told["sections"]) == list(views.SECTIONS)
    lines = [line for section in told["sections"].values() for line in section]
    assert all(line["seqs"] and line["text"] for line in lines)
    assert all(seq in night.entries for line in lines for seq in line["seqs"])
    for line in lines:
        bodies = [night.entries[seq].body for seq in line["seqs"]]
        assert line["issue"] is None or all(getattr(body, "issue", line["issue"]) == line["issue"] for body in bodies)


@pytest.mark.promise("L8")
def test_what_is_closed_names_its_evidence(night: Night) -> None:
    lines = {line["issue"]: line for line in night.told()["sections"]["closed"]}
    assert set(lines) == {CLOSED, BY_HAND} == {name for name in night.world.flows if state(night, name) == "closed"}
    finished, closed = (night.entries[seq].body for seq in lines[CLOSED]["seqs"])
    assert isinstance(finished, issues.IssueFinished)
    assert isinstance(closed, issues.IssueClosed)
    assert closed.by == "shepherd"
    assert finished.why in lines[CLOSED]["text"]
    (closed,) = (night.entries[seq].body for seq in lines[BY_HAND]["seqs"])
    assert isinstance(closed, issues.IssueClosed)
    assert (closed.by, "closed by somebody" in lines[BY_HAND]["text"]) == ("somebody", True)


@pytest.mark.promise("L8")
def test_what_waits_for_people_comes_in_order_of_value(night: Night) -> None:
    lines = night.told()["sections"]["waiting"]
    assert [line["issue"] for line in lines][:2] == [FIRST, ASKED]
    assert {line["issue"] for line in lines} == {name for name in night.world.flows if state(night, name) == "person"}
    for line in lines:
        assert line["seqs"] == [newest(night, line["issue"], issues.PersonAsked)]
        asked = night.entries[line["seqs"][0]].body
        assert isinstance(asked, issues.PersonAsked)
        assert asked.question in line["text"]


@pytest.mark.promise("L8")
def test_what_is_parked_says_why(night: Night) -> None:
    (line,) = night.told()["sections"]["parked"]
    assert line["seqs"] == [newest(night, PARKED, issues.IssueParked)]
    parked = night.entries[line["seqs"][0]].body
    assert isinstance(parked, issues.IssueParked)
    assert f"{parked.code}: {' '.join(parked.why.split())}" in line["text"]


@pytest.mark.promise("L8")
def test_what_goes_on_says_what_for(night: Night) -> None:
    lines = {line["issue"]: line for line in night.told()["sections"]["going_on"]}
    assert set(lines) == {name for name in night.world.flows if state(night, name) in ("running", "time")}
    late = next(name for name, flow in night.world.flows.items() if flow.issue.title == "a late one")
    assert {name: state(night, name) for name in lines} == {HANGS: "running", late: "time"}
    for name, line in lines.items():
        stands = account(night.world, name)
        assert " ".join(stands.reason.split()) in line["text"]
        body: Any = night.entries[line["seqs"][-1]].body
        assert body.issue == name
        code = getattr(body, "code", None)
        assert stands.state == "running" or code == stands.code or isinstance(body, issues.PhaseEntered), line


@pytest.mark.promise("L8")
def test_the_cost_is_that_of_the_reads_that_are_named(night: Night) -> None:
    lines = night.told()["sections"]["cost"]
    most: dict[tuple[str, int], tuple[int, float]] = {}
    for fact in night.of(runs.TurnSeen):
        tokens, cost = most.get((fact.run, fact.n), (0, 0.0))
        most[fact.run, fact.n] = max(tokens, fact.tokens), max(cost, fact.cost)
    assert sum(line["tokens"] for line in lines) == sum(tokens for tokens, _ in most.values()) > 0
    assert sum(line["cost"] for line in lines) == pytest.approx(sum(cost for _, cost in most.values()))
    for line in lines:
        named: list[Any] = [night.entries[seq].body for seq in line["seqs"]]
        assert sum(fact.tokens for fact in named) == line["tokens"]
        assert f"{line['tokens']} tokens" in line["text"]


@pytest.mark.promise("L8")
def test_the_report_says_how_far_the_base_is_behind_and_what_kept_every_issue() -> None:
    words = "main is 14 commits behind origin/main, and 1 ahead of it (as of 2026-01-01 22:00)"
    bodies = [{"behind": "main is 2 commits behind origin/main"}, {"fault": "no room"}, {"behind": words}]
    rows = [{"type": "RepositorySeen", "seq": n, "at": "", "body": body} for n, body in enumerate(bodies, 1)]
    with closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        database.execute("CREATE TABLE facts (seq, at, type, issue, run, body)")
        told = [(line["text"], line["seqs"]) for line in views._servers(database, rows)]
    assert told == [("nothing began: no room", [2]), (words, [3])], "only how it is by now"


def test_limits_servers_and_daemons_are_told_each_once(night: Night) -> None:
    sections = night.told()["sections"]
    limits = [night.entries[seq].body for line in sections["limits"] for seq in line["seqs"]]
    assert limits == [
        one.body
        for one in night.entries.values()
        if isinstance(one.body, (resources.BudgetWarned, resources.BudgetReached))
    ]
    assert limits
    assert all(night.entries[line["seqs"][0]].body.why in line["text"] for line in sections["limits"])  # type: ignore[union-attr]
    bodies: list[Any] = [night.entries[seq].body for line in sections["servers"] for seq in line["seqs"]]
    starts = [line for line in sections["servers"] if " began as process " in line["text"]]
    assert len(starts) == len(night.of(resources.DaemonStarted)) == 4
    assert sum("ended without a word" in line["text"] for line in starts) == 3 - len(night.of(resources.DaemonStopped))
    died = [body for body in bodies if isinstance(body, (resources.RunnerSeen, runs.TurnDied))]
    assert died, "the server died in the night"
    assert [body for body in bodies if isinstance(body, runs.TurnDied)] == night.of(runs.TurnDied)


def test_a_later_beginning_leaves_out_what_was_before(night: Night) -> None:
    last = max(one.at for one in night.entries.values() if isinstance(one.body, issues.IssueClosed))
    sections = night.told(last)["sections"]
    assert len(sections["closed"]) == 1
    assert sections["waiting"], "how it stands is told whenever it came about"
    late = night.told(night.now + timedelta(seconds=1))["sections"]
    assert (late["closed"], late["limits"], late["servers"]) == ([], [], [])
    with closing(open_read_only(night.state)) as database:
        began = max(one.at for one in night.entries.values() if isinstance(one.body, resources.DaemonStarted))
        assert views.default_since(database, night.now) == stamp(began)
        evening = datetime.fromisoformat(views.default_since(database, night.now + timedelta(days=9))).astimezone()
    assert (evening.hour, evening.date()) == (18, (night.now + timedelta(days=8)).astimezone().date())


def test_the_command_prints_text_markdown_or_json(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    project = night.state.parent.parent
    assert read_commands.report(project, since="2000-01-01", as_json=True) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert {key for lines in sections.values() for line in lines for key in line} == {
        "text", "issue", "at", "seqs", "summary", "provider", "runs", "tokens", "cost",
    }  # fmt: skip
    assert read_commands.report(project, since="2000-01-01") == 0
    text = capsys.readouterr().out
    assert "Closed (2)\n" in text
    assert all(line["text"] in text for lines in sections.values() for line in lines)
    assert read_commands.report(project, since="2000-01-01", as_markdown=True) == 0
    marked = capsys.readouterr().out
    assert "\n## Waits for you (" in marked
    assert marked.count("\n- ") == sum(len(lines) for lines in sections.values())
    with pytest.raises(UsageError):
        read_commands.report(project, as_json=True, as_markdown=True)


def test_foreign_text_cannot_act_in_markdown_and_nothing_is_told_of_nothing(night: Night) -> None:
    told: Any = views.report(None, stamp(night.now), night.now)
    assert [text for text, kind in views.lines(told) if kind == "nothing"] == ["nothing"] * len(views.SECTIONS)
    told["sections"]["closed"] = [{"text": "[x](http://evil) <b>", "seqs": [1], "summary": "`done`"}]
    marked = list(views.markdown(told))
    place = marked.index("- \\[x\\](http://evil) \\<b\\> \\[\\#1\\]")
    assert marked[place + 1] == "  - Its agent says: \\`done\\`"


def test_what_agents_say_stands_below_its_line(
    night: Night, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Any = views.report(None, stamp(night.now), night.now)
    told["sections"]["closed"] = [{"text": "t-1: closed", "seqs": [1], "summary": "It adds.\x1b[31m"}]
    monkeypatch.setattr(views, "report", lambda *_: told)
    assert read_commands.report(night.state.parent.parent, since="2000-01-01") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[shown.index("  t-1: closed [#1]") + 1] == "    Its agent says: It adds.[31m"


def state(night: Night, name: str) -> str:
    return account(night.world, name).state
