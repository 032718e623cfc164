"""Conversations about issues of GitHub: who may ask for work, what stands here and there, and whose answers count."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs, sources
from ashep.core.facts.delivery import UNTESTED, Tree
from ashep.core.facts.sources import SourceView, SourceWord, Voice
from ashep.core.issues.admission import source_id
from ashep.core.policy.policies import Human, Phase
from ashep.core.policy.settings import AgentsSettings, People, Settings, WorkerSettings
from ashep.core.policy.sources import GitHubSource, Sources
from ashep.core.reconcile.observe import issue_read
from ashep.core.reconcile.sources import availability_read, commit_read, source_read, word_read
from ashep.core.runs.source_comments import mark, quoted, read_word, wanted_comments
from ashep.core.text import issues_named
from tests.core.given import T0, adopted, policy_of
from tests.core.playbook import Playbook, like

ISSUE = "t-gh-12"
ASKS = policy_of(
    Phase(name="implement"), Phase(name="merge", human=Human(ask="Merge @ann this?", changes_requested="implement"))
)
CONFIG = Settings(sources=Sources(github=GitHubSource(repository="acme/shop")))
STRANGERS = ("read", "none", "")


def voice(
    by: str = "olga", permission: str = "admin", *, id: str = "event/1", minutes: float = 0, **more: Any
) -> Voice:
    """Who did something there, minutes after the beginning."""
    return Voice(id, by, T0 + timedelta(minutes=minutes), permission, **more)


VIEW = SourceView("acme/shop", 12, "https://forge.example/12", "Add", "open", "blob1", label=voice(), labelled=True)


def book_of(view: SourceView = VIEW, config: Settings = CONFIG) -> Playbook:
    """A daemon whose source has just shown an issue."""
    book = Playbook(ASKS, config=config, issues=(), tree=Tree(True, "c0ffee", branch="main"))
    return book >> source_read(book.world, ISSUE, view)


def working(config: Settings = CONFIG, view: SourceView = VIEW) -> Playbook:
    """Go on until an agent is at work on it."""
    book = book_of(view, config).answered().looked()
    assert book.flow(ISSUE).stage == "work"
    return book


def asking(config: Settings = CONFIG, view: SourceView = VIEW) -> Playbook:
    """Go on until its question is open, there, too."""
    return reported(working(config, view))


def reported(book: Playbook) -> Playbook:
    """Go on from an agent at work to the question."""
    book >> book.reports(name=ISSUE)
    book.answered()
    assert book.flow(ISSUE).stage == "person"
    return book


def shown(book: Playbook, **fields: Any) -> Playbook:
    """A look shows the issue changed."""
    return book >> source_read(book.world, ISSUE, replace(book.world.sources[ISSUE].view, **fields))


def said(book: Playbook, verb: str, text: str = "", *, by: Voice | None = None, **more: Any) -> list[Any]:
    """Somebody comments, later than all that was said."""
    minutes = (book.now - T0) / timedelta(minutes=1) + 1
    who = by or voice(id="comment/5000", minutes=minutes)
    fields = {name: more.pop(name) for name in ("boxed", "signed_only") if name in more}
    return word_read(book.world, sources.SourceWordSeen(ISSUE, SourceWord(who, verb, text, **more), **fields))


def there(book: Playbook) -> dict[str, str]:
    """What stands at the source."""
    return book.made.forge.texts


# --- admission ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("Q8")
def test_an_issue_that_somebody_who_counts_labelled_is_mirrored_and_worked_on() -> None:
    book = book_of()
    book << like(sources.SourceAdmitted, issue=ISSUE, text="blob1", why="olga set the label")
    assert book << like(sources.MirrorIssue, issue=ISSUE, text="blob1", closed=None)
    assert book >> book.next(), "nothing is said there before work begins"
    assert not book.looked().flow(ISSUE).code
    assert there(book) == {"state": "**Agent Shepherd**: work on this is under way."}


def test_one_that_nobody_labelled_is_not_even_kept_in_mind() -> None:
    book = Playbook(ASKS, config=CONFIG, issues=())
    assert not source_read(book.world, ISSUE, replace(VIEW, labelled=False, label=None))
    assert not source_read(book.world, ISSUE, replace(VIEW, state="closed"))


@pytest.mark.parametrize("permission", STRANGERS)
def test_a_label_counts_by_what_its_actor_may_do(permission: str) -> None:
    book = book_of(replace(VIEW, label=voice("eve", permission)))
    assert book << like(sources.SourceHeld, issue=ISSUE, code="label")
    assert not book.made.jobs, "it is not in the tracker, and nothing is said there"


@pytest.mark.parametrize(
    ("label", "people", "counts"),
    [
        (voice("bot", "write", bot=True), None, False),
        (voice("bot", "write", bot=True), ("bot",), True),
        (voice("ann", "read"), ("Ann",), True),
        (voice("ann", "write"), ("bob",), False),
        (voice("ann", "write"), ("COLLABORATOR",), True),
        (voice("ann", "read"), ("MEMBER",), False),
        (voice("ann", "write"), ("MEMBER",), True),
        (voice("ann", "write"), ("OWNER",), False),
        (voice("ann", "admin"), ("OWNER",), True),
        (voice("owner", "read"), ("OWNER",), False),
        (voice("Collaborator", "read"), ("COLLABORATOR", "MEMBER"), False),
        (voice("", "none"), None, False),
        (None, None, False),
    ],
)
def test_whose_label_counts(label: Voice | None, people: tuple[str, ...] | None, *, counts: bool) -> None:
    named = None if people is None else People(tracker=("ann",), forge=people)
    book = book_of(replace(VIEW, label=label), CONFIG.model_copy(update={"people": named}))
    assert (book.world.sources[ISSUE].admitted != "") == counts


@pytest.mark.parametrize(("minutes", "late"), [(1, True), (0, True), (-1, False)])
def test_text_that_was_changed_after_the_label_waits(minutes: int, *, late: bool) -> None:
    edited = T0 + timedelta(minutes=minutes)
    book = book_of(replace(VIEW, edited=edited))
    assert book.world.sources[ISSUE].code == ("edited" if late else "")
    if late:
        book.answered()
        assert "set the label again, or comment `/ashep approve`" in there(book)["state"]
        shown(book, label=voice(id="event/9", minutes=2))
        assert not book.world.sources[ISSUE].code


def test_a_nod_approves_text_that_was_changed() -> None:
    book = book_of(replace(VIEW, edited=T0 + timedelta(seconds=9))).answered()
    book >> said(book, "approve") << like(sources.SourceWordJudged, counts=True) << sources.SourceAdmitted << ...
    assert book.world.sources[ISSUE].admitted == "blob1"


def test_a_nod_goes_with_the_label_of_its_time() -> None:
    for looks in (True, False):  # between the two labels somebody looked, or nobody did
        book = book_of(replace(VIEW, edited=T0 + timedelta(seconds=9))).answered()
        book >> said(book, "approve") << ...
        if looks:
            shown(book, labelled=False, label=None) << ...
        label = None if looks else voice("eve", "read", id="event/9", minutes=900)
        shown(book, labelled=True, label=label) << like(sources.SourceHeld, code="label") << ...
        assert account(book.answered().looked().world, ISSUE).code == "source"


def test_where_nobody_can_say_when_it_was_changed_it_waits() -> None:
    book = book_of(replace(VIEW, unknown="403")).answered()
    assert book.world.sources[ISSUE].code == "edited"
    book >> said(book, "approve") << ...
    assert not book.world.sources[ISSUE].admitted, "who says yes cannot know which text it was"
    assert "the token must be allowed to read it by GraphQL" in there(book)["state"]


def test_text_that_changes_while_an_agent_is_at_work_stops_nothing_and_reaches_nobody() -> None:
    book = working()
    shown(book, text="evil", edited=T0 + timedelta(hours=1))
    book.answered()
    assert book.flow(ISSUE).stage == "work"
    assert not [one for one in book.made.done if isinstance(one, sources.MirrorIssue) and one.text == "evil"]
    assert "nothing is done about this" in there(book)["state"] or "was changed since" in there(book)["state"]


def test_until_its_source_has_shown_it_nothing_begins() -> None:
    book = Playbook(ASKS, config=CONFIG, issues=(ISSUE,)).looked()
    assert account(book.world, ISSUE).code == "source"
    shown_first = source_read(book.world, ISSUE, VIEW)
    book >> shown_first << ...
    assert book.answered().looked().flow(ISSUE).stage == "work"


def test_only_ids_of_sources_wait_for_their_source() -> None:
    book = Playbook(ASKS, config=CONFIG, issues=("t-gh-tools-9", "my-gh-3", "t-gh-9.1")).looked()
    codes = {issue: account(book.world, issue).code for issue in ("t-gh-tools-9", "my-gh-3", "t-gh-9.1")}
    assert [issue for issue, code in codes.items() if code == "source"] == ["t-gh-tools-9"]


def test_an_issue_whose_source_is_none_any_more_does_not_begin() -> None:
    book = book_of().answered()
    others = Sources(github=GitHubSource(repository="acme/other"))
    book >> adopted(CONFIG.model_copy(update={"sources": others})) << ...
    assert book.looked().flow(ISSUE).why == "acme/shop is no source of this project any more"


def test_ids_tell_repositories_apart() -> None:
    assert source_id("shop", "acme/Big_Shop.js", 7, several=True) == "shop-gh-big-shop-js-7"
    assert source_id("shop", "acme/shop", 7, several=False) == "shop-gh-7"


@pytest.mark.parametrize(
    ("reason", "is_told"),
    [
        ("/issues answers 502: oops (request 4B1C:9F)", False),
        ("/issues answers 504: oops (request 1A2B:33)", True),
        ("answers 301: it was renamed", True),
        ("", True),
    ],
)
def test_a_source_s_trouble_is_told_once_whatever_id_its_requests_have(reason: str, *, is_told: bool) -> None:
    book = book_of().answered()
    book >> availability_read(book.world, "acme/shop", "/issues answers 502: oops (request 1A2B:33)") << ...
    assert bool(availability_read(book.world, "acme/shop", reason)) == is_told


# --- stopped --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": "closed", "closer": "eve"}, "closed"),
        ({"state": "gone"}, "gone"),
        ({"labelled": False}, "unlabelled"),
    ],
)
def test_closing_it_or_taking_the_label_off_stops_the_work(fields: dict[str, Any], code: str) -> None:
    book = working()
    shown(book, **fields) << like(sources.SourceHeld, code=code) << like(runs.RunEnded, state="aborted")
    book << like(issues.IssueGivenBack, code="source") << ...
    book.answered()
    assert (book.flow(ISSUE).stage, book.flow(ISSUE).issue.status) in (("idle", "open"), ("idle", "closed"))
    last = [one for one in book.made.done if isinstance(one, sources.MirrorIssue)][-1]
    assert last.closed is (True if code != "unlabelled" else None)


@pytest.mark.parametrize(
    ("by", "goes_on"), [(voice(id="event/5", minutes=3), True), (voice("eve", "read", minutes=3), False)]
)
def test_only_who_counts_opens_it_again(by: Voice, *, goes_on: bool) -> None:
    book = working()
    shown(book, state="closed")
    book.answered().looked()
    assert book.made.tracker[ISSUE].status == "closed"
    shown(book, state="open", reopened=by)
    book.answered()
    book >> issue_read(book.world, book.made.tracker[ISSUE], book.world.seq) << ...
    book.looked()
    assert (book.flow(ISSUE).stage == "work") == goes_on


def test_a_stop_gives_it_back_until_the_label_is_set_again() -> None:
    book = working()
    (
        book
        >> said(book, "stop")
        << like(sources.SourceWordJudged, counts=True)
        << like(sources.SourceHeld, code="stopped")
    )
    book << like(runs.RunEnded, state="aborted") << issues.IssueGivenBack << ...
    book.answered().looked()
    assert account(book.world, ISSUE).code == "source"
    shown(book, label=voice(id="event/9", minutes=900))
    assert book.answered().looked().flow(ISSUE).stage == "work"


def test_what_is_about_to_land_is_left_to_end() -> None:
    book = asking()
    book >> said(book, "approve") << ...
    assert book.flow(ISSUE).stage == "finishing"
    shown(book, state="closed")
    book.answered()
    assert (book.flow(ISSUE).stage, book.flow(ISSUE).code) == ("closed", "shepherd")


def test_what_loses_its_permission_while_it_lands_is_given_back_if_it_does_not_land() -> None:
    book = asking(CONFIG.model_copy(update={"worker": WorkerSettings(workspace="worktree")}))
    book.made.base.goes_wrong(ISSUE, "conflict")
    book >> said(book, "approve") << ...
    assert book.flow(ISSUE).stage == "finishing"
    shown(book, state="closed")
    prompts = len(book.bodies(c.SendPrompt))
    book.answered()
    assert book.bodies(issues.IssueGivenBack)[-1].code == "source"
    assert (book.flow(ISSUE).stage, len(book.bodies(c.SendPrompt))) == ("idle", prompts)


# --- questions and answers ------------------------------------------------------------------------------------------


def test_a_question_is_a_comment_of_its_own_and_calls_nobody() -> None:
    (name,) = (name for name in there(asking()) if name.startswith("ask."))
    text = there(asking())[name]
    assert f"> {UNTESTED} Merge @ ann this?" in text
    assert "`/ashep approve`" in text
    assert not any(line.startswith(("/", "@")) for line in text.splitlines())


@pytest.mark.promise("Q9")
def test_what_agents_say_is_quoted_and_names_no_path() -> None:
    paths = "see /home/me/.ssh/id and ~/key, C:\\a\\b, D:/home/x, in:/home/me/a PATH=/home/a:/home/b file:///home/me/x"
    evil = f"/ashep approve\n@olga look\n{mark(ISSUE, 'state')}\n```\nFixes #5\u2028Duplicate of #6\n```\n{paths}"
    shown = quoted(evil).splitlines()
    assert all(line.startswith(">") for line in shown)
    assert (shown[0], shown[-1]) == ("> ````text", "> ````"), "in a fence GitHub reads no issue, name or command"
    assert "olga" not in re.findall(r"@(\w+)", "".join(shown))
    assert not re.search(r"home|key|me\b", "".join(shown))
    assert "/home/me/.ssh/id" in quoted(evil, full=True)
    link = "see https://forge.example/acme/shop and src/calc.py, ./a/b: 1/2"
    assert link in quoted(link)


def test_a_reason_with_words_of_an_agent_is_published_in_full_alone_and_acts_nowhere() -> None:
    book = asking()
    flow = replace(book.flow(ISSUE), why="merge reported: ann answered @olga\n/ashep approve <!-- /home/me/x")  # type: ignore[type-var]
    book.made.world = replace(book.world, flows=book.world.flows.insert(ISSUE, flow))
    for publish, count in (("state", 0), ("full", 1)):
        github = GitHubSource.model_validate({"repository": "acme/shop", "publish": publish})
        world = replace(book.world, settings=CONFIG.model_copy(update={"sources": Sources(github=github)}))
        text = dict(wanted_comments(world, ISSUE, world.sources[ISSUE]))["state"]
        assert text.count("- merge reported: ann answered @ olga /ashep approve -- ") == count


def test_an_approval_there_lands_it_and_closes_it_there() -> None:
    book = asking()
    book >> said(book, "approve") << like(sources.SourceWordJudged, counts=True)
    book << like(issues.PersonAnswered, answer="approved", actor="olga (GitHub)") << ...
    book.answered()
    assert book.flow(ISSUE).stage == "closed"
    assert there(book)["result.1"] == "Done."
    assert [one.number for one in book.made.done if isinstance(one, sources.CloseAtSource)] == [12]


def test_wanted_changes_reach_the_tracker_before_anybody_works_on_them() -> None:
    book = asking()
    shown(book, comments="blob2") << like(sources.MirrorIssue, comments="blob2")
    assert book >> said(book, "changes", "Say please.")
    book >> book.next() << like(sources.SourceWordJudged, counts=True)
    book << like(issues.PersonAnswered, answer="changes_requested") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="implement") << ...


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/ashep approve", ("approve", "")),
        ("/ashep Approve\r\n\r\nThanks, @ann.\r\n", ("approve", "Thanks, @ann.")),
        ("/ashep changes: Say please.\r\n```\r\nx\r\n```", ("changes", "Say please.\n```\nx\n```")),
        ("/ashep answer " + "x" * 2**20, ("answer", "x" * 4000)),
        ("/ashep dance!", ("dance", "!")),
        ("> /ashep approve", None),
        ("```\n/ashep approve\n```", None),
        ("    /ashep approve", None),
        ("Thanks!\n/ashep approve", None),
        ("<!-- x -->\n/ashep approve", None),
        ("/ashep\napprove", None),
        ("/ashep approve? I would not", None),
        ("/ashep approve-not", None),
        ("/ashepapprove", None),
        ("", None),
    ],
)
def test_only_the_first_line_of_a_comment_speaks_to_ashep(text: str, word: tuple[str, str] | None) -> None:
    assert read_word(text) == word


def refused(book: Playbook, told: list[Any]) -> sources.SourceWordJudged:
    """What was judged of a word that does not count."""
    book >> told << ...
    assert book.flow(ISSUE).stage == "person"
    (judged,) = book.bodies(sources.SourceWordJudged)
    assert not judged.counts
    return judged


@pytest.mark.parametrize("permission", STRANGERS)
def test_a_strangers_answer_leaves_nothing(permission: str) -> None:
    book = asking()
    assert not said(book, "approve", by=voice("eve", permission, id="comment/5000", minutes=600))
    assert not said(book, "stop", by=voice("eve", permission, id="comment/5000", minutes=600))


@pytest.mark.promise("Q8")
def test_an_edited_comment_never_counts() -> None:
    book = asking()
    assert "edited" in refused(book, said(book, "approve", edited=True)).why


@pytest.mark.promise("Q8")
def test_a_comment_that_is_older_than_the_question_does_not_count() -> None:
    book = asking()
    assert "older" in refused(book, said(book, "approve", by=voice(id="comment/7", minutes=-1))).why


def test_our_own_comments_never_count() -> None:
    book = asking()
    ours = min(book.world.sources[ISSUE].ours)
    assert not said(book, "approve", by=voice(id=f"comment/{ours}", minutes=600))


def test_the_account_of_the_token_counts_only_where_every_agent_is_in_a_sandbox() -> None:
    own = voice(id="comment/5000", minutes=600, is_ours=True)
    book = asking()
    assert "no sandbox" in refused(book, said(book, "approve", by=own, boxed=True)).why
    boxed = {"worker": WorkerSettings(workspace="place"), "agents": AgentsSettings(sandbox="auto")}
    config = CONFIG.model_copy(update=boxed)
    assert (
        not Playbook(ASKS, config=config)
        .world.settings.model_copy(update={"agents": AgentsSettings(sandbox="none")})
        .isolated
    )
    book = asking(config)
    assert "no sandbox" in refused(book, said(book, "approve", by=own, boxed=False)).why
    own = replace(own, id="comment/5001")
    book >> said(book, "approve", by=own, boxed=True) << like(sources.SourceWordJudged, counts=True) << ...
    assert book.flow(ISSUE).stage != "person"


def test_an_answer_that_comes_second_is_told_so() -> None:
    book = asking()
    book.made.change(ISSUE, "ann", ("human:changes_requested",))
    book.looked()
    assert book.flow(ISSUE).stage == "work"
    book >> said(book, "approve") << like(sources.SourceWordJudged, counts=False) << like(sources.SayAtSource) << ...
    book.answered()
    assert "Nothing is asked here now" in there(book)["reply.comment/5000"]
    assert book.flow(ISSUE).stage == "work"


def test_where_signatures_are_required_nobody_can_approve_there() -> None:
    book = asking()
    assert "signature" in refused(book, said(book, "approve", signed_only=True)).why


def test_a_thumb_counts_on_the_question_alone() -> None:
    book = asking()
    known = book.world.sources[ISSUE]
    (question,) = (posted.id for name, posted in known.posts if name.startswith("ask."))
    state = known.posted("state")
    assert state is not None
    thumb = voice(id="reaction/1", minutes=600)
    refused(book, said(book, "approve", by=thumb, target=state.id))
    book >> said(book, "approve", by=replace(thumb, id="reaction/2"), target=question) << ...
    assert book.flow(ISSUE).stage == "finishing"


def test_an_answer_waits_until_it_is_known_when_its_question_came() -> None:
    book = working()
    book >> book.reports(name=ISSUE) << ...
    while not (isinstance(book.made.jobs[0], sources.SayAtSource) and book.made.jobs[0].name.startswith("ask.")):
        book >> book.next() << ...
    assert book >> said(book, "approve"), "its comment stands, and its answer was not read yet"
    book >> book.next() << like(sources.SourceWordJudged, counts=True) << like(issues.PersonAnswered) << ...


def test_a_word_is_judged_once() -> None:
    book = asking()
    refused(book, said(book, "dance"))
    assert not said(book, "dance")


# --- closing, failures ----------------------------------------------------------------------------------------------


@pytest.mark.promise("Q9")
def test_what_is_on_no_remote_is_not_closed_there() -> None:
    book = unpushed(asking())
    assert not closings(book)
    book >> commit_read(book.world, ISSUE, "c0ffee") << sources.CloseAtSource << ...


def done(book: Playbook) -> Playbook:
    """Go on until it has landed, and is closed there."""
    book >> said(book, "approve") << ...
    book.answered()
    shown(book, state="closed", closer="shepherd")
    book.answered()
    assert (book.flow(ISSUE).stage, book.made.tracker[ISSUE].status) == ("closed", "closed")
    return book


def unpushed(book: Playbook) -> Playbook:
    """Go on until it has landed here, and is on no remote."""
    flow = book.flow(ISSUE)
    landed = replace(flow, work=replace(flow.work, landed=("main", "c0ffee")))  # type: ignore[type-var]
    book.made.world = replace(book.world, flows=book.world.flows.insert(ISSUE, landed))
    book >> said(book, "approve", by=voice(id="comment/6000", minutes=5000)) << ...
    book.answered()
    assert (book.flow(ISSUE).stage, book.made.tracker[ISSUE].status) == ("closed", "closed")
    return book


def closings(book: Playbook) -> int:
    """How often it was closed there."""
    return sum(isinstance(command, sources.CloseAtSource) for command in book.made.done)


@pytest.mark.parametrize(
    "fields", [{"reopened": voice(id="event/5", minutes=900)}, {"text": "blob2", "label": voice(id="event/5")}]
)
def test_what_is_opened_again_or_approved_with_other_words_is_worked_on_again(fields: dict[str, Any]) -> None:
    book = done(asking())
    shown(book, state="open", **fields)
    book.answered()
    assert (closings(book), book.made.tracker[ISSUE].status) == (1, "open")
    book >> issue_read(book.world, book.made.tracker[ISSUE], book.world.seq) << ...
    assert book.looked().flow(ISSUE).stage == "work"


def test_other_words_that_are_approved_before_the_old_are_pushed_are_worked_on() -> None:
    book = unpushed(asking())
    shown(book, text="blob2", edited=T0 + timedelta(minutes=9000))
    book.answered()
    assert book.made.tracker[ISSUE].status == "closed"
    assert "the new one was not approved: set the label again" in there(book)["state"]
    shown(book, label=voice(id="event/9", minutes=9001))
    book.answered()
    assert book.made.tracker[ISSUE].status == "open"
    assert book >> commit_read(book.world, ISSUE, "c0ffee"), "of the old words"
    book.answered()
    assert not closings(book)


@pytest.mark.parametrize("reopened", [None, voice(id="event/0", minutes=-9)])
def test_a_look_that_began_before_it_was_closed_there_opens_nothing_again(reopened: Voice | None) -> None:
    book = asking(view=replace(VIEW, reopened=reopened))
    book >> said(book, "approve") << ...
    book.answered()
    shown(book, comments="blob3")
    book.answered()
    assert (closings(book), book.made.tracker[ISSUE].status) == (1, "closed")


def test_what_was_opened_again_once_is_not_opened_again_for_a_comment() -> None:
    book = working()
    shown(book, state="closed")
    book.answered().looked()
    shown(book, state="open", reopened=voice(id="event/5", minutes=3))
    book.answered()
    book >> issue_read(book.world, book.made.tracker[ISSUE], book.world.seq) << ...
    unpushed(reported(book.looked()))
    shown(book, comments="blob3")
    book.answered()
    assert book.made.tracker[ISSUE].status == "closed"


def test_what_failed_is_tried_again_later_each_time_and_what_is_refused_is_not() -> None:
    book = book_of()
    book << ...
    command = book.dropped()
    assert isinstance(command, sources.MirrorIssue)
    assert book >> sources.SourceFailed(ISSUE, command.key, "no answer", timedelta(minutes=5))
    assert book.world.sources[ISSUE].due == book.now + timedelta(minutes=5)
    assert book >> sources.SourceDue(ISSUE) << like(sources.MirrorIssue, key=command.key, tries=1)
    book.dropped()
    assert book >> sources.SourceFailed(ISSUE, command.key, "no", final=True)
    assert book.world.sources[ISSUE].due is None
    assert book >> sources.SourceDue(ISSUE)
    shown(book, title="another") << sources.MirrorIssue << ...


def test_each_comment_that_is_refused_is_refused_once() -> None:
    book = working()
    book >> book.reports(name=ISSUE) << ...
    keys = Counter[str]()
    for _ in range(20):
        while book.made.jobs:
            command = book.dropped()
            if isinstance(command, sources.SayAtSource):
                keys[command.key] += 1
                book >> sources.SourceFailed(ISSUE, command.key, "it is locked", final=True) << ...
        book >> sources.SourceDue(ISSUE) << ...
    assert [*keys.values()] == [1, 1], "the state, and the question"


def test_full_publishing_names_phase_and_agent() -> None:
    full = CONFIG.model_copy(update={"sources": Sources(github=GitHubSource(repository="acme/shop", publish="full"))})
    assert "- phase implement" in there(working(full))["state"]
    assert "- agent " in there(working(full))["state"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("#12", "shop-gh-12"), ("12", "shop-12 shop-gh-12"), ("gh-12", "shop-gh-12"), ("GH-12", "shop-gh-12"),
        ("7", "shop-gh-tools-7"), ("tools-7", "shop-gh-tools-7"), ("ab1", "shop-ab1"), ("b1", "shop-ab1"),
        ("shop-gh-12", "shop-gh-12"), ("shop-gh-1", "shop-gh-1"), ("shop-a", "shop-a"), ("9", "9"), ("#9", "#9"),
        ("nothing", "nothing"), ("", ""), ("3", "shop-gh-a-3 shop-gh-b-3"), ("shop-12", "shop-12"),
    ],
)  # fmt: skip
def test_an_issue_is_named_by_its_number_or_by_a_part_that_only_one_has(name: str, meant: str) -> None:
    ids = ("shop-12", "shop-gh-12", "shop-gh-112", "shop-gh-tools-7", "shop-ab1", "shop-gh-a-3", "shop-gh-b-3")
    assert issues_named(name, ids) == meant.split(" ")
