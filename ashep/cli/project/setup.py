"""`ashep setup`: what is found, five questions at most, the files, and the first issue."""

import os
import shlex
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from ashep.actions.setup.checks import try_command
from ashep.actions.setup.database import create_issue, has_database, list_waiting, make_database
from ashep.actions.setup.facts import ProjectFacts, find_facts
from ashep.actions.setup.questions import SetupQuestion, answers_of, changed_files, question, validate
from ashep.actions.setup.written import KEYS, Key, written_answers
from ashep.adapters.system.process_table import locked
from ashep.cli import output
from ashep.cli.commands import Json, app, example
from ashep.cli.context import FOLDER, find_project
from ashep.config import put_schemas
from ashep.config.starter import write_configuration
from ashep.config.sync_agents import diff
from ashep.errors import AshepError, UsageError


@app.command(epilog=example("ashep setup", "ashep setup --yes", "ashep setup --json"))
def setup(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: each question has its default.")] = False,
    as_json: Json = False,
) -> None:
    """Set a project up: look at what is there, ask five questions at most, write the files, work on a first issue.

    Nothing is written in the project before the last question is answered. Run it again to change an answer: files that
    you changed by hand stay unless you say otherwise. Commands that may check work are tried on the base; where one
    lacks what it depends on, that is fetched into a cache in your home, by programs that are named before they run, as
    you and outside of the sandbox. --json shows what is found and would be written, and writes nothing; with --yes it
    does.
    """
    project = find_project(context.obj)
    asks = not (yes or as_json)
    if asks and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("setup asks at a terminal, and this is none: `ashep setup --yes` takes each default")
    with _alone(project):
        bd, is_labelled = _set_up(project, asks=asks, as_json=as_json, writes=yes or not as_json)
    if asks:
        _begin(project, bd, is_labelled=is_labelled)
    elif not as_json:
        output.say_lines(_TONIGHT)


@contextmanager
def _alone(project: Path) -> Generator[None]:
    """Hold the project's folder, so that a second set-up does not begin in the midst of this one."""
    folder = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a network file system may lock no folder
            if not locked(folder):
                raise UsageError(f"another `ashep setup` is at work in {project}: answer its questions, or end it")
        yield
    finally:
        os.close(folder)


def _set_up(project: Path, *, asks: bool, as_json: bool, writes: bool) -> tuple[Path, bool]:
    """Find what is there, ask, and write; returns the path of bd, and whether issues come by a label."""
    facts = anyio.run(find_facts, project, os.environ, output.say if asks else output.note)
    if not as_json:
        _say_facts(facts)
    facts, replies = _answer(project, facts, asks=asks)
    answers = answers_of(facts, replies)
    files, edited = changed_files(facts, answers)
    if edited and not (asks and _may_replace(facts, files, edited)):
        files = {name: text for name, text in files.items() if name not in edited}
    if as_json:
        dump = {key: value for key, value in asdict(facts).items() if key != "files"}
        output.data({"facts": dump, "answers": replies, "files": files, "kept": edited, "written": writes})
    else:
        _show(facts, files, edited)
    bd = _prepare(project, files) if writes else Path(facts.bd)
    return bd, answers.source == "github"


_TONIGHT = (
    f"commit {FOLDER}/, and others have it, too",
    "next: `ashep work` works until Ctrl-C, all night if you like; `ashep status` and `ashep ui` show how far it is",
    "      `ashep service install` has systemd keep it at work; `ashep doctor` says what is missing",
)


# --- what is found, and the questions -----------------------------------------------------------------------------


def _say_facts(facts: ProjectFacts) -> None:
    follows = f", which follows {facts.upstream}" if facts.upstream else ", which follows no branch of a remote"
    output.say(f"base     {facts.branch}{follows}")
    if forge := facts.forge:
        login = {"gh": "logged in by gh", "": f"no login: set {forge.token[0]} ({forge.token[1]})"}
        output.say(f"forge    {forge.repository} at {forge.host}; {login.get(forge.login, f'token in {forge.login}')}")
    for agent in facts.agents:
        login = {"yes": "logged in", "no": "not logged in", "unknown": "only a run shows whether it is logged in"}
        output.say(f"agent    {agent.title}: {agent.program}; {agent.lack or login[agent.login]}")
    if sum(agent.is_usable for agent in facts.agents) == 1:
        output.say("         another agent would judge better than a second session of the same; it is optional")
    boxed = "bubblewrap: agents reach their own work alone"
    output.say(f"sandbox  {f'{facts.sandbox}: agents run as you' if facts.sandbox else boxed}")
    output.say(f"issues   {facts.bd or 'bd is not here yet: it will be built, which takes minutes'}")
    if facts.dirty:
        output.say(f"note     {facts.dirty} changed files are not committed: work lands once they are")
    output.say_lines(f"left     {line}" for line in facts.leftovers)


def _answer(project: Path, facts: ProjectFacts, *, asks: bool) -> tuple[ProjectFacts, dict[Key, str]]:
    """Ask what there is to choose, or take each default; a command that is typed is tried first."""
    replies, number = written_answers(facts.files), 0
    for key in KEYS:
        prompt = question(key, facts, replies)
        reply, number = prompt.default, number + prompt.is_open
        if asks and prompt.is_open:
            reply = _prompt(prompt, number)
            while key == "check" and reply not in prompt.values:
                trial = anyio.run(try_command, project, tuple(shlex.split(reply)), output.say)
                facts = replace(facts, checks=(trial, *facts.checks))
                if trial.passes:
                    reply = shlex.join(trial.command)
                    break
                output.say(f"   {trial.message}: it would say nothing about work")
                reply = _prompt(prompt, number)
        replies[key] = reply
    return facts, replies


def _prompt(prompt: SetupQuestion, number: int) -> str:
    output.say()
    output.say_painted((f"{number}. {prompt.text}", "bold"))
    for place, option in enumerate(prompt.options, 1):
        output.say(f"   {place}  {option.label}")
    text = f"   number{f', {prompt.hint}' if prompt.hint else ''}"
    while True:
        try:
            return validate(prompt, typer.prompt(text, default=str(prompt.values.index(prompt.default) + 1)))
        except UsageError as error:
            output.say(f"   {error}")


def _may_replace(facts: ProjectFacts, files: Mapping[str, str], edited: tuple[str, ...]) -> bool:
    output.say()
    for name in edited:
        output.say(diff(facts.files[name], files[name], Path(FOLDER, name)))
    names = ", ".join(edited)
    return typer.confirm(f"{names}: changed by hand. Replace it?", default=False)


# --- what is written ----------------------------------------------------------------------------------------------


def _show(facts: ProjectFacts, files: Mapping[str, str], edited: tuple[str, ...]) -> None:
    for name, text in files.items():
        output.say()
        if name in facts.files:
            output.say(diff(facts.files[name], text, Path(FOLDER, name)))
        else:
            output.say_painted((f"{FOLDER}/{name}", "bold"))
            output.say_lines(f"  {line}" for line in text.rstrip("\n").splitlines())
    for name in edited:
        if name not in files:
            output.say(f"{FOLDER}/{name} stays as you changed it by hand")
    if not files:
        output.say("the files say all of that already")
    output.say()


def _prepare(project: Path, files: Mapping[str, str]) -> Path:
    """Write the files, and make what else is missing: bd, and its database."""
    from ashep.actions.get_bd import get_bd

    folder = project / FOLDER
    write_configuration(folder, files)
    put_schemas(folder)
    bd = anyio.run(get_bd, output.note)
    if not anyio.run(has_database, project, bd):
        anyio.run(make_database, project, bd)
        output.note("made a database of issues in .beads, which git does not see")
    return bd


# --- the first issue ----------------------------------------------------------------------------------------------


def _begin(project: Path, bd: Path, *, is_labelled: bool) -> None:
    """Work on the first issue, where a person wants that, and say what to type then."""
    from ashep.cli.running.first_issue import say_end, work_on

    issue = _choose_issue(project, bd, is_labelled=is_labelled)
    if issue is not None:
        standing = work_on(project, issue)
        output.say()
        say_end(issue, standing)
    output.say_lines(_TONIGHT)


def _choose_issue(project: Path, bd: Path, *, is_labelled: bool) -> str | None:
    """Return the issue that is worked on now; None: none is."""
    try:
        waiting = anyio.run(list_waiting, project)
    except AshepError as error:
        output.say(f"no issue can be read: {error}")
        return None
    if waiting:
        first, many = waiting[0], len(waiting) != 1
        state = f"{'carry' if many else 'carries'} the label" if is_labelled else f"{'are' if many else 'is'} ready"
        title = output.one_line(first.title)
        prompt = f"{output.counted(len(waiting), 'issue')} {state}. Work on {first.name} now ({title})?"
        return first.id if typer.confirm(prompt, default=True) else None
    if is_labelled:
        output.say("no issue carries the label `ashep` yet: set it on one at GitHub")
        return None
    title = typer.prompt("No issue waits. What should be done first? (Enter: nothing)", default="", show_default=False)
    return anyio.run(partial(create_issue, project, bd), title.strip()) if title.strip() else None
