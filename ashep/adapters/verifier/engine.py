"""Carries lists of checks out, each tree and list once: the engine behind `ashep.ports.verifier.Verifier`."""

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from ashep import __version__
from ashep.adapters.git.submodules import flat
from ashep.adapters.verifier.check_runners import CheckEnvironment, look
from ashep.adapters.verifier.checkout import Checkout, Commits, find, make_checkout_folder
from ashep.adapters.verifier.failure_causes import likely_cause
from ashep.adapters.verifier.sandbox import Isolation, given_to, probe
from ashep.adapters.verifier.static_checks import report_error
from ashep.core.facts.delivery import FAILING, CheckResult, Verification
from ashep.core.policy.checks import Criteria, ManualCheck, asks_elsewhere, hash_of, is_look, names_base
from ashep.core.policy.disk_limits import LOW_DISK
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.verifier import CheckFinding, CheckType, VerifyRequest
from ashep.redaction import Redaction

Keep = Callable[[str], Awaitable[str]]
"""Makes a text durable and gives its hash, as `ashep.journal.blobs.Blobs.keep` does."""

_LONGEST = 500  # characters of a message
_NOTES = 2  # submodules that are not there of which a message speaks
_LARGEST = 256 * 1024  # characters of what is kept of a check of the user's own
_Found = tuple[tuple[CheckResult, ...], bool | None]  # and whether their programs were isolated; None: there were none


class LocalVerifier:
    """Carries checks out on this machine, in folders below `scratch`, which hold nothing between two calls.

    `hidden`: places that a sandbox keeps from checks, wherever they lie. `types`: the user's own;
    `sources`: what says of what each is made, so that what it found holds no longer once that is something else.
    """

    def __init__(
        self,
        settings: VerificationSettings,
        scratch: Path,
        keep: Keep,
        redaction: Redaction | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        hidden: Sequence[Path] = (),
        types: Mapping[str, CheckType] | None = None,
        sources: Mapping[str, Callable[[], str]] | None = None,
        floor: int = LOW_DISK,
        lender: Path | None = None,
    ) -> None:
        """`floor`: bytes that a checkout leaves free on the disk. `lender`: as for `Checkout`, once it is there."""
        self._settings, self._scratch, self._keep = settings, scratch, keep
        self._redaction, self._types = redaction or Redaction(), types or {}
        self._sources = sources or {}
        self._environ = os.environ if environ is None else environ
        self._hidden, self._floor, self._lender = tuple(hidden), floor, lender
        self._cache = Path(settings.cache).expanduser() if settings.cache else None
        self._isolation: Isolation | None = None
        self._probing = anyio.Lock()
        self._known: dict[tuple[str, str], Verification] = {}
        self._before_work: dict[tuple[str, str], Verification] = {}
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    async def isolation(self) -> Isolation:
        """Say what is isolated on this machine; it is tried out once."""
        async with self._probing:
            if self._isolation is None:
                async with make_checkout_folder(self._scratch) as place:
                    self._isolation = await probe(self._settings, self._hidden, place)
        return self._isolation

    def remember(self, verifications: Iterable[Verification]) -> None:
        """Take over what is known from before: the same tree and checks are not verified again.

        What holds an error is not: what could not run may go another time.
        """
        for verification in verifications:
            if all(result.status != "error" for result in verification.results):
                results = tuple(replace(result, proves_nothing=False, on_base=False) for result in verification.results)
                self._known[verification.tree, verification.checks] = replace(verification, results=results)

    async def verify(self, request: VerifyRequest) -> Verification:
        commits = await find(request.repository, request.commit, request.base)
        if request.known is not None:
            self.remember([request.known])
        key = await self._key(request.criteria, commits, request.base)
        async with self._locks.setdefault(key, anyio.Lock()):
            known = self._known.get(key) or (self._before_work.get(key) if request.of_base else None)
            if request.afresh or known is None or any(map(asks_elsewhere, request.criteria.checks)):
                results, isolated = await self._carry_out(request, commits)
                made = Verification(commits.commit, *key, results, isolated)
                self.remember([made, *await self._of_project(made, request, commits)])
                if request.of_base:
                    self._before_work[key] = made
                return made
            return replace(known, commit=commits.commit)

    async def _key(self, criteria: Criteria, commits: Commits, base: str | None) -> tuple[str, str]:
        ground = await self._ground(criteria)
        named = any(names_base(check) for check in criteria.checks)
        asked = f"{hash_of(criteria)}\n{commits.scripts}\n{ground}" + f"\n{base}" * named
        asked += "".join(f"\n{path}" for path in sorted(commits.shadows))
        modules = flat(commits.submodules)
        asked += "".join(f"\n{module.path!r} {module.commit} {module.source is None}" for module in modules)
        return commits.tree, hashlib.sha256(asked.encode(errors="surrogateescape")).hexdigest()

    async def _of_project(self, made: Verification, request: VerifyRequest, commits: Commits) -> list[Verification]:
        """Give what the project's own checks found by themselves: they went first, whatever an issue's text adds.

        So what landed with an issue of its own checks is a base on which the project's are known.
        """
        own = tuple(check for check in request.criteria.checks if check.id not in request.strangers)
        if not 0 < len(own) < len(request.criteria.checks):
            return []
        key = await self._key(Criteria(checks=own), commits, request.base)
        isolated = None if all(map(is_look, own)) else made.isolated
        return [Verification(made.commit, *key, made.results[: len(own)], isolated)]

    async def _ground(self, criteria: Criteria) -> str:
        """Say on what else the answer depends: where programs run, what they are given, and our own program's version.

        Empty where nothing runs: what a look finds is in the tree.
        """
        runs = [check for check in criteria.checks if not is_look(check)]
        if not runs:
            return ""
        isolated = (await self.isolation()).sandbox.isolated
        named = {check.type for check in runs} & {*self._sources}
        own = {name: await to_thread.run_sync(self._sources[name]) for name in sorted(named)}
        given = given_to(self._settings.environment, self._environ)
        seen = [sorted(map(str, self._hidden)), self._settings.paths] if isolated else []
        brought = [[self._settings.install, self._settings.cache]] if self._settings.install or self._cache else []
        about = (__version__, isolated, self._settings.network, given, seen, own, *brought)
        return json.dumps(about, sort_keys=True)

    async def _carry_out(self, request: VerifyRequest, commits: Commits) -> _Found:
        checks = request.criteria.checks
        runs = [check for check in checks if not is_look(check)]
        isolation = await self.isolation() if runs else None
        lender = self._lender and Path(await anyio.Path(self._lender).resolve())
        if lender and not await anyio.Path(lender, "HEAD").exists():
            lender = None
        async with make_checkout_folder(self._scratch) as place:
            checkout = Checkout(place, commits, self._floor, lender, self._cache if runs else None)
            if not all(isinstance(check, ManualCheck) for check in checks):
                await checkout.fill()
            looks = [check for check in checks if is_look(check)]
            results = {check.id: await self._result(check.id, look(check, checkout.tree), checkout) for check in looks}
            isolated = None
            if isolation is not None:
                await checkout.open_to_programs()
                stage = CheckEnvironment(
                    checkout, commits.commit, isolation, self._settings.environment, self._environ, self._redaction,
                    self._types, self._settings.memory_limit, self._settings.service_url, request.strangers,
                    request.base, self._settings.install, self._cache,
                )  # fmt: skip
                for number, check in enumerate(runs):
                    if number:
                        await checkout.restore()
                    results[check.id] = await self._result(check.id, stage.carry_out(check), checkout)
                isolated = stage.isolated
        return tuple(results[check.id] for check in checks), isolated

    async def _result(self, check_id: str, carrying_out: Awaitable[CheckFinding], checkout: Checkout) -> CheckResult:
        began = anyio.current_time()
        try:
            found = await carrying_out
        except (AshepError, OSError) as problem:
            found = report_error(str(problem))
        took = round((anyio.current_time() - began) * 1000)
        lacking = checkout.lacking[:_NOTES] if found.status in FAILING else ()
        message = " ".join(clean(self._redaction.text("; ".join([found.message, *map(str, lacking)]))).split())
        cause = await to_thread.run_sync(likely_cause, found, checkout.lacking)
        text = clean(self._redaction.text(found.output))
        if len(text) > _LARGEST + 20_000:  # what programs print has been capped before, with room for a few words more
            text = f"{text[: _LARGEST // 2]}\n… the middle is left out …\n{text[-_LARGEST // 2 :]}"
        output = await self._keep(text) if text else ""
        return CheckResult(check_id, found.status, message[:_LONGEST], took, output, cause=cause)
