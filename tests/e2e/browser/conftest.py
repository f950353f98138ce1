"""One Chromium for all tests of a worker, and the real command in a real folder."""

import pytest

from tests.e2e.browser import chromium
from tests.e2e.cli.conftest import shell

__all__ = ["browser", "shell"]


@pytest.fixture(scope="session")
def browser():
    if reason := chromium.missing():
        pytest.skip(reason)
    with chromium.browser() as started:
        yield started
