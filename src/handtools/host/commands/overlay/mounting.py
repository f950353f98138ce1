"""Mounting: the workspace with a layer over it, in a mount namespace that ends with the command.

Nothing is ever mounted where others can see it, so there is nothing to unmount, also after a crash.
"""

import os
from dataclasses import replace

from handtools.host.commands.launching import Launch, Mount, Overlay

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_NO_DEVICES, _NO_SETUID = 0x4, 0x2
# A renamed folder is copied and a copied file is whole: so the layer can be read without the one below.
_PLAIN = ("redirect_dir=off", "metacopy=off", "index=off", "xino=off")


def mounted(launch: Launch, overlay: Overlay) -> Launch:
    """The launch with its writes going into the layer."""
    as_root = os.geteuid() == 0
    private = Mount("none", "/", flags=_RECURSIVE | _PRIVATE)
    layer = Mount(
        "overlay",
        overlay.mounted_at,
        "overlay",
        _NO_DEVICES | _NO_SETUID,
        options(overlay, as_root=as_root),
    )
    return replace(
        launch,
        overlay=overlay,
        unshare=launch.unshare | NEW_MOUNTS | (0 if as_root else NEW_USER),
        identity=launch.identity if as_root else (os.geteuid(), os.getegid()),
        mounts=(private, layer, *launch.mounts),
    )


def options(overlay: Overlay, *, as_root: bool) -> str:
    """The words of the mount; a user other than root keeps the layer's notes in attributes of their own."""
    lower = ":".join(_escaped(path) for path in (overlay.masks, overlay.lower) if path)
    words = [
        f"lowerdir={lower}",
        f"upperdir={_escaped(overlay.upper)}",
        f"workdir={_escaped(overlay.work)}",
    ]
    # Without the last word the kernel writes out the whole file system below, everybody's, when the layer goes.
    return ",".join([*words, *(_PLAIN if as_root else ("userxattr",)), "volatile"])


def _escaped(path: str) -> str:
    for special in ("\\", ",", ":"):
        path = path.replace(special, f"\\{special}")
    return path
