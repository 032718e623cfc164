"""The registry of the kinds of runners: what is done with each outside the core, and what people ask of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runner_wait import Say
from ashep.actions.runners import acp, base, claude, opencode
from ashep.actions.runners.base import Examination, ServerCatalog, SessionReference
from ashep.core.policy.runner_kinds import ACP, CLAUDE, KINDS, OPENCODE, OWN, KindRules
from ashep.core.policy.settings import Settings
from ashep.core.state.run import runner_of
from ashep.factories import FACTORIES, NamedRunner, RunnerRequest, make_own
from ashep.ports.runner import Runner
from ashep.ports.transcripts import TranscriptStep
from ashep.redaction import Redaction


@dataclass(frozen=True, slots=True)
class RunnerKind:
    """What there is of a kind of runner."""

    rules: KindRules
    """What decisions depend on, guarantees among it."""
    make: Callable[[RunnerRequest], Runner]
    examine: Callable[[Examination], Awaitable[list[CheckLine]]]
    """Looks whether it can be used, for `ashep install`."""
    open_command: Callable[[SessionReference, str, bool], Awaitable[str]]
    """Says how a person opens a session of an issue; true: the server of a place that does not live is begun, and goes
    on for as long as a person has the issue."""
    read_steps: Callable[[SessionReference, Redaction], Awaitable[tuple[TranscriptStep, ...]]]
    """Reads the end of what was said and done in a session; raises `RunnerError` with why not."""
    link: Callable[[SessionReference], Awaitable[str]] = base.refuse_link
    """Gives the address at which a browser shows a session; raises `RunnerError` with why not."""
    offers: Callable[[NamedRunner, Say], Awaitable[ServerCatalog]] | None = None
    """Gives the agents and models that it can be asked for by name, for `ashep sync-agents`."""
    reach: Callable[[Runner], Awaitable[None]] = Runner.start
    """Makes a runner answer about its sessions; no server is started for that."""


RUNNER_KINDS: Mapping[str, RunnerKind] = {
    OPENCODE: RunnerKind(
        KINDS[OPENCODE], FACTORIES[OPENCODE], opencode.examine, opencode.open_command, opencode.read_steps,
        opencode.link, opencode.offers, opencode.reach,
    ),
    CLAUDE: RunnerKind(
        KINDS[CLAUDE], FACTORIES[CLAUDE], claude.examine, claude.open_command, claude.read_steps, offers=claude.offers
    ),
    ACP: RunnerKind(KINDS[ACP], FACTORIES[ACP], acp.examine, base.name_session, acp.read_steps, offers=acp.offers),
}  # fmt: skip
"""By kind; all others are classes of the user's."""
OWN_KIND = RunnerKind(OWN, make_own, base.examine_own, base.name_session, base.refuse_steps)


def kind_of(settings: Settings, name: str) -> RunnerKind:
    """Return what there is of a runner's kind."""
    return RUNNER_KINDS.get(settings.runners.kind(name), OWN_KIND)


def kind_of_session(
    project: Path, settings: Settings, session: str, folder: str | None
) -> tuple[RunnerKind, SessionReference]:
    """Return the kind of a session's runner. `folder`: of the tree of its run; None: the shared one."""
    name = runner_of(session)
    reference = SessionReference(project, settings, name, session.removeprefix(f"{name}:"), folder)
    return kind_of(settings, name), reference
