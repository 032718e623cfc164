"""A test that cannot fail is a defect: each deliberate mistake in the core breaks a law, or spoils a playbook."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from tests.core import (
    playbook,
    test_playbook_adopting,
    test_playbook_answers,
    test_playbook_asking,
    test_playbook_authors,
    test_playbook_budgets,
    test_playbook_dispatch,
    test_playbook_effects,
    test_playbook_landing,
    test_playbook_notices,
    test_playbook_pauses,
    test_playbook_people,
    test_playbook_permissions,
    test_playbook_providers,
    test_playbook_pull_requests,
    test_playbook_reminding,
    test_playbook_requires,
    test_playbook_resting,
    test_playbook_routing,
    test_playbook_server,
    test_playbook_stalls,
    test_playbook_takeover,
    test_playbook_turns,
    test_playbook_verifying,
    test_playbook_workspaces,
)
from tests.core.laws import at_rest
from tests.core.lives import live
from tests.core.mutants import BROKEN_LAWS, BROKEN_PLAYBOOKS, Mutant, planted
from tests.core.test_dispatcher import Compared

pytestmark = pytest.mark.slow  # runs the laws once for each mutant

EVENTFUL = (56, 26, 33, 39, 13, 9)
SEEDS = [*EVENTFUL, *(seed for seed in range(100) if seed not in EVENTFUL)]
"""Lives in one of which a broken law must show; the one that showed the last is tried first."""

MODULES = [
    test_playbook_reminding,
    test_playbook_resting,
    test_playbook_adopting,
    test_playbook_requires,
    test_playbook_routing,
    test_playbook_people,
    test_playbook_answers,
    test_playbook_turns,
    test_playbook_stalls,
    test_playbook_dispatch,
    test_playbook_effects,
    test_playbook_notices,
    test_playbook_pauses,
    test_playbook_providers,
    test_playbook_budgets,
    test_playbook_server,
    test_playbook_takeover,
    test_playbook_permissions,
    test_playbook_asking,
    test_playbook_authors,
    test_playbook_workspaces,
    test_playbook_landing,
    test_playbook_verifying,
    test_playbook_pull_requests,
]
"""The module that caught a mistake is tried first at the next one: neighbours in the list are caught by the same."""


def playbooks(module: ModuleType) -> Iterator[Callable[[], None]]:
    for name, function in vars(module).items():
        if name.startswith("test_") and not inspect.signature(function).parameters:
            yield function


def breaks_a_law() -> bool:
    for seed in tuple(SEEDS):
        try:
            made = live(seed, 150)
            made.settle(400)
            at_rest(made)
        except Exception:
            SEEDS.remove(seed)
            SEEDS.insert(0, seed)
            return True
    return False


def spoils_a_playbook() -> bool:
    for module in tuple(MODULES):
        for one in playbooks(module):
            try:
                one()
            except Exception:
                MODULES.remove(module)
                MODULES.insert(0, module)
                return True
    return False


@pytest.mark.parametrize("mutant", BROKEN_LAWS, ids=lambda mutant: mutant.name)
def test_the_laws_catch(mutant: Mutant) -> None:
    with planted(mutant):
        assert breaks_a_law()


@pytest.mark.parametrize("mutant", BROKEN_PLAYBOOKS, ids=lambda mutant: mutant.name)
def test_a_playbook_catches(mutant: Mutant) -> None:
    with planted(mutant):
        assert spoils_a_playbook()


def test_without_a_mistake_nothing_is_caught() -> None:
    assert not spoils_a_playbook()


def test_who_remembers_says_what_the_rule_says_in_every_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbook, "MadeUp", Compared)
    assert not spoils_a_playbook()
