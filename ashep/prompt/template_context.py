"""Brief of a prompt: what goes into it, and the variables that templates see of it (docs/prompts.md lists them)."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ashep.core.delivery.stories import story_of
from ashep.core.facts.delivery import CheckResult
from ashep.core.facts.tracker import Comment
from ashep.core.policy.policies import Phase
from ashep.core.runs.turns import VERDICTS
from ashep.core.state.delivery import Evidence, Flaw
from ashep.core.state.flow import Flow
from ashep.core.state.run import Report
from ashep.core.state.world import World
from ashep.ports.tracker import Dependency, IssueText
from ashep.ports.workspaces import Changes
from ashep.prompt.fences import Foreign, tidy

Kind = Literal["task", "recover", "extract", "resume", "diagnose", "continue"]
_T = TypeVar("_T")

ROLES = ("plan", "implement", "review", "arbitrate", "test", "debug", "doc", "analyze", "extract")
"""The roles for which there are words of their own."""

TRAILER = "Ashep-Run"
"""The trailer by which a commit names its run."""

_SAME_ROLE = {"code": "implement", "browsertest": "test"}
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RELATIONS = {
    "blocks": "is blocked by",
    "parent-child": "is a child of",
    "related": "is related to",
    "discovered-from": "was discovered while working on",
}
_MOST_REPORTS = 12
_MOST_LINES = 200
_MOST_COMMENT_TEXT = 64_000
_MOST_REPORT_TEXT = 48_000


@dataclass(frozen=True, slots=True)
class WorkFindings:
    """What Agent Shepherd itself found about an issue's work: what checks, and the attempt to land, came to."""

    flaw: Flaw | None = None
    """What whoever writes next is to mend."""
    log: str = ""
    """The whole of it: the failed checks with what they printed, or the conflict."""
    evidence: Evidence | None = None
    """What checks found in exactly the tree that the run looks at."""
    on_base: tuple[CheckResult, ...] = ()
    """The checks that fail on the base, too, before any work."""


@dataclass(frozen=True, slots=True)
class StoryBrief:
    """The story that an issue is (docs/guides/stories.md)."""

    path: str
    """Its file, from the project's folder."""
    iterations: int
    """How often at most it is worked on."""
    contexts: tuple[str, ...] = ()
    """What the arbiter reads next to it."""
    own_workflows: bool = True
    """Whether a workflow of the project's own is followed: not one that the work itself has changed."""


WORKFLOWS = {"implement": ("bmad-build", "dev-story"), "review": ("bmad-code-review", "code-review")}
"""BMAD's workflow of a role, as it is called today, and as it was (facts/bmad.md 4)."""


def evidence_of(flow: Flow) -> Evidence | None:
    """Give the evidence that holds for the issue's tree as it stands; None: none does."""
    own, evidence = flow.work.own, flow.work.evidence
    return evidence if own is not None and evidence is not None and evidence.commit == own.head else None


def story_brief(world: World, flow: Flow) -> StoryBrief | None:
    """Give what a prompt tells of an issue's story; None: it is none."""
    path, policy = story_of(flow.issue, world.settings.labels), world.policy(flow)
    if not path or policy is None:
        return None
    makers = (phase.max_visits for phase in policy.phases if phase.human is None and phase.makes)
    files, is_unchanged = flow.work.own.files if flow.work.own is not None else None, True
    if files is not None:
        paths = (*files.created, *files.modified, *files.deleted)
        folders = {folder for path in paths for folder in path.split("/")[:-1]}
        is_unchanged = not files.more and folders.isdisjoint({"_bmad", "bmad", ".claude", ".opencode"})
    return StoryBrief(path, next(makers, 1), world.settings.bmad.contexts, is_unchanged)


@dataclass(frozen=True, slots=True)
class Brief:
    """Everything that goes into one prompt."""

    run: str
    kind: Kind
    issue: str
    phase: Phase
    policy: str
    visit: int
    attempt: int
    agent: str
    text: IssueText
    secret: str
    """Of the state folder; the fences' tokens derive from it and the run id."""
    reports: tuple[Report, ...] = ()
    """What earlier runs left, oldest first."""
    comments: tuple[Comment, ...] = ()
    """The ones that no prompt has shown, oldest first."""
    changes: Changes = field(default_factory=Changes)
    writes: bool = False
    """Whether the run may change the work tree; it is then asked for commits with the trailer."""
    branch: str = ""
    """The branch whose own work tree the run is in; empty in the shared one."""
    alone: bool = False
    """Whether it is alone in a place, where there is no tracker, and no `ashep` but for what it `asks`."""
    asks: bool = False
    """Whether it is answered there who asks with `ashep verify`."""
    slot: int = 0
    """The number of that tree, for what the machine has once."""
    found: WorkFindings = field(default_factory=WorkFindings)
    """What Agent Shepherd itself found about the work."""
    story: StoryBrief | None = None
    """Its roles tell each other by the story's file, and are not shown what others reported."""
    wrong: str | None = None
    """What was wrong with the outcome (recover, extract), or how the turn ended or stalled (continue, diagnose)."""
    transcript: str | None = None
    """The end of the session's text (for extract and diagnose)."""

    @property
    def judges(self) -> bool:
        """Whether this phase judges other agents' work, and so is not told what those said about it."""
        reviews = not {"review", "arbitrate"}.isdisjoint(self.phase.needs)
        return reviews or (bool(self.phase.verdicts) and not self.writes)

    @property
    def role(self) -> str:
        """The first of the phase's capabilities that has words of its own, else `other`."""
        known = (_SAME_ROLE.get(capability, capability) for capability in self.phase.needs)
        return next((role for role in known if role in ROLES), "other")


def view(brief: Brief) -> dict[str, object]:
    """Give the variables of templates."""
    text, phase = brief.text, brief.phase
    if brief.kind == "diagnose":  # it has verdicts of its own
        phase = phase.model_copy(update={"verdicts": VERDICTS, "allow_suggested": ()})
    story, role = brief.story, brief.role
    command = f"`bd show {brief.issue}`" if _PLAIN_ID.fullmatch(brief.issue) else "`bd show`"
    rest = f"where you have a shell, {command} prints all of it"
    reports, left_out = _reports(brief)
    comments, older = _comments(brief, rest)
    example: dict[str, object] = {"result": "success"}
    if phase.verdicts:
        example["verdict"] = phase.verdicts[0]
    example["summary"] = "What was done or found, for the next agent and for people."
    example["pointers"] = ["src/parser.py:42"]
    return {
        "run": _word(brief.run),
        "kind": brief.kind,
        "issue": _word(brief.issue),
        "phase": _word(brief.phase.name),
        "policy": _word(brief.policy),
        "visit": brief.visit,
        "attempt": brief.attempt,
        "agent": _word(brief.agent),
        "role": role,
        "judges": brief.judges,
        "writes": brief.writes,
        "makes": brief.writes and brief.phase.makes,
        "branch": _word(brief.branch),
        "alone": brief.alone,
        "asks": brief.asks,
        "slot": brief.slot,
        "capabilities": [_word(capability) for capability in brief.phase.needs],
        "story": _word(story.path) if story is not None else "",
        "iterations": story.iterations if story is not None else 0,
        "contexts": [_word(path) for path in story.contexts] if story is not None else [],
        "workflow": list(WORKFLOWS.get(role, ())) if story is not None and story.own_workflows else [],
        "verdicts": [_word(verdict) for verdict in phase.verdicts],
        "suggestions": [_word(name) for name in phase.allow_suggested],
        "title": Foreign(_line(text.title, 1_000), 1_000),
        "description": Foreign(text.description, 48_000, rest=rest),
        "design": Foreign(text.design, 16_000, rest=rest),
        "acceptance": Foreign(text.acceptance, 16_000, rest=rest),
        "notes": Foreign(text.notes, 16_000, tail=True, rest=rest),
        "dependencies": _lines(text.dependencies, _dependency, rest),
        "invisible": text.invisible,
        "reports": reports,
        "reports_left_out": left_out,
        "commits": _lines(brief.changes.commits, lambda commit: f"{commit.sha} {commit.subject}"),
        "stat": Foreign(brief.changes.stat, 16_000),
        "left_over": _lines(brief.changes.left_over, str),
        "diff": Foreign(brief.changes.diff if brief.judges else "", 64_000, rest="read the files that are named"),
        **_view_findings(brief.found),
        "comments": comments,
        "comments_left_out": older,
        "wrong": Foreign(brief.wrong or "", 2_000),
        "transcript": Foreign(brief.transcript or "", 48_000, tail=True),
        "trailer": f"{TRAILER}: {_word(brief.run)}",
        "example": json.dumps(example, indent=2, ensure_ascii=False),
    }


def _view_findings(findings: WorkFindings) -> dict[str, object]:
    flaw, evidence = findings.flaw, findings.evidence
    checks = [] if evidence is None else [*map(_check, evidence.results)]
    if evidence is not None and not evidence.changed:
        checks.insert(0, "the work changes nothing: its tree is that of its base")
    return {
        "flaw": flaw.kind if flaw else "",
        "flaw_why": Foreign(_line(flaw.why if flaw else "", 2_000), 2_000),
        "flaw_log": Foreign(findings.log if flaw else "", 24_000),
        "onto": _word(flaw.onto if flaw else ""),
        "evidence": _lines(checks, str),
        "on_base": _lines(findings.on_base, _check),
        "evidence_tree": _word(evidence.tree if evidence else ""),
    }


def _check(result: CheckResult) -> str:
    nothing = " (it did so before any work, too, and proves nothing about it)" if result.proves_nothing else ""
    nothing = f" (it {result.blame}; no work is to blame)" if result.on_base else nothing
    return f"{result.check_id}: {result.status}{nothing}: {result.message}"


def _word(text: str) -> str:
    """Keep a name to one line and a bounded length."""
    return _line(text, 200)


def _line(text: str, limit: int) -> str:
    """Keep a text to one line; of a very long one only the beginning is looked at."""
    return " ".join(tidy(text[: 4 * limit]).split())[:limit]


def _lines(items: Sequence[_T], write: Callable[[_T], str], rest: str = "") -> Foreign:
    """Make a list of one-liners: the first ones, and how many more there are."""
    shown = [_line(write(item), 500) for item in items[:_MOST_LINES]]
    more = [f"… and {len(items) - _MOST_LINES} more"] if len(items) > _MOST_LINES else []
    return Foreign("\n".join(shown + more), 32_000, rest=rest)


def _dependency(dependency: Dependency) -> str:
    relation = _RELATIONS.get(dependency.type, "depends on")
    status = f" [{dependency.status}]" if dependency.status else ""
    title = f": {dependency.title}" if dependency.title else ""
    return f"{relation} ({dependency.type}) {dependency.on}{status}{title}"


def _reports(brief: Brief) -> tuple[list[dict[str, object]], int]:
    """Show the newest reports, oldest first, and how many were left out.

    Whoever judges work learns of it: that there were runs, their verdicts and pointers. What was said stays with those
    who gave a verdict, so that nobody is talked into an approval by the one who wants it.
    """
    shown: list[dict[str, object]] = []
    left = _MOST_REPORT_TEXT
    if brief.story is not None:
        return [], 0
    for report in reversed(brief.reports[-_MOST_REPORTS:]):
        outcome = report.outcome
        verdict = outcome.verdict if outcome else None
        told = not brief.judges or verdict is not None or report.phase == brief.phase.name
        said = outcome.summary if outcome else "\n".join(filter(None, (report.why, report.error)))
        summary = Foreign(said if told else "", 8_000)
        pointers = _lines(outcome.pointers[:50] if outcome else (), lambda line: line[:300])
        left -= min(len(summary.text), summary.limit) + min(len(pointers.text), pointers.limit)
        if left < 0:
            break
        shown.append(
            {
                "run": _word(report.run),
                "phase": _word(report.phase),
                "agent": _word(report.agent),
                "state": _word(report.state),
                "result": outcome.result if outcome else "",
                "verdict": _word(verdict or ""),
                "summary": summary,
                "pointers": pointers,
                "denied": [_word(tool) for tool in report.denied],
            }
        )
    return shown[::-1], len(brief.reports) - len(shown)


def _comments(brief: Brief, rest: str) -> tuple[list[Foreign], int]:
    """Show the newest comments, oldest first, and how many were left out."""
    shown: list[Foreign] = []
    left = _MOST_COMMENT_TEXT
    for comment in reversed(brief.comments):
        # The author stands inside of the fence: a name is foreign, too.
        head = f"{_word(comment.author)}, {comment.at.isoformat(' ', 'minutes')}:"
        made = Foreign(f"{head}\n{comment.text}", 8_000, rest=rest)
        left -= min(len(made.text), made.limit)
        if left < 0 or len(shown) == _MOST_LINES:
            break
        shown.append(made)
    return shown[::-1], len(brief.comments) - len(shown)
