"""All commands, in the order in which the help lists them: importing a module adds its commands."""

from ashep.cli.policy import check as policy_check
from ashep.cli.policy import graph as policy_graph
from ashep.cli.policy import simulate as policy_simulate
from ashep.cli.policy import tables as policy_tables
from ashep.cli.project import criteria, registry, service, setting_up, trees
from ashep.cli.reading import checking, impact, looking
from ashep.cli.reading import journal as keeping
from ashep.cli.root import agents, app, notify, policies
from ashep.cli.running import answering, controlling, verifying, working
from ashep.cli.running import controlling as notifying
from ashep.cli.running import verifying as serving

app.add_typer(policies, name="policy", short_help="Look at policies.")
app.add_typer(agents, name="agents", short_help="Look at the agent registry.")
app.add_typer(trees.trees, name="trees", short_help="Look at the work trees of issues.")
app.add_typer(notify, name="notify", short_help="Tell people what is worth it.")

__all__ = [
    "answering", "app", "checking", "controlling", "criteria", "impact", "keeping", "looking", "notifying",
    "policy_check", "policy_graph", "policy_simulate", "policy_tables", "registry", "service", "serving",
    "setting_up", "trees", "verifying", "working",
]  # fmt: skip
