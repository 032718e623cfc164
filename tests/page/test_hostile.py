"""Words of issues and agents are text wherever they are shown: nothing of them runs, loads, leads away or misleads."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ashep.views.runs import blob_file
from tests.page.conftest import Site
from tests.page.test_axe import PLACES, THEN, there

pytestmark = pytest.mark.slow

MARK = "<img src=x onerror=hit()>"
HOSTILE = (
    f"{MARK}<script>hit()</script><svg onload=hit()><a href='javascript:hit()'>a</a> [b](javascript:hit()) "
    "javascript:hit() \"'><iframe src=//evil.example><style>*{display:none}</style>{{7*7}} "
    "${7*7}%0d%0a&lt;b&gt; http://evil.example/ "
    "\x1b[31m\x1b]8;;https://evil.example\x07\u202egnp.exe\u2066\u200b\U000e0061\x00 https://evil.example/<b>"
)
MISLEADS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")
WORDS = ("question", "why", "text", "title", "summary", "reason", "error", "detail", "by", "note", "fact")
"""Names of what is anybody's words, also where it is one word."""
WORK: dict[str, Any] = {"flags": [HOSTILE], "labels": [HOSTILE]}

WATCH = """() => {
    window.hits = []; window.hit = () => hits.push('ran')
    addEventListener('securitypolicyviolation', event => hits.push(event.violatedDirective))
}"""
LEFT = """() => [...hits,
    ...[...document.querySelectorAll('img, iframe, object, embed, style'),
    ...document.querySelectorAll('script:not([src^="/assets/"], [src="/early.js"])')].map(one => one.outerHTML),
    ...[...document.querySelectorAll('body [href]')].map(one => one.getAttribute('href'))
    .filter(href => !/^([/#]|https:)/.test(href))]"""


def hostile(known: Any, name: str = "") -> Any:
    """The same, in which all that could be anybody's words is hostile."""
    if isinstance(known, dict):
        given: dict[str, Any] = known
        return {key: hostile(value, key) for key, value in given.items()}
    if isinstance(known, list):
        listed: list[Any] = known
        return [hostile(one, name) for one in listed]
    return f"{known} {HOSTILE}" if isinstance(known, str) and (name in WORDS or " " in known) else known


def poison(state: Path) -> None:
    """Put hostile words wherever the database and the texts beside it hold words."""
    with sqlite3.connect(state / "ashep.db") as database:
        for table, key in (("issues", "issue"), ("runs", "run"), ("facts", "seq")):
            for one, body in database.execute(f"SELECT {key}, body FROM {table}").fetchall():
                told = hostile(json.loads(body)) | (WORK if table == "issues" else {})
                database.execute(f"UPDATE {table} SET body = ? WHERE {key} = ?", [json.dumps(told), one])
        database.execute("UPDATE issues SET title = title || ?, reason = reason || ?", [HOSTILE, HOSTILE])
        database.execute("UPDATE runs SET summary = ?, error = ?", [HOSTILE, HOSTILE])
        for (text,) in database.execute("SELECT body FROM facts WHERE body LIKE '%\"blob\"%'").fetchall():
            file = blob_file(state, json.loads(text)["blob"])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(HOSTILE)
    database.close()


def test_nothing_of_anybodys_words_runs_or_misleads(site: Site) -> None:
    poison(site.world.folder / "state")
    shown = site.opened(site.browser.new_context())
    shown.evaluate(WATCH)
    asked = set[str]()
    shown.on("request", lambda one: asked.add(one.url.removeprefix(site.address)))
    for path in PLACES:
        there(site, shown, path)
        for one in shown.locator("main details").all():
            one.evaluate("one => { one.open = true }")
        if path.startswith("/runs/"):
            expect(shown.locator("details pre").filter(has_text=MARK).first).to_be_visible()
        # these show no words, or those of the journal alone
        if path not in ("/usage", "/policies/standard", "/projects", "/nowhere", THEN):
            expect(shown.locator("main")).to_contain_text(MARK)
        assert shown.evaluate(LEFT) == [], path
        assert not MISLEADS.search(shown.content()), path
    assert all(one.startswith(("/api/", "/assets/", "/early.js")) for one in asked)
