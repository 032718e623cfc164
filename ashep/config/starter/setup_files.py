"""The three files that `ashep setup` writes: a pure function of its answers. They say what is not the default."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import yaml

from ashep.config.yaml_tree import IndentedDumper
from ashep.core.policy.base_types import name_of
from ashep.core.policy.runner_kinds import ACP, OPENCODE
from ashep.core.text import clean

_HEAD = "# Written by `ashep setup` []: what you change in it stays. Defaults: docs/configuration.md"
"""A hash of the whole text without it comes between the brackets: a change by hand is recognised by it."""
_HASH = re.compile(r"^(# Written by `ashep setup` \[)([0-9a-f]{8})(\])", re.MULTILINE)

Source = Literal["github", "bd", "stories"]
Landing = Literal["merge", "pull_request"]
Section = tuple[str, dict[str, Any]]
"""The lines of a comment, and the keys below it."""


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

    verify: Mapping[str, Any]
    """`command`, and `timeout` where the default is too short."""
    verification: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of `verification` in config.yaml without which it does not pass."""
    note: str = ""
    """For the comment above it, such as `14 s on the base`."""


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
    forge: Mapping[str, str] | None = None
    """Where pull requests are opened: `type`, `repository`, and `url` where that is not the usual one."""


def files_of(answers: SetupAnswers) -> dict[str, str]:
    """Return the text of each of the three files, by its name."""
    sections = {"config": _config(answers), "policies": [_policies(answers)], "agents": [_agents(answers)]}
    return {f"{name}.yaml": _join(name, parts) for name, parts in sections.items()}


def is_as_written(text: str) -> bool:
    """Whether `ashep setup` wrote a text, and nobody has changed anything in it since, not even a comment."""
    match = _HASH.search(text)
    return match is not None and _hash(_HASH.sub(r"\1\3", text, count=1)) == match[2]


def _hash(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:8]


def _join(schema: str, sections: Iterable[Section]) -> str:
    text = f"# yaml-language-server: $schema=schemas/{schema}.schema.json\n{_HEAD}\nversion: 1\n"
    for comment, document in sections:
        lines = (f"# {' '.join(clean(line).split())}\n" for line in comment.split("\n"))
        keys = yaml.dump(
            document, Dumper=_FileDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=math.inf
        )
        text += f"\n{''.join(lines)}{keys}"
    return text.replace("[]", f"[{_hash(text)}]", 1)


class _FileDumper(IndentedDumper):
    """Writes each text so that every reader takes it for one, and a list of texts on one line."""

    def represent_text(self, text: str) -> yaml.Node:
        """Quote what does not begin with a letter: `1e6` is a number to some readers, and to others a text."""
        is_plain = text[:1].isalpha() and text.isprintable()
        return self.represent_scalar("tag:yaml.org,2002:str", text, None if is_plain else '"')  # pyright: ignore[reportUnknownMemberType] - yaml has no types

    def represent_words(self, items: list[Any]) -> yaml.Node:
        return self.represent_sequence("tag:yaml.org,2002:seq", items, all(isinstance(item, str) for item in items))


_FileDumper.add_representer(str, _FileDumper.represent_text)
_FileDumper.add_representer(list, _FileDumper.represent_words)


# --- config.yaml --------------------------------------------------------------------------------------------------


def _config(answers: SetupAnswers) -> Iterator[Section]:
    forge, check = answers.forge or {}, answers.check
    if answers.source == "github":
        comment = "Issues of GitHub that carry this label, set by somebody who may write there: docs/guides/github.md"
        url = {"url": forge["url"]} if "url" in forge else {}
        yield comment, {"sources": {"github": {"label": "ashep", **url}}}
    if answers.source == "stories":
        yield "Each story of the BMAD method gets an issue: docs/guides/stories.md", {"bmad": {"enabled": True}}
    agents = [agent for agent in dict.fromkeys((answers.maker, answers.judge)) if agent.kind == ACP]
    if agents:
        runners = {agent.name: {"type": ACP, "command": [*agent.command]} for agent in agents}
        reads = [path for agent in agents for path in agent.read]
        writes = [path for agent in agents for path in agent.write]
        paths = {key: value for key, value in (("read", reads), ("write", writes)) if value}
        comment = "Agents that speak ACP, and what of your home they see in their sandbox: docs/guides/agents.md"
        yield comment, {"runners": runners, **({"agents": {"paths": paths}} if paths else {})}
    if answers.landing == "pull_request" and forge:
        comment = "Work that is done becomes a pull request, which people merge: docs/guides/landing.md"
        yield comment, {"landing": {"mode": "pull_request", "forge": dict(forge)}}
    if (cost := answers.budget) is not None:
        comment = "What all agents of a day may cost, in dollars (a subscription: what it would cost by key)."
        yield comment, {"budgets": {"day": {"cost": cost if cost % 1 else int(cost)}}}
    if check is not None and check.verification:
        comment = "What the check needs in its sandbox: docs/guides/verification.md"
        yield comment, {"verification": dict(check.verification)}


# --- policies.yaml ------------------------------------------------------------------------------------------------


def _policies(answers: SetupAnswers) -> Section:
    note = answers.check.note if answers.check is not None else ""
    described = f"\nThe check: {note}" if note else ""
    if answers.source == "stories":
        phases = _checked("developer", answers.check)
        policy = {"extends": "preset:bmad-story", **({"phases": phases} if phases else {})}
        comment = "The rounds of a story, as `ashep policy graph` draws them: docs/guides/presets.md"
        return comment + described, {"policies": {"bmad-story": policy}}
    by_people = answers.landing == "pull_request"
    question = "the pull request asks you" if by_people else "you are asked"
    review: dict[str, Any] = {"name": "review", **({"must_pass": ["approve"]} if by_people else {})}
    review["next"] = {"approve": "close" if by_people else "human_review", "needs_changes": "implement"}
    phases = [*_checked("implement", answers.check), review]
    removed = ["arbitrate", *(["human_review"] if by_people else [])]
    policy = {"extends": "preset:standard", "remove": removed, "phases": phases}
    comment = f"An agent implements, another reviews, {question}. `ashep policy graph` draws it."
    return comment + described, {"policies": {"standard": policy}}


def _checked(phase: str, check: ChosenCheck | None) -> list[dict[str, Any]]:
    if check is None:
        return []
    tests = {"id": "tests", "description": "the project's tests pass", "type": "test_pass", "verify": {**check.verify}}
    return [{"name": phase, "checks": [tests]}]


# --- agents.yaml --------------------------------------------------------------------------------------------------


def _agents(answers: SetupAnswers) -> Section:
    maker, judge, stories = answers.maker, answers.judge, answers.source == "stories"
    comment = "Who works, and who judges. A model of your choice: `provider` and `model` next to `type`."
    if stories:
        comment += "\nA reviewer writes what is wrong into the story, and nowhere else."
    works = {
        "id": name_of(f"{maker.name}-works", "maker", 60),
        "capabilities": ["implement", "code", "debug", "test", "doc"],
        "read_write": "write",
        "runner": _runner(maker, "build"),
    }
    judges = {
        "id": name_of(f"{judge.name}-judges", "judge", 60),
        "capabilities": ["review", "arbitrate", "plan", "analyze"],
        **({"read_write": "write"} if stories else {}),
        "runner": _runner(judge, "build" if stories else "plan"),
    }
    return comment, {"agents": [works, judges]}


def _runner(agent: ChosenAgent, slug: str) -> dict[str, str]:
    return {"agent_slug": slug} if agent.kind == OPENCODE else {"type": agent.name}
