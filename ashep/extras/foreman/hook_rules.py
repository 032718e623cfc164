"""What follows from what Claude Code tells: what is kept of it, what it is answered, and when a session is begun again.

Pure: payloads of hooks (facts/claude-code.md 35-43) come in. Of what has another form than expected nothing is kept.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple, cast

from ashep.core.text import clean
from ashep.extras.foreman.history import HistoryEntry, Kind, derived
from ashep.extras.foreman.settings import Restart

Payload = Mapping[str, object]

CONTINUE = (
    "Continue with what was under way: this session was begun anew, and what was said before stands in your memory. "
    "Whatever was asked of a subagent and has no result there was not begun, or not finished: look at what is there, "
    "and ask for it again if it is still needed."
)
"""The prompt of a session that goes on where another one grew too long."""

UNBEGUN = "[not begun: the session was begun anew before]\n"
"""How what was asked of a subagent begins that was denied."""

LONGEST = 100_000
"""Bytes of a prompt that can be handed to a new session: an argument of a program is 128 kB at most."""

_OWN = ("<task-notification>", "[Request interrupted", "Continue from where you left off", "<local-command-", "<bash-")
"""How a prompt begins that no person wrote."""

_COMMAND = re.compile(r"/[\w.:-]+(\s|\Z)")  # a path has more slashes
_ATTACHED = re.compile(r"\[Image #\d+")  # what is more than text does not come with the prompt


class Size(NamedTuple):
    """How long a session is."""

    bytes: int = 0  # of what was said in it
    tokens: int = 0  # of the last request to the model


class Relaunch(NamedTuple):
    """The child is to be ended, and a new session begun with a prompt; the person is told a line."""

    why: Literal["long", "topic"]
    prompt: str
    line: str


class HookDecision(NamedTuple):
    """What is done about a hook: entries are appended, the session is begun again, the hook is answered."""

    entries: tuple[HistoryEntry, ...] = ()
    answer: Mapping[str, object] = {}
    relaunch: Relaunch | None = None


def read_entry(event: str, payload: Payload, beside: Payload, session: str, now: datetime) -> HistoryEntry | None:
    """Give what is kept of a hook. `beside`: what a file says of it, of a plan (`plan`) or of a subagent [72].

    Told twice, it has the same id: of what it belongs to, and of its words, since a prompt may have several answers, a
    turn several prompts, and a subagent that is spoken to again several results.
    """
    turn, call, one = (text(payload, name) for name in ("prompt_id", "tool_use_id", "agent_id"))
    prompt, last = text(payload, "prompt"), text(payload, "last_assistant_message")
    asked, answer, depth = part(payload, "tool_input"), part(payload, "tool_response"), beside.get("spawnDepth")
    agent = text(asked, "subagent_type")

    def make_entry(kind: Kind, words: str, of: str, agent: str = "", call: str = "") -> HistoryEntry | None:
        words = clean(words)
        name = derived(session, kind, of, words if not of or kind in ("prompt", "answer", "result") else "")
        names = {"session": clean(session), "agent": clean(agent), "call": clean(call)}
        return HistoryEntry(id=name, at=now, kind=kind, text=words, **names) if words.strip() else None

    match event, text(payload, "tool_name"):
        case "SubagentStop", _ if not (isinstance(depth, int) and depth > 1):  # not one that a subagent asked
            return make_entry("result", last, one, text(payload, "agent_type"), text(beside, "toolUseId") or one)
        case _ if one:  # whatever else a subagent does is its own business
            return None
        case "UserPromptSubmit", _ if is_persons(prompt):
            return make_entry("prompt", prompt, turn)
        case "Stop", _:
            return make_entry("answer", last, turn)
        case "PostToolUse", "ExitPlanMode":
            return make_entry("plan", text(answer, "plan") or text(beside, "plan"), call)
        case "PreToolUse", "Agent" | "Task":
            return make_entry("asked", text(asked, "prompt"), call, agent or "general-purpose", call)
        case "PostToolUseFailure", "Agent" | "Task":  # of one that did not fail SubagentStop has told [86]
            return make_entry("result", text(payload, "error"), call, agent, call)
        case _:
            return None


def decide(entry: HistoryEntry, *, topic: bool = False, ending: bool = False, long: str = "") -> HookDecision:
    """Say what is done about what was said: with a new topic, while a relaunch is under way, and why it is too long."""

    def mark(kind: Kind, words: str) -> HistoryEntry:
        return HistoryEntry(id=derived(entry.id, kind), at=entry.at, session=entry.session, kind=kind, text=words)

    if entry.kind == "prompt" and topic:
        line = "a new topic: the session is begun anew, with your prompt"
        entries = mark("topic", "a new topic"), entry
        return HookDecision(entries, {"decision": "block", "reason": line}, Relaunch("topic", entry.text, line))
    if entry.kind != "asked" or not (ending or long):
        return HookDecision((entry,))
    denied = entry.model_copy(update={"text": UNBEGUN + entry.text})
    why = "The session is being begun anew, so this was not begun. Do nothing more: the new session goes on with it."
    ruled = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why}
    answer = {"hookSpecificOutput": ruled}
    if ending:
        return HookDecision((denied,), answer)
    line = f"the session has grown too long ({long}): it is begun anew, and goes on"
    return HookDecision((denied, mark("restart", long)), answer, Relaunch("long", CONTINUE, line))


def why_long(size: Size, limits: Restart) -> str:
    """Say why a session is too long; empty: it is not."""
    if size.bytes > limits.bytes:
        return f"{size.bytes // 1000} kB were said in it"
    if size.tokens > limits.share * limits.window:
        return f"its last request took {size.tokens} of {limits.window} tokens"
    return ""


def is_persons(prompt: str) -> bool:
    """Whether a prompt is one that a person wrote to the model."""
    return bool(prompt.strip()) and not prompt.lstrip().startswith(_OWN) and _COMMAND.match(prompt) is None


def can_be_moved(prompt: str) -> bool:
    """Whether a prompt is a person's that a new session can be begun with."""
    small = len(prompt.encode(errors="replace")) <= LONGEST
    return small and is_persons(prompt) and _ATTACHED.search(prompt) is None


def text(payload: Payload, name: str) -> str:
    """Give the text under a name; empty where there is none."""
    found = payload.get(name)
    return found if isinstance(found, str) else ""


def part(payload: Payload, name: str) -> Payload:
    """Give the object under a name; an empty one where there is none."""
    found = payload.get(name)
    return cast("Payload", found) if isinstance(found, Mapping) else {}
