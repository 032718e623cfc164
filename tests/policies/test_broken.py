"""Policies that are broken on purpose: each is found, at the right key, and told by the shortest way to it.

The first line of each file says what is expected; lines with `#:` are the story.
"""

import re
import shutil
from pathlib import Path
from typing import get_args

import pytest

from ashep.config import ConfigErrors, examine, load
from ashep.core.analysis.soundness import Code

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(FOLDER.glob("[0-9]*.yaml"))


def test_there_are_at_least_thirty() -> None:
    assert len(FILES) >= 30


@pytest.mark.promise("F7")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_broken_policy_is_found_at_its_key_and_told(file: Path, tmp_path: Path) -> None:
    shutil.copy(FOLDER / "agents.yaml", tmp_path / "agents.yaml")
    shutil.copy(file, tmp_path / "policies.yaml")
    lines = file.read_text(encoding="utf-8").splitlines()
    code, key = lines[0].removeprefix("# ").split(" at ")
    story = tuple(line.removeprefix("#: ") for line in lines if line.startswith("#: "))
    errors = [finding for finding in examine(tmp_path).findings if finding.severity == "error"]
    assert (code, key) in [(finding.code, finding.key) for finding in errors], errors
    found = next(finding for finding in errors if finding.code == code)
    assert found.line is not None
    assert lines[found.line - 1].strip()
    if story:
        assert found.story[: len(story)] == story
    with pytest.raises(ConfigErrors) as refused:
        load(tmp_path)
    hints = ["`ashep policy check` tells how" in str(one) for one in refused.value.errors]
    assert hints == [bool(one.story) for one in errors]


def test_every_code_of_the_search_is_explained() -> None:
    table = Path("docs/codes.md").read_text(encoding="utf-8").split("## Codes of findings about policies")[1]
    explained = set(re.findall(r"^\| `([a-z-]+)`", table.split("\n## ")[0], flags=re.M))
    assert explained == {*get_args(Code), "one-agent", "one-provider", "shared-work-tree"}
