"""What a class of the user's is made with in a test, as a daemon would make it."""

import os
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue

from ashep.adapters.clock import RealClock
from ashep.ports.guard import Context
from ashep.testing.worlds import ACTOR


def context(project: Path, *, actor: str = ACTOR, **options: JsonValue) -> Context:
    """Give a context in which `options` are the options, and everything that is kept lies below `project`."""
    return Context(
        options=options,
        project=project,
        state=project / ".agent-shepherd" / "state" / "own" / "mine",
        clock=RealClock(),
        actor=actor,
        timeout=timedelta(seconds=30),
        secret=lambda name: os.environ.get(name, ""),
        redact=lambda text: text,
    )
