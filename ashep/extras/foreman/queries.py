"""What `ashep foreman` tells and does without a session: its place and settings, and what its own options ask for."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, JsonValue, ValidationError

from ashep.adapters.system.clock import RealClock
from ashep.config.findings import read_text
from ashep.errors import AshepError, UsageError
from ashep.extras.foreman import memory
from ashep.extras.foreman.history import History, HistoryEntry, Kind, derived, read, since
from ashep.extras.foreman.settings import ForemanSettings, load_settings
from ashep.journal.lock import holder
from ashep.redaction import Redaction, guessed

if TYPE_CHECKING:  # it imports half of the house
    from ashep.actions.doctor_security import CheckLine


@dataclass(frozen=True, slots=True)
class WorkerPaths:
    """A worker: where its history is, and what was set."""

    worker: str
    folder: Path
    """Of the history; it may not be there yet."""
    settings: ForemanSettings
    environ: Mapping[str, str]
    home: Path
    template: str
    """The rules, tried out."""


def place_of(worker: str, environ: Mapping[str, str], home: Path) -> WorkerPaths:
    """Find a worker's place; its name is valid (`worker_name`). Raises `ConfigError` for settings and template."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "ashep")
    folder = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state", "ashep", "foreman", worker)
    settings, shipped = load_settings(config / "foreman.yaml"), Path(__file__).with_name("rules.md.j2")
    template = read_text(config / os.path.expanduser(settings.memory.rules) if settings.memory.rules else shipped)
    memory.check(template, settings.memory)
    return WorkerPaths(worker, folder, settings, environ, home, template)


def printed_prompt(place: WorkerPaths) -> str:
    """Give what a session that begins now would be told (`--print-prompt`)."""
    told = since(read(place.folder).entries, "cleared")
    return memory.system_prompt(told, place.settings.memory, place.template)


def clear(place: WorkerPaths) -> str:
    """Let no session be told any more of what was said (`--clear`), and say so; raises `WorkerBusy`."""
    with History.open(place.folder, Redaction(), place.settings.memory.keep) as kept:
        count = len(kept.entries())
        kept.clear(RealClock().now(), "")
    return f"no session is told any more of {memory.counted(count)}; `ashep foreman --history` shows them still"


_OURS = {"user": "prompt", "human": "prompt", "assistant": "answer", "response": "answer", "subagent": "asked"}


def _joined(text: JsonValue) -> str:
    blocks = text if isinstance(text, list) else [text]
    return "\n".join(str(block.get("text", "") if isinstance(block, dict) else block) for block in blocks)


class _Older(BaseModel):
    """A record of the older foreman, whose form nobody wrote down: these are the names that such files have."""

    kind: Annotated[Kind, BeforeValidator(lambda kind: _OURS.get(str(kind), kind))] = Field(
        validation_alias=AliasChoices("kind", "role", "type")
    )
    text: Annotated[str, BeforeValidator(_joined), Field(pattern=r"\S")] = Field(
        validation_alias=AliasChoices(AliasPath("message", "content"), "content", "text", "prompt", "message", "plan")
    )
    at: datetime | None = Field(default=None, validation_alias=AliasChoices("timestamp", "at", "time", "ts"))


def take_over(place: WorkerPaths) -> list[str]:
    """Put the older foreman's history before ours, each entry once (`--take-over`); say what came of it."""
    folder = place.home / ".claude" / "mini-goal-workers" / place.worker
    files = [file for name in ("history.jsonl", "recent-history.json") if os.path.lexists(file := folder / name)]
    found, said = dict[str, HistoryEntry](), list[str]()
    for file in files:
        try:
            raw, at = file.read_bytes(), datetime.fromtimestamp(file.stat().st_mtime, UTC)
            # one list, or lines
            records = [*map(json.dumps, json.loads(raw))] if raw.lstrip().startswith(b"[") else raw.splitlines()
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
        often = Counter[tuple[str, str]]()
        for number, record in enumerate(records, 1):
            try:
                one = _Older.model_validate_json(record)
            except ValidationError:
                said.append(f"{file}:{number}: nothing that was said can be read there")
                continue
            at = one.at.replace(tzinfo=one.at.tzinfo or UTC) if one.at else at
            often[one.kind, one.text] += 1
            name = derived("older", one.kind, one.text, str(often[one.kind, one.text]))
            # the second file repeats some of the first
            found.setdefault(name, HistoryEntry(id=name, at=at, session="older", kind=one.kind, text=one.text))
    if not files:
        raise UsageError(f"there is no history of an older foreman in {folder}")
    redaction = Redaction(tuple(guessed(place.environ)))
    with History.open(place.folder, redaction, place.settings.memory.keep) as kept:
        return [*said, f"{kept.prepend(found.values())} of {memory.counted(len(found))} are new"]


def doctor(worker: str, environ: Mapping[str, str], home: Path, directory: Path) -> "list[CheckLine]":
    """Say of everything that is needed whether it is there, and what to do (`--doctor`)."""
    from ashep.actions.doctor_security import CheckLine
    from ashep.actions.runners.base import ONCE, Examination
    from ashep.actions.runners.claude import examine
    from ashep.core.policy.settings import Settings
    from ashep.extras.foreman import model_endpoints, web_tools

    runners = Settings.model_validate({"runners": {"claude": {}}})
    lines = anyio.run(examine, Examination(home, runners, "claude"))
    lines = [line for line in lines if not line.what.startswith(ONCE)]  # that is about the night
    if lacking := web_tools.missing():
        lines.append(CheckLine("warning", "web tools", lacking))
    try:
        place = place_of(worker, environ, home)
        kept, who = read(place.folder), holder(place.folder)
    except (AshepError, OSError) as error:  # of settings, of the template, of the history
        return [*lines, CheckLine("error", "settings", str(error))]
    try:
        provider = model_endpoints.find_search(place.settings.search, environ, directory)[0]
        lines.append(CheckLine("ok", "search", provider))
    except UsageError as error:
        lines.append(CheckLine("warning", "search", str(error)))
    model, busy = place.settings.model, f"; process {who.pid} has it" if who else ""
    if model is None:
        what = "none is set: no prompt is asked whether it begins a new topic, and `web-fetch` answers no question"
        lines.append(CheckLine("ok", "model", what, "`model` in foreman.yaml names a small one"))
    elif model.key and not environ.get(model.key):
        lines.append(CheckLine("warning", "model", f"there is no {model.key} in the environment, which holds its key"))
    if place.folder.exists() and (place.folder.stat().st_mode & 0o077 or not os.access(place.folder, os.W_OK)):
        lines.append(CheckLine("error", "history", f"{place.folder} is not yours alone", f"chmod 700 {place.folder}"))
    lines += (CheckLine("warning", "history", one, "mend it, or delete it") for one in kept.damaged)
    return [*lines, CheckLine("ok", "history", f"{memory.counted(len(kept.entries))} in {place.folder}{busy}")]
