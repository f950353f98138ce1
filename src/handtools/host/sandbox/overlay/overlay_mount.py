"""Mount overlays: the options that all of ours have, and mounts that stay, as for the workspaces of a fleet."""

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

MS_NODEV, MS_NOSUID, MS_RDONLY = 0x4, 0x2, 0x1
_MNT_DETACH = 2
MOST_OPTION_BYTES = 4095
"""The kernel takes one page of options."""
# A renamed folder is copied and a copied file is whole: so the layer can be read without the one below.
_SELF_CONTAINED_OPTIONS = ("redirect_dir=off", "metacopy=off", "index=off", "xino=off")


def overlay_options(lowers: Sequence[str], upper: str = "", work: str = "", *, as_root: bool) -> str:
    """The options of an overlay over folders, the topmost first; without `upper` it can't be written to.

    Without root, its marks are kept in `user.` extended attributes.
    """
    words = [f"lowerdir={':'.join(map(_escaped_path, lowers))}"]
    if upper:
        words += [f"upperdir={_escaped_path(upper)}", f"workdir={_escaped_path(work)}"]
    words += _SELF_CONTAINED_OPTIONS if as_root else ("userxattr",)
    # Without the last word the kernel writes out the whole file system below, everybody's, when the layer goes.
    return ",".join([*words, *(["volatile"] if upper else [])])


def _escaped_path(path: str) -> str:
    for special in ("\\", ",", ":"):
        path = path.replace(special, f"\\{special}")
    return path


def mount_overlay(target: str | Path, lowers: Sequence[str], upper: str = "", work: str = "") -> None:
    """Mount an overlay where all processes see it, until `unmount`; raises `OSError`. Needs root."""
    options = overlay_options(lowers, upper, work, as_root=True).encode()
    if len(options) > MOST_OPTION_BYTES:
        raise OSError(f"{len(lowers)} layers with paths this long are more than the kernel takes.")
    flags = MS_NODEV | MS_NOSUID | (0 if upper else MS_RDONLY)
    mount, _ = _calls()
    if mount(b"overlay", os.fsencode(target), b"overlay", flags, options):
        raise _last_error(target)


def is_mounted(target: str | Path) -> bool:
    """Whether something is mounted at a folder; raises `OSError` where that can't be found out."""
    try:
        here, above = os.lstat(target), os.lstat(os.path.join(target, os.pardir))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (here.st_dev, here.st_ino) == (above.st_dev, above.st_ino) or here.st_dev != above.st_dev


def unmount(target: str | Path) -> None:
    """Take a mount away at once; who still has files of it open keeps them. No error when nothing is mounted."""
    if is_mounted(target):
        _, umount = _calls()
        if umount(os.fsencode(target), _MNT_DETACH):
            raise _last_error(target)


def overlay_mount_problem(folder: str | Path) -> str:
    """Why overlays can't be mounted from layers below a folder; empty when they can."""
    if not sys.platform.startswith("linux"):
        return "Layers need Linux."
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
        return f"A layer can't be mounted here: {error.strerror or error}."
    return ""


@functools.cache
def _calls() -> tuple[Callable[..., int], Callable[..., int]]:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    text, number = ctypes.c_char_p, ctypes.c_ulong
    mount, umount = library["mount"], library["umount2"]
    mount.argtypes, umount.argtypes = (text, text, text, number, text), (text, ctypes.c_int)
    return mount, umount


def _last_error(target: str | Path) -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), os.fspath(target))
