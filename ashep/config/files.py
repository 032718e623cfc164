"""Files under `.agent-shepherd/` -> validated models, or every problem with its file, line and key."""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ashep.config import nodes
from ashep.config.consistency import check
from ashep.config.explain import describe, problems
from ashep.config.findings import ConfigErrors, FileName, Finding, Places, Source
from ashep.config.nodes import Node, Problem, Unreadable
from ashep.core.model import Agents, Policies, Settings

_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that the user's files say, checked."""

    settings: Settings
    policies: Policies
    agents: Agents
    sources: Mapping[FileName, Source]
    """The text and hash of each file, as they enter the journal."""
    warnings: tuple[Finding, ...] = ()


def load(folder: Path) -> Configuration:
    """Read `config.yaml` (may be missing: the defaults), `policies.yaml` and `agents.yaml` in `.agent-shepherd`.

    Raises `ConfigErrors` with every problem of all three files; warnings are kept in the result.
    """
    files = _Files()
    settings = files.add(Settings, "config", folder / "config.yaml")
    policies = files.add(Policies, "policies", folder / "policies.yaml")
    agents = files.add(Agents, "agents", folder / "agents.yaml")
    findings = files.findings + check(policies, agents, settings, Places(files.sources))
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors or settings is None or policies is None or agents is None:
        raise ConfigErrors(errors)
    return Configuration(settings, policies, agents, files.sources, tuple(findings))


def check_files(folder: Path, policies_file: Path | None = None) -> list[Finding]:
    """Say everything that is wrong in `.agent-shepherd`, errors and warnings; nothing that a file says is raised.

    `policies_file` is read in the place of `policies.yaml`, so that a draft can be checked against the registry.
    """
    return examine(folder, policies_file).findings


@dataclass(frozen=True, slots=True)
class Examined:
    """What could be read of the user's files, and everything that is wrong with them."""

    settings: Settings | None
    policies: Policies | None
    agents: Agents | None
    places: Places
    findings: list[Finding]


def examine(folder: Path, policies_file: Path | None = None) -> Examined:
    """Read `.agent-shepherd` for somebody who wants to look at it although it has mistakes; nothing is raised."""
    files = _Files()
    settings = files.add(Settings, "config", folder / "config.yaml")
    policies = files.add(Policies, "policies", policies_file or folder / "policies.yaml")
    agents = files.add(Agents, "agents", folder / "agents.yaml")
    places = Places(files.sources)
    findings = files.findings + check(policies, agents, settings, places)
    return Examined(settings, policies, agents, places, findings)


def read(model: type[_M], text: str, file: Path) -> _M:
    """Validate the text of one file (`Settings`, `Policies` or `Agents`) by itself; raises `ConfigErrors`."""
    parsed = _parse(model, text, file)
    if parsed.model is None:
        raise ConfigErrors(parsed.findings)
    return parsed.model


@dataclass
class _Files:
    """What was read so far."""

    sources: dict[FileName, Source] = field(default_factory=dict[FileName, Source])
    findings: list[Finding] = field(default_factory=list[Finding])

    def add(self, model: type[_M], name: FileName, file: Path) -> _M | None:
        """Read a file and keep what was found; None where it gives no model."""
        try:
            raw = _bytes(file)
            if raw is None and name == "config":
                self.sources[name] = _source(file, "", Node({}, 1, ""))
                return model()
            text = nodes.decode(_present(raw))
        except Unreadable as error:
            self.findings.append(_finding(error.problem, file))
            return None
        parsed = _parse(model, text, file)
        self.findings += parsed.findings
        if parsed.source is not None:
            self.sources[name] = parsed.source
        return parsed.model


@dataclass(frozen=True, slots=True)
class _Parsed(Generic[_M]):
    model: _M | None
    source: Source | None
    findings: list[Finding]


def _parse(model: type[_M], text: str, file: Path) -> _Parsed[_M]:
    """Text -> model; a model comes only with no findings."""
    try:
        root, found = nodes.read(text)
    except Unreadable as error:
        return _Parsed(None, None, [_finding(error.problem, file)])
    if root.value is None:
        empty = Problem("empty", "the file is empty; `ashep init` writes a complete one", 1, None)
        return _Parsed(None, None, [_finding(empty, file)])
    root = _expand(root) if model is Policies else root
    found = found + _version(root)
    validated: _M | None = None
    try:
        # JSON's strict mode takes lists for tuples and words for durations, and converts nothing else
        validated = model.model_validate_json(json.dumps(root.plain()))
    except ValidationError as error:
        known = {(problem.line, problem.key) for problem in found}
        found += [more for more in problems(error, model, root) if (more.line, more.key) not in known]
    findings = [_finding(problem, file) for problem in sorted(found, key=_order)]
    return _Parsed(None if findings else validated, _source(file, text, root), findings)


def _bytes(file: Path) -> bytes | None:
    """Read a file no further than is needed to see that it is too large; None where there is none."""
    try:
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise Unreadable(Problem("unreadable", "not a file", None, None))
            return stream.read(nodes.MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(Problem("unreadable", f"cannot be read: {error.strerror}", None, None)) from error


def _present(raw: bytes | None) -> bytes:
    if raw is None:
        raise Unreadable(Problem("missing-file", "there is no such file; `ashep init` writes one", None, None))
    return raw


def _source(file: Path, text: str, root: Node) -> Source:
    return Source(file, text, hashlib.sha256(text.encode()).hexdigest(), root)


def _finding(problem: Problem, file: Path) -> Finding:
    return Finding(problem.code, str(file), problem.line, problem.key, problem.message)


def _order(problem: Problem) -> tuple[bool, int]:
    """By line; but a key that is missing comes last, because it may be one that is misspelt."""
    return problem.code == "missing-key", problem.line or 0


def _version(root: Node) -> list[Problem]:
    """Refuse `version: true` and `version: 1.0`, which count as equal to 1 elsewhere, and languages of the future."""
    version = root.child("version")
    if version is None or (type(version.value) is int and version.value == 1):
        return []
    message = f"expected 1, the only version that this ashep reads, found {describe(version)}"
    return [Problem("wrong-value", message, version.line, version.key)]


def _expand(root: Node) -> Node:
    """Write the short forms out: a policy that is a list of phases, and a phase that is a name."""
    policies = root.child("policies")
    if not isinstance(root.value, dict) or policies is None or not isinstance(policies.value, dict):
        return root
    full = {name: _policy(policy) for name, policy in policies.value.items()}
    return replace(root, value=root.value | {"policies": replace(policies, value=full)})


def _policy(policy: Node) -> Node:
    entries: dict[str, Node] | None = policy.value if isinstance(policy.value, dict) else None
    phases = policy if isinstance(policy.value, list) else policy.child("phases")
    if phases is None or not isinstance(phases.value, list):
        return policy
    items = [replace(item, value={"name": item}) if isinstance(item.value, str) else item for item in phases.value]
    return replace(policy, value=(entries or {}) | {"phases": replace(phases, value=items)})
