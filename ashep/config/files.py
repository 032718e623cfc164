"""Files under `.agent-shepherd/` -> validated models, or every problem with its file, line and key."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ashep.config import policy_checks, policy_files, yaml_tree
from ashep.config.consistency import check
from ashep.config.error_messages import describe, problems
from ashep.config.findings import ConfigErrors, FileName, Finding, FindingFactory, SourceFile, errors_of, read_bytes
from ashep.config.page_colours import read_colours
from ashep.config.yaml_tree import Node, YamlProblem, YamlUnreadable
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.runner_kinds import DECLARED_KINDS, rules_of
from ashep.core.policy.settings import OtherRunner, Settings
from ashep.errors import UsageError

_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that the user's files say, checked."""

    settings: Settings
    policies: Policies
    agents: Agents
    sources: Mapping[FileName, SourceFile]
    """The text and hash of each file, as they enter the journal."""
    warnings: tuple[Finding, ...] = ()


def load(folder: Path) -> Configuration:
    """Read `config.yaml` (may be missing: the defaults), `policies.yaml`, `policies/` and `agents.yaml`.

    They lie in `.agent-shepherd`. Raises `ConfigErrors` with every problem of all files; warnings are kept.
    """
    found = examine(folder)
    errors = errors_of(found.findings)
    if errors or found.settings is None or found.policies is None or found.agents is None:
        raise ConfigErrors(errors)
    return Configuration(found.settings, found.policies, found.agents, found.places.sources, tuple(found.findings))


@dataclass(frozen=True, slots=True)
class Examined:
    """What could be read of the user's files, and everything that is wrong with them."""

    settings: Settings | None
    policies: Policies | None
    agents: Agents | None
    places: FindingFactory
    findings: list[Finding]


def examine(folder: Path, policies_file: Path | None = None) -> Examined:
    """Read `.agent-shepherd` for somebody who wants to look at it although it has mistakes; nothing is raised.

    `policies_file` is read in the place of `policies.yaml` and `policies/`, so that a draft can be checked against the
    registry.
    """
    files = _Files()
    settings = files.add(Settings, "config", folder / "config.yaml")
    settings = None if settings is None else settled(settings, folder.parent)
    project = (folder / "policies.yaml", folder / policy_files.FOLDER)
    policies = files.add_draft(policies_file, *project) if policies_file else files.add_policies(*project)
    agents = files.add(Agents, "agents", folder / "agents.yaml")
    places = FindingFactory(files.sources)
    findings = files.findings + check(policies, agents, settings, places)
    if settings is not None and settings.page.colours:
        findings += read_colours(folder)[1]
    return Examined(settings, policies, agents, places, findings)


def load_other(
    folder: Path, policies_file: Path | None, agents_file: Path | None
) -> tuple[Policies | None, Agents | None]:
    """Read policies, or agents, or both, from files that stand anywhere: to compare with what is on record.

    Policies may extend those of `folder`. Raises `ConfigErrors` with every problem of both; whether agents fit the
    phases is checked where both are given.
    """
    files = _Files()
    project = (folder / "policies.yaml", folder / policy_files.FOLDER)
    policies = files.add_draft(policies_file, *project) if policies_file else None
    agents = files.add(Agents, "agents", agents_file) if agents_file else None
    findings = files.findings + check(policies, agents, None, FindingFactory(files.sources))
    if errors := errors_of(findings):
        raise ConfigErrors(errors)
    return policies, agents


def read(model: type[_M], text: str, file: Path) -> _M:
    """Validate the text of one file (`Settings`, `Policies` or `Agents`) by itself; raises `ConfigErrors`."""
    try:
        validated, _, findings = _parse(model, _tree(text, file))
    except YamlUnreadable as error:
        raise ConfigErrors([_finding(error.problem, file)]) from error
    if validated is None:
        raise ConfigErrors(findings)
    return validated


def settings_in(folder: Path) -> Settings:
    """Read config.yaml alone: what needs no more should not stumble over the other files."""
    file = folder / "config.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    return settled(read(Settings, text, file) if text.strip() else Settings(), folder.parent)


def policies_in(folder: Path) -> Policies:
    """Read policies.yaml and the files next to it alone, by themselves. Raises `ConfigErrors`."""
    files = _Files()
    policies = files.add_policies(folder / "policies.yaml", folder / policy_files.FOLDER)
    if policies is None:
        raise ConfigErrors(files.findings)
    return policies


@dataclass
class _Files:
    sources: dict[FileName, SourceFile] = field(default_factory=dict[FileName, SourceFile])
    findings: list[Finding] = field(default_factory=list[Finding])

    def add(self, model: type[_M], name: FileName, file: Path) -> _M | None:
        tree = self._read(file, _Tree(file, "", Node({}, 1, ""), []) if name == "config" else None)
        return None if tree is None else self._keep_parsed(name, _parse(model, tree))

    def add_policies(self, file: Path, folder: Path) -> Policies | None:
        """Read policies.yaml, which may be missing where the folder holds some, and the files in the folder."""
        before = len(self.findings)
        others = [tree for other in self._in_folder(folder) if (tree := self._read(other)) is not None]
        tree = self._read(file, _nothing(file) if others else None)
        policies = None if tree is None else self._keep_parsed("policies", _parse(Policies, tree, others))
        return policies if len(self.findings) == before else None

    def add_draft(self, draft: Path, file: Path, folder: Path) -> Policies | None:
        """Read a draft, which may be one policy, and may extend those of the project."""
        tree = self._read(draft)
        if tree is None:
            return None
        project = _Files()
        project.add_policies(file, folder)
        known = project.sources.get("policies")
        beside = known.root.locate(["policies"]).entries if known else policy_files.NONE
        if policy_files.is_single(tree.root):
            return self._keep_parsed("policies", _parse(Policies, _nothing(draft), [tree], beside))
        return self._keep_parsed("policies", _parse(Policies, tree, beside=beside))

    def _read(self, file: Path, missing: "_Tree | None" = None) -> "_Tree | None":
        try:
            raw = read_bytes(file)
            if raw is None and missing is not None:
                return missing
            if raw is None:
                raise YamlUnreadable(YamlProblem("missing-file", "there is no such file; `ashep init` writes one"))
            return _tree(yaml_tree.decode(raw), file)
        except YamlUnreadable as error:
            self.findings.append(_finding(error.problem, file))
            return None

    def _in_folder(self, folder: Path) -> list[Path]:
        try:
            names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            problem = YamlProblem("unreadable", f"cannot be read: {error.strerror}")
            self.findings.append(_finding(problem, folder))
            return []
        for name in names:
            if name.endswith(".yml"):
                problem = YamlProblem("ending", f"only files that end in {policy_files.ENDING} are read; rename it")
                self.findings.append(_finding(problem, folder / name))
        return [folder / name for name in names if name.endswith(policy_files.ENDING)]

    def _keep_parsed(self, name: FileName, parsed: tuple[_M | None, SourceFile, list[Finding]]) -> _M | None:
        model, self.sources[name], findings = parsed
        self.findings += findings
        return model


@dataclass(frozen=True, slots=True)
class _Tree:
    """A file that could be read, and what it may not say."""

    file: Path
    text: str
    root: Node
    problems: list[YamlProblem]


def _tree(text: str, file: Path) -> _Tree:
    root, problems = yaml_tree.read(text, str(file))
    if root.value is None:
        raise YamlUnreadable(YamlProblem("empty", "the file is empty; `ashep init` writes a complete one", 1))
    return _Tree(file, text, root, problems + _version(root))


def _nothing(file: Path) -> _Tree:
    """A policies.yaml that needs to say nothing."""
    return _Tree(file, "", Node({"version": Node(1, 1, "version")}, 1, ""), [])


def _parse(
    model: type[_M], tree: _Tree, others: Sequence[_Tree] = (), beside: policy_files.Policies = policy_files.NONE
) -> tuple[_M | None, SourceFile, list[Finding]]:
    """Tree -> model, with the policies of other files; a model comes only with no findings."""
    root, found = tree.root, [problem for one in (tree, *others) for problem in one.problems]
    if model is Policies:
        root, more = policy_files.in_one(root, [other.root for other in others], beside)
        found += more + policy_checks.read_checks(root)
    validated: _M | None = None
    try:
        # JSON's strict mode takes lists for tuples and words for durations, and converts nothing else
        validated = model.model_validate_json(json.dumps(root.plain()))
    except ValidationError as error:
        known = {(problem.file, problem.line, problem.key) for problem in found}
        found += [
            problem
            for problem in problems(error, model, root)
            if (problem.file, problem.line, problem.key) not in known
        ]
    files: dict[str | None, int] = {str(other.file): number for number, other in enumerate((tree, *others))}
    # file by file, by line; but a key that is missing comes last, because it may be one that is misspelt
    found.sort(key=lambda problem: (files.get(problem.file, 0), problem.code == "missing-key", problem.line or 0))
    findings = [_finding(problem, tree.file) for problem in found]
    text = "".join([tree.text, *(f"\n# --- {other.file.name} ---\n{other.text}" for other in others)])
    source = SourceFile(tree.file, text, hashlib.sha256(text.encode()).hexdigest(), root)
    return None if findings else validated, source, findings


def _finding(problem: YamlProblem, file: Path) -> Finding:
    return Finding(problem.code, problem.file or str(file), problem.line, problem.key, problem.message)


def _version(root: Node) -> list[YamlProblem]:
    """Refuse `version: true` and `version: 1.0`, which count as equal to 1 elsewhere, and languages of the future."""
    version = root.child("version")
    if version is None or (type(version.value) is int and version.value == 1):
        return []
    message = f"expected 1, the only version that this ashep reads, found {describe(version)}"
    return [version.problem("wrong-value", message)]


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def settled(settings: Settings, project: Path) -> Settings:
    """Put what is in force in the place of what was not said.

    Agents are in a sandbox wherever they can be: where issues may have places, and no server or agent is of a kind that
    cannot be kept apart. The models' own defaults stay `shared` and `none`: a journal's settings without the keys are
    from a time when nothing else was meant, and so is a `lock_work_tree` that somebody set. Agents bring a runner that
    needs no settings.
    """
    settings = _with_runners(settings, project / ".agent-shepherd" / "agents.yaml")
    worker, agents, opencode = settings.worker, settings.agents, settings.runners.opencode
    open_ = {"workspace", "lock_work_tree"}.isdisjoint(worker.model_fields_set) and has_commit(project)
    able = opencode.ours and opencode.isolation != "shared" and not settings.runners.unsandboxed
    able = able and (open_ or worker.workspace == "place")
    if able and "sandbox" not in agents.model_fields_set:
        agents = agents.model_copy(update={"sandbox": "auto"})
    if open_:
        worker = worker.model_copy(update={"workspace": "worktree" if agents.sandbox == "none" else "place"})
    return settings.model_copy(update={"worker": worker, "agents": agents})


def _with_runners(settings: Settings, agents: Path) -> Settings:
    """Add the runners that agents are of by the name of their kind alone: `type: claude` needs no entry."""
    names = [name for name in DECLARED_KINDS if rules_of(name).command and name not in settings.runners.extra]
    with suppress(OSError, UnicodeDecodeError, YamlUnreadable):
        text = agents.read_text(encoding="utf-8")
        if any(name in text for name in names):
            entries = yaml_tree.read(text)[0].locate(["agents"]).items
            types = [entry.locate(["runner", "type"]).value for entry in entries]
            brought = {name: OtherRunner() for name in names if name in types}
            return settings.model_copy(update={"runners": settings.runners.model_copy(update=brought)})
    return settings


def has_commit(project: Path) -> bool:
    """Say whether a folder is in a git work tree whose HEAD is a commit; git itself is not asked.

    A few small files are read (gitrepository-layout(5)), so that every command can afford it. Of a repository whose
    refs are in git's binary table only its objects are looked at.
    """
    with suppress(OSError, ValueError, StopIteration):  # one of them is not there, or is not what it should be
        common, head = _read_head(project)
        ref = head.removeprefix("ref: ")
        if ref == head:
            return _COMMIT.fullmatch(head) is not None
        if (common / "reftable").is_dir():
            names = [*os.listdir(common / "objects"), *os.listdir(common / "objects" / "pack")]
            return any(len(name) == 2 or name.endswith(".pack") for name in names)
        if (common / ref).is_file():
            return _COMMIT.fullmatch((common / ref).read_text().strip()) is not None
        return any(line.endswith(f" {ref}") for line in (common / "packed-refs").read_text().splitlines())
    return False


def find_checked_out_branch(project: Path) -> str | None:
    """Give the branch that the user's work tree has checked out, as `has_commit` reads it; None: none, or unknown."""
    with suppress(OSError, ValueError, StopIteration):
        ref, mark, branch = _read_head(project)[1].partition("refs/heads/")
        return branch if ref == "ref: " and mark and branch != ".invalid" else None
    return None


def _read_head(project: Path) -> tuple[Path, str]:
    """Give the folder in which git keeps refs, and what HEAD says; raises where a file is not what it should be."""
    top = project.resolve()
    there = next(folder / ".git" for folder in (top, *top.parents) if (folder / ".git").exists())
    folder = there if there.is_dir() else _read_pointer(there, "gitdir: ")
    common = _read_pointer(folder / "commondir") if (folder / "commondir").exists() else folder
    return common, (folder / "HEAD").read_text().strip()


def _read_pointer(file: Path, before: str = "") -> Path:
    """Give the folder that a file of git's names."""
    return file.parent / file.read_text().strip().removeprefix(before)
