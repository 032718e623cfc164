"""What the shepherd asks of the world, each with its contract: a tracker, a runner, trees, landing, a verifier, people.

Here live protocols and the values that they give and take, and what holds users' classes against them (`user_classes`).
Never: a rule, or anything that touches the world. The names below are those that docs/extending.md publishes.
"""

from ashep.ports.runner import MOST_TEXT, Catalog, Prompt, Runner, SessionRequest, Sign, Turn
from ashep.ports.tracker import (
    ClaimRequest,
    Creation,
    Dependency,
    IssueText,
    Look,
    Seen,
    Tracker,
    TrackerInfo,
    Update,
)  # fmt: skip

__all__ = [
    "MOST_TEXT", "Catalog", "ClaimRequest", "Creation", "Dependency", "IssueText", "Look", "Prompt", "Runner", "Seen",
    "SessionRequest", "Sign", "Tracker", "TrackerInfo", "Turn", "Update",
]  # fmt: skip
