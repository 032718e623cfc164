"""What `ashep install` says of sources of issues."""

from pathlib import Path

from ashep.actions.issue_sources import check_sources
from ashep.core.policy.settings import AgentsSettings, Settings, WorkerSettings
from ashep.core.policy.sources import GitHubSource, Sources
from ashep.factories import secret_variables

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
