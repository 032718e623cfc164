"""Policies in several files, and policies that extend others: what is read, and where a mistake is said to be."""

from pathlib import Path

import jsonschema
import pytest

from ashep.config import ConfigErrors, examine, load, read, write_starter, yaml_tree
from ashep.config.presets import PRESETS
from ashep.core.policy.policies import Phase, Policies, Policy
from tools import schemas

pytestmark = pytest.mark.promise("D1")

AGENTS = """\
version: 1
agents:
  - {id: all, capabilities: [implement, review, arbitrate, plan, test, doc, audit], read_write: write}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_starter(tmp_path)
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "policies").mkdir()
    return tmp_path


def said(folder: Path) -> list[str]:
    return [str(finding).replace(f"{folder}/", "") for finding in examine(folder).findings]


def policies(text: str) -> dict[str, Policy]:
    return read(Policies, text, Path("policies.yaml")).policies


def phases(policy: Policy) -> dict[str, Phase]:
    return {phase.name: phase for phase in policy.phases}


def assert_begins(found: list[str], expected: list[str]) -> None:
    """Each line begins so, and there are no others."""
    assert [line[: len(start)] for line, start in zip(found, expected, strict=False)] == expected, found
    assert len(found) == len(expected), found


# --- several files ------------------------------------------------------------------------------------------------


def test_policies_of_the_folder_come_behind_in_the_order_of_their_files(folder: Path) -> None:
    (folder / "policies" / "b.yaml").write_text("match: {types: [bug]}\nphases: [implement]\n")
    (folder / "policies" / "a.yaml").write_text(
        "version: 1\npolicies: {zz: {match: null, phases: [doc]}, b2: [plan]}\n"
    )
    (folder / "policies" / "c.yaml").write_text("[implement, review]\n")
    (folder / "policies" / ".c.yaml.swp").write_text("{")
    (folder / "policies" / "README").write_text("{")
    found = load(folder).policies
    assert list(found.policies) == ["standard", "quick", "zz", "b2", "b", "c"]
    assert found.default_policy == "standard"
    assert [phase.name for phase in found.policies["c"].phases] == ["implement", "review"]
    match = found.policies["b"].match
    assert match is not None
    assert match.types == ("bug",)


def test_the_text_of_all_files_is_kept(folder: Path) -> None:
    (folder / "policies" / "b.yaml").write_text("match: {types: [bug]}\nphases: [implement] # mine\n")
    before = load(folder).sources["policies"]
    assert before.text.startswith((folder / "policies.yaml").read_text())
    assert before.text.endswith("\n# --- b.yaml ---\nmatch: {types: [bug]}\nphases: [implement] # mine\n")
    (folder / "policies" / "b.yaml").write_text("match: {types: [bug]}\nphases: [implement] # yours\n")
    assert load(folder).sources["policies"].sha256 != before.sha256


@pytest.mark.parametrize("text", [None, "version: 1\n", "version: 1\npolicies:\n"])
def test_policies_yaml_need_hold_none_where_the_folder_does(folder: Path, text: str | None) -> None:
    (folder / "policies.yaml").unlink()
    if text is not None:
        (folder / "policies.yaml").write_text(text)
    assert said(folder) != []
    (folder / "policies" / "only.yaml").write_text("[implement]\n")
    assert list(load(folder).policies.policies) == ["only"]


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("b.yaml", "policies:\n  quick: [plan]\n",
     ["policies/b.yaml:2: policies.quick: there is a policy quick already, in policies.yaml:65; rename"]),
    ("standard.yaml", "[plan]\n",
     ["policies/standard.yaml:1: there is a policy standard already, in policies.yaml:11; rename"]),
    ("b.yaml", "default_policy: b\npolicies:\n  b: {match: null, phases: [plan]}\n",
     ["policies/b.yaml:1: default_policy: belongs into policies.yaml; move it there"]),
    ("b.yaml", "agents: b\npolicies:\n  b: {match: null, phases: [plan]}\n",
     ["policies/b.yaml:1: agents: unknown key; expected one of version, policies"]),
    ("b.yaml", "policies: [b]\n", ["policies/b.yaml:1: policies: expected a mapping of policies"]),
    ("b.yaml", "word\n", ["policies/b.yaml:1: expected a policy, or a mapping with `policies`"]),
    ("b.yaml", "", ["policies/b.yaml:1: the file is empty; `ashep init` writes a complete one"]),
    ("b.yaml", "version: 2\nphases: [plan]\n", ["policies/b.yaml:1: version: expected 1, the only version"]),
    ("b b.yaml", "[plan]\n", ["policies/b b.yaml: the file's name is the policy's: a letter, then"]),
    ("b.yml", "[plan]\n", ["policies/b.yml: only files that end in .yaml are read; rename it"]),
    (
        "b.yaml", "match: null\nphases:\n  - name: plan\n    timeot: 5m\n  - name: doc\n    timeout: 5\n",
        [
            "policies/b.yaml:4: phases[0].timeot: unknown key; did you mean timeout?",
            "policies/b.yaml:6: phases[1].timeout: expected a duration such as",
        ],
    ),
    (
        "b.yaml", "match: null\nphases:\n  - name: plan\n    name: plan\n    true: 1\n",
        [
            "policies/b.yaml:4: phases[0].name: duplicate key, it stands on line 3 already; keep one of them",
            'policies/b.yaml:5: phases[0].true: keys are words; write it in quotes: "true"',
        ],
    ),
    ("b.yaml", "match: null\nphases:\n  - name: plan\n    next: {success: dok}\n  - doc\n",
     ["policies/b.yaml:4: phases[0].next.success: this policy has no phase dok; did you mean doc?"]),
    ("b.yaml", "policies:\n  b:\n    match: null\n    phases:\n      - doc\n      - plan\n      - knit\n",
     ["policies/b.yaml:7: policies.b.phases[2]: no agent in agents.yaml has the capability knit"]),
])  # fmt: skip
def test_a_mistake_in_the_folder_is_told_with_its_file(folder: Path, name: str, text: str, expected: list[str]) -> None:
    (folder / "policies" / name).write_text(text)
    assert_begins(said(folder), expected)
    with pytest.raises(ConfigErrors):
        load(folder)


def test_mistakes_of_all_files_are_told_file_by_file(folder: Path) -> None:
    (folder / "policies.yaml").write_text("version: 1\nx: 1\n")
    (folder / "policies" / "a.yaml").write_text("y: 1\nphases: [plan]\n")
    (folder / "policies" / "b.yaml").write_text("{")
    (folder / "policies" / "c.yaml").write_text("phases: [plan]\nz: 1\n")
    places = [line.split(": ")[0] for line in said(folder)]
    assert places == ["policies/b.yaml:1", "policies.yaml:2", "policies/a.yaml:1", "policies/c.yaml:2"]


def test_a_folder_that_is_a_file_is_told(folder: Path) -> None:
    (folder / "policies").rmdir()
    (folder / "policies").write_text("")
    assert said(folder) == ["policies: cannot be read: Not a directory"]


def test_a_draft_may_be_one_policy_and_extend_those_of_the_project(folder: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.yaml"
    draft.write_text("extends: standard\nphases:\n  - {name: review, max_vists: 2}\n")
    assert [str(finding) for finding in examine(folder, draft).findings] == [
        f"{draft}:3: phases[0].max_vists: unknown key; did you mean max_visits?"
    ]
    draft.write_text("extends: standard\nphases:\n  - {name: review, max_visits: 2}\n")
    assert examine(folder, draft).findings == []
    draft.write_text("version: 1\npolicies:\n  x: {extends: nobody}\n")
    assert "there is no policy nobody; expected one of standard, quick, preset:standard," in str(
        examine(folder, draft).findings[0]
    )


# --- extends ------------------------------------------------------------------------------------------------------

BASE = """\
version: 1
policies:
  base:
    description: the base
    limits: {max_runs: 7, max_depth: 2}
    phases:
      - {name: implement, timeout: 1h, max_visits: 2, next: {success: review, failed: ask}}
      - name: review
        verdicts: [approve, needs_changes]
        next: {approve: close, needs_changes: implement}
      - {name: ask, human: {ask: What now, approved: close, changes_requested: implement}}
"""


def test_each_key_that_is_given_replaces_the_others_and_phases_go_by_their_names() -> None:
    more = """\
  careful:
    extends: base
    match: {labels: [careful]}
    limits: {max_runs: 9}
    phases:
      - audit
      - {name: implement, max_visits: 3}
      - review
"""
    found = policies(BASE + more)
    base, careful = found["base"], found["careful"]
    assert (careful.extends, careful.remove) == (None, ())
    assert careful.description == "the base"
    assert (careful.limits.max_runs, careful.limits.max_depth) == (9, 1)
    assert base.match is not None
    assert careful.match is not None
    assert (base.match.labels, careful.match.labels) == ((), ("careful",))
    assert list(phases(careful)) == ["implement", "review", "ask", "audit"]
    assert phases(careful)["implement"] == phases(base)["implement"].model_copy(update={"max_visits": 3})
    assert phases(careful)["review"] == phases(base)["review"]


def test_phases_are_left_out_and_one_may_take_the_place_of_another() -> None:
    more = """\
  short:
    extends: base
    remove: [ask, review]
    phases:
      - {name: implement, next: {success: review}}
      - {name: review, human: {ask: Good, approved: close, changes_requested: implement}}
"""
    short = policies(BASE + more)["short"]
    assert list(phases(short)) == ["implement", "review"]
    assert phases(short)["review"].verdicts == ()
    assert dict(phases(short)["implement"].next) == {"success": "review"}


def test_a_chain_is_followed_in_any_order_and_over_files(folder: Path) -> None:
    (folder / "policies" / "c.yaml").write_text("extends: b\nmatch: {labels: [c]}\nlimits: {max_runs: 3}\n")
    (folder / "policies" / "b.yaml").write_text(
        "extends: standard\nmatch: {labels: [b]}\nphases: [{name: review, max_visits: 9}]\n"
    )
    found = load(folder).policies.policies
    assert found["c"].limits.max_runs == 3
    assert phases(found["c"])["review"].max_visits == 9
    assert found["c"].phases == found["b"].phases
    assert found["standard"].limits.max_runs == 12


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_can_be_extended(tmp_path: Path, name: str) -> None:
    write_starter(tmp_path, name)
    shipped = load(tmp_path).policies.policies[name]
    text = f"version: 1\npolicies: {{mine: {{extends: 'preset:{name}', description: mine}}}}\n"
    mine = policies(text)["mine"]
    assert mine == shipped.model_copy(update={"description": "mine"})
    jsonschema.validate(yaml_tree.read(text)[0].plain(), schemas.schema("policies"))


@pytest.mark.parametrize(("more", "expected"), [
    ("x: {extends: bas}", ["12: policies.x.extends: there is no policy bas; did you mean base?"]),
    ("x: {extends: 'preset:planed'}",
     ["12: policies.x.extends: there is no policy preset:planed; did you mean preset:planned"]),
    ("x: {extends: x}", ["12: policies.x.extends: x extends x; take one of them out"]),
    ("x: {extends: y}\n  y: {extends: z}\n  z: {extends: x}\n  w: {extends: y}",
     ["14: policies.z.extends: x extends y extends z extends x; take one of them out"]),
    ("x: {extends: base, remove: [revew]}",
     ["12: policies.x.remove[0]: base has no phase revew; did you mean review?"]),
    ("x: {extends: base, remove: review}", ["12: policies.x.remove: expected a list of phases"]),
    ("x: {extends: 5}", ["12: policies.x.extends: expected the name of a policy, found the number 5"]),
    ("x: {extends: base, phases: implement}", ["12: policies.x.phases: expected a list, found 'implement'"]),
    ("x:\n    extends: base\n    phases: [{name: review, timeot: 5m}]",
     ["14: policies.x.phases[0].timeot: unknown key; did you mean timeout?"]),
    ("x: {extends: base, match: null}", []),
])  # fmt: skip
def test_a_mistake_is_told_where_it_was_written(more: str, expected: list[str]) -> None:
    try:
        policies(f"{BASE}  {more}\n")
    except ConfigErrors as errors:
        found = [str(error).removeprefix("policies.yaml:") for error in errors.errors]
        assert_begins(found, expected)
    else:
        assert expected == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (  # what is inherited stands where `extends` does
            "x:\n    match: null\n    extends: base\n    remove: [review]",
            ["14: policies.x.extends[base].phases[0].next.success: this policy has no phase review; expected one of"],
        ),
        (
            "x:\n    match: null\n    extends: base\n    phases:\n      - name: review\n        verdicts: [approve,oh]",
            [
                "17: policies.x.phases[0].verdicts[1]: the verdict oh leads nowhere; give it an edge in `next`",
                "14: policies.x.extends[base].phases[1].next.needs_changes: neither a verdict of this phase nor",
            ],
        ),
        (
            "x: {match: null, extends: base, phases: [{name: ask, timeout: 5m}, {name: ask}]}",
            [
                "12: policies.x.phases[1].name: there is a phase ask already; rename one of them",
                "12: policies.x.phases[0].timeout: has no effect in a phase with `human`; remove it",
                "12: policies.x.phases[1].name: no agent in agents.yaml has the capability ask",
            ],
        ),
        (
            "x: {match: null, remove: [review], phases: [review]}",
            ["12: policies.x.remove: has no effect without `extends`; remove it"],
        ),
        ("x: {extends: base}", ["12: policies.x.match: base comes first and matches the same; give this one another"]),
    ],
)
def test_a_policy_that_does_not_hang_together_is_told_where_it_was_written(
    folder: Path, more: str, expected: list[str]
) -> None:
    (folder / "policies.yaml").write_text(f"{BASE}  {more}\n")
    assert_begins([line.removeprefix("policies.yaml:") for line in said(folder)], expected)


def test_a_policy_of_which_another_claims_all_is_told(folder: Path) -> None:
    (folder / "policies" / "b.yaml").write_text("extends: standard\n")
    assert said(folder) == [
        "policies/b.yaml:1: extends[standard].match: standard comes first and matches the same; give this one another"
        " `match`, or `match: null`"
    ]
    assert [finding.severity for finding in examine(folder).findings] == ["warning"]
    (folder / "policies" / "b.yaml").write_text("extends: standard\nmatch: {title: 'docs: *'}\n")
    assert said(folder) == []
