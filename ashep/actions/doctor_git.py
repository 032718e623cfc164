"""Looks of `ashep install` at a repository and at what is around it: whose it is, hooks, submodules, paths, proxies."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.actions.verify import Outputs
from ashep.adapters.git import GitLanding
from ashep.adapters.git.checkup import FILE, ONTO, TRIAL
from ashep.adapters.git.command import Git, commit_of
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.submodules import find_submodules, flat
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.hooks import hook_files
from ashep.adapters.git.workspaces.submodules import is_filled_by
from ashep.adapters.runners.opencode.environment import past_proxies
from ashep.adapters.sandboxes.exec import PlaceSandbox
from ashep.core.policy.checks import Criteria, TestPass, TestPassCheck
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramTimedOut
from ashep.factories import FOLDER, check_path, checkup_of, inside_of, places_of, sandboxed, verifier_of
from ashep.ports.landing import Advanced, Candidate, Integrated
from ashep.ports.verifier import VerifyRequest

_DUBIOUS = re.compile(r"detected dubious ownership in repository at '([^'\n]+)'")

_MESSAGE = ".git/MESSAGE"
_HOOKS = {
    "pre-commit": (),
    "prepare-commit-msg": (_MESSAGE, "message"),
    "commit-msg": (_MESSAGE,),
    "post-commit": (),
    "post-checkout": ("HEAD", "HEAD", "1"),
}
"""Hooks that are tried, with what git hands to each."""
_REFUSING = ("pre-commit", "prepare-commit-msg", "commit-msg")
_HOOK, _ALL = 15.0, 100.0  # seconds for one hook, and for all of them with their place
_SHOWN = 300
_CHECK = TestPassCheck(id="trial", type="test_pass", verify=TestPass(command=("true",)))
_REMEDY = "make what it needs readable (`agents.paths.read`), or bring it with `worker.setup`; or set `git.hooks: skip`"


def proxy(environ: Mapping[str, str]) -> list[CheckLine]:
    """Say what agents get in addition to the proxies of this environment."""
    if not (added := past_proxies(environ)):
        return []
    what = f"a proxy is set, and NO_PROXY spares not all of this machine: the agent server and agents get {max(added)}"
    return [CheckLine("ok", "proxy", f"{what}={added[max(added)]}", "set NO_PROXY yourself for other programs")]


def git_error(error: AshepError) -> CheckLine | None:
    """Say what to do where git does not work in somebody else's checkout; None: it is something else."""
    if (match := _DUBIOUS.search(str(error))) is None:
        return None
    what = f"{match[1]} belongs to another user, and git does nothing there until `safe.directory` names it"
    return CheckLine("error", "git", what, f"git config --global --add safe.directory {shlex.quote(match[1])}")


async def repository(project: Path, settings: Settings, *, ask: bool) -> list[CheckLine]:
    """Look at what a fresh clone lacks, and at hooks. `ask`: anything is started for that."""
    lines = [*await cleaning(project), *await submodules(project, settings)]
    return [*lines, *await hooks(project, settings)] if ask else lines


async def cleaning(project: Path) -> list[CheckLine]:
    """Say what `git clean` would take of issues, configuration and journal: all that no commit holds."""
    try:
        listed = await Git(project).raw("clean", "-ndx", "--", ".beads", FOLDER)
    except AshepError:
        return []  # another line says so
    names = sorted({Path(os.fsdecode(line)).parts[0] for line in re.findall(rb"Would remove (.+)", listed)})
    what = f"`git clean -fdx` deletes what no commit holds, here of {' and '.join(names)}: issues, journal, settings"
    remedy = f"`git clean -fdx -e .beads -e {FOLDER}` spares them"
    return [CheckLine("ok", "git clean", what, remedy)] if names else []


async def submodules(project: Path, settings: Settings) -> list[CheckLine]:
    """Say which submodules are empty where agents and checks work, and why."""
    git = Git(project)
    try:
        commit = await commit_of(git, "HEAD", absent=re.compile(""))
        listed = [*flat(await find_submodules(await git.common(), commit, commit) if commit is not None else ())]
    except AshepError:
        return []  # another line says so
    lacking = [submodule for submodule in listed if submodule.source is None]
    more = f"; so are {len(lacking) - 1} more" if lacking[1:] else ""
    lines = [CheckLine("warning", "submodules", f"in places and checks {submodule}{more}") for submodule in lacking[:1]]
    if listed and settings.worker.workspace == "worktree" and not is_filled_by(settings.worker.setup):
        what = "in a linked work tree submodules are empty folders; checks have their files"
        remedy = "`worker.setup: [{run: [git, submodule, update, --init, --recursive]}]` fills them; so do places"
        lines.append(CheckLine("warning", "submodules", what, remedy))
    what = f"places and checks have the files of {len(listed)} submodules, from `.git/modules`"
    return lines or ([CheckLine("ok", "submodules", what)] if listed else [])


async def hooks(project: Path, settings: Settings) -> list[CheckLine]:
    """Try the team's hooks once, in a place as agents have it, and name those that would refuse their commits."""
    if not sandboxed(settings) or settings.git.hooks == "skip":
        return []
    try:
        with anyio.fail_after(_ALL):
            return await _try_hooks(project, settings)
    except (TimeoutError, AshepError) as error:
        reason = f"cannot be tried in a place: {str(error) or f'no answer in {_ALL:g} s'}"
        return [CheckLine("warning", "hooks", f"the hooks of this repository {reason}", _REMEDY)]


async def _try_hooks(project: Path, settings: Settings) -> list[CheckLine]:
    places = Clones(project, places_of(project, settings))
    hooks = await places.hooks()
    if hooks.path is None and not await to_thread.run_sync(hook_files, hooks.source):
        return []
    lines = list[CheckLine]()
    async with places.trial() as place, anyio.TemporaryDirectory(prefix="ashep-install-") as folder:
        if hooks.path is not None and not await anyio.Path(place.path, hooks.path).is_dir():
            what = f"no hook runs in a place: `core.hooksPath` is {clean(hooks.path)}, which no commit holds"
            return [CheckLine("ok", "hooks", what, "a step of `worker.setup` can make it")]
        await anyio.Path(place.path, _MESSAGE).write_text("chore: try the hooks\n")
        scratch = await to_thread.run_sync(Path(folder).resolve)
        inside = await inside_of(project, settings, place.path, scratch / "server")
        for name, arguments in _HOOKS.items():
            if inside is not None and (reason := await _failure(inside, place.path, name, arguments)):
                verb = "refuses each commit" if name in _REFUSING else "fails"
                before = " (`worker.setup` did not run before)" if settings.worker.setup else ""
                effect = f"in a place the hook {name} {verb}{before}: {reason}"
                lines.append(CheckLine("warning", "hooks", effect, _REMEDY))
    return lines or [CheckLine("ok", "hooks", "the hooks of this repository let commits pass in a place")]


async def _failure(inside: PlaceSandbox, place: Path, hook: str, arguments: Sequence[str]) -> str:
    """Give what a hook says that fails; empty: it does not."""
    command = ("git", "hook", "run", "--ignore-missing", hook, "--", *arguments)
    try:
        finished = await inside.run(command, place, {}, _HOOK, _ALL)
    except ProgramTimedOut:
        return f"it had not ended after {_HOOK:g} s or more, and does nothing"
    words = " ".join(clean((finished.stderr or finished.stdout).decode(errors="replace")).split())
    return (words[-_SHOWN:] or f"exit code {finished.returncode}") if finished.returncode else ""


async def trial(project: Path, settings: Settings, *, ask: bool) -> list[CheckLine]:
    """Try one of each kind of call that a night makes to the repository, and compare the base with its upstream."""
    tree, landing = None, settings.landing
    with suppress(AshepError):  # another line says so
        check_path(project)
        tree = await GitTree(project).read()
    if not ask or settings.worker.workspace == "shared" or tree is None or tree.head is None:
        return []
    base, checkup = landing.base or tree.branch or "", checkup_of(project, settings, writes=False)
    if landing.fetches:
        await checkup.fetch(base)
    seen = await checkup.look(base)
    lines = [CheckLine("error", "repository", seen.fault) if seen.fault else await _try(project, settings, tree.head)]
    if seen.behind and landing.begins_at_remote:
        lines.append(CheckLine("ok", "base", seen.behind, "issues begin at the remote's branch"))
    elif seen.behind:
        lines.append(CheckLine("warning", "base", seen.behind, "`git pull` before the night"))
    if seen.error:
        remedy = "issues begin from what was fetched last: let `git fetch` work"
        lines.append(CheckLine("warning", "base", seen.error, remedy))
    return lines


async def _try(project: Path, settings: Settings, head: str) -> CheckLine:
    step, checkup, landing = "make a tree", checkup_of(project, settings), GitLanding(project)
    try:
        with anyio.fail_after(_ALL):
            async with checkup.trial(head) as tree:
                step = "commit what is in it"
                await anyio.Path(tree.path, FILE).write_text(os.urandom(16).hex())
                sealed = await checkup.spaces.seal(TRIAL, "install", "A trial of `ashep install`")
                step = "read what changed"
                if not (await GitDiffs(project).read(head, sealed.head)).files:
                    raise AshepError("git shows no change where a file was added")
                step = "check it"
                async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
                    verifier = verifier_of(project, settings, Outputs().keep, scratch=Path(scratch))
                    request = VerifyRequest(project, sealed.head, head, Criteria(checks=(_CHECK,)))
                    (result,) = (await verifier.verify(request)).results
                if result.status != "passed":
                    raise AshepError(result.message)
                step = "land it on a branch of its own"
                merged = await landing.integrate(Candidate("install", TRIAL, sealed.head, ONTO))
                moved = await landing.advance(ONTO, head, merged.commit) if isinstance(merged, Integrated) else merged
                if not isinstance(moved, Advanced):
                    raise AshepError(str(moved))
    except (AshepError, OSError) as error:
        reason, slow = " ".join(str(error).split()) or f"no answer in {_ALL:g} s", isinstance(error, TimeoutError)
        return CheckLine("warning" if slow else "error", "repository", f"a trial could not {step}: {reason}")
    steps = "a tree, a commit, a read, a check and a landing were tried, and taken away again"
    return CheckLine("ok", "repository", steps)
