"""All commands: their lines in the help, their modules, each imported once it is called for, and what several take."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from ashep import __version__
from ashep.cli import output

COMMANDS = {
    "ashep": {
        "setup": ("project.setup", "Set a project up: five questions, and a first issue."),
        "init": ("project.init", "Write the files of a new project."),
        "install": ("project.init", "Check that everything needed is there."),
        "doctor": ("project.init", "The same as install."),
        "get-bd": ("project.get_bd", "Get Beads' bd, where there is none."),
        "sync-agents": ("project.init", "Add the server's agents to agents.yaml."),
        "work": ("running.work", "Work on ready issues."),
        "stop": ("running.work", "Stop the daemon."),
        "demo": ("running.work", "Watch it work, offline."),
        "pause": ("running.daemon_control", "Let no run start for a while."),
        "resume": ("running.daemon_control", "Go on after a pause."),
        "drain": ("running.daemon_control", "Pause, and wait for the last run."),
        "cancel": ("running.daemon_control", "Stop a run and park its issue."),
        "sandbox": ("project.sandbox", "Run a command as an agent would have it."),
        "status": ("reading.typer_commands", "Say where every issue stands, and why."),
        "runs": ("reading.typer_commands", "List runs."),
        "show": ("reading.typer_commands", "Show everything about a run."),
        "why": ("reading.typer_commands", "Tell the story of an issue."),
        "usage": ("reading.typer_commands", "Say what runs used: tokens, cost, runs."),
        "report": ("reading.typer_commands", "The morning report: what became of the night."),
        "approve": ("running.answers", "Answer an issue's question with yes."),
        "reject": ("running.answers", "Ask for changes."),
        "answer": ("running.answers", "Answer what a run asks."),
        "retry": ("running.answers", "Start a parked issue afresh."),
        "take": ("running.answers", "Take an issue over."),
        "release": ("running.answers", "Let a taken issue go on."),
        "replay": ("reading.replay", "Derive every decision again, and compare."),
        "audit": ("reading.audit", "Check that every issue is accounted for."),
        "criteria": ("project.criteria", "Show, check or set what is checked of an issue."),
        "verify": ("running.verify", "Carry out the checks of an issue."),
        "serve": ("running.serve", "Serve the page, programs and verification, over HTTP."),
        "ui": ("running.serve", "Print a link to the page."),
        "impact": ("reading.impact", "Show which files a change touches, and what is delicate in it."),
        "journal": ("reading.journal", "Check, export and prune the journal."),
        "service": ("project.service", "Run ashep by systemd."),
        "policy": ("", "Look at policies."),
        "agents": ("project.agents", "Look at the agent registry."),
        "trees": ("project.trees", "Look at the work trees of issues."),
        "notify": ("running.daemon_control", "Tell people what is worth it."),
        "foreman": ("project.foreman", "Claude Code by day, with a memory."),
        "story": ("reading.stories", "Look at stories of the BMAD method."),
    },
    "policy": {
        "check": ("policy.check", "Check the policies."),
        "graph": ("policy.graph", "Draw a policy."),
        "simulate": ("policy.simulate", "Try a policy out on made-up issues."),
        "import": ("policy.import_export", "Make a policy of another set-up's."),
        "export": ("policy.import_export", "Write a policy in another form."),
        "state": ("policy.session_state", "Tell where an issue is, as state.json."),
    },
    "journal": {
        "verify": ("", "Check every line, batch and file."),
        "export": ("", "Print every record as a line of JSON."),
        "prune": ("", "Delete the archive for good."),
    },
    "service": {
        "install": ("", "Write the service's unit."),
        "status": ("", "Say how the service is."),
        "uninstall": ("", "Stop the service and delete its unit."),
    },
    "agents": {
        "list": ("", "List the agents, and which phases each can take."),
        "explain": ("", "Say which agent is chosen for a phase, and why no other."),
        "check": ("", "Check the agent registry."),
    },
    "trees": {
        "list": ("", "List the trees, with what each costs."),
        "open": ("", "Print where an issue's tree is."),
        "remove": ("", "Take an issue's tree away; everything in it is saved."),
        "gc": ("", "Take away the trees of what is closed and merged."),
    },
    "story": {
        "list": ("", "List the stories, and where each stands."),
        "show": ("", "Show what a story's file says."),
        "status": ("", "Say how many stories are in which state."),
        "check": ("", "Tell what is wrong with stories."),
        "sync": ("running.story_run", "Keep an issue of each story."),
        "run": ("running.story_run", "Work on stories until they end."),
        "import": ("project.story_import", "Take the configuration of the plugin foreman over."),
        "install-commands": ("project.story_import", "Write /foreman for OpenCode and Claude Code."),
        "shard": ("project.story_edits", "Move what is resolved into an archive, and back."),
        "compare": ("project.story_edits", "Tell what a story lost in another form."),
        "plan": ("project.story_edits", "Plan the stories of the epics."),
        "learnings": ("project.story_edits", "List what completed stories taught."),
    },
    "notify": {"test": ("", "Send a test message to every target.")},
}
"""Of each group its commands, in the order of the help: the module below `ashep.cli` where it is not that of the group,
and a line about it.
"""

SECTIONS = {
    "Start": ("setup", "demo", "work", "status", "ui"),
    "Work": ("stop", "pause", "resume", "drain", "cancel", "retry", "take", "release", "story"),
    "Look": ("why", "report", "runs", "show", "usage", "trees", "impact"),
    "Answer": ("approve", "reject", "answer"),
    "Set up": (
        "init",
        "install",
        "doctor",
        "get-bd",
        "sync-agents",
        "agents",
        "policy",
        "criteria",
        "service",
        "notify",
    ),
    "More": ("verify", "audit", "replay", "journal", "serve", "sandbox", "foreman"),
}  # fmt: skip
"""The sections of `ashep --help`, each with its commands in their order there."""


class Group(TyperGroup):
    """A group that knows names and lines of its commands, and imports the module of the one that is called."""

    def __init__(self, *, name: str, commands: dict[str, Any], **more: Any) -> None:
        super().__init__(name=name, **more)
        for one, (_, line) in COMMANDS[name].items():
            known = commands.get(one) or TyperCommand(one)
            known.short_help = line
            self.commands[one] = known

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called."""
        self.load(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of `ashep` in sections, and those of a group in one."""
        if self.name != "ashep":
            super().format_commands(ctx, formatter)
            return
        for section, names in SECTIONS.items():
            with formatter.section(section):
                rows = [(name, self.commands[name].get_short_help_str(80)) for name in names if name in self.commands]
                formatter.write_dl(rows)

    def load(self, name: str) -> None:
        """Import the module that holds a command."""
        module, _ = COMMANDS[str(self.name)].get(name, ("", ""))
        if module:
            import_module(f"ashep.cli.{module}")
            self.commands[name] = typer.main.get_group(_GROUPS[str(self.name)]).commands[name]


app = typer.Typer(
    name="ashep",
    cls=Group,
    help="Agent Shepherd: takes ready issues from GitHub, Beads or stories and walks each through a policy with coding "
    "agents.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 configuration or usage (or bd is missing), 3 another daemon holds "
    "this project, 65 the journal is damaged, 69 not everything could be checked, 74 the disk failed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_GROUPS = {"ashep": app}


def group(name: str, *, alone: bool = False) -> typer.Typer:
    """Add a group of commands, whose line is its help, too; `alone`: it does something without a command."""
    made = typer.Typer(
        name=name,
        cls=Group,
        help=COMMANDS["ashep"][name][1],
        no_args_is_help=not alone,
        invoke_without_command=alone,
        rich_markup_mode=None,
    )
    app.add_typer(made)
    _GROUPS[name] = made
    return made


policies = group("policy")


@app.callback()
def everywhere(
    context: typer.Context,
    project: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--project",
            metavar="DIR",
            help="The project's folder; by default the nearest one upwards with .agent-shepherd, else this one.",
        ),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Say the version and end.", is_eager=True)] = False,
) -> None:
    """What holds for every command."""
    if version:
        output.say(f"ashep {__version__}")
        raise typer.Exit
    context.obj = project


def whole() -> Any:
    """Import every command, and give the program as typer has it then: for whoever looks at all of them."""
    for module in dict.fromkeys(module for group in COMMANDS.values() for module, _ in group.values() if module):
        import_module(f"ashep.cli.{module}")
    return typer.main.get_command(app)


def example(*lines: str) -> str:
    """Give the end of a command's help; the mark keeps its lines apart."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def complete_name(context: typer.Context, value: Any) -> Any:
    """Give the ids that are meant by what was typed: a name, or a list of them."""
    from ashep.cli.issue_names import whole  # the help needs none of it

    if isinstance(value, list):
        return [whole(context.obj, str(item)) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - typer's
    return whole(context.obj, value) if isinstance(value, str) and value else value


def matching_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Give the ids that a shell can complete to."""
    from ashep.cli.issue_names import known_ids  # as above

    word = incomplete.removeprefix("#").casefold()
    return [issue for issue in known_ids(context.obj) if word in issue.casefold()]


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A comment on the issue.", metavar="TEXT")]
Issue = Annotated[
    str,
    typer.Argument(
        help="The issue's id, or a part of it.", metavar="ISSUE", callback=complete_name, autocompletion=matching_ids
    ),
]


def project_of(context: typer.Context) -> Path:
    """Give the project's folder."""
    from ashep.cli.context import find_project  # the help needs none of it

    return find_project(context.obj)
