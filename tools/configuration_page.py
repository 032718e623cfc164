"""docs/configuration.md from the models' docstrings: `python -m tools.configuration_page [FILE]` writes it."""

import re
import sys
import types
import typing
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import AfterValidator, BaseModel, JsonValue
from pydantic.fields import FieldInfo

from ashep.config.error_messages import NOT_YET, extras_of
from ashep.config.starter import FILES as STARTERS
from ashep.config.starter import starter
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import Bytes, file_keys, format_duration, parse_dotted, parse_tracker
from ashep.core.policy.page_settings import parse_origin
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.extras.foreman.settings import ForemanSettings

HEAD = """\
# Configuration

<!-- Made by `python -m tools.configuration_page` from ashep/core/policy/settings.py; do not edit. -->

Three files in `.agent-shepherd/` say how Agent Shepherd works. `ashep init` writes them with comments, `ashep policy
check` says what is wrong in them, each problem with its file, line and key. A daemon reads them when it starts,
and again when one of them changes or it is sent SIGHUP: policies, agents, `worker`, `budgets`, `notify`, `people`,
`permissions` and `questions` count at once, the rest from the next start. A run under way ends as it began. While a
file has a mistake, what was good stays in force, and `ashep status` says so.

| file | says | needed |
|---|---|---|
| [`config.yaml`](#configyaml) | where issues come from, how much runs at once, which labels are used | no |
| [`policies.yaml`](#policiesyaml) | which phases an issue goes through | yes, or `policies/` |
| `policies/*.yaml` | more policies, one each or several | no |
| [`agents.yaml`](#agentsyaml) | which agents there are and what they can do | yes |
| [`foreman.yaml`](#foremanyaml), a file of yours | how `ashep foreman` remembers, restarts and searches | no |

## The language

The files are YAML 1.2 without its shortcuts:

- Only `true` and `false` are booleans, and `null`, `~` or nothing is no value. `on`, `off`, `yes`, `no`, `1:30`, `010`
  and dates are words.
- Anchors, aliases, tags, merge keys (`<<`), duplicate keys, keys that are not words and a second document are errors,
  and so is a file of more than 256 KiB or more than 32 levels.
- An unknown key is an error that names the nearest known one. So is a key that is planned but has no effect yet
  ([list](#not-yet-supported)): nothing is ever ignored.
- Types are strict: `"3"` is no number and `3` is no text.
- A *duration* is a whole number with a unit: `500ms`, `30s`, `5m`, `6h`, `7d`. The longest is `1000d`.
- A *size* is a whole number with a unit: `64KiB`, `16MiB`, `1GiB`.
- A *name* is a letter, then letters, digits, `_` or `-`; 64 characters at most.

For help while you type, the first line of each file names its schema (`# yaml-language-server: $schema=…`), as editors
know it. `ashep init` puts the schemas into `.agent-shepherd/schemas/`, and each start of `ashep work` puts those of its
own release there: an address beside the file works offline, for everybody, and after an upgrade. Git ignores the
folder, unless you empty its `.gitignore`. A file in `policies/` names `../schemas/policies.schema.json`. What Agent
Shepherd writes has its schemas there, too: `run.schema.json` is a line of `runs.jsonl`, `outcome.schema.json` the block
in which an agent answers.
"""

FILES: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("config.yaml", Settings, "Every key is optional. The file as `ashep init` writes it says the defaults:"),
    (
        "policies.yaml",
        Policies,
        """\
A policy is a list of phases, and an edge of `next` leads from phase to phase. `close` ends the work on an issue. A
policy may be written as a bare list, and a phase as a bare name:

```yaml
# policies.yaml
version: 1
default_policy: quick
policies:
  quick: [implement, review]
```

A file in `policies/` is one policy, named as the file is, or has the key `policies` as policies.yaml has, without
`default_policy`. The policies of policies.yaml come first, then those of the files in the order of their names.

The file as `ashep init` writes it:""",
    ),
    (
        "agents.yaml",
        Agents,
        """\
A phase takes the agents that have all of its capabilities, write access where it writes, and pass its hard filters; of
these it chooses by its wishes (`prefer`), then by `priority`, then by id. `ashep sync-agents` adds an entry for each
agent of the server that no entry names yet, and leaves your entries as they are.

The file as `ashep init` writes it:""",
    ),
    (
        "foreman.yaml",
        ForemanSettings,
        """\
One file of yours for all projects, `$XDG_CONFIG_HOME/ashep/foreman.yaml`, for [`ashep foreman`](guides/foreman.md).
Every key is optional, and it counts from the next start.""",
    ),
)


def page() -> str:
    """Make the whole page."""
    parts = [HEAD]
    for name, model, words in FILES:
        begun = f"\n\n```yaml\n# {name}\n{starter(name)}```\n" if name in STARTERS else "\n"
        parts.append(f"\n## {name}\n\n{words}{begun}")
        parts += [_section(title, part) for title, part in _models(model, "")]
    return "".join([*parts, _not_yet()])


def _models(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Walk the models of a file, with the key that each is the value of."""
    yield path, model
    for name, field in file_keys(model).items():
        for below, suffix in _below(field.annotation):
            yield from _models(below, f"{path}.{name}{suffix}".removeprefix("."))
    if (extra := extras_of(model)) is not None:
        yield from _models(extra, f"{path}.<name>")


def _below(annotation: Any, suffix: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, suffix
    elif origin is tuple:
        yield from _below(arguments[0], f"{suffix}[]")
    elif origin is dict:
        yield from _below(arguments[1], f"{suffix}.<name>")
    elif origin in (typing.Union, types.UnionType):
        for arm in arguments:
            yield from _below(arm, suffix)


def _section(title: str, model: type[BaseModel]) -> str:
    heading = f"\n### `{title}`\n\n{_line(model.__doc__ or '')}\n" if title else "\n"
    rows = [_row(name, field) for name, field in file_keys(model).items()]
    return "\n".join([heading, "| key | type | default | meaning |", "|---|---|---|---|", *rows, ""])


def _row(name: str, field: FieldInfo) -> str:
    default = "*needed*" if field.is_required() else f"`{_value(field.default)}`"
    if field.json_schema_extra is not None and not isinstance(field.default, BaseModel):
        # it takes the default away from the JSON schema
        default = "*depends*"
    # FieldInfo keeps what Annotated said beside the bare type
    kind = _kind(typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)
    cells = (f"`{name}`", kind, default, _line(field.description or ""))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _value(value: object) -> str:
    """Write a default as the files would."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, str):
        return value if value and not value.endswith(":") else f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(_value(item) for item in typing.cast('tuple[object, ...]', value))}]"
    if isinstance(value, BaseModel | dict):
        return "{}"
    return str(value)


def _kind(annotation: Any) -> str:
    """Name a type for people."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        item, comma, bounds = _kind(arguments[0]).partition(",")
        return f"list of {item}s{comma}{bounds}"
    if origin is dict:
        item = _kind(arguments[1])
        if item.startswith("list of "):
            return f"mapping of names to {item.replace('list of', 'lists of', 1)}"
        return f"mapping of names to {item}{'' if item == _PLAIN[JsonValue] else 's'}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(arm) for arm in arguments)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    return _PLAIN[annotation]


_PLAIN: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    timedelta: "duration",
    Bytes: "size",
    JsonValue: "anything",
    type(None): "`null`",
}


def _annotated(bare: Any, metadata: tuple[Any, ...]) -> str:
    if any(isinstance(part, AfterValidator) and part.func in _SAID for part in metadata):
        return next(_SAID[part.func] for part in metadata if isinstance(part, AfterValidator))
    kind = _kind(bare)
    bounds = _bounds(metadata)
    if bare is str and any("pattern" in repr(part) for part in metadata):
        return "URL" if any("https?:" in repr(part) for part in metadata) else "name"
    return f"{kind}, {bounds}" if bounds and bare in (int, float) else kind


_SAID: dict[Any, str] = {parse_dotted: "a class", parse_tracker: "`beads`, a class", parse_origin: "origin"}
"""How types are called that a function of ours checks."""


def _bounds(metadata: tuple[Any, ...]) -> str:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    found: list[str] = []
    for part in metadata:
        for inner in getattr(part, "metadata", [part]):
            found += [f"{said} {getattr(inner, key)}" for key, said in words.items() if hasattr(inner, key)]
    return ", ".join(found)


def _not_yet() -> str:
    lines = [
        "\n## Not yet supported\n",
        "These keys are planned. Until they have an effect they are refused.\n",
        "| where | keys |",
        "|---|---|",
    ]
    where = {model.__name__: title for _, top, _ in FILES for title, model in _models(top, "")}
    for model, keys in NOT_YET.items():
        place = f"`{where[model]}`" if where[model] else "config.yaml"
        lines.append(f"| {place} | {', '.join(f'`{key}`' for key in keys)} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    """Write the page to the file (by default `docs/configuration.md`)."""
    file = Path(arguments[0] if arguments else "docs/configuration.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
