"""Every provider's form, asked on loopback; where a search is asked, and with whose key."""

from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ashep.errors import AshepError, UsageError
from ashep.foreman.endpoints import NOT_SET, Found, search, variables, where
from ashep.foreman.settings import Search
from tests.foreman.serving import serving

KEY = "a-key-of-ours-0123"
RESULT = {"title": "A &amp; B", "url": "https://a.example/"}
ANSWERS: dict[str, Any] = {
    "searxng": {"results": [RESULT | {"content": "said"}, {"title": "no address"}, "odd"]},
    "brave": {"web": {"results": [RESULT | {"description": "<strong>said</strong>"}]}},
    "tavily": {"results": [RESULT | {"content": "said"}]},
    "exa": {"results": [RESULT | {"text": "said"}]},
    "chat": {
        "choices": [{"message": {"content": "the answer", "annotations": [{"url_citation": RESULT}]}}],
        "citations": ["https://b.example/"],
    },
}


class Provider:
    def __init__(self, answer: Any, status: int = 200) -> None:
        self.answer, self.status = answer, status
        self.asked: list[tuple[str, str, dict[str, Any], dict[str, str]]] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        body = await request.json() if request.method == "POST" else dict(request.query_params)
        self.asked.append((request.method, request.url.path, body, dict(request.headers)))
        return JSONResponse(self.answer, status_code=self.status)


@pytest.mark.parametrize(
    ("name", "method", "path", "header", "has"),
    [
        ("searxng", "GET", "/search", ("authorization", f"Bearer {KEY}"), {"q": "what", "format": "json"}),
        ("brave", "GET", "/res/v1/web/search", ("x-subscription-token", KEY), {"q": "what", "count": "8"}),
        ("tavily", "POST", "/search", ("authorization", f"Bearer {KEY}"), {"query": "what", "max_results": 8}),
        ("exa", "POST", "/search", ("x-api-key", KEY), {"query": "what", "numResults": 8}),
        ("chat", "POST", "/v1/chat/completions", ("authorization", f"Bearer {KEY}"), {"model": "m"}),
    ],
)
async def test_each_provider_is_asked_and_read_in_its_own_form(
    name: Any, method: str, path: str, header: tuple[str, str], has: dict[str, Any], tmp_path: Path
) -> None:
    provider = Provider(ANSWERS[name])
    async with serving(provider.app) as url:
        environ = {"SEARCH_API_KEY": KEY, "SEARCH_API_URL": url + path.removesuffix("/chat/completions")}
        at = await run_sync(where, Search(provider=name, model="m"), environ, tmp_path)
        found = await search("what", at)
    ((asked_by, asked_at, body, headers),) = provider.asked
    assert (asked_by, asked_at, headers[header[0]]) == (method, path, header[1])
    assert has.items() <= body.items()
    assert "what" in str(body)
    assert KEY not in repr(at)
    if name == "chat":
        assert found == [Found("answer", "", "the answer"), Found("A & B", "https://a.example/", "")]
    else:
        assert found == [Found("A & B", "https://a.example/", "said")]


@pytest.mark.parametrize(
    ("answer", "status"), [({"error": f"no such key: {KEY}"}, 401), ({"other": 1}, 200), ([], 200)]
)
async def test_a_refusal_and_an_odd_answer_are_told_without_the_key(answer: Any, status: int, tmp_path: Path) -> None:
    provider = Provider(answer, status)
    async with serving(provider.app) as url:
        at = await run_sync(where, Search(provider="tavily", url=url), {"SEARCH_API_KEY": KEY}, tmp_path)
        with pytest.raises(AshepError, match=str(status) if status != 200 else "no search result") as refused:
            await search("what", at)
    assert KEY not in str(refused.value)


async def test_a_redirect_of_a_provider_is_not_followed_with_the_key(tmp_path: Path) -> None:
    other = Provider({"results": []})
    async with serving(other.app) as elsewhere:
        leads = Starlette(
            routes=[Route("/search", lambda _: Response(status_code=302, headers={"location": elsewhere}))]
        )
        async with serving(leads) as url:
            at = await run_sync(where, Search(provider="searxng", url=url), {"SEARCH_API_KEY": KEY}, tmp_path)
            with pytest.raises(AshepError, match="302"):
                await search("what", at)
    assert other.asked == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SEARCH_API_KEY": "tvly-1"}, "tavily at api.tavily.com"),
        ({"SEARCH_API_KEY": "BSA1"}, "brave at api.search.brave.com"),
        ({"SEARCH_API_KEY": "k", "SEARCH_API_URL": "https://api.exa.ai/search"}, "exa at api.exa.ai"),
        ({"SEARCH_API_URL": "http://localhost:8888"}, "searxng at localhost"),
        ({"SEARCH_API_KEY": "k", "SEARCH_API_URL": "https://x.example/v1", "SEARCH_MODEL": "m"}, "chat at x.example"),
    ],
)
def test_the_environment_alone_says_which_provider_it_is(
    environ: dict[str, str], expected: str, tmp_path: Path
) -> None:
    assert repr(where(None, environ, tmp_path)) == expected


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as none:
        where(None, {}, tmp_path)
    assert str(none.value) == NOT_SET
    with pytest.raises(UsageError, match="set MY_KEY"):
        where(Search(provider="exa", key="MY_KEY"), {}, tmp_path)
    with pytest.raises(UsageError, match="needs an address"):
        where(None, {"SEARCH_API_KEY": "of nobody we know"}, tmp_path)
    with pytest.raises(UsageError, match="needs a model"):
        where(Search(provider="chat"), {"SEARCH_API_URL": "https://x.example"}, tmp_path)


def test_an_env_file_adds_whole_groups_and_never_an_address_for_the_persons_key(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\nexport SEARCH_API_KEY='theirs'\nSEARCH_API_URL = https://evil.example/search # here\n"
        'CF_ACCOUNT_ID="abc"\nnot a line\nPATH=/evil\n'
    )
    alone = variables({}, tmp_path)
    assert (alone["SEARCH_API_KEY"], alone["SEARCH_API_URL"]) == ("theirs", "https://evil.example/search")
    assert "PATH" not in alone
    ours = variables({"SEARCH_API_KEY": "tvly-ours"}, tmp_path)
    assert ("SEARCH_API_URL" not in ours, ours["CF_ACCOUNT_ID"]) == (True, "abc")
    assert repr(where(Search(provider="brave", key="OWN"), {"OWN": "k"}, tmp_path)) == "brave at api.search.brave.com"
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    assert variables({"A": "b"}, tmp_path) == {"A": "b"}
