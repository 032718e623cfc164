"""Commands about the daemon: work, stop, demo."""

import os
import signal
import time
import webbrowser
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ashep.cli import output
from ashep.cli.commands import app, complete_name, example, project_of
from ashep.cli.context import configured, current_time
from ashep.errors import AshepError, UsageError
from ashep.journal.lock import holder, refuse_held
from ashep.views.status import WORKPLACE

if TYPE_CHECKING:  # importing it takes a second, which `stop` does not need, and `work` only where it may begin
    from ashep.app import DryRun

_STOP = 60.0
"""Seconds that `stop` waits for the daemon to end: on a slow machine that takes longer."""

_NOTE = 10.0
"""Seconds after which it says so."""


@app.command(
    epilog=example(
        "ashep work",
        "ashep work t-1 t-2 --until-idle",
        "ashep work --dry-run",
        "ashep work --max-issues 5",
        "ashep work --all",
    )
)
def work(
    context: typer.Context,
    issues: Annotated[
        list[str] | None, typer.Argument(metavar="ISSUE", callback=complete_name, help="Only these issues.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End once nothing runs and nothing can start.")
    ] = False,
    idle_grace: Annotated[
        str, typer.Option("--idle-grace", metavar="TIME", help="With --until-idle: wait for what is due this soon.")
    ] = "5m",
    max_issues: Annotated[
        int | None, typer.Option("--max-issues", metavar="N", min=1, help="Take at most so many issues.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Work on all of a backlog that was there first, and not on ten issues of it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say who would start and who is held, and write nothing.")
    ] = False,
    prompt: Annotated[bool, typer.Option("--prompt", help="With --dry-run: show each prompt, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
) -> None:
    """Work on ready issues until told to stop (SIGTERM, Ctrl-C).

    Where more than ten are ready before any was worked on, you are asked once how many it works on; without a terminal
    it is ten.
    """
    project = project_of(context)
    folder = configured(project)
    if not dry_run:
        refuse_held(folder / "state")  # before what takes seconds: imports, the configuration, and what it names
    from ashep import app as daemon
    from ashep.cli.running.backlog import choose_backlog
    from ashep.core.policy.base_types import parse_duration

    if as_json and not dry_run:
        raise UsageError("--json goes with --dry-run")
    if prompt and not dry_run:
        raise UsageError("--prompt goes with --dry-run")
    try:
        grace: Any = parse_duration(idle_grace)
    except ValueError as error:
        raise UsageError(f"--idle-grace {idle_grace}: {error}") from error
    if everything and (issues or max_issues):
        raise UsageError("--all goes without issues and --max-issues")
    options = daemon.WorkOptions(tuple(issues or ()), until_idle, grace, max_issues)
    if not (issues or max_issues):
        backlog = "all" if everything else "first" if dry_run else choose_backlog(project)
        options = replace(options, backlog=backlog, until_idle=until_idle or backlog == "none")
    if dry_run:
        _print_dry_run(daemon.dry_run(project, options), prompt=prompt, as_json=as_json)
        return
    code = daemon.work(project, options, progress)
    output.say_look()
    raise typer.Exit(code)


def progress(line: str) -> None:
    """Print a line of the story, with the time."""
    output.progress(f"{current_time().astimezone():%H:%M:%S} {line}")


def _print_dry_run(seen: "DryRun", *, prompt: bool, as_json: bool) -> None:
    titles = seen.titles
    if as_json:
        starting = [asdict(start) | {"title": titles[start.issue]} for start in seen.starting]
        held = [{"issue": issue, "code": code, "why": why, "title": titles[issue]} for issue, code, why in seen.held]
        output.data({"workspace": seen.workspace, "starting": starting, "held": held, "notes": seen.notes})
        return
    for start in seen.starting:
        title = output.one_line(titles[start.issue])
        output.say_painted((f"{start.issue} ({title}): {start.phase} would start with {start.agent}", "bold"))
        if prompt:
            output.say_lines(f"    {line}" for line in start.prompt.splitlines())
    if not seen.starting:
        output.say("nothing would start")
    for note in seen.notes:
        output.note(note)
    output.say(WORKPLACE[seen.workspace])
    output.table(("HELD", "TITLE", "CODE", "WHY"), [(issue, titles[issue], *reasons) for issue, *reasons in seen.held])


@app.command(epilog=example("ashep stop", "ashep stop --server"))
def stop(
    context: typer.Context,
    server: Annotated[bool, typer.Option("--server", help="End the managed agent server, too.")] = False,
) -> None:
    """Stop the daemon. Turns that run go on at the agent server, and are picked up at the next start."""
    project = project_of(context)
    state = configured(project) / "state"
    daemon = holder(state)
    began = time.monotonic()  # noqa: TID251 - a command for people, outside of everything that is replayed
    asked, is_noted = 0, False
    while daemon is not None and (waited := time.monotonic() - began) < _STOP:  # noqa: TID251 - as above
        if waited > _NOTE and not is_noted:
            is_noted = True
            output.note(f"process {daemon.pid} has not ended after {_NOTE:g} s; waiting up to {_STOP:g} s")
        if daemon.pid and daemon.pid != asked:
            asked = daemon.pid
            try:
                os.kill(asked, signal.SIGTERM)
            except ProcessLookupError:
                pass
            except PermissionError as error:
                raise AshepError(f"process {asked} is another user's, and may not be stopped") from error
        time.sleep(0.05)  # noqa: TID251 - as above
        daemon = holder(state)
    if daemon is not None:
        raise AshepError(f"process {daemon.pid} was asked to stop, and has not ended after {_STOP:.0f} seconds")
    output.say(f"stopped process {asked}" if asked else "ashep is not running")
    if server:
        from ashep.app import stop_server

        output.say("ended the agent server" if stop_server(project) else "there is no agent server of ashep's to end")


@app.command(
    epilog=example(
        "ashep demo",
        "ashep demo --simulated",
        "ashep demo --github",
        "ashep demo --ui --open",
        "ashep demo --agents mixed",
        "ashep demo --stories",
        "ashep demo --in /tmp/demo",
    )
)
def demo(
    simulated: Annotated[bool, typer.Option("--simulated", help="Without bd and OpenCode, in virtual time.")] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Simulated, with issues of GitHub: they are labelled and answered there.")
    ] = False,
    agents: Annotated[
        Literal["opencode", "mixed"],
        typer.Option("--agents", help="mixed: Claude Code implements, OpenCode judges, `ashep work` is killed."),
    ] = "opencode",
    stories: Annotated[
        bool, typer.Option("--stories", help="Stories of the BMAD method in place of issues: `ashep story run --all`.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the demonstration's project there to look at.")] = False,
    place: Annotated[
        Path | None, typer.Option("--in", metavar="DIR", help="Keep it in this folder; if it was killed there, go on.")
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Simulated, with the page: you answer there, until Ctrl-C.")] = False,
    shows: Annotated[bool, typer.Option("--open", help="With --ui: open the page in a browser, too.")] = False,
) -> None:
    """Watch issues being walked through a policy, offline, with a scripted model."""
    from ashep.extras.demo.run import demo as run
    from ashep.extras.demo.scenario import CALC
    from ashep.extras.demo.story_scenario import STORIES

    def show(link: str) -> None:
        output.progress(link)
        if shows:
            webbrowser.open(link)

    if github and ui:
        raise UsageError("--github goes without --ui: people answer at GitHub")
    simulated = simulated or ui or github

    if simulated and place is not None:
        raise UsageError("--in goes with the real tools, not with --simulated or --ui")
    if simulated and agents != "opencode":
        raise UsageError("--agents goes with the real tools, not with --simulated or --ui")
    if stories and simulated:
        raise UsageError("--stories goes with the real tools, not with --simulated or --ui: stories are files in git")
    if stories and agents != "opencode":
        raise UsageError("--stories goes without --agents: its roles are OpenCode's")
    piece, enter = STORIES if stories else CALC, show if ui else None
    say, simulation = output.progress, "github" if github else "tracker" if simulated else None
    code = run(simulation=simulation, agents=agents, piece=piece, keep=keep, place=place, say=say, enter=enter)
    if not ui:  # its own project is mostly gone by now
        output.say_look("ashep demo --ui")
    raise typer.Exit(code)
