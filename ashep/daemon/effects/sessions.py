"""Effects in sessions that need no more than the server: answers to requests, once, and stops."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from ashep.core.facts import commands, runs
from ashep.core.facts.tracker import Comment
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.observe import session_read
from ashep.core.runs.prompt_commands import DIAGNOSED, EXTRACTION, earlier_keys, is_asked, message_id
from ashep.core.state.flow import Flow, Takeover
from ashep.core.state.world import World
from ashep.errors import DiskFailed, RunnerRefused
from ashep.ports.journal import Blobs
from ashep.ports.runner import Runner, Turn
from ashep.ports.transcripts import write_steps


async def keep_steps(blobs: Blobs, turn: Turn) -> str | None:
    """Keep what was said and done in a turn that is over, and give the blob; None: that is no failure of its run."""
    with suppress(DiskFailed):
        return await blobs.keep(write_steps(turn.steps, blobs.redact)) if turn.steps else None
    return None


async def stop(runner: Runner, command: commands.StopTurn, world: World, blobs: Blobs) -> list[Fact]:
    """Stop a session's turn, and read what it had used: some tell that at the end only."""
    stopped = runs.TurnStopped(command.issue, command.run, command.key)
    with suppress(RunnerRefused):  # the server does not know the session: nothing there could go on
        await runner.abort(command.session)
        flow = world.flows.get(command.issue)
        run = flow.run if flow is not None else None
        message = message_id(world, run) if run is not None and run.id == command.run and run.prompt.sent else None
        if run is not None and message is not None:
            turn = await runner.turn(command.session, message)
            used = {"tokens": turn.tokens, "cost": turn.cost, "provider": turn.provider}
            used |= {"steps": await keep_steps(blobs, turn)}
            stopped = replace(stopped, n=run.prompt.n, state=turn.state, **used)
    return [stopped]


async def stop_orphan(runners: Sequence[Runner], command: commands.StopOrphan, directory: str | None) -> list[Fact]:
    """Stop what another journal's run may have left at work on a runner of ours, in whichever of its sessions.

    `directory`: the issue's own work tree, where it has one; the run may have been in the shared one all the same.
    Where sessions are used again the run's may have the key of an earlier run of its phase: it is the run's if the run
    asked something in it.
    """
    found = False
    own = [f"{command.orphan}{suffix}" for suffix in ("", EXTRACTION, DIAGNOSED)]
    keys = [*own, *earlier_keys(command.orphan)]
    for runner, place, key in product(runners, dict.fromkeys((None, directory)), keys):
        session = await runner.find_session(key, place)
        if session is None or (key not in own and not is_asked(command.orphan, session, await runner.asked(session))):
            continue
        await runner.abort(session)
        found = True
    return [runs.OrphanStopped(command.issue, command.key, found)]


async def deliver(runner: Runner, command: commands.AnswerRequest, *, probe: bool) -> list[Fact]:
    """Deliver an answer; one that may have been delivered before only where the request is still listed, or the list
    cannot be shown.
    """
    taken = True
    asking, request = command.session, command.request
    if not probe or any(one.id == request or one.unlisted for one in await runner.requests((asking,))):
        taken = await runner.reply(asking, request, command.kind, command.verdict, command.answers, command.message)
    return [runs.RequestAnswered(command.issue, command.run, command.key, command.request, taken)]


def marker(instance: str, key: str) -> str:
    """What a comment of ours ends with: its probe looks for it."""
    return f"<!-- ashep {instance[:8]} {key} -->"


def around(
    comments: tuple[Comment, ...], actor: str, instance: str, key: str
) -> tuple[tuple[Comment, ...], tuple[Comment, ...]]:
    """Return the comments between our comment of this key and the one of `actor` before that, and those behind it.

    The tracker's order counts, whatever its clock says. Without a key all are behind.
    """
    if not key:
        return (), comments
    sign = marker(instance, key)
    place = max((n for n, comment in enumerate(comments) if sign in comment.text.split("\n")), default=None)
    if place is None:
        return (), ()
    start = max((n for n, comment in enumerate(comments[:place], 1) if comment.author == actor), default=0)
    return comments[start:place], comments[place + 1 :]


async def look(runner: Runner, world: World, flow: Flow, takeover: Takeover) -> runs.SessionSeen | None:
    """Read the session; None: there is none to read. Errors of the runner are raised, but for a session that is gone:
    nobody can be in that one.
    """
    as_of, people, busy = world.seq, takeover.people, False
    if takeover.session is None:
        return None
    with suppress(RunnerRefused):
        busy = takeover.session in await runner.busy((takeover.session,))
        if takeover.message is not None:
            before = flow.run.prompt.before if flow.run else ()
            ours = frozenset((*flow.messages, *before)) - {takeover.message}
            people = (await runner.turn(takeover.session, takeover.message, ours)).people
    return runs.SessionSeen(flow.issue.id, takeover.session, people, busy, as_of)


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
    return [runs.SessionSeen(issue, run.session, (), True, world.seq)] if busy else []
