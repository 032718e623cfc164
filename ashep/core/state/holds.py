"""Why an issue does not start."""

from dataclasses import dataclass
from typing import NamedTuple


class Hold(NamedTuple):
    """Why an issue does not start."""

    code: str
    """Stable (docs/codes.md)."""
    why: str
    of: str = ""
    """What stands in the way, where a hold of this code may be of several: a pause's key, a provider, whose cap."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was ready before anything was worked on."""

    settled: bool = False
    """How much of it is worked on is decided."""
    issues: frozenset[str] = frozenset()
    """Those of it that are held."""


PAUSED = ("paused_by_hand", "quiet_hours")
"""The codes of holds that a pause is the reason for."""

FREED_BY = {
    "no_agent": "give an agent what it lacks in agents.yaml, or see to the server that should list it",
    "no_base": "check a branch out, or set `landing.base`",
    "no_repository": "make a first commit, or set `worker.workspace: shared`",
    "base_fails": "mend the base, or set `on_base_failure`",
    "tree_dirty": "commit or stash them, or set `worker.allow_dirty`",
    "landing_dirty": "commit it, or move it away",
    "runner_unauthorized": "log in there, or give the right password",
    "runner_misconfigured": "mend that file",
    "provider_unauthorized": "log in there, then `ashep resume`",
    "budget_total": "raise `budgets.total`",
}
"""Holds that only a person ends, by putting machine, repository or settings right: what there is to do."""

AWAY = (
    "runner_away", "tracker_away", "tree_unseen", "repository", "base_behind", "disk_low", "provider_limited",
    "provider_down", "landing_away",
)  # fmt: skip
"""Holds that end by themselves once something answers again or has room, and which a person may have to see to."""

WAITS_FOR_PEOPLE = ("not_asked", "paused", *FREED_BY, *AWAY)
"""Holds of a wanted phase that only somebody outside can end."""

NO_BUDGET = ("budget", "budget_provider", "budget_total", "runs_per_hour")
"""Holds for want of budget: that is no working time of a cycle, and nothing that could start by itself soon."""

NO_RUNNER = ("runner_away", "runner_unauthorized", "runner_misconfigured", "recycling")
"""Holds because the agent server is not there: no working time of a cycle either."""

NO_PROVIDER = ("provider_limited", "provider_down", "provider_unauthorized")
"""Holds because a provider takes nothing: as those for want of budget."""

CAPS = ("cap_phase", "cap_runner", "cap_agent", "cap_provider")
"""Holds because as many runs are under way as may be at one time of a phase, a runner, an agent or a provider."""

WITHHELD = (*PAUSED, *NO_BUDGET, *NO_PROVIDER, *NO_RUNNER, "machine_busy")
"""Holds of a wanted phase that are nobody's fault: no working time of a cycle."""
