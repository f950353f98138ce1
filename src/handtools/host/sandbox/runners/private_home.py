"""A private home and temporary folder for commands, for runners that can't create them with mounts."""

import shutil
import tempfile
import weakref
from pathlib import Path


def make_private_home(runner: object) -> str:
    """Create a folder with `home` and `tmp` in it that exists as long as the runner."""
    folder = tempfile.mkdtemp(prefix="handtools-")
    weakref.finalize(runner, shutil.rmtree, folder, ignore_errors=True)
    for name in ("home", "tmp"):
        Path(folder, name).mkdir(0o700)
    return folder
