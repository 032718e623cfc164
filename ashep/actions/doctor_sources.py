"""What `ashep install` says of sources of issues: whose answers count there, and what must not run next to them."""

import re
from contextlib import suppress
from pathlib import Path

from ashep.actions.doctor_security import CheckLine
from ashep.core.policy.settings import Settings
from ashep.factories import sandboxed

_SYNC = re.compile(r"^\s*[\"']?github[.:\"']", re.MULTILINE)


def issue_sources(project: Path, settings: Settings) -> list[CheckLine]:
    """Look at the sources of a project; nothing where it has none."""
    if not settings.sources.all:
        return []
    lines = [CheckLine("ok", "sources", "issues come from GitHub: only who may write to the repository is heard there")]
    if not sandboxed(settings):
        text = "agents run in no sandbox: at GitHub no approval counts by the account whose token ashep has"
        lines = [CheckLine("warning", "sources", text, "use a sandbox, or give ashep an account of its own")]
    with suppress(OSError):
        config = (project / ".beads" / "config.yaml").read_text(encoding="utf-8", errors="replace")
        if _SYNC.search(config):
            text = "bd is set up for `bd github sync`, which undoes what ashep writes (docs/guides/github.md)"
            lines.append(CheckLine("warning", "sources", text, "do not run it on this database"))
    return lines
