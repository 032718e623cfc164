"""What `verify`, `checks` and `when_flags` of a phase may say, and what is told of them with file, line and key."""

from pathlib import Path

import pytest

from ashep.config import examine, load, settings_in, write_starter
from ashep.config.findings import FindingFactory
from ashep.config.policy_checks import warnings
from ashep.config.presets import PRESETS
from ashep.core.policy.policies import Verify

PHASE = """\
version: 1
policies:
  p:
    phases:
      - name: implement
        {0}
      - {{name: review, access: read}}
"""
FILE = "{id: a, type: file_exists, verify: {path: x}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_starter(tmp_path)
    return tmp_path


def said(folder: Path, text: str) -> list[str]:
    (folder / "policies.yaml").write_text(text)
    return [str(finding).replace(f"{folder}/", "") for finding in examine(folder).findings]


WRONG = [
    ("verify: 3", 6, "verify", "expected true, false or {max_attempts: <number>}, found the number 3"),
    ("verify: []", 6, "verify", "expected true, false or {max_attempts: <number>}, found an empty list"),
    ("verify: {max_attempts: 0}", 6, "verify.max_attempts", "expected at least 1, found the number 0"),
    ("verify: {max_attempts: '3'}", 6, "verify.max_attempts", "expected a whole number, found '3'"),
    ("verify: {attempts: 3}", 6, "verify.attempts", "unknown key; did you mean max_attempts?"),
    ("checks: {}", 6, "checks", "expected a list, found an empty mapping"),
    ("checks: [3]", 6, "checks[0]", "expected a check ({id, type, description, verify}), found the number 3"),
    ("checks: [[]]", 6, "checks[0]", "expected a check ({id, type, description, verify}), found an empty list"),
    (
        "checks:\n          - {id: a, type: test_pass, verify: {command: make && true}}", 7, "checks[0].verify.command",
        "expected a command without `&&`, which only a shell reads, and none does: quote it, or make two checks, found "
        "'make && true'",
    ),
    ("checks: [{id: a, type: code_pattern, verify: {glob: '*', pattern: '('}}]", 6, "checks[0].verify.pattern",
     "not a regular expression: missing ), unterminated subpattern at position 0"),
    ("checks: [{id: a, type: file_exists, verify: {path: x, contain: []}}]", 6, "checks[0].verify.contain",
     "unknown key; did you mean contains?"),
    (f"checks:\n          - {FILE}\n          - {FILE}", 8, "checks[1].id",
     "another check is named 'a', on line 7; give each its own id"),
    (
        "checks: [{id: a, type: file_exist}]", 6, "checks[0].type",
        "unknown type 'file_exist'; did you mean file_exists?; a type of your own is registered by "
        "`verification.types` in config.yaml",
    ),
    ("when_flags: [ci]", 6, "when_flags", "expected a mapping, found a list"),
    ("when_flags: {cii: review}", 6, "when_flags.cii", "unknown key; did you mean ci?"),
    ("when_flags: {ci: 3}", 6, "when_flags.ci", "expected a text, found the number 3"),
    ("when_flags: {ci: reviw}", 6, "when_flags.ci", "this policy has no phase reviw; did you mean review?"),
    ("when_flags: {ci: close}", 6, "when_flags.ci",
     "a change that is flagged cannot go around what follows; name a phase, one that asks a person, say"),
    ("landing: merge", 6, "landing", "not yet supported by this version; remove it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "message"), WRONG, ids=[text[:40] for text, *_ in WRONG])
def test_what_a_phase_may_not_say(folder: Path, text: str, line: int, key: str, message: str) -> None:
    assert said(folder, PHASE.format(text)) == [f"policies.yaml:{line}: policies.p.phases[0].{key}: {message}"]


@pytest.mark.parametrize("text", ["verify: true", f"checks: [{FILE}]", "when_flags: {ci: review}"])
def test_of_verdicts_only_those_that_must_be_passed_are_looked_into(folder: Path, text: str) -> None:
    key = text.partition(":")[0]
    judge = f"verdicts: [a]\n        next: {{a: review}}\n        {text}"
    assert said(folder, PHASE.format(judge)) == [
        f"policies.yaml:8: policies.p.phases[0].{key}: of verdicts only those are looked into that `must_pass` "
        "names; name those that say the work holds"
    ]
    assert said(folder, PHASE.format(judge.replace("next:", "must_pass: [a]\n        next:"))) == []
    person = f"version: 1\npolicies: {{p: [implement, {{name: review, human: {{}}, {text}}}]}}\n"
    assert said(folder, person) == [
        f"policies.yaml:2: policies.p[1].{key}: has no effect in a phase with `human`; remove it"
    ]


@pytest.mark.parametrize("text", ["verify: true", "checks: []", "when_flags: {}", "landing: {mode: branch}"])
def test_they_belong_into_a_phase(folder: Path, text: str) -> None:
    key = text.partition(":")[0]
    assert said(folder, f"version: 1\npolicies:\n  p:\n    {text}\n    phases: [implement]\n") == [
        f"policies.yaml:4: policies.p.{key}: not yet supported by this version; remove it"
    ]


def test_nothing_is_verified_before_anything_is_written(folder: Path) -> None:
    text = "version: 1\npolicies:\n  p:\n    phases: [{name: plan, verify: true}, {name: implement, verify: true}]\n"
    assert said(folder, text) == [
        "policies.yaml:4: policies.p.phases[0].verify: nothing is written before this phase succeeds: its work can "
        "never hold; take a later phase"
    ]
    assert [one.severity for one in examine(folder).findings] == ["warning"]


def test_types_of_your_own_may_be_used_once_they_are_registered(folder: Path) -> None:
    text = PHASE.format("checks: [{id: a, type: mine, verify: {x: 1}}]")
    assert "unknown type 'mine'" in "".join(said(folder, text))
    (folder / "config.yaml").write_text("version: 1\nverification: {types: {mine: {type: 'pkg.mod:Mine'}}}\n")
    assert said(folder, text) == []


def test_they_are_read_extended_and_written_over(folder: Path) -> None:
    """A key that is given replaces the other's whole, and a mistake in a file of its own is told there."""
    lines = "phases: [{name: implement, verify: {max_attempts: 2}, when_flags: {ci: human_review}}]"
    (folder / "policies").mkdir()
    (folder / "policies" / "mine.yaml").write_text(f"extends: preset:quick\nmatch: null\n{lines}\n")
    policy = load(folder).policies.policies["mine"]
    assert policy.phases[0].verify == Verify(max_attempts=2)
    assert policy.phases[0].when_flags == {"ci": "human_review"}
    (folder / "policies" / "mine.yaml").write_text("extends: preset:quick\nmatch: null\nremove: []\n")
    assert load(folder).policies.policies["mine"].phases[0].verify == Verify()
    gone = f"extends: preset:quick\nmatch: null\nremove: [human_review]\n{lines}\n"
    (folder / "policies" / "mine.yaml").write_text(gone)
    assert [str(one).replace(f"{folder}/", "") for one in examine(folder).findings][-1] == (
        "policies/mine.yaml:4: phases[0].when_flags.ci: this policy has no phase human_review; expected one of "
        "implement"
    )
    (folder / "policies" / "mine.yaml").write_text("phases:\n  - name: implement\n    checks: [3]\n")
    assert [str(one).replace(f"{folder}/", "") for one in examine(folder).findings] == [
        "policies/mine.yaml:3: phases[0].checks[0]: expected a check ({id, type, description, verify}), found the "
        "number 3"
    ]


def test_deep_and_long_lists_are_refused_in_one_line(folder: Path) -> None:
    deep = PHASE.format(f"checks: {'[' * 5000}{']' * 5000}")
    (found,) = said(folder, deep)
    assert found.startswith("policies.yaml:6: policies.p.phases[0].checks[0]")
    assert found.endswith(": nested more than 32 deep")
    many = ", ".join(f"{{id: a{n}, type: manual, verify: {{question: q}}}}" for n in range(101))
    assert said(folder, PHASE.format(f"checks: [{many}]")) == [
        "policies.yaml:6: policies.p.phases[0].checks: expected at most 100 entries, found a list"
    ]


def test_who_has_set_the_shared_work_tree_is_told_that_nothing_is_looked_into(folder: Path) -> None:
    (folder / "policies.yaml").write_text(PHASE.format("verify: true\n        when_flags: {ci: review}"))

    def told() -> list[tuple[str, str, str | None]]:
        loaded = load(folder)
        found = warnings(loaded.policies, loaded.agents, loaded.settings, FindingFactory({}))
        return [(one.code, one.severity, one.key) for one in found if one.code == "shared-work-tree"]

    (folder / "config.yaml").write_text("version: 1\n")
    assert told() == []
    (folder / "config.yaml").write_text("version: 1\nworker: {workspace: worktree}\n")
    assert told() == []
    for shared in ("workspace: shared", "lock_work_tree: true"):
        (folder / "config.yaml").write_text(f"version: 1\nworker: {{{shared}}}\n")
        keys = ("verify", "when_flags")
        assert told() == [("shared-work-tree", "warning", f"policies.p.phases[0].{key}") for key in keys]


def test_agents_of_claude_bring_their_runner(tmp_path: Path) -> None:
    folder = tmp_path / ".agent-shepherd"
    write_starter(folder)
    agents = (folder / "agents.yaml").read_text()
    (folder / "agents.yaml").write_text(f"{agents}  - {{id: c, capabilities: [x], runner: {{type: claude}}}}\n")
    assert [*load(folder).settings.runners.extra] == ["claude"]
    assert [*settings_in(folder).runners.extra] == ["claude"]
    (folder / "config.yaml").write_text("version: 1\nrunners: {claude: {max_runs: 2}}\n")
    assert load(folder).settings.runners.max_runs("claude") == 2
    (folder / "agents.yaml").write_text(agents)
    (folder / "config.yaml").unlink()
    assert [*load(folder).settings.runners.extra] == []


@pytest.mark.parametrize("preset", PRESETS)
def test_the_files_that_init_writes_bring_no_warning(tmp_path: Path, preset: str) -> None:
    write_starter(tmp_path / ".agent-shepherd", preset)
    loaded = load(tmp_path / ".agent-shepherd")
    places = FindingFactory(loaded.sources)
    assert [*loaded.warnings, *warnings(loaded.policies, loaded.agents, loaded.settings, places)] == []
