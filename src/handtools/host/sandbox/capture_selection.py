"""Choose how a command's file changes are captured: by an overlay where it works, else by scans."""

from functools import cached_property
from pathlib import Path

from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.change_capture import Capture, CommandCapture
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.overlay.capture import OverlayCapture, overlay_problem
from handtools.host.sandbox.scan_capture import ScanCapture


class BestCapture:
    """Captures changes by overlayfs where it can be mounted, else by scanning; found out at the first command."""

    def __init__(self, root: str | Path, vault: FolderBackups) -> None:
        self._root = root
        self._vault = vault

    @cached_property
    def problem(self) -> str:
        """Why overlayfs can't be used for this workspace; empty when it can."""
        return overlay_problem(self._root, self._vault)

    @property
    def apart(self) -> bool:
        """Whether a command's writes are kept apart from the workspace, which is so with overlayfs."""
        return not self.problem

    @cached_property
    def _layers(self) -> Capture:
        return OverlayCapture(self._root, self._vault)

    @cached_property
    def _looking(self) -> Capture:
        return ScanCapture(self._root, self._vault)

    def begin(self, launch: Launch, name: str) -> CommandCapture:
        """Prepare to capture the changes of one command, by an overlay or a scan."""
        chosen = self._looking if launch.in_place or self.problem else self._layers
        return chosen.begin(launch, name)

    def close(self) -> None:
        """Delete the layers that are kept for the next command."""
        for name in ("_layers", "_looking"):
            if name in self.__dict__:
                self.__dict__[name].close()
