"""The command line: parse, call, print a view, end with an exit code.

Never: what a command is about; that is an action's, a view's, or the daemon's.

`main` is the program. A command that only reads imports neither sqlmodel, pydantic, httpx nor an adapter, so that it
answers at once. typer reads every command line with pydantic's help, so `fast_path` takes the plain forms of the
reading commands before it; the module of every other command is imported once it is called.

Rooms: `reading`, `running`, `project`, `policy`. Modules: `fast_path` (plain forms), `commands` (the table of all, the
groups that typer knows, and what several commands take), `context` (the project, and the picture of its
journal), `issue_names` (which issue a name means), `output` (what is printed).
`tools/commands_page.py` makes docs/cli.md and help.txt.
"""

import sys

from ashep.cli import fast_path
from ashep.cli.output import broken_pipe, flush, note
from ashep.errors import AshepError

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended, as a shell tells it."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and give its exit code."""
    sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # it is a TextIOWrapper
    sys.stderr.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # so is it
    try:
        code = _run(arguments)
        return flush() or code
    except BrokenPipeError:
        return broken_pipe()


def _run(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = fast_path.run(given)
        if code is not None:
            return code
        from ashep.cli.commands import app

        app(given, prog_name="ashep")
    except SystemExit as ended:  # it is how typer ends
        if isinstance(ended.__context__, BrokenPipeError):  # typer makes a 1 of it
            raise ended.__context__ from None
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except AshepError as error:
        many: tuple[AshepError, ...] = getattr(error, "errors", ())  # a line for each mistake of a configuration
        for line in [" ".join(str(one).split()) for one in many or (error,)]:
            note(line)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
