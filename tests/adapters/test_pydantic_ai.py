"""A toolbox as Pydantic AI's workspace: the SDK's own rules for backends, and what a toolbox adds to them."""

import os

import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "pydantic_ai":
    pytest.skip("needs Pydantic AI", allow_module_level=True)

conformance = pytest.importorskip("pydantic_ai.workspaces.conformance", reason="this version has no workspaces")

from handtools import coding
from handtools.adapters.pydantic_ai_workspace import ToolboxWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


class TestRules(conformance.WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self, root):
        async with coding(root) as box:
            yield ToolboxWorkspace(box)
