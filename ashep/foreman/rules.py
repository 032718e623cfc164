"""What follows from what Claude Code tells: what is kept of it, what it is answered, and when a session is begun anew.

Pure: a payload of a hook comes in (facts/claude-code.md 35-43), a decision goes out. Whatever has another form than
expected is let pass, and nothing is kept of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Literal, cast

from ashep.core.text import clean
from ashep.foreman.history import Entry, Kind
from ashep.foreman.launch import CLEAR, HAND_OVER, NAME
from ashep.foreman.settings import Restart
from ashep.foreman.transcript import Size

Payload = Mapping[str, object]
"""What a hook tells."""

Why = Literal["long", "topic", "cleared"]

CONTINUE = (
    "Continue with what was under way: this session was begun anew because the last one had grown too long, and what "
    "was said in it stands in your memory. Whatever was asked of a subagent and has no result there was not begun, or "
    "not finished: look at what is there, and ask for it again if it is still needed."
)
"""The prompt of a session that goes on where another one grew too long."""

UNBEGUN = "[not begun: the session was begun anew before]\n"
"""How what was asked of a subagent begins that was denied."""

LONGEST = 100_000
"""Bytes of a prompt that can be handed to a new session: an argument of a program is 128 kB at most."""

_OWN = ("<task-notification>", "[Request interrupted", "Continue from where you left off", "<local-command-", "<bash-")
"""How a prompt begins that no person wrote."""

_COMMAND = re.compile(r"/[\w.:-]+(\s|\Z)")
"""A slash command; a path has more slashes."""

_ATTACHED = re.compile(r"\[Image #\d+")
"""A prompt that has more to it than its text (pasted text stands in it): a new session would not get that."""

_AGENT = frozenset({"Agent", "Task"})
_MANY = frozenset({"prompt", "answer", "result"})


@dataclass(frozen=True, slots=True)
class Relaunch:
    """The child is to be ended, and a new session begun."""

    why: Why
    prompt: str
    """What the new session is given."""
    line: str = ""
    """What the person is told of it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about a hook, in this order: entries are appended, the relaunch is told of, it is answered."""

    answer: Mapping[str, object] = field(default_factory=dict[str, object])
    entries: tuple[Entry, ...] = ()
    relaunch: Relaunch | None = None
    ask_topic: bool = False
    """Nothing of this is done yet: whether the prompt begins a new topic is to be found out first (`Seen.topic`)."""
    command: Literal["", "clear", "hand-over"] = ""
    """A command of ours, which is answered with what comes of it."""
    arguments: str = ""
    """Of the command."""
    prompted: bool = False
    """A prompt has come that the session goes on with: a person's, or the one that it was begun with."""
    worked: bool = False
    """A person has said something, or a subagent was let begin."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known when a hook tells something."""

    session: str
    """The main agent's."""
    now: datetime
    first: bool = False
    """No prompt has come since the session was begun (anew)."""
    sent: str = ""
    """The prompt that the wrapper began the session with, if none has come yet."""
    prompt: str = ""
    """The id of the last prompt that was told of: what a person says while Claude works at one comes with the same."""
    ending: bool = False
    """A relaunch is under way."""
    long: str = ""
    """Why the session is too long; empty: it is not."""
    topics: bool = False
    """Whether somebody can be asked for a new topic."""
    topic: bool | None = None
    """What the answer was; None: nobody was asked yet."""
    plan: str = ""
    """What the file of a plan holds, where the tool's response names one without its text."""
    call: str = ""
    """The tool call that a subagent was asked by, as far as it is known."""
    nested: bool = False
    """It was asked by another subagent."""
    told: bool = False
    """A result of this call is kept."""


def decide(event: str, payload: Payload, seen: Seen) -> Decision:
    """Say what is done about a hook."""
    if event == "SubagentStop":
        return _stopped(payload, seen)
    if text(payload, "agent_id"):  # whatever else a subagent does is its own business
        return Decision()
    if event == "UserPromptSubmit":
        return _prompted(payload, seen)
    if event == "UserPromptExpansion":
        return _commanded(payload)
    if event == "Stop":
        return _kept("answer", text(payload, "last_assistant_message"), payload, seen, text(payload, "prompt_id"))
    tool = text(payload, "tool_name")
    if event == "PreToolUse" and tool in _AGENT:
        return _asked(payload, seen)
    if event == "PostToolUse" and tool == "ExitPlanMode":
        plan = text(part(payload, "tool_response"), "plan") or seen.plan or text(part(payload, "tool_input"), "plan")
        return _kept("plan", plan, payload, seen, text(payload, "tool_use_id"))
    if event in ("PostToolUse", "PostToolUseFailure") and tool in _AGENT:
        return _returned(payload, seen)
    return Decision()


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


def text(payload: Payload, name: str) -> str:
    """Give the text under a name; empty where there is none."""
    found = payload.get(name)
    return found if isinstance(found, str) else ""


def part(payload: Payload, name: str) -> Payload:
    """Give the object under a name; an empty one where there is none."""
    found = payload.get(name)
    return cast("Payload", found) if isinstance(found, Mapping) else {}


def _prompted(payload: Payload, seen: Seen) -> Decision:
    prompt = text(payload, "prompt")
    if seen.sent and seen.first and prompt.strip() == seen.sent.strip():
        return Decision(prompted=True)  # a person's is kept since it was blocked, and "continue" is nobody's
    if not is_persons(prompt):
        return Decision()
    kept = _kept("prompt", prompt, payload, seen, text(payload, "prompt_id")).entries
    small = len(prompt.encode(errors="replace")) <= LONGEST and _ATTACHED.search(prompt) is None
    during = (
        bool(seen.prompt) and text(payload, "prompt_id") == seen.prompt
    )  # what is said to a turn does not end it [73]
    if not seen.topics or seen.first or seen.ending or during or not small or seen.topic is False:
        return Decision(entries=kept, prompted=True, worked=True)
    if seen.topic is None:
        return Decision(ask_topic=True)
    turned = _kept("topic", "a new topic", payload, seen, text(payload, "prompt_id") or prompt).entries
    line = "a new topic: the session is begun anew, with your prompt"
    return Decision(blocked(line), (*turned, *kept), Relaunch("topic", prompt, line))


def _commanded(payload: Payload) -> Decision:
    name = text(payload, "command_name")
    if name == f"{NAME}:{CLEAR}":
        return Decision(command="clear")
    return (
        Decision(command="hand-over", arguments=text(payload, "command_args"))
        if name == f"{NAME}:{HAND_OVER}"
        else Decision()
    )


def _asked(payload: Payload, seen: Seen) -> Decision:
    asked, call = part(payload, "tool_input"), text(payload, "tool_use_id")
    agent = text(asked, "subagent_type") or "general-purpose"
    denied = bool(seen.long) or seen.ending
    words = (UNBEGUN if denied else "") + text(asked, "prompt")
    kept = _kept("asked", words, payload, seen, call, agent=agent, call=call).entries
    if not denied:
        return Decision(entries=kept, worked=True)
    said = "The session is being begun anew, so this was not begun. Do nothing more: the new session goes on with it."
    ruled = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": said}
    answer = {"hookSpecificOutput": ruled}
    if seen.ending:
        return Decision(answer, kept)
    restart = _kept("restart", seen.long, payload, seen, call).entries
    line = f"the session has grown too long ({seen.long}): it is begun anew, and goes on"
    return Decision(answer, (*kept, *restart), Relaunch("long", CONTINUE, line))


def _stopped(payload: Payload, seen: Seen) -> Decision:
    if seen.nested:
        return Decision()
    one, of = text(payload, "agent_id"), text(payload, "agent_type")
    found = text(payload, "last_assistant_message")
    return _kept("result", found, payload, seen, one, agent=of, call=seen.call or one)


def _returned(payload: Payload, seen: Seen) -> Decision:
    """What a call of a subagent gave, where its end told nothing: one that failed, say."""
    answer, call = part(payload, "tool_response"), text(payload, "tool_use_id")
    blocks = answer.get("content")
    listed = cast("list[object]", blocks) if isinstance(blocks, list) else []
    said = [text(cast("Payload", one), "text") for one in listed if isinstance(one, Mapping)]
    found = "\n".join(filter(None, said)) or text(payload, "error")
    if seen.told or text(answer, "status") == "async_launched":
        return Decision()
    agent = text(part(payload, "tool_input"), "subagent_type") or text(answer, "agentType")
    return _kept("result", found, payload, seen, call, agent=agent, call=call)


def _kept(kind: Kind, words: str, payload: Payload, seen: Seen, of: str, agent: str = "", call: str = "") -> Decision:
    """Keep what was said; told twice, it has the same id: of what it belongs to, and of its words, since a prompt may
    have several answers, a turn several prompts, and a subagent that is spoken to again several results.
    """
    words = clean(words)
    if not words.strip():
        return Decision()
    session = text(payload, "session_id") or seen.session
    name = "\n".join((session, kind, of, words if not of or kind in _MANY else ""))
    identity = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    names = {"session": clean(session), "agent": clean(agent), "call": clean(call)}
    entry = Entry(id=identity, at=seen.now, kind=kind, text=words, **names)
    return Decision(entries=(entry,))


def blocked(reason: str) -> Mapping[str, object]:
    """Give the answer that stops a prompt or a command, and what the person reads of it."""
    return {"decision": "block", "reason": reason}
