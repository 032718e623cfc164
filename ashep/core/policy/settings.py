"""What the users' files mean, and what the tracker, the agents and their server look like to the core.

The classes under `Document` are the configuration language: each field's docstring is its reference documentation
(docs/configuration.md is made from them). The dataclasses below them are values that facts and commands carry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from ashep.core.policy.checks import Check
from ashep.core.policy.dotted import BEADS, Dotted, Options, TrackerType
from ashep.core.policy.flags import FlagName
from ashep.core.policy.globs import parse_glob
from ashep.core.policy.landing_settings import ForgeSettings
from ashep.core.policy.language import Bytes, Document, Duration, Kept, Name, Names, Size, Span, Word
from ashep.core.policy.names import PATTERN

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
    verify: Annotated[
        Verify | None,
        BeforeValidator(parse_verify, json_schema_input_type=Verify | bool | None),
    ] = None
    """`true`, or `{max_attempts: 3}`: after an agent's success ashep itself looks whether the work holds, before it
    goes on. The issue's tree must differ from its base, and all checks must pass: those of the issue's acceptance
    criteria, and this phase's `checks`. What failed goes into the phase's next prompt. Issues that are worked on in
    the shared work tree are not verified. In a phase with verdicts those are looked into that `must_pass` names."""
    checks: Annotated[tuple[Check, ...], Field(max_length=100)] = ()
    """Checks of the project's own, for every issue: carried out after an agent's success in this phase, and once more
    before the work lands (docs/guides/criteria.md says what there is). Where and when as `verify`."""
    when_flags: Annotated[dict[FlagName, Name], Field(max_length=20)] = {}
    """Where work leads that touches certain things, instead of where a success would lead: flags
    (docs/guides/impact.md), each with a phase, and never `close`. Of several that are raised rules, agent_instructions
    and ci go first, then the others as they stand here. Where and when as `verify`."""
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


class Match(Document):
    """Which issues a policy claims; the first policy that matches wins: those of policies.yaml, then those of the files
    in `policies/`, by their names.
    """

    types: tuple[Word, ...] = ("task", "bug", "feature", "chore")
    """Issue types."""
    labels: tuple[Word, ...] = ()
    """Labels that the issue must carry, all of them."""
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


# --- agents.yaml ------------------------------------------------------------------------------------------------


class RunnerChoice(Document):
    """What executes an agent's runs."""

    type: Name = "opencode"
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
    tags: Names = ()
    """Words that a phase can filter by."""
    runner: RunnerChoice = RunnerChoice()
    """What executes its runs."""
    performance: Performance = Performance()
    """What to expect of it."""
    priority: int = 0
    """The higher goes first among the agents that fit."""
    is_human: bool = False
    """A person: where it is chosen, the phase is a human phase with a default question."""


class Agents(Document):
    """The file `.agent-shepherd/agents.yaml`."""

    version: Literal[1]
    """The version of the file's language."""
    agents: Annotated[tuple[Agent, ...], Field(min_length=1, max_length=100)]
    """The registry."""


# --- config.yaml ------------------------------------------------------------------------------------------------


class TrackerSettings(Document):
    """Where issues come from."""

    type: TrackerType = BEADS
    """`beads`, or a class of your own, as `package.module:Class` (docs/extending.md)."""
    command: Annotated[tuple[Word, ...], Field(min_length=1)] = ("bd",)
    """The program and its first arguments."""
    poll_every: Span = timedelta(seconds=10)
    """The longest gap between looks while something is under way; three times that when idle with a working hint."""
    timeout: Span = timedelta(seconds=30)
    """The bound of one call; then its process group is killed."""
    actor: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """The name under which ashep claims; `null`: `ashep-<host>-<hash of the state folder's real path>`."""
    options: Options = {}
    """What a class of your own is given. They are kept in the journal: for a secret, name an environment variable."""

    @property
    def own(self) -> bool:
        """Whether it is a class of the user's."""
        return self.type != BEADS


class QuietHours(Document):
    """A time in which no run starts: quiet hours, or a maintenance window."""

    at: Word
    """When it begins, as cron has it, in the machine's time zone: minute, hour, day of the month, month, day of the
    week. `0 22 * * *` is every evening at ten, `0 22 * * fri` on Fridays."""
    lasts: Annotated[Span, Field(le=timedelta(days=7))]
    """How long it lasts."""
    name: Word | None = None
    """How it is called in holds and in `ashep status`; `null`: by its `at`."""


class SetupStep(Document):
    """A step by which a new work tree of an issue is set up: files to copy, or a command to run."""

    files: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    """Patterns of files and folders in the project that git ignores, such as `.env`: they are copied. `**` stands for
    any number of folders."""
    run: Annotated[tuple[Word, ...], Field(max_length=1000)] = ()
    """A program and its arguments, run in the tree, with `ASHEP_SLOT` (a number below `max_concurrent_runs` that no
    other run has) and `ASHEP_MAIN` (the project's own folder) in its environment. No shell reads them."""
    timeout: Span = timedelta(minutes=10)
    """How long the command may take."""

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if bool(self.files) == bool(self.run):
            raise ValueError("either `files` or `run`")
        for pattern in self.files:
            if pattern.startswith("/") or ".." in pattern.split("/"):
                raise ValueError(f"a pattern below the project's folder, not {pattern!r}")
        return self


def _without_default(schema: dict[str, JsonValue]) -> None:
    """Leave a default out of the JSON schema: what counts where a key is not set depends on the project."""
    del schema["default"]


class WorkerSettings(Document):
    """How much runs at once, and where."""

    max_concurrent_runs: Annotated[int, Field(ge=1, le=64)] = 3
    """Runs at one time."""
    workspace: Annotated[Literal["worktree", "shared"], Field(json_schema_extra=_without_default)] = "shared"
    """`shared`: all sessions run in the user's work tree. `worktree`: each issue gets a git work tree and a branch of
    its own (`ashep/<issue>`), its sessions run there, and what a run leaves is committed there. An issue that has a
    tree of its own goes on in it, whatever is set here. Where nothing is set it is `worktree` in a git repository with
    a commit, and `shared` elsewhere, and wherever `lock_work_tree` is set."""
    lock_work_tree: bool = True
    """While the work tree is shared, a write run excludes every other run, and the lock stays with its issue until
    that closes, parks or waits for a person. Who sets it means a shared work tree, where `workspace` does not say
    otherwise."""
    allow_dirty: bool = False
    """Start write runs in the shared work tree although tracked files carry changes that ashep's runs did not make."""
    trees: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """The folder for the work trees of issues; a relative one counts from the project's folder, `~` is your own.
    `null`: `.agent-shepherd/state/trees`."""
    setup: Annotated[tuple[SetupStep, ...], Field(max_length=50)] = ()
    """How a new work tree of an issue is set up, step by step, once for each tree."""
    disk_floor: Size | None = Bytes(1024**3)
    """So much must be free on the disk where a new work tree is made; `null`: nothing is asked."""
    quiet_hours: Annotated[tuple[QuietHours, ...], Field(max_length=100)] = ()
    """Times in which no run starts and no issue is taken; what runs goes on to its end. `ashep resume` ends one that
    has begun, until it begins again."""


class TreesSettings(Document):
    """How long the work trees and branches of closed issues stand."""

    keep: Span | None = timedelta(days=7)
    """So long after its issue is closed a work tree goes by itself, and its branch with it, if the base branch holds
    its work, and nothing in it is uncommitted, is on no branch, changed within that time, or is in use. What stays is
    looked at again after a day, then after two, four and so on. `null`: nothing goes by itself (`ashep trees gc`)."""


class MonitorSettings(Document):
    """How sessions are watched."""

    check_every: Span = timedelta(seconds=2)
    """The longest gap between two looks at the sessions of running turns."""


class OpencodeSettings(Document):
    """The OpenCode server."""

    managed: bool = True
    """Start a server on loopback, with a random password and its own data folder; false: attach to `url`."""
    url: str | None = None
    """Attach to this server; it is then not managed."""
    command: Annotated[tuple[Word, ...], Field(min_length=1)] = ("opencode",)
    """The program and its first arguments."""
    password_env: str = "OPENCODE_SERVER_PASSWORD"
    """The environment variable that holds the password of an attached server."""
    idle_stop: Span = timedelta(minutes=30)
    """A managed server is ended when nothing ran for so long."""
    memory_limit: Annotated[Size, Field(ge=256 * 1024**2)] | None = Bytes(4 * 1024**3)
    """The memory (resident, its whole process group: language servers and MCP servers too, what agents run in a shell
    not) above which a managed server is ended and begun anew, once nothing runs on it; at twice as much at once.
    `null`: no limit. A server that has just begun holds about 0.5 GiB."""
    nice: Annotated[int, Field(ge=0, le=19)] = 0
    """The scheduling priority of a managed server and of all that it starts: the higher, the more it gives way."""
    environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)], ...] = ()
    """Environment variables that a managed server, and with it every agent's shell, gets beside the usual ones and the
    keys of providers (docs/guides/service.md). A variable that `landing.forge` or `notify` takes a secret from never
    passes."""


class OwnRunner(Document):
    """A runner of your own, under a name of your own, in the place of OpenCode: a project has one runner."""

    type: Dotted
    """Its class, as `package.module:Class` (docs/extending.md)."""
    options: Options = {}
    """What the class is given. They are kept in the journal: for a secret, name an environment variable."""


OPENCODE = "opencode"
"""The runner that is built in."""


class Runners(Document):
    """What executes runs."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, OwnRunner] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride] - how pydantic types them

    opencode: OpencodeSettings = OpencodeSettings()
    """The OpenCode server."""

    @property
    def own(self) -> Mapping[str, OwnRunner]:
        """The user's own, by name."""
        return self.__pydantic_extra__ or {}

    @property
    def name(self) -> str:
        """The project's runner."""
        return next(iter(self.own), OPENCODE)


class QuestionSettings(Document):
    """What becomes of questions that agents ask in the midst of a run."""

    deadline: Span = timedelta(minutes=30)
    """How long such a question may stay open. Then what was asked for is denied, and the run goes on."""


class JournalSettings(Document):
    """How the journal is kept."""

    max_file_size: Annotated[Size, Field(ge=64 * 1024, le=1024**3)] = Bytes(16 * 1024**2)
    """The next file is begun once one has this size: a start reads the last file line by line."""
    keep: Kept = Bytes(256 * 1024**2)
    """A size: whole files older than the newest ones of this size together move to `state/journal/archive`, where
    everything that reads the journal finds them, and nothing is deleted. A duration, at least `1d`: whole files with
    nothing younger move there, and are deleted, with what belongs to them alone, once no issue that was begun and is
    not done has a record in them (docs/durability.md#what-is-kept)."""


class Labels(Document):
    """The labels by which people and ashep talk to each other."""

    phase_prefix: str = "phase:"
    """Before the phase's name."""
    policy_prefix: str = "policy:"
    """Before the name of a policy that is forced."""
    branch_prefix: str = "branch:"
    """Before the name of a branch that issues share, those of an epic say: they are worked on in one tree, one after
    the other, and each lands by itself."""
    excluded: str = "ashep:excluded"
    """Never touch this issue."""
    needs_approval: str = "needs:human_approval"
    """A person's answer is waited for."""
    needs_input: str = "needs:human_input"
    """A person's text is waited for."""
    needs_answer: str = "needs:human_answer"
    """Stands beside one of these where the question was raised in the work, by an agent, by a verification or by what
    is touched, and is not that of a phase of people."""
    approved: str = "human:approved"
    """A person's yes."""
    changes_requested: str = "human:changes_requested"
    """A person's no, with comments."""
    paused: str = "ashep:paused"
    """A person has taken over: nothing is sent or started until it is taken off."""
    parked: str = "ashep:parked"
    """Shepherd gave up; taking it off starts afresh."""


class Budget(Document):
    """What may be used. Figures are the agent server's own."""

    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of every kind: read, written, cached; `null`: no limit."""
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Cost in the provider's currency; `null`: no limit."""


class Budgets(Document):
    """How much may be used. Each limit is hard; `warn_at` makes a soft one of it. A day is UTC's, from midnight on."""

    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    """The share of a limit at which a person is warned, once for each scope and period."""
    run: Budget = Budget()
    """One run: over it the run is aborted and the issue parks."""
    issue: Budget = Budget()
    """One issue in one cycle, all its runs together: over it no run of it goes on or starts, and the issue parks."""
    day: Budget = Budget()
    """All runs of a day: over it runs under way are stopped, and nothing starts until the day is over."""
    providers: dict[Name, Budget] = {}
    """By provider, all its runs of a day: over it its runs are stopped, and its phases wait until the day is over, or
    go to an agent of another provider that fits."""
    total: Budget = Budget()
    """All runs since the journal began: over it nothing starts until the limit is raised."""
    runs_per_hour: Annotated[int, Field(ge=1)] | None = None
    """No more runs start in an hour; `null`: no limit."""
    writes_per_minute: Annotated[int, Field(ge=1)] | None = None
    """No more writes to the tracker are made in a minute: those that are too many wait. Heartbeats do not count.
    `null`: no limit."""


NoticeKind = Literal["waiting", "parked", "provider_down", "budget", "stopped_unexpectedly", "finding"]
"""What is worth a person."""


class NotifyTarget(Document):
    """Somebody who is told: by a program (`command`), or by apprise, whose URLs are secrets and stand elsewhere."""

    name: Name | None = None
    """How it is called in `ashep status`; `null`: by its kind and place, such as `command-1`."""
    command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """The program and its arguments. It gets the message as JSON on its standard input, and as text in the environment
    variables `ASHEP_TITLE` and `ASHEP_TEXT`; it has 30 seconds, and any exit code but 0 is a failure."""
    apprise_env: Word | None = None
    """The environment variable that holds apprise's URLs, with white space between them. It needs `ashep[notify]`."""
    apprise_file: Word | None = None
    """The file that holds them, one a line, with comments behind `#`; `~` is the home folder, and a relative path
    begins at the project's folder."""


class Notify(Document):
    """Who is told of what is worth a person, when nobody watches."""

    targets: Annotated[tuple[NotifyTarget, ...], Field(max_length=20)] = ()
    """Each of them is told everything."""
    events: tuple[NoticeKind, ...] = (
        "waiting", "parked", "provider_down", "budget", "stopped_unexpectedly", "finding",
    )  # fmt: skip
    """What they are told of: an issue that waits for a person; one that is parked; a provider, the agent server or the
    tracker that is away for long; a budget at its `warn_at` or over; an ashep that ended without a word, once it runs
    again; a finding of the audit."""
    batch: Duration = timedelta(minutes=1)
    """How long others are waited for, to be told in the same message. What is over by then is not told."""
    quiet_hours: Annotated[tuple[QuietHours, ...], Field(max_length=100)] = ()
    """Times in which nobody is told: it is kept until they are over."""
    urgent: tuple[NoticeKind, ...] = ()
    """What is told in quiet hours, too."""


GlobList = Annotated[tuple[Annotated[Word, AfterValidator(parse_glob)], ...], Field(max_length=200)]
"""Some globs."""


class ImpactSettings(Document):
    """What counts as what in a change, beside what is built in (docs/guides/impact.md). A glob begins at the
    repository's top; `*` and `?` stay within a folder, `**` goes across; capitals and small letters are the same.
    """

    agent_instructions: GlobList = ()
    """Files that instruct agents."""
    ci: GlobList = ()
    """Files that judge a change: of the continuous integration, of hooks."""
    migrations: GlobList = ()
    """Files that change a database."""
    dependencies: GlobList = ()
    """Files that name foreign code."""
    public_api: GlobList = ()
    """Files that say what others may use."""
    tests: GlobList = ()
    """Tests and what they need; here capitals and small letters differ."""
    fixtures: GlobList = ()
    """Files in which no secrets are looked for."""
    ignore: GlobList = ()
    """Files that raise no flag: generated ones, say. Agent Shepherd's own rules, and what `agent_instructions` and `ci`
    say, cannot be ignored."""
    max_files: Annotated[int, Field(ge=1)] = 100
    """A change of more files is large."""
    max_lines: Annotated[int, Field(ge=1)] = 2000
    """A change of more lines, added and removed, is large; those of lock files do not count."""


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
"""The name of an environment variable."""


class OwnCheckType(Document):
    """A type of checks of your own, under the name that checks give as their `type`."""

    type: Dotted
    """Its class, as `package.module:Class` (docs/extending.md)."""
    options: Options = {}
    """What the class is given. They are kept in the journal: for a secret, name an environment variable."""


ADDRESS = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?(/[^\s?#]*)?$"
"""An address without a password, a query or a fragment."""


class VerificationSettings(Document):
    """How checks are carried out (docs/guides/verification.md)."""

    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    """Where the programs of checks run. `bwrap`: in bubblewrap, and where that cannot be used no such check is carried
    out. `auto`: in bubblewrap where it can be used, else without a sandbox; `ashep install` says what is not isolated.
    `none`: without one."""
    network: bool = False
    """Whether the programs of checks reach the network out of the sandbox. They always have a loopback."""
    environment: Annotated[tuple[Variable, ...], Field(max_length=100)] = ()
    """Environment variables that the programs of checks are given as ashep has them, beside `PATH` and `LANG`. They run
    the work of agents: name no secret here."""
    memory_limit: Annotated[Size, Field(ge=64 * 1024**2)] | None = Bytes(4 * 1024**3)
    """The memory (resident, of all its processes, without what they share) above which a check's program is killed, and
    fails. `null`: no limit."""
    types: Annotated[dict[Name, OwnCheckType], Field(max_length=100)] = {}
    """Types of checks of your own."""
    service_url: Annotated[str, Field(pattern=ADDRESS, max_length=500)] | None = None
    """What a check of the type `http_request` asks that starts no `service`: the address of one that runs by itself, as
    `http://localhost:3000`. It is not made of the checkout, so such a check says nothing about exactly this work: it is
    asked anew each time. `null`: a check without a service cannot be carried out."""
    repositories: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=100)
    ] = ()
    """Which repositories `ashep serve` may be asked for: paths (a relative one begins at the project's folder) and
    addresses that git fetches from, each as a request names it. Without any, the project itself alone; with some, these
    alone: `.` is the project. No password belongs in an address."""


class LandingSettings(Document):
    """Where the work of an issue goes that its policy closes. It concerns issues with a work tree of their own."""

    mode: Literal["merge", "branch", "pull_request"] = "merge"
    """`merge`: it is brought onto the newest base, verified there where anything is to be checked, and then the base
    moves. `branch`: it stays on the issue's branch. `pull_request`: once what is to be checked holds, the branch is
    pushed, and a pull request asks people to merge it; the issue closes when one of them did. It needs `forge`."""
    base: Annotated[str, Field(pattern=r"^[^-\s][^\s]*$", max_length=200)] | None = None
    """The branch on which work lands; `null`: the one that the user's checkout had when the issue's tree was made."""
    method: Literal["merge", "squash", "rebase"] = "merge"
    """A merge commit; one commit with all of it; or its commits anew on the base, one by one."""
    forge: ForgeSettings | None = None
    """Where pull requests are opened."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.mode == "pull_request" and self.forge is None:
            raise ValueError("`mode: pull_request` needs `forge`, as {type: github, repository: owner/name}")
        return self


class Settings(Document):
    """The file `.agent-shepherd/config.yaml`; every key is optional."""

    version: Literal[1] = 1
    """The version of the file's language."""
    tracker: TrackerSettings = TrackerSettings()
    """Where issues come from."""
    worker: Annotated[WorkerSettings, Field(json_schema_extra=_without_default)] = WorkerSettings()
    """How much runs at once, and where."""
    trees: TreesSettings = TreesSettings()
    """How long the work trees and branches of closed issues stand."""
    monitor: MonitorSettings = MonitorSettings()
    """How sessions are watched."""
    runners: Runners = Runners()
    """What executes runs."""
    journal: JournalSettings = JournalSettings()
    """How the journal is kept."""
    budgets: Budgets = Budgets()
    """How much may be used."""
    permissions: Annotated[tuple[PermissionRule, ...], Field(max_length=100)] = ()
    """What agents may use tools for, in every phase whose access has room for it. A phase's own rules go first."""
    questions: QuestionSettings = QuestionSettings()
    """What becomes of questions that agents ask in the midst of a run."""
    notify: Notify = Notify()
    """Who is told of what is worth a person."""
    impact: ImpactSettings = ImpactSettings()
    """What counts as what in a change."""
    landing: LandingSettings = LandingSettings()
    """Where work goes that is done."""
    labels: Labels = Labels()
    """The labels by which people and ashep talk to each other."""
    verification: VerificationSettings = VerificationSettings()
    """How checks are carried out."""
    redact: tuple[str, ...] = ()
    """Names of environment variables whose values must not be written down: what tools and agents say loses them before
    it is kept. A value has at least 8 characters. The agent server's password is always among them."""


# --- values that facts and commands carry ---------------------------------------------------------------------------

Status = str
"""A tracker status: open, in_progress, blocked, closed, deferred, or one that the tracker's owner added."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Our metadata on an issue (key `ashep`): who holds it, since which decision, and how far it has got."""

    instance: str
    seq: int
    run: str | None = None
    visit: int = 0
    attempt: int = 0
    runs: int = 0
    """Runs and visits of the issue: those of whoever adopts it have higher numbers."""
    depth: int = 0
    cycle_runs: int = 0
    """Runs of the present cycle: whoever adopts the issue goes on counting."""
    actor: str = ""
    """Whose claim it was: an assignee of another name is a person, or somebody that a person chose."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What the core may read of an issue: exactly these fields, so that a read can be compared with the World."""

    id: str
    title: str
    status: Status
    type: str
    priority: int
    created_at: datetime
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    """Sorted."""
    blocked_by: tuple[str, ...] = ()
    """Issues that this one depends on with type `blocks`, open or not; sorted."""
    comments: int = 0
    """How many comments there are."""
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """The tracker's record that somebody put a label on an issue."""

    id: str
    label: str
    actor: str
    at: datetime


Difference = tuple[Literal["added", "removed", "status", "assignee"], str]
"""What can be changed of an issue: a label that was put on or taken off, its status, or who has it (empty: nobody)."""


@dataclass(frozen=True, slots=True)
class Change:
    """The tracker's record of who changed an issue."""

    id: str
    what: Difference
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment; `text` has lost its control characters."""

    id: str
    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue that an agent asked for in its outcome."""

    title: str
    description: str = ""
    type: str = "task"
    priority: int = 2


@dataclass(frozen=True, slots=True)
class Life:
    """How alive a busy session was found to be. Spans, no times: its server may have another clock."""

    quiet: timedelta
    """Since its last sign, or a subagent's; where nobody watched for so long, since it is watched."""
    tool: str | None = None
    """A tool at work in it."""
    tool_for: timedelta = timedelta()
    """How long that has been seen at work, at least."""
    retry_in: timedelta | None = None
    """Until the provider is asked again, where it said when."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that people are to be told."""

    id: int
    """The sequence number of the decision."""
    noted: datetime
    event: NoticeKind
    text: str
    issue: str | None = None
    about: str = ""
    """What it is about, where that is no issue."""
    cause: int = 0
    """The sequence number of what happened."""
    to: tuple[str, ...] = ()
    """The targets that were not told yet."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider did not take what a turn asked of it."""

    kind: Literal["limited", "down", "unauthorized"]
    """limited: too much was asked, or the quota is used up · down: it fails · unauthorized: it wants other
    credentials."""
    why: str
    """Its words."""
    again_in: timedelta | None = None
    """Until it is asked again, or may be, where somebody said when."""
    attempt: int = 1
    """How often the turn was refused in a row."""


@dataclass(frozen=True, slots=True)
class Model:
    """A provider's model."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The user's work tree at one moment.

    `dirty` holds tracked files that are changed or staged, each with a hash of its present content; `untracked` is
    only warned about. `head` is None in a repository without a commit, and `present` False outside of one.
    """

    present: bool
    head: str | None = None
    dirty: tuple[tuple[str, str], ...] = ()
    untracked: tuple[str, ...] = ()
    branch: str | None = None
    """The branch that is checked out; None: none is, or nobody looked."""
