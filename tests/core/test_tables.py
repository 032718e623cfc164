"""Every fact is in the tables of folds and rules, or silent there on purpose; each function takes what it is for."""

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

from ashep.core.facts import delivery, issues, resources, runs, sources, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.reconcile import decide, evolve
from ashep.core.state import notices
from ashep.core.state.world import merged

FACTS = {*get_args(e.Fact)}
FOLDED = [*evolve.FOLDS, *evolve.WORLD_FOLDS, *evolve.PARTS]
RULED = [*decide.RULES, *decide.WORLD_RULES]

_TOLD = {*notices.RECORDS} - {*get_args(Command)}

UNFOLDED = {resources.DaemonStopped, resources.JournalPruned, issues.IssueCancelled, runs.DeadlineReached, *_TOLD}
UNFOLDED |= {resources.FolderLeft}
INTENTS = {*get_args(sources.SourceCommand)}
"""Commands that no flow keeps."""
"""Facts of which nothing is kept, or what `ashep.core.state.notices` keeps of them beside all tables."""

WITHOUT_RULE = {
    delivery.BaseChecked, delivery.CriteriaChanged, delivery.PullRequestReturned, delivery.TreePrepared,
    delivery.RepositorySeen, delivery.TreeRemoved, delivery.TreeRests, delivery.VerificationWanted,
    delivery.WorkIntegrated, issues.AnswerRefused,
    issues.CommentWanted, issues.CreationWanted, issues.CycleBegan, issues.IssueGivenBack, issues.IssueHeld,
    issues.IssueLeft, issues.IssueParked, issues.IssueTaken, issues.PersonAnswered, issues.PersonAsked,
    issues.PersonReminded, issues.PhaseEntered, issues.RetryScheduled, issues.TakeoverWanted,
    resources.AccountAudited, resources.BudgetWarned, resources.ClockJumped, resources.DaemonStarted,
    resources.DaemonStopped, resources.DiskSeen, resources.FolderLeft, resources.MachineSeen, resources.BacklogHeld,
    resources.EditMended, resources.EditRefused,
    resources.JournalBegun, resources.JournalPruned, resources.ProviderRecovered, resources.ProviderRefused,
    resources.RecycleWanted, resources.RunnerSeen, resources.ServerEnded, resources.ServerRestartPlanned,
    resources.WorkPaused, resources.WorkResumed, resources.WriteDelayed, runs.DeadlineReached,
    runs.DiagnosisWanted, runs.InputEnded, runs.InputWanted, runs.OrphanStopped, runs.PromptPrepared,
    runs.PromptSent, runs.QuotaSeen, runs.ReleaseWanted, runs.RunWithdrawn, runs.SessionOpened, runs.SessionTaken,
    runs.TurnBegun,
    tracker.ChangeHinted, tracker.CommentPosted, tracker.GuardRefused, tracker.IssueCreated,
    tracker.LabelsTakenOff, tracker.TrackerLost, tracker.TrackerSeen,
    e.ChangeDoubted, e.ChangeJudged, e.TreeLeft, *_TOLD,
    sources.ClosedAtSource, sources.SourceDue, sources.SourceHasCommit, sources.SourceStood,
}  # fmt: skip
"""Facts from which nothing follows at once: `dispatch` and `outstanding` see the World that they made."""


def test_every_fact_is_folded_or_silent() -> None:
    assert {*FOLDED} | UNFOLDED == FACTS | INTENTS
    assert not {*FOLDED} & UNFOLDED
    assert len(FOLDED) == len({*FOLDED}), "a fact has two folds"
    assert {*evolve.BESIDE} <= {*evolve.FOLDS}


def test_every_fact_has_its_rule_or_none() -> None:
    assert {*RULED} | WITHOUT_RULE == FACTS
    assert not {*RULED} & WITHOUT_RULE
    assert len(RULED) == len({*RULED}), "a fact has two rules"


@pytest.mark.parametrize("table", [decide.RULES, decide.WORLD_RULES, evolve.FOLDS, evolve.WORLD_FOLDS, evolve.BESIDE])
def test_what_stands_beside_a_fact_takes_it(table: dict[type, Callable[..., Any]]) -> None:
    for kind, function in table.items():
        hint = get_type_hints(function).get("fact", Any)
        assert hint is Any or kind in (get_args(hint) or (hint,)), (kind, function)


def test_a_fact_in_two_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="two tables"):
        merged({tracker.IssueSeen: 1}, {tracker.IssueSeen: 2})
