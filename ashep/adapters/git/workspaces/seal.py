"""Bring a branch to hold everything that was worked in its tree, whatever state an agent left it in."""

import os
import re
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import command, locks, tree_scan
from ashep.adapters.git.repository import Repository, TreeRepository, WorkspacePaths, move_aside, under_way
from ashep.adapters.git.workspaces import salvage
from ashep.core.text import clean, list_names
from ashep.errors import AshepError, RepositoryLocked, TreeRefused

_BROKEN_INDEX = re.compile(r"index file corrupt|bad index|index file .*(?:smaller|corrupt)|bad signature")
_CLOSED = b"could not open directory"
MOST_TRIES = 100
"""Calls of git by which those among the new files are found that it refuses."""
_LOCK_PATIENCE = 1.0  # seconds in which a git that lives would be done with its lock
_SHOWN = 5


@dataclass(slots=True)
class SealReport:
    """What was found out of order, and where it was saved."""

    words: list[str] = field(default_factory=list[str])
    saved: list[str] = field(default_factory=list[str])
    lacking: list[str] = field(default_factory=list[str])


async def repair(place: WorkspacePaths, told: SealReport) -> None:
    """See to it that the `.git` of a tree names its git folder: else git finds the user's checkout, which is above.

    A repository that an agent made there is moved next to the tree.
    """
    if place.whole:  # whoever made it looks after it
        return
    link = anyio.Path(place.path, ".git")
    wanted = f"gitdir: {place.admin}\n"
    if await link.is_dir() or await link.is_symlink():
        kept = await anyio.to_thread.run_sync(move_aside, place.path, Path(link))
        told.words.append(
            f"a repository of its own had been made in the tree; it is in {kept}, and the files are the branch's. Look "
            "whether commits there are wanted, then delete it"
        )
    if not await link.exists() or (await link.read_text(errors="replace")) != wanted:
        await link.write_text(wanted)
        told.words.append("the file .git of the tree was gone or changed; it is as it was")


async def unlock(place: WorkspacePaths, told: SealReport) -> None:
    """Take away the locks of a git that was killed. Nobody may work in the tree: a git that lives looks the same."""
    for name in ("index.lock", "HEAD.lock"):
        lock = anyio.Path(place.admin, name)
        if await lock.exists():
            before = (await lock.stat()).st_mtime_ns
            await anyio.sleep(_LOCK_PATIENCE)
            if await lock.exists() and (await lock.stat()).st_mtime_ns == before:
                if await anyio.to_thread.run_sync(locks.is_held, Path(lock)):
                    raise RepositoryLocked(f"{lock} is there, and a git is at work: end it, or wait", str(lock))
                await lock.unlink()
                told.words.append(f"a git that was killed had left {name}; it was taken away")


async def seal(repository: TreeRepository, branch: str, tip: str, run: str, message: str, told: SealReport) -> None:
    """Commit everything, and bring the branch, which has the commit `tip`, to contain HEAD, and HEAD to the branch."""
    await repair(repository.place, told)
    await unlock(repository.place, told)
    await _read_index(repository, told)
    state, _ = await under_way(repository.place)
    listed = await repository.inside("diff", "--name-only", "--diff-filter=U", "-z")
    conflicts = [clean(os.fsdecode(path)) for path in listed.split(b"\0") if path]
    done = await repository.ask("symbolic-ref", "--quiet", "HEAD")
    ref = done.stdout.decode(errors="replace").strip() or None
    strayed = ref != f"refs/heads/{branch}"
    if state is not None or conflicts or strayed or await _staged_otherwise(repository):
        told.saved += await salvage.save(repository, branch, onto=("HEAD", tip), ignored=strayed)
    if state == "rebase":
        await end(repository, state)
        back = ("symbolic-ref", "-m", "ashep: back to the branch", "HEAD", f"refs/heads/{branch}")
        await repository.inside(*back)
        await repository.inside("reset", "--quiet", "--hard")  # what was there is committed or saved
        told.words.append(f"a rebase was under way; it is saved, and {branch} is as it was before it")
        strayed = False
    elif conflicts:
        await end(repository, state)
        shown = list_names(conflicts, _SHOWN)
        told.words.append(f"a {state or 'merge'} with conflicts in {shown} was left; it is saved and ended")
    elif state == "bisect":
        await end(repository, state)
        told.words.append("a bisect was under way; it is ended")
    where = (ref or "no branch").removeprefix("refs/heads/")
    head = await _head(repository)
    if strayed and ref and head:  # the branch that it is on may be somebody's: nothing is committed there
        await repository.inside("update-ref", "--no-deref", "-m", "ashep: off the branch", "HEAD", head)
    await _commit(repository, branch, run, message, concluding=state if not conflicts else None, told=told)
    if strayed:
        await _gather(repository, branch, tip, run, where, told)


async def _read_index(repository: TreeRepository, told: SealReport) -> None:
    """Make an index that git cannot read again: what was staged only is lost with it, the files are there."""
    done = await repository.ask("ls-files", "--stage", "-z")
    if done.returncode and _BROKEN_INDEX.search(repository.git.redact_stderr(done)):
        kept = await anyio.to_thread.run_sync(move_aside, repository.place.path, repository.place.admin / "index")
        await repository.inside("reset", "--quiet", "--mixed")
        told.words.append(f"git could not read the tree's index; it is in {kept}, and was made anew")


async def _staged_otherwise(repository: TreeRepository) -> bool:
    """Say whether something is staged that is neither what HEAD has nor what the tree has: it will be written over."""
    staged = await repository.inside("diff", "--cached", "--name-only", "--no-renames", "-z")
    if not staged:
        return False
    changed = await repository.inside("diff-files", "--name-only", "-z", "--ignore-submodules=all")
    odd = tree_scan.hidden(await repository.inside("ls-files", "-v", "-z"))
    return bool(({*staged.split(b"\0")} - {b""}) & {*changed.split(b"\0"), *odd})


async def end(repository: TreeRepository, state: str | None) -> None:
    """End what git is in the midst of; files that it did not touch keep their changes. All of it is saved before."""
    if state == "rebase":
        am = await anyio.Path(repository.place.admin, "rebase-apply", "applying").exists()
        await repository.ask("am" if am else "rebase", "--quit")
    elif state == "bisect":
        await repository.ask("bisect", "reset", "HEAD")
        return
    elif state in ("cherry-pick", "revert"):
        await repository.ask(state, "--quit")
    if (await repository.ask("reset", "--quiet", "--merge")).returncode:
        await repository.inside("reset", "--quiet", "--hard")
    if state == "merge":
        await repository.ask("merge", "--quit")


async def _head(repository: TreeRepository) -> str | None:
    done = await repository.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return done.stdout.decode().strip() or None


async def restore(repository: TreeRepository, branch: str, commit: str, mine: tuple[str, str]) -> tuple[str, ...]:
    """Set branch and tree to a commit; what git ignores stays, all else is saved. `mine`: the branch's refs."""
    told = SealReport()
    await repair(repository.place, told)
    await unlock(repository.place, told)
    saved = await salvage.save(repository, branch, dropped=mine, reached=(commit,), onto=("HEAD", commit))
    state, _ = await under_way(repository.place)
    if state is not None:
        await end(repository, state)
    await repository.inside("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    await repository.inside("reset", "--quiet", "--hard", commit)
    await repository.inside("clean", "-ffdq", "-e", ".beads", "-e", ".agent-shepherd/state")
    return saved


# --- committing ---


async def _commit(
    repository: TreeRepository, branch: str, run: str, message: str, *, concluding: str | None, told: SealReport
) -> None:
    """Commit what is uncommitted; a merge that was only to be concluded, too."""
    await _show_hidden(repository)
    left_out = await not_ours(repository)
    listed = await repository.inside("ls-files", "--others", "--exclude-standard", "-z")
    for nested in [os.fsdecode(path) for path in listed.split(b"\0") if path.endswith(b"/")]:  # git commits a number
        told.words.append(f"{clean(nested)} is a repository of its own; it is not committed")
        left_out.append(f":(exclude,top,literal){nested.rstrip('/')}")
    sparse = await repository.ask("config", "--type=bool", "core.sparseCheckout")
    everywhere = ("--sparse",) if sparse.stdout.strip() == b"true" else ()  # else git refuses what lies outside of it
    await _add(repository, branch, everywhere, left_out, told)
    same = await repository.ask("diff-index", "--cached", "--quiet", "HEAD", "--")
    merging = await anyio.Path(repository.place.admin, "MERGE_HEAD").exists()
    if same.returncode or merging:
        words = clean(message).strip() or "Work of an agent"
        trailer = f"{command.TRAILER}: {clean(run)}".replace("\n", " ")
        # no words by standard input: git would commit without them where ashep is killed before it has written them
        arguments = ("commit", "--quiet", "--no-verify", "--allow-empty", "--cleanup=whitespace", f"--message={words}")
        env = await identity(repository)
        await repository.inside(*arguments, f"--trailer={trailer}", env=env)
    if concluding in ("cherry-pick", "revert"):
        await repository.ask(concluding, "--quit")


async def _add(
    repository: TreeRepository, branch: str, everywhere: Iterable[str], left_out: Iterable[str], told: SealReport
) -> None:
    """Stage all that git takes. What it refuses is kept next to the branch, and told."""
    add = ("add", "--all", "--ignore-errors", *everywhere)
    done = await repository.ask(*add, "--", ".", *left_out)
    if not done.returncode and _CLOSED not in done.stderr:
        return
    if opened := await anyio.to_thread.run_sync(_open_up, repository.place.path):
        told.words.append(f"{_first(opened)} could not be read by their owner; they can be again")
    waiting, words = [await _unstaged(repository, left_out)], repository.git.redact_stderr(done)
    for _ in range(MOST_TRIES):
        if not waiting:
            break
        group = waiting.pop()
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        literal = {"GIT_LITERAL_PATHSPECS": "1"}
        done = await repository.ask(*add, *listed, env=literal, stdin=b"".join(one + b"\0" for one in group))
        if done.returncode:
            words = repository.git.redact_stderr(done)
        if done.returncode > 1 and len(group) > 1:  # it gave up in its midst, and has staged none of them
            waiting += [group[len(group) // 2 :], group[: len(group) // 2]]
    refused = await _unstaged(repository, left_out)
    if not refused:
        return
    refs, kept = await salvage.save_beside(repository, branch, refused)
    told.saved += refs
    where = f"as they are in {refs[0]} (`git show {refs[0]}:<path>`)" if refs else "in the tree alone"
    besides = [path for path in refused if path not in kept] if refs else []
    told.lacking.append(
        f"git refuses {_first(refused)}: {clean(' '.join(words.split()))[:300]}. They are not on {branch}, but {where}"
        + (f"; too large, unreadable or no files, and so in the tree alone: {_first(besides)}" if besides else "")
    )


async def _unstaged(repository: TreeRepository, left_out: Iterable[str]) -> list[bytes]:
    asked = ("--modified", "--others", "--exclude-standard", "-z", "--", ".")
    listed = await repository.inside("ls-files", *asked, *left_out)
    return sorted({path for path in listed.split(b"\0") if path})


def _first(paths: Sequence[bytes]) -> str:
    return list_names([clean(os.fsdecode(path))[:200] for path in paths], _SHOWN)


def _open_up(top: Path) -> list[bytes]:
    """Let the owner read whatever is in a tree, as far as that is us; give what could not be read before."""
    found, left, root = list[bytes](), [b""], os.fsencode(top)
    while left:
        folder = left.pop()
        with suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                path, about = os.path.join(folder, entry.name), entry.stat(follow_symlinks=False)
                inner = stat.S_ISDIR(about.st_mode)
                lacks = (stat.S_IRWXU if inner else stat.S_IRUSR) & ~about.st_mode
                if lacks and (inner or stat.S_ISREG(about.st_mode)):
                    with suppress(OSError):
                        os.chmod(os.path.join(root, path), stat.S_IMODE(about.st_mode) | lacks)
                        found.append(path)
                if inner:
                    left.append(path)
    return sorted(found)


async def not_ours(repository: Repository) -> list[str]:
    """Give the pathspecs that leave out what is of bd and of ashep."""
    prefix = (await repository.folders()).prefix
    return [f":(exclude,top,literal){prefix}{own}" for own in tree_scan.OWN]


async def _show_hidden(repository: TreeRepository) -> None:
    """Let git see changes of files that it was told to take for unchanged; files left out of the checkout stay so."""
    if unseen := tree_scan.hidden(await repository.inside("ls-files", "-v", "-z")):
        there = await anyio.to_thread.run_sync(tree_scan.find_present, repository.place.path, unseen)
        listed = b"".join(path + b"\0" for path in there)
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            await repository.inside("update-index", flag, "-z", "--stdin", stdin=listed)


async def identity(repository: TreeRepository) -> dict[str, str]:
    """Give what git needs to know next to the user's own name and address: ours, where it has none."""
    missing = dict[str, str]()
    for role in ("AUTHOR", "COMMITTER"):
        flag = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.useConfigOnly", "GIT_CONFIG_VALUE_0": "true"}
        if (await repository.ask("var", f"GIT_{role}_IDENT", env=flag)).returncode:
            missing |= {f"GIT_{role}_NAME": "Agent Shepherd", f"GIT_{role}_EMAIL": "ashep@localhost"}
    return missing


# --- HEAD is elsewhere ---


async def _gather(repository: TreeRepository, branch: str, tip: str, run: str, where: str, told: SealReport) -> None:
    """Bring the branch to contain HEAD, which was on `where`, and put HEAD on the branch.

    Raises `TreeRefused` where they cannot be merged; both are saved, and the tree is as it was.
    """
    head = await _head(repository)
    if head is None:
        raise AshepError(f"{repository.place.path}: HEAD is on no commit; `git checkout {branch}` there, and try again")
    if await repository.contains(head, tip):
        await repository.update_refs([f"update refs/heads/{branch} {head} {tip}"])
        await repository.inside("symbolic-ref", "-m", "ashep: to the branch", "HEAD", f"refs/heads/{branch}")
        told.words.append(f"HEAD was on {clean(where)}; {branch} has its commits now")
        return
    await repository.inside("checkout", "--quiet", "--no-overwrite-ignore", branch, "--")
    if await repository.contains(tip, head):
        told.words.append(f"HEAD was on {clean(where)}, behind the branch; it is on {branch} again")
        return
    words = f"Merge what was worked on {clean(where)}"
    trailer = f"--trailer={command.TRAILER}: {clean(run)}".replace("\n", " ")
    env = await identity(repository)
    done = await repository.ask("merge", "--quiet", "--no-verify", "--no-ff", "--no-commit", head, env=env)
    if done.returncode:
        await end(repository, "merge")
        await repository.inside("checkout", "--quiet", "--detach", head, "--")
        raise TreeRefused(
            f"{repository.place.path}: work was committed on {clean(where)} ({head[:12]}) that cannot be merged with "
            f"{branch}. Nothing is lost: go there, `git checkout {branch}`, `git merge {head[:12]}`, solve the "
            "conflicts, commit."
        )
    await repository.inside("commit", "--quiet", "--no-verify", "-m", words, trailer, env=env)
    told.words.append(f"HEAD was on {clean(where)}, which had left the branch; both are merged")
