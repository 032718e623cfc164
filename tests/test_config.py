"""What `ashep.config` says about the user's files: the exact line, line number and key of every kind of mistake."""

import json
import os
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ashep.config import ConfigErrors, Finding, check, examine, load, read, write_starter, yaml_tree
from ashep.config.error_messages import NOT_YET
from ashep.config.starter import FILES, starter
from ashep.core.policy import agents as policy_agents
from ashep.core.policy import policies as policy_policies
from ashep.core.policy import settings as model
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import format_duration, parse_duration
from ashep.core.policy.policies import Policies, ReuseFrom
from ashep.core.policy.settings import Settings
from ashep.errors import ConfigError, UsageError

ROOT = Path(__file__).parent.parent

PHASE = """\
version: 1
policies:
  p:
    phases:
      - name: implement
        """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_starter(tmp_path)
    return tmp_path


def findings(folder: Path, text: str | bytes, name: str = "policies.yaml") -> list[Finding]:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return examine(folder).findings


def said(folder: Path, text: str | bytes, name: str = "policies.yaml") -> list[str]:
    return [str(finding).replace(f"{folder}/", "") for finding in findings(folder, text, name)]


# --- the starter files --------------------------------------------------------------------------------------------


def test_starter_files_load_without_a_warning(folder: Path) -> None:
    configuration = load(folder)
    assert configuration.warnings == ()
    assert configuration.policies.default_policy == "standard"
    assert [phase.name for phase in configuration.policies.policies["standard"].phases] == [
        "implement", "review", "arbitrate", "human_review",
    ]  # fmt: skip


def test_starter_settings_are_the_defaults() -> None:
    assert read(Settings, starter("config.yaml"), Path("config.yaml")) == Settings()


@pytest.mark.parametrize("name", FILES)
def test_the_repository_uses_the_starter_files(name: str) -> None:
    assert (ROOT / ".agent-shepherd" / name).read_text() == starter(name)


@pytest.mark.promise("L6")
def test_starter_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / ".agent-shepherd"
    assert [file.name for file in write_starter(folder)] == [*FILES, ".gitignore"]
    assert (folder / ".gitignore").read_text() == "runs.jsonl\nstate/\n"
    (folder / "agents.yaml").write_text("mine")
    (folder / "config.yaml").unlink()
    with pytest.raises(UsageError, match=r"policies.yaml: is there already; nothing was written"):
        write_starter(folder)
    assert not (folder / "config.yaml").exists()
    assert (folder / "agents.yaml").read_text() == "mine"
    assert [file.name for file in write_starter(folder, force=True)] == list(FILES)
    assert (folder / "agents.yaml").read_text() == starter("agents.yaml")
    assert sorted(file.name for file in folder.iterdir()) == sorted([*FILES, ".gitignore"])


def test_starter_adds_to_a_gitignore(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\nstate/")
    write_starter(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine\nstate/\nruns.jsonl\n"


def test_starter_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / ".agents.yaml.new").mkdir()  # the last draft cannot be opened
    with pytest.raises(UsageError, match="cannot be written"):
        write_starter(tmp_path)
    assert not any((tmp_path / name).exists() for name in FILES)


# --- files --------------------------------------------------------------------------------------------------------


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/policies.yaml: there is no such file; `ashep init` writes one (and 1 more)"
    )
    assert [error.file for error in caught.value.errors] == [f"{tmp_path}/policies.yaml", f"{tmp_path}/agents.yaml"]
    assert caught.value.exit_code == 2


def test_missing_config_means_the_defaults(folder: Path) -> None:
    (folder / "config.yaml").unlink()
    configuration = load(folder)
    assert configuration.settings == Settings()
    assert configuration.sources["config"].text == ""


def test_unreadable_files(folder: Path) -> None:
    (folder / "policies.yaml").unlink()
    (folder / "policies.yaml").mkdir()
    assert str(examine(folder).findings[0]) == f"{folder}/policies.yaml: cannot be read: Is a directory"
    (folder / "policies.yaml").rmdir()
    os.mkfifo(folder / "policies.yaml")
    assert str(examine(folder).findings[0]) == f"{folder}/policies.yaml: not a file"


def test_text_and_hash_are_kept(folder: Path) -> None:
    text = starter("agents.yaml")
    (folder / "agents.yaml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    source = load(folder).sources["agents"]
    assert (source.text, source.sha256) == (text, load(ROOT / ".agent-shepherd").sources["agents"].sha256)


def test_a_draft_is_checked_against_the_registry(folder: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.yaml"
    draft.write_text("version: 1\npolicies: {p: [browsertest]}\n")
    assert [(finding.code, finding.file) for finding in examine(folder, draft).findings] == [("no-agent", str(draft))]


def test_problems_of_all_files_are_collected(folder: Path) -> None:
    (folder / "config.yaml").write_text("version: 1\nworkr: {}\n")
    (folder / "policies.yaml").write_text("version: 1\npolicies: {p: [implement]}\nx: 1\ny: 2\n")
    with pytest.raises(ConfigErrors) as caught:
        load(folder)
    assert str(caught.value) == f"{folder}/config.yaml:2: workr: unknown key; did you mean worker? (and 2 more)"
    assert [(error.line, error.key) for error in caught.value.errors] == [(2, "workr"), (3, "x"), (4, "y")]


# --- "Shown by": each mistake is one clear line -------------------------------------------------------------------

ONE_LINE = [
    ("timout: 5m", ".timout: unknown key; did you mean timeout?"),
    ("timeout: 5", ".timeout: expected a duration such as 500ms, 30s, 5m, 6h or 7d, found the number 5"),
    ("timeout: 0s", ".timeout: expected more than zero, found '0s'"),
    ("timeout: 2000d", ".timeout: expected a duration of at most 1000d, found '2000d'"),
    ("max_visits: yes", ".max_visits: expected a whole number, found 'yes'"),
    ('max_visits: "4"', ".max_visits: expected a whole number, found '4'"),
    ("max_visits: 010", ".max_visits: expected a whole number, found '010'"),
    ("max_visits: 1:30", ".max_visits: expected a whole number, found '1:30'"),
    ("max_visits: 0", ".max_visits: expected at least 1, found the number 0"),
    ("capabilities: implement", ".capabilities: expected a list, found 'implement'"),
    ("access: on", ".access: expected read or write, found 'on'"),
    ("session: on", ".session: expected new or reuse or {reuse_from: <phase>}, found 'on'"),
    ("session: {reuse_from: 3}", ".session.reuse_from: expected a text, found the number 3"),
    ("session: {}", ".session.reuse_from: this key is missing; add it"),
    ("tags: [a b]", ".tags[0]: expected a name: a letter, then letters, digits, _ or - (64 at most), found 'a b'"),
    ("next: {success: off}", ".next.success: this policy has no phase off; expected one of implement, close"),
    ("next: {success: implemnt}", ".next.success: this policy has no phase implemnt; did you mean implement?"),
    ("next: {success: true}", ".next.success: expected a text, found true"),
    ("next: [a]", ".next: expected a mapping, found a list"),
    ("name: x", ".name: duplicate key, it stands on line 5 already; keep one of them"),
    ("tags: &a [x]", ".tags: an anchor (&a) is not allowed; write the value out"),
    ("tags: *a", ".tags: an alias (*a) is not allowed; write the value out"),
    ("tags: !!python/object:os.system [x]", ".tags: a tag (!!python/object:os.system) is not allowed; leave it out"),
    ("<<: {tags: [x]}", ": a merge key (<<) is not allowed; write the values out"),
    ("? [a]\n        : 1", ": a mapping or list cannot be a key; keys are words"),
    ("next: {1: implement}", ".next.'1': keys are words; write it in quotes: \"1\""),
    ("\ttimeout: 5m", ": a tab stands where only spaces may; indent with spaces"),
    ("timeout:\t5m", ": a tab stands where only spaces may; indent with spaces"),
    ("tags: [a", ".tags: not valid YAML: while parsing a flow sequence: expected ',' or ']', but got '<stream end>'"),
    ("capabilities: [fly]", ".capabilities: no agent in agents.yaml has the capability fly; expected one of "
     "implement, code, debug, test, doc, review, arbitrate, plan, analyze, extract"),
    ("tags: []\n        capabilities: [reveiw]",
     ".capabilities: no agent in agents.yaml has the capability reveiw; did you mean review?"),
    ("takeover: {action: stop}", ".takeover.action: expected pause, review or resume, found 'stop'"),
    ("retry: {change_agent: true}", ".retry.change_agent: expected next or different_provider, found true"),
]  # fmt: skip


@pytest.mark.promise("F1")
@pytest.mark.parametrize(("text", "message"), ONE_LINE, ids=[text for text, _ in ONE_LINE])
def test_a_mistake_is_one_line(folder: Path, text: str, message: str) -> None:
    line = 7 if "stream end" in message or "tags: []" in text else 6
    assert said(folder, f"{PHASE}{text}\n") == [f"policies.yaml:{line}: policies.p.phases[0]{message}"]
    with pytest.raises(ConfigErrors) as caught:
        load(folder)
    error = caught.value
    assert (error.exit_code, error.line, len(error.errors)) == (2, line, 1)
    assert error.key is not None
    assert error.key.startswith("policies.p.phases[0]")


WHOLE_FILES: list[tuple[str | bytes, list[str]]] = [
    ("", ["policies.yaml:1: the file is empty; `ashep init` writes a complete one"]),
    ("# nothing\n", ["policies.yaml:1: the file is empty; `ashep init` writes a complete one"]),
    ("[]", ["policies.yaml:1: expected a mapping, found an empty list"]),
    (b"version: 1\n\x89PNG", ["policies.yaml:2: not UTF-8 text (byte 0x89); save the file as UTF-8"]),
    (b"a: 1\n\0", ["policies.yaml:2: a character that no text file holds (U+0000); is this the right file?"]),
    ("a" * 300_000, ["policies.yaml:1: larger than 256 KiB; is this the right file?"]),
    ("version: 1\n---\nversion: 1\n", ["policies.yaml:2: a second document begins here; use one"]),
    ("a: " + "[" * 5000, ["policies.yaml:1: a" + "[0]" * 19 + "[…: nested more than 32 deep"]),
    ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
     ["policies.yaml:1: a: an anchor (&a) is not allowed; write the value out"]),
    ("version: true\npolicies: {p: [implement]}\n",
     ["policies.yaml:1: version: expected 1, the only version that this ashep reads, found true"]),
    ("version: 1\npolicies: {p: []}\n",
     ["policies.yaml:2: policies.p: expected at least one entry, found an empty list"]),
    ("version: 1\npolicies:\n  p: [implement, 3]\n",
     ["policies.yaml:3: policies.p[1]: expected a phase (its name, or a mapping), found the number 3"]),
    ("version: 1\npolicies:\n  a b: [implement]\n",
     ["policies.yaml:3: policies.'a b': not a name: a letter, then letters, digits, _ or - (64 at most)"]),
    ("version: 1\r\ndefault_policy: quik\r\npolicies: {quick: [implement]}\r\n",
     ["policies.yaml:2: default_policy: there is no policy quik; did you mean quick?"]),
]  # fmt: skip


@pytest.mark.promise("F2")
@pytest.mark.parametrize(("text", "lines"), WHOLE_FILES)
def test_a_broken_file(folder: Path, text: str | bytes, lines: list[str]) -> None:
    assert said(folder, text) == lines


def test_words_stay_words(folder: Path) -> None:
    text = (
        "version: 1\npolicies:\n  p:\n    phases: [{name: on, capabilities: [implement], next: {success: off}}, off]\n"
    )
    assert said(folder, text) == [
        "policies.yaml:4: policies.p.phases[1]: no agent in agents.yaml has the capability off; expected one of "
        "implement, code, debug, test, doc, review, arbitrate, plan, analyze, extract"
    ]


def test_short_forms_mean_the_long_ones() -> None:
    short = "version: 1\npolicies: {a: [implement, {name: review}], b: {phases: [implement]}}\n"
    full = (
        "version: 1\npolicies: {a: {phases: [{name: implement}, {name: review}]}, b: {phases: [{name: implement}]}}\n"
    )
    assert read(Policies, short, Path("x")) == read(Policies, full, Path("x"))


# --- keys of later issues -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", NOT_YET)
def test_planned_keys_are_unknown_to_the_models(owner: str) -> None:
    found = [getattr(room, owner) for room in (model, policy_policies, policy_agents) if hasattr(room, owner)]
    assert found
    assert not set(NOT_YET[owner]) & set(found[0].model_fields)


@pytest.mark.promise("F1")
@pytest.mark.parametrize("key", NOT_YET["Settings"])
def test_planned_settings_are_refused(folder: Path, key: str) -> None:
    assert said(folder, f"version: 1\n{key}: 1\n", "config.yaml") == [
        f"config.yaml:2: {key}: not yet supported by this version; remove it"
    ]


@pytest.mark.parametrize(("text", "key"), [
    ("reminder: 1d\n    phases: [implement]", "reminder"),
    ("limits: {max_cost: 3}\n    phases: [implement]", "limits.max_cost"),
])  # fmt: skip
def test_planned_keys_of_a_policy(folder: Path, text: str, key: str) -> None:
    assert said(folder, f"version: 1\npolicies:\n  p:\n    {text}\n") == [
        f"policies.yaml:4: policies.p.{key}: not yet supported by this version; remove it"
    ]


# --- what types cannot say ----------------------------------------------------------------------------------------

TWO = "      - name: implement\n        "
INCOHERENT = [
    ("takeover: {action: review}", "no-review", 6, "takeover.action"),
    ("verdicts: [a]", "missing-edge", 6, "verdicts[0]"),
    ("verdicts: [a, a]\n        next: {a: close}", "duplicate-verdict", 6, "verdicts[1]"),
    ("verdicts: [failed]\n        next: {failed: close}", "reserved-name", 6, "verdicts[0]"),
    ("verdicts: [a]\n        next:\n          a: close\n          success: close", "success-edge", 9, "next.success"),
    ("next: {aprove: close}", "unknown-edge", 6, "next.aprove"),
    ("allow_suggested: [implement, plan]", "unknown-target", 6, "allow_suggested[1]"),
    ("next: {failed: park}", "unknown-target", 6, "next.failed"),
    ("prefer: {different_model_from: review}", "unknown-phase", 6, "prefer.different_model_from"),
    ("prefer: {different_provider_from: review}", "unknown-phase", 6, "prefer.different_provider_from"),
    ("session: {reuse_from: plan}", "unknown-phase", 6, "session.reuse_from"),
    ("session: {reuse_from: implement}", "reuse-itself", 6, "session.reuse_from"),
    ("retry: {initial_delay: 1h}", "retry-delays", 6, "retry.initial_delay"),
    ("human: {changes_requested: implement, reminder: 7d}", "useless-reminder", 6, "human.reminder"),
    ("not_agents: [bilder]", "unknown-agent", 6, "not_agents[0]"),
    ("tags: [rust]", "no-agent", 5, "name"),
    ("requires: {plan: [success]}", "unknown-phase", 6, "requires.plan"),
    ("requires: {implement: []}", "requires-nothing", 6, "requires.implement"),
    ("requires: {implement: [sucess]}", "unknown-end", 6, "requires.implement[0]"),
    ("must_pass: [approve]", "unknown-end", 6, "must_pass[0]"),
    ("capabilities: [implement]\n        not_agents: [builder]", "no-agent", 6, "capabilities"),
]


@pytest.mark.parametrize(("text", "code", "line", "key"), INCOHERENT)
def test_incoherent_phase(folder: Path, text: str, code: str, line: int, key: str) -> None:
    found = findings(folder, f"{PHASE}{text}\n")
    assert [(one.code, one.line, one.key) for one in found] == [(code, line, f"policies.p.phases[0].{key}")]


SECOND = [
    ("name: implement", "duplicate-phase", 6, "name"),
    ("{name: close, capabilities: [review]}", "reserved-name", 6, "name"),
    ("{name: success, capabilities: [review]}", "reserved-name", 6, "name"),
    ("{name: ask, human: {approved: don}}", "unknown-target", 6, "human.approved"),
    ("{name: ask, human: {approved: park}}", "unknown-target", 6, "human.approved"),
    ("{name: ask, human: {changes_requested: plan}}", "unknown-target", 6, "human.changes_requested"),
    ("{name: ask, human: {on_deadline: off}}", "unknown-target", 6, "human.on_deadline"),
    ("{name: ask, human: {}, max_visits: 3}", "pointless-key", 6, "max_visits"),
    ("{name: ask, human: {}, capabilities: [review]}", "pointless-key", 6, "capabilities"),
    ("{name: ask, human: {}, verdicts: [a]}", "pointless-key", 6, "verdicts"),
    ("{name: ask, human: {}, next: {success: close}}", "pointless-key", 6, "next"),
    ("{name: review, session: {reuse_from: implement}}", "reuse-across-access", 6, "session.reuse_from"),
    (
        "{name: review, access: write, capabilities: [test], session: {reuse_from: implement}, verdicts: [a], "
        "next: {a: close}}",
        "reuse-with-verdicts", 6, "session.reuse_from",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "key"), SECOND)
def test_incoherent_second_phase(folder: Path, text: str, code: str, line: int, key: str) -> None:
    found = findings(folder, f"version: 1\npolicies:\n  p:\n    phases:\n      - implement\n      - {text}\n")
    assert [(one.code, one.line, one.key) for one in found] == [(code, line, f"policies.p.phases[1].{key}")]


def test_a_diagnosis_that_nobody_can_give_is_warned_of(folder: Path) -> None:
    text = "version: 1\npolicies: {p: [{name: implement, stall: {action: diagnose}}]}\n"
    assert said(folder, text) == []
    agents = (folder / "agents.yaml").read_text().replace("debug", "other")
    (folder / "agents.yaml").write_text(agents)
    (found,) = findings(folder, text)
    assert (found.code, found.severity, found.key) == ("no-agent", "warning", "policies.p[0].stall.action")


@pytest.mark.promise("P12")
def test_a_persons_work_is_never_closed_unseen(folder: Path) -> None:
    text = "version: 1\npolicies:\n  p:\n    takeover: {{action: review}}\n    phases: [{0}]\n"
    assert said(folder, text.format("implement, test")) == []
    assert said(folder, text.format("implement")) == [
        "policies.yaml:4: policies.p.takeover.action: no phase of this policy leads to another by its success, which "
        "would look at a person's work; take pause or resume"
    ]
    judge = "implement, {name: review, verdicts: [a], next: {a: close}, takeover: {action: review}}"
    assert said(folder, text.format(judge)) == [
        "policies.yaml:5: policies.p.phases[1].takeover.action: a person's work there has no verdict, so nothing would "
        "look at it; take pause or resume"
    ]


IMPOSSIBLE = [
    ("{tool: write, action: deny}", "OpenCode judges write as edit; write `tool: edit`"),
    ("{tool: question, action: allow}", "a question is answered, and not allowed; write `ask`, or `deny`"),
    ("{tool: question, pattern: x, action: ask}", "a question has no pattern; remove it"),
    ('{tool: external_directory, pattern: "/tmp/*", action: ask}',
     "no agent leaves the project's folder; remove the rule"),
    ('{tool: bash, pattern: "bd close *", action: allow}',
     "no agent calls ashep, or writes to the tracker, whatever a rule"),
    ('{tool: bash, pattern: "/usr/bin/ashep*", action: ask}', "no agent calls ashep, or writes to the tracker"),
]  # fmt: skip
BEYOND_ACCESS = [
    ('{tool: bash, pattern: "npm test*", action: allow}',
     "no rule about bash keeps a reader from writing; give the phase"),
    ("{tool: edit, action: ask}", "no rule about edit keeps a reader from writing; give the phase `access: write`"),
    ("{tool: task, action: allow}", "no rule about task keeps a reader from writing"),
    ('{tool: "*", action: allow}', "a read phase has no tools but those that are named; name the tool"),
    ('{tool: read, pattern: "config/.env", action: allow}', "a read phase reads no .env files; remove the rule"),
]  # fmt: skip


@pytest.mark.promise("H2")
@pytest.mark.parametrize(("rule", "message"), [*IMPOSSIBLE, *BEYOND_ACCESS])
def test_rules_that_no_phase_can_have(folder: Path, rule: str, message: str) -> None:
    text = f"version: 1\npolicies:\n  p:\n    phases:\n      - name: review\n        permissions:\n          - {rule}\n"
    (told,) = said(folder, text)
    assert told.startswith(f"policies.yaml:7: policies.p.phases[0].permissions[0].tool: {message}")


def test_rules_that_a_phase_can_have(folder: Path) -> None:
    rules = ("{tool: bash, action: deny}", "{tool: mcp_search, action: allow}", "{tool: read, action: ask}")
    lines = "".join(f"          - {rule}\n" for rule in rules)
    head = "version: 1\npolicies:\n  p:\n    phases:\n      - name: review\n        permissions:\n"
    assert said(folder, head + lines) == []
    everywhere = 'version: 1\npermissions:\n  - {tool: bash, pattern: "npm *", action: allow}\n'
    assert said(folder, everywhere, "config.yaml") == []


def test_where_a_tool_is_asked_about_no_rule_gives_subagents(folder: Path) -> None:
    rules = "permissions:\n  - {tool: bash, action: ask}\n  - {tool: task, action: allow}\n"
    (told,) = said(folder, f"version: 1\n{rules}", "config.yaml")
    assert told.startswith("config.yaml:4: permissions[1].tool: has no effect: where a tool is asked about")


def test_coherent_policies(folder: Path) -> None:
    text = dedent("""\
        version: 1
        policies:
          p:
            match: null
            phases:
              - plan
              - {name: implement, next: {failed: plan, partial: implement}, allow_suggested: [plan, close]}
              - {name: test, session: {reuse_from: implement}, retry: {initial_delay: 0s}}
              - {name: review, verdicts: [yes, no], next: {yes: close, no: plan, failed: ask}}
              - {name: ask, human: {approved: close, on_deadline: review}}
        """)
    assert said(folder, text) == []


def test_a_question_with_no_way_back(folder: Path) -> None:
    assert said(folder, "version: 1\npolicies:\n  p: [plan, {name: ask, human: {}}]\n") == [
        "policies.yaml:3: policies.p[1].human: no phase with write access stands before this one to go back to; add "
        "`changes_requested: <phase>`"
    ]


def test_every_agent_says_why_it_does_not_fit(folder: Path) -> None:
    (folder / "agents.yaml").write_text(
        "version: 1\nagents:\n  - {id: a, capabilities: [implement]}\n"
        "  - {id: b, capabilities: [implement], read_write: write, runner: {provider: x, model: y}}\n"
    )
    assert said(folder, "version: 1\npolicies: {p: [{name: implement, provider: z}]}\n") == [
        "policies.yaml:2: policies.p.phases[0].name: no agent in agents.yaml fits "
        "(a: may only read, and the phase writes; b: is not of provider z)".replace(".phases[0]", "[0]")
    ]


def test_a_person_covers_a_phase(folder: Path) -> None:
    (folder / "agents.yaml").write_text(
        "version: 1\nagents:\n  - {id: ann, capabilities: [browsertest], is_human: true}\n"
    )
    assert said(folder, "version: 1\npolicies: {p: [browsertest]}\n") == []


AGENTS = [
    ("id: builder", "{id: builder, capabilities: [x]}", "duplicate-agent", "agents[4].id", "error"),
    ("provider", "{id: a, capabilities: [x], runner: {provider: y}}", "half-a-model", "agents[4].runner.provider",
     "error"),
    ("model", "{id: a, capabilities: [x], runner: {model: y}}", "half-a-model", "agents[4].runner.model", "error"),
    ("type", "{id: a, capabilities: [x], runner: {type: openkode}}", "unknown-runner", "agents[4].runner.type",
     "error"),
    ("person", "{id: a, capabilities: [x], is_human: true, runner: {}}", "pointless-key", "agents[4].runner",
     "warning"),
    ("idle", "{id: a, capabilities: [x], is_human: true, max_runs: 2}", "pointless-key", "agents[4].max_runs",
     "warning"),
    ("nowhere", "{id: a, capabilities: [x], read_write: write, sandbox: bwrap}", "no-place", "agents[4].sandbox",
     "error"),
    ("reader", "{id: a, capabilities: [x], sandbox: none}", "pointless-key", "agents[4].sandbox", "warning"),
    ("a person's", "{id: a, capabilities: [x], is_human: true, sandbox: none}", "pointless-key", "agents[4].sandbox",
     "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "code", "key", "severity"), [case[1:] for case in AGENTS])
def test_incoherent_registry(folder: Path, entry: str, code: str, key: str, severity: str) -> None:
    text = starter("agents.yaml") + f"  - {entry}\n"
    found = findings(folder, text, "agents.yaml")
    assert [(one.code, one.key, one.line, one.severity) for one in found] == [
        (code, key, len(text.splitlines()), severity)
    ]


def test_a_cap_that_is_never_met_is_warned_of_and_one_that_may_be_is_not(folder: Path) -> None:
    agents, phase = starter("agents.yaml"), "version: 1\npolicies: {p: [{name: implement, max_runs: %d}]}\n"
    for most, found in ((3, []), (4, ["agents[0].max_runs", "budgets.providers.acme.max_runs",
                                      "policies.p[0].max_runs", "runners.opencode.max_runs"])):  # fmt: skip
        (folder / "agents.yaml").write_text(
            agents.replace("  - id: builder\n", f"  - id: builder\n    max_runs: {most}\n")
        )
        (folder / "policies.yaml").write_text(phase % most)
        text = f"budgets: {{providers: {{acme: {{max_runs: {most}}}}}}}\nrunners: {{opencode: {{max_runs: {most}}}}}\n"
        (folder / "config.yaml").write_text(f"version: 1\n{text}")
        told = examine(folder).findings
        assert sorted(str(one.key) for one in told if one.code == "pointless-key") == found
        assert {one.severity for one in told} <= {"warning"}


def test_where_approvals_are_signed_no_agent_runs_as_the_person(folder: Path) -> None:
    entry = "  - {id: a, capabilities: [code], read_write: write, sandbox: none}\n"
    (folder / "config.yaml").write_text(f"version: 1\n{SIGNED}{SIGNING}\n")
    assert examine(folder).findings == []
    problems = findings(folder, starter("agents.yaml") + entry, "agents.yaml")
    assert [(problem.code, problem.key) for problem in problems] == [("unsafe-signing", "agents[4].sandbox")]


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
def test_an_agent_may_run_otherwise_where_each_issue_has_a_place(folder: Path, sandbox: str) -> None:
    """Whatever the project says, as long as who makes is alone."""
    entry = f"  - {{id: a, capabilities: [code], read_write: write, sandbox: {sandbox}}}\n"
    (folder / "agents.yaml").write_text(starter("agents.yaml") + entry)
    others = "runners: {claude: {}, second: {type: acp, command: [x]}}"
    isolated = "worker: {workspace: place}\nrunners: {opencode: {isolation: place}}"
    for text in (SANDBOXED, isolated, f"{SANDBOXED}\n{others}"):
        assert findings(folder, f"version: 1\n{text}\n", "config.yaml") == []


@pytest.mark.parametrize(
    ("runner", "more", "known"),
    [
        ("{type: acp, command: [speaker]}", "", False),
        ("{type: acp, command: [speaker, claude]}", "", False),
        ("{type: acp, command: [/opt/bin/opencode.exe, acp]}", "", True),
        ("{type: acp, command: [npx, -y, '@agentclientprotocol/claude-agent-acp@0.101.0']}", "", True),
        ("{type: acp, command: [speaker], instructions: gemini}", "", True),
        ("{type: acp, command: [speaker], instructions: listed}", "impact: {agent_instructions: [SPEAK.md]}", True),
        ("{type: claude}", "", True),
    ],
)
def test_whose_instructions_nobody_knows_judges_nothing(folder: Path, runner: str, more: str, known: bool) -> None:
    entry = "  - {id: a, capabilities: [review], runner: {type: other}}\n"
    (folder / "agents.yaml").write_text(starter("agents.yaml") + entry)
    text = f"version: 1\n{SANDBOXED}\nrunners: {{other: {runner}}}\n{more}\n"
    told = [(one.code, str(one.key), one.severity) for one in findings(folder, text, "config.yaml")]
    assert told == ([] if known else [("cannot-judge", "agents[4].runner.type", "error")])
    makes = entry.replace("[review]", "[implement], read_write: write")
    (folder / "agents.yaml").write_text(starter("agents.yaml") + makes)
    assert [one.code for one in findings(folder, text, "config.yaml")] == []


SANDBOXED = "agents: {sandbox: bwrap}\nworker: {workspace: place}"
SIGNED = f"{SANDBOXED}\nverification: {{sandbox: bwrap}}\n"
KEY = f"ssh-ed25519 AAAA{'b' * 64}"
SIGNING = f"people: {{tracker: [ann], keys: {{Ann: [{KEY}]}}, signed: required}}"
PULLS = "landing: {mode: pull_request, forge: {type: github, repository: acme/tools}}"

SETTINGS = [
    ("labels: {parked: 'ashep:paused'}", "duplicate-label", "labels.parked"),
    ("labels: {approved: ''}", "bad-label", "labels.approved"),
    ("labels: {approved: 'a,b'}", "bad-label", "labels.approved"),
    ("labels: {approved: 'phase:x'}", "prefixed-label", "labels.approved"),
    ("labels: {policy_prefix: 'phase:p:'}", "prefixed-label", "labels.policy_prefix"),
    ("people: {tracker: [ann, ' ']}", "no-person", "people.tracker[1]"),
    ("people: {tracker: [ASHEP-agent]}", "no-person", "people.tracker[0]"),
    ("people: {tracker: [Robot]}\ntracker: {actor: robot}", "no-person", "people.tracker[0]"),
    ("people: {tracker: []}", "wrong-value", "people.tracker"),
    ("people:", "no-people", "people"),
    ("people: {forge: [ann]}", "missing-key", "people.tracker"),
    (f"people: {{tracker: [ann]}}\n{PULLS}", "people-of-forge", "people"),
    (f"people: {{tracker: [ann], forge: [ann]}}\n{PULLS[:-2]}, people: [bob]}}}}", "people-of-forge", "people.forge"),
    (f"people: {{tracker: [ann], keys: {{ann: [{KEY} x]}}}}", "wrong-value", "people.keys.ann[0]"),
    (f"{SIGNING}\n{SIGNED.replace('bwrap', 'auto', 1)}", "unsafe-signing", "people.signed"),
    (f"{SIGNING}\n{SANDBOXED}", "unsafe-signing", "people.signed"),
    (f"{SIGNING}\nagents: {{sandbox: bwrap, openings: [ssh-agent]}}\n{SIGNED.partition(chr(10))[2]}", "unsafe-signing",
     "people.signed"),
    ("verification: {paths: ['~ann/lib']}", "wrong-value", "verification.paths[0]"),
    ("verification: {paths: [/]}", "wrong-value", "verification.paths[0]"),
    ("runners: {opencode: {managed: false}}", "no-server", "runners.opencode.managed"),
    ("runners: {a: {type: acp, command: [x], instructions: listed}}", "cannot-judge", "runners.a.instructions"),
    ("agents: {sandbox: auto}", "no-place", "agents.sandbox"),
    ("runners: {opencode: {isolation: place}}", "no-place", "runners.opencode.isolation"),
    (f"runners: {{opencode: {{isolation: shared}}}}\n{SANDBOXED}", "no-place", "runners.opencode.isolation"),
    (f"{SANDBOXED}\nrunners: {{opencode: {{url: 'http://x'}}}}", "no-place", "agents.sandbox"),
    (f"{SANDBOXED}\nrunners: {{mine: {{type: 'os:PathLike'}}}}", "no-place", "agents.sandbox"),
    (f"runners: {{claud: {{}}}}\n{SANDBOXED}", "no-type", "runners.claud"),
    ("runners: {opencode: {managed: true, url: 'http://x'}}", "two-servers", "runners.opencode.managed"),
    ("runners: {opencode: {url: 'localhost:1'}}", "bad-url", "runners.opencode.url"),
    ("runners: {opencode: {password_env: 's3cret!'}}", "bad-variable", "runners.opencode.password_env"),
    ("notify: {targets: [{name: pager}]}", "bad-target", "notify.targets[0]"),
    ("notify: {targets: [{command: [x], apprise_env: X}]}", "bad-target", "notify.targets[0]"),
    ("notify: {targets: [{name: x, command: [x]}, {name: x, command: [y]}]}", "duplicate-target",
     "notify.targets[1].name"),
    ("notify: {quiet_hours: [{at: '0 22 * *', lasts: 8h}]}", "bad-cron", "notify.quiet_hours[0].at"),
    ("worker: {quiet_hours: [{at: '0 22 31 feb *', lasts: 8h}]}", "bad-cron", "worker.quiet_hours[0].at"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "key"), SETTINGS)
def test_incoherent_settings(folder: Path, text: str, code: str, key: str) -> None:
    found = findings(folder, f"version: 1\n{text}\n", "config.yaml")
    assert [(one.code, one.line, one.key) for one in found] == [(code, 2, key)]
    assert "s3cret" not in str(found[0])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("paths: [data]", "a path that begins with / or ~/"),
        ("service_url: localhost", "an address, as http://localhost"),
    ],
)
def test_what_was_expected_is_said_in_words(folder: Path, line: str, expected: str) -> None:
    (found,) = findings(folder, f"version: 1\nverification: {{{line}}}\n", "config.yaml")
    assert f"expected {expected}" in found.message


@pytest.mark.parametrize("people", ["{tracker: [ann]}", "{tracker: [Ann B., ann b., Zoë], forge: [OWNER]}"])
def test_a_policy_is_as_sound_whoever_is_named(folder: Path, people: str) -> None:
    assert findings(folder, f"version: 1\npeople: {people}\n", "config.yaml") == []


@pytest.mark.promise("N5")
@pytest.mark.parametrize(
    "target", ["apprise_env: 'json://ann:s3cret@host/'", "apprise_file: 'json://ann:s3cret@host/'"]
)
def test_a_url_is_no_place_to_look_for_a_url(folder: Path, target: str) -> None:
    found = findings(folder, f"version: 1\nnotify: {{targets: [{{{target}}}]}}\n", "config.yaml")
    assert [one.severity for one in found] == ["error"]
    assert "that is a secret" in str(found[0])
    assert "s3cret" not in str(found[0])


def test_a_match_that_claims_nothing_is_a_warning(folder: Path) -> None:
    (folder / "policies.yaml").write_text("version: 1\npolicies: {p: {match: {types: []}, phases: [implement]}}\n")
    configuration = load(folder)
    assert [(one.code, one.severity) for one in configuration.warnings] == [("matches-nothing", "warning")]


@pytest.mark.parametrize(
    "budgets",
    ["{warn_at: 1.2}", "{warn_at: 0}", "{run: {tokens: 0}}", "{day: {cost: -1}}", "{day: {cost: .inf}}",
     "{runs_per_hour: 0}", "{week: {cost: 1}}", "{providers: {acme: 5}}"],
)  # fmt: skip
def test_budgets_that_make_no_sense_are_refused(folder: Path, budgets: str) -> None:
    (found,) = findings(folder, f"version: 1\nbudgets: {budgets}\n", "config.yaml")
    assert (found.severity, found.line) == ("error", 2)
    assert found.key is not None
    assert found.key.startswith("budgets")


@pytest.mark.parametrize(("budgets", "key"), [
    ("{run: {cost: 5}, issue: {cost: 4}}", "budgets.run.cost"),
    ("{day: {tokens: 5}, total: {tokens: 4}}", "budgets.day.tokens"),
    ("{providers: {acme: {cost: 5}}, day: {cost: 4}}", "budgets.providers.acme.cost"),
    ("{run: {cost: 4}, issue: {cost: 4, tokens: 1}, day: {cost: 1000, tokens: 1000}}", None),
])  # fmt: skip
def test_a_limit_that_is_never_met_is_a_warning(folder: Path, budgets: str, key: str | None) -> None:
    (folder / "config.yaml").write_text(f"version: 1\nbudgets: {budgets}\n")
    found = [(one.code, one.key, one.severity) for one in load(folder).warnings]
    assert found == ([("useless-limit", key, "warning")] if key else [])


def test_models_without_files_are_checked_too() -> None:
    policies = Policies(version=1, policies={"p": policy_policies.Policy(phases=(policy_policies.Phase(name="fly"),))})
    agents = Agents(version=1, agents=(policy_agents.Agent(id="a", capabilities=("walk",)),))
    assert [str(one) for one in check(policies, agents, Settings())] == [
        "policies.yaml: policies.p.phases[0].name: no agent in agents.yaml has the capability fly; expected one of walk"
    ]
    reuse = policy_policies.Phase(name="walk", session=ReuseFrom(reuse_from="fly"))
    policies = Policies(version=1, policies={"p": policy_policies.Policy(phases=(reuse,))})
    assert [one.code for one in check(policies, agents, None)] == ["unknown-phase"]


def errors_of(text: str) -> tuple[ConfigError, ...]:
    try:
        check(read(Policies, text, Path("policies.yaml")), None, None)
    except ConfigErrors as error:
        return error.errors
    return ()


# --- laws ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@example("a: b\n\t- c")
@example("\x85")
@example("? ")
@example("- - - -")
@example("%TAG ! x\n--- !a")
@example("{{}: 1}")
@example("\ud800")
def test_any_text_is_read_or_refused_with_one_line(text: str) -> None:
    for error in errors_of(text):
        assert str(error).isprintable()


WORDS = st.sampled_from(
    ["implement", "review", "off", "1", "close", "{}", "[]", "null", "true", "5m", "x y", "*a", "\t"]
)
KEYS = st.sampled_from([*policy_policies.Phase.model_fields, "stall", "extra", "<<", "1"])


@settings(max_examples=200)
@given(st.lists(st.tuples(KEYS, WORDS), max_size=4))
def test_a_mistake_in_a_phase_is_on_its_line(entries: list[tuple[str, str]]) -> None:
    text = "version: 1\npolicies:\n  p:\n    phases:\n      - name: implement\n"
    text += "".join(f"        {key}: {word}\n" for key, word in entries)
    for error in errors_of(text):
        assert error.line is not None
        assert 4 < error.line <= 6 + len(entries)
        assert error.key is not None
        assert error.key.startswith("policies.p.phases[0]")


@given(st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), st.floats(allow_nan=False, width=32)))
def test_plain_scalars_mean_what_json_says(value: float | None) -> None:
    assert yaml_tree.resolve(json.dumps(value)) == value or value in (float("inf"), float("-inf"))


@pytest.mark.promise("F2")
@pytest.mark.parametrize("word", ["on", "Off", "yes", "NO", "True", "NULL", "1:30", "010", "0x1f", "0o7", "1_000",
                                  "2020-01-01", ".5", "5.", ".inf", ".nan", "1e999", "=", "9" * 30, "+1"])  # fmt: skip
def test_words_of_yaml_1_1_are_words(word: str) -> None:
    assert yaml_tree.resolve(word) == word


@given(st.integers(0, 10**6).flatmap(lambda n: st.sampled_from([f"{n}ms", f"{n}s", f"{n}m", f"{min(n, 1000)}d"])))
def test_durations_survive_a_round_trip(text: str) -> None:
    duration = parse_duration(text)
    assert isinstance(duration, timedelta)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.promise("F2")
def test_depth_is_bounded() -> None:
    yaml_tree.read("[" * yaml_tree.MAX_DEPTH + "]" * yaml_tree.MAX_DEPTH)
    with pytest.raises(yaml_tree.YamlUnreadable, match="nested more than 32 deep"):
        yaml_tree.read("[" * (yaml_tree.MAX_DEPTH + 1) + "]" * (yaml_tree.MAX_DEPTH + 1))


def test_lists_are_bounded(folder: Path) -> None:
    text = f"version: 1\npolicies: {{p: [{'implement, ' * 101}]}}\n"
    assert said(folder, text) == ["policies.yaml:2: policies.p: expected at most 100 entries, found a list"]
    text = f"version: 1\npolicies: {{p: [{{name: implement, tags: [{'a, ' * 101}]}}]}}\n"
    assert said(folder, text) == ["policies.yaml:2: policies.p[0].tags: expected at most 100 entries, found a list"]
