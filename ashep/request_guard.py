"""Guard of everything that answers HTTP on this machine: who may ask, judged by the head of a request alone.

A browser is everybody's servant: a page from anywhere can make it ask a loopback address, and a name that is bound
again (DNS rebinding) makes that look like the page's own. After such a rebind a GET carries no Origin, so Host is
judged first, before any token. Then Origin and what browsers say themselves of where a request comes from
(`Sec-Fetch-Site`). Nothing here knows a cookie: a cookie of one loopback port is sent to every other port of the host,
and agents serve things on such ports.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

SAFE = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The content security policy: nothing from elsewhere, nothing that a text could begin."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=()"),
)
"""What every answer carries, refusals and files too."""

HEAD = 10.0
"""Seconds in which the head of a request must have come."""

MOST_WAITING = 64
"""Connections on which nothing is answered; of more the one that has waited longest is closed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not looked at, and the status that says so."""

    status: int
    why: str


def is_loopback(host: str) -> bool:
    """Whether a Host names this machine as only itself can, with any port: a forwarded one (`ssh -L`) is another."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.netloc != host or "@" in host or name == "localhost":
        return parts.netloc == host and "@" not in host
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def refusal(method: str, headers: Mapping[str, str], origins: Collection[str] = ()) -> Refusal | None:
    """Say why a request is not looked at; None: it may come in, which is no leave to be told anything.

    `headers`: by their names in small letters, each once. `origins`: of a proxy with TLS that the user named, such as
    `https://box.example.net`; its Host counts, too.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_loopback(host) and host not in {urlsplit(one).netloc for one in origins}:
        return Refusal(421, "this is no name of this server: ask for localhost, or name the proxy in ui.origins")
    ours = {*origins, f"http://{host}"} if is_loopback(host) else {*origins}  # a named proxy speaks TLS alone
    if origin is not None and origin not in ours:
        return Refusal(403, "another page asks")
    if method not in SAFE and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Refusal(403, "another page asks")
    return None
