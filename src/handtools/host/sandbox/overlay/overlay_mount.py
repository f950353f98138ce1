"""Mount overlays: the options that we always use, and persistent mounts for a fleet's workspaces."""

import functools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from handtools.host.sandbox.launch import Mount, Overlay

MS_NODEV, MS_NOSUID, MS_RDONLY = 0x4, 0x2, 0x1
_MNT_DETACH, _MS_BIND = 2, 0x1000
_OCTAL = re.compile(rb"\\([0-7]{3})")
MAX_OPTION_BYTES = 4095
"""The kernel accepts one page of options."""
# With these, overlayfs copies renamed folders and changed files in full, so the layer can be read without
# the lower one.
_SELF_CONTAINED_OPTIONS = ("redirect_dir=off", "metacopy=off", "index=off", "xino=off")


def overlay_options(lowers: Sequence[str], upper: str = "", work: str = "", *, as_root: bool) -> str:
    """Return the mount options of an overlay over `lowers`, topmost first; read-only without `upper`.

    Without root, overlayfs stores its marks in `user.` extended attributes.
    """
    words = [f"lowerdir={':'.join(map(_escaped_path, lowers))}"]
    if upper:
        words += [f"upperdir={_escaped_path(upper)}", f"workdir={_escaped_path(work)}"]
    words += _SELF_CONTAINED_OPTIONS if as_root else ("userxattr",)
    # Without `volatile`, unmounting the overlay syncs the entire file system below, including others' data.
    return ",".join([*words, *(["volatile"] if upper else [])])


def overlay_mount(overlay: Overlay) -> Mount:
    """Return the mount of a command's overlay over a workspace folder."""
    lowers = [path for path in (overlay.masks, overlay.lower) if path]
    options = overlay_options(lowers, overlay.upper, overlay.work, as_root=os.geteuid() == 0)
    return Mount("overlay", overlay.mounted_at, "overlay", MS_NODEV | MS_NOSUID, options)


def _escaped_path(path: str) -> str:
    for special in ("\\", ",", ":"):
        path = path.replace(special, f"\\{special}")
    return path


def mount_overlay(target: str | Path, lowers: Sequence[str], upper: str = "", work: str = "") -> None:
    """Mount an overlay where all processes see it, until `unmount`. Needs root; raises `OSError`."""
    options = overlay_options(lowers, upper, work, as_root=True).encode()
    if len(options) > MAX_OPTION_BYTES:
        raise OSError(f"The paths of {len(lowers)} layers are too long for the kernel's mount options.")
    flags = MS_NODEV | MS_NOSUID | (0 if upper else MS_RDONLY)
    mount, _ = _libc_mount_functions()
    if mount(b"overlay", os.fsencode(target), b"overlay", flags, options):
        # The kernel doesn't report which folder is missing.
        folders = [os.fspath(target), *lowers, *filter(None, (upper, work))]
        raise _last_error(next((each for each in folders if not os.path.isdir(each)), target))


def is_mounted(target: str | Path) -> bool:
    """Whether something is mounted at a folder; raises `OSError` if that can't be determined."""
    try:
        here, above = os.lstat(target), os.lstat(os.path.join(target, os.pardir))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (here.st_dev, here.st_ino) == (above.st_dev, above.st_ino) or here.st_dev != above.st_dev


def unmount(target: str | Path) -> None:
    """Detach a mount immediately; its open files stay usable. Does nothing if nothing is mounted."""
    if is_mounted(target):
        _, umount = _libc_mount_functions()
        if umount(os.fsencode(target), _MNT_DETACH):
            raise _last_error(target)


def make_mount_point(folder: str | Path) -> bool:
    """Bind-mount a folder over itself, so that it can be unmounted with all mounts below it.

    Returns False if that fails, or if something is already mounted below it, which would be covered.
    """
    path = os.fspath(folder)
    mounts = _mounts()
    if _is_over_itself(path, mounts):
        return True
    if any(each.point.startswith(f"{path}/") for each in mounts):
        return False
    mount, umount = _libc_mount_functions()
    if mount(os.fsencode(path), os.fsencode(path), None, _MS_BIND, None):
        return False
    if not _is_over_itself(path, _mounts()):
        umount(os.fsencode(path), _MNT_DETACH)
        return False
    return True


def remove_mount_point(folder: str | Path) -> None:
    """Undo `make_mount_point`, unless something is still mounted below."""
    path, mounts = os.fspath(folder), _mounts()
    if _is_over_itself(path, mounts) and not any(each.point.startswith(f"{path}/") for each in mounts):
        _, umount = _libc_mount_functions()
        umount(os.fsencode(path), _MNT_DETACH)


class _MountEntry(NamedTuple):
    number: str
    parent: str
    device: str
    root: str
    """Which folder of its file system is mounted."""
    point: str


def _mounts() -> list[_MountEntry]:
    rows = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return [_MountEntry(*(_unescaped(word) for word in row.split()[:5])) for row in rows]


def _unescaped(word: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), word))


def _is_over_itself(path: str, mounts: Sequence[_MountEntry]) -> bool:
    """Whether the mount at a path shows the folder that it covers, as a bind mount over itself does."""
    top = next((each for each in reversed(mounts) if each.point == path), None)
    below = next((each for each in mounts if top is not None and each.number == top.parent), None)
    if top is None or below is None or top.device != below.device:
        return False
    return os.path.normpath(os.path.join(below.root, os.path.relpath(path, below.point))) == top.root


def overlay_mount_problem(folder: str | Path) -> str:
    """Return why overlays can't be mounted from layers below a folder; empty if they can."""
    if not sys.platform.startswith("linux"):
        return "Overlays need Linux."
    try:
        Path(folder).mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".probe-") as place:
            lower, upper, work, target = (
                Path(place, name) for name in ("lower", "upper", "work", "target")
            )
            for each in (lower, upper, work, target):
                each.mkdir()
            mount_overlay(target, [os.fspath(lower)], os.fspath(upper), os.fspath(work))
            unmount(target)
    except OSError as error:
        return f"Can't mount an overlay here: {error.strerror or error}."
    return ""


@functools.cache
def _libc_mount_functions() -> tuple[Callable[..., int], Callable[..., int]]:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    text, number = ctypes.c_char_p, ctypes.c_ulong
    mount, umount = library["mount"], library["umount2"]
    mount.argtypes, umount.argtypes = (text, text, text, number, text), (text, ctypes.c_int)
    return mount, umount


def _last_error(path: str | Path) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), os.fspath(path))
