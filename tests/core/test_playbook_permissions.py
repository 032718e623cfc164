"""Playbooks of rules about tools, and of answers that are prepared: what they decide before any person is asked."""

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import runs
from ashep.core.facts.requests import Asked
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Phase, PreparedAnswer
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.observe import requests_read
from tests.core.given import TEAM, policy_of
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_asking import asks, rule, working


@pytest.mark.promise("H1")
def test_what_no_rule_allows_is_denied_with_a_sentence_and_nothing_is_written() -> None:
    book = working()
    book >> asks(book) << like(runs.RequestJudged, verdict="deny", why="no rule allows it")
    answer = book.left[0]
    assert book << like(c.AnswerRequest, verdict="deny")
    assert isinstance(answer, c.AnswerRequest)
    assert "no rule allows it. Go on without it" in answer.message
    assert book >> book.next()
    assert not book.run().asks.requests
    assert requests_read(book.world, book.made.listed(), book.world.seq) == []


@pytest.mark.parametrize(("action", "verdict"), [("allow", "allow"), ("deny", "deny")])
def test_a_rule_decides(action: str, verdict: str) -> None:
    book = working(rule(action))
    book >> asks(book) << like(runs.RequestJudged, verdict=verdict)
    assert book << like(c.AnswerRequest, verdict=verdict)


@pytest.mark.promise("H1")
def test_the_first_rule_that_fits_decides_and_a_phases_rules_go_first() -> None:
    first = rule("allow", "bash", "npm test *")
    book = Playbook(
        policy_of(Phase(name="implement", permissions=(first,)), Phase(name="arbitrate")),
        config=Settings(permissions=(rule("deny", "bash", "npm *"), rule("allow"))),
    )
    book.looked() >> book.turn("running")
    opened = next(one for one in book.made.done if isinstance(one, c.OpenSession))
    assert opened.permissions == (first, *book.world.settings.permissions)
    for patterns, verdict in (
        (("npm test -q",), "allow"),
        (("npm test",), "allow"),
        (("npm publish",), "deny"),
        (("ls", "npm publish"), "deny"),
        (("ls",), "allow"),
    ):
        book >> asks(book, patterns=patterns) << like(runs.RequestJudged, verdict=verdict) << c.AnswerRequest
        book.answered()


@pytest.mark.promise("H2")
def test_a_readers_rules_are_those_that_leave_it_a_reader() -> None:
    book = working(rule("allow"), rule("deny", "webfetch"), rule("allow", "*"), rule("ask", "read"), access="read")
    opened = next(one for one in book.made.done if isinstance(one, c.OpenSession))
    assert opened.permissions == (rule("deny", "webfetch"), rule("ask", "read"))


def test_a_session_that_reads_an_outcome_has_no_rules_and_answers_of_its_phase() -> None:
    phase = Phase(name="implement", permissions=(rule("allow"),), answers=("y",))
    team = Agents(version=1, agents=(*TEAM.agents, Agent(id="reader", capabilities=("extract",))))
    book = Playbook(policy_of(phase, Phase(name="arbitrate")), team=team).looked()
    for _ in range(2):
        (book >> book.turn("finished", block=None)).answered()
    assert book.run().prompt.kind == "extract"
    opened = [one for one in book.made.done if isinstance(one, c.OpenSession)]
    assert [len(one.permissions) for one in opened] == [1, 0]
    book >> book.turn("running")
    book >> asks(book) << like(runs.RequestJudged, verdict="deny")
    book.answered() >> asks(book, "question") << like(runs.RequestJudged, verdict="ask")


@pytest.mark.promise("H3")
def test_prepared_answers_are_used_once_in_order_and_then_a_person_is_asked() -> None:
    book = working(answers=("y", PreparedAnswer(match="COLOUR", answer="2")))
    which = Asked("which colour?", ("red", "green"))
    book >> asks(book, "question", asks=(Asked("go on?", ("Yes, all", "No")),))
    assert book << like(runs.RequestJudged, verdict="answer", answers=(("Yes, all",),), used=(0,)) << c.AnswerRequest
    book.answered() >> asks(book, "question", asks=(Asked("really?"),)) << like(runs.RequestJudged, verdict="ask")
    book = working(answers=("y", PreparedAnswer(match="COLOUR", answer="2")))
    book >> asks(book, "question", asks=(which, which))
    book << like(runs.RequestJudged, verdict="answer", answers=(("y",), ("green",)), used=(0, 1))
