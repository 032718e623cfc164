"""GitHub's REST interface, and those that speak it (GitHub Enterprise Server)."""

from functools import partial
from typing import Any
from urllib.parse import quote

from ashep.adapters.forges.open_once import open_once
from ashep.adapters.forges.parsing import BELONGING, ForgeCheck, chosen, ordered, state_of
from ashep.adapters.system.json_fields import entries, field, remark, text, whole
from ashep.adapters.system.rest_api import Api
from ashep.core.delivery.pull_request_body import marker
from ashep.errors import ForgeRefused, ForgeUnauthorized
from ashep.ports.landing import Opened, PullRequest, PullRequestComment, PullState

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_STATUSES = {"success": "passing", "pending": "pending", "failure": "failing", "error": "failing"}
_GOOD = ("success", "neutral", "skipped")  # conclusions of a check run that let a pull request be merged
_REVIEWS = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes_requested", "COMMENTED": "comment"}


class GitHub:
    """Pull requests of one repository, `owner/name`."""

    taken: tuple[int, ...] = (422,)
    """The statuses by which it says that a pull request stands by now."""

    def __init__(self, api: Api, repository: str, people: frozenset[str] = BELONGING) -> None:
        self._api, self._repository, self._people = api, repository, people
        self._place = f"/repos/{repository}"

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        head = f"{self._repository.partition('/')[0]}:{branch}"
        listed = await self._api.pages(
            f"{self._place}/pulls", head=head, base=base, state="all", sort="created", direction="desc"
        )
        # a filter that the server does not know would be ignored
        mine = [one for one in listed if text(one, "head", "ref") == branch and text(one, "base", "ref") == base]
        pull = chosen(mine, marker(key), "body", "open")
        return opened(pull) if pull else None

    async def open(self, request: PullRequest) -> Opened:
        data = {"title": request.title, "head": request.branch, "base": request.base, "body": request.body}
        post = partial(self._api.post, f"{self._place}/pulls", data)
        return await open_once(self.find, post, opened, request, self.taken)

    async def state(self, number: int) -> PullState:
        pull = await self._api.get(f"{self._place}/pulls/{number}")
        merged, closed = bool(field(pull, "merged")), text(pull, "state") == "closed"
        by = await self._closer(number) if closed and not merged else text(pull, "merged_by", "login")
        head, merged_as = text(pull, "head", "sha"), text(pull, "merge_commit_sha") if merged else ""
        state = "merged" if merged else "closed" if closed else "open"
        return state_of(state, head, by, merged_as, await self._checks(head), await self._read_comments(number))

    async def _closer(self, number: int) -> str:
        """Read who closed one that was not merged."""
        return text(await self._api.get(f"{self._place}/issues/{number}"), "closed_by", "login")

    async def _checks(self, head: str) -> list[ForgeCheck]:
        """Read commit statuses and check runs: both are CI to GitHub."""
        commit = f"{self._place}/commits/{quote(head, safe='')}"
        statuses = entries(await self._api.get(f"{commit}/status", per_page=100), "statuses")
        runs = entries(await self._api.get(f"{commit}/check-runs", per_page=100), "check_runs")
        said = [status(one, _STATUSES.get(text(one, "state"), "pending")) for one in statuses]
        return [*said, *map(_run, runs)]

    async def _read_comments(self, number: int) -> tuple[PullRequestComment, ...]:
        comments = await self._api.pages(f"{self._place}/issues/{number}/comments")
        reviews = await self._api.pages(f"{self._place}/pulls/{number}/reviews")
        remarks = await self._api.pages(f"{self._place}/pulls/{number}/comments")
        said = [read_remark(one, "comment", "created_at", "comment") for one in comments]
        said += [
            read_remark(one, _REVIEWS[state], "submitted_at", "review")
            for one in reviews
            if (state := text(one, "state")) in _REVIEWS
        ]
        said += [read_remark(one, "comment", "created_at", "remark") for one in remarks]
        belong = {
            text(entry, "user", "login")
            for entry in (*comments, *reviews, *remarks)
            if text(entry, "author_association") in self._people
        }
        counting = {comment.by for comment in said if comment.by.casefold() in self._people}
        heard = counting | {login for login in sorted(belong - counting) if await self._writes(login)}
        return ordered(comment for comment in said if comment.by in heard)

    async def _writes(self, login: str) -> bool:
        """Whether an account may push: a MEMBER of an organisation need not.

        Raises `ForgeUnauthorized` where the token may not read that: then nobody knows whose words count.
        """
        try:
            found = await self._api.get(f"{self._place}/collaborators/{quote(login, safe='')}/permission")
        except ForgeRefused as refused:
            if refused.status == 404:
                return False
            message = f"the token may not read what {login} may do ({refused}); name people in `landing.forge.people`"
            raise ForgeUnauthorized(message) from refused
        return text(found, "permission") in ("admin", "write")

    async def aclose(self) -> None:
        await self._api.aclose()


def status(entry: Any, state: str) -> ForgeCheck:
    """Read a commit status as GitHub and Gitea write it."""
    return ForgeCheck(text(entry, "context"), state, text(entry, "description"), text(entry, "target_url"))


def _run(run: Any) -> ForgeCheck:
    good = text(run, "conclusion") in _GOOD
    state = "pending" if text(run, "status") != "completed" else "passing" if good else "failing"
    said = (text(run, "output", name) for name in ("title", "summary", "text"))
    return ForgeCheck(text(run, "name"), state, "\n".join(filter(None, said)), text(run, "html_url"))


def read_remark(entry: Any, kind: Any, at: str, of: str) -> PullRequestComment:
    """Read what somebody said as GitHub and Gitea write it."""
    return PullRequestComment(
        id=f"{of}/{whole(entry, 'id')}",
        kind=kind,
        by=text(entry, "user", "login"),
        at=text(entry, at),
        text=remark(entry, "body"),
        path=text(entry, "path") or None,
        bot=text(entry, "user", "type") == "Bot",
    )


def opened(pull: Any) -> Opened:
    """Read a pull request as GitHub and Gitea write it."""
    return Opened(whole(pull, "number"), text(pull, "html_url"))
