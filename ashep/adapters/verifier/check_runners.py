"""How each type of check is executed."""

import os
import re
import shlex
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from ashep.adapters.verifier.checkout import Checkout
from ashep.adapters.verifier.http_check import judged, order_of
from ashep.adapters.verifier.program_run import CHILDREN, PRINTED, PROCESSES, Ran, python, run
from ashep.adapters.verifier.sandbox import Isolation, Nothing, Sandbox, environment
from ashep.adapters.verifier.static_checks import (
    ask_person,
    code_pattern,
    fail_check,
    file_exists,
    pass_check,
    report_error,
)
from ashep.core.facts.delivery import Cause
from ashep.core.policy import base_types, checks
from ashep.core.policy.checks import BASE
from ashep.ports.verifier import CheckFinding, CheckType, Ended
from ashep.redaction import Redaction

_ASK = (*python(), str(CHILDREN / "http_probe.py"))
_ASKING = 15.0  # seconds for what asks a service, next to the service's own bounds


async def look(check: checks.Check, tree: Path) -> CheckFinding:
    """Execute a check that only looks."""
    return await LOOKS[check.type](tree, check.verify)


@dataclass(slots=True)
class CheckEnvironment:
    """Where programs of checks run, and by which settings: the `Ground` of a check of the user's own."""

    checkout: Checkout
    commit: str
    isolation: Isolation
    names: tuple[str, ...]
    """Variables of ashep's environment that programs are given."""
    environ: Mapping[str, str]
    redaction: Redaction
    types: Mapping[str, CheckType]
    memory: int | None = None
    """Bytes that the processes of a check may hold together."""
    service_url: str | None = None
    """The service that runs by itself, where a check starts none."""
    strangers: frozenset[str] = frozenset()
    """Checks that stand in an issue's text."""
    base: str | None = None
    """The commit before any work."""
    install: Sequence[Sequence[str]] = ()
    """Programs that bring the checkout its dependencies."""
    cache: Path | None = None
    """Where those come from, next to the caches of the user's home."""
    isolated: bool | None = None
    """Whether programs ran in a sandbox; None: none was run, as a check of the user's own may need none."""
    _installed: CheckFinding | None = None
    """What bringing the dependencies came to; None: no program of a check has run yet."""

    @property
    def tree(self) -> Path:
        return self.checkout.tree

    async def carry_out(self, check: checks.Check) -> CheckFinding:
        """Execute a check that runs programs."""
        refusal = self.isolation.refused(stranger=check.id in self.strangers)
        if refusal and not checks.asks_elsewhere(check):
            return report_error(refusal)
        if self.install and not checks.asks_elsewhere(check):
            self._installed = self._installed or await self._install()
            if self._installed.status != "passed":
                return self._installed
        if isinstance(check, checks.OwnCheck):
            return await self._run_own_check(check)
        return await RUNS[check.type](self, check.verify)

    async def _install(self) -> CheckFinding:
        """Bring the checkout its dependencies, and put back what that changed in files of the commit."""
        for words in self.install:
            finding = await self.test_pass(checks.TestPass(command=tuple(words)))
            if finding.status != "passed":
                failure = f"the step `{shlex.join(words)[:200]}` of `verification.install` failed: {finding.message}"
                if self.cache is not None and not await anyio.Path(self.cache).is_dir():
                    failure += f"; `verification.cache` names {self.cache}, which is no folder"
                return report_error(failure, finding.output, cause=finding.cause)
        await self.checkout.restore()
        return pass_check("its dependencies are there")

    async def run(self, argv: Sequence[str], timeout: timedelta) -> Ended:
        ran = await self._run(argv, timeout.total_seconds())
        return Ended(ran.code if ran.reason == "exited" else None, ran.output, _explain_end(ran, argv[0], timeout))

    async def test_pass(self, wanted: checks.TestPass) -> CheckFinding:
        """Run a program to its end."""
        if without := await self._report_missing(wanted.command[0]):
            return without
        if self.base is None and any(BASE in word for word in wanted.command):
            return report_error(f"its command names {BASE}, the commit before any work, and that is not known")
        command = [word.replace(BASE, self.base or "") for word in wanted.command]
        if shadow := self._shadow(command):
            return fail_check(shadow)
        ran = await self._run(command, wanted.timeout.total_seconds())
        killed = ran.reason == "exited" and ran.code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        cause: Cause = "time" if ran.reason == "timeout" else "memory" if ran.reason == "memory" or killed else ""
        if ran.reason == "missing" and os.sep not in wanted.command[0]:  # a path is the candidate's own
            cause = "program"
        if why := _explain_end(ran, wanted.command[0], wanted.timeout):
            return fail_check(why, ran.output, cause)
        assert ran.code is not None  # it has exited
        names = {-number: number.name for number in signal.Signals}
        said = f"exit code {ran.code}" if ran.code >= 0 else f"ended by {names.get(ran.code, f'signal {-ran.code}')}"
        if ran.code == wanted.expect_exit_code:
            return pass_check(said, ran.output)
        return fail_check(f"{said}; expected {wanted.expect_exit_code}", ran.output, cause)

    async def http_request(self, wanted: checks.HttpRequest) -> CheckFinding:
        """Ask the service that the check starts, or one that runs by itself."""
        bound = wanted.timeout.total_seconds() + _ASKING
        if (service := wanted.service) is not None:
            if without := await self._report_missing(service.start[0]):
                return without
            bound += service.timeout.total_seconds()
            return judged(wanted, await self._run(_ASK, bound, stdin=order_of(wanted), report=True))
        if (address := self.service_url) is None:
            where = "`verification.service_url` in config.yaml names none that runs by itself"
            return report_error(f"it starts no `service`, and {where}")
        # our own program asks there, and nothing of the candidate's runs
        order = order_of(wanted, address)
        return judged(wanted, await self._run(_ASK, bound, stdin=order, report=True, sandbox=Nothing()), address)

    async def _run_own_check(self, check: checks.OwnCheck) -> CheckFinding:
        known = self.types.get(check.type)
        if known is None:
            return report_error(f"no check of the type {check.type} is known: name its class in `verification.types`")
        try:
            with anyio.fail_after(check.timeout.total_seconds()):
                return await known.check(check.verify, self)
        except TimeoutError:
            return report_error(f"it had not ended after {base_types.format_duration(check.timeout)}", cause="time")

    def _shadow(self, command: Sequence[str]) -> str:
        """Say which file of the work Python would run in the place of a module of its own, or of a test runner."""
        path = min(self.checkout.shadows, default="")
        if not path or not _RUNS_MODULE.search(" ".join(command)):
            return ""
        why = f"the work adds {path}, which `{shlex.join(command)[:100]}` would import in the place of the real module"
        return f"{why}: rename it, or put it into a package"

    async def _report_missing(self, program: str) -> CheckFinding | None:
        """Say that a program is not on PATH; one named by a path is the candidate's own business."""
        path = self._env()["PATH"]
        if os.sep in program or await to_thread.run_sync(shutil.which, program, os.X_OK, path):
            return None
        return report_error(f"there is no program {program} on PATH ({path})", cause="program")

    def _env(self) -> dict[str, str]:
        return environment(self.checkout.folders, self.names, self.environ, self.isolation.sandbox)

    async def _run(
        self,
        argv: Sequence[str],
        timeout: float,
        *,
        stdin: str = "",
        report: bool = False,
        sandbox: Sandbox | None = None,
    ) -> Ran:
        used = sandbox or self.isolation.sandbox
        if sandbox is None:  # what asks elsewhere runs nothing of the candidate's
            self.isolated = used.isolated
        env = self._env()
        wrapped = await to_thread.run_sync(used.wrap, argv, self.checkout.folders, env["PATH"])
        return await run(
            wrapped,
            cwd=self.tree,
            env=env,
            sandboxed=used.isolated,
            timeout=timeout,
            redaction=self.redaction,
            stdin=stdin,
            report=report,
            memory=self.memory,
        )


LOOKS: Mapping[str, Callable[[Path, Any], Awaitable[CheckFinding]]] = {
    "file_exists": file_exists,
    "code_pattern": code_pattern,
    "manual": ask_person,
}
"""How the types of checks that only look are executed."""

RUNS: Mapping[str, Callable[[CheckEnvironment, Any], Awaitable[CheckFinding]]] = {
    "http_request": CheckEnvironment.http_request,
    "test_pass": CheckEnvironment.test_pass,
}
"""How the types of checks that run programs are executed."""

_RUNS_MODULE = re.compile(r"\b(?:python|pypy)[\d.]*\b.*\s-[A-Za-z]*m", re.DOTALL)


def _explain_end(ran: Ran, program: str, timeout: timedelta) -> str:
    """Say why a program did not end by itself; empty: it did."""
    match ran.reason:
        case "exited":
            return ""
        case "missing":
            return f"{program} cannot be started: {os.strerror(ran.errno)}"
        case "timeout":
            return f"it had not ended after {base_types.format_duration(timeout)}; it was killed"
        case "output":
            return f"it printed more than {PRINTED // 1024**2} MiB; it was killed"
        case "processes":
            return f"it had more than {PROCESSES} processes; it was killed"
        case "memory":
            return "its processes held more memory than `verification.memory_limit` allows; it was killed"
        case "ended":
            return "it was killed with ashep"
