"""All commands, in the order in which the help lists them: importing a module adds its commands."""

from ashep.cli import setting_up, working, controlling, looking, answering, checking, keeping  # isort: skip
from ashep.cli.root import app, policies

app.add_typer(policies, name="policy", short_help="Look at policies.")

__all__ = ["answering", "app", "checking", "controlling", "keeping", "looking", "setting_up", "working"]
