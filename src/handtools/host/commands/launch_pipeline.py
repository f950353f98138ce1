"""The stages around one command's launch: change capture, network, proxy, sandbox, and how it exited."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from handtools.core.call import Call
from handtools.core.commands import CommandExit, CommandOutput, ProgressListener
from handtools.core.errors import HostError
from handtools.host.commands.restriction_notes import CommandConfinement, wall_notes
from handtools.host.commands.session_scratch import OpenScratch, SessionScratchFolders
from handtools.host.sandbox.change_capture import Capture, CapturedChanges, CommandCapture
from handtools.host.sandbox.launch import Launch, Runner
from handtools.host.sandbox.network_proxy import with_network_proxy
from handtools.host.sandbox.processes.output_buffer import OutputBuffer, OutputEnds
from handtools.host.sandbox.processes.running_process import ProcessResult
from handtools.host.sandbox.published_ports import PublishedPorts
from handtools.host.sandbox.runners.runner_selection import confined_launch
from handtools.host.sandbox.session_network import CLONE_NEWUSER, SessionNetwork, SessionNetworks
from handtools.host.workspace_folders import path_in_workspace
from handtools.text.search.glob import any_covers
from handtools.text.terminal_emulator import decode_output, plain_output

_EXCEEDED_NOTES = {
    "memory": "Killed: its processes exceeded the memory limit. Do less at once, or use fewer workers.",
    "bytes": "Killed: it wrote more to the workspace than allowed. Write less, or in several commands.",
    "files": "Killed: it created too many files in the workspace. Create fewer, or in several commands.",
    "scratch": "Killed: it wrote more to $HOME, /tmp or package caches than allowed. Delete what you don't "
    "need there.",
}


def command_exit_of(
    process_result: ProcessResult, name: str, cwd: str, notes: tuple[str, ...]
) -> CommandExit:
    """Build the `CommandExit` of a process result; `name` is the output file's name."""
    return CommandExit(
        code=process_result.code,
        signal=process_result.signal,
        ended=process_result.how,
        seconds=process_result.seconds,
        peak_bytes=process_result.peak_bytes,
        output=command_output_from_buffer(process_result.output, name),
        streams=tuple(_stream_output(each) for each in process_result.output_ends),
        cwd=cwd,
        notes=notes,
    )


def command_output_from_buffer(output_buffer: OutputBuffer, name: str) -> CommandOutput:
    """The output so far as a `CommandOutput`: beginning, end and totals."""
    head, tail = output_buffer.ends()
    return CommandOutput(
        head=head,
        tail=tail,
        bytes=output_buffer.bytes,
        lines=output_buffer.line_count,
        kept=name if output_buffer.has_output_file else "",
        dropped_bytes=output_buffer.dropped,
    )


def _stream_output(output_ends: OutputEnds) -> CommandOutput:
    head, tail = output_ends.ends()
    return CommandOutput(head=head, tail=tail, bytes=output_ends.bytes, lines=output_ends.line_count)


def exit_notes(process_result: ProcessResult, running: int = 0) -> tuple[str, ...]:
    """Notes for the model about how a command ended: limits, killed and surviving processes.

    `running` is the number of shell jobs it left running.
    """
    notes = []
    left = max(process_result.left, running)
    if left and process_result.how == "exited":
        many = "1 process was" if left == 1 else f"{left} processes were"
        notes.append(f"{many} still running and killed with it; use background=true for long-running ones.")
    if process_result.survivors:
        notes.append(
            f"{process_result.survivors} of its processes could not be killed: another user's, or stuck."
        )
    if process_result.over:
        notes.append(_EXCEEDED_NOTES[process_result.over])
    if process_result.starved:
        notes.append(
            "The kernel killed one of its processes (out of memory). Do less at once, or use fewer workers."
        )
    if process_result.output.fault:
        notes.append(f"The output could not be saved in full: {process_result.output.fault}.")
    return tuple(notes)


DENIAL_SCAN_TAIL_BYTES = 16_000
"""How much of the end of the output is searched for errors caused by a sandbox restriction."""
MAX_NAMED_PATHS = 5


@dataclass(slots=True)
class LaunchPipeline:
    """Wraps one command's launch in change capture, the session's network, proxy and sandbox.

    `delta` and `notes` are set when the command has ended.
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
    """Private paths that appeared while the command ran, so it could read them; set when it has ended."""
    _captures: CommandCapture | None = None
    _launch: Launch | None = None

    @contextmanager
    def prepared_launch(self, launch: Launch) -> Iterator[Launch]:
        """Context manager for the captured, proxied and confined launch; sets `delta` and `notes` on exit.

        Blocking: run it in a thread.
        """
        self._launch = launch
        captured = replace(launch, in_place=not self.runner.can_mount_overlay)
        self._captures = capturing = self.capture.begin(captured, self.call.id)
        try:
            with (
                self._open_scratch(capturing.launch) as scratch,
                self._joined(replace(capturing.launch, session_folders=scratch.folders)) as (
                    joining,
                    network,
                ),
                PublishedPorts(network) as self.ports,
                with_network_proxy(joining, network, self.show) as egress,
                confined_launch(self.runner, egress.launch) as confined,
            ):
                yield confined
                alarm = confined.private_file_alarm
                self.exposed = tuple(alarm.exposed_paths(thorough=True)) if alarm else ()
            if self.exposed:
                self.scratch.drop(self.call.session_key, self.runner.name)
            self.captured = _nothing_kept(self.exposed) if self.exposed else capturing.finish()
            self.notes = (*confined.notes, *egress.notes(), *self.captured.notes, *scratch.notes)
        except BaseException:
            self.discard()
            raise

    def _open_scratch(self, launch: Launch) -> AbstractContextManager[OpenScratch]:
        if not self.runner.keeps_scratch:
            return nullcontext(OpenScratch(None))
        return self.scratch.opened(launch, self.call.session_key, self.call.owner, self.runner.name)

    @contextmanager
    def _joined(self, launch: Launch) -> Iterator[tuple[Launch, SessionNetwork | None]]:
        """Context manager: the launch and the session network it joins (None if the runner joins none)."""
        with ExitStack() as stack:
            network = None
            if launch.network in self.runner.session_network_modes:
                try:
                    network = stack.enter_context(self.networks.opened_network(self.call.session_key))
                except HostError:
                    # Without a session network the command gets an empty one, where no proxy can listen.
                    if launch.network == "listed":
                        raise
            if network is not None and len(network.namespaces) > 1:
                # Join the session's user namespace instead of creating one.
                launch = replace(launch, unshare=launch.unshare & ~CLONE_NEWUSER)
            yield (replace(launch, namespaces=network.namespaces) if network else launch), network

    def sandbox_limit_notes(self, process_result: ProcessResult) -> tuple[str, ...]:
        """Notes for the model about sandbox restrictions that the command hit, found in its output."""
        launch = self._launch
        if launch is None:
            return ()
        confinement = CommandConfinement(
            confined=self.runner.confined,
            network=launch.network,
            terminal=launch.terminal is not None,
            is_private=partial(_is_private, launch),
        )
        head, tail = process_result.output.ends()
        text = plain_output(decode_output((tail or head)[-DENIAL_SCAN_TAIL_BYTES:], starts=False))
        return wall_notes(text, failed=process_result.code != 0, confinement=confinement)

    def discard(self) -> None:
        """Delete the captured changes after they were applied or rejected."""
        capturing, self._captures = self._captures, None
        if capturing is not None:
            capturing.discard()


def _nothing_kept(exposed: Sequence[str]) -> CapturedChanges:
    """An empty delta with a note: private paths appeared that the command could read."""
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
