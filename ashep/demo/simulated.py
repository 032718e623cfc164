"""The demonstration without anything installed: the same daemon and story, over memory and in virtual time."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import anyio

from ashep.adapters.clock import RealClock
from ashep.adapters.memory.runner import MemoryRunner, Play, Prompted
from ashep.adapters.memory.tracker import MemoryTracker
from ashep.adapters.memory.tree import MemoryTree
from ashep.audit import examine
from ashep.config import load, write_starter
from ashep.core.records import Entry
from ashep.core.replay import Replay
from ashep.core.world import World
from ashep.daemon import Parts, Say, WorkOptions, daemon, narrator
from ashep.demo.story import FILES, ISSUES, TEST_PROGRAM, part
from ashep.errors import AshepError
from ashep.ports import IssueText
from ashep.replay import replay
from ashep.simulation.virtual import VIRTUAL, ImmediateJournal, LoopClock, wait_for_threads

ACTOR, PERSON = "ashep-demo", "pat"
FOLDER = ".agent-shepherd"

AGO = timedelta(hours=1, minutes=10)
"""How long ago the simulation begins: about as long as the story takes."""

TURN, THINKS = 240.0, 900.0
"""Virtual seconds that an agent works, and that the person takes to answer."""

BOUND = 24 * 3600.0
"""Virtual seconds after which it has failed."""


def simulate(project: Path, say: Say) -> int:
    """Play the story in virtual time and give the exit code."""
    say("three issues, in memory and in virtual time; nothing is installed or started")
    before = _passes(project / "before", FILES)
    stage = anyio.run(_play, project, say, backend_options=dict(VIRTUAL))
    for words in (("status", "--all"), ("why", ISSUES[0].id)):
        say(f"\n$ ashep {' '.join(words)}")
        argv = (sys.executable, "-m", "ashep", "-C", str(project), *words)
        said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        say(said.stdout.rstrip() or said.stderr.rstrip())
    return stage.prove(say, project / FOLDER / "state", before=before, after=_passes(project / "after", stage.files))


def _passes(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether the program's own test passes."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, TEST_PROGRAM], cwd=folder, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


class _Stage:
    """The tracker, the agents, the work tree and the clock of a simulation."""

    def __init__(self) -> None:
        self.clock = LoopClock(RealClock().now() - AGO)
        self.tracker = MemoryTracker(self.clock.now, ACTOR, "calc")
        self.people = self.tracker.as_actor(PERSON)
        self.runner = MemoryRunner(self.clock, self._agent)
        self.tree, self.files = MemoryTree(), dict(FILES)
        self.commits: list[str] = []
        self.closed = 0
        for name, text in FILES.items():
            self.tree.write(name, text)
        self.tree.commit("A small program with a bug")
        for issue in ISSUES:
            self.tracker.add(
                issue.title,
                id=issue.id,
                type=issue.type,
                text=IssueText(description=issue.description),
                blocked_by=(issue.blocked_by,) if issue.blocked_by else (),
                actor=PERSON,
            )

    def _agent(self, asked: Prompted) -> Play:
        run = asked.key.partition(":")[2]
        role = part(run)
        for edit in role.edits:
            self.files[edit.path] = self.files[edit.path].replace(edit.old, edit.new, 1)
            self.tree.write(edit.path, self.files[edit.path])
        if role.edits:
            self.tree.commit(role.summary, run)
            self.commits.append(run)
        return Play(text=role.message, delay=TURN)

    async def person(self, say: Say) -> None:
        """Approve whatever is asked, after a while."""
        asked: set[str] = set()
        while True:
            for seen in (await self.people.look()).issues:
                issue = seen.issue.id
                if "needs:human_approval" in seen.issue.labels and issue not in asked:
                    asked.add(issue)
                    await anyio.sleep(THINKS)
                    self.tracker.person_sets(issue, PERSON, add_labels=("human:approved",))
                    say(f"{PERSON} sets the label human:approved on {issue}")
            await anyio.sleep(1)

    def prove(self, say: Say, state: Path, *, before: bool, after: bool) -> int:
        """Look at the world, and not only at what ashep says of it."""
        began, again = self.runner.began, Replay()
        differ = list(replay(state, again))
        account = anyio.run(examine, state, self.tracker, self.runner, RealClock())
        proofs = [
            (f"closed in the tracker: {self.closed} of {len(ISSUES)}", self.closed == len(ISSUES)),
            (
                f"its test {'passed' if before else 'failed'} before and {'passes' if after else 'fails'} now",
                after and not before,
            ),
            (f"prompts that the agents saw: {began.total()}, for {len(began)} runs", set(began.values()) == {1}),
            (f"commits of runs: {', '.join(self.commits)}", len(self.commits) == 4),
            (f"decisions derived again: {again.decisions}, {len(differ)} differences", not differ),
            (f"audit: {account.issues} issues, {len(account.findings)} findings", not account.findings),
        ]
        say("\nproof")
        for words, holds in proofs:
            say(f"  {'ok    ' if holds else 'FAILED'} {words}")
        return 0 if all(holds for _, holds in proofs) else AshepError.exit_code


async def _play(project: Path, say: Say) -> _Stage:
    wait_for_threads()
    stage = _Stage()
    folder = project / FOLDER
    write_starter(folder)
    configuration = load(folder)
    journal = ImmediateJournal.open_now(folder / "state", stage.clock.now())

    def timed(line: str) -> None:
        say(f"{stage.clock.now():%H:%M} {line}")

    tell = narrator(timed)

    def picture(entries: Sequence[Entry], world: World) -> None:
        tell(entries, world)

    parts = Parts(stage.tracker, stage.runner, stage.tree, stage.clock)
    try:
        info = await stage.tracker.check()
        async with (
            daemon(parts, configuration, journal, WorkOptions(), [picture]) as running,
            anyio.create_task_group() as group,
        ):
            group.start_soon(running.worker.run, info)
            group.start_soon(running.monitor.run)
            group.start_soon(stage.person, timed)
            with anyio.move_on_after(BOUND):
                while not await _over(stage):
                    await running.shepherd.changed()
            group.cancel_scope.cancel()
    finally:
        journal.close()
    return stage


async def _over(stage: _Stage) -> bool:
    seen = [await stage.people.issue(issue.id) for issue in ISSUES]
    stage.closed = sum(one is not None and one.issue.status == "closed" for one in seen)
    return stage.closed == len(ISSUES)
