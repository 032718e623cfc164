"""Where an outcome, a failure or an answer leads: the rules of docs/SPEC.md, "Routing"."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from ashep.core.facts import issues
from ashep.core.facts.delivery import CAUSES, UNTESTED, VerificationWanted
from ashep.core.facts.outcome import Outcome
from ashep.core.facts.runs import RunEnded
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.verification import is_checked, is_proven, is_untested
from ashep.core.policy.flags import route
from ashep.core.policy.policies import CLOSE, Human, Phase, Policy
from ashep.core.state.delivery import UNCHANGED
from ashep.core.state.flow import Flow, Question, ended_with
from ashep.core.state.world import World

PHASE_QUESTION_DEADLINE = timedelta(days=7)
"""A question of an agent phase has no `deadline` key of its own; the default of a human phase serves."""


def enter(world: World, flow: Flow, target: str, why: str, *, by_hand: bool = False) -> list[Fact]:
    """Lead the issue to a target: a phase, or `close`. `by_hand`: a person wants it there, whatever it requires."""
    issue, policy = flow.issue.id, world.policy(flow)
    if target == CLOSE:
        return finish(world, flow, why)
    phase = policy.phase(target) if policy else None
    if phase is None:
        return park(flow, "unknown_phase", f"the policy {flow.policy} has no phase {target} ({why})")
    if not by_hand and (lacking := unmet(phase, flow.counters.passed)):
        return park(flow, "requires", f"{target} requires {lacking}, which is not so ({why})")
    if phase.human is not None:
        return ask(world, flow, phase.name, phase.human.ask, why, human=phase.human)
    if flow.cycle_times(target) >= phase.max_visits:
        return park(flow, "max_visits", f"phase {target} was entered {phase.max_visits} times in this cycle ({why})")
    return [issues.PhaseEntered(issue, target, flow.times(target) + 1, why)]


def finish(world: World, flow: Flow, why: str) -> list[Fact]:
    """Have the issue closed, once its work is checked and where it is to be."""
    issue, own, landing = flow.issue.id, flow.work.own, world.settings.landing
    if own is None:
        return [issues.IssueFinished(issue, why)]
    if own.left and (flow.run is None or flow.run.tree_wanted not in ("after", "again")):  # else that seal will tell
        lacking = f"what its last run left in {own.path} is not sealed, and would not land; have it worked on there"
        return park(flow, "unsealed", lacking)
    base = landing.base or own.onto or ""
    if landing.mode != "branch" and not base:
        lacking = "its work has no branch to land on: the checkout was on none; set landing.base"
        return park(flow, "landing_base", lacking)
    onto, into = (base if landing.mode == mode else "" for mode in ("merge", "pull_request"))
    return [issues.IssueFinished(issue, why, onto, is_checked(world.policy(flow), flow), into)]


def begin_cycle(
    world: World, flow: Flow, target: str, why: str, *, keeps: bool = False, by_hand: bool = False
) -> list[Fact]:
    """Count limits and visits afresh and enter the target; with `keeps`, what phases ended with goes on to count."""
    counters = replace(flow.counters, cycle_visits=(), passed=flow.counters.passed if keeps else ())
    fresh = replace(flow, counters=counters)
    return [
        issues.CycleBegan(flow.issue.id, flow.counters.cycle + 1, why, keeps),
        *enter(world, fresh, target, why, by_hand=by_hand),
    ]


def ask(
    world: World, flow: Flow, phase: str, question: str, why: str, *, human: Human | None, about: issues.About = "phase"
) -> list[Fact]:
    """Put a question to a person: of a human phase, of the agent phase that asks, or about the work."""
    labels, issue = world.settings.labels, flow.issue.id
    if (human is not None or about == "change") and is_untested(world.policy(flow), flow):
        question = f"{UNTESTED} {question}"
    deadline = human.deadline if human else PHASE_QUESTION_DEADLINE
    said = flow.work.verifying if about == "proof" else ""
    remind = next_reminder(human.reminder, world.now, world.now, world.now + deadline) if human else None
    answers = f"Answer by label: `{labels.approved}` or `{labels.changes_requested}`."
    how = f"`{approve_command(world, issue)}` / `ashep reject {issue} -m …`"
    if about != "phase":
        answers += f" Approved, {_APPROVED[about]}; else it is worked on again, with your comments."
    elif not human:
        answers += f" Either answer leads back into the phase {phase}, with your comments."
        how = f'`ashep answer {issue} "…"`'
    told = _last_words(flow) + (_manual(flow) if human else _failed(flow) if about in ("proof", "base") else "")
    text = f"**{question}**\n\n{told}{answers}\n(or {how})"
    return [
        issues.PersonAsked(issue, phase, question, world.now + deadline, human is not None, why, remind, about, said),
        issues.CommentWanted(issue, f"ask.{world.seq}", text),
    ]


def approve_command(world: World, issue: str) -> str:
    """Return the command by which a person approves."""
    return f"ashep approve {issue}{' --sign' if world.settings.signed_only else ''}"


_UNCHANGED = (
    "- the work changes nothing. Where that is right (a question, an investigation), approve: then it may be closed so."
)

_LANDS = "it lands as it is"
_APPROVED: dict[issues.About, str] = {"proof": "it goes on as it is", "change": _LANDS, "base": _LANDS}


def _last_words(flow: Flow) -> str:
    outcomes = [(report, report.outcome) for report in flow.reports if report.outcome is not None][-3:]
    lines = [
        f"- {report.phase} ({report.agent}, {report.run}): {outcome.verdict or outcome.result}: {outcome.summary[:600]}"
        for report, outcome in outcomes
    ]
    return "\n".join(lines) + "\n\n" if lines else ""


def _manual(flow: Flow) -> str:
    """The issue's own questions to whoever decides."""
    asked = flow.work.criteria.manual if flow.work.criteria is not None else ()
    lines = "\n".join(f"- {' '.join(question.split())[:600]}" for question in asked[:20])
    return f"The issue asks you to make sure of this; to approve says that it is so:\n{lines}\n\n" if lines else ""


def _failed(flow: Flow) -> str:
    """What the checks said that do not hold."""
    evidence = flow.work.evidence
    results = evidence.results if evidence is not None else ()
    failed = [_UNCHANGED] if evidence is not None and UNCHANGED in evidence.lacking(flow.work.waived) else []
    for result in (result for result in results if result.fails):
        remedy = f" {CAUSES[result.cause][1]}." if CAUSES[result.cause][1] else ""
        blame = f". No work is to blame: it {result.blame}.{remedy}" if result.on_base else ""
        failed.append(f"- {result.check_id}: {result.message[:300]}{blame}")
    more = [f"- and {len(failed) - 20} more"] if len(failed) > 20 else []
    shown = f"`ashep why {flow.issue.id}` shows what they printed."
    return "\n".join([*failed[:20], *more, "", shown, "", ""]) if failed else ""


def abort(flow: Flow, why: str) -> list[Fact]:
    """End the run that is under way, if one is, by somebody's decision: no failure of an agent's."""
    if flow.run is None or flow.run.ended:
        return []
    return [RunEnded(flow.issue.id, flow.run.id, "aborted", why, abort=True)]


def park(flow: Flow, code: str, why: str) -> list[Fact]:
    """Give the issue up, with a reason that its comment repeats."""
    issue = flow.issue.id
    text = f"Parked: {why}.\n\nTake the label off, or use `ashep retry {issue}`, to start afresh."
    return [
        issues.IssueParked(issue, code, why),
        issues.CommentWanted(issue, f"park.{flow.counters.cycle}.{flow.counters.runs}.{code}", text),
    ]


def park_unknown_phase(world: World, flow: Flow, phase: str | None) -> list[Fact]:
    """Park an issue whose policy, or whose phase, the policies have no more."""
    reason = "there is no policy {}" if world.policy(flow) is None else "the policy {} has no phase {}"
    return park(flow, "unknown_phase", f"{reason.format(flow.policy, phase)} any more")


# --- after a run --------------------------------------------------------------------------------------------------


def after_run(world: World, flow: Flow, fact: RunEnded) -> list[Fact]:
    """Say what follows the end of a run; an aborted one was somebody's decision and leads nowhere by itself,
    and nothing does while a person has the issue.
    """
    policy = world.policy(flow)
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    if fact.state == "aborted" or flow.stage != "work" or flow.takeover is not None:
        return []
    if fact.state == "lost":
        return park(flow, "lost", f"nobody can tell what became of {fact.run}: {fact.why}")
    if policy is None or phase is None:
        return park_unknown_phase(world, flow, flow.phase)
    created = _creations(world, flow, policy, fact)
    if fact.outcome is None:
        if fact.diagnosis is not None and fact.diagnosis.verdict == "ask_person":
            question = f"{phase.name} got stuck. {fact.diagnosis.summary[:1900]}"
            return ask(world, flow, phase.name, question, fact.why, human=None)
        if fact.state == "stalled" and phase.stall.action == "fail":
            why = f"{fact.why}; a stalled {phase.name} is not repeated"
            return created + _give_up(world, flow, phase, "failed", why)
        return created + _try_again(world, flow, phase, "failed", fact.why)
    return created + _follow(world, flow, policy, phase, fact.outcome)


def _follow(world: World, flow: Flow, policy: Policy, phase: Phase, outcome: Outcome) -> list[Fact]:
    summary = outcome.summary[:200]
    if outcome.needs_human or outcome.next_action == "need_human":
        why = f"{phase.name} asks a person: {summary}"
        return ask(world, flow, phase.name, outcome.summary[:2000], why, human=None)
    if outcome.next_action == "repeat_phase" or outcome.result != "success":
        kind = "partial" if outcome.result == "partial" else "failed"
        return _try_again(world, flow, phase, kind, f"{phase.name} reported {outcome.result}: {summary}")
    if outcome.verdict is not None and outcome.verdict not in phase.next:
        return park(flow, "no_edge", f"the verdict {outcome.verdict} of {phase.name} leads nowhere in the policy")
    why = f"{phase.name} {f'said {outcome.verdict}' if outcome.verdict else 'succeeded'}: {summary}"
    if flow.run is not None and is_proven(phase, flow, outcome.result_word):
        return [VerificationWanted(flow.issue.id, flow.run.id, phase.name, why)]
    return enter(world, flow, after_success(policy, phase, outcome), why)


def after_success(policy: Policy, phase: Phase, outcome: Outcome | None) -> str:
    """Say where a success leads; None: what its agent said is not known any more."""
    if outcome is not None and outcome.verdict is not None:
        return phase.next.get(outcome.verdict, outcome.verdict)  # parks where the policy has lost the edge meanwhile
    if "success" in phase.next:
        return phase.next["success"]
    if outcome is not None and outcome.suggested_next_phase in phase.allow_suggested:
        return outcome.suggested_next_phase or CLOSE
    return following(policy, phase)


def following(policy: Policy, phase: Phase) -> str:
    """The next phase in order, after the last `close`."""
    names = [other.name for other in policy.phases]
    place = names.index(phase.name) + 1
    return names[place] if place < len(names) else CLOSE


def _try_again(world: World, flow: Flow, phase: Phase, kind: str, why: str) -> list[Fact]:
    failures = max(flow.failures, 1)
    if failures < phase.retry.max_attempts:
        wait = backoff(phase, failures, flow.run.id if flow.run else flow.issue.id)
        reason = (
            f"{why}; attempt {failures} of {phase.retry.max_attempts}, the next one in {wait.total_seconds():.0f} s"
        )
        return [issues.RetryScheduled(flow.issue.id, phase.name, failures, world.now + wait, reason)]
    return _give_up(world, flow, phase, kind, f"{why}; attempt {failures} of {failures}, the last")


def _give_up(world: World, flow: Flow, phase: Phase, kind: str, why: str) -> list[Fact]:
    if kind in phase.next:
        return enter(world, flow, phase.next[kind], why)
    return park(flow, "attempts", f"{phase.name} has no attempt left: {why}")


def backoff(phase: Phase, failures: int, run: str) -> timedelta:
    """The delay before the next attempt, with a jitter of ±20 % that the run id's hash gives."""
    retry = phase.retry
    factor = {"constant": 1, "linear": failures, "exponential": 2 ** min(failures - 1, 20)}[retry.backoff]
    jitter = 0.8 + 0.4 * int.from_bytes(hashlib.sha256(run.encode()).digest()[:4]) / 2**32
    seconds = retry.initial_delay.total_seconds() * factor * jitter  # as numbers: a duration could overflow
    return timedelta(seconds=min(seconds, retry.max_delay.total_seconds()))


# --- issues that agents ask for -----------------------------------------------------------------------------------


def _creations(world: World, flow: Flow, policy: Policy, ended: RunEnded) -> list[Fact]:
    wanted = ended.outcome.created_issues if ended.outcome else ()
    room = max(policy.limits.max_created_issues - flow.counters.created, 0)
    depth = flow.counters.depth + 1
    parked = depth > policy.limits.max_depth
    facts: list[Fact] = [
        issues.CreationWanted(flow.issue.id, created_id(world, ended.run, index), new.as_new(), depth, parked)
        for index, new in enumerate(wanted[:room])
    ]
    if left := wanted[room:]:
        names = "\n".join(f"- {new.title}" for new in left)
        text = f"{ended.run} asked for more issues than `max_created_issues` allows; not created:\n{names}"
        facts.append(issues.CommentWanted(flow.issue.id, f"uncreated.{ended.run}", text))
    return facts


def created_id(world: World, run: str, index: int) -> str:
    """`<prefix>-<8 base-32 characters>` of a hash of instance, run and index: known before it is created."""
    digest = hashlib.sha256(f"{world.instance}\0{run}\0{index}".encode()).digest()
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    number = int.from_bytes(digest[:5])
    word = "".join(alphabet[(number >> 5 * place) & 31] for place in range(8))
    return f"{world.tracker.prefix if world.tracker else 'x'}-{word}"


# --- after a person's answer --------------------------------------------------------------------------------------


def after_answer(world: World, flow: Flow, question: Question, approved: bool, why: str) -> list[Fact]:
    """Follow a human phase's edge, or lead back into the phase that asked; either begins a cycle unless it closes."""
    policy = world.policy(flow)
    phase = policy.phase(question.phase) if policy else None
    if policy is None or phase is None:
        return park_unknown_phase(world, flow, question.phase)
    if question.about != "phase":
        if approved:
            target = proven(flow, policy, phase) if question.about == "proof" else CLOSE
        else:
            target = (None if question.about == "proof" else writer_of(policy, flow)) or phase.name
        return enter(world, flow, CLOSE, why) if target == CLOSE else begin_cycle(world, flow, target, why, keeps=True)
    if question.leads_back:
        return begin_cycle(world, flow, phase.name, why, keeps=True)
    human = phase.human or Human(approved=phase.next.get("success") or following(policy, phase))
    target = human.approved if approved else human.changes_requested or writer_before(policy, phase)
    if target == CLOSE:
        return enter(world, flow, CLOSE, why)
    flow = ended_with(flow, phase.name, "approved" if approved else "changes_requested")
    return begin_cycle(world, flow, target, why, keeps=approved)


def proven(flow: Flow, policy: Policy, phase: Phase) -> str:
    """Say where work leads that holds, or is let pass: where its flags do, else where the success itself does."""
    outcomes = (report.outcome for report in reversed(flow.reports) if report.phase == phase.name and report.outcome)
    outcome = next(outcomes, None)
    flagged = route(flow.work.own.flags, dict[str, str](**phase.when_flags)) if flow.work.own else None
    return flagged or after_success(policy, phase, outcome)


def writer_of(policy: Policy, flow: Flow) -> str | None:
    """The phase that is to mend the work: the writer that ran last, else the policy's last; None: it has none."""
    writers = [phase.name for phase in policy.phases if phase.human is None and phase.makes]
    ran = (report.phase for report in reversed(flow.reports) if report.phase in writers)
    return next(ran, writers[-1] if writers else None)


def writer_before(policy: Policy, phase: Phase) -> str:
    """The last agent phase with write access before this one, else the first phase."""
    before = policy.phases[: policy.phases.index(phase)]
    writers = [other.name for other in before if other.human is None and other.makes]
    return writers[-1] if writers else policy.phases[0].name


def after_deadline(world: World, flow: Flow, question: Question) -> list[Fact]:
    """Nobody answered in time. That begins no cycle: a circle over a deadline must use up visits and runs."""
    policy = world.policy(flow)
    phase = policy.phase(question.phase) if policy else None
    human = phase.human if phase and question.human_phase else None
    why = f"nobody answered the question of {question.phase} in time"
    if human is None or human.on_deadline == "park":
        return park(flow, "question_deadline", why)
    target = policy.phase(human.on_deadline) if policy else None
    if target is not None and target.human is not None and flow.cycle_times(target.name) >= target.max_visits:
        return park(flow, "max_visits", f"{target.name} was asked {target.max_visits} times in this cycle ({why})")
    return enter(world, flow, human.on_deadline, why)


def unmet(phase: Phase, passed: issues.Passed) -> str:
    """What a phase requires that did not happen in this cycle; empty where nothing is lacking."""
    ended = dict(passed)
    lacking = (
        f"{name}: {' or '.join(words)}" for name, words in phase.requires.items() if ended.get(name) not in words
    )
    return ", ".join(lacking)


def next_reminder(every: timedelta | None, asked: datetime, now: datetime, due: datetime) -> datetime | None:
    """Give the first whole multiple of the span since the question that is still to come and before its end."""
    if every is None:
        return None
    when = asked + every * ((now - asked) // every + 1)
    return when if when < due else None
