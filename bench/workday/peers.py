"""Sandboxes for commands that others publish, installed by npm into a folder of their own and run side by side."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from bench.workday.place import Place

BARE = "bash"
PACKAGES = {"codex": "@openai/codex", "sandbox-runtime": "@anthropic-ai/sandbox-runtime"}
PEERS = (BARE, *PACKAGES)
_INSTALL_SECONDS = 300.0


def install_peers() -> Path:
    """Install the peers, or take those of an earlier run."""
    folder = Path(tempfile.gettempdir(), f"workday-peers-{os.getuid()}")
    if not all((folder / "node_modules" / package).is_dir() for package in PACKAGES.values()):
        folder.mkdir(mode=0o755, exist_ok=True)
        line = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES.values()]
        subprocess.run(line, check=True, timeout=_INSTALL_SECONDS, capture_output=True)
    return folder


def versions(folder: Path) -> dict[str, str]:
    """Each peer with its version."""
    found = {}
    for name, package in PACKAGES.items():
        file = folder / "node_modules" / package / "package.json"
        found[name] = json.loads(file.read_text())["version"] if file.is_file() else "?"
    return found


def prefix(name: str, place: Place, folder: Path) -> tuple[str, ...]:
    """What stands before `bash -c SCRIPT`, with the settings that the peer's own page shows."""
    programs = folder / "node_modules" / ".bin"
    if name == "codex":
        place.environment["CODEX_HOME"] = str(place.base / "codex")
        (place.base / "codex").mkdir(exist_ok=True)
        return (str(programs / "codex"), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--")
    if name == "sandbox-runtime":
        settings = place.base / "srt.json"
        settings.write_text(json.dumps(_SRT_SETTINGS))
        return (str(programs / "srt"), "--settings", str(settings), "--")
    return ()


_SRT_SETTINGS = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {
        "denyRead": ["~/.ssh"],
        "allowWrite": [".", "/tmp"],
        "denyWrite": [".env"],
    },
}
