"""Issues of the forge on loopback, as GitHub shows them; and the people who change and comment them there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

BEGIN = datetime.fromisoformat("2033-11-06T08:00:00+00:00")
DATE = "Sun, 06 Nov 2033 08:00:00 GMT"
QUERIED = ["title body lastEditedAt", "RENAMED_TITLE_EVENT", "createdAt"]
PULL = ("url", "html_url", "diff_url", "patch_url")
OURS = "shepherd"
"""The account of the token."""


@dataclass
class FakeIssue:
    """An issue."""

    number: int
    title: str
    body: str
    author: str
    updated: str
    state: str = "open"
    labels: list[str] = field(default_factory=list[str])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edited: str | None = None
    locked: bool = False
    status: int = 200
    """What is answered: 301 where it was transferred, 404 or 410 where it was deleted."""
    is_pull: bool = False
    """Whether it is a pull request, which GitHub lists among issues."""


class FakeIssues:
    """What GitHub knows of them."""

    def __init__(self, repository: str) -> None:
        self.repository, self.all = repository, dict[int, FakeIssue]()
        self.rights: dict[str, str] = {"olga": "admin", "ann": "write", OURS: "admin", "eve": "read", "bot": "write"}
        self.label_names = {"ashep", "bug"}
        self.pushed: dict[str, set[str]] = {"main": set()}
        """Commits that branches hold."""
        self.reactions: dict[int, list[dict[str, Any]]] = {}
        self.seconds, self.ids = 0, 100
        self.tells_edits = True

    # --- people ---

    def now(self) -> str:
        self.seconds += 10
        return (BEGIN + timedelta(seconds=self.seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def id(self) -> int:
        self.ids += 1
        return self.ids

    def opens(self, title: str, by: str = "olga", *, body: str = "Do it.", labels: tuple[str, ...] = ()) -> FakeIssue:
        issue = FakeIssue(len(self.all) + 12, title, body, by, self.now())
        self.all[issue.number] = issue
        for label in labels:
            self.labels(issue, label, by)
        return issue

    def labels(self, issue: FakeIssue, label: str, by: str, *, off: bool = False, bot: bool = False) -> None:
        issue.labels = [one for one in issue.labels if one != label] + ([] if off else [label])
        self._event(issue, "unlabeled" if off else "labeled", by, label={"name": label, "color": "ededed"}, bot=bot)

    def edits(self, issue: FakeIssue, *, body: str | None = None, title: str | None = None, by: str = "olga") -> None:
        if body is not None:
            issue.body, issue.edited = body, self.now()
        if title is not None:
            issue.title = title
            self._event(issue, "renamed", by)
        issue.updated = self.now()

    def ends(self, issue: FakeIssue, by: str, *, opens: bool = False) -> None:
        issue.state = "open" if opens else "closed"
        self._event(issue, "reopened" if opens else "closed", by)

    def says(self, issue: FakeIssue, by: str, text: str) -> dict[str, Any]:
        now = issue.updated = self.now()
        said = {
            "id": self.id(), "user": _user(by), "body": text, "created_at": now, "updated_at": now,
            "author_association": "NONE", "html_url": "https://forge.example/c",
        }  # fmt: skip
        issue.comments.append(said)
        return said

    def rewrites(self, issue: FakeIssue, comment: dict[str, Any], text: str) -> None:
        comment["body"], comment["updated_at"] = text, self.now()
        issue.updated = self.now()

    def thumbs(self, comment: int, by: str) -> None:
        made = {"id": self.id(), "user": _user(by), "content": "+1", "created_at": self.now()}
        self.reactions.setdefault(comment, []).append(made)

    def ours(self, issue: FakeIssue) -> list[str]:
        """What we said."""
        return [one["body"] for one in issue.comments if one["user"]["login"] == OURS]

    def _event(self, issue: FakeIssue, kind: str, by: str, *, bot: bool = False, **more: Any) -> None:
        issue.updated = self.now()
        event = {"id": self.id(), "event": kind, "actor": _user(by, bot=bot), "created_at": issue.updated}
        issue.events.append(event | more)

    # --- the server ---

    def shown(self, issue: FakeIssue) -> dict[str, Any]:
        return {
            "id": 70_000 + issue.number,
            "number": issue.number,
            "html_url": f"https://forge.example/{self.repository}/issues/{issue.number}",
            "title": issue.title,
            "body": issue.body or None,
            "state": issue.state,
            "labels": [{"id": 1, "name": name, "color": "ededed", "default": False} for name in issue.labels],
            "user": _user(issue.author),
            "locked": issue.locked,
            "comments": len(issue.comments),
            "created_at": "2033-11-06T07:00:00Z",
            "updated_at": issue.updated,
        } | ({"pull_request": dict.fromkeys(PULL, "https://forge.example/p")} if issue.is_pull else {})

    def routes(self, forge: Any) -> Iterator[Route]:
        place = f"/github/repos/{self.repository}"

        def listed(request: Request) -> Response:
            wanted = request.query_params
            found = sorted(self.all.values(), key=lambda one: one.updated)
            found = [one for one in found if one.status == 200 and wanted["state"] in ("all", one.state)]
            found = [one for one in found if wanted.get("labels", "") in ("", *one.labels)]
            found = [one for one in found if one.updated >= wanted.get("since", "")]
            page, size = int(wanted["page"]), int(wanted["per_page"])
            shown = [self.shown(one) for one in found[(page - 1) * size : page * size]]
            etag = f'W/"{hash((str(wanted), str(shown)))}"'
            more = {"Link": '<x>; rel="next"'} if len(found) > page * size else {}
            if request.headers.get("if-none-match") == etag:
                return Response(status_code=304, headers={"ETag": etag, "Date": DATE})
            return JSONResponse(shown, headers={"ETag": etag, "Date": DATE, **more})

        def one(request: Request) -> Any:
            number = int(request.path_params["number"])
            issue = self.all.get(number)
            if issue is None:  # pull requests are issues, too
                pull = forge.pull(str(number))
                return pull and {"number": number, "state": pull.state, "closed_by": {"login": pull.by}}
            if issue.status != 200:
                return JSONResponse({"message": "Moved Permanently"}, issue.status)
            return self.shown(issue)

        def changed(request: Request, data: dict[str, Any]) -> Any:
            issue = self.all[int(request.path_params["number"])]
            assert data == {"state": "closed", "state_reason": "completed"}, "nothing else is ever written"
            self.ends(issue, OURS)
            return self.shown(issue)

        def comments(request: Request) -> Any:
            issue = self.all.get(int(request.path_params["number"]))
            return None if issue is None else _paged(request, issue.comments)

        def commented(request: Request, data: dict[str, Any]) -> Any:
            issue = self.all[int(request.path_params["number"])]
            if issue.locked and forge.locks_us:
                return JSONResponse({"message": "Unable to create comment because issue is locked."}, 403)
            return JSONResponse(self.says(issue, OURS, data["body"]), 201)

        def rewritten(request: Request, data: dict[str, Any]) -> Any:
            for issue in self.all.values():
                for said in issue.comments:
                    if said["id"] == int(request.path_params["id"]):
                        self.rewrites(issue, said, data["body"])
                        return said
            return None

        def timeline(request: Request) -> Any:
            return _paged(request, self.all[int(request.path_params["number"])].events)

        def edits(request: Request, data: dict[str, Any]) -> Any:
            issue = self.all[data["variables"]["number"]]
            assert re.findall(r"title body lastEditedAt|RENAMED_TITLE_EVENT|createdAt", data["query"]) == QUERIED
            if not self.tells_edits:
                return {"data": None, "errors": [{"message": "Resource not accessible"}]}
            renames = [{"createdAt": event["created_at"]} for event in issue.events if event["event"] == "renamed"]
            words = {"title": issue.title, "body": issue.body, "lastEditedAt": issue.edited}
            return {"data": {"repository": {"issue": words | {"timelineItems": {"nodes": renames[-1:]}}}}}

        def compared(request: Request) -> Any:
            base, _, head = request.path_params["ends"].partition("...")
            return {"status": "behind" if head in self.pushed.get(base, set()) else "diverged"} if base else None

        def label(request: Request) -> Any:
            name = request.path_params["name"]
            return {"id": 1, "name": name, "color": "ededed", "default": False} if name in self.label_names else None

        def thumbs(request: Request) -> Any:
            comment = request.path_params["id"]
            exists = any(item["id"] == comment for issue in self.all.values() for item in issue.comments)
            return _paged(request, self.reactions.get(comment, [])) if exists else None

        def no_post(request: Request) -> None:
            return None

        yield forge.route("/github/user", lambda request: {"login": OURS, "type": "User"})
        yield forge.route("/github/graphql", no_post, write=edits)
        yield forge.route(place, lambda request: {"full_name": self.repository, "default_branch": "main"})
        yield forge.route(f"{place}/labels/{{name}}", label)
        yield forge.route(f"{place}/issues", listed)
        yield forge.route(f"{place}/compare/{{ends}}", compared)
        yield forge.route(f"{place}/issues/{{number:int}}", one, write=changed)
        yield forge.route(f"{place}/issues/{{number:int}}/timeline", timeline)
        yield forge.route(f"{place}/issues/comments/{{id:int}}", no_post, write=rewritten)
        reactions = f"{place}/issues/comments/{{id:int}}/reactions"
        yield forge.route(reactions, thumbs)
        yield forge.route(f"{place}/issues/{{number:int}}/comments", self.both(forge, comments), write=commented)

    def both(self, forge: Any, comments: Any) -> Any:
        """Comments of an issue, or of a pull request, which has its own."""

        def answer(request: Request) -> Any:
            found = comments(request)
            return forge.pull_comments(request) if found is None else found

        return answer


def _user(login: str, *, bot: bool = False) -> dict[str, str]:
    return {"login": login, "type": "Bot" if bot else "User"}


def _paged(request: Request, found: list[Any]) -> Response:
    page, size = int(request.query_params.get("page", 1)), int(request.query_params.get("per_page", 30))
    more = {"Link": '<x>; rel="next"'} if len(found) > page * size else {}
    return JSONResponse(found[(page - 1) * size : page * size], headers=more)
