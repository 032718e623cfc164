"""What is found, what is proposed, and the files that follow: each is read by the real loader, without a warning."""

from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from ashep.actions.setup.checks import CheckFact
from ashep.actions.setup.facts import ProjectFacts, read_address
from ashep.actions.setup.questions import answers_of, changed_files, question, validate
from ashep.actions.setup.written import KEYS, Key, written_answers
from ashep.config import load
from ashep.config.findings import FindingFactory
from ashep.config.policy_checks import warnings
from ashep.core.runs.registry_report import weaknesses
from ashep.core.state.runner_state import NOT_SEEN
from ashep.errors import UsageError
from tests.first_hour.found import FAILS, GITHUB, GITLAB, PYTEST, STRANGER, agent, found


def defaults(facts: ProjectFacts, **given: str) -> dict[Key, str]:
    """Answer each question with its default, but those that are given."""
    answers = dict[Key, str]()
    for key in KEYS:
        answers[key] = given.get(key) or question(key, facts, answers).default
    return answers


def options(facts: ProjectFacts, key: Key) -> list[str]:
    return [option.value for option in question(key, facts, {}).options]


CASES: dict[str, tuple[ProjectFacts, dict[str, str], int]] = {
    "Claude Code alone": (
        found(),
        {"source": "bd", "agents": "claude/claude", "check": "pytest -q", "landing": "merge", "budget": "20"}, 2,
    ),
    "two agents": (found("claude", "opencode"), {"agents": "claude/opencode"}, 3),
    "one of two is logged in": (
        found(agents=(agent("claude", login="no"), agent("opencode"))), {"agents": "opencode/opencode"}, 2
    ),
    "who is logged in goes first": (
        found(agents=(agent("opencode", login="unknown"), agent("gemini"))), {"agents": "gemini/opencode"}, 3
    ),
    "one lacks its adapter": (
        found(agents=(agent("claude"), agent("codex", lack="x"))), {"agents": "claude/claude"}, 2
    ),
    "GitHub": (found(forge=GITHUB), {"source": "github", "landing": "pull_request"}, 4),
    "GitHub without a login": (found(forge=STRANGER), {"source": "bd", "landing": "merge"}, 4),
    "GitLab": (found(forge=GITLAB), {"source": "bd", "landing": "merge"}, 3),
    "bd is in use": (found(forge=GITHUB, has_database=True), {"source": "bd", "landing": "merge"}, 4),
    "stories": (found(stories=7), {"source": "stories"}, 3),
    "no check": (found(checks=()), {"check": "none"}, 2),
    "a check that fails on the base": (found(checks=(FAILS,)), {"check": "none"}, 2),
    "the second check passes": (found(checks=(FAILS, PYTEST)), {"check": "pytest -q"}, 2),
    "everything": (found("claude", "opencode", forge=GITHUB, stories=2), {"agents": "claude/opencode"}, 5),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_question_has_the_default_that_fits_what_is_found(case: str) -> None:
    facts, expected, count = CASES[case]
    given = defaults(facts)
    assert {key: given[key] for key in KEYS if key in expected} == expected
    assert sum(question(key, facts, {}).is_open for key in KEYS) == count


def test_a_check_that_fails_on_the_base_says_so() -> None:
    text = question("check", found(checks=(FAILS,)), {}).text
    assert text.startswith("`make test` does not pass on the base: exit code 2: no module named calc\n")


def written(folder: Path, facts: ProjectFacts, given: dict[Key, str]) -> dict[str, str]:
    """Write the files, and read them as ashep does; whatever there is to say about them fails the test."""
    files, edited = changed_files(facts, answers_of(facts, given))
    assert edited == ()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    loaded = load(folder)
    told = [*loaded.warnings, *warnings(loaded.policies, loaded.agents, loaded.settings, FindingFactory({}))]
    assert [*map(str, told), *weaknesses(loaded.policies, loaded.agents, NOT_SEEN)] == []
    return {**facts.files, **files}


RICH = found(
    "claude", "opencode", "gemini", forge=GITHUB, stories=3,
    checks=(replace(PYTEST, verification={"network": True, "paths": ["~/lib"]}),),
)  # fmt: skip


@pytest.mark.parametrize("source", options(RICH, "source"))
@pytest.mark.parametrize("landing", options(RICH, "landing"))
def test_every_answer_gives_files_without_a_warning(tmp_path: Path, source: str, landing: str) -> None:
    others = cycle(product(options(RICH, "check"), ("20", "none")))
    for number, (agents, (check, budget)) in enumerate(zip(options(RICH, "agents"), others, strict=False)):
        given = defaults(RICH, source=source, agents=agents, check=check, landing=landing, budget=budget)
        folder = tmp_path / str(number) / ".agent-shepherd"
        files = written(folder, RICH, given)
        assert written_answers(files) == given
        again = replace(RICH, files=files)
        assert changed_files(again, answers_of(again, given)) == ({}, ())
        settings = load(folder).settings
        assert (settings.budgets.day.cost, settings.landing.mode) == (20 if budget == "20" else None, landing)
        assert bool(settings.sources.all) == (source == "github")


def test_an_answer_is_changed_by_saying_it_again(tmp_path: Path) -> None:
    facts = found()
    files = written(tmp_path / ".agent-shepherd", facts, defaults(facts))
    again = replace(facts, files=files)
    assert question("budget", again, written_answers(files)).default == "20"
    changed, edited = changed_files(again, answers_of(again, defaults(again, budget="7.5")))
    assert ([*changed], edited) == (["config.yaml"], ())
    assert "cost: 7.5" in changed["config.yaml"]


def test_what_was_changed_by_hand_is_named() -> None:
    facts = found()
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    by_hand = files["config.yaml"] + "notify: {batch: 5m}\n"
    again = replace(facts, files=files | {"config.yaml": by_hand})
    assert changed_files(again, answers_of(again, defaults(again)))[1] == ("config.yaml",)
    foreign = replace(facts, files={"policies.yaml": "version: 1\npolicies: {a: [implement]}\n"})
    assert changed_files(foreign, answers_of(foreign, defaults(foreign)))[1] == ("policies.yaml",)


def test_without_a_check_the_question_says_first_that_no_test_ran() -> None:
    facts = found(checks=())
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    assert 'ask: "No test ran: nobody but an agent says that this works.' in files["policies.yaml"]


VALUES: list[tuple[Key, str, str | None]] = [
    ("landing", "1", "merge"), ("landing", " 2 ", "pull_request"), ("landing", "merge", "merge"),
    ("landing", "3", None), ("landing", "0", None), ("landing", "", None), ("landing", "yes", None),
    ("budget", "7.50", "7.5"), ("budget", "-1", None), ("budget", "2", "none"), ("budget", "much", None),
    ("check", "python -m pytest -q", "python -m pytest -q"), ("check", "make && true", None), ("check", "'", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "typed", "kept"), VALUES)
def test_what_is_typed_is_an_option_or_is_explained(key: Key, typed: str, kept: str | None) -> None:
    asked = question(key, found(forge=GITHUB), {})
    if kept is not None:
        assert validate(asked, typed) == kept
        return
    with pytest.raises(UsageError):
        validate(asked, typed)


ADDRESSES: dict[str, Any] = {
    "git@github.com:acme/shop.git": ("github", "github.com", "acme/shop"),
    "https://github.com/acme/shop": ("github", "github.com", "acme/shop"),
    "ssh://git@github.acme.example:22/acme/shop.git": ("github", "github.acme.example", "acme/shop"),
    "https://gitlab.com/acme/a/shop.git": ("gitlab", "gitlab.com", "acme/a/shop"),
    "https://codeberg.org/acme/shop": ("gitea", "codeberg.org", "acme/shop"),
    "https://git.example/acme/shop": None,
    "/srv/git/shop.git": None,
    "": None,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_remote_tells_its_forge(address: str) -> None:
    assert read_address(address) == ADDRESSES[address]


def test_a_check_of_several_words_is_found_again() -> None:
    quoted = CheckFact(("sh", "-c", "make test"), "", passed=True)
    facts = found(checks=(quoted,))
    files, _ = changed_files(facts, answers_of(facts, defaults(facts)))
    assert written_answers(files)["check"] == "sh -c 'make test'"
