"""What `ashep foreman` tells and does without a session: its place, its settings, and all that its own options ask."""

import json
import os
import socket
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import anyio.to_thread
from pydantic import JsonValue

from ashep.adapters import programs
from ashep.core.text import clean
from ashep.errors import AshepError, ConfigError, RunnerUnauthorized, UsageError
from ashep.foreman import memory
from ashep.foreman.history import Entry, History, Kind, derived, read, since
from ashep.foreman.settings import ForemanSettings, load_settings, read_text, settings_file, worker_folder
from ashep.journal.lock import holder
from ashep.redaction import Redaction
from ashep.views.times import local, stamp

_EXTRA = "pip install 'ashep[foreman]'"
_EXTRAS = ("mcp", "trafilatura", "markdownify")
_OLDER = ("history.jsonl", "recent-history.json")
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("prompt", "user", "human", "user_prompt", "user-prompt"), "prompt"),
    **dict.fromkeys(("answer", "assistant", "response", "stop", "agent"), "answer"),
    **dict.fromkeys(("plan", "exit_plan_mode", "exit-plan-mode"), "plan"),
    **dict.fromkeys(("asked", "task", "subagent", "subagent_prompt", "subagent-pretool"), "asked"),
    **dict.fromkeys(("result", "tool_result", "subagent_result", "subagent-stop"), "result"),
}
"""What kinds of entries are called elsewhere."""
_SAYS = 30.0  # seconds for a program to say its version


@dataclass(frozen=True, slots=True)
class Place:
    """A worker: where its history is, and what was set."""

    worker: str
    folder: Path
    """Of the history; it may not be there yet."""
    settings: ForemanSettings
    settings_path: Path
    """It may not be there."""
    environ: Mapping[str, str]
    home: Path
    template: str
    """The rules, tried out."""


def place_of(worker: str, environ: Mapping[str, str], home: Path) -> Place:
    """Find a worker's place; its name is valid (`worker_name`). Raises `ConfigError` for settings and template."""
    settings = load_settings(environ, home)
    rules = Path(settings.memory.rules) if settings.memory.rules else Path(__file__).with_name("rules.md.j2")
    template = read_text(rules)
    memory.check(template, settings.memory)
    folder = worker_folder(environ, home, worker)
    return Place(worker, folder, settings, settings_file(environ, home), environ, home, template)


def printed_prompt(place: Place) -> str:
    """Give what a session that begins now would be told (`--print-prompt`)."""
    told = since(read(place.folder).entries, "cleared")
    return memory.system_prompt(told, place.settings.memory, place.template)


@dataclass(frozen=True, slots=True)
class Told:
    """What `--history` shows."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    """Lines that cannot be read: for standard error."""

    def lines(self) -> list[str]:
        """Give it for people."""
        told = list[str]()
        for entry in self.entries:
            told.append(" ".join(word for word in (local(stamp(entry.at)), entry.kind, entry.agent) if word))
            told += (f"  {line}" for line in entry.text.splitlines())
        return told

    def data(self) -> list[JsonValue]:
        """Give it for programs (`--json`)."""
        return [entry.model_dump(mode="json") for entry in self.entries]


def history(place: Place, word: str | None = None) -> Told:
    """Give all that is kept, old first; with a word what holds it, in whatever case (`--history --search WORD`)."""
    kept, wanted = read(place.folder), (word or "").casefold()
    return Told(tuple(entry for entry in kept.entries if wanted in entry.text.casefold()), kept.damaged)


def clear(place: Place, now: datetime) -> str:
    """Let no session be told any more of what was said (`--clear`); give the line that says so.

    Raises `WorkerBusy` where a wrapper runs, in whose session `/foreman:clear-worker-history` does the same.
    """
    if not place.folder.is_dir():
        return f"{place.worker} has no history"
    with History.open(place.folder, Redaction(), place.settings.memory.keep) as kept:
        if (count := len(kept.entries())) == 0:
            return "there was nothing to be cleared"
        kept.clear(now, "")
    return f"no session is told any more of {memory.counted(count)}; `ashep foreman --history` shows them still"


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken over of the older foreman."""

    found: int
    new: int
    unread: tuple[str, ...]
    """What could not be read, each with its file and line."""


def take_over(place: Place, redaction: Redaction) -> Taken:
    """Take over the history of the older foreman, `~/.claude/mini-goal-workers/NAME/` (`--take-over`).

    It is put before what is kept already; a second time nothing is new. Raises `UsageError` where there is none,
    `WorkerBusy` where a wrapper runs.
    """
    folder = place.home / ".claude" / "mini-goal-workers" / place.worker
    files = [folder / name for name in _OLDER if (folder / name).is_file()]
    if not files:
        raise UsageError(f"there is no history of an older foreman in {folder}")
    found, unread, many = dict[str, Entry](), list[str](), Counter[tuple[str, str]]()
    for file in files:
        try:
            began, raw = file.stat().st_mtime, file.read_bytes().decode(errors="replace")
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from error
        here, at = Counter[tuple[str, str]](), datetime.fromtimestamp(began, UTC)
        for line, record in _records(raw):
            kind, text = _said(record)
            if kind is None or not text.strip():
                unread.append(f"{file}:{line}: nothing that was said can be read there")
                continue
            at = _when(record) or at
            here[kind, text] += 1
            if here[kind, text] > many[kind, text]:  # the second file repeats some of the first
                many[kind, text] += 1
                name = derived("older", kind, text, str(many[kind, text]))
                found[name] = Entry(
                    id=name, at=at, session=str(record.get("session_id") or "older"), kind=kind, text=text
                )
    with History.open(place.folder, redaction, place.settings.memory.keep) as kept:
        return Taken(len(found), kept.prepend(found.values()), tuple(unread))


_Record = dict[str, JsonValue]


def _records(raw: str) -> Iterator[tuple[int, _Record]]:
    """Give the records of a file with their lines, whether it is lines of JSON or one list; nobody wrote down which."""
    try:
        whole: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        for number, line in enumerate(raw.split("\n"), 1):
            if line.strip():
                try:
                    yield number, _record(json.loads(line))
                except (ValueError, RecursionError):
                    yield number, {}
        return
    if isinstance(whole, dict):
        whole = next((value for value in whole.values() if isinstance(value, list)), [whole])
    for record in whole if isinstance(whole, list) else [whole]:
        yield 1, _record(record)


def _record(value: JsonValue) -> _Record:
    """Give a record with what stands in its `message`, as transcripts have it, on its own ground."""
    if not isinstance(value, dict):
        return {}
    inner = value.get("message")
    return {**value, **inner} if isinstance(inner, dict) else value


def _said(record: _Record) -> tuple[Kind | None, str]:
    """Give what was said, by the names that such files have for it."""
    told = next(
        (str(record[key]).lower() for key in ("kind", "type", "role") if str(record.get(key)).lower() in _KINDS), ""
    )
    names = ("content", "text", "prompt", "message", "response", "answer", "plan", "result")
    key = next((name for name in names if record.get(name)), "")
    blocks = record.get(key)
    parts = [
        one.get("text") if isinstance(one, dict) else one for one in (blocks if isinstance(blocks, list) else [blocks])
    ]
    return _KINDS.get(told or key), "\n".join(part for part in parts if isinstance(part, str))


def _when(record: _Record) -> datetime | None:
    for value in map(record.get, ("timestamp", "at", "time", "ts", "date")):
        try:
            if isinstance(value, str):
                at = datetime.fromisoformat(value)
                return at if at.tzinfo else at.replace(tzinfo=UTC)
            if isinstance(value, int | float):
                return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class Line:
    """What the doctor found, as `ashep install` says it; that room imports half of the house."""

    level: Literal["ok", "warning", "error"]
    check: str
    what: str
    remedy: str = ""


async def doctor(worker: str, environ: Mapping[str, str], home: Path) -> Sequence[Line]:
    """Say of everything that is needed whether it is there, and what to do (`--doctor`).

    With a line of level `error` the exit code is 1.
    """
    here = await anyio.to_thread.run_sync(_here, worker, environ, home)
    return [*await _claude(environ, home), *here]


async def _claude(environ: Mapping[str, str], home: Path) -> list[Line]:
    from ashep.adapters.claude import ClaudeRunner  # nobody else of this module needs it

    tried = programs.CLAUDE_VERSION
    found = await anyio.to_thread.run_sync(programs.find, "claude")
    if found is None:
        return [Line("error", "claude", "it is not there", f"install Claude Code {tried}")]
    try:
        done = await programs.run([found, "--version"], cwd=None, env=environ, timeout=_SAYS)
    except AshepError as error:
        return [Line("error", "claude", str(error), f"install Claude Code {tried}")]
    version = clean(done.stdout.decode(errors="replace")).split(" ")[0].strip()
    if done.returncode or not version:
        return [Line("error", "claude", f"{found} --version ended with {done.returncode}", f"install {tried}")]
    lines = [Line("ok", "claude", f"Claude Code {version}: {found}")]
    if version != tried:
        why = f"Claude Code {version}: {found}; ashep is tried with {tried}"
        lines = [Line("warning", "claude", why, f"install {tried} if anything is odd")]
    config = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    asked = ClaudeRunner([str(found)], directory=home, folder=config, environ=environ, begin=_never, config=config)
    try:
        await anyio.to_thread.run_sync(asked.check_login)
        return [*lines, Line("ok", "login", "there is a login or a key; only a session shows whether that still holds")]
    except RunnerUnauthorized:
        return [*lines, Line("warning", "login", "nobody is logged in", "claude asks you to, as it starts")]
    except OSError as error:
        return [*lines, Line("warning", "login", f"{error.filename} cannot be read: {error.strerror}")]


async def _never(*_: str) -> bool:
    return False


def _here(worker: str, environ: Mapping[str, str], home: Path) -> list[Line]:
    """Look at everything but Claude Code."""
    return [*_settings(worker, environ, home), *_folder(worker_folder(environ, home, worker)), _port(), _extras()]


def _settings(worker: str, environ: Mapping[str, str], home: Path) -> list[Line]:
    try:
        place = place_of(worker, environ, home)
    except ConfigError as error:
        return [Line("error", "settings", str(error), "docs/guides/foreman.md says what may stand there")]
    path, model = place.settings_path, place.settings.model
    lines = [Line("ok", "settings", str(path) if path.exists() else f"the defaults: there is no {path}")]
    if model is None:
        lines.append(Line("ok", "model", "none is set: no prompt is asked about, and no page is read for an answer"))
    elif model.key is not None and not environ.get(model.key):
        lines.append(Line("warning", "model", f"there is no {model.key} in the environment, which holds its key"))
    elif model.kind != "claude" and model.url is None:
        lines.append(Line("warning", "model", f"{model.kind} takes an endpoint", "set `model.url`"))
    else:
        lines.append(Line("ok", "model", f"{model.model} ({model.kind})"))
    told = "as the environment says" if environ.get("SEARCH_API_URL") or environ.get("SEARCH_API_KEY") else "not set"
    return [*lines, Line("ok", "search", place.settings.search.provider if place.settings.search else told)]


def _folder(folder: Path) -> list[Line]:
    """Look at the history."""
    try:
        kept, mode = read(folder), stat.S_IMODE(folder.stat().st_mode)
    except FileNotFoundError:
        return [Line("ok", "history", f"nothing yet: {folder}")]
    except (AshepError, OSError) as error:
        return [Line("error", "history", str(error), "give it back to you: `chown`, `chmod -R u+rwX`")]
    lines = [Line("warning", "history", one, "mend it, or delete it") for one in kept.damaged]
    if mode & 0o077:
        lines.append(Line("warning", "history", f"{folder} may be read by others", f"chmod 700 {folder}"))
    if not os.access(folder, os.W_OK | os.X_OK):
        lines.append(Line("error", "history", f"{folder} cannot be written", f"chmod 700 {folder}"))
    busy = f"; process {who.pid} has it" if (who := holder(folder)) else ""
    return [Line("ok", "history", f"{memory.counted(len(kept.entries))} in {folder}{busy}"), *lines]


def _port() -> Line:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Line("ok", "port", "a port of this machine's own is free for the hooks")
    except OSError as error:
        return Line("error", "port", f"no port of this machine's own can be had: {error.strerror}")


def _extras() -> Line:
    lacking = [name for name in _EXTRAS if find_spec(name) is None]
    if lacking:
        return Line("warning", "web tools", f"there is no {', '.join(lacking)}: no web-search, no web-fetch", _EXTRA)
    return Line("ok", "web tools", "all that they need is there")
