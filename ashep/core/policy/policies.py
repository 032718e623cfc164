"""Policies as users write them: phases, where outcomes lead, limits, what is matched."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ashep.core.policy.base_types import PATTERN, AtOnce, Document, Duration, Name, Names, Span, Word
from ashep.core.policy.checks import Check
from ashep.core.policy.flags import FlagName
from ashep.core.policy.globs import GlobList

CLOSE = "close"
"""The target that ends a flow."""


# --- policies.yaml ----------------------------------------------------------------------------------------------


class Retry(Document):
    """How attempts that failed are repeated."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Attempts inside one visit of the phase, the first included."""
    backoff: Literal["exponential", "linear", "constant"] = "exponential"
    """How the delay grows from attempt to attempt."""
    initial_delay: Duration = timedelta(seconds=10)
    """The delay before the second attempt (with a jitter of up to ±20 % taken from the run id's hash)."""
    max_delay: Span = timedelta(minutes=5)
    """No delay is longer than this."""
    continues: Annotated[int, Field(ge=0, le=20, alias="continue")] = 2
    """How often in one run the agent is asked to go on in its session, before it is asked for a report alone or the
    attempt is over: after an answer that was cut off, is empty or only announces more work, and after `partial` from
    an agent that may change files. It costs no attempt; it uses the run's budget and `timeout`. 0: never."""
    change_agent: Literal["next", "different_provider"] | None = None
    """Whom the next attempt of a visit goes to: `next` is the agent that failed least often in it, `different_provider`
    one whose provider did; among equals the usual order. No person is taken for that. `null`: to the same agent."""


class Stall(Document):
    """When a turn that shows no sign of life is given up."""

    after: Span = timedelta(minutes=5)
    """How long a turn may show no sign of life. A sign is a new or changed part of a message, a token that streams in,
    what a running tool prints, anything of a subagent's, and a provider that says when to ask it again."""
    tool_timeout: Span = timedelta(hours=1)
    """How long one call of a tool may run that shows nothing meanwhile."""
    action: Literal["retry", "fail", "diagnose"] = "retry"
    """What happens then: the turn is stopped, and `retry` makes it a failed attempt, while `fail` makes no other: it
    follows `next.failed` where the phase has it, else the issue parks. With `diagnose` an agent with the capability
    `debug`, if possible another one, first reads the end of its session, in a session of its own that may change
    nothing, for 5 minutes at most. It says `retry`; or `change_agent`: the next attempt goes to another agent that
    fits, where there is one; or `ask_person`: its words become a question. Without such an agent, or where it comes to
    nothing, it is as `retry`. It is a part of the stalled run, whose budget it uses."""


class Prefer(Document):
    """Soft wishes about the agent: they order the agents that fit, they exclude none."""

    different_model_from: Name | None = None
    """Prefer an agent whose model differs from the one that last ran this phase."""
    different_provider_from: Name | None = None
    """Prefer an agent whose provider differs from the one that last ran this phase."""
    speed: Literal["fast", "normal", "slow"] | None = None
    """Prefer agents of this `performance.speed`."""
    tags: Names = ()
    """Prefer agents that carry these tags."""


class Human(Document):
    """A phase in which a person answers, by label."""

    ask: Annotated[str, Field(min_length=1, max_length=2000)] = "Approve this work?"
    """The question, posted as a comment with what there is to look at."""
    approved: Name = CLOSE
    """Where `human:approved` leads."""
    changes_requested: Name | None = None
    """Where `human:changes_requested` leads; by default the last agent phase with write access before this one."""
    reminder: Span | None = None
    """How often people are reminded of the open question, by a comment on the issue and a message to the targets of
    `notify`: each time that so much has passed since it was asked, until it is answered or its deadline has come; what
    passed while nobody could be reminded counts once. `null`: not at all."""
    deadline: Span = timedelta(days=7)
    """How long the question may stay open."""
    on_deadline: Name = "park"
    """What happens at the deadline: `park`, or a target."""
    seen: Literal["all"] | None = None
    """`all`: the page takes an approval only from a person who has marked every changed file as seen, of the
    commit that is to land. A label that is set elsewhere still counts."""


class Takeover(Document):
    """What happens when a person writes in a run's session, or stops the turn there. Nothing more is sent, nothing is
    stopped, and no limit counts the time, until they are done; it burns no attempt.
    """

    action: Literal["pause", "review", "resume"] = "pause"
    """`pause`: the label `ashep:paused` is set, and the phase goes on when it is taken off (`ashep release`). `review`:
    once the person has been quiet for `cooldown`, their work counts as the phase's success; as `pause` where a success
    leads to no other phase by itself (in a phase with verdicts, or before `close`). `resume`: once they have been quiet
    for `cooldown`, the phase goes on. It goes on with another attempt, in the same session where that still stands, in
    which the agent is told that a person was there."""
    cooldown: Span | None = None
    """How long the person must have written nothing, and no turn have run, in the session. `null`: 10m, but `pause`
    then ends by the label alone. So long, too, an issue is left alone that somebody set to `open`."""


class PermissionRule(Document):
    """What an agent may use a tool for. The first rule that fits decides; without one OpenCode's own rules do."""

    tool: Word
    """The tool, by the name that OpenCode judges it by: `bash`, `edit`, `webfetch`, …; `*` is any text."""
    pattern: Word = "*"
    """What it is used for, as OpenCode matches it: a command, a path, …; `*` is any text, `?` a character."""
    action: Literal["allow", "deny", "ask"]
    """`ask` asks a person, on the issue."""


class PreparedAnswer(Document):
    """An answer to a question that an agent will ask."""

    match: Word
    """Only to a question that holds this text (capitals and small letters are the same)."""
    answer: Word
    """The answer: a text, or the number of an option."""


class ReuseFrom(Document):
    """Continue in the session of another phase of the same issue."""

    reuse_from: Name
    """The phase whose last session is continued."""


class Verify(Document):
    """How the work of a phase is verified."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """How often work may fall short in one visit; then a person is asked, who may let it pass."""


def parse_verify(value: object) -> object:
    """Read `true` as all defaults and `false` as none."""
    if isinstance(value, bool):
        return Verify() if value else None
    return value


STORY = "{story}"
"""Stands for the file of the issue's story where files are named that a run may change."""

StoryStatus = Literal["ready-for-dev", "in-progress", "review", "done"]
"""How far a story is, in the words of the BMAD method."""


class Phase(Document):
    """A step of a policy."""

    name: Name
    """The phase's name: its label is `phase:<name>`."""
    capabilities: Names = ()
    """What an agent must be able to do (all of them); by default the phase's own name."""
    access: Literal["read", "write"] | None = None
    """`write` phases may change the work tree, `read` phases may not. By default `write` for phases that need the
    capability implement, code, test, debug or doc, else `read`."""
    tags: Names = ()
    """Hard filter: only agents that carry all of these tags."""
    provider: Word | None = None
    """Hard filter: only agents of this provider."""
    model: Word | None = None
    """Hard filter: only agents of this model."""
    not_agents: Names = ()
    """Hard filter: agents that are never chosen for this phase."""
    prefer: Prefer = Prefer()
    """Soft wishes about the agent."""
    timeout: Span = timedelta(minutes=30)
    """How long a run may take, times the agent's `timeout_multiplier`; then it is aborted and retried."""
    retry: Retry = Retry()
    """How failed attempts are repeated."""
    stall: Stall = Stall()
    """When a turn that shows no sign of life is given up."""
    takeover: Takeover | None = None
    """What happens when a person takes the session; `null`: as the policy has it."""
    session: Literal["new", "reuse"] | ReuseFrom | None = None
    """`new`, `reuse` (this issue's last session of this phase) or `{reuse_from: phase}`; overrides the agent's
    `session_strategy`. `reuse_from` is refused in a phase that declares verdicts: roles never share a session."""
    max_visits: Annotated[int, Field(ge=1, le=1000)] = 4
    """How often a cycle may enter an agent phase; one more parks the issue."""
    max_runs: AtOnce | None = None
    """So many runs of this phase of this policy at one time, of all issues together. `null`: no cap but
    `worker.max_concurrent_runs`."""
    verdicts: Names = ()
    """The verdicts of which a success must name one; each needs an edge in `next`."""
    next: Annotated[dict[str, Name], Field(max_length=100)] = {}
    """Where a verdict, or the results `success`, `failed` and `partial`, lead: a phase or `close`. Without an edge for
    success the next phase in order follows, after the last `close`; a phase with verdicts has no such default."""
    requires: Annotated[dict[Name, Names], Field(max_length=100)] = {}
    """What must have happened before this phase is entered: phases, each with the verdicts or results of which it must
    have ended with one when it last ran in this cycle (`success`, `partial`, a verdict; of a human phase `approved`).
    Where it is not so, the issue parks. A person's `changes_requested` makes all of it undone. A phase label set by
    hand leads in whatever is required. `ashep policy check` proves that no way leads here without."""
    must_pass: Names = ()
    """Nothing closes around this phase: `ashep policy check` refuses a policy in which an issue could be closed without
    one of these: verdicts, `success`, or `approved` of a human phase."""
    allow_suggested: Names = ()
    """The phases that an agent's `suggested_next_phase` may choose where no edge applies."""
    human: Human | None = None
    """Makes this a phase in which a person answers."""
    verify: Annotated[Verify | None, BeforeValidator(parse_verify, json_schema_input_type=Verify | bool | None)] = None
    """`true`, or `{max_attempts: 3}`: after an agent's success ashep itself looks whether the work holds, before it
    goes on. The issue's tree must differ from its base, and all checks must pass: those of the issue's acceptance
    criteria, and this phase's `checks`. What failed goes into the phase's next prompt. Issues that are worked on in
    the shared work tree are not verified. In a phase with verdicts those are looked into that `must_pass` names."""
    checks: Annotated[tuple[Check, ...], Field(max_length=100)] = ()
    """Checks of the project's own, for every issue: executed after an agent's success in this phase, and once more
    before the work lands (docs/guides/criteria.md says what there is). Where and when as `verify`."""
    when_flags: Annotated[dict[FlagName, Name], Field(max_length=20)] = {}
    """Where work leads that touches certain things, instead of where a success would lead: flags
    (docs/guides/impact.md), each with a phase, and never `close`. Of several that are raised rules, agent_instructions
    and ci go first, then the others as they stand here. Where and when as `verify`."""
    may_change: GlobList | None = None
    """The files that its agents may change, as globs from the repository's top; `{story}` is the file of the issue's
    story. What else a run of it changed is put back when the run is over, and told. `null`: all. Where issues are
    worked on in the shared work tree nothing is put back."""
    story: Annotated[dict[str, StoryStatus], Field(max_length=100)] = {}
    """What ashep itself writes as the status of the issue's story (docs/guides/stories.md) when a run of this phase
    ends with `success` or one of these verdicts. `done` completes it: in the sprint status, too. An issue without a
    story has none."""
    permissions: Annotated[tuple[PermissionRule, ...], Field(max_length=100)] = ()
    """What its agents may use tools for: these rules go before those of config.yaml. No rule widens its access."""
    answers: Annotated[tuple[Word | PreparedAnswer, ...], Field(max_length=100)] = ()
    """Answers to what its agents ask with the question tool, before any person is asked: a run uses each once, always
    the first that fits. A text, or the number of an option; `{match: …, answer: …}` only to certain questions."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Capabilities that an agent must have."""
        return self.capabilities or (self.name,)

    @property
    def writes(self) -> bool:
        """Whether runs of this phase may change the work tree."""
        if self.access is not None:
            return self.access == "write"
        return not {"implement", "code", "test", "debug", "doc"}.isdisjoint(self.needs)

    @property
    def makes(self) -> bool:
        """Whether its runs make the work; who may change the story alone tells there what is wrong with it."""
        return self.writes and self.may_change != (STORY,)


class Match(Document):
    """Which issues a policy claims; the first policy that matches wins: those of policies.yaml, then those of the files
    in `policies/`, by their names.
    """

    types: tuple[Word, ...] = ("task", "bug", "feature", "chore")
    """Issue types."""
    labels: tuple[Word, ...] = ()
    """Labels that the issue must carry, all of them."""
    not_labels: tuple[Word, ...] = ()
    """Labels that the issue must not carry, none of them."""
    priorities: tuple[Annotated[int, Field(ge=0, le=4)], ...] = (0, 1, 2, 3, 4)
    """Priorities, 0 the most urgent."""
    title: Word | None = None
    """A pattern for the whole title, in which capitals and small letters are the same: `*` is any text, `?` any
    character, `[ab]` one of these, `[!ab]` none of them. `null`: any title."""


class Limits(Document):
    """Bounds for one issue and cycle; a run beyond them is not started and the issue parks."""

    max_runs: Annotated[int, Field(ge=1)] = 12
    """Runs in a cycle."""
    max_wall_time: Span = timedelta(hours=6)
    """Time since the cycle began, in which people's thinking does not count."""
    max_created_issues: Annotated[int, Field(ge=0)] = 20
    """Issues that the agents of one cycle may create; the rest are named in a comment."""
    max_depth: Annotated[int, Field(ge=0)] = 1
    """How many generations of created issues are worked on; deeper ones are created parked."""
    on_limit: Literal["wait", "fall_back"] = "wait"
    """What a phase does whose agent's provider takes nothing (a limit, an outage, credentials): `wait` until it does,
    or `fall_back` to the next agent of another provider; to wait only where none fits. No person falls in."""


class Policy(Document):
    """A named workflow: data, never code."""

    extends: Annotated[str, Field(pattern=f"^(preset:)?{PATTERN}$")] | None = None
    """Another policy of these files, or `preset:<name>` for one that ships, from which this one differs only in what it
    says: each key that it gives replaces the other's whole, and so does each key of a phase of the same name. Phases of
    other names come behind. The other may extend one itself. What is read is written out: nothing else knows of it."""
    remove: Names = ()
    """Phases of the policy that is extended which this one does not have."""
    description: str = ""
    """For people."""
    match: Match | None = Match()
    """Which issues it claims; `null` claims none (only `default_policy` or a `policy:<name>` label uses it then)."""
    limits: Limits = Limits()
    """Bounds for one issue and cycle."""
    takeover: Takeover = Takeover()
    """What happens when a person takes a run's session, in every phase that says nothing else."""
    on_base_failure: Literal["ask", "ignore", "hold"] = "ask"
    """What follows where work falls short by nothing but checks that fail on the base, too, so that no work is to
    blame (docs/guides/verification.md): no network for a check, say. It never uses up an attempt. `ask` asks a person
    whether to let it pass; with `ignore` such a check counts for nothing; `hold` asks, too, and takes no issue of this
    policy before its checks pass on the base."""
    phases: Annotated[tuple[Phase, ...], Field(min_length=1, max_length=100)]
    """The steps, in order; the first is where an issue begins. The smallest policy is a list of phase names. Not needed
    where another policy is extended."""

    def phase(self, name: str) -> Phase | None:
        """Find a phase by name."""
        return next((phase for phase in self.phases if phase.name == name), None)


class Policies(Document):
    """The file `.agent-shepherd/policies.yaml`, and what the files in `.agent-shepherd/policies/` add to it."""

    version: Literal[1]
    """The version of the file's language."""
    default_policy: Name | None = None
    """For issues that no `match` claims, of a type that some `match` names; `null`: such issues are held."""
    policies: Annotated[dict[Name, Policy], Field(min_length=1, max_length=100)]
    """The policies by name; the first whose `match` fits an issue is used. A file in `policies/` has this key, too, or
    is one policy, named as the file is."""
