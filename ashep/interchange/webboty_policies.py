"""Policies of webboty/agent-shepherd -> policies.yaml.

Where that set-up asks an agent which phase is next, a phase of its own says so by a verdict here: agents report, and
the policy leads. Where it blocks an issue for an approval that nothing reads, that is how it is here, too, for
`ashep policy check` to say.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ashep.config.nodes import Node
from ashep.core.policy import language
from ashep.core.policy.language import format_duration
from ashep.core.policy.policies import CLOSE
from ashep.interchange.fields import Fields, bounded
from ashep.interchange.notes import Note, Reading
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
class Made:
    """What became of the policies."""

    document: dict[str, Any]
    prompts: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    """By phase: the policy, and what its agent is to be told."""
    variants: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Agents with a model of their own for one phase, by id."""


def policies_of(reading: Reading, defaults: Defaults) -> Made:
    """Give policies.yaml; raises `ConfigErrors` where a value has a wrong type, or a phase leads nowhere."""
    root = Fields(reading, reading.root)
    root.version()
    default = root.text("default_policy")
    listed: list[tuple[str, Node]] = []
    for name, node in _entries(root):
        if isinstance(node.value, dict):
            listed.append((name, node))
        elif name == "default_policy" and default is None:
            default = str(reading.take(node))
            why = "it stands among the policies, where that set-up takes it for one and refuses the file"
            reading.changed(node, f"{why}; it is taken as the default policy")
        else:
            reading.lost(node, "no policy: a policy is a mapping with phases")
    if not listed:
        raise reading.refuse(root.at("policies") or reading.root, "there is no policy here")
    made = Made({"version": 1})
    built = [_Policy(reading, defaults, made, name, node) for name, node in listed]
    if default is not None:
        default = _default(reading, root, built, default)
        made.document["default_policy"] = default
    built.sort(key=lambda one: (one.raw == default or one.name == default, -one.priority))
    types = [type_ for one in built for type_ in one.types]
    for one in built:
        own = one.types or ([*_TYPES, *types] if one.name == default else [])
        one.policy["match"] = {"types": list(dict.fromkeys(own))} | one.labels if own or one.labels else None
    made.document["policies"] = {one.name: one.finished() for one in built}
    return made


def _entries(root: Fields) -> list[tuple[str, Node]]:
    node = root.at("policies")
    if node is not None and isinstance(node.value, list):
        return [(_id(Fields(root.reading, item)), item) for item in node.value]
    return list(node.value.items()) if node is not None and isinstance(node.value, dict) else []


def _id(policy: Fields) -> str:
    return policy.text("id") or policy.text("name") or "policy"


def _default(reading: Reading, root: Fields, built: "list[_Policy]", default: str) -> str:
    for one in built:
        if default in (one.raw, one.name):
            return one.name
    known = ", ".join(one.raw for one in built)
    raise reading.refuse(root.at("default_policy") or reading.root, f"there is no policy {default}; there are {known}")


class _Policy:
    def __init__(self, reading: Reading, defaults: Defaults, made: Made, raw: str, node: Node) -> None:
        self.reading, self.defaults, self.made, self.raw = reading, defaults, made, raw
        self.name = name_of(raw)
        if self.name != raw:
            reading.notes.append(Note("changed", node.key, node.line, f"it is called {self.name} here", reading.name))
        self.fields = Fields(reading, node)
        self.priority = self.fields.whole("priority") or 50
        self.fields.changed("priority", _ORDER)
        self.types = self.fields.words("issue_types")
        self.labels: dict[str, Any] = {}
        self._trigger(self.fields.of("trigger"))
        title, said = self.fields.text("name"), self.fields.text("description")
        self.policy: dict[str, Any] = {"description": ": ".join(filter(None, (title if title != raw else "", said)))}
        self._unread()
        self.base = bounded(self.fields.span("timeout_base_ms") or _BASE, defaults.multiplier)
        self.stall = self.fields.span("stall_threshold_ms") or defaults.stall
        self.retry = self._retry(self.fields.of("retry"), {})
        self.phases: list[dict[str, Any]] = []
        self._walk()

    def finished(self) -> dict[str, Any]:
        return {key: value for key, value in self.policy.items() if value != ""} | {"phases": self.phases}

    def _trigger(self, trigger: Fields) -> None:
        patterns = trigger.words("patterns")
        if len(patterns) > 1:
            why = f"an issue must carry all labels of a `match` here; only {patterns[0]} is asked for"
            trigger.changed("patterns", f"{why}; the others need a policy each")
        if patterns:
            self.labels = {"labels": patterns[:1]}
            self.types = self.types or list(_TYPES)
        self.priority = trigger.whole("priority") or self.priority
        trigger.changed("priority", _ORDER)
        if trigger.text("type") == "manual":
            self.types, self.labels = [], {}

    def _unread(self) -> None:
        fields = self.fields
        if fields.flag("require_hitl"):
            fields.lost("require_hitl", "a person is asked where a phase with `human` says so; add one")
        for key in ("fallback_agent", "fallback_mappings"):
            fields.lost(key, FALLBACK)
        if fields.flag("fallback_enabled"):
            fields.lost("fallback_enabled", FALLBACK)

    def _retry(self, given: Fields, before: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = dict(before)
        if (attempts := given.whole("max_attempts", least=1)) is not None:
            found["max_attempts"] = min(attempts, 100)
        backoff = given.text("backoff_strategy") or given.text("backoff")
        if backoff is not None:
            found["backoff"] = {"fixed": "constant"}.get(backoff, backoff)
            if found["backoff"] not in ("exponential", "linear", "constant"):
                node = given.at("backoff_strategy") or given.at("backoff") or self.reading.root
                raise self.reading.refuse(node, f"expected exponential, linear or fixed, found {backoff!r}")
        first, most = given.span("initial_delay_ms"), given.span("max_delay_ms")
        if first is not None:
            if most is not None and first > most:
                given.changed("initial_delay_ms", "no delay is longer than max_delay_ms")
            found["initial_delay"] = format_duration(min(first, most or timedelta(minutes=5)))
        if most is not None:
            found["max_delay"] = format_duration(most)
        return found

    # --- phases ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        nodes = self.fields.items("phases")
        if not nodes:
            raise self.reading.refuse(self.fields.at("phases") or self.fields.node or self.reading.root, "no phases")
        all_ = [Fields(self.reading, node) for node in nodes]
        raw = [one.text("name") or "" for one in all_]
        self.names = {word: name_of(word) for word in raw}
        for index, (fields, word) in enumerate(zip(all_, raw, strict=True)):
            if not word or raw.index(word) != index or list(self.names.values()).count(self.names[word]) > 1:
                node = fields.at("name") or nodes[index]
                raise self.reading.refuse(node, "a phase needs a name of its own")
            if self.names[word] != word:
                fields.changed("name", f"it is called {self.names[word]} here")
        self.loops = any("transitions" in fields for fields in all_)
        for index, fields in enumerate(all_):
            missing = [word for word in fields.words("depends_on") if word not in raw[:index]]
            if missing:
                fields.lost(
                    "depends_on", f"phases are gone through in the order of the list; {missing[0]} is not before it"
                )
            beyond = self.names[raw[index + 1]] if index + 1 < len(raw) else CLOSE
            self._phase(fields, self.names[raw[index]], beyond)
        by_name = {phase["name"]: phase for phase in self.phases}  # a session keeps its access
        for phase in self.phases:
            source = by_name.get(phase.get("session", {}).get("reuse_from", ""))
            if source is not None and source["access"] != phase["access"]:
                source["access"] = phase["access"] = "write"

    def _phase(self, fields: Fields, name: str, beyond: str) -> None:
        capabilities = [name_of(word) for word in fields.words("capabilities")]
        phase: dict[str, Any] = {"name": name, "capabilities": capabilities or [name]}
        if not capabilities and fields.node is not None:
            why = f"without capabilities every agent fits there; here one with the capability {name}"
            self.reading.notes.append(Note("changed", fields.node.key, fields.node.line, why, self.reading.name))
        phase["access"] = "read" if capabilities and _READERS.issuperset(capabilities) else "write"
        self._agent(fields, phase)
        given = fields.span("timeout_ms")
        phase["timeout"] = format_duration(given or bounded(self.base, fields.number("timeout_multiplier") or 1.0))
        phase["stall"] = {"after": format_duration(self.stall)}
        retry = self._retry(fields.of("retry_policy"), self.retry)
        if (iterations := fields.whole("max_iterations", least=1)) is not None:
            retry["max_attempts"] = min(iterations, 100)
        visits = fields.whole("max_visits", least=1) or self.defaults.visits or (_VISITS if self.loops else None)
        if visits is not None:
            phase["max_visits"] = min(visits, _MOST_VISITS)
            if visits > _MOST_VISITS:
                fields.changed("max_visits", f"{_MOST_VISITS} at most")
        self._session(fields, phase)
        self._told(fields, name)
        later = self._leads(fields, name, beyond, phase)
        if "failed" in phase["next"]:
            retry = retry | {"max_attempts": 1}  # there a failure leads on at once
        if retry:
            phase["retry"] = retry
        self.phases += [phase, *later]

    def _agent(self, fields: Fields, phase: dict[str, Any]) -> None:
        chosen, model = fields.text("agent"), fields.text("model")
        registry = self.defaults.agents
        if chosen is not None and chosen not in registry:
            known = "agents.yaml does not have it" if registry else "import the folder with its agents.yaml"
            fields.lost("agent", f"a phase names no agent, but what one must be able to do; {known}")
        if model is None:
            if chosen in registry:
                self._tagged(registry[chosen], phase, f"agent-{chosen}"[:64])
            return
        provider, _, word = model.partition("/")
        fits = [one for id_, one in registry.items() if id_ == chosen or (chosen is None and _can(one, phase))]
        if not word or not fits:
            fields.lost("model", "no agent is known to give this model to; give one `runner: {provider, model}`")
            return
        base = max(fits, key=lambda one: one.get("priority", 0))
        id_ = f"{base['id']}-{self.name}-{phase['name']}"[:64]
        runner = base["runner"] | {"provider": provider, "model": word}
        variant = base | {"id": id_, "capabilities": list(phase["capabilities"]), "runner": runner, "tags": []}
        self._tagged(variant, phase, id_)
        self.made.variants[id_] = variant
        fields.changed("model", f"it is the model of an agent of its own here: {id_}")

    def _tagged(self, agent: dict[str, Any], phase: dict[str, Any], tag: str) -> None:
        """Let the phase take this agent and no other; it has to be able to do what the phase asks for."""
        agent["tags"] = list(dict.fromkeys([*agent.get("tags", []), tag]))
        agent["capabilities"] = list(dict.fromkeys([*agent["capabilities"], *phase["capabilities"]]))
        phase["tags"] = [tag]

    def _session(self, fields: Fields, phase: dict[str, Any]) -> None:
        source = fields.text("reuse_session_from_phase")
        if source is None:
            return
        if self.names.get(source) in (None, phase["name"]):
            fields.lost("reuse_session_from_phase", f"{source} is no other phase of this policy")
            return
        phase["session"] = {"reuse_from": self.names[source]}

    def _told(self, fields: Fields, name: str) -> None:
        """Carry over what the agent of a phase is told: it becomes a part of its prompt."""
        said = [fields.text("description") or ""]
        if criteria := fields.words("success_criteria"):
            said.append("It is done when this holds: " + "; ".join(criteria))
        text = "\n".join(filter(None, said))
        if name in KINDS:
            fields.lost("description", "a phase of this name has no prompt of its own here; rename it")
        elif text:
            self.made.prompts.setdefault(name, []).append((self.name, text))
        fields.lost("worker_assistant", ASSISTANT)
        for key in ("fallback_agent", "fallback_enabled"):
            if key == "fallback_agent" or fields.flag(key):
                fields.lost(key, FALLBACK)

    # --- what leads where -----------------------------------------------------------------------------------------

    def _leads(self, fields: Fields, name: str, beyond: str, phase: dict[str, Any]) -> list[dict[str, Any]]:
        """Write the edges of a phase; give the phases that they need."""
        transitions, later = fields.of("transitions"), list[dict[str, Any]]()
        edges: dict[str, str] = {}
        for key, result in _OUTCOMES.items():
            target = self._target(transitions, key, name, later)
            if target is not None:
                edges[result] = target
        why = "an agent that says nothing clear is asked once more, and then it is a failure"
        transitions.lost("on_unclear", why)
        if fields.flag("require_approval"):
            open_ = [result for result in _OUTCOMES.values() if result not in edges]
            edges |= dict.fromkeys(open_, self._approval(fields, name, beyond, later))
        edges.setdefault("success", beyond)
        phase["next"] = edges
        return later

    def _approval(self, fields: Fields, name: str, beyond: str, later: list[dict[str, Any]]) -> str:
        asked = self._free(f"{name}-approval")
        human = {"ask": f"Approve {name}?", "approved": name, "changes_requested": name}
        later.append({"name": asked, "human": human})
        why = f"there an issue is blocked, and whatever a person does it goes through {name} again and no further"
        fields.changed(
            "require_approval",
            f"{why}; it is so here, which `ashep policy check` refuses: let {asked} lead to {beyond}",
        )
        return asked

    def _target(self, transitions: Fields, key: str, name: str, later: list[dict[str, Any]]) -> str | None:
        node = transitions.at(key)
        if node is None or node.value is None:
            return None
        if isinstance(node.value, str):
            return self._known(node, str(self.reading.take(node)))
        wish = transitions.of(key)
        if "type" in wish:
            return self._typed(wish, node)
        return self._decision(wish, node, self._free(f"{name}-{key.replace('_', '-')}"), later)

    def _typed(self, wish: Fields, node: Node) -> str | None:
        kind = wish.text("type")
        wish.lost("reason", "the reason of a step is what the agent said")
        if kind not in ("advance", "retry", "block", "close", "jump_back"):
            raise self.reading.refuse(node, f"expected advance, jump_back, retry, block or close, found {kind!r}")
        if kind in ("retry", "block"):
            return None  # another attempt, and then it waits for a person
        goal = wish.at("jump_target_phase") or wish.at("next_phase")
        if kind == "close":
            return CLOSE
        if goal is None:
            raise self.reading.refuse(node, f"a transition of type {kind} needs next_phase or jump_target_phase")
        return self._known(goal, str(self.reading.take(goal)))

    def _decision(self, wish: Fields, node: Node, name: str, later: list[dict[str, Any]]) -> str:
        """A phase that says where it goes on, by a verdict."""
        capability, goals = wish.text("capability"), wish.at("allowed_destinations")
        words = wish.words("allowed_destinations")
        if capability is None or goals is None or not words:
            raise self.reading.refuse(node, "a decision needs a capability and allowed_destinations")
        places = [self._known(goals, word) for word in words]
        edges = {f"to-{place}"[:64]: place for place in places}
        if prompt := wish.text("prompt"):
            self.made.prompts.setdefault(name, []).append((self.name, prompt))
        unsure = "a verdict is one or it is none; an agent that is not sure asks a person (`needs_human`)"
        wish.lost("confidence_thresholds", unsure)
        if wish.flag("messaging"):
            wish.lost("messaging", "every agent is shown what the runs before it reported")
        phase = {"name": name, "capabilities": [name_of(capability)], "access": "read", "verdicts": list(edges)}
        visits = {"max_visits": min(self.defaults.visits or _VISITS, _MOST_VISITS)}
        later.append(phase | visits | {"next": edges})
        why = f"there an agent chooses the next phase; here it gives a verdict in the phase {name}, and that leads on"
        self.reading.notes.append(Note("changed", node.key, node.line, why, self.reading.name))
        return name

    def _known(self, node: Node, word: str) -> str:
        if word == CLOSE:
            return CLOSE
        if word not in self.names:
            raise self.reading.refuse(node, f"there is no phase {word}; there are {', '.join(self.names)}")
        return self.names[word]

    def _free(self, name: str) -> str:
        word = name[:60]
        while word in self.names.values():
            word += "_"
        return word


def _can(agent: dict[str, Any], phase: dict[str, Any]) -> bool:
    return set(phase["capabilities"]) <= set(agent["capabilities"])


def name_of(text: str) -> str:
    """Make a name of ours of a word of theirs."""
    word = language.name_of(text, "x")
    return f"{word}_" if word in (CLOSE, "park", "success", "failed", "partial") else word
