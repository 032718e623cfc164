"""Proof of the demonstration, in its end: from git, bd, the model's log and the journal, not from what ashep says."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from anyio import to_thread

from ashep.adapters.system import programs
from ashep.core.state.branches import branch_of
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.extras.demo import mixed_agents
from ashep.extras.demo.policy_edits import Edits, in_force
from ashep.extras.demo.progress import STILL
from ashep.extras.demo.project import DemoProject, ashep
from ashep.extras.demo.scenario import BASE, ISSUES, SHOWN, merge_asked
from ashep.extras.demo.state_dir import DemoState, ModelUse, journal, read_model_uses

Proof = tuple[str, bool]
"""What is to be true, in words, and whether it is."""


def report_proofs(found: Iterable[Proof], say: Callable[[str], None]) -> int:
    """Say it, and give the exit code: 0 where all of it holds."""
    proofs = list(found)
    say("\nproof")
    for words, holds in proofs:
        say(f"  {'ok    ' if holds else 'FAILED'} {words}")
    return 0 if all(holds for _, holds in proofs) else AshepError.exit_code


WRITES = 6
"""Runs that change something."""


async def proofs(stage: DemoProject, kept: DemoState, edits: Edits, why: str) -> list[Proof]:
    """Look at the world. `why`: what `ashep why` said of `SHOWN`."""
    issues = await stage.issues()
    closed = sum(issue["status"] == "closed" for issue in issues)
    before, after = not kept.failed_before, await stage.test()
    seen = await to_thread.run_sync(read_model_uses, stage.folder)
    log = (await stage.run("git", "log", "--format=%(trailers:key=Ashep-Run,valueonly,separator=)")).split()
    criterion = ISSUES[-1].checks[0]
    fails = f"{criterion['id']} ({criterion['description']}): failed"
    told = [run for run, one in seen.items() if "It does not hold:" in one.prompt and fails in one.prompt]
    found = [
        (f"closed in bd: {closed} of {len(issues)}", closed == len(ISSUES) == len(issues)),
        (f"the program's tests failed before and {'pass' if after else 'fail'} now on {BASE}", after and not before),
        await at_once(stage, len(ISSUES)),
        (f"the check {criterion['id']} had failed, as {_and(told)} was told, which mended it", len(told) == 1),
        conflict(seen),
        await _merged(stage),
        await _evidence(stage, why),
        once(seen),
        (f"commits of runs on {BASE}: {', '.join(sorted(log))}", len(log) == WRITES and set(log) <= set(seen)),
    ]
    if kept.agents == "mixed":
        found += await to_thread.run_sync(mixed_agents.proofs, stage, seen, kept.killed)
    if edits.begun:
        adopted = await to_thread.run_sync(in_force, stage)
        found += [
            (f"an unsound edit of the policy was refused: {clean(edits.refused)}", bool(edits.refused)),
            ("a sound edit came into force, while runs went on", edits.mended and adopted),
        ]
    return [*found, await check(stage, "replay"), await check(stage, "audit")]


def once(seen: Mapping[str, ModelUse]) -> Proof:
    """No turn began twice."""
    turns = sum(one.turns for one in seen.values())
    return f"prompts that the model saw: {turns}, for {len(seen)} runs", turns == len(seen)


async def at_once(stage: DemoProject, count: int) -> Proof:
    """Runs of so many issues were under way at once: an agent that starts late is waited for, and no other with it."""
    under_way, most = set[str](), 0
    for record in await to_thread.run_sync(lambda: [*journal(stage.project)]):
        if record["type"] == "RunPlanned":
            under_way.add(str(record["run"]))
        elif record["type"] in ("RunEnded", "RunWithdrawn"):
            under_way.discard(str(record["run"]))
        most = max(most, len({run.partition("/")[0] for run in under_way}))
    trees = json.loads(await stage.ashep("trees", "list", "--json"))["trees"]
    words = f"{most} issues were worked on at once, in {len(trees)} places beside the user's own work tree"
    return words, len(trees) == most == count


def conflict(seen: Mapping[str, ModelUse]) -> Proof:
    """Somebody was told of a conflict, once."""
    told = [run for run, one in seen.items() if merge_asked(one.prompt) and "<<<<<<<" in one.prompt]
    return f"two issues were in conflict, as {_and(told)} was told, which resolved it", len(told) == 1


def _and(runs: list[str]) -> str:
    return " and ".join(runs) or "nobody"


async def _merged(stage: DemoProject) -> Proof:
    branches = {branch_of(issue.id) for issue in ISSUES}
    merged = set((await stage.run("git", "branch", "--merged", BASE, "--format=%(refname:short)")).split())
    dirty = await stage.run("git", "status", "--porcelain", "--untracked-files=no")
    words = f"merged onto {BASE}, which is checked out and clean: {', '.join(sorted(branches & merged))}"
    return words, branches <= merged and not dirty


async def _evidence(stage: DemoProject, why: str) -> Proof:
    """What was verified last is what landed, by git's own hashes, and `ashep why` names it."""
    last: dict[str, dict[str, Any]] = {}
    for record in journal(stage.project):
        if record["type"] in ("WorkVerified", "WorkLanded") and record["issue"] == SHOWN:
            last[record["type"]] = record
    verified, landed = last.get("WorkVerified"), last.get("WorkLanded")
    if verified is None or landed is None:
        return f"{SHOWN} was verified, and landed", False
    tree = (await stage.run("git", "rev-parse", f"{landed['commit']}^{{tree}}")).strip()
    ancestor = (await stage.run("git", "merge-base", landed["commit"], BASE)).strip()
    passed = [one["status"] for one in verified["results"]]
    words = f"{SHOWN} landed as {landed['commit'][:12]}; its {len(passed)} checks passed in that very tree, {tree[:12]}"
    holds = verified["tree"] == tree and ancestor == landed["commit"] and set(passed) == {"passed"}
    return words, holds and tree[:12] in why


async def check(stage: DemoProject, *words: str) -> Proof:
    """The last line of one of ashep's own checks, and whether it ended well."""
    done = await programs.run(ashep(*words), cwd=stage.project, env=stage.environ, timeout=STILL)
    lines = (done.stdout or done.stderr).decode(errors="replace").strip().split("\n")
    return f"ashep {' '.join(words)}: {lines[-1]}", done.returncode == 0
