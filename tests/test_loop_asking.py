"""What sessions ask, in the whole daemon, over memory and virtual time: answered, denied, killed in between."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.resources import RunnerSeen
from ashep.core.facts.runs import InputEnded, InputWanted, RequestAnswered, RequestJudged, RunEnded, TurnDied
from ashep.core.facts.tracker import AnswerRead
from ashep.core.facts.vocabulary import ReadRefused
from ashep.extras.simulation.memory.runner import Play, Prompted
from tests.full import half
from tests.loop_world import Points, World, said, simulate
from tests.waiting import meanwhile, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.virtual]

ASKS = Play(text=said("implement"), delay=20.0, asks="question")
CONFIG = 'version: 1\npermissions: [{tool: bash, pattern: "npm *", action: ask}]\nquestions: {deadline: 30m}\n'
BOUND = 30 * 60


def asking(folder: Path, **play: object) -> World:
    """A world whose implementers ask."""
    world = World(folder, config=CONFIG, issues=1)

    def answer(_: World, asked: Prompted) -> Play | None:
        return replace(ASKS, **play) if "/implement." in asked.key else None  # type: ignore[arg-type]

    world.answer = answer
    return world


async def with_person(world: World, words: str | None, points: Points | None = None) -> bool:
    """Live with a person who approves, and answers what runs ask; None: not that."""

    async def answers() -> None:
        heard = set[str]()
        while words is not None:
            await anyio.sleep(60)
            for name, issue in world.issues().items():
                told = world.comments(name)
                if "needs:human_input" in issue.labels and told[-1] not in heard and "asks:**" in told[-1]:
                    heard.add(told[-1])
                    world.tracker.person_comments(name, "pat", words)

    return await world.live(points=points, beside=answers, person=True)


async def test_a_person_answers_and_the_run_goes_on_in_its_session(folder: Path) -> None:
    world = asking(folder, times=2)
    assert await with_person(world, "@ashep 2")
    world.check_done()
    assert [answers for _, _, answers, _ in world.runner.replied] == [(("second",),), (("second",),)]
    assert len(world.bodies(InputWanted)) == 2
    (implement, *_) = world.bodies(RunEnded)
    assert (implement.run, implement.state) == ("t-1/implement.1.1", "succeeded")


@pytest.mark.promise("H4")
async def test_who_answers_before_the_question_is_posted_is_told_and_answers_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the question as soon as it is in the journal; its comment may come much later."""
    world = asking(folder)
    post = world.tracker.comment

    async def post_late(issue: str, text: str, key: str) -> None:
        if "asks:**" in text:
            await wait_until(lambda: any("@ashep" in comment for comment in world.comments(issue)), 600)
        await post(issue, text, key)

    async def answers() -> None:
        for number in range(10_000):
            world.tracker.person_comments("t-1", "pat", f"just so, {number}")
        await wait_until(lambda: "needs:human_input" in world.issues()["t-1"].labels, 600)
        world.tracker.person_comments("t-1", "pat", "@ashep 1")
        await wait_until(lambda: "in front of the question" in world.comments("t-1")[-1], 600)
        world.tracker.person_comments("t-1", "pat", "@ashep 2")

    monkeypatch.setattr(world.tracker, "comment", post_late)
    assert await world.live(beside=answers, person=True)
    world.check_done()
    assert [answers for _, _, answers, _ in world.runner.replied] == [(("second",),)]
    assert max(len(fact.early) for fact in world.bodies(AnswerRead)) == 1


@pytest.mark.promise("X3", "H5")
@pytest.mark.parametrize(("asks", "tool"), [("question", ""), ("permission", "bash"), ("permission", "webfetch")])
async def test_nobody_answers_and_nothing_is_open_longer_than_its_bound(folder: Path, asks: str, tool: str) -> None:
    world = asking(folder, asks=asks, tool_asked=tool, wants="npm publish")
    began = world.clock.now()
    opened: list[float] = []

    async def watch() -> None:
        while True:
            if await open_requests(world):
                opened.append((world.clock.now() - began).total_seconds())
            await anyio.sleep(1)

    async with meanwhile(watch):
        assert await with_person(world, None)
    world.check_done()
    lasted = opened[-1] - opened[0]
    assert lasted <= (10 if tool == "webfetch" else BOUND + 10)
    assert lasted >= (0 if tool == "webfetch" else BOUND - 10)
    ((_, verdict, answers, message),) = world.runner.replied
    assert verdict == ("answer" if asks == "question" else "deny")
    assert "ashep: " in (message or answers[0][0])


@pytest.mark.promise("T7")
@pytest.mark.parametrize("killed", [False, True])
async def test_a_list_that_cannot_be_shown_keeps_nobody_waiting(folder: Path, killed: bool) -> None:
    """The server stays up, what its stream told is put to a person, and an answer reaches it, over a restart too."""
    world = asking(folder, asks="permission", tool_asked="bash", wants="npm publish", listed=False)
    world.tracker.add("second")
    if killed:
        await world.live(lambda: bool(world.bodies(InputWanted)))
    assert await with_person(world, "@ashep yes")
    world.check_done()
    assert [verdict for _, verdict, *_ in world.runner.replied] == ["allow", "allow"]
    assert [fact.run for fact in world.bodies(ReadRefused)] == ["t-1/implement.1.1", "t-2/implement.1.1"]
    assert {fact.state for fact in world.bodies(RunnerSeen)} == {"up"}
    assert {fact.state for fact in world.bodies(RunEnded)} == {"succeeded"}


async def open_requests(world: World) -> bool:
    sessions = world.runner.sessions
    return bool(sessions) and world.runner._up and bool(await world.runner.requests(sessions))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.promise("H4")
def test_killed_at_every_boundary_between_asking_and_answering_it_is_answered_once(folder: Path) -> None:
    async def first() -> None:
        world = asking(folder / "first")
        points = Points()
        assert await with_person(world, "@ashep 1", points)
        names.extend(points.names)

    names: list[str] = []
    simulate(first)
    begin = next(place for place, name in enumerate(names) if name.startswith("requests"))
    end = next(place for place, name in enumerate(names) if name.startswith("reply answered")) + 40
    marks = [
        place
        for place in range(begin, end)
        if names[place].split()[0] in ("batch", "durable", "update", "comment", "reply", "issue")
    ]
    assert len(marks) > 20
    for place in half(marks):
        simulate(killed(folder / str(place), place + 1))


def killed(folder: Path, at: int) -> Callable[[], Awaitable[None]]:
    async def scenario() -> None:
        world = asking(folder)
        if not await with_person(world, "@ashep 1", Points(at)):
            assert await with_person(world, "@ashep 1")
        world.check_done()
        taken = [request for request, *_ in world.runner.replied]
        assert len(taken) == len(set(taken)) == 1
        assert world.runner.replied[0][2] == (("first",),)
        assert len(world.bodies(InputEnded)) == 1

    return scenario


@pytest.mark.promise("H6")
async def test_the_server_dies_while_a_person_thinks_and_the_turn_asks_again(folder: Path) -> None:
    world = asking(folder)

    async def kills() -> None:
        await wait_until(lambda: world.bodies(InputWanted), BOUND, 10)
        await anyio.sleep(20)
        world.runner.kill()

    async with meanwhile(kills):
        assert await with_person(world, "@ashep 1")
    world.check_done(restarts=1)
    assert len(world.bodies(TurnDied)) == 1
    assert world.runner.replied[-1][2] == (("first",),)
    assert all(fact.taken for fact in world.bodies(RequestAnswered))


async def test_answers_that_are_prepared_ask_nobody(folder: Path) -> None:
    world = asking(folder, times=2)
    text = (folder / "policies.yaml").read_text()
    (folder / "policies.yaml").write_text(
        text.replace("name: implement", "name: implement\n        answers: [y, '2']", 1)
    )
    world = asking(folder, times=2)
    assert await with_person(world, None)
    world.check_done()
    assert [answers for _, _, answers, _ in world.runner.replied] == [(("y",),), (("second",),)]
    assert {fact.verdict for fact in world.bodies(RequestJudged)} == {"answer"}
