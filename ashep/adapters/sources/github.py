"""Issues of a repository at GitHub, by its REST interface, and those that speak it (GitHub Enterprise Server).

What changed is asked for by `since` and an ETag: while nothing does, that is one request, which costs no rate limit.
When a text was edited no REST answer says. That is asked for by GraphQL, with the text, so that both are of one moment.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote

import anyio

from ashep.adapters.system.json_fields import entries, field, remark, text, whole
from ashep.adapters.system.rest_api import Api, ForgeResponse
from ashep.errors import ForgeRefused, ForgeUnauthorized, ForgeUnavailable
from ashep.ports.sources import SourceComment, SourceEvent, SourceHistory, SourceIssueRead

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

PER_PAGE, MOST_PAGES = 40, 250
"""Entries of a page, and pages of one list. 40 of the longest texts fit into an answer (`rest_api.LARGEST`)."""

BETWEEN_WRITES = 1.0
"""Seconds that GitHub wants between two writes of one account."""

GONE = (301, 404, 410)
"""Statuses of what was transferred or made a discussion, and of what was deleted."""

_TEXT = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) {
    title body lastEditedAt
    timelineItems(last: 1, itemTypes: [RENAMED_TITLE_EVENT]) { nodes { ... on RenamedTitleEvent { createdAt } } }
  } }
}"""


class GitHubIssues:
    """Issues of one repository, `owner/name`, that are asked for by a label."""

    def __init__(self, api: Api, repository: str, label: str, *, graphql: str = "/graphql") -> None:
        self._api, self.name, self._label, self._graphql = api, repository, label, graphql
        self._place = f"/repos/{repository}"
        self._since, self._next = "", ""
        self._etag: str = ""
        self._known_etag: str = ""
        self._account, self._lock, self._wrote = "", anyio.Lock(), -BETWEEN_WRITES

    # --- reading ----------------------------------------------------------------------------------------------------

    async def changed(self, *, everything: bool = False) -> tuple[SourceIssueRead, ...] | None:
        everything = everything or not self._since  # of a long life only what is asked for now counts
        if everything:
            self._account = ""  # it may have another name by now
            await self._check_label()
        filters = {"state": "open", "labels": self._label} if everything else {"state": "all"}
        results, since, page = dict[int, Any](), "" if everything else self._since, 1
        for request in range(MOST_PAGES):
            moment = {"since": since} if since else {}
            params = filters | moment | {"sort": "updated", "direction": "asc"}
            etag = "" if everything or request else self._etag
            part, answer = await self._read_page(f"{self._place}/issues", etag, page, params)
            if part is None:
                return None
            if request == 0:
                self._known_etag = answer.headers.get("etag", "")
                self._next = _an_hour_ago(answer.headers.get("date", "")) if everything else since
            results |= {whole(item, "number"): item for item in part}
            if 'rel="next"' not in answer.headers.get("link", ""):
                break
            # what changes meanwhile moves to the end, and a page by its number would leave another one out
            last = text(part[-1], "updated_at") if part else since
            since, page = last, page + 1 if last == since else 1
        else:
            if everything:
                raise ForgeRefused(f"more than {MOST_PAGES * PER_PAGE} issues carry the label {self._label}")
        moments = [] if everything else [text(item, "updated_at") for item in results.values()]
        latest = max([self._next, *moments])
        self._known_etag = self._known_etag if latest == self._since else ""
        self._next = latest
        return tuple(self._read(item) for item in results.values() if field(item, "pull_request") is None)

    async def _read_page(
        self, path: str, etag: str, page: int, params: dict[str, str]
    ) -> tuple[list[Any] | None, ForgeResponse]:
        try:
            part, answer = await self._api.get_changed(path, etag, **params, per_page=PER_PAGE, page=page)
        except ForgeRefused as refused:
            if refused.status != 301 or not path.endswith("/issues"):
                raise
            raise self._rename_error() from refused
        return (None if part is None else entries(part)), answer

    def _rename_error(self) -> ForgeRefused:
        remedy = "name it as it is called now, by `sources.github.repository` or the git remote"
        return ForgeRefused(f"{self.name} was renamed or transferred: {remedy}", status=301)

    def confirm(self) -> None:
        self._since, self._etag = self._next or self._since, self._known_etag

    async def _check_label(self) -> None:
        try:
            await self._api.get(f"{self._place}/labels/{quote(self._label, safe='')}")
        except ForgeRefused as refused:
            if refused.status == 301:
                raise self._rename_error() from refused
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
        return SourceIssueRead(number, "", "", "gone", labelled=False)

    def _read(self, entry: Any) -> SourceIssueRead:
        labels = {_name(item) for item in entries(entry, "labels")}
        state: Literal["open", "closed"] = "closed" if text(entry, "state") == "closed" else "open"
        elsewhere = f"/{self.name}/issues/".casefold() not in text(entry, "html_url").casefold()
        if elsewhere or field(entry, "pull_request") is not None:
            return SourceIssueRead(whole(entry, "number"), text(entry, "html_url"), "", "gone", labelled=False)
        return SourceIssueRead(
            number=whole(entry, "number"),
            url=text(entry, "html_url"),
            title=" ".join(text(entry, "title").split()),
            state=state,
            labelled=self._label.casefold() in labels,
            key=str(whole(entry, "id")),
            locked=bool(field(entry, "locked")),
            comments=whole(entry, "comments"),
            updated=sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest(),  # its time is of a whole second
        )

    async def history(self, number: int) -> SourceHistory:
        label, reopened, closer = None, None, ""
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
        # behind the events: a text that is changed between these two requests was changed after the label
        return replace(await self._read_text(number), label=label, reopened=reopened, closer=closer)

    async def _read_text(self, number: int) -> SourceHistory:
        """Read the words, and when they were changed last; or why nobody can say that."""
        owner, _, name = self.name.partition("/")
        query = {"query": _TEXT, "variables": {"owner": owner, "name": name, "number": number}}
        try:
            answer_data = await self._api.post(self._graphql, query)
        except (ForgeRefused, ForgeUnauthorized) as error:
            return SourceHistory(unknown=f"{error}"[:200])
        issue = field(answer_data, "data", "repository", "issue")
        if not isinstance(issue, dict) or not {"body", "lastEditedAt", "timelineItems"} <= {*issue}:
            message = " ".join(text(item, "message") for item in entries(answer_data, "errors"))
            return SourceHistory(unknown=message[:200] or "the interface does not say")
        renames = [text(item, "createdAt") for item in entries(issue, "timelineItems", "nodes")]
        moments = [_time(moment) for moment in (text(issue, "lastEditedAt"), *renames) if moment]
        title = " ".join(text(issue, "title").split())
        return SourceHistory(title=title, body=text(issue, "body"), edited=max(moments, default=None))

    async def comments(self, number: int) -> tuple[SourceComment, ...]:
        return tuple(map(_comment, await self._all(f"{self._place}/issues/{number}/comments")))

    async def thumbs(self, comment: int) -> tuple[SourceEvent, ...]:
        try:
            answer_data = await self._all(f"{self._place}/issues/comments/{comment}/reactions", content="+1")
        except ForgeRefused as refused:
            if refused.status != 404:
                raise
            return ()  # somebody deleted the comment
        mine = (item for item in answer_data if text(item, "content") == "+1")
        return tuple(_event(item, "reaction", "user") for item in mine)

    async def permission(self, login: str) -> str:
        if not login:
            return "none"
        try:
            answer_data = await self._api.get(f"{self._place}/collaborators/{quote(login, safe='')}/permission")
        except ForgeRefused as refused:
            if refused.status == 404:
                await self._api.get(self._place)  # where the whole repository is not to be seen, nobody lost a right
                return "none"
            reason = f"the token may not read what people may do in {self.name}: it needs the right to read metadata"
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

    async def _all(self, path: str, **params: str) -> list[Any]:
        answer_data = list[Any]()
        for page in range(1, MOST_PAGES + 1):
            part, answer = await self._read_page(path, "", page, params)
            answer_data += part or ()
            if 'rel="next"' not in answer.headers.get("link", ""):
                return answer_data
        raise ForgeRefused(f"{path} has more than {MOST_PAGES * PER_PAGE} entries")

    # --- writing ----------------------------------------------------------------------------------------------------

    async def say(self, number: int, text: str, mark: str, comment: int | None = None) -> SourceEvent:
        body = f"{text}\n\n{mark}"
        async with self._lock:
            posted = await self.find_ours(number, mark, comment)
            if posted is not None and posted.text.strip() == body.strip():
                return posted.event
            if posted is not None:
                path, method = f"{self._place}/issues/comments/{posted.number}", "PATCH"
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
