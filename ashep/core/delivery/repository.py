"""The repository itself: what is wrong with it holds every issue at once, and what others merged must have arrived."""

from __future__ import annotations

import dataclasses
import re

from ashep.core.facts import commands
from ashep.core.facts.delivery import MergeFetched, RepositorySeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.facts.words import WORDS
from ashep.core.state.flow import Flow, Folds, with_work
from ashep.core.state.frozen import replace
from ashep.core.state.holds import Hold
from ashep.core.state.world import World, WorldFolds, put

_NUMBER = re.compile(r"[0-9]+")
NOT_LOOKED_AT = Hold("tree_unseen", "the repository was not looked at since the start")
CALLS = (commands.PrepareTree, commands.SealTree, commands.VerifyWork, commands.IntegrateWork, commands.MoveBase)
"""What fails where the repository itself is at fault."""


def hold_of(world: World) -> Hold | None:
    """Say what keeps every issue from a tree of its own."""
    if world.repository is None:
        return NOT_LOOKED_AT if is_awaited(world) else None
    return Hold("repository", world.repository.fault) if world.repository.fault else None


def is_awaited(world: World) -> bool:
    """Whether a first look at the repository is about to come."""
    watches = world.daemon is not None and world.daemon.watches
    return watches and world.repository is None and world.settings.worker.workspace != "shared"


def is_in_trouble(flow: Flow) -> bool:
    """Whether what failed last may be the repository's fault."""
    return flow.infra > 0 and flow.failing in {WORDS[one.__name__] for one in CALLS}


def branch_to_fetch(world: World, flow: Flow) -> str:
    """Give the branch that is fetched before an issue begins there; empty: it begins at what is here."""
    own = flow.work.own
    if own is None or own.base or not _pulls(world):
        return ""
    return world.settings.landing.base or own.onto or ""


def unfetched(world: World, issue: str) -> str:
    """Give the commit by which an issue's pull request was merged, and which the base was not seen to hold."""
    flow = world.flows.get(issue) if _pulls(world) else None
    pull = flow.work.pull if flow is not None else None
    if flow is None or pull is None or pull.state != "merged" or pull.fetched or flow.work.landed is None:
        return ""
    return flow.work.landed[1]


def _pulls(world: World) -> bool:
    """Whether issues begin where the base is at the remote."""
    return world.settings.landing.mode == "pull_request" and world.settings.landing.fetches


def awaited_merges(world: World) -> list[tuple[str, str]]:
    """Give the issues whose merge others wait for, each with its commit."""
    if not _pulls(world):
        return []
    depends = sorted({one for issue in world.indexes.unclosed for one in world.flows[issue].issue.blocked_by})
    return [(issue, commit) for issue in depends if (commit := unfetched(world, issue))]


def is_fetching(world: World) -> bool:
    """Whether what others merged is about to be fetched; where that failed, who waits for it is held up."""
    return bool(awaited_merges(world)) and not (world.repository is not None and world.repository.error)


def merge_hold(world: World, flow: Flow) -> Hold | None:
    """Say which merge an issue waits for: what it depends on is merged, and not here yet."""
    for other in flow.issue.blocked_by:
        if commit := unfetched(world, other):
            error = world.repository.error if world.repository is not None else ""
            why = f"the base does not hold {commit[:12]} yet, by which the pull request of {other} was merged"
            return Hold("base_behind", f"{why}: {error}" if error else why, other)
    return None


def repository_read(world: World, seen: RepositorySeen, fetched: list[MergeFetched]) -> list[Fact]:
    """Compare a look with what is known. A fault whose numbers alone are others (of free bytes, say) is no news."""
    known = world.repository
    if known is not None and _NUMBER.sub("", known.fault) == _NUMBER.sub("", seen.fault):
        seen = dataclasses.replace(seen, fault=known.fault)
    arrived = [one for one in fetched if unfetched(world, one.issue) == one.commit]
    return [*([] if seen == world.repository else [seen]), *arrived]


def _seen(world: World, fact: RepositorySeen) -> World:
    """Fold a look; where a fault is mended, what failed because of it counts afresh."""
    mended = world.repository is not None and world.repository.fault and not fact.fault
    world = replace(world, repository=fact)
    for issue in sorted(world.indexes.unclosed) if mended else ():
        if is_in_trouble(flow := world.flows[issue]):
            world = put(world, issue, replace(flow, infra=0, infra_began=None))
    return world


def _fetched(flow: Flow, fact: MergeFetched, seq: int, at: object) -> Flow:
    pull = flow.work.pull
    return flow if pull is None else with_work(flow, pull=dataclasses.replace(pull, fetched=True))


WORLD_FOLDS: WorldFolds = {RepositorySeen: _seen}


FOLDS: Folds = {MergeFetched: _fetched}
