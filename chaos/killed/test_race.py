"""Several daemons on one database: nothing is run twice, and one that slept while its claim went does no harm."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.scripted_model import ModelServer
from chaos.killed.place import Place, places
from chaos.killed.race import POLICIES, race, wake_too_late, willing
from tests.full import amount

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ModelServer(willing)) as model:
        yield model


@pytest.fixture
def empty(model: ModelServer) -> Iterator[Place]:
    """A project without an issue."""
    with places(model, ["r"], policies=POLICIES) as (made,):
        model.asks.clear()
        yield made


@pytest.mark.promise("G1")
def test_several_daemons_on_one_database(empty: Place) -> None:
    race(empty, amount(3, 4), amount(5, 8))


@pytest.mark.promise("S3")
def test_a_stopped_daemon_that_wakes_after_its_claim_is_gone_does_no_harm(empty: Place) -> None:
    wake_too_late(empty, by_hand=True)
