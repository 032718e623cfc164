"""The guard: a request by its head, row by row."""

import pytest

from ashep.request_guard import is_loopback, refusal

PROXY = ("https://box.example.net",)


@pytest.mark.parametrize("host", [
    "localhost", "localhost:8090", "127.0.0.1", "127.0.0.1:1", "127.9.9.9:80", "[::1]:8090", "[::1]", "LOCALHOST:80",
])  # fmt: skip
def test_this_machine_is_named_as_only_it_can_be(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", [
    "", "evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:port",
    "evil@localhost", "localhost/", "localhost#", "localhost?", " localhost", "[::1", "0.0.0.0:8090", "10.0.0.1",
    "localhost,evil.example", "2130706433", "127.1", "0x7f.1", "localhost\\evil", "localhost:99999", "lo calhost",
    "localhost.",
])  # fmt: skip
def test_whatever_else_is_no_name_of_it(host: str) -> None:
    assert not is_loopback(host)
    assert refusal("GET", {"host": host}) is not None


@pytest.mark.parametrize(("method", "headers", "status"), [
    ("GET", {"host": "localhost:8090"}, None),
    ("GET", {}, 421),
    ("GET", {"host": "evil.example"}, 421),
    # a name that was bound anew: the page's own origin, as far as the browser knows
    ("GET", {"host": "evil.example:8090", "origin": "http://evil.example:8090"}, 421),
    ("POST", {"host": "localhost:8090", "origin": "http://evil.example"}, 403),
    ("GET", {"host": "localhost:8090", "origin": "null"}, 403),
    ("POST", {"host": "localhost:8090", "origin": "http://localhost:3000"}, 403),
    ("POST", {"host": "localhost:8090", "origin": "http://localhost:8090"}, None),
    ("POST", {"host": "localhost:8090", "origin": "https://localhost:8090"}, 403),
    # browsers send no Origin with a plain form of old; they say where it comes from
    ("POST", {"host": "localhost:8090", "sec-fetch-site": "same-site"}, 403),
    ("POST", {"host": "localhost:8090", "sec-fetch-site": "cross-site"}, 403),
    ("POST", {"host": "localhost:8090", "sec-fetch-site": "none"}, None),
    ("GET", {"host": "localhost:8090", "sec-fetch-site": "cross-site"}, None),  # a link that somebody clicked
    ("POST", {"host": "localhost:8090"}, None),  # a program
    ("DELETE", {"host": "localhost:8090", "sec-fetch-site": "same-site"}, 403),
    ("GET", {"host": "box.example.net"}, None),
    ("POST", {"host": "box.example.net", "origin": "https://box.example.net"}, None),
    ("POST", {"host": "box.example.net", "origin": "http://box.example.net:81"}, 403),
    ("POST", {"host": "box.example.net", "origin": "http://box.example.net"}, 403),  # and TLS is asked of it
    ("POST", {"host": "localhost:8090", "origin": "https://box.example.net"}, None),
])  # fmt: skip
def test_who_may_ask(method: str, headers: dict[str, str], status: int | None) -> None:
    found = refusal(method, headers, PROXY)
    assert (found.status if found else None) == status
