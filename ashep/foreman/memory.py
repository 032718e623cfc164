"""What a new session is told of what was said: three tiers at the top of its system prompt, the rules at the bottom.

The last things said stand there whole, those before as prompts and answers that are shortened, and what is older is
counted; all of it within a budget. Pure: the same history gives the same text.

The template is the person's own, and `ashep.prompt`, whose templates come from projects, is not asked: importing it
takes longer than all else of a start.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ashep.core.text import clean
from ashep.errors import ConfigError
from ashep.foreman.history import Entry, since
from ashep.foreman.settings import Memory

SHIPPED = "ashep/foreman/rules.md.j2"
"""The template that ships, as errors name it."""

_TOKEN = 4  # characters
_SHORT = 240  # characters of a prompt or an answer in the middle tier
_AROUND = 2 * len("[BEGIN history 0123456789abcdef]\n")  # the fence
_COUNTED = len("[… 1,000,000,000 entries omitted …]\n\n")
_WORDS = {
    "prompt": "prompt of the person",
    "answer": "answer",
    "plan": "plan, accepted by the person",
    "asked": "asked of a subagent",
    "result": "result of a subagent",
    "restart": "the session was begun anew",
    "topic": "a new topic began",
    "cleared": "cleared",
}


def system_prompt(
    entries: Sequence[Entry], memory: Memory, template: str, resume: str = "", collapsed: bool = False
) -> str:
    """Write what is appended to a session's system prompt.

    `entries`: all that it may be told of, old first (`History.entries()`); of what was said before the last `topic`
    only the number is told. `template`: the text of the rules (`Place.template`). `resume`: words of the wrapper's own
    on where to go on, printed as they are. `collapsed`: everything becomes a number.
    Raises `ConfigError` where the template cannot be used.
    """
    told, file = _told(entries, memory, collapsed), memory.rules or SHIPPED
    fenced = _fenced(told) if told else ""
    try:
        text = _compiled(template, file).render(history=fenced, resume=resume).strip("\n")
    except Exception as error:  # whatever a template can raise, its author is to be told
        raise _wrong(error, file) from error
    if fenced not in text:  # what was said is not lost by a template that has no place for it
        text = f"{fenced}\n\n{text}"
    return f"{text}\n"


def check(template: str, memory: Memory) -> None:
    """Try a template out, with a history and without; raises `ConfigError` with its file and line."""
    system_prompt((), memory, template)
    system_prompt((), memory, template, "Go on.", collapsed=True)


def counted(number: int) -> str:
    """Say how many entries."""
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _told(entries: Sequence[Entry], memory: Memory, collapsed: bool) -> str:
    """Give the three tiers, in no more than the budget."""
    recent = () if collapsed else since(entries, "topic")
    left = memory.tokens * _TOKEN - _AROUND - _COUNTED
    whole, left = _whole(recent, memory.full, left)
    middle = [one for one in recent[: len(recent) - len(whole)] if one.kind in ("prompt", "answer")]
    short, _ = _fitting(middle, _shortened, left)
    omitted = len(entries) - len(whole) - len(short)
    counts = [f"[… {counted(omitted)} omitted …]\n"] if omitted or collapsed else []
    return "\n".join([*counts, *short, *([""] if short else []), *whole]).strip("\n")


def _whole(recent: Sequence[Entry], least: int, left: int) -> tuple[list[str], int]:
    """Give the last entries as they are; what they leave of the budget is shared with those before."""
    everything, rest = _fitting(recent, _full, left)
    if len(everything) == len(recent):
        return everything, rest
    last, left = _fitting(recent[-least:], _full, left)
    if not last:
        room = left - len(_full(recent[-1].model_copy(update={"text": ""}))) - _COUNTED
        return [_full(recent[-1], room)], 0
    if len(last) < least:
        return last, left
    more, rest = _fitting(recent[: -len(last)], _full, left // 2)
    return [*more, *last], left - left // 2 + rest


def _fitting(entries: Sequence[Entry], how: Callable[[Entry], str], left: int) -> tuple[list[str], int]:
    """Give as many of the last entries as fit, and what they leave."""
    chosen = list[str]()
    for entry in reversed(entries):
        text = how(entry)
        if len(text) >= left:
            break
        left -= len(text) + 1
        chosen.append(text)
    return chosen[::-1], left


def _head(entry: Entry) -> str:
    agent = f" {entry.agent[:80]}" if entry.agent else ""
    return f"{_WORDS[entry.kind]}{agent}"


def _full(entry: Entry, longest: int | None = None) -> str:
    """Give an entry whole; its text is indented, so that no line of it looks like the head of another entry."""
    body = "\n".join(f"  {line}" for line in _tidy(entry.text).split("\n"))
    if longest is not None and len(body) > longest:
        body = f"{body[:longest]}\n[… cut here]"
    return f"{_head(entry)} ({entry.at:%Y-%m-%d %H:%M} UTC):\n{body}\n"


def _shortened(entry: Entry) -> str:
    """Give an entry on one line."""
    text = " ".join(clean(entry.text[: 4 * _SHORT]).split())
    return f"{_head(entry)}: {text if len(text) <= _SHORT else text[: _SHORT - 1] + '…'}"


def _tidy(text: str) -> str:
    """Give a text with no line ends but newlines."""
    return clean(text.replace("\u2028", "\n").replace("\u2029", "\n")).strip("\n")


def _fenced(told: str) -> str:
    """Put it between two lines that nothing in it can have written: their token is made of all of it."""
    token = sha256(told.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"[BEGIN history {token}]\n{told}\n[END history {token}]"


@lru_cache(maxsize=4)
def _compiled(template: str, file: str) -> Template:
    loader = FunctionLoader(lambda name: (template, file, lambda: True) if name == file else None)
    language = ImmutableSandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return language.get_template(file)


def _wrong(error: Exception, file: str) -> ConfigError:
    """Say what a template's error is, and where."""
    if isinstance(error, TemplateSyntaxError):
        return ConfigError(error.message or "cannot be understood", file=file, line=error.lineno)
    line, trace = None, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == file else line
        trace = trace.tb_next
    said = f"there is no template {error}" if isinstance(error, TemplateNotFound) else str(error)[:300]
    if isinstance(error, RecursionError):
        said = "includes or extends itself"
    return ConfigError(said or type(error).__name__, file=file, line=line)
