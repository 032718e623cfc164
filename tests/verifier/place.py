"""A real repository and a verifier for it, in a folder of a test."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ashep.adapters.verifier import LocalVerifier
from ashep.core.facts.delivery import CheckResult, Verification
from ashep.core.policy.checks import Criteria
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.ports.verifier import CheckType, VerifyRequest
from ashep.redaction import Redaction

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Repository:
    """A git repository."""

    folder: Path

    def git(self, *arguments: str, at: Path | None = None) -> str:
        """Call git; `at`: a file that it reads as its standard input."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        names = {f"GIT_{who}_{what}": "pat@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        given = at.read_text() if at else None
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=env | names, capture_output=True, text=True, input=given
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files; None deletes one."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, files: Mapping[str, str | bytes | None] = {}) -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "Work")
        return self.git("rev-parse", "HEAD")

    def bytes(self) -> str:
        """A hash of every file, link and mode of the folder, `.git` included, but not of ashep's state."""
        found = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.is_relative_to(self.folder / ".agent-shepherd" / "state"):
                continue
            state = path.lstat()
            found.update(f"{path}\0{state.st_mode}\0{state.st_mtime_ns}\0".encode())
            if path.is_symlink():
                found.update(os.fsencode(os.readlink(path)))
            elif path.is_file():
                found.update(path.read_bytes())
        return found.hexdigest()


def repository(folder: Path) -> Repository:
    """A repository without a commit."""
    folder.mkdir(parents=True)
    made = Repository(folder)
    made.git("init", "-q", ".")
    return made


@dataclass
class World:
    """A repository and what verifies it."""

    repository: Repository
    scratch: Path
    settings: VerificationSettings = field(default_factory=lambda: VerificationSettings(sandbox="none"))
    redaction: Redaction = field(default_factory=Redaction)
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    hidden: list[Path] = field(default_factory=list)
    types: dict[str, CheckType] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    lender: Path | None = None
    verifier: LocalVerifier = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin as a new process does, with the settings as they are."""
        self.verifier = LocalVerifier(
            self.settings, self.scratch, self.keep, self.redaction, environ=self.environ, hidden=self.hidden,
            types=self.types, lender=self.lender,
        )  # fmt: skip

    def set(self, **settings: object) -> None:
        """Begin anew with other settings."""
        self.settings = self.settings.model_copy(update=settings)
        self.begin()

    async def keep(self, text: str) -> str:
        name = hashlib.sha256(text.encode()).hexdigest()
        self.blobs[name] = text
        return name

    async def verify(self, *checks: dict[str, Any], commit: str = "HEAD", base: str | None = None) -> Verification:
        criteria = criteria_of(*checks)
        return await self.verifier.verify(VerifyRequest(self.repository.folder, commit, base, criteria))

    async def one(self, kind: str, base: str | None = None, **verify: Any) -> CheckResult:
        """Carry one check out."""
        found = await self.verify({"id": "it", "type": kind, "verify": verify}, base=base)
        return found.results[0]

    async def sh(self, script: str, base: str | None = None, **verify: Any) -> CheckResult:
        """Run a shell's script as a check."""
        return await self.one("test_pass", base, command=["sh", "-c", script], **verify)

    def output(self, result: CheckResult) -> str:
        return self.blobs[result.output] if result.output else ""

    @property
    def left(self) -> list[str]:
        """What is left in the scratch folder."""
        return sorted(path.name for path in self.scratch.iterdir()) if self.scratch.exists() else []


def criteria_of(*checks: dict[str, Any]) -> Criteria:
    """Read checks as a file has them; their ids are numbers where they have none."""
    listed = [{"id": f"c{number}"} | check for number, check in enumerate(checks)]
    return Criteria.model_validate_json(json.dumps({"checks": listed}))
