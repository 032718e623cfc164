"""The policies that ship: each is a whole policies.yaml, which `ashep init --preset` writes.

In each file the policy of the preset's own name is what a project begins with, and claims tasks, bugs, features and
chores. The agents of `ashep.config.starter` fit the phases of all of them.
"""

import difflib
from functools import cache
from importlib import resources

from ashep.errors import UsageError

PRESETS = ("standard", "quick", "planned", "multi-tier", "bmad-story", "cross-reviewed")
"""Their names; the first is what `ashep init` writes without `--preset`."""


@cache
def preset(name: str) -> str:
    """Give the text of policies.yaml for one of `PRESETS`; raises `UsageError` for any other name."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]}? There" if near else "there"
        raise UsageError(f"there is no preset {name!r}; {hint} are {', '.join(PRESETS)}")
    return (resources.files("ashep.config") / "presets" / f"{name}.yaml").read_text(encoding="utf-8")
