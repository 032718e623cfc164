"""What is kept of a day: one entry for each thing said."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

Kind = Literal["prompt", "answer", "plan", "asked", "result", "restart", "topic", "cleared"]
"""prompt, answer: of the person, of the main agent · plan: one that was accepted · asked, result: of a subagent ·
restart, topic: the session was begun anew, because it was long, or because of a new topic · cleared: by the person."""


class Entry(BaseModel):
    """A thing said, as a line of `history.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """Derived from what was said where (session, prompt or tool call, kind): the same thing told twice stands once."""
    at: AwareDatetime
    session: str
    """Claude's session."""
    kind: Kind
    text: str
    """Redacted."""
    agent: str = ""
    """The kind of subagent that was asked."""
    call: str = ""
    """The tool call that ties a subagent's result to what it was asked."""
