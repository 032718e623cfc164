"""The pictures of the documentation: `python -m tools.policy_pictures` draws them anew, as `ashep policy graph` does.

A block ```` ```mermaid title="NAME" ```` shows the preset of that name, one without a title the policy of the last
block of YAML before it.
"""

import re
import sys
from pathlib import Path

from ashep.cli.policy.graph import draw_policy
from ashep.config import read
from ashep.config.presets import PRESETS, preset
from ashep.config.starter import starter
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.views.policy_graph import mermaid

PAGES = ("docs/guides/policies.md", "docs/guides/presets.md")

_FENCE = re.compile(r"^```(yaml|mermaid)([^\n]*)\n(.*?)^```$", re.M | re.S)


def redrawn(page: str) -> str:
    """Give a page with all its pictures drawn anew."""
    last = ""

    def block(found: "re.Match[str]") -> str:
        nonlocal last
        if found[1] == "yaml":
            last = found[3]
            return found[0]
        title = re.search(r'title="([^"]+)"', found[2])
        policies = read(Policies, preset(title[1]) if title else last, Path("policies.yaml"))
        agents = read(Agents, starter("agents.yaml", title[1] if title else PRESETS[0]), Path("agents.yaml"))
        lines = mermaid(draw_policy(policies, agents, Settings(), title[1] if title else None))
        return f"```mermaid{found[2]}\n" + "\n".join(lines) + "\n```"

    return _FENCE.sub(block, page)


def main(arguments: list[str]) -> int:
    """Draw the pictures of these pages anew (by default of all that have some)."""
    for name in arguments or PAGES:
        page = Path(name)
        page.write_text(redrawn(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
