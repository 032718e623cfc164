"""The settings of checks: where their programs run, and what those are given."""

from typing import Annotated, Literal

from pydantic import Field

from ashep.core.policy.base_types import PLACE, Bytes, Document, Dotted, Name, Options, Size
from ashep.core.policy.checks import Words

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
"""The name of an environment variable."""


class OwnCheckType(Document):
    """A type of checks of your own, under the name that checks give as their `type`."""

    type: Dotted
    """Its class, as `package.module:Class` (docs/extending.md)."""
    options: Options = {}
    """What the class is given. They are kept in the journal: for a secret, name an environment variable."""


ADDRESS = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?(/[^\s?#]*)?$"
"""An address without a password, a query or a fragment."""


class VerificationSettings(Document):
    """How checks run (docs/guides/verification.md)."""

    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    """Where the programs of checks run. `bwrap`: in bubblewrap, and where that cannot be used no such check is carried
    out. `auto`: in bubblewrap where it can be used; else those of policies.yaml without a sandbox, and those that stand
    in an issue's text not at all. `none`: without one. `ashep install` says what is not isolated."""
    network: bool = False
    """Whether the programs of checks reach the network out of the sandbox. They always have a loopback."""
    install: Annotated[tuple[Words, ...], Field(max_length=20)] = ()
    """Programs that bring a checkout its dependencies, as `npm ci --offline`: they run in it before the first program
    of a check, in order, where and as that does, each 10 minutes at most. Where one fails, each check that runs a
    program is an error."""
    cache: Annotated[str, Field(pattern=PLACE, max_length=1000)] | None = None
    """A folder of dependencies, laid out as those programs lay their caches out in a home (`.npm`, `.cache/uv`). The
    private home of checks begins as a copy of it for each commit, so that what an agent wrote cannot change what
    the next check is given. `null`: they have the caches of your home alone, to be read."""
    paths: Annotated[tuple[Annotated[str, Field(pattern=PLACE, max_length=1000)], ...], Field(max_length=100)] = ()
    """What the programs of checks may read in the sandbox next to the machine's programs and toolchains, as `/srv/data`
    or `~/lib`. They run the work of agents: name no place of secrets here."""
    environment: Annotated[tuple[Variable, ...], Field(max_length=100)] = ()
    """Environment variables that the programs of checks are given as ashep has them, beside `PATH` and `LANG`. They run
    the work of agents: name no secret here."""
    memory_limit: Annotated[Size, Field(ge=64 * 1024**2)] | None = Bytes(4 * 1024**3)
    """The memory (resident, of all its processes, without what they share) above which a check's program is killed, and
    fails. `null`: no limit."""
    types: Annotated[dict[Name, OwnCheckType], Field(max_length=100)] = {}
    """Types of checks of your own."""
    service_url: Annotated[str, Field(pattern=ADDRESS, max_length=500)] | None = None
    """What a check of the type `http_request` asks that starts no `service`: the address of one that runs by itself, as
    `http://localhost:3000`. It is not made of the checkout, so such a check says nothing about exactly this work: it is
    asked again each time. `null`: a check without a service cannot be executed."""
    repositories: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=100)
    ] = ()
    """Which repositories `ashep serve` may be asked for: paths (a relative one begins at the project's folder) and
    addresses that git fetches from, each as a request names it. Without any, the project itself alone; with some, these
    alone: `.` is the project. No password belongs in an address."""
