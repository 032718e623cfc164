"""What another journal's run left at work: it is stopped in whichever session it is."""

from datetime import UTC, datetime

import pytest

from ashep.core.facts.commands import StopOrphan
from ashep.core.facts.runs import OrphanStopped
from ashep.core.runs.prompt_commands import prompt_ids
from ashep.daemon.effects.sessions import stop_orphan
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.ports.runner import Prompt, SessionRequest
from tests.conformance.runners import SystemClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.promise("G2")
@pytest.mark.parametrize(("opener", "prompter", "orphan", "is_stopped"), [
    ("implement.1.2", "implement.1.2", "implement.1.2", True),
    ("implement.1.1", "implement.1.2", "implement.1.2", True),  # its phase goes on in its last session
    ("implement.1.3", "implement.2.1", "implement.2.1", True),
    ("implement.1.1", "implement.1.1", "implement.1.2", False),  # whoever is at work there is not that run
    ("review.1.1", "review.1.1", "implement.1.2", False),
    ("implement.1.1", "implement.1.1", "implement.999999999.999999999", False),  # few are looked for
])  # fmt: skip
async def test_a_run_is_stopped_in_the_session_in_which_it_asked(
    opener: str, prompter: str, orphan: str, is_stopped: bool
) -> None:
    runner = MemoryRunner(SystemClock(), lambda _: Play(delay=600))
    await runner.start()
    session = await runner.open_session(SessionRequest(key=f"i:t-1/{opener}", title="a test", access="write"))
    message, part = prompt_ids("i", session, f"t-1/{prompter}", 2, 1, NOW)
    await runner.send(Prompt(session, message, part, "work", "build", None))
    facts = await stop_orphan((runner,), StopOrphan("k", "t-1", f"i:t-1/{orphan}"), None)
    assert [fact.found for fact in facts if isinstance(fact, OrphanStopped)] == [is_stopped]
    assert (session in await runner.busy((session,))) == (not is_stopped)
