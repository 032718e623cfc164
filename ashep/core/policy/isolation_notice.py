"""What is said where config.yaml does not say where agents run. It imports nothing, since who only reads asks, too."""

import re

NO_SANDBOX = "agents run as you and reach all that you can"
REMEDY = "`agents: {sandbox: auto}` with `worker: {workspace: place}` in config.yaml puts them into a sandbox"
AS_YOU = f"{NO_SANDBOX}: {REMEDY}"

_SAID = re.compile(r"^[\"']?agents[\"']?\s*:", re.MULTILINE)
_NO_PLACE = re.compile(
    r"^[^#\n]*\b(?:workspace[\"']?\s*:\s*[\"']?(?:shared|worktree)|lock_work_tree\b|url\b)", re.MULTILINE
)


def unsaid(config: str, workspace: str | None) -> str:
    """Give the line for a config.yaml that has no key `agents`, where there is no sandbox by default; else nothing.

    `workspace`: where the daemon has issues worked on; None: it is not known.
    """
    alone = workspace not in ("shared", "impossible") and not _NO_PLACE.search(config)
    return "" if alone or _SAID.search(config) else AS_YOU
