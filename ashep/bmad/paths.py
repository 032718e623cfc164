"""Where a project has its BMAD files, by BMAD's own configuration in its layers (facts/bmad.md 15)."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yaml.nodes import Node

from ashep.bmad.yaml_nodes import NoYaml, composed, pairs, scalar

LAYERS = (
    "_bmad/config.toml", "_bmad/config.user.toml", "_bmad/custom/config.toml", "_bmad/custom/config.user.toml",
)  # fmt: skip
"""Files of today, the later over the earlier."""

OLDER = ("_bmad/bmm/config.yaml", "bmad/bmm/config.yaml")
"""Files of before; the first that is there counts, where none of today's says it."""

USUAL = ("_bmad-output/implementation-artifacts", "docs/stories", "docs/sprints", "docs/sprint-artifacts")
"""Where stories are in projects that do not say it."""

SPRINT = "sprint-status.yaml"
"""How a sprint status is called."""

SPECS = "_bmad-output/specs"
"""Where specifications of build-auto are, with their `stories.yaml`."""

EPICS = ("_bmad-output/planning-artifacts", "_bmad-output", "docs")
"""Where `epics.md` is, or a folder `epics`."""

_STORIES = ("implementation_artifacts", "dev_story_location", "story_location", "sprint_artifacts", "stories_dir")
_DEEPEST = 3
_PLANS = ("planning_artifacts", "output_folder")


@dataclass(frozen=True, slots=True)
class StoryPaths:
    """Folders, relative to the project; and which file said so."""

    stories: str | None
    plans: str | None
    said_by: str | None
    problems: tuple[tuple[str, str], ...] = ()


def places_of(files: Mapping[str, bytes]) -> StoryPaths:
    """Read the configuration; `files`: those of `LAYERS` and `OLDER` that are there."""
    said, problems = dict[str, tuple[str, str]](), list[tuple[str, str]]()
    for name in (*reversed([one for one in OLDER if one in files]), *(one for one in LAYERS if one in files)):
        try:
            text = files[name].decode()
            # keys wherever they stand: in `[core]`, `[modules.bmm]` or at the top
            found = _flat(tomllib.loads(text)) if name.endswith(".toml") else _nodes(composed(text))
            said |= {key: (value, name) for key, value in found}
        except RecursionError:
            problems.append((name, "it cannot be read: it is nested too deeply"))
        except (ValueError, NoYaml) as error:
            problems.append((name, f"it cannot be read: {str(error).splitlines()[0]}"))
    output = relative(said["output_folder"][0]) if "output_folder" in said else "_bmad-output"
    stories = next((said[key] for key in _STORIES if key in said), None)
    plans = next((said[key] for key in _PLANS if key in said), None)
    return StoryPaths(
        stories and relative(stories[0], output), plans and relative(plans[0], output),
        stories and stories[1], tuple(problems),
    )  # fmt: skip


def relative(said: str, output: str = "_bmad-output") -> str:
    """Give a folder relative to the project, as BMAD writes it."""
    return said.replace("{project-root}", "").replace("{output_folder}", output).strip("/") or "."


def _flat(values: Mapping[str, Any], deep: int = 0) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict) and deep < _DEEPEST:
            yield from _flat(value, deep + 1)  # pyright: ignore[reportUnknownArgumentType] - of a foreign file
        elif isinstance(value, str):
            yield key, value


def _nodes(node: Node | None, deep: int = 0) -> Iterator[tuple[str, str]]:
    for key, value in pairs(node).items():
        if said := scalar(value):
            yield key, said
        elif deep < _DEEPEST:
            yield from _nodes(value, deep + 1)
