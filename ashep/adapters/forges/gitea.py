"""Gitea's REST interface, which Forgejo has too: it speaks GitHub's, but for what stands here."""

from urllib.parse import quote

from ashep.adapters.forges.github import GitHub, opened, read_remark, status
from ashep.adapters.forges.parsing import ForgeCheck, belonging, chosen
from ashep.adapters.system.json_fields import entries, field, text, whole
from ashep.core.delivery.pull_request_body import marker
from ashep.ports.landing import Opened, PullRequestComment

_STATUSES = {"success": "passing", "warning": "passing", "pending": "pending", "failure": "failing", "error": "failing"}
_REVIEWS = {"APPROVED": "approved", "REQUEST_CHANGES": "changes_requested", "COMMENT": "comment"}
_SIZE = "limit"


class Gitea(GitHub):
    """Pull requests of one repository, `owner/name`."""

    taken = (409, 422)

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        """Look for the pull request of a key or branch. Gitea cannot filter by branch: the newest thousand are read."""
        listed = await self._api.pages(f"{self._place}/pulls", _SIZE, state="all", sort="recentupdate")
        ends = [one for one in listed if (text(one, "head", "ref"), text(one, "base", "ref")) == (branch, base)]
        # of another repository: a fork has branches of the same name
        mine = [end for end in ends if text(end, "head", "repo", "full_name").lower() == self._repository.lower()]
        pull = chosen(mine, marker(key), "body", "open")
        return opened(pull) if pull else None

    async def _closer(self, number: int) -> str:
        events = await self._api.pages(f"{self._place}/issues/{number}/timeline", _SIZE)
        return next((text(event, "user", "login") for event in reversed(events) if text(event, "type") == "close"), "")

    async def _checks(self, head: str) -> list[ForgeCheck]:
        found = await self._api.get(f"{self._place}/commits/{quote(head, safe='')}/status", limit=100)
        said = ((entry, text(entry, "status") or text(entry, "state")) for entry in entries(found, "statuses"))
        return [status(one, _STATUSES.get(state, "pending")) for one, state in said]

    async def _read_comments(self, number: int) -> tuple[PullRequestComment, ...]:
        comments = entries(await self._api.get(f"{self._place}/issues/{number}/comments"))  # it knows no pages
        said = [read_remark(one, "comment", "created_at", "comment") for one in comments]
        reviews = await self._api.pages(f"{self._place}/pulls/{number}/reviews", _SIZE)
        for review in reviews:
            if (state := text(review, "state")) not in _REVIEWS or field(review, "dismissed"):
                continue
            said.append(read_remark(review, _REVIEWS[state], "submitted_at", "review"))
            if whole(review, "comments_count"):
                place = f"{self._place}/pulls/{number}/reviews/{whole(review, 'id')}/comments"
                remarks = entries(await self._api.get(place))
                said += [read_remark(one, "comment", "created_at", "remark") for one in remarks]
        return await belonging(self._api, f"{self._place}/assignees", "login", 0, said, self._people)  # who may push
