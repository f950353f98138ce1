"""A scene: a workspace, and around it everything that a command in it must not touch, read, reach or leave behind.

Everything lies in one temporary folder. What happened is judged from outside, by looking at the scene again.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.escapes.listeners import Listeners

_INHERITED = 200
"""Where descriptors begin that a careless launcher would pass on: a folder, a socket, a file."""
_SPARE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/usr/local/bin", "/")
_ENTRY_BYTES = 1 << 16
_MEMORY_BYTES = 1100 << 20
_PROCESSES = 500

Marks = dict[str, tuple[object, ...]]


@dataclass(slots=True)
class Scene:
    """One workspace and its surroundings."""

    base: Path
    nonce: str = ""
    listeners: Listeners = field(init=False)
    victim: "subprocess.Popen[bytes]" = field(init=False)
    secrets: dict[str, str] = field(default_factory=dict)
    _mark: str = field(default_factory=lambda: secrets.token_hex(8))
    _libc: ctypes.CDLL = field(default_factory=lambda: ctypes.CDLL(None, use_errno=True))
    _segment: int = -1
    _held: list[int] = field(default_factory=list)
    _before: Marks = field(default_factory=dict)
    _protected: Marks = field(default_factory=dict)
    _standing: tuple[object, ...] = ()

    @property
    def workspace(self) -> Path:
        return self.base / "work"

    @property
    def sockets(self) -> Path:
        return self.base / "run"

    @property
    def home(self) -> Path:
        return self.base / "home"

    def build(self) -> None:
        """What stays for all attempts: the surroundings, the listeners, the victim."""
        for name in ("ENVIRON", "FILE", "HOME", "OTHER", "DOTENV", "ARGUMENT", "SEGMENT"):
            self.secrets[name] = f"SECRET-{name}-{secrets.token_hex(8)}"
        self.secrets |= _interface_addresses()
        self.secrets["MEMORY"] = f"SECRET-MEMORY-{self._mark}"
        self.sockets.mkdir()
        self.workspace.mkdir()
        self.listeners = Listeners(self.sockets, self.workspace, f"abstract-{self._mark}")
        self._segment = self._libc.shmget(0, 4096, 0o1666)
        self._libc.shmat.restype = ctypes.c_void_p
        ctypes.memmove(self._libc.shmat(self._segment, None, 0), self.secrets["SEGMENT"].encode(), 40)
        queue = self._libc.mq_open(self._queue.encode(), os.O_CREAT | os.O_RDONLY, 0o666, None)
        if queue >= 0:
            os.close(queue)
        self.renew()

    def renew(self) -> None:
        """The state before an attempt: whatever the last one did is put right."""
        self.nonce = f"n{secrets.token_hex(8)}"
        for name in ("out", "other", "home"):
            shutil.rmtree(self.base / name, ignore_errors=True)
        _emptied(self.workspace, but="service.sock")
        plant(self.base, self.secrets)
        if not hasattr(self, "victim") or self.victim.poll() is not None:
            self._start_victim()
        self._open_inheritable()
        self.listeners.heard.clear()
        self._before = marks(self.base, but=("work", "run"))
        self._protected = marks(self.workspace, but=())
        self._standing = self.victim_standing()

    def environment(self) -> dict[str, str]:
        """What an attempt is told: where everything is, but no secret."""
        return {
            "NONCE": self.nonce,
            "DESCRIPTORS": " ".join(map(str, self._held)),
            "WORKSPACE": str(self.workspace),
            "OUT": str(self.base / "out"),
            "OTHER": str(self.base / "other"),
            "HOST_HOME": str(self.home),
            "SOCKETS": str(self.sockets),
            "ABSTRACT": f"abstract-{self._mark}",
            "VICTIM": str(self.victim.pid),
            "VICTIM_COUNTER": self._victim_report()[0],
            "PORT": str(self.listeners.port),
            "DOOR": str(self.door),
            "SEGMENT": str(self._segment),
            "QUEUE": self._queue,
        }

    @property
    def door(self) -> int:
        """A port at which nobody listens; an attempt may."""
        return 20000 + self.victim.pid % 20000

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[str]]:
        """Watch while an attempt runs: whether it lets somebody in, and what it uses up."""
        seen: list[str] = []
        over = threading.Event()
        threads = [
            threading.Thread(target=watch, args=(seen, over)) for watch in (self._knock, self._measure)
        ]
        for thread in threads:
            thread.start()
        try:
            yield seen
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def verdicts(self, output: bytes, seen: list[str]) -> list[str]:
        """Everything that shows an attempt succeeded; nothing when it failed."""
        found = list(seen)
        if f"ESCAPED:{self.nonce}".encode() in output:
            found.append("it did what it tried")
        found += [
            f"read the secret {name}" for name, text in self.secrets.items() if text.encode() in output
        ]
        found += self._changes()
        found += [f"left {path}" for path in _left(self.workspace, self._protected)]
        if self.nonce.encode() in self.what_was_heard():
            found.append("reached a listener")
        if self.victim_standing() != self._standing:
            found.append("touched the other process")
        # One that forks and ends all the time is seen only by looking often.
        survivors = {pid for _ in range(4) for pid in marked_processes(self.nonce)}
        if survivors:
            found.append(f"left {len(survivors)} processes running")
        for pid in survivors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        self.listeners.close()
        self._libc.shmctl(self._segment, 0, None)
        self._libc.mq_unlink(self._queue.encode())
        for fd in self._held:
            os.close(fd)
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def _queue(self) -> str:
        return f"/queue-{self._mark}"

    def what_was_heard(self) -> bytes:
        # What was sent is in a buffer of the kernel already; the thread needs a moment to fetch it.
        deadline = time.monotonic() + 0.03
        while self.nonce.encode() not in self.listeners.heard and time.monotonic() < deadline:
            time.sleep(0.005)
        return bytes(self.listeners.heard)

    def _changes(self) -> list[str]:
        after = marks(self.base, but=("work", "run"))
        paths = {path for path in {*self._before, *after} if self._before.get(path) != after.get(path)}
        found = [f"changed {path}" for path in sorted(paths)]
        if not self.workspace.is_dir():
            moved = Path(f"{self.workspace}-moved")
            moved.rename(self.workspace)
            found.append("moved the workspace")
        for spare in _SPARE:
            path = Path(spare, self.nonce)
            if path.exists():
                found.append(f"left {path}")
                path.unlink()
        return found

    def _start_victim(self) -> None:
        report = self.sockets / "report"
        env = {"VICTIM_MARK": self._mark, "VICTIM_SECRET": self.secrets["ENVIRON"], "PATH": os.defpath}
        code = Path(__file__).parent / "victim.py"
        self.victim = subprocess.Popen(
            [
                sys.executable,
                str(code),
                str(report),
                str(self.base / "out" / "file"),
                self.secrets["ARGUMENT"],
            ],
            env=env,
            start_new_session=True,
            cwd=self.base / "out",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        report.unlink(missing_ok=True)
        _until(lambda: report.exists() and report.read_text().endswith("\n"))

    def _victim_report(self) -> list[str]:
        return (self.sockets / "report").read_text().split()

    def victim_standing(self) -> tuple[object, ...]:
        """How the victim is: state, signals it got, memory, priority, limits."""
        if self.victim.poll() is not None:
            return ("dead",)
        pid = self.victim.pid
        before = (self.sockets / "report").stat().st_mtime_ns
        status = Path(f"/proc/{pid}/status").read_text()
        stopped = "State:\tT" in status or "State:\tt" in status
        if stopped:
            self.victim.send_signal(signal.SIGCONT)
        self.victim.send_signal(signal.SIGUSR2)
        _until(
            lambda: (
                (self.sockets / "report").stat().st_mtime_ns != before and len(self._victim_report()) == 3
            )
        )
        return (
            stopped,
            *self._victim_report(),
            os.getpriority(os.PRIO_PROCESS, pid),
            tuple(sorted(os.sched_getaffinity(pid))),
            Path(f"/proc/{pid}/limits").read_text(),
            Path(f"/proc/{pid}/oom_score_adj").read_text(),
            "TracerPid:\t0" in status,
        )

    def _open_inheritable(self) -> None:
        for fd in self._held:
            os.close(fd)
        out = str(self.base / "out")
        opened = [
            os.open(out, os.O_RDONLY),
            os.dup(self.listeners.inherited.fileno()),
            os.open(f"{out}/file", os.O_RDONLY),
        ]
        # Free numbers from there on: who has many files open has those, and they would be closed under its feet.
        self._held = [fcntl.fcntl(fd, fcntl.F_DUPFD, _INHERITED) for fd in opened]
        for fd in opened:
            os.close(fd)

    def _knock(self, seen: list[str], over: threading.Event) -> None:
        while not over.wait(0.05):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.door), 0.2) as line,
            ):
                line.settimeout(0.3)
                if line.recv(100) == self.nonce.encode():
                    seen.append("let somebody in")
                    return

    def _measure(self, seen: list[str], over: threading.Event) -> None:
        while not over.wait(0.1):
            pids = marked_processes(self.nonce)
            used = sum(map(_private_bytes, pids))
            if used > _MEMORY_BYTES:
                seen.append("used more memory than allowed")
            if len(pids) > _PROCESSES:
                seen.append("started more processes than allowed")


@contextlib.contextmanager
def scene(owner: tuple[int, int] | None = None) -> Iterator[Scene]:
    """A scene for as long as it is needed."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="escapes-")))
    base.chmod(0o755)
    made = Scene(base)
    del owner
    os.environ["HOST_SECRET"] = ""
    made.build()
    os.environ["HOST_SECRET"] = made.secrets["ENVIRON"]
    os.environ["SSH_AUTH_SOCK"] = str(made.sockets / "stream")
    try:
        yield made
    finally:
        del os.environ["HOST_SECRET"]
        made.close()


def plant(base: Path, known: dict[str, str]) -> None:
    """The files of a scene."""
    files = {
        "out/canary": "canary\n",
        "out/file": known["FILE"],
        "other/notes": known["OTHER"],
        "home/.ssh/id_rsa": known["HOME"],
        "home/.bashrc": "# shell\n",
        "home/.profile": "# shell\n",
        "home/.netrc": known["HOME"],
        "home/.git-credentials": known["HOME"],
        "home/.bash_history": f"export TOKEN={known['HOME']}\n",
        "home/.gitconfig": "[user]\n\tname = Somebody\n",
        "work/.env": f"TOKEN={known['DOTENV']}\n",
        "work/src/main.py": "print('hello')\n",
        "work/README.md": "# work\n",
        "work/.git/HEAD": "ref: refs/heads/main\n",
        "work/.git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
        "work/.git/hooks/sample": "x",
        "work/.git/objects/info/keep": "",
        "work/.git/refs/heads/keep": "",
        "work/.git/info/exclude": "",
    }
    for path, text in files.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    (base / "work/.git/refs/heads/keep").unlink()


def _interface_addresses() -> dict[str, str]:
    """The machine's network interfaces as only it knows them."""
    found = {}
    for file in Path("/sys/class/net").glob("*/address"):
        address = file.read_text().strip()
        if address.strip("0:"):
            found[f"INTERFACE {file.parent.name}"] = address
    return found


def _emptied(folder: Path, *, but: str) -> None:
    for path in folder.iterdir():
        if path.name == but:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def marks(folder: Path, *, but: tuple[str, ...]) -> Marks:
    """Everything below a folder as what would show a change."""
    found: Marks = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if inside.parts[0] in but:
            continue
        status = path.lstat()
        content: object = None
        attributes: object = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()[:_ENTRY_BYTES]
            attributes = tuple(os.listxattr(path))
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        changed = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
        found[str(inside)] = (status.st_mode, status.st_uid, changed, content, attributes)
    return found


_GIT = ".git"
_GIT_OWN_FILES = re.compile(
    r"(objects/([0-9a-f]{2}/[0-9a-f]{38,62}|pack/[\w.-]+)|(logs/)?refs/(heads|tags|stash|remotes)(/[\w./-]+)?|logs/HEAD|index|"
    r"COMMIT_EDITMSG|ORIG_HEAD|FETCH_HEAD|packed-refs|MERGE_(HEAD|MSG|MODE))"
)
"""What git writes for commits, branches, tags, stashes and merges: contents and names, nothing that it runs."""
_GIT_HEAD = re.compile(r"ref: refs/heads/[\w./-]+\n|[0-9a-f]{40,64}\n")
_NEVER = (
    ".env", ".envrc", ".mcp.json", ".vscode", ".idea", ".claude", ".cursor", ".husky", ".github",
    ".pre-commit-config.yaml",
)  # fmt: skip


def _left(workspace: Path, before: Marks) -> Iterator[str]:
    """What a command must not leave in a workspace: what other programs run, trust or follow."""
    after = marks(workspace, but=("service.sock",))
    for path, mark in after.items():
        if before.get(path) == mark:
            continue
        mode, entry = int(str(mark[0])), Path(path)
        # One that a command makes is its own (decision 24); one that was there is a person's.
        dotenv = path in before and any(part.lower().startswith(".env.") for part in entry.parts)
        named = dotenv or any(part.lower() in _NEVER for part in entry.parts)
        in_git = any(part.lower() == _GIT for part in entry.parts)
        if in_git and _is_ordinary_git(workspace, path, mode):
            continue
        special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
        leads = stat.S_ISLNK(mode) and not (workspace / path).resolve().is_relative_to(workspace)
        elevated = stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)
        shaped = entry.name == "HEAD" and (workspace / entry.parent / "config").exists()
        foreign = mark[1] != workspace.stat().st_uid
        if named or in_git or special or leads or elevated or shaped or foreign:
            yield path
    for path in before:
        if Path(path).parts[0] in {".git", ".env"} and path not in after:
            yield f"a gap at {path}"


def _is_ordinary_git(workspace: Path, path: str, mode: int) -> bool:
    """Whether a change in the workspace's own repository is what commits, branches and the like come to."""
    top, _, inner = path.partition("/")
    facts = (workspace / path).lstat()
    if top != _GIT or facts.st_uid != workspace.stat().st_uid or mode & (stat.S_ISUID | stat.S_ISGID):
        return False
    if stat.S_ISDIR(mode):
        return inner.partition("/")[0] in {"objects", "refs", "logs"} or not inner
    if not stat.S_ISREG(mode) or mode & 0o111:
        return False
    if inner == "HEAD":
        return bool(_GIT_HEAD.fullmatch((workspace / path).read_text("utf-8", "replace")))
    return bool(_GIT_OWN_FILES.fullmatch(inner))


def marked_processes(nonce: str) -> list[int]:
    """Processes with the mark in their arguments."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                if nonce.encode() in Path("/proc", name, "cmdline").read_bytes():
                    found.append(int(name))
    return found


def _private_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if row.startswith("Pss:"):
                return int(row.split()[1]) * 1024
    return 0


def _until(done: "object") -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if done():  # type: ignore[operator]
                return
        time.sleep(0.002)
