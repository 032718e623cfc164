"""The three files that `ashep setup` writes: a pure function of its answers. They say what is not the default."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ashep.core.policy.base_types import name_of
from ashep.core.policy.runner_kinds import ACP, OPENCODE

HEAD = (
    "# Written by `ashep setup`, which changes it, too. What is not named here has its default: docs/configuration.md"
)
NO_TEST = "No test ran: nobody but an agent says that this works. Merge this?"
"""The question to the person of a project without a check."""

Source = Literal["github", "bd", "stories"]
Landing = Literal["merge", "pull_request"]


@dataclass(frozen=True, slots=True)
class ChosenAgent:
    """An agent that works or judges."""

    name: str
    """Of its program, which names its runner, too: `claude`, `opencode`, `gemini`, …"""
    kind: str
    command: tuple[str, ...] = ()
    """What starts one that speaks ACP."""
    read: tuple[str, ...] = ()
    """Files of the user's that it needs in its sandbox."""
    write: tuple[str, ...] = ()
    """Files among them that it renews, such as a login."""


@dataclass(frozen=True, slots=True)
class ChosenCheck:
    """The command by which each work is checked, and what it needs."""

    command: tuple[str, ...]
    verification: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of `verification` in config.yaml without which it does not pass."""
    note: str = ""
    """For the comment next to it, such as `14 s on the base`."""


@dataclass(frozen=True, slots=True)
class ChosenForge:
    """Where pull requests are opened."""

    type: str
    repository: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class SetupAnswers:
    """What the questions of `ashep setup` were answered with."""

    source: Source
    maker: ChosenAgent
    judge: ChosenAgent
    check: ChosenCheck | None
    landing: Landing = "merge"
    budget: float | None = None
    """What a day may cost, in dollars."""
    label: str = "ashep"
    forge: ChosenForge | None = field(default=None)


def files_of(answers: SetupAnswers) -> dict[str, str]:
    """Return the text of each of the three files, by its name."""
    return {
        "config.yaml": _join("config", _config(answers)),
        "policies.yaml": _join("policies", _stories(answers) if answers.source == "stories" else _standard(answers)),
        "agents.yaml": _join("agents", _agents(answers)),
    }


def _join(schema: str, lines: Iterator[str]) -> str:
    start = f"# yaml-language-server: $schema=schemas/{schema}.schema.json"
    return "\n".join([start, HEAD, "version: 1", *lines]) + "\n"


def _words(words: Sequence[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)


# --- config.yaml --------------------------------------------------------------------------------------------------


def _config(answers: SetupAnswers) -> Iterator[str]:
    if answers.source == "github":
        yield ""
        yield f"# Issues of GitHub that carry this label, set by somebody who may write there: {_GITHUB}"
        url = f", url: {json.dumps(answers.forge.url)}" if answers.forge is not None and answers.forge.url else ""
        yield f"sources: {{github: {{label: {json.dumps(answers.label)}{url}}}}}"
    if answers.source == "stories":
        yield ""
        yield "# Each story of the BMAD method gets an issue: docs/guides/stories.md"
        yield "bmad: {enabled: true}"
    yield from _runners(answers)
    yield from _landing(answers)
    if answers.budget is not None:
        yield ""
        yield "# What all agents of a day may cost, in dollars (a subscription: what it would cost by key)."
        yield f"budgets: {{day: {{cost: {answers.budget:g}}}}}"
    yield from _needs(answers.check)


_GITHUB = "docs/guides/github.md"


def _runners(answers: SetupAnswers) -> Iterator[str]:
    agents = [agent for agent in dict.fromkeys((answers.maker, answers.judge)) if agent.kind == ACP]
    if agents:
        yield ""
        yield "# Agents that speak ACP, and what of your home they see in their sandbox: docs/guides/agents.md"
        yield "runners:"
        for agent in agents:
            yield f"  {agent.name}: {{type: acp, command: {_words(agent.command)}}}"
    read = [path for agent in agents for path in agent.read]
    write = [path for agent in agents for path in agent.write]
    paths = [
        f"{key}: {_words(paths_of_key)}" for key, paths_of_key in (("read", read), ("write", write)) if paths_of_key
    ]
    if paths:
        yield f"agents: {{paths: {{{', '.join(paths)}}}}}"


def _landing(answers: SetupAnswers) -> Iterator[str]:
    if answers.landing == "pull_request" and (forge := answers.forge) is not None:
        url = f", url: {json.dumps(forge.url)}" if forge.url else ""
        yield ""
        yield "# Work that is done becomes a pull request, which people merge: docs/guides/landing.md"
        yield "landing:"
        yield "  mode: pull_request"
        yield f"  forge: {{type: {forge.type}, repository: {json.dumps(forge.repository)}{url}}}"


def _needs(check: ChosenCheck | None) -> Iterator[str]:
    if check is not None and check.verification:
        yield ""
        yield "# What the check needs in its sandbox: docs/guides/verification.md"
        yield "verification:"
        for key, value in check.verification.items():
            yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


# --- policies.yaml ------------------------------------------------------------------------------------------------


def _standard(answers: SetupAnswers) -> Iterator[str]:
    yield ""
    by_people = answers.landing == "pull_request"
    question = "the pull request asks you" if by_people else "you are asked"
    yield f"# An agent implements, another reviews, {question}. `ashep policy graph` draws it."
    yield "policies:"
    yield "  standard:"
    yield "    extends: preset:standard"
    yield f"    remove: [{'arbitrate, human_review' if by_people else 'arbitrate'}]"
    yield "    phases:"
    if answers.check is not None:
        yield "      - name: implement"
        yield from _checks(answers.check)
    yield "      - name: review"
    if by_people:
        yield "        must_pass: [approve]"
    yield f"        next: {{approve: {'close' if by_people else 'human_review'}, needs_changes: implement}}"
    if answers.check is None and not by_people:
        yield "      - name: human_review"
        yield f"        human: {{ask: {json.dumps(NO_TEST)}, changes_requested: implement}}"


def _stories(answers: SetupAnswers) -> Iterator[str]:
    yield ""
    yield "# The rounds of a story, as `ashep policy graph` draws them: docs/guides/presets.md"
    yield "policies:"
    yield "  bmad-story:"
    yield "    extends: preset:bmad-story"
    if answers.check is not None:
        yield "    phases:"
        yield "      - name: developer"
        yield from _checks(answers.check)


def _checks(check: ChosenCheck) -> Iterator[str]:
    note = f"  # {check.note}" if check.note else ""
    yield f"        checks:{note}"
    yield "          - id: tests"
    yield "            description: the project's tests pass"
    yield "            type: test_pass"
    yield f"            verify: {{command: {_words(check.command)}}}"


# --- agents.yaml --------------------------------------------------------------------------------------------------

_MAKES = "implement, code, debug, test, doc"
_JUDGES = "review, arbitrate, plan, analyze"


def _agents(answers: SetupAnswers) -> Iterator[str]:
    maker, judge = answers.maker, answers.judge
    yield ""
    yield "# Who works, and who judges. A model of your choice: `provider` and `model` next to `type`."
    yield "agents:"
    yield f"  - id: {name_of(f'{maker.name}-works', 'maker', 60)}"
    yield f"    capabilities: [{_MAKES}]"
    yield "    read_write: write"
    yield f"    runner: {_runner(maker, 'build')}"
    yield f"  - id: {name_of(f'{judge.name}-judges', 'judge', 60)}"
    yield f"    capabilities: [{_JUDGES}]"
    if answers.source == "stories":
        yield "    read_write: write         # a reviewer writes what is wrong into the story, and nowhere else"
    yield f"    runner: {_runner(judge, 'build' if answers.source == 'stories' else 'plan')}"


def _runner(agent: ChosenAgent, slug: str) -> str:
    return f"{{agent_slug: {slug}}}" if agent.kind == OPENCODE else f"{{type: {agent.name}}}"
