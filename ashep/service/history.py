"""What an issue's metadata says of its verifications: the last status, and a log to which entries are only added.

Whoever reads a list of issues from bd reads their metadata, too: so the log is short, and its entries are.
"""

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue, ValidationError

from ashep.core.closing_notes import LOG, appended, entry_of
from ashep.core.criteria import hash_of
from ashep.core.proof import proof_of
from ashep.service.models import Entry
from ashep.verifying import Verified

STATUS = "verification_status"
"""The key of the status."""


def read(metadata: Mapping[str, JsonValue]) -> tuple[Entry, ...]:
    """Read the log; what somebody else wrote there is left out."""
    found = metadata.get(LOG)
    entries: list[Entry] = []
    for one in found if isinstance(found, list) else ():
        try:
            entries.append(Entry.model_validate(one))
        except ValidationError:
            continue
    return tuple(entries)


def added(metadata: Mapping[str, JsonValue], verified: Verified, at: datetime) -> dict[str, JsonValue]:
    """Give the keys to be set so that the log ends with this verification, and every other entry stays as it is."""
    made = verified.verification
    new = proof_of(at, verified.candidate.name, made.commit, made.tree, hash_of(verified.criteria), made.results)
    return {STATUS: new.status, LOG: appended(metadata.get(LOG), [entry_of(new)])}
