"""Files of the user in `.agent-shepherd`, all of them, read and checked together: three files, policies, templates.

A start and every edit of a running daemon's files read the same in the same way.
"""

from dataclasses import dataclass
from pathlib import Path

from ashep.config import ConfigErrors, Configuration, Finding, load
from ashep.core.policy.policies import Policies
from ashep.prompt.template_trials import check_overrides
from ashep.prompt.templates import Templates, load_templates

PROMPTS = "prompts"
"""Where the user's templates lie."""


@dataclass(frozen=True, slots=True)
class UserFiles:
    """What the user wrote."""

    configuration: Configuration
    templates: Templates


def read(folder: Path) -> UserFiles:
    """Read `.agent-shepherd`; raises `ConfigErrors` with every mistake of the files, else of the templates."""
    configuration = load(folder)
    templates, found = _templates(folder, configuration.policies)
    if found:
        raise ConfigErrors(found)
    return UserFiles(configuration, templates)


def wrong_templates(folder: Path, policies: Policies) -> list[Finding]:
    """Say what is wrong with the user's templates, each tried on made-up runs of the phases that use it."""
    return _templates(folder, policies)[1]


def _templates(folder: Path, policies: Policies) -> tuple[Templates, list[Finding]]:
    templates, errors = load_templates(folder / PROMPTS)
    phases = [phase for policy in policies.policies.values() for phase in policy.phases]
    errors += check_overrides(folder / PROMPTS, phases, templates)
    return templates, [Finding("template", error.file, error.line, error.key, error.message) for error in errors]
