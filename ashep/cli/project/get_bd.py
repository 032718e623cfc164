"""The command that gets bd."""

import anyio

from ashep.actions.get_bd import get_bd as get
from ashep.cli import output
from ashep.cli.commands import app, example


@app.command(name="get-bd", epilog=example("ashep get-bd"))
def get_bd() -> None:
    """Get Beads' program bd where there is none that is new enough: built from its pinned Go module, with Go and gcc.

    It takes about 10 minutes, once for each user. Ctrl-C ends it; the next call goes on with what was compiled.
    """
    output.say(f"bd: {anyio.run(get, output.note)}")
