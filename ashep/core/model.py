"""Names that docs/extending.md publishes for trackers and runners of users: an issue, and a session's life."""

from ashep.core.facts.runs import Life, Model
from ashep.core.facts.tracker import Change, Comment, Issue, LabelEvent, NewIssue, Stamp

__all__ = ["Change", "Comment", "Issue", "LabelEvent", "Life", "Model", "NewIssue", "Stamp"]
