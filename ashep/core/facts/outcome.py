"""What an agent reports, and how it is read: the last fenced `json` block of its final message, strictly."""

import re
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ashep.core.facts.tracker import NewIssue
from ashep.core.policy.base_types import Document

Ending = Literal["cut", "empty", "announced"]
"""The end of a turn that looks like no end of its work: its answer was cut off, or is empty, or announces more work."""

MAX_BLOCK = 64 * 1024
"""A longer block is no outcome."""

_FENCE = re.compile(
    r"^ {0,3}(?P<mark>`{3,}+|~{3,}+)(?:(?P<opens>[ \t]*+json[ \t]*+\r?\n)|[`~]*+[ \t]*+\r?$)",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that opens a block, or one that may close it; nothing that was taken is ever given back."""


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
    def result_word(self) -> str | None:
        """What its phase ended with, in the words of `requires`; None where it failed, or asks for another attempt or a
        person.
        """
        if self.needs_human or self.next_action in ("need_human", "repeat_phase") or self.result == "failed":
            return None
        return self.verdict if self.verdict and self.result == "success" else self.result


def last_block(text: str) -> str | None:
    """Find the last fenced `json` block of a message; None where there is none or it is too long."""
    fences, ends, closable = list(_FENCE.finditer(text)), {"`": 0, "~": 0}, set[int]()
    for place in range(len(fences) - 1, -1, -1):
        mark = fences[place]["mark"]
        if not fences[place]["opens"]:
            ends[mark[0]] = max(ends[mark[0]], len(mark))
        elif len(mark) <= ends[mark[0]]:
            closable.add(place)
    opened, block = None, None
    for place, fence in enumerate(fences):
        if opened is None:
            opened = fence if place in closable else None
        elif not fence["opens"] and fence["mark"].startswith(opened["mark"]):
            opened, block = None, (opened.end(), fence.start())
    return None if block is None or block[1] - block[0] > MAX_BLOCK else text[slice(*block)]


_LAST = 600  # characters of a message in which its last sentence is looked for
_SENTENCE = re.compile(r"(?<=[.!?\u2026]) +|\n+")
_ANNOUNCES = re.compile(
    r"\b(?:continuing|proceeding|resuming|(?:moving|carrying) on|to be continued|stand by|more to follow)\b"
    r"|\b(?:i'll|i will|i am going to|i'm going to|we'll|we will|let me|let's|let us|about to)\b"
    r"(?! (?:know|wait|stop|be (?:happy|glad)|leave|not|never)\b)"
    r"|^\W*(?:now|next)\b|(?::|\.\.\.|\u2026)\W*$",
    re.IGNORECASE,
)
"""Words of a last sentence that says what comes next. A wrong guess costs a question: go on, or report."""


def read_ending(text: str, *, cut: bool) -> Ending | None:
    """Return why a final message looks like no end of the work; None: it may be the end."""
    if cut:
        return "cut"
    if not text.strip():
        return "empty"
    last = _SENTENCE.split(text.rstrip()[-_LAST:].replace("\u2019", "'"))[-1]
    return "announced" if last_block(text) is None and _ANNOUNCES.search(last) else None


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
