"""docs/guides/agents.md: each set-up is one that can be used, and the table is what the kinds declare."""

import json
import re
from pathlib import Path

import pytest

from ashep.config import examine, load, write_starter
from ashep.core.policy.runner_kinds import ACP, CLAUDE, OPENCODE
from tests.conformance.runners import EVERYTHING
from tests.test_docs import fences
from tools import kinds_page

PAGE = kinds_page.PAGE.read_text()
FOLDER = re.compile(r'yaml title="\.agent-shepherd/(\w+\.yaml)"')

SET_UPS = {
    "A subscription": {CLAUDE},
    "An API key": {CLAUDE},
    "A gateway": {CLAUDE, OPENCODE},
    "A local model": {OPENCODE},
    "Several together": {CLAUDE, OPENCODE, ACP},
}
"""Each by its heading, and the kinds that its agents are of."""


def section(heading: str) -> str:
    """What stands below a heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("preset", ["standard", "cross-reviewed"])
@pytest.mark.parametrize("heading", SET_UPS)
def test_each_set_up_can_be_used_as_it_stands(tmp_path: Path, heading: str, preset: str) -> None:
    write_starter(tmp_path, preset)
    files = {name[1]: text for words, text in fences(section(heading)) if (name := FOLDER.fullmatch(words))}
    assert set(files) == {"config.yaml", "agents.yaml"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert examine(tmp_path).findings == []
    loaded = load(tmp_path)
    used = {loaded.settings.runners.kind(one.runner.type) for one in loaded.agents.agents}
    assert used == SET_UPS[heading]


def test_every_set_up_of_the_page_is_tried() -> None:
    found = [part.partition("\n")[0] for part in PAGE.split("\n## ")[1:] if '.agent-shepherd/agents.yaml"' in part]
    assert found == list(SET_UPS)


def test_what_is_shown_of_opencodes_configuration_is_json() -> None:
    found = [json.loads(text) for words, text in fences(PAGE) if words == "json"]
    assert [set(one) for one in found] == [{"provider"}, {"provider"}, {"permission"}]


def test_the_table_is_fresh() -> None:
    assert kinds_page.redrawn(PAGE) == PAGE, "run `.venv/bin/python -m tools.kinds_page`"


def test_the_table_has_a_row_for_all_that_the_suite_knows() -> None:
    assert set(kinds_page.WORDS) == EVERYTHING
    assert [lacks for lacks in kinds_page.KINDS.values() if not lacks.keys() <= EVERYTHING] == []
    assert kinds_page.table().count("| no |") > 0


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="the page has no"):
        kinds_page.redrawn(PAGE.replace(kinds_page.END, ""))
