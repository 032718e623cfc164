"""The account, audited: nothing is found where nothing is wrong, and whatever is wrong is found."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ashep.core.analysis import audit
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, runs, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.delivery import CheckResult
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import Finding
from ashep.core.facts.tracker import Issue
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.flow import Flow, with_work
from ashep.core.state.world import World
from tests.core.given import INSTANCE, ME, T0, issue
from tests.core.lives import live
from tests.core.playbook import Playbook
from tests.core.test_playbook_landing import book_of, finished
from tests.core.world_of import MadeUp
from tests.full import amount

ROOT = Path(__file__).resolve().parent.parent


def found(world: World, *, at: Any = None, asked: Any = None, living: bool = True) -> list[Finding]:
    """What the World alone shows."""
    seen = [*audit.of_world(world)]
    for flow in world.flows.values():
        seen += audit.of_issue(world, flow, at or world.now, asked, living=living)
    return seen


def codes(seen: list[Finding]) -> set[str]:
    return {one.code for one in seen}


# --- nothing is found where nothing is wrong ----------------------------------------------------------------------


def audited(seed: int, steps: int = 120) -> MadeUp:
    """Live a life that is audited after every turn, and against the tracker after each look."""
    before = MadeUp.turn

    def turn(made: MadeUp, *facts: e.Fact, everything: bool = False) -> list[Entry]:
        entries = before(made, *facts, everything=everything)
        assert not found(made.world, at=made.now), found(made.world, at=made.now)
        if any(isinstance(entry.body, tracker.ReadySeen) for entry in entries):
            listed = [view for view in made.tracker.values() if view.status != "closed"]
            seen = audit.of_look(made.world, listed, made.world.seq, taken_in=False)
            assert not [*seen], [*seen]
        return entries

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MadeUp, "turn", turn)
        return live(seed, steps)


@pytest.mark.promise("A1")
@settings(max_examples=amount(5, 100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_in_no_life_anything_is_found(seed: int) -> None:
    made = audited(seed)
    ledger = audit.Ledger(World())
    for entry in made.entries:
        ledger.note(entry)
    assert not [*ledger.findings(made.world)]


# --- whatever is wrong is found -----------------------------------------------------------------------------------


def until(done: Callable[[MadeUp], bool], **more: Any) -> World:
    """Live quietly until the first issue is so far."""
    made = MadeUp(**more)
    made.begin()
    made.open("t-1")
    for _ in range(400):
        made.tick()
        if "t-1" in made.world.flows and done(made):
            return made.world
    raise AssertionError("it never came to that")


def stage(name: str) -> Callable[[MadeUp], bool]:
    return lambda made: made.world.flows["t-1"].stage == name and not made.world.flows["t-1"].open


def running(made: MadeUp) -> bool:
    run = made.world.flows["t-1"].run
    return run is not None and not run.ended and run.prompt.sent and not made.world.flows["t-1"].open


RUNNING, ASKING = until(running), until(stage("person"))


def two_that_land() -> World:
    """One issue is being brought onto the base, another one waits behind it."""
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-2")
    book.made.jobs, book.left = [], []
    return finished(book).world


LANDING = two_that_land()


def spoilt(world: World, **changes: Any) -> World:
    """The World with another flow of the first issue; the indexes stay as they are."""
    return replace(world, flows=world.flows.insert("t-1", replace(world.flows["t-1"], **changes)))


def with_indexes(world: World, **changes: Any) -> World:
    return replace(world, indexes=replace(world.indexes, **changes))


def closed(**changes: Any) -> World:
    flow = Flow(issue("t-1", "closed"), stage="closed", since=T0, code="shepherd", why="ann approved it")
    return spoilt(replace(World(), flows=World().flows.insert("t-1", flow)), **changes)


WRONG: dict[str, Callable[[], tuple[World, dict[str, Any]]]] = {
    "no_reason": lambda: (spoilt(ASKING, stage="parked", why="", code="attempts"), {}),
    "no_end": lambda: (spoilt(ASKING, question=None), {}),
    "stranded": lambda: (spoilt(RUNNING, run=None), {}),
    "not_asked_for": lambda: (spoilt(ASKING, comments=(("ask.1", "Merge?"),)), {}),
    "overdue": lambda: (ASKING, {"at": ASKING.flows["t-1"].question.due + audit.DUE_BOUND * 2}),  # type: ignore[union-attr]
    "intent_open": lambda: asked_long_ago(),
    "run_not_over": lambda: (spoilt(RUNNING, stage="parked", code="attempts"), {}),
    "no_evidence": lambda: (closed(why=" "), {}),
    "lock_left": lambda: (replace(ASKING, lock="t-1"), {}),
    "index": lambda: (with_indexes(RUNNING, live=RUNNING.indexes.live.remove("t-1")), {}),
    "landing_at_once": lambda: (both_at_once(), {}),
}  # fmt: skip


def asked_long_ago() -> tuple[World, dict[str, Any]]:
    world = until(lambda made: bool(made.world.flows["t-1"].open))
    (command, *_) = world.flows["t-1"].open
    return world, {"asked": {command.key: world.now}, "at": world.now + audit.OPEN_BOUND * 2}


def both_at_once() -> World:
    flow = LANDING.flows["t-1"]
    assert flow.work.landing is not None
    key = f"t-1/land/{flow.work.landing.seq}.0.0"
    return spoilt(LANDING, open=(c.MoveBase(key, "t-1", "ashep/t-1", "head", "main", "c0ffee", "c0ffee2"),))


def test_who_waits_to_land_is_fine_and_who_is_to_be_landed_and_is_not_is_stranded() -> None:
    assert [issue for _, _, issue in LANDING.indexes.landings] == ["t-2", "t-1"]
    assert not LANDING.flows["t-1"].open
    assert not found(LANDING)
    first = LANDING.flows["t-2"]
    assert first.work.landing is not None
    for due, wrong in ((first.work.landing.due, True), (T0, False)):
        flow = with_work(replace(first, open=()), landing=replace(first.work.landing, due=due))
        world = replace(LANDING, flows=LANDING.flows.insert("t-2", flow))
        assert ("stranded" in codes(found(world))) == wrong
    late = replace(first.work.landing, seq=1)  # what is under way is of a landing that was given up
    work = replace(LANDING.flows["t-1"].work, landing=replace(late, onto="main"))
    assert not codes([*audit.of_world(spoilt(both_at_once(), work=work))])


def test_a_queue_that_is_not_what_the_flows_say_is_found() -> None:
    assert not [*audit.of_indexes(LANDING)]
    queue = LANDING.indexes.landings
    wrong = [*audit.of_indexes(with_indexes(LANDING, landings=queue.remove(next(iter(queue)))))]
    assert [one.what for one in wrong] == ["the World's landings is not what its flows say"]


@pytest.mark.promise("A1")
@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_in_the_world_is_found(code: str) -> None:
    world, more = WRONG[code]()
    assert not found(world if code in ("overdue", "intent_open") else RUNNING)
    assert code in codes(found(world, **more))


def test_the_lock_of_an_issue_at_work_and_a_due_time_on_its_way_are_fine() -> None:
    assert RUNNING.lock == "t-1"
    assert not found(ASKING, at=ASKING.now + timedelta(days=6))
    assert not found(ASKING, at=ASKING.now + timedelta(days=60), living=False), "nobody is there to take notice"


def shown(world: World, *views: Issue, taken_in: bool = True, as_of: int | None = None) -> list[Finding]:
    """What a look shows."""
    return [*audit.of_look(world, views, world.seq if as_of is None else as_of, taken_in=taken_in)]


def mine(**changes: Any) -> Issue:
    return replace(ASKING.flows["t-1"].issue, **changes)


def stamped(seq: int, instance: str = INSTANCE) -> Any:
    stamp = mine().stamp
    assert stamp is not None
    return replace(stamp, seq=seq, instance=instance)


OTHERS: dict[str, Callable[[], list[Finding]]] = {
    "unknown_issue": lambda: shown(ASKING, mine(), issue("t-2")),
    "claim_without_owner": lambda: shown(ASKING, mine(), issue("t-2", "blocked", assignee=ME)),
    "vanished": lambda: shown(ASKING),
    "not_seen": lambda: shown(ASKING, mine(priority=0)),
    "not_as_written": lambda: shown(spoilt(ASKING, issue=mine(labels=())), mine(labels=())),
    "journal_behind": lambda: shown(ASKING, mine(stamp=stamped(10**6))),
    "stamp_lost": lambda: shown(spoilt(ASKING, issue=mine(stamp=None)), mine(stamp=None)),
    "answer_unknown": lambda: [*audit.of_answers("t-1", [audit.RecordedAnswer(7, "pat", "human:approved")], ())],
    "session_gone": lambda: [*audit.of_sessions(RUNNING, {session for _, _, session in audit.in_sessions(RUNNING)})],
}


@pytest.mark.promise("A1")
@pytest.mark.parametrize("code", OTHERS)
def test_what_the_tracker_and_the_server_show_is_found(code: str) -> None:
    assert codes(OTHERS[code]()) == {code}


def test_every_code_has_a_remedy_and_a_row_in_the_guide() -> None:
    assert set(audit.REMEDIES) == set(WRONG) | set(OTHERS) | {
        "run_without_end", "not_landed", "unverified", "picture", "signature",
    }  # fmt: skip
    assert set(OTHERS) == set(audit.OF_OTHERS)
    table = (ROOT / "docs" / "audit.md").read_text().partition("## Codes")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(audit.REMEDIES)


def test_what_stands_as_it_was_written_is_fine() -> None:
    assert not shown(ASKING, mine())
    assert not shown(RUNNING, RUNNING.flows["t-1"].issue)
    assert not [*audit.of_sessions(RUNNING, ())]
    assert len([*audit.in_sessions(RUNNING)]) == 1
    assert not [*audit.in_sessions(ASKING)]


@pytest.mark.promise("A2")
def test_a_person_may_do_anything_that_was_not_looked_at_yet() -> None:
    for change in ({"status": "closed"}, {"labels": ()}, {"assignee": "bob"}, {"status": "open", "assignee": None}):
        assert not shown(ASKING, mine(**change), taken_in=False)
        assert shown(ASKING, mine(**change))
    assert not shown(ASKING, issue("t-7", assignee="bob"), taken_in=False)


@pytest.mark.promise("A2")
def test_reads_that_began_before_our_last_write_was_answered_are_no_evidence() -> None:
    early = ASKING.flows["t-1"].write_seq - 1
    assert not shown(ASKING, mine(labels=()), as_of=early)
    assert not shown(ASKING, as_of=early)


def test_a_claim_of_a_lost_state_folder_has_no_owner() -> None:
    view = issue("t-1", "in_progress", "phase:implement", assignee=ME, stamp=stamped(7, "another"))
    flow = Flow(view, stage="idle", since=T0, code="status", why="its status is in_progress")
    world = replace(ASKING, flows=ASKING.flows.insert("t-1", flow))
    assert codes(shown(world, view, taken_in=False)) == {"claim_without_owner"}


@pytest.mark.parametrize("code", audit.EXPLAINED)
def test_a_claim_of_a_lost_state_folder_that_is_not_taken_up_for_a_reason_is_explained(code: str) -> None:
    """A daemon that was asked for other issues holds a parked one for its label."""
    view = issue("t-1", "blocked", "ashep:parked", "phase:implement", assignee=ME, stamp=stamped(7, "another"))
    flow = Flow(view, stage="idle", since=T0, code=code, why="as it is")
    assert not shown(replace(ASKING, flows=ASKING.flows.insert("t-1", flow)), view, taken_in=False)


def test_a_daemon_that_was_asked_for_others_holds_a_parked_one_with_a_reason_that_explains_it() -> None:
    book = Playbook(issues=("t-1",), only=("t-2",))
    view = issue("t-3", "blocked", "ashep:parked", "phase:implement", assignee=ME, stamp=stamped(7, "another"))
    book.made.tracker["t-3"] = view
    book.looked()
    assert book.flow("t-3").code in audit.EXPLAINED
    assert book.flow("t-3").stage == "idle"


def test_an_issue_whose_policy_went_is_held_with_a_reason_that_explains_why_nobody_works_on_it() -> None:
    book = Playbook(issues=("t-1",))
    view = issue("t-3", "blocked", "policy:gone", "phase:implement", assignee=ME, stamp=stamped(7, "another"))
    book.made.tracker["t-3"] = view
    book.looked()
    assert (book.flow("t-3").stage, book.flow("t-3").code) == ("idle", "unknown_policy")
    assert not [finding for finding in shown(book.world, view) if finding.issue == "t-3"]


@pytest.mark.promise("A2")
def test_only_what_is_found_twice_counts() -> None:
    one, two = Finding("no_end", "t-1", "now"), Finding("no_end", "t-1", "later")
    other = Finding("no_end", "t-2", "x")
    assert audit.lasting([one], [two, other]) == (two,)
    assert audit.lasting([], [one]) == ()


# --- the whole journal --------------------------------------------------------------------------------------------


def told(*bodies: e.Fact) -> Iterator[Entry]:
    for seq, body in enumerate(bodies, 1):
        yield Entry(seq, T0, body)


@pytest.mark.promise("A1")
def test_a_run_without_an_end_and_a_closing_without_evidence_are_left_over() -> None:
    ledger, world = audit.Ledger(World()), World()
    planned = [entry.body for entry in live(3, 60).entries if isinstance(entry.body, runs.RunPlanned)][:2]
    facts = [replace(fact, issue="t-1", run=f"t-1/implement.1.{n}") for n, fact in enumerate(planned, 1)]
    for entry in told(
        tracker.IssueSeen("t-1", issue("t-1"), 0), *facts, issues.IssueClosed("t-1", "shepherd", "it is done")
    ):
        ledger.note(entry)
        world = evolve(world, entry)
    seen = [*ledger.findings(world)]
    assert codes(seen) == {"run_without_end", "no_evidence"}
    assert [one.what for one in seen if one.code == "run_without_end"] == [
        "t-1/implement.1.1 was planned and has no end"
    ]


FINISHED = issues.IssueFinished("t-1", "implement succeeded", "main", True)
LANDED = delivery.WorkLanded("t-1", "k", "main", "head", "new")
PULLED = issues.IssueFinished("t-1", "implement succeeded", verify=True, into="main")
MERGED = delivery.PullRequestMerged("t-1", 7, "theirs", "ann merged it")
CLOSED = issues.IssueClosed("t-1", "shepherd", "implement succeeded")
ASKED = issues.PersonAsked("t-1", "implement", "Let it pass?", T0, False, "it fell short", about="proof")
SIGN = replace(ASKED, about="phase")


def verified(commit: str = "new", *failed: str, run: str = "") -> delivery.WorkVerified:
    results = [CheckResult("fine", "passed", "", 1), *(CheckResult(name, "failed", "", 1) for name in failed)]
    return delivery.WorkVerified("t-1", "k", commit, f"tree of {commit}", True, run, "checks", tuple(results))


IDLE = replace(verified(), changed=False)
ADOPTED = delivery.CriteriaAdopted("t-1", "ab" * 32, "cd" * 32, 2, ("Nice?",))
SEALED = delivery.TreeSealed("t-1", "t-1/implement.1.1", "k", "head", "7ree", ())


def yes(answer: Any = "approved") -> issues.PersonAnswered:
    return issues.PersonAnswered("t-1", answer, "ann", "she said so")


def left(*facts: e.Fact) -> set[str]:
    """What a journal with these facts leaves over."""
    ledger = audit.Ledger(World())
    for entry in told(*facts):
        ledger.note(entry)
    return codes([*ledger.findings(World())])


@pytest.mark.promise("A1")
@pytest.mark.parametrize(("facts", "code"), [
    ((FINISHED, verified(), LANDED, CLOSED), ""),
    ((FINISHED, LANDED, verified(), CLOSED), ""),
    ((issues.IssueFinished("t-1", "done", "main"), LANDED, CLOSED), ""),
    ((issues.IssueFinished("t-1", "done", "", True), verified("head"), CLOSED), ""),
    ((issues.IssueFinished("t-1", "done"), CLOSED), ""),
    ((issues.IssueFinished("t-1", "done", "", True), CLOSED), "unverified"),
    ((PULLED, verified("head"), MERGED, CLOSED), ""),
    ((PULLED, verified("head"), replace(MERGED, commit=""), CLOSED), ""),
    ((PULLED, verified("head"), CLOSED), "not_landed"),
    ((PULLED, MERGED, CLOSED), "unverified"),
    ((FINISHED, verified(), CLOSED), "not_landed"),
    ((LANDED, FINISHED, verified(), CLOSED), "not_landed"),
    ((FINISHED, verified(), LANDED, FINISHED, verified(), CLOSED), "not_landed"),
    ((FINISHED, LANDED, CLOSED), "unverified"),
    ((verified(), FINISHED, LANDED, CLOSED), "unverified"),
    ((FINISHED, verified("before"), LANDED, CLOSED), "unverified"),
    ((FINISHED, verified("new", run="t-1/implement.1.1"), LANDED, CLOSED), "unverified"),
    ((FINISHED, verified("new", "tests"), LANDED, CLOSED), "unverified"),
    ((verified("x", "tests", run="r"), ASKED, yes(), FINISHED, verified("new", "tests"), LANDED, CLOSED), ""),
    ((verified("x", "tests"), ASKED, yes(), FINISHED, verified("new", "lint"), LANDED, CLOSED), "unverified"),
    ((verified("x", "tests"), ASKED, yes("changes_requested"), FINISHED, verified("new", "tests"), LANDED, CLOSED),
     "unverified"),
    ((verified("x", "tests"), SIGN, yes(), FINISHED, verified("new", "tests"), LANDED, CLOSED), "unverified"),
    ((FINISHED, IDLE, LANDED, CLOSED), "unverified"),
    ((FINISHED, replace(IDLE, must_change=False), LANDED, CLOSED), ""),
    ((replace(IDLE, commit="x", run="r"), ASKED, yes(), FINISHED, IDLE, LANDED, CLOSED), ""),
    ((ADOPTED, SEALED, issues.IssueFinished("t-1", "done", "main"), LANDED, CLOSED), "unverified"),
    ((ADOPTED, SEALED, FINISHED, verified(), LANDED, CLOSED), ""),
    ((ADOPTED, issues.IssueFinished("t-1", "done"), CLOSED), ""),
    ((replace(ADOPTED, checks=1), SEALED, issues.IssueFinished("t-1", "done", "main"), LANDED, CLOSED), ""),
    ((ADOPTED, replace(ADOPTED, hash=""), SEALED, issues.IssueFinished("t-1", "done", "main"), LANDED, CLOSED), ""),
])  # fmt: skip
def test_a_closing_is_accounted_for_by_a_landing_and_by_evidence_of_what_landed(
    facts: tuple[e.Fact, ...], code: str
) -> None:
    assert left(*facts) == ({code} if code else set())


def test_a_journal_that_begins_with_a_snapshot_knows_what_was_finished_before() -> None:
    for world, changes, wanted in (
        (LANDING, {}, {"not_landed"}),
        (LANDING, {"verify": True, "verified": True, "landed": True, "commit": "new"}, set()),
        (LANDING, {"verify": True, "landed": True, "commit": "new"}, {"unverified"}),
    ):
        work = world.flows["t-1"].work
        assert work.landing is not None
        ledger = audit.Ledger(spoilt(world, work=replace(work, landing=replace(work.landing, **changes))))
        for entry in told(CLOSED):
            ledger.note(entry)
        assert codes([*ledger.findings(world)]) == wanted
