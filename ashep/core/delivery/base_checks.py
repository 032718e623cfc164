"""The base before any work: what the checks of policies find there, and which issues that keeps waiting."""

from ashep.core.delivery.workspaces import mode
from ashep.core.facts.delivery import BaseChecked, CheckResult
from ashep.core.policy.checks import Check, passes_without_work
from ashep.core.policy.policies import Policy
from ashep.core.state.delivery import name_failing
from ashep.core.state.holds import Hold
from ashep.core.state.immutable import replace
from ashep.core.state.world import World, WorldFolds


def base_of(world: World) -> str:
    """Return the branch where work lands; empty: the checkout is on none."""
    return world.settings.landing.base or (world.tree.branch if world.tree else None) or ""


def base_revisions(world: World) -> tuple[str, ...]:
    """Return revisions of git of which the first that exists is where issues begin."""
    branch, landing = base_of(world), world.settings.landing
    if not branch:
        return ("HEAD",)
    remote = landing.forge.remote if landing.forge is not None and landing.begins_at_remote else None
    follows = (f"{branch}@{{upstream}}", f"refs/remotes/{remote}/{branch}") if remote else ()
    return (*follows, f"refs/heads/{branch}")


def checks_of(policy: Policy | None) -> tuple[Check, ...]:
    """Select the checks of a policy that are to pass on its base, before any work."""
    phases = policy.phases if policy is not None else ()
    return tuple(check for phase in phases for check in phase.checks if passes_without_work(check))


def failing_on_base(world: World, name: str | None) -> tuple[CheckResult, ...]:
    """Select the checks of a policy that failed on the base when they were last run there."""
    checked = world.bases.get(name or "")
    results = checked.found.results if checked is not None and checked.found is not None and checked.commit else ()
    return tuple(result for result in results if result.on_base)


def is_checked(world: World, name: str) -> bool:
    """Whether the checks of a policy are run on the base."""
    able = world.daemon is not None and world.daemon.bases and mode(world) == "worktree"
    return able and bool(checks_of(world.policy_of(name)))


def is_awaited(world: World, name: str) -> bool:
    """Whether it is not known yet what the checks of a policy find on the base."""
    checked = world.bases.get(name)
    return is_checked(world, name) and (checked is None or not (checked.commit or checked.error))


def base_hold(world: World, name: str, policy: Policy) -> Hold | None:
    """Say why an issue waits for the base, where its policy wants that; None: it does not."""
    if policy.on_base_failure != "hold" or not is_checked(world, name):
        return None
    if is_awaited(world, name):
        return Hold("base_unchecked", f"the checks of {name} are run on the base first", name)
    checked, failing = world.bases[name], name_failing(failing_on_base(world, name))
    where = f"on {checked.branch} ({checked.commit[:12]}), before any work"
    if checked.error:
        return Hold("base_fails", f"the checks of {name} cannot be run on {checked.branch}: {checked.error}", name)
    return Hold("base_fails", f"the checks of {name} fail {where}: {failing}", name) if failing else None


def unchecked(world: World) -> World:
    """Return the World in which no base was looked at; what was found in a tree is still known."""
    bases = {name: BaseChecked(name, checked.branch, "", checked.found) for name, checked in world.bases.items()}
    return replace(world, bases=world.bases.update(bases))


FOLDS: WorldFolds = {BaseChecked: lambda world, fact: replace(world, bases=world.bases.insert(fact.policy, fact))}
