"""`web-fetch`: one page of the public web, as text.

An agent that was told so by a page must not reach what only this machine can: each name, of redirects too, is resolved
here, all its addresses must be of the public internet and none of this machine or its networks, and what was judged is
connected to. Proxies are not used.
"""

import ashep.adapters.system.http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

# isort: split
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.robotparser import RobotFileParser

import anyio
import anyio.to_thread
import httpx

from ashep.adapters.system import programs
from ashep.core.text import clean
from ashep.errors import AshepError, UsageError
from ashep.extras.foreman import html_to_text
from ashep.extras.foreman.model_endpoints import ask_endpoint

AGENT = "agent-shepherd"
LARGEST = 5 * 1024 * 1024  # bytes of a page that are read
TIMEOUT = 30.0  # seconds for all of it, redirects and robots.txt included; and as many to make text of it

_CLOUD = "https://api.cloudflare.com/client/v4"
_UNICAST, _TEREDO, _6TO4 = map(ip_network, ("2000::/3", "2001::/32", "2002::/16"))
_INTERFACES = Path("/proc/net/if_inet6")
_TEXTS = ("text/", "html", "json", "xml", "yaml", "javascript", "ecmascript", "toml", "markdown", "x-sh", "sql")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the public internet; one that carries an IPv4 address to a gateway is none."""
    if address.version == 6 and (address not in _UNICAST or address in _TEREDO or address in _6TO4):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def is_own(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of this machine, or, for IPv6, of a network that it is in: /64, or more. Blocks."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((str(address), 9))  # nothing is sent; who goes to itself comes from where it goes
        if ip_address(way.getsockname()[0]) == address:
            return True
    with suppress(OSError, ValueError):
        for digits, _, length, *_ in map(str.split, _INTERFACES.read_text().splitlines()):
            if address in IPv6Network((int(digits, 16), min(int(length, 16), 64)), strict=False):
                return True
    return False


class Fetcher:
    """Fetches pages; it remembers what robots.txt said."""

    def __init__(self, environ: Mapping[str, str], *, loopback: bool = False, cloud: str = _CLOUD) -> None:
        """`loopback`: let this machine be asked, and nothing else that is not public; no setting leads here."""
        self._account, self._token = environ.get("CF_ACCOUNT_ID"), environ.get("CF_BROWSER_TOKEN")
        self._cloud, self._loopback, self._trusted = cloud, loopback, httpx.create_ssl_context()
        self._robots: dict[str, RobotFileParser] = {}

    async def page(self, url: str, timeout: float = TIMEOUT) -> tuple[str, str, list[str]]:
        """Give where a page was in the end, its text, and notes on it. Raises `AshepError` with why not."""
        notes = list[str]()
        try:
            with anyio.fail_after(timeout):
                first = httpx.URL(url.strip()).copy_with(fragment=None)
                if self._account and self._token:
                    await self._may(first)  # which asks there: nobody is told of addresses in here
                    whom = "cloudflare", f"{self._cloud}/accounts/{self._account}", self._token, ""
                    try:
                        text = await ask_endpoint(whom, str(first), timeout / 2, lambda got: str(got["result"]))
                        return str(first), text, notes
                    except AshepError as error:
                        notes.append(f"It was not rendered by a browser: {error}")
                at, got, content = await self._get(first, LARGEST, page=True)
        except (OSError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            told = isinstance(error, OSError | httpx.ConnectError | httpx.InvalidURL)  # others tell a server's words
            why = clean(str(error))[:300] if told else ""
            raise AshepError(f"{url[:200]!r} cannot be fetched: {why or type(error).__name__}") from error
        if got.status_code >= 400:
            notes.append(f"The server answered with {got.status_code}.")
        if len(content) == LARGEST:
            notes.append(f"Only its first {LARGEST // 1024**2} MiB were read.")
        return str(at), await _text(got, content), notes

    async def _may(self, url: httpx.URL) -> None:
        """Ask robots.txt whether we may; what a server says with an error of its own is no (RFC 9309)."""
        site = f"{url.scheme}://{url.netloc.decode()}"
        if site not in self._robots:
            _, got, content = await self._get(url.join("/robots.txt"), 500 * 1024, page=False)
            rules, text = RobotFileParser(), content.decode("utf-8-sig", errors="replace")
            if got.status_code < 500:  # rules that were never read allow nothing
                await anyio.to_thread.run_sync(rules.parse, text.splitlines() if got.status_code < 400 else [])
            if len(self._robots) >= 256:
                self._robots.clear()
            self._robots[site] = rules
        if not await anyio.to_thread.run_sync(self._robots[site].can_fetch, AGENT, str(url)):
            raise AshepError(f"{site}/robots.txt does not allow {url.raw_path[:100].decode()} to programs")

    async def _get(self, url: httpx.URL, most: int, *, page: bool) -> tuple[httpx.URL, httpx.Response, bytes]:
        """Get what is at an address, or where that leads: nothing but a transport follows, keeps or adds anything."""
        headers = {"User-Agent": AGENT, "Accept": "text/html, text/*;q=0.9, */*;q=0.1", "Accept-Encoding": "gzip"}
        content, never = bytearray(), httpx.Limits(max_keepalive_connections=0)  # each name has its own certificate
        async with httpx.AsyncHTTPTransport(verify=self._trusted, trust_env=False, limits=never) as transport:
            for _ in range(6):
                if page:
                    await self._may(url)
                there = url.copy_with(host=await self._address(url))
                headers["Host"], name = url.netloc.decode(), {"sni_hostname": url.raw_host.decode()}
                got = await transport.handle_async_request(
                    httpx.Request("GET", there, headers=headers, extensions=name)
                )
                if not got.has_redirect_location:
                    break
                await got.aclose()
                url = url.join(got.headers["location"])
            else:
                raise AshepError(f"{url.host} leads on and on: more than 5 redirects")
            # two encodings in one are a bomb in a bomb
            if got.headers.get("content-encoding", "").strip().lower() not in ("", "identity", "gzip", "deflate"):
                raise AshepError(f"{url.host} answers in an encoding that nobody asked for")
            async for piece in got.aiter_bytes():
                content += piece[: most - len(content)]
                if len(content) == most:
                    break
        return url, got, bytes(content)

    async def _address(self, url: httpx.URL) -> str:
        """Give an address of a name, all of whose may be asked."""
        name = url.raw_host.decode()
        if url.scheme not in ("http", "https") or not name or url.userinfo:
            raise UsageError("an address of the web begins with https:// or http://, and holds a name and no password")
        found = await anyio.getaddrinfo(name, url.port or 0, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in found]
        for address in map(ip_address, addresses):
            if not is_public(address) and not (self._loopback and address.is_loopback):
                raise AshepError(f"{name} is {address}, which is not in the public internet: nothing is asked there")
            if not address.is_loopback and await anyio.to_thread.run_sync(is_own, address):
                raise AshepError(
                    f"{name} is {address}, an address of this machine or its network: nothing is asked there"
                )
        return addresses[0]


async def _text(got: httpx.Response, content: bytes) -> str:
    kind, begin = got.headers.get("content-type", "").partition(";")[0].lower(), content[:1024]
    if b"\0" in begin or (kind and not any(one in kind for one in _TEXTS)):
        raise AshepError("what is there is no text; web-fetch reads HTML, text, JSON, XML and markdown")
    form = "html" if "html" in (kind or begin.decode(errors="replace").lower()) else "text"
    given = f"{form} {got.charset_encoding or ''}\n".encode(errors="replace") + content
    argv = sys.executable, "-P", html_to_text.__file__
    done = await programs.run(argv, cwd=Path("/"), env={}, timeout=TIMEOUT, stdin=given)
    if done.returncode:
        raise AshepError(f"the page cannot be read: what makes text of it failed ({done.returncode})")
    return done.stdout.decode(errors="replace")
