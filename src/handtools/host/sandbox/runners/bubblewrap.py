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
from handtools.host.files.change_detection import state_of
from handtools.host.files.git_repository import passed_on_git_config
from handtools.host.sandbox.default_limits import with_default_limits
from handtools.host.sandbox.launch import (
    NO_RESOURCES,
    ConfinedLaunch,
    Launch,
    LaunchResources,
    Mount,
    SessionFolders,
)
from handtools.host.sandbox.passed_probes import problem_unless_passed
from handtools.host.sandbox.policy_paths import PolicyPathFinder
from handtools.host.sandbox.runners import bubblewrap_args as profile
from handtools.host.sandbox.runners import hidden_paths as hidden
from handtools.host.sandbox.runners import seccomp
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths, TmpfsSizes
from handtools.host.sandbox.runners.command_user import user_can_reach, workspace_owner
from handtools.host.sandbox.runners.hidden_paths import with_mask_layer
from handtools.host.workspace_folders import is_at_or_below, shown_folders, workspace_folders

_MIN_VERSION = (0, 8)
_PROGRAM_NAME = "bwrap"
_PROBE_BOUNDS = programs.ProgramLimits(seconds=10.0)
_MS_BIND = 0x1000
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

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return the launch wrapped in `bwrap`."""
        for folder in workspace_folders(launch.root).values():
            if any(is_at_or_below(tree, folder) for tree in ("/usr", "/etc")):
                raise HostError(f"{folder} can't be a workspace in a sandbox: it contains system folders.")
        tops = [folder for _, folder in shown_folders(launch.root)]
        user = workspace_owner(launch.root)
        as_root = os.geteuid() == 0 and user is None
        writes_apart = bool(resources.overlays)
        covered = self._finders.covered(
            launch.root,
            launch.private_globs,
            launch.read_only_globs,
            launch.is_open,
            writes_apart=writes_apart,
        )
        users_home = profile.private_home(launch)
        scratch, mounts, notes = reachable_scratch(launch, resources.session_folders, user)
        private = hidden.private_masks(launch.root, covered.hidden)
        if covered.alarm is not None:
            covered.alarm.set_hidden((*private.files, *private.folders))
        made: list[int] = []
        try:
            if writes_apart and len(private.files) + len(private.folders) > _MAX_MASKS:
                resources, private, hiding = _with_mask_layers(resources, private)
                notes += hiding
            kept = hidden.read_only_paths(launch, covered.read_only, writes_apart=writes_apart)
            readable = outermost(
                path
                for path in map(
                    os.path.normpath,
                    (*profile.toolchain_folders(users_home), *self._readable, *launch.readable),
                )
                if not any(is_at_or_below(top, path) for top in tops)
                and user_can_reach(path, user)
                and profile.can_mount_at(path, scratch)
            )
            private, limiting = hidden.limit_masks(private, launch.root, most=_MAX_MASKS)
            notes += limiting
            # Sockets seen through an overlay need no masks: connecting to them fails.
            shown = readable if writes_apart else (*workspace_folders(launch.root).values(), *readable)
            masks = _all_masks(launch.root, private, hidden.visible_sockets(*shown), as_root=as_root)
            home = profile.scratch_home(launch, readable) if scratch else users_home
            made.append(_seccomp_fd(countable=launch.limits.memory_bytes is not None))
            made.append(_file_fd(passed_on_git_config(os.path.expanduser("~")).encode()))
            # The session's network namespace is joined before bubblewrap starts.
            own_network = launch.network != "on" and not resources.namespaces
            argv = [
                *(_bwrap_path(launch.root), *profile.namespace_args(own_network=own_network)),
                *("--seccomp", str(made[0])),
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
                *profile.mask_args(masks),
                *profile.remount_read_only_args(launch.cwd),
                *("--", *_terminal_args(launch), *launch.argv),
            ]
        except OSError as error:
            for fd in made:
                os.close(fd)
            raise HostError(f"Can't prepare the sandbox: {error.strerror}.") from error
        return ConfinedLaunch(
            launch=launch,
            resources=replace(resources, session_folders=scratch),
            argv=tuple(argv),
            env={
                "GIT_CONFIG_SYSTEM": profile.SANDBOX_GIT_CONFIG_PATH,
                **profile.sandbox_environment(
                    launch.env, home=home, root_inside=as_root, users_home=users_home
                ),
            },
            limits=with_default_limits(launch.limits),
            runner_fds=tuple(made),
            controls_terminal=False,
            mounts=mounts,
            user=user,
            places=profile.tmpfs_folders(home, scratch),
            alone=True,
            private_file_alarm=covered.alarm,
            notes=notes,
        )

    @cached_property
    def _problem(self) -> str:
        program = programs.find_program(_PROGRAM_NAME, self._root)
        if program is None:
            return "bubblewrap (bwrap) is not installed."
        if not seccomp.architecture_known():
            return f"There is no seccomp filter for {seccomp.machine_architecture()}."
        try:
            state = state_of(os.stat(program.file))
            return problem_unless_passed(
                lambda: self._probe_failure(program), self.name, program.file, state, self._readable
            )
        except (OSError, programs.ProgramTimeout, HostError) as error:
            return f"Can't run bwrap: {error}"

    def _probe_failure(self, program: programs.Program) -> str:
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
                    program, ready.argv[1:], _PROBE_BOUNDS, env=ready.env, pass_fds=ready.runner_fds
                )
            finally:
                for fd in ready.runner_fds:
                    os.close(fd)
        if done.code:
            said = done.errors.decode(errors="replace").strip().removeprefix("bwrap: ")
            return f"bwrap can't confine here: {said or done.code}"
        return ""


def _with_mask_layers(
    resources: LaunchResources, masks: MaskedPaths
) -> tuple[LaunchResources, MaskedPaths, tuple[str, ...]]:
    """Add to each overlay a layer that hides its private paths; return the resources, masks still needed, notes.

    A mask layer can't hide the overlay's own root, so a workspace folder that is entirely private needs a
    mask.
    """
    whole = tuple(path for path in masks.folders if path in {each.lower for each in resources.overlays})
    overlays, notes = [], []
    for overlay in resources.overlays:
        below = [
            path
            for path in (*masks.files, *masks.folders)
            if path.startswith(f"{overlay.lower.rstrip('/')}/")
        ]
        overlays.append(with_mask_layer(overlay, below) if below else overlay)
        if below:
            notes.append(f"{len(below):,} private paths are hidden from it, as if they did not exist.")
    return replace(resources, overlays=tuple(overlays)), MaskedPaths((), whole), tuple(notes)


def _all_masks(
    root: str, private_masks: MaskedPaths, sockets: Iterable[str], *, as_root: bool
) -> MaskedPaths:
    """Return the masks of private paths and sockets under all their names, and of the system's secrets."""
    system = hidden.system_secrets() if as_root else MaskedPaths()
    files = (*hidden.with_aliases((*private_masks.files, *sockets), root), *system.files)
    folders = (*hidden.with_aliases(private_masks.folders, root), *system.folders)
    return MaskedPaths(tuple(dict.fromkeys(files)), folders)


def outermost(paths: Iterable[str]) -> list[str]:
    """Return only the paths that are not below another of the paths."""
    every = sorted(dict.fromkeys(map(os.path.normpath, paths)))
    found: list[str] = []
    for path in every:
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def reachable_scratch(
    launch: Launch, session_folders: SessionFolders | None, user: tuple[int, int] | None
) -> tuple[SessionFolders | None, tuple[Mount, ...], tuple[str, ...]]:
    """Return the session's folders where the user running bubblewrap can reach them, with mounts and notes.

    A user other than us can't access our state folder, so root first mounts the folders elsewhere, for this
    launch only. If that is impossible, the folders are None.
    """
    if session_folders is None or user_can_reach(session_folders.home, user):
        return session_folders, (), ()
    place = _unused_folder(launch)
    if not place or not _can_mount():
        return None, (), (_NOT_KEPT,)
    home, temporary, caches = (
        place + path.removeprefix(session_folders.base)
        for path in (session_folders.home, session_folders.temporary, session_folders.caches)
    )
    moved = replace(session_folders, base=place, home=home, temporary=temporary, caches=caches)
    return moved, (Mount(session_folders.base, place, flags=_MS_BIND),), ()


def _unused_folder(launch: Launch) -> str:
    """Return a standard system folder below which the launch mounts nothing; empty if there is none."""
    tops = (folder for _, folder in shown_folders(launch.root))
    shown = (*tops, *launch.readable, *launch.writable)
    for folder in ("/mnt", "/media", "/srv", "/sys"):
        if os.path.isdir(folder) and not any(is_at_or_below(path, folder) for path in shown):
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
