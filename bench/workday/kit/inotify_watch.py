"""`python3 inotify_watch.py FILE`: prints the file, and again when inotify says that it changed."""

import ctypes
import os
import sys

CLOSE_WRITE, MOVED_TO, CREATE = 0x8, 0x80, 0x100


def main(path: str) -> None:
    """Watch until it is ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init()
    folder = os.path.dirname(os.path.abspath(path))
    if libc.inotify_add_watch(handle, folder.encode(), CLOSE_WRITE | MOVED_TO | CREATE) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    name = os.path.basename(path).encode()
    while True:
        with open(path) as file:
            print("loaded", file.read().strip(), flush=True)
        while name not in os.read(handle, 4096):
            pass


if __name__ == "__main__":
    main(sys.argv[1])
