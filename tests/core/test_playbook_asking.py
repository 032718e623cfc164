"""Playbooks of what sessions ask: rules and prepared answers decide it, a person on the issue, or its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.requests import Asked, Request
from ashep.core.policy.policies import PermissionRule, Phase, PreparedAnswer, Stall
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.observe import requests_read, turn_refused
from tests.core.given import ME, policy_of, up
from tests.core.playbook import Playbook, like

BOUND = 1800
"""Seconds that a question stays open, by default."""


def rule(action: str, tool: str = "bash", pattern: str = "*") -> PermissionRule:
    return PermissionRule(tool=tool, pattern=pattern, action=action)  # type: ignore[arg-type]


def working(*rules: PermissionRule, answers: Sequence[str | PreparedAnswer] = (), access: Any = "write") -> Playbook:
    phase = Phase(
        name="implement", access=access, answers=tuple(answers), timeout=timedelta(minutes=20),
        stall=Stall(after=timedelta(minutes=5)),
    )  # fmt: skip
    config = Settings(permissions=rules)
    book = Playbook(policy_of(phase, Phase(name="arbitrate")), config=config)
    book.looked() >> book.turn("running")
    return book


def asks(book: Playbook, kind: str = "permission", **request: Any) -> e.Fact:
    """The session asks, and the server's list shows it."""
    made = book.made.ask(book.run().session or "", kind, **request)
    (fact,) = requests_read(book.world, [*book.made.listed()], book.world.seq)
    assert isinstance(fact, runs.RequestOpened)
    assert fact.request == made
    return fact


def asked(*rules: PermissionRule, kind: str = "question", **request: Any) -> Playbook:
    """A run whose question stands on the issue."""
    book = working(*rules)
    book >> asks(book, kind, **request)
    return book.answered()


def says(book: Playbook, text: str, who: str = "ann") -> Playbook:
    """Somebody comments; a look shows it, and what follows is carried out but for the last answer."""
    book.made.say("t-1", who, text)
    assert book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq) << c.ReadAnswer
    return book >> book.next()


def answered(book: Playbook) -> c.AnswerRequest:
    """The answer that is to be delivered now."""
    return next(body for body in book.left if isinstance(body, c.AnswerRequest))


@pytest.mark.promise("D11")
def test_a_run_that_waits_for_a_person_keeps_no_other_from_a_machine_that_is_behind() -> None:
    book = Playbook(policy_of(Phase(name="review")), issues=("t-1", "t-2"), config=Settings())
    book >> resources.MachineSeen("busy", "processes waited for a processor in 97 % of the last minute")
    book.looked()
    first, second = sorted(("t-1", "t-2"), key=lambda name: name not in book.world.indexes.live)
    assert book.flow(second).code == "machine_busy"
    made = book.made.ask(book.run(first).session or "", "question")
    (fact,) = requests_read(book.world, [*book.made.listed()], book.world.seq)
    assert isinstance(fact, runs.RequestOpened)
    assert fact.request == made
    book >> fact << ...
    book.answered()
    assert set(book.world.indexes.live) == {first, second}


def label(book: Playbook) -> set[str]:
    return {"needs:human_input", "needs:human_approval"} & set(book.made.tracker["t-1"].labels)


# --- a person -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("H3")
def test_a_question_blocks_the_issue_and_a_comment_answers_it() -> None:
    book = working()
    book >> asks(book, "question") << like(runs.RequestJudged, verdict="ask") << runs.InputWanted
    book << issues.CommentWanted
    labels = ("needs:human_answer", "needs:human_input")
    assert book << like(c.WriteIssue, kind="ask", status="blocked", add_labels=labels)
    stands = account(book.world, "t-1")
    assert (stands.state, stands.code, stands.due) == ("person", "input", book.now + timedelta(seconds=BOUND))
    book.answered()
    assert label(book) == {"needs:human_input"}
    comment = book.made.comments["t-1"][-1].text
    assert "which one?" in comment
    assert "2. green" in comment
    says(book, "@ashep 2") << like(runs.RequestJudged, verdict="answer", answers=(("green",),), by="ann")
    assert book << like(c.AnswerRequest, answers=(("green",),))
    book >> book.next() << runs.InputEnded << like(c.WriteIssue, kind="work", status="in_progress")
    book.answered()
    assert label(book) == set()
    assert book.flow().written == book.flow().target
    assert [command.answers for command in book.made.delivered] == [(("green",),)]
    book >> book.reports() << like(runs.RunEnded, state="succeeded")


@pytest.mark.promise("H3")
def test_the_slot_and_the_tree_are_kept_while_a_person_thinks() -> None:
    book = asked()
    assert book.world.lock == "t-1"
    assert "t-1" in book.world.indexes.live
    assert not book.flow().leased


def test_a_command_that_no_rule_names_is_not_allowed_beside_one_that_is() -> None:
    book = working(rule("allow", "bash", "npm *"))
    book >> asks(book, patterns=("npm test", "rm -r /")) << like(runs.RequestJudged, verdict="deny")


@pytest.mark.promise("H4")
def test_of_several_answers_the_last_counts_and_the_others_are_told() -> None:
    book = asked(rule("ask"), kind="permission")
    book.made.say("t-1", "kim", "@ashep yes")
    says(book, "@ashep no, not there") << like(runs.RequestJudged, verdict="deny", by="ann")
    judged = next(one.body for one in reversed(book.made.entries) if isinstance(one.body, runs.RequestJudged))
    assert judged.why.startswith("ann answered: no, not there")
    assert "kim: yes" in judged.why


def test_words_that_are_no_plain_yes_allow_nothing() -> None:
    book = says(asked(rule("ask"), kind="permission"), "@ashep yes, but only in src")
    book << like(
        runs.RequestJudged, verdict="deny", message="ashep: a person denies this, and says: yes, but only in src"
    )


@pytest.mark.promise("H4")
@pytest.mark.parametrize(
    ("words", "verdict"),
    [("@ashep yes", "allow"), ("@Ashep: OK.", "allow"), ("@ashep yes, but only in src", "deny"), ("@ashep no", "deny")],
)
def test_a_plain_yes_allows_a_tool_and_any_other_word_denies_it(words: str, verdict: str) -> None:
    book = says(asked(rule("ask"), kind="permission"), words + "\n\n(ashep answer, 2026-01-01T22:00:00+00:00)")
    judged = book.left[0]
    assert isinstance(judged, runs.RequestJudged)
    assert judged.verdict == verdict
    assert (verdict == "deny") == bool(judged.message)
    assert "2026" not in judged.message


@pytest.mark.promise("H4")
@pytest.mark.parametrize("who", ["ashep-agent", ME])
def test_an_agent_does_not_answer_itself(who: str) -> None:
    book = asked()
    book.made.say("t-1", who, "@ashep yes")
    book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq) << c.ReadAnswer
    read = book.next()
    assert isinstance(read, tracker.AnswerRead)
    told = tuple(book.made.comments["t-1"][-1:])  # whatever an adapter hands over
    assert book >> tracker.AnswerRead("t-1", read.key, read.view, read.events, told)


@pytest.mark.promise("H4")
def test_an_answer_that_came_before_its_question_was_posted_is_refused_and_told_once() -> None:
    """A daemon that is killed between the label and the comment: the page and `ashep answer` know the question."""
    book = working()
    book.made.say("t-1", "ann", "@ashep whatever it asks, yes")
    book.made.now += timedelta(seconds=1)
    book >> asks(book, "question")
    book.made.say("t-1", "ann", "@ashep yes")
    book.answered().looked()
    assert book.flow().judged == {"comment/t-1-c1"}
    assert [comment.text for comment in book.made.comments["t-1"] if "in front of" in comment.text] == [
        "An answer stands in front of the question, which came later, and so it does not count. Answer again, please."
    ]
    assert says(book, "@ashep no") << like(runs.RequestJudged, verdict="answer", by="ann") << ...


@pytest.mark.promise("H4")
def test_a_comment_that_is_not_addressed_or_stood_there_before_answers_nothing() -> None:
    book = working()
    book.made.say("t-1", "ann", "@ashep yes")
    (book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq) >> asks(book, "question")).answered()
    assert book.flow().waits_for_input
    assert says(book, "yes, @ashep")


@pytest.mark.promise("H3")
def test_several_requests_are_put_to_a_person_one_after_the_other() -> None:
    book = asked()
    assert book >> asks(book, "question", asks=(Asked("and then?"),)) << like(runs.RequestJudged, verdict="ask")
    says(book, "@ashep red").answered()
    assert book.flow().waits_for_input
    assert "and then?" in book.made.comments["t-1"][-1].text
    assert "and then?" in account(book.world, "t-1").reason
    says(book, "@ashep go home").answered()
    assert not book.flow().waits_for_input
    assert [command.answers for command in book.made.delivered] == [(("red",),), (("go home",),)]


def test_a_request_with_several_questions_takes_a_line_for_each() -> None:
    several = Asked("which ones?", ("a", "b", "c"), several=True)
    book = asked(asks=(Asked("name?"), several, Asked("more?")))
    says(book, "@ashep fox\n1, c")
    judged = book.left[0]
    assert isinstance(judged, runs.RequestJudged)
    assert judged.answers[:2] == (("fox",), ("a", "c"))
    assert "not answered" in judged.answers[2][0]


# --- nobody ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("H5")
@pytest.mark.parametrize("kind", ["question", "permission"])
def test_nobody_answers_and_the_run_goes_on(kind: str) -> None:
    book = asked(rule("ask"), kind=kind)
    assert book.later(BOUND - 1) == []
    book >> book.later(1) << runs.RequestJudged << issues.CommentWanted
    answer = answered(book)
    said = answer.message or answer.answers[0][0]
    assert "nobody answered within 30m" in said
    assert answer.verdict == ("deny" if kind == "permission" else "answer")
    book.answered()
    assert not book.flow().waits_for_input
    assert book.made.tracker["t-1"].status == "in_progress"
    assert "Nobody answered" in book.made.comments["t-1"][-1].text


@pytest.mark.promise("H5")
def test_each_request_has_its_own_end_also_while_another_stands_there() -> None:
    book = asked()
    assert book.later(600) == []
    book >> asks(book, "question", asks=(Asked("and then?"),))
    assert book << like(runs.RequestJudged, verdict="ask", due=book.now + timedelta(seconds=BOUND))
    assert book.left == []
    book >> book.later(BOUND - 600)
    book.answered() >> book.later(600)
    book.answered()
    assert len(book.made.delivered) == 2
    assert not book.flow().waits_for_input


@pytest.mark.promise("H3")
def test_the_runs_times_stand_still_while_a_person_thinks() -> None:
    book = working()
    book.made.now += timedelta(seconds=100)
    left = (book.run().deadline or book.now) - book.now
    (book >> asks(book, "question")).answered()
    assert book.later(25 * 60) == []  # longer than its timeout, and its bound for stalls
    says(book, "@ashep 1").answered()
    assert book.run().deadline == book.now + left
    assert book.flow().counters.thought == timedelta(minutes=25)
    assert [timer.key for timer in book.later(300) if isinstance(timer, resources.TimerDue)] == ["stall:t-1"]


def test_a_suspended_machine_counts_once() -> None:
    book = asked()
    deadline = book.run().deadline
    book.made.now += timedelta(minutes=20)
    assert book >> resources.ClockJumped(timedelta(minutes=20))
    says(book, "@ashep 1").answered()
    assert deadline is not None
    assert book.run().deadline == deadline + timedelta(minutes=20)
    assert book.flow().counters.thought == timedelta(minutes=20)


# --- what comes between ---------------------------------------------------------------------------------------------


@pytest.mark.promise("H6")
def test_a_person_answers_in_opencode() -> None:
    book = asked()
    for turns in book.made.sessions.values():
        for turn in turns.values():
            turn.asks = ()
    (gone,) = requests_read(book.world, book.made.listed(), book.world.seq)
    assert book >> gone << runs.InputEnded << like(c.WriteIssue, kind="work")
    assert requests_read(book.world, [Request("que_x", "ses_another", "question")], book.world.seq) == []


@pytest.mark.promise("T7")
def test_what_cannot_be_listed_is_judged_as_it_was_told_and_nothing_counts_as_gone() -> None:
    """The fault is the list's: it is told once, and neither the server nor the run is given up for it."""
    book = working(rule("ask", "webfetch"))
    session = book.run().session or ""
    told = Request("per_1", session, "permission", "webfetch", ("http://x/y",), unlisted="GET /permission: 400")
    blank = Request("", session, "permission", unlisted="GET /permission: 400")
    refused, opened = requests_read(book.world, [blank, told], book.world.seq)
    assert isinstance(refused, e.ReadRefused)
    assert (refused.run, refused.what, refused.why) == (book.run().id, "requests", "GET /permission: 400")
    assert book >> refused
    book >> opened << like(runs.RequestJudged, verdict="ask")
    book.answered()
    assert account(book.world, "t-1").state == "person"
    for listed in ([blank], [blank, told]):  # after a restart the stream has told nothing yet
        assert requests_read(book.world, listed, book.world.seq) == []
    (gone,) = requests_read(book.world, [], book.world.seq)
    assert isinstance(gone, runs.RequestGone)
    book >> gone << runs.InputEnded << c.WriteIssue
    assert "the agent server refuses to show what its session asks" in account(book.world, "t-1").reason
    assert requests_read(book.world, [blank], book.world.seq) == [], "once for a run"


@pytest.mark.promise("T7")
def test_what_nobody_knows_but_by_its_id_is_denied() -> None:
    book = working(rule("allow", "*"))
    told = Request("per_1", book.run().session or "", "permission", unlisted="GET /permission: 400")
    _, opened = requests_read(book.world, [told], book.world.seq)
    assert book >> opened << like(runs.RequestJudged, verdict="deny") << c.AnswerRequest


@pytest.mark.promise("T9")
def test_a_turn_that_the_server_refuses_to_show_is_over_at_its_deadline() -> None:
    book = working()
    run = book.run()
    refused = turn_refused(book.world, "t-1", run.id, "GET /session/status: 400", book.world.seq)
    assert book >> refused
    assert turn_refused(book.world, "t-1", run.id, "again", book.world.seq) == []
    as_of = book.world.seq
    for timer in book.later(20 * 60 + 1):
        book >> timer
    book.left = []
    assert book.run().watch.overdue
    assert turn_refused(book.world, "t-1", run.id, "again", as_of) == [], "a read that began before says nothing"
    book >> turn_refused(book.world, "t-1", run.id, "again", book.world.seq)
    book << runs.DeadlineReached << like(runs.RunEnded, state="timed_out", abort=True)
    assert book.run().ended


def test_a_list_that_was_read_before_says_nothing() -> None:
    book = working()
    as_of = book.world.seq
    book >> asks(book, "question")
    assert requests_read(book.world, [], as_of) == []


@pytest.mark.promise("H6")
def test_the_server_dies_while_a_person_thinks() -> None:
    book = asked()
    assert book >> up("server-2")
    book.made.kill_server()
    book.left = []
    book >> book.turn("incomplete") << runs.TurnDied << runs.InputEnded << like(c.WriteIssue, kind="work")
    book.answered()
    assert not book.flow().waits_for_input
    assert book.run().turn == ""


@pytest.mark.promise("H6")
def test_the_end_of_a_run_ends_its_question_too() -> None:
    book = asked()
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << runs.InputEnded << issues.PhaseEntered
    book.answered()
    assert book.made.tracker["t-1"].status == "in_progress"
    assert label(book) == set()


def test_what_a_stopped_turn_asked_is_not_asked_again() -> None:
    book = asked()
    leftover = book.made.listed()
    assert (book >> issues.IssueCancelled("t-1", "ann", book.run().id)).answered().flow().stage == "parked"
    book >> book.seen(drop=["ashep:parked"])
    book.answered() >> book.turn("running")
    mine = [Request(one.id, book.run().session or "", one.kind, asks=one.asks) for one in leftover]
    assert requests_read(book.world, mine, book.world.seq) == []


def test_a_daemon_that_was_away_goes_on_waiting_and_counts_the_time_once() -> None:
    book = asked()
    due, deadline = account(book.world, "t-1").due, book.run().deadline
    book.made.now += timedelta(minutes=10)
    book.made.crash()
    assert account(book.world, "t-1").due == due
    assert requests_read(book.world, book.made.listed(), book.world.seq) == []
    says(book.answered(), "@ashep 1").answered()
    assert book.flow().counters.thought == timedelta(minutes=10)
    assert deadline is not None
    assert book.run().deadline == deadline + timedelta(minutes=10)


def test_the_answer_is_delivered_again_only_after_a_failure() -> None:
    book = says(asked(), "@ashep 1")
    first = answered(book)
    book.left = []
    assert book >> book.failed(landed=True)
    book >> book.later(70)
    again = answered(book)
    assert (again.key, again.tries) == (first.key, 1)
    book.answered()
    assert len(book.made.delivered) == 1
    assert not book.flow().waits_for_input


@pytest.mark.promise("H6")
@pytest.mark.parametrize(("change", "stage"), [
    ({"status": "closed"}, "closed"),
    ({"assignee": "bob"}, "left"),
    ({"add": ["ashep:excluded"]}, "idle"),
    ({"status": "deferred"}, "left"),
])  # fmt: skip
def test_what_a_person_does_to_the_issue_wins(change: dict[str, Any], stage: str) -> None:
    book = asked()
    assert (book >> book.seen(**change)).answered().flow().stage == stage
    assert book.run().state == "aborted"
    assert book.made.delivered == []


@pytest.mark.promise("H6")
def test_a_person_who_takes_the_issue_meanwhile_answers_the_session_themselves() -> None:
    book = asked()
    leftover = book.made.listed()
    assert book >> book.seen(add=["ashep:paused"]) << runs.SessionTaken
    assert book.later(BOUND) == []  # it is theirs: nobody says that nobody answered
    assert account(book.world, "t-1").code != "input"
    assert requests_read(book.world, [], book.world.seq) == []
    book >> book.turn("running", people=("msg_ann",)) << like(runs.RunEnded, state="aborted", abort=False)
    book << runs.InputEnded
    book.answered()
    assert book.made.delivered == []
    assert (book.made.tracker["t-1"].status, label(book)) == ("in_progress", set())
    assert {one.id for one in leftover} <= {*book.flow().requests}


def test_a_message_of_a_persons_in_a_session_that_asks_takes_it() -> None:
    book = asked()
    book >> book.turn("running", people=("msg_ann",)) << like(runs.RunEnded, state="aborted") << runs.InputEnded
    book << runs.SessionTaken
    book.answered()
    assert book.made.delivered == []
    assert "ashep:paused" in book.made.tracker["t-1"].labels
    assert (book.made.tracker["t-1"].status, label(book)) == ("in_progress", set())


@pytest.mark.promise("H5")
def test_taking_the_label_off_lets_the_run_go_on_without_an_answer() -> None:
    book = asked(rule("ask"), kind="permission")
    book >> book.seen(drop=["needs:human_input"]) << like(runs.RequestJudged, verdict="deny")
    answer = answered(book)
    assert "nobody will answer" in answer.message
    book.answered()
    assert book.made.tracker["t-1"].status == "in_progress"


def test_an_issue_whose_state_folder_was_lost_while_a_person_thought_is_worked_on_again() -> None:
    view = asked().made.tracker["t-1"]
    book = Playbook(policy_of(Phase(name="implement"), Phase(name="arbitrate")), issues=())
    assert view.stamp is not None
    book.made.tracker["t-1"] = replace(view, stamp=replace(view.stamp, instance="another"))
    book.looked()
    assert (book.flow().stage, book.run().attempt) == ("work", 2)
    assert book.made.tracker["t-1"].status == "in_progress"
    assert label(book) == set()
