"""What Agent Shepherd itself found about an issue's work, as prompts tell it."""

from dataclasses import dataclass

from ashep.core.facts.delivery import CheckResult
from ashep.core.state.delivery import Evidence, Flaw
from ashep.core.state.flow import Flow


@dataclass(frozen=True, slots=True)
class Found:
    """What checks, and the attempt to land, came to."""

    flaw: Flaw | None = None
    """What whoever writes next is to mend."""
    log: str = ""
    """The whole of it: the failed checks with what they printed, or the conflict."""
    evidence: Evidence | None = None
    """What checks found in exactly the tree that the run looks at."""


def evidence_of(flow: Flow) -> Evidence | None:
    """Give the evidence that holds for the issue's tree as it stands; None: none does."""
    own, evidence = flow.work.own, flow.work.evidence
    return evidence if own is not None and evidence is not None and evidence.commit == own.head else None


def lines_of(evidence: Evidence | None) -> list[str]:
    """Say what each check found, a line for each."""
    if evidence is None:
        return []
    unchanged = [] if evidence.changed else ["the work changes nothing: its tree is that of its base"]
    return [*unchanged, *map(_line, evidence.results)]


def _line(result: CheckResult) -> str:
    nothing = " (it did so before any work, too, and proves nothing about it)" if result.proves_nothing else ""
    return f"{result.check_id}: {result.status}{nothing}: {result.message}"
