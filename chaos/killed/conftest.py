"""One place a worker, for all tests here: it costs some seconds to make."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.scripted_model import ModelServer
from chaos.killed.place import Place, places
from chaos.killed.scenario import play


@pytest.fixture(scope="package")
def place() -> Iterator[Place]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ModelServer(play)) as model,
        places(model, ["k"]) as (made,),
    ):
        yield made
