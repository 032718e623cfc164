"""The server's agents in full, for the registry: their kind, their model, and whether they may change files."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ashep.core.facts.runs import Model


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class JudgedRule(_Shape):
    """A rule of an agent's: the last one that fits decides."""

    permission: str
    pattern: str
    action: str


class _Tied(_Shape):
    provider: str = Field(alias="providerID")
    model: str = Field(alias="modelID")


class ListedAgent(_Shape):
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


AGENTS = TypeAdapter(tuple[ListedAgent, ...])
