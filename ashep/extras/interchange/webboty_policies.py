"""Policies of webboty/agent-shepherd -> policies.yaml.

Where that set-up asks an agent which phase is next, a phase of its own says so by a verdict here: agents report, and
the policy leads. Where it blocks an issue for an approval that nothing reads, that is how it is here, too, for
`ashep policy check` to say.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ashep.config.yaml_tree import Node
from ashep.core.policy import base_types
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import CLOSE
from ashep.extras.interchange.typed_fields import Fields, bounded
from ashep.prompt.templates import KINDS

_BASE = timedelta(minutes=5)
_TYPES = ("task", "bug", "feature", "chore")
_READERS = {
    "analysis", "architecture", "discovery", "exploration", "naming", "planning", "review", "summary", "validation",
    "code-analysis",
}  # fmt: skip
"""Capabilities that are no reason to change files."""

_OUTCOMES = {"on_success": "success", "on_failure": "failed", "on_partial_success": "partial"}
_VISITS = 10
"""How often that set-up lets an issue into a phase where nothing else is said."""
_MOST_VISITS = 1000

_ORDER = "the first policy that fits is used: they stand in this order, the default one last"
FALLBACK = "give the other agent the capability, too; `retry.change_agent` and `limits.on_limit: fall_back` say when"
"""What is said of another agent that falls in."""
ASSISTANT = "what an agent means is asked of it again here, and then of one that can `extract`"
"""What is said of an agent that reads what others mean."""


@dataclass(slots=True)
class Defaults:
    """What the other files say about all policies."""

    stall: timedelta = timedelta(minutes=1)
    visits: int | None = None
    multiplier: float = 1.0
    agents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The registry by id; empty: none came along."""


@dataclass(slots=True)
class ConvertedPolicies:
    """What became of the policies."""

    document: dict[str, Any]
    prompts: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    """By phase: the policy, and what its agent is to be told."""
    variants: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Agents with a model of their own for one phase, by id."""


def policies_of(root: Fields, defaults: Defaults) -> ConvertedPolicies:
    """Give policies.yaml; raises `ConfigErrors` where a value has a wrong type, or a phase leads nowhere."""
    root.version()
    default, result = root.text("default_policy"), ConvertedPolicies({})
    policies: list[_Policy] = []
    for name, node in _entries(root):
        if isinstance(node.value, dict):
            policies.append(_Policy(Fields(root.reading, node), defaults, result, name, node))
        elif name == "default_policy" and default is None:
            default = str(root.reading.take(node))
            reason = "it stands among the policies, where that set-up takes it for one and refuses the file"
            root.reading.note("changed", node, f"{reason}; it is taken as the default policy")
        else:
            root.reading.note("lost", node, "no policy: a policy is a mapping with phases")
    if not policies:
        raise root.refuse("there is no policy here", "policies")
    if default is not None:
        match = next((policy for policy in policies if default in (policy.raw, policy.name)), None)
        if match is None:
            choices = ", ".join(policy.raw for policy in policies)
            raise root.refuse(f"there is no policy {default}; there are {choices}", "default_policy")
        default = result.document["default_policy"] = match.name
    policies.sort(key=lambda policy: (policy.raw == default or policy.name == default, -policy.priority))
    all_types = [*_TYPES, *(word for policy in policies for word in policy.types)]
    result.document["policies"] = {
        policy.name: policy.finished(policy.types or (all_types if policy.name == default else []))
        for policy in policies
    }
    return result


def _entries(root: Fields) -> list[tuple[str, Node]]:
    node = root.entry("policies")
    if node is None or not isinstance(node.value, list):
        return list(node.entries.items()) if node else []
    policies = [(Fields(root.reading, item), item) for item in node.items]
    return [(policy.text("id") or policy.text("name") or "policy", item) for policy, item in policies]


class _Policy:
    def __init__(self, fields: Fields, defaults: Defaults, made: ConvertedPolicies, raw: str, node: Node) -> None:
        self.reading, self.defaults, self.made, self.raw = fields.reading, defaults, made, raw
        self.name, self.phases = name_of(raw), list[dict[str, Any]]()
        if self.name != raw:
            self.reading.remark("changed", node, f"it is called {self.name} here")
        trigger = fields.section("trigger")
        priority = fields.whole("priority") or 50
        self.priority = trigger.whole("priority") or priority
        fields.note_changed("priority", _ORDER)
        self.types, self.labels = fields.words("issue_types"), trigger.words("patterns")
        if len(self.labels) > 1:
            reason = f"an issue must carry all labels of a `match` here; only {self.labels[0]} is asked for"
            trigger.note_changed("patterns", f"{reason}; the others need a policy each")
        trigger.note_changed("priority", _ORDER)
        if self.labels:
            self.types = self.types or list(_TYPES)
        if trigger.text("type") == "manual":
            self.types, self.labels = [], []
        title, text = fields.text("name"), fields.text("description")
        self.description = ": ".join(filter(None, (title if title != raw else "", text)))
        if fields.flag("require_hitl"):
            fields.note_lost("a person is asked where a phase with `human` says so; add one", "require_hitl")
        enabled = ["fallback_enabled"] if fields.flag("fallback_enabled") else []
        fields.note_lost(FALLBACK, "fallback_agent", "fallback_mappings", *enabled)
        self.base = bounded(fields.span("timeout_base_ms") or _BASE, defaults.multiplier)
        self.stall = fields.span("stall_threshold_ms") or defaults.stall
        self.retry = self._retry(fields.section("retry"))
        self._read_phases(fields)

    def finished(self, types: list[str]) -> dict[str, Any]:
        """Give the policy, as the file holds it; `types`: those of the issues that it is for."""
        labels = {"labels": self.labels[:1]} if self.labels else {}
        match = {"types": list(dict.fromkeys(types))} | labels if types or labels else None
        description = {"description": self.description} if self.description else {}
        return description | {"match": match, "phases": self.phases}

    def _retry(self, fields: Fields) -> dict[str, Any]:
        retry: dict[str, Any] = {}
        if (attempts := fields.whole("max_attempts", least=1)) is not None:
            retry["max_attempts"] = min(attempts, 100)
        backoff = fields.text("backoff_strategy") or fields.text("backoff")
        if backoff is not None:
            retry["backoff"] = "constant" if backoff == "fixed" else backoff
            if retry["backoff"] not in ("exponential", "linear", "constant"):
                message = f"expected exponential, linear or fixed, found {backoff!r}"
                raise fields.refuse(message, "backoff_strategy", "backoff")
        first, longest = fields.span("initial_delay_ms"), fields.span("max_delay_ms")
        if first is not None:
            if longest is not None and first > longest:
                fields.note_changed("initial_delay_ms", "no delay is longer than max_delay_ms")
            retry["initial_delay"] = format_duration(min(first, longest or timedelta(minutes=5)))
        if longest is not None:
            retry["max_delay"] = format_duration(longest)
        return retry

    # --- phases ---------------------------------------------------------------------------------------------------

    def _read_phases(self, policy: Fields) -> None:
        phases = [Fields(self.reading, node) for node in policy.items("phases")]
        if not phases:
            raise policy.refuse("no phases", "phases")
        raw = [phase.text("name") or "" for phase in phases]
        self.names = {word: name_of(word) for word in raw}
        for index, (fields, word) in enumerate(zip(phases, raw, strict=True)):
            if not word or raw.index(word) != index or list(self.names.values()).count(self.names[word]) > 1:
                raise fields.refuse("a phase needs a name of its own", "name")
            if self.names[word] != word:
                fields.note_changed("name", f"it is called {self.names[word]} here")
        self.loops = any("transitions" in fields for fields in phases)
        for index, (fields, word) in enumerate(zip(phases, raw, strict=True)):
            missing = [word for word in fields.words("depends_on") if word not in raw[:index]]
            if missing:
                reason = f"phases are gone through in the order of the list; {missing[0]} is not before it"
                fields.note_lost(reason, "depends_on")
            beyond = self.names[raw[index + 1]] if index + 1 < len(raw) else CLOSE
            self._read_phase(fields, self.names[word], beyond)
        by_name = {phase["name"]: phase for phase in self.phases}
        for phase in self.phases:  # a session keeps its access: the phases that share one have the same
            source = by_name.get(phase.get("session", {}).get("reuse_from", ""))
            if source is not None and source["access"] != phase["access"]:
                source["access"] = phase["access"] = "write"

    def _read_phase(self, fields: Fields, name: str, beyond: str) -> None:
        capabilities = [name_of(word) for word in fields.words("capabilities")]
        phase: dict[str, Any] = {"name": name, "capabilities": capabilities or [name]}
        if not capabilities:
            reason = f"without capabilities every agent fits there; here one with the capability {name}"
            self.reading.remark("changed", fields.node, reason)
        phase["access"] = "read" if capabilities and _READERS.issuperset(capabilities) else "write"
        self._agent(fields, phase)
        timeout = fields.span("timeout_ms") or bounded(self.base, fields.number("timeout_multiplier") or 1.0)
        phase |= {"timeout": format_duration(timeout), "stall": {"after": format_duration(self.stall)}}
        retry = self.retry | self._retry(fields.section("retry_policy"))
        if (iterations := fields.whole("max_iterations", least=1)) is not None:
            retry["max_attempts"] = min(iterations, 100)
        visits = fields.whole("max_visits", least=1) or self.defaults.visits or (_VISITS if self.loops else None)
        if visits is not None:
            phase["max_visits"] = min(visits, _MOST_VISITS)
            if visits > _MOST_VISITS:
                fields.note_changed("max_visits", f"{_MOST_VISITS} at most")
        source = fields.text("reuse_session_from_phase")
        if source is not None and self.names.get(source) in (None, name):
            fields.note_lost(f"{source} is no other phase of this policy", "reuse_session_from_phase")
        elif source is not None:
            phase["session"] = {"reuse_from": self.names[source]}
        self._read_prompt(fields, name)
        fields.note_lost(ASSISTANT, "worker_assistant")
        fields.note_lost(FALLBACK, "fallback_agent", *(["fallback_enabled"] if fields.flag("fallback_enabled") else []))
        phase["next"], added = self._leads(fields, name, beyond)
        if "failed" in phase["next"]:
            retry["max_attempts"] = 1  # there a failure leads on at once
        self.phases += [phase | ({"retry": retry} if retry else {}), *added]

    def _agent(self, fields: Fields, phase: dict[str, Any]) -> None:
        """Let the phase take the agent that it names, and no other, or one with the model that it names."""
        chosen, model = fields.text("agent"), fields.text("model")
        registry = self.defaults.agents
        if chosen is not None and chosen not in registry:
            remedy = "agents.yaml does not have it" if registry else "import the folder with its agents.yaml"
            fields.note_lost(f"a phase names no agent, but what one must be able to do; {remedy}", "agent")
        if model is not None:
            provider, _, word = model.partition("/")
            needs = set(phase["capabilities"])
            fits = [
                agent for id_, agent in registry.items()
                if id_ == chosen or (chosen is None and needs <= set(agent["capabilities"]))
            ]  # fmt: skip
            if not word or not fits:
                reason = "no agent is known to give this model to; give one `runner: {provider, model}`"
                fields.note_lost(reason, "model")
                return
            base = max(fits, key=lambda agent: agent["priority"])
            tag = f"{base['id']}-{self.name}-{phase['name']}"[:64]
            runner = base["runner"] | {"provider": provider, "model": word}
            agent: dict[str, Any] = base | {
                "id": tag,
                "capabilities": phase["capabilities"],
                "runner": runner,
                "tags": [],
            }
            self.made.variants[tag] = agent
            fields.note_changed("model", f"it is the model of an agent of its own here: {tag}")
        elif chosen in registry:
            agent, tag = registry[chosen], f"agent-{chosen}"[:64]
        else:
            return
        agent["tags"] = list(dict.fromkeys([*agent["tags"], tag]))
        agent["capabilities"] = list(dict.fromkeys([*agent["capabilities"], *phase["capabilities"]]))
        phase["tags"] = [tag]

    def _read_prompt(self, fields: Fields, name: str) -> None:
        """Carry over what the agent of a phase is to do: it becomes a part of its prompt."""
        criteria = "; ".join(fields.words("success_criteria"))
        done = f"It is done when this holds: {criteria}" if criteria else None
        text = "\n".join(filter(None, (fields.text("description"), done)))
        if name in KINDS:
            fields.note_lost("a phase of this name has no prompt of its own here; rename it", "description")
        elif text:
            self.made.prompts.setdefault(name, []).append((self.name, text))

    # --- what leads where -----------------------------------------------------------------------------------------

    def _leads(self, fields: Fields, name: str, beyond: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Give the edges of a phase, and the phases that they need."""
        transitions, added, edges = fields.section("transitions"), list[dict[str, Any]](), dict[str, str]()
        for key, result in _OUTCOMES.items():
            target = self._target(transitions, key, name, added)
            if target is not None:
                edges[result] = target
        unclear = "an agent that says nothing clear is asked once more, and then it is a failure"
        transitions.note_lost(unclear, "on_unclear")
        if fields.flag("require_approval"):
            approval = self._free(f"{name}-approval")
            edges |= {result: approval for result in _OUTCOMES.values() if result not in edges}
            added.append(
                {"name": approval, "human": {"ask": f"Approve {name}?", "approved": name, "changes_requested": name}}
            )
            fields.note_changed(
                "require_approval",
                f"there an issue is blocked, and whatever a person does it goes through {name} again and no further; "
                f"it is so here, which `ashep policy check` refuses: let {approval} lead to {beyond}",
            )
        edges.setdefault("success", beyond)
        return edges, added

    def _target(self, transitions: Fields, key: str, name: str, added: list[dict[str, Any]]) -> str | None:
        node = transitions.entry(key)
        if node is None or node.value is None:
            return None
        if isinstance(node.value, str):
            return self._phase_at(node)
        wish = transitions.section(key)
        if "type" not in wish:
            return self._decision(wish, node, self._free(f"{name}-{key.replace('_', '-')}"), added)
        kind = wish.text("type")
        wish.note_lost("the reason of a step is what the agent said", "reason")
        if kind not in ("advance", "retry", "block", "close", "jump_back"):
            raise wish.refuse(f"expected advance, jump_back, retry, block or close, found {kind!r}")
        if kind in ("retry", "block"):
            return None  # another attempt, and then it waits for a person
        goal = wish.entry("jump_target_phase") or wish.entry("next_phase")
        if kind != "close" and goal is None:
            raise wish.refuse(f"a transition of type {kind} needs next_phase or jump_target_phase")
        return CLOSE if kind == "close" or goal is None else self._phase_at(goal)

    def _decision(self, wish: Fields, node: Node, name: str, added: list[dict[str, Any]]) -> str:
        """Add a phase that says by a verdict where an issue goes on."""
        capability, goals = wish.text("capability"), wish.entry("allowed_destinations")
        words = wish.words("allowed_destinations")
        if capability is None or goals is None or not words:
            raise wish.refuse("a decision needs a capability and allowed_destinations")
        edges = {f"to-{place}"[:64]: place for place in (self._phase_at(goals, word) for word in words)}
        if prompt := wish.text("prompt"):
            self.made.prompts.setdefault(name, []).append((self.name, prompt))
        unsure = "a verdict is one or it is none; an agent that is not sure asks a person (`needs_human`)"
        wish.note_lost(unsure, "confidence_thresholds")
        if wish.flag("messaging"):
            wish.note_lost("every agent is shown what the runs before it reported", "messaging")
        added.append({
            "name": name, "capabilities": [name_of(capability)], "access": "read", "verdicts": list(edges),
            "max_visits": min(self.defaults.visits or _VISITS, _MOST_VISITS), "next": edges,
        })  # fmt: skip
        reason = (
            f"there an agent chooses the next phase; here it gives a verdict in the phase {name}, and that leads on"
        )
        self.reading.remark("changed", node, reason)
        return name

    def _phase_at(self, node: Node, word: str | None = None) -> str:
        """Give the phase that a value names; `word`: that which an item of it says."""
        word = word or str(self.reading.take(node))
        if word != CLOSE and word not in self.names:
            raise self.reading.refuse(node, f"there is no phase {word}; there are {', '.join(self.names)}")
        return CLOSE if word == CLOSE else self.names[word]

    def _free(self, name: str) -> str:
        word = name[:60]
        while word in self.names.values():
            word += "_"
        return word


def name_of(text: str) -> str:
    """Make a name of ours of a word of theirs."""
    word = base_types.name_of(text, "x")
    return f"{word}_" if word in (CLOSE, "park", "success", "failed", "partial") else word
