"""Comparison with what another policy would have done, as people and programs read it."""

from collections.abc import Iterable, Iterator, Sequence

from ashep.core.analysis.policy_diff import Compared, Count, Fork, totals
from ashep.core.facts import delivery, issues, runs
from ashep.core.facts.records import Entry, to_json
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.delivery import failing
from ashep.views import Data

COLUMNS = ("issue", "verdict", "at", "runs", "questions", "recorded", "other", "unknown from here")

VERDICTS = ("same", "differs", "unknown")
STATES = (
    "closed",
    "parked",
    "waiting",
    "landing",
    "under_way",
    "idle",
    "left",
    "giving_back",
    "held",
    "not_created",
    "unknown",
)


def words(fact: Fact | None, fork: Fork) -> str:
    """Say what a decision comes to, in a few words."""
    match fact:
        case None:
            return "nothing"
        case issues.IssueTaken():
            return f"takes it under {fact.policy}"
        case issues.IssueHeld():
            return f"holds it: {fact.code}"
        case issues.CycleBegan():
            return "begins a cycle"
        case issues.PhaseEntered():
            return f"enters {fact.phase}"
        case runs.RunPlanned():
            model = f" ({fact.model.provider}/{fact.model.model})" if fact.model else ""
            return f"runs {fact.phase} by {fact.agent}{model}"
        case runs.RunEnded():
            return f"{fact.run} {fact.state}"
        case issues.RetryScheduled():
            wait = max((fact.due - fork.at).total_seconds(), 0.0)
            return f"tries {fact.phase} again in {wait:.0f} s"
        case issues.PersonAsked():
            return f"asks in {fact.phase}: {fact.question}"[:200]
        case issues.IssueParked():
            return f"parks it: {fact.code}"
        case issues.IssueFinished():
            if fact.into:
                return f"asks to merge it into {fact.into}"
            return f"lands it on {fact.onto}" if fact.onto else "closes it"
        case delivery.VerificationWanted():
            return f"looks into the work of {fact.phase}"
        case delivery.WorkVerified():
            failed = ", ".join(failing(fact.results)) if fact.changed else "it changes nothing"
            return f"looked into its work: {failed or 'it held'}"[:200]
        case issues.CreationWanted():
            return f"creates {'parked ' if fact.parked else ''}{fact.new.title}"[:200]
        case _:
            return type(fact).__name__


def as_json(found: Sequence[Compared], *, strict: bool, covers: int, refused: Sequence[Data] = ()) -> Data:
    """Give all of it as plain JSON data; `refused`: why no daemon would work so."""
    told = totals(found)
    return {
        "strict": strict,
        "covers": covers,
        "findings": [*refused],
        "totals": {
            "issues": sum(told.verdicts.values()),
            **{verdict: told.verdicts[verdict] for verdict in VERDICTS},
            "unbounded": told.unbounded,
            "assumed": told.assumed,
            "runs": _spread(told.recorded.runs, told.least.runs, told.most.runs),
            "questions": _spread(told.recorded.questions, told.least.questions, told.most.questions),
            "ends": {
                name: {state: ends[state] for state in STATES if ends[state]}
                for name, ends in zip(("recorded", "other"), told.ends, strict=True)
            },
        },
        "issues": [_issue(one) for one in found],
    }


def _spread(recorded: int, least: int, most: int | None) -> Data:
    saved = {"least": None if most is None else recorded - most, "most": recorded - least}
    return {"recorded": recorded, "other": {"least": least, "most": most}, "saved": saved}


def _issue(one: Compared) -> Data:
    most, fork, unknown = one.most or (None, None), one.fork, one.unknown
    return {
        "issue": one.issue,
        "title": one.title,
        "verdict": one.verdict,
        "policy": {"recorded": one.policy[0], "other": one.policy[1]},
        "differs": fork and {
            "seq": fork.seq, "recorded": _fact(fork.recorded, fork), "other": _fact(fork.other, fork),
            "why": fork.why or None,
        },
        "unknown": unknown and {"seq": unknown.seq, "needs": unknown.needs, "why": unknown.why},
        "ends": {"recorded": one.ends[0], "other": one.ends[1]},
        "runs": _spread(one.recorded.runs, one.least.runs, most[0]),
        "questions": _spread(one.recorded.questions, one.least.questions, most[1]),
        "beyond": one.beyond._asdict(),
        "rests_on": [*one.rests_on],
        "last": one.last,
    }  # fmt: skip


def _fact(fact: Fact | None, fork: Fork) -> Data | None:
    if fact is None:
        return None
    fields = {key: value for key, value in to_json(Entry(0, fork.at, fact)).items() if key not in ("v", "seq", "at")}
    return {"words": words(fact, fork)} | fields


# --- for people ---------------------------------------------------------------------------------------------------


def rows(found: Iterable[Compared]) -> list[list[str]]:
    """Give a row for each issue that is not the same."""
    rows = list[list[str]]()
    for one, fork in ((one, one.fork) for one in found if one.fork is not None):
        runs, questions = one.most or (None, None)
        other = words(fork.other, fork)
        if fork.why:
            other = fork.why if fork.other is None else f"{other}; {fork.why}"
        rows.append([
            one.issue, one.verdict, f"#{fork.seq}", f"{one.recorded.runs} → {_from_to(one.least.runs, runs)}",
            f"{one.recorded.questions} → {_from_to(one.least.questions, questions)}", words(fork.recorded, fork),
            other, f"{one.unknown.needs}: {one.unknown.why}" if one.unknown is not None else "",
        ])  # fmt: skip
    return rows


def _from_to(least: int, most: int | None) -> str:
    if least == most:
        return f"{least:,}"
    return f"{least:,} or more" if most is None else f"{least:,} to {most:,}"


def summary(found: Sequence[Compared], *, strict: bool) -> Iterator[str]:
    """Sum up in sentences."""
    told = totals(found)
    count = sum(told.verdicts.values())
    if count == 0:
        yield "no issue to compare: none was taken, nor would have been"
        return
    yield (
        f"{count} issue{'' if count == 1 else 's'}: {told.verdicts['same']} the same, {told.verdicts['differs']} "
        f"otherwise, {told.verdicts['unknown']} unknown from some decision on"
    )
    yield _saved("agent runs", told.recorded, told.least, told.most, 0)
    yield _saved("questions to people", told.recorded, told.least, told.most, 1)
    yield " · ".join(
        f"{state.replace('_', ' ')}: {told.ends[0][state]} → {told.ends[1][state]}"
        for state in STATES
        if told.ends[0][state] or told.ends[1][state]
    )
    if told.verdicts["unknown"]:
        yield "where it is unknown, both are counted to the end of that cycle; what a person's answer begins is not"
    if told.unbounded:
        yield f"{told.unbounded} of the unknown have no bounds, and are not counted"
    if told.assumed and not strict:
        yield (
            f"{told.assumed} rest on an answer to the same question about the same work, or on how that work landed, "
            "after what the other policy leaves out; with --strict they are unknown"
        )


def _saved(what: str, recorded: Count, least: Count, most: Count, place: int) -> str:
    was, low, high = recorded[place], least[place], most[place]
    head = f"{what}: {was:,} recorded, {_from_to(low, high)} under the other policy"
    if low == high == was:
        return f"{head}: none saved, none added"
    if low == high:
        return f"{head}: {abs(was - low):,} {'saved' if was > low else 'added'}"
    if was - high >= 0:
        return f"{head}: {was - high:,} to {was - low:,} saved"
    if was - low <= 0:
        return f"{head}: {low - was:,} to {high - was:,} added"
    return f"{head}: at best {was - low:,} saved, at worst {high - was:,} added"
