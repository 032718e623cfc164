"""GitLab's REST interface: merge requests of one project."""

from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from ashep.adapters.forges.open_once import open_once
from ashep.adapters.forges.parsing import BELONGING, ForgeCheck, belonging, chosen, state_of
from ashep.adapters.system.json_fields import entries, field, remark, text, whole
from ashep.adapters.system.rest_api import Api
from ashep.core.delivery.pull_request_body import marker
from ashep.ports.landing import Opened, PullRequest, PullRequestComment, PullState

_STATES: dict[str, Literal["open", "merged", "closed"]] = {
    "opened": "open", "locked": "open", "merged": "merged", "closed": "closed",
}  # fmt: skip
"""`locked` is one that is being merged."""
_PASSING = ("success", "skipped")
_FAILING = ("failed", "canceled", "canceling")
"""Of the states of a pipeline; all others are on the way, `manual` included, which waits for a person."""
_DEVELOPER = 30  # the access level from which on a member may push; guests and reporters may be anybody


class GitLab:
    """Merge requests of one project, by its whole path."""

    def __init__(self, api: Api, repository: str, people: frozenset[str] = BELONGING) -> None:
        self._api, self._people = api, people
        self._project = f"/projects/{quote(repository, safe='')}"
        self._place = f"{self._project}/merge_requests"

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        listed = await self._api.pages(
            self._place, source_branch=branch, target_branch=base, state="all", order_by="created_at", sort="desc"
        )
        mine = [one for one in listed if (text(one, "source_branch"), text(one, "target_branch")) == (branch, base)]
        request = chosen(mine, marker(key), "description", "opened")
        return _opened(request) if request else None

    async def open(self, request: PullRequest) -> Opened:
        data = {"title": request.title, "source_branch": request.branch, "target_branch": request.base}
        post = partial(self._api.post, self._place, {**data, "description": request.body})
        return await open_once(self.find, post, _opened, request, (409,))

    async def state(self, number: int) -> PullState:
        place = f"{self._place}/{number}"
        request = await self._api.get(place)
        head, state = text(request, "sha"), _STATES.get(text(request, "state"), "open")
        merger = text(request, "merge_user", "username") or text(request, "merged_by", "username")
        by = merger if state == "merged" else text(request, "closed_by", "username") if state == "closed" else ""
        commits = (text(request, name) for name in ("merge_commit_sha", "squash_commit_sha"))
        merged_as = next(filter(None, commits), head) if state == "merged" else ""
        checks = await self._checks(field(request, "head_pipeline"), head)
        return state_of(state, head, by, merged_as, checks, await self._read_comments(place))

    async def _checks(self, pipeline: Any, head: str) -> list[ForgeCheck]:
        """Read the pipeline of the newest commit; one of an older commit says nothing of it."""
        if not pipeline or text(pipeline, "sha") != head:
            return []
        status = text(pipeline, "status")
        if status in _PASSING:
            return [ForgeCheck("pipeline", "passing")]
        if status not in _FAILING:
            return [ForgeCheck("pipeline", "pending")]
        jobs = f"{self._project}/pipelines/{whole(pipeline, 'id')}/jobs"
        failed = await self._api.pages(jobs, **{"scope[]": "failed"})
        found = [
            ForgeCheck(text(one, "name"), "failing", text(one, "failure_reason"), text(one, "web_url"))
            for one in failed
        ]
        return found or [ForgeCheck("pipeline", "failing", url=text(pipeline, "web_url"))]

    async def _read_comments(self, place: str) -> tuple[PullRequestComment, ...]:
        notes = await self._api.pages(f"{place}/notes", sort="asc", order_by="created_at")
        said = [_note(one) for one in notes if not field(one, "system")]
        approvals = await self._api.get(f"{place}/approvals")
        said += [_verdict(one, "approved", text(one, "approved_at")) for one in entries(approvals, "approved_by")]
        reviewers = await self._api.pages(f"{place}/reviewers")
        asked = [one for one in reviewers if text(one, "state") == "requested_changes"]
        said += [_verdict(one, "changes_requested", "") for one in asked]
        return await belonging(self._api, f"{self._project}/members/all", "username", _DEVELOPER, said, self._people)

    async def aclose(self) -> None:
        await self._api.aclose()


def _note(entry: Any) -> PullRequestComment:
    return PullRequestComment(
        id=f"note/{whole(entry, 'id')}",
        kind="comment",
        by=text(entry, "author", "username"),
        at=text(entry, "created_at"),
        text=remark(entry, "body"),
        path=text(entry, "position", "new_path") or None,
        bot=bool(field(entry, "author", "bot")),
    )


def _verdict(entry: Any, kind: Any, at: str) -> PullRequestComment:
    by = text(entry, "user", "username")
    return PullRequestComment(id=f"{kind}/{by}", kind=kind, by=by, at=at)


def _opened(request: Any) -> Opened:
    return Opened(whole(request, "iid"), text(request, "web_url"))
