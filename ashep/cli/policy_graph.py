"""`ashep policy graph`: a policy as a picture."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ashep.cli import screen
from ashep.cli.place import configured, picture
from ashep.cli.root import example, policies, project_of
from ashep.errors import UsageError

if TYPE_CHECKING:
    from ashep.core.model import Agents, Phase, Policies, Policy, Settings
    from ashep.views.graph import Picture

FORMATS = ("mermaid", "dot", "json", "text")


@policies.command(
    name="graph",
    short_help="Draw a policy.",
    epilog=example(
        "ashep policy graph",
        "ashep policy graph standard --format text --live",
        "ashep policy graph standard --format dot | dot -Tsvg > standard.svg",
    ),
)
def policy_graph(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The policy; by default `default_policy`, else the first.")
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="mermaid, dot, json or text.")] = "mermaid",
    live: Annotated[bool, typer.Option("--live", help="Say how many issues are in each phase now.")] = False,
) -> None:
    """Draw a policy: its phases, and what leads from each to the next.

    It is drawn from what `ashep policy check` looks at, and what that finds is in colour: red for errors, orange for
    warnings. Failures and deadlines are dotted lines.
    """
    from ashep.views import graph

    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    folder = configured(project_of(context))
    policies, agents, settings = _configuration(folder)
    name, _ = policy_named(policies, name)
    issues = None
    if live:
        with picture(folder / "state") as seen:
            issues = graph.counts(seen.database, name)
    _print(drawn(policies, agents, settings, name, issues), form)


def drawn(
    policies: "Policies", agents: "Agents", settings: "Settings", name: str | None, issues: dict[str, int] | None = None
) -> "Picture":
    """Draw a policy of files that are in order; `issues` are how many are where."""
    from ashep.views import graph

    name, policy = policy_named(policies, name)
    phases = [(phase.name, phase.needs, phase.human is not None) for phase in policy.phases]
    return graph.picture(name, phases, _edges(policy), (), issues)


def _print(drawn: "Picture", form: str) -> None:
    from ashep.views import graph

    if form == "json":
        screen.data(graph.as_json(drawn))
    elif form == "text":
        for line, mark in graph.text(drawn):
            screen.say_painted((line, {"error": "red", "warning": "yellow"}.get(mark or "")))
    else:
        for line in graph.mermaid(drawn) if form == "mermaid" else graph.dot(drawn):
            screen.say(line)


def _configuration(folder: Path) -> "tuple[Policies, Agents, Settings]":
    """Read the files; those that contradict themselves have nothing that could be drawn."""
    from ashep.config import ConfigErrors, examine

    found = examine(folder)
    errors = [finding for finding in found.findings if finding.severity == "error"]
    if found.policies is None or found.agents is None or found.settings is None or errors:
        raise ConfigErrors(errors)
    return found.policies, found.agents, found.settings


def policy_named(known: "Policies", name: str | None) -> "tuple[str, Policy]":
    """Find a policy by its name; by default that which most issues have."""
    name = name or known.default_policy or next(iter(known.policies))
    if name not in known.policies:
        raise UsageError(f"there is no policy {name}; there are {', '.join(known.policies)}")
    return name, known.policies[name]


class Edge(NamedTuple):
    """What leads from a phase to another."""

    source: str
    move: str
    target: str
    kind: str


def _edges(policy: "Policy") -> Iterator[Edge]:
    for phase in policy.phases:
        if phase.human is not None:
            yield from _answers(policy, phase)
            continue
        yield from (Edge(phase.name, verdict, phase.next[verdict], "success") for verdict in phase.verdicts)
        if not phase.verdicts:
            yield Edge(phase.name, "success", _success(policy, phase), "success")
        yield from (
            Edge(phase.name, result, phase.next.get(result, "park"), "failure") for result in ("failed", "partial")
        )


def _success(policy: "Policy", phase: "Phase") -> str:
    from ashep.core.routing import following

    return phase.next.get("success") or following(policy, phase)


def _answers(policy: "Policy", phase: "Phase") -> Iterator[Edge]:
    from ashep.core.routing import writer_before

    if phase.human is not None:
        yield Edge(phase.name, "approved", phase.human.approved, "answer")
        back = phase.human.changes_requested or writer_before(policy, phase)
        yield Edge(phase.name, "changes_requested", back, "answer")
        yield Edge(phase.name, "deadline", phase.human.on_deadline, "deadline")
