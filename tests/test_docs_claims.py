"""What pages claim in prose, where a test can read it: what runs agents, what importers say, codes, keys, defaults."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ashep.actions.story_catalog import FoundStory, dump_story
from ashep.api import application
from ashep.bmad.story import StoryProblem, read
from ashep.cli.commands import COMMANDS
from ashep.cli.output import BROKEN_PIPE
from ashep.config import load, write_starter
from ashep.core.delivery.closing_metadata import STATUS, notes_of
from ashep.core.facts.tracker import Issue
from ashep.core.policy.policies import Policy
from ashep.core.policy.runner_kinds import KINDS, OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.state.delivery import Evidence, OwnTree
from ashep.core.state.flow import Flow, with_work
from ashep.errors import TrackerMissing
from ashep.extras.interchange import symphony, webboty, webboty_policies
from tests.core.given import T0
from tests.test_docs import fences
from tests.test_docs_agents import FOLDER

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SPOKEN = {OPENCODE: "OpenCode", "claude": "Claude Code", "acp": "ACP"}
"""How pages call the kinds of runners."""


def words_of(page: Path) -> str:
    """Give a page on one line."""
    return " ".join(page.read_text().split())


@pytest.mark.parametrize("file", ["README.md", "AGENTS.md", "docs/index.md", "pyproject.toml"])
def test_whoever_introduces_the_program_names_each_kind_of_agent(file: str) -> None:
    text = words_of(ROOT / file).split("**Why.**")[0].split("## Commands")[0].split("| page |")[0]
    if file == "pyproject.toml":
        text = tomllib.loads((ROOT / file).read_text())["project"]["description"]
    assert [name for name in (OPENCODE, *KINDS) if SPOKEN[name] not in text] == []


def test_the_set_ups_of_the_page_on_agents_keep_them_in_a_sandbox(tmp_path: Path) -> None:
    """A set-up that is pasted takes the place of what `init` wrote: what is not said is `auto`."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("a" * 40)
    texts = [text for words, text in fences((DOCS / "guides/agents.md").read_text()) if FOLDER.fullmatch(words)]
    write_starter(tmp_path / ".agent-shepherd")
    shown = [text for text in texts if "\nagents:\n  - " not in text]
    assert len(shown) == 5
    for text in shown:
        (tmp_path / ".agent-shepherd" / "config.yaml").write_text(text)
        settings = load(tmp_path / ".agent-shepherd").settings
        assert (settings.agents.sandbox, settings.isolated) == ("auto", True), text
    assert "as you, unless you say otherwise" not in words_of(DOCS / "guides/nights.md").lower()


# --- importers ----------------------------------------------------------------------------------------------------

SAYINGS = (
    *(why for section in symphony._LOST.values() for why in section.values()),  # pyright: ignore[reportPrivateUsage] - what it says is tried
    *webboty._ELSEWHERE.values(),  # pyright: ignore[reportPrivateUsage] - the same
    webboty_policies.FALLBACK,
)


def has_key(model: type[BaseModel], keys: list[str]) -> bool:
    """Whether a key of that path is one of the model's, or of one that a key of it leads to."""
    fields = {name: str(field.annotation) for name, field in model.model_fields.items()}
    nested = [kind for kind in _models(model) if kind.__name__ in fields.get(keys[0], "")]
    return keys[0] in fields and (len(keys) == 1 or any(has_key(kind, keys[1:]) for kind in nested))


def _models(model: type[BaseModel], above: frozenset[Any] = frozenset()) -> set[Any]:
    models = {model}
    for field in model.model_fields.values():
        for kind in _classes(field.annotation):
            if kind not in above | models:
                models |= _models(kind, above | models)
    return models


def _classes(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [kind for part in getattr(annotation, "__args__", ()) for kind in _classes(part)]


@pytest.mark.parametrize("why", sorted(set(SAYINGS)))
def test_what_an_importer_names_is_there(why: str) -> None:
    """Commands, and keys of the files, in what it says of that which it does not carry over."""
    assert not re.search(r"\byet\b", why), "nothing is put off: what a word says changes with the program"
    owners = _models(Settings) | _models(Policy)
    for name in re.findall(r"`([^`]+)`", why):
        command = re.match(r"ashep (\w+)", name)
        keys = [key for key in re.split(r"[.:\s{]+", name.split("}")[0]) if re.fullmatch(r"[a-z_]+", key)]
        if command:
            assert command[1] in COMMANDS["ashep"], name
        elif name != "policy:":
            path = keys[: 1 + ("." in name or "{" in name)]
            assert any(has_key(kind, path) for kind in owners) or path == ["extract"], name


def test_the_page_on_interchange_names_what_stands_for_what() -> None:
    page = words_of(DOCS / "guides/interchange.md")
    assert "have no counterpart" not in page
    for name in ("retry.change_agent", "limits.on_limit: fall_back", "journal.keep", "ashep ui"):
        assert f"`{name}`" in page


# --- codes, keys, words -------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_told_with_the_code_of_the_page(tmp_path: Path) -> None:
    """Of a command that typer runs, too, which makes a 1 of it: `ashep story show … | head -1`."""
    assert f"| `{BROKEN_PIPE}` | the reader of the output went away |" in (DOCS / "codes.md").read_text()
    tasks = "".join(f"- [ ] Task {number}: {'x' * 100}\n" for number in range(2000))
    story = tmp_path / "docs/stories/1-1-long.md"
    story.parent.mkdir(parents=True)
    story.write_text(f"# Story 1.1: Long\n\nStatus: review\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n{tasks}")
    for words in (["story", "show", "1-1"], ["story", "check", "--json"]):
        away, out = os.pipe()
        os.close(away)
        argv = [sys.executable, "-m", "ashep", "-C", str(tmp_path), *words]
        process = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
        os.close(out)
        assert (process.returncode, process.stderr) == (BROKEN_PIPE, ""), words


def test_each_kind_of_error_of_the_service_is_answered_with_its_own_status() -> None:
    """The first row that fits counts: one whose base stands above it would never be reached."""
    statuses = application._STATUSES  # pyright: ignore[reportPrivateUsage] - the table is what is tried
    told = {kind: status for status, kinds in statuses for kind in kinds}
    for kind, status in told.items():
        assert next(answer for answer, bases in statuses if issubclass(kind, bases)) == status, kind
    assert told[TrackerMissing] == 503
    assert "503 the tracker is away, or bd is missing" in words_of(DOCS / "guides/verification-service.md")


def test_each_entry_of_story_check_has_the_keys_of_the_page() -> None:
    section = (DOCS / "guides/stories.md").read_text().split("`ashep story check --json` prints")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    story = read("1-1-a.md", b"# Story 1.1: A\n\nStatus: review\n")
    unreadable = FoundStory("1-2-b.md", None, None, (StoryProblem(1, "this is not UTF-8"),))
    for entry in (FoundStory("1-1-a.md", story, None, ()), unreadable):
        assert set(dump_story(entry)) == keys


def test_pending_unverified_and_changed_nothing_are_what_the_pages_say() -> None:
    page = words_of(DOCS / "guides/verification.md")
    assert "`pending`: it waits, and its work was not looked into yet; `unverified`: nothing was checked" in page
    flow = with_work(Flow(Issue("t-1", "It", "open", "task", 2, T0)), own=OwnTree("ashep/t-1", 0, base="b", head="c"))
    unchecked = with_work(flow, evidence=Evidence("c", "t", (), changed=True, isolated=None, log=""))
    assert [notes_of(flow, closed=closed)[STATUS] for closed in (False, True)] == ["pending", "unverified"]
    assert [notes_of(unchecked, closed=closed)[STATUS] for closed in (False, True)] == ["unverified", "unverified"]
    sentence = "the comment, `ashep why` and the report say that nothing was changed"
    assert sentence in words_of(DOCS / "guides/policies.md")
    nothing = with_work(flow, own=OwnTree("ashep/t-1", 0, base="b", head="b"))
    assert [notes_of(closed)["landing"] for closed in (flow, nothing)] == ["on its branch", "nothing was changed"]
