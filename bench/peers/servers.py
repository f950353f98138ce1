"""MCP servers that a user would pick instead, as npm and PyPI have them, and the words each has for one job."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.client import NODE, PeerClient, peer_environment

Request = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
Jobs = dict[str, Callable[..., Request]]
EditInTurns = Callable[[PeerClient, str, str, str], str]
"""An edit that takes more than one call: client, path, old text, new text."""
OURS, FILESYSTEM, COMMANDER = "ours", "filesystem", "commander"
PACKAGES = {
    FILESYSTEM: "@modelcontextprotocol/server-filesystem@2026.8.31",
    COMMANDER: "@wonderwhy-er/desktop-commander@0.2.12",
    "shell": "mcp-server-commands@0.5.0",
}
_PROGRAMS = {
    FILESYSTEM: "mcp-server-filesystem",
    COMMANDER: "desktop-commander",
    "shell": "mcp-server-commands",
}
_INSTALL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Server:
    """A program that serves one folder, and how each job is asked for; a job it has no tool for is left out."""

    name: str
    argv: Sequence[str]
    root: Path
    jobs: Jobs = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    edit_in_turns: EditInTurns | None = None

    @property
    def edits(self) -> bool:
        """Whether it has a tool for edits."""
        return "edit" in self.jobs or self.edit_in_turns is not None

    def start(self) -> PeerClient:
        """Start the server in its folder."""
        return PeerClient(self.argv, self.root, self.environment)

    def edit(self, client: PeerClient, path: str, old: str, new: str) -> str:
        """Have it replace a text in a file; what it said."""
        if self.edit_in_turns is not None:
            return self.edit_in_turns(client, path, old, new)
        return client.call(*self.jobs["edit"](path, old, new))


ServerMakers = dict[str, Callable[[Path], Server]]
"""Each server by its name, for the project in a folder."""


def install_servers() -> Path:
    """Install npm's servers into a folder of their own, or take those of an earlier run."""
    folder = Path(tempfile.gettempdir(), f"peer-servers-{os.getuid()}")
    if not all((folder / "node_modules/.bin" / program).exists() for program in _PROGRAMS.values()):
        folder.mkdir(mode=0o755, exist_ok=True)
        npm = str(NODE / "lib/node_modules/npm/bin/npm-cli.js")
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        subprocess.run(
            ["node", npm, "install", *options, *PACKAGES.values()],
            env=peer_environment(),
            check=True,
            timeout=_INSTALL_SECONDS,
            capture_output=True,
        )
    return folder


def npm_servers(folder: Path) -> ServerMakers:
    """Ours first, then npm's."""
    programs = folder / "node_modules/.bin"
    ours = str(Path(sys.executable).with_name("handtools"))
    filesystem, commander, shell = (str(programs / program) for program in _PROGRAMS.values())
    return {
        OURS: lambda root: Server(OURS, [ours, "mcp", str(root)], root, _ours()),
        FILESYSTEM: lambda root: Server(FILESYSTEM, [filesystem, str(root)], root, _filesystem(root)),
        "commander": lambda root: Server("commander", [commander], root, _commander(root)),
        "shell": lambda root: Server("shell", [shell], root, _shell(root)),
    }


def _ours() -> Jobs:
    return {
        "read": lambda path, lines: ("read", {"path": path, "limit": lines}),
        "edit": lambda path, old, new: ("edit", {"path": path, "old_string": old, "new_string": new}),
        "create": lambda path, text: ("write", {"path": path, "content": text}),
        "grep": lambda pattern: ("grep", {"pattern": pattern}),
        "glob": lambda pattern: ("find", {"pattern": pattern}),
        "list": lambda path: ("list", {"path": path}),
        "command": lambda line: ("bash", {"command": line}),
    }


def _filesystem(root: Path) -> Jobs:
    def at(path: str) -> str:
        return str(root / path)

    return {
        "read": lambda path, lines: ("read_text_file", {"path": at(path), "head": lines}),
        "edit": lambda path, old, new: (
            "edit_file",
            {"path": at(path), "edits": [{"oldText": old, "newText": new}]},
        ),
        "create": lambda path, text: ("write_file", {"path": at(path), "content": text}),
        "glob": lambda pattern: ("search_files", {"path": str(root), "pattern": f"**/{pattern}"}),
        "list": lambda path: ("list_directory", {"path": at(path)}),
    }


def _commander(root: Path) -> Jobs:
    def at(path: str) -> str:
        return str(root / path)

    return {
        "read": lambda path, lines: ("read_file", {"path": at(path), "offset": 0, "length": lines}),
        "edit": lambda path, old, new: (
            "edit_block",
            {"file_path": at(path), "old_string": old, "new_string": new},
        ),
        "create": lambda path, text: ("write_file", {"path": at(path), "content": text}),
        "list": lambda path: ("list_directory", {"path": at(path)}),
        "command": lambda line: ("start_process", {"command": line, "timeout_ms": 10_000}),
    }


def _shell(root: Path) -> Jobs:
    """A model that has only a shell writes such lines."""

    def run(line: str) -> Request:
        return "run_command", {"command": line, "workdir": str(root)}

    return {
        "read": lambda path, lines: run(f"head -n {lines} {shlex.quote(path)}"),
        "grep": lambda pattern: run(f"rg -n {shlex.quote(pattern)} ."),
        "glob": lambda pattern: run(f"rg --files -g {shlex.quote(pattern)}"),
        "list": lambda path: run(f"ls -la {shlex.quote(path)}"),
        "command": run,
    }


def npm_versions(folder: Path) -> dict[str, str]:
    """Each of npm's servers with the version that was installed."""
    found = {}
    for name, package in PACKAGES.items():
        file = folder / "node_modules" / package.rpartition("@")[0] / "package.json"
        found[name] = json.loads(file.read_text())["version"]
    return found
