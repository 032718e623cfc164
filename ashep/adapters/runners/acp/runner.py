"""`AcpRunner`: the port `Runner` over agents that speak ACP, each session's held by a keeper (`keeper.py`)."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar, cast

import anyio
import anyio.to_thread

from ashep.adapters.runners.acp import activity, capabilities, mailbox, sandbox
from ashep.adapters.runners.acp.client import LONGEST_START
from ashep.adapters.runners.acp.mailbox import LIMITS, Mailbox
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
        found = shutil.which(self._command[0], path=self._environ.get("PATH"))
        if found is None:
            raise RunnerUnavailable(f"{self._name}: there is no program {self._command[0]}")
        real = Path(found).resolve()
        return [*self._command, str(real), real.stat().st_mtime_ns, real.stat().st_size]

    async def _probe(self) -> JsonObject:
        """Ask the agent; what another life of ours was told of the same program stands in a file."""
        own = Mailbox(self._folder)
        of = await _blocking(self._program)
        known = await _blocking(lambda: own.read("about.json"))
        if known is not None and known.get("of") == of:
            return known
        argv = [*_HOST, "--probe", str(self._directory), *self._command]
        try:
            done = await programs.run(
                argv, cwd=self._folder, env=self._environ, timeout=self._patience, patience=_KEEPERS
            )
            found = cast("JsonObject", read_json(done.stdout))
        except ProgramTimedOut:
            waited, self._patience = self._patience, min(self._patience * 2, LONGEST_START)
            why = f"{self._name} did not say within {waited:g} s what it can do"
            if waited >= LONGEST_START:
                raise RunnerUnavailable(why) from None
            raise ServerStarting(f"{why}; waiting up to {self._patience:g} s") from None
        except (ProgramMissing, AshepError, ValueError) as error:
            raise RunnerUnavailable(f"{self._name} does not answer: {self._redact(str(error))}") from error
        if "error" in found:
            kind = RunnerUnauthorized if found.get("code") == -32000 else RunnerUnavailable
            raise kind(f"{self._name}: {self._redact(str(found['error']))}")
        await _blocking(lambda: own.write("about.json", found | {"of": of}))
        return found

    async def aclose(self) -> None:
        """Let go (see the port): keepers go on."""
        self._started = False

    async def stop_server(self) -> bool:
        """End the agents that have nothing to do, with their keepers (see the port)."""
        self._started = False
        found = False
        for session in await _blocking(self._watch.alive):
            own = await _blocking(lambda session=session: self._find_mailbox(session))
            if own is not None and not await _blocking(lambda own=own: _is_busy(own)):
                found = await self._end_keeper(own) or found
        return found

    async def _end_keeper(self, own: Mailbox) -> bool:
        keeper = await _blocking(own.keeper)
        lived = await _blocking(lambda: mailbox.lives(keeper))
        if lived:
            pid, started = map(int, keeper.split("."))
            with suppress(ProcessLookupError):
                os.kill(pid, 15)
            with anyio.move_on_after(_KEEPERS):
                while await _blocking(lambda: mailbox.lives(keeper)):
                    await anyio.sleep(_POLL)
            await process_table.kill(pid, started, RunnerUnavailable)
        await process_table.end(process_table.ProcessMark(mailbox.MARK, str(own.path)), RunnerUnavailable)
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
        own = Mailbox(self._folder / "sessions" / session)
        things = await self._quarters.folder(request, own.path / mailbox.APART) if self._quarters is not None else None
        asked = {
            "key": request.key, "title": request.title, "access": request.access, "directory": directory,
            "permissions": [one.model_dump(mode="json") for one in request.permissions], "command": self._command,
            "modes": self._modes, "idle": self._idle.total_seconds(), "agent": request.agent, "start": self._start,
            "model": [request.model.provider, request.model.model] if request.model else None,
            "things": str(things) if things is not None else None, "sandbox": request.sandbox,
        }  # fmt: skip

        def make() -> None:
            own.make()
            if own.read("session.json") is None:
                own.write("session.json", asked)
            own.stand()

        await _blocking(make)
        return session

    def _ident(self, key: str, directory: str | None) -> tuple[str, str]:
        place = os.path.realpath(directory or self._directory)
        return f"acp_{uuid.uuid5(_NAMESPACE, json.dumps([self._name, place, key])).hex}", place

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        session, _ = await self._run_blocking(lambda: self._ident(key, directory))
        return session if await self.has_session(session) else None

    async def has_session(self, session: str) -> bool:
        own = await self._run_blocking(lambda: self._find_mailbox(session))
        return own is not None and await _blocking(own.stands)

    def _find_mailbox(self, session: str) -> Mailbox | None:
        own = Mailbox(self._folder / "sessions" / session) if _SESSION.fullmatch(session) else None
        return own if own is not None and (own.path / "session.json").exists() else None

    # --- turns ----------------------------------------------------------------------------------------------------

    async def asked(self, session: str) -> tuple[str, ...]:
        """The ids of a session's user messages (see the port), as far as they are known."""

        def look() -> tuple[str, ...]:
            own = self._find_mailbox(session)
            if own is None:
                return ()
            turns = {name.removesuffix(".json"): own.read(f"turns/{name}") or {} for name in own.names("turns")}
            people = [str(one) for turn in turns.values() for one in turn.get("people", [])]
            return (*turns, *people)

        return await self._run_blocking(look)

    async def send(self, prompt: Prompt) -> str:
        """Deliver a prompt (see the port): one that was begun is not begun again, unless its keeper is dead."""
        if not _NAME.fullmatch(prompt.message_id):
            raise RunnerRefused(f"{prompt.message_id[:200]!r} can be no message's id")
        own = await self._run_blocking(lambda: self._find_mailbox(prompt.session))
        if own is None:
            raise RunnerRefused(f"there is no session {prompt.session[:200]}")
        asked, profile = await _blocking(lambda: own.read("session.json")) or {}, None
        if asked.get("things"):
            if self._quarters is None:
                raise RunnerUnavailable(GONE)
            profile = await self._quarters.profile(Path(asked["things"]), asked["directory"], asked.get("sandbox"))
        return await _blocking(lambda: self._send(own, prompt, profile))

    def _send(self, own: Mailbox, prompt: Prompt, profile: SandboxProfile | None) -> str:
        message = prompt.message_id
        with own.door():
            turn, keeper = own.read(f"turns/{message}.json"), own.keeper()
            if turn is not None and (
                turn.get("state") in ("ended", "unstarted") or mailbox.lives(str(turn.get("keeper")))
            ):
                return str(turn.get("keeper"))
            asked = own.read("session.json") or {}
            model = [prompt.model.provider, prompt.model.model] if prompt.model else asked.get("model")
            what = {"text": prompt.text, "agent": prompt.agent or asked.get("agent"), "model": model}
            known = own.read(f"in/prompt.{message}.json")
            if (things := own.things()) is not None and profile is not None:
                sandbox.note(own, things, profile)
            if known is None:
                own.write(f"in/prompt.{message}.json", what)
            return keeper if mailbox.lives(keeper) else self._start_keeper(prompt.session, own, profile)

    def _start_keeper(self, session: str, own: Mailbox, profile: SandboxProfile | None) -> str:
        given = self._environ if profile is None else profile.make_environment(self._environ)
        environ = {name: value for name, value in given.items() if name != mailbox.MARK} | {mailbox.KEPT: str(own.path)}
        try:
            process, _ = start(None, View(own.path, ()), [*_HOST, str(own.path)], environ, _NO_FILES)
        except OSError as error:
            raise RunnerUnavailable(f"{self._name}: no keeper can be started: {error.strerror}") from error
        keeper = mailbox.name_process(process.pid)
        own.write("keeper.json", {"keeper": keeper})
        self._watch.watch_session(session)
        return keeper

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        turn = await self._run_blocking(lambda: self._read_turn(session, message_id, ours))
        limits = await _blocking(lambda: own.read(LIMITS) if (own := self._find_mailbox(session)) is not None else None)
        quota = read_quota(limits, turn.provider or self._name, "") if limits is not None else None
        return replace(turn, quota=quota)

    def _read_turn(self, session: str, message: str, ours: frozenset[str]) -> Turn:
        own = self._find_mailbox(session)
        if own is None or not _NAME.fullmatch(message):
            return Turn("missing", "")
        turn = own.read(f"turns/{message}.json")
        if turn is not None and turn.get("state") not in ("ended", "unstarted"):
            if mailbox.lives(keeper := str(turn.get("keeper"))):
                is_sent, starting = turn.get("state") == "sent", not turn.get("ready")
                return Turn("running", keeper) if is_sent else Turn("stored", keeper, starting=starting)
            turn = own.read(f"turns/{message}.json") or turn  # it may have ended meanwhile, and its keeper with it
        if turn is not None and turn.get("state") == "ended":
            return self._finished(turn, ours)
        if turn is not None and turn.get("state") == "unstarted":
            return Turn("stored", str(turn.get("keeper")), not_started=self._redact(str(turn.get("error"))))
        keeper = own.keeper()
        if (own.inbox / f"prompt.{message}.json").exists():
            young = mailbox.age(keeper) < self._start  # it may not have come to its inbox yet
            return Turn("stored", keeper, starting=young) if mailbox.lives(keeper) else Turn("missing", _dead(keeper))
        if turn is None:  # or it was taken in this moment
            turn = own.read(f"turns/{message}.json")
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
        own, now = await self._run_blocking(lambda: self._find_mailbox(session)), anyio.current_time()
        return Life(timedelta()) if own is None else await _blocking(lambda: self._watch.life(session, own, now))

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        def look() -> frozenset[str]:
            found = {session: self._find_mailbox(session) for session in sessions}
            return frozenset(one for one, own in found.items() if own is not None and _is_busy(own))

        return await self._run_blocking(look)

    async def abort(self, session: str) -> None:
        own = await self._run_blocking(lambda: self._find_mailbox(session))
        if own is None:
            return
        open_ = await _blocking(lambda: _cancel(own))
        deadline = anyio.current_time() + _ABORT
        while anyio.current_time() < deadline:
            if not await _blocking(lambda: _is_busy(own)):
                break
            await anyio.sleep(_POLL)
        else:
            await self._end_keeper(own)
            await _blocking(lambda: [_close(own, one) for one in open_])
        # what a dead one left might still work, and in a sandbox what was started there, whatever mark it has
        if await _blocking(lambda: own.things() is not None or not mailbox.lives(own.keeper())):
            await self._end_keeper(own)

    async def transcript(self, session: str, limit: int) -> str:
        self._require_started()
        if limit <= 0:
            return ""

        def look() -> str:
            own = self._find_mailbox(session)
            said = list[tuple[str, list[str]]]()
            for entry in own.tail(limit * 8 + 65536) if own is not None else ():
                who = {"user": "user", "agent": "assistant"}.get(str(entry.get("k")))
                if who is not None:
                    if not said or said[-1][0] != who or who == "user":
                        said.append((who, []))
                    said[-1][1].append(str(entry.get("x", "")))
            return "\n".join(f"{who}:\n{''.join(words)}\n" for who, words in said)

        return self._redact(await _blocking(look))[-limit:]

    # --- questions ------------------------------------------------------------------------------------------------

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        def look() -> tuple[Request, ...]:
            found = list[Request]()
            for session in sessions:
                own = self._find_mailbox(session)
                for name in own.names("questions") if own is not None else ():
                    asked = own.read(f"questions/{name}") if own is not None else None
                    if asked is not None and mailbox.lives(str(asked.get("keeper"))):
                        ident, tool = name.removesuffix(".json"), str(asked.get("tool", ""))
                        patterns = tuple(self._redact(str(one)) for one in asked.get("patterns", []))
                        detail = self._redact(str(asked.get("detail", "")))
                        found.append(Request(ident, session, "permission", tool, patterns, detail))
            return tuple(found)

        return await self._run_blocking(look)

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        """Answer a request (see the port); why something was denied is told to the agent where that stops at it."""

        def answer() -> bool:
            own = self._find_mailbox(session)
            asked = own.read(f"questions/{request}.json") if own is not None and _NAME.fullmatch(request) else None
            if own is None or asked is None or not mailbox.lives(str(asked.get("keeper"))):
                return False
            given = {"verdict": "allow" if verdict == "allow" else "deny", "message": message}
            return own.first(f"in/answer.{request}.json", given)

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


def _is_busy(own: Mailbox) -> bool:
    at_work = (own.path / "now").exists() or any(name.startswith("prompt.") for name in own.names("in"))
    return at_work and mailbox.lives(own.keeper())


def _cancel(own: Mailbox) -> list[str]:
    """Ask the keeper to stop what is open; gives what that is."""
    with own.door():
        waiting = [
            name.removeprefix("prompt.").removesuffix(".json") for name in own.names("in") if name[:7] == "prompt."
        ]
        for message in waiting:  # not begun, and not to begin
            _close(own, message)
            own.remove(f"in/prompt.{message}.json")
        now = own.read("now")
        open_ = [str(now["message"])] if now is not None and "message" in now and mailbox.lives(own.keeper()) else []
        for message in open_:
            own.write(f"in/cancel.{message}", {})
    return [*waiting, *open_]


def _close(own: Mailbox, message: str) -> None:
    turn = own.read(f"turns/{message}.json") or {}
    if turn.get("state") != "ended":
        own.write(f"turns/{message}.json", turn | {"state": "ended", "error": STOPPED, "keeper": own.keeper()})


def _time_of(text: object) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    return None


def _refusal(error: str | None, told: str) -> Refusal | None:
    if error is None or error.startswith("MessageAborted"):
        return None
    why = error.partition(": ")[2] or error
    if told == "unauthorized":
        return Refusal("unauthorized", why)
    return next((Refusal(kind, why) for kind, words in _WORDS if words.search(error)), None)
