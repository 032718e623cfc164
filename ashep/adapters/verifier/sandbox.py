"""Where programs of checks run: what they see, and what they cannot reach."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters import programs
from ashep.core.policy.settings import VerificationSettings
from ashep.core.text import clean
from ashep.errors import AshepError

PROGRAM = "bwrap"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_PROBE = 20.0  # seconds for the sandbox to start `true`
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")

_KEPT_IN_RUN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver")  # where NixOS has its programs

SECRET = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
    ".password-store", ".mozilla", ".config/gh", ".config/gcloud", ".config/git/credentials", ".config/opencode",
    ".config/google-chrome", ".config/chromium", ".local/share/keyrings", ".local/share/opencode",
    ".local/state/ashep",
)  # fmt: skip
"""Places in the user's home that no check sees."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one verification."""

    place: Path
    """The folder around the others but `objects`."""
    tree: Path
    """The checkout, in which programs start."""
    home: Path
    """What programs take for the user's home."""
    tmp: Path
    """What they take for the place of temporary files."""
    objects: Path
    """The repository's objects, which the checkout's git reads."""


class Nothing:
    """No sandbox: a program can reach what the user can; its environment, time and output are bounded all the same."""

    isolated = False

    def wrap(self, argv: Sequence[str], folders: Folders) -> list[str]:
        """Give the command line as it is."""
        return list(argv)

    def environment(self, folders: Folders) -> dict[str, str]:
        """Variables of the environment that depend on the place."""
        return {"TMPDIR": str(folders.tmp)}


class Bubblewrap:
    """Namespaces of its own for each program: it sees the machine's files, and can change the checkout alone."""

    isolated = True

    def __init__(self, program: Path, network: bool, hidden: Sequence[Path]) -> None:
        self._program, self._network, self._hidden = program, network, tuple(hidden)

    def wrap(self, argv: Sequence[str], folders: Folders) -> list[str]:
        """Give the command line that runs a program in the sandbox. Blocks: it looks at what is to be hidden."""
        return [str(self._program), *self._options(folders), "--", *argv]

    def environment(self, folders: Folders) -> dict[str, str]:
        """Variables of the environment that depend on the place."""
        return {"TMPDIR": "/tmp"}

    def _options(self, folders: Folders) -> Iterator[str]:
        yield from ("--die-with-parent", *_NAMESPACES, *(() if self._network else ("--unshare-net",)))
        yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        yield from ("--tmpfs", "/run")  # the sockets of the machine's services
        for kept in (*_KEPT_IN_RUN, *(("/run/systemd/resolve",) if self._network else ())):
            yield from ("--ro-bind-try", kept, kept)
        for temporary in ("/tmp", "/var/tmp"):
            if os.path.isdir(temporary) and not os.path.islink(temporary):
                yield from ("--bind", str(folders.tmp), temporary)
        for hidden in dict.fromkeys(path.resolve() for path in self._hidden):
            if hidden.is_dir():
                yield from ("--tmpfs", str(hidden))
            elif hidden.exists():
                yield from ("--ro-bind", os.devnull, str(hidden))
        # what lies below a place that was covered just now
        for needed in dict.fromkeys((sys.base_prefix, sys.prefix, str(Path(__file__).parent), str(folders.objects))):
            yield from ("--ro-bind-try", needed, needed)
        for own in (folders.tree, folders.home):
            yield from ("--bind", str(own), str(own))
        scripts = str(folders.tree / SCRIPTS)
        if os.path.isdir(scripts) and not os.path.islink(scripts):
            yield from ("--ro-bind", scripts, scripts)
        yield from ("--chdir", str(folders.tree))


Sandbox = Nothing | Bubblewrap


@dataclass(frozen=True, slots=True)
class Isolation:
    """What there is on this machine, and what it leaves open."""

    sandbox: Sandbox
    unusable: str
    """Why there is no sandbox although one was wished for; empty: there is, or none was."""
    refused: bool
    """The settings insist on one, so that no program may run."""
    lines: tuple[str, ...]
    """What is isolated and what is not, for people."""


async def probe(settings: VerificationSettings, hidden: Sequence[Path], scratch: Path) -> Isolation:
    """Find out what can be isolated here, by starting a shell in a sandbox.

    `scratch`: an existing folder of ours; bubblewrap makes folders in it.
    """
    wish, network = settings.sandbox, settings.network
    hidden = [*hidden, *(Path.home() / name for name in SECRET)]
    if wish == "none":
        return Isolation(Nothing(), "", False, _open("`verification.sandbox` is none"))
    program = await to_thread.run_sync(programs.find, PROGRAM)
    if program is None:
        why = "bubblewrap (bwrap) is not installed"
    else:
        sandbox = Bubblewrap(program.absolute(), network, hidden)
        why = await _tried(sandbox, scratch)
        if not why:
            return Isolation(sandbox, "", False, _closed(network))
    return Isolation(Nothing(), why, wish == "bwrap", _open(why))


async def _tried(sandbox: Bubblewrap, scratch: Path) -> str:
    """Start a program in it; gives what went wrong."""
    folder = (await anyio.Path(scratch).resolve()).as_posix()
    folders = Folders(*(Path(folder),) * 5)
    argv = await to_thread.run_sync(sandbox.wrap, ["/bin/sh", "-c", ":"], folders)
    try:
        done = await programs.run(argv, cwd=None, env={"PATH": os.environ.get("PATH", _PATH)}, timeout=_PROBE)
    except AshepError as error:
        return str(error)
    said = " ".join(clean(done.stderr.decode(errors="replace")).split())[:200]
    return f"bubblewrap cannot isolate here: {said}" if done.returncode else ""


def _closed(network: bool) -> tuple[str, ...]:
    reach = "the network is open (`verification.network`)" if network else "no network but a loopback of their own"
    return (
        f"checks run in bubblewrap: {reach}; they can write to their checkout alone, see no process of yours, "
        "and leave none",
        "not isolated: they read what you can read, but for keys and credentials in the usual places of your home "
        "and ashep's state; disk space and processor time have no bound but a check's time",
    )


def _open(why: str) -> tuple[str, ...]:
    return (
        f"checks run without a sandbox: {why}",
        "not isolated: what agents wrote runs with your rights in checks, it can read and change your files, and reach "
        "the network; only environment, time, output, processes and the size of files have bounds",
    )


def environment(folders: Folders, names: Sequence[str], environ: Mapping[str, str], sandbox: Sandbox) -> dict[str, str]:
    """The whole environment of a check's program; `names`: variables of ours that it is given besides."""
    own = {
        "TERM": "dumb",
        "HOME": str(folders.home),
        # no folder's git looks into the one above it: the checkout may lie in the user's work tree
        "GIT_CEILING_DIRECTORIES": os.pathsep.join(map(str, folders.tree.parents)),
    }
    given = given_to(names, environ)
    return {**own, **sandbox.environment(folders), **given}


def given_to(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a program's environment that comes from ours; the rest is the same for each."""
    usual = {"PATH": environ.get("PATH", _PATH), "LANG": environ.get("LANG", "C.UTF-8")}
    return usual | {name: environ[name] for name in names if name in environ}


def missing(program: str, path: str) -> bool:
    """Whether there is no such program on PATH; one named by a path is the candidate's own business. Blocks."""
    if os.sep in program:
        return False
    return not any(os.access(os.path.join(folder or ".", program), os.X_OK) for folder in path.split(os.pathsep))


SCRIPTS = ".agent-shepherd"
"""The folder that comes from the base: an agent that edits its gate changes nothing."""
