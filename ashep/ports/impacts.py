"""The port of diffs: what lies between two commits, from which follows what a change touches (see `ashep.ports.tracker`)."""

from typing import Protocol

import anyio.to_thread

from ashep.core.impact.changes import Diff, Impact, impact_of
from ashep.core.impact.named import NOTHING, Named
from ashep.core.policy.settings import ImpactSettings


class Diffs(Protocol):
    """Reads what lies between two commits; writes nothing, and nothing that a commit holds steers it.

    Errors: `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError` with git's words for everything else.
    """

    async def find(self, revision: str) -> str | None:
        """Give the full id of the commit that a revision names; None where it names none."""
        ...

    async def read(self, base: str, head: str) -> Diff:
        """Read what `head` changes since it and `base` last were one: what landing `head` on `base` would bring.

        For what really lands, give the commit that was integrated and the base that it was integrated onto. Files
        beyond the bounds of a call, and those that are no text, are named without their lines.
        """
        ...


async def assess(diffs: Diffs, base: str, head: str, settings: ImpactSettings, named: Named = NOTHING) -> Impact:
    """Say what `head` touches since it and `base` last were one. `named`: by the configuration.

    Errors: those of `Diffs`.
    """
    diff = await diffs.read(base, head)
    return await anyio.to_thread.run_sync(impact_of, diff, settings, named)
