"""Trial of a proposed check: it runs on the base as a check does, and what it needs beyond that is found out.

The ways are tried in the order of what they open: nothing; an installation from the caches of the user's home, which
checks may only read; one from a cache of the project's own, filled from the base; the network. No rule is changed and
no setting is written: what would have to be written is given back.
"""

import json
import os
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio
from anyio import to_thread

from ashep.actions.project_checks.table import CACHE, CheckProposal, DependencyInstall, Words, find_checks
from ashep.actions.verify import Outputs
from ashep.adapters.git.remotes import resolve
from ashep.adapters.system import programs
from ashep.adapters.verifier.checkout import Checkout, find, make_checkout_folder
from ashep.core.facts.delivery import CheckResult
from ashep.core.policy.base_types import format_duration, name_of
from ashep.core.policy.checks import Criteria, TestPass, TestPassCheck
from ashep.core.policy.settings import Settings
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import verifier_of
from ashep.ports.verifier import VerifyRequest
from ashep.redaction import Redaction, guessed

LONGEST = timedelta(minutes=10)
"""For one way that a check is tried, and for filling a cache."""

_SLOW = 120.0  # seconds of a check on an idle machine, for which the usual 10 minutes may be too short

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
    re.compile(r"^test result: \w+\. (\d{1,9}) passed", re.MULTILINE),  # cargo, once for each program
    re.compile(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE),  # unittest
    re.compile(r"^(?:#|ℹ) pass (\d{1,9})$", re.MULTILINE),  # node
    re.compile(r"^[ \t]*Tests:?[ \t][^\n]{0,200}?(\d{1,9}) passed", re.MULTILINE),  # jest, vitest
    re.compile(r"^[ \t]*(\d{1,9}) passing\b", re.MULTILINE),  # mocha
    re.compile(r"\b(\d{1,9}) passed\b[^\n]{0,200} in [\d.]{1,9} ?s"),  # pytest
    re.compile(r"^[ \t]*(\d{1,9}) pass$", re.MULTILINE),  # bun
)
_GO = re.compile(r"^(?:ok  |\?   )\t\S+\t([^\n]*)", re.MULTILINE)  # a line for each package
_MAVEN = re.compile(r"Tests run: (\d{1,9}), Failures: 0, Errors: 0, Skipped: (\d{1,9})[ \t]*$", re.MULTILINE)
_NONE = re.compile(
    r"no tests? (?:files? |suites? )?(?:ran|found|to run|executed)|no test files|^collected 0 items|^0 examples,",
    re.IGNORECASE | re.MULTILINE,
)


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
    command: Words
    """The test command that was run last."""
    message: str
    """What came of it, in a sentence for people."""
    passes: bool = False
    """Whether it passes on the base: where it does not, it is no check."""
    way: Way = "as it is"
    """What it was given then."""
    verification: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of `verification` in config.yaml that have to be written with it; empty: none, or it does not pass."""
    seconds: float = 0.0
    """What it took, with the installation."""
    tests: int | None = None
    """How many tests passed; None: its output does not say."""
    isolated: bool = False
    """Whether it ran in a sandbox."""
    output: str = ""
    """The last lines that it printed."""
    attempts: tuple[TrialAttempt, ...] = ()
    """All ways that were tried, in order."""

    @property
    def verify(self) -> dict[str, Any]:
        """What the check says in policies.yaml: its command, and a longer bound where it is slow."""
        bound = {} if self.seconds < _SLOW else {"timeout": "1h"}
        return {"command": [*self.command], **bound}


@dataclass(frozen=True, slots=True)
class _Variant:
    """A way to try a check."""

    way: Way
    command: Words
    verification: dict[str, Any]
    fetches: bool = False


_OPENING = {"install", "cache", "network"}
"""The keys of `verification` that a way sets."""


def name_cache(project: Path) -> Path:
    """Name the folder for the dependencies of a project's checks: no agent in a sandbox has it. Blocks."""
    real = project.resolve()
    name = f"{name_of(real.name, 'project', 40)}-{sha256(os.fsencode(real)).hexdigest()[:8]}"
    return Path.home() / ".cache" / "ashep" / "dependencies" / name


async def find_base_checks(project: Path) -> tuple[CheckProposal, ...]:
    """Propose test commands by the files of the base, best first. Raises `AshepError` where no checkout can be made."""
    base = await to_thread.run_sync(TrialBase.create, project, Settings(), await resolve(project, "HEAD"))
    async with base.make_checkout() as checkout:
        return await to_thread.run_sync(find_checks, checkout.tree)


async def try_check(
    project: Path,
    settings: Settings,
    proposal: CheckProposal,
    *,
    longest: timedelta = LONGEST,
    tell: Callable[[str], None] = lambda _: None,
) -> CheckTrial:
    """Try a proposed check on the base, as checks run, and with more only where it fails for want of that.

    `tell` hears what is tried. Raises `AshepError` where no checkout can be made.
    """
    base = await to_thread.run_sync(TrialBase.create, project, settings, await resolve(project, "HEAD"), longest)
    attempts, trial = list[TrialAttempt](), None
    for variant in await to_thread.run_sync(_variants, settings, proposal, base.cache):
        if trial is not None:
            # its dependencies may help, before anybody brought them; later only what its output lacks
            untried = proposal.install is not None and trial.way == "as it is" and variant.way != "network"
            if not untried and not _LACKS.search(f"{trial.message}\n{trial.output}"):
                continue
        if variant.fetches and (install := proposal.install) is not None:
            tell(f"{shlex.join(install.fetch)}: fetches what it depends on, as you and outside of the sandbox")
            if failure := await base.fetch_dependencies(install):
                attempts.append(TrialAttempt(variant.way, False, 0.0, failure))
                continue
        tell(f"{shlex.join(variant.command)}: {variant.way}, {format_duration(longest)} at most")
        trial = await base.try_variant(proposal, variant)
        attempts.append(TrialAttempt(variant.way, trial.passes, trial.seconds, trial.message))
        if trial.passes or trial.seconds >= longest.total_seconds():
            break
    assert trial is not None  # the first way needs nothing
    return replace(trial, attempts=tuple(attempts))


def _variants(settings: Settings, proposal: CheckProposal, cache: Path) -> list[_Variant]:
    """List the ways to try a check, those that open least first: with what the settings have already. Blocks."""
    install, command, present = proposal.install, proposal.command, settings.verification
    steps = {"install": [shlex.join(words) for words in present.install]} if present.install else {}
    opened = {key: value for key, value in (("cache", present.cache), ("network", present.network)) if value}
    variants = [_Variant("as it is", command, steps | opened)]
    if install is None:
        return [*variants, _Variant("network", command, {"network": True})]
    equipped = install.command or command
    offline, online = (
        {"install": [shlex.join(words) for words in programs]} if programs else {}
        for programs in (install.offline, install.online)
    )
    if (offline or equipped != command) and any((Path.home() / name).is_dir() for name in install.home):
        variants.append(_Variant("caches of your home", equipped, offline))
    if install.fetch and install.own_cache:
        written_as = f"~/{cache.relative_to(Path.home())}" if cache.is_relative_to(Path.home()) else str(cache)
        variants.append(_Variant("a cache of its own", equipped, {**offline, "cache": written_as}, fetches=True))
    elif install.fetch:
        variants.append(_Variant("caches of your home", equipped, offline, fetches=True))
    return [*variants, _Variant("network", equipped if install.online else command, {**online, "network": True})]


def count_tests(output: str) -> int | None:
    """Say how many tests passed, by what the usual runners print; None: it does not say."""
    if counted := _MAVEN.findall(output):
        return int(counted[-1][0]) - int(counted[-1][1])
    if packages := _GO.findall(output):
        return None if any("no test" not in result for result in packages) else 0
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


# --- where they run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialBase:
    """The commit on which checks of a project are tried, and what each trial of them is given."""

    project: Path
    settings: Settings
    commit: str
    cache: Path
    """The folder for dependencies."""
    longest: timedelta
    redaction: Redaction

    @classmethod
    def create(cls, project: Path, settings: Settings, commit: str, longest: timedelta = LONGEST) -> "TrialBase":
        """Describe the base of a project. Blocks."""
        return cls(project, settings, commit, name_cache(project), longest, Redaction(tuple(guessed(os.environ))))

    @property
    def scratch(self) -> Path:
        """Where checkouts are made: on the disk of the cache, so that what was fetched needs only another name."""
        return self.cache.parent.with_name("trials")

    @asynccontextmanager
    async def make_checkout(self) -> AsyncGenerator[Checkout]:
        """Have a checkout; one that was left by a kill is removed by the next. Raises `AshepError`."""
        async with make_checkout_folder(self.scratch) as place:
            checkout = Checkout(place, await find(self.project, self.commit, None))
            await checkout.fill()
            yield checkout

    async def try_variant(self, proposal: CheckProposal, variant: _Variant) -> CheckTrial:
        """Run a check once, by the verifier that runs all checks."""
        present = self.settings.verification.model_dump(mode="json", exclude=_OPENING, exclude_unset=True)
        verification = VerificationSettings.model_validate_json(json.dumps(present | variant.verification))
        settings, outputs = (
            self.settings.model_copy(update={"verification": verification}),
            Outputs(),
        )
        verifier = verifier_of(self.project, settings, outputs.keep, scratch=self.scratch, redaction=self.redaction)
        verify = TestPass(command=variant.command, timeout=self.longest)
        criteria = Criteria(checks=(TestPassCheck(id="tests", type="test_pass", verify=verify),))
        answer = await verifier.verify(VerifyRequest(self.project, self.commit, self.commit, criteria))
        result = answer.results[0]
        output = outputs.text(result.output)
        tests = count_tests(output)
        passes = result.status == "passed" and tests != 0
        return CheckTrial(
            proposal, variant.command, _say(variant, result, tests, output), passes, variant.way,
            variant.verification if passes else {}, result.duration_ms / 1000, tests, bool(answer.isolated),
            _end(output),
        )  # fmt: skip

    async def fetch_dependencies(self, install: DependencyInstall) -> str:
        """Fill the cache with what the base depends on, from the network; gives what went wrong, or nothing.

        The program runs as the user, with the user's logins, in a clean checkout: what it reads there is the user's.
        What was in a cache of the project's own before is replaced once everything has come.
        """
        failure = "its dependencies cannot be fetched"
        try:
            async with self.make_checkout() as checkout:
                await checkout.open_to_programs()
                fresh = checkout.folders.home.with_name("fetched")
                words = [word.replace(CACHE, str(fresh)) for word in install.fetch]
                env = os.environ | {name: str(fresh / inner) for name, inner in install.places.items()}
                await anyio.Path(fresh).mkdir(mode=0o700)
                longest = self.longest.total_seconds()
                finished = await programs.run(words, cwd=checkout.tree, env=env, timeout=longest)
                if finished.returncode:
                    printed = (finished.stdout + b"\n" + finished.stderr).decode(errors="replace")
                    end = _end(clean(self.redaction.text(printed)))[-400:]
                    return f"{failure}: `{shlex.join(install.fetch)}` failed: {end}"
                if install.own_cache:
                    await to_thread.run_sync(replace_cache, self.cache, fresh)
        except (AshepError, OSError) as error:
            return f"{failure}: {error}"
        return ""


def replace_cache(cache: Path, fresh: Path) -> None:
    """Put a folder in the place of another: a check that begins meanwhile finds one of the two. Blocks."""
    cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        cache.rename(fresh.with_name("former"))
    fresh.rename(cache)
