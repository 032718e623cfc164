"""Signature of an approval: the comment that holds what a person approves, signed with a key of theirs."""

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from ashep.actions.answers import NotAsked, answering
from ashep.actions.audit import Books
from ashep.adapters.system.signatures import is_signed, sign
from ashep.config import settings_in
from ashep.core.issues.signed_approvals import LASTS, approval_of
from ashep.errors import UsageError


async def sign_approval(
    folder: Path, issue: str, message: str | None, key: Path | None, at: datetime, say: Callable[[str], None]
) -> str:
    """Show what is approved, and return a comment that holds it with the person's signature.

    `folder`: the project's `.agent-shepherd`. Raises `NotAsked` if the issue asks for no approval, `UsageError` if no
    key of the person's signs.
    """
    settings, world = settings_in(folder), Books(folder / "state").go_on()
    name = await answering(folder.parent, settings, os.environ)
    keys = settings.people.keys_of(name) if settings.people is not None else ()
    if not keys:
        raise UsageError(f"{name} has no key in `people.keys` of config.yaml: add it there")
    approval = approval_of(world, world.flows[issue]) if issue in world.flows else None
    if approval is None:
        raise NotAsked(f"{issue} asks for no approval, as far as the journal tells (`ashep status {issue}`)")
    approval = replace(approval, expires=at.replace(microsecond=0) + LASTS)
    for field, value in asdict(approval).items():
        say(f"{field}: {value}")
    armor = sign(approval.text, key or keys[0])
    if not await is_signed(approval.text, armor, keys):
        raise UsageError(f"{key} signed, but is none of your keys in `people.keys` of config.yaml: add it there")
    return f"{message or ''}\n\n{approval.text}\n{armor}".strip()
