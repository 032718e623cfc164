"""What is shown of an issue's evidence, and of its way to the base: parts of the rows of `ashep.store.tables`.

They say nothing that depends on other issues, so that a row is right for as long as nothing happens to its own.
"""

from dataclasses import asdict
from typing import Any

from ashep.core.facts.commands import IntegrateWork, MoveBase, OpenPullRequest, VerifyWork
from ashep.core.facts.records import format_time
from ashep.core.state.delivery import Landing
from ashep.core.state.flow import Flow

Row = dict[str, Any]

_STEPS = ((IntegrateWork, "integrating"), (VerifyWork, "verifying"), (MoveBase, "moving"), (OpenPullRequest, "opening"))


def verification(flow: Flow) -> Row | None:
    """Give what was last found about the work; None: nothing, and nothing was to be."""
    evidence = flow.evidence
    if evidence is None:
        closed = flow.stage == "closed" and flow.code == "shepherd"
        nothing: Row = {"commit": None, "tree": None, "changed": None, "isolated": None, "checks": (), "log": None}
        return {"status": "unverified", **nothing, "waived": flow.waived} if closed else None
    checks = [
        {
            "check_id": one.check_id, "status": one.status, "message": one.message, "duration_ms": one.duration_ms,
            "proves_nothing": one.proves_nothing,
        }
        for one in evidence.results
    ]  # fmt: skip
    return {
        "status": evidence.status, "commit": evidence.commit, "tree": evidence.tree, "changed": evidence.changed,
        "isolated": evidence.isolated, "checks": checks, "log": evidence.log or None, "waived": flow.waived,
    }  # fmt: skip


def looked_into(flow: Flow) -> list[Row]:
    """Give the verifications of the work, the oldest first."""
    return [{**asdict(one), "at": format_time(one.at)} for one in flow.proofs]


def landing(flow: Flow) -> Row | None:
    """Give how far the work is on its way to the base; None: it is not, or not yet."""
    if flow.landing is not None and not flow.landing.landed:
        onto, due = flow.landing.onto or flow.landing.into or None, flow.landing.due
        commit = flow.pull.head if flow.pull is not None and flow.landing.asked else flow.landing.commit
        made = {"onto": onto, "commit": commit or None, "due": format_time(due) if due else None}
        return {"state": _state(flow, flow.landing), **made}
    if flow.landed is not None:
        return {"state": "landed", "onto": flow.landed[0], "commit": flow.landed[1], "due": None}
    if flow.stage == "closed" and flow.code == "shepherd" and flow.own is not None and flow.own.head:
        return {"state": "branch", "onto": None, "commit": flow.own.head, "due": None}
    return None


def _state(flow: Flow, landing: Landing) -> str:
    if landing.due is not None:
        return "waits"
    idle = "queued" if landing.onto else "pull_request" if landing.asked else "branch"
    return next((word for kind, word in _STEPS if any(isinstance(one, kind) for one in flow.open)), idle)


def resting(flow: Flow) -> Row | None:
    """Say when the tree of a closed issue goes by itself, and why it was kept before; None: it has none that does."""
    rest = flow.own.rest if flow.own is not None and flow.stage == "closed" else None
    if rest is None or flow.own is None:
        return None
    return {"branch": flow.own.branch, "due": format_time(rest.due) if rest.due is not None else None, "why": rest.why}
