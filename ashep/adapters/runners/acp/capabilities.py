"""What an agent offers for a session: modes and models, however it tells them; and which of them a prompt gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ashep.adapters.runners.foreign_json import as_list, as_object
from ashep.core.facts.runs import Model

READ_MODES = ("plan", "read-only", "readonly", "read_only", "ask", "architect", "chat")
"""Modes that cannot write, by the names that agents have for them, best first."""

WRITE_MODES = ("default", "build", "code", "agent", "write")
"""Modes that write, and ask where the agent knows how to."""


class CapabilityMissing(Exception):
    """The agent does not offer what a prompt is to have. As text: `Name: why`."""


@dataclass(slots=True)
class ConfigOption:
    """One thing that can be chosen, and how."""

    option: str = ""
    """The configuration option; empty: by a call of its own."""
    values: tuple[str, ...] = ()
    current: str = ""


@dataclass(slots=True)
class SessionCapabilities:
    """What `session/new`, `session/load` and `session/resume` answer."""

    modes: ConfigOption = field(default_factory=ConfigOption)
    models: ConfigOption = field(default_factory=ConfigOption)
    first_model: str = ""
    """The model that it had before any prompt named one."""


def read_offer(answer: Mapping[str, Any]) -> SessionCapabilities:
    """Read it: as options of the configuration, or in the older form as `modes` and `models`."""
    options = {"mode": ConfigOption(), "model": ConfigOption()}
    for option in _dicts(answer.get("configOptions")):
        category = str(option.get("category") or option.get("id") or "")
        if category in options and option.get("type") in ("select", None):
            groups = _dicts(option.get("options"))
            entries = [entry for group in groups for entry in (_dicts(group.get("options")) or [group])]
            values = tuple(str(entry["value"]) for entry in entries if "value" in entry)
            options[category] = ConfigOption(str(option.get("id", "")), values, str(option.get("currentValue") or ""))
    for category, field_name, name in (("mode", "availableModes", "id"), ("model", "availableModels", "modelId")):
        state = as_object(answer.get(f"{category}s"))
        if not options[category].values and state:
            values = tuple(str(one[name]) for one in _dicts(state.get(field_name)) if name in one)
            current = state.get("currentModeId" if category == "mode" else "currentModelId")
            options[category] = ConfigOption("", values, str(current or ""))
    return SessionCapabilities(options["mode"], options["model"], options["model"].current)


def _dicts(given: object) -> list[Mapping[str, Any]]:
    return [as_object(one) for one in as_list(given)]


def mode_for(offer: SessionCapabilities, access: str, configured: Mapping[str, str], agent: str | None) -> str | None:
    """The mode of a prompt; None: the agent knows none. A reader's is never one that is there to write."""
    values = offer.modes.values
    wanted = configured.get(access)
    if agent is not None and (access == "write" or agent in READ_MODES):
        wanted = agent
    if wanted is not None:
        if wanted not in values:
            raise CapabilityMissing(
                f"ModeUnknown: the agent offers no mode {wanted}, but {', '.join(values) or 'none'}"
            )
        return wanted
    known = (*READ_MODES, *WRITE_MODES) if access == "read" else WRITE_MODES
    return next((one for one in known if one in values), offer.modes.current or None)


def model_for(offer: SessionCapabilities, model: Model | None) -> str | None:
    """The agent's name of a prompt's model; None: it has none to choose from."""
    if model is None:
        return offer.first_model or None
    for name in (f"{model.provider}/{model.model}", model.model):
        if name in offer.models.values:
            return name
    raise CapabilityMissing(f"ModelUnknown: the agent offers no model {model.provider}/{model.model}")


def model_named(name: str, maker: str) -> Model:
    """A model by the agent's name of it; `maker`: who provides those without a provider."""
    provider, slash, model = name.partition("/")
    return Model(provider, model) if slash else Model(maker, name)
