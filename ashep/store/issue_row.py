"""Row of an issue in the table `issues`: a pure function of the World. It imports no database."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ashep.core.analysis.answer_preview import answer_effects
from ashep.core.analysis.issue_status import account
from ashep.core.facts.commands import IntegrateWork, MoveBase, OpenPullRequest, VerifyWork
from ashep.core.facts.records import format_time
from ashep.core.runs.requests import get_open_request, question_of
from ashep.core.state.delivery import Landing
from ashep.core.state.flow import Flow
from ashep.core.state.world import World
from ashep.store import row_types

Row = dict[str, Any]


def issue_row(world: World, issue: str) -> Row:
    """Make the row of an issue."""
    stands, flow = account(world, issue), world.flows[issue]
    view, workspace = flow.issue, flow.work.own
    body: row_types.IssueBodyJson = {
        "status": view.status, "type": view.type, "priority": view.priority, "labels": [*view.labels],
        "assignee": view.assignee, "blocked_by": [*view.blocked_by], "created_at": format_time(view.created_at),
        "stage": flow.stage, "cycle": flow.counters.cycle, "visit": flow.visit, "attempt": flow.attempt,
        "runs": flow.counters.runs, "question": _question(world, flow), "verification": verification(flow),
        "verification_log": looked_into(flow), "flags": [*workspace.flags] if workspace is not None else [],
        "files": row_types.FilesJson(**asdict(workspace.files)) if workspace is not None and workspace.files else None,
        "landing": landing(flow), "tree": resting(flow), "deadline": time_or_none(flow.run and flow.run.deadline),
    }  # fmt: skip
    return {
        "issue": issue, "title": stands.title, "state": stands.state, "code": stands.code, "reason": stands.reason,
        "since": time_or_none(stands.since), "phase": stands.phase, "policy": stands.policy,
        "run": stands.run, "due": time_or_none(stands.due), "body": as_json(body),
    }  # fmt: skip


def time_or_none(time: datetime | None) -> str | None:
    """Write a time as the tables hold it."""
    return None if time is None else format_time(time)


def _question(world: World, flow: Flow) -> row_types.QuestionJson | None:
    """The question that is open, of a phase, or of a run that waits in its session, and where answers to it lead."""
    question, pending = flow.question, get_open_request(flow)
    follows = [row_types.WayJson(**asdict(way)) for way in answer_effects(world, flow)]
    if pending is not None and flow.run is not None:
        asks, since = pending.request.asks, flow.run.asks.waits_since or flow.since
        ask = asks[0] if len(asks) == 1 else None  # of several each wants a line
        return {
            "phase": flow.run.phase, "text": question_of(pending.request), "kind": "input",
            "about": pending.request.kind, "options": [*ask.options] if ask else [],
            "several": bool(ask and ask.several), "asked": time_or_none(since), "follows": follows,
        }  # fmt: skip
    if question is None:
        return None
    return {
        "phase": question.phase, "text": question.text, "kind": "input" if question.leads_back else "approval",
        "about": question.about, "options": [], "several": False, "asked": time_or_none(question.asked),
        "follows": follows,
    }  # fmt: skip


def as_json(data: object) -> str:
    """Write a value as the tables hold it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


_STEPS = ((IntegrateWork, "integrating"), (VerifyWork, "verifying"), (MoveBase, "moving"), (OpenPullRequest, "opening"))


def verification(flow: Flow) -> row_types.VerificationJson | None:
    """Give what was last found about the work; None: nothing, and nothing was to be."""
    evidence, waived = flow.work.evidence, [*flow.work.waived]
    if evidence is None:
        if flow.stage != "closed" or flow.code != "shepherd":
            return None
        return {
            "status": "unverified", "commit": None, "tree": None, "changed": None, "isolated": None, "checks": [],
            "log": None, "waived": waived,
        }  # fmt: skip
    checks: list[row_types.CheckJson] = [
        {
            "check_id": result.check_id, "status": result.status, "message": result.message,
            "duration_ms": result.duration_ms,
            "proves_nothing": result.proves_nothing, "cause": result.cause, "on_base": result.on_base,
        }
        for result in evidence.results
    ]  # fmt: skip
    return {
        "status": evidence.status, "commit": evidence.commit, "tree": evidence.tree, "changed": evidence.changed,
        "isolated": evidence.isolated, "checks": checks, "log": evidence.log or None, "waived": waived,
    }  # fmt: skip


def looked_into(flow: Flow) -> list[row_types.LookedIntoJson]:
    """Give the verifications of the work, the oldest first."""
    return [{**row_types.LookedIntoJson(**asdict(proof)), "at": format_time(proof.at)} for proof in flow.work.proofs]


def landing(flow: Flow) -> row_types.LandingJson | None:
    """Give how far the work is on its way to the base; None: it is not, or not yet."""
    way, landed, workspace = flow.work.landing, flow.work.landed, flow.work.own
    if way is not None and not way.landed:
        commit = flow.work.pull.head if flow.work.pull is not None and way.asked else way.commit
        return {
            "state": _state(flow, way), "onto": way.onto or way.into or None, "commit": commit or None,
            "due": time_or_none(way.due),
        }  # fmt: skip
    by_us = flow.stage == "closed" and flow.code == "shepherd"
    head = workspace.head if workspace is not None and by_us else ""
    if flow.work.is_empty and (landed or head):
        return {"state": "unchanged", "onto": None, "commit": None, "due": None}
    if landed is not None:
        return {"state": "landed", "onto": landed[0], "commit": landed[1], "due": None}
    return {"state": "branch", "onto": None, "commit": head, "due": None} if head else None


def _state(flow: Flow, landing: Landing) -> str:
    if landing.due is not None:
        return "waits"
    idle = "queued" if landing.onto else "pull_request" if landing.asked else "branch"
    return next((word for kind, word in _STEPS if any(isinstance(command, kind) for command in flow.open)), idle)


def resting(flow: Flow) -> row_types.RestingTreeJson | None:
    """Say when the tree of a closed issue goes by itself, and why it was kept before; None: it has none that does."""
    workspace = flow.work.own if flow.stage == "closed" else None
    if workspace is None or workspace.rest is None:
        return None
    return {"branch": workspace.branch, "due": time_or_none(workspace.rest.due), "why": workspace.rest.why}
