"""Real servers in processes of their own, and the SDK's client in both eras of the protocol."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

HERE = Path(__file__).parent
CURRENT, OLDER = "2026-07-28", "legacy"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    return work


@pytest.fixture(params=[CURRENT, OLDER])
def era(request):
    return request.param


@pytest.fixture
def on_stdio(folder):
    """Connect to the workshop over stdio."""

    @asynccontextmanager
    async def connect(era, *words, **options):
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[str(HERE / "workshop.py"), str(folder), *words],
            env=dict(os.environ),
        )
        async with Client(parameters, mode=era, **options) as client:
            yield client

    return connect


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")
