"""What a new session is told of what was said: three tiers atop its system prompt, the rules at the bottom. Pure."""

from collections.abc import Sequence

from jinja2 import FunctionLoader

from ashep.extras.foreman.history import HistoryEntry, derived, since
from ashep.extras.foreman.settings import Memory
from ashep.prompt.fences import Fences, Foreign, on_lines
from ashep.prompt.template_sandbox import Language, explained

_FRAME = 300  # characters of the fence, and of the line that counts
_SHORT = 240  # characters of a text on one line


def system_prompt(
    entries: Sequence[HistoryEntry], memory: Memory, template: str, resume: str = "", collapsed: bool = False
) -> str:
    """Write what is appended to a session's system prompt: these entries, old first, or their number (`collapsed`),
    where to go on (`resume`), and the rules. Raises `ConfigError` for the template.
    """
    told, file = _write_tiers(entries, memory, collapsed), memory.rules or "ashep/extras/foreman/rules.md.j2"
    fences = Fences(derived(told), "history")
    history = fences.fence(Foreign(told, len(told)), "history")
    language = Language(FunctionLoader(lambda name: (template, file, None) if name == file else None), fences)
    try:
        text = language.get_template(file).render(history=history if told else "", resume=resume)
    except Exception as error:  # whatever a template can raise, its author is to be told
        raise explained(error, file) from error
    if history.text not in text:  # what was said is not lost by a template that has no place for it
        text = f"{history.text}\n\n{text}"
    return on_lines(text).strip("\n") + "\n"


def check(template: str, memory: Memory) -> None:
    """Try a template out, with a history and without; raises `ConfigError` with its file and line."""
    for resume in ("", "Go on."):
        system_prompt((), memory, template, resume, collapsed=bool(resume))


def counted(number: int) -> str:
    """Say how many entries."""
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _write_tiers(entries: Sequence[HistoryEntry], memory: Memory, collapsed: bool) -> str:
    """Give the three tiers, from the newest back; whole beyond `full` as long as older ones have room on a line."""
    room = left = memory.tokens * 4 - _FRAME  # a token counts as four characters
    recent, told = () if collapsed else since(entries, "topic"), list[str]()
    for entry in reversed(recent):
        head = " ".join([entry.kind, *entry.agent.split()])[:80]
        body = "\n  ".join(entry.text.strip("\n").splitlines())  # no line of it looks like another's head
        text = f"\n{head} ({entry.at:%Y-%m-%d %H:%M} UTC):\n  {body}\n"
        if not told and len(text) > left:  # the newest is never lost
            text = f"{text[: left - 20]}\n[… cut here]\n"
        kept = 0 if len(told) < memory.full else min(room // 2, _SHORT * (len(recent) - len(told)))
        if len(text) > left - kept:
            break
        left -= len(text)
        told.append(text)
    for entry in reversed(recent[: len(recent) - len(told)]):
        if entry.kind in ("prompt", "answer"):
            words = " ".join(entry.text[: 4 * _SHORT].split())
            text = f"{entry.kind}: {words[:_SHORT]}{'…' if len(words) > _SHORT else ''}\n"
            if len(text) > left:
                break
            left -= len(text)
            told.append(text)
    omitted = len(entries) - len(told)
    counts = f"[… {counted(omitted)} omitted …]\n" if omitted or collapsed else ""
    return counts + "".join(reversed(told))
