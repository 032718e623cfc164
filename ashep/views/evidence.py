"""Evidence about an issue's work, and its way to the base, in words: for `ashep why`, `status`, `show` and `report`."""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

from typing import TYPE_CHECKING

from ashep.core.facts.delivery import CheckResult, has_run
from ashep.views import Text
from ashep.views.times import local

if TYPE_CHECKING:
    from ashep.store import row_types
    from ashep.views import json_types

SHORT = 12
"""Characters of a hash that a line shows."""

KINDS = ("verified", "waived", "unverified")
"""Kinds of proof of what was closed."""

SANDBOX = {True: ", in a sandbox", False: ", without a sandbox", None: ""}
"""Where the programs of checks ran; None: none ran."""

_LANDINGS = {
    "queued": "waits for its turn to land on {onto}",
    "integrating": "is brought onto the newest {onto}",
    "verifying": "is checked as it is to land{on}",
    "moving": "stands on the newest {onto}; the branch is to follow",
    "opening": "is to be merged into {onto}; its pull request is being opened",
    "pull_request": "is to be merged into {onto} by people, as {commit}",
    "waits": "waits for {onto}",
    "landed": "landed on {onto} as {commit}",
    "branch": "stays on {onto}, at {commit}",
    "unchanged": "landed nowhere: nothing was changed",
}


def kind_of(verification: row_types.VerificationJson | None) -> str:
    """Say what proof there is of a closed issue: `verified`, `waived` (a person let something pass), `unverified`.

    Checks that pass where nothing was changed verify no work, and neither do those that all passed before it.
    """
    if not verification:
        return "unverified"
    shows = any(one["status"] == "passed" and not one["proves_nothing"] for one in verification["checks"])
    holds = verification["status"] == "passing" and verification["changed"] and shows
    return "waived" if verification["waived"] else "verified" if holds else "unverified"


def in_short(verification: json_types.ProofJson | None) -> str:
    """Say in a few words what was found, and of what, of what `counted` gives; empty: nothing is known."""
    if not verification:
        return ""
    tree = f" in tree {verification['tree'][:SHORT]}" if verification["tree"] else ""
    nothing = "; the work changes nothing" if verification["changed"] is False else ""
    let_pass = f"; a person let pass: {', '.join(verification['waived'])}" if verification["waived"] else ""
    summary = verification["summary"]
    if not summary["total"]:
        return f"unverified{tree}{nothing}{let_pass}"
    before = f", {verification['green_before']} of them before any work, too" if verification["green_before"] else ""
    before += "".join(f"; {said}" for said in verification["on_base"])
    passed = f"{summary['passed']} of {summary['total']} checks passed"
    return f"{verification['status']}: {passed}{tree}{before}{nothing}{let_pass}"


def is_untested(body: row_types.IssueBodyJson) -> bool:
    """Whether work landed, or stays on its branch, on which no check ran."""
    verification, stands = body.get("verification"), body.get("landing")
    ran = verification is not None and has_run(check["status"] for check in verification["checks"])
    return stands is not None and stands["state"] != "unchanged" and not ran


def landing(stands: row_types.LandingJson | None) -> str:
    """Say how far the work is on its way; empty: it is on none."""
    if not stands:
        return ""
    onto, commit = stands["onto"] or "its branch", (stands["commit"] or "")[:SHORT]
    on = f" on {onto}" if stands["onto"] else ""
    due = f", tried again at {local(stands['due'])}" if stands["due"] else ""
    return _LANDINGS[stands["state"]].format(onto=onto, commit=commit, on=on) + due


def counted(verification: row_types.VerificationJson | None) -> json_types.ProofJson | None:
    """Give the evidence without what each check said."""
    if verification is None:
        return None
    checks = verification["checks"]
    statuses = [check["status"] for check in checks]
    passed, skipped = statuses.count("passed"), statuses.count("skipped")
    failed = len(checks) - passed - skipped
    return {
        "status": verification["status"], "tree": verification["tree"], "changed": verification["changed"],
        "waived": verification["waived"],
        "green_before": sum(check["status"] == "passed" and check["proves_nothing"] for check in checks),
        "on_base": [f"{check['check_id']} {blame(check)}" for check in checks if check["on_base"]],
        "summary": {"total": len(checks), "passed": passed, "failed": failed, "skipped": skipped},
    }  # fmt: skip


def blame(check: row_types.CheckJson) -> str:
    """Say why no work is to blame for what a check found; empty: that is not known."""
    return CheckResult("", check["status"], "", 0, cause=check["cause"], on_base=check["on_base"]).blame


def changes(files: row_types.FilesJson | None) -> json_types.WorkChangesJson | None:
    """Say how many files a change touches, and lines; None: it is not known."""
    if files is None:
        return None
    added, removed = files.get("lines") or (None, None)
    many = files["more"] + len(files["created"]) + len(files["modified"]) + len(files["deleted"])
    return {"files": many, "added": added, "removed": removed}


def evidence(body: row_types.IssueBodyJson, text: Text) -> json_types.EvidenceJson:
    """Give an issue's evidence and landing for a program; what failed with what it printed, where that is kept."""
    verification = body.get("verification")
    if verification is not None and (log := verification["log"]):
        verification = verification.copy()
        verification["log"] = text(log)
    return {
        "verification": verification, "verification_log": body.get("verification_log", []),
        "files": body.get("files"), "flags": body.get("flags", []), "landing": body.get("landing"),
    }  # fmt: skip


def lines(told: json_types.EvidenceJson) -> list[str]:
    """Give evidence and landing as lines."""
    verification = told["verification"]
    said = [f"evidence: {in_short(counted(verification))}"] if verification else []
    if verification and verification["tree"]:
        sandbox = SANDBOX[verification["isolated"]]
        said.append(f"  of the git tree {verification['tree']}, commit {verification['commit']}{sandbox}")
        if verification["changed"] is False:
            said.append("  the work changes nothing: its tree is that of its base")
        for one in verification["checks"]:
            let_pass = " (a person let it pass)" if one["check_id"] in verification["waived"] else ""
            nothing = " (it passed before any work, too)" if one["proves_nothing"] else ""
            nothing = f" (it {blame(one)}: no work is to blame)" if one["on_base"] else nothing
            said.append(f"  {one['check_id']}: {one['status']}{let_pass}{nothing}: {one['message']}")
        said += [f"    {line}" for line in (verification["log"] or "").splitlines()]
    said += [f"its work touches: {', '.join(told['flags'])}"] if told["flags"] else []
    way = landing(told["landing"])
    return [*said, f"its work {way}"] if way else said
