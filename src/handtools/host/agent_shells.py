"""Whether this process was started from a shell that an AI client runs for its agent.

An agent must not answer its own questions. This is no boundary: a shell that nothing confines can do whatever its
user can. It keeps an agent that means well from running `handtools approve` itself. ADR 226.
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
"""Variables that clients set in the shells of their agents, and not in terminals of people; and the client."""
_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "tcsh", "zsh"})
_LAUNCHERS = _SHELLS | {"env", "pipx", "uv", "uvx"}
"""Programs that may stand between a client and the MCP server that it started."""
_PROCESSES = "/proc"
_MOST_ANCESTORS = 64


def client_by_variables() -> str:
    """The name of the client whose variables are set; empty if none is."""
    return next((client for name, client in AGENT_SHELL_VARIABLES.items() if os.environ.get(name)), "")


def client_by_ancestry() -> str:
    """The name of the client that runs a shell above this process, by the list of processes; empty if none does.

    A client is a process that has started an MCP server of ours. One that answers for a person needs no shell for
    that. Editors run terminals of people, too: whoever has a terminal can't be judged by this.
    """
    below_shell = False
    clients: set[int] | None = None
    for pid, name in _ancestors(os.getppid()):
        if below_shell:
            clients = set(_clients_of_servers()) if clients is None else clients
            if pid in clients:
                return name
        below_shell = below_shell or name in _SHELLS
    return ""


def _clients_of_servers() -> Iterator[int]:
    """The processes that started an MCP server of ours over stdio, seen through launchers such as uvx."""
    try:
        listed = [name for name in os.listdir(_PROCESSES) if name.isdigit()]
    except OSError:
        return
    for name in listed:
        if _is_own_server(_words(name)):
            above = (pid for pid, program in _ancestors(_parent(name)[0]) if program not in _LAUNCHERS)
            yield from [pid for pid in [next(above, 0)] if pid]


def _is_own_server(words: list[str]) -> bool:
    """Whether a command line is `handtools mcp`, however it is started."""
    programs = [place for place, word in enumerate(words[:6]) if os.path.basename(word) == "handtools"]
    return any("mcp" in words[place + 1 : place + 2] for place in programs)


def _ancestors(pid: int) -> Iterator[tuple[int, str]]:
    """A process and those above it, up to the first of all, with the names of their programs."""
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            return
        above, name = _parent(str(pid))
        yield pid, name
        pid = above


def _parent(pid: str) -> tuple[int, str]:
    """The parent of a process and the name of its own program; 0 and nothing if it is gone."""
    try:
        with open(f"{_PROCESSES}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name is in parentheses, and may hold some itself: `12 (a (b) c) S 1 …`.
            head, _, rest = file.read().rpartition(")")
    except OSError:
        return 0, ""
    return int(rest.split()[1]), head.partition("(")[2]


def _words(pid: str) -> list[str]:
    try:
        with open(f"{_PROCESSES}/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read(4096).split("\0")
    except OSError:
        return []
