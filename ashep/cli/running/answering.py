"""Commands by which a person answers, starts afresh, and takes over: approve, reject, answer, retry, take, release."""

import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from ashep.actions import answers
from ashep.actions.opened import opened
from ashep.cli import screen
from ashep.cli.commands import Issue, Message, app, example, project_of
from ashep.cli.place import configured, now, picture
from ashep.config import load, settings_in
from ashep.connect import tracker_of
from ashep.core.policy.settings import Labels
from ashep.errors import DiskFailed, JournalDamaged
from ashep.journal.lock import holder
from ashep.ports.tracker import Tracker
from ashep.views import attempts, standing

Write = Callable[[Tracker, Labels], Awaitable[None]]


@app.command(epilog=example('ashep approve t-1 -m "well done"'))
def approve(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Answer an issue's question with yes, as yourself."""
    _answer(context, issue, message, approved=True)


@app.command(epilog=example('ashep reject t-1 -m "the tests are missing"'))
def reject(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Ask for changes, as yourself; say which with -m."""
    _answer(context, issue, message, approved=False)
    if not message:
        screen.note("without a comment (-m) the agent is not told what to change")


def _answer(context: typer.Context, issue: str, message: str | None, *, approved: bool) -> None:
    project = project_of(context)
    name = _as_person(project, partial(answers.answer, issue=issue, approved=approved, comment=message, at=now()))
    screen.say(f"{issue}: {'approved' if approved else 'changes requested'} as {name}. {_what_next(project)}")


@app.command(epilog=example('ashep answer t-1 "use the second one"', "ashep answer t-1 2", "ashep answer t-1 yes"))
def answer(
    context: typer.Context,
    issue: Issue,
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The answer; a number chooses an option.")],
) -> None:
    """Answer what a run asks in the midst of its work, as yourself; the run goes on with it.

    Where it asks for leave to use a tool, `yes` allows that once, and any other answer denies it and is told to the
    agent. Where it asks several questions at once, give a line for each. A comment that begins with @ashep does the
    same.
    """
    project = project_of(context)
    name = _as_person(project, partial(answers.say, issue=issue, text=words, at=now()))
    screen.say(f"{issue}: answered as {name}. {_what_next(project)}")


@app.command(epilog=example("ashep retry t-1", 'ashep retry t-1 --phase review -m "the server was down"'))
def retry(
    context: typer.Context,
    issue: Issue,
    phase: Annotated[str | None, typer.Option("--phase", metavar="P", help="The phase to go on with.")] = None,
    message: Message = None,
) -> None:
    """Start a parked issue afresh. Taking off its label ashep:parked does the same."""
    project = project_of(context)
    stands = _account(project, issue)
    if phase is not None:
        policies, name = load(configured(project)).policies.policies, stands.get("policy")
        chosen = [policies[name]] if name in policies else policies.values()
        answers.check_phase(phase, {one.name for policy in chosen for one in policy.phases})
    held = stands.get("state") == "not_eligible"
    name = _as_person(project, partial(answers.retry, issue=issue, phase=phase, held=held, comment=message, at=now()))
    screen.say(f"{issue}: starts afresh{f' with {phase}' if phase else ''}, as {name} asked. {_what_next(project)}")


@app.command(epilog=example("ashep take t-1", 'ashep take t-1 -m "I finish this by hand"'))
def take(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Take an issue over, as yourself: nothing is sent or started for it until you release it.

    A turn of its agent that runs is stopped; that burns no attempt. How its session is opened is printed. Setting its
    label ashep:paused does the same.
    """
    project = project_of(context)

    async def write(tracker: Tracker, labels: Labels) -> None:
        if not await answers.take(tracker, labels, issue, comment=message, at=now()):
            screen.note(f"{issue} was taken already")

    name = _as_person(project, write)
    screen.say(f"{issue}: taken, as {name} asked, until `ashep release {issue}`. {_what_next(project)}")
    screen.say(_session(project, issue))


@app.command(epilog=example("ashep release t-1", 'ashep release t-1 -m "go on"'))
def release(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Let an issue go on that you, or somebody else, took over. Taking off its label ashep:paused does the same.

    The agent goes on in the same session, and is told that a person was there; or, where the policy says so, the next
    phase looks at what the person did.
    """
    project = project_of(context)
    name = _as_person(project, partial(answers.release, issue=issue, comment=message, at=now()))
    screen.say(f"{issue}: goes on, as {name} asked. {_what_next(project)}")


def _session(project: Path, issue: str) -> str:
    try:
        with picture(configured(project) / "state") as seen:
            told = attempts.runs(seen.database, issue, 0)["runs"]
            run = next((run for run in told if run["session"]), None)
            folder = attempts.folder_of(seen.database, run["run"]) if run and seen.database else None
    except (JournalDamaged, DiskFailed) as error:
        return str(error)
    if run is None:
        return "It has no session yet."
    return anyio.run(opened, project, settings_in(configured(project)), issue, run["session"], folder, True)


def _account(project: Path, issue: str) -> dict[str, Any]:
    """Say what the journal knows of the issue; nothing where it cannot be read, for the tracker decides."""
    try:
        with picture(configured(project) / "state") as seen:
            return standing.account(seen.database, issue)
    except (JournalDamaged, DiskFailed) as error:
        screen.note(str(error))
        return {}


def _as_person(project: Path, write: Write) -> str:
    """Let a person write to the tracker; give the name under which that happened."""
    settings = settings_in(configured(project))

    async def run() -> str:
        name = await answers.answering(project, settings, os.environ)
        async with aclosing(tracker_of(project, settings, name)) as tracker:
            await write(tracker, settings.labels)
        return name

    return anyio.run(run)


def _what_next(project: Path) -> str:
    running = holder(configured(project) / "state") is not None
    return "ashep sees it at its next look" if running else "ashep is not running: `ashep work` goes on with it"
