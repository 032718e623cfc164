"""The OpenCode server as its HTTP interface shows it, with its lies; and the real adapter over it.

Every lie is a kind of `chaos.torture.chaos`, which cites the line of the facts that it comes from.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextvars import Context
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import parse_qsl

import anyio
import httpx

from ashep.adapters.runners.opencode.client import Address, ConnectionRefused, check
from ashep.adapters.runners.opencode.endpoints import AttachedServer
from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.core.facts.runs import Model
from ashep.errors import RunnerUnavailable, ServerNotStarted, ServerStarting
from ashep.ports.runner import Catalog, Sign
from chaos.torture.laws import IN_FLIGHT
from chaos.torture.sessions import Json, Session, Sessions

if TYPE_CHECKING:
    from chaos.torture.life import Life
    from chaos.torture.world import World

URL = "http://127.0.0.1:4096"
REQUEST = httpx.Request("GET", URL)
FRESH = 512 * 1024**2
YOUNG = 300.0
"""Milliseconds within which a kill can lose what has come (opencode.md 11: 12-24 ms, under load; ours is slower)."""


class Server:
    """One data folder's server, in one life after the other."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.sessions = Sessions(lambda: world.clock.now().timestamp() * 1000, self._play)
        self.sessions.tell = world.tell
        self.sessions.sign = self._sign
        self.sessions.broken = lambda law, how: world.laws.broken(law, how)
        self.listeners: list[SimulatedRunner] = []
        self.used = FRESH
        """Bytes of memory."""
        self.wedged = self.broken = False
        self.begins: float | None = None
        """When the server that was started will answer."""

    def _play(self, session: Session, message: Json, began: int) -> Any:
        key = str(session.metadata.get("ashep", ""))
        run = key.split(":", 1)[1] if ":" in key else "person/none.1.1"
        text = message["parts"][0].get("text", "") if message["parts"] else ""
        if message["info"].get("who") == "person":
            run = "person/none.1.1"
        play = self.world.agents.play(run, message["info"]["id"], began, text)
        if began == 0 and "/implement." in run:
            self.world.edit(run)
        return play

    def _sign(self, session: str | None, urgent: bool) -> None:
        for listener in self.listeners:
            listener.note(session, urgent)

    def kill(self) -> None:
        """Kill -9."""
        if not self.sessions.up:
            return
        self.world.tell("the agent server is killed")
        dice = self.world.dice

        def lose(message: Json, age: float) -> Literal["", "parts", "message"]:
            young = message["info"]["role"] == "user" and 0 <= age < YOUNG
            if not (young and dice.roll("server_loses", 0.6)):
                return ""
            return dice.of("server_loses").choice(("parts", "message"))

        self.sessions.kill(lose=lose)
        self.used, self.wedged = FRESH, False

    async def reach(self) -> Address:
        """Start it where it does not run, as the real adapter's `ManagedServer` does."""
        await anyio.sleep(0.01)
        if self.wedged:
            await anyio.sleep(30)
            if self.wedged:
                self.kill()
        if self.broken:
            self.kill()
            raise ServerNotStarted("the server did not start")
        if not self.sessions.up:
            await self._wait()
            if not self.sessions.up:
                self.sessions.start()
                self.world.tell(f"the agent server starts, life {self.sessions.life}")
        return Address(url=URL, password="secret", instance=f"opencode:{self.sessions.life}")

    async def _wait(self) -> None:
        """Wait for a server that starts; one that needs long is alive, and waited for by the next call, too."""
        dice, now = self.world.dice, self.world.clock.monotonic
        if self.begins is None:
            slow = dice.of("server_late").uniform(20, 300) if dice.roll("server_late", 0.7) else 0.0
            self.begins = now() + dice.of("server").uniform(0.5, 2.5) + slow
        left = self.begins - now()
        await anyio.sleep(min(max(left, 0.0), 40.0))
        if left > 40.0:
            raise ServerStarting("the server did not answer within 40 s, alive; waiting up to 80 s")
        self.begins = None

    # --- HTTP ---

    def answer(self, method: str, path: str, body: Any, params: Json) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers of a call."""
        _, first, *rest = path.split("/")
        place = params.get(
            "directory"
        )  # lists tell of one folder only: ashep/adapters/runners/opencode/session_directories.py
        match method, first, rest:
            case "POST", "session", []:
                return 200, self._shown(self.sessions.open(body["metadata"], place)), {}
            case "GET", "session", []:
                return 200, [self._shown(one) for one in self.sessions.all.values() if one.directory == place], {}
            case "GET", "session", ["status"]:
                return 200, self._statuses(place), {}
            case _, "session", [id, *more]:
                session = self.sessions.all.get(id)
                if session is None:  # opencode.md 21: aborting an unknown session answers 200
                    return (200, True, {}) if more == ["abort"] else (404, {"name": "NotFoundError"}, {})
                return self._on_session(method, session, more, body, params)
            case "GET", "agent", []:
                return 200, [{"name": name, "mode": "primary"} for name in ("build", "plan")], {}
            case "GET", "config", []:
                return 200, {}, {}
            case "GET", "permission" | "question" as kind, []:
                return 200, self.sessions.shown(kind, place), {}
            case "POST", "permission" | "question", [id, how]:
                if id not in self.sessions.asked:
                    return 404, {}, {}
                self.sessions.reply(id, how, body or {})
                return 200, True, {}
            case _:
                return 404, {}, {}

    def _on_session(
        self, method: str, session: Session, more: list[str], body: Any, params: Json
    ) -> tuple[int, Any, dict[str, str]]:
        match method, more:
            case "PATCH", []:
                session.metadata |= body.get("metadata", {})
                return 200, self._shown(session), {}
            case "GET", []:
                return 200, self._shown(session), {}
            case "PATCH", []:
                session.metadata.update(body["metadata"])
                return 200, self._shown(session), {}
            case "POST", ["prompt_async"]:
                self.sessions.take(session, body)
                return 204, None, {}
            case "POST", ["abort"]:
                self.sessions.abort(session)
                return 200, True, {}
            case "DELETE", ["message", id]:
                return (200, True, {}) if self.sessions.delete(session, id) else (409, {}, {})
            case "GET", ["children"]:
                return 200, [], {}
            case "GET", ["message"]:
                return self._page(session, int(params.get("limit", 100)), params.get("before"))
            case _:
                return 404, {}, {}

    def _page(self, session: Session, limit: int, before: str | None) -> tuple[int, Any, dict[str, str]]:
        messages = sorted(session.messages, key=lambda message: message["info"]["id"])
        if before is not None:
            messages = [message for message in messages if message["info"]["id"] < before]
        page = messages[-limit:]
        more = {"x-next-cursor": page[0]["info"]["id"]} if len(page) < len(messages) else {}
        return 200, page, more

    def _statuses(self, place: str | None) -> Json:
        found: Json = {}
        for session in self.sessions.all.values():
            turn = session.turn
            if turn is None or turn.status == "young" or session.directory != place:
                continue  # opencode.md 26
            if turn.status == "retry":
                again = self.world.clock.now() + timedelta(seconds=turn.play.pause)
                wait = {"attempt": 1, "message": "slow down", "next": again.timestamp() * 1000}
                found[session.id] = {"type": "retry"} | wait
            else:
                found[session.id] = {"type": "busy"}
        return found

    def _shown(self, session: Session) -> Json:
        told: Json = {"id": session.id, "metadata": session.metadata, "time": {"created": session.created}}
        return told if session.directory is None else told | {"directory": session.directory}


class SimulatedClient:
    """HTTP without a network: the real client's `call`."""

    def __init__(self, life: "Life", address: Address) -> None:
        self.address = address
        self._life = life

    async def call(
        self, method: str, path: str, *, json: object = None, params: dict[str, Any] | None = None,
        accept: frozenset[int] = frozenset(), patient: bool = False,
    ) -> httpx.Response:  # fmt: skip
        """Make a call; raises as the real client does. All have the same patience."""
        life, world = self._life, self._life.world
        server, dice, what = world.server, world.dice, f"{method} {path.split('/')[-1]}"
        life.reach(f"{what} asked")
        asked = world.clock.now()
        slow = dice.of("server_slow").uniform(0.2, 2.0) if dice.roll("server_slow", 0.2) else 0.0
        await anyio.sleep(dice.of("server").uniform(0.001, 0.02) + slow)
        if life.dead:
            life.reach("dead")
        self._connect()
        if server.wedged:
            await anyio.sleep(15)
            raise RunnerUnavailable(f"{what}: ReadTimeout")
        if dice.roll("server_refuses", 0.01):
            raise RunnerUnavailable(f"{what}: cut before")
        if path.endswith("prompt_async") and world.clock.now() - asked < IN_FLIGHT:
            world.laws.prompted(server.sessions.all[path.split("/")[2]], cast("dict[str, Any]", json))
        if path.endswith("/abort") and dice.roll("abort_lost", 0.5):
            await self._lose_abort(path.split("/")[2])
        path, _, query = path.partition("?")
        found = server.answer(method, path, json, (params or {}) | dict(parse_qsl(query)))
        if method == "POST":
            life.reach(f"{what} done")
        await anyio.sleep(dice.of("server").uniform(0.001, 0.02) + slow)
        self._connect(midway=True)
        if dice.roll("server_forgets", 0.02):
            raise RunnerUnavailable(f"{what}: cut after")
        life.reach(f"{what} answered")
        date = {"date": format_datetime(world.clock.now(), usegmt=True)}
        answer = response(method, path, found[0], found[1], date | found[2])
        check(answer, accept)
        return answer

    async def _lose_abort(self, session: str) -> None:
        """The call gets no answer in time, and takes effect later, whatever runs in the session then."""
        sessions = self._life.world.server.sessions
        life, late = sessions.life, self._life.world.dice.of("abort_lost").uniform(1, 60)

        def abort() -> None:
            if sessions.up and sessions.life == life and session in sessions.all:
                sessions.tell(f"a late abort comes to {session}")
                sessions.abort(sessions.all[session])

        asyncio.get_running_loop().call_later(late, abort, context=Context())
        await anyio.sleep(15)
        raise RunnerUnavailable("POST abort: ReadTimeout")

    def _connect(self, *, midway: bool = False) -> None:
        sessions = self._life.world.server.sessions
        if not sessions.up or self.address.instance != f"opencode:{sessions.life}":
            raise RunnerUnavailable("the connection broke") if midway else ConnectionRefused("nothing listens")

    async def aclose(self) -> None:
        """Nothing was opened."""


def response(method: str, path: str, status: int, body: Any, headers: dict[str, str]) -> httpx.Response:
    request = httpx.Request(method, f"{URL}{path}") if status >= 400 else REQUEST
    return httpx.Response(status, content=json.dumps(body).encode(), headers=headers, request=request)


class SimulatedRunner(OpencodeRunner):
    """The real adapter; only what finds the server and listens to it is simulated."""

    def __init__(self, life: "Life") -> None:
        nowhere = AttachedServer(url="http://127.0.0.1:9", password=None, state=Path("/p"), environ={})  # never reached
        super().__init__(nowhere, directory=Path("/p"))
        self._life = life
        self._noted: list[tuple[str | None, bool]] = []
        self._heard = anyio.Event()
        life.world.server.listeners.append(self)

    async def start(self) -> None:
        """Reach the server."""
        async with self._starting:
            self._life.reach("start asked")
            address = await self._life.world.server.reach()
            self._life.reach("start answered")
            if self._client is None or self._client.address != address:
                self._client = SimulatedClient(self._life, address)  # pyright: ignore[reportAttributeAccessIssue]

    def _refused(self) -> None:
        self._client = None

    async def stop_server(self) -> bool:
        """End the server."""
        was = self._life.world.server.sessions.up
        self._life.reach("stop server")
        self._life.world.server.kill()
        self._client = None
        return was

    async def catalog(self) -> Catalog:
        """Ask what there is, by one call."""
        client = self._connected()
        await self._call("GET", "/session/status")
        models = (Model("scripted", "default"), Model("scripted", "other"))
        used = self._life.world.server.used
        return Catalog("1.18.33", client.address.instance, ("build", "plan"), models, models[0], memory=used)

    def note(self, session: str | None, urgent: bool) -> None:
        """The server shows a sign."""
        if not self._life.dead:
            self._noted.append((session, urgent))
            self._heard.set()

    async def signs(self) -> AsyncIterator[Sign]:
        """Signs of life, some of them lost, some twice."""
        dice = self._life.world.dice
        self._watch.stands()
        yield Sign(None)
        while True:
            await self._heard.wait()
            self._heard, noted = anyio.Event(), self._noted
            if self._watch.deaf:
                self._watch.stands()
            self._noted = []
            for session, urgent in noted:
                if session is not None and dice.roll("signs_lost", 0.5):
                    continue
                if session is not None:
                    self._watch.sign(session)
                yield Sign(session, urgent or dice.roll("signs_twice", 0.5))
                if dice.roll("signs_twice", 0.5):
                    yield Sign(session, urgent)
