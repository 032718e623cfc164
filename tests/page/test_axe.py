"""Everybody can use the page: no finding of axe in any look, all of it by keys, nothing beside a narrow screen."""

from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize

from tests.page.conftest import Site

pytestmark = pytest.mark.slow

THEN = "/?at=2026-01-01T23:00:00Z"
"""Everything as it was then."""

PLACES = (
    "/", "/issues", "/issues/t-1", "/issues/t-1/runs", "/issues/t-1/history",
    "/issues/t-1/usage", "/runs",
    "/runs/t-1/implement.1.1", "/report", "/usage", "/records/5", "/policies/standard", "/projects", THEN, "/nowhere",
)  # fmt: skip
"""Every place of the page."""

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": ViewportSize(width=320, height=640), "has_touch": True, "is_mobile": True},
    "forced colours": {"forced_colors": "active"},
    "200 %": {"viewport": ViewportSize(width=640, height=400), "device_scale_factor": 2},
}

FINDINGS = """() => axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(one => `${id}: ${one.html}`)))"""

BY_KEYS = "a[href], button, input, select, textarea, summary, [tabindex]"

BESIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

THERE = """() => new Promise(done => {
    const loads = () => !document.querySelector('h1') || document.querySelector('.loading')
    const look = () => (loads() ? setTimeout(look, 10) : done())
    look()
})"""

UNREACHED = f"""() => {{
    const seen = one => one.checkVisibility() && one.getClientRects().length
    const by_keys = '{BY_KEYS}'
    const pressed = [...document.querySelectorAll('main *')].filter(one => getComputedStyle(one).cursor === 'pointer')
    const without = pressed.filter(one => seen(one) && !one.closest(by_keys) && !one.closest('label'))
    const keyed = [...document.querySelectorAll(by_keys)]
    const wanted = keyed.filter(one => one.tabIndex >= 0 && seen(one) && !one.disabled)
    return [...without, ...wanted.filter(one => !reached.has(one))].map(one => one.outerHTML.slice(0, 200))
}}"""


def there(site: Site, shown: Page, path: str) -> None:
    """Go to a place and wait for all of it."""
    site.go(shown, path)
    shown.evaluate(THERE)


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_at_any_place_and_nothing_is_beside_the_screen(site: Site, look: str) -> None:
    shown = site.opened(site.browser.new_context(**LOOKS[look]))
    shown.evaluate(AXE_SCRIPT)
    found = dict[str, list[str]]()
    for path in PLACES:
        there(site, shown, path)
        found[path] = shown.evaluate(FINDINGS)
        assert shown.evaluate(BESIDE) <= 0, path
    shown.get_by_role("button", name="Keys and settings").click()
    found["keys"] = shown.evaluate(FINDINGS)
    shown.get_by_role("button", name="Sign out").click()
    shown.get_by_role("heading", name="This link has expired, or you are signed out").wait_for()
    found["outside"] = shown.evaluate(FINDINGS)
    assert {path: findings for path, findings in found.items() if findings} == {}


def test_tab_reaches_all_that_can_be_clicked(site: Site) -> None:
    shown = site.opened(site.browser.new_context())
    shown.evaluate("() => addEventListener('focusin', event => reached.add(event.target), window.reached = new Set())")
    for path in PLACES:
        there(site, shown, path)
        left = list[str]()
        for _ in range(3):  # a graph draws more of itself where the focus is
            for _ in range(shown.evaluate(f"document.querySelectorAll('{BY_KEYS}').length + 2")):
                shown.keyboard.press("Tab")
            if not (left := shown.evaluate(UNREACHED)):
                break
        assert left == [], path
