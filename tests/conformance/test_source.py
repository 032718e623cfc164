"""What every source of issues keeps: the contract of `ashep.ports.sources`, in memory and for GitHub over HTTP."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ashep.adapters.sources import github, place_of, source_of
from ashep.adapters.system import rest_api
from ashep.core.policy.sources import GitHubSource
from ashep.errors import AshepError, ForgeRefused, ForgeUnauthorized, ForgeUnavailable
from ashep.extras.simulation.memory.source import MemorySource
from ashep.ports.sources import Source
from ashep.redaction import Redaction
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge
from tests.fake_issues import BEGIN, OURS
from tests.github_schema import find_problem

MARK = "<!-- agent-shepherd: source/t-gh-12/state -->"


@pytest.fixture(scope="module")
def listening() -> Iterator[FakeForge]:
    with FakeForge().listening() as forge:
        yield forge


@pytest.fixture
def site(listening: FakeForge, monkeypatch: pytest.MonkeyPatch) -> FakeForge:
    """A forge without an issue, whose client does not wait between writes."""
    url = listening.url
    FakeForge.__init__(listening)
    listening.url = url
    monkeypatch.setattr(github, "BETWEEN_WRITES", 0.0)
    return listening


async def made(site: FakeForge, **more: Any) -> Source:
    """The real adapter."""
    settings = GitHubSource.model_validate({"repository": REPOSITORY, "url": f"{site.url}/github"} | more)
    return await source_of(Path(), settings, environ={"GITHUB_TOKEN": TOKEN})


class Played:
    """People at a source, whichever kind it is."""

    def __init__(self, source: Source, play: Any) -> None:
        self.source, self.play = source, play

    def issue(self, number: int) -> Any:
        return self.play.all[number] if self.is_real else number

    @property
    def is_real(self) -> bool:
        return not isinstance(self.play, MemorySource)

    def opens(self, by: str = "olga", *, labelled: bool = True) -> int:
        if self.is_real:
            return self.play.opens("Add it", by, labels=("ashep",) if labelled else ()).number
        return self.play.opens("Add it", by, labelled=labelled)

    def labels(self, number: int, by: str, *, off: bool = False, bot: bool = False) -> None:
        label = ("ashep",) if self.is_real else ()
        self.play.labels(
            self.issue(number), *label, by, **({"off": off} if self.is_real else {"removed": off}), bot=bot
        )

    def edits(self, number: int, body: str) -> None:
        self.play.edits(self.issue(number), body=body)

    def ends(self, number: int, by: str, state: str = "closed") -> None:
        if self.is_real and state == "gone":
            self.play.all[number].status = 404
        elif self.is_real:
            self.play.ends(self.issue(number), by, opens=state == "open")
        else:
            self.play.ends(number, by, state)

    def says(self, number: int, by: str, text: str) -> int:
        said = self.play.says(self.issue(number), by, text)
        return said["id"] if self.is_real else said

    def rewrites(self, number: int, comment: int, text: str) -> None:
        there = next(one for one in self.play.all[number].comments if one["id"] == comment) if self.is_real else comment
        self.play.rewrites(self.issue(number), there, text)

    def thumbs(self, comment: int, by: str) -> None:
        (self.play.thumbs if self.is_real else self.play.thumbs_up)(comment, by)

    def ours(self, number: int) -> list[str]:
        return self.play.ours(self.issue(number))


@pytest.fixture(params=["memory", "github"])
async def played(request: pytest.FixtureRequest, site: FakeForge) -> AsyncIterator[Played]:
    if request.param == "memory":
        moments = iter(BEGIN + timedelta(seconds=number) for number in range(10_000))
        source = MemorySource(lambda: next(moments))
        yield Played(source, source)
        return
    source = await made(site)
    yield Played(source, site.issues)
    await source.aclose()


# --- every source ---------------------------------------------------------------------------------------------------


async def test_the_first_look_shows_what_is_asked_for_and_then_what_changed(played: Played) -> None:
    first, other = played.opens(), played.opens(labelled=False)
    assert [one.number for one in await played.source.changed() or ()] == [first]
    assert [one.number for one in await played.source.changed() or ()] == [first], "it was not taken"
    played.source.confirm()
    await settled(played.source)
    assert await played.source.changed() is None
    played.labels(other, "olga")
    found = await played.source.changed()
    assert other in {one.number for one in found or () if one.labelled}
    played.source.confirm()
    await settled(played.source)
    played.ends(first, "eve")
    assert ("closed", True) in {(one.state, one.labelled) for one in await played.source.changed() or ()}


async def settled(source: Source) -> None:
    """Look until nothing has changed."""
    while await source.changed() is not None:
        source.confirm()


async def test_who_set_the_label_and_who_opened_it_again_is_told(played: Played) -> None:
    number = played.opens(labelled=False)
    assert (await played.source.history(number)).label is None
    played.labels(number, "ann")
    played.labels(number, "eve", off=True)
    played.labels(number, "eve", bot=True)
    played.ends(number, "eve")
    played.ends(number, "ann", "open")
    history = await played.source.history(number)
    assert history.label is not None
    assert history.reopened is not None
    assert (history.label.login, history.label.bot, history.reopened.login) == ("eve", True, "ann")
    assert history.reopened.moment > history.label.moment
    assert (history.edited, history.unknown) == (None, "")
    played.edits(number, "something else")
    history, label = await played.source.history(number), history.label
    assert history.edited is not None
    assert history.edited > label.moment
    assert (history.title, history.body) == ("Add it", "something else")


async def test_what_is_there_no_more_is_gone(played: Played) -> None:
    number = played.opens()
    played.ends(number, "olga", "gone")
    assert (await played.source.issue(number)).state == "gone"


async def test_comments_come_in_order_and_tell_whether_they_were_edited(played: Played) -> None:
    number = played.opens()
    first = played.says(number, "ann", "/ashep approve\u202e")
    played.says(number, "eve", "No!")
    played.rewrites(number, first, "/ashep stop")
    found = await played.source.comments(number)
    assert [(one.event.login, one.text, one.edited) for one in found] == [
        ("ann", "/ashep stop", True),
        ("eve", "No!", False),
    ]
    assert found[0].event.id == f"comment/{first}"
    played.thumbs(first, "ann")
    assert [one.login for one in await played.source.thumbs(first)] == ["ann"]


async def test_what_people_may_do_is_asked(played: Played) -> None:
    said = [await played.source.permission(name) for name in ("olga", "ann", "eve", "nobody-here")]
    assert said == ["admin", "write", "read", "none"]
    assert await played.source.account() == OURS


async def test_our_comment_is_kept_up_to_date_and_never_doubled(played: Played) -> None:
    number = played.opens()
    fake = played.says(number, "eve", f"Nothing.\n\n{MARK}")
    first = await played.source.say(number, "It waits.", MARK)
    assert first == await played.source.say(number, "It waits.", MARK)
    again = await played.source.say(number, "It works.", MARK, int(first.id.rpartition("/")[2]))
    assert again.id == first.id
    assert (await played.source.say(number, "It works.", MARK, 1)).id == first.id, "it was deleted: by its mark"
    assert played.ours(number) == [f"It works.\n\n{MARK}"]
    assert f"comment/{fake}" != first.id


async def test_it_is_closed_once(played: Played) -> None:
    number = played.opens()
    await played.source.close(number)
    await played.source.close(number)
    assert (await played.source.issue(number)).state == "closed"


async def test_whether_the_base_holds_a_commit(played: Played) -> None:
    assert not await played.source.holds("main", "c0ffee")
    (played.play.pushed.setdefault("main", set())).add("c0ffee")
    assert await played.source.holds("main", "c0ffee")
    assert await played.source.holds("", "c0ffee")
    assert not await played.source.holds("other", "c0ffee")


# --- GitHub alone ---------------------------------------------------------------------------------------------------


async def test_a_minute_in_which_nothing_happens_costs_one_request_without_an_answer(site: FakeForge) -> None:
    source = await made(site)
    site.issues.opens("t", labels=("ashep",))
    await settled(source)
    site.requests.clear()
    assert await source.changed() is None
    assert site.requests == [("GET", f"/github/repos/{REPOSITORY}/issues")]
    await source.aclose()


async def test_two_thousand_issues_are_all_seen(site: FakeForge) -> None:
    source = await made(site)
    for _ in range(2000):
        site.issues.opens("t", labels=("ashep",))
    assert len(await source.changed() or ()) == 2000
    await source.aclose()


@pytest.mark.parametrize("everything", [True, False])
async def test_an_issue_that_changes_while_pages_are_read_hides_no_other(site: FakeForge, *, everything: bool) -> None:
    source, first = await made(site), site.issues.opens("t", labels=("ashep",))
    await settled(source)
    others = [site.issues.opens("t", labels=("ashep",)) for _ in range(60)]
    requests = iter(range(100))

    def change(request: Request) -> None:
        if request.url.path.endswith("/issues") and next(requests) == 1:
            for issue in (first, *others[:20]):
                site.issues.says(issue, "eve", "Meanwhile.")

    site.trouble = change
    numbers = {item.number for item in await source.changed(everything=everything) or ()}
    assert numbers >= {issue.number for issue in others}
    await source.aclose()


async def test_a_hundred_issues_of_one_second_are_all_seen(site: FakeForge) -> None:
    source = await made(site)
    issues = [site.issues.opens("t", labels=("ashep",)) for _ in range(100)]
    for issue in issues:
        issue.updated = issues[0].updated
    assert len(await source.changed() or ()) == 100
    await source.aclose()


async def test_a_label_that_was_taken_off_within_the_second_is_a_change(site: FakeForge) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    before = await source.issue(issue.number)
    moment = issue.updated
    site.issues.labels(issue, "ashep", "olga", off=True)
    issue.updated = moment
    after = await source.issue(issue.number)
    assert (before.labelled, after.labelled) == (True, False)
    assert before.updated != after.updated
    await source.aclose()


async def test_a_pull_request_with_the_label_is_no_issue(site: FakeForge) -> None:
    source = await made(site)
    pull = site.issues.opens("t", labels=("ashep",))
    pull.is_pull = True
    assert await source.changed() == ()
    assert (await source.issue(pull.number)).state == "gone"
    await source.aclose()


async def test_another_label_neither_counts_nor_hides_who_set_ours(site: FakeForge) -> None:
    source = await made(site)
    first, other = site.issues.opens("t", labels=("ashep",)), site.issues.opens("t", "eve", labels=("bug",))
    await settled(source)
    for off in (False, True):
        site.issues.labels(first, "bug", "eve", off=off)
        history = await source.history(first.number)
        assert history.label is not None
        assert history.label.login == "olga"
    assert (await source.history(other.number)).label is None
    assert [item.labelled for item in await source.changed() or () if item.number == first.number] == [True]
    await source.aclose()


async def test_a_page_of_the_longest_texts_fits_into_an_answer(
    site: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = 32  # of the real sizes
    monkeypatch.setattr(rest_api, "LARGEST", rest_api.LARGEST // part)
    source = await made(site)
    for _ in range(70):
        site.issues.opens("t", "eve", body="\x01" * (65_536 // part), labels=("ashep",))
    assert len(await source.changed() or ()) == 70
    await source.aclose()


async def test_more_changes_than_one_look_reads_are_left_to_the_next(
    site: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, last = await made(site), site.issues.opens("t")
    await settled(source)
    monkeypatch.setattr(github, "MOST_PAGES", 2)
    for _ in range(100):
        last = site.issues.opens("t", labels=("ashep",))
    numbers = {item.number for item in await source.changed() or ()}
    assert last.number not in numbers
    source.confirm()
    assert last.number in {item.number for item in await source.changed() or ()}
    with pytest.raises(ForgeRefused, match="more than 80 issues carry the label ashep"):
        await source.changed(everything=True)
    await source.aclose()


SPENT = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2014882977", "date": "Sun, 06 Nov 2033 08:49:37 GMT"}


@pytest.mark.parametrize(
    ("status", "headers", "error", "wait"),
    [
        (403, SPENT, ForgeUnavailable, 3200),
        (403, {"retry-after": "77"}, ForgeUnavailable, 77),
        (429, {}, ForgeUnavailable, 60),
        (502, {}, ForgeUnavailable, 0),
        (401, {}, ForgeUnauthorized, None),
        (301, {}, ForgeRefused, None),
        (404, {}, ForgeRefused, None),
        (422, {}, ForgeRefused, None),
    ],
)  # fmt: skip
async def test_what_it_refuses_is_told_apart(
    site: FakeForge, status: int, headers: dict[str, str], error: type[AshepError], wait: float | None
) -> None:
    source = await made(site)
    number = site.issues.opens("t", labels=("ashep",)).number
    site.trouble = lambda request: JSONResponse({"message": "no"}, status, headers=headers)
    for ask in (source.issue(number), source.comments(number), source.say(number, "x", MARK)):
        with pytest.raises(error) as caught:
            await ask
        if wait is not None:
            assert isinstance(caught.value, ForgeUnavailable)
            assert caught.value.retry_after == wait
    await source.aclose()


def only(path: str, status: int = 404) -> Callable[[Request], Response | None]:
    """Trouble with what ends so alone."""
    return lambda request: JSONResponse({"message": "no"}, status) if request.url.path.endswith(path) else None


async def test_a_repository_that_was_renamed_or_hidden_takes_no_issue_away(site: FakeForge) -> None:
    source = await made(site)
    number = site.issues.opens("t", labels=("ashep",)).number
    for status, message in ((301, "was renamed or transferred: name it as it is called now"), (404, "404")):
        site.trouble = lambda request, status=status: JSONResponse({"message": "Moved"}, status)
        for ask in (source.issue(number), source.permission("ann")):
            with pytest.raises((ForgeRefused, ForgeUnauthorized)):
                await ask
        site.trouble = only("/issues", status)
        with pytest.raises(ForgeRefused, match=message):
            await source.changed()
    site.trouble = only("/labels/ashep", 301)
    with pytest.raises(ForgeRefused, match="was renamed or transferred"):
        await source.changed(everything=True)
    await source.aclose()


async def test_an_account_that_gets_another_name_is_ours_by_that(site: FakeForge) -> None:
    source = await made(site)
    assert await source.account() == OURS
    site.trouble = lambda request: JSONResponse({"login": "other"}) if request.url.path.endswith("/user") else None
    await source.changed(everything=True)
    assert await source.account() == "other"
    await source.aclose()


async def test_a_comment_that_was_deleted_has_no_thumbs(site: FakeForge) -> None:
    source = await made(site)
    assert await source.thumbs(4711) == ()
    site.trouble = only("/reactions", 403)
    with pytest.raises(ForgeRefused):
        await source.thumbs(4711)
    await source.aclose()


@pytest.mark.parametrize("status", [301, 404, 410])
async def test_an_issue_that_was_transferred_deleted_or_made_a_discussion_is_gone(site: FakeForge, status: int) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    issue.status = status
    assert (await source.issue(issue.number)).state == "gone"
    await source.aclose()


async def test_a_label_that_is_not_there_is_told_and_takes_nothing_away(site: FakeForge) -> None:
    source = await made(site)
    site.issues.label_names.clear()
    with pytest.raises(ForgeUnavailable, match="no label ashep"):
        await source.changed()
    await source.aclose()


async def test_where_edits_cannot_be_read_that_is_said(site: FakeForge) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    site.issues.tells_edits = False
    assert (await source.history(issue.number)).unknown == "Resource not accessible"
    site.trouble = only("/graphql", 403)
    assert "403" in (await source.history(issue.number)).unknown
    await source.aclose()


async def test_a_renamed_title_is_an_edit(site: FakeForge) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    site.issues.edits(issue, title="another")
    assert (await source.history(issue.number)).edited is not None
    await source.aclose()


async def test_a_token_that_may_not_read_rights_lets_nobody_count(site: FakeForge) -> None:
    source = await made(site)
    site.trouble = only("/permission", 403)
    with pytest.raises(ForgeUnauthorized, match="metadata"):
        await source.permission("ann")
    await source.aclose()


async def test_a_lost_answer_doubles_no_comment(site: FakeForge) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    site.forgets = True
    with pytest.raises(ForgeUnavailable):
        await source.say(issue.number, "It waits.", MARK)
    await source.say(issue.number, "It waits.", MARK)
    assert len(site.issues.ours(issue)) == 1
    await source.aclose()


async def test_a_locked_issue_refuses_our_comment_for_good(site: FakeForge) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    issue.locked = site.locks_us = True
    assert (await source.issue(issue.number)).locked
    with pytest.raises(ForgeRefused):
        await source.say(issue.number, "It waits.", MARK)
    await source.aclose()


async def test_writes_keep_a_distance(site: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    source = await made(site)
    issue = site.issues.opens("t", labels=("ashep",))
    monkeypatch.setattr(github, "BETWEEN_WRITES", 0.2)
    began = anyio.current_time()
    for number in range(3):
        await source.say(issue.number, "x", MARK.replace("state", str(number)))
    assert anyio.current_time() - began >= 0.4
    await source.aclose()


async def test_without_a_token_it_says_what_to_do(site: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ForgeUnauthorized, match="gh auth login"):
        await source_of(Path(), GitHubSource(repository=REPOSITORY), environ={})


async def test_the_token_is_in_no_message(site: FakeForge) -> None:
    redaction = Redaction()
    settings = GitHubSource(repository=REPOSITORY, url=f"{site.url}/github")
    source = await source_of(Path(), settings, redaction, {"GITHUB_TOKEN": TOKEN})
    site.trouble = lambda request: JSONResponse({"message": f"Bad {TOKEN}"}, 401)
    with pytest.raises(ForgeUnauthorized) as caught:
        await source.account()
    assert TOKEN not in str(caught.value)
    await source.aclose()


@pytest.mark.real
@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("https://github.com/acme/shop.git", ("github.com", "acme/shop", "https://api.github.com")),
        ("git@github.com:acme/shop.git", ("github.com", "acme/shop", "https://api.github.com")),
        ("ssh://git@ssh.github.com:443/acme/shop", ("github.com", "acme/shop", "https://api.github.com")),
        ("gh:acme/shop", ("github.com", "acme/shop", "https://api.github.com")),
        ("https://olga:secret@forge.example/a/b/c", None),
        ("ssh://git@git.example:2222/acme/shop", ("git.example", "acme/shop", "https://git.example/api/v3")),
        ("/srv/git/shop", None),
    ],
)
async def test_the_remote_says_which_repository_it_is(
    tmp_path: Path, address: str, where: tuple[str, str, str] | None
) -> None:
    await anyio.run_process(["git", "init", "-q", str(tmp_path)])
    await anyio.run_process(["git", "-C", str(tmp_path), "remote", "add", "origin", address])
    await anyio.run_process(["git", "-C", str(tmp_path), "config", "url.https://github.com/.insteadOf", "gh:"])
    if where is None:
        with pytest.raises(AshepError, match=r"sources\.github\.repository") as caught:
            await place_of(tmp_path, GitHubSource())
        assert "secret" not in str(caught.value)
        return
    found = await place_of(tmp_path, GitHubSource())
    assert (found.host, found.repository, found.url) == where


@pytest.mark.parametrize(
    ("method", "path", "query", "sent", "answer", "problem"),
    [
        ("GET", "/repos/a/b/issues", {"since"}, None, [{"number": 1, "title": "t", "user": None}], ""),
        ("GET", "/repos/a/b/issues", {"until"}, None, [], "knows no parameters"),
        ("GET", "/repos/a/b/issues", {"since"}, None, [{"number": "1"}], "$[0]"),
        ("GET", "/repos/a/b/issues", {"since"}, None, [{"state_of_it": "open"}], "state_of_it"),
        ("GET", "/repos/a/b/issues/1/votes", set[str](), None, [], "is no operation"),
        ("POST", "/repos/a/b/issues/1/comments", set[str](), {"text": "x"}, {}, "is not answered with 200"),
    ],
)
def test_the_played_github_is_held_to_the_published_one(
    method: str, path: str, query: set[str], sent: object, answer: object, problem: str
) -> None:
    found = find_problem(method, path, query, sent, 200, json.dumps(answer).encode())
    assert (problem in found) if problem else not found
