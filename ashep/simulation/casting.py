"""Which policy, agents and settings are simulated: the project's, a draft's beside the project's agents, a preset's."""

from importlib import resources
from pathlib import Path
from typing import get_args

from ashep.config import ConfigErrors, read
from ashep.config.explain import nearest
from ashep.config.files import examine
from ashep.config.presets import PRESETS, preset
from ashep.core.analysis.soundness import Code
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.errors import UsageError
from ashep.simulation.lives import Cast

UNSOUND = get_args(Code)
"""Codes of what the search of a policy finds: no daemon runs it, but its lives may be looked at."""


def cast_of(folder: Path, name: str, file: Path | None) -> Cast:
    """Find a policy by its name: in `file`, in the project's files, or, where there is no file and no such policy,
    among the presets, whose agents are those that `ashep init` writes.

    `folder` is the project's `.agent-shepherd`; where there is none, the agents are those of `ashep init`, too.
    Raises `ConfigErrors` with all that is wrong with the files (but for what makes a policy unsound), and `UsageError`
    where there is no such policy.
    """
    if file is not None and not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    cast = None
    if folder.is_dir():
        cast = _of_files(folder, name, file)
    elif file is not None:
        with resources.as_file(resources.files("ashep.config") / "starter") as starter:
            cast = _of_files(starter, name, file)
    if cast is not None and name in cast.policies.policies:
        return cast
    if file is None and name in PRESETS:
        return of_preset(name)
    known = [*(cast.policies.policies if cast else ()), *(PRESETS if file is None else ())]
    raise UsageError(f"there is no policy {name}{nearest(name, known)}")


def of_preset(name: str) -> Cast:
    """A shipped policy, with the agents that `ashep init` writes."""
    policies = unproven(read(Policies, preset(name), Path(f"{name}.yaml")))
    return Cast(policies, name, starter_agents(), Settings())


def starter_agents() -> Agents:
    """The agents that `ashep init` writes."""
    text = (resources.files("ashep.config") / "starter" / "agents.yaml").read_text(encoding="utf-8")
    return read(Agents, text, Path("agents.yaml"))


def _of_files(folder: Path, name: str, file: Path | None) -> Cast:
    found = examine(folder, file)
    errors = [finding for finding in found.findings if finding.severity == "error"]
    broken = [finding for finding in errors if finding.code not in UNSOUND]
    if broken or found.policies is None or found.agents is None or found.settings is None:
        raise ConfigErrors(broken)
    own = found.settings.worker.workspace != "shared"
    policies = found.policies if own else unproven(found.policies)
    return Cast(policies, name, found.agents, found.settings, tuple(map(str, errors)))


def unproven(policies: Policies) -> Policies:
    """Give policies without what has no effect in the shared work tree: then nobody can make a move of it."""
    without: dict[str, object] = {"verify": None, "checks": (), "when_flags": {}}
    bare = {
        name: policy.model_copy(update={"phases": tuple(one.model_copy(update=without) for one in policy.phases)})
        for name, policy in policies.policies.items()
    }
    return policies.model_copy(update={"policies": bare})
