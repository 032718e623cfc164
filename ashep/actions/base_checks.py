"""Checks of policies on the base, for `ashep install`: those that fail there would stop a night. Nothing is changed."""

from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.security import Line
from ashep.actions.verify import Outputs
from ashep.adapters.git.remotes import resolve
from ashep.config import ConfigErrors, load
from ashep.connect import FOLDER, verifier_of
from ashep.core.delivery.bases import checks_of
from ashep.core.facts.delivery import REMEDIES
from ashep.core.policy.policies import Policy
from ashep.core.policy.settings import Settings
from ashep.daemon.effects.work import request_of_base
from ashep.errors import AshepError

LONGEST = 110.0
"""Seconds for all of them: who waits for `install` is not to wait for a long suite."""


async def base_checks(project: Path, settings: Settings) -> list[Line]:
    """Run the checks of each policy where work begins, and name those that no work is to blame for."""
    try:
        configuration = await to_thread.run_sync(load, project / FOLDER)
    except (ConfigErrors, AshepError):
        return []  # that is told already
    policies = {name: one for name, one in configuration.policies.policies.items() if checks_of(one)}
    if not policies or settings.worker.workspace == "shared":
        return []
    lines, names = list[Line](), ", ".join(policies)
    with anyio.move_on_after(LONGEST):
        try:
            async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
                await _run_checks(project, settings, policies, Path(scratch), lines)
        except AshepError as error:
            return [Line("warning", "checks", f"the checks of {names} cannot be run: {error}", "mend what it names")]
        return lines or [Line("ok", "checks", f"the checks of {names} pass before any work")]
    why = f"the checks of {names} take longer than {LONGEST:.0f} s: they are run again while agents work"
    return [*lines, Line("ok", "checks", why)]


async def _run_checks(
    project: Path, settings: Settings, policies: Mapping[str, Policy], scratch: Path, lines: list[Line]
) -> None:
    """Add a line for each check that fails, as soon as it is known."""
    verifier, base = verifier_of(project, settings, Outputs().keep, scratch=scratch), settings.landing.base
    commit = await resolve(project, f"refs/heads/{base}" if base else "HEAD")
    for name, policy in policies.items():
        request = request_of_base(project, commit, policy)
        for result in filter(request.is_excusable, (await verifier.verify(request)).results):
            told = f"{result.check_id} of the policy {name} fails on {base or 'HEAD'}, before any work"
            likely = f" (likely cause: {result.likely})" if result.likely else ""
            remedy = REMEDIES.get(result.cause, "mend it there, or say `on_base_failure` in the policy")
            lines.append(Line("warning", "checks", f"{told}{likely}: {result.message}", remedy))
