"""Pages: what is never asked, what is cut and ended, and what becomes of the rest."""

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from ashep.adapters import programs
from ashep.errors import AshepError
from ashep.foreman.fetch import AGENT, Fetcher, is_public
from ashep.foreman.markdown import MOST
from tests.foreman.serving import Site, serving

WORDS = "<p>Words that go on for a while, <a href='https://a.example/'>with a link</a>.</p>" * 9
PAGE = f"<html><body><nav>menu</nav><article><h1>A heading</h1>{WORDS}</article></body></html>"
INSIDE = """
    127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 255.255.255.255 240.0.0.1
    198.18.0.1 ::1 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fc00::1 fec0::1 ff02::1 64:ff9b::7f00:1
    64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1"""
REFUSED = """http://127.0.0.1:{0}/ http://localhost:{0}/ http://2130706433:{0}/ http://0x7f.1:{0}/ file:///etc/passwd
    http://[::1]:{0}/ http://[::ffff:127.0.0.1]:{0}/ http://0:{0}/ http://user:pw@127.0.0.1:{0}/ gopher://a/ http:///
    nothing http://169.254.169.254/latest/meta-data http://inside.test:{0}/ http://both.test:{0}/"""


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
    site = Site({})
    async with serving(site) as base:
        for url in REFUSED.split():
            with pytest.raises(AshepError, match=r"not in the public internet|holds a name and no password"):
                await Fetcher({}).page(url.format(base.rpartition(":")[2]))
    assert site.asked == []


async def test_a_redirect_is_judged_and_so_is_each_that_follows(names: dict[str, list[str]]) -> None:
    names["inside.test"] = ["192.168.0.1"]
    leads = {
        "/near": "/far", "/far": "http://inside.test/", "/meta": "http://169.254.169.254/latest", "/on": "/on",
        "/named": "http://a:b@127.0.0.1/", "/file": "file:///etc/passwd", "/good": "/text",
    }  # fmt: skip
    site = Site({path: RedirectResponse(there) for path, there in leads.items()} | {"/text": text("arrived")})
    async with serving(site) as base:
        fetcher = Fetcher({}, loopback=True)
        refused = {"near": "192.168.0.1", "meta": "169.254", "named": "no password", "file": "https", "on": "leads on"}
        for path, why in refused.items():
            with pytest.raises(AshepError, match=why):
                await fetcher.page(f"{base}/{path}")
        assert await fetcher.page(f"{base}/good#part") == (f"{base}/text", "arrived", [])
    assert site.paths.count("/on") <= 6


@pytest.mark.may_block
async def test_a_judged_address_is_connected_to_by_name_whatever_the_name_leads_to_later(
    names: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=known.test",
             "-addext", "subjectAltName=DNS:known.test", "-keyout", key, "-out", certificate]  # fmt: skip
    await programs.run(words, cwd=tmp_path, env=None, timeout=60)
    names["known.test"] = ["127.0.0.1", "127.0.0.1", "127.0.0.1", "10.0.0.1"]  # asked for once for each connection
    names["other.test"] = ["127.0.0.1"]
    site = Site({"/": text("by name")})
    async with serving(site, ssl_certfile=certificate, ssl_keyfile=key) as base:
        port = base.rpartition(":")[2]
        with pytest.raises(AshepError, match="CERTIFICATE_VERIFY_FAILED"):
            await Fetcher({}, loopback=True).page(f"https://known.test:{port}/")
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        fetcher = Fetcher({}, loopback=True)
        assert (await fetcher.page(f"https://known.test:{port}/"))[1] == "by name"
        assert names["known.test"] == ["10.0.0.1"]
        with pytest.raises(AshepError, match=r"(?i)hostname mismatch"):
            await fetcher.page(f"https://other.test:{port}/")
    assert {one.headers["host"] for one in site.asked} == {f"known.test:{port}"}


async def test_a_page_of_50_megabytes_is_cut_and_one_that_drips_is_ended_in_time() -> None:
    sent = list[int]()

    async def pieces(size: int, pause: float) -> AsyncIterator[bytes]:
        for _ in range(50):
            sent.append(size)
            yield b"x" * size
            await anyio.sleep(pause)

    pages = {"/big": StreamingResponse(pieces(1024**2, 0)), "/slow": StreamingResponse(pieces(1, 1))}
    async with serving(Site(pages)) as base:
        _, found, notes = await Fetcher({}, loopback=True).page(f"{base}/big")
        with pytest.raises(AshepError, match="TimeoutError"):
            await Fetcher({}, loopback=True).page(f"{base}/slow", timeout=0.5)
    assert (len(found), notes) == (MOST, ["Only its first 5 MiB were read."])
    assert sent.count(1024**2) < 50


async def test_robots_txt_is_asked_once_and_kept_to() -> None:
    rules = f"User-agent: *\nDisallow: /private\n\nUser-agent: {AGENT}\nDisallow: /not-you\n"
    pages = {"/robots.txt": text(rules, "text/html"), "/open": text("said"), "/leads": RedirectResponse("/not-you")}
    site, broken = Site(pages), Site({"/robots.txt": Response(status_code=503), "/open": text("said")})
    async with serving(site) as base, serving(broken) as other:
        fetcher = Fetcher({}, loopback=True)
        assert (await fetcher.page(f"{base}/open"))[1] == "said"
        for url in (f"{base}/not-you", f"{base}/leads", f"{other}/open"):
            with pytest.raises(AshepError, match=r"robots\.txt does not allow /(not-you|open)"):
                await fetcher.page(url)
    assert site.paths + broken.paths == ["/robots.txt", "/open", "/leads", "/robots.txt"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (text(PAGE, "text/html"), "# A heading\n\nWords that go on for a while, [with a link](https://a.example/)."),
        (text("<meta charset=latin-1><p>é".encode("latin-1"), "text/html"), "é"),
        (text("é".encode("latin-1"), "text/plain; charset=latin-1"), "é"),
        (text("é", "text/plain; charset=no-such"), "é"),
        (JSONResponse({"a": 1}), '{"a":1}'),
        (Response("gone", 404, media_type="text/plain"), "The server answered with 404."),
        (text(b"%PDF", "application/pdf"), "is no text"),
        (text(b"\0\1"), "is no text"),
        (text(b"x", **{"content-encoding": "gzip, gzip"}), "nobody asked for"),
        (text("<div>" * 100_000 + "the bottom" + "</div>" * 100_000, "text/html"), "cannot be read"),
    ],
)
async def test_html_becomes_markdown_other_text_stays_and_what_is_none_is_told(page: Response, expected: str) -> None:
    async with serving(Site({"/page": page})) as base:
        try:
            _, found, notes = await Fetcher({}, loopback=True).page(f"{base}/page")
        except AshepError as error:
            found, notes = f"refused: {error}", []
    assert expected in "\n".join((found, *notes))
    assert "menu" not in found


async def test_cloudflares_browser_reads_pages_where_it_is_configured() -> None:
    site, cloud, path = Site({"/text": text("plain")}), Site({}), "/accounts/abc/browser-rendering/markdown"
    async with serving(site) as base, serving(cloud) as api:
        fetcher = Fetcher({"CF_ACCOUNT_ID": "abc", "CF_BROWSER_TOKEN": "a-token"}, loopback=True, cloud=api)
        cloud.pages[path] = JSONResponse({"success": True, "result": "# rendered"})
        assert (await fetcher.page(f"{base}/text"))[1] == "# rendered"
        with pytest.raises(AshepError, match="public internet"):
            await fetcher.page("http://10.0.0.1/")
        cloud.pages[path] = JSONResponse({"errors": "over the limit"}, 429)
        _, found, (note,) = await fetcher.page(f"{base}/text")
    assert (found, "over the limit" in note, cloud.paths) == ("plain", True, [path, path])
