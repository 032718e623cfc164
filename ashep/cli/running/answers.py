"""Commands by which a person answers, starts afresh, and takes over: approve, reject, answer, retry, take, release."""

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from ashep.actions import answers
from ashep.actions.runners.kinds import kind_of_session
from ashep.cli import output
from ashep.cli.commands import Issue, Message, app, example, project_of
from ashep.cli.context import configured, current_time, picture
from ashep.config import load, settings_in
from ashep.core.policy.settings import Labels
from ashep.errors import AshepError, DiskFailed, JournalDamaged
from ashep.journal.lock import holder
from ashep.ports.tracker import Tracker
from ashep.views import json_types, runs, status

Instead = Annotated[bool, typer.Option("--instead", help="In place of an answer of a person that stands already.")]


@app.command(
    epilog=example('ashep approve t-1 -m "well done"', "ashep approve t-1 --now", "ashep approve t-1 --instead")
)
def approve(
    context: typer.Context,
    issue: Issue,
    message: Message = None,
    instead: Instead = False,
    signed: Annotated[bool, typer.Option("--sign", help="Sign it by SSH, with your key of `people.keys`.")] = False,
    key: Annotated[Path | None, typer.Option("--key", help="Sign with this file, and not by the ssh-agent.")] = None,
    at_once: Annotated[
        bool, typer.Option("--now", help="Where no daemon runs, go on with this issue until it has landed, or waits.")
    ] = False,
) -> None:
    """Answer an issue's question with yes, as yourself.

    Where a person has asked for changes and ashep has not seen that yet, nothing is written without --instead.

    A signature counts for a day, and only for what is shown before it is made: if any of that changes, it is void.
    """
    folder = configured(project_of(context))
    if signed:
        message = anyio.run(answers.sign_approval, folder, issue, message, key, current_time(), output.say)
    else:
        answers.refuse_unsigned(settings_in(folder), issue)
    _answer(context, issue, message, instead, approved=True, at_once=at_once)
    if at_once and holder(folder / "state") is None:
        from ashep.cli.running.first_issue import say_end, work_until_rest

        say_end(issue, work_until_rest(folder.parent, issue))


@app.command(epilog=example('ashep reject t-1 -m "the tests are missing"'))
def reject(context: typer.Context, issue: Issue, message: Message = None, instead: Instead = False) -> None:
    """Ask for changes, as yourself; say which with -m.

    Where a person has approved and ashep has not seen that yet, nothing is written without --instead.
    """
    if not message:
        output.note("without a comment (-m) the agent is not told what to change")
    _answer(context, issue, message, instead, approved=False)


def _answer(
    context: typer.Context, issue: str, message: str | None, instead: bool, *, approved: bool, at_once: bool = False
) -> None:
    project, what = project_of(context), "approved" if approved else "changes requested"
    write = partial(answers.answer, issue=issue, approved=approved, comment=message, at=current_time(), instead=instead)
    _answered(project, issue, what, write, at_once=at_once)


def _answered(project: Path, issue: str, what: str, write: answers.Write, *, at_once: bool = False) -> None:
    """Answer, and say so; an error where somebody else answered in the same moment."""
    try:
        name, beside = answers.write_as_person(configured(project), write)
    except answers.Answered as error:
        raise AshepError(f"{error}; --instead replaces it") from error
    output.say(f"{issue}: {what} as {name}. {_what_next(project, at_once=at_once)}")
    if beside:
        raise AshepError(f"{issue}: {beside}")


@app.command(epilog=example('ashep answer t-1 "use the second one"', "ashep answer t-1 2", "ashep answer t-1 yes"))
def answer(
    context: typer.Context,
    issue: Issue,
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The answer; a number chooses an option.")],
    instead: Instead = False,
) -> None:
    """Answer what an agent asks, as yourself; it goes on with it.

    Where its run asks for leave to use a tool, `yes` allows that once, and any other answer denies it and is told to
    the agent. Where it asks several questions at once, give a line for each. For a run, a comment that begins with
    @ashep does the same.
    """
    project = project_of(context)
    stands = _account(project, issue)
    question = stands["question"] if stands is not None else None
    leads_back = question is not None and question["kind"] == "input"
    write = partial(answers.say, issue=issue, text=words, at=current_time(), instead=instead, leads_back=leads_back)
    _answered(project, issue, "answered", write)


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
        answers.check_phase(phase, load(configured(project)).policies.policies, stands and stands["policy"])
    held = stands is not None and stands["state"] == "not_eligible"
    write = partial(answers.retry, issue=issue, phase=phase, held=held, comment=message, at=current_time())
    name, _ = answers.write_as_person(configured(project), write)
    output.say(f"{issue}: starts afresh{f' with {phase}' if phase else ''}, as {name} asked. {_what_next(project)}")


@app.command(epilog=example("ashep take t-1", 'ashep take t-1 -m "I finish this by hand"'))
def take(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Take an issue over, as yourself: nothing is sent or started for it until you release it.

    A turn of its agent that runs is stopped; that burns no attempt. How its session is opened is printed. Setting its
    label ashep:paused does the same.
    """
    project = project_of(context)

    async def write(tracker: Tracker, labels: Labels) -> None:
        if not await answers.take(tracker, labels, issue, comment=message, at=current_time()):
            output.note(f"{issue} was taken already")

    name, _ = answers.write_as_person(configured(project), write)
    output.say(f"{issue}: taken, as {name} asked, until `ashep release {issue}`. {_what_next(project)}")
    output.say(_session(project, issue))


@app.command(epilog=example("ashep release t-1", 'ashep release t-1 -m "go on"'))
def release(context: typer.Context, issue: Issue, message: Message = None) -> None:
    """Let an issue go on that you, or somebody else, took over. Taking off its label ashep:paused does the same.

    The agent goes on in the same session, and is told that a person was there; or, where the policy says so, the next
    phase looks at what the person did.
    """
    project = project_of(context)
    write = partial(answers.release, issue=issue, comment=message, at=current_time())
    name, _ = answers.write_as_person(configured(project), write)
    output.say(f"{issue}: goes on, as {name} asked. {_what_next(project)}")


def _session(project: Path, issue: str) -> str:
    try:
        with picture(configured(project) / "state") as seen:
            told = runs.runs(seen.database, issue, 0)["runs"]
            run = next((run for run in told if run["session"]), None)
            folder = runs.folder_of(seen.database, run["run"]) if run and seen.database else None
    except (JournalDamaged, DiskFailed) as error:
        return str(error)
    if run is None:
        return "It has no session yet."
    kind, reference = kind_of_session(project, settings_in(configured(project)), run["session"], folder)
    return anyio.run(kind.open_command, reference, issue, True)


def _account(project: Path, issue: str) -> json_types.IssueJson | None:
    """Say what the journal knows of the issue; nothing where it cannot be read, for the tracker decides."""
    try:
        with picture(configured(project) / "state") as seen:
            return status.read_issue(seen.database, issue)
    except (JournalDamaged, DiskFailed) as error:
        output.note(str(error))
        return None


def _what_next(project: Path, *, at_once: bool = False) -> str:
    if holder(configured(project) / "state") is not None:
        return "ashep sees it at its next look"
    return "It goes on now" if at_once else "ashep is not running: `ashep work` goes on with it"
