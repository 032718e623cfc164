"""Names that docs/extending.md publishes for trackers and runners of users: the issue and what is known of a session."""

from ashep.core.facts.runs import Life, Model
from ashep.core.facts.tracker import Comment, Issue, LabelEvent, NewIssue, Stamp
from ashep.core.policy.settings import Change

__all__ = ["Change", "Comment", "Issue", "LabelEvent", "Life", "Model", "NewIssue", "Stamp"]
