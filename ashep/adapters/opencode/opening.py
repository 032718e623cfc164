"""How a person opens a session in OpenCode's own screen (`opencode attach --help`, version 1.18.33).

The password is never printed: the line that is has the shell read it where it lies.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from ashep.adapters.opencode.server import Record, folder_of
from ashep.core.policy.settings import Settings

_VARIABLE = "OPENCODE_SERVER_PASSWORD"
"""Where `opencode attach` looks for the password."""


def how_to_open(settings: Settings, project: Path, state: Path, session: str, environ: Mapping[str, str]) -> str:
    """Give the command that opens a session, or say why there is none now."""
    opencode = settings.runners.opencode
    if settings.runners.own:
        return f"Its session is {session}, of the runner {settings.runners.name}."
    if opencode.url is not None:
        secret = "" if opencode.password_env == _VARIABLE else f'{_VARIABLE}="${opencode.password_env}" '
        return _told(secret, opencode.command, opencode.url, project, session)
    file = folder_of(state, environ) / "server.json"
    try:
        record = Record.model_validate_json(file.read_text("utf-8"))
    except (OSError, ValidationError):
        return f"Its session is {session}; the agent server is not running, and starts with the next run."
    read = f"""sed -n 's/.*"password": *"\\([^"]*\\)".*/\\1/p' {shlex.quote(str(file))}"""
    return _told(f'{_VARIABLE}="$({read})" ', opencode.command, f"http://127.0.0.1:{record.port}", project, session)


def _told(secret: str, command: tuple[str, ...], url: str, project: Path, session: str) -> str:
    line = shlex.join((*command, "attach", url, "--dir", str(project), "--session", session))
    return f"Its session opens with:\n  {secret}{line}"
