"""Playbooks of caps on runs at one time: of a phase, a runner, an agent, a provider."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.budgets import Budgets, ProviderBudget
from ashep.core.policy.policies import Phase, Policies
from ashep.core.policy.settings import OpencodeSettings, Runners, Settings
from ashep.core.state.holds import CAPS
from tests.core.given import CRITIC, JUDGE, adopted, policies, policy_of, settings
from tests.core.playbook import Playbook, like

REVIEW = Phase(name="review")
PAIR = Agents(version=1, agents=(CRITIC.model_copy(update={"priority": 5}), JUDGE))
"""The critic (provider other) goes first, the judge uses the server's default (acme)."""
ALONE = Agents(version=1, agents=(CRITIC,))
BUGS = policy_of(REVIEW).model_copy(update={"match": None})
THREE = ("t-1", "t-2", "t-3")


def capped(agents: Agents, **most: int) -> Agents:
    """The agents, of whom some have a cap."""
    made = (agent.model_copy(update={"max_runs": most.get(agent.id)}) for agent in agents.agents)
    return Agents(version=1, agents=tuple(made))


def config(runner: int | None = None, worker: int = 9, **providers: int) -> Settings:
    """Settings with caps of the runner and of providers."""
    budgets = {name: ProviderBudget(max_runs=most) for name, most in providers.items()}
    made = settings(max_concurrent_runs=worker)
    opencode = OpencodeSettings(max_runs=runner)
    return made.model_copy(update={"budgets": Budgets(providers=budgets), "runners": Runners(opencode=opencode)})


def phases(most: int | None) -> Policies:
    """Two policies with one phase each, of the same name; one has a cap."""
    return policies(policy_of(REVIEW.model_copy(update={"max_runs": most})), bugs=BUGS)


def book_of(*names: str, rules: Policies | None = None, team: Agents = PAIR, files: Settings | None = None) -> Playbook:
    return Playbook(rules or policies(policy_of(REVIEW)), team, files or config(), names or THREE).looked()


def told(book: Playbook, name: str) -> tuple[str, str, str]:
    """State, code and sentence of an issue that waits."""
    found = account(book.world, name)
    return found.state, found.code, found.reason


def agents_of(book: Playbook) -> dict[str, str]:
    return {plan.issue: plan.agent for plan in book.bodies(runs.RunPlanned)}


def ends(book: Playbook, name: str) -> Playbook:
    book.left = []
    return book >> book.reports(name=name)


# --- one after the other --------------------------------------------------------------------------------------------


@pytest.mark.promise("D10")
def test_an_agent_at_its_cap_is_passed_over_for_the_next_and_then_it_is_waited_for() -> None:
    book = book_of(team=capped(PAIR, critic=1, judge=1))
    assert agents_of(book) == {"t-1": "critic", "t-2": "judge"}
    (second,) = (plan for plan in book.bodies(runs.RunPlanned) if plan.issue == "t-2")
    assert dict(second.others)["critic"] == "the agent critic has 1 run under way, of 1 at most"
    why = "the agent critic has 1 run under way, of 1 at most, and no other agent can take review"
    assert told(book, "t-3") == ("time", "cap_agent", why)
    assert book.flow("t-3").held_by == "critic"
    assert not is_idle(book.world)
    (
        ends(book, "t-2")
        << runs.RunEnded
        << issues.IssueFinished
        << like(issues.IssueTaken, issue="t-3")
        << issues.CycleBegan
    )
    book << issues.PhaseEntered << like(runs.RunPlanned, issue="t-3", agent="judge")


@pytest.mark.promise("D10")
def test_a_provider_at_its_cap_is_passed_over_also_where_its_outage_would_be_waited_for() -> None:
    book = book_of(team=PAIR, files=config(other=1, acme=1))
    assert agents_of(book) == {"t-1": "critic", "t-2": "judge"}
    why = "the provider other has 1 run under way, of 1 at most, and no other agent can take review"
    assert told(book, "t-3") == ("time", "cap_provider", why)
    (
        ends(book, "t-1")
        << runs.RunEnded
        << issues.IssueFinished
        << like(issues.IssueTaken, issue="t-3")
        << issues.CycleBegan
    )
    book << issues.PhaseEntered << like(runs.RunPlanned, issue="t-3", agent="critic")


@pytest.mark.promise("D10")
def test_a_phase_at_its_cap_waits_and_keeps_no_other_waiting() -> None:
    book = Playbook(phases(2), PAIR, config(), ())
    for place, name in enumerate(("t-1", "t-2", "t-3", "t-4")):
        book.made.open(name, *(("policy:bugs",) if place == 3 else ()), priority=place)
    book.looked()
    assert set(agents_of(book)) == {"t-1", "t-2", "t-4"}, "a policy of another name has a phase of its own"
    why = "the phase standard/review has 2 runs under way, of 2 at most"
    assert told(book, "t-3") == ("time", "cap_phase", why)
    ends(book, "t-4").answered()
    assert book.flow("t-3").code == "cap_phase"
    ends(book, "t-1") << runs.RunEnded << issues.IssueFinished << like(issues.IssueTaken, issue="t-3")


@pytest.mark.promise("D10")
def test_a_runner_at_its_cap_waits() -> None:
    book = book_of(files=config(runner=2))
    assert told(book, "t-3") == (
        "time",
        "cap_runner",
        "the runner opencode has 2 runs under way, of 2 at most, and no other agent can take review",
    )
    ends(book, "t-1") << runs.RunEnded << issues.IssueFinished << like(issues.IssueTaken, issue="t-3")


def test_a_runner_of_the_users_own_has_its_own_cap() -> None:
    mine = Runners.model_validate({"opencode": {"max_runs": 5}, "mine": {"type": "a:B", "max_runs": 2}})
    assert (mine.max_runs("opencode"), mine.max_runs("mine"), Runners().max_runs("opencode")) == (5, 2, None)


@pytest.mark.promise("D10", "D3")
def test_a_wanted_phase_goes_before_ready_issues_and_those_by_priority_when_a_cap_is_free() -> None:
    rules = policies(
        policy_of(Phase(name="plan", capabilities=("arbitrate",)), REVIEW.model_copy(update={"max_runs": 1}))
    )
    book = Playbook(rules, PAIR, config(), ()).looked()
    for name, priority in (("t-1", 2), ("t-2", 2), ("t-3", 1)):
        book.made.open(name, "phase:review" if name != "t-2" else "", priority=priority)
    book.looked()
    assert (book.run("t-3").phase, book.flow("t-1").code) == ("review", "cap_phase")
    ends(book, "t-2").answered()
    assert book.flow("t-2").code == "cap_phase"
    ends(book, "t-3").answered()
    assert book.run("t-2").phase == "review"
    assert book.flow("t-1").code == "cap_phase"


# --- what is passed over --------------------------------------------------------------------------------------------


@pytest.mark.promise("D10")
def test_no_person_falls_in_for_an_agent_at_its_cap() -> None:
    ann = Agent(id="ann", capabilities=("review",), is_human=True, priority=-5)
    team = Agents(version=1, agents=(CRITIC.model_copy(update={"max_runs": 1}), ann))
    book = book_of("t-1", "t-2", team=team)
    assert (book.flow("t-2").stage, book.flow("t-2").code) == ("idle", "cap_agent")


def test_a_run_is_started_on_no_provider_that_takes_nothing_instead() -> None:
    book = book_of("t-1", team=capped(PAIR, critic=1))
    book >> resources.ProviderRefused(
        "acme", "limited", "slow down", book.now + timedelta(hours=4), 1, "t-9/review.1.1"
    )
    book.left = []
    book.made.open("t-2")
    assert told(book.looked(), "t-2")[1] == "cap_agent"
    ends(book, "t-1").answered()
    assert book.run("t-2").agent == "critic"


def test_a_run_is_started_on_no_provider_that_somebody_paused_instead() -> None:
    book = book_of("t-1", team=capped(PAIR, critic=1))
    book >> resources.WorkPaused("ann", "", provider="acme")
    book.left = []
    book.made.open("t-2")
    assert told(book.looked(), "t-2")[1] == "cap_agent"
    ends(book, "t-1").answered()
    assert book.run("t-2").agent == "critic"


# --- what counts ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("D10")
def test_a_run_counts_until_it_has_no_slot_any_more() -> None:
    book = book_of("t-1", "t-2", team=capped(ALONE, critic=1))
    book >> book.seen(add=["ashep:excluded"]) << ...
    while not isinstance(book.made.jobs[0], c.StopTurn):
        book >> book.next() << ...
    assert (book.run("t-1").ended, book.run("t-1").stop) == (True, True)
    assert told(book, "t-2")[1] == "cap_agent", "its turn may go on"
    book.answered()
    assert book.run("t-2").agent == "critic"


def test_a_reason_that_was_told_stands_for_as_long_as_it_is_in_the_way() -> None:
    book = book_of(team=capped(ALONE, critic=1), files=config(worker=2))
    assert told(book, "t-3")[1] == "cap_agent"
    before = len(book.bodies(issues.IssueHeld))
    book >> adopted(config(worker=1)) << ...
    assert len(book.bodies(issues.IssueHeld)) == before, "the slot is in the way, too"
    ends(book, "t-1").answered()
    assert [book.flow(name).code for name in ("t-2", "t-3")] == ["", "cap_agent"]


def test_a_provider_that_is_waited_for_is_still_when_the_agent_is_at_its_cap_as_well() -> None:
    planner = CRITIC.model_copy(update={"id": "planner", "capabilities": ("plan",)})
    team = Agents(version=1, agents=(*capped(ALONE, critic=1).agents, planner))
    rules = policies(policy_of(REVIEW), plans=policy_of(Phase(name="plan")).model_copy(update={"match": None}))
    book = Playbook(rules, team, config(other=1), ()).looked()
    book.made.open("t-1", "policy:plans")
    book.looked()
    book.made.open("t-2", priority=1)
    book.made.open("t-3", priority=2)
    book.looked()
    ends(book, "t-1").answered()
    assert agents_of(book) == {"t-1": "planner", "t-2": "critic"}
    assert [one.code for one in book.bodies(issues.IssueHeld) if one.issue == "t-3"][-1:] == ["cap_provider"]


# --- other files ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("code", "lower", "higher"), [
    ("cap_agent", capped(ALONE, critic=1), ALONE),
    ("cap_phase", phases(1), phases(None)),
    ("cap_provider", config(other=1), config()),
    ("cap_runner", config(runner=1), config()),
])  # fmt: skip
def test_other_caps_count_for_what_begins_and_end_no_run(code: str, lower: Any, higher: Any) -> None:
    book = book_of("t-1", "t-2", rules=phases(None), team=ALONE)
    book >> adopted(lower)
    assert not [body for body in book.left if isinstance(body, runs.RunEnded)]
    book.left = []
    assert [book.run(name).state for name in ("t-1", "t-2")] == ["running", "running"]
    book.made.open("t-3")
    assert told(book.looked(), "t-3")[1] == code
    assert "has 2 runs under way, of 1 at most" in book.flow("t-3").why
    book >> adopted(higher) << like(issues.IssueTaken, issue="t-3")
    assert runs.RunPlanned in {type(body) for body in book.left}


def test_without_caps_slots_alone_are_in_the_way() -> None:
    book = book_of(files=config(worker=2))
    assert told(book, "t-3") == ("time", "slot", "all 2 slots are taken")
    assert not [one.code for one in book.bodies(issues.IssueHeld) if one.code in CAPS]
