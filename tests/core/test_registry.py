"""What is said of the agent registry: who can take what, who is chosen, and what hangs by one thread."""

from dataclasses import replace

from ashep.core.facts.resources import RunnerSeen
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Phase, Policies, Policy, Prefer, Stall
from ashep.core.runs.registry_report import Weakness, explain, places, weaknesses
from tests.core.given import LARGE, SMALL, STANDARD, TEAM, policies, seen, up

WISH = Phase(name="review", prefer=Prefer(different_provider_from="implement"))


def agent(id: str, *capabilities: str, model: Model | None = None, slug: str | None = None, **more: object) -> Agent:
    runner = RunnerChoice(agent_slug=slug)
    if model is not None:
        runner = RunnerChoice(agent_slug=slug, provider=model.provider, model=model.model)
    return Agent(id=id, capabilities=capabilities, runner=runner, read_write="write", **more)  # type: ignore[arg-type]


def team(*agents: Agent) -> Agents:
    return Agents(version=1, agents=agents)


def of(*phases: Phase, name: str = "p") -> Policies:
    return Policies(version=1, policies={name: Policy(phases=phases)})


def found(policies: Policies, agents: Agents, runner: RunnerSeen | None = None) -> list[tuple[str, str | None]]:
    return [(weak.code, weak.agent) for weak in weaknesses(policies, agents, seen(runner))]


def test_a_phase_is_explained_for_each_policy_that_has_it() -> None:
    told = list(explain(policies(), TEAM, "implement", seen(up())))
    assert [(one.policy, one.choice and one.choice.agent and one.choice.agent.id) for one in told] == [
        ("standard", "builder"),
        ("quick", "builder"),
    ]
    assert list(explain(policies(), TEAM, "nothing", seen(up()))) == []


def test_in_a_phase_of_a_person_no_agent_is_chosen() -> None:
    (told,) = explain(policies(), TEAM, "human_review", seen(up()))
    assert told.choice is None


def test_what_another_phase_would_run_on_is_taken_for_granted() -> None:
    one, other = agent("one", "review", model=LARGE, priority=9), agent("other", "review", model=SMALL)
    builder = agent("builder", "implement", model=LARGE)
    (told,) = explain(of(Phase(name="implement"), WISH), team(builder, one, other), "review", seen())
    assert told.granted == (("implement", f"{LARGE.provider}/{LARGE.model}"),)
    assert told.choice is not None
    assert told.choice.agent == other
    assert dict(told.choice.others)["one"] == "meets fewer preferences than other"


def test_without_a_model_nothing_is_taken_for_granted_until_the_server_names_its_default() -> None:
    agents = team(agent("builder", "implement"), agent("one", "review", model=LARGE))
    (told,) = explain(of(Phase(name="implement"), WISH), agents, "review", seen())
    assert told.granted == ()
    (told,) = explain(of(Phase(name="implement"), WISH), agents, "review", seen(replace(up(), default=SMALL)))
    assert told.granted == (("implement", f"{SMALL.provider}/{SMALL.model}"),)


def test_an_agent_without_a_model_may_be_of_any_until_the_server_names_its_default() -> None:
    one, phase = agent("one", "review"), Phase(name="review", provider=LARGE.provider)
    assert places(of(phase), one, seen()) == {"p": ("review",)}
    assert places(of(phase), one, seen(replace(up(), default=SMALL))) == {}


def test_phases_that_an_agent_can_take_are_listed_by_policy() -> None:
    assert places(policies(), agent("one", "implement", "review"), seen()) == {
        "standard": ("implement", "review"),
        "quick": ("implement",),
    }


def test_an_agent_that_no_phase_can_take_is_without_use() -> None:
    two = (agent("a", "implement"), agent("b", "implement"))
    only = of(Phase(name="implement"))
    assert found(only, team(*two, agent("idle", "paint"))) == [("unused-agent", "idle"), ("one-provider", None)]
    assert ("unused-agent", "x") not in found(only, team(*two, agent("x", "extract")))
    assert ("unused-agent", "x") in found(only, team(*two, agent("x", "debug")))
    looked_into = of(Phase(name="implement", stall=Stall(action="diagnose")))
    assert ("unused-agent", "x") not in found(looked_into, team(*two, agent("x", "debug")))
    assert ("unused-agent", "x") in found(looked_into, team(*two, agent("x", "debug", is_human=True)))


def test_what_the_server_does_not_list_is_said() -> None:
    agents = team(agent("a", "implement", model=LARGE), agent("gone", "implement", slug="gone", model=SMALL))
    assert ("not-listed", "gone") in found(of(Phase(name="implement")), agents, up())
    assert ("not-listed", "a") not in found(of(Phase(name="implement")), agents, up())
    assert ("not-listed", "gone") not in found(of(Phase(name="implement")), agents)


def test_what_one_agent_alone_can_take_is_told_once_for_the_agent() -> None:
    three = (agent("a", "implement"), agent("b", "review", "arbitrate"), agent("c", "review"))
    weak = [one for one in weaknesses(policies(STANDARD), team(*three), seen()) if one.code == "one-agent"]
    assert [(one.code, one.agent) for one in weak] == [("one-agent", "a"), ("one-agent", "b")]
    assert "standard/implement, quick/implement:" in weak[0].message


def test_of_one_agent_for_each_phase_nothing_is_told() -> None:
    two = (agent("a", "implement"), agent("b", "review", "arbitrate"))
    assert list(weaknesses(policies(STANDARD), team(*two), seen())) == []


def test_what_one_provider_alone_can_take_is_told() -> None:
    only = of(Phase(name="implement"))
    same = team(agent("a", "implement", model=LARGE), agent("b", "implement", model=Model(LARGE.provider, "tiny")))
    message = "every agent that can take p/implement runs on the provider acme: where that refuses, all wait"
    assert list(weaknesses(only, same, seen())) == [Weakness("one-provider", message)]
    mixed = team(agent("a", "implement", model=LARGE), agent("b", "implement", model=SMALL))
    assert list(weaknesses(only, mixed, seen())) == []
    person = team(agent("a", "implement", model=LARGE), agent("b", "implement", is_human=True))
    assert list(weaknesses(only, person, seen())) == []
