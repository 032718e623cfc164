"""Two people, a phone and a terminal answer at random: no answer is lost, or replaced without a word."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from ashep.actions import answers
from ashep.adapters.system.http_server import make_server
from ashep.api import server as serving
from ashep.api.routes import V1
from ashep.config import write_starter
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.settings import Labels, Settings
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import ClaimRequest, Tracker, Update
from tests.conformance.trackers import Beads, BeadsWorld
from tests.full import amount
from tests.recorded import life
from tests.service.test_page_api import OURS, question
from tests.service.worlds import AT, World, repository

pytestmark = pytest.mark.anyio
LABELS = Labels()
SEED = 0
VERDICTS = {"approve": LABELS.approved, "reject": LABELS.changes_requested}


@dataclass
class Reply:
    """What somebody answered, and was told."""

    who: str
    label: str
    said: str
    written: bool
    replaces: str
    """Whose answer it names."""


Answer = Callable[[str, bool], Awaitable[Reply]]


class Slow(MemoryTracker):
    """A tracker whose calls take a while, in no order."""

    def as_actor(self, actor: str) -> "Slow":
        made = Slow(self._database.now, actor)
        made._database = self._database
        return made

    async def issue(self, issue: str) -> Any:
        await anyio.sleep(random.random() / 30)
        return await super().issue(issue)

    async def relabel(self, issue: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        await anyio.sleep(random.random() / 30)
        await super().relabel(issue, add, remove)


@asynccontextmanager
async def served(world: World) -> AsyncIterator[str]:
    """Answer over a socket of loopback, as `ashep serve` does."""
    listener = serving.listen("127.0.0.1", 0)
    server = make_server(world.app, serving.GRACE)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        world.live.end()
        server.should_exit = True


def page(client: httpx.AsyncClient, who: str, issue: str, asked: str) -> Answer:
    """Somebody at a page, or at a phone."""

    async def answer(do: str, names: bool) -> Reply:
        items = []
        if names:
            listed = await client.get(f"{V1}/answers")
            assert listed.status_code == 200, listed.text
            items = listed.json()["items"]
        given = {"do": do, "asked": asked, "instead": items[0]["id"] if items else None}
        came = await client.post(f"{V1}/issues/{issue}", json=given)
        assert came.status_code in (200, 409), came.text
        told = came.json()["said" if came.status_code == 200 else "detail"]
        return Reply(who, VERDICTS[do], told, came.status_code == 200, items[0]["by"] if items else "")

    return answer


def terminal(tracker: Tracker, issue: str) -> Answer:
    """Somebody who calls `ashep approve` or `ashep reject`."""

    async def answer(do: str, names: bool) -> Reply:
        stands = await answers.find_answers(tracker, Settings(), [issue]) if names else {}
        named = stands[issue] if stands else None
        try:
            beside = await answers.answer(
                tracker,
                LABELS,
                issue,
                approved=do == "approve",
                comment=None,
                at=AT,
                instead=named.id if named else False,
            )
        except answers.Answered as error:
            return Reply("Kim", VERDICTS[do], str(error), False, "")
        return Reply("Kim", VERDICTS[do], beside, True, named.by if named else "")

    return answer


async def later(replies: list[Reply], answer: Answer, do: str, names: bool, wait: float) -> None:
    await anyio.sleep(wait)
    replies.append(await answer(do, names))


async def rounds(
    project: Path, world: World, tracker: Callable[[str], Tracker], issue: str, many: int, spread: float
) -> None:
    """Answer so often, from all four at once, and judge what everybody was told."""
    chance, stamp, ours = random.Random(SEED), Stamp("0f" * 8, 7, "t-1/review.1.1", 1, 1, 1), tracker(OURS)
    await ours.claim(ClaimRequest(issue, stamp))
    update = Update(issue, "in_progress", OURS, stamp, "blocked", OURS, add_labels=(LABELS.needs_approval,))
    await ours.update(update)
    world.acts.tracker_of = lambda *given: tracker(given[-1])
    crossed = refused = 0
    async with served(world) as address:
        sessions = {
            name: world.sessions.enter(world.sessions.code(name[0]))[0] for name in (("Ann", 1), ("Ann", 2), ("Bob", 1))
        }
        clients = {
            name: httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
            for name, token in sessions.items()
        }
        asked = await question(clients["Bob", 1], issue)
        pages = [page(client, name[0], issue, asked) for name, client in clients.items()]
        for _ in range(many):
            await ours.relabel(issue, (), tuple(VERDICTS.values()))
            world.acts._answered.clear()  # pyright: ignore[reportPrivateUsage] - as if it were asked anew
            replies = list[Reply]()

            async with anyio.create_task_group() as group:
                for answer in (terminal(tracker("Kim"), issue), *chance.sample(pages, 1 if spread > 0.1 else 2)):
                    choice = chance.choice([*VERDICTS]), chance.random() < 0.5, chance.random() * spread
                    group.start_soon(later, replies, answer, *choice)
            seen = await ours.issue(issue)
            assert seen is not None
            judge(replies, {*VERDICTS.values()}.intersection(seen.issue.labels))
            crossed += any("in the same moment" in reply.said for reply in replies)
            refused += any("Nothing is written" in reply.said for reply in replies)
        for client in clients.values():
            await client.aclose()
    assert many < 200 or (crossed and refused), "it was never close"  # fewer may all miss on a slow machine


def judge(replies: list[Reply], stands: set[str]) -> None:
    """Each answer that was written stands, or whoever gave the other one knew of it, or was told."""
    written = [reply for reply in replies if reply.written]
    assert written, replies
    assert stands == {reply.label for reply in written if reply.label in stands}, replies
    for reply in replies:
        if not reply.written:
            assert any(
                word in reply.said for word in ("Nothing is written", "is being written", "answered so already")
            ), replies
            continue
        others = [one for one in written if one.label != reply.label]
        if reply.label in stands and not any(one.label in stands for one in others):
            continue
        known = [one for one in others if one.replaces == reply.who or f"in the same moment {reply.who} " in one.said]
        told = [
            one for one in others if f"in the same moment {one.who} " in reply.said or "took that off" in reply.said
        ]
        assert known or told, replies


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = repository(tmp_path / "project")
    write_starter(made / ".agent-shepherd")
    life(made / ".agent-shepherd" / "state", issues=1, until="person")
    return made


@pytest.mark.promise("L4")
@pytest.mark.may_block
async def test_no_answer_is_lost_or_replaced_without_a_word(project: Path) -> None:
    world = World(project)
    shared = Slow(world.tracker._database.now, OURS)  # pyright: ignore[reportPrivateUsage]
    issue = shared.add("Work", id="t-1")
    await rounds(project, world, shared.as_actor, issue, amount(20, 500), 0.08)


@pytest.mark.full
@pytest.mark.real
@pytest.mark.may_block
@pytest.mark.timeout(3600)
async def test_no_answer_is_lost_or_replaced_without_a_word_in_bd(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(beads.home))
    bd = BeadsWorld(beads, tmp_path / "project")
    write_starter(bd.project / ".agent-shepherd")
    life(bd.project / ".agent-shepherd" / "state", issues=1, until="person")
    issue = bd.add("Work", id="t-1")
    await rounds(bd.project, World(bd.project), bd.another, issue, 200, 0.5)
