"""The team's hooks: an agent's own commits run them in a place, and `ashep install` names those that would refuse."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ashep import factories
from ashep.actions import doctor_git
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.system.programs import Finished, find, run
from ashep.core.policy.settings import AgentPaths, GitSettings
from tests.places import has_bubblewrap
from tests.test_inside import ONE, RUN, World

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.may_block, pytest.mark.promise("I6")]
SANDBOXED = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")

BD = find("bd")  # before there is another home
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge", "pre-push")

HUSKY = """#!/usr/bin/env sh
n=$(basename "$0")
s=$(dirname "$(dirname "$0")")/$n
[ ! -f "$s" ] && exit 0
sh -e "$s" "$@"
c=$?
[ $c != 0 ] && echo "husky - $n script failed (code $c)"
exit $c
"""
"""`.husky/_/h` of husky 9, without what it says of files of before."""

PRE_COMMIT = """#!/usr/bin/env bash
INSTALL_PYTHON=PYTHON
if [ -x "$INSTALL_PYTHON" ]; then
    exec "$INSTALL_PYTHON"
elif command -v pre-commit > /dev/null; then
    exec pre-commit
else
    echo '`pre-commit` not found.  Did you forget to activate your virtualenv?' 1>&2
    exit 1
fi
"""
"""As pre-commit 4.7 writes it."""

LFS = """#!/bin/sh
command -v git-lfs >/dev/null 2>&1 || { echo >&2 "This repository needs 'git-lfs', which was not found."; exit 2; }
git lfs NAME "$@"
"""
"""As Git LFS 3.3 writes it."""


@pytest.fixture
def world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(folder.parent, monkeypatch)


def write_hooks(folder: Path, text: str, *names: str) -> None:
    """Write hooks into a folder; `NAME` in the text is the hook's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text.replace("NAME", name))
        (folder / name).chmod(0o755)


def counting(world: World) -> tuple[str, Path]:
    """A hook that notes its name, and where."""
    notes = world.home.parent / "notes"
    return f'#!/bin/sh\n. "$(dirname "$0")/lib"\necho NAME >>{notes}\n', notes


def in_gits_folder(world: World) -> Path:
    return world.top / ".git" / "hooks"


def committed(world: World) -> Path:
    world.git("config", "core.hooksPath", ".githooks")
    return world.top / ".githooks"


def committed_and_named_as_bd_does(world: World) -> Path:
    world.git("config", "core.hooksPath", str(world.top / "tools" / "hooks"))
    return world.top / "tools" / "hooks"


def of_the_person(world: World) -> Path:
    world.git("config", "--global", "core.hooksPath", "~/hooks")
    return world.home / "hooks"


@pytest.mark.parametrize("where", [in_gits_folder, committed, committed_and_named_as_bd_does, of_the_person])
async def test_commits_of_an_agent_run_the_teams_hooks_and_no_call_of_ours_does(
    world: World, where: Callable[[World], Path]
) -> None:
    folder, (text, notes) = where(world), counting(world)
    write_hooks(folder, text, *HOOKS)
    (folder / "lib").write_text(":\n")
    world.git("-c", "core.hooksPath=/dev/null", "add", "--all")
    world.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Hooks")
    await world.begun(ONE, {"a.txt": "new\n"})
    await world.spaces.seal(ONE, RUN, "Work")
    await world.spaces.prepare(ONE, None, 0)
    assert not notes.exists(), notes.read_text()
    world.git("commit", "-q", "--allow-empty", "-m", "An agent's", at=ONE)
    assert notes.read_text().split() == ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]
    await world.spaces.seal(ONE, RUN, "Work")
    assert notes.read_text().count("\n") == 4
    assert "hooksPath" not in (world.place / ".git-config" / "config").read_text()


@pytest.mark.parametrize("where", [in_gits_folder, committed])
async def test_hooks_are_switched_off_and_on_also_in_a_place_that_stands(
    world: World, where: Callable[[World], Path]
) -> None:
    folder, (text, notes) = where(world), counting(world)
    write_hooks(folder, text, *HOOKS)
    (folder / "lib").write_text(":\n")
    world.git("-c", "core.hooksPath=/dev/null", "add", "--all")
    world.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Hooks")
    for skipped in (False, True, False, True):
        git = GitSettings(hooks="skip" if skipped else "run")
        settings = world.settings("none").model_copy(update={"git": git})
        await factories.worktrees_of(world.top, settings).prepare(ONE, None, 0)
        world.git("commit", "-q", "--allow-empty", "-m", "An agent's", at=ONE)
        assert notes.exists() != skipped
        notes.unlink(missing_ok=True)
    world.git("config", "core.hooksPath", "mine", at=ONE)
    await factories.worktrees_of(world.top, world.settings("none")).prepare(ONE, None, 0)
    assert world.git("config", "core.hooksPath", at=ONE) == "mine", "what an agent set stays its own"


async def commit_as_an_agent(world: World, *words: str) -> Finished:
    """Commit in a place, as its agent does."""
    inside = await factories.inside_of(world.top, world.settings("bwrap"), world.place / ONE)
    assert inside is not None
    identity = ("-c", "user.name=agent", "-c", "user.email=agent@example.invalid")
    return await inside.run(
        ["git", *identity, "commit", "-q", "--allow-empty", "-m", "x", *words], inside.view.at, {}, 30
    )


@SANDBOXED
@pytest.mark.real
async def test_bds_own_hooks_refuse_no_commit(world: World) -> None:
    assert BD is not None
    await run([BD, "hooks", "install"], cwd=world.top, env=None, timeout=240)
    assert "bd hooks run" in (in_gits_folder(world) / "prepare-commit-msg").read_text()
    await world.begun(ONE, {})
    for words in ((), ("--no-verify",)):
        finished = await commit_as_an_agent(world, *words)
        assert (finished.returncode, finished.stderr) == (0, b"")
    (line,) = await doctor_git.hooks(world.top, world.settings("bwrap"))
    assert line.level == "ok", line


def husky(world: World, script: str) -> None:
    """The hooks of husky 9: a person's checkout has its folder `_`, no commit has it."""
    write_hooks(world.top / ".husky" / "_", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n', *HOOKS)
    (world.top / ".husky" / "_" / "h").write_text(HUSKY)
    (world.top / ".husky" / "_" / ".gitignore").write_text("*")
    (world.top / ".husky" / "pre-commit").write_text(script)
    world.git("config", "core.hooksPath", ".husky/_")


@SANDBOXED
async def test_install_names_the_hooks_that_would_refuse_and_leaves_nothing(world: World) -> None:
    settings = world.settings("bwrap")
    assert await doctor_git.hooks(world.top, settings) == [], "there is none"
    python = world.home / "venv" / "bin" / "python3"
    write_hooks(python.parent, "#!/bin/sh\nexit 0\n", python.name)
    write_hooks(in_gits_folder(world), PRE_COMMIT.replace("PYTHON", str(python)), "pre-commit")
    write_hooks(in_gits_folder(world), LFS, "post-commit")
    write_hooks(in_gits_folder(world), '#!/bin/sh\ngrep -q ^chore: "$1"\n', "commit-msg")
    before = world.git("for-each-ref"), world.git("status", "--porcelain")
    refused, failing = await doctor_git.hooks(world.top, settings)
    assert refused.level == failing.level == "warning"
    assert "the hook pre-commit refuses each commit" in refused.what
    assert "Did you forget to activate your virtualenv?" in refused.what
    assert "agents.paths.read" in refused.remedy
    assert "git.hooks: skip" in refused.remedy
    assert "the hook post-commit fails" in failing.what
    assert "needs 'git-lfs', which was not found" in failing.what
    assert before == (world.git("for-each-ref"), world.git("status", "--porcelain"))
    assert not any((world.place / ".making").iterdir())
    reading = settings.agents.model_copy(update={"paths": AgentPaths(read=(str(world.home / "venv"),))})
    (line,) = await doctor_git.hooks(world.top, settings.model_copy(update={"agents": reading}))
    assert "post-commit" in line.what, "what pre-commit needs can be read now"
    skipping = settings.model_copy(update={"git": GitSettings(hooks="skip")})
    assert await doctor_git.hooks(world.top, skipping) == []


@SANDBOXED
async def test_huskys_folder_is_the_candidates_and_install_says_where_no_hook_runs(world: World) -> None:
    husky(world, "no-such-program --version\n")
    world.git("-c", "core.hooksPath=/dev/null", "add", "--all")
    world.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Hooks")
    (line,) = await doctor_git.hooks(world.top, world.settings("bwrap"))
    assert line.level == "ok"
    assert "`core.hooksPath` is .husky/_, which no commit holds" in line.what
    await world.begun(ONE, {})
    assert (await commit_as_an_agent(world)).returncode == 0
    shutil.copytree(world.top / ".husky" / "_", world.place / ONE / ".husky" / "_")  # as a step of the set-up does
    finished = await commit_as_an_agent(world)
    assert finished.returncode == 1
    assert b"husky - pre-commit script failed (code 127)" in finished.stderr + finished.stdout
    world.git("add", "--force", ".husky")
    world.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "With the folder")
    (line,) = await doctor_git.hooks(world.top, world.settings("bwrap"))
    assert "the hook pre-commit refuses each commit" in line.what
    assert "no-such-program" in line.what


@SANDBOXED
async def test_a_hook_without_end_and_one_that_prints_without_end_hold_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_git, "_HOOK", 1.0)
    write_hooks(in_gits_folder(world), "#!/bin/sh\nsleep 4321 & wait\n", "pre-commit")
    write_hooks(in_gits_folder(world), "#!/bin/sh\nhead -c 1048576 /dev/zero | tr '\\0' x >&2; exit 7\n", "commit-msg")
    slow, loud = await doctor_git.hooks(world.top, world.settings("bwrap"))
    assert "it had not ended after 1 s" in slow.what
    assert len(loud.what) < 1000
    assert not (world.place / ".making").exists() or not os.listdir(world.place / ".making")


@pytest.mark.parametrize("path", ["", "/dev/null", "loop", "../../elsewhere", "."])
async def test_whatever_the_folder_of_hooks_is_a_place_is_made(world: World, path: str) -> None:
    (world.top / "loop").symlink_to("loop")
    world.git("config", "core.hooksPath", path)
    await world.begun(ONE, {})
    world.git("commit", "-q", "--allow-empty", "-m", "An agent's", at=ONE)


async def test_only_a_folders_own_small_files_are_copied(world: World) -> None:
    hooks = in_gits_folder(world)
    shutil.rmtree(hooks)
    write_hooks(hooks, "#!/bin/sh\n", "pre-commit", "pre-push.sample")
    (hooks / "more").mkdir()
    (hooks / "gone").symlink_to("nowhere")
    os.mkfifo(hooks / "pipe")
    (hooks / "large").write_bytes(bytes(1024**2 + 1))
    for number in range(300):
        (hooks / f"zz{number:03}").touch()
    await Clones(world.top, world.place, sandbox=False).prepare(ONE, None, 0)
    copied = sorted(file.name for file in (world.place / ONE / ".git" / "hooks").iterdir())
    assert copied == ["pre-commit", *(f"zz{number:03}" for number in range(199))]
