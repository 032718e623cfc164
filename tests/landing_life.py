"""Landings that are killed: `python -m tests.landing_life FOLDER` cuts one off at every step, and lives on.

Each life is a fork of this process, so that importing costs nothing. It is killed by SIGKILL before its n-th effect (a
git that writes, a file that is written, linked, renamed or deleted), or by the n-th git that writes, which then goes on
without it: soon, or when the next life has long been at work. What is left is judged after another life; a line of JSON
tells each.
"""

import json
import os
import shutil
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anyio

from ashep.adapters.git import GitLanding
from ashep.adapters.system import process_table
from ashep.ports.landing import Advanced, Candidate, Integrated
from tests.conformance.landings import GitLandingWorld, put

EFFECTS = ("os.link", "os.rename", "os.remove")
WRITING = ("merge-tree", "hash-object", "update-ref", "read-tree")
MOST = 200
GIT = """#!/bin/sh
case "$*" in *update-ref*|*read-tree*|*hash-object*) ;; *) exec "$GIT" "$@";; esac
n=$(cat "$COUNT" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$COUNT"
if [ $n = "$KILL" ]; then kill -9 $PPID; sleep "$LATE"; fi
exec "$GIT" "$@"
"""


def scene(top: Path) -> tuple[str, dict[str, str]]:
    """A repository with an issue's branch; give the branch's head, and what main holds once it has landed."""
    world = GitLandingWorld(top)
    world.commit({"edited": "old\n" * 99, "deleted": "1\n", "same": "same\n", "file": "a file\n"})
    tree = top.parent / "tree-ashep-t-1"
    world.git("worktree", "add", "-q", "-b", "ashep/t-1", str(tree), "main")
    (tree / "file").unlink()
    head = world.work("ashep/t-1", {"edited": "new\n" * 99, "deleted": None, "added/it": "1\n", "file/in": "2\n"})
    world.git("worktree", "remove", "--force", str(tree))
    world.commit({"beside": "1\n"})
    after = {"README": "begin\n", "edited": "new\n" * 99, "same": "same\n", "beside": "1\n"}
    return head, after | {"added/it": "1\n", "file/in": "2\n"}


async def live(top: Path, head: str) -> str:
    """Land the branch."""
    landing = GitLanding(top)
    await landing.settle()
    made = await landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    if isinstance(made, Integrated):
        result = await landing.advance("main", made.base, made.commit)
        if not isinstance(result, Advanced):
            return getattr(result, "code", "?")
    await landing.forget("ashep/t-1")
    return "landed" if await landing.landed(head, "main") else "lost"


def forked(top: Path, head: str, *, effect: int = 0, program: int = 0, late: float = 0.0) -> str:
    """Live in a fork, to the end or to the step at which it is killed; give what came of it."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reading)
        if program:
            os.environ |= {"PATH": f"{top.parent / 'bin'}:{os.environ['PATH']}", "KILL": str(program)}
            os.environ |= {"COUNT": str(top.parent / "count"), "LATE": str(late)}
        if effect:
            _kill_at(effect)
        os.write(writing, anyio.run(live, top, head).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    _, status = os.waitpid(pid, 0)
    return "killed" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else said or "failed"


def _kill_at(effect: int) -> None:
    """Die before the n-th effect of this process, in whatever thread it is."""
    lock, left = threading.Lock(), [effect]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        started = event == "subprocess.Popen" and any(word in WRITING for word in arguments[1])
        if started or event in EFFECTS or (writes and "/.git/" in str(arguments[0])):
            with lock:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def judge(world: GitLandingWorld, after: dict[str, str], mine: str | None) -> list[str]:
    """Say what is wrong with a repository in which the branch has landed once."""
    wrong: list[str] = []
    landings = world.git("log", "--format=%H", "--grep=Ashep-Issue: t-1", "main").split()
    if len(landings) != 1:
        wrong.append(f"it landed {len(landings)} times")
    _, status, files = world.state()
    if mine is not None and files.pop("mine", None) != mine:
        wrong.append("what the person wrote is gone")
    if (status or None) != (None if mine is None else "?? mine"):
        wrong.append(f"the tree is not clean: {status}")
    if files != after:
        wrong.append(f"the files are {sorted(files)}, or differ")
    return wrong + [f"left behind: {name}" for name in world.left_behind()]


def tried(
    place: Path, *, effect: int = 0, program: int = 0, late: float = 0.0, edit: bool = False
) -> tuple[bool, list[str]]:
    """Kill one life, live another, and judge; whether the first was killed at all, and what is wrong."""
    shutil.copytree(place / "scene", place / "now", symlinks=True)
    world = GitLandingWorld.standing(place / "now")
    head, after = json.loads((place / "scene.json").read_text())
    (place / "count").unlink(missing_ok=True)
    first = forked(world.top, head, effect=effect, program=program, late=late)
    wrong: list[str] = []
    if edit:  # the person writes into what stands there, and takes it back only after we have looked
        was = (world.top / "same").read_text()
        put(world.top / "same", "a person's\n")
        put(world.top / "mine", "a person's\n")
        second = forked(world.top, head)
        if second not in ("dirty", "landed"):
            wrong.append(f"with a person's edit: {second}")
        if (world.top / "same").read_text() != "a person's\n":
            wrong.append("the person's edit is gone")
        put(world.top / "same", was)
    second = forked(world.top, head)
    while process_table.holders_of(
        process_table.ProcessMark("ASHEP_LANDING_CALL", str(world.top))
    ):  # it does what it is still to do
        time.sleep(0.02)
    wrong += [] if second == "landed" else [f"the second life: {second}"]
    wrong += judge(world, after, "a person's\n" if edit else None)
    shutil.rmtree(world.top)
    return first == "killed", wrong


def main() -> None:
    """Kill at every step."""
    place = Path(sys.argv[1])
    (place / "scene.json").write_text(json.dumps(scene(place / "scene")))
    (place / "bin").mkdir()
    put(place / "bin/git", GIT.replace("$GIT", shutil.which("git") or "git"))
    (place / "bin/git").chmod(stat.S_IRWXU)
    for kind, late in (("effect", 0.0), ("program", 0.1), ("program", 0.4), ("program", 2.0)):
        for number in range(1, MOST):
            killed, wrong = tried(place, **{kind: number}, late=late, edit=number % 3 == 0)
            point = {"kind": kind, "late": late, "number": number, "killed": killed, "wrong": wrong}
            print(json.dumps(point), flush=True)
            if not killed:
                break


if __name__ == "__main__":
    main()
