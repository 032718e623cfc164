"""The pages are sessions: each block of `console` or `sh` is carried out, in order, and prints what stands below it.

How a block is read says `tests.docs_pages`; where each page is followed `WORLDS`; what is not carried out `LEFT_OUT`.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests import docs_worlds as worlds
from tests.docs_pages import Command, Terminal, bare, differs, steps
from tests.places import sweep
from tests.test_docs import PAGES, ROOT, name_of

MINUTES = "takes minutes"
A_REGISTRY = "asks a package registry"

LEFT_OUT = {
    "make demo": "chaos/killed/test_demo_killed.py carries it out, and compares what stands below it",
    "make test": "this is part of it",
    "make bench": MINUTES,
    ".venv/bin/python -m bench commands idle": MINUTES,
    ".venv/bin/python -m bench --quick": MINUTES,
    ".venv/bin/python -m bench issues --rounds 3 --strict": MINUTES,
    "make wheel bd-wheel": MINUTES,
    "uv tool install --with dist/ashep_bd-*.whl dist/ashep-*.whl": "tools/wheel_check.py runs this very line",
    "opencode auth login": "asks for a provider's key",
    "ashep criteria t-1 --suggest": "asks an agent, and then a person: tests/test_suggesting.py",
    "ashep -C month replay --policy draft.yaml": f"{MINUTES}: a month is lived first",
}
"""Commands that are not carried out here, and why. tests/test_docs.py asks of all whether there are such commands."""

ELSEWHERE = {
    "docs/guides/page.md": "tests/service/test_entrance.py",
    "docs/guides/stories.md": "tests/test_demo.py",
    "docs/guides/verification-service.md": "tests/test_docs_verification_service.py",
}
"""Pages whose commands a test of their own carries out."""

ENDS = {"ashep policy check draft.yaml": 1, "ashep -C webboty policy check": 1}
"""Commands that are shown to end otherwise than with 0."""

Place = Callable[[Path], AbstractContextManager[Terminal]]

WORLDS: dict[str, Place] = {
    "docs/guides/by-hand.md": worlds.readme,
    "docs/audit.md": worlds.worked_on,
    "docs/extending.md": worlds.empty,
    "docs/guides/criteria.md": worlds.greeted,
    "docs/guides/foreman.md": worlds.planned,
    "docs/guides/impact.md": worlds.touched,
    "docs/guides/interchange.md": worlds.worked_on,
    "docs/guides/landing.md": worlds.worked_on,
    "docs/guides/nights.md": worlds.worked_on,
    "docs/guides/policies.md": worlds.begun,
    "docs/guides/trees.md": worlds.worked_on,
}
"""Where each page is followed. Pages of one world follow each other in it, in this order."""

SLOW = {worlds.empty, worlds.begun}
"""Without real tools, and long all the same."""


def own_classes_were_at_work(project: Path) -> None:
    """The issue of the page went its way by the labels, the tracker and the runner that the page writes."""
    issue = json.loads((project / "issues.json").read_text())["t-1"]
    assert issue["status"] == "closed"
    put_on = [event["what"][1] for event in issue["events"] if event["what"][0] == "added"]
    assert put_on == ["stage/implement", "stage/look_at_it", "please look", "stage/human_review", "ok to merge"]
    records = (project / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")
    journal = b"".join(file.read_bytes() for file in records)
    for word in (b"command_runner:CommandRunner", b"agent.py", b"json_tracker:JsonTracker"):
        assert word in journal, "classes and options are adopted with the settings"


AFTER = {"docs/extending.md": own_classes_were_at_work}
"""What is looked at behind a page's end."""


def commands(page: Path) -> list[Command]:
    return [step for step in steps(page.read_text()) if isinstance(step, Command)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Place, str], Terminal]]:
    """Gives the place of a page: its own, or that of all pages of a world that was worked on."""
    made: dict[str, Terminal] = {}
    folder = tmp_path_factory.mktemp("pages")
    with ExitStack() as stack:

        def place(world: Place, page: str) -> Terminal:
            key = world.__name__ if world is worlds.worked_on else page
            if key not in made:
                made[key] = stack.enter_context(world(folder / key.replace("/", "-")))
            return made[key]

        yield place
    sweep(folder)
    shutil.rmtree(folder, ignore_errors=True)


FOLLOWED = [
    pytest.param(page, marks=pytest.mark.slow if world in SLOW else pytest.mark.real) for page, world in WORLDS.items()
]


@pytest.mark.promise("F30")
@pytest.mark.parametrize("page", FOLLOWED)
def test_the_page_can_be_followed_word_by_word(page: str, places: Callable[[Place, str], Terminal]) -> None:
    terminal = places(WORLDS[page], page)
    begin = terminal.folder
    terminal.follow((ROOT / page).read_text(), LEFT_OUT, ENDS)
    terminal.folder = begin
    if page in AFTER:
        AFTER[page](begin)


def test_every_command_of_every_page_is_carried_out_or_is_left_out_for_a_reason() -> None:
    shown = {name_of(page): [bare(one.line) for one in commands(page)] for page in PAGES}
    pages = {page for page, lines in shown.items() if set(lines) - set(LEFT_OUT)}
    assert pages == {*WORLDS, *ELSEWHERE}
    lines = {line for some in shown.values() for line in some}
    assert set(LEFT_OUT) | set(ENDS) <= lines, "what no page shows any more goes"


def test_what_a_command_prints_is_shown_below_it_and_nowhere_else() -> None:
    """A block that no test looks at says nothing that can become untrue unseen: a picture, or a file."""
    for page in PAGES:
        stray = [line for line in page.read_text().splitlines() if line.startswith("$ ")]
        assert len(stray) == sum(step.line in line for step, line in zip(consoles(page), stray, strict=True))


def consoles(page: Path) -> list[Command]:
    text = page.read_text().splitlines()
    return [one for one in commands(page) if text[one.at - 1].startswith("$ ")]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("a b\n", "a c\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("a … c\n", "a b\nc\n"),
        ("a\n…\nc\n", "a\nb\n"),
        ("took … ms\n", "took 3 s\n"),
    ],
)
def test_another_word_another_line_and_one_too_many_are_found(shown: str, said: str) -> None:
    assert differs(shown, said)


def test_places_are_for_what_differs_each_time_and_columns_have_any_width() -> None:
    assert not differs("A   B\nid …, took … ms\n…\nend\n", "A B\nid 7f, took 12 ms\nx\ny\nend\n")
    assert not differs("…\nend\n", "end\n")
