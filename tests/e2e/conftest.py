"""One project and one scripted model for all end-to-end tests."""

import shutil
from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.scripted_model import ModelServer
from tests.e2e.site import Site, play
from tests.places import sweep


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("e2e")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ModelServer(play)) as model:
        try:
            made = Site(folder, model)
            yield made
            made.close()
        finally:
            sweep(folder)  # whatever went wrong, no server lives on
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def managed(site: Site) -> Iterator[None]:
    """Lives with a server of their own."""
    with site.managing():
        yield
