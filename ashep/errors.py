"""Every error that ashep raises on purpose, and the exit code that a command ends with when one reaches it.

::

    AshepError                      1   a check failed
    ├── UsageError                  2   configuration or usage
    │   ├── ConfigError             2   a file, line and key (config.py)
    │   ├── TrackerMissing          2   no bd, too old, or no database: an unmistakable answer
    │   └── ProgramMissing          2   a program is not on PATH nor in the tools cache
    ├── AlreadyRunning              3   another daemon holds this state folder
    ├── NotChecked                  69  an audit found nothing, but could not ask the tracker
    ├── JournalDamaged              65  a bad line with a complete batch after it
    ├── DiskFailed                  74  a write or fsync failed; nothing after it may be acted on
    ├── ProgramTimedOut             1   a program was killed with its process group at its bound
    ├── PrintedTooMuch              1   a program was killed with its process group: nobody could hold what it said
    ├── NotSent                     1   a target did not take a message to people
    ├── TrackerError                1   the tracker answered, or failed to
    │   ├── TrackerUnavailable      1   infrastructure: try again later; `unknown` says a write may have landed
    │   ├── TrackerRefused          1   the tracker said no for good (unknown id, open blocker, cycle)
    │   ├── GuardTripped            1   a person was faster: nothing was written (bd exit 13)
    │   └── ClaimLost               1   somebody else holds the issue
    ├── ForgeError                  1
    │   ├── ForgeUnavailable        1   infrastructure: no answer, 5xx, a rate limit (`retry_after`); `unknown` as above
    │   ├── ForgeUnauthorized       1   no token, or one that it does not take
    │   └── ForgeRefused            1   the forge said no for good
    └── RunnerError                 1
        ├── RunnerUnavailable       1   infrastructure: no answer, connection refused, 5xx
        │   ├── ServerNotStarted    1   the managed server ended at its start, or did not answer in time
        │   ├── ServerStarting      1   the managed server is alive, and has not answered yet
        │   └── ServerSlow          1   the server was reached, and did not answer in time
        ├── SessionUnavailable      1   infrastructure of one session alone: its own server or process does not answer
        ├── RunnerUnauthorized      1   the server wants another password
        └── RunnerRefused           1   the server said no for good (unknown session, 4xx)
            └── RunnerMisconfigured 1   the server refuses its configuration, which it read from a file
"""

from pathlib import Path


class AshepError(Exception):
    """A check failed."""

    exit_code = 1

    def __str__(self) -> str:
        """Give the message, or the first line of the class's docstring where there is none."""
        return super().__str__() or (type(self).__doc__ or "").splitlines()[0]


def ours(group: BaseExceptionGroup) -> list[AshepError]:
    """Give the errors in a group of errors of ours; any other group is raised again."""
    found, others = group.split(AshepError)
    if found is None or others is not None:
        raise group
    leaves = (ours(error) if isinstance(error, BaseExceptionGroup) else [error] for error in found.exceptions)
    return [error for some in leaves for error in some]


class UsageError(AshepError):
    """The command was used in a way that cannot work."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file says something that cannot be used.

    `str()` is one line: file, line, key, what was found, what was expected, what to do.
    """

    def __init__(self, message: str, *, file: Path | str, line: int | None = None, key: str | None = None) -> None:
        self.message, self.file, self.line, self.key = message, str(file), line, key
        place = self.file if line is None else f"{self.file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")


class TrackerMissing(UsageError):
    """The tracker is not there: bd is missing, too old, or has no database here."""


class ProgramMissing(UsageError):
    """A program is neither on PATH nor in the tools cache."""


class AlreadyRunning(AshepError):
    """Another daemon holds this state folder."""

    exit_code = 3


class NotChecked(AshepError):
    """An audit found nothing, but could not ask the tracker."""

    exit_code = 69


class JournalDamaged(AshepError):
    """The journal holds a bad line with a complete batch after it."""

    exit_code = 65

    def __init__(self, message: str = "", *, file: Path | str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file, self.line = None if file is None else str(file), line


class DiskFailed(AshepError):
    """A write or fsync failed."""

    exit_code = 74


class TreeRefused(AshepError):
    """A work tree is in a state that a person must end: nothing comes of trying again."""


class RepositoryLocked(AshepError):
    """Another git holds a lock of the repository, or died and left it."""

    def __init__(self, message: str, lock: str) -> None:
        """`lock`: the file."""
        super().__init__(message)
        self.lock = lock


class ProgramTimedOut(AshepError):
    """A program did not end in time; its process group was killed."""


class PrintedTooMuch(AshepError):
    """A program printed more than can be read; its process group was killed."""


class NotSent(AshepError):
    """A target did not take a message to people, or may not have."""


class TrackerError(AshepError):
    """The tracker failed."""


class TrackerUnavailable(TrackerError):
    """The tracker did not answer in a usable way; it is tried again later.

    `unknown` is True where a write may have landed all the same, so that it must be probed before it is repeated
    (facts/beads.md 7: a killed bd had stored the comment 5 times of 14).
    """

    def __init__(self, message: str = "", *, unknown: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown


class TrackerRefused(TrackerError):
    """The tracker refused for good."""


class GuardTripped(TrackerError):
    """The issue was no longer as we believed; nothing was written."""


class ClaimLost(TrackerError):
    """Somebody else holds the issue, or it is not claimable any more."""


class ForgeError(AshepError):
    """The forge, or the remote that it keeps, failed."""


class ForgeUnavailable(ForgeError):
    """The forge did not answer in a usable way; it is tried again later.

    `retry_after` are the seconds that it wants to be left alone, 0 where it says nothing of it. `unknown` is True where
    a write may have landed all the same: it is probed before it is repeated.
    """

    def __init__(self, message: str = "", *, retry_after: float = 0.0, unknown: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.unknown = retry_after, unknown


class ForgeUnauthorized(ForgeError):
    """The forge refuses our token, or there is none."""


class ForgeRefused(ForgeError):
    """The forge refused for good; `status` is its HTTP status, 0 where there was none."""

    def __init__(self, message: str = "", *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class RunnerError(AshepError):
    """The agent server failed, or another runner of the project's: `runner` is its name."""

    def __init__(self, *words: object, runner: str = "opencode") -> None:
        super().__init__(*words)
        self.runner = runner


class RunnerUnavailable(RunnerError):
    """The agent server did not answer; it is tried again later."""


class ServerNotStarted(RunnerUnavailable):
    """The managed agent server ended at its start, or did not answer in time."""


class ServerStarting(RunnerUnavailable):
    """The managed agent server is alive, and has not answered yet: it is waited for."""


class ServerSlow(RunnerUnavailable):
    """The agent server was reached, and did not answer in time."""


class SessionUnavailable(RunnerError):
    """The server or process of one session does not answer; other sessions of its runner go on."""


class RunnerUnauthorized(RunnerError):
    """The agent server refuses our password."""


class RunnerRefused(RunnerError):
    """The agent server refused for good."""


class RunnerMisconfigured(RunnerRefused):
    """The agent server refuses its configuration. `str()` is the file, and the server's words."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}")
        self.file, self.message = file, message
