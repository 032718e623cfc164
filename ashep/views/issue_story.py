"""Story of an issue, why it is where it is: `ashep why`, a sentence for each kind of record, in the order they came in.

`SENTENCES` and `SILENT` together name every kind of record; a test sees to that. A sentence is what happened and why.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ashep.core.facts.command_descriptions import WORDS
from ashep.views import Data, Database, Text, evidence
from ashep.views.status import STATES, told_since
from ashep.views.times import local

if TYPE_CHECKING:
    from ashep.store import row_types
    from ashep.views import json_types

Said = tuple[str, str] | None
"""What happened, and the reason; None: not worth a line."""


@dataclass(slots=True)
class Telling:
    """What is kept in mind while a story is told."""

    view: Data | None = None
    """The issue as the tracker showed it last."""
    writes: dict[str, str] = field(default_factory=dict[str, str])
    """What each write was for, by its key."""
    open: dict[str, str] = field(default_factory=dict[str, str])
    """Commands without an answer so far."""
    traces: dict[str, int] = field(default_factory=dict[str, int])


# --- sentences ----------------------------------------------------------------------------------------------------


def _describe_changes(telling: Telling, body: Data) -> Said:
    before, view = telling.view, body["view"]
    if before is None:
        holder = f"assigned to {view['assignee']}" if view.get("assignee") else ""
        return f"first seen: {view['type']}, priority {view['priority']}, {view['status']}", holder
    changes = _changes(before, view)
    return ("the tracker shows " + ", ".join(changes), "") if changes else None


def _changes(before: Data, after: Data) -> list[str]:
    """Say what differs between two views of the issue."""
    said: list[str] = []
    for key, word in (("status", "status"), ("assignee", "assigned to"), ("priority", "priority"), ("title", "title")):
        if before.get(key) != after.get(key):
            said.append(f"{word} {before.get(key) or 'nobody'} → {after.get(key) or 'nobody'}")
    old, new = set(before.get("labels", ())), set(after.get("labels", ()))
    said += [f"+{label}" for label in sorted(new - old)] + [f"-{label}" for label in sorted(old - new)]
    if before.get("blocked_by") != after.get("blocked_by"):
        said.append(f"it depends on {', '.join(after.get('blocked_by', ())) or 'nothing'}")
    more = after.get("comments", 0) - before.get("comments", 0)
    return [*said, f"{more} new comment{'s' if more > 1 else ''}"] if more > 0 else said


def _tree(_: Telling, body: Data) -> Said:
    commits, dirty = body.get("commits", ()), body["tree"].get("dirty", ())
    if body.get("moment") == "before" and (new := body["tree"].get("untracked")):
        several = f"{len(new)} untracked paths stand" if len(new) > 1 else "an untracked path stands"
        shown = [*new[:5], *(["…"] if len(new) > 5 else [])]
        return f"warning: {several} in the work tree, and the run may take them into its commits", ", ".join(shown)
    if body.get("moment") != "after":
        return None
    left = f"; left uncommitted: {', '.join(path for path, _ in dirty[:5])}" if dirty else ""
    return f"the run made {len(commits)} commit{'' if len(commits) == 1 else 's'}{left}", ", ".join(commits)[:200]


def _turn(_: Telling, body: Data) -> Said:
    if body.get("people"):
        return "a person wrote in the session", ""
    if body["state"] != "finished":
        return None
    return f"the agent's turn ended ({body.get('tokens', 0)} tokens)", body.get("error") or ""


def _planned(_: Telling, body: Data) -> Said:
    others = "; ".join(f"not {agent}: {why}" for agent, why in body.get("others", ()))
    return f"run {body['run']} goes to {body['agent']}", "; ".join(filter(None, (body["why"], others)))


def _rejected(_: Telling, body: Data) -> Said:
    if body["then"] == "continue":
        return "the turn ended before its work: the agent is asked to go on in the same session", body["why"]
    then = "asked once more in the same session" if body["then"] == "recover" else f"{body['extractor']} is to read it"
    return f"the answer held no valid outcome: {then}", body["why"]


def _ended(_: Telling, body: Data) -> Said:
    outcome: Data = body.get("outcome") or {}
    said = " ".join(filter(None, (outcome.get("result"), outcome.get("verdict"))))
    summary = f"“{outcome['summary']}”" if outcome.get("summary") else ""
    reason = " ".join(filter(None, (body["why"], summary)))
    return f"run {body['run']} {body['state']}" + (f": {said}" if said else ""), reason


def _describe_retry(_: Telling, body: Data) -> Said:
    if (code := body.get("code", "retry")) == "retry":
        return f"{body['phase']} is tried again at {local(body['due'])}", body["why"]
    awaited = "its provider takes work again" if code.startswith("provider_") else "there is budget"
    return f"{body['phase']} goes on when {awaited}", body["why"]


def _describe_write(telling: Telling, body: Data) -> Said:
    title = telling.writes.get(body["key"], "written to the tracker")
    return title, ", ".join(_changes(telling.view, body["view"])) if telling.view else ""


def _answer(_: Telling, body: Data) -> Said:
    said = "; ".join(f"{comment['author']}: {comment['text']}" for comment in body.get("comments", ()))
    return ("comments were read", said) if said else None


def _asks(request: Data) -> str:
    if request["kind"] == "permission":
        return f"leave to use {request['tool']}: {request.get('detail') or ', '.join(request.get('patterns', ()))}"
    return "; ".join(asked["text"] for asked in request.get("asks", ()))


def _judged(_: Telling, body: Data) -> Said:
    if body["verdict"] == "ask":
        return None  # to whom it is put is told
    said = "; ".join(", ".join(answer) for answer in body.get("answers", ()))
    words = {"allow": "the tool is allowed", "deny": "the tool is denied", "answer": f"the answer is: {said}"}
    return words[body["verdict"]], body["why"]


def _adopted_criteria(_: Telling, body: Data) -> Said:
    if body.get("error"):
        return "its checks cannot be read", body["error"]
    if not body["hash"]:
        return None
    many = "1 check of its own is" if body["checks"] == 1 else f"{body['checks']} checks of its own are"
    return f"{many} adopted", f"criteria {body['hash'][:12]}"


def _verified(_: Telling, body: Data) -> Said:
    found = [f"{one['check_id']} {one['status']}" for one in body.get("results", ())]
    found = (["the work changes nothing"] if not body["changed"] else []) + (found or ["nothing was to be checked"])
    proves = [one["check_id"] for one in body.get("results", ()) if one.get("proves_nothing")]
    empty = f"; passed on the base already: {', '.join(proves)}" if proves else ""
    blameless = [one["check_id"] for one in body.get("results", ()) if one.get("on_base")]
    empty += f"; failed on the base, too: {', '.join(blameless)}" if blameless else ""
    return "; ".join(found) + empty, f"tree {body['tree']}{evidence.SANDBOX[body.get('isolated')]}"


_WRITES = {
    "work": "the tracker shows its phase",
    "ask": "the question stands in the tracker",
    "park": "parked in the tracker",
    "give_back": "given back in the tracker",
    "close": "closed in the tracker",
}

_ENDS = {
    "none": "it goes on once they have been quiet for a while",
    "ours": "it goes on when the label is taken off",
    "theirs": "it goes on when they take the label off",
}


def _pull_seen(_: Telling, body: Data) -> Said:
    said = [f"{one['by']}: {one['kind'].replace('_', ' ')}" for one in body["remarks"]]
    ci = f"CI is {body['ci']}" + (f" ({', '.join(body['failing'])})" if body["failing"] else "")
    return f"its pull request is {body['state']}; {ci}", "; ".join(said[-5:])


def _is(fact: str, reason: str = "{why}") -> Callable[[Telling, Data], Said]:
    """Make a sentence of two patterns."""
    return lambda _, body: (fact.format_map(body), reason.format_map(body))


_RECLAIMED = {True: "taken back", False: "renewed meanwhile: it stays"}


def _removed(_: Telling, body: Data) -> Said:
    saved = ", ".join(body.get("saved", ()))
    return "its work tree and branch are gone: the base has it all", f"saved: {saved}" if saved else ""


def _rests(_: Telling, body: Data) -> Said:
    until = f"until {local(body['due'])}" if body.get("due") else "for good"
    return f"its work tree stands {until}", body.get("why", "")


def _sealed(_: Telling, body: Data) -> Said:
    count = len(body["commits"])
    left: Data = body.get("story") or {}
    marked = (f"its story says {left['status'] or 'no status'}, which is {left['state']}",) if left.get("state") else ()
    told = "; ".join((f"tree {body['tree']}", *marked, *body.get("refused", ()), *body.get("told", ())))
    return f"its branch has {count} commit{'' if count == 1 else 's'}", told


SENTENCES: dict[str, Callable[[Telling, Data], Said]] = {
    "IssueSeen": _describe_changes,
    "IssueGone": _is("the tracker does not list it any more", ""),
    "TreeSeen": _tree,
    "TreePrepared": _is("works in {path}, on the branch {branch}", "which began at {base}"),
    "TreeSealed": _sealed,
    "TreeLeft": _is("what it left could not be sealed, and stays in its tree"),
    "TreeRests": _rests,
    "TreeRemoved": _removed,
    "TreeKept": _is("its work tree stays"),
    "CriteriaAdopted": _adopted_criteria,
    "CriteriaChanged": _is("the checks of the issue were changed"),
    "VerificationWanted": _is("goes to verification"),
    "WorkVerified": _verified,
    "WorkIntegrated": _is("its work stands on {base} as {commit}; nothing has moved yet", "tree {tree}"),
    "WorkConflicted": lambda _, body: (
        "its work and the base contradict each other",
        ", ".join(body["paths"]) or "they have no common history",
    ),
    "WorkLanded": lambda _, body: (
        f"nothing was changed, and nothing landed on {body['base_branch']}"
        if body.get("empty")
        else f"{body['base_branch']} holds its work" + (" already" if body.get("already") else ""),
        "; ".join((*(() if body.get("empty") else (f"at {body['commit']}",)), *body.get("told", ()))),
    ),
    "LandingRefused": _is("its work did not land ({code})"),
    "PullRequestOpened": _is("{url} asks for its work to be merged into {base}", "at {head}"),
    "PullRequestSeen": _pull_seen,
    "PullRequestReturned": _is("its pull request sends it back ({kind})"),
    "PullRequestMerged": _is("its pull request is merged"),
    "TurnSeen": _turn,
    "IssueHeld": _is("held ({code})"),
    "IssueTaken": _is("taken under the policy {policy}"),
    "IssueAdopted": _is("adopted in {phase}, visit {visit}, as the tracker shows it"),
    "TakeoverWanted": _is("{holder}'s claim is to be taken back"),
    "LeaseLost": _is("the lease was lost"),
    "LeaseExpired": lambda _, body: (f"{body['holder']}'s lease ran out at {local(body['expired'])}", ""),
    "OrphanStopped": lambda _, body: ("the session of the run before is at rest", "") if body["found"] else None,
    "IssueReclaimed": lambda _, body: (f"{body['holder']}'s claim was {_RECLAIMED[body['done']]}", ""),
    "CycleBegan": _is("cycle {cycle} begins"),
    "PhaseEntered": _is("enters {phase}, visit {visit}"),
    "RunPlanned": _planned,
    "RunWithdrawn": _is("run {run} does not start ({code})"),
    "OutcomeRejected": _rejected,
    "DiagnosisWanted": _is("it has stalled: {agent} is to find out why"),
    "TurnDied": _is("the turn died and is started again with the same ids"),
    "PromptAbandoned": _is("the prompt was never begun; a new one is sent"),
    "DeadlineReached": _is("the time of run {run} is up", ""),
    "RunEnded": _ended,
    "SessionTaken": lambda _, body: (f"a person has the session: {_ENDS[body['label']]}", body["why"]),
    "SessionSeen": lambda _, body: (
        "the person's turn runs" if body["busy"] else f"a person's messages: {len(body['people'])}",
        "",
    ),
    "ReleaseWanted": _is("the person is done"),
    "SessionReleased": _is("the issue goes on"),
    "RetryScheduled": _describe_retry,
    "IssueCancelled": lambda _, body: (f"{body['by']} cancelled {body.get('run') or 'it'}", ""),
    "BudgetWarned": _is("the budget of this {scope} is nearly used up"),
    "BudgetReached": _is("the budget of this {scope} is used up"),
    "NoticeWanted": _is("people are to be told: {event}", ""),
    "WriteDelayed": lambda _, body: (f"a write to the tracker waits until {local(body['due'])}", body["why"]),
    "PersonReminded": lambda _, body: (f"reminds people of its question: {body['question']}", body["why"]),
    "PersonAsked": lambda _, body: (f"asks a person, until {local(body['due'])}: {body['question']}", body["why"]),
    "PersonAnswered": _is("{actor} answered: {answer}"),
    "AnswerRefused": lambda _, body: (
        f"an answer counts for nothing: {', '.join(body['labels']) or 'a comment'}",
        body["why"],
    ),
    "ChangeJudged": lambda _, body: (f"{'put back' if body['refused'] else 'changed'}: {body['why']}", ""),
    "RequestOpened": lambda _, body: (f"its session asks: {_asks(body['request'])}", ""),
    "RequestGone": _is("what its session asked was answered there, or is over", ""),
    "ReadRefused": _is("the agent server refuses to show its {what}: what its events tell is judged"),
    "RequestJudged": _judged,
    "InputWanted": lambda _, body: (f"waits for a person, until {local(body['due'])}: {body['question']}", body["why"]),
    "InputEnded": _is("goes on"),
    "RequestAnswered": lambda _, body: (
        None if body.get("taken", True) else ("the answer came too late: its session asks no more", "")
    ),
    "IssueParked": _is("parked ({code})"),
    "IssueGivenBack": _is("given back ({code})"),
    "IssueLeft": _is("left to people ({code})"),
    "IssueFinished": _is("finished"),
    "IssueClosed": _is("closed by {by}"),
    "EffectFailed": _is("failed: {key}", "{error}"),
    "IssueClaimed": lambda _, body: (f"claimed in the tracker as {body['view'].get('assignee')}", ""),
    "ClaimRefused": _is("the claim was refused", "{error}"),
    "IssueWritten": _describe_write,
    "GuardRefused": _is("a person was faster: nothing was written", ""),
    "WriteRefused": _is("the tracker refused the write", "{error}"),
    "CommentPosted": _is("a comment was posted ({name})", ""),
    "IssueCreated": _is("created {id}, which was discovered on the way", ""),
    "LabelsTakenOff": _is("answer labels were taken off", ""),
    "AnswerRead": _answer,
    "SessionOpened": lambda _, body: (f"session {body['session']} {'goes on' if body.get('reused') else 'opened'}", ""),
    "PromptSent": _is("prompt {n} was delivered", ""),
    "TurnBegun": _is("the turn of prompt {n} began", ""),
    "TurnStopped": _is("the session was stopped", ""),
    "SourceSeen": lambda _, body: (f"{body['view']['url']} shows it {body['view']['state']}", ""),
    "SourceWordSeen": lambda _, body: (f"{body['word']['voice']['login']} says /ashep {body['word']['verb']}", ""),
    "SourceHasCommit": _is("the base at its source holds {commit}", ""),
    "SourceAdmitted": _is("its source asks for it"),
    "SourceHeld": _is("its source does not let it begin ({code})"),
    "SourceWordJudged": lambda _, body: (
        "what was said at its source counts" if body["counts"] else "what was said at its source counts for nothing",
        body["why"],
    ),
    "IssueMirrored": _is("the tracker shows it as its source does", ""),
    "SaidAtSource": _is("a comment was posted at its source, or brought up to date ({name})", ""),
    "ClosedAtSource": _is("it is closed at its source, too", ""),
    "SourceFailed": _is("failed: {key}", "{error}"),
}
"""What is said of each kind of record."""

SILENT = frozenset(
    {
        # about no issue in particular
        "JournalBegun", "DaemonStarted", "DaemonStopped", "Adopted", "TimerDue", "ClockJumped", "TrackerSeen",
        "JournalPruned", "DiskSeen", "MachineSeen", "TrackerLost", "RunnerSeen", "ChangeHinted", "ReadySeen",
        "ReadyChanged", "BacklogHeld", "FolderLeft", "SourceStood", "SourceDue",
        "EditRefused", "EditMended", "AccountAudited", "ProviderRecovered", "ProviderRefused", "WorkPaused",
        "WorkResumed", "QuietSeen", "NoticesGathered", "NoticesDelayed", "NoticesGivenUp", "NoticeSent", "NoticeFailed",
        "ServerFailed", "ServerEnded", "ServerMemorySeen", "ServerRestartPlanned", "RecycleWanted", "BaseChecked",
        "QuotaSeen", "RepositorySeen",
        # what comes of them is told
        "CommentWanted", "CreationWanted", "PromptPrepared", "ChangeDoubted", "AuthorsRead",
        # commands: their answers tell; those without one stand in the last line
        *WORDS,
    }
)  # fmt: skip
"""What is deliberately not told."""


# --- the story ----------------------------------------------------------------------------------------------------


def tell_story(database: Database | None, issue: str, text: Text) -> json_types.StoryJson | None:
    """Tell the story of an issue; None: nothing is known of it. `text` reads a blob."""
    if database is None:
        return None
    rows = database.execute("SELECT * FROM facts WHERE issue = ? ORDER BY seq", [issue]).fetchall()
    stands = database.execute("SELECT * FROM issues WHERE issue = ?", [issue]).fetchone()
    if stands is None:  # what a source shows may be no issue in the tracker
        return None
    telling, lines, words = Telling(), list["json_types.SentenceJson"](), None
    issue_body: row_types.IssueBodyJson = json.loads(stands["body"])
    for row in rows:
        body = json.loads(row["body"])
        words = body.get("text") if row["type"] in ("IssueClaimed", "IssueWritten") and body.get("text") else words
        if (line := _line(telling, row, body)) is not None:
            lines.append(line)
    return {
        "issue": issue, "title": stands["title"],
        "depends_on": _dependencies(database, issue_body, text(words) if words else None),
        "kept_since": told_since(database, issue_body["created_at"]), "story": lines,
        **evidence.evidence(issue_body, text),
        "now": {
            "state": stands["state"], "code": stands["code"], "reason": stands["reason"], "since": stands["since"],
            "phase": stands["phase"], "policy": stands["policy"], "run": stands["run"], "due": stands["due"],
            "under_way": sorted(set(telling.open.values())),
        },
    }  # fmt: skip


def last_answer(database: Database, issue: str) -> json_types.GivenAnswerJson | None:
    """Say who answered last what was asked about an issue, and when; None: no person did, as far as records go."""
    query = (
        "SELECT at, coalesce(json_extract(body, '$.answer'), 'answered') AS answer,"
        " coalesce(json_extract(body, '$.actor'), json_extract(body, '$.by')) AS by FROM facts WHERE issue = ? AND"
        " (type = 'PersonAnswered' OR type = 'RequestJudged' AND json_extract(body, '$.by') <> '')"
        " ORDER BY seq DESC LIMIT 1"
    )
    row = database.execute(query, [issue]).fetchone()
    return None if row is None else {"answer": row["answer"], "by": row["by"], "at": row["at"]}


def explain_unknown(database: Database | None, issue: str) -> str:
    """Say why there is no story: what a source does not let begin is in no tracker. `issue` may be its number there."""
    query = (
        "SELECT issue, body FROM facts WHERE type IN ('SourceHeld', 'SourceAdmitted') AND (issue = ? OR issue LIKE ?)"
        " ORDER BY seq DESC LIMIT 1"
    )
    number = issue.lstrip("#").removeprefix("gh-")
    row = database.execute(query, [issue, f"%-gh-{number}"]).fetchone() if database is not None else None
    if row is None:
        return f"nothing is known of an issue {issue}"
    return f"{row['issue']} is in no tracker yet: {json.loads(row['body'])['why']}"


def _line(telling: Telling, row: sqlite3.Row, body: Data) -> json_types.SentenceJson | None:
    kind: str = row["type"]
    run, key = body.get("run"), body.get("key")
    if kind == "RunPlanned":
        telling.traces[body["run"]] = row["seq"]
    if kind in WORDS:
        telling.open[body["key"]] = WORDS[kind]
        if kind == "WriteIssue":
            telling.writes[body["key"]] = _WRITES[body["kind"]]
        return None
    if key is not None:
        telling.open.pop(key, None)
    elif kind == "TreeSeen":
        telling.open.pop(f"{run}/tree/{body.get('moment')}", None)
    said = SENTENCES[kind](telling, body) if kind in SENTENCES else None
    if "view" in body and not kind.startswith("Source"):
        telling.view = body["view"]
    if said is None:
        return None
    seq: int = row["seq"]
    return {
        "seq": seq, "at": row["at"], "type": kind, "fact": said[0], "reason": said[1],
        "trace": telling.traces.get(run or "", seq), "decision": row["kind"] == "decision",
    }  # fmt: skip


def _dependencies(
    database: Database, body: row_types.IssueBodyJson, words: str | None
) -> list[json_types.DependencyJson]:
    """Give the issues that it depends on, of every kind, as its own words had them when it was last written to."""
    edges = [(other, "blocks") for other in body["blocked_by"]]
    known = json.loads(words).get("dependencies", ()) if words else ()
    edges += [(edge["on"], edge["type"]) for edge in known if edge["type"] != "blocks"]
    query = "SELECT (SELECT state FROM issues WHERE issue = ?) AS state"
    return [
        {"issue": other, "type": kind, "state": database.execute(query, [other]).fetchone()["state"]}
        for other, kind in edges
    ]


def closing(told: json_types.StoryJson) -> list[str]:
    """Give the last lines: what it depends on, and how it stands now."""
    said = [
        f"{edge['type']}: {edge['issue']}" + (f" ({STATES[edge['state']]})" if edge["state"] else "")
        for edge in told["depends_on"]
    ]
    now = told["now"]
    due = f", until {local(now['due'])}" if now["due"] else ""
    under_way = f" (under way: {', '.join(now['under_way'])})" if now["under_way"] else ""
    last = f"now: {STATES[now['state']]}{due}: {now['reason']}{under_way}"
    return [f"depends on {', '.join(said)}", last] if said else [last]
