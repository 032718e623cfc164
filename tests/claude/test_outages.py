"""A model server that misbehaves: what a turn says of it, at once and at its end (facts/claude-code.md 32-34)."""

from datetime import datetime, timedelta

import anyio
import pytest

from ashep.adapters.system.clock import RealClock
from ashep.core.facts.runs import Allowance, Quota, QuotaWindow, Refusal
from ashep.daemon.reset_times import find_reset
from ashep.extras.demo.scripted_model import Reply
from ashep.extras.testing.worlds import Act, begun, settled
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


def of_quota(status: str, five_hours: float, resets: datetime, weekly: datetime) -> dict[str, str]:
    """The headers by which the provider tells a subscription what is left."""
    told = {
        "status": status, "reset": int(resets.timestamp()), "representative-claim": "five_hour",
        "5h-status": status, "5h-utilization": five_hours, "5h-reset": int(resets.timestamp()),
        "7d-status": "allowed", "7d-utilization": 0.41, "7d-reset": int(weekly.timestamp()),
    }  # fmt: skip
    return {f"anthropic-ratelimit-unified-{name}": str(value) for name, value in told.items()}


@pytest.mark.promise("U5")
async def test_a_subscription_shows_its_quota_and_when_it_begins_again(place: ClaudeWorld) -> None:
    """facts/claude-code.md 87: both windows while it answers, and the time where it does not any more."""
    resets = RealClock().now().replace(microsecond=0) + timedelta(hours=2)
    weekly = resets + timedelta(days=3)
    week = QuotaWindow("seven_day", 0.41, weekly, "allowed")
    shown: list[tuple[Reply, Allowance, float]] = [
        (Reply("well", headers=of_quota("allowed_warning", 0.93, resets, weekly)), "allowed_warning", 0.93),
        (Reply("no", status=429, headers=of_quota("rejected", 1, resets, weekly)), "rejected", 1.0),
    ]
    refused: Refusal | None = None
    async with place.model:
        environ = {name: value for name, value in place.environ.items() if name != "ANTHROPIC_API_KEY"}
        place._runner = place.another(environ=environ | {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none"})
        await place.runner.start()
        for reply, status, used in shown:
            place.model.script = lambda _, reply=reply: reply
            session, _, sent = await begun(place, Act())
            turn = await settled(place, session, sent.message_id)
            windows = (QuotaWindow("five_hour", used, resets, status), week)
            assert turn.quota == Quota("anthropic", "CLAUDE_CODE_OAUTH_TOKEN", status, "five_hour", resets, windows)
            refused = turn.refused
        await place.end()
    assert refused is not None
    assert refused.kind == "limited"
    near = resets.replace(second=0)
    assert find_reset(refused.why, near - timedelta(hours=2)) == near, "its words name the time, to the minute"


async def test_pings_for_ever_are_silence(world: ClaudeWorld) -> None:
    """facts/claude-code.md 33."""
    world.model.script = lambda _: Reply(pings=True)

    async def listen() -> None:
        async for _ in world.runner.signs():
            pass

    session, _, sent = await begun(world, Act(), runs=True)
    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        with anyio.fail_after(60):
            while not world.model.asks:
                await anyio.sleep(0.05)
        await anyio.sleep(6)
        assert (await world.runner.life(session)).quiet.total_seconds() > 4
        group.cancel_scope.cancel()
    await world.runner.abort(session)
    turn = await settled(world, session, sent.message_id)
    assert turn.error == "MessageAbortedError: the turn was stopped"
