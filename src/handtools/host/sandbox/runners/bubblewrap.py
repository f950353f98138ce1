"""The bubblewrap runner: a command in its own namespaces sees only the workspace and system programs."""

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

from handtools.core.commands import CommandNetwork
from handtools.core.errors import HostError
from handtools.host import programs
from handtools.host.files.git_repository import passed_on_git_config
from handtools.host.sandbox.launch import Launch, Mount, SessionFolders
from handtools.host.sandbox.policy_paths import PolicyPathFinder
from handtools.host.sandbox.runners import bubblewrap_args as profile
from handtools.host.sandbox.runners import hidden_paths as hidden
from handtools.host.sandbox.runners import seccomp
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths, TmpfsSizes
from handtools.host.sandbox.runners.default_user_and_limits import (
    user_can_reach,
    with_default_limits,
    workspace_owner,
)
from handtools.host.sandbox.runners.hidden_paths import with_mask_layer
from handtools.host.workspace_folders import shown_folders, workspace_folders

_MIN_VERSION = (0, 8)
_PROGRAM_NAME = "bwrap"
_PROBE_BOUNDS = programs.ProgramLimits(seconds=10.0)
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_CAP_SYS_ADMIN = 21
_NOT_KEPT = (
    "$HOME and /tmp are empty and not kept: the user that runs commands can't access the session's folders."
)
_MAX_MASKS = 256
"""The maximum number of paths masked with mounts; bubblewrap gets slow with more."""


class BubblewrapRunner:
    """Confines commands with bubblewrap: namespaces, read-only system, no capabilities, seccomp filter."""

    name = "bubblewrap"
    boundary = (
        "The kernel shows it only the workspace and read-only programs: no other files, processes or "
        "sockets, and no network unless allowed."
    )
    confined = True
    keeps_scratch = True
    can_mount_overlay = True
    session_network_modes: frozenset[CommandNetwork] = frozenset({"off", "listed"})

    def __init__(
        self,
        root: str | os.PathLike[str] = "",
        *,
        sizes: TmpfsSizes | None = None,
        readable: Iterable[str] = (),
    ) -> None:
        """`root` is the workspace: a `bwrap` in it is never used."""
        self._root = root
        self._sizes = sizes or TmpfsSizes()
        self._readable = tuple(readable)
        self._finders = PolicyPathFinder()

    def unavailable_reason(self) -> str:
        """Return why bubblewrap does not work on this machine; empty if it does."""
        return self._problem

    def confine(self, launch: Launch) -> Launch:
        """Return the launch wrapped in `bwrap`.

        The caller must close the added fds: see `confined_launch`.
        """
        for folder in workspace_folders(launch.root).values():
            if folder == "/" or any(Path(tree).is_relative_to(folder) for tree in ("/usr", "/etc")):
                raise HostError(f"{folder} can't be a workspace in a sandbox: it contains system folders.")
        tops = [folder for _, folder in shown_folders(launch.root)]
        user = launch.user or workspace_owner(launch.root)
        covered = self._finders.covered(
            launch.root,
            launch.private_globs,
            launch.read_only_globs,
            launch.is_open,
            writes_apart=bool(launch.overlays),
        )
        users_home = profile.private_home(launch)
        launch, scratch = with_reachable_scratch(launch, user)
        private = hidden.private_masks(launch.root, covered.hidden)
        if covered.alarm is not None:
            covered.alarm.set_hidden((*private.files, *private.folders))
        made: list[int] = []
        try:
            if launch.overlays and len(private.files) + len(private.folders) > _MAX_MASKS:
                launch, private = _with_mask_layers(launch, private)
            kept = hidden.read_only_paths(launch, covered.read_only)
            readable = outermost(
                path
                for path in (*profile.toolchain_folders(users_home), *self._readable, *launch.readable)
                if not any(Path(top).is_relative_to(path) for top in tops)
                and user_can_reach(path, user)
                and profile.can_mount_at(path, scratch)
            )
            hide, notes = self._masks(launch, private, readable, as_root=os.geteuid() == 0 and user is None)
            home = profile.scratch_home(launch, readable) if scratch else users_home
            made.append(_seccomp_fd(countable=launch.limits.memory_bytes is not None))
            made.append(_file_fd(passed_on_git_config(os.path.expanduser("~")).encode()))
            argv = [
                *(_bwrap_path(launch.root), *profile.namespace_args(launch), "--seccomp", str(made[0])),
                *profile.system_args(
                    launch, home=home, sizes=self._sizes, readable=readable, session_folders=scratch
                ),
                *profile.git_config_mount_args(made[1]),
                *profile.workspace_args(launch),
                *profile.read_only_args(
                    (path, place)
                    for path in kept
                    for place in hidden.with_aliases([path], launch.root)
                    if profile.can_mount_at(place, scratch)
                ),
                *profile.mask_args(hide),
                *profile.remount_read_only_args(launch.cwd),
                *("--", *_terminal_args(launch), *launch.argv),
            ]
        except OSError as error:
            for fd in made:
                os.close(fd)
            raise HostError(f"Can't prepare the sandbox: {error.strerror}.") from error
        return replace(
            launch,
            argv=tuple(argv),
            env={
                "GIT_CONFIG_SYSTEM": profile.SANDBOX_GIT_CONFIG_PATH,
                **profile.sandbox_environment(
                    launch.env,
                    home=home,
                    root_inside=os.geteuid() == 0 and user is None,
                    users_home=users_home,
                ),
            },
            pass_fds=(*launch.pass_fds, *made),
            controls_terminal=False,
            user=user,
            limits=with_default_limits(launch.limits),
            alone=True,
            places=profile.tmpfs_folders(home, scratch),
            private_file_alarm=covered.alarm,
            notes=(*launch.notes, *notes),
        )

    def _masks(
        self, launch: Launch, masks: MaskedPaths, readable: Iterable[str], *, as_root: bool
    ) -> tuple[MaskedPaths, tuple[str, ...]]:
        private, notes = hidden.limit_masks(masks, launch.root, most=_MAX_MASKS)
        # A Unix socket can't be connected to through an overlay.
        shown = readable if launch.overlays else (*workspace_folders(launch.root).values(), *readable)
        sockets = hidden.visible_sockets(*shown)
        system = hidden.system_secrets() if as_root else MaskedPaths()
        files = (*hidden.with_aliases((*private.files, *sockets), launch.root), *system.files)
        folders = (*hidden.with_aliases(private.folders, launch.root), *system.folders)
        return MaskedPaths(tuple(dict.fromkeys(files)), folders), notes

    @cached_property
    def _problem(self) -> str:
        program = programs.find_program(_PROGRAM_NAME, self._root)
        if program is None:
            return "bubblewrap (bwrap) is not installed."
        if not seccomp.architecture_known():
            return f"There is no seccomp filter for {seccomp.machine_architecture()}."
        try:
            return self._probed(program)
        except (OSError, programs.ProgramTimeout, HostError) as error:
            return f"Can't run bwrap: {error}"

    def _probed(self, program: programs.Program) -> str:
        """Run `true` in bubblewrap once as a test; returns why it failed, or ""."""
        said = programs.run_program(program, ["--version"], _PROBE_BOUNDS).output.decode()
        version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
        if version < _MIN_VERSION:
            return f"bwrap is {said.split()[-1] if said else 'broken'}; 0.8 or newer is needed."
        with tempfile.TemporaryDirectory() as folder:
            empty_launch = Launch(
                argv=("true",), env={"PATH": os.defpath}, cwd=folder, root=os.path.realpath(folder)
            )
            ready = self.confine(empty_launch)
            try:
                done = programs.run_program(
                    program, ready.argv[1:], _PROBE_BOUNDS, env=ready.env, pass_fds=ready.pass_fds
                )
            finally:
                for fd in ready.pass_fds:
                    os.close(fd)
        if done.code:
            said = done.errors.decode(errors="replace").strip().removeprefix("bwrap: ")
            return f"bwrap can't confine here: {said or done.code}"
        return ""


def _with_mask_layers(launch: Launch, masks: MaskedPaths) -> tuple[Launch, MaskedPaths]:
    """Return the launch with a layer in each overlay that hides private paths, and the remaining masks.

    A mask layer can't hide the overlay's own root, so a workspace folder that is entirely private needs a
    mask.
    """
    whole = tuple(path for path in masks.folders if path in {each.lower for each in launch.overlays})
    for overlay in launch.overlays:
        below = [
            path
            for path in (*masks.files, *masks.folders)
            if path.startswith(f"{overlay.lower.rstrip('/')}/")
        ]
        launch = with_mask_layer(launch, overlay, below) if below else launch
    return launch, MaskedPaths((), whole)


def outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not below another one."""
    every = sorted(dict.fromkeys(map(os.path.normpath, paths)))
    found: list[str] = []
    for path in every:
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def with_reachable_scratch(
    launch: Launch, user: tuple[int, int] | None
) -> tuple[Launch, SessionFolders | None]:
    """Return the launch, and the session's folders at paths that the user running bubblewrap can reach.

    Another user can't access our state folder. Then root first mounts the folders elsewhere, for this
    launch only.
    """
    scratch = launch.session_folders
    if scratch is None or user_can_reach(scratch.home, user):
        return launch, scratch
    place = _unused_folder(launch)
    if not place or not _can_mount():
        return replace(launch, session_folders=None, notes=(*launch.notes, _NOT_KEPT)), None
    private = () if launch.unshare & _CLONE_NEWNS else (Mount("none", "/", flags=_MS_REC | _MS_PRIVATE),)
    launch = replace(
        launch,
        unshare=launch.unshare | _CLONE_NEWNS,
        mounts=(*private, *launch.mounts, Mount(scratch.base, place, flags=_MS_BIND)),
    )
    home, temporary, caches = (
        place + path.removeprefix(scratch.base)
        for path in (scratch.home, scratch.temporary, scratch.caches)
    )
    return launch, replace(scratch, base=place, home=home, temporary=temporary, caches=caches)


def _unused_folder(launch: Launch) -> str:
    """Return a standard system folder below which the launch mounts nothing; empty if there is none."""
    tops = (folder for _, folder in shown_folders(launch.root))
    shown = (*tops, *launch.readable, *launch.writable)
    for folder in ("/mnt", "/media", "/srv", "/sys"):
        if os.path.isdir(folder) and not any(Path(path).is_relative_to(folder) for path in shown):
            return folder
    return ""


@cache
def _can_mount() -> bool:
    """Whether we have CAP_SYS_ADMIN, which root in a container may lack."""
    found = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> _CAP_SYS_ADMIN & 1)


@cache
def _bwrap_path(root: str) -> str:
    """Return the real path of `bwrap`, outside the workspace, so that no symlink to it can be changed."""
    found = programs.find_program(_PROGRAM_NAME, root)
    if found is None:
        raise HostError("bubblewrap (bwrap) is not installed outside the workspace.")
    return found.file


def _terminal_args(launch: Launch) -> tuple[str, ...]:
    """Return `setsid` arguments that give the command its controlling terminal in a new session.

    Ctrl-C signals the terminal's session: if bubblewrap were in it, it would exit and kill the command
    before the command could clean up.
    """
    if launch.terminal is None:
        return ()
    found = programs.find_program("setsid", launch.root)
    if found is None:
        raise HostError("A terminal needs setsid, which is not installed. It is part of util-linux.")
    return found.name, "-c"


@cache
def _seccomp_program(*, countable: bool) -> bytes:
    rules = seccomp.syscall_rules(sockets="own", namespaces="own", countable=countable)
    return seccomp.assemble_filter(rules, architecture=seccomp.machine_architecture())


def _seccomp_fd(*, countable: bool) -> int:
    """Return an fd from which bubblewrap reads the seccomp filter."""
    return _file_fd(_seccomp_program(countable=countable))


def _file_fd(data: bytes) -> int:
    with programs.anonymous_file() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())
