"""`ashep demo`: Agent Shepherd at work on a small project, offline, and the proof that it did what it promises.

A real `ashep work` with the real bd and a real OpenCode server; only the model is scripted, and the person.
"""

import shlex
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ashep.adapters.system.folders import delete
from ashep.core.text import clean
from ashep.errors import AshepError, ours
from ashep.extras.demo.mixed_agents import configure, kill
from ashep.extras.demo.policy_edits import Edits, edit, restore
from ashep.extras.demo.progress import STILL, DemoProgress
from ashep.extras.demo.project import PERSON, DemoProject, ashep
from ashep.extras.demo.proof import proofs, report_proofs
from ashep.extras.demo.scenario import CALC, ISSUES, Scenario
from ashep.extras.demo.simulated import simulate
from ashep.extras.demo.state_dir import (
    LOG,
    PREFIX,
    Agents,
    DemoState,
    end_abandoned,
    end_processes,
    start_model,
    write_environment,
)
from ashep.extras.demo.story_scenario import STORIES, proofs_of_stories

LOOK = 1.5
"""Seconds between looks at bd, for the picture and for the person."""

END = 60.0
"""Seconds that the daemon has to stop in good order."""

Say = Callable[[str], None]

_AFTER = {issue.id: issue.after for issue in ISSUES if issue.after}
"""Which issue must be closed before the person looks at one."""


def demo(
    *,
    simulation: Literal["tracker", "github"] | None = None,
    agents: Agents = "opencode",
    piece: Scenario = CALC,
    keep: bool = False,
    place: Path | None = None,
    say: Say = print,
    enter: Say | None = None,
) -> int:
    """Show it and give the exit code: 0 where every proof holds.

    `agents`: with `mixed` two kinds of them work, and the daemon is killed. `piece`: what is played with the real
    tools. One that goes on has what it began with.
    `simulation`: in memory and in virtual time; where its issues come from.
    `enter`: of the simulated one, is told the link of the page; it then goes on until a signal.
    `keep` leaves the folder as it is at the end. `place` is the folder, which is kept: one that was killed goes on.
    """
    keep = keep or place is not None
    folder = place.absolute() if place else Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        if enter is not None:
            from ashep.extras.demo.page import look_in

            return look_in(folder, say, enter)
        if simulation == "github":
            from ashep.extras.demo.github_scene import GitHubScene

            return simulate(folder, say, GitHubScene)
        return simulate(folder, say) if simulation else anyio.run(_real, folder, agents, piece, say)
    except BaseExceptionGroup as group:
        raise AshepError("; ".join(map(str, ours(group)))) from None
    finally:
        if keep:
            say(f"everything is in {folder}")
        else:
            anyio.run(to_thread.run_sync, delete, folder)


async def _real(folder: Path, agents: Agents, piece: Scenario, say: Say) -> int:
    stage, codes = DemoProject.open_folder(folder, piece, claude=agents == "mixed"), list[int]()
    kept = await to_thread.run_sync(DemoState.load_or_begin, folder, agents, piece.name)
    stage = replace(stage, piece=STORIES if kept.piece == STORIES.name else CALC)
    if kept.agents == "mixed":
        stage = DemoProject.open_folder(folder, claude=True).asking(kept.url)
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()
            group.start_soon(_cancel_by_signal, signals, scope, codes)
            try:
                with scope:
                    await end_abandoned()
                    codes.append(await _show(stage, kept, say))
            finally:
                with anyio.CancelScope(shield=True):
                    await end_processes(folder)
            group.cancel_scope.cancel()
    return codes[0]


async def _cancel_by_signal(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope, codes: list[int]) -> None:
    """Let Ctrl-C, SIGTERM and a closed terminal end everything in good order; a second one does not hasten that."""
    async for received in signals:
        codes.append(128 + received)
        scope.cancel()


async def _show(stage: DemoProject, kept: DemoState, say: Say) -> int:
    await start_model(stage, kept.url)
    if kept.built:
        say(f"a demonstration was begun in {stage.folder}; it goes on")
        await stage.ashep("stop", check=False)
        await restore(stage)
    else:
        kept = await _build(stage, kept, say)
    edits = Edits()
    async with _working(stage) as begin, anyio.create_task_group() as group:
        group.start_soon(_end_where_still, stage)
        if kept.agents == "mixed" and not kept.killed:
            kept = replace(kept, killed=await kill(stage, await begin(), say))
            await to_thread.run_sync(kept.write, stage.folder)
        await _watch(stage, await begin(), edits)
        group.cancel_scope.cancel()
    shown = ""
    for words in stage.piece.shows:
        say(f"\n$ ashep {' '.join(words)}")
        shown = (await stage.ashep(*words, check=False)).rstrip()
        say(shown)
    if stage.piece is STORIES:
        return report_proofs(await proofs_of_stories(stage, kept), say)
    return report_proofs(await proofs(stage, kept, edits, shown), say)


async def _end_where_still(stage: DemoProject) -> None:
    """Raise `AshepError` once nothing new happens any more."""
    log = stage.folder / LOG
    progress = DemoProgress(stage.project, stage.environ, lambda: log.stat().st_size if log.exists() else 0)
    while not await to_thread.run_sync(progress.is_over):
        await anyio.sleep(LOOK)
    status = await stage.ashep("status", "--all", check=False)
    raise AshepError(f"nothing new for {STILL:.0f} s, so it was ended. `ashep status --all`:\n{status.rstrip()}")


async def _build(stage: DemoProject, kept: DemoState, say: Say) -> DemoState:
    say(f"{stage.piece.begins}, a scripted model (about 10 seconds) …")
    for begun in ("home", "calc"):  # of one that was killed while it was built
        await to_thread.run_sync(delete, stage.folder / begun)
    if why := await stage.build(kept.url):
        say(f"no sandbox can be used here ({why}): agents, and the checks of these issues, run as you")
    if kept.agents == "mixed":
        await configure(stage)
    kept = replace(kept, built=True, failed_before=not await stage.test())
    write_environment(stage.folder, stage.environ, stage.bd.parent)
    kept.write(stage.folder)
    works = shlex.join(("ashep", *stage.piece.works))
    say(f"{stage.project}: its test {'fails' if kept.failed_before else 'passes'}; `{works}` begins")
    return kept


@asynccontextmanager
async def _working(stage: DemoProject) -> AsyncGenerator[Callable[[], Awaitable[Process]]]:
    """Give what begins a daemon, as a user does; in the end it is stopped, and so are the servers."""
    argv, begun = ashep(*stage.piece.works), list[Process]()

    async def begin() -> Process:
        # a session of its own: Ctrl-C ends this program, which then stops the daemon in good order
        process = await anyio.open_process(
            argv, cwd=stage.project, env=stage.environ, stderr=subprocess.STDOUT, start_new_session=True
        )
        begun.append(process)
        return process

    try:
        yield begin
    finally:
        with anyio.CancelScope(shield=True):
            for process in begun:
                with suppress(ProcessLookupError):
                    process.terminate()
                with anyio.move_on_after(END):
                    await process.wait()
                if process.returncode is None:
                    process.kill()
                await process.aclose()
            with suppress(AshepError):
                await stage.ashep("stop", "--server")


@dataclass(slots=True)
class _Picture:
    """What is shown while it works: all of it on a terminal, else each line as it comes."""

    console: Console
    issues: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=8))

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for name in ("ISSUE", "STATUS", "PHASE", "TITLE"):
            table.add_column(name, no_wrap=True, min_width=12)
        for issue in self.issues:
            labels: list[str] = issue.get("labels") or []
            phase = next((label.removeprefix("phase:") for label in labels if label.startswith("phase:")), "")
            phase += f" (asks {PERSON})" if any(label.startswith("needs:") for label in labels) else ""
            table.add_row(str(issue["id"]), str(issue["status"]), phase, Text(clean(str(issue["title"]))))
        words = (Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self.lines)
        return Group(table, Text(), *words)

    def say(self, line: str) -> None:
        self.lines.append(line)
        if not self.console.is_terminal:
            self.console.print(Text(line), soft_wrap=True)


async def _watch(stage: DemoProject, process: Process, edits: Edits) -> None:
    """Show what happens, and be the person, until every issue is closed; one edits the policy meanwhile.

    A piece that ends by itself has nobody next to it.
    """
    picture = _Picture(Console())
    live = Live(picture, console=picture.console, refresh_per_second=4)
    async with anyio.create_task_group() as group:
        with live if picture.console.is_terminal else nullcontext():
            group.start_soon(_follow, process, picture)
            while (
                stage.piece.ends or not picture.issues or any(issue["status"] != "closed" for issue in picture.issues)
            ):
                picture.issues = await stage.issues()
                closed = {str(issue["id"]) for issue in picture.issues if issue["status"] == "closed"}
                for issue in picture.issues:
                    name, labels = str(issue["id"]), list[str](issue.get("labels") or [])
                    asks = "needs:human_approval" in labels and "human:approved" not in labels
                    if asks and _AFTER.get(name, "") in ("", *closed):
                        await stage.person("label", "add", name, "human:approved", "--json")
                        picture.say(f"$ bd label add {name} human:approved   ({PERSON} approves)")
                if not edits.begun and closed and not stage.piece.ends:
                    await edit(stage, edits, picture.say)
                await anyio.sleep(LOOK)
                if process.returncode == 0 and stage.piece.ends:
                    break
                if process.returncode is not None:
                    raise AshepError(f"`ashep {shlex.join(stage.piece.works)}` has ended:\n" + "\n".join(picture.lines))
        group.cancel_scope.cancel()


async def _follow(process: Process, picture: _Picture) -> None:
    assert process.stdout is not None
    rest = ""
    async for text in TextReceiveStream(process.stdout, errors="replace"):
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            picture.say(clean(line))
