"""What a change may touch: flags that policies route by, and those for which a person is asked whatever they say."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

FlagName = Literal[
    "rules", "agent_instructions", "ci", "secrets", "deleted_tests", "migrations", "dependencies", "public_api", "size"
]
"""What a change may touch, the gravest first."""

FLAGS: tuple[FlagName, ...] = get_args(FlagName)

ALWAYS_ASK: tuple[FlagName, ...] = ("rules", "agent_instructions", "ci")
"""What makes an agent's later work trusted or not: a person is asked whatever the policy says."""


def route(flags: Collection[str], when_flags: Mapping[str, str], order: Sequence[str] | None = None) -> str | None:
    """Say where a policy's `when_flags` leads a change that raised these flags; None: nowhere.

    The first flag of `order` that is raised and has a target decides. Without an order those that always ask a person
    go first, then the others as `when_flags` lists them.
    """
    if order is None:
        order = (*ALWAYS_ASK, *when_flags)
    return next((when_flags[flag] for flag in order if flag in flags and flag in when_flags), None)


def must_ask(flags: Collection[str], *, pushed: bool = False) -> tuple[FlagName, ...]:
    """Give the flags among these for which a person is asked whatever a policy says.

    What is `pushed` leaves the machine, where nobody can take a secret back.
    """
    asks: tuple[FlagName, ...] = (*ALWAYS_ASK, "secrets") if pushed else ALWAYS_ASK
    return tuple(flag for flag in asks if flag in flags)
