"""Peers from PyPI, each in an environment of its own: MCP servers, and the edit tools of agent libraries.

What is installed is in `requirements/peers`, with hashes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.peers import library_server
from bench.peers.client import PeerClient
from bench.peers.servers import EditInTurns, Jobs, Server, ServerMakers

REQUIREMENTS = Path(__file__).parents[2] / "requirements/peers"
MCP_SERVERS = {"serena": "serena-agent", "codemcp": "codemcp", "text_editor": "mcp-text-editor"}
"""By the name of their requirements; the package of each."""
LIBRARIES = {
    "anthropic": "anthropic",
    "deepagents": "deepagents",
    "pydantic_harness": "pydantic-ai-harness",
    "openai_agents": "openai-agents",
    "inspect_ai": "inspect-ai",
}
_INSTALL_SECONDS = 600.0


class Environments:
    """The environments that could be made, and why the others could not."""

    def __init__(self, names: list[str]) -> None:
        self.folder = Path(tempfile.gettempdir(), f"peer-environments-{os.getuid()}")
        self.failed: dict[str, str] = {}
        for name in names:
            try:
                self._install(name)
            except subprocess.CalledProcessError as error:
                self.failed[name] = error.stderr.strip()[-300:]

    def program(self, name: str, program: str) -> str:
        """A program of an environment."""
        return str(self.folder / name / "bin" / program)

    def versions(self) -> dict[str, str]:
        """Each peer with the version that its requirements have."""
        packages = MCP_SERVERS | LIBRARIES
        return {
            name: found[1]
            for name in packages
            if (self.folder / name).is_dir() and name not in self.failed
            if (found := re.search(rf"^{packages[name]}==(\S+)", _wanted(name).read_text(), re.MULTILINE))
        }

    def _install(self, name: str) -> None:
        done = self.folder / name / "wanted.txt"
        if done.is_file() and done.read_bytes() == _wanted(name).read_bytes():
            return
        uv = shutil.which("uv") or str(REQUIREMENTS.parents[1] / ".ci/tools/bin/uv")
        python = self.program(name, "python")
        for line in (
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(self.folder / name)],
            [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(_wanted(name))],
        ):
            subprocess.run(line, check=True, timeout=_INSTALL_SECONDS, capture_output=True, text=True)
        shutil.copy(_wanted(name), done)


def _wanted(name: str) -> Path:
    return REQUIREMENTS / f"{name}.txt"


def python_servers(environments: Environments) -> ServerMakers:
    """The MCP servers of PyPI."""
    every: ServerMakers = {
        "serena": lambda root: _serena(environments, root),
        "codemcp": lambda root: Server(
            "codemcp",
            [environments.program("codemcp", "codemcp")],
            root,
            _codemcp(root),
            {"HOME": str(_home(root))} | _COMMITTER,
        ),
        "text_editor": lambda root: Server(
            "text_editor",
            [environments.program("text_editor", "mcp-text-editor")],
            root,
            _text_editor(root),
            edit_in_turns=_edit_lines(root),
        ),
    }
    return {name: make for name, make in every.items() if name not in environments.failed}


def library_servers(environments: Environments) -> ServerMakers:
    """The edit tools of agent libraries, each behind a small server of ours in its own environment."""

    def make(name: str, root: Path) -> Server:
        program = [environments.program(name, "python"), library_server.__file__, name, str(root)]
        jobs: Jobs = {"edit": lambda path, old, new: ("edit", {"path": path, "old": old, "new": new})}
        return Server(name, program, root, jobs)

    return {name: partial(make, name) for name in LIBRARIES if name not in environments.failed}


def _home(root: Path) -> Path:
    """A home for what a server keeps beside the project."""
    home = root.with_name(f"{root.name}-home")
    home.mkdir(exist_ok=True)
    return home


_COMMITTER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench"), ("EMAIL", "bench@example.invalid"))
}
"""codemcp commits every edit."""


def _serena(environments: Environments, root: Path) -> Server:
    """Serena without its page for browsers, and with a language server from its own environment.

    By itself it would fetch a Python and a language server when it starts.
    """
    settings = {
        "projects": [],
        "agent_interface": "tools",
        "web_dashboard": False,
        "ls_specific_settings": {"python_ty": {"ls_path": environments.program("serena", "ty")}},
    }
    project = {"project_name": root.name, "language_servers": ["python_ty"]}
    home = _home(root)
    # JSON is YAML.
    for file, content in (
        (home / "serena_config.yml", settings),
        (root / ".serena/project.yml", project),
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
    argv = [
        environments.program("serena", "serena"), "start-mcp-server", "--project", str(root),
        "--agent-interface", "tools", "--enable-web-dashboard", "false", "--log-level", "ERROR",
    ]  # fmt: skip
    jobs: Jobs = {
        "read": lambda path, lines: (
            "read_file",
            {"relative_path": path, "start_line": 0, "end_line": lines - 1},
        ),
        "edit": lambda path, old, new: (
            "replace_content",
            {"relative_path": path, "needle": old, "repl": new, "mode": "literal"},
        ),
        "create": lambda path, text: ("create_text_file", {"relative_path": path, "content": text}),
        "grep": lambda pattern: ("search_for_pattern", {"substring_pattern": pattern}),
        "glob": lambda pattern: ("find_file", {"file_mask": pattern, "relative_path": "."}),
        "list": lambda path: ("list_dir", {"relative_path": path, "recursive": False}),
        "command": lambda line: ("execute_shell_command", {"command": line}),
    }
    return Server("serena", argv, root, jobs, {"SERENA_HOME": str(home)})


def _codemcp(root: Path) -> Jobs:
    def ask(command: str, **arguments: object) -> tuple[str, dict[str, object]]:
        return "codemcp", {"command": command, **arguments}

    def at(path: str) -> str:
        return str(root / path)

    return {
        "read": lambda path, lines: ask("ReadFile", file_path=at(path), limit=lines),
        "edit": lambda path, old, new: ask(
            "EditFile", file_path=at(path), old_string=old, new_string=new, description="an edit"
        ),
        "create": lambda path, text: ask(
            "WriteFile", file_path=at(path), content=text, description="a new file"
        ),
        "grep": lambda pattern: ask("Grep", pattern=pattern, path=str(root)),
        "list": lambda path: ask("LS", file_path=at(path)),
    }


def _text_editor(root: Path) -> Jobs:
    return {
        "read": lambda path, lines: _text_range(root / path, 1, lines),
        "create": lambda path, text: (
            "edit_text_file_contents",
            {
                "files": [
                    {
                        "path": str(root / path),
                        "file_hash": "",
                        "patches": [{"line_start": 1, "contents": text}],
                    }
                ]
            },
        ),
    }


def _text_range(file: Path, first: int, last: int | None) -> tuple[str, dict[str, object]]:
    asked = {"file_path": str(file), "ranges": [{"start": first, "end": last}]}
    return "get_text_file_contents", {"files": [asked]}


def _edit_lines(root: Path) -> EditInTurns:
    """It edits lines by number: the file is read, then the lines that hold the text, then those are replaced."""

    def edit(client: PeerClient, path: str, old: str, new: str) -> str:
        file = root / path
        try:
            shown = json.loads(client.call(*_text_range(file, 1, None)))[str(file)]
        except ValueError as unreadable:
            return str(unreadable)
        text = shown["ranges"][0]["content"]
        if not old or text.count(old) != 1:
            return "There is no such place, or more than one."
        start = text.index(old)
        first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, start + len(old.rstrip("\n"))) + 1
        lines = json.loads(client.call(*_text_range(file, first, last)))[str(file)]["ranges"][0]
        patch = {
            "line_start": first,
            "line_end": last,
            "range_hash": lines["range_hash"],
            "contents": lines["content"].replace(old, new, 1),
        }
        files = [{"path": str(file), "file_hash": shown["file_hash"], "patches": [patch]}]
        return client.call("edit_text_file_contents", {"files": files})

    return edit
