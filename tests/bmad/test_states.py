"""The state that follows from a file: every row of the table (docs/facts/bmad.md 16), and what is in none of them."""

from pathlib import Path

import pytest

from ashep.actions.story_catalog import look
from ashep.bmad.story import read

BODY = "# Story 1.2: T\n\nStatus: {status}\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [x] a\n{review}"
RESOLVED = "\n### Review Follow-ups (AI)\n\n- [x] [High] one\n"
OPEN = "\n### Review Follow-ups (AI)\n\n- [ ] [High] one\n"

ROWS = [
    ("ready-for-dev", "", "idle", ""),
    ("in-progress", "", "developing", ""),
    ("review", "", "ready-for-review", ""),
    ("in-progress", OPEN, "fixing", ""),
    ("in-progress", RESOLVED, "fixing", ""),
    ("done", RESOLVED, "complete", ""),
    ("done", "", "complete", ""),
]
"""The table's rows."""

NO_ROWS = [
    ("done", OPEN, "unknown", "it is done, and of its findings 1 are open"),
    ("ready-for-dev", OPEN, "unknown", "it was not begun, and has a review"),
    ("review", RESOLVED, "unknown", "it waits for a review, and has one: of which work is not said"),
    ("draft", "", "unknown", "no state follows from draft"),
    ("backlog", "", "unknown", "no state follows from backlog"),
    ("blocked", OPEN, "unknown", "no state follows from blocked"),
    ("Approved", "", "unknown", "Approved is no status that is known"),
    ("deferred", "", "unknown", "deferred is no status that is known"),
    ("archived", RESOLVED, "unknown", "archived is no status that is known"),
    ("deprecated", "", "unknown", "deprecated is no status that is known"),
]


@pytest.mark.parametrize(("status", "review", "state", "why"), [*ROWS, *NO_ROWS])
def test_the_state_follows_from_the_file(status: str, review: str, state: str, why: str) -> None:
    story = read("1-2-t.md", BODY.format(status=status, review=review).encode())
    assert (story.state, story.why) == (state, why)


@pytest.mark.parametrize("said", ["backlog", "ready-for-dev", "in-progress", "review", "done", "on-hold"])
@pytest.mark.parametrize(("status", "review", "state", "why"), ROWS)
def test_a_row_that_disagrees_with_the_sprint_status_is_told(
    tmp_path: Path, status: str, review: str, state: str, why: str, said: str
) -> None:
    (tmp_path / "1-2-t.md").write_text(BODY.format(status=status, review=review))
    (tmp_path / "sprint-status.yaml").write_text(f"development_status:\n  1-2-t: {said}\n")
    seen = look(tmp_path, [tmp_path])
    told = [one.said for one in seen.found[0].problems]
    assert told == ([] if said == status else [f"it says {status}, and the sprint status {said} (line 2)"])
    assert seen.disagrees is (said != status)
    assert seen.found[0].story is not None
    assert seen.found[0].story.state == state, "what the sprint status says changes no state"
