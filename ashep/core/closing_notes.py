"""What stands in the metadata of an issue that is closed: for programs that read the tracker and not ashep.

Whoever reads a list of issues reads their metadata, too: it is short. The journal has all of it.
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC

from pydantic import JsonValue

from ashep.core.evidence import summary_of
from ashep.core.flow import Flow
from ashep.core.proof import MOST_PROOFS, Proof

NAMED = 10
"""Checks that are named."""

LOG = "verification_log"
"""The key of the log."""

Notes = dict[str, JsonValue]


def notes_of(flow: Flow) -> Notes:
    """Give the keys for an issue that is about to be closed, but for the log; none where it was worked on in the shared
    tree.
    """
    own = flow.own
    if own is None:
        return {}
    notes: Notes = {"verification_status": "unverified", "impact_flags": list(own.flags)}
    evidence = flow.evidence
    if evidence is not None:
        summary = summary_of(evidence.results)
        notes["verification_status"] = evidence.status
        notes["verification"] = {
            "commit": evidence.commit, "tree": evidence.tree, "passed": summary.passed, "failed": summary.failed,
            "skipped": summary.skipped, "failures": list(evidence.failed[:NAMED]), "waived": list(flow.waived[:NAMED]),
        }  # fmt: skip
    if flow.landed is not None:
        notes["landed"] = {"onto": flow.landed[0], "commit": flow.landed[1]}
    if own.files is not None:
        files = own.files
        kinds = {"created": files.created, "modified": files.modified, "deleted": files.deleted}
        notes["ticket_files"] = {**{kind: list(paths) for kind, paths in kinds.items()}, "more": files.more}
    return notes


# --- the log ------------------------------------------------------------------------------------------------------


def entry_of(found: Proof) -> Notes:
    """Give what is noted of a verification, without its number."""
    at = found.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {**asdict(found), "failures": list(found.failures[:NAMED]), "at": at}


def appended(before: JsonValue, new: Iterable[Notes]) -> list[JsonValue]:
    """Give the log with these entries at its end; the numbers of the others stay."""
    log = _entries(before)
    for one in new:
        log.append({"n": max((_number(other) for other in log), default=0) + 1, **one})
    return list(log[-MOST_PROOFS:])


def unknown(before: JsonValue, entries: Iterable[Notes]) -> list[Notes]:
    """Give the entries that the log does not have: an issue is closed again, and a write may be repeated."""
    known = [{key: value for key, value in one.items() if key != "n"} for one in _entries(before)]
    return [one for one in entries if one not in known]


def _entries(log: JsonValue) -> list[Notes]:
    return [one for one in log if isinstance(one, dict)] if isinstance(log, list) else []


def _number(entry: Notes) -> int:
    number = entry.get("n")
    return number if isinstance(number, int) else 0
