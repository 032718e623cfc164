"""`AcpRunner`: the port `Runner` over agents that speak ACP, each session's held by a keeper (`keeper.py`)."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar, cast

import anyio
import anyio.to_thread

from ashep.adapters.runners.acp import activity, capabilities, sandbox
from ashep.adapters.runners.acp.client import LONGEST_START
from ashep.adapters.runners.acp.mailbox import (
    APART,
    KEPT,
    LIMITS,
    MARK,
    Mailbox,
    keeper_age,
    keeper_lives,
    name_process,
)
from ashep.adapters.runners.foreign_json import JsonObject
from ashep.adapters.runners.quotas import read_quota
from ashep.adapters.sandboxes.bubblewrap import View
from ashep.adapters.sandboxes.exec import start
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.sandboxes.session_sandboxes import GONE, SessionSandboxes
from ashep.adapters.system import process_table, programs
from ashep.core.facts.requests import Answers, Request, RequestKind, Verdict
from ashep.core.facts.runs import Life, Model, Refusal
from ashep.core.text import read_json
from ashep.errors import (
    AshepError,
    ProgramMissing,
    ProgramTimedOut,
    RunnerRefused,
    RunnerUnauthorized,
    RunnerUnavailable,
    ServerStarting,
)
from ashep.journal import durable_io
from ashep.ports.runner import STOPPED, Catalog, Prompt, SessionRequest, Sign, Turn, bound_amount
from ashep.ports.transcripts import TranscriptStep, format_steps, make_tool_step, redact_steps
from ashep.redaction import Redaction

Access = Literal["read", "write"]
T = TypeVar("T")

_HOST = (sys.executable, "-m", "ashep.adapters.runners.acp.session_host")
_NO_FILES = subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL
_NAMESPACE = uuid.UUID("7a0f2c52-3c0b-5d61-9a55-0c3f2d1e8b47")
_SESSION = re.compile(r"acp_[0-9a-f]{32}")
_NAME = re.compile(r"[\w.-]{1,150}", re.ASCII)
_ABORT = 12.0  # seconds until a turn must have stopped: its agent's 3, and those until it is dead
_POLL = 0.05
_KEEPERS = 3.0  # seconds for a keeper to end by itself
_CUT = re.compile(r"exceeded the \d+ output token maximum")  # how the adapter of Claude Code says it
_WORDS: tuple[tuple[Literal["limited", "down", "unauthorized"], re.Pattern[str]], ...] = (
    (
        "limited",
        re.compile(
            r"rate.?limit|too many requests|\b429\b|quota|\b402\b|usage.?limit|hit your [^\n]{0,60}limit|limit reached"
            r"|out of [^\n]{0,30}(?:usage|credits)",
            re.IGNORECASE,
        ),
    ),
    ("unauthorized", re.compile(r"AuthRequired|unauthori[sz]ed|authenticat|\b401\b|\b403\b|api.?key", re.IGNORECASE)),
    ("down", re.compile(r"overloaded|\b5(?:00|02|03|04|29)\b|service unavailable", re.IGNORECASE)),
)


class AcpRunner:
    """Agents of one kind, each in a process of its own, which end no turn with us.

    `guarantee`: whether a turn that died with its agent is found again by the agent's history, or only asked again.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        folder: Path,
        environ: Mapping[str, str],
        name: str,
        mode: Mapping[Access, str] | None = None,
        models: Sequence[Model] = (),
        redaction: Redaction | None = None,
        idle: timedelta = timedelta(minutes=5),
        quarters: SessionSandboxes | None = None,
        start_timeout: timedelta = timedelta(minutes=2),
    ) -> None:
        """`command` starts the agent, with the whole environment `environ`; `folder` is the runner's own; `mode`: what
        to set it to for an access, where the names that are known do not do; `models`: those that it has, its default
        first, where it does not say so itself; `idle`: after which an agent with nothing to do is ended; `quarters`:
        keep sessions apart, in sandboxes; None: agents run as we do; `start_timeout`: until one that starts must work.
        """
        self._command, self._environ, self._name = [*command], dict(environ), name
        self._directory, self._folder = directory, folder
        self._modes, self._models, self._idle = dict(mode or {}), tuple(models), idle
        self._redaction, self._quarters = redaction or Redaction(), quarters
        self._start = self._patience = start_timeout.total_seconds()
        self._about: JsonObject | None = None
        self._started = False
        self._starting = anyio.Lock()
        self._watch = activity.ActivityMonitor(folder)

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """See that the agent is there and answers (see the port); it is asked what it can do once."""
        async with self._starting:
            await _blocking(self._make)
            if self._about is None:
                self._about = await self._probe()
            self._started = True

    def attach(self) -> None:
        """Read what its agents left, and start none: not of the port, but for who only looks."""
        self._started, self._about = True, self._about or {}

    def _make(self) -> None:
        if importlib.util.find_spec("acp") is None:
            raise RunnerUnavailable(f"{self._name} needs what an extra brings: pip install 'ashep[acp]'")
        self._program()
        for path in (self._folder, self._folder / "sessions", self._folder / "alive"):
            durable_io.make_folder(path)

    def _program(self) -> list[object]:
        """What tells the agent's program from another, or another version of it."""
        program = shutil.which(self._command[0], path=self._environ.get("PATH"))
        if program is None:
            raise RunnerUnavailable(f"{self._name}: there is no program {self._command[0]}")
        real = Path(program).resolve()
        return [*self._command, str(real), real.stat().st_mtime_ns, real.stat().st_size]

    async def _probe(self) -> JsonObject:
        """Ask the agent; what another life of ours was told of the same program stands in a file."""
        mailbox = Mailbox(self._folder)
        program = await _blocking(self._program)
        earlier = await _blocking(lambda: mailbox.read("about.json"))
        if earlier is not None and earlier.get("of") == program:
            return earlier
        argv = [*_HOST, "--probe", str(self._directory), *self._command]
        try:
            done = await programs.run(
                argv, cwd=self._folder, env=self._environ, timeout=self._patience, patience=_KEEPERS
            )
            answer = cast("JsonObject", read_json(done.stdout))
        except ProgramTimedOut:
            waited, self._patience = self._patience, min(self._patience * 2, LONGEST_START)
            reason = f"{self._name} did not say within {waited:g} s what it can do"
            if waited >= LONGEST_START:
                raise RunnerUnavailable(reason) from None
            raise ServerStarting(f"{reason}; waiting up to {self._patience:g} s") from None
        except (ProgramMissing, AshepError, ValueError) as error:
            raise RunnerUnavailable(f"{self._name} does not answer: {self._redact(str(error))}") from error
        if "error" in answer:
            kind = RunnerUnauthorized if answer.get("code") == -32000 else RunnerUnavailable
            raise kind(f"{self._name}: {self._redact(str(answer['error']))}")
        await _blocking(lambda: mailbox.write("about.json", answer | {"of": program}))
        return answer

    async def aclose(self) -> None:
        """Let go (see the port): keepers go on."""
        self._started = False

    async def stop_server(self) -> bool:
        """End the agents that have nothing to do, with their keepers (see the port)."""
        self._started = False
        ended = False
        for session in await _blocking(self._watch.alive):
            mailbox = await _blocking(lambda session=session: self._find_mailbox(session))
            if mailbox is not None and not await _blocking(lambda mailbox=mailbox: _is_busy(mailbox)):
                ended = await self._end_keeper(mailbox) or ended
        return ended

    async def _end_keeper(self, mailbox: Mailbox) -> bool:
        keeper = await _blocking(mailbox.keeper)
        lived = await _blocking(lambda: keeper_lives(keeper))
        if lived:
            pid, started = map(int, keeper.split("."))
            with suppress(ProcessLookupError):
                os.kill(pid, 15)
            with anyio.move_on_after(_KEEPERS):
                while await _blocking(lambda: keeper_lives(keeper)):
                    await anyio.sleep(_POLL)
            await process_table.kill(pid, started, RunnerUnavailable)
        await process_table.end(process_table.ProcessMark(MARK, str(mailbox.path)), RunnerUnavailable)
        return lived

    # --- what there is --------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Literal["once", "at least once"]:
        """Whether a turn is never begun twice: known once it was started."""
        return "once" if self._about is not None and self._about.get("loads") is True else "at least once"

    async def catalog(self) -> Catalog:
        """Say what the agent offers (see the port): its modes are the agents that can be chosen."""
        about = self._require_started()
        modes = (*cast("list[str]", about.get("modes", [])), *self._modes.values())
        given = tuple(capabilities.model_named(one, self._name) for one in cast("list[str]", about.get("models", [])))
        current = str(about.get("model") or "")
        default = next(iter(self._models), capabilities.model_named(current, self._name) if current else None)
        version = str(about.get("version") or "0")
        agents, models = tuple(dict.fromkeys(modes)), self._models or given
        return Catalog(version, f"{self._name}-{version}", agents, models, default, exhaustive=False)

    # --- sessions -------------------------------------------------------------------------------------------------

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session for a run (see the port): one of the same key and folder is the same."""
        session, directory = await self._run_blocking(lambda: self._ident(request.key, request.directory))
        mailbox = Mailbox(self._folder / "sessions" / session)
        things = await self._quarters.folder(request, mailbox.path / APART) if self._quarters is not None else None
        options = {
            "key": request.key, "title": request.title, "access": request.access, "directory": directory,
            "permissions": [one.model_dump(mode="json") for one in request.permissions], "command": self._command,
            "modes": self._modes, "idle": self._idle.total_seconds(), "agent": request.agent, "start": self._start,
            "model": [request.model.provider, request.model.model] if request.model else None,
            "things": str(things) if things is not None else None, "sandbox": request.sandbox,
        }  # fmt: skip

        def make() -> None:
            mailbox.make()
            if mailbox.read("session.json") is None:
                mailbox.write("session.json", options)
            mailbox.stand()

        await _blocking(make)
        return session

    def _ident(self, key: str, directory: str | None) -> tuple[str, str]:
        place = os.path.realpath(directory or self._directory)
        return f"acp_{uuid.uuid5(_NAMESPACE, json.dumps([self._name, place, key])).hex}", place

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        session, _ = await self._run_blocking(lambda: self._ident(key, directory))
        return session if await self.has_session(session) else None

    async def has_session(self, session: str) -> bool:
        mailbox = await self._run_blocking(lambda: self._find_mailbox(session))
        return mailbox is not None and await _blocking(mailbox.stands)

    def _find_mailbox(self, session: str) -> Mailbox | None:
        mailbox = Mailbox(self._folder / "sessions" / session) if _SESSION.fullmatch(session) else None
        return mailbox if mailbox is not None and (mailbox.path / "session.json").exists() else None

    # --- turns ----------------------------------------------------------------------------------------------------

    async def asked(self, session: str) -> tuple[str, ...]:
        """The ids of a session's user messages (see the port), as far as they are known."""

        def look() -> tuple[str, ...]:
            mailbox = self._find_mailbox(session)
            if mailbox is None:
                return ()
            turns = {name.removesuffix(".json"): mailbox.read(f"turns/{name}") or {} for name in mailbox.names("turns")}
            people = [str(one) for turn in turns.values() for one in turn.get("people", [])]
            return (*turns, *people)

        return await self._run_blocking(look)

    async def send(self, prompt: Prompt) -> str:
        """Deliver a prompt (see the port): one that was begun is not begun again, unless its keeper is dead."""
        if not _NAME.fullmatch(prompt.message_id):
            raise RunnerRefused(f"{prompt.message_id[:200]!r} can be no message's id")
        mailbox = await self._run_blocking(lambda: self._find_mailbox(prompt.session))
        if mailbox is None:
            raise RunnerRefused(f"there is no session {prompt.session[:200]}")
        options, profile = await _blocking(lambda: mailbox.read("session.json")) or {}, None
        if options.get("things"):
            if self._quarters is None:
                raise RunnerUnavailable(GONE)
            things, directory = Path(options["things"]), options["directory"]
            profile = await self._quarters.profile(things, directory, options.get("sandbox"))
        return await _blocking(lambda: self._send(mailbox, prompt, profile))

    def _send(self, mailbox: Mailbox, prompt: Prompt, profile: SandboxProfile | None) -> str:
        message = prompt.message_id
        with mailbox.door():
            turn, keeper = mailbox.read(f"turns/{message}.json"), mailbox.keeper()
            if turn is not None and (
                turn.get("state") in ("ended", "unstarted") or keeper_lives(str(turn.get("keeper")))
            ):
                return str(turn.get("keeper"))
            options = mailbox.read("session.json") or {}
            model = [prompt.model.provider, prompt.model.model] if prompt.model else options.get("model")
            order = {"text": prompt.text, "agent": prompt.agent or options.get("agent"), "model": model}
            earlier = mailbox.read(f"in/prompt.{message}.json")
            if (things := mailbox.things()) is not None and profile is not None:
                sandbox.note(mailbox, things, profile)
            if earlier is None:
                mailbox.write(f"in/prompt.{message}.json", order)
            return keeper if keeper_lives(keeper) else self._start_keeper(prompt.session, mailbox, profile)

    def _start_keeper(self, session: str, mailbox: Mailbox, profile: SandboxProfile | None) -> str:
        variables = self._environ if profile is None else profile.make_environment(self._environ)
        environ = {name: value for name, value in variables.items() if name != MARK} | {KEPT: str(mailbox.path)}
        try:
            process, _ = start(None, View(mailbox.path, ()), [*_HOST, str(mailbox.path)], environ, _NO_FILES)
        except OSError as error:
            raise RunnerUnavailable(f"{self._name}: no keeper can be started: {error.strerror}") from error
        keeper = name_process(process.pid)
        mailbox.write("keeper.json", {"keeper": keeper})
        self._watch.watch_session(session)
        return keeper

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        turn = await self._run_blocking(lambda: self._read_turn(session, message_id, ours))
        mailbox = await _blocking(lambda: self._find_mailbox(session))
        limits = await _blocking(lambda: mailbox.read(LIMITS)) if mailbox is not None else None
        quota = read_quota(limits, turn.provider or self._name, "") if limits is not None else None
        return replace(turn, quota=quota)

    def _read_turn(self, session: str, message: str, ours: frozenset[str]) -> Turn:
        mailbox = self._find_mailbox(session)
        if mailbox is None or not _NAME.fullmatch(message):
            return Turn("missing", "")
        turn = mailbox.read(f"turns/{message}.json")
        if turn is not None and turn.get("state") not in ("ended", "unstarted"):
            if keeper_lives(keeper := str(turn.get("keeper"))):
                is_sent, starting = turn.get("state") == "sent", not turn.get("ready")
                return Turn("running", keeper) if is_sent else Turn("stored", keeper, starting=starting)
            turn = mailbox.read(f"turns/{message}.json") or turn  # it may have ended meanwhile, and its keeper with it
        if turn is not None and turn.get("state") == "ended":
            return self._finished(turn, ours)
        if turn is not None and turn.get("state") == "unstarted":
            return Turn("stored", str(turn.get("keeper")), not_started=self._redact(str(turn.get("error"))))
        keeper = mailbox.keeper()
        if (mailbox.inbox / f"prompt.{message}.json").exists():
            young = keeper_age(keeper) < self._start  # it may not have come to its inbox yet
            return Turn("stored", keeper, starting=young) if keeper_lives(keeper) else Turn("missing", _dead(keeper))
        if turn is None:  # or it was taken in this moment
            turn = mailbox.read(f"turns/{message}.json")
            return Turn("missing", "") if turn is None else Turn("stored", str(turn.get("keeper")))
        people = self._people(turn, ours)
        return Turn(
            "incomplete" if turn.get("state") == "sent" else "stored", _dead(str(turn.get("keeper"))), people=people
        )

    def _finished(self, turn: JsonObject, ours: frozenset[str]) -> Turn:
        error = self._redact(str(turn["error"])) if turn.get("error") else None
        cut = turn.get("cut") is True or (error is not None and _CUT.search(error) is not None)
        error = None if cut else error
        model = (
            capabilities.model_named(str(turn["model"]), self._name)
            if turn.get("model")
            else next(iter(self._models), None)
        )
        return Turn(
            "finished",
            str(turn.get("keeper")),
            text=self._redact(str(turn.get("text") or "")),
            error=error,
            provider=model.provider if model else None,
            model=model.model if model else None,
            tokens=round(bound_amount(turn.get("tokens"))),
            cost=float(bound_amount(turn.get("cost"))),
            people=self._people(turn, ours),
            refused=_refusal(error, str(turn.get("refused") or "")),
            cut=cut,
            agent_message_at=_time_of(turn.get("heard")),
        )

    def _people(self, turn: JsonObject, ours: frozenset[str]) -> tuple[str, ...]:
        return tuple(str(one) for one in turn.get("people", []) if one not in ours)

    async def life(self, session: str) -> Life:
        mailbox, now = await self._run_blocking(lambda: self._find_mailbox(session)), anyio.current_time()
        if mailbox is None:
            return Life(timedelta())
        return await _blocking(lambda: self._watch.life(session, mailbox, now))

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        def look() -> frozenset[str]:
            mailboxes = {session: self._find_mailbox(session) for session in sessions}
            return frozenset(one for one, mailbox in mailboxes.items() if mailbox is not None and _is_busy(mailbox))

        return await self._run_blocking(look)

    async def abort(self, session: str) -> None:
        mailbox = await self._run_blocking(lambda: self._find_mailbox(session))
        if mailbox is None:
            return
        open_ = await _blocking(lambda: _cancel(mailbox))
        deadline = anyio.current_time() + _ABORT
        while anyio.current_time() < deadline:
            if not await _blocking(lambda: _is_busy(mailbox)):
                break
            await anyio.sleep(_POLL)
        else:
            await self._end_keeper(mailbox)
            await _blocking(lambda: [_close(mailbox, one) for one in open_])
        # what a dead one left might still work, and in a sandbox what was started there, whatever mark it has
        if await _blocking(lambda: mailbox.things() is not None or not keeper_lives(mailbox.keeper())):
            await self._end_keeper(mailbox)

    async def transcript(self, session: str, limit: int) -> str:
        self._require_started()
        return format_steps(await self.read_steps(session, limit * 8 + 65536), limit) if limit > 0 else ""

    async def read_steps(self, session: str, size: int) -> tuple[TranscriptStep, ...]:
        """Read what was said and done in a session, from about so many bytes of its record."""
        mailbox = await _blocking(lambda: self._find_mailbox(session))
        entries = [] if mailbox is None else await _blocking(lambda: mailbox.tail(size))
        return redact_steps(_make_steps(entries), self._redact)

    # --- questions ------------------------------------------------------------------------------------------------

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        def look() -> tuple[Request, ...]:
            open_requests = list[Request]()
            for session in sessions:
                mailbox = self._find_mailbox(session)
                for name in mailbox.names("questions") if mailbox is not None else ():
                    question = mailbox.read(f"questions/{name}") if mailbox is not None else None
                    if question is not None and keeper_lives(str(question.get("keeper"))):
                        ident, tool = name.removesuffix(".json"), str(question.get("tool", ""))
                        patterns = tuple(self._redact(str(one)) for one in question.get("patterns", []))
                        detail = self._redact(str(question.get("detail", "")))
                        open_requests.append(Request(ident, session, "permission", tool, patterns, detail))
            return tuple(open_requests)

        return await self._run_blocking(look)

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        """Answer a request (see the port); why something was denied is told to the agent where that stops at it."""

        def answer() -> bool:
            mailbox = self._find_mailbox(session)
            if mailbox is None or not _NAME.fullmatch(request):
                return False
            question = mailbox.read(f"questions/{request}.json")
            if question is None or not keeper_lives(str(question.get("keeper"))):
                return False
            reply = {"verdict": "allow" if verdict == "allow" else "deny", "message": message}
            return mailbox.first(f"in/answer.{request}.json", reply)

        return await self._run_blocking(answer)

    # --- signs ----------------------------------------------------------------------------------------------------

    def signs(self) -> AsyncIterator[Sign]:
        return self._watch.listen()

    def _require_started(self) -> JsonObject:
        if not self._started or self._about is None:
            raise RunnerUnavailable(f"{self._name} was not started")
        return self._about

    async def _run_blocking(self, call: Callable[[], T]) -> T:
        self._require_started()
        return await _blocking(call)

    def _redact(self, text: str) -> str:
        return self._redaction.text(text)


async def _blocking(call: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(call)
    except OSError as error:
        raise RunnerUnavailable(f"the folder of sessions cannot be used: {error}") from error


def _dead(keeper: str) -> str:
    return f"{keeper.removesuffix(' left')} ended" if keeper else ""


def _is_busy(mailbox: Mailbox) -> bool:
    at_work = (mailbox.path / "now").exists() or any(name.startswith("prompt.") for name in mailbox.names("in"))
    return at_work and keeper_lives(mailbox.keeper())


def _cancel(mailbox: Mailbox) -> list[str]:
    """Ask the keeper to stop what is open; gives what that is."""
    with mailbox.door():
        waiting = [
            name.removeprefix("prompt.").removesuffix(".json") for name in mailbox.names("in") if name[:7] == "prompt."
        ]
        for message in waiting:  # not begun, and not to begin
            _close(mailbox, message)
            mailbox.remove(f"in/prompt.{message}.json")
        current = mailbox.read("now")
        is_open = current is not None and "message" in current and keeper_lives(mailbox.keeper())
        open_ = [str(current["message"])] if current is not None and is_open else []
        for message in open_:
            mailbox.write(f"in/cancel.{message}", {})
    return [*waiting, *open_]


def _close(mailbox: Mailbox, message: str) -> None:
    turn = mailbox.read(f"turns/{message}.json") or {}
    if turn.get("state") != "ended":
        mailbox.write(f"turns/{message}.json", turn | {"state": "ended", "error": STOPPED, "keeper": mailbox.keeper()})


def _make_steps(entries: Iterable[JsonObject]) -> list[TranscriptStep]:
    """Make steps of a record: chunks of an agent's that follow one another are one; of a call its last state counts."""
    steps, calls, speaker = list[TranscriptStep](), dict[str, int](), ""
    for entry in entries:
        kind, words = str(entry.get("k")), str(entry.get("x", ""))
        if kind == "tool":
            place = calls.setdefault(str(entry.get("id")), len(steps))
            failed = entry.get("status") == "failed"
            steps[place : place + 1] = [make_tool_step(str(entry.get("name", "")), "", "", None, failed=failed)]
        elif kind == "agent" and speaker == "agent":
            steps[-1] = replace(steps[-1], text=steps[-1].text + words)
        elif kind in ("user", "agent"):
            steps.append(TranscriptStep("user" if kind == "user" else "assistant", words))
        elif kind == "cost":
            steps.append(make_tool_step("cost", "", words, None, failed=False))
        if kind in ("user", "agent", "tool", "cost"):
            speaker = kind
    return steps


def _time_of(text: object) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    return None


def _refusal(error: str | None, word: str) -> Refusal | None:
    if error is None or error.startswith("MessageAborted"):
        return None
    reason = error.partition(": ")[2] or error
    if word == "unauthorized":
        return Refusal("unauthorized", reason)
    return next((Refusal(kind, reason) for kind, words in _WORDS if words.search(error)), None)
