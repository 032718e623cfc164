"""What an agent reports, and how it is read: the last fenced `json` block of its final message, strictly (design 5)."""

import re
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ashep.core.documents import Document
from ashep.core.model import NewIssue

MAX_BLOCK = 64 * 1024
"""A longer block is no outcome."""

_FENCED = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[ \t]*json[ \t]*\r?\n(.*?)^[ ]{0,3}\1[`~]*[ \t]*\r?$", re.M | re.S | re.I)


class CreatedIssue(Document):
    """An issue that the agent asks for."""

    title: Annotated[str, Field(min_length=1, max_length=500)]
    """The title."""
    description: str = ""
    """The description."""
    type: Literal["task", "bug", "feature", "chore"] = "task"
    """The type."""
    priority: Annotated[int, Field(ge=0, le=4)] = 2
    """0 the most urgent."""

    def as_new(self) -> NewIssue:
        """As the value that commands carry."""
        return NewIssue(self.title, self.description, self.type, self.priority)


class Outcome(Document):
    """The JSON that an agent returns. It reports a result and never chooses the next step."""

    result: Literal["success", "partial", "failed"]
    """Whether the phase's work is done."""
    summary: str
    """What was done, for the next agent and for people."""
    next_action: Literal["advance_phase", "repeat_phase", "need_human", "none"] = "none"
    """`repeat_phase` asks for another attempt, `need_human` for a person; the others leave it to the policy."""
    verdict: str | None = None
    """One of the phase's verdicts, where it declares any."""
    suggested_next_phase: str | None = None
    """Followed only where the policy lists it in `allow_suggested`."""
    needs_human: bool = False
    """The same as `need_human`."""
    created_issues: tuple[CreatedIssue, ...] = ()
    """Issues to be created, as discovered from this one."""
    pointers: tuple[str, ...] = ()
    """`path:line`, commits, addresses."""

    @property
    def passed(self) -> str | None:
        """What its phase ended with, in the words of `requires`; None where it failed, or asks for another attempt or a
        person.
        """
        if self.needs_human or self.next_action in ("need_human", "repeat_phase") or self.result == "failed":
            return None
        return self.verdict if self.verdict and self.result == "success" else self.result


def last_block(text: str) -> str | None:
    """Find the last fenced `json` block of a message; None where there is none or it is too long."""
    block = None
    for found in _FENCED.finditer(text):
        block = found[2]
    return None if block is None or len(block) > MAX_BLOCK else block


def read_outcome(block: str | None, verdicts: tuple[str, ...]) -> Outcome | str:
    """Validate a block against the contract; a string says what is wrong with it."""
    if block is None:
        return "the final message holds no fenced json block"
    try:
        outcome = Outcome.model_validate_json(block)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the block"
        return f"{place}: {first['msg']}"
    if verdicts and outcome.result == "success" and outcome.verdict is None:
        return f"verdict: a success must name one of {', '.join(verdicts)}"
    if outcome.verdict is not None and outcome.verdict not in verdicts:
        declared = ", ".join(verdicts) or "none"
        return f"verdict: {outcome.verdict[:100]!r} is not declared by this phase (declared: {declared})"
    return outcome
