"""What an issue's metadata says of its verifications: the last status, and a log to which entries are only added.

Whoever reads a list of issues from bd reads their metadata, too: so the log is short, and its entries are.
"""

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue, ValidationError

from ashep.core.closing_notes import LOG, NAMED, appended, moment
from ashep.core.criteria import hash_of
from ashep.core.evidence import summary_of
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


def entry(verified: Verified, at: datetime) -> Entry:
    """Give the entry of a verification; its number is that of a first one."""
    made = verified.verification
    summary = summary_of(made.results)
    failures = [one.check_id for one in made.results if one.status in ("failed", "error")]
    return Entry(
        n=1,
        at=moment(at),
        status=verified.status,
        branch=verified.candidate.name,
        commit=made.commit,
        tree=made.tree,
        criteria=hash_of(verified.criteria),
        passed=summary.passed,
        failed=summary.failed,
        skipped=summary.skipped,
        failures=tuple(failures[:NAMED]),
    )


def added(metadata: Mapping[str, JsonValue], new: Entry) -> dict[str, JsonValue]:
    """Give the keys to be set so that the log ends with this entry, and every other stays as it is."""
    return {STATUS: new.status, LOG: appended(metadata.get(LOG), [new.model_dump(mode="json", exclude={"n"})])}
