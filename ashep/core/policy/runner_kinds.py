"""The kinds of runners that are built in, by name, and how people say a runner's."""

OPENCODE, CLAUDE, ACP = "opencode", "claude", "acp"
"""The first is a runner by this name alone."""

KINDS = (CLAUDE, ACP)
"""Of the others there may be several, under names of the user's."""

SANDBOXED = (OPENCODE, CLAUDE, ACP)
"""Those whose agents are kept apart in a sandbox."""


def spoken(runner: str) -> str:
    """Name a runner as people say it."""
    return "the agent server" if runner == OPENCODE else f"the runner {runner}"
