"""`ashep status --watch`: a live terminal screen. It only reads, and leaves the terminal as it was."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ashep.cli import output
from ashep.cli.context import current_time, picture
from ashep.errors import AshepError, UsageError
from ashep.store.read_model import ReadModel, daemon_of, disk_of
from ashep.views import Data, status
from ashep.views.times import local

EVERY = 1.0
"""Seconds between looks at the picture; what it shows is only read again where something changed."""

SIGNS_EVERY = 2.0
"""Seconds between questions to the daemon how alive its runs are."""

_STYLES = {"person": "yellow", "running": "green", "time": "cyan", "parked": "red"}


def watch(state: Path) -> int:
    """Show where everything stands until Ctrl-C. Raises `UsageError` where there is no terminal to show it on."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("--watch needs a terminal; `ashep status` says once how everything stands")
    seen_before = WatchedStatus()
    with picture(state) as seen:  # what is to be drawn first, with words about it, is drawn before the screen is taken
        seen_before.look(seen, state)
    signs = Signs(state)
    console = Console(no_color=not output.colours(), highlight=False, emoji=False)
    with (
        output.interrupted_by(signal.SIGTERM),  # the terminal is given back
        Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live,
    ):
        try:
            while True:
                with picture(state) as seen:
                    seen_before.look(seen, state)
                size = console.size
                live.update(page(seen_before, signs.known, size.height), refresh=True)
                time.sleep(EVERY)  # noqa: TID251 - a command for people, outside of everything that is replayed
        except KeyboardInterrupt:
            pass
        finally:
            signs.end()
    return 0


class WatchedStatus:
    """What the picture shows, read again only where the journal went on."""

    _key: object = None

    def look(self, seen: ReadModel, state: Path) -> None:
        """Look whether it changed."""
        key = (status.read_model_position(seen.database), seen.daemon, seen.behind)
        if key != self._key:
            self.told = status.status(seen.database, {**daemon_of(seen), "disk": disk_of(state)})
            self.runs = status.under_way(seen.database)
            self._key = key


class Signs:
    """Asks the daemon, next to the screen, how alive its runs are; what it said last is shown."""

    def __init__(self, state: Path) -> None:
        self.known: dict[str, Data] = {}
        self._state, self._over = state, threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        from ashep.adapters.system.control_socket import ask

        while not self._over.is_set():
            try:
                told: dict[str, Any] = ask(self._state, {"do": "watch"})
                self.known = told.get("signs", {})
            except AshepError:  # no daemon, or an earlier one that does not know the question
                self.known = {}
            self._over.wait(SIGNS_EVERY)

    def end(self) -> None:
        """Ask no more."""
        self._over.set()


# --- the page -----------------------------------------------------------------------------------------------------


def page(seen: WatchedStatus, signs: dict[str, Data], height: int) -> RenderableType:
    """Give what fits into so many lines, what waits for a person first."""
    at, told = current_time(), seen.told
    lines: list[RenderableType] = [_line(status.headline(told, local), "bold")]
    if paused := status.paused(told, local):
        lines.append(_line(paused, "bold yellow"))
    wrong = (
        *status.repository(told),
        *status.edits(told, at),
        *status.runners(told, at),
        *status.limits(told, at),
        *status.untold(told, at),
    )
    lines.extend(_line(text, "yellow") for text in wrong)
    lines.append(_line(status.counts(told)))
    left = height - len(lines) - 1
    sections = status.sections(told["issues"], seen.runs, signs, at)
    for section in sections:
        shown = min(len(section.rows), left - 2)
        if shown < 1:
            break
        more = f" ({len(section.rows) - shown} more)" if shown < len(section.rows) else ""
        lines += [_line(""), _line(f"{section.title}{more}", f"bold {_STYLES[section.state]}"), _grid(section, shown)]
        left -= shown + 2
    lines.append(_line(f"{at.astimezone():%H:%M:%S}  Ctrl-C ends this", "dim"))
    return Group(*lines)


def _line(text: str, style: str = "") -> Text:
    return Text(output.one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def _grid(section: status.Section, shown: int) -> Table:
    made = Table.grid(padding=(0, 2, 0, 0), expand=True)
    width = len(section.rows[0])
    for place in range(width):
        made.add_column(no_wrap=True, overflow="ellipsis", ratio=1 if place == width - 1 else None)
    for row in section.rows[:shown]:
        made.add_row(*(Text(output.one_line(cell)) for cell in row))
    return made
