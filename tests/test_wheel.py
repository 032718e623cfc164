"""What is installed from a wheel shows the page by itself: no Node, no npm, nothing of the checkout."""

import http.client
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ashep.api.static import built
from ashep.config import write_starter
from tests.test_setup import GO, Machine

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.promise("L6")
def test_the_page_of_a_wheel_is_shown_without_node(tmp_path: Path) -> None:
    if not built().files:
        pytest.skip("there is no wheel without a page: run `make page`")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, timeout=240, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    subprocess.run([*build[:-1], str(tmp_path / "again")], cwd=ROOT, capture_output=True, timeout=240, check=True)
    assert next(tmp_path.glob("*.whl")).read_bytes() == next(tmp_path.glob("again/*.whl")).read_bytes()
    machine = Machine(tmp_path)
    for name, text in (("gcc", "#!/bin/sh\n"), ("go", GO)):
        machine.program(name, text)
    done = machine.setup("bd", tmp_path / "site/ashep/requirements/setup.py")
    assert done.returncode == 0, "what the wheel carries builds bd where there is Go"
    assert " build -v -mod=readonly " in machine.log.read_text()
    project = tmp_path / "project"
    write_starter(project / ".agent-shepherd")
    environ = {"PYTHONPATH": str(tmp_path / "site"), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    argv = (sys.executable, "-m", "ashep", "-C", str(project), "serve", "--port", "0")
    serving = subprocess.Popen(argv, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    try:
        address = re.search(r"listening on http://(\S+);", serving.stdout.readline())
        assert address is not None
        shown = [told(address[1], "/", "text/html")]
        shown += [told(address[1], asset, "*/*") for asset in re.findall(r'(?:src|href)="(/assets/[^"]+)"', shown[0])]
        assert len(shown) > 2
        assert all(one in {file.body.decode() for file in built().files.values()} for one in shown)
    finally:
        serving.terminate()
        serving.wait(30)
        serving.stdout.close()


def told(address: str, path: str, accept: str) -> str:
    """What is answered there."""
    asked = http.client.HTTPConnection(address, timeout=30)
    asked.request("GET", path, headers={"Accept": accept})
    answer = asked.getresponse()
    assert answer.status == 200, path
    text = answer.read().decode()
    asked.close()
    return text
