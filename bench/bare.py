"""The bare things that calls are held against, where more than one bench needs them."""

import os
from pathlib import Path


def bare_edit(path: Path, old_string: str, new_string: str) -> None:
    """What a careful program does: read, replace, write beside it, make it last, rename."""
    text = path.read_text()
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        file.write(text.replace(old_string, new_string))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
