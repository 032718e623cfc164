"""`.agent-shepherd/*.yaml` -> validated models; every problem with its file, line and key.

Never: what a key brings about; its model stands in `ashep.core.policy`, and the rules read that.

`yaml_tree` reads YAML with its surprises taken out, `error_messages` says what pydantic found, `consistency` looks at
what types cannot say (crons by `cron`), `policy_checks` asks the core what policies lead to, `checks` reads those of
issues, `files` puts these together. `starter` holds the files that `ashep init` writes, `presets` the policies among
them, `sync_agents` keeps agents.yaml in step with the server, and changes YAML whose comments stay (the only user of
ruamel.yaml), `editor_schemas` puts the schemas, which `tools/schemas.py` makes, next to the files that name them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ashep.config.consistency import check
    from ashep.config.editor_schemas import put_schemas
    from ashep.config.files import (
        Configuration,
        Examined,
        examine,
        load,
        load_other,
        read,
        settings_in,
        settled,
    )
    from ashep.config.findings import ConfigErrors, FileName, Finding, SourceFile, errors_of
    from ashep.config.starter import write_starter

__all__ = [
    "ConfigErrors",
    "Configuration",
    "Examined",
    "FileName",
    "Finding",
    "SourceFile",
    "check",
    "errors_of",
    "examine",
    "load",
    "load_other",
    "put_schemas",
    "read",
    "settings_in",
    "settled",
    "write_starter",
]

_PLACES = {
    "check": "consistency", "put_schemas": "editor_schemas", "write_starter": "starter",
    **dict.fromkeys(("ConfigErrors", "FileName", "Finding", "Source", "errors_of"), "findings"),
}  # fmt: skip
"""The modules that names are from; the others are from `files`."""


def __getattr__(name: str) -> Any:
    """Import what is asked for: who only reads YAML (`nodes`) does not wait for the rules of policies."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'files')}"), name)
