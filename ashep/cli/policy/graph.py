"""`ashep policy graph`: a policy as a picture."""

from contextlib import nullcontext
from typing import Annotated

import typer

from ashep.cli import output
from ashep.cli.commands import example, policies, project_of
from ashep.cli.context import configured, picture
from ashep.errors import UsageError
from ashep.views import policy_graph as graph
from ashep.views.edge_counts import EdgeCounts
from ashep.views.policies import configuration, counted, draw_policy, policy_named

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
    policies, agents, settings = configuration(folder)
    name, _ = policy_named(policies, name)
    with picture(folder / "state") if live else nullcontext() as seen:
        made = draw_policy(policies, agents, settings, name, graph.counts(seen.database, name) if seen else None)
        if form == "json" and seen:
            told, stands = graph.as_json(made), graph.stands(seen.database, name)
            output.data(counted(told, stands, EdgeCounts().count_edges(seen.database, name)))
        elif form == "json":
            output.data(graph.as_json(made))
        elif form == "text":
            for line, mark in graph.text(made):
                output.say_painted((line, {"error": "red", "warning": "yellow"}.get(mark or "")))
        else:
            output.say_lines(graph.mermaid(made) if form == "mermaid" else graph.dot(made))
