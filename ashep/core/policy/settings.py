"""Settings of config.yaml, as pydantic models.

Each field's docstring is its reference documentation (docs/configuration.md is made from them).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from ashep.core.policy.agents import Sandbox
from ashep.core.policy.base_types import (
    BEADS,
    PLACE,
    AtOnce,
    Bytes,
    Document,
    Duration,
    Kept,
    Name,
    Options,
    RunnerType,
    Size,
    Span,
    TrackerType,
    Word,
    same_name,
)
from ashep.core.policy.budgets import Budgets
from ashep.core.policy.globs import GlobList
from ashep.core.policy.instructions import Kind, kind_of
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.page_settings import PageSettings, UiSettings
from ashep.core.policy.policies import PermissionRule
from ashep.core.policy.runner_kinds import KINDS, OPENCODE, rules_of
from ashep.core.policy.sources import Bmad, Sources
from ashep.core.policy.verification_settings import VerificationSettings

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
    """The bound of one call; then its process group is killed. A call that works then is slow, and is given twice as
    long, up to 10 minutes."""
    actor: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """The name under which ashep claims; `null`: `ashep-<host>-<hash of the state folder's real path>`."""
    options: Options = {}
    """What a class of your own is given. They are kept in the journal: for a secret, name an environment variable."""

    @property
    def is_own(self) -> bool:
        """Whether it is a class of the user's."""
        return self.type != BEADS


PUSHES = "COLLABORATOR"
"""Who may push to the repository, in `people.forge`."""

PublicKey = Annotated[str, Field(pattern=r"^[a-z0-9@.-]{1,60} [A-Za-z0-9+/]{40,4000}={0,2}$")]
"""A public key of SSH: two words, without options or a comment."""


class People(Document):
    """Whose word counts, where not everybody's does. Capitals and white space make no difference in a name."""

    tracker: Annotated[tuple[Word, ...], Field(min_length=1, max_length=200)]
    """Names in the tracker's history, with bd git's `user.name`: only their labels, status, assignees and comments move
    an issue that ashep works on, and only they may use `ashep approve` and the like, `pause`, `resume` and `cancel`.
    What anybody else changes there is put back, with a comment."""
    forge: Annotated[tuple[Word, ...], Field(min_length=1, max_length=200)] | None = None
    """Who counts in pull requests: names there, or what the forge calls who wrote something: `OWNER`, `MEMBER` (GitHub
    alone), `COLLABORATOR` (who may push; whoever merged could). What others say is not heard, and what one of them
    merges closes no issue: it is parked. Needed beside `landing.forge`, where that has no `people`."""
    keys: Annotated[dict[Word, Annotated[tuple[PublicKey, ...], Field(max_length=20)]], Field(max_length=200)] = {}
    """By a name of `tracker` the keys of SSH with which that person signs approvals (`ashep approve ISSUE --sign`): of
    each the first two words of its `.pub` file. Where the base branch has this file, its keys count and no others."""
    signed: Literal["optional", "required"] = "optional"
    """`required`: only a signed approval counts, also where the base branch alone says so. Agents and checks then need
    `sandbox: bwrap`, for a program that runs as you can have your ssh-agent sign."""

    def keys_of(self, actor: str) -> tuple[str, ...]:
        """Return the keys with which somebody of the tracker signs."""
        return next((keys for name, keys in self.keys.items() if same_name(name) == same_name(actor)), ())

    def names(self, actor: str) -> bool:
        """Whether somebody of the tracker is named."""
        return same_name(actor) in {same_name(account) for account in self.tracker}


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
    other run has) and `ASHEP_MAIN` (the project's own folder) in its environment. No shell reads them. Where agents
    have a sandbox (`agents.sandbox`) it runs in that."""
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


HUMAN = "human"
"""The label with which bd marks what is for people."""


class WorkerSettings(Document):
    """How much runs at once, and where."""

    max_concurrent_runs: Annotated[int, Field(ge=1, le=64)] = 3
    """Runs at one time. A runner, a provider (`budgets.providers`), an agent and a phase may have a `max_runs`, too."""
    workspace: Annotated[Literal["worktree", "place", "shared"], Field(json_schema_extra=_without_default)] = "shared"
    """`shared`: all sessions run in the user's work tree. `worktree`: each issue gets a git work tree and a branch of
    its own (`ashep/<issue>`), its sessions run there, and what a run leaves is committed there. `place`: the same with
    a git of its own, in which nothing leads to the repository's; work comes out of it when its run has ended. An issue
    that has a tree or a place of its own goes on in it, whatever is set here. Where nothing is set it is, in a git
    repository with a commit, `place` where agents have a sandbox (`agents.sandbox`) and `worktree` where not; and
    `shared` elsewhere, and wherever `lock_work_tree` is set."""
    lock_work_tree: bool = True
    """While the work tree is shared, a write run excludes every other run, and the lock stays with its issue until
    that closes, parks or waits for a person. Who sets it means a shared work tree, where `workspace` does not say
    otherwise."""
    allow_dirty: bool = False
    """Start write runs in the shared work tree although tracked files carry changes that ashep's runs did not make."""
    trees: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """The folder for the work trees of issues; a relative one counts from the project's folder, `~` is your own.
    `null`: `.agent-shepherd/state/trees`, and for places `.agent-shepherd/places`."""
    setup: Annotated[tuple[SetupStep, ...], Field(max_length=50)] = ()
    """How a new work tree of an issue is set up, step by step, once for each tree."""
    disk_floor: Size | None = Bytes(1024**3)
    """So much must be free on the disk where a new work tree is made; `null`: nothing is asked."""
    hold_when_busy: bool = True
    """Whether no run starts while the machine is behind and another run is at work: one that waits for a person is
    not. Runs under way go on."""
    not_labels: Annotated[tuple[Word, ...], Field(max_length=100)] = (HUMAN,)
    """An issue with one of these labels is not taken. `human` is what bd itself calls an issue that is for people (`bd
    human list`); `[]` switches that off. One that was taken before goes on: `ashep:paused` stops it."""
    quiet_hours: Annotated[tuple[QuietHours, ...], Field(max_length=100)] = ()
    """Times in which no run starts and no issue is taken; what runs goes on to its end. `ashep resume` ends one that
    has begun, until it begins again."""


class TreesSettings(Document):
    """How long the work trees and branches of closed issues stand."""

    keep: Span | None = timedelta(days=7)
    """So long after its issue is closed a work tree goes by itself, and its branch with it, if the base branch holds
    its work, and nothing in it is uncommitted, is on no branch, changed within that time, or is in use. What stays is
    looked at again after a day, then after two, four and so on. `null`: nothing goes by itself (`ashep trees gc`)."""


class GitSettings(Document):
    """How git is used where agents work."""

    hooks: Literal["run", "skip"] = "run"
    """Whether the commits that an agent makes in a place run your hooks. `skip`: none runs, in existing places from
    their next run on. No git call of ashep's runs one. In a linked work tree git runs them for an agent as for you,
    whatever is set here. `ashep install` tries them in a place and names those that refuse."""


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
    command: Annotated[tuple[Word, ...], Field(min_length=1)] = (OPENCODE,)
    """The program and its first arguments."""
    password_env: str = "OPENCODE_SERVER_PASSWORD"
    """The environment variable that holds the password of an attached server."""
    idle_stop: Span = timedelta(minutes=30)
    """A managed server is ended when nothing ran for so long."""
    memory_limit: Annotated[Size, Field(ge=256 * 1024**2)] | None = Bytes(4 * 1024**3)
    """The memory (resident, its whole process group: language servers and MCP servers too, what agents run in a shell
    not) above which a managed server is ended and begun again, once nothing runs on it; at twice as much at once.
    `null`: no limit. A server that has just begun holds about 0.5 GiB."""
    max_runs: AtOnce | None = None
    """So many runs on it at one time; `null`: no cap but `worker.max_concurrent_runs`."""
    isolation: Literal["place", "shared"] | None = None
    """`place`: a server of its own for each issue whose agent may change files, and one for all that judge, which see
    exactly what was committed, with the base branch's instructions. `shared`: one for all. `null`: `place` where
    `agents.sandbox` is not `none`. It takes a managed server, and `worker.workspace: place`."""
    nice: Annotated[int, Field(ge=0, le=19)] = 0
    """The scheduling priority of a managed server and of all that it starts: the higher, the more it gives way."""
    environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)], ...] = ()
    """Environment variables that a managed server, and with it every agent's shell, gets in addition to the usual ones
    and the keys of providers (docs/guides/service.md). A variable that `landing.forge` or `notify` takes a secret from
    never passes."""

    @property
    def ours(self) -> bool:
        """Whether ashep starts and ends the server."""
        return self.managed and self.url is None


class AgentPaths(Document):
    """What agents see in their sandbox next to the machine's programs and their own place."""

    read: Annotated[tuple[Annotated[str, Field(pattern=PLACE, max_length=1000)], ...], Field(max_length=100)] = ()
    """Files and folders that they may read, as `/srv/data` or `~/lib`; who judges over ACP may, too, and the login and
    settings of an agent over ACP are there only so."""
    write: Annotated[tuple[Annotated[str, Field(pattern=PLACE, max_length=1000)], ...], Field(max_length=100)] = ()
    """Files and folders that they may change, too: whatever else reads them reads what an agent wrote. Of a file of
    logins or settings in your home it is a copy, of which nothing comes back; no folder of such."""


Opening = Literal["docker", "gpg-agent", "podman", "ssh-agent"]


class AgentsSettings(Document):
    """Where agents work that may change files."""

    sandbox: Annotated[Sandbox, Field(json_schema_extra=_without_default)] = "none"
    """Where an agent runs that may change files, unless its own `sandbox` in agents.yaml says otherwise. `bwrap`: in
    bubblewrap, and where that cannot be used none runs. `auto`: in bubblewrap where it can be used. `none`: as you,
    with all that you can reach. With one of the first two `worker.workspace` is `place`. Where nothing is set it is
    `auto` wherever issues have places, or would have them; `none` next to a `workspace` of another kind, an OpenCode
    server at a `url`, and runners of a class of your own. `ashep install` warns where agents run as you."""
    paths: AgentPaths = AgentPaths()
    """What they see there next to the machine's programs and toolchains, and their place."""
    plugins: bool = False
    """Whether OpenCode loads the plugins that its configuration names in sandboxes, too. Those of npm make its start
    wait for npm's registry, where that does not answer."""
    openings: Annotated[tuple[Opening, ...], Field(max_length=4)] = ()
    """What of you they may use although it leads out of the sandbox: with `docker` or `podman` (their sockets) they are
    you, or root, on this machine; with `ssh-agent` they log in wherever you can; with `gpg-agent` they sign as you."""


class Modes(Document):
    """What an agent that speaks ACP calls its modes."""

    read: Word | None = None
    """In phases with read access; `null`: one of its that changes nothing, by its name, as `plan`."""
    write: Word | None = None
    """In phases with write access; `null`: one of its that asks, by its name, as `default`."""


class OtherRunner(Document):
    """A runner beside OpenCode, under a name of your own; agents are of it where their `runner.type` names it."""

    type: RunnerType | None = None
    """`claude` (Claude Code), `acp` (an agent that speaks the Agent Client Protocol), or a class of your own, as
    `package.module:Class` (docs/extending.md). `null`: its name, which then is `claude` or `acp`."""
    command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """The program and its first arguments; `null`: `claude`. One of `acp` has none by itself."""
    environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)], ...] = ()
    """Environment variables that it gets in addition to the usual ones and the keys of providers."""
    modes: Modes = Modes()
    """What an agent of `acp` calls its modes."""
    instructions: Literal[Kind, "listed"] | None = None
    """The kind of an agent of `acp`, by whose files it is told how to work; `null`: `command` says it. `listed`: its
    files are among `impact.agent_instructions`. One whose kind nobody knows judges nothing where issues have places
    (docs/guides/trees.md)."""
    start_timeout: Duration = timedelta(minutes=2)
    """How long an agent of `acp` may take to start and to open a session before it must show that it works (`npx` may
    have a package to fetch). One that uses processor time is given more, up to 10 minutes."""
    options: Options = {}
    """What a class of your own is given. They are kept in the journal: for a secret, name an environment variable."""
    max_runs: AtOnce | None = None
    """So many runs on it at one time; `null`: no cap but `worker.max_concurrent_runs`."""


class Runners(Document):
    """What executes runs."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, OtherRunner] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride] - how pydantic types them

    opencode: OpencodeSettings = OpencodeSettings()
    """The OpenCode server."""

    @property
    def extra(self) -> Mapping[str, OtherRunner]:
        """Those beside OpenCode, by name."""
        return self.__pydantic_extra__ or {}

    @property
    def custom(self) -> Mapping[str, OtherRunner]:
        """The user's own classes, by name."""
        return {name: one for name, one in self.extra.items() if self.kind(name) not in KINDS}

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Those whose agents can be put into no sandbox."""
        return tuple(name for name in self.extra if not rules_of(self.kind(name)).sandboxed)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them; those that no agent is of are not used."""
        return (OPENCODE, *sorted(self.extra))

    def kind(self, name: str) -> str:
        """What a runner is: `opencode`, `claude`, `acp`, or a class of the user's; empty: none is called so."""
        if name == OPENCODE:
            return OPENCODE
        return (self.extra[name].type or name) if name in self.extra else ""

    def instructed_as(self, name: str) -> str | None:
        """Say by whose files agents of a runner go: of which kind of agents; None: nobody knows."""
        if rules_of(kind := self.kind(name)).instructed:
            return kind or None
        return self.extra[name].instructions or kind_of(self.extra[name].command or ())

    def max_runs(self, name: str) -> int | None:
        """The cap of a runner."""
        return self.extra[name].max_runs if name in self.extra else self.opencode.max_runs


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
    story_prefix: str = "story:"
    """Before the path of a story's file, on the issue of that story (docs/guides/stories.md)."""
    excluded: str = "ashep:excluded"
    """Never touch this issue."""
    needs_approval: str = "needs:human_approval"
    """A person's answer is waited for."""
    needs_input: str = "needs:human_input"
    """A person's text is waited for."""
    needs_answer: str = "needs:human_answer"
    """Stands next to one of these where the question was raised in the work, by an agent, by a verification or by what
    is touched, and is not that of a phase of people."""
    approved: str = "human:approved"
    """A person's yes."""
    changes_requested: str = "human:changes_requested"
    """A person's no, with comments."""
    paused: str = "ashep:paused"
    """A person has taken over: nothing is sent or started until it is taken off."""
    parked: str = "ashep:parked"
    """Shepherd gave up; taking it off starts afresh."""


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
    again; a finding of the audit, or a folder that cannot be deleted."""
    batch: Duration = timedelta(minutes=1)
    """How long others are waited for, to be told in the same message. What is over by then is not told."""
    quiet_hours: Annotated[tuple[QuietHours, ...], Field(max_length=100)] = ()
    """Times in which nobody is told: it is kept until they are over."""
    urgent: tuple[NoticeKind, ...] = ()
    """What is told in quiet hours, too."""


class ImpactSettings(Document):
    """What counts as what in a change, in addition to what is built in (docs/guides/impact.md). A glob begins at the
    repository's top; `*` and `?` stay within a folder, `**` goes across; capitals and small letters are the same.
    """

    agent_instructions: GlobList = ()
    """Files that instruct agents; where issues have places, who judges has them as the base does."""
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
    say, cannot be ignored; what decides how checks run can."""
    max_files: Annotated[int, Field(ge=1)] = 100
    """A change of more files is large."""
    max_lines: Annotated[int, Field(ge=1)] = 2000
    """A change of more lines, added and removed, is large; those of lock files do not count."""


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
    git: GitSettings = GitSettings()
    """How git is used where agents work."""
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
    people: People | None = None
    """Whose word counts; without it that of everybody who is, by the tracker, neither ashep nor one of its agents."""
    agents: AgentsSettings = AgentsSettings()
    """Where agents work that may change files."""
    verification: VerificationSettings = VerificationSettings()
    """How checks run."""
    ui: UiSettings = UiSettings()
    """Where the page is reached."""
    page: PageSettings = PageSettings()
    """What of the page is your own."""
    bmad: Bmad = Bmad()
    """Stories of the BMAD method."""
    sources: Sources = Sources()
    """Where issues come from besides the tracker."""
    redact: tuple[str, ...] = ()
    """Names of more environment variables whose values must not be written down: what tools and agents say loses them
    before it is kept. A value has at least 8 characters. Always among them are the agent server's password, what
    `landing.forge` and `notify` take from variables, passwords in URLs, and variables whose names end like those of
    secrets (`KEY`, `TOKEN`, `SECRET`, `PASSWORD`, `CREDENTIALS`), but for a number, a file or a few words."""

    @property
    def isolated(self) -> bool:
        """Whether who changes files has an agent server of its own, and who judges stands on what was committed."""
        wanted = self.runners.opencode.isolation or ("shared" if self.agents.sandbox == "none" else "place")
        alone = not self.runners.unsandboxed and self.runners.opencode.url is None
        return wanted == "place" and self.worker.workspace == "place" and alone

    @property
    def signed_only(self) -> bool:
        """Whether an approval counts only with a signature."""
        return self.people is not None and self.people.signed == "required"

    @property
    def forge(self) -> ForgeSettings | None:
        """Where pull requests are opened, and whose words count there."""
        forge, people = self.landing.forge, self.people
        if forge is None or people is None or people.forge is None:
            return forge
        return forge.model_copy(update={"people": people.forge})
