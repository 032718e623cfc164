"""Checks that mean harm, or only go wrong: each ends, and nothing of it is left."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from ashep.adapters.git.repository import Repository as Trees
from ashep.adapters.git.workspaces.shared_objects import ObjectStore
from ashep.adapters.sandboxes import bubblewrap
from ashep.adapters.verifier import LocalVerifier, program_run
from ashep.core.policy.checks import CodePattern, FileExists, FileExistsCheck
from ashep.errors import AshepError
from ashep.ports.verifier import VerifyRequest
from tests.verifier.place import ROOT, World, criteria_of

pytestmark = pytest.mark.slow

_numbers = count(1)

Cancel = Callable[[Callable[[], Coroutine[Any, Any, object]], Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def marked() -> str:
    """A time to sleep by which processes of this test are found."""
    return f"7{os.getpid()}.{next(_numbers)}"


def sleepers(marked: str) -> list[str]:
    """The names of processes that were started with this time, what started them included."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and marked in " ".join(process.cmdline()):
                found.append(process.name())
        except psutil.NoSuchProcess:
            continue
    return found


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not await anyio.to_thread.run_sync(condition):
            await anyio.sleep(0.02)


# --- programs -----------------------------------------------------------------------------------------------------

BOMB = "b() { [ $1 -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep %s; }; b 7"
"""It stops at 255, should nobody stop it."""


@pytest.mark.promise("W2")
async def test_a_program_that_takes_all_the_memory(either: World) -> None:
    either.set(memory_limit=128 * 1024**2)
    takes = "import time; held = [bytearray(b'x' * 2**20) for _ in range(%d)]; time.sleep(%d)"
    each = shlex.join((sys.executable, "-S", "-c", takes % (100, 60)))
    found = await either.sh(f"{each} & {each} & wait", timeout="50s")
    told = "its processes held more memory than `verification.memory_limit` allows; it was killed"
    assert (found.status, found.message) == ("failed", told), "both together"
    reserves = "import mmap; held = mmap.mmap(-1, 2**32, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)"
    found = await either.sh(shlex.join((sys.executable, "-S", "-c", reserves)))
    assert found.status == "passed", "what is reserved is not held"


async def test_a_check_is_killed_before_the_daemon_when_memory_runs_out(either: World) -> None:
    found = await either.sh("test $(cat /proc/self/oom_score_adj) -ge 800")
    assert found.status == "passed", found


@pytest.mark.promise("W2")
async def test_a_tree_of_few_objects_and_countless_files_is_not_written(world: World) -> None:
    place, objects = world.repository.folder / "list", 0
    made = world.repository.git("hash-object", "-w", "README.md")
    for level in range(8):
        kind = "040000 tree" if level else "100644 blob"
        place.write_text("".join(f"{kind} {made}\t{n}\n" for n in range(10)))
        made, objects = world.repository.git("mktree", "--missing", at=place), objects + 1
    bomb = world.repository.git("commit-tree", "-m", "bomb", made)
    with pytest.raises(AshepError, match="has more than 500000 files: nothing of it is written"):
        await world.verify({"type": "file_exists", "verify": {"path": "a"}}, commit=bomb)
    assert (world.left, objects) == ([], 8)


async def test_a_checkout_leaves_room_on_the_disk(world: World) -> None:
    free = shutil.disk_usage(world.scratch.parent).free
    world.verifier = LocalVerifier(world.settings, world.scratch, world.keep, floor=2 * free)
    with pytest.raises(AshepError, match=r"files and takes \d+ MiB, and \d+ MiB are to stay free"):
        await world.sh("true")
    assert world.left == []


@pytest.mark.promise("W2")
async def test_a_fork_bomb(either: World, marked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_run, "PROCESSES", 40)  # the message tells of the number as it is
    found = await either.sh(BOMB % marked, timeout="60s")
    assert (found.status, found.message) == ("failed", "it had more than 512 processes; it was killed")
    assert sleepers(marked) == []
    assert either.left == []


@pytest.mark.promise("W2")
async def test_endless_output(either: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_run, "PRINTED", 1024 * 1024)
    found = await either.sh("echo begun; yes", timeout="60s")
    assert (found.status, found.message) == ("failed", "it printed more than 64 MiB; it was killed")
    output = either.output(found)
    assert output.startswith("begun\ny\n")
    assert len(output) < 300_000


@pytest.mark.promise("W2")
async def test_of_much_output_the_ends_are_kept_without_secrets_and_escapes(world: World) -> None:
    secret = "s3cr3t-" + "x" * 100
    world.redaction.add(secret)
    # the cut goes through a secret on either side, whatever its offset
    line = f"printf 'first \\033[31mred\\033[0m {secret}\\n'; i=0; while [ $i -lt 5000 ]; do printf '%s' {secret}; "
    found = await world.sh(f"{line} i=$((i+1)); done; echo; printf 'bell\\007 last'; exit 4")
    output = world.output(found)
    assert output.startswith("first red [redacted]\n[redacted]")
    assert output.endswith("[redacted]\nbell last")
    assert "bytes were printed; the middle is left out" in output
    assert "s3cr3t" not in output
    assert "xxx" not in output
    assert len(output) < 300_000


async def test_a_message_loses_secrets_too(world: World) -> None:
    world.redaction.add("s3cr3t-word")
    assert "s3cr3t" not in (await world.one("file_exists", path="s3cr3t-word")).message


@pytest.mark.promise("W2")
async def test_a_hang_that_ignores_being_asked(either: World, marked: str) -> None:
    found = await either.sh(f"trap '' TERM INT HUP; while :; do sleep {marked}; done", timeout="300ms")
    assert (found.status, found.message) == ("failed", "it had not ended after 300ms; it was killed")
    assert sleepers(marked) == []
    assert either.left == []


DAEMON = """
import os, subprocess, sys
for again in range(2):  # a session of its own, a parent that is gone, and nothing in its environment
    if os.fork():
        os._exit(0)
    os.setsid()
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""


@pytest.mark.promise("W2")
async def test_a_daemon_that_is_left_behind(either: World, marked: str) -> None:
    either.repository.commit({"daemon.py": DAEMON})
    script = f"{sys.executable} -I -S daemon.py {marked}; until pgrep -f 'sleep {marked}'; do :; done"
    found = await either.sh(script)
    assert found.status == "passed", either.output(found)
    assert sleepers(marked) == []


async def test_it_ends_although_something_holds_its_output(either: World, marked: str) -> None:
    found = await either.sh(f"sleep {marked} & echo done", timeout="60s")
    assert (found.status, either.output(found)) == ("passed", "done\n")
    assert sleepers(marked) == []


async def test_a_file_without_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_run, "FILE_SIZE", 1024 * 1024)
    found = await world.sh("exec dd if=/dev/zero of=large bs=65536 count=100")
    assert (found.status, found.message) == ("failed", "ended by SIGXFSZ; expected 0")


# --- the repository -----------------------------------------------------------------------------------------------

HARM = """
git commit -q --allow-empty -m evil; git update-ref refs/heads/evil HEAD; git gc -q --prune=now; git stash -q
echo evil >README.md; git reset -q --hard; git clean -q -fdx; git checkout -q -b evil2; git config user.name evil
rm -rf .git; cd ..; git add -A; git reset -q --hard; git clean -q -fdx; true
"""


@pytest.mark.promise("W1")
async def test_a_check_that_edits_the_repository_finds_another_one(either: World) -> None:
    state = either.repository.folder / ".agent-shepherd" / "state"
    state.mkdir(parents=True)
    either.scratch = state / "checks"  # inside of the repository, as it is for a user
    either.repository.commit({".gitignore": "state/\n"})
    either.repository.write({"README.md": "not committed\n", "untracked": "mine\n"})
    either.scratch.mkdir()
    either.begin()
    before = either.repository.bytes()
    found = await either.sh(HARM)
    assert found.status == "passed"
    assert either.left == []
    assert either.repository.bytes() == before


@pytest.mark.promise("W3")
async def test_in_a_sandbox_nothing_but_the_checkout_can_be_written(sandbox: World) -> None:
    folder, before = sandbox.repository.folder, sandbox.repository.bytes()
    harm = f"echo evil >>{folder}/README.md; rm -rf {folder}/.git {folder}; git -C {folder} gc; mkdir -p {folder}/evil"
    found = await sandbox.sh(f"{harm}; echo evil >/etc/evil; rm -f {ROOT}/README.md; echo fine >made; cat made")
    assert sandbox.output(found).endswith("fine\n")
    assert sandbox.repository.bytes() == before
    assert not Path("/etc/evil").exists()
    assert (ROOT / "README.md").exists()


@pytest.mark.parametrize("ends", [False, True])
async def test_a_check_reads_of_the_history_what_places_do_and_its_own(sandbox: World, *, ends: bool) -> None:
    """`ends`: the lender's history ends before that of the repository, as after `git fetch --unshallow`."""
    repository, lender = (
        sandbox.repository,
        ObjectStore(Trees(sandbox.repository.folder), sandbox.scratch.parent / "lender"),
    )
    repository.git("branch", "-M", "main")
    repository.commit({".agent-shepherd/check.sh": "exit 0\n"})
    first = repository.commit({"a": "1"})
    if ends:
        repository.git("clone", "-q", "--bare", "--depth=1", f"file://{repository.folder}", str(lender.folder))
    else:
        await lender.lend("none", first, "main")
    repository.git("checkout", "-qb", "theirs")
    theirs = repository.commit({"secret": "theirs", ".agent-shepherd/check.sh": "exit 2\n"})
    repository.git("checkout", "-qb", "mine", "main")
    repository.commit({"b": "1", ".agent-shepherd/check.sh": "exit 1\n"})
    repository.commit({"c": "1"})
    reads = f"git cat-file -e {theirs} && exit 9; git cat-file --batch-all-objects --batch-check | grep -c blob"
    looks = "git log --format=%s | wc -l; git fsck 2>&1"
    script = f"{reads}; {looks}; git diff --name-only {first} HEAD; sh .agent-shepherd/check.sh"
    sandbox.lender = lender.folder
    sandbox.begin()
    found = await sandbox.sh(script, base="main")
    said = sandbox.output(found)
    assert (found.status, said.split()) == ("passed", ["5", "5", ".agent-shepherd/check.sh", "b", "c"]), said
    assert (await sandbox.sh("git write-tree", base=theirs)).status == "passed", (
        "scripts are the base's, wherever it is"
    )


@pytest.mark.promise("W3")
async def test_in_a_sandbox_nothing_of_the_machine_is_reached(sandbox: World, marked: str) -> None:
    sandbox.hidden = [ROOT / "tests" / "golden", ROOT / "README.md", ROOT / "not there"]
    sandbox.set(paths=(str(ROOT),))
    kept = start("sleep", marked)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    try:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        unseen = ("ls -A /run | grep -v ^current-system", f"ls -A {ROOT}/tests/golden", f"cat {ROOT}/README.md")
        looks = "; ".join(f"({look}) 2>/dev/null | wc -c" for look in unseen)
        tries = f"{looks}; kill {kept.pid}; pgrep -f 'sleep {marked}'"
        found = await sandbox.sh(f"{tries}; exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        dialled = await sandbox.one("test_pass", command=["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"])
    finally:
        await listener.aclose()
        assert kept.poll() is None
        kept.kill()
        kept.wait()
    said = sandbox.output(found)
    assert said.split()[:3] == ["0", "0", "0"], said
    assert "No such process" in said
    assert "Connection refused" in sandbox.output(dialled)


TRIES = {
    "a file of the home": "open(HOME + '/notes.txt').read()",
    "a key of the home": "open(HOME + '/.ssh/id_key').read()",
    "a key beside a toolchain": "open(HOME + '/.cargo/credentials.toml').read()",
    "a socket of the home": "socket.socket(socket.AF_UNIX).connect(HOME + '/agent.sock')",
    "a socket beside programs": "socket.socket(socket.AF_UNIX).connect(HOME + '/.cargo/bin/a/b/c/d/s')",
    "a socket of a relative name": "socket.socket(socket.AF_UNIX).connect(HOME + '/.rustup/relative.sock')",
    "what is covered always, as nix's daemon": "os.listdir(HOME + '/.rustup/a/b/c/d')[0]",
    "a key in a folder of programs": "open(HOME + '/.cargo/bin/.env').read()[0]",
    "a key in a toolchain, known by what it is": "open(HOME + '/.rustup/settings.toml').read()[0]",
    "the repository": "open(REPOSITORY + '/README.md').read()",
    "settings of the repository": "open(REPOSITORY + '/.git/config').read()",
    "a file of the machine's services": "open('/etc/shadow').read()",
    "the machine's temporary files": "open(TEMPORARY).read()",
    "a process outside": "open(f'/proc/{PID}/environ', 'rb').read()",
    "the keyring": "call(KEYCTL, 0, -3, 1)",
    "a key of the keyring": "call(KEYCTL - 2, b'user', b'name', b'value', 5, -3)",
    "typing into a terminal": "call(IOCTL, 0, 0x5412, b'x')",
    "the host of a virtual machine": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "a ring that makes calls unseen": "call(425, 1, ctypes.create_string_buffer(120))",
    "namespaces of its own": "call(UNSHARE, 0x10000000)",
    "a device of the machine": "os.open('/dev/kmsg', os.O_RDONLY)",
    "settings of the kernel": "print(SETTING, end='', file=open('/proc/sys/kernel/core_pattern', 'w'), flush=True)",
}
TRYING = """
import ctypes, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
KEYCTL, IOCTL, UNSHARE = {"x86_64": (250, 16, 272), "aarch64": (219, 29, 97)}[platform.machine()]
def call(*words):
    if libc.syscall(*words) < 0:
        number = ctypes.get_errno()
        assert number in (1, 28), f"{words}: {number}"  # EPERM; ENOSPC: no namespace is left
        raise OSError(number)
for name, code in TRIES.items():
    try:
        eval(code)
        print(name)
    except (OSError, IndexError):
        pass
print("all tried")
"""


@pytest.mark.promise("W3")
async def test_in_a_sandbox_there_is_nothing_that_is_not_named(
    sandbox: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    token = "".join(("token", " = 'ghp_", "k3J9x2Lq8Vb7Nw5Rt1Yz6Mc4Pd0Hs2Fg7Qj5'\n"))
    for name in ("notes.txt", ".ssh/id_key", ".cargo/credentials.toml", ".cargo/bin/tool", ".cargo/bin/.env"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\necho a tool\n")
    for folder in (always := home / ".rustup" / "a" / "b" / "c" / "d", home / ".cargo" / "bin" / "a" / "b" / "c" / "d"):
        folder.mkdir(parents=True)
    (always / "socket").touch()
    monkeypatch.setattr(bubblewrap, "_ALWAYS", (always,))
    (home / ".rustup" / "settings.toml").write_text(token)
    (home / ".cargo" / "bin" / "tool").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    sandbox.environ["PATH"] = f"{home}/.cargo/bin:{home}:/:{sandbox.environ['PATH']}"
    sandbox.set()
    setting = Path("/proc/sys/kernel/core_pattern").read_text()
    known = {
        "SETTING": setting,
        "HOME": str(home),
        "REPOSITORY": str(sandbox.repository.folder),
        "PID": os.getpid(),
        "TRIES": TRIES,
    }
    with socket.socket(socket.AF_UNIX) as listener, tempfile.NamedTemporaryFile(dir="/tmp") as temporary, \
            socket.socket(socket.AF_UNIX) as beside, socket.socket(socket.AF_UNIX) as relative:  # fmt: skip
        beside.bind(str(home / ".cargo" / "bin" / "a" / "b" / "c" / "d" / "s"))
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir(home / ".rustup")
            relative.bind("relative.sock")
        beside.listen()
        relative.listen()
        script = "".join(f"{name} = {value!r}\n" for name, value in (known | {"TEMPORARY": temporary.name}).items())
        listener.bind(str(home / "agent.sock"))
        listener.listen()
        found = await sandbox.one("test_pass", command=[sys.executable, "-c", script + TRYING])
        tool = await sandbox.one("test_pass", command=["tool"])
    manager = tmp_path / "versions"  # its shims lead to what lies beside them
    for name, line in (("shims/shim", f"exec {manager}/libexec/real"), ("libexec/real", "echo behind a shim")):
        (manager / name).parent.mkdir(parents=True)
        (manager / name).write_text(f"#!/bin/sh\n{line}\n")
        (manager / name).chmod(0o755)
    sandbox.environ["PATH"] += f":{manager}/shims"
    sandbox.set()
    assert sandbox.output(await sandbox.one("test_pass", command=["shim"])) == "behind a shim\n"
    assert sandbox.output(found) == "all tried\n"
    assert sandbox.output(tool) == "a tool\n", "a toolchain is there"


# --- files, links and patterns --------------------------------------------------------------------------------------


@pytest.fixture
def linked(world: World, tmp_path: Path) -> World:
    """A commit with links that lead outside."""
    (tmp_path / "secret").write_text("the secret\n")
    for name, target in {"file": tmp_path / "secret", "folder": tmp_path, "own": "README.md"}.items():
        os.symlink(target, world.repository.folder / name)
    world.repository.commit()
    return world


@pytest.mark.promise("W1")
async def test_links_are_not_followed(linked: World) -> None:
    for path, link in {"file": "file", "folder/secret": "folder", "own": "own"}.items():
        found = await linked.one("file_exists", path=path, contains=["secret"])
        assert (found.status, found.message) == ("failed", f"{link} is a link: links are not followed")
    for glob in ("**", "file", "folder/*", "folder/secret", "own"):
        found = await linked.one("code_pattern", glob=glob, pattern="secret|Read")
        assert found.message.startswith("1 line" if glob == "**" else "no lines"), found.message
        assert "the secret" not in linked.output(found)


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/etc/passwd", "~/secret", "..", "a\\..\\b"])
def test_paths_that_lead_outside_are_refused(path: str) -> None:
    for kind, verify in (("file_exists", {"path": path}), ("code_pattern", {"glob": path, "pattern": "x"})):
        with pytest.raises(ValueError, match="expected a path beneath the checkout"):
            criteria_of({"type": kind, "verify": verify})


async def test_a_path_that_nobody_refused_leads_nowhere(world: World) -> None:
    (world.repository.folder.parent / "secret").write_text("x")
    verify = FileExists.model_construct(path="../secret", contains=())
    criteria = criteria_of().model_copy(
        update={"checks": (FileExistsCheck.model_construct(id="it", type="file_exists", verify=verify),)}
    )
    found = await world.verifier.verify(VerifyRequest(world.repository.folder, "HEAD", None, criteria))
    assert found.results[0].status == "error"


@pytest.mark.promise("W2")
async def test_a_pattern_without_end(world: World) -> None:
    world.repository.commit({"a.txt": "a" * 50 + "b\n"})
    found = await world.one("code_pattern", glob="*.txt", pattern="^(a+)+$", timeout="300ms")
    assert (found.status, found.message) == ("error", "the search for '^(a+)+$' had not ended after 300ms")
    assert CodePattern.model_fields["timeout"].default.total_seconds() <= 10
    assert world.left == []


# --- ends -----------------------------------------------------------------------------------------------------------


def start(*argv: str | Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*argv], cwd=ROOT)


@pytest.fixture
def cancelled() -> Cancel:
    """Cancel something as soon as a condition holds."""

    async def cancel(something: Callable[[], Coroutine[Any, Any, object]], condition: Callable[[], bool]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(something)
            await until(condition)
            group.cancel_scope.cancel()

    return cancel


@pytest.mark.promise("W2")
async def test_a_cancelled_verification_leaves_no_process_and_no_folder(
    either: World, marked: str, cancelled: Cancel
) -> None:
    script = f"trap '' TERM; setsid -f sleep {marked}; sleep {marked}"
    await cancelled(lambda: either.sh(script), lambda: sleepers(marked).count("sleep") >= 2)
    assert sleepers(marked) == []
    assert either.left == []


ALONE = """
import sys, anyio
from pathlib import Path
from tests.verifier.place import Repository, World
from ashep.core.policy.verification_settings import VerificationSettings
world = World(Repository(Path(sys.argv[1])), Path(sys.argv[2]), VerificationSettings(sandbox=sys.argv[3]))
anyio.run(world.sh, sys.argv[4])
"""


@pytest.mark.promise("W2")
@pytest.mark.slow
async def test_a_killed_ashep_leaves_no_process_and_its_folder_to_the_next(either: World, marked: str) -> None:
    script = f"trap '' TERM; setsid -f sleep {marked}; sleep {marked}"
    folder, scratch, kind = either.repository.folder, either.scratch, either.settings.sandbox
    alone = start(sys.executable, "-c", ALONE, folder, scratch, kind, script)
    try:
        await until(lambda: sleepers(marked).count("sleep") >= 2)
        assert len(either.left) == 1
        assert (await either.sh("true")).status == "passed"
        assert len(either.left) == 1  # somebody works there
    finally:
        os.kill(alone.pid, signal.SIGKILL)
        alone.wait()
    await until(lambda: sleepers(marked) == [])
    assert (await either.sh("echo again")).status == "passed"
    assert either.left == []


async def test_folders_that_a_check_has_closed_are_removed(world: World) -> None:
    await world.sh("mkdir -p a/b $HOME/c; touch a/b/f; chmod 0 a/b $HOME/c a .")
    assert world.left == []
