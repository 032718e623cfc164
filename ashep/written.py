"""All that the user wrote in `.agent-shepherd`, read and checked together: three files, policies, templates.

A start and every edit of a running daemon's files read the same in the same way.
"""

from dataclasses import dataclass
from pathlib import Path

from ashep.config import ConfigErrors, Configuration, Finding, load
from ashep.prompt import Templates, check_overrides, taken

PROMPTS = "prompts"
"""Where the user's templates lie."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the user wrote."""

    configuration: Configuration
    templates: Templates


def read(folder: Path) -> Written:
    """Read `.agent-shepherd`; raises `ConfigErrors` with every mistake of the files, else of the templates."""
    configuration = load(folder)
    templates, errors = taken(folder / PROMPTS)
    phases = [phase for policy in configuration.policies.policies.values() for phase in policy.phases]
    errors += check_overrides(folder / PROMPTS, phases, templates)
    if errors:
        raise ConfigErrors([Finding("template", one.file, one.line, one.key, one.message) for one in errors])
    return Written(configuration, templates)
