"""Whether a success is believed: what a phase proves by checks, and whether it did."""

from ashep.core.facts.delivery import has_run
from ashep.core.policy.policies import Phase, Policy
from ashep.core.state.flow import Flow


def claims(phase: Phase) -> tuple[str, ...]:
    """What an agent ends with who says that the work holds: `success`, or the verdicts that `must_pass` names."""
    return tuple(word for word in phase.verdicts if word in phase.must_pass) if phase.verdicts else ("success",)


def is_looked_into(phase: Phase) -> bool:
    """Whether that is not believed before ashep itself has looked."""
    return bool(claims(phase)) and bool(phase.verify or phase.checks or phase.when_flags)


def is_proven(phase: Phase, flow: Flow, said: str | None) -> bool:
    """Whether what the agent of this phase ended with is to be proven: looked into before it is believed."""
    in_own_tree = flow.run is not None and flow.run.branch is not None
    return in_own_tree and is_looked_into(phase) and said in claims(phase)


def is_checked(policy: Policy | None, flow: Flow) -> bool:
    """Whether what lands must be checked: the policy says so, or the issue has checks, or that is not known yet."""
    declared = policy is not None and any(phase.verify or phase.checks for phase in policy.phases)
    return declared or flow.work.criteria is None or bool(flow.work.criteria.hash)


def is_untested(policy: Policy | None, flow: Flow) -> bool:
    """Whether an agent says that it has made something, and no check has run on it.

    A run's work is sealed after a question about it is asked: what its tree holds is not known then.
    """
    evidence = flow.work.evidence
    if policy is None or (evidence is not None and has_run(result.status for result in evidence.results)):
        return False
    makers = [phase.name for phase in policy.phases if phase.human is None and phase.makes]
    return any(report.phase in makers and report.outcome is not None for report in flow.reports)
