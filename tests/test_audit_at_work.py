"""The audit at work: by the daemon itself, in virtual time, and by `ashep audit` on a state folder."""

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from ashep.actions import audit as shell
from ashep.actions.audit import AuditResult, examine, is_unverified
from ashep.cli.commands import app
from ashep.core.analysis.audit import RecordedAnswer, of_answers
from ashep.core.facts.delivery import CheckResult
from ashep.core.facts.resources import AccountAudited, ServerEnded, TimerDue
from ashep.core.facts.tracker import Issue, Stamp
from ashep.core.state.delivery import Evidence, OwnTree
from ashep.core.state.flow import Flow
from ashep.errors import NotChecked, RunnerUnavailable, TrackerUnavailable
from ashep.store.sqlite_reader import NAME, open_read_only
from ashep.views import status
from tests.core.given import T0
from tests.loop_world import ACTOR, World, minutes, simulate

pytestmark = pytest.mark.virtual

LOST = Stamp("another-state-folder", 7, "t-1/implement.1.1")


def claim(world: World) -> str:
    """Somebody under our name has taken an issue, and nobody works on it."""
    name = world.tracker.add("orphan")
    world.tracker.person_sets(name, "pat", status="in_progress", assignee=ACTOR)
    return marked(world, name, LOST)


def later(world: World) -> str:
    """An issue bears a mark of ours that the journal cannot have made."""
    name = world.tracker.add("from the future", labels=("ashep:excluded",))
    return marked(world, name, Stamp(world.world.instance, 10**6))


def marked(world: World, name: str, stamp: Stamp) -> str:
    record = world.tracker._database.records[name]  # pyright: ignore[reportPrivateUsage] - no call writes another's mark
    record.issue = replace(record.issue, stamp=stamp)
    return name


# --- by the daemon ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def idle(world: World) -> AsyncGenerator[Any]:
    async with world.living() as running:
        await anyio.sleep(minutes(2))
        yield running


@pytest.mark.slow
@pytest.mark.promise("A3")
async def test_an_idle_day_without_findings_appends_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.tracker.add("not ready", labels=("ashep:excluded",))
    async with idle(world):
        before = len(world.journal())
        await anyio.sleep(minutes(60 * 24))
        assert [
            type(entry.body)
            for entry in world.journal()[before:]
            if not isinstance(entry.body, (TimerDue, ServerEnded))  # an idle server is ended, once
        ] == []
    world.check()


@pytest.mark.promise("A3")
async def test_a_finding_is_a_fact_once_and_gone_when_it_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with idle(world) as running:
        assert world.bodies(AccountAudited) == []
        name = later(world)
        await anyio.sleep(minutes(130))
        (fact,) = world.bodies(AccountAudited)
        assert [(one.code, one.issue) for one in fact.findings] == [("journal_behind", name)]
        assert world.world.findings == fact.findings
        await running.auditor.last()
        await anyio.sleep(1)
        assert len(world.bodies(AccountAudited)) == 1, "at the end what the tracker showed still stands"
        world.tracker.person_sets(name, "pat", status="closed")
        await anyio.sleep(minutes(70))
        assert [fact.findings for fact in world.bodies(AccountAudited)][1:] == [()]
    async with idle(world):
        pass
    assert len(world.bodies(AccountAudited)) == 2


async def test_the_first_look_of_a_start_is_audited(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with idle(world):
        pass
    name = later(world)
    async with idle(world):
        assert [one.issue for one in world.world.findings] == [name]


@pytest.mark.promise("A3")
def test_status_tells_of_findings(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        async with idle(world):
            pass
        later(world)
        async with idle(world):
            pass
        world.draw()

    simulate(scenario)
    with closing(open_read_only(tmp_path / "state")) as database:
        told = status.status(database, {"running": False})
    assert told["daemon"]["findings"] == 1
    assert status.counts(told).endswith("; the last audit has 1 finding (`ashep audit`)")


# --- by the command -----------------------------------------------------------------------------------------------


class Away:
    """A tracker or a server that does not answer."""

    async def look(self) -> Any:
        raise TrackerUnavailable("no answer")

    async def has_session(self, session: str) -> bool:
        raise RunnerUnavailable(f"no answer about {session}")


def lived(folder: Path) -> World:
    """A life that ends in the middle of things: one issue asks, one is at work."""

    async def scenario() -> World:
        world = World(folder, issues=2)
        world.delay = 300
        async with world.living():
            while "person" not in [flow.stage for flow in world.world.flows.values()]:
                await anyio.sleep(5)
            while not any((run := flow.run) and run.prompt.sent for flow in world.world.flows.values()):
                await anyio.sleep(5)
        ended = world.clock.now()
        world.tracker._database.now = lambda: ended  # pyright: ignore[reportPrivateUsage] - its loop is over
        world.draw()
        return world

    return simulate(scenario)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return lived(tmp_path_factory.mktemp("audited") / ".agent-shepherd")


def examined(world: World, tracker: Any = None, server: Any = None) -> AuditResult:
    async def main() -> AuditResult:
        parts = tracker or world.tracker, (server or world.runner).has_session, world.clock
        return await examine(world.folder.parent, world.folder / "state", *parts)

    return anyio.run(main)


@pytest.mark.promise("A2")
def test_nothing_is_left_over_in_the_middle_of_things(world: World) -> None:
    account = examined(world)
    assert account == AuditResult([], 2, "", "")


def test_what_cannot_be_asked_is_said(world: World) -> None:
    account = examined(world, Away(), Away())
    assert (account.findings, account.no_tracker) == ([], "no answer")
    assert "no answer about" in account.no_server


def test_a_session_that_is_gone_is_found(world: World) -> None:
    class Empty:
        async def has_session(self, session: str) -> bool:
            return False

    assert [one.code for one in examined(world, server=Empty()).findings] == ["session_gone"]


@pytest.mark.promise("A1")
@pytest.mark.may_block
async def test_an_answer_that_the_trackers_history_does_not_have_is_found(tmp_path: Path) -> None:
    """Whoever writes the whole journal anew can have anybody answer; `verify` and `replay` find nothing."""
    world = World(tmp_path)
    issue = world.tracker.add("answered")
    world.tracker.person_sets(issue, "pat", add_labels=("human:approved",))
    changes = await world.tracker.changes(issue)
    assert not [*of_answers(issue, [RecordedAnswer(7, "pat", "human:approved")], changes)]
    for forged in (RecordedAnswer(7, "bob", "human:approved"), RecordedAnswer(7, "pat", "human:changes_requested")):
        assert [one.code for one in of_answers(issue, [forged], changes)] == ["answer_unknown"]


@pytest.mark.promise("A1")
def test_a_database_that_says_otherwise_is_found(world: World) -> None:
    with closing(sqlite3.connect(world.folder / "state" / NAME)) as database:
        (kept,) = database.execute("SELECT reason FROM issues WHERE issue = 't-1'").fetchone()
        database.execute("UPDATE issues SET reason = 'it is fine' WHERE issue = 't-1'")
        database.commit()
        try:
            (found,) = examined(world).findings
        finally:
            database.execute("UPDATE issues SET reason = ? WHERE issue = 't-1'", [kept])
            database.commit()
    assert (found.code, found.issue) == ("picture", "t-1")
    assert "another reason" in found.what
    assert examined(world).findings == []


def test_a_claim_that_nobody_knows_is_found(world: World) -> None:
    name = claim(world)
    try:
        assert [(one.code, one.issue) for one in examined(world).findings] == [("claim_without_owner", name)]
    finally:
        world.tracker.person_deletes(name, "pat")


@pytest.fixture
def told(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give `ashep audit`, with the tracker and the server of memory."""
    asked: dict[str, Any] = {"tracker": world.tracker, "server": world.runner}

    def audit(*_: Any) -> AuditResult:
        return examined(world, asked["tracker"], asked["server"])

    monkeypatch.setattr(shell, "audit", audit)

    def command(*words: str, **other: Any) -> Any:
        asked.update(other)
        return CliRunner().invoke(app, ["-C", str(world.folder.parent), "audit", *words])

    return command


@pytest.mark.promise("A1")
def test_what_was_closed_unverified_is_named_and_no_finding(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Flow(Issue("t-1", "It", "closed", "task", 2, T0), stage="closed", code="shepherd")
    own, passed = OwnTree("ashep/t-1", 0), (CheckResult("fine", "passed", "", 1),)
    holds = Evidence("c", "7", passed, changed=True, isolated=None, log="")
    assert not is_unverified(closed), "in the shared tree nothing is ever verified"
    assert is_unverified(replace(closed, work=replace(closed.work, own=own)))
    assert not is_unverified(replace(closed, work=replace(closed.work, own=own), code="somebody"))
    for evidence, unverified in (
        (holds, False),
        (replace(holds, changed=False), True),
        (replace(holds, results=()), True),
    ):
        assert is_unverified(replace(closed, work=replace(closed.work, own=own, evidence=evidence))) == unverified
        assert not is_unverified(
            replace(closed, work=replace(closed.work, own=own, evidence=evidence, waived=("unchanged",)))
        )
    many = [f"t-{number}" for number in range(12)]
    monkeypatch.setattr(shell, "audit", lambda *_: AuditResult(issues=12, unverified=many))
    done = told()
    assert (done.exit_code, done.stdout) == (0, "12 issues: nothing is left over\n")
    assert "that their work holds (`ashep why ISSUE`): t-0, t-1, " in done.stderr
    assert done.stderr.rstrip().endswith("t-9 and 2 more")
    assert json.loads(told("--json").stdout)["unverified"] == many
    monkeypatch.setattr(shell, "audit", lambda *_: AuditResult(issues=12, unchanged=many[:2]))
    done = told()
    assert (done.exit_code, done.stdout) == (0, "12 issues: nothing is left over\n")
    assert done.stderr == "ashep: closed although nothing was changed (`ashep why ISSUE`): t-0, t-1\n"
    assert json.loads(told("--json").stdout)["unchanged"] == many[:2]


@pytest.mark.promise("A1")
def test_exit_codes_tell_findings_from_what_could_not_be_asked(world: World, told: Any) -> None:
    done = told()
    assert (done.exit_code, done.stdout) == (0, "2 issues: nothing is left over\n")
    name = claim(world)
    try:
        done = told()
        assert done.exit_code == 1
        assert f"claim_without_owner {name} is in_progress in the tracker" in done.stdout
        assert "    give it back with `bd update" in done.stdout
        (one,) = json.loads(told("--json").stdout)["findings"]
        assert (one["code"], one["issue"]) == ("claim_without_owner", name)
    finally:
        world.tracker.person_deletes(name, "pat")
    done = told(tracker=Away())
    assert isinstance(done.exception, NotChecked)
    assert done.exception.exit_code == 69
    assert done.stdout == "2 issues: in the journal alone, nothing is left over\n"
    assert json.loads(told("--json", tracker=Away()).stdout)["not_asked"]["tracker"] == "no answer"
