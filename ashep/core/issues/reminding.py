"""Reminders of an open question: `human.reminder` of a policy. The time of the next one is in the World."""

from datetime import datetime, timedelta

from ashep.core.facts.question import Question
from ashep.core.facts.vocabulary import CommentWanted, Fact, PersonReminded
from ashep.core.state.flow import Flow
from ashep.core.state.world import World

TIMER = "remind"
"""The name of the timer."""


def next_reminder(every: timedelta | None, asked: datetime, now: datetime, due: datetime) -> datetime | None:
    """Give the first whole multiple of the span since the question that is still to come and before its end."""
    if every is None:
        return None
    when = asked + every * ((now - asked) // every + 1)
    return when if when < due else None


def after_reminder(world: World, flow: Flow, question: Question) -> list[Fact]:
    """Remind people; whether once more says the policy as it is by now."""
    policy, issue, labels = world.policy(flow), flow.issue.id, world.settings.labels
    phase = policy.phase(question.phase) if policy else None
    every = phase.human.reminder if phase and phase.human else None
    again = next_reminder(every, question.asked, world.now, question.due)
    text = (
        f"Still open, since {question.asked:%Y-%m-%d %H:%M}Z: **{question.text}**\n\n"
        f"Answer by label: `{labels.approved}` or `{labels.changes_requested}`.\n"
        f"(or `ashep approve {issue}` / `ashep reject {issue} -m …`) It is given up {question.due:%Y-%m-%d %H:%M}Z."
    )
    why = f"nobody has answered {question.phase} yet"
    return [
        PersonReminded(issue, question.phase, question.text, question.due, again, why),
        CommentWanted(issue, f"remind.{world.seq}", text),
    ]
