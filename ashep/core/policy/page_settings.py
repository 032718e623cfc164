"""The page's settings: by which names, next to those of loopback, it may be asked, and what of it is a user's own."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from ashep.core.policy.base_types import Document

_ORIGIN = r"^https://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$"


def parse_origin(value: str) -> str:
    """Read an origin as browsers send it, compared letter by letter; anything else is a ValueError that says so."""
    match = re.fullmatch(_ORIGIN, value) if len(value) <= 300 else None
    port = int(match[3][1:]) if match and match[3] else 0
    if match is None or port == 443 or port > 65535:
        how = "https, small letters, no path, and a port only where it is not 443"
        raise ValueError(f"expected an origin as browsers send it, such as https://box.example.net ({how})")
    return value


Origin = Annotated[str, AfterValidator(parse_origin), WithJsonSchema({"type": "string", "pattern": _ORIGIN})]
"""The origin of a proxy with TLS."""


class UiSettings(Document):
    """The page (docs/guides/page.md)."""

    origins: Annotated[tuple[Origin, ...], Field(max_length=20)] = ()
    """Origins of proxies with TLS in front of `ashep serve`, as `https://box.example.net`: it answers to these names,
    too, so that a phone can be paired (`ashep ui --pair`). Messages of `notify` link to the first one."""


_PANEL = r"^http://(localhost|127\.0\.0\.1)(:[1-9][0-9]{0,4})?(/[!-~]*)?$"
"""A content security policy can name no IPv6 address, and of IPv4 only this one for certain (CSP 3, 6.7.2.8)."""


def parse_panel(value: str) -> str:
    """Read the address of a panel; anything but a page of this machine is a ValueError that says so."""
    match = re.fullmatch(_PANEL, value) if len(value) <= 300 else None
    if match is None or (match[2] and int(match[2][1:]) > 65535):
        rule = "http, and localhost or 127.0.0.1: a page from elsewhere is not framed"
        raise ValueError(f"expected a page of this machine, such as http://127.0.0.1:9000/board ({rule})")
    return value


Panel = Annotated[str, AfterValidator(parse_panel), WithJsonSchema({"type": "string", "pattern": _PANEL})]
"""The address of a page that a program on this machine serves."""


class PageSettings(Document):
    """A view of your own (docs/guides/page.md)."""

    colours: bool = False
    """Whether the page takes the colours of `.agent-shepherd/page/colours.css`."""
    panel: Panel | None = None
    """A page of this machine, which the page shows in a frame of its own, `/panel`, without leave to anything here."""
    title: Annotated[str, Field(min_length=1, max_length=30)] = "Panel"
    """What the page calls the panel."""
