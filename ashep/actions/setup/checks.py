"""The command by which a project tests itself, as a question of setup has it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anyio import to_thread

from ashep.actions import project_checks
from ashep.actions.project_checks import CheckProposal
from ashep.config import settled
from ashep.config.starter.setup_files import ChosenCheck
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError


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
    proposal: CheckProposal | None = None
    """How its dependencies come; None: somebody typed it."""

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


def find_checks(root: Path) -> tuple[CheckFact, ...]:
    """Propose commands by the files of a project, the likeliest first. Blocks."""
    return tuple(CheckFact(item.command, item.rule, proposal=item) for item in project_checks.find_checks(root))


async def try_check(project: Path, fact: CheckFact, say: Callable[[str], None]) -> CheckFact:
    """Run a command on the base as a check is run, and with more only where it fails for want of that."""
    settings = await to_thread.run_sync(settled, Settings(), project)
    worker = settings.worker.model_copy(update={"workspace": "worktree"})  # for places objects would be kept here
    settings = settings.model_copy(update={"worker": worker})
    proposal = fact.proposal
    if proposal is None:  # one of the table has the way in which its dependencies come
        proposals = await to_thread.run_sync(project_checks.find_checks, project)
        fits = (
            item for item in proposals if fact.command in (item.command, item.install.command if item.install else ())
        )
        proposal = next(fits, CheckProposal("typed", fact.command, fact.rule))
    try:
        trial = await project_checks.try_check(project, settings, proposal, tell=say)
    except AshepError as error:
        return replace(fact, failure=str(error))
    return replace(
        fact,
        command=trial.command,
        passed=trial.passes,
        seconds=trial.seconds,
        failure="" if trial.passes else trial.message,
        verification=trial.verification,
    )
