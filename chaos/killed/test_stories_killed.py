"""`kill -9` of the demonstration with stories, five times at moments that nobody chose: it ends as ever."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ashep.extras.demo.state_dir import LOG
from ashep.journal.lock import holder
from chaos.killed.place import wait_for
from tests.full import commit
from tests.places import living_in, sweep
from tests.test_demo import stories_as_shown

KILLS = 5
EACH = (1, 14)
"""So many requests of the model's a life sees before its end; all in all there are about a hundred."""


def killed(folder: Path, requests: int) -> int | None:
    """A life that is killed, with what works on the stories, once the model was asked so often meanwhile.

    Gives how often it was asked by then; None where the demonstration was over before.
    """
    log, state = folder / LOG, folder / "calc" / ".agent-shepherd" / "state"
    with folder.with_suffix(".said").open("ab") as said:
        argv = (sys.executable, "-m", "ashep", "demo", "--stories", "--in", str(folder))
        process = subprocess.Popen(argv, stdout=said, stderr=said, start_new_session=True)

    def asked() -> int:
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def over() -> bool:
        return process.poll() is not None

    try:
        wait_for(lambda: over() or holder(state), 300, "nobody worked on the stories")
        since = asked()
        wait_for(lambda: over() or asked() >= since + requests, 600, "the model was not asked so often")
    finally:
        process.kill()
        process.wait()
    works = holder(state)
    if process.returncode != -signal.SIGKILL or works is None:
        return None
    os.kill(works.pid, signal.SIGKILL)
    wait_for(lambda: holder(state) is None, 60, "it lives on")
    return asked()


@pytest.mark.real
@pytest.mark.full  # minutes; tests/test_demo.py sees a life that nobody kills
@pytest.mark.timeout(3000)
def test_killed_five_times_and_said_again(tmp_path: Path) -> None:
    folder, seed = tmp_path / "demo", commit()
    chance = random.Random(seed)
    try:
        at = [killed(folder, chance.randint(*EACH)) for _ in range(KILLS)]
        print(f"seed {seed}: killed when the model had been asked {at} times")
        assert None not in at, folder.with_suffix(".said").read_text()
        argv = (sys.executable, "-m", "ashep", "demo", "--in", str(folder))  # what it plays is known
        done = subprocess.run(argv, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        stories_as_shown(done.stdout, since="proof\n")
    except BaseException:
        sweep(folder)
        raise
    assert not living_in(folder), "a process was left behind"
