"""`ashep criteria`: the checks of an issue shown, linted, set, or proposed by an agent and confirmed by a person."""

import os
import sys
from contextlib import aclosing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from anyio import to_thread

from ashep.actions.answers import person
from ashep.actions.runner_wait import call_runner
from ashep.actions.runners.opencode import is_up
from ashep.actions.suggest_checks import SuggestedChecks, adviser, suggest
from ashep.actions.verify import NoChecks, at_work, name_criteria, read_checks, read_issue, set_checks, types
from ashep.adapters.system.clock import RealClock
from ashep.cli import output
from ashep.cli.commands import Issue, Json, app, example, project_of
from ashep.cli.context import configured
from ashep.config import errors_of, load, settings_in
from ashep.config.checks.lint import lint as look
from ashep.config.checks.parser import ParsedCriteria
from ashep.config.checks.writer import WrittenChecks, read_given
from ashep.config.yaml_tree import MAX_BYTES, YamlUnreadable, decode
from ashep.core.issues.human_overrides import AGENT_ACTORS
from ashep.core.policy.checks import Check, Criteria, hash_of
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Settings
from ashep.errors import UsageError
from ashep.factories import READER, NamedRunner, annotations_of, runners_of, tracker_of
from ashep.ports.tracker import Seen


def proposed(project: Path, settings: Settings, found: Seen, known: tuple[str, ...]) -> SuggestedChecks:
    """Ask an agent of the project's server; a managed server that did not run is ended again."""
    agent = adviser(load(configured(project)).agents)

    async def ask() -> SuggestedChecks:
        runners, clock = runners_of(project, settings), RealClock()
        runners.begins = _begins
        runner = runners[agent.runner.type if agent else OPENCODE]
        as_found = await to_thread.run_sync(is_up, NamedRunner(project, settings, OPENCODE))
        output.note(f"{agent.id if agent else 'the default agent'} is asked; that can take minutes")
        try:
            await call_runner(runner.start, runner.catalog, output.note)
            return await suggest(runner, clock, found, agent, known)
        finally:
            with anyio.CancelScope(shield=True):
                if not as_found:
                    await runner.stop_server()
                await runner.aclose()

    return anyio.run(ask)


async def _begins(session: str, message: str) -> bool:
    """Let the one turn begin that this command asks for: it is in no journal, and nothing follows from it by itself."""
    return True


def confirmed(found: SuggestedChecks, *, yes: bool) -> bool:
    """Show a proposal with its doubts, and say whether a person wants it."""
    for finding in found.reading.findings:
        output.say_painted((finding.severity, "yellow"), (f"{finding} [{finding.code}]", None))
    output.say(f"```{found.given.language}\n{found.given.text}```")
    if yes:
        return True
    if not sys.stdin.isatty():
        output.note(f"proposed by {found.by}, and written nowhere: --yes writes it")
        return False
    return typer.confirm(f"proposed by {found.by}. Put it into the issue?", default=False)


def refuse_agents() -> None:
    """Let nobody but a person ask for it: `UsageError` before a minute is spent."""
    if os.environ.get("BEADS_ACTOR", "").startswith(AGENT_ACTORS):
        raise UsageError("only a person asks for checks, and no agent")


@app.command(
    epilog=example(
        "ashep criteria t-1",
        "ashep criteria t-1 --lint",
        "ashep criteria t-1 --set checks.yaml",
        "ashep criteria t-1 --suggest",
        "ashep criteria t-1 --json",
    )
)
def criteria(
    context: typer.Context,
    issue: Issue,
    given: Annotated[
        Path | None, typer.Option("--set", metavar="FILE", help="Put the checks of this file there; -: standard input.")
    ] = None,
    lint: Annotated[bool, typer.Option("--lint", help="Say what is wrong, and what is most likely not meant.")] = False,
    suggest: Annotated[bool, typer.Option("--suggest", help="Let an agent propose checks, and confirm them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --suggest: put them there without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Show the checks that a fenced block in the issue's acceptance criteria holds, and their hash.

    With --set the block is put there as yourself, in the place of the one that stands there, else at the end; every
    other word stays, and nothing is written where the file is wrong. Of an issue that ashep has begun those of before
    go on to count, which is said.

    With --suggest an agent of the project's server reads the issue and the code, and proposes checks; they are shown
    with what is doubtful about them, and put there once you have said yes, or with --yes.

    The exit code is 1 where there are no checks, or where they are wrong, and 2 where the file of --set is.
    """
    if (given is not None) + lint + suggest > 1:
        raise UsageError("--set, --lint and --suggest do not go together")
    if yes and not suggest:
        raise UsageError("--yes goes with --suggest")
    project = project_of(context)
    configured(project)
    if given is not None:
        name = "standard input" if str(given) == "-" else str(given)
        text = _text(given)
        _put(project, issue, read_given(text, name, types(settings_in(configured(project)))), as_json=as_json)
        return
    if suggest:
        _suggest(project, issue, yes=yes, as_json=as_json)
        return
    settings = settings_in(configured(project))
    found = _read_issue(project, issue)
    reading = look(found.text.acceptance, name_criteria(issue), types(settings))
    if not lint:
        reading.findings = errors_of(reading.findings)
    known = reading.criteria
    if as_json:
        output.data({
            "issue": issue, "line": reading.blocks[0].first if reading.blocks else None,
            "hash": None if known is None else hash_of(known),
            "checks": None if known is None else known.model_dump(mode="json")["checks"],
            "findings": [asdict(finding) for finding in reading.findings],
        })  # fmt: skip
    else:
        _say(issue, reading, found, lint=lint)
    raise typer.Exit(int(known is None))


def _read_issue(project: Path, issue: str) -> Seen:
    async def read() -> Seen:
        async with aclosing(tracker_of(project, settings_in(configured(project)), READER)) as tracker:
            return await read_issue(tracker, issue)

    return anyio.run(read)


def _say(issue: str, reading: ParsedCriteria, found: Seen, *, lint: bool) -> None:
    for finding in reading.findings:
        output.say_finding(finding.severity, f"{finding} [{finding.code}]")
    if reading.criteria is None:
        if not reading.findings:
            try:
                read_checks(found, ())
            except NoChecks as error:
                output.note(str(error))
        return
    if lint:
        if not reading.findings:
            output.say(f"{issue}: no mistake found")
        return
    output.say(_headline(issue, reading.criteria))
    rows = [(check.id, check.type, describe_check(check), check.description) for check in reading.criteria.checks]
    output.table(("CHECK", "TYPE", "WHAT", "FOR"), rows)


def _headline(issue: str, found: Criteria) -> str:
    return f"{issue}: {output.counted(len(found.checks), 'check')}, hash {hash_of(found)}"


def describe_check(check: Check) -> str:
    """Say in a few words what a check looks at."""
    verify: dict[str, Any] = check.model_dump(mode="json")["verify"]
    match check.type:
        case "http_request":
            return f"{verify['method']} {verify['path']} gives {verify['expect_status']}"
        case "file_exists":
            return verify["path"] + (f" with {len(verify['contains'])} texts" if verify["contains"] else "")
        case "code_pattern":
            no = "" if verify["must"] == "match" else "no "
            return f"{no}{verify['pattern']} in {verify['glob']}"
        case "test_pass":
            return " ".join(verify["command"])
        case "manual":
            return verify["question"]
        case _:
            return ", ".join(f"{key}: {value}" for key, value in verify.items())


def _suggest(project: Path, issue: str, *, yes: bool, as_json: bool) -> None:
    refuse_agents()
    settings = settings_in(configured(project))
    found = proposed(project, settings, _read_issue(project, issue), types(settings))
    if as_json and not yes:
        told = {"issue": issue, "proposed_by": found.by, "language": found.given.language, "text": found.given.text}
        output.data(told | {"findings": [asdict(finding) for finding in found.reading.findings]})
    elif (as_json and yes) or confirmed(found, yes=yes):
        _put(project, issue, found.given, as_json=as_json)


def _put(project: Path, issue: str, given: WrittenChecks, *, as_json: bool) -> None:
    settings = settings_in(configured(project))
    known = types(settings)

    async def write() -> tuple[str, bool, Seen]:
        name = await person(project, settings, os.environ)
        annotations = annotations_of(project, settings, name)
        async with aclosing(tracker_of(project, settings, name)) as tracker:
            found = await read_issue(tracker, issue)
            return name, await set_checks(annotations, issue, given, known), found

    name, changed, found = anyio.run(write)
    later = changed and at_work(found)
    if as_json:
        told = {"issue": issue, "changed": changed, "begun": later, "hash": hash_of(given.criteria)}
        output.data(told | {"checks": given.criteria.model_dump(mode="json")["checks"]})
        return
    output.say(_headline(issue, given.criteria) + ("" if changed else ". They stand there so already"))
    if changed:
        output.say(f"set as {name}")
    if later:
        output.note(f"{issue} has begun: the checks that it had when it was taken go on to count")


def _text(file: Path) -> str:
    """Read a file of checks; UsageError where there is none, or where it is none of text."""
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as stream:
            return decode(stream.read(MAX_BYTES + 1))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except YamlUnreadable as error:
        raise UsageError(f"{file}: {error}") from error
