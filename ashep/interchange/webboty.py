"""The YAML of webboty/agent-shepherd -> our files: its policies, its registry and its configuration, or one of them."""

from pathlib import Path
from typing import Any

from ashep.config.nodes import Problem
from ashep.core.policy.language import format_duration
from ashep.interchange.fields import Fields
from ashep.interchange.notes import Imported, Note, Reading, read_yaml, refused
from ashep.interchange.prompts import prompt_files
from ashep.interchange.webboty_policies import ASSISTANT, FALLBACK, Defaults, Made, name_of, policies_of
from ashep.interchange.writing import as_yaml

FILES = ("policies.yaml", "agents.yaml", "config.yaml")
_SPEEDS = {"fast": "fast", "balanced": "normal", "thorough": "slow", "slow": "slow"}

_ELSEWHERE = {
    "ui": "`ashep ui` shows the page; `ui` in config.yaml says where",
    "fallback": FALLBACK,
    "workflow": "an issue whose `policy:` label names no policy is held, and `ashep status` says so",
    "hitl": "whoever needs a person says why in words of their own",
    "cleanup": "say `journal: {keep: 30d}`; `ashep journal prune` deletes at once",
    "retention": "say `journal: {keep: 30d}`; `ashep journal prune` deletes at once",
    "worker_assistant": ASSISTANT,
    "session_continuation": "OpenCode compacts a session that grows too long",
}
_LOOPS = "every phase has `max_visits`, every cycle `limits`; what goes beyond is parked for a person"
_HEAD = (
    "Made of {what} of webboty/agent-shepherd.",
    "Only here: bounds on the runs and the time of a cycle (`limits`), and a phase is `read` where its capabilities are"
    " no reason to change files. A call of a tool that is silent is no stall (`stall.tool_timeout`).",
)


def read_webboty(place: Path) -> Imported:
    """Read a folder with `policies.yaml`, `agents.yaml` and `config.yaml`, or one such file; raises `ConfigErrors`."""
    readings, notes = _readings(place)
    defaults, files = Defaults(), dict[str, str]()
    agents = _agents(readings["agents"]) if "agents" in readings else None
    config = _config(readings["config"], defaults) if "config" in readings else None
    if agents is not None:
        defaults.agents = {agent["id"]: agent for agent in agents}
    made = policies_of(readings["policies"], defaults) if "policies" in readings else Made({})
    for reading in readings.values():
        reading.rest()
    told = {kind: sorted(reading.notes, key=lambda note: note.line) for kind, reading in readings.items()}
    if "policies" in readings:
        files["policies.yaml"] = as_yaml(made.document, _head(readings["policies"]), told["policies"])
        files |= prompt_files(made.prompts)
    if agents is not None:
        registry = {"version": 1, "agents": [*agents, *made.variants.values()]}
        files["agents.yaml"] = as_yaml(registry, _head(readings["agents"])[:1], told["agents"])
    if config is not None:
        files["config.yaml"] = as_yaml({"version": 1} | config, _head(readings["config"])[:1], told["config"])
    return Imported(files, (*notes, *(note for kind in told for note in told[kind])))


def _head(reading: Reading) -> list[str]:
    return [line.format(what=reading.file.name) for line in _HEAD]


def _readings(place: Path) -> tuple[dict[str, Reading], list[Note]]:
    if not place.is_dir():
        reading = read_yaml(place)
        return {_kind(reading): reading}, []
    folder = place / "config" if (place / "config").is_dir() else place
    found = {name: folder / name for name in FILES if (folder / name).is_file()}
    if not found:
        raise refused(place, Problem("missing-file", f"there is none of {', '.join(FILES)} in it", None, None))
    others = sorted(file for file in folder.glob("*.y*ml") if file.name not in FILES)
    notes = [Note("lost", "(the file)", 1, "nothing here reads such a file", file.name) for file in others]
    return {name.removesuffix(".yaml"): read_yaml(file, name) for name, file in found.items()}, notes


def _kind(reading: Reading) -> str:
    keys = Fields(reading, reading.root).names()
    if "policies" in keys or "agents" in keys:
        return "policies" if "policies" in keys else "agents"
    known = ("worker", "monitor", "loop_prevention", *_ELSEWHERE)
    if not set(keys) & set(known):
        message = "neither policies, agents nor a configuration of webboty/agent-shepherd"
        raise reading.refuse(reading.root, message)
    return "config"


# --- the registry -----------------------------------------------------------------------------------------------------


def _agents(reading: Reading) -> list[dict[str, Any]]:
    root = Fields(reading, reading.root)
    root.version()
    agents = [agent for node in root.items("agents") if (agent := _agent(Fields(reading, node))) is not None]
    if not agents:
        raise reading.refuse(root.at("agents") or reading.root, "there is no agent here")
    return agents


def _agent(fields: Fields) -> dict[str, Any] | None:
    reading, node = fields.reading, fields.node
    raw = fields.text("id")
    if raw is None or node is None:
        raise reading.refuse(node or reading.root, "an agent needs an id")
    if "active" in fields and not fields.flag("active"):
        reading.lost(node, f"{raw} is not active; an agent that is not to be chosen is left out")
        return None
    id_ = name_of(raw)
    if id_ != raw:
        fields.changed("id", f"it is called {id_} here")
    for key in ("name", "description"):
        fields.text(key)
        fields.lost(key, "an agent has an id and no more words here")
    limits = fields.of("constraints")
    agent: dict[str, Any] = {"id": id_, "capabilities": [name_of(word) for word in fields.words("capabilities")]}
    if not agent["capabilities"]:
        raise reading.refuse(node, "an agent needs a capability")
    agent["read_write"] = "read" if limits.flag("read_only") else "write"
    tier = limits.text("performance_tier") or "balanced"
    if tier not in _SPEEDS:
        raise reading.refuse(limits.at("performance_tier") or node, f"expected one of {', '.join(_SPEEDS)}")
    for key in limits.names():
        if key not in ("read_only", "performance_tier"):
            limits.lost(key, "an agent is found by what it can do and by its tags")
    metadata = fields.of("metadata")
    agent["tags"] = [name_of(word) for word in metadata.words("tags")]
    for key in metadata.names():
        if key != "tags":
            metadata.lost(key, "nothing here is decided by it")
    agent["runner"] = {"agent_slug": fields.text("opencode_agent") or raw} | _model(fields)
    agent["performance"] = {"speed": _SPEEDS[tier]}
    agent["priority"] = 10 if (priority := fields.whole("priority")) is None else priority
    return agent


def _model(fields: Fields) -> dict[str, Any]:
    provider, model = fields.text("provider_id"), fields.text("model_id")
    if provider is not None and model is not None:
        return {"provider": provider, "model": model}
    for key in ("provider_id", "model_id"):
        fields.lost(key, "a model is chosen by provider and model together")
    return {}


# --- the configuration ------------------------------------------------------------------------------------------------


def _config(reading: Reading, defaults: Defaults) -> dict[str, Any]:
    root = Fields(reading, reading.root)
    root.version()
    made: dict[str, Any] = {}
    worker, monitor, loops = root.of("worker"), root.of("monitor"), root.of("loop_prevention")
    if (span := worker.span("poll_interval_ms")) is not None:
        made["tracker"] = {"poll_every": format_duration(span)}
    if (runs := worker.whole("max_concurrent_runs", least=1)) is not None:
        made["worker"] = {"max_concurrent_runs": min(runs, 64)}
        if runs > 64:
            worker.changed("max_concurrent_runs", "64 at most")
    if (span := monitor.span("poll_interval_ms")) is not None:
        made["monitor"] = {"check_every": format_duration(span)}
    defaults.stall = monitor.span("stall_threshold_ms") or defaults.stall
    defaults.multiplier = monitor.number("timeout_multiplier") or 1.0
    for key in ("stall_threshold_ms", "timeout_multiplier"):
        monitor.changed(key, "every phase says it for itself here; it went into those of the policies in this folder")
    defaults.visits = loops.whole("max_visits_default", least=1)
    loops.changed("max_visits_default", "every phase says it for itself here, as `max_visits`")
    for key in loops.names():
        if key != "max_visits_default":
            loops.lost(key, _LOOPS)
    for key, why in _ELSEWHERE.items():
        root.lost(key, why)
    return made
