"""`ashep policy graph`: a policy as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from ashep.cli import screen
from ashep.cli.commands import example, policies, project_of
from ashep.cli.place import configured, picture
from ashep.config import ConfigErrors, check, errors_of, examine
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies, Policy
from ashep.core.policy.settings import Settings
from ashep.errors import UsageError
from ashep.views import graph
from ashep.views.graph import Picture

FORMATS = ("mermaid", "dot", "json", "text")
Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The policy; by default `default_policy`, else the first.")
]


@policies.command(
    name="graph",
    epilog=example(
        "ashep policy graph",
        "ashep policy graph standard --format text --live",
        "ashep policy graph standard --format dot | dot -Tsvg > standard.svg",
    ),
)
def policy_graph(
    context: typer.Context,
    name: Name = None,
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="mermaid, dot, json or text.")] = "mermaid",
    live: Annotated[bool, typer.Option("--live", help="Say how many issues are in each phase now.")] = False,
) -> None:
    """Draw a policy: its phases, and what leads from each to the next.

    It is drawn from the search that `ashep policy check` makes, and what that finds in the policy is in colour: red for
    errors, orange for warnings. Failures and deadlines are dotted lines.
    """
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
    policies: Policies, agents: Agents, settings: Settings, name: str | None, issues: dict[str, int] | None = None
) -> Picture:
    """Draw a policy of files that are in order; `issues` are how many are where."""
    name, policy = policy_named(policies, name)
    verdict = analyse(policies.model_copy(update={"policies": {name: policy}}), agents, settings)[name]
    phases = [(phase.name, phase.needs, phase.human is not None) for phase in policy.phases]
    return graph.picture(name, phases, verdict.edges, verdict.findings, issues)


def _print(drawn: Picture, form: str) -> None:
    if form == "json":
        screen.data(graph.as_json(drawn))
    elif form == "text":
        for line, mark in graph.text(drawn):
            screen.say_painted((line, {"error": "red", "warning": "yellow"}.get(mark or "")))
    else:
        for line in graph.mermaid(drawn) if form == "mermaid" else graph.dot(drawn):
            screen.say(line)


def _configuration(folder: Path) -> tuple[Policies, Agents, Settings]:
    """Read the files. What a search of the policies finds is to be drawn; all else that is wrong is not."""
    found = examine(folder)
    policies, agents, settings = found.policies, found.agents, found.settings
    apart = check(policies, agents, None) + check(None, None, settings)  # so that nothing is searched
    if policies is None or agents is None or settings is None or errors_of(apart):
        raise ConfigErrors(errors_of(found.findings))
    return policies, agents, settings


def policy_named(known: Policies, name: str | None) -> tuple[str, Policy]:
    """Find a policy by its name; by default `default_policy`, else the first."""
    name = name or known.default_policy or next(iter(known.policies))
    if name not in known.policies:
        raise UsageError(f"there is no policy {name}; there are {', '.join(known.policies)}")
    return name, known.policies[name]
