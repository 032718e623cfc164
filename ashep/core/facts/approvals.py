"""Signed approvals: what a person signs, and how a comment carries it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, TypeAdapter, ValidationError

NAMESPACE = "ashep-approve"
"""What the signatures are for, as `ssh-keygen -Y` names it: a signature for anything else is none of these."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person signs. A change of any field voids the signature."""

    repository: str
    """The instance of the journal, which no other repository has."""
    issue: str
    question: str
    """The phase that asks, and when it asked."""
    commit: str
    """The commit that was sealed last; empty: there is no work yet."""
    base: str
    """The branch where the work is to land, and the commit with which it is compared."""
    waived: tuple[str, ...]
    """The checks that are let pass."""
    policy: str
    """The SHA-256 of the issue's policy."""
    expires: Annotated[datetime, AwareDatetime]

    @property
    def text(self) -> str:
        """The text that is signed: always the same for the same approval."""
        return json.dumps(_APPROVAL.dump_python(self, mode="json"))


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature of an approval."""

    approval: Approval
    armor: str
    """The signature, as `ssh-keygen` writes it."""
    signer: str = ""
    """Whose key made it; empty: no key that counts."""


_APPROVAL: TypeAdapter[Approval] = TypeAdapter(Approval)
_SIGNED = re.compile(
    r"^(\{.*\})\n(-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]{1,8000}-----END SSH SIGNATURE-----)$", re.MULTILINE
)


def signatures_in(comment: str) -> Iterator[Signature]:
    """Read the signatures that a comment holds; nobody has verified them."""
    for text, armor in _SIGNED.findall(comment):
        with suppress(ValidationError):
            yield Signature(_APPROVAL.validate_json(text), armor)
