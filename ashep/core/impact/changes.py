"""What a change touches: the files of an issue, and flags that policies route by and people look at.

All of it follows from a diff and the settings. `ashep.ports.workspaces` is the port that reads diffs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, TypeVar

from ashep.core.facts.delivery import FileMap
from ashep.core.impact import path_classes as impact_paths
from ashep.core.impact import source_signals
from ashep.core.impact.config_references import NOTHING, ReferencedFiles
from ashep.core.impact.secrets import Line, find_secrets
from ashep.core.policy.flags import ALWAYS_ASK, FLAGS, FlagName
from ashep.core.policy.globs import Globs
from ashep.core.policy.instructions import Instructions
from ashep.core.policy.settings import ImpactSettings

MOST_PATHS = 100
"""Paths of each kind that a file map names."""

MOST_EVIDENCE = 20
"""Places that a flag names."""

LONGEST_PATH = 300
"""Characters of a path that is shown."""

Counted = TypeVar("Counted")

# --- what was read ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that a diff changes."""

    path: str
    kind: Literal["created", "modified", "deleted", "renamed"]
    former: str | None = None
    """Where it was, if it was renamed."""
    added: int = 0
    """Lines."""
    removed: int = 0
    added_lines: tuple[Line, ...] = ()
    """As they are numbered now."""
    removed_lines: tuple[Line, ...] = ()
    """As they were numbered before."""
    unread: Literal["binary", "large", "submodule"] | None = None
    """Why its lines are neither here nor counted."""
    link: bool = False
    """It is a symbolic link now: its line is where it leads."""
    dependencies_alone: bool = False
    """It is a manifest in which nothing but plain dependencies differs."""


@dataclass(frozen=True, slots=True)
class Diff:
    """What lies between two commits."""

    base: str
    head: str
    files: tuple[ChangedFile, ...] = ()
    """By path."""


# --- what it comes to ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlagEvidence:
    """A place for which a flag is raised."""

    path: str
    what: str = ""
    """What is there, in a few words; of a secret its kind alone."""
    line: int | None = None
    """Its number in the file as it is now; where something is gone, as it was before."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that a change touches, and how that is known."""

    name: FlagName
    why: str
    evidence: tuple[FlagEvidence, ...] = ()
    more: int = 0
    """How many places are not named, because there are so many."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change touches; bounded, so that a fact can hold it."""

    base: str
    head: str
    files: FileMap = field(default_factory=FileMap)
    flags: tuple[Flag, ...] = ()
    """The gravest first."""
    added: int = 0
    """Lines, those of lock files too."""
    removed: int = 0

    @property
    def raised(self) -> tuple[FlagName, ...]:
        """The names of the flags."""
        return tuple(flag.name for flag in self.flags)


def impact_of(diff: Diff, settings: ImpactSettings | None = None, named: ReferencedFiles = NOTHING) -> Impact:
    """Say what a diff touches; `named`: by the configuration. It reads every added line: a large one takes seconds."""
    ways = _Ways(settings or ImpactSettings())
    submodules = (FlagEvidence(_shorten(file.path), "submodule") for file in diff.files if file.unread == "submodule")
    found: Mapping[FlagName, Iterable[FlagEvidence]] = {
        "rules": chain(ways.touched("rules", diff), _find_named(named, diff), _deciding(ways, diff), _links(diff)),
        "agent_instructions": ways.touched("agent_instructions", diff),
        "ci": ways.touched("ci", diff),
        "secrets": _secrets(ways, diff),
        "deleted_tests": _deleted_tests(ways, diff),
        "migrations": ways.touched("migrations", diff),
        "dependencies": chain(ways.touched("dependencies", diff), submodules),
        "public_api": chain(ways.touched("public_api", diff), _declarations(ways, diff)),
        "size": _size(ways, diff),
    }
    flags = list[Flag]()
    for name in FLAGS:
        if evidence := tuple(found[name]):
            single, plural = _WHY[name]
            why = single if len(evidence) == 1 else plural.format(len(evidence))
            flags.append(Flag(name, why, evidence[:MOST_EVIDENCE], max(len(evidence) - MOST_EVIDENCE, 0)))
    added, removed = sum(file.added for file in diff.files), sum(file.removed for file in diff.files)
    return Impact(diff.base, diff.head, file_map(diff), tuple(flags), added, removed)


def file_map(diff: Diff) -> FileMap:
    """Say which files a diff touches."""
    created = sorted(_shorten(file.path) for file in diff.files if file.kind in ("created", "renamed"))
    modified = sorted(_shorten(file.path) for file in diff.files if file.kind == "modified")
    former = (file.former for file in diff.files if file.kind == "renamed" and file.former)
    deleted = sorted(map(_shorten, chain((file.path for file in diff.files if file.kind == "deleted"), former)))
    left_out = sum(max(len(paths) - MOST_PATHS, 0) for paths in (created, modified, deleted))
    return FileMap(*(tuple(paths[:MOST_PATHS]) for paths in (created, modified, deleted)), more=left_out)


# --- how it is found ----------------------------------------------------------------------------------------------

_WHY: Mapping[FlagName, tuple[str, str]] = {
    "rules": ("a file that Agent Shepherd goes by is changed, or a link leaves the tree",
        "{} files that Agent Shepherd goes by are changed, or links leave the tree"),
    "agent_instructions": ("a file that instructs agents is changed", "{} files that instruct agents are changed"),
    "ci": ("a file of the continuous integration is changed", "{} files of the continuous integration are changed"),
    "secrets": ("something that looks like a secret was added", "{} things that look like secrets were added"),
    "deleted_tests": ("a test is gone or left out", "in {} places tests are gone or left out"),
    "migrations": ("a file that changes a database is changed", "{} files that change a database are changed"),
    "dependencies": ("a file that names dependencies is changed", "{} files that name dependencies are changed"),
    "public_api": ("what others may use is changed or gone", "in {} places what others may use is changed or gone"),
    "size": ("the change is large", "the change is large"),
}  # fmt: skip
"""What one piece of evidence comes to, and what several do."""


class _Ways:
    """The globs that count, each set made once for a diff."""

    def __init__(self, settings: ImpactSettings) -> None:
        self.settings = settings
        self._sets: Mapping[str, Globs] = {
            "rules": Globs(impact_paths.RULES),
            "deciding": Globs(impact_paths.DECIDING),
            "ci": Globs((*impact_paths.CI, *settings.ci)),
            "migrations": Globs((*impact_paths.MIGRATIONS, *settings.migrations)),
            "dependencies": Globs((*impact_paths.DEPENDENCIES, *settings.dependencies)),
            "public_api": Globs((*impact_paths.PUBLIC_API, *settings.public_api)),
        }
        self._instructions = Instructions(settings.agent_instructions)
        self._tests = Globs((*impact_paths.TESTS, *settings.tests), exact=True)  # Latest.java is no test
        self._ignored = Globs(settings.ignore)
        self.fixtures = Globs(settings.fixtures)
        self.lock_files = Globs(impact_paths.LOCK_FILES)

    def decides(self, path: str, *, linked: bool) -> bool:
        """Whether the file decides how a check's program runs, or replaces a module of Python or a test runner."""
        return self._sets["deciding"].has(path) or impact_paths.shadows(path, linked=linked)

    def touched(self, name: FlagName, diff: Diff) -> Iterator[FlagEvidence]:
        """Find the files of a kind, by their path or by their former one."""
        covers = self._instructions.covers if name == "agent_instructions" else self._sets[name].has
        for file in diff.files:
            if name not in ALWAYS_ASK and self.ignores(file):
                continue
            if any(covers(path) for path in (file.path, file.former) if path):
                former = f" from {_shorten(file.former)}" if file.former else ""
                yield FlagEvidence(_shorten(file.path), file.kind + former)

    def ignores(self, file: ChangedFile) -> bool:
        """Whether the user wants to hear nothing of it; a file is not ignored for the place that it was moved to."""
        return all(self._ignored.has(path) for path in (file.path, file.former) if path)

    def is_test(self, path: str) -> bool:
        return self._tests.has(path)

    def can_hold_tests(self, path: str) -> bool:
        """Whether its lines may be tests; in Rust they stand next to what they test."""
        return self.is_test(path) or source_signals.language_of(path) == "rust"


def _find_named(named: ReferencedFiles, diff: Diff) -> Iterator[FlagEvidence]:
    for file in diff.files:
        if any(named.has(path) for path in (file.path, file.former) if path):
            yield FlagEvidence(_shorten(file.path), f"{file.kind}; the configuration names it")


def _deciding(ways: _Ways, diff: Diff) -> Iterator[FlagEvidence]:
    """Find what decides how a check runs: an agent that changes it may make its own check pass."""
    for file in diff.files:
        if file.dependencies_alone or ways.ignores(file):
            continue
        linked = file.link or file.unread == "submodule"
        if any(ways.decides(path, linked=linked) for path in (file.path, file.former) if path):
            yield FlagEvidence(_shorten(file.path), f"{file.kind}; it decides how checks run")


def _links(diff: Diff) -> Iterator[FlagEvidence]:
    """Find links that lead out of the tree, or into what is git's: whoever follows them reads or writes there."""
    for file in diff.files:
        if not file.link or file.kind == "deleted":
            continue
        target = file.added_lines[0][1] if file.added_lines else ""
        there = target if target.startswith("/") else impact_paths.tidy(f"{file.path}/../{target}")
        if not target or there.startswith(("/", "../")) or there == ".." or ".git" in there.split("/"):
            what = f"a link that leaves the tree, to {_shorten(target) or 'what was not read'}"
            yield FlagEvidence(_shorten(file.path), what)


def _secrets(ways: _Ways, diff: Diff) -> Iterator[FlagEvidence]:
    for file in diff.files:
        if file.added_lines and not ways.fixtures.has(file.path) and not ways.ignores(file):
            for leak in find_secrets(file.path, file.added_lines):
                yield FlagEvidence(_shorten(file.path), leak.kind, leak.line)


_PRIVATE = re.compile(r"(?:^|/)(?:_(?!_)|(?:internal|private)/)")


def _declarations(ways: _Ways, diff: Diff) -> Iterator[FlagEvidence]:
    """Find what a program declared for others and does not any more, at least not in these words."""
    for file in diff.files:
        path = file.former or file.path
        language = source_signals.language_of(path)
        if _PRIVATE.search(path) or ways.is_test(path) or ways.ignores(file):
            continue
        kept = Counter(_words(text) for _, text in file.added_lines)
        for number, text in file.removed_lines:
            name = source_signals.offered_in(language, text)
            if name and not _take(kept, _words(text)):
                yield FlagEvidence(_shorten(path), f"{name[:80]} is changed or gone", number)


def _deleted_tests(ways: _Ways, diff: Diff) -> Iterator[FlagEvidence]:
    files = [file for file in diff.files if ways.can_hold_tests(file.former or file.path) and not ways.ignores(file)]
    holding = (file for file in diff.files if ways.can_hold_tests(file.path))
    now = Counter(name for file in holding for _, name in _tests(file, file.added_lines))
    gone = [[test for test in _tests(file, file.removed_lines) if not _take(now, test[1])] for file in files]
    fewer = [_marks(file, file.removed_lines) - _marks(file, file.added_lines) for file in files]
    fewer_in: Counter[str] = Counter()
    for file, count in zip(files, fewer, strict=True):
        fewer_in[source_signals.language_of(file.path)] += count
    for file, names, count in zip(files, gone, fewer, strict=True):
        if file.kind != "deleted":
            for number, (_, name) in names:
                yield FlagEvidence(_shorten(file.path), f"{name[:120]} is gone", number)
            if count > 0 and fewer_in[source_signals.language_of(file.path)] > 0:
                yield FlagEvidence(_shorten(file.path), "one test fewer" if count == 1 else f"{count} tests fewer")
        all_moved = not names and any(_tests(file, file.removed_lines))
        if file.kind == "deleted" and ways.is_test(file.path) and not all_moved:
            yield FlagEvidence(_shorten(file.path), "deleted")
        elif file.former and ways.is_test(file.former) and not ways.is_test(file.path):
            yield FlagEvidence(_shorten(file.former), f"moved to {_shorten(file.path)}, where no tests are looked for")
        yield from _left_out(file)


def _tests(file: ChangedFile, lines: Iterable[Line]) -> Iterator[tuple[int, tuple[str, str]]]:
    language = source_signals.language_of(file.path)
    for number, text in lines:
        if name := source_signals.named_test(language, text):
            yield number, (language, name)


def _marks(file: ChangedFile, lines: Iterable[Line]) -> int:
    language = source_signals.language_of(file.path)
    return sum(source_signals.marks_test(language, text) for _, text in lines)


def _left_out(file: ChangedFile) -> Iterator[FlagEvidence]:
    """Find tests that were there and are not run any more; a new file's are no loss."""
    language = source_signals.language_of(file.path)
    if file.kind not in ("modified", "renamed"):
        return
    before = sum(source_signals.skips(language, text) for _, text in file.removed_lines)
    now = [number for number, text in file.added_lines if source_signals.skips(language, text)]
    for number in now if len(now) > before else ():
        yield FlagEvidence(_shorten(file.path), "left out, or expected to fail", number)


def _size(ways: _Ways, diff: Diff) -> Iterator[FlagEvidence]:
    files = [file for file in diff.files if not ways.ignores(file)]
    lines = sum(file.added + file.removed for file in files if not ways.lock_files.has(file.path))
    if len(files) > ways.settings.max_files:
        yield FlagEvidence("", f"{len(files)} files, more than {ways.settings.max_files}")
    if lines > ways.settings.max_lines:
        yield FlagEvidence("", f"{lines} lines, more than {ways.settings.max_lines}")
    for file in files:
        if file.unread == "large":
            yield FlagEvidence(_shorten(file.path), "too large to be looked through")


def _take(counted: Counter[Counted], one: Counted) -> bool:
    if not counted[one]:
        return False
    counted[one] -= 1
    return True


def _words(text: str) -> str:
    return " ".join(text.split())


def _shorten(path: str) -> str:
    half = LONGEST_PATH // 2
    return path if len(path) <= LONGEST_PATH else f"{path[: half - 1]}…{path[-half:]}"
