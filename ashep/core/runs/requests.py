"""What becomes of what a session asks: rules say it, answers that were prepared, a person, or the end of their time.

Only one request of a run is put to a person at a time; each has its own end, counted from when it was seen. Where
nobody answers, a tool is denied, and a question is answered by a sentence that says how to go on: to reject it would
end the turn, and so would a denial without a sentence (facts/opencode.md 7).
"""

import dataclasses
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, get_args

from ashep.core.delivery.workspaces import speaks_for_itself
from ashep.core.facts import runs
from ashep.core.facts.commands import AnswerRequest
from ashep.core.facts.issues import AnswerRefused, CommentWanted
from ashep.core.facts.requests import Asked, Request
from ashep.core.facts.tracker import AnswerRead, Comment
from ashep.core.facts.vocabulary import Fact, ReadRefused
from ashep.core.issues.human_overrides import is_named, is_person, unnamed
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.permissions import fitting, judge, may_ask
from ashep.core.policy.policies import PermissionRule, Phase, PreparedAnswer
from ashep.core.runs.fold import Fold, of_run
from ashep.core.state.flow import Flow, Folds, Posture, idled
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import MAX_REPORTS
from ashep.core.state.run import Pending, Run, with_asks, with_watch
from ashep.core.state.world import IssueRules, World, phase_of
from ashep.core.text import clean

ADDRESSED = re.compile(r"\s*@ashep\b[:,]?\s*", re.IGNORECASE)
"""How a comment begins that answers."""

SIGNED = re.compile(r"\(ashep answer, [^()\n]*+\)")
"""How one ends that `ashep answer` wrote."""

YES = frozenset({"y", "yes", "ok", "allow", "allowed", "approve", "approved", "once"})
"""What allows a tool: any other text denies it, and is told to the agent."""

GO_ON = (
    "Go on without it. If the work cannot be done without it, report the result `failed`, and say in the summary what "
    "is needed."
)

DECIDE = (
    "Decide yourself what is most sensible, go on, and say in the summary what you assumed. If only a person can "
    "decide it, report `needs_human`."
)

NO_RULE = "no rule allows it"
_TOOL, _MOST_TOOLS = re.compile(r"[A-Za-z0-9_-]{1,40}"), 10  # tools that are named to people, and how many

LATE = "late."
"""How the names of comments begin that say that nobody answered."""


def rules_of(world: World, phase: Phase | None, *, writes: bool) -> tuple[PermissionRule, ...]:
    """The user's rules for a run, the first that fits decides."""
    own = phase.permissions if phase else ()
    return tuple(fitting((*own, *world.settings.permissions), writes=writes))


# --- what rules and prepared answers say ----------------------------------------------------------------------------


def opened(world: World, earlier: Flow, flow: Flow, fact: runs.RequestOpened) -> list[Fact]:
    """Judge a request."""
    run = flow.run
    if run is None or run.id != fact.run or run.ended:
        return []
    apart = run.extract == "open"  # a session of its own, which only reads
    phase = None if apart else phase_of(world, flow)
    rules = rules_of(world, phase, writes=run.access == "write" and not apart)
    if fact.request.kind == "question":
        return [_question(world, run, fact, phase, rules)]
    action, rule = judge(rules, fact.request.tool, fact.request.patterns)
    said = f"`{rule.tool}: {rule.pattern}`" if rule else ""
    if not fact.request.tool:  # the server told of it in a way that nobody can read
        action = "deny"
    if action == "ask":
        return [_ask(world, fact, f"the rule {said} asks a person")]
    if action == "allow":
        return [runs.RequestJudged(fact.issue, run.id, fact.request.id, "allow", f"the rule {said} allows it")]
    why = f"the rule {said} denies it" if rule and fact.request.tool else NO_RULE
    return [runs.RequestJudged(fact.issue, run.id, fact.request.id, "deny", why, message=f"ashep: {why}. {GO_ON}")]


def _question(
    world: World, run: Run, fact: runs.RequestOpened, phase: Phase | None, rules: tuple[PermissionRule, ...]
) -> runs.RequestJudged:
    request = fact.request
    prepared = _prepared(phase, run.asks.used, request)
    if prepared is not None:
        used, answers = prepared
        why = f"answered as {run.phase} has it prepared"
        return runs.RequestJudged(fact.issue, run.id, request.id, "answer", why, answers, used=used)
    if not may_ask(rules):
        why = "a rule denies questions"
        return _judge_unattended(fact.issue, run, request, why, "ashep: nobody answers here.")
    return _ask(world, fact, f"{run.phase} asks")


def _prepared(
    phase: Phase | None, used: tuple[int, ...], request: Request
) -> tuple[tuple[int, ...], tuple[tuple[str, ...], ...]] | None:
    """The prepared answers to all questions of a request, in order; None where one of them has none."""
    taken: list[int] = []
    answers: list[tuple[str, ...]] = []
    for asked in request.asks:
        for place, one in enumerate(phase.answers if phase else ()):
            fits = isinstance(one, str) or one.match.casefold() in asked.text.casefold()
            if fits and place not in (*used, *taken):
                taken.append(place)
                answers.append(chosen(asked, one.answer if isinstance(one, PreparedAnswer) else one))
                break
        else:
            return None
    return tuple(taken), tuple(answers)


def _ask(world: World, fact: runs.RequestOpened, why: str) -> runs.RequestJudged:
    due = world.now + world.settings.questions.deadline
    return runs.RequestJudged(fact.issue, fact.run, fact.request.id, "ask", why, due=due)


def _judge_unattended(issue: str, run: Run, request: Request, why: str, message: str) -> runs.RequestJudged:
    """Nobody answers: a permission is denied, a question answered with a sentence that lets the turn go on."""
    if request.kind == "permission":
        return runs.RequestJudged(issue, run.id, request.id, "deny", why, message=f"{message} {GO_ON}")
    answers = tuple((f"{message} {DECIDE}",) for _ in request.asks)
    return runs.RequestJudged(issue, run.id, request.id, "answer", why, answers)


# --- a person -------------------------------------------------------------------------------------------------------


def get_open_request(flow: Flow) -> Pending | None:
    """The request that is put to a person, as long as that may be answered."""
    if not flow.waits_for_input or flow.run is None or flow.takeover is not None:
        return None
    asks = flow.run.asks
    shown = (pending for pending in asks.requests if pending.request.id == asks.shown)
    return next((pending for pending in shown if pending.verdict == "ask"), None)


_RequestChange = runs.RequestGone | runs.RequestJudged | runs.RequestAnswered


def advance(world: World, earlier: Flow, flow: Flow, fact: _RequestChange) -> list[Fact]:
    """Put the next request to a person, or go on where none is left: after each change of the run's requests."""
    run = flow.run
    if run is None or run.ended or flow.stage != "work":
        return []
    if isinstance(fact, runs.RequestGone) and speaks_for_itself(world, run):
        listed = earlier.run.asks.requests if earlier.run is not None else ()
        if any(pending.request.id == fact.request and pending.verdict == "ask" for pending in listed):
            why = "what a person was asked was answered in the session, and there its agent can answer itself"
            return [runs.RunEnded(flow.issue.id, run.id, "failed", why, error="answered_itself", abort=True)]
    asks = [pending for pending in run.asks.requests if pending.verdict == "ask"]
    if any(pending.request.id == run.asks.shown for pending in run.asks.requests):
        return []  # it stands there, or its answer is on its way
    if not asks:
        return close_requests(flow, "what it asked is answered")
    issue, request, due = flow.issue.id, asks[0].request, asks[0].due or world.now
    question = question_of(request)
    then = "it is denied" if request.kind == "permission" else "the agent is told to decide itself"
    until = f"After {due:%Y-%m-%d %H:%M} UTC {then}."
    text = f"**{run.phase} asks:** {clean(question)}\n\n{_explain_answering(issue, request)}\n\n{until}"
    return [
        runs.InputWanted(issue, run.id, request.id, question, due, f"{run.id} waits in its session"),
        CommentWanted(issue, f"{INPUT}{request.id}", text),
    ]


_TurnOver = runs.OutcomeRejected | runs.TurnDied | runs.PromptAbandoned


def close_turn_requests(world: World, earlier: Flow, flow: Flow, fact: _TurnOver) -> list[Fact]:
    """Wait for nobody once the turn that asked is no more."""
    return close_requests(flow, "the turn in which it asked is over")


def close_requests(flow: Flow, why: str) -> list[Fact]:
    """Wait for nobody any more."""
    run = flow.run
    if run is None or run.asks.waits_since is None or flow.stage != "work":
        return []
    return [runs.InputEnded(flow.issue.id, run.id, why)]


def question_of(request: Request) -> str:
    """Say in words what is asked."""
    if request.kind == "permission":
        what = request.detail or ", ".join(request.patterns)
        return f"may it use {request.tool}: {what}?"
    return "\n\n".join(
        ask.text + "".join(f"\n{number}. {option}" for number, option in enumerate(ask.options, 1))
        for ask in request.asks
    )


def _explain_answering(issue: str, request: Request) -> str:
    ways = f'Answer with `ashep answer {issue} "…"`, or with a comment that begins with `@ashep`'
    if request.kind == "permission":
        return f"{ways}: `yes` allows it this once, anything else denies it and is told to the agent."
    several = ", one line for each question" if len(request.asks) > 1 else ""
    chooses = "; a number chooses an option" if any(ask.options for ask in request.asks) else ""
    return f"{ways}{several}{chooses}."


def read_answers(world: World, flow: Flow, fact: AnswerRead) -> list[Fact]:
    """Look for a person's answer among the comments behind the question."""
    pending, run = get_open_request(flow), flow.run
    if pending is None or run is None:
        return []
    addressed = [(comment, words) for comment in fact.comments if (words := _words(world, comment))]
    answers = [(comment, words) for comment, words in addressed if is_named(world, comment.author)]
    if answers:
        *earlier, (last, words) = answers
        before = "; ".join(f"{comment.author}: {text[:100]}" for comment, text in earlier[-5:])
        before = before and f" (the last answer; before it {before})"
        judged = judged_answer(flow, run, pending.request, words, last.author, before)
        return [dataclasses.replace(judged, judged=tuple(f"comment/{comment.id}" for comment, _ in answers))]
    if early := _early(world, flow, fact):
        why = "an answer stands in front of the question, which came later"
        text = f"A{why[1:]}, and so it does not count. Answer again, please."
        return [
            AnswerRefused(flow.issue.id, (), why, early),
            CommentWanted(flow.issue.id, f"early.{world.seq}", text),
        ]
    # of each comment it is said once that it answers nothing, for its author is not named
    authors = {f"comment/{comment.id}": comment.author for comment, _ in addressed}
    fresh = {name: author for name, author in authors.items() if name not in flow.judged}
    hint = unnamed(world, fresh.values())
    if not hint:
        return []
    text = f"A comment that begins with `@ashep` answers nothing. {hint}"
    refused = AnswerRefused(flow.issue.id, (), hint, tuple(fresh))
    return [refused, CommentWanted(flow.issue.id, f"unheard.{world.seq}", text)]


def _early(world: World, flow: Flow, fact: AnswerRead) -> tuple[str, ...]:
    """Return the answers that were given once the question was open, and before its comment was posted.

    They do not count: the same words may have been meant for an earlier question. A tracker's times are whole seconds.
    """
    since = flow.since.replace(microsecond=0) if flow.since is not None else world.now
    answers = (
        f"comment/{comment.id}"
        for comment in fact.early
        if comment.at >= since and _words(world, comment) and is_named(world, comment.author)
    )
    return tuple(name for name in answers if name not in flow.judged)


def _words(world: World, comment: Comment) -> str:
    """What a comment answers; empty: it is no answer, or no person's."""
    addressed = ADDRESSED.match(comment.text)
    if addressed is None or not is_person(comment.author, world.actor):
        return ""
    words = comment.text[addressed.end() :].strip()
    signed = words.rfind("(ashep answer, ")
    return words[:signed].rstrip() if signed >= 0 and SIGNED.fullmatch(words, signed) else words


def judged_answer(flow: Flow, run: Run, request: Request, words: str, who: str, before: str = "") -> runs.RequestJudged:
    """Make of a person's words the answer to what a session asks."""
    issue, why = flow.issue.id, f"{who} answered: {words[:300]}{before}"
    if request.kind == "question":
        lines = [words] if len(request.asks) == 1 else [line for line in words.split("\n") if line.strip()]
        answers = tuple(
            chosen(asked, lines[place]) if place < len(lines) else (f"ashep: this was not answered. {DECIDE}",)
            for place, asked in enumerate(request.asks)
        )
        return runs.RequestJudged(issue, run.id, request.id, "answer", why, answers, by=who)
    if words.strip(" .!").casefold() in YES:
        return runs.RequestJudged(issue, run.id, request.id, "allow", why, by=who)
    message = f"ashep: a person denies this, and says: {words}"
    return runs.RequestJudged(issue, run.id, request.id, "deny", why, message=message, by=who)


def chosen(asked: Asked, words: str) -> tuple[str, ...]:
    """What an answer chooses: options by number, by name or by how only they begin, else the text itself."""
    words = words.strip()
    parts = [part.strip() for part in words.split(",")] if asked.several else [words]
    found = [_option(asked, part) for part in parts]
    return tuple(option for option in found if option) if all(found) else (words,)


def _option(asked: Asked, words: str) -> str | None:
    if len(words) < 10 and words.isdecimal() and 0 < int(words) <= len(asked.options):
        return asked.options[int(words) - 1]
    same = [option for option in asked.options if option.casefold() == words.casefold()]
    alike = same or [option for option in asked.options if words and option.casefold().startswith(words.casefold())]
    return alike[0] if len(alike) == 1 else None


# --- nobody ---------------------------------------------------------------------------------------------------------


def expired(world: World, flow: Flow) -> list[Fact]:
    """The time for an answer is up: what was asked for is denied, and the run goes on."""
    run = flow.run
    if run is None or run.ended:
        return []
    facts: list[Fact] = []
    bound = format_duration(world.settings.questions.deadline)
    for pending in run.asks.requests:
        if pending.verdict == "ask" and pending.due is not None and pending.due <= world.now:
            message = f"ashep: nobody answered within {bound}."
            facts.append(_judge_unattended(flow.issue.id, run, pending.request, f"nobody answered in {bound}", message))
            told = "Nobody answered in time: the agent was told to go on without an answer."
            facts.append(CommentWanted(flow.issue.id, f"{LATE}{pending.request.id}", told))
    return facts


def withdrawn(world: World, flow: Flow) -> list[Fact]:
    """A person took the label off that says that somebody is waited for: the run is to go on without an answer."""
    run, written, label = flow.run, flow.written, world.settings.labels.needs_input
    stands = written is not None and written.input and flow.target is not None and not flow.unwritten
    if run is None or not stands or not flow.waits_for_input or label in flow.issue.labels:
        return []
    why = f"somebody took the label {label} off"
    return [
        _judge_unattended(flow.issue.id, run, pending.request, why, "ashep: nobody will answer this.")
        for pending in run.asks.requests
        if pending.verdict == "ask"
    ]


# --- what is to be done ---------------------------------------------------------------------------------------------


def listens(flow: Flow) -> str | None:
    """The name of the comment behind which an answer may stand; None: none is waited for, or it is not posted."""
    pending = get_open_request(flow)
    if pending is None or flow.answer_seq >= flow.view_seq:
        return None
    name = f"{INPUT}{pending.request.id}"
    return None if name in dict(flow.comments) else name


def to_answer(flow: Flow) -> AnswerRequest | None:
    """The answer that is to be delivered next."""
    run = flow.run
    if run is None or run.ended:
        return None
    for pending in run.asks.requests:
        if pending.verdict not in (None, "ask"):
            return AnswerRequest(
                f"{run.id}/answer/{pending.request.id}", flow.issue.id, run.id, pending.request.id,
                pending.request.kind, pending.verdict, pending.answers, pending.message, session=run.session or "",
            )  # fmt: skip
    return None


INPUT = "input."
"""How the names of comments begin that put a request to a person."""


def _open(flow: Flow, run: Run, fact: runs.RequestOpened, seq: int, time: datetime) -> Flow:
    return replace(flow, run=with_asks(run, requests=(*run.asks.requests, Pending(fact.request, seq))))


def _unshown(flow: Flow, run: Run, fact: ReadRefused, seq: int, time: datetime) -> Flow:
    fresh = 0 if fact.what == "turn" and fact.as_of >= run.watch.fresh_after else run.watch.fresh_after
    unshown = tuple(dict.fromkeys((*run.asks.unshown, fact.what)))
    return replace(flow, run=with_asks(with_watch(run, fresh_after=fresh), unshown=unshown))


def _fold_input_wanted(flow: Flow, run: Run, fact: runs.InputWanted, seq: int, time: datetime) -> Flow:
    run = with_asks(run, shown=fact.request, waits_since=run.asks.waits_since or time)
    flow = replace(flow, run=run, target=Posture(seq, "ask", run.phase, input=True))
    return replace(flow, why=fact.why, since=time)


def _remove_request(
    flow: Flow, run: Run, fact: runs.RequestGone | runs.RequestAnswered, seq: int, time: datetime
) -> Flow:
    left = tuple(pending for pending in run.asks.requests if pending.request.id != fact.request)
    known = (*flow.requests, fact.request)[-MAX_REPORTS:]
    return replace(flow, run=with_asks(run, requests=left), requests=known)


def _judged(flow: Flow, run: Run, fact: runs.RequestJudged, seq: int, time: datetime) -> Flow:
    def judged(pending: Pending) -> Pending:
        if pending.request.id != fact.request:
            return pending
        return dataclasses.replace(
            pending, verdict=fact.verdict, answers=fact.answers, message=fact.message, due=fact.due
        )

    denied = run.asks.denied if fact.verdict == "deny" else None
    if denied is not None and fact.why == NO_RULE:
        tools = [pending.request.tool for pending in run.asks.requests if pending.request.id == fact.request]
        names = [tool if _TOOL.fullmatch(tool) else "another tool" for tool in tools]  # others' words need a fence
        denied = tuple(dict.fromkeys((*denied, *names)))[:_MOST_TOOLS]
    requests, used = tuple(map(judged, run.asks.requests)), (*run.asks.used, *fact.used)
    run = with_asks(run, requests=requests, used=used, denied=denied)
    return replace(flow, run=run, judged=flow.judged | {*fact.judged})


def _input_ended(flow: Flow, run: Run, fact: runs.InputEnded, seq: int, time: datetime) -> Flow:
    """Nobody is waited for any more: the run's times go on where they stood, and what was to be said is over."""
    waited = time - run.asks.waits_since if run.asks.waits_since is not None else timedelta()
    left = tuple(pending for pending in run.asks.requests if pending.verdict != "ask")
    over = (*flow.requests, *(one.request.id for one in run.asks.requests if one.verdict == "ask"))[-MAX_REPORTS:]
    watch = replace(
        run.watch, doubted=False, sign_due=run.watch.sign_due + waited if run.watch.sign_due else None,
        stall_due=time + run.watch.stall_after if run.watch.stall_after is not None else None,
    )  # fmt: skip
    asks = replace(run.asks, requests=left, shown="", waits_since=None)
    run = replace(run, asks=asks, watch=watch, deadline=run.deadline + waited if run.deadline else None)
    comments = tuple(comment for comment in flow.comments if not comment[0].startswith(INPUT))
    target = Posture(seq, "work", run.phase) if flow.target is not None and flow.target.input else flow.target
    flow = replace(idled(flow, waited), run=run, comments=comments, requests=over, target=target)
    return replace(flow, why=fact.why, since=time)


RULES: IssueRules = {
    runs.RequestOpened: opened,
    **dict.fromkeys(get_args(_RequestChange), advance),
    **dict.fromkeys(get_args(_TurnOver), close_turn_requests),
}


def _under_way(fold: Fold) -> Callable[[Flow, Any, int, datetime], Flow]:
    return of_run(lambda flow, run, fact, seq, time: flow if run.ended else fold(flow, run, fact, seq, time))


FOLDS: Folds = {
    runs.InputEnded: of_run(_input_ended),
    runs.RequestOpened: _under_way(_open),
    ReadRefused: _under_way(_unshown),
    runs.RequestGone: _under_way(_remove_request),
    runs.RequestAnswered: _under_way(_remove_request),
    runs.RequestJudged: _under_way(_judged),
    runs.InputWanted: _under_way(_fold_input_wanted),
}
