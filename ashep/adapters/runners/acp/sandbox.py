"""How the agent of a session that is kept apart is started: by its keeper, which is not, so that it ends with that."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from ashep.adapters.runners.acp.capabilities import CapabilityMissing
from ashep.adapters.runners.acp.mailbox import KEPT, Mailbox
from ashep.adapters.sandboxes import registered_processes
from ashep.adapters.sandboxes.bubblewrap import Bubblewrap, View
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.system import process_table

Wrap = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Gives the command line of a program in its sandbox, with the file of what the kernel refuses there. It blocks."""

_FILE = "sandbox.json"
_VIEW = TypeAdapter(View)


def note(mailbox: Mailbox, things: Path, profile: SandboxProfile) -> None:
    """Write down how the agent is started, and that it works where it does. Blocks."""
    assert profile.sandbox is not None
    # who judges is told of its ground, and starts elsewhere: `npx` would take a candidate's program for the agent
    directory = Path("/tmp") if things.is_relative_to(mailbox.path) else profile.view.at
    program, view = profile.sandbox, _VIEW.dump_python(replace(profile.view, at=directory, lasting=False), mode="json")
    mailbox.write(_FILE, {"program": str(program.program), "disables": program.disables, "view": view})
    registered_processes.note(things, process_table.ProcessMark(KEPT, str(mailbox.path)), None)


def wrapped(mailbox: Mailbox) -> Wrap | None:
    """Give what wraps the agent's command line; None: it runs as we do. Blocks. Raises Unfit."""
    if mailbox.things() is None:
        return None
    if (content := mailbox.read(_FILE)) is None:
        raise CapabilityMissing(f"SandboxLost: there is no {_FILE}")
    sandbox = Bubblewrap(Path(content["program"]), disables=content["disables"])
    return partial(sandbox.wrap, _VIEW.validate_python(content["view"]))
