"""The choice of an agent, and the reason against every other."""

import pytest

from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents, Performance, RunnerChoice
from ashep.core.policy.policies import Phase, Prefer
from ashep.core.runs.agent_selection import choose, model_of
from tests.core.given import BUILDER, CRITIC, LARGE, SMALL, TEAM, seen, up


def agent(id: str, *capabilities: str, model: Model | None = None, **more: object) -> Agent:
    runner = RunnerChoice(provider=model.provider, model=model.model) if model else RunnerChoice()
    return Agent(id=id, capabilities=capabilities or ("review",), runner=runner, **more)  # type: ignore[arg-type]


def team(*agents: Agent) -> Agents:
    return Agents(version=1, agents=agents)


@pytest.mark.promise("D2")
def test_every_agent_that_is_not_chosen_has_a_reason() -> None:
    choice = choose(TEAM, Phase(name="review"), seen(up()), {})
    assert choice.agent is not None
    assert choice.agent.id == "critic"
    assert choice.why
    assert dict(choice.others) == {"builder": "lacks the capability review", "judge": "comes after critic by id"}


@pytest.mark.promise("D2")
@pytest.mark.parametrize(("phase", "against"), [
    (Phase(name="p", capabilities=("review", "debug")), "lacks the capability debug"),
    (Phase(name="review", access="write"), "may only read, and the phase writes"),
    (Phase(name="review", not_agents=("one",)), "excluded by the phase's not_agents"),
    (Phase(name="review", tags=("python",)), "lacks the tag python"),
    (Phase(name="review", provider="acme"), "is not of provider acme"),
    (Phase(name="review", model="large"), "is not of model large"),
])  # fmt: skip
def test_hard_filters_exclude(phase: Phase, against: str) -> None:
    choice = choose(team(agent("one", model=SMALL)), phase, seen(up()), {})
    assert (choice.agent, choice.others) == (None, (("one", against),))
    assert phase.name in choice.why


@pytest.mark.promise("D2")
def test_what_the_server_does_not_list_is_excluded() -> None:
    gone = Agent(id="gone", capabilities=("review",), runner=RunnerChoice(agent_slug="gone"))
    odd = agent("odd", model=Model("acme", "odd"))
    choice = choose(team(gone, odd), Phase(name="review"), seen(up()), {})
    assert dict(choice.others) == {
        "gone": "the agent server lists no agent gone",
        "odd": "the agent server lists no model acme/odd",
    }
    assert choose(team(gone), Phase(name="review"), seen(), {}).agent == gone


@pytest.mark.promise("D2")
def test_preferences_go_before_priority_and_priority_before_id() -> None:
    phase = Phase(name="review", prefer=Prefer(tags=("python",)))
    low = agent("z", tags=("python",), priority=0)
    high, twin = agent("b", priority=5), agent("a", priority=5)
    choice = choose(team(high, low, twin), phase, seen(up()), {})
    assert choice.agent == low
    assert dict(choice.others) == {"a": "meets fewer preferences than z", "b": "meets fewer preferences than z"}
    choice = choose(team(high, low, twin), Phase(name="review"), seen(up()), {})
    assert choice.agent == twin
    assert dict(choice.others) == {"b": "comes after a by id", "z": "has a lower priority than a"}


def test_another_model_or_provider_than_an_earlier_phases_is_preferred() -> None:
    same, other = agent("a", model=LARGE), agent("b", model=SMALL)
    for prefer in (Prefer(different_model_from="implement"), Prefer(different_provider_from="implement")):
        phase = Phase(name="review", prefer=prefer)
        assert choose(team(same, other), phase, seen(up()), {"implement": LARGE}).agent == other
        assert choose(team(same, other), phase, seen(up()), {"implement": SMALL}).agent == same
        assert choose(team(same, other), phase, seen(up()), {}).agent == same


def test_the_servers_default_model_counts_for_agents_without_one() -> None:
    plain, other = agent("a"), agent("b", model=SMALL)
    phase = Phase(name="review", prefer=Prefer(different_model_from="implement"))
    assert choose(team(plain, other), phase, seen(up()), {"implement": LARGE}).agent == other
    assert model_of(plain, seen(up())) == LARGE
    assert model_of(plain, seen()) is None


def test_speed_is_a_wish() -> None:
    fast = agent("z", performance=Performance(speed="fast"))
    phase = Phase(name="review", prefer=Prefer(speed="fast"))
    assert choose(team(agent("a"), fast), phase, seen(up()), {}).agent == fast
    assert choose(team(agent("a")), phase, seen(up()), {}).agent is not None


def test_a_person_needs_no_server() -> None:
    ann = agent("ann", is_human=True)
    assert choose(team(ann), Phase(name="review", provider="acme"), seen(up(agents=())), {}).agent == ann


def test_an_agent_that_may_only_read_gets_no_write_phase_by_default() -> None:
    reader = agent("r", "implement")
    assert choose(team(reader), Phase(name="implement"), seen(up()), {}).agent is None
    assert choose(team(BUILDER, CRITIC), Phase(name="implement"), seen(up()), {}).agent == BUILDER
