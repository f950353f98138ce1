"""An overlay layer of whiteouts that hides very many private paths from a command.

A mount over each path would work too, but bubblewrap scans all mounts for every mount it makes. In the
layer, each path is a whiteout. If a command writes to such a path, that is checked as a change to the
private file.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from handtools.host.files.backups import MASK_LAYER_NAME
from handtools.host.sandbox.launch import Launch, Overlay
from handtools.host.sandbox.overlay.overlay_capture import overlay_mount_options

_WHITEOUT = os.makedev(0, 0)


def with_mask_layer(launch: Launch, overlay: Overlay, paths: Sequence[str]) -> Launch:
    """Return the launch with a middle layer in its overlay that hides these workspace paths."""
    as_root = os.geteuid() == 0
    layer = _Layer(Path(overlay.upper).with_name(MASK_LAYER_NAME), overlay.lower)
    for path in paths:
        os.mknod(layer.prepare_mask_path(path), stat.S_IFCHR, _WHITEOUT)
    layer.copy_folder_metadata()
    hiding = replace(overlay, masks=os.fspath(layer.top))
    before, after = (overlay_mount_options(each, as_root=as_root) for each in (overlay, hiding))
    mounts = tuple(
        replace(mount, options=after) if mount.options == before else mount for mount in launch.mounts
    )
    note = f"{len(paths):,} private paths are hidden from it, as if they did not exist."
    overlays = tuple(hiding if each == overlay else each for each in launch.overlays)
    return replace(launch, overlays=overlays, mounts=mounts, notes=(*launch.notes, note))


class _Layer:
    """Builds the mask layer: copies of the workspace folders that contain paths to hide."""

    def __init__(self, top: Path, root: str) -> None:
        self.top = top
        self._root = root
        self._made: dict[Path, os.stat_result] = {}
        self._folder(top)

    def prepare_mask_path(self, path: str) -> Path:
        """Create the parent folders in the layer for a workspace path; returns its path in the layer."""
        place = self.top / os.path.relpath(path, self._root)
        for above in reversed(place.relative_to(self.top).parents):
            if self.top / above not in self._made:
                self._folder(self.top / above)
        return place

    def copy_folder_metadata(self) -> None:
        """Give the layer's folders the owners, modes and times of the workspace folders."""
        for folder, facts in self._made.items():
            if os.geteuid() == 0:
                os.chown(folder, facts.st_uid, facts.st_gid)
            folder.chmod(stat.S_IMODE(facts.st_mode))
            os.utime(folder, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def _folder(self, place: Path) -> None:
        self._made[place] = os.stat(os.path.join(self._root, place.relative_to(self.top)))
        place.mkdir(0o700)
