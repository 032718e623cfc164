"""Trials of a user's templates on made-up runs, so that a mistake is told before a run needs the template."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ashep.core.facts import delivery, tracker
from ashep.core.facts.outcome import Outcome
from ashep.core.policy.policies import Phase
from ashep.core.state.delivery import Evidence, Flaw
from ashep.core.state.run import Report
from ashep.errors import ConfigError
from ashep.ports.tracker import Dependency, IssueText
from ashep.ports.workspaces import Changes, Commit
from ashep.prompt.template_context import Brief, Kind, StoryBrief, WorkFindings
from ashep.prompt.templates import ENDING, FILE, KINDS, Templates, compiled, render

_EVIDENCE = Evidence(
    "commit", "tree", (delivery.CheckResult("check", "failed", "message", 0),), changed=True, isolated=True, log=""
)


def check_overrides(
    folder: Path, phases: Iterable[Phase] | None = None, templates: Templates | None = None
) -> list[ConfigError]:
    """Say what is wrong with the templates in the folder, by trying each on made-up runs of the phases that use it.

    `phases`: those of all policies; a template that belongs to none of them is an error. None: any phase may exist.
    `templates`: the folder's, as they were taken, which are tried in their place.
    """
    try:
        names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".j2")) if folder.is_dir() else []
    except OSError as error:
        return [ConfigError(f"cannot be read: {error.strerror}", file=folder)]
    known = None if phases is None else tuple(phases)
    found: dict[str, ConfigError] = {}
    for name in names:
        for trial in _trials(name, folder, known, templates or folder):
            try:
                trial()
            except ConfigError as error:
                found.setdefault(str(error), error)
    return list(found.values())


def _trials(
    name: str, folder: Path, phases: tuple[Phase, ...] | None, overrides: Path | Templates
) -> list[Callable[[], object]]:
    """Every way in which a template of this name is used, each as something to try."""

    def misplaced(message: str) -> Callable[[], object]:
        def refuse() -> object:
            raise ConfigError(message, file=folder / name)

        return refuse

    def trial(brief: Brief) -> Callable[[], object]:
        return lambda: render(brief, overrides)

    if not FILE.fullmatch(name):
        return [misplaced(f"is never used; a template is called <phase>{ENDING}, {', '.join(KINDS)} or _<part>")]
    stem = name.removesuffix(ENDING)
    own = [phase for phase in phases or () if phase.name == stem]
    made_up = [Phase(name="phase", verdicts=("yes", "no")), Phase(name="phase", access="write")]
    every = list(phases or made_up)
    if stem.startswith("_"):
        used = [trial(brief) for kind in KINDS for phase in every for brief in _samples(phase, kind)]
        return [lambda: compiled(name, overrides), *used]
    for kind in KINDS:
        if kind == stem:
            return [trial(brief) for phase in every for brief in _samples(phase, kind)]
    if not own and phases is not None:
        return [misplaced(f"is never used: no policy has a phase {stem}")]
    tried = own or [phase.model_copy(update={"name": stem}) for phase in made_up]
    return [trial(brief) for phase in tried for brief in _samples(phase, "task")]


def _samples(phase: Phase, kind: Kind) -> list[Brief]:
    """A first run with next to nothing to tell, and later ones with something of everything."""
    first = Brief(
        run=f"issue/{phase.name}.1.1",
        kind=kind,
        issue="issue",
        phase=phase,
        policy="policy",
        visit=1,
        attempt=1,
        agent="agent",
        text=IssueText(title="title"),
        secret="",
        writes=phase.writes,
    )
    outcome = Outcome(result="success", summary="summary", verdict="verdict", pointers=("pointer",))
    later = replace(
        first,
        run=f"issue/{phase.name}.2.2",
        visit=2,
        attempt=2,
        text=IssueText("title", "text", "text", "text", "text", (Dependency("other", "blocks", "title", "open"),)),
        reports=(
            Report("issue/other.1.1", "other", "agent", "succeeded", "", outcome),
            Report(f"issue/{phase.name}.2.1", phase.name, "agent", "failed", "why", None, "error"),
        ),
        comments=(tracker.Comment("1", "author", "text", datetime(2000, 1, 1, tzinfo=UTC)),),
        changes=Changes((Commit("sha", "subject"),), "stat", ("path",)),
        found=WorkFindings(Flaw("checks", "why", "", "base"), "log", _EVIDENCE),
        wrong="wrong",
        story=StoryBrief("docs/stories/1-2-lists.md", 3, ("docs/architecture.md",)),
        transcript="transcript",
    )
    flaws = Flaw("conflict", "why", "", "base"), Flaw("review", "why", ""), Flaw("names", "why", "")
    return [first, later, *(replace(later, found=WorkFindings(flaw, "log")) for flaw in flaws)]
