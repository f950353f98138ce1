"""The clients that are known: where each keeps its servers and its own tools, and in which shape."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handtools.host.home import home_needed
from handtools.mcp.clients import yaml
from handtools.mcp.clients.edits import Edit, ListItems, ServerEntry, Setting, Shape

NAME = "handtools"
_SETTINGS = "settings of this client"
Launch = tuple[str, list[str]]
"""The program and its arguments."""


@dataclass(frozen=True, slots=True)
class OwnTools:
    """A setting that switches the client's own file and shell tools off."""

    file: Callable[[Path], Path]
    edits: tuple[Edit, ...]
    shape: Shape = "json"


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
    shape: Shape = "json"
    scope: Literal["project", "user"] = "project"
    """Whose file it is: a team's, which can be committed, or one person's."""
    folder: str | None = None
    """What stands for the folder in the entry; None where only its full path will do."""
    own_tools: tuple[OwnTools, ...] = ()
    kept_tools: str = ""
    """What can't be switched off by a setting, and what to do instead."""
    after: str = "Start it again, or reload its servers."

    def server(self, launch: Launch) -> ServerEntry:
        """Our entry."""
        return ServerEntry(self.keys, self.entry(launch))


def _plain(launch: Launch) -> Mapping[str, Any]:
    return {"command": launch[0], "args": launch[1]}


def _typed(launch: Launch) -> Mapping[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _claude(launch: Launch) -> Mapping[str, Any]:
    # Otherwise it hides our tools behind a search, and its first turn does not wait for them.
    return {**_typed(launch), "alwaysLoad": True}


def _qwen(launch: Launch) -> Mapping[str, Any]:
    # As with Claude Code.
    return {**_plain(launch), "alwaysLoadTools": True}


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


def _continue(launch: Launch) -> Mapping[str, Any]:
    return {"name": NAME, **_plain(launch)}


def _home(*parts: str) -> Callable[[Path], Path]:
    return lambda _workspace: home_needed(_SETTINGS).joinpath(*parts)


def _config(*parts: str) -> Callable[[Path], Path]:
    def place(_workspace: Path) -> Path:
        given = os.environ.get("XDG_CONFIG_HOME")
        return (Path(given) if given else home_needed(_SETTINGS) / ".config").joinpath(*parts)

    return place


def _inside(*names: str) -> Callable[[Path], Path]:
    """The first of the files in the folder that is there; the last where none is."""

    def place(workspace: Path) -> Path:
        files = [workspace / name for name in names]
        return next((file for file in files if file.exists()), files[-1])

    return place


def _claude_desktop(workspace: Path) -> Path:
    if sys.platform == "darwin":
        return home_needed(_SETTINGS) / "Library/Application Support/Claude/claude_desktop_config.json"
    return _config("Claude", "claude_desktop_config.json")(workspace)


def _denied(*tools: str) -> tuple[Edit, ...]:
    # The last one is put first in the file.
    return tuple(Setting(("permission", tool), "deny") for tool in reversed(tools))


SERVERS = ("mcpServers", NAME)
_OPENCODE, _KILO = _inside("opencode.jsonc", "opencode.json"), _inside("kilo.jsonc", "kilo.json")
_CRUSH, _CODEX = _inside(".crush.json", "crush.json"), _inside(".codex/config.toml")
_GEMINI, _QWEN = _inside(".gemini/settings.json"), _inside(".qwen/settings.json")
_NO_SETTING = "It has no such setting in a file: switch them off in its own window of tools."
CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude", title="Claude Code", file=_inside(".mcp.json"), keys=SERVERS, entry=_claude, folder=".",
            own_tools=(OwnTools(_inside(".claude/settings.json"), (
                ListItems(("permissions", "deny"), (
                    "Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep", "Monitor")),)),),
            after="Claude Code asks once whether it may use the server of this folder.",
        ),
        Client(
            name="claude-desktop", title="Claude Desktop", file=_claude_desktop, keys=SERVERS, entry=_plain,
            scope="user", kept_tools="It has no file or shell tools of its own.",
        ),
        Client(
            name="cursor", title="Cursor", file=_inside(".cursor/mcp.json"), keys=SERVERS, entry=_plain,
            folder="${workspaceFolder}", kept_tools=_NO_SETTING,
        ),
        Client(
            name="vscode", title="VS Code", file=_inside(".vscode/mcp.json"), keys=("servers", NAME), entry=_typed,
            folder="${workspaceFolder}", kept_tools=_NO_SETTING,
        ),
        Client(
            name="zed", title="Zed", file=_config("zed", "settings.json"), keys=("context_servers", NAME),
            entry=_zed, scope="user", kept_tools=_NO_SETTING,
        ),
        Client(
            name="codex", title="Codex", file=_CODEX, keys=("mcp_servers", NAME), entry=_plain, shape="toml",
            folder=".",
            own_tools=(OwnTools(_CODEX, (
                Setting(("features", "shell_tool"), value=False), Setting(("sandbox_mode",), "read-only"),
                Setting(("mcp_servers", NAME, "required"), value=True)), "toml"),),
            kept_tools="Codex has no setting for apply_patch and view_image: the read-only sandbox refuses what"
            " apply_patch would write, or asks you.",
            after="Codex reads it in a folder that you trust; it asks when it is started there.",
        ),
        Client(
            name="goose", title="goose", file=_config("goose", "config.yaml"), keys=("extensions", NAME),
            entry=_goose, shape="yaml", scope="user",
            kept_tools="Its own tools are the extension `developer`: `goose configure` switches it off.",
        ),
        Client(
            name="gemini", title="Gemini CLI", file=_GEMINI, keys=SERVERS, entry=_plain, folder=".",
            own_tools=(OwnTools(_GEMINI, (
                ListItems(("tools", "exclude"), (
                    "run_shell_command", "read_file", "read_many_files", "write_file", "replace", "glob",
                    "grep_search", "list_directory", "list_background_processes", "read_background_output")),)),),
            after="Gemini CLI reads it in a folder that you trust.",
        ),
        Client(
            name="qwen", title="Qwen Code", file=_QWEN, keys=SERVERS, entry=_qwen, folder=".",
            own_tools=(OwnTools(_QWEN, (
                ListItems(("tools", "exclude"), (
                    "run_shell_command", "read_file", "write_file", "edit", "notebook_edit", "glob",
                    "grep_search", "list_directory")),)),),
            kept_tools="Qwen Code's memory keeps tools of its own, for its own folder.",
        ),
        Client(
            name="windsurf", title="Windsurf", file=_home(".codeium", "windsurf", "mcp_config.json"),
            keys=SERVERS, entry=_plain, scope="user", kept_tools=_NO_SETTING,
        ),
        Client(
            name="opencode", title="opencode", file=_OPENCODE, keys=("mcp", NAME), entry=_opencode, folder=".",
            own_tools=(OwnTools(_OPENCODE, _denied("bash", "read", "edit", "glob", "grep", "list")),),
        ),
        Client(
            name="kilo", title="Kilo", file=_KILO, keys=("mcp", NAME), entry=_opencode, folder=".",
            own_tools=(OwnTools(_KILO, _denied(
                "bash", "background_process", "read", "edit", "glob", "grep", "list")),),
        ),
        Client(
            name="crush", title="Crush", file=_CRUSH, keys=("mcp", NAME), entry=_typed, folder=".",
            own_tools=(OwnTools(_CRUSH, (
                ListItems(("options", "disabled_tools"), (
                    "bash", "job_output", "job_kill", "view", "edit", "multiedit", "write", "glob", "grep",
                    "ls", "download")),)),),
        ),
        Client(
            name="continue", title="Continue", file=_home(".continue", "config.yaml"),
            keys=("mcpServers", yaml.ITEM, NAME), entry=_continue, shape="yaml", scope="user", folder=".",
            own_tools=(OwnTools(_home(".continue", "permissions.yaml"), (
                ListItems(("exclude",), ("Bash", "Read", "List", "Write", "Edit", "MultiEdit", "Search")),),
                "yaml"),),
            kept_tools="`cn --auto` allows everything again: start it without.",
        ),
        Client(
            name="cline", title="Cline", file=_home(".cline", "data", "settings", "cline_mcp_settings.json"),
            keys=SERVERS, entry=_typed, scope="user",
            own_tools=(OwnTools(_home(".cline", "data", "settings", "global-settings.json"), (
                ListItems(("disabledTools",), (
                    "read_files", "run_commands", "search_codebase", "editor", "apply_patch")),)),),
        ),
        Client(
            name="copilot", title="Copilot CLI", file=_inside(".github/mcp.json"), keys=SERVERS, entry=_typed,
            folder=".",
            kept_tools="It has no such setting in a file. Start it with --excluded-tools=bash,read_bash,list_bash,"
            "stop_bash,view,create,edit,glob,grep",
            after="Copilot CLI reads it in a folder that you trust.",
        ),
    )
}  # fmt: skip
