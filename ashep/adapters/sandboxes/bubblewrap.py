"""Namespaces for a program (bubblewrap): it sees the machine's programs, what it is given, and nothing else.

What is there is named; what is not named is not there: no home, no socket of a service, no key, nobody else's process.
"""

import os
import platform
import pwd
import re
import struct
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from glob import glob
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from anyio import TemporaryDirectory, to_thread

from ashep.adapters.system import programs
from ashep.core.impact.secrets import find_secrets
from ashep.core.text import clean
from ashep.errors import AshepError

PROGRAM = "bwrap"
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where programs are looked for if nobody says so."""
_TRIAL = 120.0  # seconds for the sandbox to start a shell: agents run without it where it is too slow

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_NO_MORE_OF_THEM = "--disable-userns"
"""No namespaces within: since bubblewrap 0.8."""

_TOP = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap")
_ETC = (
    "alternatives", "bash.bashrc", "bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
    "debian_version", "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts", "inputrc", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "mime.types",
    "networks", "nix", "nsswitch.conf", "os-release", "passwd", "perl", "pki/ca-trust", "pki/java", "pki/tls/cert.pem",
    "pki/tls/certs", "profile", "profile.d", "protocols", "redhat-release", "resolv.conf", "rpc", "services", "shells",
    "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "static", "system-release", "terminfo", "timezone",
)  # fmt: skip
_ETC_KINDS = ("java*", "php*", "python*", "R", "ruby*")
_BESIDE = (
    "/run/current-system", "/run/wrappers", "/run/opengl-driver",  # where NixOS has its programs
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",  # a JVM counts processors there
    "/var/lib/ca-certificates", "/home/linuxbrew/.linuxbrew",
)  # fmt: skip
_ALWAYS = (Path("/nix/var/nix/daemon-socket"),)
"""What is covered on every machine: who speaks with nix's daemon writes what all of the machine run."""
_MOST, _DEEPEST, _LARGEST = 20_000, 3, 64 * 1024  # entries and levels of folders that are looked at; bytes of a file
_LIBRARIES = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__", ".git", "include", "share"})
"""Folders that come from packages, and hold nobody's keys."""
_OF_SECRETS = re.compile(
    r"\.env(\.(?!example$|sample$|template$).+)?|\.?npmrc|\.pypirc|\.?netrc|\.?git-credentials|\.?credentials(\.(json|toml|ini|ya?ml))?"
    r"|id_(rsa|dsa|ecdsa|ed25519)|.+\.(key|p12|pfx|jks|kdbx)"
)
_OF_SETTINGS = re.compile(r".+\.(json|ya?ml|toml|ini|cfg|conf|properties|env|pem)|\.\w+rc")
_OF_A_WHOLE = ("pyvenv.cfg", "conda-meta", "lib/node_modules")
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")

TOOLCHAINS = (
    ".asdf", ".bun", ".cabal/bin", ".cabal/store", ".cargo/bin", ".deno/bin", ".dotnet", ".elan", ".fnm", ".gem/ruby",
    ".ghcup", ".goenv", ".gvm", ".jenv", ".julia/juliaup", ".juliaup", ".linuxbrew", ".local/bin", ".local/lib",
    ".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/uv", ".local/share/virtualenvs", ".local/state/nix", ".nix-profile", ".nodenv", ".npm-global", ".nvm",
    ".opam", ".proto", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sdkman", ".swiftly", ".volta", ".yarn/bin", "anaconda3",
    "go/bin", "mambaforge", "miniconda3", "miniforge3",
)  # fmt: skip
"""Places in the user's home that hold programs, and nobody's keys: they are there, read-only."""

KEYS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
    ".password-store", ".mozilla", ".config/gh", ".config/gcloud", ".config/git/credentials", ".config/opencode",
    ".config/google-chrome", ".config/chromium", ".local/share/keyrings", ".local/share/opencode",
    ".local/state/ashep",
)  # fmt: skip
"""Places in the user's home that are covered where something wider is to be there."""

OBEYED = (
    *KEYS, ".bash_profile", ".bashrc", ".claude", ".claude.json", ".codex", ".config/git", ".config/goose", ".copilot",
    ".cursor", ".gemini", ".gitconfig", ".profile", ".qwen", ".zshenv", ".zshrc",
)  # fmt: skip
"""Places in the user's home from which programs of the user's take logins and orders."""


class BindMount(NamedTuple):
    """A file or folder that stands somewhere else in the sandbox."""

    source: Path
    target: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a program sees next to the machine's programs."""

    at: Path
    """The folder that it starts in."""
    writable: tuple[Path, ...]
    """Files and folders that it may change; each is where it is outside."""
    readable: tuple[Path, ...] = ()
    """What it may read; each is where it is outside, and what is not there is left out."""
    hidden: tuple[Path, ...] = ()
    """What is covered where it lies below something that is there. What is writable or kept lies over it."""
    kept: tuple[Path, ...] = ()
    """What may be read although it lies below something that is hidden, or that is writable."""
    placed: tuple[BindMount, ...] = ()
    """What stands somewhere else than outside: below something that is writable."""
    tmp: Path | None = None
    """The folder that stands at /tmp; None: one in memory."""
    home: Path | None = None
    """The folder that stands where the user's home is, and may be changed; None: there is no home."""
    path: str = PATH
    """Where its programs are looked for: folders of programs elsewhere are there, read-only."""
    network: bool = False
    """Whether it reaches what the machine reaches, the machine itself included; else it has a loopback of its own."""
    lasting: bool = False
    """Whether it may outlive the thread that starts it; else it ends with that."""

    def add_view(self, other: "View") -> "View":
        """Add what another one sees of its own."""
        writable, readable = (*self.writable, *other.writable), (*self.readable, *other.readable)
        return replace(self, writable=writable, readable=readable, placed=(*self.placed, *other.placed))


_BOUNDED = ("/bin/sh", "-c", 'ulimit -u 4096 2>/dev/null || ulimit -p 4096 2>/dev/null; exec "$@"', "sh")
"""A bound of processes and threads in each sandbox by itself (Linux 5.14 and later); for root the kernel has none."""


class Bubblewrap:
    """The `bwrap` of a machine, as a trial has shown what it can do."""

    def __init__(self, program: Path, *, disables: bool = True) -> None:
        """`disables`: it can forbid namespaces within."""
        self.program, self.disables = program, disables

    def wrap(self, view: View, argv: Sequence[str], filter_at: Sequence[int], told_at: int | None = None) -> list[str]:
        """Give the command line that runs a program in the sandbox. Blocks: it looks at what is there.

        `filter_at`: the file descriptor from which `system_calls()` are read, or none (`filter_file`).
        `told_at`: the one to which it writes, as JSON, the id of its first process (`child-pid`).
        """
        forbidding = ("--seccomp", *map(str, filter_at)) if filter_at else ()
        telling = ("--info-fd", str(told_at)) if told_at is not None else ()
        options = [*self._options(view)]
        _straighten(view, options)
        return [str(self.program), *options, *forbidding, *telling, "--", *_BOUNDED, *argv]

    def _options(self, view: View) -> Iterator[str]:
        yield from (*_NAMESPACES, *(() if view.network else ("--unshare-net",)))
        if self.disables:
            yield _NO_MORE_OF_THEM
        if not view.lasting:
            yield "--die-with-parent"
        yield from ("--cap-drop", "ALL", *_kernel())
        for temporary in ("/tmp", "/var/tmp"):
            yield from ("--bind", str(view.tmp), temporary) if view.tmp is not None else ("--tmpfs", temporary)
        if view.home is not None:
            yield from ("--bind", str(view.home), str(Path.home()))
        yield from _system(_homes())
        for found in _RESOLVERS if view.network else ():
            yield from ("--ro-bind-try", found, found)
        there = [*_programs(view.path), *view.readable, Path(sys.base_prefix), Path(sys.prefix)]
        yield from _read_only(there)
        keys = (home / name for home in _homes() for name in KEYS)
        wide = [*there, *map(Path, _TOP), *_toolchains()]
        named = {*wide, *view.writable, *view.kept}
        beside = (one for one in (*sockets(), *beside_programs(view.path)) if one not in named)
        covered = (*_below((*view.hidden, *keys), there), *_below(beside, wide), *filter(Path.exists, _ALWAYS))
        for hidden in dict.fromkeys(covered):
            if hidden.is_dir():
                yield from ("--tmpfs", str(hidden))
            elif hidden.exists():
                yield from ("--dev-bind", os.devnull, str(hidden))  # it can be read, and is empty
        for own in view.writable:
            yield from ("--bind", str(own), str(own))
        yield from _read_only(view.kept)
        for one in view.placed:
            yield from ("--bind" if one.writable else "--ro-bind", str(one.source), str(one.target))
        yield from ("--chdir", str(view.at))


def _straighten(view: View, options: Iterable[str]) -> None:
    """Take links away that lie on the way to what is put into the folders for /tmp and the home, or into one that may
    be written: whoever was in there before may have left them, and bubblewrap, which makes what it mounts upon, would
    follow them out of the sandbox.
    """
    own = {"/tmp": view.tmp, "/var/tmp": view.tmp, str(Path.home()): view.home}
    own |= {str(one): one for one in view.writable for each in view.placed if each.target.is_relative_to(one)}
    for option in dict.fromkeys(options):
        for at, folder in own.items():
            if folder is not None and option.startswith(f"{at}/"):
                for part in accumulate(Path(option).relative_to(at).parts, Path.joinpath, initial=folder):
                    if part != folder and part.is_symlink():
                        part.unlink()


def _below(paths: Iterable[Path], wide: Iterable[Path]) -> list[Path]:
    """Those of the paths that lie in something wide, under each name by which that is there: it may be a link."""
    tops = [(top, path.resolve()) for path in wide for top in (path, path.resolve())]
    found = [
        (top / path.relative_to(at)) for path in map(Path.resolve, paths) for top, at in tops if path.is_relative_to(at)
    ]
    return [*dict.fromkeys(found)]


def _read_only(paths: Iterable[Path]) -> Iterator[str]:
    for path in dict.fromkeys(map(str, paths)):
        yield from ("--ro-bind-try", path, path)


@cache
def _kernel() -> tuple[str, ...]:
    """Devices and /proc: first, for what else is there may lie in /dev/shm."""
    made = ["--dev", "/dev", "--proc", "/proc"]
    # bubblewrap leaves these to the kernel, which asks for no capability: to root outside they are root's inside
    for name in ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"):
        made += ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    for name in ("kcore", "key-users", "keys", "latency_stats", "sched_debug", "timer_list"):
        made += ("--ro-bind", os.devnull, f"/proc/{name}") if os.path.exists(f"/proc/{name}") else ()
    return tuple(made)


@cache
def _system(homes: tuple[Path, ...]) -> tuple[str, ...]:
    """The machine's programs and what they need to run: the same for each call."""
    made = list[str]()
    for path in _TOP:
        if os.path.islink(path):
            made += ("--symlink", os.readlink(path), path)
        real = os.path.realpath(path)
        if not real.startswith("/usr/"):
            made += ("--ro-bind-try", real, real)
    kinds = [os.path.basename(found) for kind in _ETC_KINDS for found in sorted(glob(f"/etc/{kind}"))]
    below = [f"/etc/{name}" for name in (*_ETC, *kinds)]
    for path in (*below, *_BESIDE, *map(str, _toolchains())):
        made += ("--ro-bind-try", path, path)
    return tuple(made)


def obeyed(path: Path) -> bool:
    """Whether programs of the user's take logins or orders from a path, or from what is below it. Blocks."""
    real = path.resolve()
    places = [(home / name).resolve() for home in _homes() for name in OBEYED]
    return any(real.is_relative_to(place) or place.is_relative_to(real) for place in places)


def _homes() -> tuple[Path, ...]:
    """Give the user's home, and the one that is named: where they differ toolchains are in the first as a rule."""
    with suppress(KeyError):  # a user whom the machine does not know by name
        return (*dict.fromkeys((Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir))),)
    return (Path.home(),)


def _programs(path: str) -> Iterator[Path]:
    """Give the folders on a PATH, and where one belongs to a whole, as an environment of Python's or a manager of
    versions, the whole. None that a home, or anything as wide, lies in, and no checkout.
    """
    homes = [home.resolve() for home in _homes()]
    wide = {one for home in homes for one in (home, home / ".local", home / ".config", *home.parents)}
    for entry in dict.fromkeys(path.split(os.pathsep)):
        folder = Path(entry)
        covered = any(folder.is_relative_to(top) for top in ("/usr", "/opt", "/nix", "/bin", "/sbin"))
        if not folder.is_absolute() or folder.resolve() in wide or covered:
            continue
        whole = folder.parent
        found = any((whole / part).exists() for part in _OF_A_WHOLE) and not (whole / ".git").exists()
        if whole.resolve() not in wide and (folder.name == "shims" or found):
            folder = whole
        yield from dict.fromkeys((folder, folder.resolve()))


# --- what lies beside programs ----------------------------------------------------------------------------------------


def _toolchains() -> list[Path]:
    return [home / name for home in _homes() for name in TOOLCHAINS]


def sockets() -> Iterator[Path]:
    """Name the sockets that have a path by which the machine's programs listen. Blocks: a read, however many files."""
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines():
            if (name := line.partition(" /")[2]) and Path(f"/{name}").is_socket():
                yield Path(f"/{name}")


def folders_of_programs(path: str = PATH) -> list[Path]:
    """Name the folders that are there with the user's programs: toolchains, and those on `path`. Blocks."""
    return [folder for folder in dict.fromkeys((*_toolchains(), *_programs(path))) if folder.is_dir()]


def beside_programs(path: str = PATH) -> list[Path]:
    """Name files in those folders that hold a secret by name or content, and sockets; the look is bounded. Blocks."""
    found, left = list[Path](), _MOST
    folders = deque((os.fspath(top), 0) for top in folders_of_programs(path))
    while folders and left > 0:
        folder, depth = folders.popleft()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, left):
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    if depth < _DEEPEST and entry.name not in _LIBRARIES:
                        folders.append((entry.path, depth + 1))
                elif not entry.is_symlink() and (not entry.is_file() or _is_secret(entry)):
                    found.append(Path(entry.path))
    return found


def _is_secret(entry: os.DirEntry[str]) -> bool:
    """Whether a file holds a secret: by its name, or, where it holds settings, by what stands in it."""
    if _OF_SECRETS.fullmatch(entry.name):
        return True
    about = entry.stat() if _OF_SETTINGS.fullmatch(entry.name) else None
    return about is not None and about.st_size <= _LARGEST and _holds_secret(entry.path, about.st_mtime_ns)


@lru_cache(maxsize=4096)
def _holds_secret(file: str, _: int) -> bool:
    """Read a file, once after each change of it."""
    with suppress(OSError), open(file, "rb") as held:
        lines = held.read(_LARGEST).decode(errors="replace").splitlines()
        return bool(find_secrets(file, [*enumerate(lines, 1)]))
    return False


# --- system calls -----------------------------------------------------------------------------------------------------


class _Machine(NamedTuple):
    """The numbers of system calls on one kind of machine (<asm/unistd.h>), and the kind's own (<linux/audit.h>)."""

    kind: int
    refused: tuple[int, ...]
    """add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd; and io_uring, which opens sockets unseen."""
    ioctl: int
    socket: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, (248, 249, 250, 298, 321, 323, 425, 426, 427), 16, 41),
    "aarch64": _Machine(0xC00000B7, (217, 218, 219, 241, 280, 282, 425, 426, 427), 29, 198),
}
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into the terminal of somebody else
_VSOCK = (40,)  # a virtual machine's line to its host, which no namespace closes
_X32 = 0x40000000
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # SECCOMP_RET_ALLOW; with EPERM; with ENOSYS
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24  # <linux/seccomp.h>: struct seccomp_data


@cache
def system_calls(machine: str = platform.machine()) -> bytes:
    """Give the filter (seccomp) that keeps a program from the kernel's keyring, from typing into terminals, and from
    its host: no namespace does. Empty: none is known for such a machine. Programs of another architecture cannot run.
    """
    if (numbers := _MACHINES.get(machine)) is None or sys.byteorder != "little":
        return b""
    done = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, numbers.kind), (_RETURN, 0, 0, _UNKNOWN)]
    done += [(_LOAD, 0, 0, _NUMBER_AT)]
    if machine == "x86_64":
        done += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _UNKNOWN)]
    for number in numbers.refused:
        done += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    for call, at, values in ((numbers.ioctl, _SECOND_AT, _TYPING), (numbers.socket, _FIRST_AT, _VSOCK)):
        inner = [(_LOAD, 0, 0, at)]
        for value in values:
            inner += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _REFUSE)]
        done += [(_EQUAL, 0, len(inner) + 1, call), *inner, (_RETURN, 0, 0, _ALLOW)]
    done += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *one) for one in done)


@contextmanager
def filter_file() -> Generator[tuple[int, ...]]:
    """Have an open file that holds `system_calls()`, to be read once; none where there are none for this machine."""
    if not (data := system_calls()):
        yield ()
        return
    with os.fdopen(os.memfd_create("system calls"), "wb", 0) as file:
        file.write(data)
        file.seek(0)
        yield (file.fileno(),)


# --- whether it can be used -------------------------------------------------------------------------------------------


async def try_out(scratch: Path | None = None) -> Bubblewrap | str:
    """Give the bubblewrap of this machine, or why there is none: a shell is started in a sandbox.

    `scratch`: an existing folder of ours, which the shell is given; None: one that is made for that.
    """
    if scratch is None:
        async with TemporaryDirectory(prefix="ashep-sandbox-") as made:
            return await try_out(Path(made))
    found = await to_thread.run_sync(programs.find, PROGRAM)
    if found is None:
        return "bubblewrap (bwrap) is not installed"
    folder = await to_thread.run_sync(scratch.resolve)
    why = ""
    for disables in (True, False):
        tried = Bubblewrap(found.absolute(), disables=disables)
        said = await _tried(tried, View(folder, (folder,)))
        if not said:
            return tried
        why = why or said
    return why


async def _tried(bubblewrap: Bubblewrap, view: View) -> str:
    """Start a shell in it; gives what went wrong."""
    try:
        done = await run(bubblewrap, view, ["/bin/sh", "-c", ":"], env={"PATH": PATH}, timeout=_TRIAL)
    except AshepError as error:
        return str(error)
    said = " ".join(clean(done.stderr.decode(errors="replace")).split())[:200]
    return f"bubblewrap cannot isolate here: {said}" if done.returncode else ""


async def run(
    bubblewrap: Bubblewrap,
    view: View,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout: float,
    stdin: bytes | None = None,
    take: Callable[[bytes], None] | None = None,
    patience: float = 0.0,
    longest: float = 0.0,
) -> programs.Finished:
    """Run a program in the sandbox to its end, as `programs.run` does; what it started ends with it."""
    with filter_file() as passed:
        wrapped = await to_thread.run_sync(bubblewrap.wrap, view, argv, passed)
        return await programs.run(
            wrapped, cwd=None, env=env, timeout=timeout, stdin=stdin, take=take, patience=patience, pass_fds=passed,
            longest=longest,
        )  # fmt: skip
