"""The clients that are known: where each keeps its servers, and in which shape."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handtools.host.home import home_needed
from handtools.mcp.clients import blocks, jsonc

NAME = "handtools"
_SETTINGS = "settings of this client"
Launch = tuple[str, list[str]]
"""The program and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that reads a file of servers."""

    name: str
    title: str
    file: Callable[[Path], Path]
    """Where it looks, for a workspace."""
    keys: tuple[str, ...]
    """The path to our entry within the file."""
    entry: Callable[[Launch], Mapping[str, Any]]
    shape: Literal["json", "toml", "yaml"] = "json"
    after: str = "Start it again, or reload its servers."

    def put(self, text: str, launch: Launch) -> str:
        """The file's text with our entry."""
        value = self.entry(launch)
        if self.shape == "json":
            return jsonc.put(text, self.keys, value)
        if self.shape == "toml":
            return blocks.put_table(text, self.keys, value)
        return blocks.put_mapping(text, self.keys[0], self.keys[1], value)

    def drop(self, text: str) -> str:
        """The file's text without our entry."""
        if self.shape == "json":
            return jsonc.drop(text, self.keys)
        if self.shape == "toml":
            return blocks.drop_table(text, self.keys)
        return blocks.drop_mapping(text, self.keys[0], self.keys[1])


def _plain(launch: Launch) -> Mapping[str, Any]:
    return {"command": launch[0], "args": launch[1]}


def _typed(launch: Launch) -> Mapping[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _zed(launch: Launch) -> Mapping[str, Any]:
    return {"source": "custom", **_plain(launch), "env": {}}


def _opencode(launch: Launch) -> Mapping[str, Any]:
    return {"type": "local", "command": [launch[0], *launch[1]], "enabled": True}


def _goose(launch: Launch) -> Mapping[str, Any]:
    return {
        "name": NAME,
        "type": "stdio",
        "enabled": True,
        "cmd": launch[0],
        "args": launch[1],
        "timeout": 600,
    }


def _home(*parts: str) -> Callable[[Path], Path]:
    return lambda _workspace: home_needed(_SETTINGS).joinpath(*parts)


def _config(*parts: str) -> Callable[[Path], Path]:
    def place(_workspace: Path) -> Path:
        given = os.environ.get("XDG_CONFIG_HOME")
        return (Path(given) if given else home_needed(_SETTINGS) / ".config").joinpath(*parts)

    return place


def _inside(*parts: str) -> Callable[[Path], Path]:
    return lambda workspace: workspace.joinpath(*parts)


def _claude_desktop(workspace: Path) -> Path:
    if sys.platform == "darwin":
        return home_needed(_SETTINGS) / "Library/Application Support/Claude/claude_desktop_config.json"
    return _config("Claude", "claude_desktop_config.json")(workspace)


SERVERS = ("mcpServers", NAME)
CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(name="claude", title="Claude Code", file=_inside(".mcp.json"), keys=SERVERS, entry=_typed,
               after="Claude Code asks once whether it may use the server of this folder."),
        Client(name="claude-desktop", title="Claude Desktop", file=_claude_desktop, keys=SERVERS, entry=_plain),
        Client(name="cursor", title="Cursor", file=_inside(".cursor", "mcp.json"), keys=SERVERS, entry=_plain),
        Client(name="vscode", title="VS Code", file=_inside(".vscode", "mcp.json"), keys=("servers", NAME),
               entry=_typed),
        Client(name="zed", title="Zed", file=_config("zed", "settings.json"), keys=("context_servers", NAME),
               entry=_zed),
        Client(name="codex", title="Codex", file=_home(".codex", "config.toml"), keys=("mcp_servers", NAME),
               entry=_plain, shape="toml"),
        Client(name="goose", title="goose", file=_config("goose", "config.yaml"), keys=("extensions", NAME),
               entry=_goose, shape="yaml"),
        Client(name="gemini", title="Gemini CLI", file=_inside(".gemini", "settings.json"), keys=SERVERS,
               entry=_plain),
        Client(name="windsurf", title="Windsurf", file=_home(".codeium", "windsurf", "mcp_config.json"),
               keys=SERVERS, entry=_plain),
        Client(name="opencode", title="opencode", file=_inside("opencode.json"), keys=("mcp", NAME),
               entry=_opencode),
    )
}  # fmt: skip
