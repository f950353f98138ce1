"""Detect whether this process was started from a shell that an AI client runs for its agent.

An agent must not approve its own calls. This is not a security boundary: an unconfined shell can do
everything that its user can do. It only keeps a well-meaning agent from running `handtools approve` itself.
"""

import os
from collections.abc import Iterator, Mapping

AGENT_SHELL_VARIABLES: Mapping[str, str] = {
    "AI_AGENT": "an AI client",
    "AMP_CURRENT_THREAD_ID": "Amp",
    "ANTIGRAVITY_AGENT": "Antigravity",
    "AUGMENT_AGENT": "Augment",
    "CLAUDECODE": "Claude Code",
    "CLINE_ACTIVE": "Cline",
    "CODEX_SANDBOX": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "COPILOT_CLI": "Copilot CLI",
    "CURSOR_AGENT": "Cursor",
    "GEMINI_CLI": "Gemini CLI",
    "GOOSE_TERMINAL": "goose",
    "HANDTOOLS_RUN": "handtools itself, for its tool `bash`",
    "OPENCODE": "opencode",
    "QWEN_CODE": "Qwen Code",
    "TRAE_AI_SHELL_ID": "Trae",
}
"""Variables that clients set in their agents' shells but not in users' terminals, and the client's name."""
_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "tcsh", "zsh"})
_LAUNCHERS = _SHELLS | {"env", "pipx", "uv", "uvx"}
"""Programs that may be between a client and its MCP server in the process tree."""
_PROCESSES = "/proc"
_MAX_ANCESTORS = 64


def client_by_variables() -> str:
    """Return the name of the client whose variables are set; empty if none are."""
    return next((client for name, client in AGENT_SHELL_VARIABLES.items() if os.environ.get(name)), "")


def client_by_ancestry() -> str:
    """Return the name of the client that runs a shell above this process in the process tree, or "".

    A client is a process that started one of our MCP servers. To relay a user's approval, it needs no shell.
    Don't use this for a process that has a terminal: editors are clients too, and run users' terminals.
    """
    below_shell = False
    clients: set[int] | None = None
    for pid, name in _process_and_ancestors(os.getppid()):
        if below_shell:
            clients = set(_clients_of_servers()) if clients is None else clients
            if pid in clients:
                return name
        below_shell = below_shell or name in _SHELLS
    return ""


def _clients_of_servers() -> Iterator[int]:
    """Yield the pids of processes that started our MCP servers; launchers such as uvx are skipped."""
    try:
        listed = [name for name in os.listdir(_PROCESSES) if name.isdigit()]
    except OSError:
        return
    for name in listed:
        if _is_own_server(_command_line_words(name)):
            above = (
                pid
                for pid, program in _process_and_ancestors(_parent_and_own_name(name)[0])
                if program not in _LAUNCHERS
            )
            yield from [pid for pid in [next(above, 0)] if pid]


def _is_own_server(words: list[str]) -> bool:
    """Whether a command line runs `handtools mcp`, directly or through a launcher."""
    programs = [place for place, word in enumerate(words[:6]) if os.path.basename(word) == "handtools"]
    return any("mcp" in words[place + 1 : place + 2] for place in programs)


def _process_and_ancestors(pid: int) -> Iterator[tuple[int, str]]:
    """Yield the pid and program name of a process and each of its ancestors, except init."""
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return
        above, name = _parent_and_own_name(str(pid))
        yield pid, name
        pid = above


def _parent_and_own_name(pid: str) -> tuple[int, str]:
    """Return the pid of a process's parent, and the process's own program name; 0 and "" if it has exited."""
    try:
        with open(f"{_PROCESSES}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name is in parentheses and may contain parentheses itself: `12 (a (b) c) S 1 …`.
            head, _, rest = file.read().rpartition(")")
    except OSError:
        return 0, ""
    return int(rest.split()[1]), head.partition("(")[2]


def _command_line_words(pid: str) -> list[str]:
    try:
        with open(f"{_PROCESSES}/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read(4096).split("\0")
    except OSError:
        return []
