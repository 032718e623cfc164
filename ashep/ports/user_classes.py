"""A runner, tracker or type of checks of the user's own: a class by its dotted path, held against its port.

The class is named in config.yaml as `package.module:Class`. Its module is looked for among what is installed and on
PYTHONPATH, then in the project's folder (`ashep.ports.project_imports`). Nothing is made before every method of the
port is there and can be called as the port says; and what comes from it then is an answer of the port, or an error of
it.
"""

import hashlib
import importlib
import inspect
import os
import re
import sys
import traceback
import types
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, reduce
from pathlib import Path
from typing import Any, Protocol

import anyio
from pydantic import JsonValue

from ashep.errors import AshepError, RunnerError, RunnerUnavailable, TrackerError, TrackerMissing, TrackerUnavailable
from ashep.ports.clock import Clock
from ashep.ports.project_imports import PROJECTS
from ashep.ports.tracker import Annotations, Tracker

__all__ = ["Context", "GuardedAdapter", "NotUsable", "load", "make", "misfits", "source"]

LONGEST_CALL = timedelta(minutes=2)
"""The bound of a call of a tracker or runner of the user's, if four times `tracker.timeout` is not longer."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a runner or tracker is made with, the only argument of its class. To make one starts and writes nothing."""

    options: Mapping[str, JsonValue]
    """What stands under `options` in config.yaml. They are kept in the journal: no secret belongs there."""
    project: Path
    """The project's folder."""
    state: Path
    """A folder of its own for what it keeps, inside the state folder; it makes it when it needs it."""
    clock: Clock
    """The time, and the only way to wait for one: a simulation brings its own."""
    actor: str
    """The name under which a tracker writes, as its attribute `actor` must say; empty for a runner."""
    timeout: timedelta
    """The bound of one call of a tracker (`tracker.timeout`)."""
    secret: Callable[[str], str]
    """Gives the value of an environment variable, empty where it is not set; it is never written down from then on."""
    redact: Callable[[str], str]
    """Takes secrets out of a text; answers and errors lose them by themselves."""


class NotUsable(Exception):
    """A class cannot be used: `str()` says what was found, what was expected, and what to do, on one line."""


def load(dotted: str, port: type, project: Path) -> Callable[[Context], Any]:
    """Import a class and check it against its port; raises `NotUsable`."""
    name, _, attribute = dotted.partition(":")
    PROJECTS.name(name, project)
    module = _module(name, project)
    found = reduce(lambda holder, part: getattr(holder, part, None), attribute.split("."), module)
    if found is None:
        known = ", ".join(sorted(key for key, _ in inspect.getmembers(module, inspect.isclass)))
        raise NotUsable(f"the module {name} ({module.__file__}) has no class {attribute}; it has {known or 'none'}")
    if not inspect.isclass(found):
        expected = f"expected a class that keeps {port.__name__}"
        raise NotUsable(f"{dotted} is no class, but {type(found).__name__}: {expected}")
    if wrong := next(misfits(found, port), None):
        raise NotUsable(f"{dotted} is no {port.__name__} (ashep.ports.tracker): {wrong}")
    return found


def source(dotted: str, project: Path) -> str:
    """Give the hash of the files that a class which was loaded is made of: its module, its package, and what else of
    the project is imported by now. Blocks; files are read once a process, as they are imported once.
    """
    return _source(sys.modules[dotted.partition(":")[0]], project)


@cache
def _source(module: types.ModuleType, project: Path) -> str:
    package, installed = module.__name__.partition(".")[0], Path(sys.prefix)
    files = set[Path]()
    for name, one in list(sys.modules.items()):
        file = Path(getattr(one, "__file__", None) or os.devnull)
        ours = file.is_relative_to(project) and not file.is_relative_to(installed)
        if ours or name == package or name.startswith(f"{package}."):
            files.add(file)
    found = hashlib.sha256()
    for file in sorted(files):
        with suppress(OSError):
            found.update(f"{file}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode(errors="surrogateescape"))
    return found.hexdigest()


def _module(name: str, project: Path) -> Any:
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            places = f"among what is installed, on PYTHONPATH, and in {project}"
            raise NotUsable(f"there is no module {error.name}; it was looked for {places}") from None
        raise NotUsable(f"the module {name} cannot be imported: {_describe_error(error)}") from error
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        raise NotUsable(f"the module {name} cannot be imported: {_describe_error(error)}") from error


def _describe_error(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError):
        place = f" ({error.filename}:{error.lineno})"
    message = " ".join(str(getattr(error, "msg", "") or error).split())
    return f"{type(error).__name__}: {message[:300]}{place}"


def make(
    found: Callable[[Context], Any], dotted: str, port: type, context: Context, longest: timedelta = LONGEST_CALL
) -> "GuardedAdapter":
    """Make an instance, no call of which takes longer than `longest`, or than four times `tracker.timeout`.

    Raises `NotUsable` with what its class said, or where it lacks an attribute of its port.
    """
    try:
        made = found(context)
    except Exception as error:  # most likely what is wrong with its options; whatever it is, no daemon can go on
        raise NotUsable(f"{dotted} could not be made: {_describe_error(error)}") from error
    for name in (name for part in port.__mro__ for name in vars(part).get("__annotations__", ())):
        if not isinstance(value := getattr(made, name, None), str):
            raise NotUsable(f"{dotted}: its attribute `{name}` is {value!r}; expected a text (`context.{name}`)")
    return GuardedAdapter(made, dotted, port, max(longest, 4 * context.timeout), context.redact)


# --- the port -------------------------------------------------------------------------------------------------------


def misfits(found: type, port: type) -> Iterator[str]:
    """Say how a class differs from its port: a method that is missing, or cannot be called as the port says."""
    for name, wanted in _methods(port):
        method = inspect.getattr_static(found, name, None)
        if method is None:
            yield f"the method {name} is missing; expected {_signature(wanted)}"
        elif wrong := _misshapen(getattr(found, name), wanted, bound=isinstance(method, classmethod | staticmethod)):
            yield f"the method {name} {wrong}; expected {_signature(wanted)}"


def _methods(port: type) -> Iterator[tuple[str, Any]]:
    for part in reversed(port.__mro__):
        if part not in (object, Protocol) and getattr(part, "_is_protocol", False):
            methods = ((name, value) for name, value in vars(part).items() if inspect.isfunction(value))
            yield from (method for method in methods if not method[0].startswith("_"))


def _misshapen(method: Any, wanted: Any, *, bound: bool) -> str | None:
    """Say what is wrong with a method; None: it can be called as the port's."""
    if not callable(method):
        return "is no method"
    plain = inspect.unwrap(method)
    if inspect.iscoroutinefunction(wanted) and not inspect.iscoroutinefunction(plain):
        return "is not `async def`" if not inspect.isasyncgenfunction(plain) else "yields, and must return"
    if not inspect.iscoroutinefunction(wanted) and inspect.iscoroutinefunction(plain):
        return "returns, and must yield (`async def` with `yield`, or a plain `def` that gives an async iterator)"
    try:
        given = inspect.signature(method)
    except (TypeError, ValueError):
        return None  # written in another language: it cannot be looked into
    every = list(inspect.signature(wanted).parameters.values())[1:]
    keywords = {parameter.name: object() for parameter in every if parameter.kind is parameter.KEYWORD_ONLY}
    parameters = [parameter for parameter in every if parameter.name not in keywords]
    placed = [object()] * (len(parameters) + (not bound))
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    for arguments in (placed, placed[: len(required) + (not bound)]):
        try:
            given.bind(*arguments, **keywords)
        except TypeError as error:
            return f"cannot be called as the port's ({error})"
    listed = list(given.parameters.values())
    names = [parameter.name for parameter in listed[not bound :]]
    takes_any = any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in listed)
    if not takes_any and names[: len(parameters)] != [parameter.name for parameter in parameters]:
        return f"names its parameters {', '.join(names)}"
    return None


def _signature(wanted: Any) -> str:
    word = "async def" if inspect.iscoroutinefunction(wanted) else "def"
    text = f"`{word} {wanted.__name__}{inspect.signature(wanted)}`"
    return re.sub(r"\b(ashep|collections|datetime|typing)(\.\w+)*\.(?=\w)", "", text)


# --- what comes from it -----------------------------------------------------------------------------------------------


class GuardedAdapter:
    """A runner or tracker of the user's, of which a mistake looks like a server that is away: told, and tried again.

    Other errors than those of the port, answers of another type, and calls that take too long become
    `TrackerUnavailable` (of a write nobody knows whether it landed) or `RunnerUnavailable`. Where the signs or hints
    break off, the next look tells of it. Answers and errors lose the secrets that are known.
    """

    def __init__(self, made: Any, dotted: str, port: type, bound: timedelta, redact: Callable[[str], str]) -> None:
        self._made, self._dotted, self._bound, self._redact = made, dotted, bound.total_seconds(), redact
        self._methods = dict(_methods(port))
        self._of_tracker = port in (Tracker, Annotations)
        self._owed: AshepError | None = None

    def __getattr__(self, name: str) -> Any:
        """Give a method with the guard around it; what is none of the port's as it is."""
        found, wanted = getattr(self._made, name), self._methods.get(name)
        if wanted is None:
            return found
        guarded = self._answering(name, found, wanted)
        if not inspect.iscoroutinefunction(wanted):
            guarded = self._iterating(name, found)
        self.__dict__[name] = guarded
        return guarded

    def _answering(self, name: str, method: Callable[..., Awaitable[Any]], wanted: Any) -> Callable[..., Any]:
        expected = typing.get_type_hints(wanted)["return"]

        async def call(*arguments: Any, **named: Any) -> Any:
            if name in ("look", "catalog") and self._owed is not None:
                owed, self._owed = self._owed, None
                raise owed
            try:
                with anyio.fail_after(self._bound):
                    answer = await method(*arguments, **named)
            except TimeoutError as error:
                raise self._build_error(name, f"did not answer in time: it has {self._bound:g} s") from error
            except Exception as error:
                raise self._error(name, error) from error
            if not _is(answer, expected):
                raise self._build_error(name, f"gave {type(answer).__name__}; expected {_signature(wanted)}")
            return _redact_answer(answer, self._redact)

        return call

    def _iterating(self, name: str, method: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
        async def iterate() -> AsyncIterator[Any]:
            signs: Any = method()
            try:
                async for sign in signs:
                    yield sign
            except Exception as error:  # nobody waits for an answer here: the next look at the whole tells of it
                self._owed = self._error(name, error)
            finally:
                if inspect.isasyncgen(signs):
                    await signs.aclose()

        return iterate

    def _error(self, name: str, error: Exception) -> AshepError:
        known = (TrackerError, TrackerMissing) if self._of_tracker else (RunnerError,)
        if isinstance(error, known):
            error.args = _redact_answer(error.args, self._redact)
            return error
        return self._build_error(name, _describe_error(error))

    def _build_error(self, name: str, reason: str) -> AshepError:
        message = self._redact(f"{self._dotted}.{name} {reason}")
        return TrackerUnavailable(message, unknown=True) if self._of_tracker else RunnerUnavailable(message)


def _is(answer: object, expected: Any) -> bool:
    """Whether an answer is of a type that a port's method names; of collections each item."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Union, types.UnionType):
        return any(_is(answer, argument) for argument in arguments)
    if origin in (tuple, frozenset):
        if not isinstance(answer, origin):
            return False
        items = typing.cast("tuple[object, ...]", answer)
        is_row = origin is tuple and Ellipsis not in arguments
        kinds = arguments if is_row else (arguments[0],) * len(items)
        return len(items) == len(kinds) and all(map(_is, items, kinds))
    return isinstance(answer, origin or expected)


def _redact_answer(answer: Any, redact: Callable[[str], str]) -> Any:
    """Take secrets out of an answer, and take a time without a zone as UTC; what has neither stays what it is."""
    if isinstance(answer, str):
        return redact(answer)
    if isinstance(answer, datetime) and answer.tzinfo is None:
        return answer.replace(tzinfo=UTC)
    if isinstance(answer, tuple | frozenset):
        items = typing.cast("tuple[object, ...]", answer)
        clean = [_redact_answer(item, redact) for item in items]
        same = all(new is old for new, old in zip(clean, items, strict=True))
        return items if same else (tuple(clean) if isinstance(answer, tuple) else frozenset(clean))
    if isinstance(answer, list):
        return [_redact_answer(item, redact) for item in typing.cast("list[object]", answer)]
    if isinstance(answer, Mapping):
        return {
            key: _redact_answer(value, redact) for key, value in typing.cast("Mapping[str, object]", answer).items()
        }
    if not is_dataclass(answer) or isinstance(answer, type):
        return answer
    values = {field.name: getattr(answer, field.name) for field in fields(answer)}
    changed = {name: new for name, old in values.items() if (new := _redact_answer(old, redact)) is not old}
    return typing.cast(object, replace(answer, **changed) if changed else answer)
