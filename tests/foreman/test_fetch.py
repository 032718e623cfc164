"""Pages: what is never asked, what is cut and ended, and what becomes of the rest."""

import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ashep.errors import AshepError
from ashep.foreman.fetch import AGENT, Fetcher, is_public
from ashep.foreman.markdown import MOST
from tests.foreman.serving import serving

PAGE = "<html><body><nav>menu</nav><article><h1>A heading</h1>{}</article></body></html>".format(
    "".join(
        f"<p>Words of paragraph {one} that go on, <a href='https://a.example/{one}'>with a link</a>.</p>" * 2
        for one in range(9)
    )
)
INSIDE = """
    127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 255.255.255.255 240.0.0.1
    198.18.0.1 ::1 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fc00::1 fec0::1 ff02::1 64:ff9b::7f00:1
    64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1"""
REFUSED = """http://127.0.0.1:{0}/ http://localhost:{0}/ http://2130706433:{0}/ http://0x7f.1:{0}/ file:///etc/passwd
    http://[::1]:{0}/ http://[::ffff:127.0.0.1]:{0}/ http://0:{0}/ http://user:pw@127.0.0.1:{0}/ gopher://a/ http:///
    nothing http://169.254.169.254/latest/meta-data http://inside.test:{0}/ http://both.test:{0}/"""


class Site:
    """What a server answers by path, and what it was asked."""

    def __init__(self, **pages: Response | Callable[[], Response]) -> None:
        self.pages: dict[str, Any] = pages
        self.asked: list[tuple[str, str]] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        self.asked.append((request.headers["host"], request.url.path))
        found = self.pages.get(request.url.path.strip("/").replace(".", "_") or "index", Response(status_code=404))
        return found() if not isinstance(found, Response) else found


def text(content: str | bytes, kind: str = "text/plain", **headers: str) -> Response:
    return Response(content, headers={"content-type": kind, **headers})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names of the world, each with what is answered when it is asked for, once."""
    known, real = dict[str, list[str]](), socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return real(host, port, *rest, **more)
        return [(socket.AF_INET, 1, 6, "", (one, port)) for one in known[name].pop(0).split()]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


def test_which_addresses_are_of_the_public_internet() -> None:
    assert [one for one in INSIDE.split() if is_public(ip_address(one))] == []
    assert all(is_public(ip_address(one)) for one in ("8.8.8.8", "2606:4700:4700::1111", "172.32.0.1"))


async def test_this_machine_and_what_only_it_reaches_are_not_asked(names: dict[str, list[str]]) -> None:
    names["inside.test"], names["both.test"] = ["10.0.0.7"], ["8.8.8.8 127.0.0.1"]
    site = Site(index=text("secret"))
    async with serving(site.app) as base:
        for url in REFUSED.split():
            with pytest.raises(AshepError, match=r"not in the public internet|holds a name and no password"):
                await Fetcher({}).page(url.format(base.rpartition(":")[2]))
    assert site.asked == []


async def test_a_redirect_is_judged_and_so_is_each_that_follows(names: dict[str, list[str]]) -> None:
    names["inside.test"] = ["192.168.0.1"]
    refused = {
        "near": ("/far", "192.168.0.1"),
        "far": ("http://inside.test/", "192.168.0.1"),
        "meta": ("http://169.254.169.254/latest", "169.254.169.254"),
        "named": ("http://a:b@127.0.0.1/", "no password"),
        "file": ("file:///etc/passwd", "begins with https"),
        "on": ("/on", "leads on and on"),
    }
    pages = {path: RedirectResponse(there) for path, (there, _) in refused.items()}
    site = Site(**pages, good=RedirectResponse("/text", 308), text=text("arrived"))
    async with serving(site.app) as base:
        fetcher = Fetcher({}, loopback=True)
        for path in sorted(refused.keys() - {"far"}):
            with pytest.raises(AshepError, match=refused[path][1]):
                await fetcher.page(f"{base}/{path}")
        assert await fetcher.page(f"{base}/good#part") == (f"{base}/text", "arrived", ())
    assert len([one for one in site.asked if one[1] == "/on"]) <= 6


@pytest.fixture
async def tls(tmp_path: Path) -> AsyncIterator[tuple[Site, str]]:
    """A server with a certificate for `known.test`, and its port."""
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=known.test",
             "-addext", "subjectAltName=DNS:known.test", "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    await anyio.to_thread.run_sync(lambda: subprocess.run(words, cwd=tmp_path, check=True, capture_output=True))
    site = Site(index=text("by name"))
    more = {"ssl_certfile": str(tmp_path / "cert.pem"), "ssl_keyfile": str(tmp_path / "key.pem")}
    async with serving(site.app, **more) as base:
        yield site, base.rpartition(":")[2]


@pytest.mark.may_block
async def test_a_judged_address_is_connected_to_by_name_whatever_the_name_leads_to_later(
    tls: tuple[Site, str], names: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, port = tls
    names["known.test"] = ["127.0.0.1", "127.0.0.1", "127.0.0.1", "10.0.0.1"]  # asked for once for each connection
    names["other.test"] = ["127.0.0.1"]
    with pytest.raises(AshepError, match="CERTIFICATE_VERIFY_FAILED"):
        await Fetcher({}, loopback=True).page(f"https://known.test:{port}/")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    fetcher = Fetcher({}, loopback=True)
    assert (await fetcher.page(f"https://known.test:{port}/")).text == "by name"
    assert names["known.test"] == ["10.0.0.1"]
    with pytest.raises(AshepError, match=r"(?i)hostname mismatch"):
        await fetcher.page(f"https://other.test:{port}/")
    assert {host for host, _ in site.asked} == {f"known.test:{port}"}


async def test_a_page_of_50_megabytes_is_cut_and_one_that_drips_is_ended_in_time() -> None:
    async def pieces(size: int, number: int) -> AsyncIterator[bytes]:
        for _ in range(number):
            sent.append(size)
            yield b"x" * size
            await (anyio.lowlevel.checkpoint() if size > 1 else anyio.sleep(0.05))

    sent = list[int]()
    big = lambda: StreamingResponse(pieces(1024**2, 50), media_type="text/plain")  # noqa: E731
    slow = lambda: StreamingResponse(pieces(1, 10_000), media_type="text/plain")
    async with serving(Site(big=big, slow=slow).app) as base:
        page = await Fetcher({}, loopback=True).page(f"{base}/big")
        with anyio.fail_after(60), pytest.raises(AshepError, match="TimeoutError"):
            await Fetcher({}, loopback=True).page(f"{base}/slow", timeout=0.5)
    assert (len(page.text), page.notes) == (MOST, ("Only its first 5 MiB were read.",))
    assert sent.count(1024**2) < 50


async def test_robots_txt_is_asked_once_and_kept_to() -> None:
    rules = f"User-agent: *\nDisallow: /private\n\nUser-agent: {AGENT}\nDisallow: /not-you\n"
    site = Site(robots_txt=text(rules, "text/html"), open=text("said"), leads=RedirectResponse("/not-you"))
    broken = Site(robots_txt=Response(status_code=503), open=text("said"))
    async with serving(site.app) as base, serving(broken.app) as other:
        fetcher = Fetcher({}, loopback=True)
        assert (await fetcher.page(f"{base}/open")).text == "said"
        for url in (f"{base}/not-you", f"{base}/leads", f"{other}/open"):
            with pytest.raises(AshepError, match=r"robots\.txt does not allow /(not-you|open)"):
                await fetcher.page(url)
    assert [path for _, path in site.asked + broken.asked] == ["/robots.txt", "/open", "/leads", "/robots.txt"]


async def test_html_becomes_markdown_other_text_stays_and_binaries_are_refused() -> None:
    site = Site(
        html=text(PAGE, "text/html"), deep=text("<div>" * 100_000 + "the bottom" + "</div>" * 100_000, "text/html"),
        meta=text("<meta charset=latin-1><p>é" .encode("latin-1"), "text/html"),
        json=JSONResponse({"a": 1}), latin=text("é".encode("latin-1"), "text/plain; charset=latin-1"),
        strange=text("é", 'text/plain; charset="punycode"'), unknown=text("é", "text/plain; charset=no-such"),
        pdf=text(b"%PDF", "application/pdf"), odd=text(b"\0\1"), twice=text(b"x", **{"content-encoding": "gzip, gzip"}),
    )  # fmt: skip
    async with serving(site.app) as base:
        fetcher = Fetcher({}, loopback=True)
        html = (await fetcher.page(f"{base}/html")).text
        assert "# A heading" in html
        assert "[with a link](https://a.example/0)" in html
        assert "menu" not in html
        for path, expected in {"json": '{"a":1}', "latin": "é", "unknown": "é", "meta": "é"}.items():
            assert (await fetcher.page(f"{base}/{path}")).text == expected
        refused = {"pdf": "is no text", "odd": "is no text", "twice": "nobody asked for", "deep": "cannot be read"}
        for path, why in refused.items():
            with pytest.raises(AshepError, match=why):
                await fetcher.page(f"{base}/{path}")
        assert (await fetcher.page(f"{base}/gone")).notes == ("The server answered with 404.",)


async def test_cloudflares_browser_reads_pages_where_it_is_configured() -> None:
    site, cloud = Site(text=text("plain")), Site()
    environ = {"CF_ACCOUNT_ID": "abc", "CF_BROWSER_TOKEN": "a-token-of-ours"}
    async with serving(site.app) as base, serving(cloud.app) as api:
        fetcher = Fetcher(environ, loopback=True, cloud=api)
        cloud.pages["accounts/abc/browser-rendering/markdown"] = JSONResponse({"success": True, "result": "# rendered"})
        assert (await fetcher.page(f"{base}/text")).text == "# rendered"
        with pytest.raises(AshepError, match="public internet"):
            await fetcher.page("http://10.0.0.1/")
        cloud.pages["accounts/abc/browser-rendering/markdown"] = JSONResponse({"errors": "over the limit"}, 429)
        page = await fetcher.page(f"{base}/text")
    assert page.text == "plain"
    assert "not rendered by a browser" in page.notes[0]
    assert "over the limit" in page.notes[0]
    assert len(cloud.asked) == 2
