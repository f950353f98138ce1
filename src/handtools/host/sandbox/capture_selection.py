"""Picks the best capture that works here: an overlay, else a scan before and after; and says why."""

from functools import cached_property
from pathlib import Path

from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.change_capture import Capture, CommandCapture
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.overlay.capture import OverlayCapture, overlay_problem
from handtools.host.sandbox.scan_capture import ScanCapture


class BestCapture:
    """Found out when the first command runs."""

    def __init__(self, root: str | Path, vault: FolderBackups) -> None:
        self._root = root
        self._vault = vault

    @cached_property
    def problem(self) -> str:
        """Why there are no layers here; empty when there are."""
        return overlay_problem(self._root, self._vault)

    @property
    def apart(self) -> bool:
        """With layers."""
        return not self.problem

    @cached_property
    def _layers(self) -> Capture:
        return OverlayCapture(self._root, self._vault)

    @cached_property
    def _looking(self) -> Capture:
        return ScanCapture(self._root, self._vault)

    def begin(self, launch: Launch, name: str) -> CommandCapture:
        """Make ready for a command."""
        chosen = self._looking if launch.in_place or self.problem else self._layers
        return chosen.begin(launch, name)

    def close(self) -> None:
        """Let go of what is kept for the next command."""
        for name in ("_layers", "_looking"):
            if name in self.__dict__:
                self.__dict__[name].close()
