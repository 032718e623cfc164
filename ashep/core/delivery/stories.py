"""Stories of the BMAD method: what a phase may change of the files, and what ashep itself writes into a story.

The story's file is what roles tell each other by; what it says of its own status binds nobody. A policy's phases say
what follows from their verdicts (`ashep.core.policy.policies.Phase.story`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ashep.core.facts.delivery import Amendment, TreeSealed
from ashep.core.facts.issues import CommentWanted, CreationWanted
from ashep.core.facts.tracker import NewIssue
from ashep.core.issues.routing import ask, created_id, park
from ashep.core.policy.globs import Globs
from ashep.core.policy.policies import STORY
from ashep.core.state.world import World, phase_of
from ashep.core.text import clean, list_names

if TYPE_CHECKING:
    from ashep.core.facts.tracker import Issue
    from ashep.core.facts.vocabulary import Fact
    from ashep.core.policy.settings import Labels
    from ashep.core.state.flow import Flow
    from ashep.core.state.run import Run

MOST_NAMED = 10

LONGEST_PATH = 200

_PATH = re.compile(r"\w[\w .@+()/-]*\.md")

MOST_POINTS = 40
"""Lines of what remains to be done that go into a story."""


def story_of(issue: Issue, labels: Labels) -> str:
    """Give the file of an issue's story, from the project's folder; empty: it has none."""
    prefix = labels.story_prefix
    named = (label.removeprefix(prefix) for label in issue.labels if label.startswith(prefix))
    return min((name for name in named if can_be_named(name)), default="")


def can_be_named(path: str) -> bool:
    """Whether a file can be a story's: its name stands in a label, and in prompts."""
    return _PATH.fullmatch(path) is not None and ".." not in path.split("/") and len(path) <= LONGEST_PATH


def amendment(world: World, flow: Flow, run: Run) -> Amendment | None:
    """Say what is to be done to what a run left; None: nothing."""
    phase, own, story = phase_of(world, flow), flow.work.own, story_of(flow.issue, world.settings.labels)
    if phase is None or own is None or not (story or phase.may_change is not None):
        return None
    report = next((past for past in reversed(flow.reports) if past.run == run.id), None)
    outcome = report.outcome if report is not None else None
    status = phase.story.get(outcome.result_word or "", "") if outcome is not None and story else ""
    back = outcome.summary if outcome is not None and status == "in-progress" else ""
    remains = "\n".join(back.splitlines()[:MOST_POINTS])
    since = run.before.head if run.before is not None and run.before.head else own.head
    person = bool(run.people) or run.tree_wanted == "again" or flow.takeover is not None
    may = None if person else phase.may_change  # what a person changed in its session stays
    base = world.settings.landing.base or own.onto or ""
    return Amendment(since, own.fits, base, may, story, status, remains, person)


def beyond_leave(wanted: Amendment, paths: Iterable[str], prefix: str = "") -> list[str]:
    """Give the files among these that a run may not change. `prefix`: the project's place in the repository."""
    if wanted.may is None:
        return []
    may, story = Globs((glob for glob in wanted.may if glob != STORY), exact=True), prefix + wanted.story
    own = {story} if wanted.story and STORY in wanted.may else frozenset[str]()
    return [path for path in paths if path not in own and not may.has(path)]


def put_back(paths: Iterable[str]) -> str:
    """Say that files were put back."""
    return f"it changed what it may not, which was put back: {_join_names(paths)}"


def not_taken(path: str, wishes: Iterable[str]) -> str:
    """Say that an edit of a sprint status was put back."""
    return f"ashep alone writes {clean(path)}; not taken is {_join_names(wishes)}"


def mended(story: str) -> str:
    """Say that the criteria of a story were put back."""
    return f"what {story} is to fulfil is not for it to say: its acceptance criteria were put back"


def _join_names(names: Iterable[str]) -> str:
    return list_names(sorted(clean(name)[:200] for name in names), MOST_NAMED)


def amends(world: World, flow: Flow, run: Run) -> bool:
    """Whether something is to be written when a run is over that only reads."""
    phase = phase_of(world, flow) if run.access == "read" else None
    return phase is not None and bool(phase.story) and bool(story_of(flow.issue, world.settings.labels))


def sealed(world: World, flow: Flow, fact: TreeSealed) -> list[Fact]:
    """Tell what was put back, and see to a story that could not be written, or whose work has stopped."""
    text = "\n".join((f"{fact.run} is over, and:", *(f"- {reason}" for reason in fact.refused)))
    facts: list[Fact] = [CommentWanted(fact.issue, f"refused.{world.seq}", text)] if fact.refused else []
    left, run = fact.story, flow.run
    if left is None or run is None or run.id != fact.run or not run.ended or not flow.active:
        return facts
    facts += _put_off(world, flow, fact)
    if left.lacking:
        return [*facts, *park(flow, "story_unwritten", f"its story cannot be marked: {left.lacking}")]
    if left.blocked and flow.stage == "work" and flow.phase is not None:
        why = f"{run.phase} stopped: {left.blocked}"
        return [*facts, *ask(world, flow, flow.phase, why[:2000], why, human=None)]
    return facts


def _put_off(world: World, flow: Flow, fact: TreeSealed) -> Iterator[Fact]:
    """Have an issue for each finding that was left for later; those beyond the policy's limit stand in the story."""
    policy, story = world.policy(flow), story_of(flow.issue, world.settings.labels)
    if policy is None or fact.story is None:
        return
    limits, depth = policy.limits, flow.counters.depth + 1
    room = max(limits.max_created_issues - flow.counters.created, 0)
    for finding in fact.story.put_off[:room]:
        new = NewIssue(finding[:200], f"Left for later by the review of {story}:\n\n{finding}")
        name = created_id(world, f"{fact.issue}\0{finding}", 0)  # one, however often the story is completed
        yield CreationWanted(fact.issue, name, new, depth, depth > limits.max_depth)
