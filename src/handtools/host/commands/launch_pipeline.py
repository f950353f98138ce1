"""The stages around one command's launch (change capture, network, proxy, sandbox), and its result."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from handtools.core.call import Call
from handtools.core.commands import CommandExit, FinishedCommand, ProgressListener
from handtools.core.errors import HostError
from handtools.host.commands.restriction_notes import CommandConfinement, wall_notes
from handtools.host.commands.session_scratch import OpenScratch, SessionScratchFolders
from handtools.host.sandbox.change_capture import Capture, CapturedChanges, CommandCapture
from handtools.host.sandbox.launch import (
    ConfinedLaunch,
    Launch,
    LaunchResources,
    Runner,
    confined_launch,
)
from handtools.host.sandbox.network_proxy import with_network_proxy
from handtools.host.sandbox.published_ports import PublishedPorts
from handtools.host.sandbox.session_network_namespaces import SessionNetwork, SessionNetworks
from handtools.host.workspace_folders import path_in_workspace
from handtools.text.search.glob import any_covers
from handtools.text.terminal_emulator import decode_output, plain_output

DENIAL_SCAN_TAIL_BYTES = 16_000
"""How much of the end of the output is searched for errors caused by a sandbox restriction."""
MAX_NAMED_PATHS = 5


@dataclass(slots=True)
class LaunchPipeline:
    """Wraps one command's launch in change capture, the session's network, proxy and sandbox.

    `captured` and `notes` are set when the command has ended.
    """

    capture: Capture
    runner: Runner
    scratch: SessionScratchFolders
    networks: SessionNetworks
    call: Call
    show: ProgressListener
    captured: CapturedChanges = field(default=CapturedChanges((), "none"))
    notes: tuple[str, ...] = ()
    ports: PublishedPorts = field(default_factory=lambda: PublishedPorts(None))
    """The ports published for the command while it runs."""
    exposed: tuple[str, ...] = ()
    """Private paths that appeared while the command ran, so it could read them; set when it ends."""
    _captures: CommandCapture | None = None
    _launch: Launch | None = None

    @contextmanager
    def prepared_launch(self, launch: Launch) -> Iterator[ConfinedLaunch]:
        """Context manager: yields the launch set up with capture, network, proxy and sandbox.

        Sets `captured` and `notes` on exit. It blocks, so use it in a thread.
        """
        self._launch = launch
        self._captures = capturing = self.capture.begin(launch, in_place=not self.runner.can_mount_overlay)
        try:
            with (
                self._open_scratch(launch) as scratch,
                self._session_network(launch) as network,
                PublishedPorts(network) as self.ports,
                with_network_proxy(launch, network, self.show) as proxied,
                confined_launch(
                    self.runner,
                    proxied.launch,
                    LaunchResources(
                        overlays=capturing.overlays,
                        session_folders=scratch.folders,
                        namespaces=network.namespaces if network else (),
                    ),
                ) as confined,
            ):
                yield confined
                alarm = confined.private_file_alarm
                self.exposed = tuple(alarm.exposed_at_end) if alarm else ()
            if self.exposed:
                self.scratch.drop(self.call.session_key, self.runner.name)
            self.captured = _nothing_kept(self.exposed) if self.exposed else capturing.finish()
            self.notes = (*confined.notes, *proxied.notes(), *self.captured.notes, *scratch.notes)
            if not self.captured.changes:
                self.discard()
        except BaseException:
            self.discard()
            raise

    def _open_scratch(self, launch: Launch) -> AbstractContextManager[OpenScratch]:
        if not self.runner.keeps_scratch:
            return nullcontext(OpenScratch(None))
        return self.scratch.opened(launch, self.call.session_key, self.call.owner, self.runner.name)

    @contextmanager
    def _session_network(self, launch: Launch) -> Iterator[SessionNetwork | None]:
        """Context manager: yields the session network that the launch joins, or None if it joins none."""
        with ExitStack() as stack:
            network = None
            if launch.network in self.runner.session_network_modes:
                try:
                    network = stack.enter_context(self.networks.opened_network(self.call.session_key))
                except HostError:
                    # Without a session network, the command gets its own empty one, where no proxy listens.
                    if launch.network == "listed":
                        raise
            yield network

    def finished(self, command_exit: CommandExit, *, cwd: str = "", shell_jobs: int = 0) -> FinishedCommand:
        """Return the ended command with its captured changes, and with the notes of all stages.

        `shell_jobs` is how many jobs were running when the shell exited, as it reported. In a pid namespace,
        the kernel kills them before they can be counted from outside.
        """
        notes = []
        left = max(command_exit.left, shell_jobs)
        if left and command_exit.ended == "exited":
            many = "1 process was" if left == 1 else f"{left} processes were"
            notes = [f"{many} still running and killed with it; use background=true for long-running ones."]
        return FinishedCommand(
            exit=replace(
                command_exit,
                cwd=cwd,
                discarded=self.captured.discarded,
                notes=(*notes, *command_exit.notes, *self.notes, *self._restriction_notes(command_exit)),
            ),
            delta=self.captured.changes,
            coverage=self.captured.coverage,
            omitted=self.captured.omitted,
            discard=self.discard,
        )

    def _restriction_notes(self, command_exit: CommandExit) -> tuple[str, ...]:
        """Return notes for the model about sandbox restrictions that show in the command's output."""
        launch = self._launch
        if launch is None:
            return ()
        confinement = CommandConfinement(
            confined=self.runner.confined,
            network=launch.network,
            terminal=launch.terminal is not None,
            is_private=partial(_is_private, launch),
        )
        newest = (command_exit.output.tail or command_exit.output.head)[-DENIAL_SCAN_TAIL_BYTES:]
        text = plain_output(decode_output(newest, starts=False))
        return wall_notes(text, failed=command_exit.code != 0, confinement=confinement)

    def discard(self) -> None:
        """Delete the captured changes, once they have been applied or rejected."""
        capturing, self._captures = self._captures, None
        if capturing is not None:
            capturing.discard()


def _nothing_kept(exposed: Sequence[str]) -> CapturedChanges:
    """Return no changes, with a note that they were discarded because private paths were exposed."""
    names = ", ".join(f"`{path}`" for path in exposed[:MAX_NAMED_PATHS])
    happened = f"private files appeared ({names}) and it could have read them"
    if "**" in exposed:
        happened = "too many files changed at once to check whether it could read a private one"
    elif len(exposed) == 1:
        happened = f"the private file {names} appeared and it could have read it"
    note = (
        f"While the command ran, {happened}. Its later output, its changes, and the session's $HOME "
        "and /tmp were discarded. Run it again: new commands can't see private files."
    )
    return CapturedChanges((), "overlay", notes=(note,))


def _is_private(launch: Launch, path: str) -> bool:
    """Whether a path in an error message is in the workspace and hidden from the command."""
    for folder in dict.fromkeys((launch.cwd, launch.root)):
        there = os.path.normpath(os.path.join(folder, path))
        inside = path_in_workspace(there, launch.root)
        if inside in {None, "."} or not os.path.lexists(there):
            continue
        if any_covers(launch.private_globs, str(inside)):
            return True
    return False
