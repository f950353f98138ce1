"""The best capture that works here: layers; else looking before and after; and it says which."""

from functools import cached_property
from pathlib import Path

from handtools.host.commands.capturing import Capture, Capturing
from handtools.host.commands.launching import Launch
from handtools.host.commands.overlay.preparing import OverlayCapture, problem
from handtools.host.commands.scan.scanning import ScanCapture
from handtools.host.vault import Vault


class BestCapture:
    """Found out when the first command runs."""

    def __init__(self, root: str | Path, vault: Vault) -> None:
        self._root = root
        self._vault = vault

    @cached_property
    def problem(self) -> str:
        """Why there are no layers here; empty when there are."""
        return problem(self._root, self._vault)

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

    def begin(self, launch: Launch, name: str) -> Capturing:
        """Make ready for a command."""
        chosen = self._looking if launch.in_place or self.problem else self._layers
        return chosen.begin(launch, name)

    def close(self) -> None:
        """Let go of what is kept for the next command."""
        for name in ("_layers", "_looking"):
            if name in self.__dict__:
                self.__dict__[name].close()
