"""Templates: the user's, else the shipped ones, and what is wrong with them."""

import json
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import BaseLoader, Environment, TemplateNotFound

from ashep.errors import ConfigError
from ashep.prompt.fences import Fences, on_lines
from ashep.prompt.template_context import Brief, Kind, view
from ashep.prompt.template_sandbox import ENDING, LONGEST, Language, explained

KINDS: tuple[Kind, ...] = ("task", "recover", "extract", "resume", "diagnose", "continue")
"""Each has a template of its own; a phase of such a name has none."""

TOLD: tuple[Kind, ...] = ("task", "resume")
"""The kinds of prompts that ask for work, and so tell what was found about it."""

FILE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\.md\.j2")
"""The names that templates have: `_` is for parts."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The user's templates as they were at one moment, by their names, and the folder that they were in."""

    folder: Path
    texts: Mapping[str, str]

    def as_text(self) -> str:
        """Give what `from_text` reads; the same templates give the same text."""
        return json.dumps(dict(sorted(self.texts.items())), ensure_ascii=False) if self.texts else ""

    @classmethod
    def from_text(cls, folder: Path, text: str) -> "Templates":
        """Give the templates of a text."""
        return cls(folder, json.loads(text) if text else {})


def load_templates(folder: Path) -> tuple[Templates, list[ConfigError]]:
    """Read the user's templates, and say which cannot be read; files of other names are none."""
    texts: dict[str, str] = {}
    errors: list[ConfigError] = []
    try:
        names = sorted(path.name for path in folder.iterdir() if FILE.fullmatch(path.name)) if folder.is_dir() else []
    except OSError as error:
        return Templates(folder, {}), [ConfigError(f"cannot be read: {error.strerror}", file=folder)]
    for name in names:
        try:
            texts[name] = _read(folder / name, folder)
        except ConfigError as error:
            errors.append(error)
    return Templates(folder, texts), errors


Overrides = Path | Templates | None
"""The user's templates: those that lie in a folder now, or as they were at one moment."""


def render(brief: Brief, overrides: Overrides = None) -> str:
    """Write the prompt; raises `ConfigError` where a template of the user cannot be used."""
    of_phase, name = brief.phase.name + ENDING, brief.kind + ENDING
    if brief.kind == "task" and brief.phase.name not in KINDS and _has(of_phase, overrides):
        name = of_phase
    loader = _Loader(overrides)
    language = Language(loader, Fences(brief.secret, f"{brief.run}\n{brief.kind}"))
    variables = view(brief)

    def part(template: str) -> str:
        return language.get_template(template).render(variables)

    try:
        text = part(name)
        if "_header.md.j2" not in loader.used:
            text = part("_header.md.j2") + "\n" + text
        if brief.kind in TOLD and "_found.md.j2" not in loader.used:
            found = part("_found.md.j2")
            text = text.rstrip("\n") + "\n\n" + found if found.strip() else text
        if "_contract.md.j2" not in loader.used:
            text = text.rstrip("\n") + "\n\n" + part("_contract.md.j2")
    except ConfigError:
        raise
    except Exception as error:  # whatever a template can raise, its author is to be told
        raise explained(error, str(_folder(overrides) / name)) from error
    return on_lines(text).strip("\n") + "\n"


def compiled(name: str, overrides: Overrides) -> None:
    """Only read a template; raises `ConfigError`."""
    try:
        Language(_Loader(overrides), Fences("", "")).get_template(name)
    except ConfigError:
        raise
    except Exception as error:  # as in `render`
        raise explained(error, str(_folder(overrides) / name)) from error


class _Loader(BaseLoader):
    """The user's file of a name, else the shipped one; `shipped/<name>` is always the shipped one."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self.used: set[str] = set()
        """The names that were asked for."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Find a template; names lead nowhere else."""
        name = template.removeprefix("shipped/")
        self.used.add(name)
        if name == template and FILE.fullmatch(name) and (own := _read_override(name, self.overrides)) is not None:
            return own, str(_folder(self.overrides) / name), lambda: True
        text = _shipped().get(name)
        if text is None:
            raise TemplateNotFound(template)
        return text, f"ashep/prompts/{name}", lambda: True


@cache
def _shipped() -> dict[str, str]:
    folder = resources.files("ashep") / "prompts"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(ENDING)}


def _folder(overrides: Overrides) -> Path:
    return overrides.folder if isinstance(overrides, Templates) else overrides or Path()


def _read_override(name: str, overrides: Overrides) -> str | None:
    if isinstance(overrides, Templates):
        return overrides.texts.get(name)
    return _read(overrides / name, overrides) if _has(name, overrides) and overrides is not None else None


def _has(name: str, overrides: Overrides) -> bool:
    if overrides is None or isinstance(overrides, Templates):
        return overrides is not None and name in overrides.texts
    file = overrides / name
    try:
        file.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error
    return True


def _read(file: Path, folder: Path) -> str:
    """Read a template of the user: a regular file, of bounded size, that lies in the folder."""
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise ConfigError("leads out of its folder", file=file)
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError("is not a file", file=file)
        if status.st_size > LONGEST:
            raise ConfigError(f"holds more than {LONGEST} bytes", file=file)
        return real.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", file=file) from error
