"""A session's rules beneath those of its agent: nothing that OpenCode's own configuration forbids is given back.

OpenCode puts a session's rules behind its agent's, and the last rule that fits decides; so an `allow` of ours would
undo a `deny` of the user's, and so would a `deny` of one command: a tool is kept from the model only while its last
rule is a deny of `*`, and a bash that is offered runs a bare `> file` unasked. Therefore a session gets, for each name
that a rule is about, what both say together: wherever they differ, the stricter of the two.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import anyio.to_thread
import httpx

from ashep.adapters.runners.opencode import schema
from ashep.adapters.runners.opencode.schema import LISTED_AGENTS, ListedAgent
from ashep.core.policy.permissions import SUBAGENTS, common, covers
from ashep.errors import RunnerRefused

Rule = dict[str, str]
_STRICT = ("deny", "ask", "allow")
_DEFAULT = "build"  # the agent that answers where none is named and the server's configuration names none

_RULES, _WILD = 1000, 40
"""Rules of an agent, and those about names with wildcards: beyond that nothing is started with its server."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a rule says about the tools of one name."""

    pattern: str
    action: str
    all: bool = True
    """False: only about some of them."""


AGENT = "ashep_agent"
"""In a session's metadata: the agent whose rules it is held to; empty: the server's default."""


class Narrow:
    """Opens sessions narrow enough, and keeps them so; `call` asks the server (`OpencodeRunner`)."""

    def __init__(self, call: Callable[..., Awaitable[httpx.Response]]) -> None:
        self._call = call
        self._known: dict[str, str | None] = {}

    async def rules(self, wanted: Sequence[Rule], slug: str | None, directory: str | None) -> list[Rule]:
        """The rules of a session in this folder in which this agent answers (see `narrowed`)."""
        answer = await self._call("GET", "/agent", directory=directory)
        listed = schema.parse(LISTED_AGENTS, answer.content)
        if slug:
            return await anyio.to_thread.run_sync(narrowed, wanted, slug, listed)
        config = await self._call("GET", "/config", directory=directory)
        default = schema.parse(schema.CONFIG, config.content).default_agent
        return await anyio.to_thread.run_sync(narrowed, wanted, None, listed, default)

    def opened(self, session: str, slug: str | None) -> None:
        """Remember for whom a session was opened."""
        self._known[session] = slug

    async def hold(self, session: str, slug: str | None) -> None:
        """Hold a session to what this agent may do: it was opened for another, or by an ashep that did not look."""
        if session in self._known and self._known[session] == slug:
            return
        answer = await self._call("GET", f"/session/{session}", accept=frozenset({400, 404}))
        if answer.status_code != 200:
            return  # which the prompt will be told
        found = schema.parse(schema.HELD, answer.content)
        if found.metadata.get(AGENT) != (slug or ""):
            held = await self.rules(found.permission or (), slug, found.directory)
            told = {"permission": held, "metadata": {**found.metadata, AGENT: slug or ""}}
            await self._call("PATCH", f"/session/{session}", json=told, directory=found.directory)
        self._known[session] = slug


def narrowed(
    wanted: Sequence[Rule], slug: str | None, listed: Sequence[ListedAgent], default: str | None = None
) -> list[Rule]:
    """The rules of a session that is to be held to the `wanted` ones, and in which the agent `slug` answers.

    `listed` are all agents of the server, `default` is the one that its configuration names. Where the agent cannot be
    told, the session is held to what each of them may do. A subagent has the denials of its parent's session behind its
    own rules: one that they would give a tool back is not to be started.
    """
    named = [one for one in listed if one.name == (slug or default or _DEFAULT)]
    for one in listed:
        if len(one.permission) > _RULES or sum(_is_wild(rule.permission) for rule in one.permission) > _WILD:
            raise RunnerRefused(f"OpenCode's agent {one.name} has too many rules (`permission` in opencode.json)")
    able = named or [one for one in listed if one.mode != "subagent" and not one.hidden]
    below = [one for one in listed if one.mode != "primary"]
    refused: dict[str, Rule] = {}
    while True:
        rules = [*wanted, *refused.values()]
        for one in able:
            rules = _together(_rules(one), rules)
        denied = [rule for rule in rules if rule["action"] == "deny"]
        freed = [one.name for one in below if one.name not in refused and _gives_back(_rules(one), denied)]
        if not freed:
            return rules
        refused |= {name: {"permission": SUBAGENTS, "pattern": name, "action": "deny"} for name in freed}


def _rules(agent: ListedAgent) -> list[Rule]:
    return [rule.model_dump() for rule in agent.permission]


def _gives_back(own: Sequence[Rule], denied: Sequence[Rule]) -> bool:
    """Whether denials that stand behind these rules may offer a tool that is kept from the model without them."""
    limited = {rule["permission"]: place for place, rule in enumerate(denied) if rule["pattern"] != "*"}
    kept = [(place, rule["permission"]) for place, rule in enumerate(own) if _is_whole(rule)]
    return any(
        not any(covers(rule["permission"], name) for rule in own[place + 1 :])
        and not any(_is_whole(rule) and covers(rule["permission"], name) for rule in denied[last + 1 :])
        for place, one in kept
        for other, last in limited.items()
        for name in common(one, other)
    )


def _is_whole(rule: Rule) -> bool:
    return (rule["pattern"], rule["action"]) == ("*", "deny")


def _together(own: Sequence[Rule], ours: Sequence[Rule]) -> list[Rule]:
    """Rules that, behind `own`, allow what both allow, and nothing else.

    They go from the wide names to the narrow ones. Of the last that fits a tool all that is said about the tool is in
    it: rules of wider names, and the restrictions of those that have only some tools in common with it.
    """
    names = sorted(
        {rule["permission"] for rule in (*own, *ours)},
        key=lambda name: (len(name.replace("*", "").replace("?", "")), -name.count("*"), name),
    )
    done: list[str] = []
    found: list[Rule] = []
    wild = [name for name in names if _is_wild(name)]
    for name in names:
        before = [one for one in (names[: names.index(name)] if _is_wild(name) else wild) if one != name]
        wider = {one for one in before if common(one, name)}
        mine = _about(ours, name, wider)
        if mine or not wider.isdisjoint(done):
            theirs = _about(own, name, wider)
            done.append(name)
            least, wide = [_Said("*", "deny")], (_Said("*", "ask"), *theirs)
            if not _shut(theirs) and not _shut(mine):
                least = [said for one in (_Said("*", "allow"), *mine) for said in _restrict_rule(one, wide)]
            found += [{"permission": name, "pattern": one.pattern, "action": one.action} for one in least]
    return found


def _is_wild(name: str) -> bool:
    return "*" in name or "?" in name


def _about(rules: Sequence[Rule], name: str, wider: Collection[str]) -> list[_Said]:
    found: list[_Said] = []
    for rule in rules:
        if rule["permission"] == name or (_is_wild(rule["permission"]) and covers(rule["permission"], name)):
            found.append(_Said(rule["pattern"], rule["action"]))
        elif rule["action"] != "allow" and rule["permission"] in wider:
            found.append(_Said(rule["pattern"], "deny", all=False))
    return found


def _shut(said: Sequence[_Said]) -> bool:
    for one in reversed(said):
        if (one.pattern, one.action) == ("*", "deny"):
            return True
        if one.all:
            return False
    return False


def _restrict_rule(one: _Said, theirs: Sequence[_Said]) -> Iterator[_Said]:
    """A rule of ours, and in its room what theirs forbid."""
    if one.action == "deny":
        yield one
        return
    start = max(place for place, other in enumerate(theirs) if covers(other.pattern, one.pattern))
    yield _Said(one.pattern, _stricter(one.action, theirs[start].action))
    for other in theirs[start + 1 :]:
        action = _stricter(one.action, other.action)
        if covers(one.pattern, other.pattern):
            yield _Said(other.pattern, action)
        elif other.action != "allow":
            for text in common(one.pattern, other.pattern):
                yield _Said(text, action if covers(one.pattern, text) else "deny")


def _stricter(one: str, other: str) -> str:
    return min(one, other, key=_STRICT.index)
