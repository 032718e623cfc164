"""Which tests of the real agents are ordinary: each session starts a process of its own, which takes seconds."""

from pathlib import Path

import pytest

from tests.full import leave_to_deep

ORDINARY = {
    "test_acp_opencode": {
        "test_a_turn_goes_from_missing_to_finished",
        "test_a_prompt_sent_again_starts_nothing_new",
        "test_a_permission_is_answered_once_and_the_turn_goes_on",
    },
    "test_acp_claude": {"test_a_turn_goes_from_missing_to_finished"},
    "test_acp_apart": {"test_a_permission_is_answered_once_and_the_turn_goes_on"},
}
"""By module, the tests of the suite and beside it that `make test` plays; `make deep` plays all."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest to `make deep`: the same suite is played in full over other runners."""
    leave_to_deep(items, Path(__file__).parent, ORDINARY)
