"""What is kept of sessions and turns on the disk, in a private folder outside every work tree. All of it blocks.

    sessions/<session>/session.json      what the session was opened with
    sessions/<session>/claude, home, tmp   of one that judges in a sandbox: Claude Code's own folder, and its home
    sessions/<session>/lock              held while it is decided whether a process is started
    sessions/<session>/turns/<message>/<n>/   one attempt of a prompt, the first is 1
        prompt, settings.json, rules.json, hook.py, instructions.md, secret    what its process is given
        before.json                      what its session had used up, and how long its transcript was
        process.json                     which process that is; it stands a moment after the process does
        stdout, stderr                   what it told
        begun, aborted, swept            it passed the gate · we stopped it · nothing of it lives any more
        inside, login                    it is in a sandbox; the number (inode) of the file that is its login there
        asks/, answers/                  what it asks, and what was said to that
    live/<session>                       it has an attempt whose end nobody has seen yet: of this message

Ids are derived, so that nothing has to be looked up and whatever is done twice is the same: the session's of its key
and folder, a prompt's of its message and attempt (facts/claude-code.md 9, 24).
"""

import fcntl
import os
import re
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ashep.adapters.runners.claude import transcript
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.policies import PermissionRule
from ashep.journal import durable_io

_OURS = uuid.UUID("5f0c3a52-7a3b-5c57-9d3f-0f6d5c1f1a20")
MESSAGE = re.compile(r"msg_[A-Za-z0-9_-]{1,100}")
"""What a message's id looks like; it is a folder's name here."""
SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def session_id(key: str, directory: str) -> str:
    """The id of the session with this key in this folder."""
    return str(uuid.uuid5(_OURS, f"{key}\0{directory}"))


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


_MOST = 1024 * 1024  # bytes of a record that are read
_T = TypeVar("_T", bound=_Kept)


class SessionOptions(_Kept):
    """What a session was opened with."""

    key: str
    title: str
    access: Literal["read", "write"]
    directory: str
    permissions: tuple[PermissionRule, ...] = ()
    sandbox: Sandbox | None = None
    """The one that its agent is to have; None: that of all."""
    config: str = ""
    """Claude Code's own folder, where the session is kept apart; empty: it is not, and has the user's."""


class Process(_Kept):
    """The process of an attempt."""

    pid: int
    started: int
    """As in /proc/<pid>/stat: with the pid it names a process for as long as the system is up."""

    @property
    def instance(self) -> str:
        """Its name."""
        return f"{self.pid}.{self.started}"


class Before(_Kept):
    """What stood in its session when an attempt was begun."""

    offset: int = 0
    """Bytes of the transcript."""
    cost: float = 0.0
    """In the provider's currency, of the whole session (facts/claude-code.md 7)."""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process of a prompt."""

    folder: Path

    @property
    def number(self) -> int:
        """Which of the prompt's, from 1."""
        return int(self.folder.name)

    @property
    def message(self) -> str:
        """The prompt's message."""
        return self.folder.parent.name

    @property
    def session(self) -> str:
        """Its session."""
        return self.folder.parent.parent.parent.name

    @property
    def uuid(self) -> str:
        """The prompt's id with Claude Code."""
        return str(uuid.uuid5(_OURS, f"{self.session}\0{self.message}\0{self.number}"))

    @property
    def name(self) -> str:
        """What tells it from all others, also those of other projects."""
        return f"{self.session}/{self.message}/{self.number}"

    def has(self, name: str) -> bool:
        """Whether it has a file of this name."""
        return (self.folder / name).exists()

    def note(self, what: str) -> None:
        """Give it an empty file of this name, durably."""
        durable_io.replace(self.folder / what, b"")

    def process(self) -> Process | None:
        """Its process, as far as that was written down."""
        return _read(Process, self.folder / "process.json")

    def read_baseline(self) -> Before:
        """What stood in its session before it."""
        return _read(Before, self.folder / "before.json") or Before()


class SessionStore:
    """The folder."""

    def __init__(self, folder: Path, config: Path) -> None:
        """`config`: Claude Code's own folder, of sessions that are not kept apart."""
        self.folder, self._config = folder, config
        self._sessions, self._live = folder / "sessions", folder / "live"

    def make(self) -> None:
        """Make it, for this user alone."""
        for one in (self.folder, self._sessions, self._live):
            durable_io.make_folder(one)
            one.chmod(0o700)

    def open(self, session: str, options: SessionOptions) -> None:
        """Keep a session; one that is there already stays as it is."""
        folder = self._sessions / session
        if not (folder / "session.json").exists():
            durable_io.make_folder(folder)
            durable_io.make_folder(folder / "turns")
            durable_io.replace(folder / "session.json", options.model_dump_json().encode())

    def session(self, session: str) -> SessionOptions | None:
        """What is kept of a session."""
        named = SESSION.fullmatch(session)
        return _read(SessionOptions, self._sessions / session / "session.json") if named else None

    def folder_of(self, session: str) -> Path:
        """The folder of a session."""
        return self._sessions / session

    def config(self, session: str) -> Path:
        """Claude Code's own folder, as a session has it."""
        options = self.session(session)
        return Path(options.config) if options is not None and options.config else self._config

    def transcript(self, session: str) -> Path | None:
        """The transcript of a session; None: there is none yet, or somebody has put a way to another file there."""
        options, config = self.session(session), self.config(session)
        file = transcript.file_of(config, session)
        if file is not None and options is not None and options.config:
            own = Path(os.path.realpath(config))
            return file if Path(os.path.realpath(file)).is_relative_to(own) else None
        return file

    @contextmanager
    def lock(self, session: str) -> Generator[None]:
        """While nobody else decides whether a process of this session is started; waits for whoever does."""
        file = os.open(self._sessions / session / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def attempts(self, session: str, message: str) -> list[Attempt]:
        """The attempts of a prompt, in order."""
        if not (SESSION.fullmatch(session) and MESSAGE.fullmatch(message)):
            return []
        folder, names = self._sessions / session / "turns" / message, list[str]()
        with suppress(OSError):
            names = [name for name in os.listdir(folder) if re.fullmatch(r"[1-9]\d{0,5}", name)]
        return [Attempt(folder / str(n)) for n in sorted(map(int, names))]

    def prompts(self, session: str) -> dict[str, str]:
        """The messages of a session's prompts by their ids with Claude Code."""
        messages = list[str]()
        if SESSION.fullmatch(session):
            with suppress(OSError):
                messages = sorted(os.listdir(self._sessions / session / "turns"))
        return {attempt.uuid: name for name in messages for attempt in self.attempts(session, name)}

    def add(self, session: str, message: str, number: int) -> Attempt:
        """Begin the folder of an attempt."""
        folder = self._sessions / session / "turns" / message / str(number)
        for one in (folder.parent, folder, folder / "asks", folder / "answers"):
            durable_io.make_folder(one)
        return Attempt(folder)

    def attempt(self, name: str) -> Attempt | None:
        """The attempt of this name, if there is one."""
        session, _, rest = name.partition("/")
        message, _, number = rest.partition("/")
        return next((attempt for attempt in self.attempts(session, message) if str(attempt.number) == number), None)

    def live(self) -> list[str]:
        """The sessions with an attempt whose end nobody has seen."""
        with suppress(OSError):
            return sorted(one for one in os.listdir(self._live) if SESSION.fullmatch(one))
        return []

    def current(self, session: str) -> Attempt | None:
        """The attempt of a session whose end nobody has seen, if it has one."""
        if SESSION.fullmatch(session):
            with suppress(OSError, ValueError):
                with durable_io.opened(self._live / session) as file:
                    message = file.read(_MOST).decode()
                return next(reversed(self.attempts(session, message)), None)
        return None

    def set_current(self, session: str, message: str | None) -> None:
        """Say whether a session has such an attempt, and of which message."""
        if message is not None:
            durable_io.replace(self._live / session, message.encode())
        else:
            (self._live / session).unlink(missing_ok=True)


def _read(kind: type[_T], file: Path) -> _T | None:
    with suppress(OSError, ValidationError), durable_io.opened(file) as opened:
        return kind.model_validate_json(opened.read(_MOST))
    return None
