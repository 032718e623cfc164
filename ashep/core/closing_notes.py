"""What stands in the metadata of an issue that is closed: for programs that read the tracker and not ashep.

Whoever reads a list of issues reads their metadata, too: it is short. The journal has all of it.
"""

from pydantic import JsonValue

from ashep.core.evidence import summary_of
from ashep.core.flow import Flow
from ashep.core.impact import FileMap

NAMED = 10
"""Checks that are named."""

ROOM = 8_000
"""Characters of all paths."""

Notes = dict[str, JsonValue]


def notes_of(flow: Flow, files: FileMap | None) -> Notes:
    """Give the keys for an issue that is about to be closed; none where it was worked on in the shared tree.

    `files`: what its work touches; None: that is not known.
    """
    if flow.own is None:
        return {}
    notes: Notes = {"verification_status": "unverified", "impact_flags": list(flow.own.flags)}
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
    return notes | ({"ticket_files": _short(files)} if files is not None else {})


def _short(files: FileMap) -> JsonValue:
    """Name files while there is room, and count the others."""
    room, more, named = ROOM, files.more, dict[str, JsonValue]()
    for kind, paths in (("created", files.created), ("modified", files.modified), ("deleted", files.deleted)):
        shown = list[JsonValue]()
        for path in paths:
            room -= len(path)
            if room >= 0:
                shown.append(path)
            else:
                more += 1
        named[kind] = shown
    return named | {"more": more}
