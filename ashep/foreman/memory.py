"""What a new session is told of what was said: three tiers at the top of its system prompt, the rules at the bottom.

The last things said stand there whole, those before as prompts and answers that are shortened, and what is older is
counted; all of it within a budget. Pure: the same history gives the same text.
"""

from collections.abc import Sequence

from ashep.foreman.entries import Entry
from ashep.foreman.settings import Memory

SHIPPED = "ashep/foreman/rules.md.j2"
"""The template that ships, as errors name it."""


def system_prompt(
    entries: Sequence[Entry], memory: Memory, template: str, resume: str = "", collapsed: bool = False
) -> str:
    """Write what is appended to a session's system prompt.

    `entries`: all that it may be told of, old first (`History.entries()`); of what was said before the last `topic`
    only the number is told. `template`: the text of the rules (`reading.template_of`). `resume`: words of the
    wrapper's own on where to go on, printed as they are. `collapsed`: everything becomes a number.
    Raises `ConfigError` where the template cannot be used.
    """
    raise NotImplementedError
