"""Templates: the user's, else the shipped ones, and what is wrong with them."""

import re
import stat
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import BaseLoader, Environment, TemplateNotFound, TemplateSyntaxError

from ashep.errors import ConfigError
from ashep.prompt.bounded import LONGEST, Language
from ashep.prompt.brief import Brief, Kind, view
from ashep.prompt.fences import Fences, on_lines

ENDING = ".md.j2"
"""How the files of templates end."""

KINDS: tuple[Kind, ...] = ("task", "recover", "extract", "resume", "diagnose")
"""Each has a template of its own; a phase of such a name has none."""

FILE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\.md\.j2")
"""The names that templates have: `_` is for parts."""


def render(brief: Brief, overrides: Path | None = None) -> str:
    """Write the prompt; raises `ConfigError` where a template of the user cannot be used."""
    return _render(brief, overrides, _chosen(brief, overrides))


def compiled(name: str, overrides: Path) -> None:
    """Only read a template; raises `ConfigError`."""
    try:
        Language(_Loader(overrides), Fences("", "")).get_template(name)
    except ConfigError:
        raise
    except Exception as error:  # as in _render
        raise _told(error, name, overrides) from error


class _Loader(BaseLoader):
    """The user's file of a name, else the shipped one; `shipped/<name>` is always the shipped one."""

    def __init__(self, overrides: Path | None) -> None:
        self.overrides = overrides
        self.used: set[str] = set()
        """The names that were asked for."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Find a template; names lead nowhere else."""
        name = template.removeprefix("shipped/")
        self.used.add(name)
        if name == template and self.overrides is not None and FILE.fullmatch(name):
            file = self.overrides / name
            if _there(file):
                return _read(file, self.overrides), str(file), lambda: True
        text = _shipped().get(name)
        if text is None:
            raise TemplateNotFound(template)
        return text, f"ashep/prompts/{name}", lambda: True


@cache
def _shipped() -> dict[str, str]:
    folder = resources.files("ashep") / "prompts"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(ENDING)}


def _there(file: Path) -> bool:
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


def _chosen(brief: Brief, overrides: Path | None) -> str:
    """Name the template: of the phase, where the user has written one, else of the kind."""
    own = brief.phase.name + ENDING
    if brief.kind == "task" and brief.phase.name not in KINDS and overrides and _there(overrides / own):
        return own
    return brief.kind + ENDING


def _render(brief: Brief, overrides: Path | None, name: str) -> str:
    loader = _Loader(overrides)
    language = Language(loader, Fences(brief.secret, f"{brief.run}\n{brief.kind}"))
    variables = view(brief)
    try:
        text = language.get_template(name).render(variables)
        if "_header.md.j2" not in loader.used:
            text = language.get_template("_header.md.j2").render(variables) + "\n" + text
        if "_contract.md.j2" not in loader.used:
            text = text.rstrip("\n") + "\n\n" + language.get_template("_contract.md.j2").render(variables)
    except ConfigError:
        raise
    except Exception as error:  # whatever a template can raise, its author is to be told
        raise _told(error, name, overrides) from error
    return on_lines(text).strip("\n") + "\n"


def _told(error: Exception, name: str, overrides: Path | None) -> ConfigError:
    """Say what a template's error is and where."""
    file, line = str(overrides / name) if overrides else name, None
    if isinstance(error, TemplateSyntaxError):
        file, line = error.filename or file, error.lineno
        return ConfigError(error.message or "cannot be understood", file=file, line=line)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(ENDING):
            file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    message = f"there is no template {error}" if isinstance(error, TemplateNotFound) else str(error)[:300]
    if isinstance(error, RecursionError):
        message = "includes or extends itself"
    return ConfigError(message or type(error).__name__, file=file, line=line)
