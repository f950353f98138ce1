"""Forked children that report through a pipe: cheap enough to start a thousand of them."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn


def run_child(action: Callable[[], object]) -> NoReturn:
    """Run in a forked child and leave without the parent's clean-up."""
    code = 1
    try:
        action()
        code = 0
    except BaseException as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
    finally:
        os._exit(code)


def drained(pipe: int) -> bytes:
    """All that comes through a pipe until its last writer is gone."""
    parts = []
    while part := os.read(pipe, 1 << 16):
        parts.append(part)
    os.close(pipe)
    return b"".join(parts)
