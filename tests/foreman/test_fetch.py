"""Pages: what is never asked, what is cut and ended, and what becomes of the rest."""

import socket
import ssl
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
from ashep.foreman.fetch import AGENT, LARGEST, Fetcher, is_public
from tests.foreman.serving import serving

ARTICLE = (
    "<html><head><title>T</title></head><body><nav>menu</nav><article><h1>A heading</h1>{}</article></body></html>"
)
PARAGRAPHS = "".join(
    f"<p>Words of paragraph {number} that go on for a while, <a href='https://a.example/{number}'>with a link</a>.</p>"
    for number in range(9)
)
INSIDE = """
    127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 255.255.255.255 240.0.0.1
    198.18.0.1 ::1 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fc00::1 fec0::1 ff02::1 64:ff9b::7f00:1
    64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1"""
REFUSED = """http://127.0.0.1:{port}/ http://localhost:{port}/ http://2130706433:{port}/ http://0x7f.1:{port}/ file:///x
    http://[::1]:{port}/ http://[::ffff:127.0.0.1]:{port}/ http://0:{port}/ http://user:pw@127.0.0.1:{port}/ gopher://a/
    http:/// nothing http://169.254.169.254/latest/meta-data http://inside.test:{port}/ http://both.test:{port}/"""


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


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names of the world, and how often each was asked for (by its name with `?`)."""
    names, real = dict[str, list[str]](), socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in names:
            return real(host, port, *rest, **more)
        names.setdefault(f"{name}?", []).append(str(port))
        found = names[name].pop(0).split()  # each time another answer
        return [(socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, port)) for one in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return names


def test_which_addresses_are_of_the_public_internet() -> None:
    assert [one for one in INSIDE.split() if is_public(ip_address(one))] == []
    assert all(is_public(ip_address(one)) for one in ("8.8.8.8", "2606:4700:4700::1111", "172.32.0.1"))


async def test_this_machine_and_what_only_it_reaches_are_not_asked(resolver: dict[str, list[str]]) -> None:
    resolver["inside.test"], resolver["both.test"] = ["10.0.0.7"], ["8.8.8.8 127.0.0.1"]
    site = Site(index=Response("secret"))
    async with serving(site.app) as base:
        for url in REFUSED.split():
            with pytest.raises(AshepError, match=r"public internet|no address|name or a password"):
                await Fetcher({}).page(url.format(port=base.rpartition(":")[2]))
    assert site.asked == []


async def test_a_redirect_is_judged_and_so_is_each_that_follows(resolver: dict[str, list[str]]) -> None:
    resolver["inside.test"] = ["192.168.0.1"]
    site = Site(
        near=RedirectResponse("/far"),
        far=RedirectResponse("http://inside.test/"),
        meta=RedirectResponse("http://169.254.169.254/latest"),
        named=RedirectResponse("http://a:b@127.0.0.1/"),
        file=RedirectResponse("file:///etc/passwd"),
        on=RedirectResponse("/on"),
        good=RedirectResponse("/text", 308),
        text=Response("arrived", media_type="text/plain"),
    )
    async with serving(site.app) as base:
        fetcher = Fetcher({}, loopback=True)
        refused = {
            "near": "192.168.0.1", "meta": "169.254.169.254", "named": "password", "file": "no address",
            "on": "redirects",
        }  # fmt: skip
        for path, why in refused.items():
            with pytest.raises(AshepError, match=why):
                await fetcher.page(f"{base}/{path}")
        page = await fetcher.page(f"{base}/good#part")
    assert (page.url, page.text) == (f"{base}/text", "arrived")
    assert len([one for one in site.asked if one[1] == "/on"]) <= 6


async def test_a_name_that_is_bound_anew_leads_nowhere_else(resolver: dict[str, list[str]]) -> None:
    site = Site(index=Response("ours", media_type="text/plain"), robots_txt=Response("", media_type="text/plain"))
    async with serving(site.app) as base:
        port = base.rpartition(":")[2]
        resolver["turns.test"] = ["127.0.0.1", "127.0.0.1", "10.0.0.1"]  # for robots.txt, for the page, and never again
        page = await Fetcher({}, loopback=True).page(f"http://turns.test:{port}/")
    assert page.text == "ours"
    assert len(resolver["turns.test?"]) == 2
    assert {host for host, _ in site.asked} == {f"turns.test:{port}"}


@pytest.fixture
async def tls(tmp_path: Path) -> AsyncIterator[tuple[Site, str]]:
    """A server with a certificate for `known.test`, and its port."""
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=known.test",
             "-addext", "subjectAltName=DNS:known.test", "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    await anyio.to_thread.run_sync(lambda: subprocess.run(words, cwd=tmp_path, check=True, capture_output=True))
    site = Site(index=Response("by name", media_type="text/plain"))
    more = {"ssl_certfile": str(tmp_path / "cert.pem"), "ssl_keyfile": str(tmp_path / "key.pem")}
    async with serving(site.app, **more) as base:
        yield site, base.rpartition(":")[2]


@pytest.mark.may_block
async def test_a_certificate_is_asked_for_by_name_though_an_address_is_connected_to(
    tls: tuple[Site, str], resolver: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, port = tls
    resolver["known.test"] = ["127.0.0.1"] * 4
    resolver["other.test"] = ["127.0.0.1"]
    with pytest.raises(AshepError, match="CERTIFICATE_VERIFY_FAILED"):
        await Fetcher({}, loopback=True).page(f"https://known.test:{port}/")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    fetcher = Fetcher({}, loopback=True)
    assert (await fetcher.page(f"https://known.test:{port}/")).text == "by name"
    with pytest.raises(AshepError, match=r"(?i)hostname mismatch"):
        await fetcher.page(f"https://other.test:{port}/")
    assert {host for host, _ in site.asked} == {f"known.test:{port}"}
    assert ssl.HAS_SNI


async def test_a_page_of_50_megabytes_is_cut_and_that_is_told() -> None:
    async def megabytes() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 1024**2
            await anyio.lowlevel.checkpoint()

    site = Site(big=lambda: StreamingResponse(megabytes(), media_type="text/plain"))
    async with serving(site.app) as base:
        page = await Fetcher({}, loopback=True).page(f"{base}/big")
    assert (len(page.text), page.notes) == (LARGEST, ("Only its first 5 MiB were read.",))


async def test_a_page_that_drips_is_ended_in_time() -> None:
    async def drips() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await anyio.sleep(0.05)

    site = Site(slow=lambda: StreamingResponse(drips(), media_type="text/plain"))
    async with serving(site.app) as base:
        with anyio.fail_after(60), pytest.raises(AshepError, match=r"not there within 0.5 s"):
            await Fetcher({}, loopback=True).page(f"{base}/slow", timeout=0.5)


async def test_robots_txt_is_asked_once_and_kept_to() -> None:
    rules = f"User-agent: *\nDisallow: /private\n\nUser-agent: {AGENT}\nDisallow: /not-you\n"
    text = Response("said", media_type="text/plain")
    site = Site(robots_txt=Response(rules, media_type="text/html"), open=text, leads=RedirectResponse("/not-you"))
    broken = Site(robots_txt=Response(status_code=503), open=text)
    async with serving(site.app) as base, serving(broken.app) as other:
        fetcher = Fetcher({}, loopback=True)
        assert (await fetcher.page(f"{base}/open")).text == "said"
        for path in ("not-you", "leads"):
            with pytest.raises(AshepError, match=r"robots\.txt does not allow /not-you"):
                await fetcher.page(f"{base}/{path}")
        with pytest.raises(AshepError, match=r"robots\.txt does not allow /open"):
            await fetcher.page(f"{other}/open")
    assert [path for _, path in site.asked] == ["/robots.txt", "/open", "/leads"]
    assert [path for _, path in broken.asked] == ["/robots.txt"]


async def test_html_becomes_markdown_other_text_stays_and_binaries_are_refused() -> None:
    pdf, odd = Response(b"%PDF", media_type="application/pdf"), Response(b"\0\1", media_type="text/plain")
    brotli = Response(b"x", media_type="text/plain", headers={"content-encoding": "gzip, gzip"})
    latin = Response("é".encode("latin-1"), headers={"content-type": "text/plain; charset=latin-1"})
    strange = Response("é", headers={"content-type": 'text/plain; charset="punycode"'})
    site = Site(
        html=Response(ARTICLE.format(PARAGRAPHS), media_type="text/html"),
        json=JSONResponse({"a": 1}), latin=latin, strange=strange, pdf=pdf, odd=odd, twice=brotli,
    )  # fmt: skip
    async with serving(site.app) as base:
        fetcher = Fetcher({}, loopback=True)
        html = (await fetcher.page(f"{base}/html")).text
        assert "# A heading" in html
        assert "[with a link](https://a.example/0)" in html
        assert "menu" not in html
        assert [(await fetcher.page(f"{base}/{one}")).text for one in ("json", "latin", "strange")] == [
            '{"a":1}',
            "é",
            "é",
        ]
        for path, why in (("pdf", "application/pdf"), ("odd", "is no text"), ("twice", "nobody asked for")):
            with pytest.raises(AshepError, match=why):
                await fetcher.page(f"{base}/{path}")
        gone = await fetcher.page(f"{base}/gone")
    assert gone.notes == ("The server answered with 404.",)


async def test_tags_in_tags_do_no_harm() -> None:
    deep = "<html><body>" + "<div>" * 100_000 + "the bottom" + "</div>" * 100_000
    site = Site(deep=Response(deep, media_type="text/html"))
    ticks, found = 0, ""
    async with serving(site.app) as base, anyio.create_task_group() as group:

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await anyio.sleep(0.01)

        group.start_soon(tick)
        try:
            found = (await Fetcher({}, loopback=True).page(f"{base}/deep")).text
        except AshepError as error:  # a machine that is busy
            found = str(error)
        group.cancel_scope.cancel()
    assert "the bottom" in found or "cannot be read" in found
    assert ticks > 5


async def test_cloudflares_browser_reads_pages_where_it_is_configured() -> None:
    site = Site(text=Response("plain", media_type="text/plain"))
    cloud = Site()
    cloud.pages["accounts/abc/browser-rendering/markdown"] = JSONResponse({"success": True, "result": "# rendered"})
    async with serving(site.app) as base, serving(cloud.app) as api:
        environ = {"CF_ACCOUNT_ID": "abc", "CF_BROWSER_TOKEN": "a-token-of-ours"}
        fetcher = Fetcher(environ, loopback=True, cloudflare=api)
        assert (await fetcher.page(f"{base}/text")).text == "# rendered"
        with pytest.raises(AshepError, match="public internet"):
            await fetcher.page("http://10.0.0.1/")
        failed = {"success": False, "errors": [{"message": "over the limit"}]}
        cloud.pages["accounts/abc/browser-rendering/markdown"] = JSONResponse(failed)
        page = await fetcher.page(f"{base}/text")
    assert (page.text, page.notes) == ("plain", ("It was not rendered by a browser: over the limit",))
    assert len(cloud.asked) == 2
