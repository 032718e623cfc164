"""What is found, what is proposed, and the files that follow: each is read by the real loader, without a warning."""

from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import anyio
import pytest

from ashep.actions.setup.facts import ProjectFacts, find_forge
from ashep.actions.setup.questions import answers_of, changed_files, question, validate
from ashep.actions.setup.written import KEYS, Key, written_answers
from ashep.adapters.sources import place_of
from ashep.config import load
from ashep.config.findings import FindingFactory
from ashep.config.policy_checks import warnings
from ashep.core.policy.checks import TestPass
from ashep.core.policy.sources import GitHubSource
from ashep.core.runs.registry_report import weaknesses
from ashep.core.state.runner_state import NOT_SEEN
from ashep.errors import AshepError, UsageError
from tests.first_hour.project_facts import FAILS, GITHUB, GITLAB, PYTEST, STRANGER, make_agent, make_facts, make_trial
from tests.verifier.place import repository


def defaults(facts: ProjectFacts, **replies: str) -> dict[Key, str]:
    """Answer each question with its default, but those that are given."""
    answers = dict[Key, str]()
    for key in KEYS:
        answers[key] = replies.get(key) or question(key, facts, answers).default
    return answers


def options(facts: ProjectFacts, key: Key) -> list[str]:
    return [option.value for option in question(key, facts, {}).options]


CASES: dict[str, tuple[ProjectFacts, dict[str, str], int]] = {
    "Claude Code alone": (
        make_facts(),
        {"source": "bd", "agents": "claude/claude", "check": "pytest -q", "landing": "merge", "budget": "20"}, 2,
    ),
    "two agents": (make_facts("claude", "opencode"), {"agents": "claude/opencode"}, 3),
    "one of two is logged in": (
        make_facts(agents=(make_agent("claude", login="no"), make_agent("opencode"))),
        {"agents": "opencode/opencode"}, 2,
    ),
    "who is logged in goes first": (
        make_facts(agents=(make_agent("opencode", login="unknown"), make_agent("gemini"))),
        {"agents": "gemini/opencode"}, 3,
    ),
    "one lacks its adapter": (
        make_facts(agents=(make_agent("claude"), make_agent("codex", lack="x"))), {"agents": "claude/claude"}, 2
    ),
    "GitHub": (make_facts(forge=GITHUB), {"source": "github", "landing": "pull_request"}, 4),
    "GitHub without a login": (make_facts(forge=STRANGER), {"source": "bd", "landing": "merge"}, 4),
    "GitLab": (make_facts(forge=GITLAB), {"source": "bd", "landing": "merge"}, 3),
    "bd is in use": (make_facts(forge=GITHUB, has_database=True), {"source": "bd", "landing": "merge"}, 4),
    "stories": (make_facts(stories=7), {"source": "stories"}, 3),
    "no check": (make_facts(checks=()), {"check": "none"}, 2),
    "a check that fails on the base": (make_facts(checks=(FAILS,)), {"check": "none"}, 2),
    "the second check passes": (make_facts(checks=(FAILS, PYTEST)), {"check": "pytest -q"}, 2),
    "everything": (make_facts("claude", "opencode", forge=GITHUB, stories=2), {"agents": "claude/opencode"}, 5),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_question_has_the_default_that_fits_what_is_found(case: str) -> None:
    facts, expected, count = CASES[case]
    replies = defaults(facts)
    assert {key: replies[key] for key in KEYS if key in expected} == expected
    assert sum(question(key, facts, {}).is_open for key in KEYS) == count


def test_a_check_that_fails_on_the_base_says_so() -> None:
    text = question("check", make_facts(checks=(FAILS,)), {}).text
    assert text.startswith("`make test` does not pass on the base: no module named calc\n")


def write_files(folder: Path, facts: ProjectFacts, replies: dict[Key, str]) -> dict[str, str]:
    """Write the files, and read them as ashep does; whatever there is to say about them fails the test."""
    files, edited = changed_files(facts, answers_of(facts, replies))
    assert edited == ()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    loaded = load(folder)
    problems = [*loaded.warnings, *warnings(loaded.policies, loaded.agents, loaded.settings, FindingFactory({}))]
    assert [*map(str, problems), *weaknesses(loaded.policies, loaded.agents, NOT_SEEN)] == []
    return {**facts.files, **files}


RICH = make_facts(
    "claude", "opencode", "gemini", forge=GITHUB, stories=3,
    checks=(replace(PYTEST, verification={"network": True, "paths": ["~/lib"]}),),
)  # fmt: skip


@pytest.mark.parametrize("source", options(RICH, "source"))
@pytest.mark.parametrize("landing", options(RICH, "landing"))
def test_every_answer_gives_files_without_a_warning(tmp_path: Path, source: str, landing: str) -> None:
    others = cycle(product(options(RICH, "check"), ("20", "none")))
    for number, (agents, (check, budget)) in enumerate(zip(options(RICH, "agents"), others, strict=False)):
        replies = defaults(RICH, source=source, agents=agents, check=check, landing=landing, budget=budget)
        folder = tmp_path / str(number) / ".agent-shepherd"
        files = write_files(folder, RICH, replies)
        assert written_answers(files) == replies
        again = replace(RICH, files=files)
        assert changed_files(again, answers_of(again, replies)) == ({}, ())
        settings = load(folder).settings
        assert (settings.budgets.day.cost, settings.landing.mode) == (20 if budget == "20" else None, landing)
        assert bool(settings.sources.all) == (source == "github")


def test_an_answer_is_changed_by_saying_it_again(tmp_path: Path) -> None:
    facts = make_facts()
    files = write_files(tmp_path / ".agent-shepherd", facts, defaults(facts))
    again = replace(facts, files=files)
    assert question("budget", again, written_answers(files)).default == "20"
    changed, edited = changed_files(again, answers_of(again, defaults(again, budget="7.5")))
    assert ([*changed], edited) == (["config.yaml"], ())
    assert "cost: 7.5" in changed["config.yaml"]


BY_HAND = {
    "a key": lambda text: text + "notify: {batch: 5m}\n",
    "a comment alone": lambda text: text.replace("\n\n", "\n\n# why: see the wiki\n", 1),
    "a text that is no YAML": lambda text: text + "{",
    "a file of somebody else": lambda _: "version: 1\n",
    "an empty file": lambda _: "",
}


@pytest.mark.parametrize("change", BY_HAND)
def test_what_was_changed_by_hand_is_named(change: str) -> None:
    facts = make_facts()
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    again = replace(facts, files=files | {"config.yaml": BY_HAND[change](files["config.yaml"])})
    assert changed_files(again, answers_of(again, defaults(again, budget="7")))[1] == ("config.yaml",)


def test_a_kill_between_two_files_leaves_nothing_that_counts_as_changed_by_hand() -> None:
    """Whichever of them are new, the next set-up replaces the others without a question."""
    facts = make_facts(forge=GITHUB)
    before, _ = changed_files(facts, answers_of(facts, defaults(facts, source="bd", landing="merge")))
    after, _ = changed_files(facts, answers_of(facts, defaults(facts, source="github", landing="pull_request")))
    for number in range(len(after)):
        mixed = before | dict([*after.items()][:number])
        again = replace(facts, files=mixed)
        files, edited = changed_files(
            again, answers_of(again, defaults(again, source="github", landing="pull_request"))
        )
        assert (edited, mixed | files) == ((), after)


def test_a_check_that_fails_on_the_base_by_now_stays_in_the_files() -> None:
    slow = replace(PYTEST, seconds=200.0, verification={"install": ["npm ci"], "cache": "~/.cache/x"})
    facts = make_facts(checks=(slow,))
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    assert 'timeout: "1h"' in files["policies.yaml"]
    red = replace(facts, files=files, checks=(replace(slow, passes=False, verification={}),))
    replies = written_answers(files)
    for key in KEYS:
        replies[key] = question(key, red, replies).default
    assert (replies["check"], changed_files(red, answers_of(red, replies))) == ("pytest -q", ({}, ()))


def test_a_check_that_needs_dependencies_by_now_has_its_new_command() -> None:
    facts = make_facts()
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    equipped = replace(PYTEST, command=(".venv/bin/pytest",), verification={"network": True})
    again = replace(facts, files=files, checks=(equipped,))
    assert question("check", again, written_answers(files)).default == ".venv/bin/pytest"


def test_a_command_that_is_written_as_a_text_is_found_too() -> None:
    text = "version: 1\npolicies: {a: [{name: b, checks: [{type: test_pass, verify: {command: make  test}}]}]}\n"
    assert written_answers({"config.yaml": "version: 1\n", "policies.yaml": text})["check"] == "none"
    phases = text.replace("a: [", "a: {phases: [").replace("}]}]}", "}]}]}}")
    assert written_answers({"config.yaml": "version: 1\n", "policies.yaml": phases})["check"] == "make test"


ODD = (
    "version: [", "- 1", "bmad: x\nlanding: 3\nbudgets: {day: {cost: much}}\nsources: 1\n", "\0", "agents: {a: 1}\n",
    "agents: [1, {runner: 2}]\n",
    "policies: {a: {phases: [{checks: [{verify: {command: {}}}, {verify: {command: 'a;'}}, 1]}, 2]}, b: 3}\n",
)  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_whatever_stands_in_the_files_the_questions_have_defaults(text: str) -> None:
    facts = make_facts(files=dict.fromkeys(("config.yaml", "policies.yaml", "agents.yaml"), text))
    replies = written_answers(facts.files)
    for key in KEYS:
        replies[key] = question(key, facts, replies).default
    files, edited = changed_files(facts, answers_of(facts, replies))
    assert edited == tuple(files)


HOSTILE = (
    "1e6",
    "yes",
    "NULL",
    "a\u2028b",
    "$(touch x)",
    "a; b",
    "- a",
    "#",
    "a: b",
    "",
    " ",
    "\U0001f600",
    "a\nb: c",
    "'",
    "{",
)


def test_words_of_anybody_stay_words_in_the_files(tmp_path: Path) -> None:
    trial = make_trial(
        *HOSTILE, rule="tests/a\nnetwork: true\n.py\u2028: holds tests", verification={"paths": ["~/a: b"]}
    )
    for source in ("bd", "stories"):
        facts = make_facts(stories=1, checks=(trial,))
        replies = defaults(facts, source=source, check=options(facts, "check")[0])
        folder = tmp_path / source / ".agent-shepherd"
        files = write_files(folder, facts, replies)
        assert written_answers(files) == replies
        policy = load(folder).policies.policies["standard" if source == "bd" else "bmad-story"]
        checks = [check.verify for phase in policy.phases for check in phase.checks]
        assert [check.command for check in checks if isinstance(check, TestPass)] == [HOSTILE]
        assert load(folder).settings.verification.paths == ("~/a: b",)


VALUES: list[tuple[Key, str, str | None]] = [
    ("landing", "1", "merge"), ("landing", " 2 ", "pull_request"), ("landing", "merge", "merge"),
    ("landing", "3", None), ("landing", "0", None), ("landing", "", None), ("landing", "yes", None),
    ("budget", "7.50", "7.5"), ("budget", "-1", None), ("budget", "2", "none"), ("budget", "much", None),
    ("budget", "1000000", "1000000"), ("budget", "nan", None), ("budget", "inf", None), ("budget", "0.005", "0.005"),
    ("check", "python -m pytest -q", "python -m pytest -q"), ("check", "make && true", None), ("check", "'", None),
    ("check", "make   'test'", "make test"), ("check", "make $(x)", None), ("check", "make 'a;b'", "make 'a;b'"),
    ("check", "make\ntest", None), ("check", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "typed", "kept"), VALUES)
def test_what_is_typed_is_an_option_or_is_explained(key: Key, typed: str, kept: str | None) -> None:
    prompt = question(key, make_facts(forge=GITHUB), {})
    if kept is not None:
        assert validate(prompt, typed) == kept
        return
    with pytest.raises(UsageError):
        validate(prompt, typed)


TOKEN = "ghp_" + "secret1234"  # in two parts, as no file of this repository may hold such a word
LOGIN = ":".join(("pat", TOKEN))

ADDRESSES = {
    "git@github.com:acme/shop.git": ("gh", "acme/shop"),
    "https://github.com/acme/shop": ("gh", "acme/shop"),
    "ssh://git@github.acme.example:22/acme/shop.git": ("gh", "acme/shop"),
    "https://gitlab.com/acme/a/shop.git": ("gitlab", "acme/a/shop"),
    "https://gitlab.acme.example/acme/shop": ("gitlab", "acme/shop", "https://gitlab.acme.example/api/v4"),
    "https://codeberg.org/acme/shop": ("gitea", "acme/shop", "https://codeberg.org/api/v1"),
    f"https://{LOGIN}@github.com/acme/shop.git?token={TOKEN}": ("gh", "acme/shop"),
    "https://github.com/acme/..": None,
    "https://github.com/acme": None,
    "https://[github.com/acme/shop": None,
    "https://git.example/acme/shop": None,
    "/srv/git/shop.git": None,
    "": None,
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("login", ["gh", ""])
def test_a_remote_tells_its_forge(address: str, login: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one that config.yaml takes, and holds nothing of a login that the address has."""
    repository(tmp_path / "shop").git("config", "remote.origin.url", address)
    gh = tmp_path / "gh"
    gh.write_text(f"#!/bin/sh\n{'echo gho_secret5678' if login else 'exit 1'}\n")
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    forge, expected = anyio.run(find_forge, tmp_path / "shop", {}), ADDRESSES[address]
    assert "secret" not in repr(forge)
    if expected is None:
        assert forge is None
        return
    assert forge is not None
    kind, name, *url = expected
    if kind == "gh" and not login:
        kind, url = "github", ["https://github.acme.example/api/v3"] if "acme.example" in address else []
    assert forge.chosen == {"type": kind, "repository": name, **({"url": url[0]} if url else {})}


def test_without_a_repository_in_its_address_a_source_says_so_and_not_the_address(tmp_path: Path) -> None:
    repository(tmp_path / "shop").git("config", "remote.origin.url", f"https://{LOGIN}@github.com/shop")
    with pytest.raises(AshepError, match=r"leads to github.com, and names no repository") as caught:
        anyio.run(place_of, tmp_path / "shop", GitHubSource())
    assert "secret" not in str(caught.value)


def test_a_check_of_several_words_is_read_again() -> None:
    facts = make_facts(checks=(make_trial("sh", "-c", "make test"),))
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    assert written_answers(files)["check"] == "sh -c 'make test'"
