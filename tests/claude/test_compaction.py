"""What grows too long is made shorter in the midst of a turn, or that is its end (facts/claude-code.md 34, 69-71)."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from ashep.core.state.run import Watch, due_after
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply
from ashep.extras.testing.worlds import name, opened, prompt, settled
from ashep.ports.runner import Prompt
from tests.conformance.claudes import ClaudeWorld
from tests.full import repeated

pytestmark = pytest.mark.real

SUMMARY = "<summary>two files were looked at</summary>"
SHORTENS, SHORTER = "CRITICAL: Respond with TEXT ONLY.", "This session is being continued"
"""How Claude Code begins to ask for a summary, and what stands in the place of what was said."""
FULL = Reply("prompt is too long: 200001 tokens > 200000 maximum", status=400)
LONG = 190_000
TURN, SHORT, AFTER = (195_000 * 3 + 20 * 15) / 1e6, (1000 * 3 + 50 * 15) / 1e6, (2000 * 3 + 5 * 15) / 1e6
"""What it costs before, to make it shorter, and behind."""


class Grows:
    """An agent that looks at two things, by which its conversation is too long."""

    def __init__(self, world: ClaudeWorld, summary: Reply) -> None:
        self.summary, self.asked = summary, 0  # how often for it
        world.model.script = self

    def __call__(self, ask: ModelRequest) -> Reply:
        if ask.prompt.startswith(SHORTENS):
            self.asked += 1
            return self.summary
        if ask.prompt.startswith(SHORTER) or "again" in ask.prompt:
            return Reply("END", tokens=(2000, 5))
        if len(ask.results) == 2:
            return FULL
        used = LONG if ask.results else 5000
        return Reply("look", (Call("bash", {"command": "true", "description": "look"}),), tokens=(used, 10))


@pytest.fixture
async def signs(world: ClaudeWorld) -> AsyncIterator[Callable[[], int]]:
    """Somebody follows; how many signs came."""
    seen = list[object]()

    async def listen() -> None:
        async for one in world.runner.signs():
            seen.append(one)

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        yield lambda: len(seen)
        group.cancel_scope.cancel()


async def sent_in(world: ClaudeWorld, session: str, words: str = "") -> Prompt:
    sent = prompt(session, f"{words} {name()}")
    await world.runner.send(sent)
    return sent


async def shortening(grows: Grows) -> None:
    with anyio.fail_after(45):
        while not grows.asked:
            await anyio.sleep(0.02)


@pytest.mark.parametrize("window", ["", *repeated("100000")], ids=["too long", "before it is"])
async def test_it_is_made_shorter_in_the_midst_of_a_turn_which_goes_on(
    world: ClaudeWorld, signs: Callable[[], int], window: str
) -> None:
    if window:
        (world.config / "settings.json").write_text(json.dumps({"env": {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": window}}))
    grows, session = Grows(world, Reply(SUMMARY, delay=4, tokens=(1000, 50))), await opened(world)
    sent = await sent_in(world, session)
    await shortening(grows)
    life, now = await world.runner.life(session), datetime.now(UTC)
    assert (life.tool, life.quiet < timedelta(seconds=4), life.tool_for) == ("compaction", True, timedelta())
    due = due_after(Watch(stall_after=timedelta(seconds=5), tool_timeout=timedelta(minutes=9)), life, now)
    assert due == now + timedelta(minutes=9), "it is no silence"
    await anyio.sleep(0.5)
    assert timedelta(seconds=0.4) < (await world.runner.life(session)).tool_for < timedelta(seconds=4)
    turn = await settled(world, session, sent.message_id)
    assert (turn.state, turn.text, turn.error, turn.people) == ("finished", "END", None, ())
    assert (turn.tokens, turn.cost) == (5000 + LONG + 1000 + 2000 + 75, pytest.approx(TURN + SHORT + AFTER))
    assert (world.begun, grows.asked) == ([(session, sent.message_id)], 1)
    with anyio.fail_after(60):  # who follows may be told of the end after who asks
        while signs() <= 2:
            await anyio.sleep(0.05)
    again = await sent_in(world, session, "again")
    turn = await settled(world, session, again.message_id)
    assert (turn.text, turn.people, turn.tokens, turn.cost) == ("END", (), 2005, pytest.approx(AFTER))
    assert await world.runner.asked(session) == (sent.message_id, again.message_id), "a summary is nobody's words"
    assert SUMMARY[9:-10] not in await world.runner.transcript(session, 10_000)


@pytest.mark.full
async def test_it_shows_that_it_lives_while_the_summary_takes_long(
    world: ClaudeWorld, signs: Callable[[], int]
) -> None:
    grows, session = Grows(world, Reply(SUMMARY, delay=36, tokens=(1000, 50))), await opened(world)
    sent = await sent_in(world, session)
    await shortening(grows)
    await anyio.sleep(5)
    before, quiet = signs(), (await world.runner.life(session)).quiet
    await anyio.sleep(28)
    assert (signs() > before, quiet > timedelta(seconds=3)) == (True, True)
    assert (await world.runner.life(session)).quiet < timedelta(seconds=10)
    assert (await settled(world, session, sent.message_id)).error is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("summary", "kind", "why"),
    [
        (Reply("not so", status=400), None, "400 not so"), (Reply(""), None, "no assistant message"),
        (FULL, None, "Prompt is too long"), (Reply("broken", status=500), "down", "500 broken"),
        (Reply("too busy", status=529), "down", "529 too busy"), (Reply("half of it", drop=True), "down", "was lost"),
        (Reply("slow down", status=429), "limited", "slow down"), (Reply("no", status=401), "unauthorized", "401 no"),
    ],
    ids=["400", "empty", "too long", "500", "529", "cut", "429", "401"],
)  # fmt: skip
async def test_one_that_cannot_be_made_shorter_ends_the_turn(
    world: ClaudeWorld, summary: Reply, kind: str | None, why: str
) -> None:
    grows, sent = Grows(world, summary), await sent_in(world, await opened(world))
    turn = await settled(world, sent.session, sent.message_id)
    assert (turn.error or "").startswith("ContextOverflowError: Prompt is too long")
    assert why in (turn.error or "")
    assert (turn.refused.kind if turn.refused else None) == kind
    assert (turn.cost >= TURN, 0 < grows.asked <= 4) == (True, True)


@pytest.mark.full
@pytest.mark.parametrize("by", ["kill", "abort"])
async def test_a_turn_that_dies_meanwhile_begins_again_where_it_is_asked_for(world: ClaudeWorld, by: str) -> None:
    grows, session = Grows(world, Reply(hang=True)), await opened(world)
    sent = await sent_in(world, session)
    await shortening(grows)
    await (world.kill() if by == "kill" else world.runner.abort(session))
    state, cost = ("incomplete", 0) if by == "kill" else ("finished", pytest.approx(TURN))
    turn = await world.runner.turn(session, sent.message_id)
    assert (turn.state, turn.tokens, turn.cost) == (state, 5000 + LONG + 20, cost)
    grows.summary = Reply(SUMMARY, tokens=(1000, 50))
    await world.runner.send(again := sent if by == "kill" else prompt(session, name()))
    turn = await settled(world, session, again.message_id)
    assert (turn.text, turn.error, turn.people) == ("END", None, ())
