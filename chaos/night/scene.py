"""What a night is about: its policies, agents and budgets, as a user would write them, and what its agents do."""

import json
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import yaml

from ashep.core.facts.runs import Model, Refusal
from ashep.extras.simulation.memory.runner import Play, Prompted

MODELS = (Model("acme", "large"), Model("globex", "medium"), Model("initech", "small"))
TEAMS = ("red", "green", "blue")


def policies() -> str:
    """A policy for each team, whose agents are of a provider that it prefers."""
    some: dict[str, Any] = {}
    for team in TEAMS:
        implement = {
            "name": "implement", "access": "write", "timeout": "25m", "prefer": {"tags": [team]},
            "stall": {"after": "4m"}, "retry": {"max_attempts": 3, "initial_delay": "20s", "change_agent": "next"},
        }  # fmt: skip
        review = {
            "name": "review", "timeout": "20m", "verdicts": ["approve", "needs_changes"], "stall": {"after": "4m"},
            "prefer": {"different_provider_from": "implement"},
            "next": {"approve": "sign" if team == "red" else "close", "needs_changes": "implement"},
        }  # fmt: skip
        sign = {"name": "sign", "human": {"ask": "Ship it?", "deadline": "3d", "changes_requested": "implement"}}
        phases = [implement, review, *([sign] if team == "red" else [])]
        takeover = {"red": {"action": "pause"}, "green": {"action": "review"}, "blue": {"action": "resume"}}[team]
        some[team] = {
            "match": {"types": ["task", "bug"], "labels": [f"team:{team}"]}, "takeover": takeover, "phases": phases,
        }  # fmt: skip
    return yaml.safe_dump({"version": 1, "default_policy": "blue", "policies": some}, sort_keys=False)


def agents() -> str:
    """Two agents for each provider."""
    some: list[dict[str, Any]] = []
    for team, model in zip(TEAMS, MODELS, strict=True):
        runner = {"type": "opencode", "agent_slug": "build", "provider": model.provider, "model": model.model}
        some.append({"id": f"{team}-builder", "capabilities": ["implement"], "read_write": "write", "tags": [team]})
        some[-1]["runner"] = runner
        some.append({"id": f"{team}-critic", "capabilities": ["review"], "runner": runner | {"agent_slug": "plan"}})
    return yaml.safe_dump({"version": 1, "agents": some}, sort_keys=False)


def config(*, runs: int = 8, day: float = 30.0, warn_at: float = 0.8) -> str:
    """Limits that are met, and somebody to be told."""
    settings: dict[str, Any] = {
        "version": 1,
        "worker": {"max_concurrent_runs": runs, "lock_work_tree": False},
        "budgets": {
            "warn_at": warn_at, "run": {"tokens": 50_000}, "issue": {"cost": 6.0}, "day": {"cost": day},
            "providers": {"acme": {"cost": 12.0}}, "runs_per_hour": 150, "writes_per_minute": 60,
        },
        "runners": {"opencode": {"memory_limit": "2GiB"}},
        "permissions": [
            {"tool": "question", "action": "ask"}, {"tool": "webfetch", "action": "ask"},
            {"tool": "websearch", "action": "deny"}, {"tool": "webfetch", "action": "allow"},
        ],
        "notify": {"targets": [{"name": "pager", "command": ["pager"]}, {"name": "desk", "command": ["desk"]}]},
    }  # fmt: skip
    return yaml.safe_dump(settings, sort_keys=False)


class Agents:
    """What each prompt leads to, by dice of its own run and turn: the order of runs does not matter."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.fates: Counter[str] = Counter()
        self.refuses: dict[str, Refusal] = {}
        """Providers that take nothing at present."""

    def play(self, asked: Prompted) -> Play:
        """Decide what a prompt leads to."""
        run = asked.key.split(":", 1)[1]
        refusal = self.refuses.get(asked.model.provider) if asked.model else None
        if refusal is not None:
            self.fates["refused"] += 1
            return Play(error=f"APIError: {refusal.why}", delay=2.0, tokens=0, cost=0.0, refused=refusal)
        dice = random.Random(f"{self._seed}/{run}/{asked.turn}/{len(asked.text) % 7}")
        fate = dice.choices(
            ("works", "hangs", "silent_tool", "slow", "dies", "fails", "babbles", "asks", "creates", "permission",
             "limited", "wild", "breaks"),
            (74, 1.5, 0.5, 1.5, 1.5, 6, 3, 2, 2, 2, 3, 1, 2),
        )[0]  # fmt: skip
        self.fates[fate] += 1
        tokens, cost = dice.randint(500, 9000), round(dice.uniform(0.005, 0.12), 4)
        play: dict[str, Any] = {"delay": dice.uniform(20, 400), "tokens": tokens, "cost": cost}
        phase = run.split("/")[1].split(".")[0]
        match fate:
            case "hangs":
                return Play(fate="hangs", tokens=tokens, cost=cost)
            case "silent_tool":
                return Play(said(phase, dice), **late(play, 1500.0), pulse=None, tool="bash")
            case "slow":
                return Play(said(phase, dice), **late(play, 4000.0))
            case "dies":
                return Play(said(phase, dice), **play, fate="dies" if asked.turn == 0 else "ends")
            case "babbles":
                return Play("I am done.", **play)
            case "permission":
                tool, kind = dice.choice(("webfetch", "websearch")), dice.choice(("permission", "question"))
                return Play(said(phase, dice), **play, asks=kind, tool_asked=tool, wants="https://x.invalid/")
            case "limited":
                wait = Refusal("limited", "slow down", timedelta(seconds=dice.choice((30, 600))))
                return Play(said(phase, dice), **late(play, 900.0), pulse=None, refused=wait)
            case "wild":
                return Play(said(phase, dice), **(play | {"tokens": 70_000, "cost": 2.5}))
            case "breaks":
                return Play(error="APIError: overloaded", **play)
            case _:
                return Play(said(phase, dice, fate), **play)


def late(play: dict[str, Any], delay: float) -> dict[str, Any]:
    """The same, and it takes so long."""
    return play | {"delay": delay}


def said(phase: str, dice: random.Random, fate: str = "works") -> str:
    """What an agent reports."""
    body: dict[str, Any] = {"result": "success", "summary": f"{phase} done, {dice.random():.4f}"}
    if phase == "review":
        body["verdict"] = "needs_changes" if dice.random() < 0.2 else "approve"
    if fate == "fails":
        body = {"result": dice.choice(("failed", "partial")), "summary": "could not"}
    elif fate == "asks":
        body["needs_human"] = True
    elif fate == "creates":
        body["created_issues"] = [{"title": f"found on the way {dice.random():.6f}", "type": "bug"}]
    return f"Done.\n\n```json\n{json.dumps(body)}\n```\n"
