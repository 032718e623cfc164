"""Playbooks of a project with several runners: each is up or away by itself, and keeps its own sessions."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_held_up
from ashep.core.facts import commands as c
from ashep.core.facts import resources, runs
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Phase, Retry
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Runners, Settings
from ashep.core.resources.agent_server import hold, memory_read
from ashep.core.state.run import runner_of
from tests.core.given import BUILDER, policies, policy_of, settings, up
from tests.core.playbook import Playbook

CLAUDE = "claude"
MAKER = Agent(
    id="maker", capabilities=("implement",), read_write="write", priority=99,
    runner=RunnerChoice(type=CLAUDE, provider="anthropic", model="large"),
)  # fmt: skip
JUDGE = Agent(id="judge", capabilities=("review", "extract"))
TEAM = Agents(version=1, agents=(MAKER, JUDGE))
LANDS = policies(policy_of(Phase(name="implement"), Phase(name="review", access="read")))


def config(**more: Any) -> Settings:
    """Settings with a second runner."""
    runners = Runners.model_validate({CLAUDE: more, OPENCODE: {}})
    return settings(max_concurrent_runs=9, lock_work_tree=False, allow_dirty=True).model_copy(
        update={"runners": runners}
    )


def claude(state: str = "up", **more: Any) -> resources.RunnerSeen:
    """See the second runner."""
    if state != "up":
        return resources.RunnerSeen(state, "no answer", runner=CLAUDE, **more)  # type: ignore[arg-type]
    return up("claude-1", runner=CLAUDE, agents=(), models=(), default=None, exhaustive=False, **more)


def book_of(*names: str, team: Agents = TEAM, files: Settings | None = None) -> Playbook:
    return Playbook(LANDS, team, files or config(), names or ("t-1",))


def planned(book: Playbook) -> list[tuple[str, str, str]]:
    return [(plan.issue, plan.phase, plan.runner) for plan in book.bodies(runs.RunPlanned)]


def test_a_configuration_that_a_runner_refuses_is_a_hold_with_its_words() -> None:
    book = book_of("t-1", "t-2")
    book.made.turn(resources.RunnerSeen("misconfigured", "/p/opencode.json: permission.bash: no", runner=CLAUDE))
    book.looked()
    assert planned(book) == []
    for name in ("t-1", "t-2"):
        found = account(book.world, name)
        assert (found.code, found.state) == ("runner_misconfigured", "time")
        assert found.reason == (
            "the runner claude refuses its configuration, mend that: /p/opencode.json: permission.bash: no"
        )
    assert is_held_up(book.world)
    book.made.turn(claude())
    assert len(planned(book)) == 2


@pytest.mark.promise("D10")
def test_a_runner_that_is_away_holds_its_own_phases_and_no_others() -> None:
    book = book_of("t-1", "t-2")
    book.made.turn(claude("away"))
    book.looked()
    assert planned(book) == []
    found = account(book.world, "t-1")
    assert (found.code, found.reason) == ("runner_away", "the runner claude does not answer: no answer")
    book.made.turn(claude())
    assert [plan[1:] for plan in planned(book)] == [("implement", CLAUDE)] * 2
    book.answered()
    (opened, *_) = book.bodies(c.OpenSession)
    assert opened.runner == CLAUDE
    assert {runner_of(one.session) for one in book.bodies(runs.SessionOpened)} == {CLAUDE}
    book.made.turn(resources.RunnerSeen("away", "no answer"))  # the agent server's, which nothing waits for
    assert account(book.world, "t-1").state == "running"
    book.made.turn(claude("away"))
    assert account(book.world, "t-1").code == "runner_away"


@pytest.mark.promise("D10")
def test_what_is_away_moves_the_times_of_its_own_runs() -> None:
    book = book_of("t-1")
    book.made.turn(claude())
    book.looked().answered()
    run = book.flow().run
    assert run is not None
    assert run.deadline is not None
    book.made.turn(resources.RunnerSeen("away", "no answer"))
    book.made.now += timedelta(minutes=5)
    book.made.turn(up())
    after = book.flow().run
    assert after is not None
    assert after.deadline == run.deadline, "the agent server's absence is none of its"
    book.made.turn(claude("away"))
    book.made.now += timedelta(minutes=5)
    book.made.turn(claude())
    after = book.flow().run
    assert after is not None
    assert after.deadline == run.deadline + timedelta(minutes=5)


def test_a_session_of_one_runner_is_never_gone_on_in_by_another() -> None:
    other = BUILDER.model_copy(update={"priority": 1})
    team = Agents(version=1, agents=(MAKER, other, JUDGE))
    maker = Phase(name="implement", session="reuse", retry=Retry(max_attempts=3))
    rules = policies(policy_of(maker, Phase(name="review", access="read")))
    book = Playbook(rules, team, config(), ("t-1",))
    book.made.turn(claude())
    book.looked().answered()
    session = book.flow().run
    assert session is not None
    assert session.session is not None
    assert session.session_runner == CLAUDE
    files = Agents(version=1, agents=(other, JUDGE))
    book.made.turn(resources.Adopted("agents", files.model_dump_json(), "ab" * 32, book.world.rules))
    book >> book.reports("failed") << ...
    book.answered() >> book.later(3600) << ...
    book.answered()
    last = book.bodies(runs.RunPlanned)[-1]
    assert (last.agent, last.runner, last.reuse) == (other.id, OPENCODE, None)


def test_another_runner_reads_the_session_of_a_run_whose_outcome_is_missing() -> None:
    book = book_of("t-1")
    book.made.turn(claude())
    book.looked().answered()
    for _ in range(2):
        book >> book.turn("finished", block="no outcome") << ...
        book.answered()
    opened = book.bodies(c.OpenSession)[-1]
    assert (opened.runner, opened.access) == (OPENCODE, "read")
    run = book.flow().run
    assert run is not None
    assert (run.runner, run.session_runner) == (CLAUDE, OPENCODE)


@pytest.mark.promise("D10")
def test_an_agent_whose_runner_is_at_its_cap_is_passed_over_for_one_of_another() -> None:
    team = Agents(version=1, agents=(MAKER, BUILDER, JUDGE))
    book = book_of("t-1", "t-2", "t-3", team=team, files=config(max_runs=1))
    book.made.turn(claude())
    book.looked()
    assert [runner for _, _, runner in planned(book)] == [CLAUDE, OPENCODE, OPENCODE]


def test_only_the_server_that_grew_is_begun_anew() -> None:
    book = book_of("t-1")
    book.made.turn(claude())
    limit = book.world.settings.runners.opencode.memory_limit
    assert limit is not None
    book.made.turn(*memory_read(book.world, "server-1", limit + 1, book.now))
    assert (hold(book.world, OPENCODE) is not None, hold(book.world, CLAUDE)) == (True, None)
    book.looked()
    assert [plan[1:] for plan in planned(book)] == [("implement", CLAUDE)]


def test_a_process_that_is_gone_is_known_to_be_dead_on_a_kind_that_has_one_for_each_turn() -> None:
    world = book_of("t-1").world
    assert (world.dies(CLAUDE), world.dies(OPENCODE), world.dies("mine")) == (True, True, False)


@pytest.mark.promise("P10")
def test_a_turn_that_a_person_works_beside_is_stopped_where_that_stops_nothing_of_theirs() -> None:
    book = book_of("t-1")
    book.made.turn(claude())
    book.looked()
    assert book.run().session_runner == CLAUDE
    book >> book.turn("running", people=("msg_ann",))
    (ended,) = book.bodies(runs.RunEnded)
    assert (ended.state, ended.abort) == ("aborted", True)
    (stop,) = book.bodies(c.StopTurn)
    assert runner_of(stop.session) == CLAUDE
    assert book.bodies(runs.SessionTaken)
    assert [book.world.apart(one) for one in (CLAUDE, OPENCODE, "mine")] == [True, False, False]
