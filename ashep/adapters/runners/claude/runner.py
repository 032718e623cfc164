"""`ClaudeRunner`: the port `Runner` over Claude Code, one process a prompt (facts/claude-code.md)."""

import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.to_thread

from ashep.adapters.runners.claude import agents, hook, permission_requests, process, settings, transcript, turn_state
from ashep.adapters.runners.claude.activity import IDLE, LOOK, TOOLS, ActivityMonitor, SessionActivity
from ashep.adapters.runners.claude.jsonl import part, text
from ashep.adapters.runners.claude.sandbox import Apart
from ashep.adapters.runners.claude.session_reader import Readings
from ashep.adapters.runners.claude.session_store import (
    MESSAGE,
    Attempt,
    SessionOptions,
    SessionStore,
    session_id,
)
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.runners.quotas import read_quota
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.sandboxes.session_sandboxes import GONE
from ashep.adapters.system import programs
from ashep.adapters.system.process_table import processor_time
from ashep.core.facts.requests import Answers, Request, RequestKind, Verdict
from ashep.core.facts.runs import Life, Model
from ashep.errors import ProgramMissing, ProgramTimedOut, RunnerRefused, RunnerUnauthorized, RunnerUnavailable
from ashep.journal import durable_io
from ashep.ports.runner import Catalog, Prompt, SessionRequest, Sign, Turn
from ashep.redaction import Redaction

if TYPE_CHECKING:
    from ashep.adapters.runners.claude.prompt_gate import Begin, Gate

ALIASES = ("opus", "sonnet", "haiku")
"""Names of models that every installation knows."""

_LOGINS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
)  # fmt: skip
_HEADLESS = (
    "-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose", "--include-partial-messages",
    "--setting-sources", "user", "--strict-mcp-config",
)  # fmt: skip
_Answer = TypeVar("_Answer")
_Given = TypeVarTuple("_Given")


class ClaudeRunner:
    """Agents that run as processes of Claude Code, each for one prompt.

    `start()` opens the gate, without which no turn begins; turns go on while this object, or the daemon, is gone, and
    another object over the same folder finds them again.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        folder: Path,
        environ: Mapping[str, str],
        begin: "Begin",
        config: Path | None = None,
        models: Sequence[Model] = (),
        default: Model | None = None,
        instructions: Callable[[], str] = str,
        base_agents: Callable[[], Mapping[str, str]] = dict,
        redaction: Redaction | None = None,
        web: bool = True,
        apart: Apart | None = None,
    ) -> None:
        """Know where everything is; nothing is read or started.

        `command`: Claude Code and arguments of the user's own. `folder`: private, outside every work tree. `config`:
        Claude Code's own folder, with the login; None: one below `folder`. `begin`: see the gate. `instructions`: what
        the base commit says to agents (its CLAUDE.md, AGENTS.md); `base_agents`: the texts of its `.claude/agents/*.md`
        by name. Both may block. `web`: a reader may fetch pages although no rule says so. `apart`: keeps sessions
        in sandboxes; None: they run as we do.
        """
        self._command, self._directory, self._environ, self._begin = tuple(command), directory, environ, begin
        self._config = config or folder / "config"
        self._models = tuple(dict.fromkeys((*models, *(Model(turn_state.PROVIDER, one) for one in ALIASES))))
        self._default, self._instructions, self._base_agents = default, instructions, base_agents
        self._redaction, self._web, self._apart = redaction or Redaction(), web, apart
        self._store = SessionStore(folder, self._config)
        self._readings = Readings(self._store)
        self._gate: Gate | None = None
        self._starting = anyio.Lock()
        self._watch = ActivityMonitor()
        self._stirs = anyio.Event()
        self._version = "", 0

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the gate (see the port). Raises `RunnerUnavailable` where the program is missing."""
        async with self._starting:
            if self._gate is None:
                make_gate = await anyio.to_thread.run_sync(self._make)
                self._gate = make_gate(self._store, self._begin)
                self._stir()

    def _make(self) -> "type[Gate]":
        """Make the folders, and return the class of the gate, whose server nobody needs without Claude Code."""
        from ashep.adapters.runners.claude.prompt_gate import Gate

        self._read_program_mtime()
        self._store.make()
        if not self._config.is_dir():
            durable_io.make_folder(self._config)
        return Gate

    async def aclose(self) -> None:
        """Close the gate (see the port); what runs goes on."""
        gate, self._gate = self._gate, None
        if gate is not None:
            self._stir()
            await gate.close()

    async def stop_server(self) -> bool:
        await self.aclose()
        return False

    def _ready(self) -> "Gate":
        if self._gate is None:
            raise RunnerUnavailable("Claude Code was not started")
        return self._gate

    async def _run_blocking(self, work: Callable[[Unpack[_Given]], _Answer], *given: *_Given) -> _Answer:
        """Do what blocks, once the gate is open. Raises `RunnerUnavailable` where the disk does not do its part."""
        self._ready()
        try:
            return await anyio.to_thread.run_sync(work, *given)
        except OSError as error:
            raise RunnerUnavailable(f"{error.filename or self._store.folder}: {error.strerror or error}") from error

    def _stir(self) -> None:
        self._stirs.set()
        self._stirs = anyio.Event()

    # --- what there is --------------------------------------------------------------------------------------------

    async def catalog(self) -> Catalog:
        names, mtime = await self._run_blocking(self._agents), await self._run_blocking(self._read_program_mtime)
        if self._apart is not None and self._apart.logins.used:
            with suppress(OSError):  # it is tried again with the next turn, which says so
                await self._apart.logins.keep()
        version, of = self._version
        if not version or of != mtime:
            environ = {**self._environ, "CLAUDE_CONFIG_DIR": str(self._config)}
            try:
                done = await programs.ask_version(self._command, environ)
            except (ProgramMissing, ProgramTimedOut) as error:
                raise RunnerUnavailable(str(error)) from error
            version = done.stdout.decode(errors="replace").split(" ")[0].strip()
            if done.returncode or not version:
                raise RunnerUnavailable(f"{self._command[0]} --version ended with {done.returncode}")
            self._version = version, mtime
        instance, tried = f"claude-{version}", programs.CLAUDE_VERSION
        return Catalog(version, instance, names, self._models, self._default, tried=tried, exhaustive=False)

    def _read_program_mtime(self) -> int:
        """When the program was written, in nanoseconds."""
        program = shutil.which(self._command[0], path=self._environ.get("PATH"))
        if program is None:
            raise RunnerUnavailable(f"{self._command[0]} is not there")
        return os.stat(program).st_mtime_ns

    async def agents(self) -> tuple[agents.AgentDefinition, ...]:
        """Say which agents can be named next to the built-in ones, and what they are; it need not have been started."""
        return await anyio.to_thread.run_sync(lambda: agents.listed(self._config, self._base_agents()))

    def _agents(self) -> tuple[str, ...]:
        self.check_login()
        return tuple(dict.fromkeys((*agents.BUILT_IN, *agents.list_names(self._config), *sorted(self._base_agents()))))

    @property
    def login(self) -> str:
        """Where the login comes from: the variable that has it, else Claude Code's folder."""
        return next((name for name in _LOGINS if self._environ.get(name)), str(self._config))

    def check_login(self) -> None:
        """Raise `RunnerUnauthorized` where nobody is logged in, which the program says at a prompt only. Blocks."""
        file = self._config / "settings.json"
        user_settings = (parse_object(file.read_bytes()) or {}) if file.is_file() else {}
        has_variable = any(self._environ.get(name) or text(part(user_settings, "env"), name) for name in _LOGINS)
        if not (has_variable or text(user_settings, "apiKeyHelper") or (self._config / ".credentials.json").is_file()):
            raise RunnerUnauthorized("Claude Code is not logged in: run `claude`, or set ANTHROPIC_API_KEY")

    # --- sessions -------------------------------------------------------------------------------------------------

    async def open_session(self, request: SessionRequest) -> str:
        """Keep what a session may do, under an id of its key and folder (see the port): idempotent."""
        directory = await self._run_blocking(self._real, request.directory)
        session = session_id(request.key, directory)
        folder = self._store.folder_of(session)
        options = SessionOptions(
            key=request.key, title=request.title, access=request.access, directory=directory,
            permissions=request.permissions, sandbox=request.sandbox,
            config=await self._apart.config(request, folder) if self._apart is not None else "",
        )  # fmt: skip
        await self._run_blocking(self._store.open, session, options)
        return session

    def _real(self, directory: str | None) -> str:
        return os.path.realpath(directory or self._directory)

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        """Find the session with a key (see the port): there is one at most in a folder."""
        session = session_id(key, await self._run_blocking(self._real, directory))
        return session if await self.has_session(session) else None

    async def has_session(self, session: str) -> bool:
        return await self._run_blocking(self._store.session, session) is not None

    async def asked(self, session: str) -> tuple[str, ...]:
        return await self._run_blocking(self._readings.asked, session)

    # --- turns ----------------------------------------------------------------------------------------------------

    async def send(self, prompt: Prompt) -> str:
        """Start a process for a prompt, unless one of it runs or has ended (see the port).

        One that died begins once more, under the same ids here and another one with Claude Code.
        """
        self._ready()
        if not MESSAGE.fullmatch(prompt.message_id):
            raise RunnerRefused(f"{prompt.message_id[:100]} is no message's id")
        session = await self._run_blocking(self._store.session, prompt.session)
        if session is None:
            raise RunnerRefused(f"there is no session {prompt.session[:100]}")
        for message in (None, prompt.message_id):
            earlier = await self._run_blocking(self._dead, prompt.session, message)
            if earlier is not None:
                await process.sweep(earlier)  # its tools may have outlived it, and would work next to the next one
        profile = None
        if session.config:
            if self._apart is None:  # what it wrote there would lead a process outside
                raise RunnerUnavailable(GONE)
            profile = await self._apart.profile(session)
        instance = await self._run_blocking(self._begin_turn, session, prompt, profile)
        self._watch.sent(prompt.session)
        self._stir()
        return instance

    def _dead(self, session: str, message: str | None = None) -> Attempt | None:
        """The last attempt of a message, or the one whose end nobody has seen, if its process has ended for good.

        Behind the lock: one that is about to be started holds it.
        """
        with self._store.lock(session):
            attempts = self._store.attempts(session, message) if message else [self._store.current(session)]
            last = attempts[-1] if attempts else None
            return last if last is not None and not process.runs(last) else None

    def _begin_turn(self, session: SessionOptions, prompt: Prompt, profile: SandboxProfile | None) -> str:
        with self._store.lock(prompt.session):
            attempts = self._store.attempts(prompt.session, prompt.message_id)
            if attempts:
                turn = self._readings.turn(prompt.session, prompt.message_id, frozenset())
                if turn.state in ("running", "finished"):
                    return turn.instance
            self._refuse(prompt)
            attempt = self._store.add(prompt.session, prompt.message_id, len(attempts) + 1)
            argv, secret = self._prepare(session, prompt, attempt)
            config = self._store.config(prompt.session)
            variables = self._environ if profile is None else profile.make_environment(self._environ)
            environ = process.environment(variables, config, attempt, secret)
            self._store.set_current(prompt.session, prompt.message_id)
            directory = Path(session.directory)
            return process.begin(argv, environ, directory, attempt, profile, config.parent).instance

    def _refuse(self, prompt: Prompt) -> None:
        """Raise where this prompt cannot begin now, or never."""
        self.check_login()
        if prompt.agent is not None and prompt.agent not in self._agents():
            raise RunnerRefused(f"there is no agent {prompt.agent[:100]}")
        if prompt.model is not None and prompt.model.provider != turn_state.PROVIDER:
            raise RunnerRefused(f"Claude Code has no provider {prompt.model.provider[:100]}")
        current = self._store.current(prompt.session)
        if current is not None and process.runs(current):
            raise RunnerRefused(f"the session runs {current.message}")
        if prompt.session in process.strangers(self._store.config(prompt.session), [prompt.session]):
            raise RunnerRefused("a person has this session open in Claude Code; nothing is begun beside them")

    def _prepare(self, session: SessionOptions, prompt: Prompt, attempt: Attempt) -> tuple[list[str], str]:
        """Write down what a process is given; its arguments and its secret."""
        folder, secret, gate = attempt.folder, secrets.token_urlsafe(32), self._ready()
        self._redaction.add(secret)
        tools = settings.tools_of(session, web=self._web)
        content = f"\n{prompt.text}" if prompt.text.startswith("/") else prompt.text  # no command of Claude Code's
        line = {"type": "user", "message": {"role": "user", "content": content}, "uuid": attempt.uuid}
        files = {
            "prompt": json.dumps(line) + "\n",
            "secret": secret,
            "hook.py": Path(hook.__file__).read_text(),
            "rules.json": settings.rules_file(session, attempt.uuid),
            "settings.json": json.dumps(settings.settings_of(session, tools, folder, gate.address)),
            "instructions.md": self._instructions(),
            "before.json": self._readings.read_baseline(prompt.session).model_dump_json(),
        }
        for name, text_ in files.items():
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text_, encoding="utf-8", errors="replace")
        has_transcript = self._store.transcript(prompt.session) is not None
        argv = [*self._command, *_HEADLESS, "--resume" if has_transcript else "--session-id", prompt.session]
        argv += ["--settings", str(folder / "settings.json"), "--permission-mode", settings.mode_of(session)]
        argv += ["--tools", ",".join(tools), "--permission-prompt-tool", "stdio"]
        if files["instructions.md"]:
            argv += ["--append-system-prompt-file", str(folder / "instructions.md")]
        model = prompt.model or self._default
        argv += [] if model is None else [f"--model={model.model}"]  # of one piece: no name is an option
        if (agent := prompt.agent) is not None:
            is_own = agent in agents.list_names(self._config)
            definition = None if is_own else agents.definition(agent, self._base_agents())
            argv += [*([] if definition is None else ["--agents", definition]), f"--agent={agent}"]
        return argv, secret

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        turn = await self._run_blocking(self._readings.turn, session, message_id, ours)
        clean, refused = self._redaction.text, turn.refused
        limits = await self._run_blocking(self._readings.limits, session, message_id)
        quota = read_quota(limits, turn_state.PROVIDER, self.login) if limits is not None else None
        if refused is not None:
            refused = replace(refused, why=clean(refused.why))
        error = clean(turn.error) if turn.error else None
        not_started = clean(turn.not_started)
        return replace(turn, text=clean(turn.text), error=error, refused=refused, quota=quota, not_started=not_started)

    async def life(self, session: str) -> Life:
        current = await self._run_blocking(self._store.current, session)
        if current is None:
            return Life(timedelta())
        output = await self._run_blocking(self._readings.output, current)
        call = ("", "compaction") if output.compacts else output.tool
        return Life(
            quiet=timedelta(seconds=self._watch.quiet(session)),
            tool=hook.NAMES.get(call[1], call[1]) if call else None,
            tool_for=timedelta(seconds=self._watch.tool_for(session, call[0] if call else None)),
            retry_in=output.retry.again_in if output.retry is not None else None,
        )

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those sessions in which a process of ours runs, or a person's is at work (see the port)."""
        return await self._run_blocking(self._busy, [*sessions])

    def _busy(self, sessions: list[str]) -> frozenset[str]:
        current = {session: self._store.current(session) for session in sessions}
        ours = {one for one, attempt in current.items() if attempt and process.runs(attempt)}
        configs = {session: self._store.config(session) for session in sessions}
        for config in set(configs.values()):
            theirs = process.strangers(config, [session for session in sessions if configs[session] == config])
            ours |= {one for one, works in theirs.items() if works}
        return frozenset(ours)

    async def abort(self, session: str) -> None:
        """Stop a session's process and see it gone, with all that it started (see the port); a person's goes on."""
        current = await self._run_blocking(self._store.current, session)
        if current is None:
            return
        running = await self._run_blocking(process.find_process, current)
        if running is not None and await self._run_blocking(process.lives, running):
            await self._run_blocking(current.note, "aborted")
            await process.stop(current, running)
        else:
            await process.sweep(current)
        self._stir()

    async def transcript(self, session: str, limit: int) -> str:
        file = await self._run_blocking(self._store.transcript, session)
        words = "" if file is None else await self._run_blocking(transcript.tail, file, limit)
        return self._redaction.text(words)[-limit:] if limit > 0 else ""

    # --- questions ------------------------------------------------------------------------------------------------

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        return await self._run_blocking(self._requests, [*sessions])

    def _requests(self, sessions: list[str]) -> tuple[Request, ...]:
        current = [attempt for session in sessions if (attempt := self._store.current(session)) is not None]
        open_now = [asked for one in current for asked in permission_requests.open_in(one, self._redaction)]
        alive = {one.session for one in current if open_now and process.runs(one)}
        return tuple(one for one in open_now if one.session in alive)

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        current = await self._run_blocking(self._store.current, session)
        if current is None or not await self._run_blocking(process.runs, current):
            return False
        return await self._run_blocking(permission_requests.answer, current, request, kind, verdict, answers, message)

    # --- signs ----------------------------------------------------------------------------------------------------

    async def signs(self) -> AsyncIterator[Sign]:
        while True:
            while not self._is_open():
                await self._pause(IDLE)
            self._watch = ActivityMonitor(anyio.current_time())
            tools_at = anyio.current_time()
            try:
                yield Sign(None)
                while self._is_open():
                    tools = anyio.current_time() >= tools_at
                    tools_at = anyio.current_time() + TOOLS if tools else tools_at
                    activities = list[SessionActivity]()
                    with suppress(RunnerUnavailable):  # the gate was closed meanwhile, or the disk is in trouble
                        activities = await self._run_blocking(self._look, tools)
                    for sign in self._watch.take(activities):
                        yield sign
                    for one in activities:
                        await self._settle(one)
                    if any(one.running for one in activities):
                        await anyio.sleep(LOOK)
                    else:
                        await self._pause(IDLE)
            finally:
                self._watch.since = None

    def _is_open(self) -> bool:
        return self._gate is not None

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._stirs.wait()

    def _look(self, tools: bool) -> list[SessionActivity]:
        activities = list[SessionActivity]()
        for session in self._store.live():
            attempt = self._store.current(session)
            if attempt is None:
                continue
            leader = process.find_process(attempt)
            running = process.lives(leader)
            size = self._readings.size(session)
            with suppress(OSError):
                size += (attempt.folder / "stdout").stat().st_size
            people = self._readings.people(session, attempt)
            worked = processor_time(leader.pid, itself=False) if tools and running and leader is not None else None
            activities.append(
                SessionActivity(session, running, size, tuple(permission_requests.names(attempt)), people, worked)
            )
        return activities

    async def _settle(self, activity: SessionActivity) -> None:
        """Where a turn has ended, end what it left behind, and look at it no more."""
        if activity.running:
            return
        with suppress(RunnerUnavailable):
            attempt = await self._run_blocking(self._dead, activity.session)
            if attempt is not None:
                await process.sweep(attempt)
                await self._run_blocking(self._forget, attempt)

    def _forget(self, attempt: Attempt) -> None:
        with self._store.lock(attempt.session):
            if self._store.current(attempt.session) == attempt:
                self._store.set_current(attempt.session, None)
