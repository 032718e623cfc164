"""Prompts of another set-up, by phase -> templates of ours."""

import re
from collections.abc import Mapping, Sequence

from ashep.prompt.templates import ENDING

_BEGIN = '{% extends "shipped/task.md.j2" %}\n{% block role %}\n{{ super() }}\n'
_END = "{% endblock %}\n"


def prompt_files(told: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
    """Give a template for each phase: its own words, by policy, behind ours."""
    files: dict[str, str] = {}
    for phase, by_policy in told.items():
        parts = [f'{{% if policy == "{policy}" %}}\n{literal(text)}\n{{% endif %}}\n' for policy, text in by_policy]
        files[f"prompts/{phase}{ENDING}"] = _BEGIN + "".join(parts) + _END
    return files


def literal(text: str, *, ends: bool = True) -> str:
    """Write a text so that a template prints it as it is; `ends`: without empty lines before and after it."""
    return re.sub(r"\{[{%#]", lambda mark: f'{{{{ "{mark[0]}" }}}}', text.strip("\n") if ends else text)
