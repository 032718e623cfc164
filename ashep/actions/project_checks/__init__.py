"""The test command of a project that nobody has written down yet, and how its dependencies come: found, and tried.

Never: a setting that is written, or a question to a person.
"""

from ashep.actions.project_checks.table import CheckProposal, DependencyInstall, find_checks
from ashep.actions.project_checks.trials import CheckTrial, TrialAttempt, find_base_checks, try_check

__all__ = [
    "CheckProposal",
    "CheckTrial",
    "DependencyInstall",
    "TrialAttempt",
    "find_base_checks",
    "find_checks",
    "try_check",
]
