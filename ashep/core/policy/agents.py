"""The agent registry as users write it: agents, what they can do, which runner has them."""

from typing import Annotated, Literal

from pydantic import Field

from ashep.core.policy.base_types import AtOnce, Document, Name, Names, Word
from ashep.core.policy.runner_kinds import OPENCODE

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""Names of files that agents take for instructions, the first that is there; in any folder."""

Sandbox = Literal["auto", "bwrap", "none"]

# --- agents.yaml ------------------------------------------------------------------------------------------------


class RunnerChoice(Document):
    """What executes an agent's runs."""

    type: Name = OPENCODE
    """The runner's name in config.yaml."""
    agent_slug: Word | None = None
    """The server's agent, such as `build` or `plan`; `null`: the server's default."""
    provider: Word | None = None
    """The provider, together with `model`; `null`: the server's default."""
    model: Word | None = None
    """The model, together with `provider`; `null`: the server's default."""
    session_strategy: Literal["new", "reuse"] = "new"
    """Whether each run gets its own session; a phase's `session` overrides it."""


class Performance(Document):
    """What to expect of an agent."""

    speed: Literal["fast", "normal", "slow"] = "normal"
    """For `prefer: {speed: …}`."""
    timeout_multiplier: Annotated[float, Field(gt=0, le=100)] = 1.0
    """The phase's timeout is multiplied by this."""
    cost: Annotated[float, Field(ge=0)] | None = None
    """What one of its runs costs, as you expect (dollars, say): `ashep policy check` adds up bounds from it."""


class Agent(Document):
    """An entry of the registry."""

    id: Name
    """The agent's name in ashep."""
    capabilities: Annotated[Names, Field(min_length=1)]
    """What it can do: plan, implement, test, review, arbitrate, debug, doc, analyze, code, browsertest, human_review,
    extract, or any word that a phase asks for."""
    read_write: Literal["read", "write"] = "read"
    """Phases with write access take only agents with `write`."""
    sandbox: Sandbox | None = None
    """Where it runs in phases with write access, as `agents.sandbox` of config.yaml says it for all: that is what
    counts where this is `null`. It takes a place for each issue (`runners.opencode.isolation`)."""
    tags: Names = ()
    """Words that a phase can filter by."""
    runner: RunnerChoice = RunnerChoice()
    """What executes its runs."""
    performance: Performance = Performance()
    """What to expect of it."""
    priority: int = 0
    """The higher goes first among the agents that fit."""
    max_runs: AtOnce | None = None
    """So many of its runs at one time; then the next agent that fits is taken, and no person. `null`: no cap but
    `worker.max_concurrent_runs`."""
    is_human: bool = False
    """A person: where it is chosen, the phase is a human phase with a default question."""


class Agents(Document):
    """The file `.agent-shepherd/agents.yaml`."""

    version: Literal[1]
    """The version of the file's language."""
    agents: Annotated[tuple[Agent, ...], Field(min_length=1, max_length=100)]
    """The registry."""
