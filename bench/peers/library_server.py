"""An agent library's edit tool on pipes, as `client.PeerClient` speaks to it: `library_server.py LIBRARY FOLDER`.

Run by the Python of that library's own environment, so nothing of ours is imported here.
"""

import asyncio
import gzip
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from importlib import import_module, resources
from pathlib import Path
from typing import Any

Edit = Callable[[str, str, str], Awaitable[object]]
"""By path, old text and new text."""


def anthropic(root: Path) -> Edit:
    """The reference tools for agents of Anthropic's SDK."""
    tools = import_module("anthropic.lib.tools.agent_toolset")
    tool = tools.beta_edit_tool(tools.AgentToolContext(workdir=root))
    return lambda path, old, new: tool.call({"file_path": path, "old_string": old, "new_string": new})


def deepagents(root: Path) -> Edit:
    """The backend behind the `edit_file` of LangChain's deep agents."""
    backend = import_module("deepagents.backends").FilesystemBackend(root_dir=root, virtual_mode=True)
    return lambda path, old, new: asyncio.to_thread(backend.edit, f"/{path}", old, new)


def pydantic_harness(root: Path) -> Edit:
    """The file system toolset of Pydantic AI's harness."""
    toolset = import_module("pydantic_ai_harness.filesystem").FileSystem().get_toolset()
    workspace = import_module("pydantic_ai.workspaces.local").LocalWorkspaceBackend(root)
    return lambda path, old, new: toolset.edit_file(path, old, new, workspace=workspace)


def openai_agents(root: Path) -> Edit:
    """The patch editor of OpenAI's agents SDK over a folder of this machine."""
    client = import_module("agents.sandbox.sandboxes.unix_local").UnixLocalSandboxClient()
    manifest = import_module("agents.sandbox").Manifest(root=str(root))
    editor = import_module("agents.sandbox.apply_patch").WorkspaceEditor

    async def edit(path: str, old: str, new: str) -> object:
        if not old:
            return "A patch has no words for an empty place."
        session = await client.create(manifest=manifest)
        patch = {"type": "update_file", "path": path, "diff": patch_of_edit(root / path, old, new)}
        return await editor(session).apply_patch(patch)

    return edit


def patch_of_edit(file: Path, old: str, new: str) -> str:
    """The patch that a model sends for an edit: whole lines, so what is beside the text on its lines comes along.

    As the model saw the file, which is with plain line ends.
    """
    shown = file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if old and shown.count(old) == 1:
        start = shown.rfind("\n", 0, shown.index(old)) + 1
        end = shown.find("\n", shown.index(old) + len(old) - old.endswith("\n"))
        whole = shown[start : len(shown) if end < 0 else end]
        old, new = whole, f"{whole}\n".replace(old, new, 1).removesuffix("\n")
    gone, come = (text.split("\n") if text else [] for text in (old, new))
    return "\n".join(["@@", *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]) + "\n"


def inspect_ai(root: Path) -> Edit:
    """The program that Inspect's `text_editor` runs in a sandbox, taken out of its package."""
    [packed] = [
        each for each in (resources.files("inspect_ai") / "binaries").iterdir() if "amd64" in each.name
    ]
    folder = tempfile.mkdtemp(prefix="inspect-tools-")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed.read_bytes()))) as archive:
        archive.extractall(folder, filter="data")

    async def edit(path: str, old: str, new: str) -> object:
        params = {"command": "str_replace", "path": str(root / path), "old_str": old, "new_str": new}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "text_editor", "params": params}
        return subprocess.run(
            [f"{folder}/inspect-sandbox-tools", "exec"],
            input=json.dumps(asked).encode(),
            capture_output=True,
            check=True,
        ).stdout.decode()

    return edit


LIBRARIES: dict[str, Callable[[Path], Edit]] = {
    each.__name__: each for each in (anthropic, deepagents, pydantic_harness, openai_agents, inspect_ai)
}


async def main(name: str, root: Path) -> None:
    """Answer requests, one a line, until the input ends."""
    edit = LIBRARIES[name](root)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if "id" not in asked:
            continue
        result: dict[str, Any] = {}
        if asked["method"] == "tools/call":
            given = asked["params"]["arguments"]
            try:
                said = str(await edit(given["path"], given["old"], given["new"]))
            except Exception as refusal:
                said = f"{type(refusal).__name__}: {refusal}"
            result = {"content": [{"type": "text", "text": said}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
