"""Signed approvals with the real ssh-keygen: who signed, which keys count, and a daemon that takes no other answer."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
import yaml

from ashep.actions.answers import NotAsked, answer, refuse_unsigned, sign_approval
from ashep.actions.audit import AuditResult, examine, verify_signature
from ashep.adapters.git.integration import is_integration
from ashep.adapters.system.clock import RealClock
from ashep.adapters.system.signatures import is_signed, sign
from ashep.core.facts import issues
from ashep.core.facts.approvals import Signature
from ashep.core.policy.settings import Labels, People, Settings
from ashep.core.state.flow import with_work
from ashep.errors import ProgramMissing, UsageError
from ashep.factories import read_signatures
from ashep.ports.landing import Candidate, Integrated
from tests.conformance.landings import GitLandingWorld
from tests.core.test_playbook_signing import approval, asks
from tests.loop_world import World, policy
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.may_block, pytest.mark.promise("Q7")]

BOXED = {"agents": {"sandbox": "bwrap"}, "worker": {"workspace": "place"}, "verification": {"sandbox": "bwrap"}}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return made(tmp_path / "ann")


def made(file: Path, *words: str) -> Path:
    """A key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file, *words], check=True)
    return file


def public(file: Path) -> str:
    return " ".join(file.with_suffix(".pub").read_text().split()[:2])


def people(*keys: Path, signed: Literal["optional", "required"] = "required") -> People:
    """Ann alone counts, with these keys."""
    return People(tracker=("Ann",), keys={"ann": tuple(map(public, keys))}, signed=signed)


# --- signatures ---------------------------------------------------------------------------------------------------


@pytest.fixture
def agent(key: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent that alone has the key."""
    socket = key.parent / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as process:
        while not socket.exists():
            assert process.poll() is None
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", key], check=True)
        key.unlink()
        yield
        process.terminate()


async def test_who_signed_exactly_this_text_is_known(key: Path, tmp_path: Path) -> None:
    other = public(made(tmp_path / "bob"))
    armor = sign("yes", key)
    assert await is_signed("yes", armor, [other, public(key)])
    assert not await is_signed("yes", armor, [other])
    assert not await is_signed("yes", armor, [])
    assert not await is_signed("yes ", armor, [public(key)])
    assert not await is_signed("yes", armor.replace("U", "V"), [public(key)])
    of_git = await anyio.run_process(["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(key)], input=b"yes")
    assert not await is_signed("yes", of_git.stdout.decode().strip(), [public(key)]), "what signs commits approves none"


@pytest.mark.usefixtures("agent")
async def test_the_ssh_agent_signs_with_a_public_key(key: Path) -> None:
    assert await is_signed("yes", sign("yes", public(key)), [public(key)])


async def test_a_machine_without_ssh_keygen_says_so(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match=r"ssh-keygen cannot be started: .*; install OpenSSH"):
        sign("yes", key)
    with pytest.raises(ProgramMissing, match="ssh-keygen"):
        await is_signed("yes", "", [public(key)])
    (tmp_path / "ssh-keygen").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ssh-keygen").chmod(0o755)
    with pytest.raises(UsageError, match="did not sign"):
        sign("yes", key)


# --- keys of the base branch --------------------------------------------------------------------------------------


async def test_the_keys_of_the_base_branch_count_and_no_others(folder: Path, key: Path) -> None:
    """Whoever looks at an agent's branch in their checkout has the agent's config.yaml in force."""
    world, evil = GitLandingWorld(folder.parent / "top"), made(key.parent / "evil")

    async def counts(in_force: People | None, signer: Path, author: str = "Ann") -> tuple[list[str], bool]:
        wanted, book = approval(asks()), asks()
        text = f"{wanted.text}\n{sign(wanted.text, signer)}"
        comment = book.made.say("t-1", author, text) or book.made.comments["t-1"][-1]
        signatures, required = await read_signatures(world.top, Settings(people=in_force), "main", [comment])
        assert [signature.approval for signature in signatures] == [wanted]
        return [signature.signer for signature in signatures], required

    assert await counts(people(key), key) == (["Ann"], True), "a base without the file says nothing"
    of_base = {"version": 1, "people": people(key).model_dump(mode="json")}
    world.commit({".agent-shepherd/config.yaml": yaml.safe_dump(of_base)})
    assert await counts(people(key), key) == (["Ann"], True)
    assert await counts(people(key), key, "Bob") == ([""], True), "the key is Ann's"
    assert await counts(people(evil, key), evil) == ([""], True)
    assert await counts(None, evil) == ([""], True), "not even a file without the key `people` lets a label count"
    world.commit({".agent-shepherd/config.yaml": "people: [\n"})
    assert await counts(people(key), key) == ([""], False)


# --- the whole daemon ---------------------------------------------------------------------------------------------


async def test_a_label_that_nobody_signed_is_taken_off_and_a_signed_one_closes(folder: Path, key: Path) -> None:
    config = {"version": 1, "people": people(key).model_dump(mode="json"), **BOXED, "tracker": {"poll_every": "200ms"}}
    gate: dict[str, Any] = {"name": "sign_off", "human": {"ask": "Fine?", "changes_requested": "close"}}
    world = World(folder, config=yaml.safe_dump(config), policies=policy(gate), issues=1)
    world.signatures = partial(read_signatures, folder.parent)
    await anyio.run_process(["git", "config", "--global", "user.name", "Ann"])
    ann, labels = world.tracker.as_actor("Ann"), Labels()

    def asked(number: int) -> Callable[[], bool]:
        return lambda: len(world.comments("t-1")) >= number and "human:approved" not in world.issues()["t-1"].labels

    async with world.living():
        await wait_until(lambda: "needs:human_approval" in world.issues()["t-1"].labels, 60)
        await wait_until(asked(1), 60)
        with pytest.raises(NotAsked, match=r"`ashep approve t-1 --sign`"):
            refuse_unsigned(world.world.settings, "t-1")
        world.tracker.person_sets("t-1", "Ann", add_labels=("human:approved",))  # as whoever reaches bd can
        await wait_until(asked(2), 60)
        assert "`people.signed` requires one" in world.comments("t-1")[-1]
        with pytest.raises(UsageError, match=r"none of your keys in `people\.keys`"):
            await sign_approval(folder, "t-1", None, made(key.parent / "other"), world.clock.now(), print)
        with pytest.raises(NotAsked, match="t-9 asks for no approval"):
            await sign_approval(folder, "t-9", None, key, world.clock.now(), print)
        comment = await sign_approval(folder, "t-1", "well done", key, world.clock.now(), print)
        await anyio.sleep(1.1)  # label events have whole seconds
        await answer(ann, labels, "t-1", approved=True, comment=comment, at=world.clock.now())
        await wait_until(world.all_closed, 60)
    world.check()
    (fact,) = world.bodies(issues.PersonAnswered)
    assert fact.actor == "Ann"
    assert fact.signature is not None
    clock = RealClock()
    account = await examine(folder.parent, folder / "state", world.tracker, world.runner.has_session, clock)
    assert (account.findings, account.no_signatures) == ([], "")


# --- what landed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_an_audit_repeats_how_the_signed_commit_came_onto_the_base(folder: Path, method: Any) -> None:
    world = GitLandingWorld(folder.parent / "top")
    world.commit({"a": "1\n"})
    head = world.work("ashep/t-1", {"b": "1\n"})
    world.commit({"a": "2\n"})
    landed = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main", "Do it", method))
    assert isinstance(landed, Integrated)
    assert await is_integration(world.top, (), head, landed.base, landed.commit)
    more = world.work("ashep/t-2", {"b": "1\n", "c": "nobody signed this\n"})
    assert not await is_integration(world.top, (), head, landed.base, more)


@pytest.mark.promise("A1")
async def test_an_audit_finds_what_nobody_signed(folder: Path, key: Path) -> None:
    world = GitLandingWorld(folder.parent / "top")
    tip = world.commit({"a": "1\n"})
    head, other = world.work("ashep/t-1", {"b": "1\n"}), world.work("ashep/t-2", {"b": "2\n"})
    book = asks()
    wanted = approval(book, commit=head)
    signature = Signature(wanted, sign(wanted.text, key), "Ann")
    flow = with_work(book.flow(), signed=signature, landed=("main", head), landed_onto=tip)

    async def findings(in_force: People | None = None, **changes: Any) -> list[str]:
        account = AuditResult()
        settings = Settings(people=in_force or people(key))
        await verify_signature(world.top, settings, with_work(flow, **changes), account)
        assert not account.no_signatures
        return [finding.what for finding in account.findings]

    assert await findings() == []
    (what,) = await findings(landed=("main", other))
    assert what.endswith("that commit is something else")
    (what,) = await findings(people(made(key.parent / "other")))
    assert what.endswith("no key of theirs there signed that")
    (what,) = await findings(signed=replace(signature, approval=replace(wanted, waived=("tests",))))
    assert what.endswith("no key of theirs there signed that")
