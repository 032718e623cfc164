"""Several runners of a project: which one is asked, whose an error is, and who lets turns begin."""

import pytest

from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.ports.runner_router import RunnerRouter
from tests.conformance.runners import MemoryWorld, NamedWorld


async def test_errors_say_whose_they_are_and_a_runner_that_is_gone_refuses() -> None:
    runners = RunnerRouter({"opencode": lambda: MemoryWorld().runner, "second": lambda: MemoryWorld().runner})
    with pytest.raises(RunnerUnavailable) as away:  # nobody has started it
        await runners.find_runner("second:ses_1").busy(("second:ses_1",))
    assert away.value.runner == "second"
    with pytest.raises(RunnerRefused) as gone:
        runners.find_runner("third:ses_1")
    assert gone.value.runner == "third"
    assert not await runners.has_session("third:ses_1"), "what it had is gone with it"


async def test_no_turn_begins_where_nobody_is_here_to_say_so() -> None:
    runners, asked = RunnerRouter({}), list[tuple[str, str]]()
    assert not await runners.may_begin("second", "5f0c", "msg_1")

    async def begins(session: str, message: str) -> bool:
        asked.append((session, message))
        return True

    runners.begins = begins
    assert await runners.may_begin("second", "5f0c", "msg_1")
    assert asked == [("second:5f0c", "msg_1")], "in the journal a session has its runner's name"


async def test_what_is_handed_on_takes_its_session_by_name_too() -> None:
    """As the types say, which are the port's."""
    runner = NamedWorld().runner
    await runner.start()
    assert not await runner.has_session(session="second:ses_1")
