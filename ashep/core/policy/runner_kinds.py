"""The kinds of runners that are built in: what decisions and settings depend on of each, by name.

What is done with a kind outside the core is in `ashep.factories` (made) and `ashep.actions.runners` (all else).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OPENCODE, CLAUDE, ACP = "opencode", "claude", "acp"

Guarantee = Literal["once", "at least once"]


@dataclass(frozen=True, slots=True)
class KindRules:
    """What a kind of runner is like."""

    guarantee: Guarantee | None = None
    """How often a turn may run that dies with its agent; None: its agent, or its class, says so."""
    apart: bool = False
    """Each session has a process of its own: another one proves that a turn is dead; people have another."""
    sandboxed: bool = True
    """Its agents can be put into a sandbox."""
    command: tuple[str, ...] = ()
    """The program that it starts where the settings name none; empty: they must, or there is none."""
    ignores: frozenset[str] = frozenset()
    """Keys of its settings that have no effect."""
    needs: str = ""
    """What is missing where they name no `command`; empty: nothing is."""
    instructed: bool = True
    """Its agents go by the files of their kind; false: the `command` says which those are."""


KINDS: Mapping[str, KindRules] = {
    OPENCODE: KindRules("once"),
    CLAUDE: KindRules("once", apart=True, command=(CLAUDE,), ignores=frozenset({"modes", "options", "instructions"})),
    ACP: KindRules(
        apart=True,
        ignores=frozenset({"options"}),
        needs="an agent that speaks ACP takes a `command`, as `[opencode, acp]`",
        instructed=False,
    ),
}
"""The first is a runner by this name alone; of the others there may be several, under names of the user's."""
DECLARED_KINDS = tuple(name for name in KINDS if name != OPENCODE)

OWN = KindRules(sandboxed=False, ignores=frozenset({"command", "environment", "modes", "instructions"}))
"""A class of the user's."""


def rules_of(kind: str) -> KindRules:
    """Return what a kind is like, which may be a class of the user's."""
    return KINDS.get(kind, OWN)


def spoken(runner: str) -> str:
    """Name a runner as people say it."""
    return "the agent server" if runner == OPENCODE else f"the runner {runner}"
