"""Stories put together of the forms that people have (docs/facts/bmad.md 6 to 8), and what is to be read in each."""

from dataclasses import dataclass

STATUSES = {
    "plain": "# {title}\n\nStatus: {said}\n",
    "with others": "# {title}\n\n**Epic:** 1 - Login\n**Status:** {said}\n**Priority:** P0\n",
    "bold": "# {title}\n\n**Status:** {said}\n\n---\n",
    "bold around": "# {title}\n\n**Status: {said}**\n",
    "item": "# {title}\n\n- **Status:** {said}\n- **Points:** 3\n",
    "story status": "# {title}\n\n**Story Status:** {said}\n",
    "above a rule": "# {title}\n\nStatus: {said}\n---\n",
    "code": "# {title}\n\nStatus: `{said}`\n",
    "section": "<!-- Powered by BMAD -->\n\n# {title}\n\n## Status\n\n{said}\n",
    "bold in section": "# {title}\n\n## Status\n\n**{said}**\n",
    "heading": "# {title}\n\n## Status: {said}\n\n> **Source:** review\n",
    "front matter": "---\nstatus: {said}\nbaseline_commit: 0abc\n---\n\n# {title}\n",
    "quoted front matter": "---\nstatus: '{said}' # so far\n---\n# {title}\n",
}
"""Where a story says its status; each has one place for it."""

WORDS = {
    "draft": "draft", "drafted": "ready-for-dev", "Ready for Dev": "ready-for-dev", "ready-for-dev": "ready-for-dev",
    "READY FOR DEVELOPMENT": "ready-for-dev", "ready-for-implementation": "ready-for-dev", "contexted": "in-progress",
    "In Progress (60%)": "in-progress", "in_progress": "in-progress", "✅ Done": "done", "Completed 2026-01-02": "done",
    "done — all tests pass; see the record": "done", "review": "review", "Ready for Review": "review",
    "in-review": "review", "Blocked": "blocked", "backlog": "backlog",
    "Done** | **Priority:** P0": "done", "ready-for-dev (was draft), owner Pat": "ready-for-dev",
    "Approved": None, "deferred": None, "archived": None, "deprecated": None, "on-hold": None, "built": None,
    "reviewed": None, "draft → review": None, "done-ish": None, "review (draft → review)": None, "N/A; ask Pat": None,
    "on_hold · Points 3 | Owner Pat": None,
}  # fmt: skip
"""What is said, and the documented word for it; None: there is none, or it is not said which."""

TITLES = ("Story 1.2: Log in", "Story 1-2 - Log in", "Story 1.2 : Log in", "Log in")

CRITERIA = {
    "numbered": "1. **Given** a\n   **When** b\n   **Then** c\n2. two\n   - of it\n   - more\n",
    "named": "1. **AC1:** one\n2. **AC2** — two\n",
    "headings": "### AC-1: one\n\n**Given** a\n- b\n\n### AC-2: two\n- **Given** c\n- **When** d\n",
    "boxes": "- [ ] one\n- [x] two\n",
    "paragraphs": "**Given** a\n**Then** b\n\n**Given** c\n",
}
"""Two criteria each."""

TASKS = "- [x] Task 1 (AC: 1)\n  - [ ] Subtask 1.1\n    ```sh\n    - [ ] code\n    ```\n- [ ] Task 2\n"
"""Three, one of them done."""

REVIEWS = {
    "none": "",
    "template": "## Code Review\n\n<!-- fill in -->\n\n### Outcome\n\n| ID | Severity |\n|----|---|\n\n"
    "### Verification\n\n- [ ] All of it\n",
    "empty": "## Senior Developer Review (AI)\n\n_None yet_\n",
    "senior": "## Senior Developer Review (AI)\n\n**Outcome:** Changes Requested\n\n"
    "### Action Items\n\n- [ ] [High] one\n- [x] two\n",
    "third level": "### Senior Developer Review (AI)\n\n**Outcome:** ✅ **APPROVED** with thanks\n",
    "two": "## Senior Developer Review (AI)\n\n**Outcome:** Blocked\n\n- [ ] [Med] one\n\n"
    "## Senior Developer Review (AI) - Round 2\n\nOutcome: Approve\n",
    "follow-ups": "### Review Follow-ups (AI)\n\n- [x] [AI-Review][High] one\n\n"
    "#### Review Follow-ups (AI) - Round 2\n\n- [ ] [AI-Review][Low] two\n",
    "dated": "### Code Review Follow-ups (AI - 2026-01-02)\n\n- [ ] [AI-Review][Low] one\n",
    "findings": "### Review Findings\n\n- [ ] [Review][Decision] T — D\n"
    "- [ ] [Review][Patch] T [a.py:3]\n- [x] [Review][Defer] T\n",
    "headed": "## Code Review\n\n### Reviewer\n\nAnn\n\n### Outcome\n\nChanges Requested → Fixed\n\n"
    "### Verification\n\n- [x] All\n",
}  # fmt: skip
"""What a review may look like."""

READ_OF = {
    "none": (0, 0, None), "template": (0, 0, None), "empty": (0, 0, None), "senior": (1, 1, "changes requested"),
    "third level": (1, 0, "approve"), "two": (2, 1, "approve"), "follow-ups": (2, 1, None), "dated": (1, 1, None),
    "findings": (1, 2, None), "headed": (1, 0, "changes requested"),
}  # fmt: skip
"""How many reviews there are, how many findings are open, and how the last one ended."""

ENDS = ("\n", "\r\n", "\r")


@dataclass(frozen=True)
class Form:
    """A story in one of the forms."""

    status: str = "plain"
    said: str = "in-progress"
    title: str = TITLES[0]
    criteria: str = "numbered"
    review: str = "none"
    inside: bool = False
    """The review stands among the tasks."""
    end: str = "\n"
    mixed: bool = False
    bom: bool = False
    last: bool = True
    """The last line has an end."""

    @property
    def text(self) -> str:
        review = REVIEWS[self.review]
        return (
            STATUSES[self.status].format(title=self.title, said=self.said)
            + "\n## Story\n\nAs a user\nStatus: of the lights I want to see\n\n"
            + "## Table of Contents\n\n- [ ] [Tasks](#tasks)\n\n"
            + f"## Acceptance Criteria\n\n{CRITERIA[self.criteria]}\n## Tasks / Subtasks\n\n{TASKS}\n"
            + (review if self.inside else "")
            + "## Dev Notes\n\n```yaml\nStatus: done\n```\n\n- [ ] no task\n\n### Status\n\nfine\n\n"
            + ("" if self.inside else review)
        )

    @property
    def data(self) -> bytes:
        lines = self.text.split("\n")
        ends = [ENDS[place % 2] if self.mixed else self.end for place in range(len(lines) - 1)]
        text = "".join(line + end for line, end in zip(lines, ends, strict=False)) + lines[-1]
        text = text if self.last else text.rstrip("\r\n")
        return ("\ufeff" * self.bom + text).encode()
