"""What each answer leads to is told before it is given, and an answer over HTTP is written to the real bd once."""

import json
import os
import re
from pathlib import Path

import pytest
from anyio import to_thread
from typer.testing import CliRunner

from ashep.api.routes import V1
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.core.analysis.answer_preview import AnswerEffect, answer_effects
from ashep.core.facts import issues
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.settings import Labels
from ashep.ports.tracker import ClaimRequest, Update
from ashep.store.issue_row import issue_row
from tests.conformance.trackers import Beads, BeadsWorld
from tests.core.playbook import Playbook
from tests.core.world_of import MadeUp
from tests.recorded import life
from tests.service.test_page_api import OURS, question, told
from tests.service.worlds import World, repository

pytestmark = pytest.mark.anyio
LABELS = Labels()
PHASES = "SELECT json_extract(body, '$.phase') AS phase FROM facts WHERE type = ?"


def until(made: MadeUp, state: str) -> None:
    """Live until the issue is in this state."""
    for _ in range(400):
        made.tick()
        if "t-1" in made.world.flows and issue_row(made.world, "t-1")["state"] == state and not made.jobs:
            return
    raise AssertionError(state)


def begun() -> MadeUp:
    made = MadeUp().begin()
    made.open("t-1")
    return made


@pytest.mark.parametrize("answer", ["approved", "changes_requested"])
def test_an_answer_leads_where_it_was_said_to(answer: str) -> None:
    made = begun()
    until(made, "person")
    flow = made.world.flows["t-1"]
    way = next(one for one in answer_effects(made.world, flow) if one.answer == answer)
    since = len(made.entries)
    made.change("t-1", "ann", add=[f"human:{answer}"])
    decided = (issues.PhaseEntered, issues.IssueFinished, issues.PersonAsked, issues.IssueParked)
    led = list[object]()
    while not led:
        made.tick()
        led = [entry.body for entry in made.entries[since:] if isinstance(entry.body, decided)]
    first = led[0]
    if isinstance(first, issues.PhaseEntered):
        times, most = made.world.flows["t-1"].cycle_times(first.phase), way.most
        assert way == AnswerEffect("changes_requested", "phase", first.phase, first.visit, times, most, afresh=True)
        policy = made.world.policy(flow)
        assert policy is not None
        assert most == next(phase.max_visits for phase in policy.phases if phase.name == first.phase)
    else:
        assert isinstance(first, issues.IssueFinished)
        assert way == AnswerEffect("approved", "close", "close", onto=first.onto or None)


@pytest.mark.promise("Q4")
def test_where_every_answer_leads_back_there_is_one_answer() -> None:
    book = Playbook().until("review")
    (book >> book.reports(needs_human=True, verdict="approve")).answered()
    asked, made = json.loads(issue_row(book.world, "t-1")["body"])["question"], book.made
    assert (asked["kind"], asked["about"]) == ("input", "phase")
    assert [(one["answer"], one["kind"]) for one in asked["follows"]] == [("answered", "phase"), ("deadline", "park")]
    assert "`ashep answer t-1" in made.comments["t-1"][-1].text


def test_a_run_that_asks_offers_what_its_agent_does() -> None:
    made = begun()
    until(made, "running")
    while not any(turns for turns in made.sessions.values()):
        made.tick()
    made.ask(next(name for name, turns in made.sessions.items() if turns), "question")
    until(made, "person")
    asked = json.loads(issue_row(made.world, "t-1")["body"])["question"]
    assert (asked["kind"], asked["about"], asked["options"]) == ("input", "question", ["red", "green"])
    assert [(one["answer"], one["kind"], one["target"]) for one in asked["follows"]] == [
        ("answered", "run", asked["phase"]),
        ("deadline", "run", asked["phase"]),
    ]


@pytest.fixture
def lived(tmp_path: Path) -> World:
    """A few issues that went on for a while."""
    project = repository(tmp_path / "project")
    write_starter(project / ".agent-shepherd")
    life(project / ".agent-shepherd" / "state", issues=4, steps=400)
    return World(project)


async def test_a_policy_says_how_often_each_edge_was_taken(lived: World) -> None:
    async with lived.client() as client:
        drawn, listed = await told(client, "/policies/standard"), (await told(client, "/issues"))["items"]
        assert await told(client, "/policies/standard") == drawn  # nothing is counted twice
    entered, taken = await lived.live.pictures.read(
        lambda seen: [
            [row["phase"] for row in seen.database.execute(PHASES, [kind])]  # pyright: ignore[reportOptionalMemberAccess]
            for kind in ("PhaseEntered", "IssueTaken")
        ]
    )
    for place, phase in enumerate(drawn["phases"]):
        into = sum(one["taken"] for one in drawn["edges"] if one["target"] == phase["name"])
        if phase["kind"] == "agent":
            assert into + (0 if place else len(taken)) == entered.count(phase["name"]), phase["name"]
        if phase["kind"] != "end":
            rests = ("parked", "closed", "not_eligible")
            there = [one["state"] for one in listed if one["phase"] == phase["name"] and one["state"] not in rests]
            assert phase["states"] == {state: there.count(state) for state in there}
    assert len(entered) > 2 * len(taken) > 0


# --- the real bd --------------------------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.may_block
async def test_an_answer_is_one_comment_and_one_label_in_bd(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(beads.home))
    bd = BeadsWorld(beads, tmp_path / "project")
    project = bd.project
    write_starter(project / ".agent-shepherd")
    life(project / ".agent-shepherd" / "state", issues=1, until="person")
    issue, ours = bd.add("Work", id="t-1"), bd.another(OURS)
    stamp = Stamp("0f" * 8, 7, "t-1/review.1.1", 1, 1, 1)
    await ours.claim(ClaimRequest(issue, stamp))
    asks = (LABELS.needs_approval,)
    await ours.update(Update(issue, "in_progress", OURS, stamp, "blocked", OURS, add_labels=asks))
    world = World(project)
    world.acts.tracker_of = lambda *given: bd.another(given[-1])
    monkeypatch.setenv("PATH", f"{beads.program.parent}:{os.environ['PATH']}")
    async with world.client(world.sessions.enter(world.sessions.code("Pat"))[0]) as client:
        seen = await question(client, issue)
        for do, words in (("reject", "the tests are missing"), ("approve", "now it is fine")):
            stands = (await told(client, "/answers"))["items"]
            instead = stands[0]["id"] if stands else None
            given = {"do": do, "message": words, "asked": seen, "instead": instead}
            assert (
                instead is None
                or (await client.post(f"{V1}/issues/{issue}", json=given | {"instead": None})).status_code == 409
            )
            first, again = [await client.post(f"{V1}/issues/{issue}", json=given) for _ in range(2)]
            assert (first.status_code, again.status_code) == (200, 409), (first.text, again.text)
    status = await to_thread.run_sync(CliRunner().invoke, app, ["-C", str(project), "status"])
    assert re.search(r"approved by Pat at .*, counts when the daemon runs", status.stdout), status.output
    (shown,) = json.loads(bd.bd("person", "show", issue, "--json", "--include-comments"))
    said = [(one["author"], one["text"].split("\n")[0]) for one in shown["comments"]]
    assert "In place of what was answered before: Pat asked for changes at" in shown["comments"][-1]["text"]
    assert said == [("Pat", "the tests are missing"), ("Pat", "now it is fine")]
    assert {LABELS.approved, LABELS.changes_requested} & set(shown["labels"]) == {LABELS.approved}
    await bd.tracker.aclose()
    await ours.aclose()
