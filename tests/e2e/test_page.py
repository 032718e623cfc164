"""The page beside the real daemon, bd and OpenCode: killed in the midst of an answer, and a session in the browser."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import HttpCredentials, expect, sync_playwright

from ashep.api.routes import V1
from ashep.extras.demo.project import PERSON
from tests.e2e.site import Site, until
from tests.page.conftest import CHROMIUM

pytestmark = pytest.mark.real

WORDS = "mind the tests"
HELD = """#!/bin/sh
case "$*" in *--add-label=human:approved*) mkdir {held} 2>/dev/null && echo $$ >{held}/pid && exec sleep 100;; esac
exec {bd} "$@"
"""
"""A bd that hangs when it is first to set the label of an answer."""


@contextmanager
def served(site: Site) -> Iterator[tuple[int, httpx.Client]]:
    """A server as a process of its own, and how a person asks it who came in by its link."""
    site.run("git", "config", "user.name", PERSON)
    argv = [sys.executable, "-m", "ashep", "-C", str(site.project), "ui", "--port", "0"]
    with subprocess.Popen(argv, env=site.environ, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address, _, code = server.stdout.readline().strip().partition("/#enter=")
            with httpx.Client(base_url=f"{address}{V1}", timeout=60) as client:
                token = client.post("/enter", json={"code": code}).raise_for_status().json()["token"]
                client.headers["Authorization"] = f"Bearer {token}"
                yield server.pid, client
        finally:
            server.kill()


def asked(client: httpx.Client, issue: str) -> str | None:
    """The question that waits for a person there."""
    told: list[dict[str, Any]] = client.get("/now").raise_for_status().json()["waiting"]
    return next((one["question"]["asked"] for one in told if one["issue"] == issue and one["question"]), None)


@pytest.mark.promise("L4")
def test_server_daemon_and_bd_are_killed_in_the_midst_of_an_answer(site: Site, tmp_path: Path) -> None:
    program, held, before = tmp_path / "bd", tmp_path / "held", site.bd_command
    program.write_text(HELD.format(held=held, bd=site.bd_program))
    program.chmod(0o755)
    site.command([str(program)])
    try:
        issue = site.add("answered", "policy:asked")
        daemon = site.living()
        with served(site) as (server, client), ThreadPoolExecutor(1) as pool:
            until(lambda: "needs:human_approval" in site.issue(issue).get("labels", []), 90, lambda: daemon.text)
            seen = until(lambda: asked(client, issue), 30)
            given = {"do": "approve", "message": WORDS, "asked": seen}
            told = pool.submit(client.post, f"/issues/{issue}", json=given)
            until((held / "pid").exists, 60)
            for pid in (server, daemon.process.pid, int((held / "pid").read_text())):
                os.kill(pid, signal.SIGKILL)
            assert isinstance(told.exception(60), httpx.TransportError)
        assert "human:approved" not in site.issue(issue)["labels"]
        with served(site) as (_, client):
            assert asked(client, issue) == seen, "it still waits, with nobody who works"
            first, again = [client.post(f"/issues/{issue}", json=given).status_code for _ in range(2)]
            assert (first, again) == (200, 409)
        site.living().says(f"{issue} closed by shepherd", 90)
    finally:
        site.command(before)
    said = [one["text"].split("\n")[0] for one in site.issue(issue)["comments"] if one["author"] == PERSON]
    assert said == [WORDS]
    events = json.loads(site.bd("history", issue, "--events", "--json"))
    added = [one["actor"] for one in events if one.get("comment") == "Added label: human:approved"]
    assert added == [PERSON]
    assert [run["state"] for run in site.runs(issue)] == ["succeeded"]
    assert site.prompts(f"{issue}/implement.1.1") == 1
    assert [one["type"] for one in site.journal(issue)].count("IssueClosed") == 1


def test_a_link_leads_to_the_session_on_the_page_of_the_agents_server(site: Site) -> None:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: install the package chromium")
    issue = site.add("A title that nothing else has")
    site.living().says(f"{issue} closed by shepherd", 90)
    with served(site) as (_, client):
        told = client.get(f"/runs/{issue}/implement.1.1/session").raise_for_status().json()
    session = next(one["session"] for one in site.journal(issue) if one["type"] == "SessionOpened")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        person = HttpCredentials(username="opencode", password=site.environ["OPENCODE_SERVER_PASSWORD"])
        shown = browser.new_context(http_credentials=person).new_page()
        shown.goto(told["link"])
        expect(shown).to_have_url(re.compile(rf"^{re.escape(site.url)}/server/[\w-]+/session/{session}$"))
        expect(shown.locator("body")).to_contain_text(f"Run: {issue}/implement.1.1", timeout=30_000)
        browser.close()
