"""The registries of the kinds of runners: each kind has all that a kind must have, in the core and outside."""

from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from ashep.actions.runners import base
from ashep.actions.runners.kinds import OWN_KIND, RUNNER_KINDS, kind_of_session
from ashep.core.policy.runner_kinds import ACP, DECLARED_KINDS, KINDS, OPENCODE
from ashep.core.policy.settings import Settings
from ashep.errors import RunnerError
from ashep.factories import FACTORIES
from ashep.redaction import Redaction

NEVER_OPENED = {ACP}
"""Kinds whose sessions a person cannot open: the protocol has no such thing."""
ASKED = {ACP}
"""Kinds of which each agent says how often a turn may run: `AcpRunner.guarantee`."""


def settings_with(kind: str) -> tuple[str, Settings]:
    """Name a runner of a kind whose program is not there."""
    name, chosen = OPENCODE if kind == OPENCODE else "it", dict[str, Any](command=("no-such-agent",))
    return name, Settings.model_validate({"runners": {name: chosen if kind == OPENCODE else chosen | {"type": kind}}})


def test_each_kind_that_the_core_knows_is_in_the_registries() -> None:
    assert set(RUNNER_KINDS) == set(FACTORIES) == set(KINDS) == {OPENCODE, *DECLARED_KINDS}
    for name, kind in RUNNER_KINDS.items():
        assert (kind.rules, kind.make) == (KINDS[name], FACTORIES[name])


@pytest.mark.parametrize("name", RUNNER_KINDS)
def test_a_kind_has_more_than_a_class_of_the_users(name: str) -> None:
    kind = RUNNER_KINDS[name]
    assert kind.make is not OWN_KIND.make, "nobody makes it"
    assert kind.examine is not base.examine_own, "`ashep install` does not look at it"
    assert kind.read_steps is not base.refuse_steps, "nobody reads its sessions"
    assert kind.open_command is not base.name_session or name in NEVER_OPENED, "nobody opens its sessions"
    assert kind.rules.guarantee is not None or name in ASKED, "nobody says how often a turn may run"


@pytest.mark.parametrize("kind", RUNNER_KINDS)
async def test_a_kind_without_its_program_is_told_with_what_to_do(tmp_path: Path, kind: str) -> None:
    name, settings = settings_with(kind)
    assert "no-such-agent" in await to_thread.run_sync(base.missing_program, settings, name)
    lines = await RUNNER_KINDS[kind].examine(base.Examination(tmp_path, settings, name))
    assert any(line.level == "error" and "no-such-agent" in line.what and line.remedy for line in lines), lines


@pytest.mark.parametrize("kind", RUNNER_KINDS)
async def test_a_session_of_a_kind_is_opened_and_read_or_refused_with_a_reason(tmp_path: Path, kind: str) -> None:
    name, settings = settings_with(kind)
    session = "ses_1" if kind == OPENCODE else f"{name}:5f0c"
    found, reference = kind_of_session(tmp_path, settings, session, None)
    assert found is RUNNER_KINDS[kind]
    assert session.removeprefix(f"{name}:") in await found.open_command(reference, "t-1", False)
    with pytest.raises(RunnerError):
        await found.read_steps(reference, Redaction())
