"""What an audit finds: something that stands in nobody's account."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be so."""

    code: str
    """Stable, for programs; `ashep.core.analysis.audit.REMEDIES` has them all."""
    issue: str | None
    what: str
    """A sentence for people."""
