"""Row of an issue in the table `issues`: a pure function of the World. It imports no database."""

import json
from dataclasses import asdict
from typing import Any

from ashep.core.analysis.answer_preview import answer_effects
from ashep.core.analysis.issue_status import account
from ashep.core.facts.commands import IntegrateWork, MoveBase, OpenPullRequest, VerifyWork
from ashep.core.facts.records import format_time
from ashep.core.runs.requests import asked_now, question_of
from ashep.core.state.delivery import Landing
from ashep.core.state.flow import Flow
from ashep.core.state.world import World

Row = dict[str, Any]


def issue_row(world: World, issue: str) -> Row:
    """Make the row of an issue."""
    stands, flow = account(world, issue), world.flows[issue]
    view = flow.issue
    body = {
        "status": view.status, "type": view.type, "priority": view.priority, "labels": view.labels,
        "assignee": view.assignee, "blocked_by": view.blocked_by, "created_at": format_time(view.created_at),
        "stage": flow.stage, "cycle": flow.counters.cycle, "visit": flow.visit, "attempt": flow.attempt,
        "runs": flow.counters.runs, "question": _question(world, flow), "verification": verification(flow),
        "verification_log": looked_into(flow), "flags": flow.work.own.flags if flow.work.own is not None else (),
        "files": asdict(flow.work.own.files) if flow.work.own is not None and flow.work.own.files is not None else None,
        "landing": landing(flow), "tree": resting(flow),
        "deadline": format_time(flow.run.deadline) if flow.run is not None and flow.run.deadline else None,
    }  # fmt: skip
    return {
        "issue": issue, "title": stands.title, "state": stands.state, "code": stands.code, "reason": stands.reason,
        "since": format_time(stands.since) if stands.since else None, "phase": stands.phase, "policy": stands.policy,
        "run": stands.run, "due": format_time(stands.due) if stands.due else None, "body": as_json(body),
    }  # fmt: skip


def _question(world: World, flow: Flow) -> Row | None:
    """The question that is open, of a phase, or of a run that waits in its session, and where answers to it lead."""
    question, pending = flow.question, asked_now(flow)
    if pending is not None and flow.run is not None:
        asks, asked = pending.request.asks, flow.run.asks.waits_since or flow.since
        one = asks[0] if len(asks) == 1 else None  # of several each wants a line
        told: Row = {"phase": flow.run.phase, "text": question_of(pending.request), "kind": "input"}
        told |= {
            "about": pending.request.kind,
            "options": one.options if one else (),
            "several": bool(one and one.several),
        }
    elif question is not None:
        kind = "input" if question.leads_back else "approval"
        asked, told = question.asked, {"phase": question.phase, "text": question.text, "kind": kind}
        told |= {"about": question.about, "options": (), "several": False}
    else:
        return None
    follows = [asdict(way) for way in answer_effects(world, flow)]
    return told | {"asked": format_time(asked) if asked else None, "follows": follows}


def as_json(data: Row | list[Row]) -> str:
    """Write a value as the tables hold it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


_STEPS = ((IntegrateWork, "integrating"), (VerifyWork, "verifying"), (MoveBase, "moving"), (OpenPullRequest, "opening"))


def verification(flow: Flow) -> Row | None:
    """Give what was last found about the work; None: nothing, and nothing was to be."""
    evidence = flow.work.evidence
    if evidence is None:
        closed = flow.stage == "closed" and flow.code == "shepherd"
        nothing: Row = {"commit": None, "tree": None, "changed": None, "isolated": None, "checks": (), "log": None}
        return {"status": "unverified", **nothing, "waived": flow.work.waived} if closed else None
    checks = [
        {
            "check_id": result.check_id, "status": result.status, "message": result.message,
            "duration_ms": result.duration_ms,
            "proves_nothing": result.proves_nothing, "cause": result.cause, "on_base": result.on_base,
        }
        for result in evidence.results
    ]  # fmt: skip
    return {
        "status": evidence.status, "commit": evidence.commit, "tree": evidence.tree, "changed": evidence.changed,
        "isolated": evidence.isolated, "checks": checks, "log": evidence.log or None, "waived": flow.work.waived,
    }  # fmt: skip


def looked_into(flow: Flow) -> list[Row]:
    """Give the verifications of the work, the oldest first."""
    return [{**asdict(proof), "at": format_time(proof.at)} for proof in flow.work.proofs]


def landing(flow: Flow) -> Row | None:
    """Give how far the work is on its way to the base; None: it is not, or not yet."""
    if flow.work.landing is not None and not flow.work.landing.landed:
        onto, due = flow.work.landing.onto or flow.work.landing.into or None, flow.work.landing.due
        commit = (
            flow.work.pull.head if flow.work.pull is not None and flow.work.landing.asked else flow.work.landing.commit
        )
        made = {"onto": onto, "commit": commit or None, "due": format_time(due) if due else None}
        return {"state": _state(flow, flow.work.landing), **made}
    landed, own = flow.work.landed, flow.work.own
    stays = own.head if own is not None and flow.stage == "closed" and flow.code == "shepherd" else ""
    if flow.work.is_empty and (landed or stays):
        return {"state": "unchanged", "onto": None, "commit": None, "due": None}
    if landed is not None:
        return {"state": "landed", "onto": landed[0], "commit": landed[1], "due": None}
    if stays:
        return {"state": "branch", "onto": None, "commit": stays, "due": None}
    return None


def _state(flow: Flow, landing: Landing) -> str:
    if landing.due is not None:
        return "waits"
    idle = "queued" if landing.onto else "pull_request" if landing.asked else "branch"
    return next((word for kind, word in _STEPS if any(isinstance(one, kind) for one in flow.open)), idle)


def resting(flow: Flow) -> Row | None:
    """Say when the tree of a closed issue goes by itself, and why it was kept before; None: it has none that does."""
    rest = flow.work.own.rest if flow.work.own is not None and flow.stage == "closed" else None
    if rest is None or flow.work.own is None:
        return None
    return {
        "branch": flow.work.own.branch,
        "due": format_time(rest.due) if rest.due is not None else None,
        "why": rest.why,
    }
