"""Deliberate mistakes in the core: what they break, and how they are made.

A mutant changes the text of one function and puts the new code object into it, so that every importer has it at once.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from ashep.core.delivery import landing, pulls, resting, trees
from ashep.core.issues import folding, people, routing, verification
from ashep.core.policy import permissions
from ashep.core.reconcile import changes, dispatch, evolve, failures, intake, observe, outstanding, step
from ashep.core.resources import budgets
from ashep.core.resources import notices as telling
from ashep.core.resources import providers as breaker
from ashep.core.resources import server as recycling
from ashep.core.runs import choice, prompting, requests, takeover, turns
from ashep.core.runs import folding as evolve_run
from ashep.core.state import delivery, files, flow, intents, notices, pauses, providers, run, server, spending, timers
from ashep.core.state import indexes as world_indexes


@dataclass(frozen=True)
class Mutant:
    """In this function, this text is replaced."""

    name: str
    function: Callable[..., Any]
    old: str
    new: str


def _code(mutant: Mutant, function: FunctionType) -> CodeType:
    source = textwrap.dedent(inspect.getsource(function))
    assert mutant.old in source, f"{mutant.name}: the text to be changed is gone"
    made: dict[str, Any] = {}
    changed = "from __future__ import annotations\n" + source.replace(mutant.old, mutant.new)
    exec(changed, function.__globals__ | {"__name__": function.__module__}, made)
    return made[function.__name__].__code__


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The core with the mistake in it."""
    function = mutant.function
    assert isinstance(function, FunctionType)
    right = function.__code__
    function.__code__ = _code(mutant, function)
    try:
        yield
    finally:
        function.__code__ = right


def private(module: Any, name: str) -> Callable[..., Any]:
    """A function that the module keeps to itself."""
    return getattr(module, name)


BROKEN_LAWS = [
    Mutant("a tree goes before its time", resting.begins, "world.now + keep", "world.now"),
    Mutant("what lands is not verified", private(landing, "_landing_step"), "landing.verify and", "False and"),
    Mutant("closed before it landed", landing.may_close, "flow.work.landing is None or flow.work.landing.over", "True"),
    Mutant("conflicts without a bound", landing.back, "return enter(", "return begin_cycle("),
    Mutant(
        "always the first phase", routing.enter, "[issues.PhaseEntered(issue, target,",
        "[issues.PhaseEntered(issue, policy.phases[0].name,",
    ),
    Mutant("visits without a bound", routing.enter, ">= phase.max_visits", ">= 10**9"),
    Mutant("runs without a bound", dispatch.wanted, ">= policy.limits.max_runs", ">= 10**9"),
    Mutant("attempts without a bound", private(routing, "_try_again"), "failures < phase", "0 < phase"),
    Mutant("a slot too many", dispatch.in_the_way, "room.slots <= 0", "room.slots < 0"),
    Mutant(
        "a slot is kept for nothing", private(trees, "_has_slot"), 'flow.stage in ("work", "person", "finishing") and',
        "",
    ),
    Mutant("the lock holds nobody", dispatch.in_the_way, "if others:", "if False:"),
    Mutant("a late answer revives a run", private(evolve_run, "_sent"), "if run.ended:", "if False:"),
    Mutant("giving back never ends", folding.written, 'flow.stage == "giving_back"', "False"),
    Mutant(
        "comments on closed issues", private(folding, "_outcome_of_flow"), "comments=(), creations=(), take_off=()", "",
    ),
    Mutant("agents may answer", private(people, "_set_by"), "not is_person(actor, world.actor)", "False"),
    Mutant("a retry never comes", timers.over, "return replace(flow, not_before=None)", "return flow"),
    Mutant(
        "a question has no end", routing.after_deadline, 'if human is None or human.on_deadline == "park":',
        "return []\n    if True:",
    ),
    Mutant("no reason for waiting", private(dispatch, "_held"), "[] if told", "[] if True"),
    Mutant("an answer closes no intent", intents.done, "other.key != key", "True"),
    Mutant("excluded issues are taken", intake.eligible, "if labels.excluded in issue.labels", "if False"),
    Mutant("excluding is not obeyed", people.obey, "if world.settings.labels.excluded in view.labels", "if False"),
    Mutant("a lost claim is taken again at once", folding.seen, "flow = done(flow, fact.key, seq)", "pass"),
    Mutant("the deadline is forgotten", timers.over, "overdue=True, ", ""),
    Mutant("ended runs lead nowhere", routing.after_run, 'if fact.state == "aborted"', "if True"),
    Mutant("a pause keeps no phase from a run", dispatch.wanted, "_paused(world, flow, phase)", "None"),
    Mutant("a pause never ends", pauses.over, "!= (key, due)", "!= 0"),
    Mutant("runs start without budget", dispatch.in_the_way, "if room.used_up is not None", "if False"),
    Mutant("runs begin on a drained server", dispatch.capacity_of, "server.hold(world) or ", ""),
    Mutant("a drain is given up for ever and at once", server.over, "server.recycling.until == due", "False"),
    Mutant("the hour has no fuse", dispatch.in_the_way, "room.starts <= 0", "room.starts < 0"),
    Mutant("the minute has no fuse", budgets.fused, "< limit", "<= limit"),
    Mutant("a run goes on without budget", private(budgets, "_of_one"), "if stops is not None and", "if False and"),
    Mutant("a spent provider goes on", choice.choose_for, "if not held or", "if True or"),
    Mutant("there never is budget again", spending.passed, "mark.until > at", "True"),
    Mutant("nobody asks for signs of life", turns.has_stalled, "due <= now", "True"),
    Mutant(
        "quiet never comes",
        timers.over,
        "takeover=replace(flow.takeover, due=None, fresh_after=seq)",
        "takeover=flow.takeover",
    ),
    Mutant("a question of a run has no end", timers.flow_dues, 'pending.verdict == "ask" and', "False and"),
    Mutant("a run waits for people for ever", requests.expired, "pending.due <= world.now", "False"),
    Mutant("the issue stays blocked", requests.over, "run is None or run.asks.waits_since is None", "True"),
    Mutant(
        "an agent allows itself a tool", private(requests, "_words"), "not is_person(comment.author, world.actor)",
        "False",
    ),
    Mutant("run ids are used twice", private(dispatch, "_plan"), "attempt = flow.attempt + 1", "attempt = 1"),
]  # fmt: skip
"""Each breaks a law in some life."""

BROKEN_PLAYBOOKS = [
    Mutant("a pushed branch goes", resting.due, "one.work.pull is not None", "False"),
    Mutant("the tree of an open issue goes", resting.going, 'flow.stage != "closed" or', ""),
    Mutant("nobody is asked about rules", landing.flagged, "not flags or", "True or"),
    Mutant("a tree that others need goes", resting.due, "not is_shared(own.branch)", "True"),
    Mutant("a tree that was kept is asked for again at once", private(resting, "_again"), "AGAIN * 2", "0 * AGAIN * 2"),
    Mutant("who sleeps loses trees", trees.slept, "due=rest.due + gap", "due=rest.due"),
    Mutant("who goes on begins at the old base", private(trees, "_gone"), 'base="", ', ""),
    Mutant(
        "trees that were kept before have no time", resting.after_settings, "if keep is not None else []",
        "if 0 else []",
    ),
    Mutant("a tree of its own waits for the lock", dispatch.in_the_way, 'if kind == "own":', "if False:"),
    Mutant(
        "a tree that resists keeps its slot", private(trees, "_has_slot"), "and after(run.id) not in dict(flow.tries)",
        "",
    ),
    Mutant("a tree is sealed for ever", private(failures, "_tree_failed"), "tries < INFRA_LIMIT", "True"),
    Mutant("what is not sealed is closed over", routing.finish, "if own.left and", "if False and"),
    Mutant("a tree is left for the shared one", private(dispatch, "_kind"), "flow.work.own is not None or ", ""),
    Mutant("two issues have one number", trees.slot_of, "if other != issue", "if False"),
    Mutant(
        "sessions open in the project", private(prompting, "_open_session"), "directory=flow.work.own.path",
        "directory=None",
    ),
    Mutant("the branch begins anew at each run", private(prompting, "_before"), "own.base or None", "None"),
    Mutant("two writes at once", private(outstanding, "_tracker_effects"), "if any(", "if False and any("),
    Mutant(
        "a run is forgotten at a re-opening", folding.seen, "flow.run is not None and not flow.run.settled", "False",
    ),
    Mutant("approval of a phase's question closes", routing.after_answer, "if not question.human_phase:", "if False:"),
    Mutant(
        "approved wins over changes_requested", people.answer_labels, "(labels.changes_requested, labels.approved)",
        "(labels.approved, labels.changes_requested)",
    ),
    Mutant("stale reads are people", intents.stale, "return as_of < flow.write_seq or", "return False and"),
    Mutant("our lost write is a person's", private(evolve, "_issue_seen"), "if landed and", "if False and"),
    Mutant(
        "a guard is not looked into", private(folding, "_unclaimed"), "writing=None, look_again=True)", "writing=None)",
    ),
    Mutant("no cool-down", private(people, "_reopened"), "wait = None if by_hand else", "wait = None and"),
    Mutant(
        "timed out without a fresh read", private(turns, "_of_run"), "run.watch.overdue and run.watch.fresh_after == 0",
        "run.watch.overdue",
    ),
    Mutant("a stale deadline read", private(evolve_run, "_turn"), "fresh = 0 if", "fresh = 0 if True or"),
    Mutant("an unknown instance counts as dead", private(turns, "_quiet"), "bool(given) and", ""),
    Mutant("incomplete is dead at once", private(turns, "_quiet"), 'suspicion == "suspect"', "True"),
    Mutant("our own abort is a person's", private(turns, "_finished"), "and not ours", ""),
    Mutant("a prompt is never abandoned", private(turns, "_quiet"), 'suspicion == "second_look"', "False"),
    Mutant("no recovery", private(turns, "_rejected"), 'run.prompt.kind in ("task", "resume")', "False"),
    Mutant("recovery for ever", private(turns, "_rejected"), 'run.prompt.kind in ("task", "resume")', "True"),
    Mutant(
        "machine failures burn attempts", failures.effect_failed, "[*abort(flow, why), *park(",
        '[RunEnded(fact.issue, run.id, "failed", why), *park(',
    ),
    Mutant("machine failures park at once", failures.effect_failed, "flow.infra < INFRA_LIMIT", "flow.infra < 1"),
    Mutant("two minutes do not matter", failures.effect_failed, "< INFRA_SECONDS", "< 0"),
    Mutant(
        "the session is not stopped", private(evolve_run, "_ended"), "stop=fact.abort and run.session is not None",
        "stop=False",
    ),
    Mutant(
        "the lock outlives the question", private(evolve, "_unlocked"), "== fact.issue",
        "== fact.issue and not isinstance(fact, issues.PersonAsked)",
    ),
    Mutant("an extraction on a limited provider", choice.choose_beside, "agent) not in shut", "agent) not in ()"),
    Mutant("no word of a limit", breaker.after_read, "if fact.refused is not None:", "if False:"),
    Mutant("a refusal is the agent's failure", private(turns, "_of_run"), "and ends_run(fact)", "and False"),
    Mutant(
        "an error of the provider's is the agent's", private(turns, "_finished"), "if fact.refused is not None:",
        "if False:",
    ),
    Mutant("what is limited is started", choice.held_providers, "is not None:", "is False:"),
    Mutant("all try at once", dispatch.wanted, "in room.tried and", "in room.tried and False and"),
    Mutant("a second one tries", breaker.hold_of, "if trying(world, outage.provider)", "if False"),
    Mutant("a limit never ends", providers.over, "(provider, due)", "(provider, None)"),
    Mutant("a try shows nothing", private(breaker, "_took"), "0 < outage.proof_after <= fact.as_of", "False"),
    Mutant("a try shows all at once", private(breaker, "_took"), "0 < outage.proof_after <= fact.as_of", "True"),
    Mutant("a stopped try is a good one", private(breaker, "_took"), "not fact.error.startswith(ABORTED)", "True"),
    Mutant("the wait does not grow", private(breaker, "_refused"), "outage.refusals + tried", "1"),
    Mutant("a time that is given is not kept", private(breaker, "_wait"), "again > PATIENCE or not ends", "False"),
    Mutant(
        "credentials are tried again and again", private(breaker, "_refused"), 'refusal.kind == "unauthorized"',
        "False",
    ),
    Mutant("resuming tries no credentials", providers.freed, "provider in (None, one.provider)", "False"),
    Mutant("other files are no other credentials", private(evolve, "_adopt"), "outages=outages, ", ""),
    Mutant(
        "a start tries no credentials", private(evolve, "_started"),
        "providers.with_other_credentials(world.outages, world.now)", "world.outages",
    ),
    Mutant("another server tries no credentials", private(evolve, "_runner"), "if other else", "if False else"),
    Mutant("a limit eats the deadline", private(evolve_run, "_refusal"), "run.deadline + wait if", "run.deadline if"),
    Mutant("a limit is a run of the cycle", breaker.stopped, "free = run.spent[0] == 0", "free = False"),
    Mutant("a circle over a limit has no end", breaker.stopped, "free = run.spent[0] == 0", "free = True"),
    Mutant("a limited run begins anew", private(dispatch, "_session"), "last.refused > 0 and", "False and"),
    Mutant("nobody falls back", choice.choose_for, 'policy.limits.on_limit == "wait"', "True"),
    Mutant("everybody falls back", choice.choose_for, 'policy.limits.on_limit == "wait"', "False"),
    Mutant("a person falls in for a limited agent", choice.choose_for, "and not a.is_human", ""),
    Mutant("a refusal is told at each read", breaker.is_worth_telling, "attempt != run.refused", "attempt"),
    Mutant(
        "excluded while its write is on its way", private(people, "_before_claim"), "if excluded else []",
        "if None else []",
    ),
    Mutant(
        "a failed agent is tried again", private(choice, "_failures"), "behind = failed + avoided", "behind = avoided",
    ),
    Mutant("a person falls in for agents", private(choice, "_failures"), "if agent.is_human:", "if False:"),
    Mutant("another agent of the same provider", private(choice, "_failures"), '== "different_provider"', '== ""'),
    Mutant("failures of earlier visits count", private(choice, "_failures"), "if r.run.startswith(here) and", "if"),
    Mutant("a reminder at the deadline", routing.next_reminder, "if when < due", "if True"),
    Mutant("every reminder that was missed", routing.next_reminder, "(now - asked) // every + 1", "1"),
    Mutant(
        "one reminder for ever", people.after_reminder, "question.asked, world.now, question.due",
        "world.now, world.now, world.now",
    ),
    Mutant(
        "a reminder is over before it is told", private(telling, "_stands"), "(flow.since, reminded)", "(flow.since,)",
    ),
    Mutant("reminded without end", private(folding, "_reminded"), "remind=fact.remind", "remind=flow.question.remind"),
    Mutant("an edit changes a run under way", files.kept, "run.ended or", "True or"),
    Mutant("a second edit changes a run under way", files.kept, "run.began is not None", "False"),
    Mutant("a question of no phase is asked on", people.after_policies, 'flow.stage == "person"', "False"),
    Mutant("an edit takes an issue from a person", dispatch.wanted, "and flow.takeover is None", "and True"),
    Mutant("a phase that is gone is gone back to", private(people, "_known"), "is not None", "!= 5"),
    Mutant("an edit that cannot be used is forgotten", files.happened, "refused=Refused(", "refused=None and ("),
    Mutant("every title fits", intake.is_titled, "return match.title is None", "return True"),
    Mutant("a title's capitals count", intake.is_titled, "issue.title.casefold()", "issue.title"),
    Mutant("a left issue forgets why", intake.stands, "flow.code not in STANDING", "True"),
    Mutant(
        "created issues come late", private(outstanding, "_tracker_effect"), "if flow.creations:",
        "if flow.creations and flow.target == flow.written:",
    ),
    Mutant("created issues are free", private(routing, "_creations"), "depth > policy.limits.max_depth", "False"),
    Mutant(
        "the default policy takes any type", intake.policy_for, "if default is not None and typed",
        "if default is not None",
    ),
    Mutant(
        "hints do not matter", private(evolve, "_ready"), "ready_fresh=fact.as_of >= world.hint_seq",
        "ready_fresh=True",
    ),
    Mutant(
        "an answer from before the question counts", private(outstanding, "_posture"),
        "drop = {labels.approved, labels.changes_requested,", "drop = {",
    ),
    Mutant(
        "a phase of people asks as an agent does", private(outstanding, "_posture"), "not flow.question.human_phase",
        "True",
    ),
    Mutant("foreign changes are not seen", trees.foreign_changes, "!= content", "== 0"),
    Mutant(
        "the multiplier is forgotten", private(dispatch, "_plan"),
        "phase.timeout * agent.performance.timeout_multiplier", "phase.timeout",
    ),
    Mutant("a pause keeps no issue from being taken", dispatch.candidate, "hold_of(world.pauses, None)", "None"),
    Mutant("a pause is working time", flow.pause_time, "return now - max(", "return (now - now) and max("),
    Mutant("a paused provider pauses all", pauses.hold, "in (None, provider)", "!= 0"),
    Mutant("a provider's pause ends every one", pauses.ended, "if fact.provider is not None:", "if False:"),
    Mutant("quiet hours begin again", pauses.ended, "replace(pause, lifted=True) for", "pause for"),
    Mutant("the end of quiet hours is forgotten", pauses.begun, "fact.until", "None"),
    Mutant("a pause's new end is not told", private(dispatch, "_held"), "flow.why == hold.why", "True"),
    Mutant("another run is cancelled", people.cancelled, "run.id != fact.run", "False"),
    Mutant("what was cancelled goes on", routing.abort, "abort=True", "abort=False"),
    Mutant("a turn is counted at each read", run.growth, "fact.tokens - tokens", "fact.tokens"),
    Mutant("a warning at each read", budgets.passed_now, "and hard is None", ""),
    Mutant("a stop for want of budget is a failure", budgets.reached, "flow.failures,", "flow.failures + 1,"),
    Mutant("waiting for budget is working time", flow.pause_time, "return now - max(", "return (now - now) and max("),
    Mutant("a wait for budget runs into the wall time", flow.wall_time, "- pause_time(flow, now)", ""),
    Mutant("an issue over its budget goes on", budgets.over_issue, "if gauge else None", "if None else None"),
    Mutant("an outcome over the limit is lost", budgets.after_turn, "ended = any(", "ended = False and any("),
    Mutant("growth is not noticed", budgets.is_worth_telling, "nearer = ", "nearer = False and "),
    Mutant("a delayed write is forgotten", timers.over, "write_after=None", "effect_after=None"),
    Mutant("a new cycle has no new budget", private(folding, "_cycle"), "spent=(0, 0.0), ", ""),
    Mutant("a day never ends", spending.used_today, "spending.day != day_of(at)", "False"),
    Mutant("quiet is not read again", takeover.session_seen, "asked = was.fresh_after != 0 and", "asked = True or"),
    Mutant("an old read says quiet", private(takeover, "_seen"), "fact.as_of >= takeover.fresh_after", "True"),
    Mutant(
        "a person's label is nobody's", takeover.labelled, "if label in flow.issue.labels:",
        "if label == flow.issue.id:",
    ),
    Mutant(
        "a person's turn is stopped", takeover.turn_of_held, 'if fact.state == "finished" or fact.people:',
        'if fact.state == "finished":',
    ),
    Mutant("a turn that runs is quiet", private(takeover, "_due"), "if takeover.busy else", "if False else"),
    Mutant("the label stops persons' turns", takeover.turn_of_held, "if run.watch.fresh_after else", "if False else"),
    Mutant(
        "whoever comes back is written to", private(takeover, "_came_back"), "takeover is not None and", "False and"
    ),
    Mutant(
        "who is in a used session is written to", private(takeover, "_came_back"), "takeover is None and", "False and"
    ),
    Mutant("a takeover is working time", private(takeover, "_taken"), 'code="paused"', 'code=""'),
    Mutant("our own label is a person's", takeover.labelled, "[] if ours or known", "[] if known"),
    Mutant(
        "our own label stays", private(outstanding, "_posture"), "flow.written is not None and flow.written.paused",
        "False",
    ),
    Mutant("a suspend is quiet", timers.shifted, "due=flow.takeover.due + gap", "due=flow.takeover.due"),
    Mutant("nobody reviews a person's work", takeover.released, 'takeover.action == "review"', "False"),
    Mutant("a success closes unseen", takeover.reviewed_by, "phase.verdicts or target == CLOSE", "False"),
    Mutant("another session goes on", private(dispatch, "_session"), "or flow.resume is not None", ""),
    Mutant("a gone session is gone on in", private(evolve_run, "_opened"), "and not fact.reused", "and False"),
    Mutant("what never ends there is waited for", takeover.session_seen, "if late else []", "if None else []"),
    Mutant(
        "what is at work there is left at once",
        takeover.session_seen,
        "asked and takeover.due is None and",
        "True and",
    ),
    Mutant("a stop in place of ours", private(takeover, "_theirs"), "if run is None", "if True or run is None"),
    Mutant("work of a person is foreign", private(takeover, "_released"), 'tree_wanted="again"', 'tree_wanted="no"'),
    Mutant("silence alone kills", turns.has_stalled, "not before.doubted or", ""),
    Mutant("a stale read of life", turns.has_stalled, "or watch.fresh_after != 0", ""),
    Mutant("a long tool is a stall", run.due_after, "life.tool is not None and", "False and"),
    Mutant("a provider's wait is a stall", run.due_after, "if life.retry_in is not None:", "if False:"),
    Mutant("a diagnosis of a diagnosis", turns.after_stall, "if is_diagnosis(run):", "if False:"),
    Mutant("who stalled looks into it", turns.after_stall, "{run.agent: 1}", "{}"),
    Mutant("a person is to find out why", choice.choose_beside, "not agent.is_human and", ""),
    Mutant("a diagnosis has all day", private(evolve_run, "_sent"), "at + DIAGNOSIS", "at + run.timeout"),
    Mutant("what stalled goes on beside its diagnosis", private(evolve_run, "_again"), "stop=True, ", ""),
    Mutant("the same agent again", private(evolve_run, "_ended"), '== "change_agent"', '== "retry"'),
    Mutant("nobody is asked", routing.after_run, 'fact.diagnosis.verdict == "ask_person"', "False"),
    Mutant("stalls are repeated for ever", routing.after_run, 'phase.stall.action == "fail"', "False"),
    Mutant("a suspend is a stall", timers.shifted, "run.watch.stall_due + gap", "run.watch.stall_due"),
    Mutant("what is over is told", private(telling, "_stands"), "notice.noted not in (flow.since, reminded)", "False"),
    Mutant("what is parked no more is told", private(telling, "_stands"), 'else flow.stage == "parked"', "else True"),
    Mutant(
        "an outage that is over is told", private(telling, "_stands"), "is not None\n        case",
        "!= 0\n        case",
    ),
    Mutant("quiet hours keep nobody", private(telling, "_is_kept"), "quiet > world.now", "False"),
    Mutant("what is urgent waits", private(telling, "_is_kept"), "not in world", "not in () and world"),
    Mutant("a message fails again at once", private(telling, "_failed"), "world.now + again", "world.now"),
    Mutant("a message is never given up", private(telling, "_failed"), "route.tries >= TRIES", "False"),
    Mutant("there is no batch", private(telling, "_due"), "one.noted + notify.batch", "one.noted"),
    Mutant("an absence of a moment is told", telling.dues, "one.since + AWAY", "one.since"),
    Mutant("an absence is told again and again", private(notices, "_wanted"), "told=one.told or", "told=False and"),
    Mutant("an old absence counts", notices.folded, "if outage.told", "if True"),
    Mutant("an end in order is told", notices.folded, 'process=None, lost=""', 'lost=""'),
    Mutant("an end is told twice", private(notices, "_wanted"), 'lost="")', "lost=notices.lost)"),
    Mutant("a target is forgotten with the first", private(notices, "_told"), "name != target", "False"),
    Mutant("everything is told", private(telling, "_wanted"), "one.event in notify.events", "True"),
    Mutant("an absence is the run's time", server.absence, "at - server.away", "timedelta(0)"),
    Mutant("an absence ends a run at its return", server.returned, "run.watch.overdue and", "False and"),
    Mutant("an absence makes a prompt suspect", server.returned, 'run.watch.probation == "suspect"', "False"),
    Mutant("waiting for a server is working time", flow.pause_time, "return now - max(", "return (now - now) and max("),
    Mutant(
        "a cycle is younger than nothing",
        server.returned,
        "min(flow.counters.thought - before.thought, at",
        "max(gap, at",
    ),
    Mutant("a server that dies is started in a hot loop", private(recycling, "_delay"), "failures <= 1", "True"),
    Mutant("a server waits longer and longer", private(recycling, "_delay"), ", LONGEST_DELAY", ", timedelta(9)"),
    Mutant("failures are never forgiven", recycling.failed, "1 if stable else", ""),
    Mutant(
        "a start that fails is none", recycling.failed, "server.failures + 1", "server.failures + bool(fact.instance)",
    ),
    Mutant("what ashep ended has failed", server.happened, 'replace(server, instance="")\n            return _', "_"),
    Mutant("recycled with turns under way", recycling.is_due, "(recycling.at_once or not world.in_use)", "True"),
    Mutant("never recycled at once", recycling.memory_seen, "times >= MOST", "False"),
    Mutant("recycled again and again", recycling.is_spaced, "now - server.recycled >= SPACING", "True"),
    Mutant("recycled only once", recycling.memory_read, "or again", ""),
    Mutant("a stranger's memory counts", recycling.memory_read, "or not world.managed", ""),
    Mutant("the last rule decides", permissions.deciding, "for rule in rules", "for rule in reversed(list(rules))"),
    Mutant("one allowed command allows all", permissions.judge, "and all(found)", ""),
    Mutant("a reader gets a writer's rules", permissions.fitting, "writes or against_reading(rule) is None", "True"),
    Mutant("any answer allows a tool", private(requests, "_answered"), "words.strip(", "'yes' or words.strip("),
    Mutant(
        "a prepared answer is used for ever", private(requests, "_prepared"), "place not in (*used, *taken)",
        "place not in taken",
    ),
    Mutant("thinking is working time", private(requests, "_ended"), "replace(idled(flow, waited), ", "replace(flow, "),
    Mutant("a waiting run times out", private(requests, "_ended"), "run.deadline + waited", "run.deadline"),
    Mutant("a jump counts twice", timers.shifted, "if flow.waits_for_input:", "if False:"),
    Mutant("an old list closes a request", observe.requests_read, "pending.seq <= as_of", "True"),
    Mutant("a stopped turn's question comes again", observe.requests_read, "*flow.requests, ", ""),
    Mutant(
        "all questions at once", requests.advance, "if any(pending.request.id == run.asks.shown",
        "if False and any(pending.request.id == run.asks.shown",
    ),
    Mutant(
        "a taken session is answered", timers.flow_dues, 'flow.stage == "work" and flow.takeover is None',
        'flow.stage == "work"',
    ),
    Mutant("a label that is taken off is nothing", requests.withdrawn, "not stands or", "True or"),
    Mutant("a jump of the clock is lost", timers.shifted, "run.deadline + gap", "run.deadline"),
    Mutant("a sleep counts twice", server.jumped, "away=server.away + gap", "away=server.away"),
    Mutant("two land at once", private(landing, "_landing_step"), "turn(world.indexes) != issue", "False"),
    Mutant("a landing that was passed by jumps in", private(world_indexes, "_place"), "and not back", ""),
    Mutant(
        "who was brought anew is not at it", private(world_indexes, "_place"), 'or flow.code == "landing_moved"', "",
    ),
    Mutant(
        "a clock that was set back hides a person", private(changes, "_set_by"), "if ours or one.actor",
        "if True or one.actor",
    ),
    Mutant(
        "a person's change covers others", private(changes, "_judged"), "if one.what in doubts",
        "if one.what in refused",
    ),
    Mutant("a person's pause is taken for ours", private(changes, "_judged"), "people and kept", "False and kept"),
    Mutant("what failed lands", landing.verified, "if lacking:", "if False:"),
    Mutant("a success is believed", verification.is_proven, "return in_own_tree and", "return False and"),
    Mutant("the shared tree is verified", verification.is_proven, "return in_own_tree and", "return"),
    Mutant("a verdict is believed", verification.claims, "if phase.verdicts else", "if False else"),
    Mutant("every verdict claims", verification.claims, "if word in phase.must_pass", ""),
    Mutant("a verdict leads where it did not", routing.after_success, "outcome.verdict is not None", "False"),
    Mutant("an error is a pass", delivery.failing, '("failed", "error")', '("failed",)'),
    Mutant("no change is fine", delivery.Evidence.lacking, "if self.changed", "if True"),
    Mutant("what is only told is lacking", delivery.Evidence.lacking, "or not self.must_change", ""),
    Mutant("what lands may change nothing", private(landing, "_landing_step"), "must_change(", "False and ("),
    Mutant("nothing that lands may change nothing", delivery.must_change, "phase.verify is not None", "True"),
    Mutant("nobody reads that nothing is changed", private(routing, "_failed"), "[_UNCHANGED] if", "[] if"),
    Mutant("nothing is waived", delivery.Evidence.lacking, "if name not in waived", ""),
    Mutant("checks without a bound", private(landing, "_fell_short"), "flow.work.unproven >= most", "False"),
    Mutant("no progress is an attempt", private(landing, "_fell_short"), "if same and", "if False and"),
    Mutant("every second failure ends it", private(landing, "_fell_short"), "if same and", "if"),
    Mutant("flags lead nowhere", routing.proven, "return flagged or", "return"),
    Mutant("an issue's checks are no reason to check", verification.is_checked, "or bool(flow.work.criteria.hash)", ""),
    Mutant(
        "unknown checks are none", verification.is_checked, ".criteria is None or", ".criteria is not None and",
    ),
    Mutant("verified before it is sealed", intents.at_liberty, "not run.forgettable", "not run.ended"),
    Mutant("moves while nobody knows whose it is", intents.at_liberty, "or flow.look_again", ""),
    Mutant("a moved base is moved all the same", landing.fold_landing, 'commit="", base="",', ""),
    Mutant(
        "a dirty checkout is tried in a hot loop", landing.fold_landing, "wait = min(DIRTY_AGAIN",
        "wait = None and min(DIRTY_AGAIN",
    ),
    Mutant("a moving base is tried in a hot loop", landing.fold_landing, "refused > OFTEN", "False"),
    Mutant("a clean checkout is not noticed", landing.checkout_changed, "flow.code !=", "True or flow.code !="),
    Mutant(
        "a protected base is tried for ever", landing.refused, 'in ("moved", "dirty", "locked", "away")', "is not None",
    ),
    Mutant("another commit's CI counts", private(pulls, "_open"), 'fact.head in ("", pull.head)', "True"),
    Mutant("a person's push is nothing", pulls.seen, "if pull.theirs:", "if False:"),
    Mutant("a person's push is told each time", private(pulls, "_left_to_them"), "earlier.work.pull.theirs", "False"),
    Mutant("what CI says is nothing", private(pulls, "_open"), 'fact.ci == "failing"', "False"),
    Mutant("programs request changes", pulls.requested, " and not one.bot", ""),
    Mutant("a remark takes a verdict back", pulls.requested, 'one.kind != "comment" and ', ""),
    Mutant("a review is heard for ever", private(pulls, "_opened"), "| {one.id for one in before.remarks}", ""),
    Mutant("a read of before the push counts", pulls.seen, "fact.as_of < pull.seq", "False"),
    Mutant("a read is told that tells nothing", pulls.pull_read, "return [] if now ==", "return [] if () =="),
    Mutant(
        "a pull request for each push", private(landing, "_ask_for_merge"), "pull.name if pull is not None and",
        "pull.name if pull is not None and False and",
    ),
    Mutant("a closed one goes on", private(landing, "_ask_for_merge"), 'pull.state == "open" and ', ""),
    Mutant(
        "asked for before it holds", private(landing, "_landing_step"), "(landing.verified or not landing.verify)",
        "True",
    ),
    Mutant("a forge is asked in a hot loop", landing.fold_landing, 'if fact.code == "away":', "if False:"),
    Mutant("a forge's time is not kept", landing.fold_landing, "fact.wait)", "AWAY_AGAIN)"),
    Mutant("an agent's question approves the work", folding.answered, "own is not None and (", "own is not None or ("),
    Mutant("an approval is for ever", landing.flagged, "own.approved == own.head", "own.approved"),
    Mutant("late evidence counts", landing.fold_verified, "if fact.run != flow.work.verifying or", "if False and"),
    Mutant("waived for ever", private(folding, "_cycle"), "waived=(), ", ""),
    Mutant("a conflict is forgotten", landing.fold_landing, "fact.log, landing.onto", '"", landing.onto'),
    Mutant("the writer is not told what failed", landing.fold_verified, "flaw=flaw,", "flaw=None,"),
    Mutant(
        "landing goes on after a close by hand", private(folding, "_stage"), 'verifying="", landing=None',
        'verifying=""',
    ),
    Mutant(
        "verifying goes on in another phase", private(folding, "_stage"), 'verifying="", landing=None', "landing=None",
    ),
    Mutant(
        "attempts of a visit count in the next",
        private(folding, "_entered"),
        ", work=replace(flow.work, unproven=0)",
        "",
    ),
    Mutant("what cannot be read is worked on", landing.criteria, "if not fact.error:", "if True:"),
    Mutant(
        "checks that cannot be read are none", landing.fold_criteria, "None if fact.error or fact.left_out else ", "",
    ),
    Mutant("an edit of the checks counts", landing.fold_edit, "seen=fact.hash", "hash=fact.hash"),
    Mutant("lost work is closed", routing.finish, "if own is None:", "if own is None or not own.base:"),
    Mutant(
        "the queue is last come, first served", private(world_indexes, "_place"), "rank, landing.seq",
        "rank, -landing.seq",
    ),
    Mutant("whoever waits keeps the queue", private(world_indexes, "_place"), "PASSED_BY if", "NEXT if"),
    Mutant("two are at it", private(world_indexes, "_place"), "AT_IT if at_it else", ""),
    Mutant("what git fails to do is done for ever", landing.refused, ">= MOST_FAILED", ">= 10**9"),
    Mutant("names that land nowhere are not told", private(landing, "_misnamed"), "not fact.unwritable or", "True or"),
    Mutant("whoever waits in the queue is forgotten", step.step, "issues.add(next_to_land)", "pass"),
    Mutant("a shared branch is everybody's at once", trees.branch_taken, "if not others or", "if True or"),
    Mutant("what others left is one's own", trees.own_tree, "if is_shared(flow.work.own.branch) else", "if False else"),
    Mutant("all that is ever taken in is one's own", landing.fold_landing, "since=since", "since=own.since"),
    Mutant("nothing is required", routing.enter, "if not by_hand and (lacking", "if False and (lacking"),
    Mutant("a person's label is not obeyed", routing.enter, "if not by_hand and", "if"),
    Mutant("any end will do", routing.unmet, "ended.get(name) not in words", "name not in ended"),
    Mutant("what was passed once is passed for ever", flow.ended_with, "one[0] != phase", "True"),
    Mutant("wanted changes undo nothing", routing.after_answer, "keeps=approved", "keeps=True"),
    Mutant("an approval undoes what was passed", routing.after_answer, "keeps=approved", "keeps=False"),
]  # fmt: skip
"""Each spoils a playbook."""
