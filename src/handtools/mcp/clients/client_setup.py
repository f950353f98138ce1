"""The supported AI clients and their config files, and planning of the edits for install and uninstall."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handtools.core.errors import UsageError
from handtools.host.home_folders import required_home
from handtools.mcp.clients import yaml_edit
from handtools.mcp.clients.config_edits import (
    AppliedEdit,
    ConfigEdit,
    ConfigFormat,
    InstalledFile,
    InstallRecord,
    ListItemsEdit,
    ServerEntryEdit,
    SettingEdit,
    apply_edits,
    config_edits_present,
    config_value_text,
    revert_edits,
)

ENTRY_NAME = "handtools"
_HOME_PURPOSE = "this client's settings"
McpServerCommand = tuple[str, list[str]]
"""The program and arguments that a client runs to start our MCP server."""


@dataclass(frozen=True, slots=True)
class DisableToolsEdits:
    """The edits to a client's config file that disable its built-in file and shell tools."""

    file: Callable[[Path], Path]
    edits: tuple[ConfigEdit, ...]
    shape: ConfigFormat = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """An AI client that `handtools install` supports: its config file and where our entry is in it."""

    name: str
    title: str
    file: Callable[[Path], Path]
    """Returns the path of the client's config file for a workspace."""
    keys: tuple[str, ...]
    """The keys that lead to our server entry inside the config file."""
    entry: Callable[[McpServerCommand], Mapping[str, Any]]
    shape: ConfigFormat = "json"
    scope: Literal["project", "user"] = "project"
    """Whether the config file belongs to the project and can be committed, or to one user."""
    folder: str | None = None
    """How the server entry refers to the workspace folder; None if it needs the full path."""
    own_tools: tuple[DisableToolsEdits, ...] = ()
    kept_tools: str = ""
    """Message about built-in tools that no setting can disable, with what to do instead; empty if none."""
    after: str = "Restart it, or reload its MCP servers."

    def server(self, launch: McpServerCommand) -> ServerEntryEdit:
        """The edit that adds our MCP server entry to the client's config."""
        return ServerEntryEdit(self.keys, self.entry(launch))


def _plain_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {"command": launch[0], "args": launch[1]}


def _typed_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {"type": "stdio", **_plain_entry(launch)}


def _claude_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    # Otherwise Claude Code hides our tools behind a tool search, and its first turn does not wait for them.
    return {**_typed_entry(launch), "alwaysLoad": True}


def _qwen_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    # For the same reason as in Claude Code.
    return {**_plain_entry(launch), "alwaysLoadTools": True}


def _zed_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {"source": "custom", **_plain_entry(launch), "env": {}}


def _opencode_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {"type": "local", "command": [launch[0], *launch[1]], "enabled": True}


def _goose_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {
        "name": ENTRY_NAME,
        "type": "stdio",
        "enabled": True,
        "cmd": launch[0],
        "args": launch[1],
        "timeout": 600,
    }


def _continue_entry(launch: McpServerCommand) -> Mapping[str, Any]:
    return {"name": ENTRY_NAME, **_plain_entry(launch)}


def _in_home(*parts: str) -> Callable[[Path], Path]:
    return lambda _workspace: required_home(_HOME_PURPOSE).joinpath(*parts)


def _in_config(*parts: str) -> Callable[[Path], Path]:
    def place(_workspace: Path) -> Path:
        given = os.environ.get("XDG_CONFIG_HOME")
        return (Path(given) if given else required_home(_HOME_PURPOSE) / ".config").joinpath(*parts)

    return place


def _in_workspace(*names: str) -> Callable[[Path], Path]:
    """Return a function that returns the first of these files that exists in a workspace, or else the last one."""

    def place(workspace: Path) -> Path:
        files = [workspace / name for name in names]
        return next((file for file in files if file.exists()), files[-1])

    return place


def _claude_desktop_file(workspace: Path) -> Path:
    if sys.platform == "darwin":
        return (
            required_home(_HOME_PURPOSE) / "Library/Application Support/Claude/claude_desktop_config.json"
        )
    return _in_config("Claude", "claude_desktop_config.json")(workspace)


def _deny_tools(*tools: str) -> tuple[ConfigEdit, ...]:
    # Each edit is inserted above the ones before it, so reverse the order.
    return tuple(SettingEdit(("permission", tool), "deny") for tool in reversed(tools))


SERVER_ENTRY_KEY_PATH = ("mcpServers", ENTRY_NAME)
_OPENCODE, _KILO = (
    _in_workspace("opencode.jsonc", "opencode.json"),
    _in_workspace("kilo.jsonc", "kilo.json"),
)
_CRUSH, _CODEX = _in_workspace(".crush.json", "crush.json"), _in_workspace(".codex/config.toml")
_GEMINI, _QWEN = _in_workspace(".gemini/settings.json"), _in_workspace(".qwen/settings.json")
_NO_SETTING = "It has no config file setting for this. Turn them off in its tools window."
KNOWN_CLIENTS: dict[str, KnownClient] = {
    client.name: client
    for client in (
        KnownClient(
            name="claude", title="Claude Code", file=_in_workspace(".mcp.json"), keys=SERVER_ENTRY_KEY_PATH,
            entry=_claude_entry, folder=".",
            own_tools=(DisableToolsEdits(_in_workspace(".claude/settings.json"), (
                ListItemsEdit(("permissions", "deny"), (
                    "Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep", "Monitor")),)),),
            after="Claude Code asks once for permission to use this folder's server.",
        ),
        KnownClient(
            name="claude-desktop", title="Claude Desktop", file=_claude_desktop_file, keys=SERVER_ENTRY_KEY_PATH,
            entry=_plain_entry,
            scope="user", kept_tools="It has no built-in file or shell tools.",
        ),
        KnownClient(
            name="cursor", title="Cursor", file=_in_workspace(".cursor/mcp.json"), keys=SERVER_ENTRY_KEY_PATH,
            entry=_plain_entry,
            folder="${workspaceFolder}", kept_tools=_NO_SETTING,
        ),
        KnownClient(
            name="vscode", title="VS Code", file=_in_workspace(".vscode/mcp.json"), keys=("servers", ENTRY_NAME),
            entry=_typed_entry,
            folder="${workspaceFolder}", kept_tools=_NO_SETTING,
        ),
        KnownClient(
            name="zed", title="Zed", file=_in_config("zed", "settings.json"), keys=("context_servers", ENTRY_NAME),
            entry=_zed_entry, scope="user", kept_tools=_NO_SETTING,
        ),
        KnownClient(
            name="codex", title="Codex", file=_CODEX, keys=("mcp_servers", ENTRY_NAME),
            entry=_plain_entry, shape="toml",
            folder=".",
            own_tools=(DisableToolsEdits(_CODEX, (
                SettingEdit(("features", "shell_tool"), value=False), SettingEdit(("sandbox_mode",), "read-only"),
                SettingEdit(("mcp_servers", ENTRY_NAME, "required"), value=True)), "toml"),),
            kept_tools="Codex has no setting for apply_patch and view_image. Its read-only sandbox refuses"
            " what apply_patch would write, or asks you.",
            after="Codex reads it only in a folder that you trust. It asks when you start it there.",
        ),
        KnownClient(
            name="goose", title="goose", file=_in_config("goose", "config.yaml"), keys=("extensions", ENTRY_NAME),
            entry=_goose_entry, shape="yaml", scope="user",
            kept_tools="Its tools are the extension `developer`. Disable it with `goose configure`.",
        ),
        KnownClient(
            name="gemini", title="Gemini CLI", file=_GEMINI, keys=SERVER_ENTRY_KEY_PATH, entry=_plain_entry,
            folder=".",
            own_tools=(DisableToolsEdits(_GEMINI, (
                ListItemsEdit(("tools", "exclude"), (
                    "run_shell_command", "read_file", "read_many_files", "write_file", "replace", "glob",
                    "grep_search", "list_directory", "list_background_processes", "read_background_output")),)),),
            after="Gemini CLI reads it only in a folder that you trust.",
        ),
        KnownClient(
            name="qwen", title="Qwen Code", file=_QWEN, keys=SERVER_ENTRY_KEY_PATH, entry=_qwen_entry, folder=".",
            own_tools=(DisableToolsEdits(_QWEN, (
                ListItemsEdit(("tools", "exclude"), (
                    "run_shell_command", "read_file", "write_file", "edit", "notebook_edit", "glob",
                    "grep_search", "list_directory")),)),),
            kept_tools="Qwen Code's memory feature keeps its own tools, for its own folder.",
        ),
        KnownClient(
            name="windsurf", title="Windsurf", file=_in_home(".codeium", "windsurf", "mcp_config.json"),
            keys=SERVER_ENTRY_KEY_PATH, entry=_plain_entry, scope="user", kept_tools=_NO_SETTING,
        ),
        KnownClient(
            name="opencode", title="opencode", file=_OPENCODE, keys=("mcp", ENTRY_NAME),
            entry=_opencode_entry, folder=".",
            own_tools=(DisableToolsEdits(_OPENCODE, _deny_tools("bash", "read", "edit", "glob", "grep", "list")),),
        ),
        KnownClient(
            name="kilo", title="Kilo", file=_KILO, keys=("mcp", ENTRY_NAME), entry=_opencode_entry, folder=".",
            own_tools=(DisableToolsEdits(_KILO, _deny_tools(
                "bash", "background_process", "read", "edit", "glob", "grep", "list")),),
        ),
        KnownClient(
            name="crush", title="Crush", file=_CRUSH, keys=("mcp", ENTRY_NAME), entry=_typed_entry, folder=".",
            own_tools=(DisableToolsEdits(_CRUSH, (
                ListItemsEdit(("options", "disabled_tools"), (
                    "bash", "job_output", "job_kill", "view", "edit", "multiedit", "write", "glob", "grep",
                    "ls", "download")),)),),
        ),
        KnownClient(
            name="continue", title="Continue", file=_in_home(".continue", "config.yaml"),
            keys=("mcpServers", yaml_edit.NAMED_ITEM_KEY, ENTRY_NAME),
            entry=_continue_entry, shape="yaml", scope="user", folder=".",
            own_tools=(DisableToolsEdits(_in_home(".continue", "permissions.yaml"), (
                ListItemsEdit(("exclude",), ("Bash", "Read", "List", "Write", "Edit", "MultiEdit", "Search")),),
                "yaml"),),
            kept_tools="`cn --auto` allows all tools again. Start it without --auto.",
        ),
        KnownClient(
            name="cline", title="Cline", file=_in_home(".cline", "data", "settings", "cline_mcp_settings.json"),
            keys=SERVER_ENTRY_KEY_PATH, entry=_typed_entry, scope="user",
            own_tools=(DisableToolsEdits(_in_home(".cline", "data", "settings", "global-settings.json"), (
                ListItemsEdit(("disabledTools",), (
                    "read_files", "run_commands", "search_codebase", "editor", "apply_patch")),)),),
        ),
        KnownClient(
            name="copilot", title="Copilot CLI", file=_in_workspace(".github/mcp.json"),
            keys=SERVER_ENTRY_KEY_PATH,
            entry=_typed_entry,
            folder=".",
            kept_tools="It has no config file setting for this. Start it with --excluded-tools=bash,"
            "read_bash,list_bash,stop_bash,view,create,edit,glob,grep",
            after="Copilot CLI reads it only in a folder that you trust.",
        ),
    )
}  # fmt: skip

_ENTRY_FOLDER = re.compile(r'"mcp"\s*,\s*("(?:[^"\\]|\\.)*")')


class UnreadableClientConfig(UsageError):
    """A client's config file can't be parsed or edited safely. The message names the file."""


@dataclass(frozen=True, slots=True)
class PlannedConfigChange:
    """A planned change to a config file: its text before and after, or None where the file does not exist."""

    file: Path
    before: str | None
    after: str | None
    installed: InstalledFile | None
    """Entry for the install record, which uninstall uses; None deletes the file's entry."""


def install_config_edits(
    client: KnownClient, workspace: Path, launch: McpServerCommand, *, only_ours: bool
) -> dict[Path, tuple[ConfigFormat, list[ConfigEdit]]]:
    """The config edits that install our server in a client, by file.

    The file with the MCP server entry is first. `only_ours` adds the edits that disable the client's
    built-in tools.
    """
    files: dict[Path, tuple[ConfigFormat, list[ConfigEdit]]] = {
        client.file(workspace): (client.shape, [client.server(launch)])
    }
    for own in client.own_tools if only_ours else ():
        files.setdefault(own.file(workspace), (own.shape, []))[1].extend(own.edits)
    return files


def plan_install(
    client: KnownClient,
    workspace: Path,
    launch: McpServerCommand,
    record: InstallRecord,
    *,
    only_ours: bool,
) -> list[PlannedConfigChange]:
    """The file changes that install our MCP server in a client's config. Unchanged files are omitted.

    `only_ours` also disables the client's built-in tools.
    """
    asked = install_config_edits(client, workspace, launch, only_ours=only_ours)
    every = install_config_edits(client, workspace, launch, only_ours=True)
    changes = []
    for file, (shape, _) in every.items():
        text, known = read_config(file), record.find(file)
        if client.folder is None and file == client.file(workspace) and _is_elsewhere(known, workspace):
            known = None  # The entry is another project's: uninstalling this project will restore it.
        with _naming_file(file):
            base = known.restored(shape, text) if known and text is not None else text
            edits = asked[file][1] if file in asked else []
            after, applied = apply_edits(shape, base or "", edits) if edits else (base, [])
        if after == text:
            continue
        kept = None
        if edits and after is not None:
            made = known.made_folder if known else not file.parent.exists()
            kept = InstalledFile.of(workspace, base, after, applied, made_folder=made)
        changes.append(PlannedConfigChange(file, text, after, kept))
    return changes


def plan_uninstall(
    client: KnownClient, workspace: Path, launch: McpServerCommand, record: InstallRecord
) -> list[PlannedConfigChange]:
    """The file changes of an uninstall: they restore each config file to its state before the install.

    Without an install record, only our entries are removed.
    """
    changes = []
    for file, (shape, edits) in install_config_edits(client, workspace, launch, only_ours=True).items():
        text, known = read_config(file), record.find(file)
        if text is None:
            continue
        with _naming_file(file):
            if known is not None:
                after = known.restored(shape, text)
            else:
                left = revert_edits(shape, text, config_edits_present(shape, text, edits))
                after = None if left != text and left.strip() in {"", "{}"} else left
        if after != text:
            changes.append(PlannedConfigChange(file, text, after, None))
    return changes


def conflicting_entry_folder(client: KnownClient, workspace: Path, launch: McpServerCommand) -> str | None:
    """The folder, other than this workspace, that our entry in a client's config serves.

    Returns `something else` if that is unknown; None if there is no entry or it is for this workspace.
    """
    text = read_config(client.file(workspace))
    with _naming_file(client.file(workspace)):
        there = config_value_text(client.shape, text or "", client.keys)
    if there is None:
        return None
    found = _ENTRY_FOLDER.search(there)
    folder = json.loads(found[1]) if found else None
    if folder is None:
        return "something else"
    named = launch[1][-1]
    return None if folder in {named, client.folder} or Path(folder).resolve() == workspace else str(folder)


def client_tools_are_disabled(client: KnownClient, workspace: Path) -> bool:
    """Whether the client's config disables its built-in file and shell tools."""
    return bool(client.own_tools) and all(
        len(_own_edits_in_place(own.file(workspace), own.shape, own.edits)) == len(own.edits)
        for own in client.own_tools
    )


def read_config(file: Path) -> str | None:
    """Read a config file as UTF-8 with its line endings unchanged; None if it does not exist."""
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _own_edits_in_place(
    file: Path, shape: ConfigFormat, edits: tuple[ConfigEdit, ...]
) -> list[AppliedEdit]:
    text = read_config(file)
    with _naming_file(file):
        return [] if text is None else config_edits_present(shape, text, edits)


def _is_elsewhere(installed: InstalledFile | None, workspace: Path) -> bool:
    return installed is not None and installed.workspace != str(workspace)


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    try:
        yield
    except UsageError as problem:
        raise UnreadableClientConfig(f"{file} was not changed. {problem}") from problem
