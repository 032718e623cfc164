"""What is found before anything is asked: git, the forge, agents, the check, the sandbox, bd, stories, and the rest."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from ashep.actions.runner_wait import Say
from ashep.actions.setup.checks import CheckFact, find_checks, try_check
from ashep.actions.setup.known_agents import AgentFact, describe_no_agent, find_agents
from ashep.actions.setup.written import NONE, written_answers
from ashep.actions.story_catalog import look
from ashep.adapters.git.command import Git
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.sandboxes.bubblewrap import try_out
from ashep.adapters.system import programs, remote_address
from ashep.adapters.system.gh_login import gh_token
from ashep.adapters.system.tool_sources import how_to_get
from ashep.config.starter.setup_files import ChosenForge
from ashep.errors import UsageError
from ashep.factories import FOLDER

_MOST_CHECKS = 2
"""Commands that are run on the base, the likeliest first, until one passes."""

_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+")
_FORGES = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}
_PUBLIC = "https://api.github.com"
_TOKENS = {
    "github": ("GITHUB_TOKEN", "contents and pull requests: write; issues: write"),
    "gitlab": ("GITLAB_TOKEN", "api"),
    "gitea": ("GITEA_TOKEN", "repository and issue: read and write"),
}


@dataclass(frozen=True, slots=True)
class ForgeFact:
    """The forge that the git remote leads to."""

    type: str
    """`github`, `gitlab` or `gitea`."""
    host: str
    repository: str
    login: str
    """`gh`, the variable that holds a token, or empty: there is none."""
    url: str = ""
    """The address of its interface, where that is not the usual one (`GITHUB_API_URL`)."""

    @property
    def chosen(self) -> ChosenForge:
        """The forge as config.yaml names it: gh knows its address itself."""
        by_gh = self.login == "gh" and not self.url
        return ChosenForge("gh" if by_gh else self.type, self.repository, self.url)

    @property
    def token(self) -> tuple[str, str]:
        """The variable that is to hold a token, and the rights that it needs."""
        return _TOKENS[self.type]


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """A project and this machine, as they are."""

    branch: str
    """The branch that is checked out, on which work lands."""
    upstream: str
    dirty: int
    """How many tracked files are changed."""
    forge: ForgeFact | None
    agents: tuple[AgentFact, ...]
    checks: tuple[CheckFact, ...]
    sandbox: str
    """Why there is none; empty: bubblewrap can be used."""
    bd: str
    """The path of the program; empty: there is none yet."""
    has_database: bool
    stories: int
    leftovers: tuple[str, ...]
    """What another set-up left."""
    files: Mapping[str, str]
    """The text of the files that are there already, by name."""


async def find_facts(project: Path, environ: Mapping[str, str], say: Say) -> ProjectFacts:
    """Look at a project; nothing is changed. `say` hears what takes long.

    Raises:
        UsageError: something is missing without which nothing can be set up; says what to do.

    """
    tree = await GitTree(project).read()
    if not tree.present:
        raise UsageError(
            f"{project} is in no git repository: run `git init`, commit something, and run `ashep setup` again"
        )
    if tree.head is None:
        raise UsageError(f"{project} has no commit yet: commit something, and run `ashep setup` again")
    if tree.branch is None:
        raise UsageError("no branch is checked out, and work must land on one: run `git switch BRANCH`")
    agents = await to_thread.run_sync(find_agents, project, environ)
    if not any(agent.is_usable for agent in agents):
        lacks = "; ".join(f"{agent.title}: {agent.lack}" for agent in agents)
        raise UsageError(lacks or await to_thread.run_sync(describe_no_agent))
    bd = await to_thread.run_sync(programs.find, "bd")
    if bd is None and not (await to_thread.run_sync(programs.find, "go")):
        raise UsageError(f"bd, in which issues are kept, is not here: {await to_thread.run_sync(how_to_get, 'bd')}")
    sandbox, files = await try_out(), await to_thread.run_sync(read_files, project)
    return ProjectFacts(
        tree.branch,
        await _ask_git(project, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}"),
        len(tree.dirty),
        await find_forge(project, environ),
        agents,
        await _find_check(project, written_answers(files).get("check", NONE), say),
        sandbox if isinstance(sandbox, str) else "",
        str(bd or ""),
        (project / ".beads").is_dir(),
        await to_thread.run_sync(count_stories, project),
        await to_thread.run_sync(_find_leftovers, project),
        files,
    )


async def _ask_git(project: Path, *words: str) -> str:
    result = await Git(project).run(*words)
    return result.stdout.decode(errors="replace").strip() if result.returncode == 0 else ""


# --- the forge ----------------------------------------------------------------------------------------------------


async def find_forge(project: Path, environ: Mapping[str, str]) -> ForgeFact | None:
    """Find out which forge `origin` leads to, and whether somebody is logged in there; None: to none that is known."""
    proposals = read_address(await _ask_git(project, "remote", "get-url", "origin"))
    if proposals is None:
        return None
    kind, host, repository = proposals
    variable = _TOKENS[kind][0]
    login = variable if environ.get(variable) else ""
    if kind == "github" and not login and await gh_token(host):
        login = "gh"
    url = environ.get("GITHUB_API_URL", "").rstrip("/") if kind == "github" else ""
    return ForgeFact(kind, host, repository, login, "" if url == _PUBLIC else url)


def read_address(address: str) -> tuple[str, str, str] | None:
    """Read the forge, host and repository from a remote's address; None: it is of no forge that is known."""
    host, path = remote_address.read_address(address)
    kind = next((kind for word, kind in _FORGES.items() if word in host), None)
    return (kind, host, path) if kind and _REPOSITORY.fullmatch(path) else None


# --- the project --------------------------------------------------------------------------------------------------


async def _find_check(project: Path, command: str, say: Say) -> tuple[CheckFact, ...]:
    """Run the likeliest commands on the base, in the checkout and sandbox of a real check, until one passes. What the
    files have is the likeliest.
    """
    proposals, tried = await to_thread.run_sync(find_checks, project), list[CheckFact]()
    if command != NONE:
        proposals = (CheckFact(tuple(shlex.split(command)), ""), *proposals)
    for proposal in proposals[:_MOST_CHECKS]:
        tried.append(await try_check(project, proposal, lambda line: say(f"trying on the base: {line}")))
        if tried[-1].passed:
            break
    return tuple(tried)


def count_stories(project: Path) -> int:
    """Count the stories of a project that has folders of the BMAD method. Blocks."""
    if not any((project / name).is_dir() for name in ("_bmad", "bmad", "_bmad-output")):
        return 0
    return sum(item.may_be_story for item in look(project).found)


def _find_leftovers(project: Path) -> tuple[str, ...]:
    files = {
        "WORKFLOW.md": "WORKFLOW.md, a workflow for Symphony: `ashep policy import WORKFLOW.md` makes a policy of it",
        ".opencode/plugins/webboty.yaml": "files of webboty/agent-shepherd: `ashep policy import FOLDER` reads them",
    }
    proposals = [line for name, line in files.items() if (project / name).is_file()]
    config = project / FOLDER / "config.yaml"
    if config.is_file() and not re.search(r"^version:", config.read_text(encoding="utf-8", errors="replace"), re.M):
        proposals.append(f"{FOLDER}/ of webboty/agent-shepherd: `ashep policy import {FOLDER}` makes policies of it")
    return tuple(proposals)


def read_files(project: Path) -> dict[str, str]:
    """Read the files of a project that is set up already. Raises `UsageError` where one cannot be read."""
    texts = dict[str, str]()
    for name in ("config.yaml", "policies.yaml", "agents.yaml"):
        file = project / FOLDER / name
        if file.exists():
            try:
                texts[name] = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{file}: cannot be read: {error}") from error
    return texts
