"""The checks of a project that nobody has written down yet: its test command, and how its dependencies come.

Files say it, and a table reads them; `ashep.actions.project_checks.trials` runs what is proposed. Nothing is run here.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ashep.adapters.system.folders import walk

Words = tuple[str, ...]
"""A program and its arguments."""

CACHE = "{cache}"
"""The place in a command of the folder that is to hold the dependencies."""

WHEELS = ".cache/ashep/wheels"
"""Where the packages of Python lie in a cache, or a home: pip needs an index next to its own."""

_READ = 256 * 1024  # characters of a file
_SCANNED = 4000  # files in which tests are looked for
_MOST_PACKAGES = 150  # that are named one by one: a command has 200 words at most
_SKIPPED = frozenset({"node_modules", "target", "vendor", "venv", "build", "dist", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class DependencyInstall:
    """How the dependencies of a project come into a checkout."""

    offline: tuple[Words, ...]
    """Programs that bring them without a network, from a cache; none: the test command finds that by itself."""
    online: tuple[Words, ...]
    """The same with a network."""
    fetch: Words = ()
    """What fills the cache; `CACHE` in it is its folder. Empty: there is no way without a network."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that lead `fetch` to a cache of the project's own, and the places in that; none, and nothing in `fetch`
    that names it: the caches of the user's home are filled, which checks may read."""
    home: tuple[str, ...] = ()
    """Caches in the user's home from which `offline` or the test command can be fed."""
    command: Words = ()
    """The test command that goes with them; empty: the same as without."""

    @property
    def own_cache(self) -> bool:
        """Whether it can be fed from a cache of the project's own."""
        return bool(self.places) or any(CACHE in word for word in self.fetch)


@dataclass(frozen=True, slots=True)
class CheckProposal:
    """A test command that the files of a project suggest."""

    kind: str
    """What the project is, in a word: `pytest`, `npm`."""
    command: Words
    """The test command, for a machine that has all it needs."""
    rule: str
    """Which file says so, for people."""
    install: DependencyInstall | None = None
    """How its dependencies come; None: it has none that its files name."""


@dataclass(frozen=True)
class ProjectFiles:
    """The files of a project, whatever is in them: only the first 256 K characters of one are read."""

    root: Path

    def has(self, *names: str) -> str:
        """Give the first of these files that is there; empty: none."""
        return next((name for name in names if (self.root / name).is_file()), "")

    def text(self, name: str) -> str:
        """Give the text of a file; empty where it cannot be read."""
        with suppress(OSError), (self.root / name).open(encoding="utf-8", errors="replace") as file:
            return file.read(_READ)
        return ""

    def toml(self, name: str) -> dict[str, Any]:
        """Read a file of TOML; empty where it is none."""
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            return tomllib.loads(self.text(name))
        return {}

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The document of pyproject.toml."""
        return self.toml("pyproject.toml")

    def json(self, name: str) -> dict[str, Any]:
        """Read an object of JSON; empty where it is none."""
        with suppress(ValueError, RecursionError):
            document = json.loads(self.text(name))
            return cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        return {}

    def has_section(self, name: str, heading: str) -> bool:
        """Whether a file of sections has one with this heading."""
        return re.search(rf"^\[{re.escape(heading)}\]", self.text(name), re.MULTILINE) is not None

    def find_file(self, pattern: str, holds: str = "") -> str:
        """Give a file whose name matches, and in which a pattern is found; empty: none. The look is bounded."""
        by_name, content = re.compile(pattern), re.compile(holds, re.MULTILINE)
        for name in islice(self._names(), _SCANNED):
            if by_name.search(name) and (not holds or content.search(self.text(name))):
                return name
        return ""

    def _names(self) -> Iterator[str]:
        for folder, folders, names in walk(str(self.root)):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            for name in sorted(names):
                path = Path(folder, name)
                if not name.startswith(".") and path.is_file() and not path.is_symlink():
                    yield path.relative_to(self.root).as_posix()


def find_checks(root: Path) -> tuple[CheckProposal, ...]:
    """Propose test commands for a project, best first: none, where no file says how it is tested. Blocks."""
    files = ProjectFiles(root)
    return tuple(proposal for row in TABLE for proposal in row(files))


# --- Python -----------------------------------------------------------------------------------------------------------

_TESTS = r"(^|/)(test_[^/]*|[^/]*_test|tests?)\.py$"
_EXTRAS = ("test", "tests", "testing", "dev")
_REQUIREMENTS = tuple(
    f"{prefix}{word}{suffix}"
    for word in ("dev", "test", "tests")
    for prefix, suffix in (
        ("requirements-", ".txt"), ("requirements_", ".txt"), ("requirements/", ".txt"), ("", "-requirements.txt"),
    )
)  # fmt: skip


def find_pytest(files: ProjectFiles) -> Iterator[CheckProposal]:
    """pytest, where a file configures it or a test needs it; unittest, where tests are written for that alone."""
    project = files.pyproject
    tests = files.find_file(_TESTS, r"^[ \t]*(def|async def|class) +[Tt]est")
    lists = map(files.text, ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", *_REQUIREMENTS))
    rule = ""
    if "pytest" in _table(project, "tool"):
        below = ".ini_options" if "ini_options" in _table(project, "tool", "pytest") else ""
        rule = f"pyproject.toml has [tool.pytest{below}]"
    elif name := files.has("pytest.ini", ".pytest.ini"):
        rule = f"there is a {name}"
    elif files.has_section("setup.cfg", "tool:pytest"):
        rule = "setup.cfg has [tool:pytest]"
    elif files.has_section("tox.ini", "pytest"):
        rule = "tox.ini has [pytest]"
    elif files.has("conftest.py", "tests/conftest.py"):
        rule = f"there is a {files.has('conftest.py', 'tests/conftest.py')}"
    elif tests and any(re.search(r"^[^#\n]*\bpytest\b", text, re.MULTILINE) for text in lists):
        rule = f"{tests} holds tests, and pytest is among the dependencies"
    elif tests and (name := files.find_file(_TESTS, r"^[ \t]*(import|from) +pytest\b|^(async )?def +test_")):
        rule = f"{name} holds tests for pytest"
    if tests and rule:
        yield CheckProposal("pytest", ("python3", "-m", "pytest", "-q"), rule, _python_installation(files, project))
    elif tests and files.has("manage.py") and "django" in files.text("manage.py"):
        command, rule = ("manage.py", "test"), f"there is a manage.py of Django's, and {tests} holds tests"
        yield CheckProposal("django", ("python3", *command), rule, _python_installation(files, project, command))
    elif tests and (name := files.find_file(_TESTS, r"\bunittest\b")):
        command, rule = ("-m", "unittest", "discover"), f"{name} holds tests for unittest"
        folder = name.partition("/")[0]
        if folder in ("tests", "test") and not files.has(f"{folder}/__init__.py"):
            command += ("-s", folder)
        yield CheckProposal("unittest", ("python3", *command), rule, _python_installation(files, project, command))


def _python_installation(
    files: ProjectFiles, project: dict[str, Any], arguments: Words = ("-m", "pytest", "-q")
) -> DependencyInstall | None:
    """Bring what Python needs by the manager whose lock file is there, else by pip. `arguments`: those of the tests."""
    run = ("pytest", *arguments[2:]) if arguments[:2] == ("-m", "pytest") else ("python", *arguments)
    extras = [name for name in _EXTRAS if name in _table(project, "project", "optional-dependencies")]
    if files.has("uv.lock"):
        sync = ("uv", "sync", "--frozen", *(word for name in extras for word in ("--extra", name)))
        return DependencyInstall(
            ((*sync, "--offline"),), (sync,), sync, {"UV_CACHE_DIR": ".cache/uv"},
            command=("uv", "run", "--no-sync", *run),
        )  # fmt: skip
    if files.has("poetry.lock"):
        install = ("poetry", "install", "--no-interaction")
        return DependencyInstall((), (install,), command=("poetry", "run", *run))
    if files.has("pdm.lock"):
        return DependencyInstall((), (("pdm", "sync"),), command=("pdm", "run", *run))
    targets = [*_python_targets(files, project, extras)]
    if run[0] == "pytest" and not any(re.match(r"pytest\b(?!-)", word) for word in targets):
        targets.append("pytest")
    if not targets:
        return None
    building = [*_requirements(_table(project, "build-system").get("requires")), "setuptools", "wheel", "editables"]
    fetched = [word for word in targets if word != "-e"] + (building if "-e" in targets else [])
    pip = (".venv/bin/python", "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check")
    venv = ("python3", "-m", "venv", ".venv")
    download = ("python3", "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", f"{CACHE}/{WHEELS}")
    return DependencyInstall(
        (venv, (*pip, "--no-index", "--find-links", f"~/{WHEELS}", *targets)),
        (venv, (*pip, *targets)),
        (*download, *fetched),
        command=(".venv/bin/python", *arguments),
    )


def _python_targets(files: ProjectFiles, project: dict[str, Any], extras: list[str]) -> Iterator[str]:
    """Name what pip is to install: the project itself, with what its tests need, and its lists of requirements."""
    declared = _table(project, "project")
    dynamic = "dependencies" in _requirements(declared.get("dynamic"))
    needs = declared.get("dependencies") or extras or dynamic
    if "build-system" in project or files.has("setup.py") or (needs and declared):
        yield from ("-e", f".[{','.join(extras)}]" if extras else ".")
    for name in ("requirements.txt", *_REQUIREMENTS):
        if files.has(name):
            yield from ("-r", name)
    groups = _table(project, "dependency-groups")
    yield from islice(dict.fromkeys(word for name in _EXTRAS for word in _group(groups, name, ())), _MOST_PACKAGES)


def _group(groups: Mapping[str, Any], name: str, above: Words) -> Iterator[str]:
    """List what a group of dependencies names, with the groups that it includes."""
    entries = groups.get(name) if name not in above else None
    yield from _requirements(entries)
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield from _group(groups, str(_table({"": entry}, "").get("include-group")), (*above, name))


_PACKAGE = re.compile(r"[A-Za-z0-9][ -~]{0,999}")


def _requirements(value: Any) -> list[str]:
    """Give those texts of a list that name a package, and are no option of a package manager."""
    words = cast("list[Any]", value) if isinstance(value, list) else []
    return [word for word in words if isinstance(word, str) and _PACKAGE.fullmatch(word)]


def find_tox(files: ProjectFiles) -> Iterator[CheckProposal]:
    """Propose tox and nox, which bring what they need themselves, from the network."""
    headings = (("tox.ini", "tox"), ("tox.ini", "testenv"), ("setup.cfg", "tox:tox"), ("pyproject.toml", "tool.tox"))
    rule = next((f"{name} has [{heading}]" for name, heading in headings if files.has_section(name, heading)), "")
    if rule:
        yield CheckProposal("tox", ("tox", "-q"), rule, DependencyInstall((), ()))
    if re.search(r"^@nox\.session|^@session", files.text("noxfile.py"), re.MULTILINE):
        yield CheckProposal("nox", ("nox",), "noxfile.py has sessions", DependencyInstall((), ()))


# --- JavaScript -------------------------------------------------------------------------------------------------------

_PLACEHOLDER = re.compile(r"(?:true|:|exit [01]|echo\b[^&|;]*(?:&&\s*exit\s+[01])?)?", re.IGNORECASE)
_LOCKS = {
    "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun", "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}  # fmt: skip
"""Lock files, and the manager that each is of."""


def find_node(files: ProjectFiles) -> Iterator[CheckProposal]:
    """The script `test` of package.json, by the manager whose lock file is there."""
    package = files.json("package.json")
    script = _table(package, "scripts").get("test")
    if not isinstance(script, str) or _tests_nothing(script):
        return
    lock = files.has(*_LOCKS)
    declared = str(package.get("packageManager", "")).partition("@")[0]
    manager = _LOCKS.get(lock) or (declared if declared in _LOCKS.values() else "npm")
    command = ("bun", "run", "test") if manager == "bun" else (manager, "test")
    if "react-scripts test" in script and "watch" not in script.lower():
        command += ("--", "--watchAll=false")
    needs = any(_table(package, f"{kind}ependencies") for kind in ("d", "devD", "optionalD")) or "workspaces" in package
    installation = _node_installation(files, manager, lock) if needs else None
    owner = f", and {lock} is {manager}'s" if lock else ""
    yield CheckProposal(manager, command, f"package.json has the script `test`{owner}", installation)


def _tests_nothing(script: str) -> bool:
    """Whether a script does no more than say a word."""
    return "no test specified" in script.lower() or _PLACEHOLDER.fullmatch(script.strip()) is not None


def _node_installation(files: ProjectFiles, manager: str, lock: str) -> DependencyInstall:
    match manager:
        case "pnpm":
            install = ("pnpm", "install", *(("--frozen-lockfile",) if lock else ()))
            fetch, places = (*install, "--ignore-scripts"), {"npm_config_store_dir": ".local/share/pnpm/store"}
        case "yarn" if files.has(".yarnrc.yml") or "__metadata:" in files.text("yarn.lock"):
            install = ("yarn", "install", *(("--immutable",) if lock else ()))
            return DependencyInstall((), (install,))
        case "yarn":
            install = ("yarn", "install", *(("--frozen-lockfile",) if lock else ()))
            fetch, places = (*install, "--ignore-scripts"), {"YARN_CACHE_FOLDER": ".cache/yarn"}
        case "bun":
            install = ("bun", "install", *(("--frozen-lockfile",) if lock else ()))
            return DependencyInstall((), (install,))
        case _:
            install = ("npm", "ci" if lock else "install", "--no-audit", "--no-fund")
            fetch, places = (*install, "--ignore-scripts"), {"npm_config_cache": ".npm"}
    home = (".npm/_cacache",) if manager == "npm" else ()
    return DependencyInstall(((*install, "--offline"),), (install,), fetch, places, home)


# --- other languages --------------------------------------------------------------------------------------------------


def find_cargo(files: ProjectFiles) -> Iterator[CheckProposal]:
    """Cargo, where a file of Rust's holds a test."""
    manifest = files.toml("Cargo.toml")
    tests = files.find_file(r"\.rs$", r"^[ \t]*#\[(?:\w+::)*(?:test|rstest|cfg\(test\))\b")
    if ("package" in manifest or "workspace" in manifest) and tests:
        needs = files.find_file(
            r"(^|/)Cargo\.toml$", r"^\[(?:[^\n]*\.)?(?:dev-|build-)?dependencies(?:\.|\][ \t]*\n\s*\w)"
        )
        lock = ("--locked",) if files.has("Cargo.lock") else ()
        installation = DependencyInstall(
            (), (), ("cargo", "fetch", *lock), home=(".cargo/registry", ".cargo/git"),
            command=("cargo", "test", "--offline"),
        )  # fmt: skip
        rule = f"there is a Cargo.toml, and {tests} holds tests"
        yield CheckProposal("cargo", ("cargo", "test"), rule, installation if needs else None)


def find_go(files: ProjectFiles) -> Iterator[CheckProposal]:
    """Go, where a file holds a test."""
    tests = files.find_file(r"_test\.go$", r"^func +(Test|Example|Fuzz)")
    if files.has("go.mod", "go.work") and tests:
        needs = re.search(r"^[ \t]*require\b", files.text("go.mod"), re.MULTILINE) or files.has("go.work")
        vendored = (files.root / "vendor" / "modules.txt").is_file()
        installation = DependencyInstall((), (), ("go", "mod", "download"), home=("go/pkg/mod",))
        rule = f"there is a {files.has('go.mod', 'go.work')}, and {tests} holds tests"
        yield CheckProposal("go", ("go", "test", "./..."), rule, installation if needs and not vendored else None)


def find_jvm(files: ProjectFiles) -> Iterator[CheckProposal]:
    """Gradle and Maven, by the wrapper where there is one."""
    tests = files.find_file(r"(^|/)src/(test|\w+Test)/.+\.(java|kt|kts|groovy|scala)$")
    if (build := files.has("build.gradle.kts", "build.gradle")) and tests:
        program = "./gradlew" if files.has("gradlew") else "gradle"
        rule = f"there is a {build}, and {tests} holds tests"
        yield CheckProposal("gradle", (program, "test"), rule, DependencyInstall((), ()))
    if files.has("pom.xml") and tests:
        program = "./mvnw" if files.has("mvnw") else "mvn"
        installation = DependencyInstall(
            (), (), (program, "-B", "-q", "dependency:go-offline"), home=(".m2/repository",),
            command=(program, "-B", "-o", "test"),
        )  # fmt: skip
        rule = f"there is a pom.xml, and {tests} holds tests"
        yield CheckProposal("maven", (program, "-B", "test"), rule, installation)


def find_make(files: ProjectFiles) -> Iterator[CheckProposal]:
    """The target `test` or `check` of a Makefile, where it has a recipe or names what it is made of."""
    name = files.has("GNUmakefile", "makefile", "Makefile")
    for target in ("test", "check"):
        if name and any(target in names and works for names, works in _find_recipes(files.text(name))):
            yield CheckProposal("make", ("make", target), f"{name} has the target `{target}`")
            return


def find_just(files: ProjectFiles) -> Iterator[CheckProposal]:
    """The recipe `test` of a justfile."""
    name = files.has("justfile", "Justfile", ".justfile")
    if name and any(names[:1] == ["test"] and works for names, works in _find_recipes(files.text(name))):
        yield CheckProposal("just", ("just", "test"), f"{name} has the recipe `test`")


def _find_recipes(text: str) -> Iterator[tuple[list[str], bool]]:
    """Give the names before each colon, and whether anything but a word comes of them: what they are made of, or a
    recipe that does more than say one.
    """
    names, works = list[str](), False
    for line in text.splitlines():
        if line[:1].isspace():
            command = line.strip().lstrip("@-")
            works = works or bool(command and not command.startswith("#") and not _tests_nothing(command))
        elif line and not line.startswith("#"):
            yield names, works
            head, colon, rest = line.partition(":")
            rest = rest.removeprefix(":")
            is_rule = bool(colon) and not rest.startswith("=") and not set(head) & set("=$()")
            names = head.lstrip("@").split() if is_rule else []
            works = is_rule and bool(rest.partition("#")[0].strip())
    yield names, works


def _table(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Give the table in a document at the end of these names; empty: there is none."""
    value: Any = document
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a document of anybody's
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


TABLE: tuple[Callable[[ProjectFiles], Iterable[CheckProposal]], ...] = (
    find_pytest, find_node, find_cargo, find_go, find_jvm, find_make, find_just, find_tox,
)  # fmt: skip
"""The rows, best first: first what brings its dependencies in a way that is known, then what does so by itself."""
