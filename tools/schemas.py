"""JSON schemas for editors and other programs: `python -m tools.schemas [FOLDER]` writes them.

`TABLE` says what there is: a name and where the type stands, as `module:attribute` so that making one schema imports
nothing of the others. A new line in the table is a new file `schemas/<name>.schema.json`, for whoever looks into the
repository, and the same below `ashep/config`, which the package carries; tests/test_schemas.py keeps all of them fresh.
"""

import importlib
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from ashep.core.policy.base_types import Bytes, format_duration

Schema = dict[str, Any]

FOLDERS = (Path("schemas"), Path("ashep/config/schemas"))
"""The repository's, and what the package carries: `ashep.config.editor_schemas` puts that next to the files that name
them.
"""

TABLE: dict[str, str] = {
    "config": "ashep.core.policy.settings:Settings",
    "policies": "ashep.core.policy.policies:Policies",
    "agents": "ashep.core.policy.agents:Agents",
    "run": "ashep.core.runs.run_record:RunRecord",
    "foreman": "ashep.extras.foreman.settings:ForemanSettings",
    "outcome": "ashep.core.facts.outcome:Outcome",
}


def schema(name: str) -> Schema:
    """Make the schema of one line of `TABLE`."""
    module, attribute = TABLE[name].split(":")
    model = TypeAdapter[Any](getattr(importlib.import_module(module), attribute))
    made = model.json_schema(schema_generator=_Generator)
    made.pop("title", None)
    made = _SHORT_FORMS.get(name, lambda same: same)(made)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"ashep {name}", **made}


def text(name: str) -> str:
    """Give the schema as the file holds it."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


class _Generator(GenerateJsonSchema):
    """Writes durations and sizes as the files do, and leaves out the titles that only repeat names."""

    def encode_default(self, dft: Any) -> Any:
        """Give a default as the files would hold it."""
        if isinstance(dft, Bytes):
            return str(dft)
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No."""
        return False


def _policies(made: Schema) -> Schema:
    """Allow the short forms that the loader writes out: a policy that is a list, a phase that is a name."""
    definitions: Schema = made["$defs"]
    definitions["JsonValue"] = {"description": "Any value of JSON."}
    definitions["Policy"]["anyOf"] = [
        {"required": ["phases"]},
        {"required": ["extends"], "properties": {"extends": {"type": "string"}}},
    ]
    del definitions["Policy"]["required"]
    phase: Schema = {"anyOf": [definitions["Phase"]["properties"]["name"], {"$ref": "#/$defs/Phase"}]}
    phases: Schema = definitions["Policy"]["properties"]["phases"]
    phases["items"] = phase
    policies: Schema = made["properties"]["policies"]
    either: Schema = {"anyOf": [phases, {"$ref": "#/$defs/Policy"}]}
    policies["patternProperties"] = dict.fromkeys(policies["patternProperties"], either)
    policies["additionalProperties"] = False
    return made


_SHORT_FORMS: dict[str, Callable[[Schema], Schema]] = {"policies": _policies}


def main(arguments: list[str]) -> int:
    """Write every schema into the folder (by default into both)."""
    for folder in map(Path, arguments[:1]) if arguments else FOLDERS:
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLE:
            (folder / f"{name}.schema.json").write_text(text(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
