"""Facts of projects and machines that nobody has."""

from typing import Any

from ashep.actions.setup.checks import CheckFact
from ashep.actions.setup.facts import ForgeFact, ProjectFacts
from ashep.actions.setup.known_agents import KNOWN_AGENTS, AgentFact
from ashep.config.starter.setup_files import ChosenAgent

PYTEST = CheckFact(("pytest", "-q"), "pyproject.toml has pytest", passed=True, seconds=14.2)
FAILS = CheckFact(("make", "test"), "Makefile has test:", failure="exit code 2: no module named calc")
GITHUB = ForgeFact("github", "github.com", "acme/shop", "gh")
STRANGER = ForgeFact("github", "github.com", "acme/shop", "")
GITLAB = ForgeFact("gitlab", "gitlab.com", "acme/a/shop", "GITLAB_TOKEN")


def agent(name: str, **more: Any) -> AgentFact:
    """One of the agents that are known, logged in."""
    known = next(one for one in KNOWN_AGENTS if one.name == name)
    chosen = ChosenAgent(known.name, known.kind, known.command, known.read, known.write)
    given: dict[str, Any] = {"login": "yes", **more}
    return AgentFact(known.name, known.title, f"/bin/{known.program}", chosen, **given)


def found(*agents: str, **more: Any) -> ProjectFacts:
    """A project as it stands."""
    facts: dict[str, Any] = {
        "branch": "main", "upstream": "", "dirty": 0, "forge": None, "agents": tuple(map(agent, agents or ("claude",))),
        "checks": (PYTEST,), "sandbox": "", "bd": "/bin/bd", "has_database": False, "stories": 0, "leftovers": (),
        "files": {},
    }  # fmt: skip
    return ProjectFacts(**(facts | more))
