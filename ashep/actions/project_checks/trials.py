"""Trial of a proposed check: it runs on the base as a check does, and what it needs beyond that is found out.

The ways are tried in the order of what they open: nothing; an installation from the caches of the user's home, which
checks may only read; one from a cache of the project's own, filled from the base; the network. No rule is changed and
no setting is written: what would have to be written is given back.
"""

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio
from anyio import to_thread

from ashep.actions.project_checks.table import CACHE, CheckProposal, DependencyInstall, Words
from ashep.actions.verify import Outputs
from ashep.adapters.git.remotes import resolve
from ashep.adapters.system import programs
from ashep.adapters.system.folders import delete
from ashep.adapters.verifier.checkout import Checkout, find, make_checkout_folder
from ashep.core.facts.delivery import CheckResult
from ashep.core.policy import base_types
from ashep.core.policy.checks import Criteria, TestPass, TestPassCheck
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import verifier_of
from ashep.ports.verifier import VerifyRequest

LONGEST = timedelta(minutes=10)
"""For one way that a check is tried, and for filling a cache."""

SHOWN = 12
"""Lines of the end of an output."""

Way = Literal["as it is", "caches of your home", "a cache of its own", "network"]
"""What a check is given: each opens more than the one before it."""

_LACKS = re.compile(
    r"no module named|modulenotfounderror|importerror|cannot find (?:module|package)|module not found|module_not_found"
    r"|not found|no required module|missing go\.sum|is not in (?:std|goroot)|enoent|no such file or directory"
    r"|could(?:n't| not) (?:resolve|find|download|connect)|failed to (?:download|fetch|get|resolve)|name resolution"
    r"|no matching (?:package|distribution)|offline|enotcached|enotfound|eai_again|network|dial tcp|no such host"
    r"|getaddrinfo|unresolved import|can't find crate|use of unresolved",
    re.IGNORECASE,
)  # fmt: skip
_TELLING = re.compile(r"error|fail|cannot|could not|no module|not found|panic|denied|expected", re.IGNORECASE)
_OF_RUNNER = re.compile(r"make(\[\d+\])?: |npm (error|ERR!) (A complete|code|errno|path|command)|error: test failed")
"""How lines begin that say only that something failed."""
_COUNTS = (
    re.compile(r"^test result: \w+\. (\d+) passed", re.MULTILINE),  # cargo, once for each program
    re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE),  # unittest
    re.compile(r"^(?:#|ℹ) pass (\d+)$", re.MULTILINE),  # node
    re.compile(r"^\s*Tests:?\s.*?(\d+) passed", re.MULTILINE),  # jest, vitest
    re.compile(r"^\s*(\d+) passing\b", re.MULTILINE),  # mocha
    re.compile(r"\b(\d+) passed\b.* in [\d.]+ ?s"),  # pytest
    re.compile(r"^\s*(\d+) pass$", re.MULTILINE),  # bun
)
_MAVEN = re.compile(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: (\d+)\s*$", re.MULTILINE)
_NONE = re.compile(r"no tests? (?:ran|found|to run)|^collected 0 items|^Ran 0 tests", re.IGNORECASE | re.MULTILINE)


class TrialAttempt(NamedTuple):
    """One way that a check was tried."""

    way: Way
    passes: bool
    seconds: float
    """What the check took, with the installation."""
    message: str
    """What it came to, in a line."""


@dataclass(frozen=True, slots=True)
class CheckTrial:
    """What the trial of a proposal came to."""

    proposal: CheckProposal
    passes: bool
    """Whether it passes on the base: where it does not, it is no check."""
    command: Words
    """The test command that was run last."""
    way: Way
    """What it was given then."""
    verification: dict[str, Any]
    """The keys of `verification` in config.yaml that have to be written with it; empty: none, or it does not pass."""
    seconds: float
    """What it took, with the installation."""
    tests: int | None
    """How many tests passed; None: its output does not say."""
    isolated: bool
    """Whether it ran in a sandbox."""
    message: str
    """What came of it, in a sentence for people."""
    output: str
    """The last lines that it printed."""
    attempts: tuple[TrialAttempt, ...]
    """All ways that were tried, in order."""

    @property
    def check(self) -> dict[str, Any]:
        """The check, as a phase of policies.yaml would have it."""
        bound = timedelta(minutes=10 if self.seconds < 120 else 60)
        verify = {"command": shlex.join(self.command), "timeout": base_types.format_duration(bound)}
        return {"id": "tests", "type": "test_pass", "description": "the tests of the project pass", "verify": verify}


@dataclass(frozen=True, slots=True)
class _Variant:
    """A way to try a check."""

    way: Way
    command: Words
    verification: dict[str, Any]
    fetches: bool = False


def name_cache(project: Path) -> Path:
    """Name the folder for the dependencies of a project's checks: no agent in a sandbox has it. Blocks."""
    real = project.resolve()
    return (
        Path.home() / ".cache" / "ashep" / "dependencies" / f"{real.name}-{sha256(os.fsencode(real)).hexdigest()[:8]}"
    )


async def try_check(
    project: Path,
    settings: Settings,
    proposal: CheckProposal,
    *,
    commit: str = "HEAD",
    cache: Path | None = None,
    longest: timedelta = LONGEST,
    tell: Callable[[str], None] = lambda _: None,
) -> CheckTrial:
    """Try a proposed check on the base, as checks run, and with more only where it fails for want of that.

    `cache`: the folder for dependencies; by default that of `name_cache`. `tell`: hears what is tried. Raises
    `AshepError` where no checkout can be made.
    """
    cache = cache or await to_thread.run_sync(name_cache, project)
    attempts, trial = list[TrialAttempt](), None
    base = await resolve(project, commit)
    async with anyio.TemporaryDirectory(prefix="ashep-setup-") as scratch:
        for variant in await to_thread.run_sync(_variants, proposal, cache):
            if trial is not None:
                # its dependencies may help, before anybody brought them; later only what its output lacks
                untried = proposal.install is not None and trial.way == "as it is" and variant.way != "network"
                if not untried and not _LACKS.search(f"{trial.message}\n{trial.output}"):
                    continue
            tell(f"{shlex.join(variant.command)}: {variant.way}")
            failure, install = "", proposal.install
            if variant.fetches and install is not None:
                failure = await fetch_dependencies(project, base, install, cache, Path(scratch), longest)
            if failure:
                attempts.append(TrialAttempt(variant.way, False, 0.0, failure))
                continue
            trial = await _try(project, settings, proposal, variant, base, Path(scratch), longest)
            attempts.append(TrialAttempt(variant.way, trial.passes, trial.seconds, trial.message))
            if trial.passes:
                break
    assert trial is not None  # the first way needs nothing
    return replace(trial, attempts=tuple(attempts))


def _variants(proposal: CheckProposal, cache: Path) -> list[_Variant]:
    """List the ways to try a check, those that open least first. Blocks."""
    install, command = proposal.install, proposal.command
    variants = [_Variant("as it is", command, {})]
    if install is not None:
        equipped = install.command or command
        steps: dict[str, Any] = {"install": [shlex.join(words) for words in install.offline]} if install.offline else {}
        differs = bool(steps) or equipped != command
        if differs and any((Path.home() / name).is_dir() for name in install.home):
            variants.append(_Variant("caches of your home", equipped, steps))
        if install.fetch and install.own_cache:
            written_as = f"~/{cache.relative_to(Path.home())}" if cache.is_relative_to(Path.home()) else str(cache)
            variants.append(_Variant("a cache of its own", equipped, {**steps, "cache": written_as}, fetches=True))
        elif install.fetch:
            variants.append(_Variant("caches of your home", equipped, steps, fetches=True))
        online: dict[str, Any] = {"install": [shlex.join(words) for words in install.online]} if install.online else {}
        return [*variants, _Variant("network", equipped if install.online else command, {**online, "network": True})]
    return [*variants, _Variant("network", command, {"network": True})]


async def _try(
    project: Path,
    settings: Settings,
    proposal: CheckProposal,
    variant: _Variant,
    base: str,
    scratch: Path,
    longest: timedelta,
) -> CheckTrial:
    """Run a check once on the base, by the verifier that runs all checks."""
    more = {name: value for name, value in variant.verification.items() if name != "install"}
    if steps := variant.verification.get("install"):
        more["install"] = tuple(tuple(shlex.split(step)) for step in steps)
    widened = settings.model_copy(update={"verification": settings.verification.model_copy(update=more)})
    outputs = Outputs()
    verifier = verifier_of(project, widened, outputs.keep, scratch=scratch)
    verify = TestPass(command=variant.command, timeout=longest)
    criteria = Criteria(checks=(TestPassCheck(id="tests", type="test_pass", verify=verify),))
    verification = await verifier.verify(VerifyRequest(project, base, base, criteria))
    result = verification.results[0]
    output = outputs.text(result.output)
    tests = count_tests(output)
    passes = result.status == "passed" and tests != 0
    return CheckTrial(
        proposal, passes, variant.command, variant.way, variant.verification if passes else {},
        result.duration_ms / 1000, tests, bool(verification.isolated), _say(variant, result, tests, output),
        _end(output), (),
    )  # fmt: skip


def count_tests(output: str) -> int | None:
    """Say how many tests passed, by what the usual runners print; None: it does not say."""
    if counted := _MAVEN.findall(output):
        return int(counted[-1][0]) - int(counted[-1][1])
    for pattern in _COUNTS:
        if numbers := pattern.findall(output):
            return sum(map(int, numbers))
    return 0 if _NONE.search(output) else None


def _say(variant: _Variant, result: CheckResult, tests: int | None, output: str) -> str:
    """Say in a sentence what a check came to."""
    command, seconds = shlex.join(variant.command), f"{result.duration_ms / 1000:.1f} s"
    if result.status == "passed" and tests != 0:
        counted = "" if tests is None else f", {tests} test{'s' * (tests != 1)} passed"
        needs = {
            "as it is": "it needs nothing else",
            "caches of your home": "it needs caches of your home, which it can only read",
            "a cache of its own": "it needs a cache of its dependencies, of which each check gets a copy",
            "network": "it needs the network",
        }[variant.way]
        return f"`{command}` passes on the base: {seconds}{counted}; {needs}"
    if result.status == "passed":
        return f"`{command}` ends well on the base, and ran no test: it would prove nothing"
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    telling_lines = [line for line in lines if not _OF_RUNNER.match(line)] or lines
    signs = (next((line for line in reversed(telling_lines) if sign.search(line)), "") for sign in (_LACKS, _TELLING))
    telling = next(filter(None, signs), telling_lines[-1] if telling_lines else "")
    quoted = f": {telling[:200]}" if telling else ""
    return f"`{command}` does not pass on the base ({result.message}){quoted}"


def _end(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-SHOWN:])


# --- caches -----------------------------------------------------------------------------------------------------------


async def fetch_dependencies(
    project: Path,
    commit: str,
    installation: DependencyInstall,
    cache: Path,
    scratch: Path,
    longest: timedelta = LONGEST,
) -> str:
    """Fill a cache with what a commit of the base depends on, from the network; gives what went wrong, or nothing.

    The program runs as the user, with the user's logins, in a clean checkout: what it reads there is the user's own.
    What was in a cache of the project's own before is replaced once everything has come.
    """
    fresh = cache.with_name(f"{cache.name}.new-{os.getpid()}")
    async with make_checkout_folder(scratch) as place:
        checkout = Checkout(place, await find(project, commit, None))
        await checkout.fill()
        await checkout.open_to_programs()
        words = [word.replace(CACHE, str(fresh)) for word in installation.fetch]
        env = os.environ | {name: str(fresh / inner) for name, inner in installation.places.items()}
        await anyio.Path(fresh).mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            finished = await programs.run(words, cwd=checkout.tree, env=env, timeout=longest.total_seconds())
            if finished.returncode:
                end = _end(clean((finished.stdout + b"\n" + finished.stderr).decode(errors="replace")))[-400:]
                return f"its dependencies cannot be fetched: `{shlex.join(installation.fetch)}` failed: {end}"
            if installation.own_cache:
                await to_thread.run_sync(_replace, cache, fresh)
        except (AshepError, OSError) as error:
            return f"its dependencies cannot be fetched: {error}"
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(delete, fresh)
    return ""


def _replace(cache: Path, fresh: Path) -> None:
    """Put a folder in the place of another: a check that begins meanwhile finds one of the two. Blocks."""
    former = cache.with_name(f"{cache.name}.old-{os.getpid()}")
    if cache.exists():
        cache.rename(former)
    fresh.rename(cache)
    delete(former)
