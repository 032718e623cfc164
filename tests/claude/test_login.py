"""A login of a subscription that has expired: ashep renews it outside of sandboxes, in which is nothing that could.

The issuer takes a refresh token once: a pair that is not kept is a login that is lost.
"""

import json
import os
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from ashep.extras.demo.scripted_model import Call
from ashep.extras.testing.worlds import Act, name, opened, prompt, settled
from ashep.ports.runner import SessionRequest
from tests.claude.issuer import Issuer
from tests.conformance.claudes import ApartWorld, ClaudeWorld
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.real,
    pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the issuer's certificate"),
]


class Login(ClaudeWorld):
    """A user who is logged in, with a login that has expired."""

    def __init__(self, folder: Path, issuer: Issuer) -> None:
        self.issuer = issuer
        super().__init__(folder)
        issuer.model = self.model
        self.file = self.home / ".claude" / ".credentials.json"
        self.give(0, -60)

    @property
    def environ(self) -> dict[str, str]:
        others = ("anthropic_api_key", "anthropic_base_url", "https_proxy", "http_proxy", "all_proxy", "no_proxy")
        ours = {name: one for name, one in super().environ.items() if name.lower() not in others}
        ours |= {"NODE_EXTRA_CA_CERTS": str(self.issuer.ca), "NO_PROXY": "127.0.0.1"}
        return {**ours, "HTTPS_PROXY": f"http://127.0.0.1:{self.issuer.server_port}"}

    def give(self, pair: int, seconds: float) -> None:
        """Put a login where the user's is, as Claude Code does: by a new file."""
        kept = {"accessToken": f"access-{pair}", "refreshToken": f"refresh-{pair}", "subscriptionType": "max"}
        kept |= {"expiresAt": int((time.time() + seconds) * 1000), "scopes": ["user:inference", "user:profile"]}
        new = self.file.with_name("new")
        new.write_text(json.dumps({"claudeAiOauth": kept}))
        new.chmod(0o600)
        new.rename(self.file)

    def tokens(self) -> tuple[str, str]:
        kept = json.loads(self.file.read_text())["claudeAiOauth"]
        assert self.file.stat().st_mode & 0o777 == 0o600
        return kept["accessToken"], kept["refreshToken"]

    async def sends(self, session: str, *calls: Call) -> str:
        word = name()
        self.acts[word], self.steps[word] = Act("END"), [*calls]
        sent = prompt(session, word)
        await self.runner.send(sent)
        return sent.message_id


class Apart(Login, ApartWorld):
    """The same in a sandbox."""

    def __init__(self, folder: Path, issuer: Issuer) -> None:
        super().__init__(folder, issuer)
        self.read.add(issuer.ca)


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    with Issuer(tmp_path / "issuer") as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
async def world(
    tmp_path: Path, issuer: Issuer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Login]:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{issuer.server_port}")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(issuer.ca))
    made = getattr(request, "param", Apart)(tmp_path / "claude", issuer)
    async with made.model:
        await made.runner.start()
        yield made
        await made.end()


async def test_two_places_have_it_renewed_once_outside_and_it_is_the_users(world: Apart, issuer: Issuer) -> None:
    other = world.places / "t-2"
    other.mkdir()
    second = SessionRequest(name(), "t", "write", directory=str(other))
    sessions = [await opened(world), await world.runner.open_session(second)]
    sent = [await world.sends(one) for one in sessions]
    turns = [await settled(world, *one) for one in zip(sessions, sent, strict=True)]
    assert [(one.text, one.refused) for one in turns] == [("END", None)] * 2
    assert (issuer.asked, world.tokens()) == (["refresh-0"], ("access-1", "refresh-1"))
    kept = [one for one in world.folder.rglob("*") if one.is_file() and not one.is_symlink()]
    assert [one for one in kept if b"refresh-" in one.read_bytes()] == [world.file]
    copy = world.folder / "login" / world.file.name
    assert {one for one in kept if b"access-" in one.read_bytes()} == {world.file, copy}
    assert os.listdir(copy.parent) == [copy.name]
    assert len([*world.folder.glob("things*/claude/projects")]) == 2


@pytest.mark.full
@pytest.mark.parametrize("world", [Login], indirect=True)
async def test_without_a_sandbox_it_is_another_file(world: Login) -> None:
    file, session = world.file.stat().st_ino, await opened(world)
    assert (await settled(world, session, await world.sends(session))).text == "END"
    assert (world.tokens(), world.file.stat().st_ino != file) == (("access-1", "refresh-1"), True)


@pytest.mark.full
async def test_one_that_is_refused_is_told_as_that_and_asked_for_no_more(world: Apart, issuer: Issuer) -> None:
    issuer.refuses, session = True, await opened(world)
    for _ in range(2):
        turn = await settled(world, session, await world.sends(session))
        assert turn.refused is not None
        assert (turn.refused.kind, issuer.asked) == ("unauthorized", ["refresh-0"])
        assert world.tokens() == ("access-0", "refresh-0")


async def test_while_the_user_renews_it_nobody_else_asks(world: Apart, issuer: Issuer) -> None:
    (world.file.parent / ".oauth_refresh.lock").mkdir()
    await world.apart.logins.keep()
    assert issuer.asked == []
    os.utime(world.file.parent / ".oauth_refresh.lock", (1, 1))  # of one that was killed
    await world.apart.logins.keep()
    assert (issuer.asked, world.tokens()) == (["refresh-0"], ("access-1", "refresh-1"))


@pytest.mark.full
async def test_one_that_a_person_renewed_meanwhile_is_there_in_a_turn_that_goes_on(
    world: Apart, issuer: Issuer
) -> None:
    world.give(0, 3600)
    issuer.access, session = "access-0", await opened(world)
    message = await world.sends(session, Call("bash", {"command": "touch on; sleep 3", "description": "wait"}))
    with anyio.fail_after(60):
        while not (world.directory / "on").exists():
            await anyio.sleep(0.02)
    issuer.pair, issuer.access = 1, "access-1"
    world.give(1, 3600)
    await world.runner.catalog()  # a look of the daemon
    turn = await settled(world, session, message)
    assert (turn.text, turn.refused, issuer.asked) == ("END", None, [])
    assert world.tokens() == ("access-1", "refresh-1")
