"""A test that cannot fail is a defect: each deliberate mistake in the core breaks a law, or spoils a playbook.

Here each is tried on the one who is known to catch it (`killers.toml`); `make deep ARGS=mutants` asks all of them.
"""

import pytest

from tests.core import playbook
from tests.core.killers import SEARCH, hunts, is_broken, is_caught, is_spoilt, named, playbooks, words
from tests.core.mutants import BROKEN_LAWS, BROKEN_PLAYBOOKS, Mutant
from tests.core.test_dispatcher import Compared


@pytest.mark.parametrize("hunt", hunts())
def test_each_mistake_has_a_name_of_its_own_and_somebody_who_catches_it(hunt: str) -> None:
    names = [mutant.name for mutant in hunts()[hunt].mutants]
    assert sorted(named(hunt)) == sorted(names), SEARCH


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BROKEN_LAWS, ids=lambda mutant: mutant.name)
def test_the_laws_catch(mutant: Mutant) -> None:
    assert is_caught("laws", mutant), words("laws", mutant)


@pytest.mark.parametrize("mutant", BROKEN_PLAYBOOKS, ids=lambda mutant: mutant.name)
def test_a_playbook_catches(mutant: Mutant) -> None:
    assert is_caught("playbooks", mutant), words("playbooks", mutant)


@pytest.mark.slow
def test_without_a_mistake_nothing_is_caught() -> None:
    assert [name for name in playbooks() if is_spoilt(name)] == []
    assert [seed for seed in {*named("laws").values()} if is_broken(seed)] == []


@pytest.mark.slow
def test_who_remembers_says_what_the_rule_says_in_every_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbook, "MadeUp", Compared)
    assert [name for name in playbooks() if is_spoilt(name)] == []
