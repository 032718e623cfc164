"""Pull requests over what they are really made of: git's own pushes to a bare remote, and a forge over HTTP."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ashep import factories
from ashep.core.facts import commands as c
from ashep.core.facts import delivery
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.settings import People
from ashep.core.state.world import World
from ashep.daemon.effects.pulls import ForgeAdapters, PullEffects
from ashep.redaction import Redaction
from tests.conformance.landings import GitLandingWorld
from tests.core.test_playbook_pull_requests import CONFIG, at_the_opening, book_of
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge
from tests.test_pushing import persons_commit, there, world

__all__ = ["world"]

pytestmark = pytest.mark.real
BRANCH = "ashep/t-1"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeForge]:
    """A forge, and our token for it."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    with FakeForge().listening() as forge:
        yield forge


def effects_of(world: GitLandingWorld, site: FakeForge) -> tuple[PullEffects, ForgeSettings]:
    """The real thing, as `ashep work` makes it."""
    settings = ForgeSettings(type="github", repository=REPOSITORY, url=f"{site.url}/github")

    def made(settings: ForgeSettings) -> ForgeAdapters:
        return factories.make_forge_adapters(world.top, settings, redaction=Redaction())

    return PullEffects(made), settings


def asked(world: GitLandingWorld, settings: ForgeSettings, head: str) -> tuple[c.OpenPullRequest, World]:
    """What the core asks for, of a commit that there is, and what it knows then."""
    book = book_of()
    book >> book.reports()  # pyright: ignore[reportUnusedExpression] - a playbook's line
    command = replace(at_the_opening(book), head=head, since=world.git("rev-parse", "main"))
    flow = book.flow()
    assert flow.work.evidence is not None
    flow = replace(flow, work=replace(flow.work, evidence=replace(flow.work.evidence, commit=head)))
    landing = CONFIG.landing.model_copy(update={"forge": settings})
    known = replace(book.world, settings=CONFIG.model_copy(update={"landing": landing}))
    return command, replace(known, flows=known.flows.insert("t-1", flow))


async def test_whatever_step_was_lost_there_is_one_pull_request_of_what_was_pushed(
    world: GitLandingWorld, site: FakeForge
) -> None:
    effects, settings = effects_of(world, site)
    head = world.work(BRANCH, {"a": "1\n"})
    command, known = asked(world, settings, head)
    site.forgets = True
    (lost,) = await effects.execute(command, known)
    assert isinstance(lost, delivery.LandingRefused)
    assert lost.code == "away"
    assert world.git("rev-parse", BRANCH, cwd=there(world)) == head
    (opened,) = await effects.execute(command, known)
    assert (opened,) == tuple(await effects.execute(command, known))
    (pull,) = site.pulls
    assert isinstance(opened, delivery.PullRequestOpened)
    assert (opened.number, opened.head, opened.base, opened.name) == (pull.number, head, "main", command.name)
    assert (pull.branch, pull.base, pull.title) == (BRANCH, "main", "Title of t-1 (t-1)")
    assert "what I did" in pull.body
    assert f"`{head}`" in pull.body
    assert "passed  tests: told so" in pull.body
    assert "t-1/implement.1.1 (trace " in pull.body
    second = world.work(BRANCH, {"a": "2\n"})
    (again,) = await effects.execute(*asked(world, settings, second))
    assert isinstance(again, delivery.PullRequestOpened)
    assert again.number == pull.number
    assert world.git("rev-parse", BRANCH, cwd=there(world)) == second
    state = await effects.state(known.settings, pull.number)
    assert state.state == "open"
    await effects.aclose()


@pytest.mark.promise("P14")
async def test_who_is_heard_follows_who_is_named_while_it_runs(world: GitLandingWorld, site: FakeForge) -> None:
    effects, settings = effects_of(world, site)
    pull = site.opens(BRANCH)
    for by in ("anna", "olga"):
        site.says(pull, "comment", by, "Why?")
    config = CONFIG.model_copy(update={"landing": CONFIG.landing.model_copy(update={"forge": settings})})
    for forge, heard in ((None, {"anna", "olga"}), (("OWNER",), {"olga"}), (("Anna",), {"anna"})):
        named = config.model_copy(update={"people": People(tracker=("ann",), forge=forge)})
        assert {one.by for one in (await effects.state(named, pull.number)).said} == heard
    await effects.aclose()


@pytest.mark.promise("Z4")
async def test_the_title_of_a_pull_request_calls_nobody(world: GitLandingWorld, site: FakeForge) -> None:
    effects, settings = effects_of(world, site)
    command, known = asked(world, settings, world.work(BRANCH, {"a": "1\n"}))
    await effects.execute(replace(command, title="Ask @ann, @org/all, List<T> (t-1)"), known)
    assert [pull.title for pull in site.pulls] == ["Ask @ ann, @ org/all, List<T> (t-1)"]
    await effects.aclose()


async def test_what_a_person_pushed_is_not_touched_and_nothing_is_opened(
    world: GitLandingWorld, site: FakeForge
) -> None:
    effects, settings = effects_of(world, site)
    world.git("push", "-q", "origin", f"{world.work(BRANCH, {'a': '1'})}:refs/heads/{BRANCH}")
    theirs = persons_commit(world, BRANCH)
    (refused,) = await effects.execute(*asked(world, settings, world.work(BRANCH, {"a": "2\n"})))
    assert isinstance(refused, delivery.LandingRefused)
    assert refused.code == "theirs"
    assert world.git("rev-parse", BRANCH, cwd=there(world)) == theirs
    assert not site.pulls
    await effects.aclose()


async def test_work_that_changes_nothing_is_not_pushed(world: GitLandingWorld, site: FakeForge) -> None:
    effects, settings = effects_of(world, site)
    command, known = asked(world, settings, world.git("rev-parse", "main"))
    (landed,) = await effects.execute(command, known)
    assert isinstance(landed, delivery.WorkLanded)
    assert landed.already
    assert not site.requests


async def test_without_a_token_it_waits_and_says_why(
    world: GitLandingWorld, site: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    effects, settings = effects_of(world, site)
    (refused,) = await effects.execute(*asked(world, settings, world.work(BRANCH, {"a": "1\n"})))
    assert isinstance(refused, delivery.LandingRefused)
    assert (refused.code, "GITHUB_TOKEN" in refused.why) == ("away", True)
