"""The tracker, runner and verifier that config.yaml names, made: built-in ones, or classes of the user's own.

A class that cannot be used is a mistake in config.yaml: `ConfigError` with its line and key.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from anyio import from_thread, to_thread
from pydantic import JsonValue

from ashep.adapters.beads import BeadsAnnotations, BeadsTracker
from ashep.adapters.git import GitLanding, GitRemote
from ashep.adapters.git.archive import files_of
from ashep.adapters.git.checkup import GitCheckup
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.workspaces.clones import GROUND, Clones, place_at
from ashep.adapters.git.workspaces.git_config import CONFIG
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.git.workspaces.router import GitWorkspaces
from ashep.adapters.git.workspaces.setup_steps import Inside
from ashep.adapters.git.workspaces.shared_objects import LENDER
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.environment import filter_environment
from ashep.adapters.runners.opencode.isolated_runner import IsolatedRunner, folder_for, forget, leave
from ashep.adapters.runners.opencode.sandbox_profiles import Profiles
from ashep.adapters.runners.opencode.server import ManagedServer, folder_of
from ashep.adapters.sandboxes import logins
from ashep.adapters.sandboxes.exec import PlaceSandbox, enter, find_program_folders
from ashep.adapters.sandboxes.logins import Logins
from ashep.adapters.sandboxes.profiles import SandboxProfiles
from ashep.adapters.sandboxes.session_sandboxes import SessionSandboxes
from ashep.adapters.system import programs
from ashep.adapters.system.clock import RealClock
from ashep.adapters.system.signatures import is_signed
from ashep.adapters.verifier import Keep, LocalVerifier, wrong_patterns
from ashep.config import yaml_tree
from ashep.config.files import read
from ashep.config.findings import ConfigErrors, KeyPath
from ashep.core.facts.approvals import Signature, signatures_in
from ashep.core.facts.tracker import Comment
from ashep.core.policy.agents import INSTRUCTIONS
from ashep.core.policy.disk_limits import LOW_DISK
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.runner_kinds import ACP, CLAUDE, OPENCODE
from ashep.core.policy.settings import OtherRunner, People, Settings
from ashep.core.text import clean
from ashep.daemon.effects.pulls import ForgeAdapters
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.errors import AshepError, ConfigError, RunnerUnavailable, UsageError
from ashep.ports.clock import Clock
from ashep.ports.runner import Runner
from ashep.ports.runner_router import PrefixedRunner, RunnerRouter
from ashep.ports.tracker import Annotations, Tracker
from ashep.ports.user_classes import LONGEST_CALL, Context, NotUsable, load, make, source
from ashep.ports.verifier import CheckType
from ashep.redaction import Redaction

if TYPE_CHECKING:
    from ashep.adapters.runners.claude import Apart

FOLDER = ".agent-shepherd"
OWN = "own"
"""The folder in the state folder in which each class of the user's has a folder of its own."""
LOGIN = "logins"
"""The folder in which a copy of the user's logins stands for sandboxes."""
_LONGEST_CHECK = timedelta(days=1000)
"""A check of the user's own type has a bound of its own, by its `timeout`."""

READER = "ashep-reader"
"""The name under which commands ask the tracker that write nothing."""


def check_path(project: Path) -> None:
    """Raise `UsageError` where no agent can be started: programs in JavaScript, and the journal, hold text alone."""
    if (name := os.fsencode(project).decode(errors="replace")) != str(project):
        what = f"the path {clean(name)} is not UTF-8, and no agent can be started there"
        raise UsageError(f"{what}: rename the folder, or clone the repository elsewhere")


def check(project: Path, settings: Settings) -> None:
    """Import the user's classes and hold them against their ports. Raises `ConfigError`, and as `check_path` does."""
    check_path(project)
    tracker, types = settings.tracker, settings.verification.types
    classes: list[tuple[KeyPath, str, type]] = [(("tracker", "type"), tracker.type, Tracker)] if tracker.is_own else []
    classes += [
        (("runners", name, "type"), runner.type or "", Runner) for name, runner in settings.runners.custom.items()
    ]
    classes += [(("verification", "types", name, "type"), kind.type, CheckType) for name, kind in types.items()]
    for path, dotted, port in classes:
        try:
            load(dotted, port, project)
        except NotUsable as error:
            raise _locate_error(project, path, error) from error


def tracker_of(
    project: Path, settings: Settings, actor: str, *, redaction: Redaction | None = None, clock: Clock | None = None
) -> Tracker:
    """Make the project's tracker, which writes as `actor`. Raises `ConfigError`."""
    tracker = settings.tracker
    if not tracker.is_own:
        return BeadsTracker(project, tracker.command, actor, tracker.timeout.total_seconds(), redaction)
    context = _context(project, "tracker", tracker.options, redaction, clock, actor, tracker.timeout)
    return cast(Tracker, _make_instance(project, ("tracker", "type"), tracker.type, Tracker, context))


def annotations_of(project: Path, settings: Settings, actor: str) -> Annotations:
    """Make what writes criteria and metadata, as `actor`. Raises `ConfigError`; `UsageError`: there is none."""
    if (annotations := find_annotations(project, settings, actor)) is None:
        message = f"{settings.tracker.type} is a tracker of your own without a class `Annotations`"
        raise UsageError(f"{message}: write into its issues with its own tools, or add one (docs/extending.md)")
    return annotations


def find_annotations(
    project: Path, settings: Settings, actor: str, *, redaction: Redaction | None = None
) -> Annotations | None:
    """Make the same; None: the tracker is the user's, and has no such thing. Raises `ConfigError`."""
    tracker, name = settings.tracker, f"{settings.tracker.type}.Annotations"
    if not tracker.is_own:
        return BeadsAnnotations(project, tracker.command, actor, tracker.timeout.total_seconds())
    try:
        if not hasattr(load(tracker.type, Tracker, project), "Annotations"):
            return None
        context = _context(project, "tracker", tracker.options, redaction, None, actor, tracker.timeout)
        return cast(Annotations, make(load(name, Annotations, project), name, Annotations, context))
    except NotUsable as error:
        raise _locate_error(project, ("tracker", "type"), error) from error


def worktrees_of(project: Path, settings: Settings, *, redaction: Redaction | None = None) -> GitWorkspaces:
    """Make what gives issues work trees of their own."""
    worker, places = settings.worker, places_of(project, settings)
    own = Path(worker.trees).expanduser() if worker.trees else None
    made: dict[str, Any] = {"setup": worker.setup, "disk_floor": worker.disk_floor or 0}
    linked = Worktrees(project, project / (own or Path(FOLDER, "state", "trees")), redaction=redaction, **made)
    state = project / FOLDER / "state"
    ends: dict[str, Any] = {"leave": partial(leave, state), "forget": partial(forget, state)}
    if sandboxed(settings):
        ends["enter"] = partial(_enter, project, settings)
    ends |= {"hooks": settings.git.hooks, "instructions": settings.impact.agent_instructions}
    apart = Clones(project, places, redaction=redaction, **ends, **made)
    return GitWorkspaces(linked, apart, anew=apart if worker.workspace == "place" else linked)


def checkup_of(
    project: Path, settings: Settings, *, redaction: Redaction | None = None, writes: bool = True
) -> GitCheckup:
    """Make what looks at the repository: it makes trees as issues get them, without their set-up."""
    bare = settings.model_copy(update={"worker": settings.worker.model_copy(update={"setup": ()})})
    remote = settings.landing.forge.remote if settings.landing.forge is not None else None
    spaces = worktrees_of(project, bare, redaction=redaction).anew
    return GitCheckup(project, spaces, remote=remote, redaction=redaction, writes=writes)


async def _enter(project: Path, settings: Settings, place: Path) -> Inside | None:
    """Give what runs a program where the agents of a place run."""
    inside = await inside_of(project, settings, place, whole=True)
    return inside.run if inside is not None else None


def sandboxed(settings: Settings) -> bool:
    """Say whether agents that change files are to run in a sandbox."""
    return settings.isolated and settings.agents.sandbox != "none"


async def inside_of(
    project: Path, settings: Settings, place: Path, folder: Path | None = None, *, whole: bool = False
) -> PlaceSandbox | None:
    """Give the sandbox of a place, as its agents have it; None: there is none. `folder`: for what it keeps. `whole`:
    the project's files can be read there, too, and the agents' logins not.
    """
    profile, environment = await _server(project, settings, place, None, folder).surroundings()
    inside = await enter(profile, environment, project if whole else None)
    for name in settings.runners.extra if not whole else ():
        add = _BESIDE_THE_SERVER.get(settings.runners.kind(name))
        if inside is not None and add is not None:
            things = folder or await to_thread.run_sync(folder_for, project / FOLDER / "state", place)
            inside = await add(NamedRunner(project, settings, name), place, things, inside)
    return inside


def places_of(project: Path, settings: Settings) -> Path:
    """Give the folder of the places of issues."""
    own = settings.worker.trees
    return project / (Path(own).expanduser() if own else Path(FOLDER, "places"))


def runners_of(
    project: Path, settings: Settings, *, redaction: Redaction | None = None, clock: Clock | None = None
) -> RunnerRouter:
    """Make what makes the project's runners, each when it is asked for; that raises `ConfigError`."""
    makers = dict[str, Callable[[], Runner]]()
    runners = RunnerRouter(makers)
    for name in settings.runners.names:
        make_runner = FACTORIES.get(settings.runners.kind(name), make_own)
        makers[name] = partial(make_runner, RunnerRequest(project, settings, name, redaction, clock, runners))
    return runners


@dataclass(frozen=True, slots=True)
class NamedRunner:
    """A runner of a project, by its name."""

    project: Path
    settings: Settings
    name: str

    @property
    def chosen(self) -> OtherRunner:
        """What config.yaml says of it, where it is not the agent server."""
        return self.settings.runners.extra[self.name]

    def make(self, redaction: Redaction | None = None) -> Runner:
        """Make the runner without the prefix of its sessions. Raises `ConfigError`."""
        made = runners_of(self.project, self.settings, redaction=redaction)[self.name]
        return made.runner if isinstance(made, PrefixedRunner) else made


@dataclass(frozen=True, slots=True)
class RunnerRequest(NamedRunner):
    """A runner that is to be made."""

    redaction: Redaction | None
    clock: Clock | None
    router: RunnerRouter


def _opencode(request: RunnerRequest) -> Runner:
    """Make the runner with one server for all, or with a server for each place, and one for all that judge."""
    project, settings, redaction = request.project, request.settings, request.redaction
    if not settings.isolated:
        return opencode_of(project, settings, redaction=redaction)
    profiles = _profiles(project, settings)
    return IsolatedRunner(
        opencode_of(project, settings, redaction=redaction, profiles=profiles),
        partial(make_place_runner, project, settings, redaction=redaction, profiles=profiles),
        place_of=partial(place_at, places_of(project, settings)),
        state=project / FOLDER / "state",
        most=settings.runners.opencode.memory_limit,
        logins=profiles.logins,
    )


def make_own(request: RunnerRequest) -> Runner:
    """Make a runner of a class of the user's."""
    project, name, chosen, settings = request.project, request.name, request.chosen, request.settings
    context = _context(project, name, chosen.options, request.redaction, request.clock, "", settings.tracker.timeout)
    return cast(Runner, _make_instance(project, ("runners", name, "type"), chosen.type or "", Runner, context))


def _claude(request: RunnerRequest) -> Runner:
    from ashep.adapters.runners.claude import ClaudeRunner  # few have one, and nobody else need import it

    project, settings, name, chosen = request.project, request.settings, request.name, request.chosen
    base = partial(_in_base, project, settings)
    return ClaudeRunner(
        claude_command(chosen),
        directory=project,
        folder=runner_folder(project, name),
        environ=filter_environment(os.environ, chosen.environment, secret_variables(settings), _OF_CLAUDE),
        begin=lambda session, message, _: request.router.may_begin(name, session, message),
        config=claude_folder(),
        apart=_apart(project, settings, chosen) if settings.isolated else None,
        instructions=lambda: "\n\n".join(base(INSTRUCTIONS).values()),
        base_agents=lambda: {Path(one).stem: text for one, text in base((".claude/agents",)).items()},
        redaction=request.redaction,
    )


def claude_command(chosen: OtherRunner) -> tuple[str, ...]:
    """Give Claude Code and the arguments of the user's own."""
    return chosen.command or (str(programs.find(CLAUDE) or CLAUDE),)


def _apart(project: Path, settings: Settings, chosen: OtherRunner) -> "Apart":
    from ashep.adapters.runners.claude import Apart  # as above

    quarters, user = _session_sandboxes(project, settings, claude_command(chosen), _OF_THE_MACHINE), claude_folder()
    login = Logins(user / ".credentials.json", lambda: folder_of(user, os.environ) / LOGIN, logins.CLAUDE)
    return Apart(quarters, login)


async def _add_claude(runner: NamedRunner, place: Path, folder: Path, inside: PlaceSandbox) -> PlaceSandbox:
    apart = await to_thread.run_sync(_apart, runner.project, runner.settings, runner.chosen)
    own = await apart.of_place(place, folder)
    passes = filter_environment(os.environ, runner.chosen.environment, secret_variables(runner.settings), _OF_CLAUDE)
    ours = {name: value for name, value in own.environment.items() if name.startswith("CLAUDE_")}
    return replace(inside, view=inside.view.add_view(own.view), environment={**passes, **inside.environment, **ours})


def _session_sandboxes(
    project: Path, settings: Settings, command: Sequence[str], read: Sequence[str]
) -> SessionSandboxes:
    """Say where agents of a command are kept apart. `read`: what who judges reads next to its ground."""
    return SessionSandboxes(
        _sandbox_profiles(project, settings),
        place_of=partial(place_at, places_of(project, settings)),
        folder_of=partial(folder_for, project / FOLDER / "state"),
        needs=lambda: {*find_program_folders(programs.find(command[0])), *(Path(one).expanduser() for one in read)},
    )


def _acp(request: RunnerRequest) -> Runner:
    from ashep.adapters.runners.acp import AcpRunner  # as above

    project, settings, name, chosen = request.project, request.settings, request.name, request.chosen
    command, read = chosen.command or (), settings.agents.paths.read
    modes = {access: mode for access, mode in (("read", chosen.modes.read), ("write", chosen.modes.write)) if mode}
    return AcpRunner(
        command,
        directory=project,
        folder=runner_folder(project, name),
        environ=filter_environment(os.environ, chosen.environment, secret_variables(settings), _OF_CLAUDE),
        name=name,
        mode=cast(Mapping[Literal["read", "write"], str], modes),
        redaction=request.redaction,
        quarters=_session_sandboxes(project, settings, command, read) if settings.isolated else None,
        start_timeout=chosen.start_timeout,
    )


FACTORIES: Mapping[str, Callable[[RunnerRequest], Runner]] = {OPENCODE: _opencode, CLAUDE: _claude, ACP: _acp}
"""What makes a runner, by its kind; all others are classes of the user's."""

_BESIDE_THE_SERVER = {CLAUDE: _add_claude}
"""What adds that of a kind's agents which they have in a place to the sandbox of the agent server there."""

_OF_THE_MACHINE = ("/etc/claude-code",)
"""Where whoever runs a machine says what Claude Code may do there."""

_OF_CLAUDE = ("ANTHROPIC_", "CLAUDE_", "VERTEX_")
"""How variables begin that Claude Code is set up by, next to the keys of providers."""


def runner_folder(project: Path, name: str) -> Path:
    """Give the folder in which a runner keeps its things, which survives the loss of `state/`."""
    return folder_of(project / FOLDER / "state", os.environ) / "runners" / name


def claude_folder() -> Path:
    """Give Claude Code's own folder, with the user's login."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def _in_base(project: Path, settings: Settings, names: Sequence[str]) -> dict[str, str]:
    """Read files of the base commit, in a thread next to the loop. Raises `RunnerUnavailable`."""
    try:
        held = from_thread.run(files_of, project, settings.landing.base or "HEAD", names)
    except AshepError as error:
        raise RunnerUnavailable(f"the base branch's instructions cannot be read: {error}") from error
    return {name: content.decode(errors="replace") for name, content in sorted(held.items())}


def make_place_runner(
    project: Path,
    settings: Settings,
    place: Path,
    *,
    redaction: Redaction | None = None,
    profiles: Profiles | None = None,
) -> OpencodeRunner:
    """Make what asks the server of a place."""
    server = _server(project, settings, place, profiles, session=True)
    return OpencodeRunner(server, directory=place, redaction=redaction)


def _sandbox_profiles(project: Path, settings: Settings) -> SandboxProfiles:
    places = places_of(project, settings)
    return SandboxProfiles(project, places, (places / LENDER / "objects", places / CONFIG), settings.agents, os.environ)


def _profiles(project: Path, settings: Settings) -> Profiles:
    base = partial(files_of, project, settings.landing.base or "HEAD")
    ground = places_of(project, settings) / GROUND
    return Profiles(_sandbox_profiles(project, settings), ground, os.environ, base, opencode_logins())


def opencode_logins() -> Logins:
    """Make what gives sandboxes the user's logins of OpenCode."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share", "opencode").absolute()
    return Logins(data / "auth.json", lambda: folder_of(data, os.environ) / LOGIN, logins.OPENCODE)


def _server(
    project: Path,
    settings: Settings,
    place: Path | None,
    profiles: Profiles | None = None,
    folder: Path | None = None,
    *,
    session: bool = False,
) -> ManagedServer:
    """Make a server that is kept apart: that of a place, or of those who judge. `folder`: for what it keeps.

    `session`: the one of a place is as the session wants it that works there.
    """
    places, opencode, state = places_of(project, settings), settings.runners.opencode, project / FOLDER / "state"
    profiles = profiles or _profiles(project, settings)
    return ManagedServer(
        command=opencode.command,
        directory=place or places / GROUND,
        state=state,
        nice=opencode.nice,
        names=opencode.environment,
        secret=secret_variables(settings),
        folder=(lambda: folder) if folder else partial(folder_for, state, place) if place else None,
        profile=profiles.judge if place is None else partial(profiles.maker, place=place, session=session),
    )


def opencode_of(
    project: Path, settings: Settings, *, redaction: Redaction | None = None, profiles: Profiles | None = None
) -> OpencodeRunner:
    """Make the runner that is built in, for what only it can be asked: of those that are kept apart the judges'."""
    if settings.isolated:
        server = _server(project, settings, None, profiles)
        return OpencodeRunner(server, directory=places_of(project, settings) / GROUND, redaction=redaction, judges=True)
    return OpencodeRunner.from_settings(
        settings.runners.opencode,
        directory=project,
        state=project / FOLDER / "state",
        environ=os.environ,
        redaction=redaction,
        secret=secret_variables(settings),
    )


def secret_variables(settings: Settings) -> frozenset[str]:
    """The environment variables from which config.yaml has a secret taken that no agent needs."""
    forge = settings.landing.forge
    names = {target.apprise_env for target in settings.notify.targets} | {forge.token_variable if forge else None}
    names |= {settings.runners.opencode.password_env, *(source.token_env for source in settings.sources.all)}
    return frozenset(name for name in names if name)


def verifier_of(
    project: Path,
    settings: Settings,
    keep: Keep,
    *,
    scratch: Path | None = None,
    redaction: Redaction | None = None,
    clock: Clock | None = None,
) -> LocalVerifier:
    """Make what carries checks out. Raises `ConfigError`.

    `keep` makes a text durable and gives its hash (`Blobs.keep`). `scratch`: where checkouts are made and removed; by
    default `state/checks` of the project.
    """
    state, types, sources = project / FOLDER / "state", dict[str, CheckType](), dict[str, Callable[[], str]]()
    for name, own in settings.verification.types.items():
        context = _context(project, name, own.options, redaction, clock, "", settings.tracker.timeout)
        path = ("verification", "types", name, "type")
        types[name] = cast(CheckType, _make_instance(project, path, own.type, CheckType, context, _LONGEST_CHECK))
        sources[name] = lambda own=own: f"{own.model_dump_json()} {source(own.type, project)}"
    folder, floor = scratch or state / "checks", settings.worker.disk_floor or LOW_DISK
    lender = places_of(project, settings) / LENDER if settings.worker.workspace == "place" else None
    kept: dict[str, Any] = {"hidden": [state], "floor": floor, "lender": lender}
    return LocalVerifier(settings.verification, folder, keep, redaction, types=types, sources=sources, **kept)


MOST_SIGNATURES = 20
"""Of those that comments hold, the newest so many are verified."""


async def people_of(project: Path, settings: Settings, revision: str) -> People | None:
    """Return `people` of config.yaml as a revision has it; where it has no such file, as the settings have it.

    So the keys are not those of whatever branch stands checked out. Where the file cannot be read, nobody counts.
    """
    name = f"{FOLDER}/config.yaml"
    files = await files_of(project, revision, [name])
    if name not in files:
        return settings.people
    try:
        return read(Settings, files[name].decode(errors="replace"), Path(revision, name)).people
    except ConfigErrors:
        return None


async def read_signatures(
    project: Path, settings: Settings, branch: str, comments: Sequence[Comment]
) -> tuple[tuple[Signature, ...], bool]:
    """Read the signatures that comments hold, and whether the branch has only signed approvals count.

    The signer is the author whose key of that branch made it. Raises `AshepError` where nothing can be verified.
    """
    people, signatures = await people_of(project, settings, f"refs/heads/{branch}"), list[Signature]()
    written = [(comment.author, signature) for comment in comments for signature in signatures_in(comment.text)]
    for author, signature in written[-MOST_SIGNATURES:]:
        keys = people.keys_of(author) if people is not None else ()
        valid = await is_signed(signature.approval.text, signature.armor, keys)
        signatures.append(replace(signature, signer=author if valid else ""))
    return tuple(signatures), people is not None and people.signed == "required"


def make_delivery_adapters(
    project: Path,
    settings: Settings,
    keep: Keep,
    *,
    actor: str,
    redaction: Redaction | None = None,
    clock: Clock | None = None,
) -> DeliveryAdapters:
    """Make what looks into the work of issues, and lands it. Raises `ConfigError`. `keep`: as for `verifier_of`."""
    return DeliveryAdapters(
        project,
        verifier_of(project, settings, keep, redaction=redaction, clock=clock),
        GitDiffs(project, redaction=redaction),
        GitLanding(project, redaction=redaction, by_key=settings.landing.merge_by_key),
        find_annotations(project, settings, actor, redaction=redaction),
        wrong_patterns,
    )


def make_forge_adapters(project: Path, settings: ForgeSettings, *, redaction: Redaction | None = None) -> ForgeAdapters:
    """Make what pushes branches and opens pull requests. Raises `ForgeUnauthorized` where there is no token."""
    from ashep.adapters.forges import forge_of  # few have one, and nobody else need import it

    return ForgeAdapters(forge_of(settings, redaction), GitRemote(project, settings.remote, redaction=redaction))


def _context(
    project: Path,
    name: str,
    options: Mapping[str, JsonValue],
    redaction: Redaction | None,
    clock: Clock | None,
    actor: str,
    timeout: timedelta,
) -> Context:
    secrets = redaction or Redaction()

    def read_secret(name: str) -> str:
        secrets.add(value := os.environ.get(name, ""))
        return value

    return Context(
        options=options,
        project=project,
        state=project / FOLDER / "state" / OWN / name,
        clock=clock or RealClock(),
        actor=actor,
        timeout=timeout,
        secret=read_secret,
        redact=secrets.text,
    )


def _make_instance(
    project: Path, path: KeyPath, dotted: str, port: type, context: Context, longest: timedelta = LONGEST_CALL
) -> Any:
    try:
        return make(load(dotted, port, project), dotted, port, context, longest)
    except NotUsable as error:
        raise _locate_error(project, path, error) from error


def _locate_error(project: Path, path: KeyPath, error: NotUsable) -> ConfigError:
    """Say it with the place in config.yaml, as that stands now."""
    file = project / FOLDER / "config.yaml"
    try:
        root, _ = yaml_tree.read(file.read_text(encoding="utf-8"))
        place = root.locate(path)
        line, key = place.line, place.key
    except (OSError, UnicodeDecodeError, yaml_tree.YamlUnreadable):
        line, key = None, ".".join(map(str, path))
    return ConfigError(str(error), file=file, line=line, key=key)
