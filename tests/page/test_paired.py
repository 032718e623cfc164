"""A paired phone, behind a proxy with TLS: it is let in again by another tab, and no more once it is revoked."""

import pytest
from playwright.sync_api import Route, expect

from ashep.api.paired_devices import Devices
from tests.page.conftest import Site

pytestmark = pytest.mark.slow

PROXY = "https://box.example.net"


def test_a_paired_phone_comes_again_in_another_tab_until_it_is_revoked(site: Site) -> None:
    devices = site.world.sessions.devices = Devices(site.world.folder / "state", lambda: site.world.clock)
    phone = site.browser.new_context(user_agent="Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X)")

    def proxied(route: Route) -> None:
        if route.request.url.endswith("/events"):
            route.abort()  # it would wait for the end
        else:
            route.fulfill(response=route.fetch(url=route.request.url.replace(PROXY, site.address)))

    phone.route(f"{PROXY}/**", proxied)
    first = phone.new_page()
    first.goto(f"{PROXY}/#enter={site.world.sessions.code('Pat', pairs=True)}")
    first.locator(".card").first.wait_for()
    assert [one["name"] for one in devices.listed()] == ["iPhone"]
    first.close()
    second = phone.new_page()
    second.goto(PROXY)
    second.locator(".card").first.wait_for()
    assert second.evaluate("sessionStorage.length") == 0
    devices.revoke("iPhone")
    second.reload()
    expect(second.locator("main")).to_contain_text("ashep ui")
    assert second.evaluate("Object.keys(localStorage).filter(key => key.includes('token'))") == []
