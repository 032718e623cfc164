"""Files and databases as people have them: rows of bd, opencode.json and story files in odd forms, none of them copied.

Each odd one costs the sight of itself at most: the others are worked on, and nothing of it ends in a traceback.
"""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ashep.actions.dry_run import preview
from ashep.adapters.beads import BeadsTracker
from ashep.adapters.runners.opencode import sandbox_profiles
from ashep.bmad.status_words import Status
from ashep.bmad.story import read, with_status
from ashep.config import write_starter
from ashep.core.reconcile.eligibility import LEASE_GRACE
from ashep.core.reconcile.observe import expired_leases
from ashep.errors import ServerNotStarted
from tests.core.playbook import Playbook
from tests.test_beads import Fake

# --- databases of Beads -------------------------------------------------------------------------------------------


def row(id: str, **more: Any) -> dict[str, Any]:
    """What bd prints of an ordinary issue, but for these fields; `...`: the field is not there."""
    fields = {"id": id, "title": id, "status": "open", "priority": 2, "issue_type": "task",
            "created_at": "2026-01-02T03:04:05Z"}  # fmt: skip
    return {name: value for name, value in (fields | more).items() if value is not ...}


AT_THE_END = "9999-12-31T23:59:59Z"
ODD: dict[str, tuple[dict[str, Any], str]] = {
    "an ordinary one": (row("t-1"), "starts"),
    "a custom status": (row("t-2", status="triage"), "status"),
    "a custom type": (row("t-3", issue_type="story"), "no_policy"),
    "for people": (row("t-4", labels=["human"]), "not_labels"),
    "a lease at the end of time": (
        row("t-5", status="in_progress", assignee="x", lease_expires_at=AT_THE_END, metadata={"ashep": 1}), "status",
    ),
    "created at the end of time": (row("t-6", created_at=AT_THE_END), "starts"),
    "created in the year 1": (row("t-7", created_at="0001-01-01T00:00:00Z"), "starts"),
    "a stamp of another kind": (row("t-8", metadata={"ashep": [{"seq": "x"}]}), "starts"),
    "metadata that are no object": (row("t-9", metadata="text"), "starts"),
    "an id with spaces": (row("t 10"), "starts"),
    "an id with a slash and letters of its own": (row("T/ümläut"), "starts"),
    "no labels, no edges": (row("t-12", labels=None, dependencies=None), "starts"),
    "an edge elsewhere": (
        row("t-13", dependencies=[{"issue_id": "t-13", "depends_on_id": "external:x:y", "type": "blocks"}]), "starts",
    ),
    "an edge to itself": (
        row("t-14", dependencies=[{"issue_id": "t-14", "depends_on_id": "t-14", "type": "blocks"}]), "starts",
    ),
    "characters that nobody sees": (row("t-15", title="a\x00b\x1b[31m\u202e\U000e0041"), "starts"),
    "an epic": (row("t-16", issue_type="epic"), "no_policy"),
    "no status": (row("t-17", status=...), "unread"),
    "no title": (row("t-18", title=None), "unread"),
    "a date that is none": (row("t-19", created_at="yesterday"), "unread"),
    "a priority in words": (row("t-20", priority="P1"), "unread"),
    "a template": (row("t-21", is_template=True), "hidden"),
    "in no list": (row("t-22"), "hidden"),
}  # fmt: skip
HIDDEN = ("t-21", "t-22")


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A bd whose database holds all of them, in a repository."""
    bd = Fake(tmp_path)
    issues = [issue for issue, _ in ODD.values()]
    bd.says("list", json.dumps([issue for issue in issues if issue["id"] not in HIDDEN], ensure_ascii=False))
    ready = [issue for issue in issues if issue.get("status") == "open"]
    bd.says("ready", json.dumps(ready, ensure_ascii=False))
    for words in (["init", "-q"], ["-c", "user.name=p", "-c", "user.email=p@x", "commit", "-qm", "x", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    write_starter(tmp_path / ".agent-shepherd", "quick")
    config = f"version: 1\ntracker: {{command: ['{bd.program}']}}\nworker: {{max_concurrent_runs: 64}}\n"
    (tmp_path / ".agent-shepherd" / "config.yaml").write_text(config)
    return bd


@pytest.mark.may_block
@pytest.mark.promise("S1", "D7")
async def test_each_odd_issue_of_a_database_is_held_or_named_and_the_others_start(fake: Fake) -> None:
    plan = await preview(fake.folder, fake.folder / ".agent-shepherd", (), None, "ashep")
    codes = {start.issue: "starts" for start in plan.starting} | {issue: code for issue, code, _ in plan.held}
    look = await BeadsTracker(fake.folder, (str(fake.program),), "ashep", 20).look()
    codes |= dict.fromkeys(dict(look.unread), "unread")
    assert codes == {issue["id"]: code for issue, code in ODD.values()}
    assert all(why.strip() for _, _, why in plan.held)
    assert not any(" a epic" in why for _, _, why in plan.held)


async def test_a_lease_of_any_time_is_compared_with_now(fake: Fake) -> None:
    look = await BeadsTracker(fake.folder, (str(fake.program),), "ashep", 20).look()
    leases = [(view.issue, view.lease) for view in look.issues if view.lease is not None]
    now = datetime(2026, 1, 2, tzinfo=UTC)
    first = [(view, datetime.min.replace(tzinfo=UTC)) for view, _ in leases]
    assert len(leases) == 1
    for moment in (now, datetime.min.replace(tzinfo=UTC) + LEASE_GRACE, now + timedelta(days=365)):
        assert expired_leases(Playbook().world, [*leases, *first], moment) == [], "the issue has no stamp of a daemon"


# --- OpenCode's settings ------------------------------------------------------------------------------------------

SETTINGS = {
    "comments": '{\n  // why\n  "prompt": "{file:./told.md}", /* more */\n}\n',
    "a brace that is not closed": '{"prompt": "{file:./told.md", "x": "' + "a" * 500 + '"}\n',
    "a path of many names": '{"prompt": "{file:' + "/".join(["a" * 300] * 20) + '}"}',
    "a folder": '{"prompt": "{file:.}"}',
    "a path out of it": '{"prompt": "{file:../../../etc/passwd}{file:/etc/hostname}{file:~/x}"}',
    "a character that no path has": '{"prompt": "{file:\x00}"}',
    "lines within": '{"prompt": "{file:./told.md\n}"}',
    "no JSON": "provider: {}\n",
    "an array": "[]",
    "another encoding": '{"prompt": "{file:./told.md}"}'.encode("utf-16").decode("latin-1"),
    "rules of all kinds": '{"permission": {"bash": {"*": "ask", "git *": "allow"}, "edit": "deny"}, "plugin": ["x@1"]}',
    "a mark of the encoding": '\ufeff{"prompt": "{file:./told.md}"}',
    "nothing": "",
}


@pytest.mark.parametrize("form", SETTINGS)
def test_opencodes_settings_of_any_form_name_the_files_that_are_there(form: str, tmp_path: Path) -> None:
    text, config = SETTINGS[form], tmp_path / "opencode"
    config.mkdir()
    (config / "told.md").write_text("Be kind.")
    (config / "opencode.json").write_text(text)
    files = sandbox_profiles._settings(config, tmp_path, tmp_path, {"OPENCODE_CONFIG_CONTENT": text})  # pyright: ignore[reportPrivateUsage] - it takes any text
    assert {*files} >= {config / "opencode.json", config / "told.md"}
    assert all(path.is_file() for path in files)
    paths = sandbox_profiles._in_repository({"opencode.json": text.encode(), "sub/opencode.jsonc": text.encode()})  # pyright: ignore[reportPrivateUsage] - the same
    assert not [path for path in paths if path.startswith(("/", "~", "..")) or "\0" in path]
    if form in ("comments", "a mark of the encoding"):
        assert paths == ["sub/told.md", "told.md"]


@pytest.mark.parametrize("content", ["[]", "null", '"x"', "3", "{", "[" * 100_000])
def test_what_the_environment_says_to_opencode_is_an_object_or_refused(content: str) -> None:
    with pytest.raises(ServerNotStarted, match="OPENCODE_CONFIG_CONTENT is not JSON"):
        sandbox_profiles._merged(content, {})  # pyright: ignore[reportPrivateUsage] - the same


# --- stories ------------------------------------------------------------------------------------------------------

STATUSES: dict[str, tuple[str, Status]] = {
    "**Status:** {}  **Epic:** 1  **Points:** 3": ("ready-for-dev", "ready-for-dev"),
    "Status: {} | Priority: P1 | Owner: Pat": ("In Progress", "in-progress"),
    "- **Status:** {} (PR 17, merged 2026-01-02)": ("Done", "done"),
    "**Status: {}** - waits for Pat; see `notes.md`": ("Review", "review"),
    "Status: `{}` [decided](x.md)": ("in-progress", "in-progress"),
    "## Status: {} — since Monday": ("Ready for Review", "review"),
    "## Status\n\n{}, by Pat. All of it is tested.": ("Completed", "done"),
    "Story Status: {}: second round": ("in_review", "review"),
    "Status: {}\tEpic: 1": ("done", "done"),
}


@pytest.mark.parametrize("status", ["in-progress", "review", "done", "blocked"])
@pytest.mark.parametrize("line", STATUSES)
def test_words_behind_the_status_of_a_story_stay(line: str, status: Status) -> None:
    old, word = STATUSES[line]
    before, behind = line.split("{}")
    text = "# Story 1.2: Log in\n\n{}\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [ ] b\n".replace("{}", line)
    data = text.replace("{}", old).encode()
    story = read("1-2-log-in.md", data)
    assert story.status is not None
    assert (story.kind, story.status.word) == ("story", word)
    new = with_status(data, "1-2-log-in.md", status).decode()
    written = read("1-2-log-in.md", new.encode()).status
    assert written is not None
    assert written.word == status
    head, _, rest = text.partition("{}")
    assert (before in head, behind in rest) == (True, True)
    assert new.startswith(head)
    assert new.endswith(rest)
    assert new[len(head) : -len(rest)].lower().replace(" ", "-") == status
