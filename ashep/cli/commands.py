"""All commands, in the order in which the help lists them: importing a module adds its commands."""

from ashep.cli import setting_up, working, controlling, looking, answering, checking, keeping  # isort: skip
from ashep.cli import criteria, verifying, serving, impact, registry, notifying, service  # isort: skip
from ashep.cli import policy_check, policy_graph, policy_simulate, policy_tables  # isort: skip
from ashep.cli import trees  # isort: skip
from ashep.cli.root import agents, app, notify, policies

app.add_typer(policies, name="policy", short_help="Look at policies.")
app.add_typer(agents, name="agents", short_help="Look at the agent registry.")
app.add_typer(trees.trees, name="trees", short_help="Look at the work trees of issues.")
app.add_typer(notify, name="notify", short_help="Tell people what is worth it.")

__all__ = [
    "answering", "app", "checking", "controlling", "criteria", "impact", "keeping", "looking", "notifying",
    "policy_check", "policy_graph", "policy_simulate", "policy_tables", "registry", "service", "serving",
    "setting_up", "trees", "verifying", "working",
]  # fmt: skip
