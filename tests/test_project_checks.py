"""What the files of a project say about its test command: many kinds of projects, and those that say nothing."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from ashep.actions.project_checks import CheckProposal, find_checks

PY = "def test_it():\n    assert True\n"
UNIT = "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        pass\n"
PROJECT = '[project]\nname = "shop"\nversion = "1"\n'
NODE = '{"scripts": {"test": "node --test"}%s}'
NEEDS = ', "dependencies": {"ms": "^2"}'
RUST = "pub fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() {}\n}\n"
CRATE = '[package]\nname = "shop"\nversion = "0.1.0"\n'
GO = 'package shop\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {}\n'
JAVA = "class ShopTest {}\n"
BARE = ("pytest", "python3 -m pytest -q")
NAMED = "tests/test_a.py holds tests, and pytest is among the dependencies"
SCRIPT = "package.json has the script `test`"
PIP = "python3 -m venv .venv && .venv/bin/python -m pip install -q --no-compile --disable-pip-version-check"
CI = "npm ci --no-audit --no-fund"
PLACEHOLDER = 'echo \\"Error: no test specified\\" && exit 1'

KINDS: dict[str, tuple[Mapping[str, str], list[tuple[str, ...]]]] = {
    # python
    "pytest by its configuration": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": PY},
        [(*BARE, "pyproject.toml has [tool.pytest.ini_options]", "… pytest")],
    ),
    "pytest by its own file": (
        {"pytest.ini": "[pytest]\n", "test_a.py": PY},
        [(*BARE, "there is a pytest.ini", "… pytest")],
    ),
    "pytest in setup.cfg": (
        {"setup.cfg": "[tool:pytest]\n", "test_a.py": PY},
        [(*BARE, "setup.cfg has [tool:pytest]", "… pytest")],
    ),
    "pytest in tox.ini, and tox": (
        {"tox.ini": "[pytest]\n[testenv]\ncommands = pytest\n", "test_a.py": PY},
        [(*BARE, "tox.ini has [pytest]", "… pytest"), ("tox", "tox -q", "tox.ini has [testenv]", "")],
    ),
    "pytest by a requirement": (
        {"requirements.txt": "httpx\n", "requirements-dev.txt": "-r requirements.txt\npytest\n", "tests/test_a.py": PY},
        [(*BARE, NAMED, "… -r requirements.txt -r requirements-dev.txt pytest")],
    ),
    "a package with an extra for tests": (
        {
            "pyproject.toml": PROJECT
            + 'dependencies = ["httpx"]\n[project.optional-dependencies]\ntest = ["pytest"]\n',
            "tests/test_a.py": PY,
        },
        [(*BARE, NAMED, "… -e .[test] pytest")],
    ),
    "a package with groups": (
        {
            "pyproject.toml": PROJECT
            + '[dependency-groups]\ndev = [{include-group = "test"}, "ruff"]\ntest = ["pytest>=8"]\n',
            "tests/test_a.py": PY,
        },
        [(*BARE, NAMED, "… pytest>=8 ruff")],
    ),
    "uv": (
        {
            "pyproject.toml": PROJECT + '[dependency-groups]\ndev = ["pytest"]\n',
            "uv.lock": "version = 1\n",
            "tests/test_a.py": PY,
        },
        [(*BARE, NAMED, "uv sync --frozen")],
    ),
    "poetry": (
        {"pyproject.toml": '[tool.poetry.dependencies]\nhttpx = "*"\n', "poetry.lock": "", "tests/test_a.py": PY},
        [(*BARE, "tests/test_a.py holds tests for pytest", "poetry install --no-interaction")],
    ),
    "pdm": (
        {"pyproject.toml": PROJECT, "pdm.lock": "", "conftest.py": "", "tests/test_a.py": PY},
        [(*BARE, "there is a conftest.py", "pdm sync")],
    ),
    "unittest": (
        {"tests/__init__.py": "", "tests/test_a.py": UNIT},
        [("unittest", "python3 -m unittest discover", "tests/test_a.py holds tests for unittest", "-")],
    ),
    "unittest in a folder that is no package": (
        {"tests/test_a.py": UNIT},
        [("unittest", "python3 -m unittest discover -s tests", "tests/test_a.py holds tests for unittest", "-")],
    ),
    "django": (
        {"manage.py": "import django\n", "shop/tests.py": UNIT, "requirements.txt": "django\n"},
        [
            (
                "django",
                "python3 manage.py test",
                "there is a manage.py of Django's, and shop/tests.py holds tests",
                "… -r requirements.txt",
            )
        ],
    ),
    "nox": (
        {"noxfile.py": "import nox\n\n@nox.session\ndef tests(session): ...\n"},
        [("nox", "nox", "noxfile.py has sessions", "")],
    ),
    "pytest's configuration without a test": (
        {"pyproject.toml": PROJECT + "[tool.pytest.ini_options]\n", "shop.py": "x = 1\n"},
        [],
    ),
    "a module that is only called so": ({"pyproject.toml": PROJECT, "test_data.py": "ROWS = [1]\n"}, []),
    "tests of what was installed": (
        {"pyproject.toml": PROJECT, "venv/lib/test_a.py": PY, "node_modules/x/test_b.py": PY},
        [],
    ),
    # javascript
    "npm without dependencies": ({"package.json": NODE % ""}, [("npm", "npm test", SCRIPT, "-")]),
    "npm": (
        {"package.json": NODE % NEEDS, "package-lock.json": "{}"},
        [("npm", "npm test", f"{SCRIPT}, and package-lock.json is npm's", CI)],
    ),
    "npm without a lock": (
        {"package.json": NODE % NEEDS},
        [("npm", "npm test", SCRIPT, "npm install --no-audit --no-fund")],
    ),
    "pnpm": (
        {"package.json": NODE % NEEDS, "pnpm-lock.yaml": ""},
        [("pnpm", "pnpm test", f"{SCRIPT}, and pnpm-lock.yaml is pnpm's", "pnpm install --frozen-lockfile")],
    ),
    "yarn, the classic": (
        {"package.json": NODE % NEEDS, "yarn.lock": "# yarn lockfile v1\n"},
        [("yarn", "yarn test", f"{SCRIPT}, and yarn.lock is yarn's", "yarn install --frozen-lockfile")],
    ),
    "yarn, the modern": (
        {"package.json": NODE % NEEDS, "yarn.lock": "__metadata:\n  version: 8\n"},
        [("yarn", "yarn test", f"{SCRIPT}, and yarn.lock is yarn's", "yarn install --immutable")],
    ),
    "bun": (
        {"package.json": NODE % NEEDS, "bun.lock": "{}"},
        [("bun", "bun run test", f"{SCRIPT}, and bun.lock is bun's", "bun install --frozen-lockfile")],
    ),
    "react": (
        {"package.json": '{"scripts": {"test": "react-scripts test"}}'},
        [("npm", "npm test -- --watchAll=false", SCRIPT, "-")],
    ),
    "npm's placeholder": ({"package.json": f'{{"scripts": {{"test": "{PLACEHOLDER}"}}}}'}, []),
    "a script that says a word": ({"package.json": '{"scripts": {"test": "echo none yet"}}'}, []),
    "package.json without scripts": ({"package.json": "{}"}, []),
    "package.json that is broken": (
        {"package.json": "{", "pyproject.toml": "[", "Cargo.toml": "[", "setup.cfg": "x"},
        [],
    ),
    # others
    "cargo": (
        {"Cargo.toml": CRATE, "src/lib.rs": RUST},
        [("cargo", "cargo test", "there is a Cargo.toml, and src/lib.rs holds tests", "-")],
    ),
    "cargo with a dependency": (
        {"Cargo.toml": CRATE + '[dependencies]\nitoa = "1"\n', "Cargo.lock": "", "src/lib.rs": RUST},
        [("cargo", "cargo test", "there is a Cargo.toml, and src/lib.rs holds tests", "cargo fetch --locked")],
    ),
    "cargo with a table of its own for a dependency": (
        {"Cargo.toml": CRATE + "[target.'cfg(unix)'.dev-dependencies.itoa]\nversion = \"1\"\n", "src/lib.rs": RUST},
        [("cargo", "cargo test", "there is a Cargo.toml, and src/lib.rs holds tests", "cargo fetch")],
    ),
    "cargo without a test": ({"Cargo.toml": CRATE + "[dependencies]\n", "src/lib.rs": "pub fn test() {}\n"}, []),
    "go": (
        {"go.mod": "module shop\n", "a_test.go": GO},
        [("go", "go test ./...", "there is a go.mod, and a_test.go holds tests", "-")],
    ),
    "go with a dependency": (
        {"go.mod": "module shop\n\nrequire example.com/x v1.0.0\n", "in/a_test.go": GO},
        [("go", "go test ./...", "there is a go.mod, and in/a_test.go holds tests", "go mod download")],
    ),
    "go with what it needs beside it": (
        {"go.mod": "module shop\n\nrequire example.com/x v1.0.0\n", "vendor/modules.txt": "", "a_test.go": GO},
        [("go", "go test ./...", "there is a go.mod, and a_test.go holds tests", "-")],
    ),
    "go without a test": ({"go.mod": "module shop\n", "a.go": "package shop\n"}, []),
    "gradle": (
        {"build.gradle.kts": "", "gradlew": "", "src/test/java/ShopTest.java": JAVA},
        [("gradle", "./gradlew test", "there is a build.gradle.kts, and src/test/java/ShopTest.java holds tests", "")],
    ),
    "maven": (
        {"pom.xml": "<project/>", "src/test/java/ShopTest.java": JAVA},
        [
            (
                "maven",
                "mvn -B test",
                "there is a pom.xml, and src/test/java/ShopTest.java holds tests",
                "mvn -B -q dependency:go-offline",
            )
        ],
    ),
    "maven's wrapper": (
        {"pom.xml": "<project/>", "mvnw": "", "core/src/test/kotlin/ShopTest.kt": JAVA},
        [
            (
                "maven",
                "./mvnw -B test",
                "there is a pom.xml, and core/src/test/kotlin/ShopTest.kt holds tests",
                "./mvnw -B -q dependency:go-offline",
            )
        ],
    ),
    "maven without a test": ({"pom.xml": "<project/>", "src/main/java/Shop.java": JAVA}, []),
    "make": (
        {"Makefile": "all:\n\ttrue\n\ntest: all\n\t./run\n"},
        [("make", "make test", "Makefile has the target `test`", "-")],
    ),
    "make's check, of two targets": (
        {"GNUmakefile": "lint check:\n\t@./run\n"},
        [("make", "make check", "GNUmakefile has the target `check`", "-")],
    ),
    "make that tests nothing": (
        {"Makefile": "test := yes\n.PHONY: test\ntest:\n\t@echo none yet\n\nlatest:\n\t./run\ntests/a:\n\t./run\n"},
        [],
    ),
    "just": (
        {"justfile": "default:\n  just -l\n\ntest *args:\n  ./run {{args}}\n"},
        [("just", "just test", "justfile has the recipe `test`", "-")],
    ),
    "just that tests nothing": ({"justfile": "test := 'x'\ntesting:\n  ./run\n"}, []),
    "nothing": ({"README.md": "make test\n"}, []),
    "two kinds at once": (
        {
            "package.json": NODE % NEEDS,
            "package-lock.json": "{}",
            "pytest.ini": "",
            "tests/test_a.py": PY,
            "Makefile": "test:\n\tnpm test\n",
        },
        [
            (*BARE, "there is a pytest.ini", "… pytest"),
            ("npm", "npm test", f"{SCRIPT}, and package-lock.json is npm's", CI),
            ("make", "make test", "Makefile has the target `test`", "-"),
        ],
    ),
}


def make_files(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def describe(proposal: CheckProposal) -> tuple[str, ...]:
    install = proposal.install
    steps = (install.online or (install.fetch,)) if install else (("-",),)
    line = " && ".join(map(" ".join, steps))
    return proposal.kind, " ".join(proposal.command), proposal.rule, line


@pytest.mark.parametrize("name", KINDS)
def test_files_say_how_a_project_is_tested(tmp_path: Path, name: str) -> None:
    """No guess is wrong: where no file says it, nothing is proposed."""
    files, expected = KINDS[name]
    make_files(tmp_path, files)
    found = [describe(proposal) for proposal in find_checks(tmp_path)]
    assert found == [tuple(word.replace("…", PIP) for word in row) for row in expected]


def test_what_brings_dependencies_reads_a_cache_or_says_that_it_needs_the_network(tmp_path: Path) -> None:
    """What runs without a network is told so, and what fetches runs no script of a foreign package of npm's."""
    ways = dict[str, tuple[str, str, dict[str, str], tuple[str, ...]]]()
    for name in (
        "uv",
        "pytest by its own file",
        "npm",
        "pnpm",
        "cargo with a dependency",
        "go with a dependency",
        "poetry",
    ):
        root = tmp_path / name
        make_files(root, KINDS[name][0])
        install = find_checks(root)[0].install
        assert install is not None
        offline = " && ".join(" ".join(words) for words in install.offline)
        ways[name] = offline, " ".join(install.fetch), dict(install.places), install.home
    assert ways == {
        "uv": ("uv sync --frozen --offline", "uv sync --frozen", {"UV_CACHE_DIR": ".cache/uv"}, ()),
        "pytest by its own file": (
            f"{PIP} --no-index --find-links ~/.cache/ashep/wheels pytest",
            "python3 -m pip download -q --only-binary :all: -d {cache}/.cache/ashep/wheels pytest", {}, (),
        ),
        "npm": (f"{CI} --offline", f"{CI} --ignore-scripts", {"npm_config_cache": ".npm"}, (".npm/_cacache",)),
        "pnpm": (
            "pnpm install --frozen-lockfile --offline", "pnpm install --frozen-lockfile --ignore-scripts",
            {"npm_config_store_dir": ".local/share/pnpm/store"}, (),
        ),
        "cargo with a dependency": ("", "cargo fetch --locked", {}, (".cargo/registry", ".cargo/git")),
        "go with a dependency": ("", "go mod download", {}, ("go/pkg/mod",)),
        "poetry": ("", "", {}, ()),
    }  # fmt: skip


LONG = 300_000
HOSTILE: dict[str, Mapping[str, str]] = {
    "a Makefile of one line": {"Makefile": "test " * (LONG // 5)},
    "a Makefile of targets": {"Makefile": "test:\n" * (LONG // 6)},
    "a justfile of spaces": {"justfile": "test" + " " * LONG},
    "a comment": {"Makefile": "# test: make\nX = test: make\n\t./run\n", "justfile": "# test:\n  ./run\n"},
    "a script of spaces": {"package.json": f'{{"scripts": {{"test": "{" " * LONG}x"}}}}'},
    "a script that is none": {"package.json": '{"scripts": {"test": 4}, "packageManager": ["a"]}'},
    "depth": {"package.json": "[" * LONG, "pyproject.toml": f"a={'[' * LONG}", "Cargo.toml": f"a={'[' * LONG}"},
    "blank lines": {"test_a.py": "\n" * LONG, "a_test.go": "\n" * LONG, "go.mod": "\n" * LONG},
    "sections": {"setup.cfg": "[a]\n" + " x\n" * (LONG // 3), "tox.ini": "[tox\n", "noxfile.py": "@" * LONG},
    "a manifest of dots": {"Cargo.toml": f"[package]\n[{'dependencies.' * 20_000}\n", "src/lib.rs": RUST},
    "a manifest of blank lines": {"Cargo.toml": CRATE + "[dependencies]" + "\n" * 200_000, "src/lib.rs": "fn f() {}\n"},
    "no text": {"pyproject.toml": "\0", "Makefile": "\0", "setup.cfg": "\0["},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_in_the_files_the_look_ends_soon(tmp_path: Path, name: str) -> None:
    make_files(tmp_path, HOSTILE[name])
    began = time.process_time()
    assert find_checks(tmp_path) == ()
    assert time.process_time() - began < 5


def test_values_that_are_no_packages_are_no_words_of_a_command(tmp_path: Path) -> None:
    values = """
project = {dependencies = 4, dynamic = 5, optional-dependencies = 3}
build-system = {requires = ["hatchling", "--index-url=http://evil.example", 5]}
[dependency-groups]
dev = 5
test = [
  1, {a = 1}, {include-group = 3}, {include-group = "dev"}, {include-group = "test"}, [1], "-e /", "",
  "x\\u0000y", "a\\nb",
  "--extra-index-url=http://evil.example", "ok>=1; a<'b'", "$(touch x)",
]
[tool]
pytest = 1
"""
    make_files(tmp_path, {"pyproject.toml": values, "test_a.py": PY})
    install = find_checks(tmp_path)[0].install
    assert install is not None
    assert install.online[-1][7:] == ("-e", ".", "ok>=1; a<'b'", "pytest")
    assert install.fetch[9:] == (".", "ok>=1; a<'b'", "pytest", "hatchling", "setuptools", "wheel", "editables")
