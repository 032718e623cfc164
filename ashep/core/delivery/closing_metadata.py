"""What stands in the metadata of an issue that is closed, or waits for a person: for programs that read no ashep.

Whoever reads a list of issues reads their metadata, too: it is short. The journal has all of it.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC

from pydantic import JsonValue

from ashep.core.facts.delivery import ROOM, CheckResult, summary_of
from ashep.core.state.delivery import MOST_PROOFS, Proof, failing
from ashep.core.state.flow import Flow

NAMED = 10
"""Checks that are named."""

SAID = 200
"""Characters of what a check said."""

LOG = "verification_log"
"""The key of the log."""

STATUS = "verification_status"
"""The key of what the last verification came to."""

LAST = "verification"
"""The key of the last verification and what each check said."""

UNCHANGED = "nothing was changed"
"""What is said of the landing of work that is none."""

WITH_COMMENT = ("pull.",)
"""Comments that begin so begin a wait that no write to the issue begins: the keys are written just before them."""

Notes = dict[str, JsonValue]


def notes_of(flow: Flow, *, closed: bool = True) -> Notes:
    """Give the keys for an issue that is about to be closed, or to wait, but for the log; none where it was worked on
    in the shared tree.
    """
    own = flow.work.own
    if own is None:
        return {}
    notes: Notes = {STATUS: "unverified" if closed else "pending", "impact_flags": list(own.flags)}
    evidence = flow.work.evidence
    if evidence is not None:
        notes[STATUS] = evidence.status
        notes[LAST] = last_of(evidence.commit, evidence.tree, evidence.results, flow.work.waived)
    if flow.work.landed is not None:
        notes["landed"] = {"onto": flow.work.landed[0], "commit": flow.work.landed[1]}
    if closed:
        notes["landing"] = UNCHANGED if flow.work.is_empty else "landed" if flow.work.landed else "on its branch"
    if closed and flow.work.is_empty:
        notes["landed"] = None  # what a former cycle of the issue left there
    if own.files is not None:
        files = own.files
        kinds = {"created": files.created, "modified": files.modified, "deleted": files.deleted}
        notes["ticket_files"] = {**{kind: list(paths) for kind, paths in kinds.items()}, "more": files.more}
    return notes


def last_of(commit: str, tree: str, results: tuple[CheckResult, ...], waived: tuple[str, ...] = ()) -> Notes:
    """Sum a verification up, with what each check said while there is room: those that passed go first."""
    summary, room, shown = summary_of(results), ROOM, set[str]()
    for one in sorted(results, key=lambda one: one.status == "passed"):
        room -= len(one.check_id) + min(len(one.message), SAID)
        if room >= 0:
            shown.add(one.check_id)
    checks: list[JsonValue] = [
        {
            "check_id": result.check_id,
            "status": result.status,
            "message": result.message[:SAID],
            "duration_ms": result.duration_ms,
        }
        for result in results
        if result.check_id in shown
    ]
    return {
        "commit": commit, "tree": tree, "passed": summary.passed, "failed": summary.failed,
        "skipped": summary.skipped, "failures": list(failing(results)[:NAMED]), "waived": list(waived[:NAMED]),
        "checks": checks, "more": len(results) - len(checks),
    }  # fmt: skip


# --- the log ------------------------------------------------------------------------------------------------------


def entry_of(found: Proof) -> Notes:
    """Give what is noted of a verification, without its number."""
    at = found.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {**asdict(found), "failures": list(found.failures[:NAMED]), "at": at}


def escalation_of(flow: Flow, most: int) -> Notes | None:
    """Give the entry that says that a person is asked about work that falls short, with the last result; None: nobody
    is. `most`: how often the phase lets it fall short.
    """
    question = flow.question
    evidence = flow.work.evidence
    if question is None or question.about not in ("proof", "base") or not flow.work.proofs:
        return None
    reason = "max_verification_attempts" if flow.work.unproven >= most else "nothing_changed"
    if evidence is not None and not evidence.blamed(flow.work.waived):
        reason = "base_failure"
    last = replace(flow.work.proofs[-1], at=question.asked)
    return {**entry_of(last), "action": "escalated", "reason": reason, "attempts": flow.work.unproven}


def appended(before: JsonValue, new: Iterable[Notes]) -> list[JsonValue]:
    """Give the log with these entries at its end; the numbers of the others stay."""
    log = _entries(before)
    for one in new:
        numbers = (number if isinstance(number := entry.get("n"), int) else 0 for entry in log)
        log.append({"n": max(numbers, default=0) + 1, **one})
    return list(log[-MOST_PROOFS:])


def unknown(before: JsonValue, entries: Iterable[Notes]) -> list[Notes]:
    """Give the entries that the log does not have: an issue waits and is closed, and a write may be repeated.

    They are those after the last one that it has: earlier ones may have been dropped from it.
    """
    known = [{key: value for key, value in entry.items() if key != "n"} for entry in _entries(before)]
    new = list[Notes]()
    for one in entries:
        new = [] if one in known else [*new, one]
    return new


def _entries(log: JsonValue) -> list[Notes]:
    return [entry for entry in log if isinstance(entry, dict)] if isinstance(log, list) else []
