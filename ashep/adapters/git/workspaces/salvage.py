"""Save everything that a tree holds and that no ref reaches, so that nothing is lost when it is reset or deleted.

What is saved stands below `refs/ashep/saved/<branch>/<number>/`: `index`, what was staged; `conflict-1` to `-3`, the
sides of conflicts; `files`, the whole folder; `stash-<n>` and `commit-<n>`, commits that nothing else reaches; `rest`,
a commit whose parents are what had made more than `MOST_REFS` refs at once. Git's
own ways to do it leave something out: `stash` refuses conflicts, `add` converts line ends, obeys the tree's attributes,
and takes a repository within the tree for a submodule, of which it keeps a number only.
"""

import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.command import UNFLUSHED
from ashep.adapters.git.objects import quoted, write_commit
from ashep.adapters.git.repository import Repository, TreeRepository, WorkspacePaths
from ashep.adapters.git.tree_scan import GITLINK, LINK, Content, Stat, files_of, git_files, look, parents
from ashep.adapters.system.folders import delete, walk
from ashep.core.text import clean
from ashep.errors import AshepError

SAVED = "refs/ashep/saved/"
MOST_IGNORED = 256 * 1024**2
"""Bytes of ignored files that are saved; with more of them a tree is not removed until a person says so."""
MOST_REFS = 64
"""Refs that are made at once."""
REST = "rest"
MOST_READ = 16 * 1024**2
"""Bytes that are read of a file of git's: of a larger one its end, to which git appends."""

_NO_IDS = ("ashep", "hooks", "lfs", "modules", "objects")
"""Folders of git's in which no commit is named."""
_TRIES = 3
_SYNC = 64  # with more files than this the whole disk is flushed once, instead of each file
_AUTHOR = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Agent Shepherd"), ("EMAIL", "ashep@localhost"))
}
_OBJECT = re.compile(rb"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_MOVED = re.compile(rb"checkout: moving from (\S+) to (\S+)")
_STASHED = re.compile(rb"(?:WIP on|On) (.+?): ")


_Kept = dict[str, str]
"""What was saved up to now, by the last word of its ref."""


async def save_commits(
    repository: Repository, branch: str, dropped: Collection[str], reached: Collection[str] = ()
) -> tuple[str, ...]:
    """Save what only these refs reach, and the branch's past, and these commits do not; give the refs that hold it."""
    kept, common = _Kept(), (await repository.folders()).common
    await _save_commits(repository, common / "ashep" / "none", branch, dropped, kept, reached)
    return await _name(repository, branch, kept)


async def save_beside(
    repository: TreeRepository, branch: str, paths: Collection[bytes]
) -> tuple[tuple[str, ...], set[bytes]]:
    """Save these files as they stand, however much of them may be; give the ref, and what is in it.

    What is no file, cannot be read, or would be more than `MOST_IGNORED` bytes in all, is left out.
    """
    files = await anyio.to_thread.run_sync(_readable, repository.place.path, paths)
    if not files:
        return (), set()
    entries = await _store(repository, files, list(files))
    tree = await _tree(repository, ((mode, sha, _storable(path, mode)) for path, (mode, sha) in entries.items()))
    commit = await _commit(repository, tree, None, "Files that git refuses")
    return await _name(repository, branch, {"files": commit}), set(files)


def _readable(top: Path, paths: Iterable[bytes]) -> dict[bytes, Stat]:
    found, room = dict[bytes, Stat](), MOST_IGNORED
    for path in sorted(paths):
        file = os.path.join(os.fsencode(top), path)
        with suppress(OSError):
            about = os.lstat(file)
            if stat.S_ISREG(about.st_mode) and about.st_size <= room:
                os.close(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
            elif not stat.S_ISLNK(about.st_mode):
                continue
            room -= about.st_size
            found[path] = Stat(about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return found


async def save(
    repository: TreeRepository,
    branch: str,
    *,
    dropped: Collection[str] = (),
    reached: Collection[str] = (),
    onto: Collection[str] = (),
    ignored: bool = False,
    known: Mapping[bytes, Stat] | None = None,
) -> tuple[str, ...]:
    """Save a tree and give the refs; none where everything is reachable already.

    `dropped`: refs that are about to be moved or deleted, so that they keep nothing; `reached`: commits that the branch
    will have then. `onto`: commits that are about to be checked out: ignored files in their way are saved. `ignored`:
    all ignored files are, except those that are as `known` says: the set-up made them.

    Raises `AshepError` where something cannot be read, is too much, or changes all the time. Nothing is to be deleted
    then.
    """
    place = repository.place
    # git takes a work tree whose folder is gone, but not one whose folder could not even be made
    await anyio.Path(place.path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_TRIES):
        before = await anyio.to_thread.run_sync(git_files, place)
        content = await look(repository)
        spared = await _kept_ignored(repository, content, onto, ignored, known or {})
        kept = _Kept()
        await _save_index(repository, content, kept)
        await _save_files(repository, content, spared, kept)
        await _save_commits(repository, place.admin, branch, dropped, kept, reached)
        same = before == await anyio.to_thread.run_sync(git_files, place)
        if same and content.files == await anyio.to_thread.run_sync(files_of, place):
            return await _name(repository, branch, kept)
    raise AshepError(f"{place.path}: something writes there all the time; end it and try again. Nothing was removed.")


# --- files ---


async def _kept_ignored(
    repository: Repository, content: Content, onto: Collection[str], ignored: bool, known: Mapping[bytes, Stat]
) -> set[bytes]:
    """Give the ignored files that are not saved, because they stay, or can be made again."""
    if not ignored:
        return set(content.ignored) - await _in_the_way(repository, content.ignored, onto)
    made = {path for path, about in known.items() if content.files.get(path) == about}
    wanted = {path: content.files[path].size for path in content.ignored - made if path in content.files}
    if (total := sum(wanted.values())) > MOST_IGNORED:
        sizes = Counter[bytes]()
        for path, size in wanted.items():
            sizes[path.split(b"/")[0]] += size
        largest = ", ".join(f"{os.fsdecode(name)} ({size // 1024**2} MiB)" for name, size in sizes.most_common(3))
        raise AshepError(
            f"{total // 1024**2} MiB of files that git ignores are in it, more than the {MOST_IGNORED // 1024**2} MiB "
            f"that are saved: {clean(largest)}. Move what you want to keep, then say --drop-ignored. Nothing was "
            "removed."
        )
    return made


async def _in_the_way(repository: Repository, ignored: Collection[bytes], onto: Collection[str]) -> set[bytes]:
    """Give the ignored files that a checkout would write over, or take away to make a folder of their name."""
    if not ignored:
        return set()
    files = set[bytes]()
    for commit in onto:
        names = os.fsencode(await repository.shared("ls-tree", "-r", "-z", "--name-only", commit))
        files.update(names.rstrip(b"\0").split(b"\0"))
    folders = {parent for path in files for parent in parents(path)}
    return {path for path in ignored if path in files | folders or any(above in files for above in parents(path))}


async def _save_files(repository: TreeRepository, content: Content, spared: Collection[bytes], kept: _Kept) -> None:
    """Save the folder as it is; where it is as the index says, there is nothing to save."""
    tracked = {entry.path: entry for entry in content.entries if not entry.stage}
    fresh = [path for path in content.files if path in content.changed or (path not in tracked and path not in spared)]
    above = {parent for path in content.files for parent in parents(path)}
    gone = {
        path for path, one in tracked.items() if path not in content.files and (one.mode != GITLINK or path in above)
    }
    if not fresh and not (gone and content.files):
        return
    lines = {path: (entry.mode, entry.sha) for path, entry in tracked.items() if path not in gone}
    lines |= await _store(repository, content.files, fresh)
    tree = await _tree(repository, ((mode, sha, _storable(path, mode)) for path, (mode, sha) in lines.items()))
    if tree != content.head_tree:
        kept["files"] = await _commit(repository, tree, content.head, "The files of a work tree")


def _mode(about: Stat) -> str:
    if stat.S_ISLNK(about.mode):
        return LINK
    return "100755" if about.mode & stat.S_IXUSR else "100644"


def _storable(path: bytes, mode: str) -> bytes:
    """Give a path that git stores: no part of it may be called `.git`. No two paths become the same."""
    refused = (b".git", b"%2egit", b"%2egitmodules", *((b".gitmodules",) if mode == LINK else ()))
    return b"/".join(
        part.replace(b"%", b"%25").replace(b".", b"%2E") if part.lower() in refused else part
        for part in path.split(b"/")
    )


async def _store(
    repository: TreeRepository, files: Mapping[bytes, Stat], paths: list[bytes]
) -> dict[bytes, tuple[str, str]]:
    """Store the bytes of files, and of links the names that they lead to, as they are: no filter, no line end.

    Returns the mode and the object of each.
    """

    def links(folder: Path) -> dict[bytes, bytes]:
        found = dict[bytes, bytes]()
        for number, path in enumerate(path for path in paths if stat.S_ISLNK(files[path].mode)):
            file = folder / str(number)
            file.write_bytes(os.readlink(os.path.join(os.fsencode(repository.place.path), path)))
            found[path] = os.fsencode(file)
        return found

    async with _folder(repository.place) as folder:
        try:
            instead = await anyio.to_thread.run_sync(links, folder)
        except OSError as error:
            raise AshepError(f"a link in {repository.place.path} cannot be read: {error}") from error
        listed = b"".join(quoted(instead.get(path, path)) + b"\n" for path in paths)
        many = len(paths) > _SYNC
        arguments = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        printed = await repository.inside(*(UNFLUSHED if many else ()), *arguments, stdin=listed)
        if many:
            await anyio.to_thread.run_sync(os.sync)
    return {path: (_mode(files[path]), sha) for path, sha in zip(paths, printed.decode().split(), strict=True)}


@asynccontextmanager
async def _folder(place: WorkspacePaths) -> AsyncGenerator[Path]:
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="ashep-", dir=place.admin)))
    try:
        yield folder
    finally:
        await anyio.to_thread.run_sync(delete, folder)


# --- the index ---


async def _save_index(repository: TreeRepository, content: Content, kept: _Kept) -> None:
    """Save what is staged where it differs from HEAD, and the sides of conflicts."""
    if not content.staged:
        return
    for stage in sorted({entry.stage for entry in content.entries}):
        lines = [(entry.mode, entry.sha, entry.path) for entry in content.entries if entry.stage == stage]
        tree = await _tree(repository, lines)
        if tree != content.head_tree:
            name = f"conflict-{stage}" if stage else "index"
            what = f"The side {stage} of conflicts" if stage else "What was staged"
            kept[name] = await _commit(repository, tree, content.head, what)


async def _tree(repository: TreeRepository, lines: Iterable[tuple[str, str, bytes]]) -> str:
    async with _folder(repository.place) as folder:
        env = {"GIT_INDEX_FILE": str(folder / "index")}
        listed = b"".join(f"{mode} {sha}\t".encode() + path + b"\0" for mode, sha, path in lines)
        await repository.inside("hash-object", "-w", "--stdin", stdin=b"")  # `add -N` names it, and does not make it
        await repository.inside("update-index", "-z", "--index-info", stdin=listed, env=env)
        return (await repository.inside("write-tree", env=env)).decode().strip()


async def _commit(repository: TreeRepository, tree: str, parent: str | None, what: str) -> str:
    parents = ("-p", parent) if parent else ()
    words = ("commit-tree", tree, *parents, "-m", f"{what}, saved by Agent Shepherd")
    return (await repository.inside(*words, env=_AUTHOR)).decode().strip()


# --- commits that nothing else reaches ---


async def _save_commits(
    repository: Repository, admin: Path, branch: str, dropped: Collection[str], kept: _Kept, reached: Collection[str]
) -> None:
    """Find every commit that a tree's git folder, the branch's past, and the stash name and no other ref reaches."""
    common = (await repository.folders()).common
    named = await anyio.to_thread.run_sync(_list_ids, admin, common, branch)
    stashed = await anyio.to_thread.run_sync(_stash, admin, common, branch)
    before = [*named, *stashed, *(await repository.refs(*dropped)).values()] if dropped else [*named, *stashed]
    listed = "".join(f"{sha}\n" for sha in dict.fromkeys(before))
    if not listed:
        return
    kinds = await repository.shared("cat-file", "--batch-check", "--buffer", stdin=listed.encode())
    commits = [line.split()[0] for line in kinds.splitlines() if line.split()[1:2] == ["commit"]]
    if not commits:
        return
    kept_by = [f"--exclude={ref}" for ref in (*dropped, "refs/stash")]
    words = ("rev-list", "--parents", "--stdin", "--not", *reached, *kept_by, "--glob=refs/*")
    lost = await repository.shared(*words, stdin="".join(f"{sha}\n" for sha in commits).encode())
    rows = [line.split() for line in lost.splitlines()]
    inner = {parent for row in rows for parent in row[1:]}
    for number, tip in enumerate((row[0] for row in rows if row[0] not in inner), 1):
        kept[f"{'stash' if tip in stashed else 'commit'}-{number}"] = tip


def _list_ids(admin: Path, common: Path, branch: str) -> list[str]:
    """List the ids that stand in any file of the tree's git folder (HEAD and its past, a merge, a rebase, …)."""
    found = dict[bytes, None]()
    for path, folders, files in walk(str(admin)):
        folders[:] = [name for name in folders if not (path == str(admin) and name in _NO_IDS)]
        for name in files:
            if not name.startswith(("index", "sharedindex")):
                found.update(dict.fromkeys(_OBJECT.findall(_read(Path(path, name)))))
    found.update(dict.fromkeys(_OBJECT.findall(_read(common / "logs" / "refs" / "heads" / branch))))
    return [one.decode() for one in found]


def _stash(admin: Path, common: Path, branch: str) -> set[str]:
    """List the stash entries, which all work trees share, that do not say that they are of a branch of others'."""
    head = _read(admin / "logs" / "HEAD")
    ours = {branch.encode(), b"(no branch)"} | {name for pair in _MOVED.findall(head) for name in pair}
    found = set[str]()
    for line in _read(common / "logs" / "refs" / "stash").splitlines():
        about, _, said = line.partition(b"\t")
        of = _STASHED.match(said)
        if of is None or of[1] in ours:
            found.add(about.split(b" ")[1].decode())
    return found


def _read(file: Path) -> bytes:
    with suppress(OSError):
        about = file.lstat()
        if stat.S_ISREG(about.st_mode):  # whoever works there can make one larger than the memory
            with file.open("rb") as opened:
                opened.seek(max(about.st_size - MOST_READ, 0))
                return opened.read(MOST_READ)
    return b""


async def at_most(repository: Repository, objects: dict[str, str], rest: str) -> tuple[dict[str, str], int]:
    """Give as many names of commits as may be made at once, and how many more there were: `rest` names a commit whose
    parents they are. What is no commit was not saved by us, and is in none.
    """
    if len(objects) <= MOST_REFS:
        return objects, 0
    names, git = list(objects), repository.git
    listed = "".join(f"{objects[name]}\n" for name in names).encode()
    kinds = (await git.bare("cat-file", "--batch-check=%(objecttype)", stdin=listed)).stdout.decode().split()
    names = [name for name, kind in zip(names, kinds, strict=True) if kind == "commit"]
    more = names[MOST_REFS - 1 :]
    parents = list(dict.fromkeys(objects[name] for name in more))
    said = "\n".join(("More than is named at once, saved by Agent Shepherd", "", *(f"{objects[n]} {n}" for n in more)))
    tree = await git.word("hash-object", "-t", "tree", "-w", "/dev/null")
    commit = await write_commit(git, tree, parents, said, author="", at=0)
    return {name: objects[name] for name in names[: MOST_REFS - 1]} | {rest: commit}, len(more)


async def _name(repository: Repository, branch: str, kept: _Kept) -> tuple[str, ...]:
    if not kept:
        return ()
    prefix = f"{SAVED}{branch}/"
    there = [ref.removeprefix(prefix).split("/")[0] for ref in await repository.refs(prefix)]
    number = max((int(word) for word in there if word.isdecimal()), default=0) + 1
    objects, _ = await at_most(repository, kept, REST)
    refs = {f"{prefix}{number}/{name}": sha for name, sha in objects.items()}
    await repository.keep(*refs.values())
    await repository.update_refs(f"create {ref} {sha}" for ref, sha in refs.items())
    return tuple(refs)
