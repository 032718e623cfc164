"""The runners of a project, by name: whoever asks about a session asks the one that has it.

The name of a runner stands before the ids of its sessions (`claude:5f0c…`), but for OpenCode's: so a session says whose
it is, in the journal and to people. Errors say it, too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from ashep.core.facts.requests import Request
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.state.run import runner_of
from ashep.errors import RunnerError, RunnerRefused
from ashep.ports.forwarding import forward
from ashep.ports.runner import Catalog, Prompt, Runner, SessionRequest, Sign

_Answer = TypeVar("_Answer")


class PrefixedRunner:
    """A runner whose sessions have its name before their ids (see the port for what the methods do)."""

    def __init__(self, name: str, runner: Runner) -> None:
        self.name, self.runner = name, runner

    def _inner(self, session: str) -> str:
        return session.removeprefix(f"{self.name}:")

    def _outer(self, session: str) -> str:
        return f"{self.name}:{session}"

    async def _tag_error(self, call: Awaitable[_Answer]) -> _Answer:
        try:
            return await call
        except RunnerError as error:
            error.runner = self.name
            raise

    async def route(self, session: str, call: Callable[[Runner, str], Awaitable[_Answer]]) -> _Answer:
        return await self._tag_error(call(self.runner, self._inner(session)))

    async def start(self) -> None:
        await self._tag_error(self.runner.start())

    async def catalog(self) -> Catalog:
        return await self._tag_error(self.runner.catalog())

    async def open_session(self, request: SessionRequest) -> str:
        return self._outer(await self._tag_error(self.runner.open_session(request)))

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        session = await self._tag_error(self.runner.find_session(key, directory))
        return None if session is None else self._outer(session)

    has_session, asked, turn = forward(Runner.has_session), forward(Runner.asked), forward(Runner.turn)
    life, abort = forward(Runner.life), forward(Runner.abort)
    transcript, reply = forward(Runner.transcript), forward(Runner.reply)

    async def send(self, prompt: Prompt) -> str:
        return await self._tag_error(self.runner.send(replace(prompt, session=self._inner(prompt.session))))

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        busy = await self._tag_error(self.runner.busy(frozenset(map(self._inner, sessions))))
        return frozenset(map(self._outer, busy))

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        listed = await self._tag_error(self.runner.requests(frozenset(map(self._inner, sessions))))
        return tuple(replace(request, session=self._outer(request.session)) for request in listed)

    async def signs(self) -> AsyncIterator[Sign]:
        async for sign in self.runner.signs():
            yield sign if sign.session is None else replace(sign, session=self._outer(sign.session))

    async def aclose(self) -> None:
        await self.runner.aclose()

    async def stop_server(self) -> bool:
        return await self._tag_error(self.runner.stop_server())


class RunnerRouter:
    """All of a project's: each is made when it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Runner]]) -> None:
        self._makers, self._made = makers, dict[str, Runner]()
        self.begins: Callable[[str, str], Awaitable[bool]] | None = None
        """Says whether the turn of a prompt of a session may begin, and remembers it durably before it does."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(self._makers)

    def __getitem__(self, name: str) -> Runner:
        """Give the one of this name. Raises `RunnerRefused`: config.yaml has it no more."""
        if name not in self._makers:
            raise RunnerRefused(f"there is no runner {name} in this project any more", runner=name)
        if name not in self._made:
            runner = self._makers[name]()
            self._made[name] = runner if name == OPENCODE else PrefixedRunner(name, runner)
        return self._made[name]

    def find_runner(self, session: str) -> Runner:
        """Give the one that has a session. Raises `RunnerRefused` as above."""
        return self[runner_of(session)]

    async def may_begin(self, name: str, session: str, message: str) -> bool:
        """Whether a turn of the runner of this name may begin; where nobody is here to say so, none does."""
        return self.begins is not None and await self.begins(f"{name}:{session}", message)

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those of these sessions that run a turn, on whichever runner."""
        found = frozenset[str]()
        for name in sorted(set(map(runner_of, sessions))):
            found |= await self[name].busy(frozenset(session for session in sessions if runner_of(session) == name))
        return found

    async def has_session(self, session: str) -> bool:
        """Whether a session is still there; where its runner is gone, it is not."""
        return runner_of(session) in self._makers and await self.find_runner(session).has_session(session)

    async def aclose(self) -> None:
        """Let go of connections."""
        for one in self._made.values():
            await one.aclose()


def runners_of(runner: Runner | RunnerRouter) -> RunnerRouter:
    """Give one that is OpenCode's, or stands for it, as all of a project's."""
    return runner if isinstance(runner, RunnerRouter) else RunnerRouter({OPENCODE: lambda: runner})
