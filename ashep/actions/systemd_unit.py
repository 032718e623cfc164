"""Systemd units that run ashep for a project, its loop and `ashep serve`: `ashep service`.

The agent server outlives the daemon on purpose, as do turns of Claude Code and the keepers of agents that speak ACP, so
that only the main process is ended with the service (`KillMode=process`); `ashep stop --server` ends the server, too.
What agents run is in the service's sandbox: it keeps the system's files from being written and new privileges from
being gained, and leaves the user's own files alone.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ashep.adapters.system import programs
from ashep.adapters.system.process_table import OWN_OOM
from ashep.errors import AshepError

WATCHDOG = "5min"
"""The service manager's patience; `ashep.daemon.watchdog` ticks every half minute."""

KEPT = ("SHELL", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
        "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "CLAUDE_CONFIG_DIR")  # fmt: skip
"""Variables, beside PATH, that are what they are when the unit is written; none of them is a secret."""

NO_RESTART = (2, 3, 65)
"""Exit codes that starting again does not change: the configuration, another daemon, a damaged journal."""

PORT = 8090
"""Where `ashep serve` listens, unless it is told otherwise."""

_LOOP = f"""TimeoutStartSec=15min
TimeoutStopSec=30s
WatchdogSec={WATCHDOG}
KillMode=process
"""
_SERVE = """TimeoutStopSec=30s
KillMode=mixed
CPUWeight=400
"""
"""Checks that it executes end with it; and the page is answered while agents take what there is of the machine."""

_FIRST = "Nice=-5\n"
"""What a user's manager may not give: there it is the weight alone."""

_SYSTEM = """ProtectSystem=full
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectClock=yes
ProtectHostname=yes
PrivateDevices=yes
"""
"""What only the system's manager can promise: a user's would need name spaces that many machines refuse."""

_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit file: where it belongs, and what it says."""

    name: str
    path: Path
    text: str
    user: bool

    @property
    def systemctl(self) -> tuple[str, ...]:
        """The program that manages it, with its first arguments."""
        return ("systemctl", "--user") if self.user else ("systemctl",)


def unit_of(
    project: Path,
    environ: Mapping[str, str],
    *,
    user: bool,
    serve: bool = False,
    port: int | None = None,
) -> Unit:
    """Make the unit of a project; `user`: for the user's own manager, else for the system's, as the project's owner.

    ashep is started as this process was. `serve`: the unit of `ashep serve` in place of the loop's. `port`: where that
    listens; None: where the unit that stands there says, else 8090.
    """
    project = project.resolve()
    digest = sha256(os.fsencode(project)).hexdigest()[:8]
    kind = "ashep-serve" if serve else "ashep"
    name = f"{kind}-{re.sub(r'[^A-Za-z0-9_.]', '-', project.name)[:40] or 'project'}-{digest}.service"
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    folder = Path(base, "systemd", "user") if user else Path("/etc/systemd/system")
    unit = Unit(name, folder / name, "", user)
    if serve and port is None:
        match = re.search(r'"serve" "--port" "([0-9]{1,5})"', stands(unit) or "")
        port = int(match[1]) if match else PORT
    words = ("serve", "--port", str(port)) if serve else ("work",)
    return replace(unit, text=_text(project, environ, name, words, user=user))


def _text(project: Path, environ: Mapping[str, str], name: str, words: tuple[str, ...], *, user: bool) -> str:
    loop = words == ("work",)
    command = [sys.executable, "-P", "-m", "ashep", "-C", str(project), *words]
    variables = {"PATH": environ.get("PATH", os.defpath)} | {key: environ[key] for key in KEPT if environ.get(key)}
    runtime = f"RuntimeDirectory={name.removesuffix('.service')}\nRuntimeDirectoryMode=0700\n"
    variables |= {} if user else {"XDG_RUNTIME_DIR": f"/run/{name.removesuffix('.service')}"}
    lines = "\n".join(f"Environment={_quoted(f'{key}={value}')}" for key, value in variables.items())
    # `$$`: variables are not put into a command line
    # -P, and no PYTHONPATH: its folder is the project, of which nothing is imported but classes that config.yaml names
    # where there is no network the tracker and the agent server say so themselves: nothing is waited for at the start
    return f"""# Written by `ashep service install`: what you change here is lost with the next one.
# Your own settings: systemctl {"--user " if user else ""}edit {name}
# Variables, such as keys of providers: NAME=value lines in {"~/.config" if user else "/etc"}/ashep/environment
[Unit]
Description=Agent Shepherd{"" if loop else "'s page and verification"} for {_escaped(str(project))}
StartLimitIntervalSec=10min
StartLimitBurst=5

[Service]
{"Type=notify" + chr(10) + "NotifyAccess=main" if loop else "Type=exec"}
{"" if user else _owner(project)}WorkingDirectory={_escaped(str(project))}
ExecStart={" ".join(_quoted(word.replace("$", "$$")) for word in command)}
{"ExecReload=kill -HUP $MAINPID" + chr(10) if loop else ""}{lines}
UnsetEnvironment=PYTHONPATH PYTHONHOME PYTHONSTARTUP
EnvironmentFile=-{"%h/.config" if user else "/etc"}/ashep/environment
Restart=on-failure
RestartSec=10s
RestartPreventExitStatus={" ".join(map(str, NO_RESTART))}
{_LOOP if loop else _SERVE}{"" if loop or user else _FIRST}OOMPolicy=continue
OOMScoreAdjust={OWN_OOM}
UMask=0077
LimitCORE=0
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
{"" if user else runtime + _SYSTEM}
[Install]
WantedBy={"default.target" if user else "multi-user.target"}
"""


def _owner(project: Path) -> str:
    """The user of a system's service: whose project it is. Agents must not run as root."""
    try:
        owner = project.owner()
    except (KeyError, OSError) as error:
        raise AshepError(f"nobody knows whose {project} is: {error}") from error
    if owner == "root":
        raise AshepError(f"{project} is root's, and agents must not run as root: give it to a user, or use --user")
    return f"User={owner}\n"


def _escaped(text: str) -> str:
    """A text in a setting of its own: `%` begins a specifier; nothing can hold a newline."""
    if "\n" in text or "\r" in text:
        raise AshepError(f"{text!r} cannot stand in a unit file")
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def write(unit: Unit) -> bool:
    """Write the unit's file; False where it stands there already. Raises `AshepError` where that cannot be."""
    if stands(unit) == unit.text:
        return False
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = unit.path.with_name(f"{unit.path.name}.new")
        fresh.write_text(unit.text, encoding="utf-8")
        fresh.replace(unit.path)
    except OSError as error:
        remedy = "use --user, or --print and install it as root" if not unit.user else "is the folder yours?"
        raise AshepError(f"{unit.path} cannot be written: {error.strerror}; {remedy}") from error
    return True


def stands(unit: Unit) -> str | None:
    """Give what the unit's file says; None where there is none."""
    try:
        return unit.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def remove(unit: Unit) -> bool:
    """Delete the unit's file; False where there is none."""
    try:
        unit.path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise AshepError(f"{unit.path} cannot be deleted: {error.strerror}") from error
    return True


STATES = ("LoadState", "ActiveState", "SubState", "Result", "MainPID", "NRestarts", "StatusText", "UnitFileState",
          "ActiveEnterTimestamp", "NeedDaemonReload")  # fmt: skip
"""What the manager is asked for."""


async def manage(unit: Unit, *words: str) -> str:
    """Have the manager do something; give what it printed. Raises `AshepError` with its words where it refuses."""
    done = await programs.run([*unit.systemctl, *words], cwd=None, env=None, timeout=_TIMEOUT)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise AshepError(f"{' '.join((*unit.systemctl, *words))}: {said}")
    return done.stdout.decode(errors="replace")


async def state(unit: Unit) -> dict[str, str]:
    """Ask the manager how the service is."""
    shown = await manage(unit, "show", unit.name, f"--property={','.join(STATES)}")
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
