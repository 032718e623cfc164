"""What a configuration must keep beyond its types: names that exist, edges that lead somewhere, agents that fit.

Everything here is about the files alone. Where they are in order, the policies are searched
(`ashep.config.policy_checks`).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product
from typing import Literal

from ashep.config import policy_checks
from ashep.config.cron import never
from ashep.config.error_messages import nearest
from ashep.config.findings import FileName, Finding, FindingFactory, KeyPath
from ashep.config.policy_checks import Problem, unsound
from ashep.core.issues.human_overrides import AGENT_ACTORS
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.base_types import same_name
from ashep.core.policy.budgets import Budgets
from ashep.core.policy.policies import CLOSE, Match, Phase, Policies, Policy, ReuseFrom
from ashep.core.policy.settings import Notify, People, QuietHours, Settings
from ashep.core.resources.notices import names
from ashep.core.runs.agent_selection import unfit
from ashep.core.runs.takeover import reviewed_by
from ashep.core.state.runner_state import NOT_SEEN

PARK = "park"
RESULTS = ("success", "failed", "partial")
_NO_HUMAN_KEYS = frozenset(Phase.model_fields) - {"name", "human", "requires", "must_pass"}
_SIGNS_TOO = (
    "what runs as you can have your ssh-agent sign: set `sandbox: bwrap` under `agents` and `verification`, remove"
    " `agents.openings` and each agent's own `sandbox`"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(
    policies: Policies | None, agents: Agents | None, settings: Settings | None, places: FindingFactory | None = None
) -> list[Finding]:
    """Say what is wrong with what could be read; a file that could not be is None, and what needs it is not checked."""
    places = places or FindingFactory({})
    found: list[Finding] = []
    if settings is not None:
        found += _findings(places, "config", _settings(settings))
        if "config" in places.sources and settings.people is None and "people" in settings.model_fields_set:
            # a key that stands in the file without anything behind it would let everybody in
            message = "names nobody; add `tracker: [<name>]`, or remove the key"
            found.append(places.finding("no-people", "config", ("people",), message))
        found += _findings(places, "config", policy_checks.tool_rules_of_settings(settings))
        found += _findings(places, "config", _useless_limits(settings.budgets), "warning")
    if agents is not None:
        found += _findings(places, "agents", _registry(agents, settings))
        found += _findings(places, "agents", _pointless(agents), "warning")
    if policies is not None:
        found += _findings(places, "policies", _policies(policies))
        found += _findings(places, "policies", policy_checks.tool_rules_of_policies(policies, settings))
        found += _findings(places, "policies", chain(_matches_nothing(policies), _never_first(policies)), "warning")
        found += _findings(places, "policies", policy_checks.in_vain(policies), "warning")
    if settings is not None:
        for name, problem in _needless_caps(policies, agents, settings):
            found += _findings(places, name, [problem], "warning")
    if policies is not None and settings is not None:
        found += _findings(places, "policies", policy_checks.checks_of_types(policies, settings))
    if policies is not None and agents is not None:
        found += _findings(places, "policies", _coverage(policies, agents))
        found += _findings(places, "policies", _undiagnosed(policies, agents), "warning")
    if policies and agents and settings:
        found += _findings(places, "agents", policy_checks.judging(policies, agents, settings))
    if policies and agents and settings and all(finding.severity == "warning" for finding in found):
        found += unsound(policies, agents, settings, places)
    return found


def _findings(
    places: FindingFactory, name: FileName, problems: Iterable[Problem], severity: Literal["error", "warning"] = "error"
) -> list[Finding]:
    return [places.finding(code, name, path, message, severity) for code, path, message in problems]


# --- policies ---------------------------------------------------------------------------------------------------


def _policies(policies: Policies) -> Iterator[Problem]:
    default = policies.default_policy
    if default is not None and default not in policies.policies:
        message = f"there is no policy {default}{nearest(default, policies.policies)}"
        yield "unknown-policy", ("default_policy",), message
    for name, policy in policies.policies.items():
        yield from _names(policy, ("policies", name, "phases"))
        if policy.remove:
            yield "pointless-key", ("policies", name, "remove"), "has no effect without `extends`; remove it"
        agents = [phase for phase in policy.phases if phase.human is None]
        if policy.takeover.action == "review" and not any(reviewed_by(policy, phase) for phase in agents):
            message = "no phase of this policy leads to another by its success, which would look at a person's work"
            yield "no-review", ("policies", name, "takeover", "action"), f"{message}; take pause or resume"
        for index, phase in enumerate(policy.phases):
            path: KeyPath = ("policies", name, "phases", index)
            for place, target, known in _targets(phase, path, [other.name for other in policy.phases]):
                if target not in known:
                    yield "unknown-target", place, f"this policy has no phase {target}{nearest(target, known)}"
            yield from _edges(phase, path) if phase.human is None else ()
            yield from _human(policy, index, path) if phase.human is not None else ()
            yield from _sessions(policy, phase, path)
            yield from _takeover(policy, phase, path)
            yield from policy_checks.requirements_of_phase(policy, phase, path)
            yield from policy_checks.proof_of_phase(policy, phase, path)
            if phase.retry.initial_delay > phase.retry.max_delay:
                message = "longer than max_delay; lower it, or raise max_delay"
                yield "retry-delays", (*path, "retry", "initial_delay"), message


def _matches_nothing(policies: Policies) -> Iterator[Problem]:
    for name, policy in policies.policies.items():
        for key in ("types", "priorities"):
            if policy.match is not None and not getattr(policy.match, key):
                message = "no issue can match an empty list; write `match: null` where that is meant"
                yield "matches-nothing", ("policies", name, "match", key), message
        if policy.match is not None and not {*policy.match.labels}.isdisjoint(policy.match.not_labels):
            message = "no issue can match: a label is in `labels` too; take it out of one of them"
            yield "matches-nothing", ("policies", name, "match", "not_labels"), message


def _never_first(policies: Policies) -> Iterator[Problem]:
    """What a policy matches, another one before it claims."""
    seen: dict[Match, str] = {}
    for name, policy in policies.policies.items():
        if policy.match is not None and (first := seen.setdefault(policy.match, name)) != name:
            message = f"{first} comes first and matches the same; give this one another `match`, or `match: null`"
            yield "never-first", ("policies", name, "match"), message


def _names(policy: Policy, path: KeyPath) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, phase in enumerate(policy.phases):
        place = (*path, index, "name")
        if phase.name in (CLOSE, PARK, *RESULTS):
            yield "reserved-name", place, f"a phase cannot be named {phase.name}, a word with a meaning; rename it"
        if phase.name in seen:
            yield "duplicate-phase", place, f"there is a phase {phase.name} already; rename one of them"
        seen.add(phase.name)


def _targets(phase: Phase, path: KeyPath, names: list[str]) -> Iterator[tuple[KeyPath, str, list[str]]]:
    known = [*names, CLOSE]
    for edge, target in phase.next.items():
        yield (*path, "next", edge), target, known
    for index, target in enumerate(phase.allow_suggested):
        yield (*path, "allow_suggested", index), target, known
    if phase.human is not None:
        yield (*path, "human", "approved"), phase.human.approved, known
        yield (*path, "human", "on_deadline"), phase.human.on_deadline, [*known, PARK]
        if phase.human.changes_requested is not None:
            yield (*path, "human", "changes_requested"), phase.human.changes_requested, known


def _edges(phase: Phase, path: KeyPath) -> Iterator[Problem]:
    for index, verdict in enumerate(phase.verdicts):
        place = (*path, "verdicts", index)
        if verdict in RESULTS:
            yield "reserved-name", place, f"a verdict cannot be named {verdict}, which is a result; rename it"
        elif verdict in phase.verdicts[:index]:
            yield "duplicate-verdict", place, f"the verdict {verdict} is listed twice; remove one"
        elif verdict not in phase.next:
            yield "missing-edge", place, f"the verdict {verdict} leads nowhere; give it an edge in `next`"
    known = [*phase.verdicts, "failed", "partial"] if phase.verdicts else list(RESULTS)
    for edge in phase.next:
        place = (*path, "next", edge)
        if edge == "success" and phase.verdicts:
            message = "in a phase with verdicts each success names one; give the edges of the verdicts instead"
            yield "success-edge", place, message
        elif edge not in known and edge not in RESULTS:
            yield "unknown-edge", place, f"neither a verdict of this phase nor a result{nearest(edge, known)}"


def _human(policy: Policy, index: int, path: KeyPath) -> Iterator[Problem]:
    phase = policy.phases[index]
    for key in Phase.model_fields:
        if key in _NO_HUMAN_KEYS & phase.model_fields_set:
            yield "pointless-key", (*path, key), "has no effect in a phase with `human`; remove it"
    if phase.human is not None and phase.human.reminder is not None and phase.human.reminder >= phase.human.deadline:
        message = "not before `deadline`, so that nobody is ever reminded; lower it, or raise that one"
        yield "useless-reminder", (*path, "human", "reminder"), message
    before = policy.phases[:index]
    changes = phase.human is not None and phase.human.changes_requested is None
    if changes and not any(other.human is None and other.makes for other in before):
        message = "no phase with write access stands before this one to go back to; add `changes_requested: <phase>`"
        yield "no-way-back", (*path, "human"), message


def _sessions(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    agent_phases = [phase.name for phase in policy.phases if phase.human is None]
    for key in ("different_model_from", "different_provider_from"):
        other: str | None = getattr(phase.prefer, key)
        if other is not None and other not in agent_phases:
            message = f"{other} is no phase of this policy in which an agent works{nearest(other, agent_phases)}"
            yield "unknown-phase", (*path, "prefer", key), message
    if isinstance(phase.session, ReuseFrom):
        name = phase.session.reuse_from
        place = (*path, "session", "reuse_from")
        source = policy.phase(name)
        if source is None or source.human is not None:
            known = [other.name for other in policy.phases if other.human is None and other is not phase]
            message = f"{name} is no phase of this policy in which an agent works{nearest(name, known)}"
            yield "unknown-phase", place, message
        elif phase.verdicts:
            message = "a phase with verdicts judges with fresh eyes; remove `session`, or the verdicts"
            yield "reuse-with-verdicts", place, message
        elif name == phase.name:
            yield "reuse-itself", place, "this is the phase itself; write `session: reuse`"
        elif source.writes != phase.writes:
            access = ("write", "read") if source.writes else ("read", "write")
            message = (
                f"{name} has {access[0]} access and this phase {access[1]}; a session keeps its own: give both the same"
            )
            yield "reuse-across-access", place, message


def _takeover(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """`review` in a phase whose success leads to no other; for a whole policy it is as `pause` there."""
    wish = phase.takeover
    if wish is not None and wish.action == "review" and phase.human is None and reviewed_by(policy, phase) is None:
        why = "a person's work there has no verdict" if phase.verdicts else "a success of this phase closes the issue"
        yield "no-review", (*path, "takeover", "action"), f"{why}, so nothing would look at it; take pause or resume"


# --- agents -----------------------------------------------------------------------------------------------------


def _registry(agents: Agents, settings: Settings | None) -> Iterator[Problem]:
    seen: set[str] = set()
    runners = settings.runners.names if settings is not None else None
    for index, agent in enumerate(agents.agents):
        path: KeyPath = ("agents", index)
        if agent.id in seen:
            yield "duplicate-agent", (*path, "id"), f"there is an agent {agent.id} already; rename one of them"
        seen.add(agent.id)
        runner = agent.runner
        if (runner.provider is None) != (runner.model is None):
            given, other = ("provider", "model") if runner.model is None else ("model", "provider")
            yield "half-a-model", (*path, "runner", given), f"needs `{other}` beside it; give both, or neither"
        if runners is not None and runner.type not in runners and not agent.is_human:
            message = f"there is no runner {runner.type} in this project{nearest(runner.type, runners)}"
            yield "unknown-runner", (*path, "runner", "type"), message
        makes = agent.read_write == "write" and not agent.is_human
        if makes and agent.sandbox is not None and settings is not None and not settings.isolated:
            message = "takes `runners.opencode.isolation: place` and `worker.workspace: place` in config.yaml"
            yield "no-place", (*path, "sandbox"), message
        if makes and agent.sandbox not in (None, "bwrap") and settings is not None and settings.signed_only:
            yield "unsafe-signing", (*path, "sandbox"), _SIGNS_TOO


def _pointless(agents: Agents) -> Iterator[Problem]:
    for index, agent in enumerate(agents.agents):
        if agent.is_human:
            for key in ("runner", "performance", "sandbox", "max_runs"):
                if key in agent.model_fields_set:
                    yield "pointless-key", ("agents", index, key), "has no effect where `is_human` is true; remove it"
        elif agent.sandbox is not None and agent.read_write == "read":
            yield "pointless-key", ("agents", index, "sandbox"), "has no effect without `read_write: write`; remove it"


def _coverage(policies: Policies, agents: Agents) -> Iterator[Problem]:
    ids = [agent.id for agent in agents.agents]
    for phase, path in policy_checks.each_phase(policies):
        for position, agent in enumerate(phase.not_agents):
            if agent not in ids:
                message = f"there is no agent {agent}{nearest(agent, ids)}"
                yield "unknown-agent", (*path, "not_agents", position), message
        if phase.human is None:
            yield from _fits_nobody(phase, agents.agents, path)


def _undiagnosed(policies: Policies, agents: Agents) -> Iterator[Problem]:
    """Where a stall is to be looked into by an agent, and there is none for that."""
    if any("debug" in agent.capabilities and not agent.is_human for agent in agents.agents):
        return
    for phase, path in policy_checks.each_phase(policies):
        if phase.stall.action == "diagnose":
            message = "no agent in agents.yaml has the capability debug; until one has, this is as `retry`"
            yield "no-agent", (*path, "stall", "action"), message


def _fits_nobody(phase: Phase, agents: tuple[Agent, ...], path: KeyPath) -> Iterator[Problem]:
    place = (*path, "capabilities" if phase.capabilities else "name")
    lacking = [need for need in phase.needs if not any(need in agent.capabilities for agent in agents)]
    if lacking:
        known = {capability: None for agent in agents for capability in agent.capabilities}
        message = f"no agent in agents.yaml has the capability {lacking[0]}{nearest(lacking[0], known)}"
        yield "no-agent", place, message
        return
    of_any = phase.model_copy(update={"provider": None, "model": None})  # as an agent without a model may be, by files
    reasons = [unfit(agent, of_any if agent.runner.model is None else phase, NOT_SEEN) for agent in agents]
    if all(reasons):
        said = "; ".join(f"{agent.id}: {reason}" for agent, reason in zip(agents, reasons, strict=True))
        yield "no-agent", place, f"no agent in agents.yaml fits ({said})"


# --- settings ---------------------------------------------------------------------------------------------------


def _settings(settings: Settings) -> Iterator[Problem]:
    yield from _labels(settings)
    yield from _server(settings)
    yield from policy_checks.own_classes(settings)
    yield from _quiet_hours(settings.worker.quiet_hours, "worker")
    yield from _quiet_hours(settings.notify.quiet_hours, "notify")
    yield from _targets_of_notify(settings.notify)
    yield from _people(settings.people, settings)


def _people(people: People | None, settings: Settings) -> Iterator[Problem]:
    """Names that can be nobody's, and a forge of which nothing, or two things, say who counts there."""
    forge = settings.landing.forge
    if people is None:
        return
    for index, name in enumerate(people.tracker):
        compared = same_name(name)
        if not compared or compared.startswith(AGENT_ACTORS) or compared == same_name(settings.tracker.actor or ""):
            message = "no person's name: it is empty, or counts as ashep's or its agents'; remove it"
            yield "no-person", ("people", "tracker", index), message
    if forge is not None and (people.forge is None) == (forge.people is None):
        message = "says who counts at the forge, and so does `landing.forge.people`; remove one of them"
        if people.forge is None:
            message = "does not say who counts at the forge; add `forge: [COLLABORATOR]`, or names there"
        yield "people-of-forge", ("people",) if people.forge is None else ("people", "forge"), message
    if people.signed == "required":
        unsafe = settings.agents.sandbox != "bwrap" or settings.agents.openings
        if unsafe or settings.verification.sandbox != "bwrap":
            yield "unsafe-signing", ("people", "signed"), _SIGNS_TOO


def _isolation(settings: Settings) -> Iterator[Problem]:
    """Who is to be alone in a place has one, and a server that is ours to start."""
    opencode, sandboxed = settings.runners.opencode, settings.agents.sandbox != "none"
    where: KeyPath = ("agents", "sandbox") if sandboxed else ("runners", "opencode", "isolation")
    if not sandboxed and opencode.isolation != "place":
        return
    if settings.worker.workspace != "place":
        yield "no-place", where, "takes places of the issues' own: set `worker.workspace: place`"
    elif (others := [one for one in settings.runners.unsandboxed if settings.runners.extra[one].type]) or opencode.url:
        own = "; `agents: {sandbox: none}` lets all run as you" if sandboxed else ""
        which = f"agents of a class of your own, as {', '.join(others)}" if others else "an OpenCode server at a `url`"
        yield "no-place", where, f"cannot isolate {which}{own}"
    elif opencode.isolation == "shared":
        yield "no-place", ("runners", "opencode", "isolation"), "a sandbox for agents takes `place` here"


def _labels(settings: Settings) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    keys = ("phase_prefix", "policy_prefix", "branch_prefix", "story_prefix")
    prefixes = tuple(str(getattr(settings.labels, key)) for key in keys)
    for key in type(settings.labels).model_fields:
        label, place = str(getattr(settings.labels, key)), ("labels", key)
        if not label or label != label.strip() or not label.isprintable() or "," in label:
            message = "a label is not empty, and has no comma, control character, or space at its ends"
            yield "bad-label", place, message
        elif label in seen:
            yield "duplicate-label", place, f"the same label as {seen[label]}; each needs its own"
        elif not key.endswith("_prefix") and label.startswith(prefixes):
            yield "prefixed-label", place, "begins like the label of a phase or policy; choose another"
        seen.setdefault(label, key)
    for (first, one), (second, other) in combinations(zip(keys, prefixes, strict=True), 2):
        if one != other and one and other and (one.startswith(other) or other.startswith(one)):
            yield "prefixed-label", ("labels", second), f"begins like {first}; choose another"


def _useless_limits(budgets: Budgets) -> Iterator[Problem]:
    """A run's limit above its issue's, and so on: the wider one is always met first."""
    scopes = {name: getattr(budgets, name) for name in ("run", "issue", "day", "total")}
    scopes |= {f"providers.{provider}": budget for provider, budget in budgets.providers.items()}
    wider = {"run": ("issue", "day", "total"), "issue": ("total",), "day": ("total",), "total": ()}
    for name, budget in scopes.items():
        for other, unit in product(wider.get(name, ("day", "total")), ("tokens", "cost")):
            limit, beyond = getattr(budget, unit), getattr(scopes[other], unit)
            if limit is not None and beyond is not None and limit > beyond:
                message = f"never met: more than budgets.{other}.{unit}, which is {beyond}; lower it, or raise that one"
                yield "useless-limit", ("budgets", *name.split(".", 1), unit), message


def _needless_caps(
    policies: Policies | None, agents: Agents | None, settings: Settings
) -> Iterator[tuple[FileName, Problem]]:
    """Caps on runs at one time that are never met: fewer runs are under way in all."""
    most = settings.worker.max_concurrent_runs
    for name, path, cap in _caps(policies, agents, settings):
        if cap is not None and cap > most:
            message = f"has no effect: worker.max_concurrent_runs is {most}; lower it, or raise that one"
            yield name, ("pointless-key", (*path, "max_runs"), message)


def _caps(
    policies: Policies | None, agents: Agents | None, settings: Settings
) -> Iterator[tuple[FileName, KeyPath, int | None]]:
    for runner in settings.runners.names:
        yield "config", ("runners", runner), settings.runners.max_runs(runner)
    for provider, budget in settings.budgets.providers.items():
        yield "config", ("budgets", "providers", provider), budget.max_runs
    for index, agent in enumerate(agents.agents if agents else ()):
        yield "agents", ("agents", index), agent.max_runs
    for phase, path in policy_checks.each_phase(policies) if policies else ():
        yield "policies", path, phase.max_runs


def _quiet_hours(windows: tuple[QuietHours, ...], section: str) -> Iterator[Problem]:
    for place, window in enumerate(windows):
        path: KeyPath = (section, "quiet_hours", place, "at")
        try:
            if never(window.at):
                yield "bad-cron", path, "never comes round"
        except ValueError as error:
            message = f"{error}; expected minute, hour, day of the month, month and day of the week"
            yield "bad-cron", path, message


def _targets_of_notify(notify: Notify) -> Iterator[Problem]:
    """How somebody is told. No value is shown: it may be a URL with a secret in it."""
    known: set[str] = set()
    for place, (name, target) in enumerate(zip(names(notify), notify.targets, strict=True)):
        path: KeyPath = ("notify", "targets", place)
        given = [key for key in ("command", "apprise_env", "apprise_file") if getattr(target, key) is not None]
        if len(given) != 1:
            yield "bad-target", path, "expected one of command, apprise_env and apprise_file"
        if target.apprise_env is not None and not _VARIABLE.fullmatch(target.apprise_env):
            message = "expected the name of an environment variable, not a URL: that is a secret"
            yield "bad-variable", (*path, "apprise_env"), message
        if target.apprise_file is not None and "://" in target.apprise_file:
            yield "bad-target", (*path, "apprise_file"), "expected the path of a file, not a URL: that is a secret"
        if name in known:
            yield "duplicate-target", (*path, "name"), "another target is called so, too"
        known.add(name)


def _server(settings: Settings) -> Iterator[Problem]:
    opencode = settings.runners.opencode
    path: KeyPath = ("runners", "opencode")
    if opencode.url is None and not opencode.managed:
        yield "no-server", (*path, "managed"), "a server that is not managed needs its `url`"
    if opencode.url is not None:
        if opencode.managed and "managed" in opencode.model_fields_set:
            yield "two-servers", (*path, "managed"), "a server with a `url` is not managed; remove one of the two"
        if not opencode.url.startswith(("http://", "https://")):
            yield "bad-url", (*path, "url"), "expected an address that begins with http:// or https://"
    if not _VARIABLE.fullmatch(opencode.password_env):
        # the value is not shown: it may be the password itself
        yield "bad-variable", (*path, "password_env"), "expected the name of an environment variable"
    yield from _isolation(settings)
    for place, name in enumerate(settings.redact):
        if not _VARIABLE.fullmatch(name):
            yield "bad-variable", ("redact", place), "expected the name of an environment variable, not a value"
