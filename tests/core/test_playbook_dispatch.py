"""Playbooks of dispatch: what starts, what does not, and why."""

from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs, tracker
from ashep.core.facts.delivery import Tree
from ashep.core.policy.policies import Match, Phase, Policies, Policy
from ashep.core.reconcile.dispatch import dispatch_all
from ashep.core.reconcile.eligibility import policy_for
from ashep.core.reconcile.observe import machine_read, ready_read
from tests.core.given import JUDGE, POLICY_FREE, T0, TEAM, adopted, policies, policy_of, settings, start, up
from tests.core.playbook import Playbook, like
from tests.core.world_of import MadeUp

READ = policy_of(Phase(name="review"))
WRITE = policy_of(Phase(name="implement"), Phase(name="review"))


def hold(book: Playbook, name: str = "t-1") -> str:
    """Why the issue does not start, once the tracker was looked at."""
    assert book.looked().flow(name).stage in ("idle", "left", "work")
    return book.flow(name).code


@pytest.mark.promise("D7", "J8")
@pytest.mark.parametrize(("change", "code"), [
    ({"add": ["ashep:excluded"]}, "excluded"),
    ({"add": ["ashep:parked"]}, "parked_label"),
    ({"add": ["ashep:paused"]}, "paused"),
    ({"status": "deferred"}, "status"),
    ({"add": ["human"]}, "not_labels"),
    ({"hidden": "a template"}, "hidden"),
    ({"assignee": "bob"}, "assigned"),
    ({"add": ["policy:nonsense"]}, "unknown_policy"),
    ({"add": ["policy:quick", "policy:standard"]}, "unknown_policy"),
    ({"type": "epic"}, "no_policy"),
    ({"blocked_by": ("t-2",)}, "dependencies"),
    ({"add": ["phase:nonsense"]}, "unknown_phase"),
    ({"add": ["phase:review", "phase:implement"]}, "unknown_phase"),
])  # fmt: skip
def test_an_issue_that_is_not_eligible_is_held_with_its_reason_once(change: dict[str, Any], code: str) -> None:
    book = Playbook(issues=("t-1",))
    if "blocked_by" in change:
        book.made.open("t-2", assignee="bob")
    book.seen(**change)
    assert hold(book) == code
    told = account(book.world, "t-1")
    assert (told.state, told.code) == ("not_eligible", code)
    assert told.reason
    size = len(book.made.entries)
    book.looked()
    assert len(book.made.entries) == size  # an unchanged read leaves no fact
    taken = [one.issue for one in book.bodies(issues.IssueTaken)]
    assert "t-1" not in taken


@pytest.mark.parametrize("second", ["implement", "nonsense"])
def test_two_phase_labels_are_called_two_and_none_is_called_none(second: str) -> None:
    book = Playbook(issues=("t-1",))
    book.seen(add=["phase:review", f"phase:{second}"])
    assert hold(book) == "unknown_phase"
    told = account(book.world, "t-1").reason
    assert told.startswith("it has 2 phase labels (")
    assert "review" in told
    assert "none of" not in told


def test_two_phase_labels_on_an_issue_at_work_are_called_two() -> None:
    book = Playbook().looked()
    book >> book.seen(add=["phase:review", "phase:arbitrate"])
    why = account(book.world, "t-1").reason
    assert "it has 2 phase labels (" in why
    assert "none of" not in why


def test_an_issue_that_the_tracker_does_not_call_ready_is_held() -> None:
    book = Playbook()
    assert book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], 1) << like(issues.IssueHeld, code="not_ready")


@pytest.mark.promise("D1")
def test_a_type_that_no_policy_names_is_held_even_with_a_default_policy() -> None:
    quick = Policy(match=Match(types=("task",), labels=("fast",)), phases=(Phase(name="implement"),))
    rules = policies(policy_of(Phase(name="review")).model_copy(update={"match": None}), fast=quick)
    book = Playbook(rules, issues=("t-1", "t-2"))
    book.seen("t-2", type="epic")
    assert hold(book, "t-2") == "no_policy"
    assert book.flow("t-1").policy == "standard"  # of a type that some match names


@pytest.mark.promise("D1")
def test_a_policy_claims_the_issues_whose_whole_title_fits_its_pattern() -> None:
    docs = Policy(match=Match(title="[Dd]ocs: *?"), phases=(Phase(name="implement"),))
    titles = {
        "t-1": "docs: a word", "t-2": "DOCS: A\nWORD", "t-3": "my docs: a word", "t-4": "docs: ", "t-5": "edocs: a",
    }  # fmt: skip
    rules = Policies(version=1, policies={"docs": docs, "rest": policy_of(Phase(name="implement"))})
    book = Playbook(rules, config=settings(max_concurrent_runs=9, lock_work_tree=False), issues=titles)
    for name, title in titles.items():
        book.seen(name, title=title)
    book.looked()
    claimed = {name: book.flow(name).policy for name in titles}
    assert claimed == {"t-1": "docs", "t-2": "docs", "t-3": "rest", "t-4": "rest", "t-5": "rest"}


@pytest.mark.promise("D1", "D7")
def test_labels_that_an_issue_must_not_carry_are_a_policys_and_the_workers() -> None:
    quick = Policy(match=Match(labels=("fast",), not_labels=("big", "ui")), phases=(Phase(name="implement"),))
    rules = Policies(version=1, policies={"quick": quick, "rest": policy_of(Phase(name="implement"))})
    labels = {"t-1": ["fast"], "t-2": ["fast", "ui"], "t-3": ["fast", "human"], "t-4": ["later"]}
    config = settings(max_concurrent_runs=9, lock_work_tree=False)
    for barred in ((), ("human", "later")):
        config = config.model_copy(update={"worker": config.worker.model_copy(update={"not_labels": barred})})
        book = Playbook(rules, config=config, issues=labels)
        for name, names in labels.items():
            book.seen(name, add=names)
        book.looked()
        codes = {name: book.flow(name).code for name in labels if book.flow(name).policy is None}
        assert {name: book.flow(name).policy for name in ("t-1", "t-2")} == {"t-1": "quick", "t-2": "rest"}
        assert codes == dict.fromkeys(("t-3", "t-4") if barred else (), "not_labels")
    assert account(book.world, "t-3").reason == (
        "the label human is set, bd's word for what people do (`worker.not_labels` in config.yaml)"
    )


def test_a_hold_for_want_of_a_policy_names_the_type_without_an_article() -> None:
    book = Playbook(issues=("t-1",))
    book.seen(type="epic")
    assert hold(book) == "no_policy"
    assert account(book.world, "t-1").reason == "no policy claims an issue like this, of the type epic"


def test_no_pattern_makes_a_title_take_long_to_match() -> None:
    pattern = "*a" * 99 + "*b"
    rules = Policies(version=1, policies={"a": Policy(match=Match(title=pattern), phases=(Phase(name="implement"),))})
    issue = replace(Playbook().made.tracker["t-1"], title="a" * 10_000)
    began = process_time()
    assert policy_for(rules, issue, "policy:")[0] is not None
    assert process_time() - began < 1


@pytest.mark.promise("D4")
def test_nothing_starts_before_a_look_that_began_after_the_last_hint() -> None:
    book = Playbook(issues=("t-1",))
    book.made.turn(tracker.ChangeHinted())
    as_of = book.world.seq
    book.made.turn(tracker.ChangeHinted())
    book >> [tracker.IssueSeen("t-1", book.made.tracker["t-1"], as_of), tracker.ReadySeen(("t-1",), as_of)]
    assert book.flow().stage == "idle"
    book.left = []
    book >> tracker.ReadySeen(("t-1",), book.world.seq) << issues.IssueTaken
    assert book.left


@pytest.mark.promise("D3")
def test_priority_then_age_then_id_go_first() -> None:
    made = MadeUp().begin(*start(policies(READ), config=settings(max_concurrent_runs=1)))
    for name, priority, age in (("t-a", 2, 1), ("t-b", 1, 1), ("t-c", 1, 2), ("t-d", 1, 2)):
        made.open(name, priority=priority, created_at=T0 - timedelta(days=age))
    made.look()
    taken = [entry.body.issue for entry in made.entries if isinstance(entry.body, issues.IssueTaken)]
    assert taken == ["t-c"]
    assert {name: made.world.flows[name].code for name in ("t-a", "t-b", "t-d")} == dict.fromkeys(
        ("t-a", "t-b", "t-d"), "slot"
    )


@pytest.mark.promise("D3")
def test_a_wanted_phase_goes_before_a_ready_issue() -> None:
    book = Playbook(WRITE, config=settings(max_concurrent_runs=1, lock_work_tree=False)).looked()
    book.made.open("t-0", priority=0)
    assert book.looked().flow("t-0").code == "slot"
    (book >> book.reports()).answered()
    assert book.run().id == "t-1/review.1.1"
    assert book.flow("t-0").code == "slot"


@pytest.mark.promise("D5")
def test_a_write_run_excludes_every_other_and_the_lock_stays_until_the_question() -> None:
    book = Playbook(issues=("t-1", "t-2")).looked()
    assert (book.world.lock, book.flow("t-2").code) == ("t-1", "work_tree")
    book.until("arbitrate")
    assert (book.world.lock, book.flow("t-2").code) == ("t-1", "work_tree")
    book >> book.reports(verdict="pass") << runs.RunEnded << issues.PersonAsked << issues.CommentWanted
    book << like(issues.IssueTaken, issue="t-2") << issues.CycleBegan << issues.PhaseEntered << runs.RunPlanned
    assert book << c.WriteIssue << c.ClaimIssue
    assert book.world.lock == "t-2"


def test_readers_share_the_tree_and_a_writer_waits_for_them() -> None:
    rules = policies(READ, writing=policy_of(Phase(name="implement")))
    book = Playbook(rules, issues=("t-1", "t-2")).looked()
    assert len(list(book.world.indexes.live)) == 2
    book.made.open("t-3", "policy:writing")
    assert hold(book, "t-3") == "work_tree"
    for name in ("t-1", "t-2"):
        book.left = []
        (book >> book.reports(name=name)).answered()
    assert book.looked().world.lock == "t-3"


def test_without_the_lock_writers_work_side_by_side() -> None:
    book = Playbook(issues=("t-1", "t-2"), config=settings(lock_work_tree=False)).looked()
    assert len(list(book.world.indexes.live)) == 2
    assert book.world.lock is None


@pytest.mark.promise("D3")
def test_slots_are_not_exceeded() -> None:
    book = Playbook(READ, issues=("t-1", "t-2", "t-3"), config=settings(max_concurrent_runs=2)).looked()
    assert len(list(book.world.indexes.live)) == 2
    assert book.flow("t-3").code == "slot"


@pytest.mark.promise("D11")
def test_while_the_machine_is_behind_one_run_is_under_way_and_never_none() -> None:
    book = Playbook(READ, issues=("t-1", "t-2"), config=settings(max_concurrent_runs=3))
    book >> resources.MachineSeen("busy", "processes waited for a processor in 97 % of the last minute")
    book.looked()
    assert len(list(book.world.indexes.live)) == 1, "the last run is not held"
    waiting = next(name for name in ("t-1", "t-2") if name not in book.world.indexes.live)
    shown = account(book.world, waiting)
    assert (shown.state, shown.code) == ("time", "machine_busy")
    assert "97 %" in shown.reason
    assert not is_idle(book.world)
    book >> resources.MachineSeen("ok") << like(issues.IssueTaken, issue=waiting) << ...
    away = Playbook(READ, issues=("t-1", "t-2"), config=settings(max_concurrent_runs=3, hold_when_busy=False))
    away >> resources.MachineSeen("busy", "late")
    assert len(list(away.looked().world.indexes.live)) == 2


@pytest.mark.promise("D11")
def test_a_machine_is_busy_and_no_longer_at_different_thresholds() -> None:
    book = Playbook(READ)
    assert machine_read(book.world, 94.9, 0.9) == []
    assert machine_read(book.world, None, 1.0) == [resources.MachineSeen("busy", "ashep's own timers are 1.0 s late")]
    book >> machine_read(book.world, 95.0, 0.0)
    assert machine_read(book.world, 80.0, 0.0) == machine_read(book.world, None, 0.3) == []
    assert machine_read(book.world, 79.9, 0.29) == [resources.MachineSeen("ok")]
    assert machine_read(book.world, None, 0.0) == [resources.MachineSeen("ok")]


@pytest.mark.promise("D6")
def test_a_tree_with_foreign_changes_holds_write_runs_but_not_reads() -> None:
    dirty = delivery.TreeSeen(Tree(True, "c0ffee", (("a.py", "11"),), ("new.txt",)))
    book = Playbook()
    book.made.turn(dirty)
    assert hold(book) == "tree_dirty"
    assert "a.py" in book.flow().why
    reading = Playbook(READ)
    reading.made.turn(dirty)
    assert hold(reading) == ""
    careless = Playbook(config=settings(allow_dirty=True))
    careless.made.turn(dirty)
    assert hold(careless) == ""
    book >> delivery.TreeSeen(Tree(True, "c0ffee", (), ("new.txt",)))  # untracked files hold nothing
    book << issues.IssueTaken
    assert book.left


@pytest.mark.promise("D6")
def test_changes_found_just_before_a_write_run_withdraw_it_without_cost() -> None:
    book = Playbook()
    book.made.look()
    book >> book.next() << ...
    read = book.dropped()
    foreign = Tree(True, "c0ffee", (("a.py", "11"),))
    book >> delivery.TreeSeen(foreign, "before", "t-1", read.run) << like(runs.RunWithdrawn, code="tree_dirty")  # type: ignore[union-attr]
    assert book
    assert (book.flow().counters.cycle_runs, book.flow().failures) == (0, 0)
    book >> delivery.TreeSeen(Tree(True, "c0ffee")) << like(runs.RunPlanned, run="t-1/implement.1.2") << c.WriteIssue
    assert book >> book.next() << c.ReadTree


@pytest.mark.promise("D6")
def test_what_our_own_runs_left_is_not_foreign() -> None:
    book = Playbook().looked()
    run = book.run().id
    book >> book.reports() << ...
    book.dropped()
    (book >> delivery.TreeSeen(Tree(True, "c0ffee", (("a.py", "11"),)), "after", "t-1", run)).answered()
    assert dict(book.world.left_over.items()) == {"a.py": ("11", "t-1")}
    book.made.turn(delivery.TreeSeen(Tree(True, "c0ffee", (("a.py", "12"),))))  # and then somebody edits it
    assert not list(book.world.left_over)


def test_a_look_while_a_run_writes_forgets_nothing_that_runs_left() -> None:
    book = Playbook().looked()
    run = book.run().id
    book >> book.reports() << ...
    book.dropped()
    left = Tree(True, "c0ffee", (("a.py", "11"),))
    (book >> delivery.TreeSeen(left, "after", "t-1", run)).answered()
    book.made.turn(book.seen(add=["phase:implement"], drop=["phase:review"]))
    book.left = []
    while book.made.jobs and not isinstance(book.made.jobs[0], c.ReadTree):
        book >> book.next() << ...
    book.dropped()
    assert book >> delivery.TreeSeen(left, "before", "t-1", book.run().id) << c.OpenSession
    assert book >> delivery.TreeSeen(Tree(True, "c0ffee", (("a.py", "12"),)))
    assert list(book.world.left_over) == ["a.py"]


@pytest.mark.promise("E3")
@pytest.mark.parametrize("state", ["away", "unauthorized"])
def test_nothing_is_taken_while_the_agent_server_is_away(state: str) -> None:
    book = Playbook()
    book.made.turn(resources.RunnerSeen(state, "no"))  # type: ignore[arg-type]
    assert hold(book) == f"runner_{state}"
    assert account(book.world, "t-1").state == "time"
    book >> up() << issues.IssueTaken
    assert book.left


@pytest.mark.promise("E3")
def test_nothing_is_taken_while_the_tracker_is_away() -> None:
    book = Playbook()
    view = book.made.tracker["t-1"]
    book.made.turn(tracker.IssueSeen("t-1", view, 7), tracker.ReadySeen((), 7), tracker.TrackerLost("no bd"))
    assert book >> tracker.ReadySeen(("t-1",), book.world.seq) << like(issues.IssueHeld, code="tracker_away")
    book >> tracker.TrackerSeen("ashep-host-1a2b", "t", "1.3.0") << issues.IssueTaken
    assert book.left


@pytest.mark.promise("E3")
def test_after_a_start_the_actor_is_known_before_the_tracker_was_seen() -> None:
    book = Playbook().until("review")
    view = book.made.tracker["t-1"]
    book >> [resources.DaemonStarted(1, "0.1.0"), tracker.IssueSeen("t-1", view, book.world.seq)]
    assert book.flow().stage == "work"
    assert book.world.tracker_error


@pytest.mark.promise("D8")
def test_only_the_issues_that_were_asked_for_and_no_more_than_was_asked() -> None:
    book = Playbook(READ, issues=("t-1", "t-2"), only=("t-2",))
    assert hold(book) == "not_asked"
    assert book.flow("t-2").stage == "work"
    book = Playbook(READ, issues=("t-1", "t-2", "t-3"), max_issues=2)
    assert hold(book, "t-3") == "max_issues"
    assert [book.flow(name).stage for name in ("t-1", "t-2")] == ["work", "work"]


def test_a_server_that_lists_no_such_agent_holds_with_the_reason_against_each() -> None:
    book = Playbook(READ)
    book.made.turn(up(agents=("build",)))
    assert hold(book) == "no_agent"
    assert "critic: the agent server lists no agent plan" in book.flow().why


def test_a_server_that_lists_no_model_at_all_begins_nothing() -> None:
    """All providers are disabled, or none has a login: an agent without a model of its own would begin no turn."""
    team = TEAM.model_copy(update={"agents": (JUDGE,)})
    book = Playbook(READ, team)
    book.made.turn(up(models=(), default=None))
    assert hold(book) == "no_agent"
    assert "judge: the agent server lists no model at all" in book.flow().why
    book.made.turn(up())
    assert hold(book) == ""


def test_no_agent_that_fits_holds_until_the_files_change() -> None:
    book = Playbook(policy_of(Phase(name="browsertest")))
    assert hold(book) == "no_agent"
    more = TEAM.agents[1].model_copy(update={"id": "clicker", "capabilities": ("browsertest",)})
    team = TEAM.model_copy(update={"agents": (*TEAM.agents, more)})
    book >> adopted(team) << issues.IssueTaken << issues.CycleBegan << issues.PhaseEntered
    book << like(runs.RunPlanned, agent="clicker")
    assert book << c.ClaimIssue


def test_nothing_is_dispatched_before_the_files_are_adopted() -> None:
    assert POLICY_FREE.policies is None
    assert dispatch_all(POLICY_FREE) == []


@pytest.mark.promise("D7")
def test_a_hold_is_a_fact_only_when_its_code_changes() -> None:
    book = Playbook(READ, issues=("t-1", "t-2"), config=settings(max_concurrent_runs=1)).looked()
    assert book.flow("t-2").code == "slot"
    assert dispatch_all(book.world) == []


@pytest.mark.promise("D8")
def test_a_phase_of_an_issue_that_was_not_asked_for_waits_for_a_daemon_that_is() -> None:
    book = Playbook(issues=("t-1", "t-2")).until("implement")
    book.made.turn(
        resources.DaemonStarted(2, "0.1.0", only=("t-2",)), tracker.TrackerSeen("ashep-host-1a2b", "t", "1.3.0"), up()
    )
    book.made.turn(book.reports())
    while book.flow().run and not book.run().settled:
        book.made.turn(book.next())
    assert (book.flow().phase, book.flow().code) == ("review", "not_asked")
    assert book.run().phase == "implement"


def test_a_run_whose_server_is_away_waits_for_it_and_is_not_said_to_run() -> None:
    book = Playbook().until("implement")
    assert account(book.world, "t-1").state == "running"
    book.made.turn(resources.RunnerSeen("away", "connection refused"))
    told = account(book.world, "t-1")
    assert (told.state, told.code) == ("time", "runner_away")
    assert "connection refused" in told.reason


def test_what_is_ready_is_told_by_difference() -> None:
    made = MadeUp().begin()
    made.turn(tracker.ReadySeen(("t-1", "t-2"), made.world.seq))
    assert {*made.world.ready} == {"t-1", "t-2"}, "journals of the first days have it so"
    changed = ready_read(made.world, ("t-3", "t-2"), made.world.seq)
    assert changed == [tracker.ReadyChanged(("t-3",), ("t-1",), made.world.seq)]
    made.turn(*changed)
    assert {*made.world.ready} == {"t-2", "t-3"}
    assert ready_read(made.world, ("t-3", "t-2"), made.world.seq) == [], "nothing differs"
    made.turn(tracker.ChangeHinted())
    assert not made.world.ready_fresh
    made.turn(*ready_read(made.world, ("t-2", "t-3"), made.world.seq))
    assert made.world.ready_fresh
