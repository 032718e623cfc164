"""Trial of the repository for `ashep install`: one of each kind of call that a night makes; what it makes goes."""

import os
from pathlib import Path

import anyio

from ashep.actions.security import Line
from ashep.actions.verify import Outputs
from ashep.adapters.git import GitLanding, GitRemote
from ashep.adapters.git.checkup import ONTO, TRIAL, GitCheckup
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.work_tree import GitTree
from ashep.connect import checkup_of, verifier_of
from ashep.core.facts.words import describe_base
from ashep.core.policy.checks import Criteria, TestPass, TestPassCheck
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.ports.landing import Advanced, Candidate, Integrated
from ashep.ports.verifier import VerifyRequest

_LONGEST = 110.0
_FILE = "ashep-install-trial"
_CHECK = TestPassCheck(id="trial", type="test_pass", verify=TestPass(command=("true",)))


async def try_repository(project: Path, settings: Settings) -> list[Line]:
    """Say what of a night fails here, and how far the base is behind; nothing where all share one work tree."""
    try:
        tree = await GitTree(project).read()
    except AshepError:
        return []  # that is told already
    if settings.worker.workspace == "shared" or tree.head is None:
        return []
    looked = checkup_of(project, settings, writes=False)
    if fault := await looked.find_fault():
        return [Line("error", "repository", fault)]
    tried = Line("warning", "repository", f"a trial was not done in {_LONGEST:g} s", "see what takes git so long here")
    with anyio.move_on_after(_LONGEST):
        tried = await _try(project, settings, tree.head)
    base = settings.landing.base or tree.branch or ""
    return [tried, *await _compare(project, settings, looked, base)]


async def _try(project: Path, settings: Settings, head: str) -> Line:
    step, checkup, landing = "make a tree", checkup_of(project, settings), GitLanding(project)
    try:
        async with checkup.trial():
            if fault := await checkup.find_fault():
                return Line("error", "repository", fault)
            made = await checkup.spaces.prepare(TRIAL, head, 0)
            step = "commit what is in it"
            await anyio.Path(made.path, _FILE).write_text(os.urandom(16).hex())
            sealed = await checkup.spaces.seal(TRIAL, "install", "A trial of `ashep install`")
            step = "read what changed"
            if sealed.head == head or not (await GitDiffs(project).read(head, sealed.head)).files:
                raise AshepError("git shows no change where a file was added")
            step = "check it"
            async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
                verifier = verifier_of(project, settings, Outputs().keep, scratch=Path(scratch))
                found = await verifier.verify(VerifyRequest(project, sealed.head, head, Criteria(checks=(_CHECK,))))
            if found.results[0].status != "passed":
                raise AshepError(found.results[0].message)
            step = "land it on a branch of its own"
            await checkup.begin(ONTO, head)
            merged = await landing.integrate(Candidate("install", TRIAL, sealed.head, ONTO))
            moved = await landing.advance(ONTO, head, merged.commit) if isinstance(merged, Integrated) else merged
            objects = await checkup.new_objects(_FILE)
            if not isinstance(moved, Advanced):
                raise AshepError(str(moved))
        await checkup.delete(objects)
    except (AshepError, OSError) as error:
        return Line("error", "repository", f"a trial could not {step}: {' '.join(str(error).split())}")
    said = "a tree, a commit, a read, a check and a landing were tried, and taken away again"
    return Line("ok", "repository", said)


async def _compare(project: Path, settings: Settings, checkup: GitCheckup, base: str) -> list[Line]:
    """Say how the base stands to the branch that it follows, and whether that can be fetched where it will be."""
    lines, landing = list[Line](), settings.landing
    if words := await describe_upstream(checkup, base):
        begins = landing.mode == "pull_request" and landing.fetches
        remedy = "issues begin at the remote's branch" if begins else "`git pull` before the night"
        lines.append(Line("ok" if begins else "warning", "base", words, remedy))
    if landing.fetches and (remote := await checkup.find_remote(base)) is not None:
        try:
            await GitRemote(project, remote, timeout=30.0).head(base)
        except AshepError as error:
            why = " ".join(str(error).split())
            lines.append(Line("warning", "base", why, "issues begin from what was fetched last: let `git fetch` work"))
    return lines


async def describe_upstream(checkup: GitCheckup, base: str) -> str:
    """Say how far a base is behind the branch that it follows; empty: it is not, or follows none."""
    if (upstream := await checkup.read_upstream(base)) is None:
        return ""
    seen = {"base": base, "upstream": upstream.name, "ahead": upstream.ahead, "behind": upstream.behind}
    return describe_base(seen, f"{upstream.fetched.astimezone():%Y-%m-%d %H:%M}" if upstream.fetched else "")
