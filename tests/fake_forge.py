"""A forge on loopback that speaks as GitHub, GitLab and Gitea do, of one repository, as far as `ashep` asks.

The three interfaces are views of one list of pull requests, in the shapes and with the habits of the real ones: GitHub
numbers pull requests with issues, answers a second one with 422 and has two kinds of CI; GitLab has `iid` beside `id`
and answers 409; Gitea cannot filter by branch, pages by `limit`, and tells who closed one by the timeline only.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fake_issues import FakeIssues
from tests.github_schema import find_problem

REPOSITORY = "acme/tools"
TOKEN = "a-token-of-the-forge"
DATE = "Sun, 06 Nov 2033 08:49:37 GMT"
NOW = 2014879777


@dataclass(slots=True)
class Pull:
    """A pull request."""

    number: int
    branch: str
    base: str
    title: str
    body: str
    repository: str = REPOSITORY
    head: str = "a" * 40
    state: str = "open"
    by: str = ""
    checks: dict[str, str] = field(default_factory=dict[str, str])
    """State by name: passing, pending or failing."""
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Of kind `comment`, `approved`, `changes_requested` or `remark`, which has a path."""


class FakeForge:
    """What the forge knows, and what plays people there."""

    def __init__(self) -> None:
        self.url = ""
        self.pulls: list[Pull] = []
        self.issues: FakeIssues = self.__dict__.get("issues") or FakeIssues(REPOSITORY)
        FakeIssues.__init__(self.issues, REPOSITORY)  # its routes stand
        self.heads: dict[str, str] = {}
        """What was pushed to branches, where a test knows of it."""
        self.requests: list[tuple[str, str]] = []
        self.trouble: Callable[[Request], Response | None] = lambda request: None
        """What is answered instead."""
        self.strangers: set[str] = set()
        """Who has nothing to say in the repository; all others may push to it."""
        self.members: set[str] = set()
        """Who is of the organisation, and may only read this repository."""
        self.pull_comments: Callable[[Request], Any] = self.__dict__.get("pull_comments", lambda request: None)
        self.problems: list[str] = self.__dict__.get("problems", [])
        """What was asked or answered that GitHub does not publish."""
        self.locks_us = False
        self.forgets = False
        """A write is carried out, and its answer lost."""
        self._numbers = iter(range(7, 10**6))

    # --- people ---

    def opens(
        self, branch: str, base: str = "main", *, title: str = "t", body: str = "", repository: str = REPOSITORY
    ) -> Pull:
        pull = Pull(next(self._numbers), branch, base, title, body, repository)
        pull.head = self.heads.get(branch, pull.head)
        self.pulls.append(pull)
        return pull

    def says(
        self, pull: Pull, kind: str, by: str, text: str = "", *, path: str | None = None, bot: bool = False
    ) -> None:
        number = sum(len(one.comments) for one in self.pulls) + 1
        at = f"2033-11-06T08:{number:02}:00Z"
        pull.comments.append({"id": number, "kind": kind, "by": by, "text": text, "path": path, "bot": bot, "at": at})

    def people(self) -> list[str]:
        return sorted({one["by"] for pull in self.pulls for one in pull.comments} - self.strangers)

    def association(self, login: str) -> str:
        """What GitHub calls somebody; `olga` owns the repository."""
        return (
            "OWNER"
            if login == "olga"
            else "CONTRIBUTOR"
            if login in self.strangers
            else "MEMBER"
            if login in self.members
            else "COLLABORATOR"
        )

    def create(self, branch: str, base: str, title: str, body: str) -> Pull | None:
        """None: there is an open one of this branch."""
        if any((one.branch, one.base, one.state) == (branch, base, "open") for one in self.mine()):
            return None
        return self.opens(branch, base, title=title, body=body)

    def mine(self) -> list[Pull]:
        return [one for one in self.pulls if one.repository == REPOSITORY]

    def pull(self, number: str) -> Pull | None:
        return next((one for one in self.pulls if str(one.number) == number), None)

    # --- the server ---

    def make_app(self) -> Starlette:
        """Make what answers requests, for a client in this process as well."""
        return Starlette(routes=[*self.issues.routes(self), *_github(self), *_gitlab(self), *_gitea(self)])

    @contextmanager
    def listening(self) -> Generator["FakeForge"]:
        config = uvicorn.Config(
            self.make_app(), port=0, log_level="critical", lifespan="off", ws="none", date_header=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            threading.Event().wait(0.005)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield self
        server.should_exit = True
        thread.join(10)
        assert not self.problems, f"the played GitHub is not as the published one: {self.problems[0]}"

    def route(self, path: str, answer: Callable[..., Any], *, write: Callable[..., Any] | None = None) -> Route:
        async def call(request: Request) -> Response:
            self.requests.append((request.method, request.url.path))
            if trouble := self.trouble(request):
                return trouble
            if TOKEN not in request.headers.get("Authorization", request.headers.get("PRIVATE-TOKEN", "")):
                return JSONResponse({"message": "Bad credentials"}, 401)
            sent = None
            if request.method != "GET":
                assert write is not None
                sent = await request.json()
                made = write(request, sent)
                if self.forgets:
                    self.forgets = False
                    return JSONResponse({"message": "Bad gateway"}, 502)
            else:
                made = answer(request)
            if made is None:
                return JSONResponse({"message": "Not Found"}, 404)
            response = made if isinstance(made, Response) else JSONResponse(made)
            place = request.url.path.removeprefix("/github")
            if place != request.url.path and place != "/graphql":
                query = {*request.query_params}
                problem = find_problem(request.method, place, query, sent, response.status_code, bytes(response.body))
                self.problems += [problem] if problem else []
            return response

        return Route(path, call, methods=["GET", "POST", "PATCH"] if write else ["GET"])


def _paged(request: Request, found: list[Any], size: str = "per_page", most: int = 100) -> Response:
    page, length = int(request.query_params.get("page", 1)), min(int(request.query_params.get(size, 30)), most)
    more = {"Link": f'<{request.url}>; rel="next", <x>; rel="last"'} if len(found) > page * length else {}
    return JSONResponse(found[(page - 1) * length : page * length], headers=more)


def _of(forge: FakeForge, request: Request) -> Pull | None:
    return forge.pull(str(request.path_params["number"]))


def _kind(pull: Pull, *kinds: str) -> list[dict[str, Any]]:
    return [one for one in pull.comments if one["kind"] in kinds]


# --- GitHub ---


def _github(forge: FakeForge) -> Iterator[Route]:
    place = f"/github/repos/{REPOSITORY}"

    def brief(pull: Pull) -> dict[str, Any]:
        return {
            "id": 900_000 + pull.number,
            "number": pull.number,
            "html_url": f"https://forge.example/{REPOSITORY}/pull/{pull.number}",
            "state": "open" if pull.state == "open" else "closed",
            "title": pull.title,
            "body": pull.body or None,
            "merged_at": "2033-11-06T09:00:00Z" if pull.state == "merged" else None,
            "head": {"ref": pull.branch, "sha": pull.head, "repo": {"full_name": pull.repository}},
            "base": {"ref": pull.base, "sha": "b" * 40},
            "user": {"login": "shepherd", "type": "User"},
        }

    def whole(pull: Pull) -> dict[str, Any]:
        merged = pull.state == "merged"
        by = {"login": pull.by, "type": "User"} if merged else None
        # GitHub has a merge_commit_sha for open ones, too: of a merge that it tries
        return brief(pull) | {"merged": merged, "merged_by": by, "merge_commit_sha": "c" * 40, "mergeable": None}

    def listed(request: Request) -> Response:
        wanted, state = request.query_params.get("head", ""), request.query_params.get("state", "open")
        found = [one for one in reversed(forge.mine()) if wanted in ("", f"acme:{one.branch}")]
        found = [one for one in found if state == "all" or (one.state == "open") == (state == "open")]
        return _paged(request, [brief(one) for one in found if request.query_params.get("base", one.base) == one.base])

    def created(request: Request, data: dict[str, Any]) -> Any:
        pull = forge.create(data["head"], data["base"], data["title"], data["body"])
        if pull is None:
            text = f"A pull request already exists for acme:{data['head']}."
            error = {"resource": "PullRequest", "code": "custom", "message": text}
            return JSONResponse({"message": "Validation Failed", "errors": [error], "status": "422"}, 422)
        return JSONResponse(whole(pull), 201)

    def user(one: dict[str, Any]) -> dict[str, str]:
        return {"login": one["by"], "type": "Bot" if one["bot"] else "User"}

    def remarks(*kinds: str, at: str = "created_at") -> Callable[[Request], Any]:
        def answer(request: Request) -> Any:
            if (pull := _of(forge, request)) is None:
                return None
            states = {"approved": "APPROVED", "changes_requested": "CHANGES_REQUESTED", "pending": "PENDING"}
            found = [
                {"id": one["id"], "user": user(one), "body": one["text"], at: one["at"]}
                | ({"path": one["path"]} if one["kind"] == "remark" else {})
                | {"author_association": forge.association(one["by"])}
                | ({"state": states[one["kind"]]} if one["kind"] in states else {})
                for one in _kind(pull, *kinds)
            ]
            return _paged(request, found)

        return answer

    def statuses(request: Request) -> Any:
        states = {"passing": "success", "pending": "pending", "failing": "failure"}
        found = [
            {"context": name, "state": states[state], "description": f"{name} says", "target_url": address(name)}
            for name, state in _checks(forge, request)
            if name[0] != "@"
        ]
        return {"state": "pending", "total_count": len(found), "statuses": found}

    def runs(request: Request) -> Any:
        found = [
            {"name": name[1:], "status": "in_progress", "conclusion": None}
            if state == "pending"
            else {
                "name": name[1:],
                "status": "completed",
                "conclusion": {"passing": "neutral"}.get(state, "timed_out"),
                "html_url": address(name),
                "output": {"title": f"{name[1:]} says", "summary": None, "text": "line 7"},
            }
            for name, state in _checks(forge, request)
            if name[0] == "@"
        ]
        return {"total_count": len(found), "check_runs": found}

    def permission(request: Request) -> Any:
        who = request.path_params["login"]
        if who in forge.issues.rights:
            return {"permission": forge.issues.rights[who], "role_name": "x", "user": {"login": who}}
        if who not in {*forge.people(), *forge.strangers}:
            return None
        may = "admin" if who == "olga" else "read" if who in {*forge.strangers, *forge.members} else "write"
        return {"permission": may, "role_name": may, "user": {"login": who}}

    yield forge.route(f"{place}/collaborators/{{login}}/permission", permission)
    yield forge.route(f"{place}/pulls", listed, write=created)
    yield forge.route(f"{place}/pulls/{{number}}", lambda request: (pull := _of(forge, request)) and whole(pull))
    forge.pull_comments = remarks("comment")
    yield forge.route(f"{place}/pulls/{{number}}/comments", remarks("remark"))
    verdicts = ("approved", "changes_requested", "pending")
    yield forge.route(f"{place}/pulls/{{number}}/reviews", remarks(*verdicts, at="submitted_at"))
    yield forge.route(f"{place}/commits/{{sha}}/status", statuses)
    yield forge.route(f"{place}/commits/{{sha}}/check-runs", runs)


def address(name: str) -> str:
    """Where more of a check is."""
    return f"https://ci.example/{name.lstrip('@')}"


def _checks(forge: FakeForge, request: Request) -> list[tuple[str, str]]:
    """Checks of a commit; a name that begins with @ is that of a check run, which only GitHub has."""
    pulls = [one for one in forge.pulls if one.head == request.path_params["sha"]]
    return [check for one in pulls for check in one.checks.items()]


# --- GitLab ---


def _gitlab(forge: FakeForge) -> Iterator[Route]:
    place = "/gitlab/projects/acme/tools/merge_requests"  # starlette has decoded %2F already

    def whole(pull: Pull) -> dict[str, Any]:
        worst = next((one for one in ("failing", "pending", "passing") if one in pull.checks.values()), None)
        pipeline = {"id": 500 + pull.number, "sha": pull.head}
        pipeline |= {"status": {"failing": "failed", "pending": "running", "passing": "success"}.get(worst or "", "")}
        merged, closed = pull.state == "merged", pull.state == "closed"
        return {
            "id": 900_000 + pull.number,
            "iid": pull.number,
            "web_url": f"https://forge.example/{REPOSITORY}/-/merge_requests/{pull.number}",
            "state": "opened" if pull.state == "open" else pull.state,
            "title": pull.title,
            "description": pull.body or None,
            "source_branch": pull.branch,
            "target_branch": pull.base,
            "sha": pull.head,
            "merge_commit_sha": "c" * 40 if merged else None,
            "squash_commit_sha": None,
            "merge_user": {"username": pull.by} if merged else None,
            "closed_by": {"username": pull.by} if closed else None,
            "head_pipeline": pipeline if worst else None,
        }

    def listed(request: Request) -> Response:
        wanted, state = request.query_params, request.query_params.get("state", "all")
        found = [
            one
            for one in reversed(forge.mine())
            if wanted.get("source_branch", one.branch) == one.branch
            and wanted.get("target_branch", one.base) == one.base
            and state in ("all", "opened" if one.state == "open" else one.state)
        ]
        return _paged(request, [whole(one) for one in found])

    def created(request: Request, data: dict[str, Any]) -> Any:
        pull = forge.create(data["source_branch"], data["target_branch"], data["title"], data["description"])
        if pull is None:
            text = "Another open merge request already exists for this source branch: !7"
            return JSONResponse({"message": [text]}, 409)
        return JSONResponse(whole(pull), 201)

    def notes(request: Request) -> Any:
        pull = _of(forge, request)
        found = [
            {
                "id": one["id"],
                "body": one["text"],
                "author": {"username": one["by"], "bot": one["bot"]},
                "created_at": one["at"],
                "system": False,
                "position": {"new_path": one["path"]} if one["path"] else None,
            }
            for one in (_kind(pull, "comment", "remark") if pull else [])
        ]
        system = {"id": 1, "body": "changed the milestone", "author": {"username": "x"}, "system": True}
        return _paged(request, [system, *found])

    def approvals(request: Request) -> Any:
        pull = _of(forge, request)
        return pull and {"approved_by": [{"user": {"username": one["by"]}} for one in _kind(pull, "approved")]}

    def reviewers(request: Request) -> Any:
        pull = _of(forge, request)
        found = _kind(pull, "changes_requested") if pull else []
        asked = [{"user": {"username": one["by"]}, "state": "requested_changes"} for one in found]
        return _paged(request, [{"user": {"username": "y"}, "state": "unreviewed"}, *asked])

    def members(request: Request) -> Any:
        guests = [{"username": name, "access_level": 20} for name in sorted(forge.strangers)]
        return _paged(request, [*guests, *({"username": name, "access_level": 30} for name in forge.people())])

    def jobs(request: Request) -> Any:
        pull = forge.pull(str(int(request.path_params["pipeline"]) - 500))
        assert request.query_params["scope[]"] == "failed"
        failed = [name for name, state in (pull.checks.items() if pull else ()) if state == "failing"]
        said = [{"name": name.lstrip("@"), "web_url": address(name)} for name in failed]
        return _paged(request, [{**one, "status": "failed", "failure_reason": f"{one['name']} says"} for one in said])

    yield forge.route(place, listed, write=created)
    yield forge.route(f"{place}/{{number}}", lambda request: (pull := _of(forge, request)) and whole(pull))
    yield forge.route(f"{place}/{{number}}/notes", notes)
    yield forge.route(f"{place}/{{number}}/approvals", approvals)
    yield forge.route(f"{place}/{{number}}/reviewers", reviewers)
    yield forge.route("/gitlab/projects/acme/tools/pipelines/{pipeline}/jobs", jobs)
    yield forge.route("/gitlab/projects/acme/tools/members/all", members)


# --- Gitea ---


def _gitea(forge: FakeForge) -> Iterator[Route]:
    place = f"/gitea/repos/{REPOSITORY}"

    def whole(pull: Pull) -> dict[str, Any]:
        merged = pull.state == "merged"
        return {
            "id": 900_000 + pull.number,
            "number": pull.number,
            "html_url": f"https://forge.example/{REPOSITORY}/pulls/{pull.number}",
            "state": "open" if pull.state == "open" else "closed",
            "title": pull.title,
            "body": pull.body,
            "merged": merged,
            "merged_by": {"login": pull.by} if merged else None,
            "merge_commit_sha": "c" * 40 if merged else None,
            "head": {"ref": pull.branch, "sha": pull.head, "repo": {"full_name": pull.repository}},
            "base": {"ref": pull.base},
        }

    def listed(request: Request) -> Response:
        state = request.query_params.get("state", "open")
        found = [one for one in reversed(forge.pulls) if state == "all" or (one.state == "open") == (state == "open")]
        return _paged(request, [whole(one) for one in found], "limit", 50)

    def created(request: Request, data: dict[str, Any]) -> Any:
        pull = forge.create(data["head"], data["base"], data["title"], data["body"])
        if pull is None:
            text = (
                "pull request already exists for these targets [id: 1, issue_id: 1, head_branch: x, base_branch: main]"
            )
            return JSONResponse({"message": text, "url": "https://forge.example/api/swagger"}, 409)
        return JSONResponse(whole(pull), 201)

    def user(one: dict[str, Any]) -> dict[str, str]:
        return {"login": one["by"]}

    def comments(request: Request) -> Any:
        pull = _of(forge, request)
        return pull and [
            {"id": one["id"], "user": user(one), "body": one["text"], "created_at": one["at"]}
            for one in _kind(pull, "comment")
        ]

    def reviews(request: Request) -> Any:
        pull = _of(forge, request)
        states = {"approved": "APPROVED", "changes_requested": "REQUEST_CHANGES"}
        states |= {"pending": "PENDING", "remark": "COMMENT"}
        return pull and [
            {
                "id": one["id"],
                "user": user(one),
                "body": "" if one["path"] else one["text"],
                "state": states[one["kind"]],
                "submitted_at": one["at"],
                "comments_count": 1 if one["path"] else 0,
                "dismissed": False,
            }
            for one in _kind(pull, *states)
        ]

    def remarks(request: Request) -> Any:
        pull = _of(forge, request)
        wanted = request.path_params["review"]
        found = [one for one in (pull.comments if pull else []) if str(one["id"]) == wanted]
        return [
            {"id": one["id"], "user": user(one), "body": one["text"], "created_at": one["at"], "path": one["path"]}
            for one in found
        ]

    def timeline(request: Request) -> Any:
        pull = _of(forge, request)
        closed = {"type": "close", "user": {"login": pull.by}} if pull and pull.state == "closed" else None
        return _paged(
            request, [{"type": "comment", "user": {"login": "x"}}, *([closed] if closed else [])], "limit", 50
        )

    def status(request: Request) -> Any:
        states = {"passing": "success", "pending": "pending", "failing": "failure"}
        found = [
            {"context": name.lstrip("@"), "status": states[state], "description": f"{name.lstrip('@')} says"}
            | {"target_url": address(name)}
            for name, state in _checks(forge, request)
        ]
        return {"state": "pending" if found else "", "total_count": len(found), "statuses": found or None}

    yield forge.route(f"{place}/pulls", listed, write=created)
    yield forge.route(f"{place}/pulls/{{number}}", lambda request: (pull := _of(forge, request)) and whole(pull))
    yield forge.route(f"{place}/issues/{{number}}/comments", comments)
    yield forge.route(f"{place}/issues/{{number}}/timeline", timeline)
    yield forge.route(f"{place}/pulls/{{number}}/reviews", reviews)
    yield forge.route(f"{place}/pulls/{{number}}/reviews/{{review}}/comments", remarks)
    yield forge.route(f"{place}/commits/{{sha}}/status", status)
    yield forge.route(f"{place}/assignees", lambda request: [{"login": name} for name in forge.people()])
