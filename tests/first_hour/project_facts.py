"""Facts of projects and machines that nobody has."""

from typing import Any

from ashep.actions.project_checks import CheckProposal, CheckTrial
from ashep.actions.setup.facts import ForgeFact, ProjectFacts
from ashep.actions.setup.known_agents import KNOWN_AGENTS, AgentFact
from ashep.config.starter.setup_files import ChosenAgent


def make_trial(*command: str, rule: str = "", **more: Any) -> CheckTrial:
    """A command that passes on the base."""
    fields: dict[str, Any] = {"message": "it passes", "passes": True, "seconds": 14.2, **more}
    return CheckTrial(CheckProposal("typed", command, rule), command, **fields)


PYTEST = make_trial("pytest", "-q", rule="pyproject.toml has pytest")
FAILS = make_trial("make", "test", passes=False, message="`make test` does not pass on the base: no module named calc")
GITHUB = ForgeFact("github", "github.com", "acme/shop", "gh")
STRANGER = ForgeFact("github", "github.com", "acme/shop", "")
GITLAB = ForgeFact("gitlab", "gitlab.com", "acme/a/shop", "GITLAB_TOKEN")


def make_agent(name: str, **more: Any) -> AgentFact:
    """One of the agents that are known, logged in."""
    known = next(agent for agent in KNOWN_AGENTS if agent.name == name)
    chosen = ChosenAgent(known.name, known.kind, known.command, known.read, known.write)
    fields: dict[str, Any] = {"login": "yes", **more}
    return AgentFact(known.name, known.title, f"/bin/{known.program}", chosen, **fields)


def make_facts(*agents: str, **more: Any) -> ProjectFacts:
    """A project on a machine with these agents."""
    fields: dict[str, Any] = {
        "branch": "main", "upstream": "", "dirty": 0, "forge": None,
        "agents": tuple(map(make_agent, agents or ("claude",))), "checks": (PYTEST,), "sandbox": "", "bd": "/bin/bd",
        "has_database": False, "stories": 0, "leftovers": (), "files": {},
    }  # fmt: skip
    return ProjectFacts(**(fields | more))
