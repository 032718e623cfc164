"""Edits of the user's files while issues are under way: what `evolve` folds of them. No policy rules."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache

from ashep.core.facts.resources import Adopted, DaemonStarted, EditMended, EditRefused
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace


@dataclass(frozen=True, slots=True)
class Refused:
    """The last edit, where it cannot be used."""

    problems: tuple[str, ...]
    more: int
    since: datetime


@dataclass(frozen=True)
class Files:
    """What is kept in mind of the user's files."""

    prompts: str = ""
    """The blob of their templates; empty where there are none."""
    refused: Refused | None = None


NO_FILES = Files()


def happened(files: Files, fact: Adopted | EditRefused | EditMended | DaemonStarted, time: datetime) -> Files:
    """Fold an edit, or a start: no daemon starts with files that cannot be used."""
    match fact:
        case Adopted():
            return replace(files, prompts=fact.text)
        case EditRefused():
            return replace(files, refused=Refused(fact.problems, fact.more, time))
        case EditMended() | DaemonStarted():
            return replace(files, refused=None)


@cache
def parsed(kind: str, content: str) -> Policies | Agents | Settings:
    """Read the content of an `Adopted` fact."""
    model = {"policies": Policies, "agents": Agents, "settings": Settings}[kind]
    return model.model_validate_json(content)


def keep_phase(flow: Flow, before: Policies, after: Policies) -> Flow:
    """Let a run that is under way keep the phase with which it began."""
    run = flow.run
    if run is None or run.ended or run.began is not None or flow.policy is None:
        return flow
    old, new = before.policies.get(flow.policy), after.policies.get(flow.policy)
    phase = old.phase(run.phase) if old else None
    if phase is None or (new is not None and new.phase(run.phase) == phase):
        return flow
    return replace(flow, run=replace(run, began=phase))


FOLDS = {EditRefused: happened, EditMended: happened}
