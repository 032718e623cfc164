"""A model server that misbehaves: what a turn says of it, at once and at its end (facts/claude-code.md 32-34)."""

import anyio
import pytest

from ashep.demo.model import Reply
from ashep.testing.worlds import Act, begun, settled
from tests.conformance.claudes import ClaudeWorld

pytestmark = pytest.mark.real

TOO_LONG = "prompt is too long: 200001 tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("reply", "kind", "error"),
    [
        (Reply("slow down", status=429), "limited", "APIError: "),
        (Reply("too busy", status=529), "down", "APIError: too busy"),
        (Reply("broken", status=500), "down", "APIError: broken"),
        (Reply("no", status=401), "unauthorized", "APIError: no"),
        (Reply("not so", status=400), None, "APIError: not so"),
        (Reply("half of it", drop=True), "down", "APIError: "),
        (Reply(TOO_LONG, status=400), None, "ContextOverflowError: "),
    ],
    ids=["429", "529", "500", "401", "400", "cut", "too long"],
)
async def test_what_the_model_refuses_is_told(
    world: ClaudeWorld, reply: Reply, kind: str | None, error: str
) -> None:  # fmt: skip
    world.model.script = lambda _: reply
    session, _, sent = await begun(world, Act())
    told = set[str]()
    with anyio.fail_after(90):
        while (turn := await world.runner.turn(session, sent.message_id)).state != "finished":
            assert turn.state == "running"
            told |= {turn.refused.kind} if turn.refused else set()
            await anyio.sleep(0.05)
    assert turn.error is not None
    assert turn.error.startswith(error)
    assert (turn.refused.kind if turn.refused else None) == kind
    assert told == ({kind} if kind else set()), "it is told while the turn goes on, too"
    assert len(world.model.asks) <= 6


async def test_pings_for_ever_are_silence(world: ClaudeWorld) -> None:
    """facts/claude-code.md 33."""
    world.model.script = lambda _: Reply(pings=True)

    async def listen() -> None:
        async for _ in world.runner.signs():
            pass

    session, _, sent = await begun(world, Act(), runs=True)
    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        with anyio.fail_after(30):
            while not world.model.asks:
                await anyio.sleep(0.05)
        await anyio.sleep(6)
        assert (await world.runner.life(session)).quiet.total_seconds() > 4
        group.cancel_scope.cancel()
    await world.runner.abort(session)
    turn = await settled(world, session, sent.message_id)
    assert turn.error == "MessageAbortedError: the turn was stopped"
