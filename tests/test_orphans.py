"""What another journal's run left at work: it is stopped in whichever session it is."""

import pytest

from ashep.core.facts.commands import StopOrphan
from ashep.core.facts.runs import OrphanStopped
from ashep.daemon.effects.sessions import stop_orphan
from ashep.ports.runner import Prompt, SessionRequest
from ashep.simulation.memory.runner import MemoryRunner, Play
from tests.conformance.runners import SystemClock


@pytest.mark.promise("G2")
@pytest.mark.parametrize(("opened", "left", "found"), [
    ("implement.1.2", "implement.1.2", True),
    ("implement.1.1", "implement.1.2", True),  # its phase goes on in its last session
    ("implement.1.3", "implement.2.1", True),
    ("review.1.1", "implement.1.2", False),
    ("implement.1.1", "implement.999999999.999999999", False),  # a stamp may name any numbers: few are looked for
])  # fmt: skip
async def test_a_run_is_stopped_in_the_session_of_an_earlier_run_that_it_went_on_in(
    opened: str, left: str, found: bool
) -> None:
    runner = MemoryRunner(SystemClock(), lambda _: Play(delay=600))
    await runner.start()
    session = await runner.open_session(SessionRequest(key=f"i:t-1/{opened}", title="a test", access="write"))
    await runner.send(Prompt(session, "msg_1", "prt_1", "work", "build", None))
    stopped = await stop_orphan((runner,), StopOrphan("k", "t-1", f"i:t-1/{left}"), None)
    assert [fact.found for fact in stopped if isinstance(fact, OrphanStopped)] == [found]
    assert (session in await runner.busy((session,))) == (not found)
