"""Checks of policies on the base, for `ashep install`: those that fail there would stop a night. Nothing is changed."""

from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.security import Line
from ashep.actions.verify import Outputs
from ashep.adapters.git.remotes import resolve
from ashep.config import ConfigErrors, load
from ashep.connect import FOLDER, verifier_of
from ashep.core.delivery.bases import checks_of
from ashep.core.facts.delivery import CAUSES, CheckResult
from ashep.core.policy.settings import Settings
from ashep.daemon.effects.work import to_check
from ashep.errors import AshepError
from ashep.ports.verifier import VerifyRequest, verify_before_work

LONGEST = 110.0
"""Seconds for all of them: who waits for `install` is not to wait for a long suite."""


async def base_checks(project: Path, settings: Settings) -> list[Line]:
    """Run the checks of each policy where work begins, and name those that no work is to blame for."""
    try:
        configuration = await to_thread.run_sync(load, project / FOLDER)
    except (ConfigErrors, AshepError):
        return []  # another line tells it
    policies = {name: policy for name, policy in configuration.policies.policies.items() if checks_of(policy)}
    if not policies or settings.worker.workspace == "shared":
        return []
    lines, names, base = list[Line](), ", ".join(policies), settings.landing.base
    with anyio.move_on_after(LONGEST) as bound:
        try:
            async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
                verifier = verifier_of(project, settings, Outputs().keep, scratch=Path(scratch))
                commit = await resolve(project, f"refs/heads/{base}" if base else "HEAD")
                for name, policy in policies.items():
                    request = VerifyRequest(project, commit, commit, to_check(policy, "", "")[0])
                    found = await verify_before_work(verifier, request)
                    lines += [_line(name, base or "HEAD", result) for result in found.results if result.on_base]
        except AshepError as error:
            return [Line("warning", "checks", f"the checks of {names} cannot be run: {error}", "mend what it names")]
    if bound.cancelled_caught:
        why = f"the checks of {names} take longer than {LONGEST:.0f} s: they run again while agents work"
        return [*lines, Line("ok", "checks", why)]
    return lines or [Line("ok", "checks", f"the checks of {names} pass before any work")]


def _line(name: str, base: str, result: CheckResult) -> Line:
    likely, remedy = CAUSES[result.cause]
    because = f" (likely cause: {likely})" if likely else ""
    what = f"{result.check_id} of the policy {name} fails on {base}, before any work{because}: {result.message}"
    return Line("warning", "checks", what, remedy or "mend it there, or say `on_base_failure` in the policy")
