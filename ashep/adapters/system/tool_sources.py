"""Where tools come from: the command that gets one on this machine, and its address for everybody."""

import shutil
from pathlib import Path

from ashep.adapters.system import programs

_PACKAGE = Path(__file__).parents[2]
_CHECKOUT = _PACKAGE.parent / "requirements" / "setup.py"
_CARRIED = _PACKAGE / "requirements" / "setup.py"  # tools/wheel.py puts it there

_TOOLS = {
    "bd": (f"Beads {programs.BD_VERSION} or later", "https://github.com/steveyegge/beads"),
    "opencode": (f"OpenCode {programs.OPENCODE_VERSION}", "https://opencode.ai/docs/"),
    "claude": (f"Claude Code {programs.CLAUDE_VERSION}", "https://code.claude.com/docs/en/setup"),
}
_OF_NPM = {
    "opencode": f"opencode-ai@{programs.OPENCODE_VERSION}",
    "claude": f"@anthropic-ai/claude-code@{programs.CLAUDE_VERSION}",
}


def is_checkout() -> bool:
    """Whether ashep runs from a checkout of its repository, where `make` gets the tools."""
    return _CHECKOUT.is_file()


def setup_script() -> Path:
    """Path of the program that builds bd from pinned sources: the checkout's, or the copy in the wheel."""
    return _CHECKOUT if is_checkout() else _CARRIED


def how_to_get(name: str) -> str:
    """What a person does on this machine to have a tool. Blocks."""
    title, address = _TOOLS[name]
    return f"install {title} ({address}){_command(name)}"


def _command(name: str) -> str:
    if is_checkout():
        return f", or run `make {'claude' if name == 'claude' else 'setup'}` in {_CHECKOUT.parents[1]}"
    if name in _OF_NPM:
        return f", or run `npm install -g {_OF_NPM[name]}`" if shutil.which("npm") else ""
    if shutil.which("go") and (shutil.which("gcc") or shutil.which("cc")):
        return ", or run `ashep get-bd`, which builds it here"
    return ", or install the wheel ashep-bd with ashep; with Go (https://go.dev/dl/) and gcc `ashep get-bd` builds it"
