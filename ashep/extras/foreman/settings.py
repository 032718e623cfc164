"""What users set for the foreman: one file of theirs, for all folders."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ashep.config import yaml_tree
from ashep.config.findings import read_text
from ashep.core.policy.base_types import Document, name_of
from ashep.errors import UsageError

Url = Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=1000)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""The name of an environment variable: secrets never stand in a file of settings."""


class Memory(Document):
    """What a new session is told of what was said before."""

    tokens: Annotated[int, Field(ge=500, le=200_000)] = 12_000
    """The most that it takes of the system prompt; four characters count as one token."""
    full: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many of the last entries stand there whole, if the budget lets them."""
    rules: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """A template of your own in place of the one that ships; a path begins at the folder of this file."""
    keep: Annotated[int, Field(ge=100_000, le=1_000_000_000)] = 20_000_000
    """Bytes of history in one file; then it is put aside, and two such are kept."""


class Restart(Document):
    """When a session has grown too long, and is begun again before the next subagent."""

    bytes: Annotated[int, Field(ge=1)] = 600_000
    """Of what was said, by the person and by Claude, in its transcript: one short prompt is 150 kB already."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Of the model's window, by the tokens of the last request."""
    window: Annotated[int, Field(ge=1000)] = 200_000
    """Tokens that the model can hold."""


class SmallModel(Document):
    """A small model that answers with yes or no, and reads pages."""

    kind: Literal["openai", "anthropic", "claude"] = "claude"
    """`openai` and `anthropic`: an endpoint of that form; `claude`: `claude -p --bare`, which takes a second."""
    url: Url | None = None
    """Of the endpoint, up to where `/chat/completions` or `/v1/messages` follows."""
    model: Annotated[str, Field(min_length=1, max_length=200)] = "haiku"
    """Its name there."""
    key: Variable | None = None
    """The environment variable that holds its key."""


class Search(Document):
    """Where `web-search` asks."""

    provider: Literal["searxng", "brave", "tavily", "exa", "chat"] = "searxng"
    """Who searches; `chat` is a model that does, asked as OpenAI's are."""
    url: Url | None = None
    """Of the endpoint, where it is not the provider's own; `SEARCH_API_URL` wins."""
    key: Variable = "SEARCH_API_KEY"
    """The environment variable that holds its key."""
    model: Annotated[str, Field(max_length=200)] = ""
    """For `chat`; `SEARCH_MODEL` wins."""
    results: Annotated[int, Field(ge=1, le=50)] = 8
    """How many results it gives."""


class ForemanSettings(Document):
    """Settings of `ashep foreman` (docs/guides/foreman.md): `$XDG_CONFIG_HOME/ashep/foreman.yaml`."""

    version: Literal[1] = 1
    """The version of the file's language."""
    memory: Memory = Memory()
    """What a new session is told of what was said before."""
    restart: Restart = Restart()
    """When a session has grown too long."""
    model: SmallModel | None = None
    """Without one no prompt is asked about, and `web-fetch` answers no question."""
    topics: bool = True
    """Whether the small model is asked if a prompt begins a new topic; then the session is begun again."""
    topic_timeout: Annotated[float, Field(gt=0, le=30)] = 2.0
    """Seconds; what takes longer is no new topic."""
    search: Search | None = None
    """None: what the environment says, if it holds `SEARCH_API_KEY` or `SEARCH_API_URL`; else there is no search."""
    morning: bool = False
    """Whether the first prompt carries the first lines of the morning report, and what waits for you."""


def worker_name(given: str | None, environ: Mapping[str, str], directory: Path) -> str:
    """Give the worker's name: what was given, else WORKER_NAME, else the name of the folder; raises `UsageError`."""
    told = (environ.get("WORKER_NAME") or None) if given is None else given
    name = directory.name if told is None else told
    if re.fullmatch(r"[^./\s]([^/]{0,58}\S)?", name) and name.isprintable():
        return name
    if told is None:
        return name_of(name, "worker")
    raise UsageError(f"{told!r} is no name of a worker: 60 characters at most, no slash, and no dot at its beginning")


def load_settings(file: Path) -> ForemanSettings:
    """Read the user's settings; the defaults where there is no such file. Raises `ConfigError` with file, line, key."""
    text = read_text(file) if os.path.lexists(file) else ""
    with suppress(yaml_tree.YamlUnreadable, ValidationError):
        root, problems = yaml_tree.read(text, str(file))
        if not problems:
            return ForemanSettings.model_validate({} if root.value is None else root.plain())
    from ashep.config import read  # it tells what is wrong, and takes a fifth of a second to import

    return read(ForemanSettings, text, file)
