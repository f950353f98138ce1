"""The frame of the attacks between tenants notices what gets through: it can't pass by seeing nothing.

The whole corpus is `python -m bench escapes --family tenants`.
"""

import pytest

from bench.escapes.scripts import below
from bench.escapes.tenants.corpus import OWN
from bench.escapes.tenants.requests import requested
from bench.escapes.tenants.two_tenants import two_tenants
from handtools.host.sandbox.overlay.overlay_mount import overlay_mount_problem

pytestmark = pytest.mark.anyio
SCRIPTS = {each.title: each for each in below(OWN)}


@pytest.fixture(autouse=True)
def overlays(tmp_path):
    if problem := overlay_mount_problem(tmp_path):
        pytest.skip(f"machine: {problem}")


async def test_what_a_command_gets_that_is_not_confined_is_noticed():
    async with two_tenants(runner="plain") as both:
        # The tree itself is not even mounted for it (decision 37); what it is made of is there.
        upper = await both.attempt(SCRIPTS["files/upper"])
        assert "read the secret FILE" in upper
        assert any(verdict.endswith("upper/out/written") for verdict in upper)
        assert "read the secret PRINTED" in await both.attempt(SCRIPTS["journal/read"])
        assert "it did what it tried" in await both.attempt(SCRIPTS["host/socket"])
        assert "ended the other's command" in await both.attempt(SCRIPTS["processes/end_job"])


async def test_a_confined_command_and_a_tenant_s_requests_get_nothing():
    async with two_tenants() as both:
        for title in ("files/upper", "journal/read", "host/socket", "processes/end_job"):
            assert (title, await both.attempt(SCRIPTS[title])) == (title, [])
        assert {name: found async for name, found in requested(both) if found} == {}
