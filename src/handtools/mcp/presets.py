"""Open a toolbox by preset name (`reading`, `coding`, `everything`), with CLI or token file options."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from handtools.configuration import load_configuration
from handtools.configuration.schema import PresetLiteral
from handtools.core.callbacks import Callbacks
from handtools.core.errors import UsageError
from handtools.mcp.elicitation_and_sampling import sample_model
from handtools.runtime.policy.rules import Verdict
from handtools.toolbox import Toolbox, coding, everything, reading

logger = logging.getLogger("handtools")
MAKERS_WITH_COMMANDS = {"coding": coding, "everything": everything}


def open_preset(
    root: Path,
    *,
    preset: str | None = None,
    policy: Path | None = None,
    unattended: str | None = None,
    block: Sequence[str] = (),
    excluded: Sequence[str] = (),
    runner: str = "",
    sampling: bool = False,
) -> Toolbox:
    """Open a preset's toolbox on a folder, with the user's configuration narrowed by the options.

    `preset` defaults to the configured one. Raises `UsageError` for an unknown preset or verdict, or a
    missing folder.
    """
    if preset is not None and preset not in get_args(PresetLiteral):
        raise UsageError(f"Unknown preset {preset!r}. Use one of: {', '.join(get_args(PresetLiteral))}.")
    if unattended is not None and unattended not in get_args(Verdict):
        raise UsageError(f"Unknown verdict {unattended!r}. Use one of: {', '.join(get_args(Verdict))}.")
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder.")
    found = load_configuration(root, policy)
    preset = preset or found.preset
    if sampling and preset != "everything":
        raise UsageError("MCP sampling needs `edit_agent`, which only the preset `everything` includes.")
    for sentence in found.ignored:
        logger.warning("%s", sentence)
    written = found.policy
    answer = cast("Verdict", unattended or written.unattended)
    narrowed = replace(
        written,
        unattended=answer,
        block=(*written.block, *block),
        excluded=(*written.excluded, *excluded),
    )
    if preset == "reading":  # runs no commands
        return reading(root, policy=narrowed, settings=found.settings)
    callbacks = Callbacks(model=sample_model if sampling else None)
    return MAKERS_WITH_COMMANDS[preset](
        root, policy=narrowed, runner=runner, settings=found.settings, callbacks=callbacks
    )
