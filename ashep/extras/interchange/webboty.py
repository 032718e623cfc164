"""The YAML of webboty/agent-shepherd -> our files: its policies, its registry and its configuration, or one of them."""

from pathlib import Path
from typing import Any

from ashep.config.findings import refused
from ashep.config.yaml_tree import YamlProblem
from ashep.core.policy.base_types import format_duration
from ashep.extras.interchange.import_report import Imported, ImportReading, Note, read_yaml
from ashep.extras.interchange.prompts import prompt_files
from ashep.extras.interchange.typed_fields import Fields
from ashep.extras.interchange.webboty_policies import ASSISTANT, FALLBACK, Defaults, name_of, policies_of
from ashep.extras.interchange.yaml_writer import as_yaml

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
_OF_PHASES = "every phase says it for itself here; it went into those of the policies in this folder"
_LOOPS = "every phase has `max_visits`, every cycle `limits`; what goes beyond is parked for a person"
_HEAD = (
    "Made of {what} of webboty/agent-shepherd.",
    "Only here: bounds on the runs and the time of a cycle (`limits`), and a phase is `read` where its capabilities are"
    " no reason to change files. A call of a tool that is silent is no stall (`stall.tool_timeout`).",
)


def read_webboty(place: Path) -> Imported:
    """Read a folder with `policies.yaml`, `agents.yaml` and `config.yaml`, or one such file; raises `ConfigErrors`."""
    readings, notes = _readings(place)
    roots = {kind: Fields(reading, reading.root) for kind, reading in readings.items()}
    documents, defaults, prompts, files = dict[str, dict[str, Any]](), Defaults(), dict[str, str](), dict[str, str]()
    if "agents" in roots:
        root = roots["agents"]
        root.version()
        agents = [agent for node in root.items("agents") if (agent := _agent(Fields(root.reading, node))) is not None]
        if not agents:
            raise root.refuse("there is no agent here", "agents")
        documents["agents"] = {"agents": agents}
        defaults.agents = {agent["id"]: agent for agent in agents}
    if "config" in roots:
        documents["config"] = _config(roots["config"], defaults)
    if "policies" in roots:
        result = policies_of(roots["policies"], defaults)
        documents["policies"], prompts = result.document, prompt_files(result.prompts)
        documents.get("agents", {"agents": []})["agents"] += result.variants.values()
    for kind, reading in readings.items():
        reading.rest()
        reading.notes.sort(key=lambda note: note.line)
        head = [line.format(what=reading.file.name) for line in _HEAD[: None if kind == "policies" else 1]]
        files[f"{kind}.yaml"] = as_yaml({"version": 1} | documents[kind], head, reading.notes)
        files |= prompts if kind == "policies" else {}
        notes += reading.notes
    return Imported(files, tuple(notes))


def _readings(place: Path) -> tuple[dict[str, ImportReading], list[Note]]:
    if not place.is_dir():
        reading = read_yaml(place)
        return {_kind(Fields(reading, reading.root)): reading}, []
    folder = place / "config" if (place / "config").is_dir() else place
    present = {name: folder / name for name in FILES if (folder / name).is_file()}
    if not present:
        raise refused(place, YamlProblem("missing-file", f"there is none of {', '.join(FILES)} in it"))
    others = sorted(file for file in folder.glob("*.y*ml") if file.name not in FILES)
    notes = [Note("lost", "(the file)", 1, "nothing here reads such a file", file.name) for file in others]
    return {name.removesuffix(".yaml"): read_yaml(file, name) for name, file in present.items()}, notes


def _kind(root: Fields) -> str:
    for kind in ("policies", "agents"):
        if kind in root.node.entries:
            return kind
    if root.node.entries.keys().isdisjoint(("worker", "monitor", "loop_prevention", *_ELSEWHERE)):
        raise root.refuse("neither policies, agents nor a configuration of webboty/agent-shepherd")
    return "config"


def _agent(fields: Fields) -> dict[str, Any] | None:
    raw = fields.text("id")
    if raw is None:
        raise fields.refuse("an agent needs an id")
    if "active" in fields and not fields.flag("active"):
        fields.reading.note("lost", fields.node, f"{raw} is not active; an agent that is not to be chosen is left out")
        return None
    if (name := name_of(raw)) != raw:
        fields.note_changed("id", f"it is called {name} here")
    fields.text("name")
    fields.text("description")
    fields.note_lost("an agent has an id and no more words here", "name", "description")
    limits, metadata = fields.section("constraints"), fields.section("metadata")
    capabilities = [name_of(word) for word in fields.words("capabilities")]
    if not capabilities:
        raise fields.refuse("an agent needs a capability")
    access = "read" if limits.flag("read_only") else "write"
    speed = _SPEEDS.get(limits.text("performance_tier") or "balanced")
    if speed is None:
        raise limits.refuse(f"expected one of {', '.join(_SPEEDS)}", "performance_tier")
    limits.note_others_lost("an agent is found by what it can do and by its tags")
    tags = [name_of(word) for word in metadata.words("tags")]
    metadata.note_others_lost("nothing here is decided by it")
    runner = {"agent_slug": fields.text("opencode_agent") or raw}
    provider, model = fields.text("provider_id"), fields.text("model_id")
    if provider is not None and model is not None:
        runner |= {"provider": provider, "model": model}
    else:
        fields.note_lost("a model is chosen by provider and model together", "provider_id", "model_id")
    priority = fields.whole("priority")
    return {
        "id": name, "capabilities": capabilities, "read_write": access, "tags": tags, "runner": runner,
        "performance": {"speed": speed}, "priority": 10 if priority is None else priority,
    }  # fmt: skip


def _config(root: Fields, defaults: Defaults) -> dict[str, Any]:
    root.version()
    settings: dict[str, Any] = {}
    worker, monitor, loops = (root.section(key) for key in ("worker", "monitor", "loop_prevention"))
    if (span := worker.span("poll_interval_ms")) is not None:
        settings["tracker"] = {"poll_every": format_duration(span)}
    if (runs := worker.whole("max_concurrent_runs", least=1)) is not None:
        settings["worker"] = {"max_concurrent_runs": min(runs, 64)}
        if runs > 64:
            worker.note_changed("max_concurrent_runs", "64 at most")
    if (span := monitor.span("poll_interval_ms")) is not None:
        settings["monitor"] = {"check_every": format_duration(span)}
    defaults.stall = monitor.span("stall_threshold_ms") or defaults.stall
    defaults.multiplier = monitor.number("timeout_multiplier") or 1.0
    for key in ("stall_threshold_ms", "timeout_multiplier"):
        monitor.note_changed(key, _OF_PHASES)
    defaults.visits = loops.whole("max_visits_default", least=1)
    loops.note_changed("max_visits_default", "every phase says it for itself here, as `max_visits`")
    loops.note_others_lost(_LOOPS)
    for key, reason in _ELSEWHERE.items():
        root.note_lost(reason, key)
    return settings
