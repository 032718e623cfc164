"""`python -m chaos.mishaps`: a night on the real tools in which eight of fourteen issues go wrong, each in its own way.

The six others are worked on alone first, in a project of their own; then all fourteen. The six must land, each of the
rest must be told with its reason, and that within twice the time that the six alone take (issue 16).
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.progress import STILL, DemoProgress
from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, outcome_text, verdict_asked
from tests.e2e.site import BEHAVES, Site, Working, play
from tests.places import living_in, sweep

THINKS = 6.0
"""Seconds that a model takes to answer: without them the machine's speed is all that is measured."""

SOUND = 6
"""How many issues go as they should."""

LOOKS = 3.0
"""Seconds between two looks at how it stands: each is a process, which takes half a second of a processor."""

POLICIES = """
version: 1
default_policy: night
policies:
  night:
    match: {types: [task]}
    limits: {max_depth: 0}
    phases:
      - name: implement
        access: write
        timeout: 20s
        max_visits: 3
        retry: {max_attempts: 2, initial_delay: 1s}
        verify: {max_attempts: 2}
        next: {success: review}
      - name: review
        access: read
        verdicts: [approve, needs_changes]
        next: {approve: arbitrate, needs_changes: implement}
      - {name: arbitrate, access: read, verdicts: [pass, needs_work], next: {pass: close, needs_work: implement}}
"""

CONFIG = """
worker: {workspace: worktree, max_concurrent_runs: 3, hold_when_busy: HOLDS}
permissions: [{tool: webfetch, action: ask}]
"""

MINE = "Wait, I look into this myself."

Behaviour = Callable[[ModelRequest], Reply]


def working(command: str) -> Behaviour:
    """An agent that thinks, runs this in its shell, and reports; as a reviewer it is content."""

    def behave(ask: ModelRequest) -> Reply:
        if "/implement." in (run_of(ask.prompt) or "") and not ask.results:
            return Reply(calls=(Call("bash", {"command": command, "description": "work"}),), delay=THINKS / 2)
        return Reply(outcome_text(verdict_asked(ask.prompt)), delay=THINKS / 2)

    return behave


def fences(ask: ModelRequest) -> Reply:
    """It answers with 1 MiB of openings of a report, and never with one."""
    return Reply("```json\n" * (1024 * 1024 // 8), delay=THINKS)


def fetching(ask: ModelRequest) -> Reply:
    """It asks to fetch a page, without the argument that the server's own listing cannot do without."""
    if not ask.results:
        return Reply(calls=(Call("webfetch", {"url": "https://example.com/", "format": "text"}),), delay=THINKS)
    return Reply(outcome_text(verdict_asked(ask.prompt)))


def never(ask: ModelRequest) -> Reply:
    """It does not answer."""
    return Reply(hang=True)


def shared(ask: ModelRequest) -> Reply:
    """It talks slowly, so that a person can write meanwhile."""
    if MINE in ask.prompt:
        return Reply("As you wish.")
    return Reply("I think about it, slowly. " * 10 + outcome_text(verdict_asked(ask.prompt)), drip=0.4)


OWN_TREE = """python3 -c 'import os, shutil; shutil.rmtree(os.getcwd())'"""
OWN_GIT = "echo mine > mine.txt && rm -rf .git && git init -q . && git add . && git commit -qm mine"
LOCK = 'echo done > done.txt; : > "$(git rev-parse --git-common-dir)/packed-refs.lock"'

MISHAPS: Mapping[str, tuple[Behaviour, tuple[str, ...]]] = {
    "never ends": (never, ("parked",)),
    "answers 1 MiB of fences": (fences, ("parked", "person")),
    "leaves a file named git~1": (working("echo no > 'git~1'; echo done"), ("parked",)),
    "leaves packed-refs.lock": (working(LOCK), ("closed",)),
    "removes its own tree": (working(OWN_TREE), ("parked", "person")),
    "makes a git of its own in its tree": (working(OWN_GIT), ("closed", "parked")),
    "asks by webfetch": (fetching, ("person",)),
    "has a person in its session": (shared, ("person",)),
}
"""What goes wrong, and how it may stand in the end."""


@dataclass(slots=True)
class Night:
    """What became of a night."""

    seconds: float = 0.0
    issues: dict[str, str] = field(default_factory=dict[str, str])
    """Titles, by id."""
    stands: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """State and reason of each issue in the end."""
    since: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds after which it came to that."""
    wrong: list[str] = field(default_factory=list[str])
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The journal."""


@dataclass(frozen=True)
class Slow:
    """A slow machine, on which ashep starts its agent server itself, and has its own ways to wait."""

    path: str
    """Where programs are found by ashep."""
    look: Callable[[Path], None]
    """Called with the folder of the night in its end."""
    timeout: str = "3m"
    """What a person gives a run there who gives it 20 s on an idle machine."""


@contextmanager
def place(slow: Slow | None = None) -> Iterator[Site]:
    """A project with a scripted model, and nothing of it left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ashep-mishaps-"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ModelServer(play)) as model:
        try:
            site = Site(folder, model)
            policies = POLICIES.replace("20s", slow.timeout) if slow else POLICIES
            (site.project / ".agent-shepherd" / "policies.yaml").write_text(policies)
            site.environ["PATH"] = slow.path if slow else site.environ["PATH"]
            with site.managing() if slow else nullcontext():
                site.config(CONFIG.replace("HOLDS", str(slow is not None).lower()))
                yield site
            if slow:
                slow.look(folder)
        finally:
            sweep(folder)
    shutil.rmtree(folder, ignore_errors=True)


def night(mishaps: Mapping[str, tuple[Behaviour, tuple[str, ...]]], slow: Slow | None = None) -> Night:
    """Live one, with these mishaps next to the sound issues."""
    made = Night()
    with place(slow) as site:
        base = site.run("git", "symbolic-ref", "--short", "HEAD").strip()
        wanted = dict[str, tuple[str, ...]]()

        def add_sound(number: int) -> None:
            command = f"echo part {number} > part-{number}.txt && cat part-{number}.txt"
            issue = site.add(f"part {number}", behaves=working(command))
            made.issues[issue], wanted[issue] = f"part {number}", ("closed",)

        sound = iter(range(1, SOUND + 1))
        for title, (behaves, ends) in mishaps.items():  # each before a sound one, as long as there are any
            issue = site.add(title, behaves=behaves)
            made.issues[issue], wanted[issue] = title, ends
            for number in islice(sound, 1):
                add_sound(number)
        for number in sound:
            add_sound(number)
        visited = next((issue for issue, title in made.issues.items() if title.startswith("has a person")), None)
        before = living_in(site.project.parent)
        with site.working() as daemon:
            began = time.monotonic()
            _watch(site, daemon, made, wanted, began, visited)
            made.seconds = time.monotonic() - began
            made.wrong += _landed(site, made, base)
        made.records = site.journal_all()
        site.ashep("stop", "--server")
        left = set(living_in(site.project.parent)).difference(before)
        made.wrong += [f"process {pid} lives on" for pid in sorted(left)]
        for issue in made.issues:
            BEHAVES.pop(issue, None)
        for word in ("replay", "audit"):
            told = json.loads(site.ashep(word, "--json"))
            if told.get("differences") or told.get("findings"):
                made.wrong.append(f"{word}: {json.dumps(told)[:1000]}")
    return made


def _watch(
    site: Site, daemon: Working, made: Night, wanted: Mapping[str, tuple[str, ...]], began: float, visited: str | None
) -> None:
    """Wait until every issue stands as it should; the person writes as soon as there is a session."""
    wrote = visited is None
    progress = DemoProgress(site.project, site.environ, lambda: len(site.model.asks))
    while not progress.is_over():
        if visited is not None and not wrote and site.prompts(f"{visited}/implement.1.1"):
            opened = [one for one in site.journal(visited) if one["type"] == "SessionOpened"]
            site.person_in(opened[-1]["session"], "prompt_async", parts=[{"type": "text", "text": MINE}])
            wrote = True
        rows: list[dict[str, Any]] = json.loads(site.ashep("status", "--all", "--json"))["issues"]
        for row in rows:
            issue = str(row["issue"])
            stands = (str(row["state"]), str(row["reason"]))
            if issue in wanted and made.stands.get(issue, ("", ""))[0] != stands[0]:
                made.since[issue] = time.monotonic() - began
            if issue in wanted:
                made.stands[issue] = stands
        if wrote and all(made.stands.get(issue, ("", ""))[0] in ends for issue, ends in wanted.items()):
            return
        if daemon.process.poll() is not None:
            made.wrong.append(f"the daemon ended:\n{daemon.text[-3000:]}")
            return
        time.sleep(LOOKS)
    made.wrong += [
        f"{issue} ({made.issues[issue]}) stands as {made.stands.get(issue)}, and not as {' or '.join(ends)}"
        for issue, ends in wanted.items()
        if made.stands.get(issue, ("", ""))[0] not in ends
    ]
    made.wrong.append(f"nothing new for {STILL:.0f} s:\n{daemon.text[-3000:]}")


def _landed(site: Site, made: Night, base: str) -> list[str]:
    """What of the sound issues' work is not on the base."""
    files = site.run("git", "ls-tree", "--name-only", "-r", base).split("\n")
    return [f"part-{n}.txt is not on {base}" for n in range(1, SOUND + 1) if f"part-{n}.txt" not in files]


def ends(night: Night) -> Iterator[str]:
    """How each issue stands in the end, and since when."""
    for issue, title in night.issues.items():
        state, reason = night.stands.get(issue, ("", ""))
        yield f"{night.since.get(issue, 0.0):5.0f} s  {state:<7} {title:<36} {reason[:200]}"


def main() -> int:
    """Live both nights; 1 where something is wrong."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    alone = night({})
    print(f"{SOUND} issues alone: {alone.seconds:.0f} s", flush=True)
    both = night(MISHAPS)
    print("\n".join(ends(both)))
    ratio = both.seconds / alone.seconds
    print(f"{len(both.issues)} issues, {len(MISHAPS)} of which go wrong: {both.seconds:.0f} s, {ratio:.2f} x")
    wrong = [*alone.wrong, *both.wrong, *([f"it took {ratio:.2f} x, 2 are allowed"] if ratio > 2 else [])]
    for one in wrong:
        print(f"WRONG {one}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
