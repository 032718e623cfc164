"""A service over memory, a small repository, and a verifier that is told what to find."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
from starlette.applications import Starlette

from ashep.actions.verify import Outputs
from ashep.api.application import application
from ashep.api.handlers.actions import ActionHandlers
from ashep.api.handlers.allowed_repositories import AllowedRepositories
from ashep.api.handlers.events import Live
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.handlers.tickets import Tickets
from ashep.api.openapi import ApiServices
from ashep.api.sessions import Sessions
from ashep.api.static import Page
from ashep.core.facts.delivery import CheckResult, CheckStatus, Verification
from ashep.core.policy.checks import ManualCheck, hash_of
from ashep.extras.simulation.memory.annotations import MemoryAnnotations
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import IssueText
from ashep.ports.verifier import VerifyRequest

PAGE = {"index.html": b"<!doctype html><title>x</title>", "assets/a-1.js": b"let x;" * 1000, "icon.svg": b"<svg/>"}
AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
TOKEN = "a-token-of-many-characters"
CHECKS = """It works.

```yaml
checks:
- {id: readme, type: file_exists, description: d, verify: {path: README.md}}
- {id: tests, type: test_pass, description: d, verify: {command: [make, test]}}
- {id: looks, type: manual, description: d, verify: {question: "Is it good?"}}
```
"""


def git(folder: Path, *words: str) -> str:
    """Run git as a person does, with settings that no machine changes."""
    argv = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path) -> Path:
    """Make a repository with a commit on `main`, and one more on `ashep/t-1`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("Words.\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "branch", "ashep/t-1")
    git(folder, "checkout", "-q", "ashep/t-1")
    (folder / "more.txt").write_text("More.\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "work")
    git(folder, "checkout", "-q", "main")
    return folder


class ToldVerifier:
    """Finds what it is told, at once or when it is let go; what a person is asked is skipped."""

    def __init__(self, outputs: Outputs) -> None:
        self.requests: list[VerifyRequest] = []
        self.finds: dict[str, CheckStatus] = {}
        self.raises: Exception | None = None
        self.goes = anyio.Event()
        self.goes.set()
        self._outputs = outputs

    async def verify(self, request: VerifyRequest) -> Verification:
        self.requests.append(request)
        await self.goes.wait()
        if self.raises is not None:
            raise self.raises
        results = list[CheckResult]()
        for check in request.criteria.checks:
            status = "skipped" if isinstance(check, ManualCheck) else self.finds.get(check.id, "passed")
            output = await self._outputs.keep(f"{check.id} said\n") if status == "failed" else ""
            results.append(CheckResult(check.id, status, f"it {status}", 7, output))
        return Verification(request.commit, "0" * 40, hash_of(request.criteria), tuple(results), isolated=True)


class World:
    """A service, and what stands behind it."""

    def __init__(self, project: Path, *allowed: str, page: Page | None = None, origins: tuple[str, ...] = ()) -> None:
        self.project = project
        self.tracker = MemoryTracker(lambda: AT, "ashep-service")
        self.annotations = MemoryAnnotations(self.tracker)
        self.outputs = Outputs()
        self.verifier = ToldVerifier(self.outputs)
        self.said: list[str] = []
        self.clock = AT
        places = AllowedRepositories(project, allowed, project.parent / "fetched")
        self.tickets = Tickets(self.tracker, self.annotations, self.verifier, self.outputs, places, self._now)
        self.folder = project / ".agent-shepherd"
        pictures = self.pictures = QueryHandlers(self.folder, self._now, self.said.append)
        self.sessions = Sessions(TOKEN, lambda: self.clock.timestamp())
        self.live = Live(pictures)
        self.acts = ActionHandlers(pictures, self._now, lambda *given: self.tracker.as_actor(given[-1]))
        service = ApiServices(self.tickets, pictures, self.acts, self.live, self.sessions)
        self.app: Starlette = application(service, self.said.append, page or Page(PAGE), origins)

    def _now(self) -> datetime:
        self.clock += timedelta(minutes=1)
        return self.clock

    def issue(self, acceptance: str = CHECKS, *, id: str = "t-1") -> str:
        return self.tracker.add("Work", id=id, text=IssueText(acceptance=acceptance))

    def request(self, **more: Any) -> dict[str, Any]:
        return {"ticket_id": "t-1", "branch_name": "ashep/t-1", "repo_url": str(self.project)} | more

    @asynccontextmanager
    async def client(self, token: str | None = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8090", headers=headers) as client:
            yield client
