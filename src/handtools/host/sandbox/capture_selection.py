"""Choose how a command's file changes are captured: with an overlay if possible, otherwise by scanning.

In a workspace of several folders, each folder has its own capture and the results are combined.
"""

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from handtools.core.changes import change_apply_order
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.change_capture import Capture, CapturedChanges, CommandCapture
from handtools.host.sandbox.launch import Launch, Overlay
from handtools.host.sandbox.overlay.overlay_capture import OverlayCapture, overlay_problem
from handtools.host.sandbox.passed_probes import problem_unless_passed
from handtools.host.sandbox.scan_capture import ScanCapture
from handtools.host.workspace_folders import workspace_folders


class BestCapture:
    """Captures changes with overlayfs if it can be mounted (tested at first use), otherwise by scanning."""

    def __init__(self, root: str | Path, backups: FolderBackups) -> None:
        self._folders = workspace_folders(root)
        self._backups = backups

    @cached_property
    def problem(self) -> str:
        """Why overlayfs can't be used for this workspace; empty if it can."""
        return next(filter(None, map(self._problem_of_folder, self._folders.values())), "")

    def _problem_of_folder(self, folder: str) -> str:
        subject: list[object] = ["overlay"]
        for place in (folder, self._backups.folder):
            subject.append(os.fspath(place))
            with suppress(FileNotFoundError):
                found = os.stat(place)
                subject += [found.st_dev, found.st_ino]
        return problem_unless_passed(lambda: overlay_problem(folder, self._backups), *subject)

    @property
    def has_isolated_writes(self) -> bool:
        """Whether a command's writes go to a separate layer: true with overlayfs."""
        return not self.problem

    @cached_property
    def _overlay_capture(self) -> Capture:
        return _combined_capture(
            [OverlayCapture(folder, self._backups, name=name) for name, folder in self._folders.items()]
        )

    @cached_property
    def _scan_capture(self) -> Capture:
        return _combined_capture(
            [ScanCapture(folder, self._backups, name=name) for name, folder in self._folders.items()]
        )

    def begin(self, launch: Launch, *, in_place: bool) -> CommandCapture:
        chosen = self._scan_capture if in_place or self.problem else self._overlay_capture
        return chosen.begin(launch, in_place=in_place)

    def close(self) -> None:
        """Delete the unused layers that were kept for the next commands."""
        for name in ("_overlay_capture", "_scan_capture"):
            if name in self.__dict__:
                self.__dict__[name].close()


def _combined_capture(captures: list[Capture]) -> Capture:
    return captures[0] if len(captures) == 1 else CombinedCapture(tuple(captures))


@dataclass(frozen=True, slots=True)
class CombinedCapture:
    """Captures changes in several folders, with one capture per folder."""

    captures: tuple[Capture, ...]

    @property
    def has_isolated_writes(self) -> bool:
        """Whether writes to every folder go to a separate layer."""
        return all(each.has_isolated_writes for each in self.captures)

    def begin(self, launch: Launch, *, in_place: bool) -> "CombinedCommandCapture":
        captures: list[CommandCapture] = []
        with ExitStack() as undone:
            for each in self.captures:
                captures.append(each.begin(launch, in_place=in_place))
                undone.callback(captures[-1].discard)
            undone.pop_all()
        return CombinedCommandCapture(tuple(captures))

    def close(self) -> None:
        for each in self.captures:
            each.close()


@dataclass(frozen=True, slots=True)
class CombinedCommandCapture:
    """The capture of one command in several folders."""

    parts: tuple[CommandCapture, ...]

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        return tuple(overlay for part in self.parts for overlay in part.overlays)

    def finish(self) -> CapturedChanges:
        """Return the command's file changes in all folders as one list."""
        every = [part.finish() for part in self.parts]
        if discarded := next((each.discarded for each in every if each.discarded), ""):
            return CapturedChanges((), every[0].coverage, discarded=discarded)
        changes = [change for each in every for change in each.changes or ()]
        return CapturedChanges(
            tuple(sorted(changes, key=change_apply_order)),
            every[0].coverage,
            tuple(path for each in every for path in each.omitted),
            tuple(dict.fromkeys(note for each in every for note in each.notes)),
        )

    def discard(self) -> None:
        for part in self.parts:
            part.discard()
