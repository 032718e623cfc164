"""The plugin that a wrapper gives Claude Code for one start: hooks to its server, an agent, commands, web tools."""

from pathlib import Path

NAME = "foreman"
"""Of the plugin: Claude Code calls what is in it `foreman:…`."""

HEADER = "X-Foreman-Secret"
"""The header that brings the secret."""

def write_plugin(folder: Path, url: str, secret: str, worker: str, topic_timeout: float = 2.0) -> None:
    """Write it into a folder (0700) for `--plugin-dir`; `url`: of the wrapper's server, without a slash at its end."""
    raise NotImplementedError
