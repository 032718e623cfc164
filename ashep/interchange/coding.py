"""The table of the preset multi-tier, as data, and the files in which other tools look for it."""

import json

from ashep.interchange.naming import COMPLETE, HUMAN, IDLE, TAKEN
from ashep.interchange.table import Row, Table, schema_of

PRESET = "multi-tier"
"""The preset that means this table; a test runs both."""

CODING = Table(
    rows=(
        Row(IDLE, TAKEN, "PLANNING", "planner"),
        Row("PLANNING", "impl_summary.done", "READY_FOR_IMPLEMENTATION", "implementer"),
        Row("PLANNING", "blocked", "BLOCKED", HUMAN),
        Row("IMPLEMENTING", "impl_summary.done", "READY_FOR_REVIEW", "code-reviewer"),
        Row("IMPLEMENTING", "blocked", "BLOCKED", HUMAN),
        Row("REVIEWING", "review_result.approve", "APPROVED", COMPLETE),
        Row("REVIEWING", "review_result.needs_changes", "NEEDS_FIXES", "implementer"),
        Row("REVIEWING", "blocked", "BLOCKED", HUMAN),
        Row("NEEDS_FIXES", "any", "IMPLEMENTING", "implementer"),
    ),
    initial=IDLE,
    at_dispatch={"READY_FOR_IMPLEMENTATION": "IMPLEMENTING", "READY_FOR_REVIEW": "REVIEWING"},
    policy=PRESET,
    description="planner, implementer, code-reviewer; a person where one of them is blocked",
)

TRANSITIONS = ".opencode/schemas/coding-workflow-transitions.json"
STATE_SCHEMA = ".opencode/schemas/state.schema.json"


def files_of_preset(name: str) -> dict[str, str]:
    """Give what `ashep init --preset` writes beside `.agent-shepherd`, by the path in the project."""
    if name != PRESET:
        return {}
    schema = json.dumps(schema_of(CODING), indent=2, ensure_ascii=False) + "\n"
    return {TRANSITIONS: CODING.as_json(), STATE_SCHEMA: schema}
