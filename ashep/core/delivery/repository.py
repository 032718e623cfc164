"""The repository itself: a fault of it holds every issue at once, and what others merged must have arrived."""

from __future__ import annotations

import dataclasses
import re

from ashep.core.facts import commands
from ashep.core.facts.command_descriptions import WORDS
from ashep.core.facts.delivery import RepositorySeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.flow import Flow
from ashep.core.state.holds import Hold
from ashep.core.state.immutable import replace
from ashep.core.state.world import World, WorldFolds, put

CALLS = (commands.PrepareTree, commands.SealTree, commands.VerifyWork, commands.IntegrateWork, commands.MoveBase)
"""What fails where the repository itself is at fault."""

_NUMBER = re.compile(r"[0-9]+")


def hold_of(world: World) -> Hold | None:
    """Return what keeps every issue from a tree of its own."""
    if world.repository is None:
        unseen = Hold("tree_unseen", "the repository was not looked at since the start")
        return unseen if is_awaited(world) else None
    return Hold("repository", world.repository.fault) if world.repository.fault else None


def is_awaited(world: World) -> bool:
    """Whether a first look at the repository is about to come."""
    return _is_watched(world) and world.repository is None and world.settings.worker.workspace != "shared"


def _is_watched(world: World) -> bool:
    """Whether the daemon looks at the repository: what a look alone can show is waited for by no other."""
    return world.daemon is not None and world.daemon.watches


def is_in_trouble(flow: Flow) -> bool:
    """Whether what failed last may be the repository's fault."""
    return flow.infra > 0 and flow.failing in {WORDS[call.__name__] for call in CALLS}


def branch_to_fetch(world: World, flow: Flow) -> str:
    """Return the branch that is fetched before an issue begins there. Empty: it begins at what is here."""
    own, landing = flow.work.own, world.settings.landing
    return landing.base or own.onto or "" if landing.begins_at_remote and own is not None and not own.base else ""


def merge_of(world: World, issue: str) -> str:
    """Return the commit by which an issue's pull request was merged, where others begin at the remote's branch."""
    flow = world.flows.get(issue) if _is_watched(world) and world.settings.landing.begins_at_remote else None
    pull, landed = (flow.work.pull, flow.work.landed) if flow is not None else (None, None)
    return landed[1] if pull is not None and pull.state == "merged" and landed is not None else ""


def awaited_merges(world: World) -> tuple[str, ...]:
    """Return the merges that unclosed issues depend on."""
    issues = {blocker for issue in world.indexes.unclosed for blocker in world.flows[issue].issue.blocked_by}
    return tuple(sorted({commit for issue in issues if (commit := merge_of(world, issue))}))


def is_behind(world: World) -> bool:
    """Whether a merge that an issue depends on has not arrived yet."""
    return not {*awaited_merges(world)} <= {*(world.repository.merges if world.repository is not None else ())}


def merge_hold(world: World, flow: Flow) -> Hold | None:
    """Return which merge an issue waits for."""
    seen = world.repository or RepositorySeen()
    for blocker in flow.issue.blocked_by:
        if (commit := merge_of(world, blocker)) and commit not in seen.merges:
            why = f"the base does not hold {commit[:12]} yet, by which the pull request of {blocker} was merged"
            return Hold("base_behind", f"{why}: {seen.error}" if seen.error else why, blocker)
    return None


def repository_read(world: World, seen: RepositorySeen) -> list[Fact]:
    """Compare a look with the one before. A fault whose numbers alone differ (of free bytes, say) is no news."""
    before = world.repository
    if before is not None and _NUMBER.sub("", before.fault) == _NUMBER.sub("", seen.fault):
        seen = dataclasses.replace(seen, fault=before.fault)
    return [] if seen == before else [seen]


def _fold_repository(world: World, fact: RepositorySeen) -> World:
    """Fold a look. What failed because of a fault counts from zero once that is mended."""
    mended = world.repository is not None and world.repository.fault and not fact.fault
    world = replace(world, repository=fact)
    for issue in sorted(world.indexes.unclosed) if mended else ():
        if is_in_trouble(flow := world.flows[issue]):
            world = put(world, issue, replace(flow, infra=0, infra_began=None))
    return world


WORLD_FOLDS: WorldFolds = {RepositorySeen: _fold_repository}
