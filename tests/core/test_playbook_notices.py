"""Telling people: what is worth it, when they are told, and that it is once for each target."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues as facts_issues
from ashep.core.facts import resources, runs, tracker
from ashep.core.facts.resources import Finding
from ashep.core.policy.budgets import Budget, Budgets
from ashep.core.policy.policies import Human, Phase
from ashep.core.policy.settings import Notify, NotifyTarget, QuietHours, Settings
from ashep.core.resources.notices import AWAY, FIRST_AGAIN, LAST_AGAIN, LONGEST, TRIES, dues, open_messages
from tests.core import given
from tests.core.given import T0, adopted, issue, policy_of
from tests.core.playbook import Playbook, like

READ = policy_of(Phase(name="review"))
SIGN = policy_of(Phase(name="review"), Phase(name="sign", human=Human(ask="Fine?")))
PAGER, DESK = NotifyTarget(name="pager", command=("pager",)), NotifyTarget(name="desk", apprise_env="URLS")
MINUTE = timedelta(minutes=1)
NIGHT = T0 + timedelta(hours=8)


def config(*targets: NotifyTarget, budgets: Budgets | None = None, **notify: Any) -> Settings:
    return Settings(notify=Notify(targets=targets or (PAGER,), **notify), budgets=budgets or Budgets())


def asked(*issues: str, targets: tuple[NotifyTarget, ...] = (PAGER,), **notify: Any) -> Playbook:
    """A book in which these issues wait for a person, each asked at once."""
    book = Playbook(SIGN, config=config(*targets, **notify), issues=issues or ("t-1",)).looked()
    for name in issues or ("t-1",):
        then(book, book.reports(name=name))
        book.left = []
    return book


def then(book: Playbook, told: Any) -> list[Any]:
    """Hand facts over, and give what follows."""
    book.left = []
    book >> told
    follows, book.left = book.left, []
    return follows


def told(book: Playbook) -> list[str]:
    """Carry out what is under way, and give the texts of what was told meanwhile, by target."""
    sent = [job for job in book.made.jobs if isinstance(job, c.SendNotice)]
    book.answered()
    return [f"{one.target}: {notice.text}" for one in sent for notice in one.notices]


# --- what is worth a person -----------------------------------------------------------------------------------------


@pytest.mark.promise("N1")
def test_who_waits_is_told_with_the_question_after_the_batch_and_once() -> None:
    book = Playbook(SIGN, config=config()).looked()
    book >> book.reports() << runs.RunEnded << like(facts_issues.PersonAsked, question="Fine?")
    text = "t-1 (Title of t-1) waits for you, until 2026-01-08 22:00Z: Fine?"
    cause = book.world.seq - 2
    book << like(resources.NoticeWanted, event="waiting", issue="t-1", text=text, to=("pager",))
    assert book << facts_issues.CommentWanted << c.WriteIssue
    book.answered()
    wanted = book.world.notices.wanted[0]
    assert isinstance(book.made.entries[wanted.cause - 1].body, facts_issues.PersonAsked), cause
    assert book.later(59) == []
    book >> book.later(1) << like(resources.NoticesGathered, target="pager", notices=(wanted.id,), left_out=())
    assert book << like(c.SendNotice, key=f"notice/pager/{book.world.seq - 1}", target="pager")
    assert told(book) == [f"pager: {text}"]
    assert dues(book.world) == []
    assert (book.world.notices.wanted, book.world.notices.routes) == ((), ())


def test_without_a_target_nothing_is_noted() -> None:
    book = Playbook(SIGN, config=Settings()).looked()
    book >> book.reports() << runs.RunEnded << facts_issues.PersonAsked << facts_issues.CommentWanted << c.WriteIssue
    assert book
    then(book, resources.RunnerSeen("away", "gone"))
    assert book.later(600) == []


def test_only_the_events_that_were_asked_for() -> None:
    book = asked(events=("parked",))
    assert book.world.notices.wanted == ()
    then(book, facts_issues.IssueCancelled("t-1", "ann"))
    assert [one.event for one in book.world.notices.wanted] == ["parked"]
    text = "t-1 (Title of t-1) is parked (cancelled): cancelled by ann"
    assert book.world.notices.wanted[0].text == text


@pytest.mark.promise("N2")
def test_what_came_within_the_batch_is_told_in_one_message_to_each_target() -> None:
    book = asked("t-1", "t-2", targets=(PAGER, DESK)).answered()
    assert [type(body).__name__ for body in then(book, book.later(60))] == ["NoticesGathered"] * 2 + ["SendNotice"] * 2
    lines = told(book)
    assert [line.split(" ")[:2] for line in lines] == [
        ["pager:", "t-1"], ["pager:", "t-2"], ["desk:", "t-1"], ["desk:", "t-2"],
    ]  # fmt: skip


@pytest.mark.promise("N2")
def test_what_is_over_before_it_is_told_is_left_out() -> None:
    book = asked("t-1", "t-2").answered()
    first, second = (one.id for one in book.world.notices.wanted)
    then(book, book.seen("t-1", add=["human:approved"]))
    book.answered()
    book >> book.later(60)
    book << like(
        resources.NoticesGathered, notices=(second,), left_out=(first,), why="1 to be told, 1 over before that"
    )
    assert [line.split(" ")[1] for line in told(book)] == ["t-2"]
    book = asked("t-1").answered()
    then(book, book.seen("t-1", status="closed"))
    book.answered()
    assert book >> book.later(60) << like(resources.NoticesGathered, notices=(), why="0 to be told, 1 over before that")
    assert book.world.notices.wanted == ()


def test_a_question_that_is_asked_again_is_not_the_one_that_was_answered() -> None:
    book = Playbook(policy_of(Phase(name="sign", human=Human(ask="Fine?", changes_requested="sign"))), config=config())
    book.looked()
    book.made.now += timedelta(seconds=5)
    then(book, book.seen(add=["human:changes_requested"]))
    assert book.answered().flow().stage == "person"
    first, second = (one.id for one in book.world.notices.wanted)
    follows = then(book, book.later(60))
    assert [(one.notices, one.left_out) for one in follows if isinstance(one, resources.NoticesGathered)] == [
        ((second,), (first,))
    ]


def test_an_unparked_issue_is_not_told() -> None:
    book = Playbook(READ, config=config()).looked()
    then(book, facts_issues.IssueCancelled("t-1", "ann"))
    book.answered()
    then(book, book.seen(drop=["ashep:parked"]))
    book.answered()
    book >> book.later(60) << like(resources.NoticesGathered, notices=())


@pytest.mark.promise("N1")
@pytest.mark.parametrize(("down", "up", "what"), [
    (resources.RunnerSeen("away", "refused"), given.up("server-2"), "the agent server"),
    (resources.RunnerSeen("unauthorized"), given.up("server-2"), "the agent server"),
    (tracker.TrackerLost("no answer"), tracker.TrackerSeen(given.ME, "t", "1.3.0"), "the tracker"),
])  # fmt: skip
def test_a_server_that_is_away_for_long_is_told_once(down: Any, up: Any, what: str) -> None:
    book = Playbook(READ, config=config(), issues=())
    then(book, down)
    then(book, up)
    assert book.later(600) == []  # it was away for a moment
    then(book, down)
    since = book.now
    assert [due for _, due in dues(book.world)] == [since + AWAY]
    then(book, book.later(100))
    then(book, down)  # still
    book >> book.later(200) << like(resources.NoticeWanted, event="provider_down", about=what)
    assert f"{what} is away since {since:%Y-%m-%d %H:%M}Z: " in book.world.notices.wanted[0].text
    then(book, book.later(60))
    assert len(told(book)) == 1
    assert dues(book.world) == []
    then(book, up)
    then(book, down)
    assert [due for _, due in dues(book.world)] == [book.now + AWAY]


def test_an_outage_that_is_over_before_the_message_is_left_out() -> None:
    book = Playbook(READ, config=config(), issues=())
    then(book, tracker.TrackerLost("no answer"))
    book >> book.later(300) << resources.NoticeWanted
    then(book, tracker.TrackerSeen(given.ME, "t", "1.3.0"))
    book >> book.later(60) << like(resources.NoticesGathered, notices=())


def test_an_outage_before_a_start_is_looked_at_afresh_and_a_told_one_is_not_told_again() -> None:
    book = Playbook(READ, config=config(), issues=())
    book.made.up = False
    book >> book.made.seen_server()
    book.made.now += timedelta(hours=1)
    book.made.crash()
    assert ("outage:the agent server", book.now + AWAY) in dues(book.world)
    then(book, book.later(300))
    told(book)
    then(book, book.later(60))
    assert [line for line in told(book) if "the agent server" in line]
    book.made.crash()
    assert book.world.notices.outages[0].told
    assert not [key for key, _ in dues(book.world) if key.startswith("outage:")]


@pytest.mark.promise("N1")
def test_a_budget_is_told_where_it_warns_and_where_it_is_reached() -> None:
    budgets = Budgets(issue=Budget(tokens=1000), day=Budget(tokens=1500))
    book = Playbook(READ, config=config(budgets=budgets)).looked()
    then(book, book.turn("running", tokens=850))
    assert [(one.event, one.issue, one.text) for one in book.world.notices.wanted] == [
        ("budget", "t-1", "nearly used up: the tokens of issue t-1: 850 of 1000")
    ]
    then(book, book.turn("running", tokens=1600))
    assert [(one.event, one.issue) for one in book.world.notices.wanted[1:]] == [("parked", "t-1"), ("budget", None)]
    assert (
        book.world.notices.wanted[-1].text
        == "used up: the tokens of day 2026-01-01: 1600 of 1500 (until 2026-01-02 00:00Z)"
    )


@pytest.mark.promise("N1")
def test_findings_of_the_audit_are_told_while_there_are_some() -> None:
    book = Playbook(READ, config=config(), issues=())
    found = tuple(Finding("stranded", f"t-{number}", "waits for nothing") for number in range(5))
    book >> resources.AccountAudited(found, 7) << like(
        resources.NoticeWanted, event="finding", about="audit",
        text="the audit has 12 findings: stranded: t-0 waits for nothing; stranded: t-1 waits for nothing; "
        "stranded: t-2 waits for nothing",
    )  # fmt: skip
    then(book, resources.AccountAudited())
    book >> book.later(60) << like(resources.NoticesGathered, notices=())


@pytest.mark.promise("N1")
def test_an_end_without_a_word_is_told_by_the_next_start() -> None:
    book = Playbook(READ, config=config(), issues=())
    assert book.world.notices.wanted == (), "the first start"
    ended = book.now
    book.made.now += timedelta(hours=1)
    book.made.crash()
    (notice,) = book.world.notices.wanted
    text = (
        f"ashep ended without a word: process 4711, whose last record is of {ended:%Y-%m-%d %H:%M:%S}Z; it runs again"
    )
    assert (notice.event, notice.text) == ("stopped_unexpectedly", text)
    then(book, adopted(book.world.settings))
    assert len(book.world.notices.wanted) == 1, "once"
    then(book, resources.DaemonStopped("a signal"))
    book.made.crash()
    assert len(book.world.notices.wanted) == 1, "it had said so"


@pytest.mark.promise("N1")
def test_a_start_that_configures_targets_for_the_first_time_tells_nothing_of_what_was_before() -> None:
    book = Playbook(SIGN, config=Settings(), issues=("t-1", "t-2")).looked()
    then(book, book.reports())
    then(book, facts_issues.IssueCancelled("t-2", "ann"))
    book.answered()
    then(book, resources.DaemonStopped("a signal"))
    book.made.now += timedelta(days=1)
    book.made.begun[4] = adopted(config())
    book.made.crash()
    book.looked()
    assert book.world.settings.notify.targets
    assert book.world.notices.wanted == ()


def test_a_long_text_is_cut_and_cleaned() -> None:
    book = Playbook(READ, config=config(), issues=())
    then(book, resources.AccountAudited((Finding("stranded", None, "so\x1b[2J\n" + "x" * 2000),)))
    text = book.world.notices.wanted[0].text
    assert len(text) == LONGEST
    assert text.endswith("x…")
    assert "\x1b" not in text
    assert "\n" not in text


# --- failures -------------------------------------------------------------------------------------------------------


def fails(book: Playbook, error: str = "no route to host") -> list[Any]:
    (job,) = [job for job in book.made.jobs if isinstance(job, c.SendNotice)]
    book.made.jobs.remove(job)
    return then(book, resources.NoticeFailed(job.key, job.target, error))


def test_what_fails_is_tried_again_with_a_growing_pause_and_what_came_meanwhile() -> None:
    book = asked("t-1", "t-2").answered()
    then(book, book.seen("t-2", add=["human:approved"]))
    book.answered()
    then(book, book.later(60))
    (delayed,) = fails(book)
    assert isinstance(delayed, resources.NoticesDelayed)
    assert (delayed.due - book.now, delayed.why) == (FIRST_AGAIN, "failure 1: no route to host")
    then(book, resources.AccountAudited((Finding("stranded", None, "so"),)))
    gathered, _ = then(book, book.later(30))
    assert gathered.why == "2 to be told", "what came meanwhile goes along"
    (delayed,) = fails(book)
    assert delayed.due - book.now == 2 * FIRST_AGAIN
    then(book, book.later(60))
    assert [line.split(" ")[1] for line in told(book)] == ["t-1", "the"]
    assert book.world.notices.routes == ()


@pytest.mark.promise("N4")
def test_a_target_that_never_answers_is_given_up_after_a_bound_and_the_other_is_told() -> None:
    book = asked("t-1", targets=(PAGER, DESK)).answered()
    then(book, book.later(60))
    (desk,) = [job for job in book.made.jobs if isinstance(job, c.SendNotice) and job.target == "desk"]
    book.made.jobs.remove(desk)
    book.made.done.append(desk)
    then(book, resources.NoticeSent(desk.key, "desk"))
    began, pauses = book.now, list[timedelta]()
    while True:
        (after,) = fails(book)
        if isinstance(after, resources.NoticesGivenUp):
            break
        pauses.append(after.due - book.now)
        book >> book.later(pauses[-1].total_seconds()) << resources.NoticesGathered << c.SendNotice
    assert len(pauses) == TRIES - 1
    assert max(pauses) == LAST_AGAIN
    assert book.now - began < timedelta(hours=8)
    assert book.world.notices.wanted == ()
    route = book.world.notices.route("pager")
    assert (route.given_up, route.error, route.tries) == (1, "no route to host", 0)
    then(book, resources.AccountAudited((Finding("stranded", None, "so"),)))
    then(book, book.later(60))
    assert len(told(book)) == 2
    assert book.world.notices.routes == (), "what is told ends it"


@pytest.mark.promise("N3")
def test_a_message_whose_answer_was_lost_is_under_way_after_the_start() -> None:
    book = asked("t-1").answered()
    then(book, book.later(60))
    (job,) = book.made.jobs
    book.made.crash()
    assert open_messages(book.world) == [job]
    assert [one for one in book.made.jobs if isinstance(one, c.SendNotice)] == [job]
    assert [one.event for one in book.world.notices.wanted] == ["waiting", "stopped_unexpectedly"]
    book.answered()
    assert [one.event for one in book.world.notices.wanted] == ["stopped_unexpectedly"]


def test_answers_to_nothing_change_nothing() -> None:
    book = asked("t-1").answered()
    before = book.world.notices
    for answer in (resources.NoticeSent("notice/pager/1", "pager"), resources.NoticeFailed("x", "nobody", "no")):
        then(book, answer)
        assert book
        assert book.world.notices == before
    then(book, resources.TimerDue("notice:pager", T0))
    then(book, resources.TimerDue("outage:the tracker", T0))
    assert book
    assert book.world.notices == before


def test_a_target_that_is_taken_out_is_given_up() -> None:
    book = asked("t-1", targets=(PAGER, DESK)).answered()
    (notice,) = book.world.notices.wanted
    assert book >> adopted(config(DESK)) << like(resources.NoticesGivenUp, target="pager", notices=(notice.id,))
    assert [key for key, _ in dues(book.world)] == ["notice:desk"]
    then(book, book.later(60))
    then(book, adopted(config(PAGER)))  # while it is under way
    assert [*fails(book)] == []
    assert book.world.notices.wanted == ()


# --- quiet hours ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("N2")
def test_nobody_is_told_in_quiet_hours_but_what_is_urgent() -> None:
    book = asked("t-1", urgent=("finding",))
    then(book, resources.QuietSeen(NIGHT))
    book.answered()
    assert [due for _, due in dues(book.world)] == [NIGHT]
    then(book, resources.AccountAudited((Finding("stranded", None, "so"),)))
    book >> book.later(60) << like(resources.NoticesGathered, why="1 to be told")
    assert [line.split(" ")[1] for line in told(book)] == ["the"]
    assert [due for _, due in dues(book.world)] == [NIGHT]
    then(book, book.later((NIGHT - book.now).total_seconds()))
    assert [line.split(" ")[1] for line in told(book)] == ["t-1"]


def test_quiet_hours_that_are_taken_out_of_the_configuration_end() -> None:
    book = asked("t-1")
    wanted = book.now
    then(book, resources.QuietSeen(NIGHT))
    then(book, resources.QuietSeen(None))
    book.answered()
    assert [due for _, due in dues(book.world)] == [wanted + MINUTE]


def test_quiet_hours_keep_a_retry_too() -> None:
    book = asked("t-1").answered()
    then(book, book.later(60))
    fails(book)
    then(book, resources.QuietSeen(NIGHT))
    assert [due for _, due in dues(book.world)] == [NIGHT]


def test_old_quiet_hours_are_over() -> None:
    book = asked("t-1").answered()
    asked_at = book.world.notices.wanted[0].noted
    then(book, resources.QuietSeen(T0))
    assert [due for _, due in dues(book.world)] == [asked_at + MINUTE]


# --- idle -----------------------------------------------------------------------------------------------------------


def test_what_is_to_be_told_soon_is_work() -> None:
    book = asked("t-1").answered()
    assert not is_idle(book.world, timedelta(minutes=5))
    assert is_idle(book.world, timedelta(seconds=59))
    then(book, book.later(60))
    assert not is_idle(book.world)
    told(book)
    assert is_idle(book.world, timedelta(minutes=5))


def test_notices_wake_no_dispatch_and_quiet_hours_are_no_pause() -> None:
    book = Playbook(READ, config=config())
    then(book, resources.QuietSeen(NIGHT))
    assert book
    assert book.looked().flow().run is not None
    assert QuietHours(at="0 22 * * *", lasts=timedelta(hours=8)).name is None
    assert issue("t-1")
