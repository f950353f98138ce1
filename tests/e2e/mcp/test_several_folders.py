"""`handtools mcp` on three folders: one server, one record, and the roots of the client among them."""

import os
import sys
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, Root

from tests.e2e.mcp.conftest import text


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    made = {name: tmp_path / place / name for name, place in (("api", "x"), ("web", "y"), ("docs", "z"))}
    for name, folder in made.items():
        folder.mkdir(parents=True)
        (folder / "main.py").write_text(f"name = '{name}'\n")
    return made


@asynccontextmanager
async def served(era, words, **options):
    parameters = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "handtools", "mcp", *words], env=dict(os.environ)
    )
    async with Client(parameters, mode=era, **options) as client:
        yield client


@pytest.mark.parametrize("option", ["", "--workspace"])
async def test_one_server_works_in_all_folders_and_takes_back_in_all(folders, era, option):
    words = [word for folder in folders.values() for word in (option, str(folder)) if word]
    async with served(era, words) as client:
        listed = await client.call_tool("list", {"path": "."})
        assert text(listed).split() == ["api/", "docs/", "web/"]
        found = await client.call_tool("grep", {"pattern": "name ="})
        assert all(f"{name}/main.py" in text(found) for name in folders)
        changed = await client.call_tool(
            "edit", {"path": "web/main.py", "old_string": "'web'", "new_string": "'new'"}
        )
        assert not changed.is_error
        assert (folders["web"] / "main.py").read_text() == "name = 'new'\n"
        await client.call_tool("undo", {})
    assert (folders["web"] / "main.py").read_text() == "name = 'web'\n"


async def test_tools_keep_to_those_folders_that_are_roots_of_the_client(folders, era):
    (folders["docs"] / "inner").mkdir()
    (folders["docs"] / "inner" / "page.md").write_text("a page\n")

    async def roots(_context):
        named = (folders["api"].parent, folders["docs"] / "inner")
        return ListRootsResult(roots=[Root(uri=folder.as_uri()) for folder in named])

    async with served(era, map(str, folders.values()), list_roots_callback=roots) as client:
        for path, seen in (
            ("api/main.py", True),
            ("docs/inner/page.md", True),
            ("docs/main.py", False),
            ("web/main.py", False),
            (str(folders["web"] / "main.py"), False),
        ):
            read = await client.call_tool("read", {"path": path})
            assert read.is_error is not seen, path
        assert "api/main.py" in text(await client.call_tool("grep", {"pattern": "name =", "path": "api"}))
        assert (await client.call_tool("grep", {"pattern": "name =", "path": "web"})).is_error


async def test_every_folder_has_to_be_one(folders, tmp_path):
    done = await anyio.run_process(
        [sys.executable, "-P", "-m", "handtools", "mcp", str(folders["api"]), str(tmp_path / "missing")],
        check=False,
    )
    assert done.returncode
    assert b"is not a folder" in done.stderr
