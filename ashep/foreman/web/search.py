"""`web-search`: a table of providers, each an endpoint, a header, a body, and where its answer has the results."""

import html
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from ashep.core.text import clean
from ashep.errors import AshepError, UsageError
from ashep.foreman.settings import Search
from ashep.foreman.small_model import ask, at, text_of

NOT_SET = (
    "no search is configured: set SEARCH_API_KEY and SEARCH_API_URL (and SEARCH_MODEL for a chat that searches) in the "
    "environment or in .env, or `search:` in foreman.yaml"
)
TIMEOUT = 30.0
GROUPS = ("SEARCH_API_KEY", "SEARCH_API_URL", "SEARCH_MODEL"), ("CF_ACCOUNT_ID", "CF_BROWSER_TOKEN")
"""Variables that belong together: each group is taken whole from one place, or a project's `.env` could send a key of
the person's to an address of its own."""

_LINE = re.compile(
    r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:"([^"]*)"\s*(?:#.*)?|'([^']*)'\s*(?:#.*)?|([^#]*)(?:#.*)?)"""
)
_LARGEST_ENV = 256 * 1024
_MARKS = re.compile(r"</?(?:strong|b|em)>")
_EACH = 1500  # characters of one result
_ALL = 12_000  # of a chat's answer


@dataclass(frozen=True, slots=True)
class Found:
    """One result."""

    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Provider:
    """How one is asked."""

    home: str
    """Its address, where nobody names another; empty: it has none."""
    ending: str
    """What follows the address that a person names, unless it stands there already."""
    key: tuple[str, str]
    """The header of its key, and what stands before the key."""
    method: str
    asked: Callable[[str, int, str], Mapping[str, Any]]
    """The body, or the parameters of a GET: of query, number of results, model."""
    results: tuple[str, ...]
    """Where its answer has a list of results."""
    text: str
    """The name that it gives to a result's text."""


_BEARER = ("Authorization", "Bearer ")
PROVIDERS: Mapping[str, Provider] = {
    "searxng": Provider(
        "", "/search", _BEARER, "GET",
        lambda query, _most, _model: {"q": query, "format": "json"}, ("results",), "content",
    ),
    "brave": Provider(
        "https://api.search.brave.com/res/v1/web/search", "/res/v1/web/search", ("X-Subscription-Token", ""), "GET",
        lambda query, most, _model: {"q": query, "count": min(most, 20)}, ("web", "results"), "description",
    ),
    "tavily": Provider(
        "https://api.tavily.com/search", "/search", _BEARER, "POST",
        lambda query, most, _model: {"query": query, "max_results": min(most, 20)}, ("results",), "content",
    ),
    "exa": Provider(
        "https://api.exa.ai/search", "/search", ("x-api-key", ""), "POST",
        lambda query, most, _model: {
            "query": query, "numResults": most, "contents": {"text": {"maxCharacters": _EACH}},
        }, ("results",), "text",
    ),
    "chat": Provider(
        "", "/chat/completions", _BEARER, "POST",
        lambda query, most, model: {
            "model": model,
            "messages": [{"role": "user", "content": f"Search the web, and answer with sources: {query}"}],
        }, ("search_results",), "snippet",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Where:
    """Where a search is asked."""

    provider: str
    url: str
    key: str
    model: str
    most: int

    def __repr__(self) -> str:
        """Tell no key."""
        return f"{self.provider} at {urlsplit(self.url).hostname}"


def variables(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Give the environment with what the folder's `.env` adds: groups of which the person's has nothing."""
    kept = dict[str, str]()
    with suppress(OSError, ValueError):
        file = folder / ".env"
        if file.is_file() and file.stat().st_size <= _LARGEST_ENV:
            found = map(_LINE.fullmatch, file.read_text("utf-8-sig").splitlines())
            kept = {one[1]: (one[2] or one[3] or one[4] or "").strip() for one in found if one}
    added = [group for group in GROUPS if not any(map(environ.get, group))]
    return {**environ, **{name: kept[name] for group in added for name in group if kept.get(name)}}


def where(settings: Search | None, environ: Mapping[str, str], folder: Path) -> Where:
    """Say where a search is asked. Raises `UsageError`, which says what to set."""
    known = variables(environ, folder)
    if settings is not None and "SEARCH_API_URL" not in environ:
        known.pop("SEARCH_API_URL", None)  # of a project's .env: the person's own word is more
    url, model = known.get("SEARCH_API_URL", ""), known.get("SEARCH_MODEL", "")
    of = settings or Search()
    key = known.get(of.key, "")
    if settings is None:
        if not (url or key):
            raise UsageError(NOT_SET)
        of = Search(provider=_guessed(url, key, model))  # pyright: ignore[reportArgumentType] - a name of the table
    provider, model = PROVIDERS[of.provider], model or of.model
    url = url or of.url or provider.home
    if not url.startswith(("https://", "http://")):
        raise UsageError(
            f"search with {of.provider} needs an address: set SEARCH_API_URL, or search.url in foreman.yaml"
        )
    if not key and of.provider not in ("searxng", "chat"):
        raise UsageError(f"search with {of.provider} needs a key: set {of.key}")
    if not model and of.provider == "chat":
        raise UsageError("search with a chat needs a model: set SEARCH_MODEL, or search.model in foreman.yaml")
    url = url.rstrip("/")
    return Where(of.provider, url if url.endswith(provider.ending) else url + provider.ending, key, model, of.results)


def _guessed(url: str, key: str, model: str) -> str:
    """Tell a provider by its address, by how its keys begin, or by there being a model."""
    host = urlsplit(url).hostname or ""
    if model:
        return "chat"
    for name, provider in PROVIDERS.items():
        if host and host == urlsplit(provider.home).hostname:
            return name
    if url:
        return "searxng"
    return "tavily" if key.startswith("tvly-") else "brave" if key.startswith("BSA") else "searxng"


async def search(query: str, at_: Where) -> list[Found]:
    """Ask, and give what was found, the best first. Raises `AshepError`."""
    provider = PROVIDERS[at_.provider]
    name, before = provider.key
    headers = {"Accept": "application/json"} | ({name: before + at_.key} if at_.key else {})
    asked = provider.asked(query, at_.most, at_.model)
    sent = {"params": asked} if provider.method == "GET" else {"body": asked}
    answer = await ask(provider.method, at_.url, TIMEOUT, headers=headers, **sent)
    listed = at(answer, *provider.results)
    found = [_found(one, provider.text) for one in cast("list[Any]", listed)] if isinstance(listed, list) else None
    if at_.provider == "chat":
        return _of_chat(answer, found or [])[: at_.most + 1]
    if found is None:
        raise AshepError(f"{urlsplit(at_.url).hostname} answers with something that is no search result")
    return [one for one in found if one.url][: at_.most]


def _found(one: Any, text: str) -> Found:
    title, url, said = (_line(at(one, name)) for name in ("title", "url", text))
    return Found(title[:300], url[:2000], said[:_EACH])


def _of_chat(answer: Any, found: list[Found]) -> list[Found]:
    """Give a chat's words, and then its sources, which each of them names in a way of its own."""
    message = at(answer, "choices", 0, "message")
    said = text_of(at(message, "content"))
    if not said:
        raise AshepError("the chat that searches said nothing")
    cited = cast("list[Any]", at(message, "annotations") or [])
    found = [*found, *(_found(at(one, "url_citation"), "") for one in cited)]
    if not found:
        found = [Found("", _line(one), "") for one in cast("list[Any]", at(answer, "citations") or [])]
    return [Found("answer", "", clean(said)[:_ALL]), *(one for one in found if one.url)]


def _line(value: Any) -> str:
    return " ".join(clean(html.unescape(_MARKS.sub("", value))).split()) if isinstance(value, str) else ""
