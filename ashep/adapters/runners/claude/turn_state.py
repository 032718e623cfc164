"""How an attempt of a prompt stands: from the gate, the process table, its output, and what we did to it. Blocks.

    begun   process   its output                      the turn is
    -       lives     -                               running
    any     dead      an end after a turn, an error   finished
    any     dead      we stopped it, no end           finished, with the error of an abort
    no      dead      an end without a turn, nothing  missing, not started: the model was not asked
    yes     dead      the same                        incomplete: whether the model was asked cannot be known

Where the model shows to have been asked although nothing says that it was let through, that counts as begun. A turn
that is incomplete is begun again by who decides so, under an id of its own: nobody else does it.
"""

from collections.abc import Callable
from dataclasses import replace

from ashep.adapters.runners.claude import process
from ashep.adapters.runners.claude.session_store import Attempt, Process
from ashep.adapters.runners.claude.stream_json import Output
from ashep.adapters.runners.claude.transcript import Spent
from ashep.journal import durable_io
from ashep.ports.runner import STOPPED, Turn

PROVIDER = "anthropic"
ENDED = " ended"
"""Behind an instance: its process is dead, and took its turn with it."""

_WORDS = 2000  # characters of what a process said before it died


def standing(attempt: Attempt, output: Output, leader: Process | None) -> Turn:
    """Say how an attempt stands; `known`: its process. The output is read here, behind the look at the process."""
    alive = process.lives(leader)
    output.read()
    name = leader.instance if leader is not None else ""
    ended = name and name + ENDED
    if alive:
        return Turn("running", name)
    end, aborted = output.result, attempt.has("aborted")
    if end is not None and (end.failed or end.turns > 0):
        return Turn("finished", name, error=STOPPED if aborted and end.failed else output.failure())
    if aborted:
        return Turn("finished", name, error=STOPPED)
    if attempt.has("begun") or output.asked:
        return Turn("incomplete", ended)
    reason = _last_words(attempt)
    return Turn("missing", ended, not_started=reason or "its process ended before the model was asked")


def _last_words(attempt: Attempt) -> str:
    """What a process said that told nothing else: it does not know an option, say."""
    try:
        if (attempt.folder / "stdout").stat().st_size:
            return ""
        with durable_io.opened(attempt.folder / "stderr") as file:
            file.seek(max(0, file.seek(0, 2) - _WORDS))
            return file.read(_WORDS).decode(errors="replace").strip()
    except OSError:
        return ""


def read(
    attempts: list[tuple[Attempt, Output]], leader: Process | None, find_usage: Callable[[Attempt], Spent | None]
) -> Turn:
    """Read a turn from the attempts of its prompt, of which the last one counts, and all for what was used.

    `left`: what the session had used up where an attempt ended that told no end, if that was written down. Of a process
    that was killed outright nobody knows the cost, but the tokens of its answers.
    """
    attempt, output = attempts[-1]
    turn = standing(attempt, output, leader)
    cost, tokens = 0.0, 0
    for one, told in attempts:
        told.read()
        before = one.read_baseline()
        spent, least = told.result or find_usage(one), 0 if told.result else told.tokens
        cost += max(0.0, spent.cost - before.cost) if spent else 0.0
        tokens += max(least, spent.tokens - before.tokens if spent else 0)
    ended = output.refusal() if turn.state == "finished" and turn.error else None
    return replace(
        turn, text=output.text, provider=PROVIDER if output.asked else None, model=output.model,
        tokens=tokens, cost=cost,
        refused=ended or (output.retry if turn.state == "running" else None),
        cut=turn.state == "finished" and output.cut, agent_message_at=output.agent_message_at,
    )  # fmt: skip
