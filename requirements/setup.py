"""Set up what `make` needs on a machine with Python 3.11+, Node 20+, Go 1.26.5+, gcc, git and make, and nothing else.

    python3 requirements/setup.py python     the checkout's .venv, uv included, from the pinned requirements
    python3 requirements/setup.py opencode   the OpenCode server, from npm
    python3 requirements/setup.py bd         Beads' `bd`, built with Go from its module (about 7 minutes, once a user);
                                             an installed ashep carries this file, too, and `ashep get-bd` runs it
    python3 requirements/setup.py bwrap      bubblewrap, from the system's package where it is not installed
    python3 requirements/setup.py page       the page of `ashep ui`, built from web/ with Node 20+ and npm
    python3 requirements/setup.py all        the five of them
    python3 requirements/setup.py demo       the same; while bd is being built it shows the simulated demonstration
    python3 requirements/setup.py claude     Claude Code, for tests alone: from npm, on Linux on x64 (380 MB)
    python3 requirements/setup.py claude-acp the adapter by which it speaks ACP, for tests alone: from npm (80 MB)
    python3 requirements/setup.py lock       write the pinned requirements anew ("--upgrade" for the newest versions)

It uses the standard library only, because nothing else is there yet. What is there already costs next to nothing.
The tools go into a per-user cache outside the checkout (a second clone does not build again), under a lock, and each
appears there whole or not at all. Indexes and proxies are those that pip, npm and Go are configured with: whatever they
answer, what is fetched has the hash that stands here.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
STAMP = VENV / ".ashep-setup"
BD_VERSION = "1.3.0"  # also in requirements/beads/go.mod and ashep/adapters/system/programs.py (a test compares them)
OPENCODE_VERSION = "1.18.33"  # also in requirements/opencode/package.json and ashep/adapters/system/programs.py
CLAUDE_VERSION = "2.1.330"  # also in requirements/claude/package.json and ashep/adapters/system/programs.py
CLAUDE_ACP_VERSION = (
    "0.101.0"  # also in requirements/claude-agent-acp/package.json and ashep/adapters/system/programs.py
)
HEARTBEAT = 15.0
RETRY = 86_400.0  # seconds until bubblewrap is looked for again where there was none


class Failed(Exception):
    """A step failed: which, why, and what a person can do."""

    def __init__(self, step: str, why: str, remedy: str) -> None:
        self.step, self.why, self.remedy = step, why, remedy
        super().__init__(f"{step}: {why}")


def say(text: str) -> None:
    """Tell the person who waits."""
    print(f"setup: {text}", flush=True)


# --- running programs -------------------------------------------------------------------------------------------------


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def minutes(seconds: float) -> str:
    """Write 75 as 1m15s."""
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"


class Result:
    """How a program ended; `code` is None where its time was up."""

    def __init__(self, code: int | None, output: str, seconds: float) -> None:
        self.code, self.output, self.seconds = code, output, seconds

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.code == 0

    def why(self) -> str:
        """Say why it did not: its last lines."""
        if self.code is None:
            return f"no end after {minutes(self.seconds)}; it was stopped"
        tail = "\n".join(f"    {line}" for line in self.output.strip().splitlines()[-12:])
        return f"exit code {self.code} after {minutes(self.seconds)}\n{tail}"


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    bound: float = 1200.0,
    alive: Callable[[float, int], str] | None = None,
) -> Result:
    """Run a program in its own process group, with a bound; `alive(seconds, lines so far)` is said every 15 seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                [str(part) for part in argv],
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Result(127, str(error), 0.0)
        try:
            code = _wait(process, log, began, bound, alive)
        finally:
            kill_group(process)
        log.seek(0)
        return Result(code, log.read().decode(errors="replace"), time.monotonic() - began)


def _wait(
    process: subprocess.Popen[bytes],
    log: IO[bytes],
    began: float,
    bound: float,
    alive: Callable[[float, int], str] | None,
) -> int | None:
    while True:
        left = began + bound - time.monotonic()
        if left <= 0:
            return None
        try:
            return process.wait(min(HEARTBEAT, left))
        except subprocess.TimeoutExpired:
            if alive is not None:
                lines = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).count(b"\n")
                say(alive(time.monotonic() - began, lines))


def ticking(what: str) -> Callable[[float, int], str]:
    """Give the words that show that a step is alive."""
    return lambda seconds, _: f"{what}: {minutes(seconds)}"


# --- the per-user cache -----------------------------------------------------------------------------------------------


def tools_cache() -> Path:
    """Where the tools live: the same folder as in ashep/adapters/system/programs.py."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if os.path.isabs(configured) else Path.home() / ".cache") / "ashep" / "tools"


@contextlib.contextmanager
def locked(name: str) -> Generator[None]:
    """Let one setup at a time do this step, over all clones."""
    folder = tools_cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{name}: another setup is busy with it; waiting until that ends")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def workshop(name: str) -> Generator[Path]:
    """Give a folder beside the final place, so that one rename puts the tool there; hold the lock of `name`."""
    for stale in tools_cache().glob(f".{name}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=tools_cache()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(made: Path, target: Path) -> None:
    """Put a finished folder at its final place."""
    if target.exists():
        shutil.rmtree(target)
    made.rename(target)


def version_of(program: Path | str, *arguments: str) -> tuple[int, ...] | None:
    """Ask a program for its version, in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="ashep-setup-") as home:
        private = {
            "HOME": home,
            "XDG_CACHE_HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_STATE_HOME": home,
        }
        result = run([program, *arguments], cwd=Path(home), env={**private, "BD_DISABLE_METRICS": "1"}, bound=30.0)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", result.output) if result.ok else None
    return tuple(int(part) for part in found.groups()) if found else None


def numbers(version: str) -> tuple[int, ...]:
    """Turn "1.3.0" into (1, 3, 0)."""
    return tuple(int(part) for part in version.split("."))


def need(program: str, step: str, remedy: str) -> str:
    """Find a program that a step cannot do without."""
    found = shutil.which(program)
    if found is None:
        raise Failed(step, f"{program} is not on PATH", remedy)
    return found


# --- python -----------------------------------------------------------------------------------------------------------


def fingerprint() -> str:
    """Give a hash of everything that .venv is made from."""
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in ("pyproject.toml", "requirements/uv.txt", "requirements/dev.txt", "requirements/setup.py"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def python() -> None:
    """Make .venv from the pinned requirements."""

    def ready() -> bool:
        whole = all((VENV / "bin" / name).exists() for name in ("python", "ashep"))
        return whole and STAMP.is_file() and STAMP.read_text() == fingerprint()

    if ready():
        return
    with locked(f"venv-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]}"):
        if not ready():
            _make_venv()
            _install_packages()
            STAMP.write_text(fingerprint())


def _make_venv() -> None:
    existing = version_of(VENV / "bin" / "python", "--version") if (VENV / "bin" / "python").exists() else None
    if existing == sys.version_info[:3] and (VENV / "bin" / "pip").exists():
        return
    say(f"python: making .venv with Python {sys.version.split()[0]}")
    STAMP.unlink(missing_ok=True)
    result = run([sys.executable, "-m", "venv", "--clear", VENV], bound=300.0)
    if not result.ok:
        raise Failed(
            "make .venv",
            result.why(),
            "install your system's venv package (Debian, Ubuntu: apt-get install python3-venv)",
        )


def _install_packages() -> None:
    interpreter, uv, files = (
        VENV / "bin" / "python",
        VENV / "bin" / "uv",
        "see the lines above; the index is the one that pip is configured with",
    )
    say("python: installing the pinned packages into .venv")
    steps: list[tuple[str, list[str | Path]]] = [
        (
            "install uv",
            [
                interpreter,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--require-hashes",
                "-r",
                REQUIREMENTS / "uv.txt",
            ],
        ),
        (
            "install packages",
            [uv, "pip", "sync", "--require-hashes", "--no-build-isolation", REQUIREMENTS / "dev.txt"],
        ),
        ("install ashep", [uv, "pip", "install", "--no-deps", "--no-build-isolation", "-e", ROOT]),
    ]
    environment = uv_environment()
    for step, argv in steps:
        result = run(argv, env=environment, alive=ticking(f"python: {step}"))
        if not result.ok:
            raise Failed(step, result.why(), files)


def uv_environment() -> dict[str, str]:
    """Tell uv what pip is configured with (index, certificates, time limit); what uv has been told itself wins."""
    listed = run([VENV / "bin" / "python", "-m", "pip", "config", "list"], bound=60.0).output
    pip: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # the later one wins, as in pip
        for key, value in re.findall(rf"^{section}\.([\w.-]+)=(.*)$", listed, re.MULTILINE):
            pip[key.lstrip(".")] = str(ast.literal_eval(value))
    places = [place for place in pip.get("find-links", "").split() if "://" in place or Path(place).is_dir()]
    wanted = {
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_INDEX_STRATEGY": "unsafe-best-match"
        if pip.get("extra-index-url")
        else "",  # pip's way; the hashes are pinned
        "UV_FIND_LINKS": ",".join(places),
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "UV_HTTP_TIMEOUT": pip.get("timeout", pip.get("default-timeout", "")),
        "SSL_CERT_FILE": pip.get("cert", ""),
    }
    asked = {key: value for key, value in wanted.items() if value and key not in os.environ}
    return {
        **asked,
        "VIRTUAL_ENV": str(VENV),
        "UV_NO_PROGRESS": "1",
        "UV_COMPILE_BYTECODE": "1",
        "UV_CUSTOM_COMPILE_COMMAND": "make lock",
    }


# --- from npm: opencode, claude ---------------------------------------------------------------------------------------


def opencode() -> None:
    """Have the pinned OpenCode: on PATH, in the cache, or from npm."""
    _from_npm("opencode", OPENCODE_VERSION, Path("node_modules", ".bin", "opencode"), _unpack_opencode)


def claude() -> None:
    """Have the pinned Claude Code, which tests alone need: on PATH, in the cache, or from npm.

    Its package for this one platform is the program itself. The one that picks a platform's wants a newer Node.js, and
    a script of its own to be run.
    """
    _from_npm("claude", CLAUDE_VERSION, Path("node_modules", "@anthropic-ai", "claude-code-linux-x64", "claude"))


def claude_acp() -> None:
    """Have the pinned adapter by which Claude Code speaks ACP, which tests alone need.

    Its own copy of Claude Code is left out (`.npmrc`): it is told where the one above is.
    """
    _from_npm("claude-agent-acp", CLAUDE_ACP_VERSION, Path("node_modules", ".bin", "claude-agent-acp"))


def _from_npm(name: str, version: str, program: Path, unpack: Callable[[Path], None] | None = None) -> None:
    target = tools_cache() / f"{name}-{version}"
    if (target / program).is_file():
        return
    on_path = shutil.which(name)
    if on_path and version_of(on_path, "--version") == numbers(version):
        return
    with locked(name), workshop(name) as folder:
        if (target / program).is_file():
            return
        step, remedy = f"install {name}", f"install Node.js 20 or later with npm, or put {name} itself on PATH"
        npm, node = need("npm", step, remedy), need("node", step, remedy)
        node_version = version_of(node, "--version")
        if node_version and node_version < (20,):
            raise Failed(step, f"Node.js is {'.'.join(map(str, node_version))}", remedy)
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(REQUIREMENTS / name / file, folder)
        (package,) = json.loads((folder / "package.json").read_text())["dependencies"]
        say(f"{name}: installing {package}@{version} from npm into {target}")
        # Not `npm ci`: it refuses a lock that lacks other platforms' binaries. The install script is run by hand,
        # because whether npm runs it depends on npm's version and settings.
        _must(step, [npm, "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        if strangers := unpinned(folder, name):
            why = f"npm brought what package-lock.json has no hash of: {', '.join(strangers)}"
            raise Failed(f"check {name}", why, f"put {name} {version} itself on PATH: nothing of it was run")
        if unpack is not None:
            unpack(folder)
        if version_of(folder / program, "--version") != numbers(version):
            raise Failed(
                f"try {name}",
                "the installed program does not start",
                f"run {program} --version after npm install by hand",
            )
        place(folder, target)


def _unpack_opencode(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ashep-setup-") as shut:
        # where the program of this platform is not there, or does not start, the script asks npm for another
        Path(shut, "npm").write_text("#!/bin/sh\nexit 1\n")
        Path(shut, "npm").chmod(0o755)
        path = {"PATH": f"{shut}{os.pathsep}{os.environ.get('PATH', '')}"}
        node = need("node", "unpack opencode", "install Node.js 20 or later")
        _must("unpack opencode", [node, "postinstall.mjs"], folder / "node_modules" / "opencode-ai", path)


def unpinned(folder: Path, name: str) -> list[str]:
    """Name what npm installed without a hash of ours, or with another: for a platform that the lock lacks, say."""
    pinned = json.loads((REQUIREMENTS / name / "package-lock.json").read_text())["packages"]
    found = json.loads((folder / "node_modules" / ".package-lock.json").read_text())["packages"]
    hashes = {package: entry.get("integrity") for package, entry in pinned.items()}
    return sorted(
        package
        for package, entry in found.items()
        if hashes.get(package) in (None, "") or entry.get("integrity") != hashes[package]
    )


def _must(step: str, argv: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    result = run(argv, cwd=folder, env=env, alive=ticking(step))
    if not result.ok:
        remedy = "see the lines above; the registry is the one that npm is configured with. Or put the program on PATH"
        raise Failed(step, result.why(), remedy)


# --- bd ---------------------------------------------------------------------------------------------------------------


def bd(*options: str) -> None:
    """Have a `bd` that is new enough: on PATH, in the cache, or built. `--build`: whatever is on PATH, for a wheel."""
    target = tools_cache() / f"bd-{BD_VERSION}"
    if _has_bd(on_path="--build" not in options):
        return
    with locked("bd"), workshop("bd") as folder:
        if (target / "bd").is_file():
            return
        if on_path := shutil.which("bd"):
            version = version_of(on_path, "version", "--json") or ("unknown",)
            say(f"bd: {on_path} is version {'.'.join(map(str, version))}; {BD_VERSION} or later is needed")
        made = folder / "made"
        made.mkdir()
        _build_bd(folder / "go", made / "bd")
        place(made, target)
        say(f"bd: {target / 'bd'} is ready")


def _has_bd(*, on_path: bool = True) -> bool:
    if (tools_cache() / f"bd-{BD_VERSION}" / "bd").is_file():
        return True
    found = shutil.which("bd") if on_path else None
    version = version_of(found, "version", "--json") if found else None
    return bool(version and version >= numbers(BD_VERSION))


def preview() -> None:
    """Show the demonstration that needs no bd while bd is being built, if it is: a person waits for it."""
    if _has_bd():
        return
    building = subprocess.Popen([sys.executable, __file__, "bd"])
    try:
        say("bd: while it is being built, the demonstration in memory; the one on the real tools follows")
        subprocess.run([VENV / "bin" / "ashep", "demo", "--simulated"], stdin=subprocess.DEVNULL, check=False)
        code = building.wait()
    finally:
        building.terminate()  # it ends what it started
        building.wait()
    if code:
        raise SystemExit(code)  # it has said why


def _build_bd(folder: Path, program: Path) -> None:
    step = "build bd"
    go = need("go", step, f"install Go 1.26.5 or later (https://go.dev/dl/), or put bd {BD_VERSION} on PATH")
    if not (shutil.which("gcc") or shutil.which("cc")):
        raise Failed(step, "there is no C compiler on PATH", "install gcc, or put bd on PATH")
    say(
        "bd: building it from its Go module, once for this user; "
        "about 7 minutes on 2 cores when nothing of it is cached"
    )
    folder.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copy(REQUIREMENTS / "beads" / name, folder)
    # -mod=readonly: what go.sum has no hash of is an error, whatever GOFLAGS says
    flags = ["-v", "-mod=readonly", "-tags=gms_pure_go", "-ldflags", "-s -w", "-o", str(program)]
    result = run(
        [go, "build", *flags, "github.com/steveyegge/beads/cmd/bd"],
        cwd=folder,
        env={"CGO_ENABLED": "1", "GOWORK": "off"},
        bound=3600.0,
        alive=lambda seconds, lines: (
            f"bd: building, {minutes(seconds)}, {lines} modules fetched and packages compiled so far"
        ),
    )
    if not result.ok:
        raise Failed(step, result.why(), "Go 1.26.5 or later and gcc are needed, and 4 GB of disk; or put bd on PATH")
    if version_of(program, "version", "--json") != numbers(BD_VERSION):
        raise Failed(
            step,
            "the built program does not say that it is " + BD_VERSION,
            f"put bd {BD_VERSION} or later on PATH",
        )


# --- bubblewrap -------------------------------------------------------------------------------------------------------


def bwrap() -> None:
    """Have bubblewrap for sandboxes: on PATH, in the cache, or a copy from the system's package. All else goes without.

    The package manager compares the bytes with what the distribution has signed.
    """
    target, missing = tools_cache() / "bubblewrap", tools_cache() / "bubblewrap.missing"
    if not sys.platform.startswith("linux") or shutil.which("bwrap") or target.is_dir():
        return
    if missing.exists() and time.time() - missing.stat().st_mtime < RETRY:
        return
    with locked("bubblewrap"), workshop("bubblewrap") as folder:
        if target.is_dir():
            return
        made, why = folder / "made", _bwrap_from_package(folder)
        if not why and version_of(made / "usr" / "bin" / "bwrap", "--version"):
            place(made, target)
            say(f"bubblewrap: {target} is ready")
            return
        missing.touch()
    said = why or "it does not start"
    say(f"bubblewrap: none here ({said}), so no sandbox is tried out. Install the package bubblewrap")


def _bwrap_from_package(folder: Path) -> str:
    """Fetch and unpack the package; gives what went wrong."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "it is fetched by apt-get and dpkg-deb only"
    (folder / "lists" / "partial").mkdir(parents=True)
    own = ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder}"]
    fetch = ["apt-get", "download", "bubblewrap"]
    result = run(fetch, cwd=folder, bound=60.0)
    if not result.ok:  # an image without lists of packages
        updated = run(["apt-get", *own, "update"], cwd=folder, bound=120.0, alive=ticking("bubblewrap: apt-get update"))
        result = run(["apt-get", *own, *fetch[1:]], cwd=folder, bound=60.0) if updated.ok else updated
    packages = sorted(folder.glob("*.deb"))
    if not result.ok or not packages:
        return result.why().splitlines()[-1].strip()
    unpacked = run(["dpkg-deb", "-x", packages[0], folder / "made"], cwd=folder, bound=60.0)
    return "" if unpacked.ok else unpacked.why().splitlines()[-1].strip()


# --- the page ---------------------------------------------------------------------------------------------------------


def page() -> None:
    """Build the page from web/, where what it is made of has changed. What it is made with stays in the cache."""
    web, target = ROOT / "web", ROOT / "ashep" / "page" / "static"
    if not (web / "package.json").is_file():
        return
    stamp, wanted = target / ".stamp", page_sum(web)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    python()  # the page's types are those of the API
    with locked(f"page-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]}"):
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        step, remedy = "build the page", "install Node.js 20.19 or later with npm; without a page `ashep serve` works"
        npm = need("npm", step, remedy)
        say("page: building it from web/")
        made, lock_ = web / "node_modules" / ".ashep-setup", (web / "package-lock.json").read_text()
        if not made.is_file() or made.read_text() != lock_:
            say("page: npm fetches what it is made with (130 MB)")
            _must(step, [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], web)
            made.write_text(lock_)
        told = run([VENV / "bin" / "python", "-m", "tools.openapi", web / "openapi.json"])
        if not told.ok:
            raise Failed(step, told.why(), "see the lines above")
        for script in ("types", "build"):
            _must(step, [npm, "run", "--silent", script], web)
        stamp.write_text(wanted)


def page_where_possible() -> None:
    """Build it, or say why not: all else works without."""
    try:
        page()
    except Failed as failure:
        say(f"page: none here, and `ashep ui` has none to show: {failure.why}\n  {failure.remedy}")


def page_sum(web: Path) -> str:
    """Give a hash of everything that the page is made from: its sources, and what describes the API."""
    digest, made = hashlib.sha256(), {"node_modules", "openapi.json", "api-types.ts"}
    own = [path for top in web.iterdir() if top.name not in made for path in (top, *top.rglob("*"))]
    for path in sorted([*own, *(ROOT / "ashep" / "api").rglob("*.py")]):
        if path.is_file() and path.name not in made:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


# --- lock -------------------------------------------------------------------------------------------------------------


def lock(*options: str) -> None:
    """Write the pinned requirements anew from pyproject.toml, *.in and package.json."""
    python()
    environment = uv_environment()
    compile_ = [
        str(VENV / "bin" / "uv"),
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--python-version",
        "3.11",
    ]
    compile_ += ["--generate-hashes", "--no-emit-index-url", *options]
    for target, sources, constraints in (
        ("uv", ["requirements/uv.in"], []),
        ("base", ["pyproject.toml"], ["uv"]),
        ("dev", ["pyproject.toml", "requirements/dev.in"], ["uv", "base"]),
    ):
        held = [part for name in constraints for part in ("-c", f"requirements/{name}.txt")]
        result = run([*compile_, *sources, *held, "-o", f"requirements/{target}.txt"], env=environment)
        if not result.ok:
            raise Failed(f"lock {target}.txt", result.why(), "see the lines above")
    for name in ("opencode", "claude", "claude-agent-acp"):
        npm = need("npm", f"lock {name}", "install Node.js 20 or later")
        _must(f"lock {name}", [npm, "install", "--package-lock-only", "--no-audit", "--no-fund"], REQUIREMENTS / name)


# --- main -------------------------------------------------------------------------------------------------------------


STEPS: Mapping[str, Sequence[Callable[..., None]]] = {
    "python": [python],
    "opencode": [opencode],
    "bd": [bd],
    "bwrap": [bwrap],
    "page": [page],
    "all": [python, opencode, bd, bwrap, page_where_possible],
    "demo": [python, preview, opencode, bd, bwrap, page_where_possible],
    "claude": [claude],
    "claude-acp": [claude_acp],
    "lock": [lock],
}


def interrupted(number: int, _frame: object) -> NoReturn:
    """End as Ctrl-C does, so that nothing is left behind."""
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Do the named step; the exit code says whether it worked."""
    signal.signal(signal.SIGTERM, interrupted)
    if not arguments or arguments[0] not in STEPS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if sys.version_info < (3, 11):
            raise Failed(
                "start",
                f"this is Python {sys.version.split()[0]}",
                "use 3.11 or later: make PYTHON=python3.12 …",
            )
        for step in STEPS[arguments[0]]:
            step(*arguments[1:])
    except Failed as failure:
        print(
            f"setup failed at: {failure.step}\n  why: {failure.why}\n  what you can do: {failure.remedy}",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(
            f"setup failed at: {arguments[0]}\n  why: {error}\n  what you can do: check space and rights of that path",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
