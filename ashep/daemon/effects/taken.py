"""Looks at a session that a person took: what they wrote there, and whether a turn runs. It decides nothing."""

from contextlib import suppress

from ashep.core.facts.runs import SessionSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.observe import session_read
from ashep.core.state.flow import Flow, Held
from ashep.core.state.world import World
from ashep.errors import RunnerRefused
from ashep.ports.tracker import Runner


async def look(runner: Runner, world: World, flow: Flow, held: Held) -> SessionSeen | None:
    """Read the session; None: there is none to read. Errors of the runner are raised, but for a session that is gone:
    nobody can be in that one.
    """
    as_of, people, busy = world.seq, held.people, False
    if held.session is None:
        return None
    with suppress(RunnerRefused):
        busy = held.session in await runner.busy((held.session,))
        if held.message is not None:
            before = flow.run.prompt.before if flow.run else ()
            ours = frozenset((*flow.messages, *before)) - {held.message}
            people = (await runner.turn(held.session, held.message, ours)).people
    return SessionSeen(flow.issue.id, held.session, people, busy, as_of)


async def came_back(runner: Runner, world: World, issue: str) -> list[Fact]:
    """Before a prompt goes to a session that is used again: tell whether a person is in it.

    They are where they wrote there after we thought that they were done, and where a turn runs that is none of ours.
    """
    flow = world.flows[issue]
    if flow.resume is not None:
        seen = await look(runner, world, flow, flow.resume)
        return [] if seen is None else session_read(world, seen)
    run = flow.run
    if run is None or run.session is None or run.session != run.reuse or run.prompt.n > 1 or run.prompt.again:
        return []
    busy = run.session in await runner.busy((run.session,))
    return [SessionSeen(issue, run.session, (), True, world.seq)] if busy else []
