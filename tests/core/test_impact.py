"""What a change touches: files, flags, and where flags lead."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ashep.core.impact.changes import (
    LONGEST_PATH,
    MOST_EVIDENCE,
    MOST_PATHS,
    ChangedFile,
    Diff,
    FileMap,
    FlagEvidence,
    Impact,
    impact_of,
)
from ashep.core.impact.config_references import named_by
from ashep.core.impact.manifests import changes_dependencies_alone, is_manifest
from ashep.core.policy.checks import Check
from ashep.core.policy.flags import ALWAYS_ASK, FLAGS, must_ask, route
from ashep.core.policy.policies import Phase, Policies, Policy
from ashep.core.policy.settings import ImpactSettings, Notify, NotifyTarget, Settings, SetupStep, WorkerSettings
from ashep.core.policy.verification_settings import OwnCheckType, VerificationSettings

CHECK = {"id": "own", "description": "it runs", "type": "test_pass", "verify": {"command": ["sh", "check/run.sh"]}}
TOKEN = "ghp_" + "aZ3kQ9xV7bN2mL5pR8tY1wC4dF6gH0jS2uE4"


def changed(path: str, added: str = "", removed: str = "", **more: Any) -> ChangedFile:
    """A file with lines; a renamed one is `former -> path`."""
    now, before = (tuple(enumerate(text.split("\n"), 1)) if text else () for text in (added, removed))
    former, _, name = path.rpartition(" -> ")
    kind = more.pop("kind", "renamed" if former else "modified")
    return ChangedFile(name, kind, former or None, len(now), len(before), now, before, **more)


def diff(*files: ChangedFile) -> Diff:
    return Diff("b" * 40, "c" * 40, files)


def raised(*files: ChangedFile, **settings: Any) -> list[str]:
    return list(impact_of(diff(*files), ImpactSettings(**settings)).raised)


def evidence(flag: str, *files: ChangedFile, **settings: Any) -> list[tuple[str, str, int | None]]:
    flags = {one.name: one for one in impact_of(diff(*files), ImpactSettings(**settings)).flags}
    return [(one.path, one.what, one.line) for one in flags[flag].evidence] if flag in flags else []  # type: ignore[index]


# --- the file map -------------------------------------------------------------------------------------------------


def test_a_renamed_file_is_created_and_deleted() -> None:
    files = [
        changed("b.txt", kind="created"), changed("a.txt", kind="created"), changed("m.txt"),
        changed("d.txt", kind="deleted"), changed("old.txt -> new.txt"),
    ]  # fmt: skip
    assert impact_of(diff(*files)).files == FileMap(("a.txt", "b.txt", "new.txt"), ("m.txt",), ("d.txt", "old.txt"))


def test_a_file_map_is_bounded_and_says_what_it_leaves_out() -> None:
    files = [changed(f"{number:05}.txt", kind="created") for number in range(MOST_PATHS + 7)]
    files += [changed(f"{number:05}.md") for number in range(MOST_PATHS + 1)]
    found = impact_of(diff(*files))
    assert (len(found.files.created), len(found.files.modified), found.files.more) == (MOST_PATHS, MOST_PATHS, 8)
    assert found.files.created[0] == "00000.txt"


@pytest.mark.promise("L12")
def test_an_impact_is_small_whatever_the_diff() -> None:
    long = "d/" * 300
    files = [changed(f"{long}{n}/package.json", f'token = "{TOKEN}"', kind="created") for n in range(200)]
    files += [changed(f"{long}{n}/test_a.py", kind="deleted") for n in range(200)]
    found = impact_of(diff(*files))
    assert set(found.raised) == {"rules", "dependencies", "secrets", "deleted_tests", "size"}
    assert [flag.more for flag in found.flags if flag.name == "secrets"] == [200 - MOST_EVIDENCE]
    assert {len(path) for path in (*found.files.created, *found.files.deleted)} == {LONGEST_PATH}
    assert len(TypeAdapter(Impact).dump_json(found)) < 100_000


def test_an_impact_comes_back_from_json() -> None:
    files = [changed(".github/workflows/ci.yml"), changed("a.py", f'x = "{TOKEN}"'), changed("a -> b")]
    found, adapter = impact_of(diff(*files)), TypeAdapter(Impact)
    text = adapter.dump_json(found, exclude_defaults=True)
    assert adapter.validate_python(json.loads(text), strict=False) == found
    assert (found.base, found.head, found.added, found.removed) == ("b" * 40, "c" * 40, 1, 0)


# --- flags by path ------------------------------------------------------------------------------------------------

BY_PATH = {
    "rules": [".agent-shepherd/policies.yaml", ".agent-shepherd/prompts/a.md", "sub/.agent-shepherd/config.yaml",
              ".agent-shepherd/checks/x.sh", ".beads/config.yaml"],
    "agent_instructions": ["AGENTS.md", "web/AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules",
                           ".cursor/rules/a.mdc", ".github/copilot-instructions.md", ".opencode/agent/build.md",
                           "opencode.json", "agents.md", ".claude/settings.json", ".mcp.json",
                           ".github/instructions/py.md", ".windsurfrules", "CONTEXT.md", "web/CONTEXT.md",
                           "CONVENTIONS.md", "tui.json", ".pi/SYSTEM.md", "AGENTS.override.md", ".goose/x.yaml"],
    "ci": [".github/workflows/test.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", ".travis.yml",
           "azure-pipelines.yml", ".github/CODEOWNERS", ".pre-commit-config.yaml", ".husky/pre-commit", ".ci/run.sh",
           ".lfsconfig"],
    "migrations": ["app/migrations/0001_initial.py", "db/migrate/20200101_x.rb", "alembic/versions/a.py",
                   "src/main/resources/db/V1__init.sql", "prisma/schema.prisma", "api/Migrations/1_Init.cs"],
    "dependencies": ["requirements.txt", "requirements/dev.in", "pyproject.toml", "web/package.json", "go.mod",
                     "go.sum", "Cargo.lock", "pom.xml", "build.gradle.kts", "Gemfile", "composer.json", "src/A.csproj",
                     ".gitmodules"],
    "public_api": ["openapi.yaml", "api/v1/service.proto", "schema.graphql", "types/index.d.ts", "pkg/a.pyi"],
    "deleted_tests": [],
    "secrets": [],
    "size": [],
}  # fmt: skip


@pytest.mark.parametrize(("flag", "path"), [(flag, path) for flag, paths in BY_PATH.items() for path in paths])
@pytest.mark.parametrize("kind", ["created", "modified", "deleted"])
def test_a_path_raises_its_flag_and_no_other(flag: str, path: str, kind: str) -> None:
    file = changed(path, kind=kind, dependencies_alone=True)
    assert raised(file) == [flag]
    assert evidence(flag, file) == [(path, kind, None)]


@pytest.mark.parametrize(
    "path",
    ["src/app.py", "README.md", "docs/CONVENTIONS.md", "docs/context/a.md", "docs/agents-guide.md",
     "src/policies.yaml", "circle.yml.md", "my-agents.md", "ci.md",
     "src/migration_guide.md", "package.jsonx", "requirement.md", "githubworkflows/a.yml", ".github/ISSUE_TEMPLATE.md"],
)  # fmt: skip
def test_other_paths_raise_none(path: str) -> None:
    assert raised(changed(path, "x", "y")) == []


@pytest.mark.parametrize(("flag", "path"), [(flag, paths[0]) for flag, paths in BY_PATH.items() if paths])
def test_moving_a_file_away_or_there_raises_its_flag(flag: str, path: str) -> None:
    assert raised(changed(f"{path} -> elsewhere.txt")) == [flag]
    assert raised(changed(f"elsewhere.txt -> {path}")) == [flag]
    assert evidence(flag, changed(f"{path} -> x.txt")) == [("x.txt", f"renamed from {path}", None)]


@pytest.mark.parametrize("flag", ["agent_instructions", "ci", "migrations", "dependencies", "public_api"])
def test_a_user_adds_globs(flag: str) -> None:
    assert raised(changed("my/own.txt")) == []
    assert raised(changed("my/own.txt"), **{flag: ("my/*.txt",)}) == [flag]
    assert raised(changed("go.mod"), **{flag: ("my/*.txt",)}) == ["dependencies"]


def test_what_always_asks_cannot_be_ignored() -> None:
    for flag, paths in BY_PATH.items():
        for path in paths:
            assert raised(changed(path), ignore=("**",)) == ([flag] if flag in ALWAYS_ASK else [])


def test_what_is_ignored_raises_nothing() -> None:
    files = [
        changed("gen/package.json"), changed("gen/test_a.py", kind="deleted"), changed("gen/a.py", f'k = "{TOKEN}"'),
        changed("gen/b.py", "x\n" * 5000), changed("gen/c.bin", unread="large"), changed("gen/d.py", "", "def x():"),
    ]  # fmt: skip
    assert set(raised(*files)) == {"dependencies", "deleted_tests", "secrets", "size", "public_api", "rules"}
    assert raised(*files, ignore=("gen/**",)) == []
    assert raised(changed("gen/package.json -> package.json"), ignore=("gen/**",)) == ["rules", "dependencies"]
    assert raised(changed("tests/test_a.py -> gen/a.py"), ignore=("gen/**",)) == ["deleted_tests"]


def test_a_submodule_is_a_dependency() -> None:
    assert evidence("dependencies", changed("lib/x", unread="submodule")) == [("lib/x", "submodule", None)]


# --- secrets ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("L11")
def test_a_secret_is_named_by_kind_and_place_and_never_quoted() -> None:
    found = impact_of(diff(changed("a.py", f'x = 1\nkey = "{TOKEN}"')))
    assert [(flag.name, flag.evidence) for flag in found.flags] == [
        ("secrets", (FlagEvidence("a.py", "GitHub token", 2),))
    ]
    assert TOKEN not in repr(found)


def test_only_added_lines_count_and_no_fixtures() -> None:
    assert raised(changed("a.py", "", f'key = "{TOKEN}"')) == []
    assert raised(changed("tests/keys.py", f'key = "{TOKEN}"')) == ["secrets"]
    assert raised(changed("tests/keys.py", f'key = "{TOKEN}"'), fixtures=("tests/keys.py",)) == []


# --- tests --------------------------------------------------------------------------------------------------------

ONE, TWO = "def test_one():\n    assert 1", "def test_two():\n    assert 2"


def test_a_test_file_that_is_deleted() -> None:
    assert evidence("deleted_tests", changed("tests/test_a.py", "", ONE, kind="deleted")) == [
        ("tests/test_a.py", "deleted", None)
    ]
    assert raised(changed("tests/data/a.json", kind="deleted")) == ["deleted_tests"]
    assert raised(changed("src/latest.java", kind="deleted")) == []


def test_a_test_file_whose_tests_moved_is_no_loss() -> None:
    gone = changed("tests/test_a.py", "", f"{ONE}\n{TWO}", kind="deleted")
    assert raised(gone, changed("tests/test_b.py", f"{ONE}\n{TWO}", kind="created")) == []
    assert evidence("deleted_tests", gone, changed("tests/test_b.py", ONE, kind="created")) == [
        ("tests/test_a.py", "deleted", None)
    ]
    assert raised(gone, changed("src/not_run.py", f"{ONE}\n{TWO}", kind="created")) == ["deleted_tests"]


def test_a_test_file_that_is_moved() -> None:
    assert raised(changed("tests/test_a.py -> tests/b/test_a.py")) == []
    assert evidence("deleted_tests", changed("tests/test_a.py -> old/a.py.txt")) == [
        ("tests/test_a.py", "moved to old/a.py.txt, where no tests are looked for", None)
    ]


def test_a_test_that_is_gone() -> None:
    assert evidence("deleted_tests", changed("tests/test_a.py", "x = 1", f"x = 0\n{ONE}")) == [
        ("tests/test_a.py", "test_one is gone", 2)
    ]
    assert raised(changed("tests/test_a.py", f"x = 1\n{ONE}", f"{ONE}\nx = 1")) == []
    assert raised(changed("tests/test_a.py", "", "    assert 1")) == []


def test_a_test_of_one_name_does_not_stand_for_two() -> None:
    files = [changed("tests/test_a.py", "", ONE), changed("tests/test_b.py", "", ONE), changed("tests/test_c.py", ONE)]
    assert len(evidence("deleted_tests", *files)) == 1
    assert raised(*files, changed("tests/test_d.py", ONE)) == []


def test_a_test_that_is_commented_out_is_gone() -> None:
    assert raised(changed("tests/test_a.py", "# def test_one():\n#    assert 1", ONE)) == ["deleted_tests"]


def test_tests_without_a_name_of_their_own_are_counted() -> None:
    one = "@Test\nvoid adds() {"
    assert evidence("deleted_tests", changed("src/test/ATest.java", "", f"{one}\n{one}")) == [
        ("src/test/ATest.java", "2 tests fewer", None)
    ]
    assert raised(changed("src/test/ATest.java", one, one)) == []
    assert raised(changed("src/test/ATest.java", "", one), changed("src/test/BTest.java", one)) == []
    assert evidence("deleted_tests", changed("src/lib.rs", "", "#[test]\nfn adds() {")) == [
        ("src/lib.rs", "one test fewer", None)
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [("tests/test_a.py", "@pytest.mark.skip"), ("a.test.ts", "it.only('x', f)"), ("src/lib.rs", "#[ignore]")],
)
def test_a_test_that_is_left_out(path: str, line: str) -> None:
    assert evidence("deleted_tests", changed(path, f"\n{line}", "")) == [(path, "left out, or expected to fail", 2)]
    assert raised(changed(path, line, line)) == []
    assert raised(changed(path, line, kind="created")) == []
    assert raised(changed("src/a.py", line)) == []


# --- what others may use ------------------------------------------------------------------------------------------


def test_a_declaration_that_is_changed_or_gone() -> None:
    assert evidence("public_api", changed("a.py", "def add(a, b, c):", "x = 1\ndef add(a, b):")) == [
        ("a.py", "add is changed or gone", 2)
    ]
    assert raised(changed("a.py", "", "class Adder:", kind="deleted")) == ["public_api"]
    assert raised(changed("a.go -> b.go", "", "func Add() {")) == ["public_api"]


def test_what_is_new_moved_or_private_changes_nothing_for_others() -> None:
    assert raised(changed("a.py", "def add(a, b):")) == []
    assert raised(changed("a.py", "x\ndef add(a,  b):", "def add(a, b):")) == []
    assert raised(changed("a.py", "def _add(a, b, c):", "def _add(a, b):")) == []
    for path in ("_a.py", "pkg/_private/a.py", "go/internal/a.go", "tests/test_a.py", "tests/support.py"):
        assert raised(changed(path, "", "def add(a, b):\nfunc Add() {")) == []
    assert raised(changed("pkg/__init__.py", "", "def add(a, b):")) == ["public_api"]


def test_two_declarations_are_not_made_good_by_one() -> None:
    two = "    def add(self):\n    def add(self):"
    assert len(evidence("public_api", changed("a.py", "    def add(self):", two))) == 1


# --- size ---------------------------------------------------------------------------------------------------------


def test_a_change_is_large_beyond_its_bounds() -> None:
    few = [changed(f"{number}.txt", "a\nb", "c") for number in range(3)]
    assert raised(*few, max_files=3, max_lines=9) == []
    assert evidence("size", *few, max_files=2) == [("", "3 files, more than 2", None)]
    assert evidence("size", *few, max_lines=8) == [("", "9 lines, more than 8", None)]


def test_lines_of_lock_files_do_not_count() -> None:
    lock = replace(changed("web/package-lock.json"), added=5000)
    assert raised(lock) == ["dependencies"]
    assert raised(replace(changed("a.txt"), removed=2001)) == ["size"]


def test_what_was_not_read_is_said() -> None:
    assert evidence("size", changed("a.txt", unread="large")) == [("a.txt", "too large to be looked through", None)]
    assert raised(changed("a.png", unread="binary")) == []


# --- where flags lead ---------------------------------------------------------------------------------------------


def test_flags_come_the_gravest_first() -> None:
    files = [changed(paths[0]) for paths in reversed(BY_PATH.values()) if paths]
    assert raised(*files) == [flag for flag in FLAGS if BY_PATH[flag]]
    assert set(BY_PATH) == set(FLAGS)
    (flag,) = impact_of(diff(changed("go.mod"), changed("go.sum"))).flags
    assert flag.why == "2 files that name dependencies are changed"


@pytest.mark.parametrize(("flags", "when", "order", "target"), [
    ([], {"ci": "a"}, None, None),
    (["ci"], {}, None, None),
    (["ci"], {"ci": "a"}, None, "a"),
    (["size", "migrations"], {"migrations": "m", "size": "s"}, None, "m"),
    (["size", "migrations"], {"size": "s", "migrations": "m"}, None, "s"),
    (["size", "ci"], {"size": "s", "ci": "a"}, None, "a"),
    (["size", "ci"], {"size": "s", "ci": "a"}, ("size", "ci"), "s"),
    (["size", "ci"], {"size": "s", "ci": "a"}, (), None),
    (["size"], {"ci": "a"}, None, None),
])  # fmt: skip
def test_where_flags_lead(
    flags: list[str], when: dict[str, str], order: tuple[str, ...] | None, target: str | None
) -> None:
    assert route(flags, when, order) == target


def test_who_must_be_asked() -> None:
    assert must_ask(("size", "secrets", "migrations")) == ()
    assert must_ask(("ci", "size", "rules")) == ("rules", "ci")
    assert set(must_ask(FLAGS)) == {"rules", "ci", "agent_instructions"}


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [{"ci": ("/a",)}, {"ci": ("../a",)}, {"max_files": 0}, {"rules": ()}, {"ci": ("",)}])
def test_settings_that_are_none(value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ImpactSettings(**value)


# --- what configuration names, what runs by itself, and links ---


@pytest.mark.parametrize(
    ("path", "flag"),
    [
        (".beads/issues.jsonl", "rules"), (".beads", "rules"), ("sub/.beads/hooks", "rules"),
        (".agent-shepherd", "rules"),
        (".gitattributes", "ci"), ("docs/.gitattributes", "ci"), (".envrc", "ci"), (".vscode/tasks.json", "ci"),
        (".vscode/settings.json", "ci"), (".vscode/launch.json", "ci"), (".vscode", "ci"),
        (".idea/runConfigurations/a.xml", "ci"), (".zed/tasks.json", "ci"), (".zed/settings.json", "ci"),
        (".devcontainer/devcontainer.json", "ci"), (".devcontainer.json", "ci"), (".husky/pre-commit", "ci"),
        (".husky", "ci"), (".github", "ci"), (".github/workflows", "ci"), ("app.code-workspace", "ci"),
        (".opencode", "agent_instructions"), (".github", "agent_instructions"), (".claude", "agent_instructions"),
        (".cursor", "agent_instructions"),
        (".codex", "agent_instructions"), ("sub/.opencode", "agent_instructions"),
    ],
)  # fmt: skip
def test_what_runs_by_itself_is_flagged_as_a_folder_and_as_a_link(path: str, flag: str) -> None:
    assert flag in raised(changed(path))


@pytest.mark.promise("L11")
@pytest.mark.parametrize(
    ("link", "target", "is_raised"),
    [
        ("a", "/etc/passwd", True), ("a", "../other", True), ("sub/a", "../../x", True),
        ("sub/a", "b/../../../x", True), ("a", ".git/hooks", True), ("a", "", True),
        ("a", "~/x", False), ("sub/a", "../b", False), ("a", "b", False), ("a", "./b/../c", False),
    ],
)  # fmt: skip
def test_a_link_that_leaves_the_tree_is_flagged(link: str, target: str, is_raised: bool) -> None:
    file = replace(changed(link, target), link=True)
    found = impact_of(diff(file))
    assert ("rules" in found.raised) == is_raised
    if is_raised:
        assert "a link that leaves the tree" in found.flags[0].evidence[0].what


def test_a_link_whose_target_was_not_read_is_flagged_and_one_that_is_gone_is_not() -> None:
    assert "rules" in raised(ChangedFile("a", "renamed", "b/a", link=True))
    assert raised(ChangedFile("a", "deleted", link=True)) == []


@pytest.mark.promise("L11")
def test_what_configuration_names_is_flagged() -> None:
    notify = Notify(targets=(NotifyTarget(command=("sh", "-c", "./tools/tell.sh --to=ops && bin/more")),))
    setup = (SetupStep(run=("python", "scripts/setup.py", "--file=etc/x.toml")),)
    check = OwnCheckType(type="own.pkg.checks:Mine")
    settings = Settings(
        notify=notify, worker=WorkerSettings(setup=setup), verification=VerificationSettings(types={"mine": check})
    )
    made = {"id": "made", "type": "file_exists", "verify": {"path": "made.py"}}  # what is to be made, and runs nothing
    checks = tuple(TypeAdapter(Check).validate_json(json.dumps(one)) for one in (CHECK, made))
    policy = Policy(phases=(Phase(name="implement", checks=checks),))
    names = named_by(settings, Policies(version=1, policies={"x": policy}))
    named = [
        "tools/tell.sh", "bin/more", "scripts/setup.py", "etc/x.toml", "own/pkg/checks.py", "own/pkg/__init__.py",
        "src/own/pkg/checks.py", "check/run.sh",
    ]  # fmt: skip
    for path in named:
        found = impact_of(diff(changed(path)), settings.impact, names)
        assert "rules" in found.raised, path
        assert "config" in found.flags[0].evidence[0].what
    others = ("tools/other.sh", "own/pkg/others.py", "x/tools/tell.sh", "README.md", "made.py")
    assert not any("rules" in impact_of(diff(changed(path)), settings.impact, names).raised for path in others)


# --- what decides how checks run ---


@pytest.mark.parametrize(
    "path", ["conftest.py", "a/conftest.py", "Makefile", "package.json", "pyproject.toml", "node_modules/.bin/jest",
             "pytest.py", "json/__init__.py", "json.pyc", "pytest/__init__.pyc", "pytest.abi3.so", "pygments.py",
             "web/vitest.config.ts", "sitecustomize.py", "mypy.ini", ".yarn/releases/yarn-4.cjs", "a/eslint.config.js",
             "gradle/wrapper/gradle-wrapper.jar"],
)  # fmt: skip
def test_what_decides_how_checks_run_asks_a_person(path: str) -> None:
    assert raised(changed(path, "x"))[0] == "rules"
    assert evidence("rules", changed(path, "x")) == [(path, "modified; it decides how checks run", None)]
    assert "rules" not in raised(changed(path, "x", dependencies_alone=True))


@pytest.mark.parametrize("path", ["src/json.py", "test/__init__.py", "tests/test_x.py", "docs/Makefile.md"])
def test_ordinary_files_decide_nothing(path: str) -> None:
    assert "rules" not in raised(changed(path, "x"))


PACKAGE = {"name": "a", "version": "1.0.0", "scripts": {"test": "jest"}, "devDependencies": {"jest": "^29.0.0"}}
POETRY = '[tool.poetry.group.dev.dependencies]\npytest = {version = "^8", extras = ["x"]}\n'
PROJECT = '[project]\nname = "a"\ndependencies = ["httpx>=0.27"]\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "alone"),
    [
        ("package.json", PACKAGE, PACKAGE | {"version": "1.1.0", "devDependencies": {"b": "~1.2"}}, True),
        ("package.json", PACKAGE, PACKAGE | {"dependencies": {"c": "1.x || >=2.5.0"}}, True),
        ("package.json", PACKAGE, PACKAGE | {"scripts": {"test": "true"}}, False),
        ("package.json", PACKAGE, PACKAGE | {"jest": {"rootDir": "1.0"}}, False),
        ("package.json", PACKAGE, PACKAGE | {"devDependencies": {"jest": "file:./jest"}}, False),
        ("package.json", PACKAGE, PACKAGE | {"devDependencies": {"jest": "npm:other@1"}}, False),
        ("package.json", PACKAGE, [], False),
        ("web/pyproject.toml", PROJECT, PROJECT.replace('"]\n[', '", "rich==13"]\n['), True),
        ("pyproject.toml", PROJECT, PROJECT.replace("httpx>=0.27", "httpx @ file:///x"), False),
        ("pyproject.toml", PROJECT, PROJECT.replace("tests", "1.0"), False),
        ("pyproject.toml", POETRY, POETRY.replace("^8", "^9"), True),
        ("pyproject.toml", POETRY, POETRY.replace('version = "^8"', 'path = "pytest"'), False),
        ("pyproject.toml", POETRY, "[tool", False),
        ("Cargo.toml", '[dependencies]\na = "1"\n', '[dependencies]\na = "1"\nb = {version = "2"}\n', True),
        ("Cargo.toml", '[dependencies]\na = "1"\n', '[dependencies]\na = "1"\n[[test]]\nharness = false\n', False),
    ],
)  # fmt: skip
def test_plain_dependencies_of_a_manifest_decide_nothing(path: str, before: Any, after: Any, alone: bool) -> None:
    texts = [one.encode() if isinstance(one, str) else json.dumps(one).encode() for one in (before, after)]
    assert is_manifest(path)
    assert changes_dependencies_alone(path, *texts) is alone
