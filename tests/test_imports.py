"""Policies of other set-ups: what becomes of them, and that nothing of them is dropped silently."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ashep.config import ConfigErrors, Examined, examine, load, read, write_starter
from ashep.config.yaml_tree import Node
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies, Policy
from ashep.core.policy.settings import Settings
from ashep.extras.interchange.import_report import Imported, grouped
from ashep.extras.interchange.prompts import literal
from ashep.extras.interchange.symphony import read_workflow
from ashep.extras.interchange.webboty import read_webboty
from ashep.prompt.template_trials import check_overrides

HERE = Path(__file__).parent / "imports"
SHIPPED = HERE / "webboty"
SOUND = ("never-closes", "failure-left-behind")
"""What the checker may say of an import: it is so there, too."""
KeyPath = tuple[str | int, ...]


def write(made: Imported, folder: Path) -> Path:
    for name, text in made.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def decisions(tmp_path: Path) -> Path:
    """A folder with a policy that has all kinds of transitions, and a registry."""
    folder = tmp_path / "theirs"
    folder.mkdir(exist_ok=True)
    (folder / "policies.yaml").write_text((HERE / "decisions.yaml").read_text())
    (folder / "agents.yaml").write_text((HERE / "registry.yaml").read_text())
    return folder


def policy(made: Imported, name: str) -> Policy:
    return read(Policies, made.files["policies.yaml"], Path("policies.yaml")).policies[name]


def forms(made: Imported, folder: Path) -> Examined:
    """What an import made, whose form is in order; what the checker says of it is another matter."""
    found = examine(write(made, folder))
    assert [one for one in found.findings if one.severity == "error" and one.code not in SOUND] == []
    return found


def edges(policy: Policy) -> dict[str, dict[str, str]]:
    return {phase.name: dict(phase.next) for phase in policy.phases if phase.human is None}


# --- webboty/agent-shepherd -------------------------------------------------------------------------------------------


def test_the_shipped_files_are_carried_over(tmp_path: Path) -> None:
    found = forms(read_webboty(SHIPPED), tmp_path)
    assert found.policies is not None
    assert found.settings is not None
    assert found.agents is not None
    assert list(found.policies.policies) == ["default", "test-1", "simple"]
    assert found.policies.default_policy == "simple"
    assert [one.match is None for one in found.policies.policies.values()] == [True, True, False]
    simple = found.policies.policies["simple"].phases[0]
    assert (simple.name, simple.capabilities, simple.access) == ("implement", ("coding",), "write")
    assert [str(simple.timeout), str(simple.stall.after)] == ["0:10:00", "0:01:00"]
    retry = simple.retry
    assert (retry.max_attempts, retry.backoff, str(retry.initial_delay), str(retry.max_delay)) == (
        2, "exponential", "0:00:05", "0:00:30",
    )  # fmt: skip
    assert str(found.settings.tracker.poll_every) == "0:00:30"
    assert found.settings.worker.max_concurrent_runs == 3
    build = found.agents.agents[0]
    assert (build.id, build.read_write, build.runner.agent_slug, build.priority) == ("build", "write", "build", 15)
    phases = [phase for one in found.policies.policies.values() for phase in one.phases]
    assert check_overrides(tmp_path / "prompts", phases) == []
    assert "Do what the issue describes" in (tmp_path / "prompts" / "implement.md.j2").read_text()


def test_the_checker_says_that_the_shipped_policy_never_closes_an_issue(tmp_path: Path) -> None:
    found = forms(read_webboty(SHIPPED), tmp_path)
    assert found.policies is not None
    assert found.agents is not None
    verdicts = analyse(found.policies, found.agents, Settings())
    errors = {name: [one.code for one in of.findings if one.severity == "error"] for name, of in verdicts.items()}
    assert errors == {"default": ["never-closes"], "test-1": ["never-closes"], "simple": []}
    story = next(one.story for one in verdicts["default"].findings if one.code == "never-closes")
    assert story[-1] == "review-approval: a person answers changes_requested → review"


def test_the_remedy_that_a_note_names_mends_it(tmp_path: Path) -> None:
    made = read_webboty(SHIPPED)
    note = next(note for note in made.notes if note.key.endswith("require_approval"))
    assert note.why.endswith("let review-approval lead to close")
    text = made.files["policies.yaml"].replace("approved: review", "approved: close")
    mended = load(write(Imported(made.files | {"policies.yaml": text}, ()), tmp_path))
    found = analyse(mended.policies, mended.agents, mended.settings)
    assert not [one for of in found.values() for one in of.findings if one.severity == "error"]


def test_a_decision_is_a_phase_with_verdicts(tmp_path: Path) -> None:
    made = read_webboty(decisions(tmp_path))
    big = policy(made, "big")
    assert edges(big) == {
        "analyze": {"success": "make-it"},
        "make-it": {"success": "test"},
        "test": {"success": "review", "failed": "test-on-failure", "partial": "test-on-partial-success"},
        "test-on-failure": {"to-make-it": "make-it", "to-analyze": "analyze", "to-close": "close"},
        "test-on-partial-success": {"to-test": "test", "to-review": "review"},
        "review": {"success": "close", "failed": "make-it", "partial": "review-approval"},
    }
    by_name = {phase.name: phase for phase in big.phases}
    decide = by_name["test-on-failure"]
    assert (decide.capabilities, decide.access, decide.verdicts) == (
        ("test-decision",), "read", ("to-make-it", "to-analyze", "to-close"),
    )  # fmt: skip
    assert by_name["test"].retry.max_attempts == 1
    assert by_name["make-it"].retry.max_attempts == 3
    assert (by_name["make-it"].max_visits, by_name["analyze"].max_visits) == (5, 10)
    assert str(by_name["make-it"].timeout) == "0:04:00"
    analyze = by_name["analyze"]
    assert (analyze.retry.max_attempts, analyze.retry.backoff, str(analyze.timeout)) == (2, "constant", "0:01:30")
    assert by_name["test"].session == type(by_name["test"].session)(reuse_from="make-it")  # type: ignore[call-arg]
    told = made.files["prompts/test-on-failure.md.j2"]
    assert '{% if policy == "big" %}\nIs it the code {{ "{%" }} or %} the plan?' in told


def test_a_phase_with_an_agent_and_a_model_of_its_own_gets_them(tmp_path: Path) -> None:
    made = read_webboty(decisions(tmp_path))
    analyze = policy(made, "big").phases[0]
    agents = read(Agents, made.files["agents.yaml"], Path("agents.yaml")).agents
    [own] = [agent for agent in agents if set(analyze.tags) <= set(agent.tags)]
    assert (own.runner.agent_slug, own.runner.provider, own.runner.model) == ("planner", "acme", "large")
    assert set(analyze.needs) <= set(own.capabilities)
    assert (own.performance.speed, own.read_write) == ("slow", "read")
    assert [agent.id for agent in agents] == ["plan", "my-build", "half", "plan-big-analyze"]


def test_everything_together_is_in_order_and_its_prompts_can_be_written(tmp_path: Path) -> None:
    made = read_webboty(decisions(tmp_path))
    found = forms(made, tmp_path / "ours").policies
    assert found is not None
    phases = [phase for one in found.policies.values() for phase in one.phases]
    assert check_overrides(tmp_path / "ours" / "prompts", phases) == []
    assert found.default_policy == "by-hand"
    match = {name: one.match for name, one in found.policies.items()}
    assert match["big"] is not None
    assert match["big"].types == ("bug", "feature")
    assert match["by-hand"] is not None
    assert match["by-hand"].labels == ("docs",)


def test_one_file_alone_is_enough(tmp_path: Path) -> None:
    assert set(read_webboty(SHIPPED / "agents.yaml").files) == {"agents.yaml"}
    assert set(read_webboty(SHIPPED / "config.yaml").files) == {"config.yaml"}
    made = read_webboty(SHIPPED / "policies.yaml")
    assert {name for name in made.files if "/" not in name} == {"policies.yaml"}
    assert not any(note.file for note in made.notes)


# --- Symphony ---------------------------------------------------------------------------------------------------------


def test_a_workflow_loads_and_its_prompt_is_ours(tmp_path: Path) -> None:
    write_starter(tmp_path)
    made = read_workflow(HERE / "WORKFLOW.md", "flow")
    loaded = load(write(made, tmp_path))
    flow = loaded.policies.policies["flow"]
    work = flow.phases[0]
    assert edges(flow) == {"work": {"success": "human_review"}}
    assert [str(work.timeout), str(work.stall.after), str(work.retry.max_delay)] == ["2:00:00", "0:04:00", "0:02:00"]
    assert str(loaded.settings.tracker.poll_every) == "0:00:05"
    assert loaded.settings.worker.max_concurrent_runs == 4
    assert check_overrides(tmp_path / "prompts", flow.phases) == []
    found = analyse(loaded.policies, loaded.agents, loaded.settings)["flow"].findings
    assert not [one for one in found if one.severity == "error"]
    assert made.files["prompts/work.md.j2"] == (
        'You work on ticket `{{ issue }}`: {{ title | fence("title") }}.\n'
        "\n"
        "{% if attempt > 1 %}\n"
        "This is attempt {{ attempt }}; go on where you were.\n"
        "{% endif %}\n"
        "Status: , labels \n"
        "\n"
        "{% if description %}\n"
        '{{ description | fence("description") }}\n'
        "{% else %}\n"
        "No more is said.\n"
        "{% endif %}\n"
        "{% if not (title) %}No title.{% endif %}\n"
        "- \n"
        "\n"
        '{% if false %}See .{% elif dependencies %}After: {{ dependencies | fence("dependencies") }}{% endif %}\n'
        'A brace { stays, so does {{ "{#" }} this #}.\n'
        "\n"
        '{% include "_work.md.j2" %}\n'
    )


def test_what_a_prompt_could_not_say_is_named_with_its_line() -> None:
    lines = (HERE / "WORKFLOW.md").read_text().splitlines()
    notes = [note for note in read_workflow(HERE / "WORKFLOW.md", "flow").notes if note.key.startswith("{")]
    assert [(note.kind, note.key) for note in notes] == [
        ("changed", "{{ attempt }}"), ("lost", "{{ issue.state }}"), ("lost", '{{ issue.labels | join: ", " }}'),
        ("changed", "{{ issue.description | strip }}"), ("lost", "{% for label in issue.labels %}"),
        ("lost", "{{ label }}"), ("lost", "{% endfor %}"), ("lost", "{% comment %}"), ("lost", "{% if issue.url %}"),
        ("lost", "{{ issue.url }}"),
    ]  # fmt: skip
    for note in notes:
        assert note.key in lines[note.line - 1]


def test_no_secret_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "WORKFLOW.md"
    file.write_text("---\ntracker: {api_key: s3cr3t-t0ken}\n---\nDo it.\n")
    made = read_workflow(file, "flow")
    assert "s3cr3t" not in "".join(made.files.values()) + "".join(map(str, made.notes))


def test_a_prompt_alone_is_a_workflow(tmp_path: Path) -> None:
    file = tmp_path / "WORKFLOW.md"
    file.write_text("Do it.\n")
    made = read_workflow(file, "flow")
    assert (made.notes, set(made.files)) == ((), {"policies.yaml", "prompts/work.md.j2"})
    file.write_text("---\n---\n")
    assert set(read_workflow(file, "flow").files) == {"policies.yaml"}


def test_text_is_printed_as_it_is() -> None:
    assert literal("a {b} {{c}} {% d %} {# e #} {") == 'a {b} {{ "{{" }}c}} {{ "{%" }} d %} {{ "{#" }} e #} {'


# --- nothing is dropped silently --------------------------------------------------------------------------------------


def leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    yield from below or [path]


def changed(document: Any, path: KeyPath) -> Any:
    """The document with another value at a place."""
    made = copy.deepcopy(document)
    place = made
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    place[path[-1]] = (
        (not old) if isinstance(old, bool) else old + 1 if isinstance(old, int | float) else f"{old or ''}x"
    )
    return made


def key_of(path: KeyPath) -> list[str]:
    """The key of a place, and of all that it is in."""
    node, keys = Node(None, 1, ""), list[str]()
    for part in path:
        node = Node(None, 1, node.key_of(part))
        keys.append(node.key)
    return keys


def silent(name: str, document: Any, importing: Callable[[Any], Imported]) -> list[str]:
    """The places whose value neither changes what comes out, nor is named, nor is refused."""
    before = importing(document)
    dropped: list[str] = []
    for path in leaves(document):
        if any(note.key in key_of(path) for note in before.notes if note.file in ("", name)):
            continue
        try:
            after = importing(changed(document, path))
        except ConfigErrors:
            continue
        bare = [
            {file: re.sub(r"^#.*\n", "", text, flags=re.M) for file, text in one.files.items()}
            for one in (before, after)
        ]
        if bare[0] == bare[1] and grouped(after.notes) == grouped(before.notes):
            dropped.append(key_of(path)[-1])
    return dropped


@pytest.mark.promise("F20")
@pytest.mark.slow
@pytest.mark.parametrize(("source", "name"), [
    (SHIPPED, "policies.yaml"),
    (SHIPPED, "agents.yaml"),
    (SHIPPED, "config.yaml"),
    (None, "policies.yaml"),
    (None, "agents.yaml"),
])  # fmt: skip
def test_every_key_of_their_yaml_is_carried_over_or_named(source: Path | None, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    folder.mkdir()
    for file in decisions(tmp_path).glob("*.yaml") if source is None else ():
        (folder / file.name).write_text(file.read_text())
    source = source or decisions(tmp_path)

    def importing(document: Any) -> Imported:
        (folder / name).write_text(yaml.safe_dump(document, sort_keys=False))
        return read_webboty(folder)

    document = yaml.safe_load((source / name).read_text())
    document |= {"agents": document["agents"][:4]} if "agents" in document else {}  # the others have the same keys
    assert silent(name, document, importing) == []
    assert silent(name, document | {"new": 1}, importing) == []


@pytest.mark.promise("F20")
@pytest.mark.slow
def test_every_key_of_a_workflow_is_carried_over_or_named(tmp_path: Path) -> None:
    _, front, body = (HERE / "WORKFLOW.md").read_text().split("---\n", 2)
    file = tmp_path / "WORKFLOW.md"

    def importing(document: Any) -> Imported:
        file.write_text(f"---\n{yaml.safe_dump(document, sort_keys=False)}---\n{body}")
        return read_workflow(file, "flow")

    assert silent("", yaml.safe_load(front), importing) == []


def test_a_key_that_is_dropped_would_be_found() -> None:
    def forgetful(document: Any) -> Imported:
        return Imported({"policies.yaml": json.dumps(document["kept"])}, ())

    assert silent("", {"kept": {"a": 1}, "gone": {"b": [1, {"c": True}]}}, forgetful) == ["gone.b[0]", "gone.b[1].c"]


@pytest.mark.parametrize(
    "importing", [lambda: read_webboty(SHIPPED), lambda: read_workflow(HERE / "WORKFLOW.md", "flow")]
)
def test_every_note_stands_at_the_top_of_a_file(importing: Callable[[], Imported]) -> None:
    made = importing()
    heads = " ".join(
        line.lstrip("# ") for text in made.files.values() for line in text.splitlines() if line.startswith("#")
    )
    for line in grouped(made.notes):
        assert " ".join(line.split()) in " ".join(heads.split())


# --- what is no such file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "1: a: not valid YAML: while parsing a flow sequence: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\na: 2", "2: a: duplicate key, it stands on line 1 already; keep one of them"),
        ("one: 1", "1: neither policies, agents nor a configuration of webboty/agent-shepherd"),
        ("- 1", "1: expected a mapping, found a list"),
        ("policies: {}", "1: policies: there is no policy here"),
        ("policies:\n  a: {phases: []}", "2: policies.a.phases: no phases"),
        ("policies:\n  a:\n    phases: [{name: x}, {name: x}]",
         "3: policies.a.phases[1].name: a phase needs a name of its own"),
        ("policies:\n  a:\n    phases: [{name: x, transitions: {on_success: y}}]",
         "3: policies.a.phases[0].transitions.on_success: there is no phase y; there are x"),
        ("policies:\n  a: {phases: [{name: x}], retry: {max_attempts: few}}",
         "2: policies.a.retry.max_attempts: expected a whole number of at least 1, found 'few'"),
        ("policies:\n  a: {phases: [{name: x}], retry: {backoff_strategy: wild}}",
         "2: policies.a.retry.backoff_strategy: expected exponential, linear or fixed, found 'wild'"),
        ("policies:\n  a: {phases: [{name: x, require_approval: 3}]}",
         "2: policies.a.phases[0].require_approval: expected true or false, found the number 3"),
        ("policies:\n  a: {phases: [{name: x, timeout_multiplier: 0}]}",
         "2: policies.a.phases[0].timeout_multiplier: expected a number above zero, at most 1000, found the number 0"),
        ("policies:\n  a: {phases: [{name: x, transitions: {on_success: {capability: y}}}]}",
         "2: policies.a.phases[0].transitions.on_success: a decision needs a capability and allowed_destinations"),
        ("policies:\n  a: {phases: [{name: x}]}\ndefault_policy: b",
         "3: default_policy: there is no policy b; there are a"),
        ("policies:\n  a: {phases: [{name: x, transitions: {on_failure: {type: leap, next_phase: x}}}]}",
         "2: policies.a.phases[0].transitions.on_failure: expected advance, jump_back, retry, block or close, found "
         "'leap'"),
        ("agents: []", "1: agents: there is no agent here"),
        ("agents: [{id: a}]", "1: agents[0]: an agent needs a capability"),
        ("agents: [{capabilities: [a]}]", "1: agents[0]: an agent needs an id"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_file_line_and_key(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        read_webboty(file)
    assert str(caught.value) == f"{file}:{said}"


@pytest.mark.parametrize(("text", "said"), [
    ("---\na: 1\n", "1: the front matter has no end: a line with --- alone"),
    ("---\n- 1\n---\n", "1: the front matter is no mapping"),
    ("---\n\nagent: [1]\n---\n", "3: agent: expected a mapping, found a list"),
    ("---\npolling: {interval_ms: soon}\n---\n",
     "2: polling.interval_ms: expected a whole number of at least 0, found 'soon'"),
    ("---\na: *b\n---\n", "2: a: an alias (*b) is not allowed; write the value out"),
])  # fmt: skip
def test_a_workflow_that_is_none_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "WORKFLOW.md"
    file.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        read_workflow(file, "flow")
    assert str(caught.value) == f"{file}:{said}"


JUNK: tuple[Any, ...] = (
    None, 0, 1, -1, 10**12, 1.5, True, "x", "", "{{ x", "a b/c", "close", "é" * 70, [], {}, [1], ["x", "x"], [None],
    {"a": 1}, [{"name": "x"}],
)  # fmt: skip


def places(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every place in a document, the whole of it included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def put(document: Any, path: KeyPath, value: Any) -> Any:
    if not path:
        return value
    return (
        {**document, path[0]: put(document[path[0]], path[1:], value)}
        if isinstance(document, dict)
        else [put(item, path[1:], value) if index == path[0] else item for index, item in enumerate(document)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["policies.yaml", "agents.yaml", "config.yaml", "WORKFLOW.md"])
def test_whatever_stands_in_their_files_is_refused_or_makes_files_of_ours(name: str, tmp_path: Path) -> None:
    """Nothing ends in a traceback, and nothing that is written is not in order."""
    folder = decisions(tmp_path)
    (folder / "config.yaml").write_text((SHIPPED / "config.yaml").read_text())
    text, body = (folder / name).read_text() if name != "WORKFLOW.md" else "", ""
    if name == "WORKFLOW.md":
        _, text, body = (HERE / name).read_text().split("---\n", 2)
    document = yaml.safe_load(text)
    cases = [(path, value) for path in places(document) for value in JUNK]
    made, refused = 0, list[str]()
    for path, value in random.Random(0).sample(cases, 60):
        spoilt = yaml.safe_dump(put(document, path, value), sort_keys=False)
        (folder / name).write_text(f"---\n{spoilt}---\n{body}" if body else spoilt)
        try:
            done = read_workflow(folder / name, "flow") if body else read_webboty(folder)
        except ConfigErrors as error:
            refused.append(str(error))
            continue
        made += 1
        for file, kind in (("policies.yaml", Policies), ("agents.yaml", Agents), ("config.yaml", Settings)):
            if file in done.files:
                read(kind, done.files[file], Path(file))
    assert all(line.startswith(f"{folder}") for line in refused)
    assert made > 5
    assert refused


def test_settings_of_an_import_are_settings() -> None:
    read(Settings, read_webboty(SHIPPED).files["config.yaml"], Path("config.yaml"))


def test_a_folder_without_any_of_the_files_is_refused_and_others_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"there is none of policies.yaml, agents.yaml, config.yaml in it"):
        read_webboty(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "agents.yaml").write_text("agents: [{id: a, capabilities: [b]}]")
    (tmp_path / "config" / "decision-prompts.yaml").write_text("x: 1")
    [note] = read_webboty(tmp_path).notes
    assert str(note) == "not carried over: decision-prompts.yaml:1: (the file): nothing here reads such a file"
