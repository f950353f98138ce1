"""What a story needs from the machine, and how to get it where it is missing."""

import os
import pwd
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

_FOLDERS = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
    "/usr/local/go/bin",
)  # fmt: skip
_ANYWHERE = ("uv", "pnpm")
"""Programs that are taken from wherever the bench itself finds them."""
HOW = {
    "git": "apt-get install git",
    "make": "apt-get install make",
    "gcc": "apt-get install gcc libc6-dev",
    "node": "apt-get install nodejs",
    "npm": "apt-get install npm",
    "pnpm": "npm install -g pnpm",
    "go": "apt-get install golang-go",
    "cargo": "apt-get install cargo",
    "sqlite3": "apt-get install sqlite3",
    "openssl": "apt-get install openssl",
    "curl": "apt-get install curl",
    "tmux": "apt-get install tmux",
    "uv": "pip install uv",
    "postgres": "apt-get install postgresql",
    "venv": "apt-get install python3-venv",
    "pyenv": "an interpreter below ~/.pyenv/versions",
    "account": "--user with a number that /etc/passwd has a name for: initdb refuses root, and asks who it is",
    "inotify": "a Linux with inotify",
    "pip-index": "a package index that pip's configuration names and this machine reaches",
    "npm-registry": "a registry that npm's configuration names and this machine reaches",
}


@cache
def person_path() -> str:
    """PATH of the person in a story: the machine's own folders, and of toolchains those that are there."""
    found = [os.path.expanduser(folder) for folder in _FOLDERS]
    extra = [str(folder) for folder in [*_postgres_folders(), *_rust_folders()]]
    extra += [os.path.dirname(path) for path in map(shutil.which, _ANYWHERE) if path]
    more = os.environ.get("WORKDAY_PATH", "").split(os.pathsep)
    return os.pathsep.join(
        folder for folder in [*more, *found, *extra] if folder and os.access(folder, os.R_OK | os.X_OK)
    )


@cache
def lacking(need: str) -> str:
    """How to get what is missing; empty where it is there."""
    return "" if _is_there(need) else HOW.get(need, f"the program {need} on PATH")


def _is_there(need: str) -> bool:
    match need:
        case "venv":
            python = shutil.which("python3", path=person_path())
            return bool(python) and _works(str(python), "-c", "import venv, ensurepip")
        case "pyenv":
            return pyenv_python() is not None
        case "account":
            return os.geteuid() != 0 and _has_a_name()
        case "inotify":
            return sys.platform == "linux"
        case "postgres":
            return bool(_postgres_folders()) and shutil.which("psql", path=person_path()) is not None
        case "pip-index" | "npm-registry":
            return bool(registry_hosts(need))
    return shutil.which(need, path=person_path()) is not None


def _has_a_name() -> bool:
    try:
        return bool(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return False


def pyenv_python() -> Path | None:
    """The newest interpreter that pyenv built and this user can start."""
    found = sorted(Path(os.path.expanduser("~/.pyenv/versions")).glob("3.1[1-9].*/bin/python3"))
    return next((path for path in reversed(found) if os.access(path, os.X_OK)), None)


@cache
def registry_hosts(need: str) -> tuple[str, ...]:
    """The hosts that pip or npm are set up to ask, by their own word; none where they can't be reached."""
    if need == "pip-index":
        told = _said(sys.executable, "-m", "pip", "config", "get", "global.index-url")
        asked = "import pip._internal.models.index as i; print(i.PyPI.netloc, i.PyPI.file_storage_domain)"
        hosts = _hosts(told) or tuple(_said("python3", "-c", asked).split())
    else:
        hosts = _hosts(_said("npm", "config", "get", "registry"))
    return hosts if hosts and _works("curl", "-sfo", "/dev/null", "-m", "5", f"https://{hosts[0]}/") else ()


def _hosts(told: str) -> tuple[str, ...]:
    return tuple(word.split("//", 1)[1].split("/", 1)[0] for word in told.split() if "//" in word)


def _postgres_folders() -> list[Path]:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]


def _rust_folders() -> list[Path]:
    """A toolchain itself: what rustup puts on PATH asks the home folder which one is meant."""
    return sorted(Path(os.path.expanduser("~/.rustup/toolchains")).glob("stable-*/bin"))[-1:]


def _works(*line: str) -> bool:
    try:
        return subprocess.run(line, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _said(*line: str) -> str:
    try:
        done = subprocess.run(line, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
