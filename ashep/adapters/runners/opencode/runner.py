"""`OpencodeRunner`: the port `Runner` over OpenCode's HTTP interface (facts/opencode.md)."""

import base64
import os
import re
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import anyio.to_thread
import httpx

from ashep.adapters.runners.opencode import (
    activity,
    endpoints,
    provider_errors,
    requests,
    rule_intersection,
    rulesets,
    schema,
    session_directories,
    turns,
)
from ashep.adapters.runners.opencode.client import CALL, Client, ConnectionRefused, probe, was_refused
from ashep.adapters.system import programs
from ashep.core.facts.requests import Answers, Request, RequestKind, Verdict
from ashep.core.facts.runs import Life, Model
from ashep.core.policy.settings import OpencodeSettings
from ashep.errors import RunnerError, RunnerMisconfigured, RunnerUnavailable
from ashep.ports.runner import Catalog, Prompt, SessionRequest, Sign, Turn
from ashep.ports.transcripts import TranscriptStep, format_steps
from ashep.redaction import Redaction

_PAGE = 100
_ABORT = 30.0  # seconds until an aborted session must have stopped
_WRITING = 2.0  # seconds that a message without parts, which a killed server may have left as well, may get some
_QUIET = 1.0, 15.0  # seconds without a sign after an abort of a turn that had not begun (fact 26): least, most
_TAIL = 20  # messages among which prompts are looked for that wait for their turn
_SLOWER = 10  # so many times as long as its slowest answer: what is slow to answer is slow to begin a turn
_BACKOFF = (0.2, 5.0)
_NOT_THERE = frozenset({400, 404})  # 400: not an id of theirs
_OURS = re.compile(r"msg_[0-9a-f]{26}")  # of the server's own ids the last 14 characters are of 62 kinds


class OpencodeRunner:
    """Agents that run in sessions of an OpenCode server.

    Nothing is asked of a server before `start()`. After a `RunnerUnavailable`, `start()` finds a managed server again
    or starts another; calling it while all is well costs one probe.
    """

    def __init__(
        self,
        endpoint: endpoints.Endpoint,
        *,
        directory: Path,
        redaction: Redaction | None = None,
        judges: bool = False,
    ) -> None:
        """`judges`: only who judges is there: none fetches pages but by a rule of the user's, and each has a folder of
        its own.
        """
        self.endpoint, self._redaction, self._judges = endpoint, redaction or Redaction(), judges
        self._directory = directory
        self._client: Client | None = None
        self._stale: list[Client] = []
        self._starting = anyio.Lock()
        self._ours: dict[str, str | None] = {}
        self._narrow = rule_intersection.Narrow(self._call)
        self._places = session_directories.SessionDirectories(lambda path: self._call("GET", path, accept=_NOT_THERE))
        self._watch = activity.ActivityMonitor()
        self._told = requests.ReportedRequests(self._redaction)
        self._misread: tuple[str, int] | None = None
        """The file of its configuration that the server refused last, and when that was changed."""

    @classmethod
    def from_settings(
        cls,
        settings: OpencodeSettings,
        *,
        directory: Path,
        state: Path,
        environ: Mapping[str, str],
        redaction: Redaction | None = None,
        secret: Collection[str] = (),
    ) -> "OpencodeRunner":
        """Make the runner that config.yaml describes; `state` is the folder `.agent-shepherd/state`.

        `secret`: variables of the environment that a server of ours never gets.
        """
        endpoint = endpoints.endpoint_of(settings, directory, state, environ, secret)
        return cls(endpoint, directory=directory, redaction=redaction)

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        async with self._starting:
            address = await self.endpoint.reach()
            if self._client is None or self._client.address != address:
                await self.aclose()
                self._told.forget()
                self._redaction.add(address.password)  # its tools inherit it, and may print it
                directory = await anyio.to_thread.run_sync(os.path.realpath, self._directory)
                self._client = Client(address, directory, redaction=self._redaction)

    async def attach(self) -> None:
        """Use the server that runs, and start none: not of the port, but for `ashep audit`."""
        address = await self.endpoint.living()
        self._redaction.add(address.password)
        directory = await anyio.to_thread.run_sync(os.path.realpath, self._directory)
        self._client = Client(address, directory, redaction=self._redaction)

    def link(self, session: str, folder: Path) -> str:
        """Give the address at which a browser shows a session, without a password: not of the port."""
        at = urlsplit(self._connected().address.url)
        segment = base64.urlsafe_b64encode(os.fsencode(folder)).decode().rstrip("=")
        return f"{at.scheme}://{at.netloc.rpartition('@')[2]}/{segment}/session/{quote(session, safe='')}"

    async def aclose(self) -> None:
        old = [*self._stale, self._client]
        self._stale, self._client = [], None
        for client in old:
            if client is not None:
                await client.aclose()

    async def stop_server(self) -> bool:
        await self.aclose()
        return await self.endpoint.stop()

    # --- what there is --------------------------------------------------------------------------------------------

    async def catalog(self) -> Catalog:
        client = self._connected()
        version = await probe(client.address.url, client.address.password, CALL)
        try:
            listed = schema.parse(schema.AGENTS, await self._get("/agent", patient=True))
        except RunnerMisconfigured as error:
            # the server reads a file once in its life (facts/opencode.md): where it was edited since, that ends
            file = Path(error.file)
            at = await anyio.to_thread.run_sync(lambda: file.stat().st_mtime_ns if file.exists() else 0)
            before, self._misread = self._misread, (error.file, at)
            if before is not None and before[0] == error.file and before[1] != at:
                self._misread = None
                await self.stop_server()
            if self._judges and "/base/" in error.file:  # a copy of ours
                where = f"{file.name} of the base branch"
                raise RunnerMisconfigured(where, f"{error.message} (commit what mends it)") from error
            raise
        providers = schema.parse(schema.PROVIDERS, await self._get("/config/providers", patient=True)).providers
        configured = schema.parse(schema.CONFIG, await self._get("/config", patient=True)).model
        provider, _, model = (configured or "").partition("/")
        default = Model(provider, model) if model else None
        models = tuple(Model(entry.id, name) for entry in providers for name in entry.models)
        names, memory = tuple(agent.name for agent in listed if not agent.hidden), await self.endpoint.memory()
        instance, tried = client.address.instance, programs.OPENCODE_VERSION
        return Catalog(version, instance, names, models, default, memory, tried)

    async def agents(self) -> tuple[schema.ListedAgent, ...]:
        """List the server's agents in full, hidden ones too: not of the port, but for `ashep sync-agents`."""
        return schema.parse(schema.LISTED_AGENTS, await self._get("/agent", patient=True))

    # --- sessions -------------------------------------------------------------------------------------------------

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session for a run (see the port); with a title, else a model call names it (fact 15)."""
        wanted = rulesets.ruleset(request.access, request.permissions, web=not self._judges)
        body = {
            "title": request.title,
            "metadata": {"ashep": request.key, rule_intersection.AGENT: request.agent or ""},
            "permission": await self._narrow.rules(wanted, request.agent, request.directory),
        }
        answer = await self._call("POST", "/session", json=body, directory=request.directory)
        session = schema.parse(schema.SESSION, answer.content)
        self._ours[session.id] = session.id
        self._places.keep(session.id, request.directory)
        self._narrow.opened(session.id, request.agent)
        return session.id

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        """Find the session that carries a key (see the port; fact 12)."""
        params: dict[str, str | int] = {"roots": "true", "limit": 100_000}
        if directory is None and self._judges:
            params["scope"] = "project"
        answer = await self._call("GET", "/session", params=params, directory=directory)
        found = [entry for entry in schema.parse(schema.SESSIONS, answer.content) if entry.metadata.get("ashep") == key]
        if not found:
            return None
        oldest = min(found, key=lambda entry: (entry.time.created or 0, entry.id))
        self._ours[oldest.id] = oldest.id
        self._places.keep(oldest.id, oldest.directory if "scope" in params else directory)
        return oldest.id

    async def has_session(self, session: str) -> bool:
        if not session.startswith("ses"):
            return False  # the server answers 500 to what cannot be an id
        return (await self._call("GET", f"/session/{session}", accept=_NOT_THERE)).status_code == 200

    # --- turns ----------------------------------------------------------------------------------------------------

    async def asked(self, session: str) -> tuple[str, ...]:
        return tuple(
            message.info.id for message in await self._messages(session, until=None) if message.info.role == "user"
        )

    async def send(self, prompt: Prompt) -> str:
        """Deliver a prompt (see the port); message and part ids together make it idempotent (fact 2)."""
        body: dict[str, object] = {
            "messageID": prompt.message_id,
            "parts": [{"id": prompt.part_id, "type": "text", "text": prompt.text}],
        }
        if prompt.agent is not None:
            body["agent"] = prompt.agent
        if prompt.model is not None:
            body["model"] = {"providerID": prompt.model.provider, "modelID": prompt.model.model}
        await self._narrow.hold(prompt.session, prompt.agent)
        self._ours.setdefault(prompt.session, prompt.session)
        self._watch.sent(prompt.session, prompt.message_id)
        instance = self._connected().address.instance  # before the call: another life of it would refuse the connection
        await self._call("POST", f"/session/{prompt.session}/prompt_async", json=body)
        return instance

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Messages are read before the status, so that a turn which ends in between may look as if it had died: that
        verdict is only given when a second read confirms it. Nor has one ended behind which somebody is about to write,
        for as long as that may take.
        """
        turn, unwritten = await self._read_turn(session, message_id, ours)
        until = anyio.current_time() + _WRITING
        while turn.state == "finished" and unwritten and not turn.people and anyio.current_time() < until:
            await anyio.sleep(0.1)
            turn, unwritten = await self._read_turn(session, message_id, ours)
        turn = (await self._read_turn(session, message_id, ours))[0] if turn.state == "incomplete" else turn
        if turn.state != "running" and (turn.state != "finished" or turn.error):
            await self.endpoint.ask_for_room()
        return turn

    async def _read_turn(self, session: str, message_id: str, ours: frozenset[str]) -> tuple[Turn, bool]:
        instance = self._connected().address.instance
        messages = await self._messages(session, until=message_id)
        status = (await self._statuses(await self._places.find_directory(session))).get(session, _IDLE)
        turn = turns.read_turn(messages, message_id, ours, status, instance)
        if turn.state in ("missing", "stored") and session in self._watch.errors:
            turn = replace(turn, error=self._redaction.text(self._watch.errors[session]))
        return turn, turns.is_being_written(messages, message_id, ours)

    async def life(self, session: str) -> Life:
        place = await self._places.find_directory(session)
        asked = partial(self._call, "GET", accept=_NOT_THERE, directory=place)
        return await activity.read(asked, self._watch, session)

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        found = [await self._statuses(place) for place in await self._places.find_directories(sessions)]
        return frozenset(
            session for session in sessions if any(session in listed and listed[session].busy for listed in found)
        )

    async def abort(self, session: str) -> None:
        """A turn that has only just been asked for is not busy yet and cannot be aborted (fact 26): where the newest
        message is an unanswered prompt, the session must stay quiet before it counts as stopped, the longer the slower
        the server answers. A prompt of ours is deleted then, so that it cannot begin later (fact 27).
        """
        path = f"/session/{session}/abort"
        deadline = anyio.current_time() + _ABORT
        asked = [one for kind in ("permission", "question") for one in self._told.list_open(kind)]
        quiet_since, slowest = None, 0.0
        while (began := anyio.current_time()) < deadline:
            if quiet_since is None:
                await self._call("POST", path, accept=_NOT_THERE)
            running = session in await self.busy((session,))
            now = anyio.current_time()
            slowest = max(slowest, now - began)
            quiet = min(max(_QUIET[0], slowest * _SLOWER), _QUIET[1])
            if running:
                quiet_since = None
            elif (quiet_since is not None and now - quiet_since >= quiet) or await self._answered(session):
                if await self._delete_unanswered(session):
                    return await requests.drop(self._post, self._root, session, asked)
                quiet_since = None
            elif quiet_since is None:
                quiet_since = now
            await anyio.sleep(0.1)
        raise RunnerUnavailable(f"session {session} still runs {_ABORT:g} s after an abort")

    async def _answered(self, session: str) -> bool:
        """Whether the newest message is an answer that has ended, so that nothing is about to begin."""
        messages, _ = await self._page(session, 1, None) or ((), None)
        return bool(messages) and messages[-1].info.role == "assistant" and messages[-1].is_ended

    async def _delete_unanswered(self, session: str) -> bool:
        """Delete our prompts that nothing answers yet; False: a turn has begun meanwhile."""
        messages, _ = await self._page(session, _TAIL, None) or ((), None)
        answered = {message.info.parentID for message in messages}
        for message in messages:
            is_prompt = message.info.role == "user" and _OURS.fullmatch(message.info.id) is not None
            if is_prompt and message.info.id not in answered:
                path = f"/session/{session}/message/{message.info.id}"
                if (await self._call("DELETE", path, accept=_NOT_THERE | {409})).status_code == 409:
                    return False
        return True

    async def transcript(self, session: str, limit: int) -> str:
        messages = await self._messages(session, until=None, enough=_PAGE)
        return format_steps([TranscriptStep(message.info.role, message.text) for message in messages], limit)

    async def read_steps(self, session: str) -> tuple[TranscriptStep, ...]:
        """Read what was said and done in a session, its end. Raises `RunnerError`."""
        messages = await self._messages(session, until=None, enough=_PAGE)
        return tuple(step for message in messages for step in message.steps)

    # --- questions ------------------------------------------------------------------------------------------------

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        return await requests.list_requests(self._get, self._root, self._places, self._told, sessions)

    async def reply(
        self, session: str, request: str, kind: RequestKind, verdict: Verdict, answers: Answers, message: str
    ) -> bool:
        body = requests.reply(kind, verdict, answers, message)
        return (await self._post(session, f"/{kind}/{request}/reply", body)).status_code < 300

    async def _post(self, session: str, path: str, body: object) -> httpx.Response:
        place = await self._places.find_directory(session)
        return await self._call("POST", path, json=body, accept=_NOT_THERE, directory=place)

    async def _root(self, session: str) -> str | None:
        """The session of ours that this one is, or that it is a subagent's below of."""
        if session not in self._ours:
            answer = await self._call("GET", f"/session/{session}", accept=_NOT_THERE)
            if answer.status_code != 200:
                return None
            found = schema.parse(schema.SESSION, answer.content)
            own = session if "ashep" in found.metadata else None
            self._ours[session] = own or (await self._root(found.parentID) if found.parentID else None)
        return self._ours[session]

    # --- signs ----------------------------------------------------------------------------------------------------

    async def signs(self) -> AsyncIterator[Sign]:
        pause = _BACKOFF[0]
        while True:
            try:
                async for sign in activity.listen(self._connected(), self._watch, self._told):
                    pause = _BACKOFF[0]
                    yield sign
            except httpx.ConnectError as error:
                if was_refused(error):
                    self._refused()
            except (httpx.HTTPError, RunnerError, RuntimeError):
                pass  # a closed client raises RuntimeError: the next one has another address
            await anyio.sleep(pause)
            pause = min(pause * 2, _BACKOFF[1])

    # --- reading --------------------------------------------------------------------------------------------------

    async def _statuses(self, directory: str | None) -> dict[str, turns.Status]:
        """What `GET /session/status` says of a folder's sessions that are not idle."""
        answer = await self._call("GET", "/session/status", directory=directory)
        now = provider_errors.server_time(answer.headers.get("date", ""))
        return {
            session: turns.Status(
                True,
                provider_errors.of_status(entry.message, entry.attempt, entry.next, now)
                if entry.type == "retry"
                else None,
            )
            for session, entry in schema.parse(schema.STATUSES, answer.content).items()
            if entry.type != "idle"
        }

    async def _messages(self, session: str, *, until: str | None, enough: int | None = None) -> list[turns.Message]:
        """Messages in order, from the newest back to `until`, or at least `enough` of them."""
        found: list[turns.Message] = []
        cursor: str | None = None
        limit = _PAGE
        while True:
            page = await self._page(session, limit, cursor)
            if page is None:
                if limit == 1:  # only the very oldest message is left, and it cannot be read
                    break
                limit = max(1, limit // 4)
                continue
            messages, cursor = page
            found.extend(messages)
            if cursor is None or any(message.info.id == until for message in messages):
                break
            if enough is not None and len(found) >= enough:
                break
        return turns.order(found)

    async def _page(
        self, session: str, limit: int, cursor: str | None
    ) -> tuple[tuple[turns.Message, ...], str | None] | None:
        """One page and the cursor of the next, older one; None where the server cannot show it.

        A page that reaches the session's beginning is refused while it holds a message that carried a `format` (fact
        1); a smaller one that does not reach it is shown.
        """
        params: dict[str, Any] = {"limit": limit}
        if cursor is not None:
            params["before"] = cursor
        answer = await self._call("GET", f"/session/{session}/message", params=params, accept=_NOT_THERE)
        if answer.status_code == 404:
            return (), None
        if answer.status_code != 200:
            return None
        return schema.parse(turns.MESSAGES, answer.content), answer.headers.get("x-next-cursor")

    def _connected(self) -> Client:
        if self._client is None:
            raise RunnerUnavailable("the agent server was not started")
        return self._client

    async def _get(self, path: str, directory: str | None = None, *, patient: bool = False) -> bytes:
        return (await self._call("GET", path, directory=directory, patient=patient)).content

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: dict[str, Any] | None = None,
        accept: frozenset[int] = frozenset(),
        directory: str | None = None,
        patient: bool = False,
    ) -> httpx.Response:
        if directory is not None:
            params = {**(params or {}), "directory": directory}
        how: dict[str, Any] = {"json": json, "params": params, "accept": accept, "patient": patient}
        try:
            return await self._connected().call(method, path, **how)
        except RunnerUnavailable as error:
            if isinstance(error, ConnectionRefused):
                self._refused()
            await self.endpoint.ask_for_room()
            raise

    def _refused(self) -> None:
        """End the use of an address at which nobody listens: what answers there next is another life of the server."""
        self.endpoint.refused()
        if self._client is not None:
            self._stale.append(self._client)
            self._client = None


_IDLE = turns.Status(busy=False)
