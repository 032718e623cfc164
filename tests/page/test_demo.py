"""`ashep demo --ui`: who comes in by its link sees the night, and what is answered there has its consequence."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ashep.extras.demo.scenario import ISSUES
from tests.places import living_in, sweep

pytestmark = pytest.mark.slow


def test_the_simulated_night_can_be_answered_on_its_page(tmp_path: Path, browser: Browser) -> None:
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    argv = (sys.executable, "-m", "ashep", "demo", "--ui")
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            link = next(line.strip() for line in lines if line.startswith("http"))
            shown = browser.new_context().new_page()
            shown.goto(link)
            card = shown.locator(".card").first
            issue = card.get_by_role("link").first.inner_text()
            card.get_by_text("What was asked, what was done, what it changes").click()
            expect(card).to_contain_text(f"notes/{issue}.md should say what it does")
            expect(card).to_contain_text(f"notes/{issue}.md says how it is used")
            expect(card.locator(".diff .add").filter(has_text="calc.mean([1, 2, 3])")).to_be_visible()
            run = shown.context.new_page()
            run.goto(f"{link.partition('#')[0]}runs/{ISSUES[0].id}/implement.1.1")
            run.locator("summary", has_text="calc.py").first.click()
            expect(run.locator(".diff .del").filter(has_text="len(numbers) - 1")).to_be_visible()
            run.close()
            card.get_by_role("button", name="Approve").click()
            closed = next(line for line in lines if f"{issue} closed by shepherd: landed on main" in line)
            expect(shown.locator(".s-closed").filter(has_text="closed")).to_have_text(re.compile(r"[4-9]"))
            assert closed
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
    except BaseException:
        process.kill()
        process.wait()
        sweep(tmp_path)
        raise
    assert not living_in(tmp_path), "a process was left behind"
    assert not list(tmp_path.glob("ashep-demo-*"))
    assert not [one for one in tmp_path.rglob("*") if not one.is_dir()], "a socket, say"
