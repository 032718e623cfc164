"""What commands make of issues of sources: their names, why they do not begin, and what `ashep install` says."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ashep.actions.issue_sources import check_sources
from ashep.cli import main
from ashep.cli.issue_names import whole
from ashep.core.facts.sources import SourceHeld
from ashep.core.policy.settings import AgentsSettings, Settings, WorkerSettings
from ashep.core.policy.sources import GitHubSource, Sources
from ashep.factories import secret_variables
from tests.recorded import Recorded, draw

GITHUB = Sources(github=GitHubSource(token_env="MY_TOKEN"))
BOXED = Settings(
    sources=GITHUB, worker=WorkerSettings(workspace="place"), agents=AgentsSettings(sandbox="auto")
)  # fmt: skip


def test_whose_approval_counts_follows_from_where_agents_run(tmp_path: Path) -> None:
    assert check_sources(tmp_path, Settings()) == []
    assert [line.level for line in check_sources(tmp_path, BOXED)] == ["ok"]
    (line,) = check_sources(tmp_path, Settings(sources=GITHUB))
    assert (line.level, "no approval counts" in line.what) == ("warning", True)


def test_the_synchronisation_of_bd_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    for text, count in (
        ("# github.com/x\njson: false\n", 1),
        ("github:\n  owner: acme\n", 2),
        ('github.token: "x"\n', 2),
    ):
        (tmp_path / ".beads" / "config.yaml").write_text(text)
        assert len(check_sources(tmp_path, BOXED)) == count


def test_the_token_is_handed_to_no_agent() -> None:
    assert "MY_TOKEN" in secret_variables(BOXED)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with issues of the tracker and of GitHub, and one of GitHub that may not begin."""
    made = Recorded(tmp_path / ".agent-shepherd" / "state")
    made.begin()
    for issue in ("shop-12", "shop-gh-12", "shop-gh-7"):
        made.open(issue)
    for _ in range(20):
        made.tick()
    made.turn(SourceHeld("shop-gh-13", "label", why="eve may not write to the repository (read)"))
    draw(tmp_path / ".agent-shepherd" / "state", made.journal)
    made.journal.close()
    return tmp_path


@pytest.mark.parametrize("command", ["why", "approve", "cancel"])
def test_a_name_that_several_issues_have_is_refused_and_all_are_named(
    command: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", str(project), command, "12"]) == 2
    assert "12 names several issues: shop-12, shop-gh-12. Type the whole id" in capsys.readouterr().err


def test_a_name_is_of_an_issue_that_is_known(project: Path) -> None:
    for name, issue in (("#12", "shop-gh-12"), ("7/implement.1", "shop-gh-7/implement.1"), ("shop/x", "shop/x")):
        assert whole(project, name) == issue


@pytest.mark.parametrize("name", ["13", "#13", "gh-13", "shop-gh-13"])
def test_why_says_why_an_issue_of_github_is_in_no_tracker(
    name: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", str(project), "why", name]) == 1
    assert "shop-gh-13 is in no tracker yet: eve may not write" in capsys.readouterr().err
    assert main(["-C", str(project), "why", "14"]) == 1
    assert "nothing is known of an issue 14" in capsys.readouterr().err


def test_names_of_repositories_tell_their_issues_apart() -> None:
    with pytest.raises(ValidationError, match="with a name that no other has"):
        Sources(github=(GitHubSource(repository="acme/shop"), GitHubSource(repository="other/Shop")))
