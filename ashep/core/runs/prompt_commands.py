"""Sessions and prompts of a run: which command is next, and the ids by which a retry is the same."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from ashep.core.delivery.repository import branch_to_fetch
from ashep.core.delivery.stories import amendment, amends
from ashep.core.delivery.workspace_retention import going
from ashep.core.delivery.workspaces import branch_for, is_held, make_after_key, own_trees
from ashep.core.facts.commands import (
    AnswerRequest,
    Command,
    OpenSession,
    PreparePrompt,
    PrepareTree,
    ReadTree,
    RemoveTree,
    SealTree,
    SendPrompt,
    StopOrphan,
    StopTurn,
)
from ashep.core.facts.delivery import Ground
from ashep.core.runs.requests import rules_of, to_answer
from ashep.core.state.flow import Flow
from ashep.core.state.run import Run, runner_of
from ashep.core.state.world import World, phase_of

RUN_EFFECTS = (
    OpenSession, PreparePrompt, SendPrompt, AnswerRequest, StopTurn, ReadTree, PrepareTree, SealTree, StopOrphan,
    RemoveTree,
)  # fmt: skip
"""Effects of runs, one of which is open at a time."""

EXTRACTION = "/extract"
"""How the keys of an extraction's session end."""

DIAGNOSED = "/diagnose"
"""How the keys of a diagnosis's session end."""

RUN = re.compile(r"(.+)\.(\d{1,9})\.(\d{1,9})")
"""What a run's id ends with: phase, visit and attempt. A stamp may hold whatever somebody put there."""

_VISITS, _ATTEMPTS = 3, 4  # of a phase before a run: those whose sessions it may have gone on in
_PROMPTS = 10  # more than a run sends, and more than one is tried
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- the run ------------------------------------------------------------------------------------------------------


def run_effect(world: World, flow: Flow) -> Command | None:
    """Give the effect that a run needs now; None: it needs none, or one is open."""
    run = flow.run
    if any(isinstance(command, RUN_EFFECTS) for command in flow.open):
        return None
    if (removal := going(world, flow)) is not None:
        return removal
    if flow.orphan is not None and flow.active:
        on_all = bool(world.runners) and all(map(world.is_up, world.runners))  # it may be on any of them
        if not on_all or flow.takeover is not None or flow.authors.doubts:  # a person may be in it
            return None
        branch = branch_for(flow.issue, world.settings.labels) if own_trees(world) else None
        return StopOrphan(f"{flow.issue.id}/orphan/{flow.orphan}", flow.issue.id, flow.orphan, branch=branch)
    if run is None:
        return None
    if run.stop and run.session is not None and run.stop_due is None:
        again = f".{run.stops}" if run.stops else ""
        key = f"{run.id}/stop/{run.prompt.n}.{run.prompt.tries}.{run.restarts}.{run.ended:d}{again}"
        is_up = world.is_up(runner_of(run.session))
        return StopTurn(key, flow.issue.id, run.id, run.session) if is_up else None
    if run.tree_wanted in ("after", "again"):
        return None if is_held(world, flow) else _finish_tree(world, flow, run)
    if not world.is_up(run.session_runner) or flow.takeover is not None:
        return None
    if (answer := to_answer(flow)) is not None:
        return answer
    posted = flow.target is not None and not flow.unwritten
    goes_on = not run.ended and flow.stage == "work" and posted and not flow.authors.doubts
    return _next_step(world, flow, run) if goes_on else None


def _next_step(world: World, flow: Flow, run: Run) -> Command | None:
    issue, prompt = flow.issue.id, run.prompt
    if run.tree_wanted == "before":
        return _prepare_tree(world, flow, run)
    if run.extract == "wanted" or run.session is None:
        return _open_session(world, flow, run)
    if prompt.blob is None:
        return PreparePrompt(f"{run.id}/prepare/{prompt.n}", issue, run.id, prompt.n, prompt.kind)
    if not prompt.sent and prompt.stamp is not None:
        ids = prompt_ids(world.instance, run.session, run.id, prompt.n, prompt.tries, prompt.stamp)
        key = f"{run.id}/prompt/{prompt.n}.{prompt.tries}.{run.restarts}"
        return SendPrompt(
            key, issue, run.id, prompt.n, run.session, *ids, prompt.blob, prompt.slug, prompt.model, prompt.again
        )
    return None


def _prepare_tree(world: World, flow: Flow, run: Run) -> Command:
    key, issue, own = f"{run.id}/tree/before", flow.issue.id, flow.work.own
    if run.branch is None or own is None:
        return ReadTree(key, issue, run.id, "before", None)
    ground, seals, fetch = _ground(world, flow, run), amends(world, flow, run), branch_to_fetch(world, flow)
    return PrepareTree(
        key, issue, run.id, run.branch, own.base or None, own.slot, ground=ground, seals=seals, fetch=fetch
    )


def _ground(world: World, flow: Flow, run: Run) -> Ground:
    """Say what a run is to stand on: whoever judges, on nothing that was made but what was committed."""
    if not world.settings.isolated:
        return "own"
    if run.access == "read":
        return "sealed"
    phase = phase_of(world, flow)
    return "fresh" if phase is not None and phase.verdicts else "own"


def _finish_tree(world: World, flow: Flow, run: Run) -> Command:
    key, issue = make_after_key(run.id), flow.issue.id
    if run.branch is None:
        return ReadTree(key, issue, run.id, "after", run.before.head if run.before else None)
    return SealTree(key, issue, run.id, run.branch, amend=amendment(world, flow, run))


def _open_session(world: World, flow: Flow, run: Run) -> Command:
    extract = run.extract == "wanted"
    suffix = (DIAGNOSED if run.prompt.kind == "diagnose" else EXTRACTION) if extract else ""
    prompt = run.prompt
    access = "read" if extract else run.access
    phase, own = None if extract else phase_of(world, flow), flow.work.own
    return OpenSession(
        f"{run.id}/session{suffix}",
        flow.issue.id,
        run.id,
        f"{world.instance}:{run.id}{suffix}",
        access,
        prompt.slug,
        prompt.model,
        None if extract else run.reuse,
        rules_of(world, phase, writes=access == "write"),
        directory=own.ground or own.path if run.branch is not None and own is not None else None,
        sandbox=run.sandbox,
        runner=prompt.runner or run.runner,
    )


def prompt_ids(instance: str, session: str, run: str, n: int, tries: int, stamp: datetime) -> tuple[str, str]:
    """Message and part id of a prompt, derived so that a resend has the same.

    The server sorts messages by id: twelve hex digits of time (milliseconds × 4096), then characters of no order.
    """
    seed = hashlib.sha256(f"{instance}\0{session}\0{run}\0{n}\0{tries}".encode()).hexdigest()
    millis = int(stamp.timestamp() * 1000)
    head = f"{(millis * 0x1000 + 1) & 0xFFFFFFFFFFFF:012x}"
    return f"msg_{head}{seed[:14]}", f"prt_{head}{seed[14:28]}"


def earlier_keys(key: str) -> Iterator[str]:
    """Return the session keys of runs of the same phase before this one: few, for a stamp may name any numbers."""
    named = RUN.fullmatch(key)
    visit, attempt = (int(named[2]), int(named[3])) if named else (0, 0)
    for number in range(visit, max(visit - _VISITS, 0), -1):
        last = attempt - 1 if number == visit else _ATTEMPTS
        for earlier in range(last, max(last - _ATTEMPTS, 0), -1):
            yield f"{named[1] if named else ''}.{number}.{earlier}"


def is_asked(key: str, session: str, messages: Iterable[str]) -> bool:
    """Whether one of these messages of a session is a prompt of the run with this key, `INSTANCE:RUN`."""
    instance, _, run = key.partition(":")
    tries = ((n, number) for n in range(1, _PROMPTS) for number in range(_PROMPTS))
    tails = {prompt_ids(instance, session, run, n, number, _EPOCH)[0][-14:] for n, number in tries}
    return any(message[-14:] in tails for message in messages)


def message_id(world: World, run: Run) -> str | None:
    """The message id of the run's present prompt, once it has one."""
    if run.session is None or run.prompt.stamp is None:
        return None
    return prompt_ids(world.instance, run.session, run.id, run.prompt.n, run.prompt.tries, run.prompt.stamp)[0]
