"""Sources of issues: made as config.yaml says, and what `ashep install` says of them."""

import re
from contextlib import suppress
from pathlib import Path

from ashep.actions.doctor_security import CheckLine
from ashep.core.policy.settings import Settings
from ashep.daemon.effects.sources import SourceAdapters
from ashep.factories import annotations_of, sandboxed
from ashep.redaction import Redaction

_SYNC = re.compile(r"^\s*[\"']?github[.:\"']", re.MULTILINE)


async def make_sources(project: Path, settings: Settings, *, actor: str, redaction: Redaction) -> SourceAdapters:
    """Make what reaches the sources, and writes their issues. Raises `AshepError`."""
    from ashep.adapters.sources import source_of  # few have one, and nobody else need import it

    sources = [await source_of(project, source, redaction) for source in settings.sources.all]
    return SourceAdapters({source.name: source for source in sources}, annotations_of(project, settings, actor))


def check_sources(project: Path, settings: Settings) -> list[CheckLine]:
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
