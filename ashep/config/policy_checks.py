"""What a configuration must keep that the core knows: own classes, permissions, proof, checks, ends, soundness."""

from collections.abc import Iterable, Iterator, Sequence

from ashep.config.checks.parser import KEY, check_problems, unknown_type
from ashep.config.error_messages import nearest
from ashep.config.findings import Finding, FindingFactory, KeyPath
from ashep.config.yaml_tree import Node
from ashep.config.yaml_tree import YamlProblem as NodeProblem
from ashep.core.analysis.cost_bounds import fitting
from ashep.core.analysis.soundness import analyse
from ashep.core.issues.verification import claims
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import is_name
from ashep.core.policy.checks import CHECK_TYPES
from ashep.core.policy.permissions import SUBAGENTS, against_reading, asks_of_tools, impossible
from ashep.core.policy.policies import CLOSE, PermissionRule, Phase, Policies, Policy
from ashep.core.policy.runner_kinds import KINDS as RUNNERS
from ashep.core.policy.runner_kinds import rules_of
from ashep.core.policy.settings import Settings

Problem = tuple[str, KeyPath, str]
"""Code, path, message."""


def own_classes(settings: Settings) -> Iterator[Problem]:
    """Say what is wrong with `tracker`, `runners` and `verification`, by the file alone: no class is imported."""
    tracker, runners = settings.tracker, settings.runners
    if tracker.is_own and "command" in tracker.model_fields_set:
        yield "pointless-key", ("tracker", "command"), f"has no effect with {tracker.type}; give it in `options`"
    if not tracker.is_own and tracker.options:
        yield "pointless-key", ("tracker", "options"), "only a class of your own takes options; remove them"
    for name, runner in runners.extra.items():
        path: KeyPath = ("runners", name)
        if not is_name(name):
            yield "bad-name", path, "not a name: a letter, then letters, digits, _ or - (64 at most)"
        kind = runners.kind(name)
        if runner.type is None and kind not in RUNNERS:
            known = nearest(name, tuple(RUNNERS))
            yield "no-type", path, f"needs a `type`: a kind, or a class as package.module:Class{known}"
        if rules_of(kind).needs and runner.command is None:
            yield "no-command", path, rules_of(kind).needs
        if runner.instructions == "listed" and not settings.impact.agent_instructions:
            message = "no file is listed: name those that tell this agent how to work in `impact.agent_instructions`"
            yield "cannot-judge", (*path, "instructions"), message
        for key in sorted(rules_of(kind).ignores & runner.model_fields_set):
            yield "pointless-key", (*path, key), f"has no effect with {kind}; remove it"
    for name in settings.verification.types:
        if name in CHECK_TYPES:
            message = f"{name} is built in; give your type another name"
            yield "taken-name", ("verification", "types", name), message


def each_phase(policies: Policies) -> Iterator[tuple[Phase, KeyPath]]:
    """Give the phases of all policies, each with its place in the file."""
    for name, policy in policies.policies.items():
        for index, phase in enumerate(policy.phases):
            yield phase, ("policies", name, "phases", index)


def tool_rules_of_settings(settings: Settings) -> Iterator[Problem]:
    """The rules for all phases; in a phase with less access those that need more are left out."""
    yield from _possible(settings.permissions, ())
    yield from _alone(settings.permissions, settings.permissions, ())


def tool_rules_of_policies(policies: Policies, settings: Settings | None) -> Iterator[Problem]:
    """The rules of phases: none may widen its phase's access."""
    for phase, path in each_phase(policies):
        yield from _possible(phase.permissions, path)
        for place, rule in enumerate(phase.permissions):
            why = None if phase.writes or impossible(rule) else against_reading(rule)
            if why is not None:
                yield "beyond-access", (*path, "permissions", place, "tool"), why
        everywhere = settings.permissions if settings else ()
        yield from _alone(phase.permissions, (*phase.permissions, *everywhere), path)


def _possible(rules: Iterable[PermissionRule], path: KeyPath) -> Iterator[Problem]:
    for place, rule in enumerate(rules):
        if (why := impossible(rule)) is not None:
            yield "impossible-rule", (*path, "permissions", place, "tool"), why


def _alone(rules: Iterable[PermissionRule], together: Sequence[PermissionRule], path: KeyPath) -> Iterator[Problem]:
    """A subagent would not be asked: where something is, there is none, and a rule for one has no effect."""
    if not asks_of_tools(together):
        return
    for place, rule in enumerate(rules):
        if rule.tool == SUBAGENTS and rule.action != "deny":
            why = "has no effect: where a tool is asked about there are no subagents, for nobody would ask them"
            yield "impossible-rule", (*path, "permissions", place, "tool"), why


PROVING = ("verify", "checks", "when_flags")
"""Keys of a phase by which a success is looked into."""


def proof_declared(phase: Phase) -> tuple[str, ...]:
    """Give those of the keys that say something."""
    return tuple(key for key in PROVING if getattr(phase, key))


def read_checks(root: Node) -> list[NodeProblem]:
    """Read the checks of all policies of a file, each by the model of its type, so that what is said is about that."""
    found: list[NodeProblem] = []
    for policy in root.locate(["policies"]).children:
        for phase in policy.locate(["phases"]).children:
            if checks := phase.locate([KEY]).items:
                found += check_problems(checks)
    return found


def proof_of_phase(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """Say where a key has no effect, or a change would be led nowhere or around what follows."""
    if phase.human is not None:
        return  # no key of an agent's means anything there, and that is said
    for key in proof_declared(phase) if not claims(phase) else ():
        message = "of verdicts only those are looked into that `must_pass` names; name those that say the work holds"
        yield "verify-with-verdicts", (*path, key), message
    names = [other.name for other in policy.phases]
    for flag, target in phase.when_flags.items():
        place: KeyPath = (*path, "when_flags", flag)
        if target == CLOSE:
            message = (
                "a change that is flagged cannot go around what follows; name a phase, one that asks a person, say"
            )
            yield "flagged-close", place, message
        elif target not in names:
            yield "unknown-target", place, f"this policy has no phase {target}{nearest(target, names)}"


def in_vain(policies: Policies) -> Iterator[Problem]:
    """Say where a change is asked for that nobody can have made."""
    for name, policy in policies.policies.items():
        writers = [phase for phase in policy.phases if phase.human is None and phase.makes]
        for index, phase in enumerate(policy.phases):
            if phase.verify is not None and phase.human is None and (not writers or (index == 0 and not phase.writes)):
                message = "nothing is written before this phase succeeds: its work can never hold; take a later phase"
                yield "nothing-to-verify", ("policies", name, "phases", index, "verify"), message


def checks_of_types(policies: Policies, settings: Settings) -> Iterator[Problem]:
    """Say which checks are of a type that nobody registered."""
    known = settings.verification.types
    for phase, path in each_phase(policies):
        for place, check in enumerate(phase.checks):
            if check.type not in CHECK_TYPES and check.type not in known:
                yield "unknown-type", (*path, KEY, place, "type"), unknown_type(check.type, tuple(known))


def ends_of(phase: Phase) -> tuple[str, ...]:
    """What a phase can end with so that the issue goes on; a failure is no such end."""
    if phase.human is not None:
        return ("approved", "changes_requested")
    return (*phase.verdicts, "partial") if phase.verdicts else ("success", "partial")


def requirements_of_phase(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """Names that mean nothing."""
    names = [other.name for other in policy.phases]
    for name, words in phase.requires.items():
        place: KeyPath = (*path, "requires", name)
        other = policy.phase(name)
        if other is None:
            yield "unknown-phase", place, f"this policy has no phase {name}{nearest(name, names)}"
        elif not words:
            yield "requires-nothing", place, f"name what {name} must have ended with: {', '.join(ends_of(other))}"
        else:
            yield from _words(other, words, place)
    yield from _words(phase, phase.must_pass, (*path, "must_pass"))
    for word in phase.story:
        if word not in (known := ends_of(phase)):
            yield "unknown-end", (*path, "story", word), f"{phase.name} never ends with {word}{nearest(word, known)}"
    if phase.may_change is not None and not phase.writes and phase.human is None:
        yield "pointless-key", (*path, "may_change"), "has no effect where files cannot be changed: set access: write"


def _words(phase: Phase, words: tuple[str, ...], place: KeyPath) -> Iterator[Problem]:
    known = ends_of(phase)
    for index, word in enumerate(words):
        if word not in known:
            yield "unknown-end", (*place, index), f"{phase.name} never ends with {word}{nearest(word, known)}"


def judging(policies: Policies, agents: Agents, settings: Settings) -> Iterator[Problem]:
    """Say which agents could judge although nobody knows which files tell them how to work: the candidate's would."""
    for index, agent in enumerate(agents.agents if settings.isolated else ()):
        name = agent.runner.type
        unknown = name in settings.runners.names and settings.runners.instructed_as(name) is None
        phases = (phase for phase, _ in each_phase(policies) if phase.human is None and not phase.writes)
        phase = next((phase for phase in phases if agent in fitting(phase, agents)), None) if unknown else None
        if phase is not None:
            message = (
                f"cannot judge in {phase.name}: nobody knows which files tell agents of `{name}` how to work, and they "
                f"would be the candidate's; name its kind (`runners.{name}.instructions`), or list them "
                "(`impact.agent_instructions`) and write `instructions: listed`, or have another agent judge"
            )
            yield "cannot-judge", ("agents", index, "runner", "type"), message


def unsound(policies: Policies, agents: Agents, settings: Settings, places: FindingFactory) -> Iterator[Finding]:
    """Search all that the policies can lead to; they must be free of other mistakes."""
    for verdict in analyse(policies, agents, settings).values():
        for finding in verdict.findings:
            message = f"{finding.message}; {finding.remedy}"
            yield places.finding(finding.code, "policies", finding.key_path, message, finding.severity, finding.story)


def warnings(policies: Policies, agents: Agents, settings: Settings, places: FindingFactory) -> list[Finding]:
    """What a person should know before the night although nothing of it is a mistake."""
    found = [*_weak_points(policies, agents), *_unseen(policies, settings)]
    return [places.finding(code, "policies", path, message, "warning") for code, path, message in found]


def _weak_points(policies: Policies, agents: Agents) -> Iterator[Problem]:
    """Phases that one agent, or one provider, can stop by being away. One agent alone is a warning where another phase
    has more: who has one for each phase knows it.
    """
    fit = [([] if phase.human else fitting(phase, agents), phase, path) for phase, path in each_phase(policies)]
    several = any(len(able) > 1 for able, _, _ in fit)
    for able, phase, path in fit:
        place = (*path, "name")
        if len(able) == 1 and several:
            yield "one-agent", place, f"only {able[0].id} can take {phase.name}: without it, issues wait here"
        elif (
            len(able) > 1 and len(providers := {agent.runner.provider for agent in able}) == 1 and None not in providers
        ):
            why = f"all agents for {phase.name} are of the provider {providers.pop()}: its outage stops this phase"
            yield "one-provider", place, why


def _unseen(policies: Policies, settings: Settings) -> Iterator[Problem]:
    """Phases whose work is to be looked into, or files put back, where config.yaml asks for the shared work tree
    (who sets `lock_work_tree` asks for it, too).
    """
    worker = settings.worker
    if worker.workspace != "shared" or worker.model_fields_set.isdisjoint({"workspace", "lock_work_tree"}):
        return
    for phase, path in each_phase(policies):
        of_files = [key for key in ("may_change", "story") if key in phase.model_fields_set]
        for key in (*proof_declared(phase), *of_files):
            why = "has no effect in the shared work tree, which config.yaml asks for: set worker.workspace: worktree"
            yield "shared-work-tree", (*path, key), why
