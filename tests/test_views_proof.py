"""What people and programs see of evidence and of landing: `ashep why`, `status`, `show` and `report`."""

import json
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ashep.cli.reading import read_commands
from ashep.core.delivery.closing_metadata import notes_of
from ashep.core.facts import commands as c
from ashep.core.facts.delivery import CheckResult, FileMap, WorkLanded, WorkVerified, shortened
from ashep.core.facts.tracker import Issue
from ashep.core.state.branches import branch_of
from ashep.core.state.delivery import Evidence, Landing, OwnTree
from ashep.core.state.flow import Flow
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.ports.landing import MoveRefused
from ashep.store.issue_row import landing, verification
from ashep.store.sqlite_reader import open_read_only
from ashep.views import evidence, runs, status
from ashep.views import report as reported
from tests.loop_world import Points, World, policy, said, simulate

CONFIG = "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\n"
POLICY = policy({
    "name": "implement",
    "capabilities": ["implement"],
    "access": "write",
    "verify": {"max_attempts": 1},
    "checks": [
        {"id": "made", "type": "file_exists", "description": "It is better", "verify": {"path": "calc.py"}},
        {"id": "better", "type": "file_exists", "verify": {"path": "t-2.py", "contains": ["better"]}},
    ],
    "next": {"success": "close"},
})  # fmt: skip
STOPPED: Any = {"running": False}
AT = datetime(2026, 1, 1, tzinfo=UTC)
FLOW = Flow(Issue("t-1", "title", "open", "task", 2, AT))
EVIDENCE = Evidence("c" * 40, "7" * 40, (CheckResult("made", "passed", "as expected", 3),), True, False, "")


def plays(world: World, asked: Prompted) -> Play:
    issue = asked.key.split(":", 1)[1].partition("/")[0]
    world.own_trees.edit(branch_of(issue), f"{issue}.py", "worse" if issue == "t-1" else "better")
    if issue == "t-3":
        world.landing = world.landing or MemoryLanding(world.own_trees)
        world.landing.refuses = MoveRefused("dirty", "main is checked out, and calc.py was changed there")
    return Play(text=said("implement"), delay=world.delay)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a state folder: t-1 was closed with a check that a person let pass, t-2 verified, t-3 cannot land."""
    folder = tmp_path_factory.mktemp("lived") / ".agent-shepherd"

    async def scenario() -> None:
        world = World(folder, config=CONFIG, policies=POLICY)
        world.workspaces = MemoryWorkspaces({"calc.py": "1"})
        world.answer = plays
        for number in (1, 2, 3):
            name = world.tracker.add(f"issue {number}", id=f"t-{number}")
            await world.live(lambda name=name: over(world, name), person=True)
        (asked,) = (text for text in world.comments("t-1") if "Let it pass?" in text)
        assert "- better: t-2.py lacks ['better']\n\n`ashep why t-1` shows what they printed.\n\nAnswer by" in asked
        world.draw()

    simulate(scenario)
    return folder / "state"


def over(world: World, name: str) -> bool:
    flow = world.world.flows.get(name)
    return flow is not None and (
        flow.stage == "closed" or (flow.work.landing is not None and flow.work.landing.due is not None)
    )


def why(state: Path, issue: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], dict[str, Any]]:
    project = state.parent.parent
    assert read_commands.why(project, issue=issue) == 0
    text = capsys.readouterr().out
    assert read_commands.why(project, issue=issue, as_json=True) == 0
    return text.splitlines(), json.loads(capsys.readouterr().out)


@pytest.mark.promise("W5")
def test_why_shows_the_evidence_with_its_tree_and_where_the_work_landed(
    lived: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, told = why(lived, "t-2", capsys)
    found = told["verification"]
    assert (found["status"], found["waived"], len(found["tree"])) == ("passing", [], 40)
    assert (
        f"evidence: passing: 2 of 2 checks passed in tree {found['tree'][:12]}, 1 of them before any work, too" in lines
    )
    assert f"  of the git tree {found['tree']}, commit {found['commit']}" in lines
    assert "  made: passed (it passed before any work, too): as expected" in lines
    assert "  better: passed: as expected" in lines
    assert (told["landing"]["state"], told["landing"]["onto"]) == ("landed", "main")
    assert f"its work landed on main as {told['landing']['commit'][:12]}" in lines
    assert lines[-1].startswith("now: closed"), "what stands last is where it is now"


def test_why_shows_what_a_person_let_pass_and_what_the_failed_check_said(
    lived: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, told = why(lived, "t-1", capsys)
    assert told["verification"]["waived"] == ["better"]
    assert "  better: failed (a person let it pass): t-2.py lacks ['better']" in lines
    assert "    better: failed: t-2.py lacks ['better']" in lines, "the log of what failed"
    assert told["verification"]["log"] == "better: failed: t-2.py lacks ['better']"
    assert any(line.endswith("; a person let pass: better") for line in lines)


def test_why_and_status_show_what_landing_waits_for(lived: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, told = why(lived, "t-3", capsys)
    assert (told["landing"]["state"], told["now"]["code"]) == ("waits", "landing_dirty")
    assert any(line.startswith("its work waits for main, tried again at ") for line in lines)
    with closing(open_read_only(lived)) as database:
        entries: dict[str, Any] = {entry["issue"]: entry for entry in status.status(database, STOPPED)["issues"]}
        rows = {row[1]: row[-1] for row in status.table(list(entries.values()), AT, everything=True)}
    assert entries["t-3"]["landing"]["state"] == "waits"
    assert "calc.py was changed there (due in" in rows["t-3"]
    assert entries["t-2"]["verification"]["summary"] == {"total": 2, "passed": 2, "failed": 0, "skipped": 0}
    assert "; passing: 2 of 2 checks passed in tree " in rows["t-2"]
    assert "; its work landed on main as " in rows["t-2"]


def test_a_run_is_shown_with_what_checks_found_in_what_it_left(lived: Path) -> None:
    with closing(open_read_only(lived)) as database:
        told = runs.show(database, "t-2/implement.1.1", str)
    assert told is not None
    (found,) = told["verified"]
    pairs = runs.lines(told)
    assert ("evidence", f"git tree {found['tree']}") in pairs
    assert ("", "better: passed: as expected") in pairs


def test_the_report_counts_what_was_closed_by_its_proof(lived: Path) -> None:
    with closing(open_read_only(lived)) as database:
        told = reported.report(database, "2000-01-01", datetime(2100, 1, 1, tzinfo=UTC))
        kinds = {row["seq"]: row["type"] for row in database.execute("SELECT seq, type FROM facts")}
    assert told["closes"] == {"verified": 1, "waived": 1, "unverified": 0}
    assert ("Closed (2): 1 verified, 1 with checks that a person let pass", "heading") in list(reported.lines(told))
    lines = {line["issue"]: line for line in told["sections"]["closed"]}
    assert "; a person let pass: better; its work landed on main as " in lines["t-1"]["text"]
    assert [kinds[seq] for seq in lines["t-2"]["seqs"]] == [
        "IssueFinished", "WorkVerified", "WorkLanded", "IssueClosed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "status", "untested"),
    [("landed", None, True), ("branch", "skipped", True), ("landed", "failed", False), ("unchanged", None, False)],
)
def test_the_report_says_first_what_landed_without_a_check(state: Any, status: Any, untested: bool) -> None:
    checks = [{"status": status}] if status else []
    closed: Any = {"landing": {"state": state}, "verification": {"checks": checks}}
    assert evidence.is_untested(closed) == untested


@pytest.mark.promise("W5")
def test_what_was_closed_without_anything_checked_is_unverified() -> None:
    closed = replace(FLOW, stage="closed", code="shepherd")
    shown = verification(closed)
    assert shown is not None
    assert (shown["status"], shown["tree"]) == ("unverified", None)
    assert evidence.kind_of(shown) == "unverified"
    assert evidence.in_short(evidence.counted(shown)) == "unverified"
    assert verification(replace(closed, code="somebody")) is None, "whoever closed it knows why"
    assert verification(FLOW) is None
    empty = verification(replace(closed, work=replace(closed.work, evidence=replace(EVIDENCE, results=()))))
    assert evidence.in_short(evidence.counted(empty)) == f"unverified in tree {'7' * 12}"
    red = verification(
        replace(
            closed,
            work=replace(closed.work, evidence=replace(EVIDENCE, results=(CheckResult("made", "error", "", 1),))),
        )
    )
    assert evidence.kind_of(red) == "unverified"


@pytest.mark.promise("W5")
def test_a_success_that_changed_nothing_is_not_told_as_verified() -> None:
    before = CheckResult("made", "passed", "as expected", 3, proves_nothing=True)
    idle = replace(EVIDENCE, results=(before,), changed=False, must_change=False)
    shown = verification(replace(FLOW, stage="closed", code="shepherd", work=replace(FLOW.work, evidence=idle)))
    assert evidence.kind_of(shown) == "unverified"
    assert evidence.in_short(evidence.counted(shown)) == (
        f"passing: 1 of 1 checks passed in tree {'7' * 12}, 1 of them before any work, too; the work changes nothing"
    )
    let_pass = verification(
        replace(FLOW, stage="closed", code="shepherd", work=replace(FLOW.work, evidence=idle, waived=("unchanged",)))
    )
    assert evidence.kind_of(let_pass) == "waived"
    empty = verification(replace(FLOW, work=replace(FLOW.work, evidence=replace(idle, results=()))))
    assert evidence.in_short(evidence.counted(empty)) == f"unverified in tree {'7' * 12}; the work changes nothing"


@pytest.mark.promise("Z7")
def test_what_fails_on_the_base_too_is_told_with_the_likely_cause() -> None:
    here = CheckResult("made", "failed", "exit code 1", 3, cause="memory", on_base=True)
    shown = verification(replace(FLOW, work=replace(FLOW.work, evidence=replace(EVIDENCE, results=(here,)))))
    said = "fails on the base, too (likely cause: out of memory)"
    assert evidence.in_short(evidence.counted(shown)).endswith(f"; made {said}")
    told: Any = {"verification": shown, "verification_log": [], "files": None, "flags": [], "landing": None}
    assert f"  made: failed (it {said}: no work is to blame): exit code 1" in evidence.lines(told)
    assert evidence.kind_of(shown) == "unverified", "also where the policy ignores it"


@pytest.mark.promise("L8")
def test_checks_that_all_passed_before_the_work_do_not_make_it_verified() -> None:
    before, after = CheckResult("old", "passed", "as ever", 3, proves_nothing=True), CheckResult("new", "passed", "", 3)
    closed = replace(FLOW, stage="closed", code="shepherd")
    nothing = verification(
        replace(closed, work=replace(closed.work, evidence=replace(EVIDENCE, results=(before, before))))
    )
    assert evidence.kind_of(nothing) == "unverified"
    said = f"passing: 2 of 2 checks passed in tree {'7' * 12}, 2 of them before any work, too"
    assert evidence.in_short(evidence.counted(nothing)) == said
    skipped = CheckResult("new", "skipped", "", 3)
    assert (
        evidence.kind_of(
            verification(
                replace(closed, work=replace(closed.work, evidence=replace(EVIDENCE, results=(before, skipped))))
            )
        )
        != "verified"
    )
    assert (
        evidence.kind_of(
            verification(
                replace(closed, work=replace(closed.work, evidence=replace(EVIDENCE, results=(before, after))))
            )
        )
        == "verified"
    )


@pytest.mark.promise("W3")
@pytest.mark.parametrize(("isolated", "told"), [(True, ", in a sandbox"), (False, ", without a sandbox"), (None, "")])
def test_a_sandbox_is_told_of_where_a_program_ran_in_it(isolated: bool | None, told: str) -> None:
    shown = verification(replace(FLOW, work=replace(FLOW.work, evidence=replace(EVIDENCE, isolated=isolated))))
    body: Any = {"verification": shown, "landing": None}
    assert f"  of the git tree {'7' * 40}, commit {'c' * 40}{told}" in evidence.lines(evidence.evidence(body, str))


def test_each_step_of_landing_has_its_word() -> None:
    at = replace(FLOW, stage="finishing", work=replace(FLOW.work, landing=Landing(7, "main", verify=True)))
    step = ("k", "t-1", "b", "h", "main", "old", "new")

    def said(flow: Flow) -> str:
        return evidence.landing(json.loads(json.dumps(landing(flow))))

    assert said(at) == "waits for its turn to land on main"
    assert said(replace(at, open=(c.IntegrateWork("k", "t-1", "b", "h", "main", "merge", ""),))).startswith(
        "is brought"
    )
    assert said(replace(at, open=(c.VerifyWork("k", "t-1", "h", "base"),))) == "is checked as it is to land on main"
    assert said(replace(at, open=(c.MoveBase(*step),))) == "stands on the newest main; the branch is to follow"
    due = replace(at, work=replace(at.work, landing=Landing(7, "main", verify=True, due=AT + timedelta(minutes=1))))
    assert said(due).startswith("waits for main, tried again at ")
    landed = replace(FLOW, work=replace(FLOW.work, landed=("main", "f" * 40)))
    assert said(landed) == f"landed on main as {'f' * 12}"
    assert (
        said(replace(at, work=replace(at.work, landed=("main", "f" * 40)))) == "waits for its turn to land on main"
    ), "it lands once more"
    assert landing(FLOW) is None
    told: Any = {"verification": None, "flags": ["rules", "ci"], "landing": None}
    assert evidence.lines(told) == ["its work touches: rules, ci"]
    kept = replace(
        FLOW, stage="closed", code="shepherd", work=replace(FLOW.work, own=OwnTree("ashep/t-1", 0, head="a" * 40))
    )
    assert said(kept) == f"stays on its branch, at {'a' * 12}"
    assert said(replace(at, work=replace(at.work, landing=Landing(7, "", verify=True)))) == "stays on its branch, at "
    for own in (OwnTree("ashep/t-1", 0, base="a" * 40, head="a" * 40), OwnTree("ashep/t-1", 0, files=FileMap())):
        nothing = replace(kept, work=replace(kept.work, own=replace(own, head="a" * 40)))
        assert said(nothing) == "landed nowhere: nothing was changed"


@pytest.mark.virtual
async def test_the_tracker_is_told_with_the_close_and_without_a_write_of_its_own(folder: Path) -> None:
    world, points = World(folder, config=CONFIG, policies=POLICY), Points()
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.answer = plays
    issue = world.tracker.add("issue 2", id="t-2")
    await world.live(lambda: over(world, issue), points)
    found, landed = world.bodies(WorkVerified)[-1], world.bodies(WorkLanded)[-1]
    notes = world.tracker.metadata(issue)
    assert notes["verification_status"] == "passing"
    said = {"commit": found.commit, "tree": found.tree, "passed": 2, "failed": 0, "skipped": 0}
    noted = notes["verification"]
    assert isinstance(noted, dict)
    assert {key: noted[key] for key in (*said, "failures", "waived")} == {**said, "failures": [], "waived": []}
    assert notes["landed"] == {"onto": "main", "commit": landed.commit}
    assert notes["impact_flags"] == []
    assert notes["ticket_files"] == {"created": ["t-2.py"], "modified": [], "deleted": [], "more": 0}
    log = notes["verification_log"]
    assert isinstance(log, list)
    assert [(one["n"], one["commit"], one["passed"]) for one in log if isinstance(one, dict)] == [
        (1, world.bodies(WorkVerified)[0].commit, 2), (2, found.commit, 2)
    ]  # fmt: skip
    assert points.calls.count("update") == 1, "the close alone"


def test_what_stands_on_a_closed_issue_is_short_and_true_of_what_was_not_checked() -> None:
    assert notes_of(FLOW) == {}, "in the shared tree nothing is known"
    flow = replace(FLOW, work=replace(FLOW.work, own=OwnTree("ashep/t-1", 0, flags=("ci",))))
    assert notes_of(flow) == {
        "verification_status": "unverified", "impact_flags": ["ci"], "landing": "nothing was changed", "landed": None,
    }  # fmt: skip
    assert notes_of(flow, closed=False) == {"verification_status": "pending", "impact_flags": ["ci"]}
    paths = tuple(f"{number:04}/{'x' * 295}" for number in range(100))
    files = shortened(FileMap(paths, paths, ("short",), more=7))
    assert len(json.dumps(asdict(files))) < 10_000
    assert [len(one) for one in (files.created, files.modified, files.deleted)] == [26, 0, 0]
    assert files.more == 7 + 74 + 100 + 1
    touched = replace(flow, work=replace(flow.work, own=OwnTree("ashep/t-1", 0, files=FileMap(("a",), more=3))))
    assert notes_of(touched)["ticket_files"] == {"created": ["a"], "modified": [], "deleted": [], "more": 3}
