"""Gitea's REST interface, which Forgejo has too."""

from typing import Any
from urllib.parse import quote

from ashep.adapters.forges.github import opened, status
from ashep.adapters.forges.reading import (
    belonging,
    chosen,
    ci_of,
    entries,
    failures_of,
    field,
    heard,
    remark,
    text,
    whole,
)
from ashep.adapters.forges.transport import Api, open_once
from ashep.core.delivery.pull_text import marker
from ashep.ports.landing import Opened, PullRequest, PullState, Said

_STATUSES = {"success": "passing", "warning": "passing", "pending": "pending", "failure": "failing", "error": "failing"}
_REVIEWS = {"APPROVED": "approved", "REQUEST_CHANGES": "changes_requested", "COMMENT": "comment"}
_SIZE = "limit"


class Gitea:
    """Pull requests of one repository, `owner/name`."""

    def __init__(self, api: Api, repository: str, people: frozenset[str] | None = None) -> None:
        self._api, self._repository, self._people = api, repository, people
        self._place = f"/repos/{repository}"

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        """Look for the pull request of a key or branch. Gitea cannot filter by branch: the newest thousand are read."""
        listed = await self._api.pages(f"{self._place}/pulls", _SIZE, state="all", sort="recentupdate")
        ends = [one for one in listed if (text(one, "head", "ref"), text(one, "base", "ref")) == (branch, base)]
        # of another repository: a fork has branches of the same name
        mine = [one for one in ends if text(one, "head", "repo", "full_name").lower() == self._repository.lower()]
        pull = chosen(mine, marker(key), "body", "open")
        return opened(pull) if pull else None

    async def open(self, request: PullRequest) -> Opened:
        """Open it, unless it stands."""
        data = {"title": request.title, "head": request.branch, "base": request.base, "body": request.body}

        async def post() -> Opened:
            return opened(await self._api.post(f"{self._place}/pulls", data))

        return await open_once(self.find, post, request, taken=(409, 422))

    async def state(self, number: int) -> PullState:
        """Read what became of it."""
        pull = await self._api.get(f"{self._place}/pulls/{number}")
        head, merged, closed = text(pull, "head", "sha"), bool(field(pull, "merged")), text(pull, "state") == "closed"
        by = text(pull, "merged_by", "login")
        if closed and not merged:
            events = await self._api.pages(f"{self._place}/issues/{number}/timeline", _SIZE)
            by = next((text(one, "user", "login") for one in reversed(events) if text(one, "type") == "close"), "")
        found = await self._api.get(f"{self._place}/commits/{quote(head, safe='')}/status", limit=100)
        said = ((one, text(one, "status") or text(one, "state")) for one in entries(found, "statuses"))
        checks = [status(one, _STATUSES.get(state, "pending")) for one, state in said]
        ci, failing = ci_of(checks)
        return PullState(
            state="merged" if merged else "closed" if closed else "open",
            head=head,
            by=by or None,
            merged_as=text(pull, "merge_commit_sha") or None if merged else None,
            ci=ci,
            failing=failing,
            failures=failures_of(checks),
            said=await self._said(number),
        )

    async def _said(self, number: int) -> tuple[Said, ...]:
        comments = entries(await self._api.get(f"{self._place}/issues/{number}/comments"))  # it knows no pages
        said = [_remark(one, "comment", "created_at", "comment") for one in comments]
        reviews = await self._api.pages(f"{self._place}/pulls/{number}/reviews", _SIZE)
        for review in reviews:
            if (state := text(review, "state")) not in _REVIEWS or field(review, "dismissed"):
                continue
            said.append(_remark(review, _REVIEWS[state], "submitted_at", "review"))
            if whole(review, "comments_count"):
                place = f"{self._place}/pulls/{number}/reviews/{whole(review, 'id')}/comments"
                remarks = entries(await self._api.get(place))
                said += [_remark(one, "comment", "created_at", "remark") for one in remarks]
        if self._people is not None:
            return heard(said, self._people)
        return await belonging(self._api, f"{self._place}/assignees", "login", 0, said)  # who may push

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._api.aclose()


def _remark(entry: Any, kind: Any, at: str, of: str) -> Said:
    return Said(
        id=f"{of}/{whole(entry, 'id')}",
        kind=kind,
        by=text(entry, "user", "login"),
        at=text(entry, at),
        text=remark(entry, "body"),
        path=text(entry, "path") or None,
    )
