"""The demonstration without anything installed: the same daemon and story, over memory and in virtual time.

In memory only checks of files are executed.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio

from ashep.actions.audit import examine
from ashep.actions.replay import replay
from ashep.adapters.system.clock import RealClock
from ashep.config import Configuration, load, write_starter
from ashep.core.analysis.replay import Replay
from ashep.core.state.branches import branch_of
from ashep.daemon.daemon import Adapters, Say, WorkOptions, daemon, narrator
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.extras.demo.project import ashep
from ashep.extras.demo.proof import report_proofs
from ashep.extras.demo.scenario import BASE, FILES, ISSUES, RUNS, SHOWN, TEST_PROGRAM, RunScript, merge_asked, part
from ashep.extras.demo.state_dir import journal
from ashep.extras.simulation.memory.annotations import MemoryAnnotations, MemoryDiffs, MemoryVerifier
from ashep.extras.simulation.memory.runner import MemoryRunner, Play, Prompted
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.extras.simulation.virtual_time import VIRTUAL, LoopClock, open_now, wait_for_threads
from ashep.ports.tracker import IssueText

ACTOR, PERSON = "ashep-demo", "pat"
FOLDER = ".agent-shepherd"

AGO = timedelta(hours=1, minutes=30)
"""How long ago the simulation begins: about as long as the story takes."""

TURN, THINKS = 240.0, 900.0
"""Virtual seconds that an agent works, and that the person takes to answer."""

BOUND = 24 * 3600.0
"""Virtual seconds after which it has failed."""

Proof = tuple[str, bool]
"""What is looked for, and whether it is so."""


def simulate(project: Path, say: Say, scene: type["Scene"] | None = None) -> int:
    """Play the story in virtual time and give the exit code. `scene`: another one than that of the tracker."""
    say("three issues, in memory and in virtual time; nothing is installed or started")
    passed = _passes(project / "before", FILES)
    stage = anyio.run(_play, project, say, scene or Scene, backend_options=dict(VIRTUAL))
    for words in (("status", "--all"), ("why", stage.shown)):
        say(f"\n$ ashep {' '.join(words)}")
        said = subprocess.run(
            ashep("-C", str(project), *words), capture_output=True, text=True, timeout=60, check=False
        )
        say(said.stdout.rstrip() or said.stderr.rstrip())
    passes = _passes(project / "after", stage.trees.files(stage.trees.base))
    tests = f"its tests {'passed' if passed else 'failed'} before and {'pass' if passes else 'fail'} now on {BASE}"
    return stage.prove(say, project / FOLDER / "state", (tests, passes and not passed))


def _passes(folder: Path, files: Mapping[str, str]) -> bool:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, TEST_PROGRAM], cwd=folder, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


class Scene:
    """The tracker, the agents, the work tree and the clock of a simulation."""

    config = ""
    """What config.yaml has besides."""
    shown = SHOWN

    def __init__(self, ago: timedelta = AGO) -> None:
        self.clock, self.turn = LoopClock(RealClock().now() - ago), TURN
        self.tracker = MemoryTracker(self.clock.now, ACTOR, "calc")
        self.people = self.tracker.as_actor(PERSON)
        self.runner = MemoryRunner(self.clock, self.agent)
        self.tree, self.trees = MemoryTree(), self.make_trees()
        self.landing = MemoryLanding(self.trees, BASE)
        self.told: dict[str, str] = {}
        """What each run was told."""
        self.until: dict[str, float] = {}
        """Until when an agent works on an issue."""
        self.at_once = 0
        self.closed: set[str] = set()
        for name, text in FILES.items():
            self.tree.write(name, text)
        self.tree.commit("A small program with a bug")
        self.add_issues()

    def make_trees(self) -> MemoryWorkspaces:
        """Make the repository."""
        return MemoryWorkspaces(dict(FILES))

    def add_issues(self) -> None:
        """Put the issues of the story into the tracker."""
        for issue in ISSUES:
            self.tracker.add(
                issue.title,
                id=issue.id,
                type=issue.type,
                text=IssueText(description=issue.description, acceptance=issue.acceptance("file_exists")),
                actor=PERSON,
            )

    def agent(self, asked: Prompted) -> Play:
        """Play an agent's part."""
        run = asked.key.partition(":")[2]
        issue, role = run.partition("/")[0], self.play_part(run, asked.text)
        self.told[run] = asked.text
        self.until[issue] = self.clock.monotonic() + self.turn
        self.at_once = max(self.at_once, sum(end > self.clock.monotonic() for end in self.until.values()))
        branch, theirs = branch_of(issue), self.trees.files(self.trees.base)
        resolves = merge_asked(asked.text) is not None
        if resolves:
            self.trees.take_in(branch)
        for edit in role.edits:
            text = (theirs if resolves else self.trees.read(branch))[edit.path]
            theirs[edit.path] = text.replace(edit.old, edit.new, 1)
            self.trees.edit(branch, edit.path, theirs[edit.path])
        return Play(text=role.message, delay=self.turn)

    def play_part(self, run: str, prompt: str) -> RunScript:
        """Give what the agent of a run does."""
        return part(run, prompt)

    async def person(self, say: Say) -> None:
        """Approve whatever is asked, after a while."""
        while True:
            for seen in (await self.people.look()).issues:
                after = next(one.after for one in ISSUES if one.id == seen.issue.id)
                waits = "needs:human_approval" in seen.issue.labels and "human:approved" not in seen.issue.labels
                if waits and after in (None, *self.closed):
                    await anyio.sleep(THINKS)
                    self.tracker.person_sets(seen.issue.id, PERSON, add_labels=("human:approved",))
                    say(f"{PERSON} sets the label human:approved on {seen.issue.id}")
            await anyio.sleep(1)

    async def is_over(self) -> bool:
        """Whether the story is."""
        seen = [await self.people.issue(issue.id) for issue in ISSUES]
        self.closed = {one.issue.id for one in seen if one is not None and one.issue.status == "closed"}
        return len(self.closed) == len(ISSUES)

    def parts(self, project: Path) -> Adapters:
        """What a daemon works with here."""
        looking = MemoryVerifier(self.trees), MemoryDiffs(self.trees)
        means = DeliveryAdapters(project, *looking, self.landing, MemoryAnnotations(self.tracker))
        return Adapters(
            self.tracker, self.runner, self.tree, self.clock,
            workspaces=lambda _: self.trees, means=lambda _settings, _keep: means,
        )  # fmt: skip

    def prove(self, say: Say, state: Path, tests: Proof) -> int:
        """Look at the world, and not only at what ashep says of it."""
        conflicts = [run for run, text in self.told.items() if merge_asked(text)]
        lacked = [run for run, text in self.told.items() if "It does not hold:" in text]
        merged = {commit.subject.partition(" [")[0] for commit in self.trees.history()}
        evidence = list(_evidence(state))
        trees = {self.trees.tree_of(commit) for _, commit in evidence}
        proofs = [
            (f"closed in the tracker: {len(self.closed)} of {len(ISSUES)}", len(self.closed) == len(ISSUES)),
            tests,
            (f"{self.at_once} issues were worked on at once, each in a work tree of its own", self.at_once == 3),
            (f"the check command had failed, as {' and '.join(lacked)} was told, which mended it", len(lacked) == 1),
            (
                f"two issues were in conflict, as {' and '.join(conflicts)} was told, which resolved it",
                len(conflicts) == 1,
            ),
            (f"merged onto {BASE}: all", {f"{issue.title} ({issue.id})" for issue in ISSUES} <= merged),
            ("what landed is what was verified, by its tree's hash", {tree for tree, _ in evidence} == trees),
            (f"runs of agents: {len(self.runner.began)}", len(self.runner.began) == RUNS),
        ]
        return self.report(say, state, proofs)

    def report(self, say: Say, state: Path, proofs: Iterable[Proof]) -> int:
        """Say what was proved, and what holds of every story; give the exit code."""
        began, again = self.runner.began, Replay()
        differ = list(replay(state, again))
        account = anyio.run(examine, state.parent.parent, state, self.tracker, self.runner.has_session, RealClock())
        shared = [
            (f"prompts that the agents saw: {began.total()}, for {len(began)} runs", len(began) == began.total()),
            (f"decisions derived again: {again.decisions}, {len(differ)} differences", not differ),
            (f"audit: {account.issues} issues, {len(account.findings)} findings", not account.findings),
        ]
        return report_proofs([*proofs, *shared], say)


def begin_project(project: Path, config: str = "") -> Configuration:
    """Write the configuration of a project in memory, and give it."""
    folder = project / FOLDER
    write_starter(folder)
    text = "version: 1\nworker: {workspace: worktree}\n"  # there is no repository to see
    (folder / "config.yaml").write_text(text + config)
    return load(folder)


async def _play(project: Path, say: Say, scene: type[Scene]) -> Scene:
    wait_for_threads()
    stage, configuration = scene(), begin_project(project, scene.config)

    def timed(line: str) -> None:
        say(f"{stage.clock.now():%H:%M} {line}")

    with closing(open_now(project / FOLDER / "state", stage.clock.now())) as journal:
        info = await stage.tracker.check()
        async with (
            daemon(stage.parts(project), configuration, journal, WorkOptions(), [narrator(timed)]) as running,
            anyio.create_task_group() as group,
        ):
            group.start_soon(running.poller.run, info)
            group.start_soon(running.monitors[0].run)
            group.start_soon(stage.person, timed)
            with anyio.move_on_after(BOUND):
                while not await stage.is_over():
                    await running.shepherd.changed()
            group.cancel_scope.cancel()
    return stage


def _evidence(state: Path) -> Iterator[tuple[str, str]]:
    """Give the tree that was verified last of each issue, and the commit that landed."""
    verified: dict[str, str] = {}
    for record in journal(state.parent.parent):
        if record["type"] == "WorkVerified":
            verified[record["issue"]] = record["tree"]
        if record["type"] == "WorkLanded":
            yield verified[record["issue"]], record["commit"]
