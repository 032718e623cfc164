"""One life of `ashep` that can be killed at a boundary: `python -m chaos.killed.life …` takes what `ashep` takes.

`ASHEP_TEST_POINTS` names the file that gets a line a boundary, `ASHEP_TEST_KILL_AT` the boundary to die at. With
`ASHEP_TEST_KEEP_SERVER` the managed agent server is not ended with the daemon, so that the next life finds it warm.
"""

import os
import sys
from pathlib import Path
from typing import Any

from chaos.killed.points import Points, Through, watch_files, watch_programs


def main() -> int:
    points = Points(Path(os.environ["ASHEP_TEST_POINTS"]), os.environ.get("ASHEP_TEST_KILL_AT", ""))
    watch_files(points, Path.cwd() / ".agent-shepherd", Path(os.environ["XDG_STATE_HOME"]) / "ashep")
    watch_programs(points)  # before anything of ashep takes these names for itself
    from ashep import app, factories
    from ashep.adapters.beads import BeadsTracker
    from ashep.adapters.git import GitLanding
    from ashep.adapters.git.user_work_tree import GitTree
    from ashep.adapters.git.workspaces.router import GitWorkspaces
    from ashep.adapters.runners import claude
    from ashep.adapters.runners.opencode import OpencodeRunner
    from ashep.adapters.runners.opencode.isolated_runner import IsolatedRunner
    from ashep.adapters.verifier import LocalVerifier
    from ashep.cli import main as ashep

    def kept(name: str, runner: Any, points: Points) -> Through:
        if os.environ.get("ASHEP_TEST_KEEP_SERVER"):
            runner.stop_server = _nothing
        return Through(name, runner, points)

    class Runners(OpencodeRunner):
        @staticmethod
        def from_settings(*arguments: object, **named: object) -> Through:  # pyright: ignore[reportIncompatibleMethodOverride]
            runner = OpencodeRunner.from_settings(*arguments, **named)  # pyright: ignore[reportArgumentType]
            return kept("runner", runner, points)

    factories.BeadsTracker = lambda *words, **named: Through("tracker", BeadsTracker(*words, **named), points)
    app.GitTree = lambda *words, **named: Through("tree", GitTree(*words, **named), points)
    factories.GitWorkspaces = lambda *words, **named: Through("trees", GitWorkspaces(*words, **named), points)
    factories.LocalVerifier = lambda *words, **named: Through("verifier", LocalVerifier(*words, **named), points)
    factories.GitLanding = lambda *words, **named: Through("landing", GitLanding(*words, **named), points)
    factories.OpencodeRunner = Runners
    made = claude.ClaudeRunner
    claude.ClaudeRunner = lambda *words, **named: Through("claude", made(*words, **named), points)
    factories.IsolatedRunner = lambda *words, **named: kept("runner", IsolatedRunner(*words, **named), points)
    return ashep()


async def _nothing() -> bool:
    return False


if __name__ == "__main__":
    sys.exit(main())
