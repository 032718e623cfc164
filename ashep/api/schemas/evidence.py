"""Evidence about an issue's work in full, as the page and programs are shown it."""

from ashep.api.schemas.verification import Answer, LastCheck


class Check(LastCheck):
    """What a check found."""

    proves_nothing: bool
    """It passed before any work, too."""
    cause: str
    """Why it likely failed, where the machine is to blame: network, program, submodule, memory, time, setup."""
    on_base: bool
    """It failed before any work, too, so that no work is to blame."""


class Result(Check):
    """What a check found, and where that lies."""

    output: str
    """The blob of what it printed; empty: it printed nothing."""


class Verification(Answer):
    """The evidence about an issue's work."""

    status: str
    commit: str | None
    tree: str | None
    changed: bool | None
    isolated: bool | None
    """Whether the programs of checks ran in a sandbox; null: none ran."""
    checks: list[Check]
    log: str | None
    waived: list[str]


class Files(Answer):
    """The files that a change touches."""

    created: list[str]
    modified: list[str]
    deleted: list[str]
    more: int
    """How many are not named."""
    lines: list[int] | None
    """Added and removed; null: nobody counted."""
