"""Verify an issue for whoever asks: the command, the service, and agents in places (`ashep.actions.verify_requests`).
The daemon has `ashep.daemon.effects.work` for it.

Nothing is decided here, and nothing is written: what came of it is given back.
"""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.adapters.git.remotes import VerifiedCommit, differ, resolve
from ashep.config import ConfigErrors, load
from ashep.config.checks.parser import Wrong, read_criteria, wrong_pattern
from ashep.config.checks.writer import WrittenChecks, put
from ashep.core.delivery.base_checks import checks_of
from ashep.core.facts.delivery import CAUSES, CheckResult, Status, Verification, status_of, summary_of
from ashep.core.policy.checks import Criteria, hash_of
from ashep.core.policy.settings import Settings
from ashep.core.text import aligned
from ashep.daemon.effects.work import to_check
from ashep.errors import AshepError
from ashep.factories import FOLDER, verifier_of
from ashep.ports.tracker import AnnotatedIssue, Annotations, IssuePatch, Seen, Tracker
from ashep.ports.verifier import Verifier, VerifyRequest, verify_against_base, verify_before_work

CODES = {"passing": 0, "failing": 1, "blocked": 69}
"""Exit codes; 69 is that of an audit, too, that could not look at everything."""

COLUMNS = ("CHECK", "STATUS", "TOOK", "FOUND")

SHOWN = 20
"""Lines of what a check printed that are shown to people and agents, the last ones; `--json` holds all."""

PROVES_NOTHING = "; it passed before the work, too, and proves nothing"

MOST = 32 * 1024**2
"""Characters of what checks printed that are held; the oldest texts go first."""

LONGEST_ON_BASE = 110.0
"""Seconds for all checks of all policies: who waits for `install` is not to wait for a long suite."""


class Outputs:
    """What checks printed, for as long as somebody wants to show it: it is not made durable."""

    def __init__(self, redact: Callable[[str], str] = str, most: int = MOST) -> None:
        self._redact, self._most, self._held = redact, most, 0
        self._texts: dict[str, str] = {}

    async def keep(self, text: str) -> str:
        """Keep a text and give its hash, as the blobs of a journal do."""
        redacted = self._redact(text)
        name = sha256(redacted.encode(errors="replace")).hexdigest()
        if name not in self._texts:
            self._texts[name] = redacted
            self._held += len(redacted)
        while self._held > self._most and len(self._texts) > 1:
            self._held -= len(self._texts.pop(next(iter(self._texts))))
        return name

    def text(self, name: str) -> str:
        """Give a text that was kept; empty: there is none of that name."""
        return self._texts.get(name, "")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the checks of an issue found."""

    issue: str
    criteria: Criteria
    candidate: VerifiedCommit
    verification: Verification
    changed: bool | None
    """Whether the candidate differs from its base; None: that is not known."""

    @property
    def status(self) -> Status:
        """What it comes to."""
        return status_of(self.verification.results)

    @property
    def counts(self) -> str:
        """How many checks came to what."""
        summary = summary_of(self.verification.results)
        return f"({summary.passed} passed, {summary.failed} failed, {summary.skipped} skipped)"

    @property
    def about(self) -> list[str]:
        """What it holds for."""
        made, base = self.verification, self.candidate.base
        since = f"since {base[:12]}" if base else "without a base"
        unchanged = ["it changes nothing: its tree is that of its base"] if self.changed is False else []
        return [f"{self.candidate.name}: commit {made.commit[:12]}, {since}, tree {made.tree}", *unchanged]

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """What each check found, below `COLUMNS`."""
        rows = list[tuple[str, str, str, str]]()
        for result in self.verification.results:
            more = PROVES_NOTHING if result.proves_nothing else f"; it {result.blame}" if result.on_base else ""
            rows.append((result.check_id, result.status, f"{result.duration_ms} ms", result.message + more))
        return rows

    def printed(self, outputs: Outputs) -> list[str]:
        """Give the last lines of what checks printed that failed."""
        lines = list[str]()
        for one in self.verification.results:
            said = outputs.text(one.output).rstrip("\n")
            if one.fails and said:
                lines += [f"{one.check_id} printed:", *(f"    {line}" for line in said.split("\n")[-SHOWN:])]
        return lines

    def as_text(self, outputs: Outputs) -> str:
        """Give it for people and agents."""
        head = f"{self.issue}: {self.status} {self.counts}"
        return "\n".join([head, *self.about, *aligned(COLUMNS, self.rows), *self.printed(outputs)]) + "\n"

    def as_json(self, outputs: Outputs) -> dict[str, Any]:
        """Give it for programs; the keys are those of docs/codes.md."""
        made = self.verification
        types = {check.id: check.type for check in self.criteria.checks}
        return {
            "issue": self.issue,
            "status": self.status,
            "candidate": self.candidate.name,
            "commit": made.commit,
            "tree": made.tree,
            "base": self.candidate.base,
            "criteria": hash_of(self.criteria),
            "changed": self.changed,
            "isolated": made.isolated,
            "checks": [
                asdict(result) | {"type": types.get(result.check_id), "output": outputs.text(result.output)}
                for result in made.results
            ],
            "summary": asdict(summary_of(made.results)),
        }


async def verify(
    verifier: Verifier,
    issue: str,
    criteria: Criteria,
    candidate: VerifiedCommit,
    strangers: frozenset[str] | None = None,
) -> CheckReport:
    """Carry the checks out, on the base too where one is known; raises `AshepError` where no checkout can be made.

    `strangers`: names of those that stand in the issue's text; None: all.
    """
    strangers = frozenset(check.id for check in criteria.checks) if strangers is None else strangers
    request = VerifyRequest(candidate.repository, candidate.commit, candidate.base, criteria, strangers=strangers)
    changed = await differ(candidate.repository, candidate.commit, candidate.base)
    return CheckReport(issue, criteria, candidate, await verify_against_base(verifier, request), changed)


class NoSuchIssue(AshepError):
    """There is no such issue."""


class NoChecks(AshepError):
    """An issue's acceptance criteria hold no block of checks."""


def name_criteria(issue: str) -> str:
    """Name an issue's acceptance criteria as errors do."""
    return f"acceptance criteria of {issue}"


def types(settings: Settings) -> tuple[str, ...]:
    """Give the types of checks that the user registered."""
    return tuple(settings.verification.types)


async def read_issue(tracker: Tracker, issue: str) -> Seen:
    """Read an issue; `NoSuchIssue` where there is none."""
    snapshot = await tracker.issue(issue)
    if snapshot is None:
        raise NoSuchIssue(f"there is no issue {issue}")
    return snapshot


async def read_annotated(annotations: Annotations, issue: str) -> AnnotatedIssue:
    """Read the annotations of an issue; `NoSuchIssue` where there is none."""
    annotated = await annotations.read(issue)
    if annotated is None:
        raise NoSuchIssue(f"there is no issue {issue}")
    return annotated


def read_checks(snapshot: Seen, registered: Collection[str], wrong: Wrong = wrong_pattern) -> Criteria:
    """Read the checks of an issue. Raises `ConfigErrors` where they are wrong, `NoChecks` where there are none."""
    issue = snapshot.issue.id
    name = name_criteria(issue)
    criteria = read_criteria(snapshot.text.acceptance, name, registered, wrong)
    if criteria is None:
        raise NoChecks(f"the {name} hold no block of checks (`ashep criteria {issue} --set FILE` puts one)")
    return criteria


async def set_checks(annotations: Annotations, issue: str, given: WrittenChecks, known: Collection[str]) -> bool:
    """Put checks into an issue's acceptance criteria, and leave every other word; False: they stand there so already.

    Raises `ConfigErrors` where it is not clear what they replace, and `NoSuchIssue`.
    """
    found = await read_annotated(annotations, issue)
    text = put(found.acceptance, given, name_criteria(issue), known)
    if text == found.acceptance:
        return False
    await annotations.rewrite(issue, IssuePatch(acceptance=text))
    return True


def at_work(found: Seen) -> bool:
    """Whether the daemon has begun the issue, so that other checks count than those that are put there now."""
    return found.issue.stamp is not None and found.issue.status in ("in_progress", "blocked")


async def verify_base(project: Path, settings: Settings) -> list[CheckLine]:
    """Run the checks of each policy where work begins, and name those that no work is to blame for."""
    try:
        configuration = await to_thread.run_sync(load, project / FOLDER)
    except (ConfigErrors, AshepError):
        return []  # another line tells it
    policies = {name: policy for name, policy in configuration.policies.policies.items() if checks_of(policy)}
    if not policies or settings.worker.workspace == "shared":
        return []
    lines, names, base = list[CheckLine](), ", ".join(policies), settings.landing.base
    with anyio.move_on_after(LONGEST_ON_BASE) as bound:
        try:
            async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
                verifier = verifier_of(project, settings, Outputs().keep, scratch=Path(scratch))
                commit = await resolve(project, f"refs/heads/{base}" if base else "HEAD")
                for name, policy in policies.items():
                    request = VerifyRequest(project, commit, commit, to_check(policy, "", "")[0])
                    found = await verify_before_work(verifier, request)
                    lines += [_base_line(name, base or "HEAD", result) for result in found.results if result.on_base]
        except AshepError as error:
            failure = f"the checks of {names} cannot be run: {error}"
            return [CheckLine("warning", "checks", failure, "mend what it names")]
    if bound.cancelled_caught:
        why = f"the checks of {names} take longer than {LONGEST_ON_BASE:.0f} s: they run again while agents work"
        return [*lines, CheckLine("ok", "checks", why)]
    return lines or [CheckLine("ok", "checks", f"the checks of {names} pass before any work")]


def _base_line(name: str, base: str, result: CheckResult) -> CheckLine:
    likely, remedy = CAUSES[result.cause]
    because = f" (likely cause: {likely})" if likely else ""
    what = f"{result.check_id} of the policy {name} fails on {base}, before any work{because}: {result.message}"
    return CheckLine("warning", "checks", what, remedy or "mend it there, or say `on_base_failure` in the policy")
