"""All commands, in the order in which the help lists them: importing a module adds its commands."""

from ashep.cli.project import setting_up  # isort: skip # the help's order, not the alphabet's
from ashep.cli.running import working, controlling  # isort: skip
from ashep.cli.reading import looking  # isort: skip
from ashep.cli.running import answering  # isort: skip
from ashep.cli.reading import checking, journal  # isort: skip
from ashep.cli.project import criteria  # isort: skip
from ashep.cli.running import verifying  # isort: skip
from ashep.cli.reading import impact  # isort: skip
from ashep.cli.project import registry, service, trees  # isort: skip
from ashep.cli.policy import check, graph, simulate, tables  # isort: skip
from ashep.cli.root import agents, app, notify, policies

app.add_typer(policies, name="policy", short_help="Look at policies.")
app.add_typer(agents, name="agents", short_help="Look at the agent registry.")
app.add_typer(trees.trees, name="trees", short_help="Look at the work trees of issues.")
app.add_typer(notify, name="notify", short_help="Tell people what is worth it.")

__all__ = [
    "answering", "app", "check", "checking", "controlling", "criteria", "graph", "impact", "journal", "looking",
    "registry", "service", "setting_up", "simulate", "tables", "trees", "verifying", "working",
]  # fmt: skip
