"""The simulated night with the page next to it: what came before goes by in a moment, and from then on time is real.

One process is all of it, daemon, tracker, agents and server, in memory but for the journal, its picture, and the trees,
of which git has each commit, so that the page shows what was changed. Agents take
seconds, issues keep coming for a while, and nobody answers but who came in by the link.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from secrets import token_urlsafe

import anyio

from ashep.actions.runner_wait import silent
from ashep.actions.verify import Outputs
from ashep.adapters.system import control_socket
from ashep.adapters.system.clock import RealClock
from ashep.adapters.system.http_server import make_server
from ashep.api.application import application
from ashep.api.handlers.actions import ActionHandlers
from ashep.api.handlers.allowed_repositories import AllowedRepositories
from ashep.api.handlers.events import Live
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.handlers.tickets import Tickets
from ashep.api.login_links import link
from ashep.api.openapi import ApiServices
from ashep.api.server import GRACE, listen
from ashep.api.sessions import Sessions
from ashep.api.static import MISSING, built
from ashep.core.state.branches import branch_of
from ashep.daemon.control import Control
from ashep.daemon.daemon import RunningDaemon, Say, WorkOptions, daemon, narrator
from ashep.daemon.shepherd import Picture
from ashep.errors import AshepError
from ashep.extras.demo.git_objects import StoredWorkspaces
from ashep.extras.demo.scenario import FILES, ISSUES
from ashep.extras.demo.scripted_model import outcome_text
from ashep.extras.demo.simulated import BOUND, FOLDER, PERSON, Scene, begin_project
from ashep.extras.simulation.memory.annotations import MemoryAnnotations, MemoryVerifier
from ashep.extras.simulation.memory.runner import Play, Prompted
from ashep.extras.simulation.virtual_time import VIRTUAL, VirtualLoop, open_now, wait_for_threads
from ashep.journal.lock import Lock
from ashep.ports.tracker import IssueText
from ashep.store.projector import Follower

AGO = timedelta(hours=3)
"""How long ago the night begins: longer than what is played of it beforehand."""

TURN, BETWEEN = 8.0, 15.0
"""Seconds that an agent works while somebody looks, and seconds between issues."""

BEFORE, OPEN, MOST = 3, 6, 60
"""Issues that wait when somebody comes, that are open at one time, and that there are at all."""

_WANTED = ("min()", "max()", "mode()", "range()", "variance()", "a table of sums", "a changelog")
_CHECKS = """```yaml
checks: [{id: notes, type: file_exists, description: there are notes, verify: {path: notes/%s.md}}]
```
"""
_DESCRIPTION = "notes/%s.md should say what it does, with an example that can be pasted."
_EXAMPLE = "\n```python\nimport calc\n\ncalc.mean([1, 2, 3])  # 2.0\n```\n"


class Night(Scene):
    """The story, and issues beyond it: of every other one the first try falls short."""

    written = 0

    def __init__(self, project: Path, ago: timedelta) -> None:
        self.project = project
        super().__init__(ago)

    def make_trees(self) -> StoredWorkspaces:
        """Make a repository that the page can read."""
        return StoredWorkspaces(self.project, dict(FILES))

    def agent(self, asked: Prompted) -> Play:
        """Play an agent's part."""
        run = asked.key.partition(":")[2]
        issue, _, rest = run.partition("/")
        if any(issue == one.id for one in ISSUES):
            return super().agent(asked)
        phase, visit, _ = rest.split(".")
        good = visit != "1" or int(issue.partition("-")[2]) % 2 == 0
        if phase == "implement":
            name = self.tracker.everything()[issue].title.removeprefix("Document ")
            text = f"# {name}\n\n`calc` has {name}.\n" + (_EXAMPLE if good else "")
            self.trees.edit(branch_of(issue), f"notes/{issue}.md", text)
            said = outcome_text(summary=f"notes/{issue}.md says how it is used")
        else:
            yes, no = ("approve", "needs_changes") if phase == "review" else ("pass", "needs_work")
            said = outcome_text(yes if good else no, summary="It reads well" if good else "It is too short")
        return Play(text=said, delay=self.turn, tokens=1500, cost=0.02)

    def write(self) -> None:
        """Let the person write one more issue."""
        title, self.written = f"Document {_WANTED[self.written % len(_WANTED)]}", self.written + 1
        issue = f"calc-{len(ISSUES) + self.written}"
        text = IssueText(description=_DESCRIPTION % issue, acceptance=_CHECKS % issue)
        self.tracker.add(title, id=issue, type="chore", text=text, actor=PERSON)

    async def asking(self) -> int:
        """How many issues wait for the person."""
        return sum("needs:human_approval" in issue.issue.labels for issue in (await self.people.look()).issues)

    async def keep_writing(self) -> None:
        """Write issues, as long as few are open."""
        while self.written < MOST:
            await anyio.sleep(BETWEEN)
            if len((await self.people.look()).issues) < OPEN:
                self.write()


def look_in(project: Path, say: Say, enter: Callable[[str], None]) -> int:
    """Play the night and tell `enter` the link, until SIGINT or SIGTERM; give the exit code."""
    if not built().files:
        raise AshepError(MISSING)
    return anyio.run(_play, project, say, enter, backend_options=dict(VIRTUAL))


async def _play(project: Path, say: Say, enter: Callable[[str], None]) -> int:
    wait_for_threads()
    night, configuration, state = Night(project, AGO), begin_project(project), project / FOLDER / "state"
    with Lock.acquire(state, night.clock.now()), closing(open_now(state, night.clock.now())) as journal:
        follower, info = Follower(state, journal, say), await night.tracker.check()
        pictures: list[Picture] = [lambda _, world: follower.offer(journal.position, world), narrator(say)]
        async with (
            daemon(night.parts(project), configuration, journal, WorkOptions(), pictures) as running,
            anyio.create_task_group() as group,
        ):
            group.start_soon(running.poller.run, info)
            group.start_soon(running.monitors[0].run)
            with anyio.fail_after(BOUND):
                await beforehand(night, running)
                await night.clock.sleep_until(RealClock().now())
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.go_on_really()
            night.turn = TURN
            group.start_soon(follower.run)
            group.start_soon(night.keep_writing)
            group.start_soon(
                control_socket.serve, state, {"XDG_RUNTIME_DIR": str(project)}, Control(running.shepherd).answer, say
            )
            await _served(project, night, say, enter)
            await running.shepherd.stop("a signal")
            group.cancel_scope.cancel()
    return 0


async def beforehand(night: Night, running: RunningDaemon) -> None:
    """Play the story, and some issues up to where they wait for a person."""
    async with anyio.create_task_group() as people:
        people.start_soon(night.person, silent)
        while not await night.is_over():
            await running.shepherd.changed()
        people.cancel_scope.cancel()
    for _ in range(BEFORE):
        night.write()
    while await night.asking() < BEFORE:
        await running.shepherd.changed()


async def _served(project: Path, night: Night, say: Say, enter: Callable[[str], None]) -> None:
    clock, folder = RealClock(), project / FOLDER  # the night's own is for its loop alone
    sessions = Sessions(token_urlsafe(), clock.monotonic)
    tracker, outputs = night.tracker.as_actor("ashep-service"), Outputs()
    places = AllowedRepositories(project, (), project / "fetched")
    verifying = MemoryAnnotations(night.tracker), MemoryVerifier(night.trees)
    pictures = QueryHandlers(folder, clock.now, say)
    acts = ActionHandlers(pictures, clock.now, lambda _project, _settings, person: night.tracker.as_actor(person))
    live = Live(pictures)
    service = ApiServices(Tickets(tracker, *verifying, outputs, places, clock.now), pictures, acts, live, sessions)
    server, listener = make_server(application(service, say, built()), GRACE), listen("127.0.0.1", 0)
    with closing(listener), anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            while not await pictures.current():  # until it is drawn for the first time
                await anyio.sleep(0.1)
            enter(link(f"http://127.0.0.1:{listener.getsockname()[1]}", sessions.code(PERSON)))
            async for _ in signals:
                live.end()
                server.should_exit = True
                return
