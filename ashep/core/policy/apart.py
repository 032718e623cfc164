"""What is said where config.yaml does not say where agents run. It imports nothing, since who only reads asks, too."""

import re

AS_YOU = (
    "agents run as you and reach all that you can: `agents: {sandbox: auto}` with `worker: {workspace: place}` in "
    "config.yaml puts them into a sandbox"
)

_SAID = re.compile(r"^[\"']?agents[\"']?\s*:", re.MULTILINE)


def unsaid(config: str) -> str:
    """Give the line for a config.yaml that has no key `agents`; empty: it has."""
    return "" if _SAID.search(config) else AS_YOU
