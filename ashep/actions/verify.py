"""Verify an issue for whoever asks: the command, and the service. The daemon has `ashep.daemon.effects.work` for it.

Nothing is decided here, and nothing is written: what came of it is given back.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from ashep.adapters.git.fetch import Candidate, differ
from ashep.core.facts.delivery import Status, Verification, status_of, summary_of
from ashep.core.policy.checks import Criteria, hash_of
from ashep.ports.verifier import Verifier, VerifyRequest, verify_against_base

MOST = 32 * 1024**2
"""Characters of what checks printed that are held; the oldest texts go first."""


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
class Verified:
    """What the checks of an issue found."""

    issue: str
    criteria: Criteria
    candidate: Candidate
    verification: Verification
    changed: bool | None
    """Whether the candidate differs from its base; None: that is not known."""

    @property
    def status(self) -> Status:
        """What it comes to."""
        return status_of(self.verification.results)

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
                asdict(one) | {"type": types.get(one.check_id), "output": outputs.text(one.output)}
                for one in made.results
            ],
            "summary": asdict(summary_of(made.results)),
        }


async def verify(verifier: Verifier, issue: str, criteria: Criteria, candidate: Candidate) -> Verified:
    """Carry the checks out, on the base too where one is known; raises `AshepError` where no checkout can be made."""
    request = VerifyRequest(candidate.repository, candidate.commit, candidate.base, criteria)
    changed = await differ(candidate.repository, candidate.commit, candidate.base)
    return Verified(issue, criteria, candidate, await verify_against_base(verifier, request), changed)
