"""Paths that try to leave a workspace, hang its reader or change what lies outside; and the trap around it."""

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

SECRET = b"canary-7f3a: what lies outside stays outside\n" * 7
MARK = "canary-7f3a"


@dataclass(frozen=True)
class Trap:
    """A workspace full of ways out, and an outside that must not change or be seen."""

    root: Path
    outside: Path

    def state(self) -> dict[str, tuple[object, ...]]:
        """Everything outside, down to modes and times of change."""
        found: dict[str, tuple[object, ...]] = {}
        for path in [self.outside, *sorted(self.outside.rglob("*"))]:
            facts = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            found[str(path)] = (facts.st_mode, facts.st_uid, facts.st_mtime_ns, content)
        return found


def spring(above: Path) -> Trap:
    """Lay out the workspace and the outside."""
    trap = Trap(above / "workspace", above / "outside")
    trap.root.mkdir()
    trap.outside.mkdir()
    (trap.outside / "folder").mkdir()
    for name in (f"{MARK}.txt", "secret", "folder/secret"):
        (trap.outside / name).write_bytes(SECRET)
    (trap.outside / "hard").write_bytes(SECRET + b"shared")
    (above / "workspace-twin").mkdir()
    (above / "workspace-twin" / "secret").write_bytes(SECRET)
    _lay_inside(trap)
    return trap


def _lay_inside(trap: Trap) -> None:
    root, outside = trap.root, trap.outside
    for folder in ("dir/sub", "a/b/c", "locked"):
        (root / folder).mkdir(parents=True)
    for name in ("file", "dir/file", "dir/sub/file", "UPPER", "caf\u00e9"):
        (root / name).write_bytes(b"inside\n")
    links = {
        "abs_file": outside / "secret",
        "abs_folder": outside,
        "rel_file": "../outside/secret",
        "rel_folder": "../outside",
        "dir/rel_deep": "../../outside/secret",
        "dir/sub/far": "../../../outside/folder",
        "chain1": "chain2",
        "chain2": "dir/chain3",
        "dir/chain3": "../rel_file",
        "zigzag": "dir/../dir/sub/../../../outside/secret",
        "in_and_out": "dir/../../outside/secret",
        "out_and_in": "../workspace/file",
        "through_parent": "..",
        "through_root": "/",
        "self_root": "/proc/self/root",
        "self_cwd": "/proc/self/cwd",
        "self_fd": "/proc/self/fd",
        "self_exe": "/proc/self/exe",
        "thread_root": "/proc/thread-self/root",
        "init_root": "/proc/1/root",
        "passwd": "/etc/passwd",
        "dangling_out": "../outside/planted",
        "dangling_abs": outside / "planted",
        "dangling_deep": "../outside/no/such/planted",
        "loop": "loop",
        "ping": "pong",
        "pong": "ping",
        "twin": "../workspace-twin/secret",
        "twin_abs": f"{root}-twin/secret",
        "prefix_abs": f"{root}/../outside/secret",
        "dots": ".././.././" + outside.parent.name + "/outside/secret",
        "slashes": f"//{str(outside)[1:]}//secret",
        "device": "/dev/null",
        "endless": "/dev/zero",
        "terminal": "/dev/tty",
        "empty_parts": "../outside/./secret",
        "memory": "/proc/self/mem",
        "environment": "/proc/self/environ",
        "deep_link": "a/b/c/../../../../outside/secret",
        "to_link": "abs_folder",
        "link_in_link": "to_link/folder",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    for number in range(60):
        (root / f"long{number}").symlink_to(f"long{number + 1}" if number < 59 else "../outside/secret")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    os.link(outside / "hard", root / "hard")
    if os.geteuid() == 0:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        os.mknod(root / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 200))


PATHS = [
    # Climbing
    "..", "../", "../outside/secret", "../../../../../../etc/passwd", "dir/../../outside/secret",
    "./../outside/secret", "dir/./.././../outside/secret", "dir/sub/../../../outside/secret", "...",
    "..../secret", "../workspace-twin/secret", "dir/..", "dir/../..", "../workspace/../outside/secret",
    "..\\outside\\secret", "dir\\..\\..\\outside\\secret", "%2e%2e/outside/secret", "..%2foutside%2fsecret",
    "..;/outside/secret", ". ./outside/secret", ".. /outside/secret", "\u2025/outside/secret",
    "\uff0e\uff0e/outside/secret", "..\u2215outside\u2215secret", "..\uff0foutside\uff0fsecret",
    "dir//..//..//outside//secret",
    # Absolute
    "/", "/etc/passwd", "//etc/passwd", "{outside}/secret", "/{outside}/secret", "{root}/../outside/secret",
    "{root}-twin/secret", "{root}/./../outside", "file://{outside}/secret", "file:///etc/passwd",
    "file:{outside}/secret", "file://localhost{outside}/secret", "FILE://{outside}/secret", "~",
    "~/.ssh/id_rsa", "~root/.profile", "$HOME/.profile", "C:\\Windows\\win.ini", "C:/Windows/win.ini",
    "\\\\host\\share\\file", "//?/C:/Windows", "/proc/self/root{outside}/secret",
    "/proc/self/cwd/../outside/secret", "/dev/stdin", "/dev/fd/0",
    # Links
    "abs_file", "abs_folder", "abs_folder/secret", "abs_folder/folder/secret", "abs_folder/planted", "rel_file",
    "rel_folder/secret", "rel_folder/new/planted", "dir/rel_deep", "dir/sub/far/secret", "chain1", "zigzag",
    "in_and_out", "through_parent/outside/secret", "through_root{outside}/secret", "self_root{outside}/secret",
    "self_cwd/../outside/secret", "self_fd/0", "self_exe", "thread_root{outside}/secret",
    "init_root{outside}/secret", "passwd", "dangling_out", "dangling_abs", "dangling_deep", "loop", "loop/x",
    "ping", "long0", "long25", "long59", "twin", "twin_abs", "prefix_abs", "dots", "slashes", "empty_parts",
    "deep_link", "to_link/secret", "link_in_link/secret", "abs_folder/.", "abs_folder/",
    "abs_folder/../outside/secret", "dir/sub/far/../secret", "out_and_in", "abs_folder/../workspace/file",
    # Things that are no files
    "pipe", "pipe/", "socket", "zero", "disk", "device", "endless", "terminal", "memory", "environment", "hard",
    # Names
    "", ".", "\0", "file\0", "file\0/../../outside/secret", "a\0b", "x" * 256, "x/" * 2100 + "x", "é" * 200,
    "file/", "file/.", "file/..", "file/../../outside/secret", "file.", "file ", "file::$DATA", "file/x",
    "FILE", "upper", "cafe\u0301", "caf\u00e9", "\u202efile", "file\u200b", "file\n", "\n", "\r\n", "\x1b[2J",
    "\udcff", "\ud800", "\U0001f4a9", "con", "nul", "aux.txt", ".handtools-" + "0" * 24,
    ".git/../../outside/secret", "-rf", "--", "*", "?", "[a-z]", "$(id)", "`id`", "{{outside}}", "|cat", "a;b",
    "\t", " ", "dir/ ", "..\x00/outside/secret", "\ufeff../outside/secret",
]  # fmt: skip

SHARED = {"hard"}
"""A hard link is the same file by another name: reading it tells its bytes, writing must not reach it."""


def attacks(trap: Trap) -> list[str]:
    """The paths, pointed at this trap."""
    return [
        path.replace("{outside}", str(trap.outside)).replace("{root}", str(trap.root)) for path in PATHS
    ]
