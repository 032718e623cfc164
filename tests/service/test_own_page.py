"""A user's own colours and panel: what counts of them, what does not, and where the page says so."""

import os
import re
from pathlib import Path

import pytest
from anyio import run

from ashep.config import load, write_starter
from ashep.config.findings import ConfigErrors
from ashep.config.page_colours import DARK, DEFAULTS, FILE, ROOT, read_colours
from tests.service.worlds import World

CSS = Path(__file__).parents[2] / "web" / "src" / "page.css"
PANEL = "http://127.0.0.1:9000/board?x=1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".agent-shepherd"
    (folder / "page").mkdir(parents=True)
    write_starter(folder)
    return folder


def test_the_colours_that_are_checked_are_those_of_the_page() -> None:
    found = re.findall(r"--(\w+): light-dark\(#(\w+), #(\w+)\)", CSS.read_text())
    long = {name: tuple(f"#{one if len(one) == 6 else one * 2}" for one in pair) for name, *pair in found}
    assert long == DEFAULTS


def test_colours_differ_by_scheme(folder: Path) -> None:
    lines = [ROOT, "/* warm */", "--paper: #FFFDF0;", "}", "", DARK, ROOT, "--ink: #ffffff;", "}", "}"]
    (folder / FILE).write_text("\n".join(lines))
    assert read_colours(folder) == ({"paper": ["#fffdf0", "#14171c"], "ink": ["#15181d", "#ffffff"]}, [])


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        ([ROOT, "--paper: red;", "}"], 2, "expected `--NAME: #rrggbb;`"),
        ([ROOT, "--paper: #ffffff; } * { display: none", "}"], 2, "expected"),
        ([ROOT, "/* */ @import 'x'; /* */", "}"], 2, "expected"),
        (["--paper: #ffffff;"], 1, "expected"),
        ([ROOT, "--paper: url(http://x.example);", "}"], 2, "expected"),
        ([ROOT, "--size: #ffffff;", "}"], 2, "size: the page has no such colour; it has paper"),
        ([ROOT, "--paper: #fffff0;"], 2, "`}` is missing"),
        ([ROOT, "", "--ink: #8a8a8a;", "}"], 3, "#8a8a8a on paper #ffffff, in the light, has a contrast of 3.45"),
        ([DARK, ROOT, "--parked: #14171c;", "}", "}"], 3, "in the dark, has a contrast of 1.00; it needs 3.0"),
    ],
)
def test_anything_else_is_refused_by_its_line_and_changes_nothing(
    folder: Path, lines: list[str], place: int, words: str
) -> None:
    (folder / FILE).write_text("\n".join(lines))
    colours, refused = read_colours(folder)
    assert colours == {}
    assert f"colours.css:{place}: " in str(refused[0])
    assert words in str(refused[0])
    (folder / "config.yaml").write_text("version: 1\npage: {colours: true}\n")
    assert [one.code for one in load(folder).warnings][:1] == ["page-colours"]  # the daemon works all the same


def test_a_file_that_is_none_or_without_an_end_holds_nobody_up(folder: Path) -> None:
    file = folder / FILE
    os.mkfifo(file)
    assert "not a file" in str(read_colours(folder)[1][0])
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "not a file" in str(read_colours(folder)[1][0])
    file.unlink()
    with file.open("wb") as stream:
        stream.truncate(2**40)
    assert read_colours(folder)[0] == {}
    assert "larger than" in str(read_colours(folder)[1][0])


@pytest.mark.parametrize(
    "panel",
    [
        "https://127.0.0.1:9000", "http://box.example.net", "http://127.0.0.1.example.net", "http://localhost@x.net",
        "http://[::1]:9000", "http://127.0.0.2", "http://127.0.0.1:65536", "http://10.0.0.1/", "javascript:alert(1)",
        "http://127.0.0.1:9000/; script-src *", "http://localhost.x/",
    ],
)  # fmt: skip
def test_a_panel_from_elsewhere_is_refused(folder: Path, panel: str) -> None:
    (folder / "config.yaml").write_text(f"version: 1\npage:\n  panel: '{panel}'\n")
    with pytest.raises(ConfigErrors, match=r"config.yaml:3: page.panel: .*a page of this machine"):
        load(folder)


def test_only_the_page_may_frame_and_only_the_origin_of_the_panel(folder: Path) -> None:
    world = World(folder.parent)

    async def policies() -> list[str]:
        async with world.client() as client:
            html = {"Accept": "text/html"}
            answers = [await client.get("/panel", headers=html), await client.get("/api/v1/now")]
        assert all(len(answer.headers.get_list("content-security-policy")) == 1 for answer in answers)
        return [answer.headers["content-security-policy"] for answer in answers]

    assert not any("frame-src" in one for one in run(policies))
    (folder / "config.yaml").write_text(f"version: 1\npage: {{panel: '{PANEL}', title: Board, colours: true}}\n")
    page, answer = run(policies)
    assert page == f"{answer}; frame-src http://127.0.0.1:9000"
    own = world.pictures.about.read()["page"]
    assert (own["panel"], own["title"], own["colours"]) == (PANEL, "Board", {})
    assert "colours.css: cannot be read" in (own["refused"] or "")
