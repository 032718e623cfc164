"""Sources of issues, made as config.yaml says."""

from pathlib import Path

from ashep.core.policy.settings import Settings
from ashep.daemon.effects.sources import SourceAdapters
from ashep.factories import annotations_of
from ashep.redaction import Redaction


async def make_sources(project: Path, settings: Settings, *, actor: str, redaction: Redaction) -> SourceAdapters:
    """Make what reaches the sources, and writes their issues. Raises `AshepError`."""
    from ashep.adapters.sources import source_of  # few have one, and nobody else need import it

    sources = [await source_of(project, source, redaction) for source in settings.sources.all]
    return SourceAdapters({source.name: source for source in sources}, annotations_of(project, settings, actor))
