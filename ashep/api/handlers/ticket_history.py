"""History of an issue's verifications in its metadata: the last status, and a log to which entries are only added.

Whoever reads a list of issues from bd reads their metadata, too: so the log is short, and its entries are.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from pydantic import JsonValue, TypeAdapter, ValidationError

from ashep.actions.verify import CheckReport
from ashep.api.schemas.verification import Entry, LastCheck, Standing
from ashep.core.delivery.closing_metadata import LAST, LOG, STATUS, appended, entry_of, last_of
from ashep.core.policy.checks import hash_of
from ashep.core.state.delivery import proof_of

_STANDING: TypeAdapter[Standing] = TypeAdapter(Standing)
_CHECKS = TypeAdapter(tuple[LastCheck, ...])


def read(metadata: Mapping[str, JsonValue]) -> tuple[Entry, ...]:
    """Read the log; what somebody else wrote there is left out."""
    found = metadata.get(LOG)
    entries: list[Entry] = []
    for one in found if isinstance(found, list) else ():
        with suppress(ValidationError):
            entries.append(Entry.model_validate(one))
    return tuple(entries)


def standing(metadata: Mapping[str, JsonValue]) -> Standing:
    """Say what the last verification came to."""
    log = read(metadata)
    with suppress(ValidationError):
        return log[-1].status if log else _STANDING.validate_python(metadata.get(STATUS, "pending"))
    return "pending"


def last_checks(metadata: Mapping[str, JsonValue]) -> tuple[LastCheck, ...]:
    """Read what each check said; what somebody else wrote there is left out."""
    found = metadata.get(LAST)
    with suppress(ValidationError):
        return _CHECKS.validate_python(found.get("checks", ()) if isinstance(found, dict) else ())
    return ()


def added(metadata: Mapping[str, JsonValue], verified: CheckReport, at: datetime) -> dict[str, JsonValue]:
    """Give the keys to be set so that the log ends with this verification, and every other entry stays as it is."""
    made = verified.verification
    new = proof_of(at, verified.candidate.name, made.commit, made.tree, hash_of(verified.criteria), made.results)
    last = last_of(made.commit, made.tree, made.results)
    return {STATUS: new.status, LAST: last, LOG: appended(metadata.get(LOG), [entry_of(new)])}
