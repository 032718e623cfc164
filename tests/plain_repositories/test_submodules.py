"""Submodules: places, grounds and checks have their files from the user's `.git/modules`, or say that they have not."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ashep.actions import doctor_git
from ashep.adapters.git.command import Git
from ashep.adapters.git.submodules import find_submodules
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.system.programs import Finished
from ashep.core.policy.settings import Settings, SetupStep
from ashep.core.state.branches import branch_of
from tests.conformance.workspaces import PlacesWorld
from tests.places import has_bubblewrap
from tests.verifier import place as verifier

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.may_block]

ONE, TWO = branch_of("t-1"), branch_of("t-2")
RUN = "t-1/implement.1.1"
SEES = {"type": "test_pass", "verify": {"command": ["sh", "-c", "cat vendor/lib/l.txt vendor/lib/deep/i.txt"]}}


class World(PlacesWorld):
    """A repository with a submodule that has one itself, both filled in the person's checkout."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, sandbox=has_bubblewrap())
        self.git("config", "--global", "protocol.file.allow", "always")
        self.git("config", "--global", "user.email", "person@example.invalid")
        self.git("config", "--global", "user.name", "person")
        self.lib, inner = folder / "lib", folder / "inner"
        for repository in (inner, self.lib):
            self.at(folder, "init", "-q", str(repository))
        (inner / "i.txt").write_text("i\n")
        self.at(inner, "add", "--all")
        self.at(inner, "commit", "-q", "-m", "inner")
        (self.lib / "l.txt").write_text("l\n")
        (self.lib / "AGENTS.md").write_text("be kind\n")
        self.at(self.lib, "submodule", "--quiet", "add", str(inner), "deep")
        self.at(self.lib, "add", "--all")
        self.at(self.lib, "commit", "-q", "-m", "lib")
        self.git("submodule", "--quiet", "add", "--name", "the/lib", str(self.lib), "vendor/lib")
        self.git("submodule", "--quiet", "update", "--init", "--recursive")
        self.git("commit", "-q", "-m", "With a submodule")
        self.checks = verifier.World(verifier.Repository(self.top), folder / "scratch")

    def at(self, folder: Path, *words: str) -> str:
        return self.git(*words, at=str(folder))

    def bump(self, text: str) -> str:
        """Give the library another commit, and have the person's checkout take it."""
        (self.lib / "l.txt").write_text(text)
        self.at(self.lib, "commit", "-q", "-a", "-m", "more")
        self.at(self.top / "vendor" / "lib", "pull", "-q")
        self.git("commit", "-q", "-a", "-m", "Bump")
        return self.base()

    def lib_in(self, branch: str) -> dict[str, str]:
        return {path.removeprefix("vendor/lib/"): text for path, text in self.read(branch).items() if "/" in path}

    async def verified(self, commit: str, base: str | None) -> tuple[str, str]:
        """What a check finds that reads the submodules' files."""
        result = (await self.checks.verify(SEES, commit=commit, base=base)).results[0]
        return result.status, result.message


@pytest.fixture
def world(folder: Path) -> World:
    return World(folder.parent)


LIB = {"l.txt": "l\n", "AGENTS.md": "be kind\n", "deep/i.txt": "i\n"}


def without_gits(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not path.endswith(".gitmodules")}


@pytest.mark.promise("I6")
async def test_a_place_has_the_files_of_submodules_and_git_sees_none_of_them(world: World) -> None:
    await world.begun(ONE, {"a.txt": "new\n", "vendor/lib/built.o": "made\n"})
    assert without_gits(world.lib_in(ONE)) == LIB | {"built.o": "made\n"}
    assert world.git("status", "--porcelain", at=ONE) == "M a.txt"
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert sealed.told == ()
    assert world.git("diff", "--name-only", f"{sealed.head}^", sealed.head) == "a.txt"
    await world.spaces.restore(ONE, world.base())
    assert without_gits(world.lib_in(ONE)) == LIB | {"built.o": "made\n"}
    (standing,) = await world.spaces.list()
    assert not standing.dirty
    removed = await world.spaces.remove(ONE)
    (saved,) = removed.saved
    files = world.git("ls-tree", "-r", "--name-only", saved).splitlines()
    assert files == [".gitmodules", "a.txt", "vendor/lib/built.o"], "what came with the submodule can be had again"


async def test_a_ground_has_them_too(world: World) -> None:
    ground = await world.spaces.prepare(ONE, None, 0, "sealed")
    assert Path(ground.path, "vendor/lib/l.txt").read_text() == "l\n"
    assert Path(ground.path, "vendor/lib/deep/i.txt").read_text() == "i\n"
    assert not os.access(Path(ground.path, "vendor/lib"), os.W_OK) or os.getuid() == 0


async def test_what_an_agent_changes_in_a_submodule_is_told_and_saved(world: World) -> None:
    await world.begun(ONE, {"vendor/lib/l.txt": "an agent's\n"})
    (words,) = (await world.spaces.seal(ONE, RUN, "Work")).told
    assert words.startswith("vendor/lib/l.txt of the submodule vendor/lib is changed there, and on no branch")
    (saved,) = (await world.spaces.remove(ONE)).saved
    assert world.git("show", f"{saved}:vendor/lib/l.txt") == "an agent's"


async def test_a_place_follows_its_branch_unless_somebody_is_at_work_in_the_submodule(world: World) -> None:
    for branch in (ONE, TWO):
        await world.begun(branch, {})
    head = world.bump("more\n")
    world.edit(TWO, "vendor/lib/l.txt", "an agent's\n")
    for branch, text in ((ONE, "more\n"), (TWO, "an agent's\n")):
        world.git("update-ref", f"refs/heads/{branch}", head)
        await world.spaces.prepare(branch, None, 0)
        assert world.lib_in(branch)["l.txt"] == text
    assert (await world.spaces.seal(ONE, RUN, "Work")).told == ()


def leads_out_by_its_folder(world: World) -> None:
    shutil.rmtree(world.place / ONE / "vendor")
    (world.place / ONE / "vendor").symlink_to(world.canary)


def leads_out_by_itself(world: World) -> None:
    shutil.rmtree(world.place / ONE / "vendor" / "lib")
    (world.place / ONE / "vendor" / "lib").symlink_to(world.canary)


def is_a_file(world: World) -> None:
    shutil.rmtree(world.place / ONE / "vendor" / "lib")
    (world.place / ONE / "vendor" / "lib").write_text("a file\n")


def has_a_repository(world: World) -> None:
    shutil.rmtree(world.place / ONE / "vendor" / "lib")
    world.git("init", "-q", str(world.place / ONE / "vendor" / "lib"))


def is_filled(world: World) -> None:
    world.edit(ONE, "vendor/lib/l.txt", "an agent's\n")


@pytest.mark.parametrize(
    "attack", [is_filled, leads_out_by_its_folder, leads_out_by_itself, is_a_file, has_a_repository]
)
async def test_whatever_an_agent_puts_in_the_place_of_a_submodule_stays(world: World, attack: object) -> None:
    assert callable(attack)
    world.canary.mkdir()
    await world.begun(ONE, {})
    attack(world)
    before = sorted((world.place / ONE / "vendor").rglob("*"))
    (note,) = (world.place / ".notes").glob("*/submodules")
    note.unlink()  # as of one that was never filled
    await world.spaces.prepare(ONE, None, 0)
    assert sorted((world.place / ONE / "vendor").rglob("*")) == before
    assert list(world.canary.iterdir()) == []


@pytest.mark.promise("W1")
async def test_checks_have_them_and_each_finds_them_as_they_were(world: World) -> None:
    spoils = {
        "type": "test_pass",
        "verify": {"command": ["sh", "-c", "grep -q ^l vendor/lib/l.txt && echo x >vendor/lib/l.txt"]},
    }
    verification = await world.checks.verify(
        spoils, spoils | {"id": "again"}, SEES, commit=world.base(), base=world.base()
    )
    assert [result.status for result in verification.results] == ["passed"] * 3, verification.results
    assert world.checks.left == []
    assert world.git("status", "--porcelain") == ""


async def test_where_they_are_not_here_a_failed_check_says_so_and_is_carried_out_again_later(world: World) -> None:
    store, aside, base = world.top / ".git" / "modules" / "the", world.top.parent / "aside", world.base()
    store.rename(aside)
    status, message = await world.verified(base, base)
    assert status == "failed"
    assert "the submodule vendor/lib is an empty folder here: git's folder modules does not have it" in message
    assert "git submodule update --init --recursive" in message
    (line,) = await doctor_git.submodules(world.top, Settings.model_validate({"worker": {"workspace": "place"}}))
    assert line.level == "warning"
    assert "vendor/lib is an empty folder" in line.what
    aside.rename(store)
    assert (await world.verified(base, base))[0] == "passed", "what was found holds no longer"
    (line,) = await doctor_git.submodules(world.top, Settings.model_validate({"worker": {"workspace": "place"}}))
    assert line.level == "ok"


async def test_a_candidate_names_none_and_has_commits_that_are_here_alone(world: World) -> None:
    base = world.base()
    secret = world.top.parent / "secret"
    world.at(world.top.parent, "clone", "-q", "--bare", str(world.lib), str(world.top / ".git" / "modules" / "secret"))
    gitlink = world.at(world.lib, "rev-parse", "HEAD")

    def candidate(modules: str, *entries: tuple[str, str]) -> str:
        (world.top / ".gitmodules").write_text(modules)
        world.git("add", ".gitmodules")
        for sha, path in entries:
            world.git("update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
        world.git("commit", "-q", "-m", "Work")
        return world.base()

    more = '[submodule "secret"]\n\tpath = secret\n\turl = /nowhere\n'
    status, message = await world.verified(candidate(more, (gitlink, "secret")), base)
    assert (status, secret.exists()) == ("passed", False), message
    shows = {"type": "test_pass", "verify": {"command": ["sh", "-c", "ls secret; exit 1"]}}
    (result,) = (await world.checks.verify(shows, commit=world.base(), base=base)).results
    assert world.checks.output(result) == "", "an empty folder"
    assert "the submodule secret is an empty folder here: the base's .gitmodules does not name it" in result.message
    status, message = await world.verified(candidate(more, ("1" * 40, "vendor/lib")), base)
    assert status == "failed"
    assert "does not have its commit 111111111111" in message


@pytest.mark.parametrize("name", ["../../../elsewhere", "the/../../../elsewhere", "/etc", ".git"])
async def test_no_name_leads_out_of_gits_folder(world: World, name: str) -> None:
    world.at(world.top.parent, "clone", "-q", "--bare", str(world.lib), str(world.top / "elsewhere"))
    (world.top / ".gitmodules").write_text(f'[submodule "{name}"]\n\tpath = vendor/lib\n\turl = /nowhere\n')
    world.git("commit", "-q", "-m", "Odd", ".gitmodules")
    status, message = await world.verified(world.base(), world.base())
    assert status == "failed"
    assert "is an empty folder here" in message
    (world.top / ".git" / "modules" / "link").symlink_to(world.top / ".git" / "modules" / "the" / "lib")
    world.git("config", "--file", ".gitmodules", f"submodule.{name}.path", "other")
    world.git("config", "--file", ".gitmodules", "submodule.link.path", "vendor/lib")
    world.git("commit", "-q", "-m", "A link", ".gitmodules")
    assert (await world.verified(world.base(), world.base()))[0] == "failed"


async def test_a_set_up_that_fills_them_itself_finds_empty_folders(world: World) -> None:
    step = SetupStep(run=("git", "submodule", "update", "--init"))
    spaces = Clones(world.top, world.place, sandbox=has_bubblewrap(), setup=[step])
    await spaces.prepare(ONE, None, 0)
    assert (world.place / ONE / "vendor/lib/.git").exists()
    await Clones(world.top, world.place, setup=[SetupStep(run=("cat", "vendor/lib/l.txt"))]).prepare(TWO, None, 0)


async def test_in_linked_trees_install_says_that_they_are_empty(world: World) -> None:
    (line,) = await doctor_git.submodules(world.top, Settings.model_validate({"worker": {"workspace": "worktree"}}))
    assert line.level == "warning"
    assert "in a linked work tree" in line.what
    assert "git, submodule, update, --init" in line.remedy
    world.git("rm", "-q", "-r", "vendor", ".gitmodules")
    world.git("commit", "-q", "-m", "None")
    assert await doctor_git.submodules(world.top, Settings.model_validate({"worker": {"workspace": "place"}})) == []


async def test_a_repository_without_any_is_asked_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.git("rm", "-q", "-r", "vendor", ".gitmodules")
    world.git("commit", "-q", "-m", "None")
    commands = list[str]()
    run = Git.run

    async def counted(self: Git, *arguments: str, **how: Any) -> Finished:
        commands.append(arguments[0])
        return await run(self, *arguments, **how)

    monkeypatch.setattr(Git, "run", counted)
    assert await find_submodules(world.top / ".git", world.base(), None) == ()
    assert commands == ["config"], "its tree is not read"


async def test_ten_thousand_that_are_not_here_are_told_on_one_line(world: World) -> None:
    modules = "".join(f'[submodule "m{number}"]\n\tpath = s/{number}\n\turl = /nowhere\n' for number in range(10_000))
    (world.top / ".gitmodules").write_text(modules)
    entries = "".join(f"160000 {'1' * 40}\ts/{number}\n" for number in range(10_000))
    world.git("update-index", "--add", "--index-info", stdin=entries.encode())
    world.git("add", ".gitmodules")
    world.git("commit", "-q", "-m", "Many")
    (line,) = await doctor_git.submodules(world.top, Settings.model_validate({"worker": {"workspace": "place"}}))
    assert "the submodule s/0 is an empty folder here" in line.what
    assert line.what.endswith("so are 199 more"), "no more are looked for"
    (world.top / ".gitmodules").write_text('[submodule "x"\n' * 70_000)
    world.git("commit", "-q", "-a", "-m", "Broken")
    assert await doctor_git.submodules(world.top, Settings()) == [], "git cannot read it"


async def test_install_says_what_git_clean_takes(world: World) -> None:
    assert await doctor_git.cleaning(world.top) == []
    for name in (".beads", ".agent-shepherd"):
        (world.top / name).mkdir()
        (world.top / name / "file").touch()
    (world.top / ".git" / "info" / "exclude").write_text(".beads\n")
    (line,) = await doctor_git.cleaning(world.top)
    assert "here of .agent-shepherd and .beads" in line.what
    assert line.remedy == "`git clean -fdx -e .beads -e .agent-shepherd` spares them"
    world.git("clean", "-fdx", "-e", ".beads", "-e", ".agent-shepherd")
    assert (world.top / ".beads" / "file").exists()
    world.git("add", "--force", ".beads", ".agent-shepherd")
    assert await doctor_git.cleaning(world.top) == [], "a commit holds them"
