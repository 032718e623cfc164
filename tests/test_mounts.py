"""A state folder on a network file system is told of, as are limits that are raised."""

import os
import resource
from contextlib import suppress
from pathlib import Path

import pytest

from ashep.actions import doctor
from ashep.adapters.beads.command import Bd
from ashep.adapters.system import filesystems, process_table
from ashep.errors import TrackerUnavailable
from ashep.redaction import Redaction

LINES = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw shared:9 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/ann/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/a\\040b rw - fuse.sshfs host:/ rw
33 22 0:42 / /over rw - nfs server:/x rw
34 22 8:3 / /over rw - ext4 /dev/sdc rw
torn
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/x", ""), ("/home", "nfs4"), ("/home/ann/p/.agent-shepherd", "nfs4"), ("/home/ann/local/p", ""),
        ("/homeless", ""), ("/mnt/a b/p", "fuse.sshfs"), ("/over/p", ""),
    ],
)  # fmt: skip
def test_a_folder_is_on_the_file_system_of_the_nearest_mount(tmp_path: Path, folder: str, kind: str) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(LINES)
    assert filesystems.network_file_system(Path(folder), file) == kind
    assert filesystems.network_file_system(Path(folder), tmp_path / "none") == ""


def test_install_warns_of_a_state_folder_on_a_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [line.level for line in doctor.disk(tmp_path)] == ["ok"]
    file = tmp_path / "mountinfo"
    file.write_text(f"22 1 0:40 / {tmp_path} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(filesystems.network_file_system, "__defaults__", (file,))
    line = doctor.disk(tmp_path)[0]
    assert (line.level, "network file system (nfs4)" in line.what) == ("warning", True)


def test_the_soft_limit_of_open_files_is_raised_and_never_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
        process_table.raise_open_files()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == (min(hard, process_table.OPEN_FILES), hard)
        process_table.raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_full_table_of_open_files_is_told_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    bd = tmp_path / "bd"
    bd.write_text('#!/bin/sh\necho \'{"version": "1.3.0"}\'\n')
    bd.chmod(0o755)
    called = Bd(tmp_path, (str(bd),), "ashep-test", 30.0, Redaction())
    assert b"1.3.0" in (await called.call("version", "--json")).stdout
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(TrackerUnavailable, match="Too many open files"):
            await called.call("version", "--json")
        for one in held[-32:]:
            os.close(one)
        del held[-32:]
        assert b"1.3.0" in (await called.call("version", "--json")).stdout
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
