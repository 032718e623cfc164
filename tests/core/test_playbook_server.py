"""Playbooks of the agent server: absences burn nothing, failures are waited out, one that grows is begun anew."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ashep.core.analysis.issue_status import account, has_patience, is_idle, obstacle
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs
from ashep.core.facts import vocabulary as e
from ashep.core.policy.base_types import Bytes
from ashep.core.policy.policies import Phase, Retry
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import OpencodeSettings, Runners, Settings
from ashep.core.reconcile.observe import replaced_by, runner_read
from ashep.core.resources.agent_server import DRAIN, LONGEST_DELAY, SPACING, STABLE, is_due, memory_read
from ashep.core.resources.due_times import next_due
from ashep.core.state.flow import Flow, wall_time
from ashep.core.state.runner_state import get_server
from ashep.core.state.world import World, put
from tests.core import given
from tests.core.given import policy_of, up
from tests.core.playbook import Playbook, like

READ = policy_of(
    Phase(name="review", timeout=timedelta(minutes=30), retry=Retry(max_attempts=1)), Phase(name="arbitrate")
)
AWAY = resources.RunnerSeen("away", "no answer")
GIB = 1024**3
LIMIT = Bytes(4 * GIB)


def seen(book: Playbook, now: resources.RunnerSeen) -> list[e.Fact]:
    return runner_read(book.world, now, book.now)


def big(book: Playbook, gib: float = 5) -> list[e.Fact]:
    """What a look at the server's memory says."""
    return memory_read(book.world, book.world.seen[OPENCODE].instance, int(gib * GIB), book.now)


def limited(limit: Bytes | None, *, managed: bool = True) -> Settings:
    url = None if managed else "http://localhost:4096"
    keys = {"managed": managed, "url": url, "memory_limit": limit and str(limit)}
    return Settings(runners=Runners(opencode=OpencodeSettings.model_validate(keys)))


# --- away ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X11")
def test_an_absence_is_no_time_of_the_run_and_burns_no_attempt() -> None:
    book = Playbook(READ, config=given.settings(managed=False)).until("review")
    deadline, worked = book.run().deadline, wall_time(book.flow(), book.now)
    assert book >> AWAY
    for timer in book.later(3600):
        assert book >> timer
    assert account(book.world, "t-1").code == "runner_away"
    assert book.run().watch.overdue
    book >> up()
    assert not book.run().watch.overdue
    assert deadline is not None
    assert book.run().deadline == deadline + timedelta(hours=1)
    assert wall_time(book.flow(), book.now) == worked
    assert book >> book.turn("running")
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << issues.PhaseEntered << runs.RunPlanned
    book << c.WriteIssue


@pytest.mark.promise("L2")
def test_what_waits_for_a_server_with_patience_left_is_waited_for() -> None:
    """One that is alive, and one that has not failed too often; not one that only a person can help."""
    book = Playbook(READ)
    book >> resources.RunnerSeen("away", "did not answer within 40 s, alive", patient=True)
    book.looked()
    assert has_patience(book.world)
    assert "alive" in obstacle(book.world)
    book >> seen(book, resources.RunnerSeen("away", "it ended"))
    assert not has_patience(book.world)
    for _ in range(9):
        book.left = []
        book >> resources.ServerFailed("", "it ended")
        assert has_patience(book.world)
    book.left = []
    book.made.now += timedelta(minutes=2)
    book >> resources.ServerFailed("", "it ended")
    assert not has_patience(book.world)
    book.left = []
    book >> seen(book, resources.RunnerSeen("unauthorized", "it wants another password"))
    assert not has_patience(book.world)


def test_why_it_is_away_is_told_as_it_is_by_now() -> None:
    """The hold is written once, often before the server was looked at; a refused configuration is known only then."""
    why = "the agent server does not answer"
    held = Flow(given.issue("t-1"), code="runner_away", why=f"{why}: what it was at first")
    world = put(World(seen=given.seen(resources.RunnerSeen("away", "opencode.json: 400"))), "t-1", held)
    assert account(world, "t-1").reason == f"{why}: opencode.json: 400"
    assert obstacle(world) == f"t-1 waits: {why}: opencode.json: 400"
    assert account(replace(world, seen=given.seen()), "t-1").reason == held.why


def test_a_machine_that_sleeps_while_the_server_is_away_moves_a_deadline_once() -> None:
    book = Playbook(READ).looked()
    assert book >> book.turn("running")
    deadline = book.run().deadline
    assert deadline is not None
    book >> AWAY
    book.made.now += timedelta(hours=11)
    book >> resources.ClockJumped(timedelta(hours=11))
    book.made.now += timedelta(seconds=30)
    book >> up()
    assert book.run().deadline == deadline + timedelta(hours=11, seconds=30)


def test_a_prompt_whose_server_went_away_is_given_its_time_again() -> None:
    book = Playbook(READ, config=given.settings(managed=False)).until("review")
    book >> AWAY
    for timer in book.later(40):
        book >> timer
    assert book.run().watch.probation == "suspect"
    book >> up()
    assert book.run().watch.probation == "no"
    assert book >> book.turn("stored")


@pytest.mark.promise("X11")
def test_a_phase_that_waits_for_a_server_uses_up_no_time_of_its_cycle() -> None:
    policy = policy_of(Phase(name="review"), Phase(name="arbitrate"), max_wall_time=timedelta(hours=2))
    book = Playbook(policy).until("review")
    book >> [AWAY]
    book >> book.reports() << like(runs.RunEnded) << issues.PhaseEntered << like(issues.IssueHeld, code="runner_away")
    book.answered()
    worked = wall_time(book.flow(), book.now)
    book.made.now += timedelta(hours=9)
    book >> up() << like(runs.RunPlanned, phase="arbitrate")
    assert wall_time(book.flow(), book.now) == worked


def test_a_cycle_that_began_while_the_server_was_away_is_not_older_than_its_absence() -> None:
    book = Playbook(READ).until("review")
    (book >> issues.IssueCancelled("t-1", "ann")).answered()
    book >> AWAY
    book.made.now += timedelta(hours=9)
    book >> book.seen(drop=["ashep:parked"], add=["ashep:paused"]) << issues.CycleBegan << issues.PhaseEntered
    book << like(issues.IssueHeld, code="paused") << c.WriteIssue
    book.made.now += timedelta(hours=1)
    book >> up()
    assert wall_time(book.flow(), book.now) == timedelta()


@pytest.mark.promise("X11")
def test_a_server_that_comes_and_goes_is_one_fact_with_a_count() -> None:
    """It answers the look at it and fails the next read, each half second: 100 times in 50 s."""
    book = Playbook(READ, config=given.settings(managed=False)).until("review")
    told = list[resources.RunnerSeen]()
    for _ in range(1200):
        for state in (resources.RunnerSeen("away", f"no answer {len(told)}"), up()):
            for fact in seen(book, state):
                assert isinstance(fact, resources.RunnerSeen)
                told.append(fact)
                book >> fact << ...
        book.made.now += timedelta(seconds=0.5)
    assert len(told) < 2 * (7 + 600 / 60 + 1)
    backs = [fact.times for fact in told if fact.state == "up"]
    assert backs == list(range(1, len(backs) + 1))
    book.made.now += timedelta(seconds=61)
    for fact in (*seen(book, up()), AWAY):  # now it was well for more than a minute
        book >> fact
    book.made.now += timedelta(seconds=61)
    book >> seen(book, up())
    book.made.now += timedelta(seconds=61)
    book >> AWAY
    (back,) = seen(book, up())
    assert isinstance(back, resources.RunnerSeen)
    assert back.times == 1, "and it is back at once"


@pytest.mark.promise("X11")
def test_another_error_of_a_server_that_is_away_is_no_news() -> None:
    book = Playbook(READ)
    book >> AWAY
    assert seen(book, resources.RunnerSeen("away", "connection refused")) == []
    assert seen(book, resources.RunnerSeen("unauthorized", "wrong password")) != []


@pytest.mark.promise("E3")
def test_another_version_of_a_server_is_told_once_and_everything_goes_on() -> None:
    book = Playbook(READ, config=given.settings(managed=False)).until("review")
    old = replace(up(), detail="1.18.33")
    book >> old >> AWAY
    book.made.now += timedelta(minutes=2)
    new = replace(
        up("server-2"),
        detail="1.19.0",
        replaced=replaced_by(get_server(book.world.servers, OPENCODE).version, "1.19.0", "1.18.33"),
    )
    assert new.replaced == "1.19.0 answers where 1.18.33 did; ashep is tried with 1.18.33"
    run = book.run().id
    for fact in seen(book, new):
        book >> fact
    assert book.run().id == run, "what ran goes on"
    assert replaced_by(get_server(book.world.servers, OPENCODE).version, "1.19.0", "1.18.33") == ""
    assert seen(book, replace(new, replaced="")) == [], "and it is told once"
    assert replaced_by("1.19.0", "1.18.33", "1.18.33") == "1.18.33 answers where 1.19.0 did"
    assert replaced_by("", "1.18.33", "1.18.33") == "", "the first one replaces nothing"


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("X9")
def test_a_server_that_dies_at_once_each_time_is_started_at_growing_intervals() -> None:
    book = Playbook(READ)
    waited = list[float]()
    for life in range(2, 16):
        book >> seen(book, up(f"server-{life}"))
        assert isinstance(book.left[0], resources.ServerRestartPlanned)
        waited.append((book.left[0].due - book.now).total_seconds())
        book.left = []
        if waited[-1]:
            assert get_server(book.world.servers, OPENCODE).start_after == next_due(book.world)
            assert book >> book.later(waited[-1])
        assert get_server(book.world.servers, OPENCODE).start_after is None
    assert waited == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]
    assert max(waited) == LONGEST_DELAY.total_seconds()


@pytest.mark.promise("X9")
def test_a_server_that_does_not_start_counts_as_failed_and_one_that_lasts_is_forgiven() -> None:
    book = Playbook(READ)
    book >> [resources.ServerFailed("server-1", "gone"), AWAY] << like(resources.ServerRestartPlanned, failures=1)
    book >> resources.ServerFailed("", "did not start")
    book << like(resources.ServerRestartPlanned, failures=2, why="did not start")
    assert book >> [*book.later(1), *seen(book, up("server-2"))]
    book.made.now += STABLE
    assert book >> seen(book, up("server-3")) << like(resources.ServerRestartPlanned, failures=1)


def test_an_attached_server_and_one_that_ashep_ended_itself_do_not_fail() -> None:
    book = Playbook(READ, config=given.settings(managed=False))
    assert seen(book, up("server-2")) == [up("server-2")]
    book = Playbook(READ)
    book >> resources.ServerEnded("server-1", "idle")
    assert seen(book, up("server-2")) == [up("server-2")]


def test_a_new_daemon_knows_nothing_of_earlier_failures() -> None:
    book = Playbook(READ)
    for _ in range(5):
        book >> resources.ServerFailed("", "did not start") << ...
    assert get_server(book.world.servers, OPENCODE).start_after is not None
    book.made.crash()
    assert (
        get_server(book.world.servers, OPENCODE).failures,
        get_server(book.world.servers, OPENCODE).start_after,
    ) == (
        0,
        None,
    )


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X12")
def test_a_server_that_grew_is_drained_and_begun_anew_and_everything_goes_on() -> None:
    book = Playbook(READ, issues=("t-1", "t-2")).until("review").looked()
    book >> big(book)
    assert book << like(
        resources.RecycleWanted, at_once=False, until=book.now + DRAIN, why="it holds 5.00 GiB, and its limit is 4GiB"
    )
    assert big(book) == [], "it is told once"
    assert not is_due(book.world, OPENCODE)
    for name in ("t-1", "t-2"):
        book >> book.reports(name=name) << like(runs.RunEnded) << issues.PhaseEntered
        assert book << like(issues.IssueHeld, issue=name, code="recycling") << c.WriteIssue
        book.answered()
    assert is_due(book.world, OPENCODE)
    assert account(book.world, "t-1").state == "time"
    assert not is_idle(book.world)
    book >> [resources.ServerEnded("server-1", "recycled"), up("server-2")]
    book << like(runs.RunPlanned, issue="t-1") << like(runs.RunPlanned, issue="t-2")
    assert get_server(book.world.servers, OPENCODE).recycling is None


def test_no_issue_is_taken_while_the_server_is_drained_and_that_is_not_idle() -> None:
    book = Playbook(READ)
    book >> [*big(book)]
    book.looked()
    assert account(book.world, "t-1").code == "recycling"
    assert is_due(book.world, OPENCODE)
    assert not is_idle(book.world)


@pytest.mark.promise("X12")
def test_a_turn_that_outlasts_the_drain_is_left_alone_and_others_begin_again() -> None:
    book = Playbook(READ, issues=("t-1", "t-2")).until("review", "t-1")
    book >> big(book) << resources.RecycleWanted
    book >> book.later(DRAIN.total_seconds()) << ...
    assert get_server(book.world.servers, OPENCODE).recycling is None
    book.looked()
    assert not book.run("t-1").ended
    assert big(book) == []
    book.made.now += SPACING
    assert big(book) == [resources.ServerMemorySeen("server-1", 5 * GIB, LIMIT)], "it still is so large"
    assert book >> big(book) << resources.RecycleWanted


@pytest.mark.promise("X12")
def test_at_twice_the_limit_it_is_begun_anew_at_once_and_turns_begin_once_more() -> None:
    book = Playbook(READ).until("review")
    book >> big(book) << like(resources.RecycleWanted, at_once=False)
    book >> big(book, 8) << like(resources.RecycleWanted, at_once=True)
    assert is_due(book.world, OPENCODE)
    book.made.instance = 2
    assert book >> [resources.ServerEnded("server-1", "recycled"), up("server-2")]
    book >> book.turn("incomplete") << runs.TurnDied << like(c.SendPrompt, again=True)
    assert book.flow().failures == 0


@pytest.mark.promise("X12")
def test_a_server_that_needs_more_than_its_limit_does_not_keep_work_from_going_on() -> None:
    book = Playbook(READ)
    book >> big(book, 9) << like(resources.RecycleWanted, at_once=True)
    book >> [resources.ServerEnded("server-1", "recycled"), up("server-2")]
    assert big(book, 9) == [resources.ServerMemorySeen("server-2", 9 * GIB, LIMIT)]
    assert book >> big(book, 9)
    assert not is_due(book.world, OPENCODE)
    book.made.now += SPACING
    assert book >> big(book, 9) << resources.RecycleWanted


def test_a_server_that_dies_while_it_is_drained_is_not_ended_once_more() -> None:
    book = Playbook(READ).until("review")
    book >> big(book) << resources.RecycleWanted
    book >> [AWAY, *seen(book, up("server-2"))]
    assert not is_due(book.world, OPENCODE)
    assert not book.later(DRAIN.total_seconds() + 1) or get_server(book.world.servers, OPENCODE).recycling is None


def test_a_drain_survives_a_restart_of_the_daemon() -> None:
    book = Playbook(READ).until("review")
    book >> big(book) << resources.RecycleWanted
    book.made.crash()
    assert get_server(book.world.servers, OPENCODE).recycling is not None
    book >> book.reports() << runs.RunEnded << issues.PhaseEntered << like(issues.IssueHeld, code="recycling")


def test_no_limit_a_server_of_others_and_a_small_one() -> None:
    for config, gib in ((limited(None), 99), (limited(LIMIT, managed=False), 99), (limited(LIMIT), 3.9)):
        assert big(Playbook(READ, config=config), gib) == []


def test_old_timers_of_the_server_are_ignored() -> None:
    book = Playbook(READ)
    book >> big(book) << resources.RecycleWanted
    assert book >> [resources.TimerDue("recycle:", given.T0), resources.TimerDue("server:", given.T0)]
    assert get_server(book.world.servers, OPENCODE).recycling is not None
