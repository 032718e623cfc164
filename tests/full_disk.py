"""A small disk of one's own, filled in the midst of things: `python -m tests.full_disk FOLDER KIND` in a namespace.

Prints one JSON object: for each step what it said while the disk took nothing, and how it went on once it did.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.git import GitLanding
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.system import programs
from ashep.core.facts.tracker import Stamp
from ashep.errors import AshepError
from ashep.extras.demo.scripted_model import opencode_config
from ashep.extras.testing.worlds import Act, prompt, settled
from ashep.ports.landing import Advanced, Candidate, Integrated, MoveRefused
from ashep.ports.runner import SessionRequest
from ashep.ports.tracker import ClaimRequest
from tests.conformance.runners import RealWorld
from tests.conformance.workspaces import GitWorkspacesWorld

ONE, TWO = "ashep/t-1", "ashep/t-2"
RUN = "t-1/implement.1.1"
KINDS = ("bytes", "files", "read-only")


class Disk:
    """A tmpfs of a few MiB and a few thousand files."""

    def __init__(self, place: Path, size: str = "24m", files: int = 3000) -> None:
        options = f"size={size},nr_inodes={files}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        self.place, self._filler = place, place / "filler"

    def fill(self, kind: str, leave: int = 0) -> None:
        """Let it take nothing more, but for so many bytes or files."""
        if kind == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", self.place], check=True)
            return
        self._filler.mkdir()
        made = list[Path]()
        try:
            for number in range(10**6):
                file = self._filler / str(number)
                file.touch()
                made.append(file)
                if kind == "bytes":
                    with file.open("wb", buffering=0) as written:
                        while True:
                            written.write(b"x" * 4096)
        except OSError:
            pass
        if kind == "files":
            for file in made[: leave or 0]:
                file.unlink()
        elif leave:
            os.truncate(made[0], made[0].stat().st_size - leave)

    def free(self) -> None:
        """Let it take everything again."""
        subprocess.run(["mount", "-o", "remount,rw", self.place], check=True)
        shutil.rmtree(self._filler, ignore_errors=True)


async def tried(call: Callable[[], Awaitable[Any]]) -> str:
    """Give what an error of ours says; anything else is a fault."""
    try:
        done = await call()
    except AshepError as error:
        return str(error)
    return done.why if isinstance(done, MoveRefused) else f"it worked: {done}"


async def lived(disk: Disk, kind: str) -> dict[str, Any]:
    """Seal, check out, merge and land, each with a full disk first, and then with room."""
    world, said = GitWorkspacesWorld(disk.place / "git"), dict[str, Any]()
    landing = GitLanding(world.top)
    for number in range(200):
        (world.top / f"{number}.txt").write_text("a line\n" * 600)
    world.git("add", "-A")
    world.git("commit", "-qm", "Much")
    await world.spaces.prepare(ONE, None, 0)
    for number in range(50):
        world.edit(ONE, f"new/{number}.txt", f"{number}\n" * 3000)
    before = world.read(ONE)

    async def step(name: str, call: Callable[[], Awaitable[Any]], leave: int = 0) -> Any:
        disk.fill(kind, leave)
        said[name] = await tried(call)
        disk.free()
        return await call()

    sealed = await step("seal", lambda: world.spaces.seal(ONE, RUN, "Work"))
    said["nothing lost"] = world.read(ONE) == before
    said["sealed"] = len(sealed.commits)
    await step("checkout", lambda: world.spaces.prepare(TWO, None, 0), leave=40 if kind == "files" else 100_000)
    said["checked out"] = len(world.read(TWO))
    base = world.person_commits("another.txt", "theirs\n")
    candidate = Candidate("t-1", ONE, sealed.head, "main")
    made = await step("merge", lambda: landing.integrate(candidate))
    assert isinstance(made, Integrated)
    disk.fill(kind)
    said["land"] = await tried(lambda: landing.advance("main", base, made.commit))
    disk.free()
    said["base stays"] = world.git("rev-parse", "main") == base and not world.git("status", "--porcelain")
    said["landed"] = isinstance(await landing.advance("main", base, made.commit), Advanced)
    return said


async def floor(disk: Disk) -> dict[str, Any]:
    """Ask the disk's floor where files run out before bytes do."""
    world = GitWorkspacesWorld(disk.place / "git")
    world.spaces = Worktrees(world.top, world.place, disk_floor=8 * 1024**2)
    await world.spaces.prepare(ONE, None, 0)
    disk.fill("files", leave=400)
    said = await tried(lambda: world.spaces.prepare(TWO, None, 0))
    disk.free()
    return {"floor": said, "made": (await world.spaces.prepare(TWO, None, 0)).path}


async def tracked(disk: Disk, kind: str) -> dict[str, Any]:
    """Read and write by the real bd, whose database is on the disk."""
    project = disk.place / "project"
    project.mkdir()
    program = programs.find("bd")
    assert program is not None
    os.environ |= {"BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1"}

    def run(*words: str) -> str:
        return subprocess.run(words, cwd=project, check=True, capture_output=True, text=True).stdout.strip()

    def bd(*words: str) -> str:
        return run(str(program), *words)

    run("git", "init", "-q", ".")
    bd("init", "--prefix=t", "--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")
    issue, said = bd("create", "--title=Work", "--type=task", "--silent"), dict[str, Any]()
    tracker = BeadsTracker(project, (str(program),), "ashep-test", 30)
    claim = ClaimRequest(issue, Stamp("instance-1", 7, run=f"{issue}/implement.1.1"))
    disk.fill(kind)
    said["list"] = await tried(tracker.look)
    said["claim"] = await tried(lambda: tracker.claim(claim))
    disk.free()
    said["untouched"] = json.loads(bd("show", issue, "--json"))[0]["status"] == "open"
    said["claimed"] = (await tracker.claim(claim)).issue.status
    return said


async def served(disk: Disk, _: str) -> dict[str, Any]:
    """Run the real agent server, whose database is on the disk: before it starts, between turns, and in a turn."""
    world, said = RealWorld(disk.place.parent / "world"), dict[str, Any]()
    world.environ |= {"XDG_STATE_HOME": str(disk.place)}
    world.acts = {"slow": Act(text="slept", delay=2)}
    world.server = world.new_server()
    runner = world.runner = OpencodeRunner(world.server, directory=world.directory)
    async with world.model:
        (world.directory / "opencode.json").write_text(json.dumps(opencode_config(world.model.url)))
        disk.fill("read-only")  # none becomes that under a server that holds files open, but by a fault of its own
        said["read-only"] = await tried(runner.start)
        disk.free()
        try:
            await runner.start()
            pid = world.record["pid"]
            session = await runner.open_session(SessionRequest("key", "key", "read"))
            disk.fill("bytes")
            sent = prompt(session, "slow")
            await runner.send(sent)  # it takes it, and loses it
            said["turn"] = "state='running'"
            while "state='running'" in said["turn"]:
                await anyio.sleep(0.5)
                said["turn"] = await tried(lambda: runner.turn(session, sent.message_id))
            said["bytes"] = await tried(runner.start)
            disk.free()
            await runner.start()
            said["same server"] = world.record["pid"] == pid
            await runner.send(sent)
            said["text"] = (await settled(world, session, sent.message_id)).text
            disk.fill("files")
            said["files"] = await tried(runner.start)
            disk.free()
        finally:
            await runner.stop_server()
    return said


if __name__ == "__main__":
    place, what = Path(sys.argv[1]), sys.argv[2]
    os.environ |= {"XDG_CACHE_HOME": str(programs.tools_cache().parent.parent)}  # where the tools lie
    os.environ |= {"HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    tool = sys.argv[3] if sys.argv[3:] else ""
    small = Disk(place, "64m" if tool == "opencode" else "24m")
    if what == "floor":
        print(json.dumps(anyio.run(floor, small)))
    else:
        print(json.dumps(anyio.run({"": lived, "bd": tracked, "opencode": served}[tool], small, what)))
