"""Presets: from the words of a command line or a token file to a toolbox."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from handtools.core.errors import UsageError
from handtools.runtime.deciding import Verdict
from handtools.runtime.policy import Policy
from handtools.toolbox import Toolbox, coding, everything, reading

Preset = Literal["reading", "coding", "everything"]
MAKERS = {"reading": reading, "coding": coding, "everything": everything}


def opened(
    root: Path,
    *,
    preset: str = "coding",
    unattended: str = "ask",
    block: Sequence[str] = (),
    excluded: Sequence[str] = (),
    runner: str = "",
) -> Toolbox:
    """The tools of a folder under a policy put together from words."""
    if preset not in MAKERS:
        raise UsageError(f"No preset {preset!r}: there are {', '.join(get_args(Preset))}.")
    if unattended not in get_args(Verdict):
        raise UsageError(f"{unattended!r} is no answer: say {', '.join(get_args(Verdict))}.")
    if not root.is_dir():
        raise UsageError(f"{root} is no folder.")
    answer: Verdict = unattended  # type: ignore[assignment]
    policy = replace(Policy(), unattended=answer, block=tuple(block), excluded=tuple(excluded))
    if preset == "reading":  # which runs nothing
        return reading(root, policy=policy)
    return MAKERS[preset](root, policy=policy, runner=runner)
