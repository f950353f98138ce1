"""Coding agents that people use, with our server: what the model is offered, and what it sees of each result."""

import pytest

from tests.e2e.clients.cells import row
from tests.e2e.clients.reference import refer
from tests.e2e.clients.session import play
from tests.e2e.clients.table import client, stems, written

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return refer(tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize("stem", stems())
def test_the_model_reads_what_it_asked_for(stem, reference, tmp_path, subtests):
    each = client(stem)
    if not each.folder.exists():
        pytest.skip(f"{each.name} is missing: run .ci/coding-clients")
    page = written()[each.name]
    session = play(each, tmp_path / "first")
    if session.record[0]["status"] != "cancelled":
        # A client kills a server that does not end at once; on a busy machine that may be before it has written.
        session = play(each, tmp_path / "second")
    measured = row(each, session, reference)
    assert list(page) == list(measured)
    for column, measure in measured.items():
        with subtests.test(client=each.name, column=column):
            assert measure() == page[column]


def test_the_page_has_every_client_and_no_other():
    assert sorted(written()) == sorted(client(stem).name for stem in stems())
    assert len(written()) >= 8
