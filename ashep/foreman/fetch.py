"""`web-fetch`: one page of the public web, as text.

An agent that was told so by a page must not reach what only this machine can: every name is resolved here, each of its
addresses must be one of the public internet, and the connection goes to the address that was judged, so that a name
that is bound anew in between changes nothing. Each redirect is judged like a first address. Proxies of the environment
are not used for pages, because a proxy resolves names itself: where the web is reached by a proxy alone, Cloudflare's
browser rendering is a way, which is asked like any endpoint that a person names.
"""

import ashep.adapters.httpx_alone  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

# isort: split
import os
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import quote
from urllib.robotparser import RobotFileParser

import anyio
import anyio.to_thread
import httpx

from ashep.adapters import programs
from ashep.core.text import clean
from ashep.errors import AshepError, UsageError
from ashep.foreman import markdown
from ashep.foreman.endpoints import ask, at

AGENT = "agent-shepherd"
LARGEST = 5 * 1024 * 1024
"""Bytes of a page that are read."""
TIMEOUT = 30.0
"""Seconds for all of it, redirects and robots.txt included."""
CONVERTING = 30.0
"""Seconds to make markdown of it."""
REDIRECTS = 5
EXTRA = "web-fetch reads pages with an extra: pip install 'ashep[foreman]'"
CLOUDFLARE = "https://api.cloudflare.com/client/v4"

_CLOUDFLARE = ("CF_ACCOUNT_ID", "CF_BROWSER_TOKEN")
_ROBOTS = 500 * 1024  # bytes of one that are read, as its standard has it
_SITES = 256  # whose robots.txt is remembered
_ADDRESSES = 3  # of a name that are tried
# what carries an IPv4 address in an IPv6 one, where a gateway may take it out again: compatible, mapped, translated
# (NAT64), Teredo, 6to4; and site-local
_COMPATIBLE = ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")
_NEVER = tuple(map(ip_network, (*_COMPATIBLE, "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10")))
_TEXTS = ("json", "xml", "yaml", "javascript", "ecmascript", "toml", "markdown", "x-sh", "sql", "x-ndjson", "jsonl")
_ENCODINGS = ("", "identity", "gzip", "deflate")  # one of them: two in one are a bomb in a bomb
_ACCEPTED = "text/html, text/markdown, text/*;q=0.9, application/json;q=0.8, */*;q=0.1"
_KIND = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,80}")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """What was found at an address."""

    url: str
    """Where it was in the end."""
    text: str
    notes: tuple[str, ...] = ()
    """What is to be known of it: that it was cut, say."""


@dataclass(frozen=True, slots=True)
class _Got:
    url: httpx.URL
    status: int
    kind: str
    charset: str
    content: bytes
    cut: bool


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the public internet."""
    odd = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    if odd or address.is_link_local or address.is_private or not address.is_global:
        return False
    return not any(address.version == net.version and address in net for net in _NEVER)


class Fetcher:
    """Fetches pages; it remembers what robots.txt said."""

    def __init__(self, environ: Mapping[str, str], *, loopback: bool = False, cloudflare: str = CLOUDFLARE) -> None:
        """`loopback`: let this machine be asked, and nothing else that is not public; no setting leads here."""
        self._environ, self._loopback, self._cloudflare = environ, loopback, cloudflare
        self._robots: dict[str, RobotFileParser | None] = {}
        self._trusted: ssl.SSLContext | None = None

    async def page(self, url: str, timeout: float = TIMEOUT) -> Page:
        """Fetch a page. Raises `AshepError` with a sentence that says why not."""
        notes = list[str]()
        try:
            with anyio.fail_after(timeout):
                first = _read(url)
                if all(map(self._environ.get, _CLOUDFLARE)):
                    await self._judged(first)  # nobody else is told of addresses in here, either
                    await self._may(first)
                    try:
                        return Page(str(first), await self._rendered(str(first), timeout / 2))
                    except AshepError as error:
                        notes.append(f"It was not rendered by a browser: {error}")
                got = await self._get(first, LARGEST, page=True)
        except TimeoutError as error:
            raise AshepError(f"{url[:200]} was not there within {timeout:g} s") from error
        if got.status >= 400:
            notes.append(f"The server answered with {got.status}.")
        if got.cut:
            notes.append(f"Only its first {LARGEST // 1024**2} MiB were read.")
        return Page(str(got.url), await _text(got), tuple(notes))

    async def _rendered(self, url: str, timeout: float) -> str:
        """Let Cloudflare's browser read it, scripts and all."""
        account, token = map(self._environ.__getitem__, _CLOUDFLARE)
        headers = {"Authorization": f"Bearer {token}"}
        at_ = f"{self._cloudflare}/accounts/{quote(account, safe='')}/browser-rendering/markdown"
        answer = await ask("POST", at_, timeout, headers=headers, body={"url": url})
        text = at(answer, "result")
        if not isinstance(text, str) or not at(answer, "success"):
            raise AshepError(clean(str(at(answer, "errors", 0, "message") or "no markdown came"))[:300])
        return text

    async def _may(self, url: httpx.URL) -> None:
        """Ask robots.txt whether we may; what a server says with an error of its own is no (RFC 9309)."""
        site = f"{url.scheme}://{url.netloc.decode()}"
        if site not in self._robots:
            got = await self._get(url.join("/robots.txt"), _ROBOTS, page=False)
            parser = None if got.status >= 500 else RobotFileParser()
            if parser is not None:
                lines = [] if got.status >= 400 else got.content.decode("utf-8-sig", errors="replace").splitlines()
                await anyio.to_thread.run_sync(parser.parse, lines)
            if len(self._robots) >= _SITES:
                self._robots.clear()
            self._robots[site] = parser
        rules = self._robots[site]
        if rules is None or not await anyio.to_thread.run_sync(rules.can_fetch, AGENT, str(url)):
            raise AshepError(f"{site}/robots.txt does not allow {url.raw_path[:100].decode()} to programs")

    # --- one request ----------------------------------------------------------------------------------------------

    async def _get(self, url: httpx.URL, most: int, *, page: bool) -> _Got:
        """Get what is at an address, or where that leads."""
        for _ in range(REDIRECTS + 1):
            if page:
                await self._may(url)
            found = await self._one(url, most, page=page)
            if isinstance(found, _Got):
                return found
            url = found
        raise AshepError(f"{url.host} leads on and on: more than {REDIRECTS} redirects")

    async def _one(self, url: httpx.URL, most: int, *, page: bool) -> _Got | httpx.URL:
        name, failed = url.raw_host.decode(), ""
        for address in (await self._judged(url))[:_ADDRESSES]:
            try:
                return await self._asked(url, address, most, page=page)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = str(error)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # whose words may be the server's
                raise AshepError(f"{name} does not speak HTTP as it should: {type(error).__name__}") from error
        raise AshepError(f"{name} cannot be reached: {clean(failed)[:300] or 'no connection'}")

    async def _judged(self, url: httpx.URL) -> list[str]:
        """Give the addresses of a name, all of which may be asked."""
        name = url.raw_host.decode()
        try:
            found = await anyio.getaddrinfo(name, url.port or 0, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise AshepError(f"{name} has no address: {error}") from error
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        for address in addresses:
            one = ip_address(address)
            if not is_public(one) and not (self._loopback and one.is_loopback):
                raise AshepError(
                    f"{name} is {address}, which is not in the public internet; web-fetch does not go there"
                )
        return addresses

    async def _asked(self, url: httpx.URL, address: str, most: int, *, page: bool) -> _Got | httpx.URL:
        """Ask the address that was judged, by the name that it was asked for."""
        if self._trusted is None:
            self._trusted = await anyio.to_thread.run_sync(httpx.create_ssl_context)
        headers = {"Host": url.netloc.decode(), "User-Agent": AGENT, "Accept": _ACCEPTED, "Accept-Encoding": "gzip"}
        transport = httpx.AsyncHTTPTransport(verify=self._trusted, trust_env=False)
        content, cut = bytearray(), False
        async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=TIMEOUT) as client:
            by_name = {"sni_hostname": url.raw_host.decode()}
            asked = client.build_request("GET", url.copy_with(host=address), headers=headers, extensions=by_name)
            got = await client.send(asked, stream=True, follow_redirects=False)
            try:
                if got.has_redirect_location:
                    return _read(str(url.join(got.headers["location"])))
                kind, charset = _kind(got, url, page=page)
                async for piece in got.aiter_bytes():
                    content += piece
                    if cut := len(content) > most:
                        break
            finally:
                await got.aclose()
        return _Got(url, got.status_code, kind, charset, bytes(content[:most]), cut)


def _read(address: str) -> httpx.URL:
    """Read an address, and refuse what is none of the web's."""
    try:
        url = httpx.URL(address.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{address[:80]!r} is no address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{address[:80]!r} is no address of the web: it begins with https:// or http://, and a name")
    if url.userinfo:
        raise UsageError("an address with a name or a password in it is not fetched")
    return url.copy_with(fragment=None)


def _kind(got: httpx.Response, url: httpx.URL, *, page: bool) -> tuple[str, str]:
    """Give the type and the charset of an answer; of a page, refuse what cannot be read as text."""
    kind, _, rest = got.headers.get("content-type", "").partition(";")
    kind, charset = kind.strip().lower(), _CHARSET.search(rest)
    if got.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise AshepError(f"{url.host} answers in an encoding that nobody asked for")
    if page and kind and not kind.startswith("text/") and not any(one in kind for one in _TEXTS):
        failed = f" (status {got.status_code})" if got.status_code >= 400 else ""
        named = kind if _KIND.fullmatch(kind) else "of no known type"
        raise AshepError(f"what is there is {named}{failed}; web-fetch reads HTML, text, JSON, XML and markdown")
    return kind, charset[1] if charset else ""


async def _text(got: _Got) -> str:
    """Give a page's text."""
    begins = got.content[:1024].lstrip().lower()
    if b"\0" in begins and "16" not in got.charset and not begins.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AshepError("what is there is no text")
    if "html" not in got.kind and (got.kind or not begins.startswith((b"<!doctype html", b"<html"))):
        return await anyio.to_thread.run_sync(markdown.decoded, got.content, got.charset)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    argv = (sys.executable, "-P", markdown.__file__)
    given = f"{got.charset}\n".encode(errors="replace") + got.content
    try:
        done = await programs.run(argv, cwd=Path("/"), env=kept, timeout=CONVERTING, stdin=given)
    except AshepError as error:
        raise AshepError(f"the page cannot be read: {error}") from error
    if done.returncode == markdown.MISSING:
        raise UsageError(EXTRA)
    if done.returncode:
        raise AshepError(f"the page cannot be read: what makes text of it failed ({done.returncode})")
    return done.stdout.decode(errors="replace")
