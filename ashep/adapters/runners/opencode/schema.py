"""The shapes of OpenCode's answers, as far as they are used."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from ashep.adapters.runners.opencode.provider_errors import Read
from ashep.adapters.runners.opencode.turns import FARTHEST, Time
from ashep.core.facts.runs import Model
from ashep.errors import RunnerUnavailable

T = TypeVar("T")


def _as_time(at: float) -> float:
    return min(max(-FARTHEST, at), FARTHEST)


class _Session(Read):
    id: str
    parentID: str | None = None
    metadata: Mapping[str, Any] = {}
    directory: str | None = None
    time: Time


class _Held(_Session):
    permission: tuple[dict[str, str], ...] | None = None


class _Status(Read):
    type: str
    attempt: int = 1
    message: str = ""
    next: Annotated[float, AfterValidator(_as_time)] | None = None
    """Milliseconds since 1970, by the server's clock: when the provider is asked again."""


class _Agent(Read):
    name: str
    hidden: bool | None = None


class _Provider(Read):
    id: str
    models: Mapping[str, Any] = {}


class _Providers(Read):
    providers: tuple[_Provider, ...]


class _Config(Read):
    model: str | None = None
    default_agent: str | None = None


SESSION = TypeAdapter(_Session)
HELD = TypeAdapter(_Held)
SESSIONS = TypeAdapter(tuple[_Session, ...])
STATUSES = TypeAdapter(dict[str, _Status])
AGENTS = TypeAdapter(tuple[_Agent, ...])
PROVIDERS = TypeAdapter(_Providers)
CONFIG = TypeAdapter(_Config)


def parse(shape: TypeAdapter[T], content: bytes) -> T:
    """Read an answer; RunnerUnavailable where it is not of that shape."""
    with suppress(ValidationError):
        return shape.validate_json(content)
    try:
        return shape.validate_json(whole(content))
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]
        raise RunnerUnavailable(f"the agent server gave an answer that is not understood: {what}") from error


def whole(content: bytes) -> bytes:
    """Replace halves of surrogate pairs, which JavaScript writes where a text was cut in the middle of a character."""
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(content), ensure_ascii=False).encode(errors="replace")
    return content


class JudgedRule(Read):
    """A rule of an agent's: the last one that fits decides."""

    permission: str
    pattern: str
    action: str


class _Tied(Read):
    provider: str = Field(alias="providerID")
    model: str = Field(alias="modelID")


class ListedAgent(Read):
    """An agent of `GET /agent`."""

    name: str
    mode: Literal["primary", "subagent", "all"]
    native: bool | None = None
    hidden: bool | None = None
    tied: _Tied | None = Field(default=None, alias="model")
    permission: tuple[JudgedRule, ...] = ()

    @property
    def model(self) -> Model | None:
        """The model that it is tied to."""
        return Model(self.tied.provider, self.tied.model) if self.tied else None

    @property
    def writes(self) -> bool:
        """Whether it may edit files: the last rule that is about all of them wins."""
        about = [rule for rule in self.permission if rule.permission in ("*", "edit") and rule.pattern == "*"]
        return not about or about[-1].action != "deny"


LISTED_AGENTS = TypeAdapter(tuple[ListedAgent, ...])
