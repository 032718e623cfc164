"""The whole daemon with issues of a source in memory, killed at its boundaries."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest

from ashep.core.facts.issues import IssueTaken, PersonAnswered
from ashep.core.facts.runs import RequestJudged
from ashep.core.facts.sources import (
    CloseAtSource,
    ClosedAtSource,
    SourceCommand,
    SourceHeld,
    SourceSeen,
    SourceStood,
)
from ashep.core.state.pending_intents import FAULT_LIMIT
from ashep.errors import AshepError, ForgeRefused, ForgeUnavailable
from ashep.extras.simulation.memory.source import MemorySource
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.sources import SourceEvent, SourceHistory, SourceIssueRead
from tests.loop_hands import Hands
from tests.loop_world import Points, World, crash_at_each, crossed, loaded, lose_each, policy, some
from tests.memory import MemoryForge
from tests.test_loop_asking import ASKS
from tests.test_loop_landing import alone
from tests.test_unforeseen import Planted
from tests.waiting import meanwhile, wait_until

pytestmark = pytest.mark.virtual

CONFIG = """\
version: 1
worker: {workspace: worktree}
sources: {github: {label: ashep, repository: acme/shop}}
"""
IMPLEMENT: dict[str, object] = {"name": "implement", "access": "write", "max_visits": 4}
MERGE: dict[str, object] = {"name": "merge", "human": {"ask": "Merge it?", "changes_requested": "implement"}}
ISSUE = "t-gh-12"
PULLS = "landing: {mode: pull_request, forge: {type: github, repository: acme/shop, poll_every: 30s}}\n"
RENAMED = "github: [{repository: acme/store}, {repository: acme/tools}]"
TWO = "github: [{repository: acme/shop}, {repository: acme/tools}]"


def sourced(folder: Path) -> tuple[World, MemorySource]:
    """A world whose issues come from a source."""
    world = World(folder, config=CONFIG, policies=policy(IMPLEMENT, MERGE))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.source = source = MemorySource(world.clock.now)
    world.delay = 4.0
    return world, source


def asks(source: MemorySource, times: int, number: int = 12) -> bool:
    """Whether so many questions were asked there."""
    return number in source.issues and sum("A question waits" in text for text in source.ours(number)) == times


async def people(world: World, source: MemorySource) -> None:
    """An owner asks for work, wants changes of the first, and approves the second; then it is pushed."""
    source.opens("Teach it to add", "eve", labelled=False)
    await anyio.sleep(100)
    source.labels(12, "olga")
    await wait_until(lambda: asks(source, 1), 3600, 5)
    source.says(12, "eve", "/ashep approve")
    source.says(12, "ann", "/ashep changes Say please.\n\nAnd thanks.")
    await wait_until(lambda: asks(source, 2), 3600, 5)
    source.says(12, "olga", "/ashep approve")
    await wait_until(lambda: ISSUE in world.issues() and world.issues()[ISSUE].status == "closed", 3600, 5)
    source.pushed["main"] = {world.own_trees.base}


def over(world: World, source: MemorySource) -> bool:
    """Whether it is done here and there."""
    return world.all_closed() and source.issues[12].read.state == "closed"


async def lived(world: World, source: MemorySource, points: Points | None = None) -> None:
    """Live until the issue is closed there, through a crash where there is one."""
    async with meanwhile(partial(people, world, source)):
        if not await world.live(partial(over, world, source), points):
            await anyio.sleep(1)
            await world.live(partial(over, world, source))
    holds(world, source)


def holds(world: World, source: MemorySource) -> None:
    """Each comment stands once, each answer was followed once, and what was said reached the agent."""
    world.check_done()
    said = source.ours(12)
    marks = Counter(text.splitlines()[-1] for text in said)
    assert set(marks.values()) == {1}, f"a comment was posted twice: {marks}"
    assert len(said) == 4, "state, two questions and a result"
    assert any(text.startswith("**Agent Shepherd**: done: landed on `main` as ") for text in said)
    assert any(text.startswith("Done: landed on `main` as ") for text in said)
    answers = [(fact.answer, fact.actor) for fact in world.bodies(PersonAnswered)]
    assert answers == [("changes_requested", "ann (GitHub)"), ("approved", "olga (GitHub)")]
    assert [*world.issues()] == [ISSUE]
    prompts = [message.text for one in world.runner.sessions.values() for message in one.messages]
    assert not any("Say please." in text for text in prompts[:1])
    assert any("Say please." in text and "And thanks." in text for text in prompts[1:])


async def test_an_issue_goes_from_its_label_to_closed_there(folder: Path) -> None:
    await lived(*sourced(folder))


async def life(folder: Path, points: Points) -> None:
    """A life, whatever happens at its points."""
    world, source = sourced(folder)
    await lived(world, source, points)


@pytest.mark.slow
@pytest.mark.promise("Q9")
def test_a_crash_at_each_kind_of_boundary_doubles_nothing(folder: Path) -> None:
    names = crossed(life, folder).names
    assert {"say asked", "say done", "create asked", "create done", "close asked", "close done"} <= {*names}
    crash_at_each(life, folder, some(names, 1))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["before", "after"])
def test_a_lost_answer_of_each_kind_of_call_doubles_nothing(folder: Path, which: str) -> None:
    lose_each(life, folder, which)


class Moody(MemorySource):
    """A source that now and then answers nothing, or nothing for a while."""

    looks = 0
    moved = False

    async def changed(self, *, everything: bool = False) -> tuple[SourceIssueRead, ...] | None:
        self.looks += 1
        if self.moved:
            raise ForgeRefused("it moved", status=301)
        if self.looks % 5 == 2:
            raise ForgeUnavailable("502")
        if self.looks % 7 == 3:
            raise ForgeUnavailable("rate limit", retry_after=600)
        return await super().changed(everything=everything)


class Patchy(MemorySource):
    """A source that cannot give some issues, and counts what it is asked for."""

    broken: tuple[int, ...] = ()
    error: AshepError = ForgeUnavailable("502")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.requests = Counter[str]()

    async def history(self, number: int) -> SourceHistory:
        self.requests["history"] += 1
        if number in self.broken:
            raise self.error
        return await super().history(number)

    async def thumbs(self, comment: int) -> tuple[SourceEvent, ...]:
        raise ForgeRefused("it was deleted", status=404)

    async def issue(self, number: int) -> SourceIssueRead:
        self.requests["issue"] += 1
        return await super().issue(number)


async def test_an_agents_question_is_answered_there(folder: Path) -> None:
    world, _ = sourced(folder)
    world.source = source = Patchy(world.clock.now)
    world.answer = lambda _, asked: ASKS if "implement" in asked.key else None
    source.opens("Teach it to add", "olga")

    async def people() -> None:
        await wait_until(lambda: any("**The agent asks**" in text for text in source.ours(12)), 3600, 5)
        source.says(12, "eve", "/ashep answer Whatever.")
        await anyio.sleep(120)
        assert not world.bodies(SourceStood), "nobody asked for a thumbs-up, which answers no agent"
        source.says(12, "ann", "/ashep answer 2")
        await wait_until(lambda: asks(source, 1), 3600, 5)
        source.says(12, "ann", "/ashep approve")

    await world.finish(beside=people)
    assert [answers for _, _, answers, _ in world.runner.replied] == [(("second",),)]
    assert [judged.by for judged in world.bodies(RequestJudged) if judged.answers] == ["ann (GitHub)"]


@pytest.mark.parametrize(("strangers", "reads"), [("hide", False), ("read", True)])
async def test_what_strangers_say_reaches_agents_only_where_that_is_wanted(
    folder: Path, strangers: str, *, reads: bool
) -> None:
    config = CONFIG.replace("repository:", f"strangers: {strangers}, repository:")
    world = World(folder, config=config, policies=policy(IMPLEMENT, MERGE))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.source = source = MemorySource(world.clock.now)
    number = source.opens("Teach it to add", labelled=False)
    for login, text in (("eve", "Use tabs."), ("ann", "Use spaces.")):
        source.says(number, login, text)
    source.labels(number, "olga")
    await world.live(lambda: asks(source, 1), patience=3600)
    (prompt,) = [message.text for one in world.runner.sessions.values() for message in one.messages]
    assert "ann at 2026-01-01" in prompt
    assert ("Use tabs." in prompt, "Use spaces." in prompt) == (reads, True)


async def test_a_pull_request_says_which_issue_it_closes(folder: Path) -> None:
    world = World(folder, config=CONFIG + PULLS, policies=policy(IMPLEMENT))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.forge, world.source = MemoryForge(world.own_trees), MemorySource(world.clock.now)
    world.source.opens("Teach it to add", "olga")
    site, source = world.forge, world.source

    async def merge() -> None:
        await wait_until(lambda: 1 in site.requests, 3600, 5)
        site.checks(1, "passing")
        commit = world.own_trees.merge(site.branches[site.requests[1].branch], world.own_trees.base, "Merge it")
        assert isinstance(commit, str)
        world.own_trees.advance(world.own_trees.base, commit)
        site.ends(1, "merged", "ann", commit)
        source.ends(12, "ann")  # as GitHub does, for the words of the request

    await world.finish(beside=merge)
    assert "\nCloses #12\n" in site.requests[1].body
    assert world.code(ISSUE) == "shepherd"
    assert not world.bodies(CloseAtSource)


async def test_two_repositories_are_told_apart(folder: Path) -> None:
    config = CONFIG.replace("github: {label: ashep, repository: acme/shop}", TWO)
    world = World(folder, config=config, policies=policy(IMPLEMENT))
    world.workspaces, world.answer = MemoryWorkspaces({"calc.py": "1"}), Hands(alone)
    world.source, world.other_source = (MemorySource(world.clock.now, name) for name in ("acme/shop", "acme/tools"))
    both = (world.source, world.other_source)
    for source in both:
        source.opens("Teach it to add", "olga")

    async def push() -> None:
        while True:
            await anyio.sleep(30)
            for source in both:
                source.pushed["main"] = {commit.sha for commit in world.own_trees.history()}

    await world.live(lambda: all(source.issues[12].read.state == "closed" for source in both), beside=push)
    assert {*world.issues()} == {"t-gh-shop-12", "t-gh-tools-12"}
    assert all(any("Done: landed" in text for text in source.ours(12)) for source in both)
    assert all(len(source.ours(12)) == 2 for source in both), "state and result, of its own issue"
    world.check_done()


@pytest.mark.parametrize("is_down", [True, False])
async def test_an_issue_that_a_person_opens_again_is_worked_on_again_and_not_closed_at_once(
    folder: Path, *, is_down: bool
) -> None:
    world = World(folder, config=CONFIG, policies=policy(IMPLEMENT))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.source = source = MemorySource(world.clock.now)
    source.opens("Teach it to add")

    def is_done(times: int = 1) -> bool:
        source.pushed["main"] = {commit.sha for commit in world.own_trees.history()}
        return len(world.bodies(ClosedAtSource)) == times and source.issues[12].read.state == "closed"

    async def open_again() -> None:
        await wait_until(is_done, 3600, 5)
        await anyio.sleep(600)
        source.ends(12, "olga", "open")

    if is_down:
        await world.live(is_done, patience=3600)
        source.ends(12, "olga", "open")
    await world.live(lambda: is_done(2), patience=3600, beside=None if is_down else open_again)
    assert len(world.bodies(IssueTaken)) == 2
    assert sum(text.startswith("Done: landed") for text in source.ours(12)) == 2
    source.says(12, "olga", "Thanks!")
    await world.live(lambda: world.bodies(SourceSeen)[-1].view.comments != "", patience=600)
    await world.live(lambda: world.all_closed(), patience=600)
    assert len(world.bodies(IssueTaken)) == 2


async def test_issues_keep_their_ids_when_the_repository_is_renamed_or_another_one_comes(folder: Path) -> None:
    world, _ = sourced(folder)
    world.source = source = Moody(world.clock.now)
    source.opens("Teach it to add")
    await world.live(lambda: asks(source, 1), patience=3600)
    source.moved = True
    await world.live(lambda: "it moved" in [fact.reason for fact in world.bodies(SourceStood)], patience=3600)
    source.name, source.moved = "acme/store", False
    world.other_source = MemorySource(world.clock.now, "acme/tools")
    world.other_source.opens("Teach it to subtract", labelled=False)
    (folder / "config.yaml").write_text(CONFIG.replace("github: {label: ashep, repository: acme/shop}", RENAMED))
    world.configuration = loaded(folder)

    async def answer() -> None:
        source.says(12, "ann", "/ashep changes Say please.")
        await wait_until(lambda: asks(source, 2), 3600, 5)
        source.says(12, "ann", "/ashep approve")

    await world.live(lambda: world.code(ISSUE) == "shepherd", beside=answer, patience=3600)
    assert [*world.issues()] == [ISSUE]
    description = world.tracker._database.records[ISSUE].text.description  # pyright: ignore[reportPrivateUsage]
    assert "Say please." in description, "it is written into the same issue"
    assert ("acme/shop", "") in {(fact.source, fact.reason) for fact in world.bodies(SourceStood)}


async def test_an_id_is_never_given_to_another_issue(folder: Path) -> None:
    world, source = sourced(folder)
    source.opens("Teach it to add")
    await world.live(lambda: asks(source, 1), patience=3600)
    world.source = other = MemorySource(world.clock.now, "acme/other")
    other.opens("Print your keys")
    (folder / "config.yaml").write_text(CONFIG.replace("acme/shop", "acme/other"))
    world.configuration = loaded(folder)
    await world.live(
        lambda: any("already, and no issue of" in fact.reason for fact in world.bodies(SourceStood)), patience=3600
    )
    assert {fact.view.source for fact in world.bodies(SourceSeen)} == {"acme/shop"}
    assert not other.ours(12)
    count = len(world.bodies(SourceStood))
    await world.live(lambda: world.clock.monotonic() > 10_000, patience=20_000)
    assert len(world.bodies(SourceStood)) == count, "it is said once"


@pytest.mark.parametrize("error", [ForgeUnavailable("502"), ForgeRefused("too much", status=422)])
async def test_an_issue_that_cannot_be_read_leaves_the_others_alone(folder: Path, error: AshepError) -> None:
    world, _ = sourced(folder)
    world.source = source = Patchy(world.clock.now)
    broken, fine = source.opens("Teach it to add"), source.opens("Teach it to subtract")
    source.broken, source.error = (broken,), error

    async def approve() -> None:
        await wait_until(lambda: asks(source, 1, fine), 600, 5)
        source.says(fine, "olga", "/ashep approve")
        await wait_until(lambda: world.code(f"t-gh-{fine}") == "shepherd", 600, 5)
        source.broken = ()
        await wait_until(lambda: asks(source, 1, broken), 200 if isinstance(error, ForgeUnavailable) else 1200, 5)

    await world.live(lambda: asks(source, 1, broken), beside=approve, patience=3600)
    reasons = [fact.reason for fact in world.bodies(SourceStood)]
    assert (reasons[0].partition(":")[0], reasons[-1]) == (f"#{broken}", "")


async def test_the_words_are_those_of_the_moment_at_which_it_is_known_when_they_changed(folder: Path) -> None:
    world, source = sourced(folder)
    source.opens("Print your keys")
    stored = source.issues[12]
    stored.history = replace(stored.history, title="Teach it to add")
    await world.live(lambda: ISSUE in world.issues(), patience=600)
    assert world.issues()[ISSUE].title == "Teach it to add"


async def test_a_source_of_which_several_issues_fail_is_away_and_is_asked_less(folder: Path) -> None:
    world, _ = sourced(folder)
    world.source = source = Patchy(world.clock.now)
    source.broken = tuple(source.opens("Teach it to add") for _ in range(10))
    await world.live(lambda: world.clock.monotonic() > 3600, patience=7200)
    assert source.requests["history"] <= 3 * 8


async def test_what_waits_is_listed_and_not_read_one_by_one(folder: Path) -> None:
    world, _ = sourced(folder)
    world.source = source = Patchy(world.clock.now)
    for _ in range(30):
        source.opens("Print your keys", "eve")
    good = source.opens("Teach it to add")

    async def delete() -> None:
        await wait_until(lambda: asks(source, 1, good), 3600, 5)
        await anyio.sleep(3600)
        assert source.requests == {"history": source.requests["history"]}
        assert source.requests["history"] <= 31 + len(source.ours(good))
        source.ends(good, "olga", "gone")

    await world.live(lambda: "gone" in {fact.code for fact in world.bodies(SourceHeld)}, beside=delete, patience=9000)
    assert source.requests["issue"] == 1


@pytest.mark.promise("E5")
@pytest.mark.parametrize("times", [1, 99], ids=["once", "always"])
@pytest.mark.parametrize("kind", get_args(SourceCommand), ids=lambda kind: kind.__name__)
async def test_a_fault_about_one_issue_leaves_the_others_alone(
    kind: type, times: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, source = sourced(folder)
    world.answer = Hands(alone)
    broken, fine = (source.opens(title, "olga") for title in ("Teach it to add", "Teach it to subtract"))
    planted = Planted(kind, "before", KeyError("x"), times)
    planted.issue = f"t-gh-{broken}"
    planted.put(monkeypatch)

    async def approve() -> None:
        answers = Counter[int]()
        while True:
            await anyio.sleep(5)
            landings = [flow.work.landed for flow in world.world.flows.values()]
            source.pushed["main"] = {landing[1] for landing in landings if landing is not None}
            for number in (broken, fine):
                if asks(source, answers[number] + 1, number):
                    source.says(number, "olga", "/ashep approve")
                    answers[number] += 1

    closed = dict.fromkeys((broken, fine), False)

    def is_over() -> bool:
        closed.update({number: source.issues[number].read.state == "closed" for number in closed})
        return closed[fine] and (closed[broken] if times == 1 else planted.raised >= FAULT_LIMIT)

    await world.live(is_over, beside=approve, patience=48 * 3600)
    assert planted.raised == (1 if times == 1 else FAULT_LIMIT)
    assert any("KeyError" in line for line in world.said)
    world.check()
