"""The folder of a session, by which the runner and the session's keeper talk: nothing else is between them.

`session.json` (what was asked for), `in/` (prompts, answers and aborts for the keeper), `turns/` (how each prompt's
turn stands), `questions/` (what waits for an answer), `record.jsonl` (what was said), `now` (a turn is open),
`agent.json` (the agent's own id of the session), `keeper.json` (who keeps it), `sandbox.json` (how an agent is started
that is kept apart, and sees nothing of this folder), `limits.json` (what the agent shows of its login's quota), `door`
and `keeper` (locks).
"""

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ashep.adapters.runners.foreign_json import JsonObject, parse_object
from ashep.adapters.system import process_table
from ashep.journal import durable_io

MOST_RECORD = 8 * 1024 * 1024
"""Bytes of a record's file; one older file of that size is kept next to it."""

MOST_FILE = 4 * 1024 * 1024
"""Bytes of any other file that is read."""

MARK = "ASHEP_ACP_SESSION"
"""The variable that an agent and all that it starts have in their environment, with the session's folder."""

KEPT = "ASHEP_ACP_KEEPER"
"""The same, which the keeper has, too."""

LIMITS = "limits.json"
"""What the agent showed last of its login's quota."""

APART = "apart"
"""What who judges in a sandbox has of its own."""

_STANDS = "acp"


class Mailbox:
    """One session's folder. All of it blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inbox, self.turns, self.questions = path / "in", path / "turns", path / "questions"

    def make(self) -> None:
        """Make it, durably."""
        for folder in (self.path, self.inbox, self.turns, self.questions):
            durable_io.make_folder(folder)

    def read(self, name: str) -> JsonObject | None:
        """What a file holds; None: it is not there, or no JSON object."""
        with suppress(OSError, ValueError), durable_io.opened(self.path / name) as file:
            return parse_object(file.read(MOST_FILE))
        return None

    def write(self, name: str, value: Mapping[str, object]) -> None:
        """Give a file this content, whole and durably."""
        durable_io.replace(self.path / name, json.dumps(value).encode())

    def remove(self, name: str) -> None:
        """Take a file away, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """The files in a folder of it, but for drafts."""
        with suppress(OSError):
            return sorted(one for one in os.listdir(self.path / folder) if not one.endswith(".tmp"))
        return []

    def first(self, name: str, value: Mapping[str, object]) -> bool:
        """Write a file that is not there yet; False: it is."""
        draft = self.path / f"{name}.first.tmp"
        durable_io.replace(draft, json.dumps(value).encode())
        try:
            os.link(draft, self.path / name)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        durable_io.sync_folder((self.path / name).parent)
        return True

    def things(self) -> Path | None:
        """Where the agent of a session that is kept apart has its things; None: it runs as we do."""
        folder = (self.read("session.json") or {}).get("things")
        return Path(str(folder)) if folder else None

    def stands(self) -> bool:
        """Whether what the agent has kept of it is still there: it goes with the place that it was made in."""
        return (things := self.things()) is None or (things / _STANDS / self.path.name).exists()

    def stand(self) -> None:
        """Begin it again where it does not stand."""
        if (things := self.things()) is not None and not self.stands():
            self.remove("agent.json")
            durable_io.make_folder(things / _STANDS)
            (things / _STANDS / self.path.name).touch()

    @contextmanager
    def door(self) -> Generator[None]:
        """Nobody else puts a prompt in or ends a keeper for idleness meanwhile."""
        with (self.path / "door").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def keeper(self) -> str:
        """Who keeps it, or did last: `<pid>.<start time>`; empty: nobody ever."""
        return str((self.read("keeper.json") or {}).get("keeper", ""))

    def record(self, entry: Mapping[str, object]) -> None:
        """Add an entry to the record; of too long a one the older part goes."""
        path = self.path / "record.jsonl"
        with path.open("ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            size = file.tell()
        if size > MOST_RECORD:
            path.rename(self.path / "record.1.jsonl")

    def tail(self, size: int) -> list[JsonObject]:
        """The last entries of the record, of about so many bytes; what is no entry is left out."""
        entries, room = list[JsonObject](), size
        for name in ("record.jsonl", "record.1.jsonl"):
            with suppress(OSError), durable_io.opened(self.path / name) as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - room))
                lines = file.read(room).split(b"\n")
                entries[:0] = [one for line in lines if (one := parse_object(line)) is not None]
                room -= min(room, end)
            if not room:
                break
        return entries


def name_process(pid: int) -> str:
    """A process by its pid and start time."""
    return f"{pid}.{process_table.stat(pid)[1]}"


def keeper_lives(keeper: str) -> bool:
    """Whether the process of this name has not ended."""
    pid, _, started = keeper.partition(".")
    return pid.isdecimal() and started.isdecimal() and process_table.lives(int(pid), int(started))


def keeper_age(keeper: str) -> float:
    """Returns for how many seconds the process of this name has lived; 0 where it has ended."""
    return process_table.age(int(keeper.partition(".")[0])) if keeper_lives(keeper) else 0.0
