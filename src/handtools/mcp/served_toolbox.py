"""The part of a local or remote toolbox's interface that an MCP server needs, and the presets of tools."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, cast, get_args

from handtools.configuration import load_configuration
from handtools.configuration.schema import PresetLiteral
from handtools.core.approval import Approver, Reply
from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.core.errors import UsageError
from handtools.core.events import EventListener
from handtools.core.result import Result
from handtools.mcp.elicitation_and_sampling import sample_model
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Verdict
from handtools.toolbox import Toolbox, ToolDefinition, coding, everything, reading

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


class ServedToolbox(Protocol):
    """The toolbox interface that an MCP server needs. `Toolbox` and `RemoteToolbox` implement it."""

    @property
    def policy(self) -> Policy:
        """The policy of the toolbox. For a remote toolbox, only the restrictions added on this side."""
        ...

    async def call(self, tool_call: Call, *, reply: Reply | None = None) -> Result[Any]:
        """Run a call, or return the result recorded under its id. `reply` answers its approval request."""
        ...

    async def resume(self, call_id: str, reply: Reply) -> Result[Any]:
        """Reply to a pending call and return its result."""
        ...

    async def answer_from_elsewhere(self, call_id: str, *, only_if_watched: bool = False) -> Reply | None:
        """Wait for an answer from `watch` or `view`; None if neither is open or the call has ended."""
        ...

    def definitions(self) -> list[ToolDefinition]:
        """The definitions of the available tools."""
        ...

    def listen(self, listener: EventListener) -> None:
        """Add a listener for all later call events."""
        ...

    def under(self, policy: Policy, *, approver: Approver | None = None) -> Self:
        """The same tools under another policy."""
        ...

    def look_ahead(self) -> None:
        """Start preparing for the first command in the background."""
        ...

    async def aclose(self) -> None:
        """Release all resources."""
        ...
