"""`kill -9` of the demonstration: `ashep work --until-idle` by hand, or the same command again, ends it as ever."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from ashep.extras.demo.project import PERSON
from ashep.extras.demo.scenario import ISSUES, RUNS
from ashep.extras.demo.state_dir import LOG, read_model_uses
from chaos.killed.place import wait_for
from tests.places import living_in, sweep
from tests.test_demo import as_shown

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]


def by_hand(folder: Path, command: str) -> str:
    """What a user types in a shell."""
    line = f". {folder}/env && cd {folder}/calc && {command}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def killed(folder: Path, requests: int) -> None:
    """A demonstration that is killed, with its daemon, once the model was asked so often."""
    with folder.with_suffix(".said").open("wb") as said:
        process = subprocess.Popen(
            (sys.executable, "-m", "ashep", "demo", "--in", str(folder)),
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    log, lock = folder / LOG, folder / "calc" / ".agent-shepherd" / "state" / "lock"
    try:
        wait_for(
            lambda: log.exists() and log.read_text().count("\n") >= requests, 300, "the model was not asked so often"
        )
    except BaseException:
        sweep(folder)
        raise
    finally:
        process.kill()
        process.wait()
    os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)


@pytest.mark.always  # the only one that sees what the README shows
def test_killed_and_said_again() -> None:
    with tempfile.TemporaryDirectory() as disk:  # as a user's; most other tests are in memory
        folder = Path(disk, "demo")
        killed(folder, 12)
        as_shown(folder.with_suffix(".said").read_text() + again(folder))


@pytest.mark.full
def test_killed_and_said_again_and_gone_on_with_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    killed(folder, 7)
    killed(folder, 19)  # the same command went on, and was killed as well
    for _ in range(2 * len(ISSUES)):
        by_hand(folder, "ashep work --until-idle --idle-grace 20s")
        issues = json.loads(by_hand(folder, "bd list --all -n 0 --json"))
        if all(issue["status"] == "closed" for issue in issues):
            break
        for issue in issues:
            if "needs:human_approval" in (issue.get("labels") or []):
                by_hand(folder, f"bd --actor={PERSON} label add {issue['id']} human:approved --json")
    seen = Counter({run: one.turns for run, one in read_model_uses(folder).items() if one.turns})
    assert (len(seen), set(seen.values())) == (RUNS, {1}), seen
    again(folder)


def again(folder: Path) -> str:
    """The same command goes on to the end and proves what there is to prove; nothing is left running."""
    argv = (sys.executable, "-m", "ashep", "demo", "--in", str(folder))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert f"prompts that the model saw: {RUNS}, for {RUNS} runs" in said
    assert "FAILED" not in said
    assert not living_in(folder), "a process was left behind"
    return said
