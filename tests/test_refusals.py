"""What a provider's refusals look like on the real server: who refused, why, and when it may be asked again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest

from ashep.adapters.runners.opencode.client import check
from ashep.adapters.runners.opencode.provider_errors import Failure, of_error, of_status
from ashep.core.facts.runs import Refusal
from ashep.errors import RunnerMisconfigured, RunnerRefused
from ashep.extras.demo.scripted_model import Reply
from ashep.extras.testing.worlds import opened, prompt
from ashep.ports.runner import Turn
from tests.conformance.runners import RealWorld, real_place, real_world
from tests.test_life import scripted

__all__ = ["real_place", "real_world"]


async def refused(world: RealWorld, reply: Reply, attempt: int = 1) -> Turn:
    """Read a turn until it was refused so often."""
    session = await opened(world)
    sent = prompt(session, "REFUSED")
    with scripted(world, {"REFUSED": reply}):
        await world.runner.send(sent)
        with anyio.fail_after(60):
            while (turn := await world.runner.turn(session, sent.message_id)).refused is None or (
                turn.refused.attempt < attempt
            ):
                await anyio.sleep(0.1)
    await world.runner.abort(session)
    return turn


@pytest.mark.promise("U1")
@pytest.mark.real
async def test_a_limit_with_a_time_and_one_without(real_world: RealWorld) -> None:
    turn = await refused(real_world, Reply("rate limit exceeded", status=429, retry_after=600))
    assert (turn.state, turn.provider) == ("running", "scripted")
    assert turn.refused is not None
    assert (turn.refused.kind, turn.refused.why, turn.refused.attempt) == ("limited", "rate limit exceeded", 1)
    assert turn.refused.again_in is not None
    assert timedelta(seconds=590) < turn.refused.again_in <= timedelta(seconds=602)
    again = (await refused(real_world, Reply("slow down", status=429), attempt=2)).refused
    assert again is not None
    assert again.again_in is not None
    assert again.again_in < timedelta(seconds=10), "its own backoff"


@pytest.mark.promise("U1")
@pytest.mark.real
async def test_a_server_that_fails(real_world: RealWorld) -> None:
    turn = await refused(real_world, Reply("internal error", status=503))
    assert turn.refused is not None
    assert (turn.state, turn.refused.kind) == ("running", "down")


@pytest.mark.promise("U3")
@pytest.mark.real
@pytest.mark.parametrize(("status", "kind"), [(401, "unauthorized"), (403, "unauthorized"), (402, "limited")])
async def test_what_is_not_tried_again_ends_the_turn(real_world: RealWorld, status: int, kind: str) -> None:
    turn = await refused(real_world, Reply("no", status=status))
    assert (turn.state, turn.provider, turn.error) == ("finished", "scripted", "APIError: no")
    assert turn.refused == Refusal(kind, "no")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "data", "refusal"), [
    ("APIError", {"message": "bad", "statusCode": 400}, None),
    ("APIError", {"message": "bad"}, None),
    ("MessageAbortedError", {"message": "Aborted", "statusCode": 401}, None),
    ("ProviderAuthError", {"providerID": "x", "message": "no key"}, Refusal("unauthorized", "no key")),
    ("APIError", {"statusCode": 500}, Refusal("down", "APIError")),
    ("APIError", {"message": "quota", "statusCode": 429, "responseHeaders": {"retry-after": "7200"}},
     Refusal("limited", "quota", timedelta(hours=2))),
    (
        "APIError",
        {
            "message": "quota",
            "statusCode": 429,
            "responseHeaders": {
                "retry-after": "Sun, 22 Nov 2026 07:10:00 GMT",
                "date": "Sun, 22 Nov 2026 07:00:00 GMT",
            },
        },
        Refusal("limited", "quota", timedelta(minutes=10)),
    ),
    ("APIError", {"message": "q", "statusCode": 429, "responseHeaders": "odd"}, Refusal("limited", "q")),
    ("APIError", {"message": "q", "statusCode": 429, "responseHeaders": {
        "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-22T07:10:00Z",
        "anthropic-ratelimit-tokens-remaining": "9", "anthropic-ratelimit-tokens-reset": "2026-11-23T07:10:00Z",
    }}, Refusal("limited", "q", until=datetime(2026, 11, 22, 7, 10, tzinfo=UTC))),
    ("APIError", {"message": "q", "statusCode": 429, "responseHeaders": {
        "anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1900000000",
        "anthropic-ratelimit-unified-7d-status": "allowed", "anthropic-ratelimit-unified-7d-reset": "1900500000",
        "retry-after": "60",
    }}, Refusal("limited", "q", timedelta(minutes=1), until=datetime.fromtimestamp(1_900_000_000, UTC))),
    ("APIError", {"message": "q", "statusCode": 429, "responseHeaders": {
        "x-codex-primary-used-percent": "100", "x-codex-primary-reset-at": "1900000000",
        "x-codex-secondary-used-percent": "40", "x-codex-secondary-reset-at": "1900500000",
    }}, Refusal("limited", "q", until=datetime.fromtimestamp(1_900_000_000, UTC))),
    ("APIError", {"message": "q", "statusCode": 503, "responseHeaders": {"retry-after-ms": "1500", "x-reset": "?"}},
     Refusal("down", "q", timedelta(seconds=1.5))),
])  # fmt: skip
def test_an_error_is_a_refusal_or_none(name: str, data: dict[str, Any], refusal: Refusal | None) -> None:
    assert of_error(Failure(name=name, data=data)) == refusal


@pytest.mark.parametrize(
    ("after", "date"),
    [("Mon, 99 Foo 2026 GMT", ""), ("Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT")],
)
def test_a_time_that_is_none_or_farther_than_any_ends_nothing(after: str, date: str) -> None:
    data = {"message": "q", "statusCode": 429, "responseHeaders": {"retry-after": after, "date": date}}
    refusal = of_error(Failure(name="APIError", data=data))
    assert refusal is not None
    assert datetime(2026, 1, 1) + (refusal.again_in or timedelta()) < datetime(2060, 1, 1)
    again = of_status("q", 1, 1e300, 0.0).again_in
    assert again is not None
    assert datetime(2026, 1, 1) + again < datetime(2060, 1, 1)


def test_words_tell_a_limit_from_an_outage_and_a_time_in_the_past_is_now() -> None:
    assert of_status("Too Many Requests", 1, 5000.0, 9000.0) == Refusal("limited", "Too Many Requests", timedelta(), 1)
    assert of_status("Provider is overloaded", 3, 9000.0, 5000.0).again_in == timedelta(seconds=4)
    assert of_status("Provider is overloaded", 3, 9000.0, 5000.0).kind == "down"
    assert of_status("", 1, None, 5000.0) == Refusal("down", "it does not say why")


# --- a configuration that the server refuses ----------------------------------------------------------------------


def answered(status: int, body: object) -> httpx.Response:
    return httpx.Response(status, json=body, request=httpx.Request("GET", "http://127.0.0.1/agent"))


def test_the_words_of_a_refused_configuration_are_its_file_and_what_is_wrong_there() -> None:
    message = '\n--- JSONC Input ---\n{"agent": {\n\n--- Errors ---\nCloseBraceExpected at line 1\n--- End ---'
    bad = {"name": "ConfigJsonError", "data": {"path": "/p/opencode.json", "message": message}}
    with pytest.raises(RunnerMisconfigured) as told:
        check(answered(400, bad))
    assert str(told.value) == "/p/opencode.json: CloseBraceExpected at line 1"
    issues = [{"path": ["agent", 0], "message": "no\x1b[2J"}] * 2
    bad = {"name": "ConfigInvalidError", "data": {"path": "/p/x.md", "issues": issues}}
    with pytest.raises(RunnerMisconfigured) as told:
        check(answered(400, bad))
    assert str(told.value) == "/p/x.md: agent.0: no[2J"


@pytest.mark.parametrize("body", [{"name": "NotFoundError", "data": {}}, [], "Config", {"name": "Config", "data": 7}])
def test_any_other_refusal_is_one(body: object) -> None:
    with pytest.raises(RunnerRefused) as told:
        check(answered(400, body))
    assert not isinstance(told.value, RunnerMisconfigured)
