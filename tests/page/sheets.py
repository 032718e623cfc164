"""All views of the page, on a sheet each: desktop and phone, light and dark (docs/guides/page-pictures.md)."""

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from ashep.store.sqlite_reader import NAME
from tests.page.conftest import Site
from tests.page.test_axe import THERE

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "page-pictures.md"
FOLDER = GUIDE.parent / "page" / "views"
DESKTOP, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=800)
SCHEMES = ("light", "dark")
HIGH, QUALITY, GAP = 480, 42, 8
STYLE = f"margin:{GAP}px;display:flex;gap:{GAP}px;width:max-content;background:#888"
LONGEST = "The sum of a column is wrong where " + "one of its cells holds a number with a thousands separator, and " * 7
HEAD = """# Pictures of the page

Each view on a desktop and a phone, in light and dark, of the night that `ashep demo` plays; [the page](page.md) tells
what each is for. `python -m tests.page.pictures` makes them all.
"""

PROJECTS = [
    {"name": "calc", "folder": "/home/pat/calc", "url": "http://127.0.0.1:8090", "current": True, "works": True},
    {"name": "a-service-for-invoices-of-every-country", "folder": "/home/pat/clients/a-service-for-invoices",
     "url": "http://127.0.0.1:8123", "current": False, "works": False},
    {"name": "notes", "folder": "/home/pat/my notes", "url": None, "current": False, "works": True},
]  # fmt: skip
"""The projects that the pictures show."""


Act = Callable[[Page], None] | None
Views = dict[str, tuple[str, str, Act]]
"""By the names of their pictures: a title, an address, and what is done there."""


def _press(name: str, words: str = "") -> Callable[[Page], None]:
    def act(tab: Page) -> None:
        tab.get_by_role("button", name=name).click()
        if words:
            tab.get_by_role("combobox").fill(words)

    return act


def _open(tab: Page) -> None:
    tab.locator(".cards, .desk").get_by_text("What was asked, what was done").first.click()


def _scroll(tab: Page) -> None:
    tab.evaluate("innerWidth < 760 && document.querySelector('.tabs').scrollIntoView()")
    tab.evaluate("innerWidth < 760 && scrollBy(0, -90)")


def _wait(tab: Page) -> None:
    tab.locator(".box, .phases").first.wait_for()
    tab.wait_for_timeout(400)


VIEWS: Views = {
    "now": ("Now", "/", None),
    "now-work": ("Now, what is to be approved", "/", _open),
    "issue": ("An issue, its overview", "/issues/calc-5", None),
    "issue-runs": ("An issue, its runs", "/issues/calc-2/runs", None),
    "issue-history": ("An issue, its history", "/issues/calc-5/history", _scroll),
    "issue-usage": ("An issue, its usage", "/issues/calc-5/usage", _scroll),
    "issues": ("Issues", "/issues", None),
    "runs": ("Runs", "/runs", None),
    "run": ("A run", "/runs/calc-5/implement.1.1", None),
    "report": ("Report", "/report", None),
    "usage": ("Usage", "/usage", None),
    "policy": ("A policy", "/policies/standard", None),
    "history": ("History", "/?at={then}", _wait),
    "record": ("A record", "/records/40", None),
    "settings": ("Settings and keys", "/", _press("Keys and settings")),
    "search": ("Search", "/", _press("Search", "min")),
    "missing": ("A page that does not exist", "/nowhere", None),
}

OTHERS: Views = {"projects": ("Projects", "/projects", None)}
"""With the projects of the pictures."""

EDGES: Views = {
    "long-now": ("Now, with the longest title", "/", None),
    "long-issue": ("The longest title", "/issues/calc-5", None),
    "long-issues": ("Issues, with the longest title", "/issues", None),
}
"""Views with the longest title that a tracker takes."""

EMPTY: Views = {
    "empty-now": ("Now, nothing yet", "/", None),
    "empty-issues": ("Issues, nothing yet", "/issues", None),
    "empty-runs": ("Runs, nothing yet", "/runs", None),
    "empty-report": ("Report, nothing yet", "/report", None),
}


def lengthen(state: Path, issue: str = "calc-5") -> None:
    """Give an issue the longest title."""
    with closing(sqlite3.connect(state / NAME)) as database, database:
        (body,) = database.execute("SELECT body FROM issues WHERE issue = ?", [issue]).fetchone()
        told = json.dumps(json.loads(body) | {"title": LONGEST[:500]})
        database.execute("UPDATE issues SET title = ?, body = ? WHERE issue = ?", [LONGEST[:500], told, issue])


def _take(site: Site, views: Views, moment: datetime, then: str) -> Iterator[tuple[str, bytes]]:
    for scheme in SCHEMES:
        for size in (DESKTOP, PHONE):
            context = site.browser.new_context(
                viewport=size, color_scheme=scheme, reduced_motion="reduce", timezone_id="UTC",
                has_touch=size is PHONE, is_mobile=size is PHONE,
            )  # fmt: skip
            context.clock.set_fixed_time(moment)
            waiting = [one | {"waiting": 3 * place, "running": 2} for place, one in enumerate(PROJECTS, 1)]
            if views is OTHERS:
                context.route("**/api/v1/projects", lambda route: route.fulfill(json={"projects": waiting}))  # noqa: B023
            tab = site.opened(context)
            for name, (_, path, act) in views.items():
                site.go(tab, path.format(then=then))
                tab.evaluate(THERE)
                tab.wait_for_timeout(600)
                if act is not None:
                    act(tab)
                    tab.wait_for_timeout(600)
                yield name, tab.screenshot()
                tab.keyboard.press("Escape")
            context.close()


def take(site: Site, views: Views, moment: datetime, then: str = "") -> None:
    """Take a sheet of each view."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    taken: dict[str, list[bytes]] = {name: [] for name in views}
    for name, picture in _take(site, views, moment, then):
        taken[name].append(picture)
    tab = site.browser.new_page()
    session = tab.context.new_cdp_session(tab)
    for name, pictures in taken.items():
        shown = "".join(
            f'<img height={HIGH} src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in pictures
        )
        tab.set_content(f"<!doctype html><body style='{STYLE}'>{shown}")
        tab.wait_for_function("[...document.images].every(one => one.complete)")
        box = tab.evaluate("({width: document.body.offsetWidth, height: document.body.offsetHeight})")
        clip = {"x": 0, "y": 0, "width": box["width"] + 2 * GAP, "height": HIGH + 2 * GAP, "scale": 1}
        found = session.send(
            "Page.captureScreenshot",
            {"format": "webp", "quality": QUALITY, "clip": clip, "captureBeyondViewport": True},
        )
        (FOLDER / f"{name}.webp").write_bytes(base64.b64decode(found["data"]))
    tab.close()


def write_guide() -> None:
    """Write the page with all sheets."""
    every = VIEWS | OTHERS | EDGES | EMPTY
    GUIDE.write_text(
        HEAD + "".join(f"\n## {title}\n\n![{title}](page/views/{name}.webp)\n" for name, (title, *_) in every.items())
    )
