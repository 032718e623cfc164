"""The command by which a project tests itself, and a trial of it on the base."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio import to_thread

from ashep.adapters.git.user_work_tree import GitTree
from ashep.config import settled
from ashep.config.starter.setup_files import ChosenCheck
from ashep.core.policy.checks import TestPass, TestPassCheck
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.factories import verifier_of
from ashep.ports.verifier import Criteria, VerifyRequest


@dataclass(frozen=True, slots=True)
class CheckFact:
    """A command, why it was proposed, and what came of it on the base."""

    command: tuple[str, ...]
    rule: str
    """Why it is proposed, such as `pyproject.toml names pytest`."""
    passed: bool = False
    seconds: float = 0.0
    failure: str = ""
    """What it said where it did not pass."""
    verification: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of `verification` in config.yaml without which it does not pass."""

    @property
    def summary(self) -> str:
        """What came of it, for the option of a question."""
        needs = f"; with `verification`: {', '.join(self.verification)}" if self.verification else ""
        return f"{shlex.join(self.command)}: {self.seconds:.0f} s on the base, passes{needs}"

    @property
    def chosen(self) -> ChosenCheck:
        """The check as the files have it."""
        seconds = f"{self.seconds:.0f} s on the base"
        return ChosenCheck(self.command, self.verification, f"{seconds}; {self.rule}" if self.rule else seconds)


_RULES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("pyproject.toml", "pytest", ("pytest", "-q")),
    ("package.json", '"test"', ("npm", "test")),
    ("Cargo.toml", "[package]", ("cargo", "test")),
    ("go.mod", "module", ("go", "test", "./...")),
    ("Makefile", "\ntest:", ("make", "test")),
)


def find_checks(root: Path) -> tuple[CheckFact, ...]:
    """Propose commands by the files of a project, the likeliest first. Blocks."""
    proposals = list[CheckFact]()
    for name, word, command in _RULES:
        file = root / name
        if file.is_file() and word in file.read_text(encoding="utf-8", errors="replace"):
            proposals.append(CheckFact(command, f"{name} has {word.strip()}"))
    return tuple(proposals)


async def try_check(project: Path, proposal: CheckFact) -> CheckFact:
    """Run a command on the base as a check is run: on a clean checkout, in its sandbox."""
    settings = await to_thread.run_sync(settled, Settings(), project)
    worker = settings.worker.model_copy(update={"workspace": "worktree"})  # for places objects would be kept here
    settings = settings.model_copy(update={"worker": worker})
    head = await GitTree(project).head()

    async def keep(text: str) -> str:
        return ""

    check = TestPassCheck(
        id="tests", type="test_pass", description="the tests", verify=TestPass(command=proposal.command)
    )
    with TemporaryDirectory(prefix="ashep-setup-") as scratch:
        try:
            verifier = verifier_of(project, settings, keep, scratch=Path(scratch))
            request = VerifyRequest(project, head or "HEAD", head or "HEAD", Criteria(checks=(check,)))
            (result,) = (await verifier.verify(request)).results
        except AshepError as error:
            return replace(proposal, failure=str(error))
    is_green = result.status == "passed"
    return replace(
        proposal, passed=is_green, seconds=result.duration_ms / 1000, failure="" if is_green else result.message
    )
