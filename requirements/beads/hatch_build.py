"""Hook of the build of ashep-bd: packs what `setup.py bd --build` made, with the licences of all that is in it."""

import os
import re
import runpy
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LISTED = "{{with .Module}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}"
_BUILT = ["-mod=readonly", "-tags=gms_pure_go", "github.com/steveyegge/beads/cmd/bd"]  # as setup.py builds it


class BdWheel(BuildHookInterface[Any]):
    """Packs bd as a script of the environment that the wheel is installed in."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Names the program, its platform and the licences. Raises FileNotFoundError if it was not built."""
        setup = runpy.run_path(str(Path(self.root).parent / "setup.py"))
        program = setup["tools_cache"]() / f"bd-{setup['BD_VERSION']}" / "bd"
        licences = Path(self.root, "build", "THIRD_PARTY.txt")
        licences.parent.mkdir(exist_ok=True)
        licences.write_text(_licences(Path(self.root)), encoding="utf-8")
        build_data["tag"] = f"py3-none-{_platform(program.read_bytes())}"
        build_data["pure_python"] = False
        build_data["shared_scripts"][str(program)] = "bd"
        build_data["extra_metadata"][str(licences)] = licences.name


def _platform(program: bytes) -> str:
    """Returns the wheel's platform; on Linux by the newest glibc that the program asks for."""
    wanted = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program)]
    name = re.sub(r"\W", "_", sysconfig.get_platform())
    return name.replace("linux", f"manylinux_2_{max(wanted)}") if wanted else name


def _licences(folder: Path) -> str:
    """Returns the licences of all Go modules that are linked into bd. Raises CalledProcessError if Go cannot tell."""
    environment = {**os.environ, "CGO_ENABLED": "1", "GOWORK": "off"}
    go = ["go", "list", "-deps", "-f", _LISTED, *_BUILT]
    listed = subprocess.run(go, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    texts = list[str]()
    for line in sorted({line for line in listed.splitlines() if line.strip()}):
        module, _, place = line.partition("\t")
        files = [
            path for path in sorted(Path(place).iterdir()) if re.match("licen[cs]e|copying|notice", path.name, re.I)
        ]
        texts += [
            f"===== {module}: {path.name}\n\n{path.read_text(errors='replace')}" for path in files if path.is_file()
        ]
    return "\n".join(texts)
