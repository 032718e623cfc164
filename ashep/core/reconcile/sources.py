"""Issues of sources: whether they may be worked on, what an answer there leads to, and what is lacking."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, get_args

from ashep.core.facts import issues
from ashep.core.facts import sources as facts
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.admission import OVER, admitted, against
from ashep.core.issues.routing import abort, after_answer
from ashep.core.policy.settings import Settings
from ashep.core.runs.requests import get_open_request, judged_answer
from ashep.core.runs.source_comments import ASKS_PEOPLE, STATE, question_name, takes_thumb, wanted_comments
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace as changed
from ashep.core.state.sources import source_issue as state
from ashep.core.state.sources.source_issue import SourceIssue, digest_of
from ashep.core.state.world import World, WorldFolds, WorldRules

STOPPED = ("work", "person", "parked")
"""Stages in which an issue is given back that may not be worked on any more; what is about to land ends by itself."""

ANSWERS = ("approve", "changes", "answer")

_VARYING = re.compile(r"(?<![\w:.+-])(?!\d{3}(?![\w.+-]))[\w:.+-]*\d[\w:.+-]*")
"""Words of a reason with a number that is no status of HTTP."""

NODDED = ("edited", "reopened", "label", "stopped")
"""Why an issue waits that `/ashep approve` allows again, where no question is open."""


# --- what is read becomes facts by difference -----------------------------------------------------------------------


def source_read(world: World, issue: str, view: facts.SourceView) -> list[Fact]:
    """Compare how an issue is there at its source with what is known; none that was never asked for is kept in mind."""
    record = world.sources.get(issue)
    if record is None:
        return [facts.SourceSeen(issue, view)] if view.labelled and view.state == "open" else []
    return [facts.SourceSeen(issue, view)] if view != record.view else []


def word_read(world: World, fact: facts.SourceWordSeen) -> list[Fact]:
    """Leave out what was judged, or waits for it, what is our own, and what people say whose word does not count."""
    record, word = world.sources.get(fact.issue), fact.word
    if against(world.settings, word.voice):
        return []
    if (
        record is None
        or word.voice.id in record.judged
        or any(item.word.voice.id == word.voice.id for item in record.pending)
    ):
        return []
    return [] if word.voice.id in {f"comment/{item}" for item in record.ours} else [fact]


def commit_read(world: World, issue: str, commit: str) -> list[Fact]:
    """Tell once that the base there holds what landed."""
    record = world.sources.get(issue)
    return [facts.SourceHasCommit(issue, commit)] if record is not None and record.commit != commit else []


def availability_read(world: World, source: str, reason: str) -> list[Fact]:
    """Tell that a source does not answer any more, why it does not now, or that it answers again.

    A reason that differs in ids, times and numbers alone is the same: forges name each request.
    """
    earlier = world.trouble.get(source, "")
    is_same = bool(earlier) == bool(reason) and _VARYING.sub("", earlier) == _VARYING.sub("", reason)
    return [] if is_same else [facts.SourceStood(source, reason)]


def due(world: World, source: str) -> list[Fact]:
    """Give what is to be tried again at a source by now."""
    waiting = [(issue, item.due) for issue, item in world.sources.items() if item.view.source == source]
    return [facts.SourceDue(issue) for issue, moment in sorted(waiting) if moment is not None and moment <= world.now]


# --- rules ----------------------------------------------------------------------------------------------------------


def _stop(world: World, issue: str, record: SourceIssue) -> list[Fact]:
    """Stop work on what may not be worked on any more. A text that was changed stops nothing: agents do not see it."""
    flow = world.flows.get(issue)
    if record.code in ("", "edited") or flow is None or flow.stage not in STOPPED:
        return []
    return [*abort(flow, record.reason), issues.IssueGivenBack(issue, "source", record.reason)]


def late_stops(world: World, issue_ids: Iterable[str]) -> list[Fact]:
    """Stop work that was about to land when it lost its permission, and did not land: it begins again, or asks."""
    records = [(issue, world.sources[issue]) for issue in sorted(issue_ids) if issue in world.sources]
    return [fact for issue, record in records for fact in _stop(world, issue, record)]


def adopted(world: World) -> list[Fact]:
    """Hold what is known against other settings: whose word counts may be others'."""
    return [item for issue in sorted(world.sources) for item in admitted(world, world.sources[issue], issue)]


def _next_word(world: World, record: SourceIssue) -> list[Fact]:
    if not record.pending or not _is_heard(world, record, record.pending[0]):
        return []
    return judge(world, record, record.pending[0])


def _is_heard(world: World, record: SourceIssue, fact: facts.SourceWordSeen) -> bool:
    """Whether a word can be judged by now: the tracker holds what it says, and it is known when the question came."""
    if fact.word.verb not in ANSWERS or record.refused:
        return True
    flow = world.flows.get(fact.issue)
    name = question_name(world, flow) if flow is not None else ""
    if name and record.posted(name) is None:
        return False
    return not fact.word.text or record.mirrored is None or record.mirrored[1] == record.view.comments


def judge(world: World, record: SourceIssue, fact: facts.SourceWordSeen) -> list[Fact]:
    """Decide whether a word counts, and follow it."""
    issue, word, flow = fact.issue, fact.word, world.flows.get(fact.issue)
    voice, verb = word.voice, word.verb
    verdict = facts.SourceWordJudged(issue, voice.id, counts=False, why="")

    def refuse(reason: str, reply: str = "") -> list[Fact]:
        return [replace(verdict, why=reason, reply=reply)]

    if wrong := against(world.settings, voice):
        return refuse(wrong)
    if word.edited:
        return refuse(
            f"the comment of {voice.login} was edited", "That comment was edited, and does not count: say it again."
        )
    if verb == "stop":
        return [replace(verdict, counts=True, why=f"{voice.login} stopped it", stops=voice.moment)]
    if verb not in ANSWERS:
        return refuse(f"`/ashep {verb}` is unknown", "Known are `/ashep approve`, `changes …`, `answer …` and `stop`.")
    if voice.is_ours and runs_unboxed(world.settings, world, boxed=fact.boxed):
        return refuse(
            f"{voice.login} is the account of ashep's token, and agents run in no sandbox: they could write that"
        )
    name = question_name(world, flow) if flow is not None else ""
    if verb == "approve" and not word.target and not name and record.code in NODDED:
        return [replace(verdict, counts=True, why=f"{voice.login} approved its text", approves=voice.moment)]
    posted = record.posted(name) if name else None
    if flow is None or not name:
        return refuse("nothing is asked", "Nothing is asked here now; the first answer counts, here or elsewhere.")
    if posted is None or (voice.moment, comment_number(voice.id)) <= (
        posted.moment,
        posted.id if not word.target else 0,
    ):
        return refuse("it is older than the question", "That was said before the question came: say it again.")
    if word.target and (word.target != posted.id or not takes_thumb(flow)):
        return refuse("a thumbs-up counts on the question's own comment alone, and never for flagged work")
    return _answer(world, flow, fact, replace(verdict, counts=True, why=f"{voice.login} said {verb}"))


def _answer(world: World, flow: Flow, fact: facts.SourceWordSeen, verdict: facts.SourceWordJudged) -> list[Fact]:
    word, author = fact.word, f"{fact.word.voice.login} (GitHub)"

    def refuse(reason: str, reply: str = "") -> list[Fact]:
        return [replace(verdict, counts=False, why=reason, reply=reply)]

    if (pending := get_open_request(flow)) is not None and flow.run is not None:
        if word.verb != "answer" or not word.text:
            return refuse("the agent asks for words", "The agent asks for words: `/ashep answer …`.")
        return [verdict, judged_answer(flow, flow.run, pending.request, word.text, author)]
    question = flow.question
    assert question is not None
    if word.verb == "answer" and not question.leads_back:
        return refuse("the question wants a yes or no", "This wants `/ashep approve` or `/ashep changes …`.")
    if word.verb != "changes" and not question.leads_back and (fact.signed_only or world.settings.signed_only):
        return refuse("`people.signed` requires a signature, which nobody can give there")
    if word.verb == "changes" and not word.text:
        return refuse("it does not say what is to change", "Say what is to change: `/ashep changes …`.")
    answer = "changes_requested" if word.verb == "changes" else "approved"
    reason = f"{author} answered {answer}"
    answered = issues.PersonAnswered(flow.issue.id, answer, author, reason)
    return [verdict, answered, *after_answer(world, flow, question, answer == "approved", reason)]


def comment_number(id: str) -> int:
    """Give the number in the id of a comment; 0: it is none."""
    tail = id.rpartition("/")[2]
    return int(tail) if tail.isdecimal() else 0


def runs_unboxed(settings: Settings, world: World, *, boxed: bool) -> bool:
    """Whether an agent may run as the person does."""
    if not settings.isolated or settings.agents.sandbox == "none" or not (boxed or settings.agents.sandbox == "bwrap"):
        return True
    return any(agent.sandbox == "none" for agent in (world.agents.agents if world.agents else ()))


# --- what is lacking ------------------------------------------------------------------------------------------------


def mirror_of(world: World, issue: str, record: SourceIssue) -> tuple[str, str, bool | None] | None:
    """Give what should stand in the tracker; None: nothing of it is to be there, or to be changed."""
    if not record.admitted:
        return None
    flow, earlier = world.flows.get(issue), record.mirrored[2] if record.mirrored else None
    is_over = record.code in OVER
    if is_over and (flow is None or flow.active):
        return record.mirrored  # what is under way ends first
    return record.admitted, record.view.comments, True if is_over else False if earlier and not record.code else earlier


def commit_of(world: World, flow: Flow) -> tuple[str, str] | None:
    """Give the branch and the commit that the source's base must hold before the issue is closed there; None: none."""
    work, landing = flow.work, world.settings.landing
    base = landing.base or (work.own.onto if work.own is not None and work.own.onto else "")
    if work.landed is not None:
        return None if work.empty else work.landed
    if work.own is not None:
        return None if work.own.is_empty else (base, work.own.head or "")
    return (
        (base or (world.tree.branch if world.tree and world.tree.branch else ""), work.commits[-1])
        if work.commits
        else None
    )


def closes(world: World, issue: str, record: SourceIssue) -> bool:
    """Whether the issue is done, and would be closed there once the base there holds its work."""
    flow = world.flows.get(issue)
    if flow is None or (flow.stage, flow.code) != ("closed", "shepherd"):
        return False
    is_wanted = record.view.state == "open" and not record.closed and not record.code and bool(record.admitted)
    return is_wanted and (record.opened_again is None or flow.since is None or flow.since > record.opened_again)


def lacking(world: World, issue: str) -> list[facts.SourceCommand]:
    """Give the next command about an issue of a source: one is under way at any time."""
    record = world.sources.get(issue)
    if record is None or record.open is not None or record.due is not None:
        return []
    command = next((item for item in next_commands(world, issue, record) if item.key not in record.refused), None)
    return [] if command is None else [replace(command, tries=record.tries)]


def next_commands(world: World, issue: str, record: SourceIssue) -> Iterator[facts.SourceCommand]:
    """Give what is lacking, the first thing first."""
    view, flow = record.view, world.flows.get(issue)
    mirror = mirror_of(world, issue, record)
    if mirror is not None and mirror != record.mirrored:
        key = f"{issue}/mirror/{digest_of(repr(mirror))}"
        yield facts.MirrorIssue(key, issue, view, *mirror)
    if view.state == "gone" or not (record.mirrored or record.code in ASKS_PEOPLE):
        return
    for name, text in wanted_comments(world, issue, record):
        posted = record.posted(name)
        if posted is None or (posted.digest != digest_of(text) and name == STATE):
            key = f"{issue}/said/{name}/{digest_of(text)}"
            yield facts.SayAtSource(key, issue, view.source, view.number, name, text, posted.id if posted else None)
    if flow is not None and closes(world, issue, record):
        pushed = commit_of(world, flow)
        if pushed is None or pushed[1] == record.commit:
            yield facts.CloseAtSource(f"{issue}/closed/{flow.counters.cycle}", issue, view.source, view.number)


def open_intents(world: World) -> list[facts.SourceCommand]:
    """Give what has no answer yet: after a crash it is done again, and looks for its mark."""
    return [item.open for item in world.sources.values() if item.open is not None]  # pyright: ignore[reportReturnType] - no other intent is there


# --- tables ---------------------------------------------------------------------------------------------------------


def fold_issue(world: World, body: Any) -> World:
    """Fold a record of an issue."""
    record = state.folded(world.sources.get(body.issue), body, world.now)
    return world if record is None else changed(world, sources=world.sources.insert(body.issue, record))


def fold_availability(world: World, fact: facts.SourceStood) -> World:
    """Fold whether a source answers."""
    trouble = world.trouble.insert(fact.source, fact.reason) if fact.reason else world.trouble.discard(fact.source)
    return changed(world, trouble=trouble)


FOLDS: WorldFolds = {
    **dict.fromkeys((*get_args(facts.SourceFact), *get_args(facts.SourceCommand)), fold_issue),
    facts.SourceStood: fold_availability,
}


def _of_record(rule: Callable[[World, SourceIssue, Any], list[Fact]]) -> Callable[[World, World, Any], list[Fact]]:
    """Make a rule of one about what is known of an issue; where nothing is, nothing follows."""

    def follow(earlier: World, world: World, fact: Any) -> list[Fact]:
        record = world.sources.get(fact.issue)
        return rule(world, record, fact) if record is not None else []

    return follow


RULES: WorldRules = {
    facts.SourceSeen: _of_record(lambda world, record, fact: admitted(world, record, fact.issue)),
    facts.SourceHeld: _of_record(
        lambda world, record, fact: _stop(world, fact.issue, record) or _next_word(world, record)
    ),
    facts.SourceWordSeen: _of_record(
        lambda world, record, fact: judge(world, record, fact) if _is_heard(world, record, fact) else []
    ),
    facts.SourceWordJudged: _of_record(
        lambda world, record, fact: admitted(world, record, fact.issue) or _next_word(world, record)
    ),
    **dict.fromkeys(
        (facts.SourceAdmitted, facts.IssueMirrored, facts.SaidAtSource, facts.SourceFailed),
        _of_record(lambda world, record, fact: _next_word(world, record)),
    ),
}
