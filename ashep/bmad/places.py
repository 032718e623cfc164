"""Where a project has its BMAD files, by BMAD's own configuration in its layers (facts/bmad.md 15)."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

LAYERS = (
    "_bmad/config.toml", "_bmad/config.user.toml", "_bmad/custom/config.toml", "_bmad/custom/config.user.toml",
)  # fmt: skip
"""Files of today, the later over the earlier."""

OLDER = ("_bmad/bmm/config.yaml", "bmad/bmm/config.yaml")
"""Files of before; the first that is there counts, where none of today's says it."""

USUAL = ("_bmad-output/implementation-artifacts", "docs/stories", "docs/sprints", "docs/sprint-artifacts")
"""Where stories are in projects that do not say it."""

_STORIES = ("implementation_artifacts", "dev_story_location", "story_location", "sprint_artifacts", "stories_dir")
_PLANS = ("planning_artifacts", "output_folder")


@dataclass(frozen=True, slots=True)
class Places:
    """Folders, relative to the project; and which file said so."""

    stories: str | None
    plans: str | None
    said_by: str | None
    problems: tuple[tuple[str, str], ...] = ()


def places_of(files: Mapping[str, bytes]) -> Places:
    """Read the configuration; `files`: those of `LAYERS` and `OLDER` that are there."""
    said, problems = dict[str, tuple[str, str]](), list[tuple[str, str]]()
    for name in (*reversed([one for one in OLDER if one in files]), *(one for one in LAYERS if one in files)):
        try:
            values = dict(_flat(_read(name, files[name])))
        except (ValueError, yaml.YAMLError) as error:
            problems.append((name, f"it cannot be read: {str(error).splitlines()[0]}"))
            continue
        said |= {key: (value, name) for key, value in values.items() if isinstance(value, str)}
    stories = next((said[key] for key in _STORIES if key in said), None)
    plans = next((said[key] for key in _PLANS if key in said), None)
    return Places(
        stories and relative(stories[0]), plans and relative(plans[0]), stories and stories[1], tuple(problems)
    )


def relative(said: str) -> str:
    """Give a folder relative to the project, as BMAD writes it."""
    return said.replace("{project-root}", "").replace("{output_folder}", "_bmad-output").strip("/") or "."


def _read(name: str, data: bytes) -> dict[str, Any]:
    text = data.decode()
    found: Any = tomllib.loads(text) if name.endswith(".toml") else yaml.safe_load(text)
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - of a foreign file


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give keys wherever they stand: in `[core]`, `[modules.bmm]` or at the top."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value)  # pyright: ignore[reportUnknownArgumentType] - of a foreign file
        else:
            yield key, value
