"""Which files of a project its configuration names: programs that it starts, and modules that it imports.

Whoever may change such a file changes what ashep does, as the configuration itself does that names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from ashep.core.impact.path_classes import tidy
from ashep.core.policy.checks import is_look
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings

_NOT_READ = ("impact", "labels", "landing", "redact")  # settings that name no file that is run or read

_TOKEN = re.compile(r"[^\s'\"=;&|<>()$`,:]+")
"""What may be a path within a word: words may be commands for a shell, or options with values."""

_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class ReferencedFiles:
    """Paths from the repository's top, and modules, which may stand in a folder such as `src`."""

    paths: frozenset[str] = frozenset()
    modules: tuple[str, ...] = ()

    def has(self, path: str) -> bool:
        """Whether the configuration names the file."""
        return path in self.paths or f"/{path}".endswith(self.modules)


NOTHING = ReferencedFiles()


def named_by(settings: Settings, policies: Policies | None = None) -> ReferencedFiles:
    """Say which files these name, in time that goes with their length."""
    dumped = settings.model_dump(mode="json")
    words = list(_words([dumped[key] for key in dumped if key not in _NOT_READ]))
    for policy in policies.policies.values() if policies else ():
        # files of checks that only look are what the work is about, and are not run
        run = (check for phase in policy.phases for check in phase.checks if not is_look(check))
        words += _words([check.model_dump(mode="json") for check in run])
    tidied = (tidy(token) for word in words for token in _TOKEN.findall(word))
    paths = frozenset(path for path in tidied if path and not path.startswith(("/", "..", "~")))
    modules = [word.partition(":")[0].split(".") for word in words if _CLASS.fullmatch(word)]
    packages = (parts[:length] for parts in modules for length in range(1, len(parts) + 1))
    files = {f"/{'/'.join(parts)}.py" for parts in modules} | {f"/{'/'.join(parts)}/__init__.py" for parts in packages}
    return ReferencedFiles(paths, tuple(sorted(files)))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _words(item)
    elif isinstance(value, (list, tuple)):
        for item in cast("Iterable[object]", value):
            yield from _words(item)
