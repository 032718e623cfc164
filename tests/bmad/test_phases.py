"""The policies, prompts and the check that the guide shows for stories, as they stand there."""

import os
import re
import sys
from pathlib import Path

import pytest

from ashep.adapters.verifier import LocalVerifier
from ashep.cli import main
from ashep.config import write_starter
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.ports.verifier import VerifyRequest
from ashep.redaction import Redaction
from tests.bmad.forms import Form
from tests.test_docs import ROOT, fences
from tests.verifier.place import criteria_of, repository

SHOWN = {
    found[1]: text
    for words, text in fences((ROOT / "docs/guides/stories.md").read_text())
    if (found := re.search(r'title="(\S+)"', words))
}


def test_policies_and_prompts_of_the_guide_are_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / ".agent-shepherd"
    write_starter(folder, "bmad-story")
    (folder / "policies.yaml").write_text(SHOWN["policies.yaml"])
    prompts = [name for name in SHOWN if name.endswith(".j2")]
    (folder / "prompts").mkdir(exist_ok=True)
    for name in prompts:
        assert f"- name: {name.removesuffix('.md.j2')}\n" in SHOWN["policies.yaml"]
        (folder / "prompts" / name).write_text(SHOWN[name])
    assert (len(prompts), main(["-C", str(tmp_path), "policy", "check"])) == (3, 0)
    assert "error" not in capsys.readouterr().out
    (folder / "prompts" / prompts[0]).write_text(SHOWN[prompts[0]].replace("endblock", "end"))
    assert main(["-C", str(tmp_path), "policy", "check"]) == 1, "they are looked at"


CHANGES = {
    "form": (("1. **Given**", "1) Given"), ""),
    "a task": (("- [ ] Task 2", "- [x] Task 2"), "task was checked off: Task 2"),
}


@pytest.mark.may_block
@pytest.mark.parametrize("how", [*CHANGES, "gone", "beside", "no base"])
async def test_the_check_of_the_guide_refuses_what_loses_something(tmp_path: Path, how: str) -> None:
    made, name = repository(tmp_path / "repository"), "docs/stories/1-2-log in.md"
    script = made.folder / ".agent-shepherd/checks/kept"
    made.write({".agent-shepherd/checks/kept": SHOWN["kept"], name: Form().text, "a.py": "1\n"})
    script.chmod(0o755)
    base, text = made.commit(), Form().text
    change, said = CHANGES.get(
        how, (("", ""), {"gone": "is not there", "beside": "more than docs/stories"}.get(how, ""))
    )
    made.commit({"a.py": "2\n"} if how == "beside" else {name: None if how == "gone" else text.replace(*change)})
    blobs = list[str]()

    async def keep(output: str) -> str:
        blobs.append(output)
        return "blob"

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    verifier = LocalVerifier(
        VerificationSettings(sandbox="none"), tmp_path / "scratch", keep, Redaction(), environ={"PATH": path}
    )
    check = {"id": "kept", "type": "test_pass", "verify": {"command": [
        ".agent-shepherd/checks/kept", "{base}", "docs/stories"]}}  # fmt: skip
    request = VerifyRequest(made.folder, "HEAD", None if how == "no base" else base, criteria_of(check))
    found = (await verifier.verify(request)).results[0]
    assert found.status == {"form": "passed", "no base": "error"}.get(how, "failed"), (found, blobs)
    assert said in "".join(blobs)
    if how == "form":  # the same tree, and another base: it is not known yet
        made.commit({name: text.replace("2. two", "2. too")})
        other = made.commit({name: text.replace(*change)})
        there = VerifyRequest(made.folder, other, made.git("rev-parse", "HEAD~1"), criteria_of(check))
        assert (await verifier.verify(there)).results[0].status == "failed"
