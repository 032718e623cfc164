"""Issues of a repository at GitHub, by its REST interface, and those that speak it (GitHub Enterprise Server).

What changed is asked for by `since` and an ETag: while nothing does, that is one request, which costs no rate limit.
When a text was edited no REST answer says: that alone is asked for by GraphQL.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import quote

import anyio

from ashep.adapters.system.json_fields import entries, field, remark, text, whole
from ashep.adapters.system.rest_api import PER_PAGE, Api
from ashep.errors import ForgeRefused, ForgeUnauthorized, ForgeUnavailable
from ashep.ports.sources import SourceComment, SourceEvent, SourceHistory, SourceIssueRead

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

MOST_PAGES = 50
"""Pages of one list: of 100 each."""

BETWEEN_WRITES = 1.0
"""Seconds that GitHub wants between two writes of one account."""

GONE = (301, 404, 410)
"""Statuses of what was transferred or made a discussion, and of what was deleted."""

_EDITED = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) { lastEditedAt } }
}"""


class GitHubIssues:
    """Issues of one repository, `owner/name`, that are asked for by a label."""

    def __init__(self, api: Api, repository: str, label: str, *, graphql: str = "/graphql") -> None:
        self._api, self.name, self._label, self._graphql = api, repository, label, graphql
        self._place = f"/repos/{repository}"
        self._since, self._next, self._etag, self._known_etag = "", "", "", ""
        self._account, self._lock, self._wrote = "", anyio.Lock(), -BETWEEN_WRITES

    # --- reading ----------------------------------------------------------------------------------------------------

    async def changed(self) -> tuple[SourceIssueRead, ...] | None:
        path = f"{self._place}/issues"
        if not self._since:  # of a long life only what is asked for now counts
            await self._check_label()
            params: dict[str, str | int] = {"state": "open", "labels": self._label}
        else:
            params = {"state": "all", "since": self._since, "sort": "updated", "direction": "asc"}
        answer_data = list[Any]()
        for page in range(1, MOST_PAGES + 1):
            etag = self._etag if page == 1 else ""
            part, answer = await self._api.get_changed(path, etag, **params, per_page=PER_PAGE, page=page)
            if part is None:
                return None
            if page == 1:
                self._known_etag = answer.headers.get("etag", "")
                self._next = self._since or _an_hour_ago(answer.headers.get("date", ""))
            answer_data += entries(part)
            if 'rel="next"' not in answer.headers.get("link", ""):
                break
        moments = [text(item, "updated_at") for item in answer_data] if self._since else []
        later = max([self._next, *moments])
        self._known_etag = self._known_etag if later == self._since else ""
        self._next = later
        return tuple(self._read(item) for item in answer_data if field(item, "pull_request") is None)

    def confirm(self) -> None:
        self._since, self._etag = self._next or self._since, self._known_etag

    async def _check_label(self) -> None:
        try:
            await self._api.get(f"{self._place}/labels/{quote(self._label, safe='')}")
        except ForgeRefused as refused:
            if refused.status != 404:
                raise
            reason = f"{self.name} has no label {self._label}, or cannot be seen with this token"
            raise ForgeUnavailable(f"{reason}: create it there, or set `sources.github.label`") from refused

    async def issue(self, number: int) -> SourceIssueRead:
        try:
            return self._read(await self._api.get(f"{self._place}/issues/{number}"))
        except ForgeRefused as refused:
            if refused.status not in GONE:
                raise
        await self._api.get(self._place)  # where the whole repository is not to be seen, no issue is gone
        return SourceIssueRead(number, "", "", "", "gone", labelled=False)

    def _read(self, entry: Any) -> SourceIssueRead:
        labels = {_name(item) for item in entries(entry, "labels")}
        state: Literal["open", "closed"] = "closed" if text(entry, "state") == "closed" else "open"
        elsewhere = f"/{self.name}/issues/".casefold() not in text(entry, "html_url").casefold()
        if elsewhere or field(entry, "pull_request") is not None:
            return SourceIssueRead(whole(entry, "number"), text(entry, "html_url"), "", "", "gone", labelled=False)
        return SourceIssueRead(
            number=whole(entry, "number"),
            url=text(entry, "html_url"),
            title=" ".join(text(entry, "title").split()),
            body=text(entry, "body"),
            state=state,
            labelled=self._label.casefold() in labels,
            author=text(entry, "user", "login"),
            locked=bool(field(entry, "locked")),
            comments=whole(entry, "comments"),
            updated=text(entry, "updated_at"),
        )

    async def history(self, number: int) -> SourceHistory:
        label, reopened, closer, renamed = None, None, "", None
        for event in await self._all(f"{self._place}/issues/{number}/timeline"):
            kind, about = text(event, "event"), _name(field(event, "label")) == self._label.casefold()
            if kind == "labeled" and about:
                label = _event(event, "event", "actor")
            elif kind == "unlabeled" and about:
                label = None
            elif kind == "reopened":
                reopened = _event(event, "event", "actor")
            elif kind == "closed":
                closer = text(event, "actor", "login")
            elif kind == "renamed":
                renamed = _time(text(event, "created_at"))
        edited, unknown = await self._edited(number)
        moments = [item for item in (edited, renamed) if item is not None]
        return SourceHistory(label, reopened, closer, max(moments, default=None), unknown)

    async def _edited(self, number: int) -> tuple[datetime | None, str]:
        """Say when the text was changed last; and why nobody can say."""
        owner, _, name = self.name.partition("/")
        query = {"query": _EDITED, "variables": {"owner": owner, "name": name, "number": number}}
        try:
            answer_data = await self._api.post(self._graphql, query)
        except (ForgeRefused, ForgeUnauthorized) as error:
            return None, f"{error}"[:200]
        issue = field(answer_data, "data", "repository", "issue")
        if not isinstance(issue, dict) or "lastEditedAt" not in issue:
            message = " ".join(text(item, "message") for item in entries(answer_data, "errors"))
            return None, message[:200] or "the interface does not tell"
        moment = text(issue, "lastEditedAt")
        return (_time(moment) if moment else None), ""

    async def comments(self, number: int) -> tuple[SourceComment, ...]:
        return tuple(map(_comment, await self._all(f"{self._place}/issues/{number}/comments")))

    async def thumbs(self, comment: int) -> tuple[SourceEvent, ...]:
        answer_data = await self._all(f"{self._place}/issues/comments/{comment}/reactions", content="+1")
        mine = (item for item in answer_data if text(item, "content") == "+1")
        return tuple(_event(item, "reaction", "user") for item in mine)

    async def permission(self, login: str) -> str:
        if not login:
            return "none"
        try:
            answer_data = await self._api.get(f"{self._place}/collaborators/{quote(login, safe='')}/permission")
        except ForgeRefused as refused:
            if refused.status == 404:
                return "none"
            reason = (
                f"the token may not read what people may do in {self.name}: it needs the right to read its metadata"
            )
            raise ForgeUnauthorized(f"{reason} ({refused})") from refused
        return text(answer_data, "permission")

    async def account(self) -> str:
        if not self._account:
            self._account = text(await self._api.get("/user"), "login")
        return self._account

    async def holds(self, branch: str, commit: str) -> bool:
        branch = branch or text(await self._api.get(self._place), "default_branch")
        ends = f"{quote(branch, safe='')}...{quote(commit, safe='')}"
        try:
            answer_data = await self._api.get(f"{self._place}/compare/{ends}", per_page=1)
        except ForgeRefused as refused:
            if refused.status == 404:
                return False  # it was not pushed
            raise
        return text(answer_data, "status") in ("identical", "behind")

    async def _all(self, path: str, **params: str | int) -> list[Any]:
        answer_data = list[Any]()
        for page in range(1, MOST_PAGES + 1):
            part, answer = await self._api.get_changed(path, "", **params, per_page=PER_PAGE, page=page)
            answer_data += entries(part)
            if 'rel="next"' not in answer.headers.get("link", ""):
                return answer_data
        raise ForgeRefused(f"{path} has more than {MOST_PAGES * PER_PAGE} entries")

    # --- writing ----------------------------------------------------------------------------------------------------

    async def say(self, number: int, text: str, mark: str, comment: int | None = None) -> SourceEvent:
        body = f"{text}\n\n{mark}"
        async with self._lock:
            stands = await self.find_ours(number, mark, comment)
            if stands is not None and stands.text.strip() == body.strip():
                return stands.event
            if stands is not None:
                path, method = f"{self._place}/issues/comments/{stands.number}", "PATCH"
            else:
                path, method = f"{self._place}/issues/{number}/comments", "POST"
            return _comment(await self._write(path, {"body": body}, method)).event

    async def find_ours(self, number: int, mark: str, comment: int | None) -> SourceComment | None:
        """Find our comment, by its number or its mark."""
        account, answer_data = await self.account(), await self.comments(number)
        # who may write to the repository may put our mark into a comment: that one is theirs
        mine = [item for item in answer_data if item.event.login == account and mark in item.text.splitlines()]
        return next((item for item in mine if comment in (None, item.number)), mine[0] if mine else None)

    async def close(self, number: int) -> None:
        async with self._lock:
            if (await self.issue(number)).state == "open":
                data = {"state": "closed", "state_reason": "completed"}
                await self._write(f"{self._place}/issues/{number}", data, "PATCH")

    async def _write(self, path: str, data: dict[str, str], method: str) -> Any:
        await anyio.sleep(max(0.0, self._wrote + BETWEEN_WRITES - anyio.current_time()))
        try:
            return await self._api.post(path, data, method=method)
        finally:
            self._wrote = anyio.current_time()

    async def aclose(self) -> None:
        await self._api.aclose()


def _name(label: Any) -> str:
    """Give a label's name as GitHub compares it; some lists have labels as texts."""
    return (label if isinstance(label, str) else text(label, "name")).casefold()


def _time(moment: str) -> datetime:
    """Read a moment. Raises `ForgeUnavailable` where it is none: nothing may be taken for old that is not."""
    try:
        return datetime.fromisoformat(moment).astimezone(UTC)
    except ValueError as error:
        raise ForgeUnavailable(f"GitHub gives {moment!r} as a time") from error


def _event(entry: Any, kind: str, role: str) -> SourceEvent:
    bot = text(entry, role, "type") == "Bot"
    return SourceEvent(
        f"{kind}/{whole(entry, 'id')}", text(entry, role, "login"), _time(text(entry, "created_at")), bot
    )


def _comment(entry: Any) -> SourceComment:
    edited = text(entry, "updated_at") != text(entry, "created_at")
    return SourceComment(_event(entry, "comment", "user"), remark(entry, "body"), edited)


def _an_hour_ago(date: str) -> str:
    """Give where the next look begins, by the clock there: what happened during the first one is read again."""
    try:
        date_there = parsedate_to_datetime(date)
    except (TypeError, ValueError) as error:
        raise ForgeUnavailable("GitHub's answer has no date") from error
    return datetime.fromtimestamp(date_there.timestamp() - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
