"""What is found before anything is asked: git, the forge, agents, the check, the sandbox, bd, stories, and the rest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread
from pydantic import ValidationError

from ashep.actions.project_checks import CheckTrial
from ashep.actions.runner_wait import Say
from ashep.actions.setup.checks import try_likeliest
from ashep.actions.setup.database import has_database
from ashep.actions.setup.known_agents import AgentFact, describe_no_agent, find_agents
from ashep.actions.setup.written import written_check
from ashep.actions.story_catalog import look
from ashep.adapters.git.command import Git
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.sandboxes.bubblewrap import try_out
from ashep.adapters.system import programs
from ashep.adapters.system.gh_login import gh_token
from ashep.adapters.system.remote_address import read_address
from ashep.adapters.system.tool_sources import how_to_get
from ashep.core.policy.landing import ForgeSettings
from ashep.errors import UsageError
from ashep.factories import FOLDER

_FORGES = {"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "gitea", "codeberg": "gitea"}
_INTERFACES = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
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
    def chosen(self) -> dict[str, str]:
        """The forge as config.yaml names it: gh knows its address itself."""
        by_gh = self.login == "gh" and not self.url
        url = {"url": self.url} if self.url else {}
        return {"type": "gh" if by_gh else self.type, "repository": self.repository, **url}

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
    checks: tuple[CheckTrial, ...]
    """Commands that were tried on the base."""
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
    check = written_check(files)
    return ProjectFacts(
        tree.branch,
        await _ask_git(project, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}"),
        len(tree.dirty),
        await find_forge(project, environ),
        agents,
        await try_likeliest(project, tuple(check.verify["command"]) if check is not None else (), say),
        sandbox if isinstance(sandbox, str) else "",
        str(bd or ""),
        bd is not None and await has_database(project, bd),
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
    host, repository = read_address(await _ask_git(project, "remote", "get-url", "origin"))
    kind = next((kind for word, kind in _FORGES.items() if word in host), None)
    if kind is None:
        return None
    variable = _TOKENS[kind][0]
    login = variable if environ.get(variable) else ""
    if kind == "github" and not login and await gh_token(host):
        login = "gh"
    url = environ.get("GITHUB_API_URL", "").rstrip("/") if kind == "github" else ""
    if not url and login != "gh" and host not in ("github.com", "gitlab.com"):
        url = f"https://{host}{_INTERFACES[kind]}"
    fact = ForgeFact(kind, host, repository, login, "" if url == _PUBLIC else url)
    try:
        ForgeSettings.model_validate(fact.chosen)
    except ValidationError:  # it is no repository of a forge
        return None
    return fact


# --- the project --------------------------------------------------------------------------------------------------


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
